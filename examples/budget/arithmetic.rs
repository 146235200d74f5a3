//! The record's two policies in plain arithmetic on sizes: what it describes, to the token.

use crate::{
    report::{Fallback, Pass, Run},
    workload::{INDEX, NAMED, RATIONALE, Workload},
};

/// The hard limit of the window of 32k, in tokens.
pub const BUDGET: u64 = 24_000;
/// Net tokens that a gated pass must exceed: 1.5 times the rationale.
pub const MARGIN: u64 = 600;

/// What sets a policy apart.
#[derive(Clone, Copy, Debug)]
pub struct Policy {
    /// A few words.
    pub name: &'static str,
    /// One sentence.
    pub caption: &'static str,
    /// Acts above this utilization.
    pub trigger: u64,
    /// Asks whether a pass pays, takes all stale traces, never takes its own decisions.
    pub gate: bool,
}

/// No gate: at 22k the model names its three largest stale traces. Its decision is one more trace, stale a turn later.
pub const FULL: Policy = Policy {
    name: "prune when full",
    caption: "at 22k the model names three stale traces; no gate",
    trigger: 22_000,
    gate: false,
};

/// A gate with slack: from 20k, only if it pays; refused, the oldest tool output is cut.
pub const GATE: Policy = Policy {
    name: "a gate with slack",
    caption: "from 20k, and only if it pays; else the oldest tool output is cut",
    trigger: 20_000,
    gate: true,
};

/// Tokens that a cut tool output keeps.
const STUB: u64 = 60;

/// A trace in the window.
#[derive(Clone, Copy)]
struct Trace {
    tokens: u64,
    stale_from: Option<u32>,
    /// A tool result that a fallback may take.
    output: bool,
    out: bool,
}

impl Trace {
    fn is_candidate(&self, turn: u32) -> bool {
        !self.out && self.stale_from.is_some_and(|from| from <= turn)
    }
}

struct Simulation {
    policy: Policy,
    traces: Vec<Trace>,
    utilization: u64,
    run: Run,
}

/// Runs a policy over a workload. O(turns · spans).
pub fn run(policy: Policy, workload: &Workload) -> Run {
    let utilization = workload.prefix.iter().map(|piece| piece.tokens).sum();
    let run = Run { name: policy.name, caption: policy.caption, trigger: policy.trigger, ..Run::default() };
    let mut at = Simulation { policy, traces: Vec::new(), utilization, run };
    at.sample(0, 0.0);
    for (turn, pieces) in (1..).zip(&workload.turns) {
        for piece in pieces {
            at.enter(piece.tokens, piece.stale_from, piece.tool.is_some());
        }
        at.sample(turn, 0.0);
        if at.utilization > policy.trigger {
            at.act(turn);
        }
    }
    at.run
}

impl Simulation {
    /// `later`: what share of a turn after it, so that a picture can tell the three points of a pass apart.
    fn sample(&mut self, turn: u32, later: f64) {
        self.run.samples.push((f64::from(turn) + later, self.utilization));
    }

    fn enter(&mut self, tokens: u64, stale_from: Option<u32>, output: bool) {
        self.traces.push(Trace { tokens, stale_from, output, out: false });
        self.utilization = self.utilization.saturating_add(tokens);
    }

    fn act(&mut self, turn: u32) {
        let mut stale: Vec<usize> = Vec::new();
        stale.extend(self.traces.iter().enumerate().filter(|(_, trace)| trace.is_candidate(turn)).map(|(at, _)| at));
        if !self.policy.gate {
            stale.sort_by_key(|at| std::cmp::Reverse(self.tokens(*at)));
            stale.truncate(NAMED);
            return self.pass(turn, &stale);
        }
        match self.refusal(&stale) {
            None => self.pass(turn, &stale),
            Some(reason) => {
                self.run.refusals.push((turn, reason));
                self.fall_back(turn);
            }
        }
    }

    /// The record's four outcomes; `None` admits.
    fn refusal(&self, stale: &[usize]) -> Option<String> {
        let overhead = INDEX.saturating_add(RATIONALE);
        let Some(headroom) = BUDGET.checked_sub(self.utilization) else {
            return Some(String::from("over budget"));
        };
        if headroom < overhead {
            return Some(format!("deciding costs {overhead}, headroom is {headroom}"));
        }
        if stale.is_empty() {
            return Some(String::from("nothing to prune"));
        }
        let freed = self.freed(stale);
        let needed = overhead.saturating_add(MARGIN);
        (freed <= needed).then(|| format!("would free {freed}, must exceed {needed}"))
    }

    fn tokens(&self, at: usize) -> u64 {
        self.traces.get(at).map_or(0, |trace| trace.tokens)
    }

    fn freed(&self, leaving: &[usize]) -> u64 {
        leaving.iter().map(|at| self.tokens(*at)).sum()
    }

    fn leave(&mut self, leaving: &[usize]) -> u64 {
        let evicted = self.freed(leaving);
        for at in leaving {
            if let Some(trace) = self.traces.get_mut(*at) {
                trace.out = true;
            }
        }
        self.utilization = self.utilization.saturating_sub(evicted);
        evicted
    }

    fn pass(&mut self, turn: u32, leaving: &[usize]) {
        let before = self.utilization;
        self.utilization = before.saturating_add(INDEX).saturating_add(RATIONALE);
        self.sample(turn, 0.25);
        self.utilization = before;
        let evicted = self.leave(leaving);
        // What the model read and wrote is one exchange, so one trace; the record's figures add up only if both stay.
        let stale_from = (!self.policy.gate).then_some(turn.saturating_add(1));
        self.enter(RATIONALE.saturating_add(INDEX), stale_from, false);
        self.sample(turn, 0.5);
        let after = self.utilization;
        self.run.passes.push(Pass { turn, before, after, index: INDEX, rationale: RATIONALE, pointers: 0, evicted });
    }

    /// One tool output, the oldest, is cut to a stub.
    fn fall_back(&mut self, turn: u32) {
        let before = self.utilization;
        let Some(trace) = self.traces.iter_mut().find(|trace| trace.output && !trace.out && trace.tokens > STUB) else {
            return;
        };
        let cut = trace.tokens.saturating_sub(STUB);
        let lost = if trace.is_candidate(turn) { 0 } else { cut };
        trace.tokens = STUB;
        self.utilization = before.saturating_sub(cut);
        self.sample(turn, 0.5);
        self.run.fallbacks.push(Fallback { turn, before, after: self.utilization, lost });
    }
}
