//! The third policy is keepspan itself: a window over a store, its gate, its passes and its fallback, with the defaults of
//! the budget and a model that names what is stale.

use std::collections::BTreeMap;

use anyhow::{Result, anyhow};
use keepspan::{
    Advice, ContextState, CounterError, Episode, FellBack, NewSpan, OldestFirst, Outcome, PassRecord, Role, SpanId,
    Spans, TokenCount, TokenCounter, Window, store::MemoryStore, tool::Answer,
};

use crate::{
    report::{Fallback, Pass, Run},
    workload::{Piece, Workload, rationale},
};

/// What the agent of the workload holds. Index, rationale, margin and trigger follow from the budget: 600, 400, 600 and
/// 20,000 tokens.
#[derive(ContextState)]
#[context(budget = 24_000)]
struct Agent {
    #[instruction(roles("system", "user"))]
    rules: Spans,
    #[precondition(tools("describe_table"))]
    schema: Spans,
    #[negative_result(on_error)]
    failed: Spans,
    #[evictable(otherwise)]
    work: Spans,
    #[rationale]
    decisions: Spans,
}

/// The workload's measure: its texts are made to have four bytes a token.
struct FourBytes;

impl TokenCounter for FourBytes {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        let bytes = u32::try_from(text.len()).map_err(|_| CounterError::new("longer than 4 GiB"))?;
        Ok(TokenCount::exact(bytes.div_ceil(4)))
    }
}

struct Kept<'a> {
    window: Window<Agent, MemoryStore>,
    /// What each span is, for the model that decides and for the report.
    pieces: BTreeMap<SpanId, &'a Piece>,
    run: Run,
}

/// Runs keepspan over a workload.
pub fn run(workload: &Workload) -> Result<Run> {
    let window = Window::open_with(MemoryStore::new(), Episode::new("budget", "keepspan"), FourBytes)?;
    let trigger = window.budget().map_or(0, |budget| budget.trigger());
    let run = Run {
        name: "keepspan",
        caption: "its defaults: just before the trigger, only if it pays; what leaves can be recalled",
        trigger,
        ..Run::default()
    };
    let mut kept = Kept { window, pieces: BTreeMap::new(), run };
    for piece in &workload.prefix {
        kept.enter(piece)?;
    }
    kept.sample(0, 0.0);
    for (turn, pieces) in (1..).zip(&workload.turns) {
        for piece in pieces {
            kept.enter(piece)?;
        }
        kept.sample(turn, 0.0);
        kept.prune(turn)?;
    }
    Ok(kept.run)
}

impl<'a> Kept<'a> {
    fn enter(&mut self, piece: &'a Piece) -> Result<()> {
        let span = match piece.tool {
            Some("run_migration") => NewSpan::tool("run_migration", piece.text()).failed(),
            Some(tool) => NewSpan::tool(tool, piece.text()),
            None if piece.turn == 0 => NewSpan::notice(piece.text()).role(Role::System),
            None => NewSpan::model(piece.text()),
        };
        let id = self.window.lanes().route(span)?;
        self.pieces.insert(id, piece);
        Ok(())
    }

    fn sample(&mut self, turn: u32, later: f64) {
        self.run.samples.push((f64::from(turn) + later, self.window.utilization()));
    }

    fn prune(&mut self, turn: u32) -> Result<()> {
        let before = self.window.utilization();
        let lanes = self.window.lanes().externalize().wait()?;
        match lanes.advice() {
            Advice::Prune(_) => {}
            Advice::FallBack(_) => return self.fall_back(turn),
            _ => return Ok(()),
        }
        let pass = match lanes.admit() {
            Ok(pass) => pass,
            Err(refusal) => {
                self.run.refusals.push((turn, refusal.reason().reason().to_owned()));
                return Ok(());
            }
        };
        // The scripted model: what the workload calls stale, of what it is offered.
        let offers = pass.index().offers().iter();
        let stale = offers.filter(|offer| self.pieces.get(&offer.span()).is_some_and(|piece| piece.is_stale(turn)));
        let picked: Vec<_> = stale.map(|offer| (offer.span().to_string(), offer.tokens())).collect();
        let said = rationale(&picked);
        let deciding = before.saturating_add(pass.index().tokens()).saturating_add(tokens(&said));
        self.run.samples.push((f64::from(turn) + 0.25, deciding));
        let answer = Answer::prune(picked.into_iter().map(|(name, _)| name)).with_rationale(said.as_str());
        let proposal = pass.parse(&answer.spent(tokens(&said)))?;
        match pass.apply(proposal).wait()? {
            Outcome::Pruned(report) => self.passed(turn, report.pass()),
            Outcome::Unchanged => self.run.refusals.push((turn, "the model named nothing".to_owned())),
        }
        self.sample(turn, 0.5);
        Ok(())
    }

    fn passed(&mut self, turn: u32, pass: &PassRecord) {
        self.run.passes.push(Pass {
            turn,
            before: pass.before,
            after: pass.after,
            index: pass.index,
            rationale: pass.rationale,
            pointers: pass.pointers,
            evicted: pass.gross,
        });
    }

    fn fall_back(&mut self, turn: u32) -> Result<()> {
        let refusal = match self.window.lanes().externalize().wait()?.admit() {
            Ok(_) => return Err(anyhow!("the advice was to fall back, and the gate admits")),
            Err(refusal) => refusal,
        };
        self.run.refusals.push((turn, refusal.reason().reason().to_owned()));
        if let FellBack::Freed(report) = refusal.fall_back(OldestFirst).wait()? {
            let PassRecord { before, after, .. } = *report.pass();
            // Whatever left can be recalled by its id, so nothing is lost.
            self.run.fallbacks.push(Fallback { turn, before, after, lost: 0 });
            self.sample(turn, 0.5);
        }
        Ok(())
    }
}

fn tokens(text: &str) -> u64 {
    u64::try_from(text.len().div_ceil(4)).unwrap_or(u64::MAX)
}
