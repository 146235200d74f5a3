//! What the runs came to: plain data, the record's columns, and JSON.

use serde_json::{Value, json};

/// Three policies on one workload, and the same over many seeds.
#[derive(Clone, Debug)]
pub struct Report {
    /// The seed of [`Report::runs`].
    pub seed: u64,
    /// Tokens of that workload, were nothing pruned.
    pub unpruned: u64,
    /// The hard limit, in tokens.
    pub budget: u64,
    /// Prune when full, a gate with slack, keepspan.
    pub runs: [Run; 3],
    /// The same three over many seeds.
    pub seeds: Distribution,
}

/// One policy on one workload. All sizes in tokens.
#[derive(Clone, Debug, Default)]
pub struct Run {
    /// A few words, for headings and columns.
    pub name: &'static str,
    /// One sentence: what the policy does.
    pub caption: &'static str,
    /// The utilization above which it acts.
    pub trigger: u64,
    /// (turn, utilization) in the order of time. A pass gives three of one turn: before, while deciding, after.
    pub samples: Vec<(f64, u64)>,
    /// What the model decided.
    pub passes: Vec<Pass>,
    /// Where a pass was refused, and why.
    pub refusals: Vec<(u32, String)>,
    /// What left without a model.
    pub fallbacks: Vec<Fallback>,
}

/// One decision of the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pass {
    /// The turn it was taken in.
    pub turn: u32,
    /// Utilization before.
    pub before: u64,
    /// Utilization after.
    pub after: u64,
    /// Tokens the model read to decide.
    pub index: u64,
    /// Tokens the model wrote.
    pub rationale: u64,
    /// Tokens of the pointers that took the place of what left.
    pub pointers: u64,
    /// Tokens that left.
    pub evicted: u64,
}

impl Pass {
    /// What the decision cost.
    pub fn overhead(&self) -> u64 {
        self.index.saturating_add(self.rationale)
    }

    /// What it freed, after its own cost and the pointers; negative when it cost more.
    pub fn net(&self) -> i64 {
        let evicted = i64::try_from(self.evicted).unwrap_or(i64::MAX);
        evicted.saturating_sub_unsigned(self.overhead()).saturating_sub_unsigned(self.pointers)
    }
}

/// Text that left, or was cut, without a model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fallback {
    /// The turn.
    pub turn: u32,
    /// Utilization before.
    pub before: u64,
    /// Utilization after.
    pub after: u64,
    /// Tokens that were still needed and cannot be had again.
    pub lost: u64,
}

impl Run {
    /// Tokens spent deciding.
    pub fn overhead(&self) -> u64 {
        self.passes.iter().map(Pass::overhead).sum()
    }

    /// Tokens freed by deciding, net.
    pub fn net(&self) -> i64 {
        self.passes.iter().map(Pass::net).sum()
    }

    /// The smallest net of a pass; `None` without a pass.
    pub fn least_net(&self) -> Option<i64> {
        self.passes.iter().map(Pass::net).min()
    }

    /// Tokens spent deciding for each token freed; `None` when nothing was freed net.
    pub fn ratio(&self) -> Option<f64> {
        let net = self.net();
        (net > 0).then(|| self.overhead() as f64 / net as f64)
    }

    /// The highest utilization, while deciding included.
    pub fn peak(&self) -> u64 {
        self.samples.iter().map(|(_, tokens)| *tokens).max().unwrap_or(0)
    }

    /// The lowest utilization from the first pass or refusal on; 0 when there was none.
    pub fn low(&self) -> u64 {
        let reached = self.samples.iter().skip_while(|(_, tokens)| *tokens <= self.trigger);
        reached.map(|(_, tokens)| *tokens).min().unwrap_or(0)
    }

    /// Tokens cut away that were still needed and cannot be had again.
    pub fn lost(&self) -> u64 {
        self.fallbacks.iter().map(|fallback| fallback.lost).sum()
    }
}

/// Figures of many seeds, the same order in each list.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    /// By policy, in the order of [`Report::runs`].
    pub policies: [Figures; 3],
}

/// One policy over many seeds.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// Passes of each run.
    pub passes: Vec<u64>,
    /// Tokens spent deciding.
    pub overhead: Vec<u64>,
    /// Tokens freed by deciding, net.
    pub net: Vec<i64>,
    /// Lowest utilization after the trigger was first reached.
    pub low: Vec<u64>,
    /// Highest utilization.
    pub peak: Vec<u64>,
    /// The smallest net of a pass.
    pub least_net: Vec<i64>,
    /// Tokens lost.
    pub lost: Vec<u64>,
}

impl Distribution {
    /// Counts one workload's runs in.
    pub fn add(&mut self, runs: &[Run; 3]) {
        for (figures, run) in self.policies.iter_mut().zip(runs) {
            figures.passes.push(run.passes.len() as u64);
            figures.overhead.push(run.overhead());
            figures.net.push(run.net());
            figures.low.push(run.low());
            figures.peak.push(run.peak());
            figures.least_net.extend(run.least_net());
            figures.lost.push(run.lost());
        }
    }

    /// How many seeds were counted in.
    pub fn seeds(&self) -> usize {
        self.policies.first().map_or(0, |figures| figures.passes.len())
    }
}

impl Figures {
    /// Tokens spent deciding for each token freed, in each run that freed any.
    pub fn ratios(&self) -> Vec<f64> {
        let pairs = self.overhead.iter().zip(&self.net);
        pairs.filter(|(_, net)| **net > 0).map(|(overhead, net)| *overhead as f64 / *net as f64).collect()
    }
}

/// Least, median and greatest; `None` of nothing.
pub fn spread<T: Copy + PartialOrd>(values: &[T]) -> Option<(T, T, T)> {
    let mut sorted = values.to_vec();
    sorted.sort_by(|a, b| a.partial_cmp(b).unwrap_or(std::cmp::Ordering::Equal));
    let middle = sorted.get(sorted.len().checked_div(2)?)?;
    Some((*sorted.first()?, *middle, *sorted.last()?))
}

/// A number with its thousands set apart: `24,000`.
pub fn thousands(number: i64) -> String {
    let digits = number.unsigned_abs().to_string();
    let mut text = String::from(if number < 0 { "-" } else { "" });
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len().saturating_sub(at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn tokens(number: u64) -> String {
    thousands(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The record's columns for one workload, then over all seeds as least / median / greatest.
pub fn table(report: &Report) -> String {
    let mut lines = vec![format!(
        "seed {}: {} tokens unpruned, hard budget {}\n{:<17} {:>6} {:>8} {:>8} {:>9} {:>9} {:>8} {:>6} {:>8} {:>10}",
        report.seed,
        tokens(report.unpruned),
        tokens(report.budget),
        "policy",
        "passes",
        "lowest",
        "peak",
        "net/pass",
        "deciding",
        "net",
        "ratio",
        "refused",
        "lost"
    )];
    lines.extend(report.runs.iter().map(row));
    lines.push(format!("\n{} seeds: least / median / greatest", report.seeds.seeds()));
    lines.push(format!(
        "{:<17} {:>12} {:>24} {:>24} {:>23} {:>21}",
        "policy", "passes", "lowest", "peak", "deciding", "ratio"
    ));
    lines.extend(report.runs.iter().zip(&report.seeds.policies).map(|(run, figures)| spread_row(run.name, figures)));
    lines.push(String::from(
        "\nTokens throughout. lowest: once the trigger was passed; peak: while deciding included; deciding: read and written to decide;\n\
         net: freed, less deciding and the pointers left behind; ratio: deciding / net; lost: needed text cut for good",
    ));
    lines.join("\n")
}

fn row(run: &Run) -> String {
    let passes = i64::try_from(run.passes.len()).unwrap_or(i64::MAX);
    format!(
        "{:<17} {:>6} {:>8} {:>8} {:>9} {:>9} {:>8} {:>6} {:>8} {:>10}",
        run.name,
        passes,
        tokens(run.low()),
        tokens(run.peak()),
        run.net().checked_div(passes).map_or_else(|| String::from("-"), thousands),
        tokens(run.overhead()),
        thousands(run.net()),
        run.ratio().map_or_else(|| String::from("-"), |ratio| format!("{ratio:.2}")),
        run.refusals.len(),
        tokens(run.lost()),
    )
}

fn spread_row(name: &str, figures: &Figures) -> String {
    let whole = |values: &[u64]| {
        spread(values).map_or_else(String::new, |(a, b, c)| format!("{} / {} / {}", tokens(a), tokens(b), tokens(c)))
    };
    let ratio = spread(&figures.ratios()).map_or_else(String::new, |(a, b, c)| format!("{a:.2} / {b:.2} / {c:.2}"));
    format!(
        "{name:<17} {:>12} {:>24} {:>24} {:>23} {ratio:>21}",
        whole(&figures.passes),
        whole(&figures.low),
        whole(&figures.peak),
        whole(&figures.overhead)
    )
}

/// Everything, for programs.
pub fn json(report: &Report) -> Value {
    json!({
        "seed": report.seed,
        "unpruned": report.unpruned,
        "budget": report.budget,
        "runs": report.runs.iter().map(run_json).collect::<Vec<_>>(),
        "seeds": report.runs.iter().zip(&report.seeds.policies).map(|(run, figures)| json!({
            "name": run.name,
            "passes": figures.passes,
            "overhead": figures.overhead,
            "net": figures.net,
            "lowest": figures.low,
            "peak": figures.peak,
            "least_net": figures.least_net,
            "lost": figures.lost,
        })).collect::<Vec<_>>(),
    })
}

fn run_json(run: &Run) -> Value {
    json!({
        "name": run.name,
        "caption": run.caption,
        "trigger": run.trigger,
        "lowest": run.low(),
        "peak": run.peak(),
        "overhead": run.overhead(),
        "net": run.net(),
        "ratio": run.ratio(),
        "lost": run.lost(),
        "samples": run.samples,
        "passes": run.passes.iter().map(|pass| json!({
            "turn": pass.turn, "before": pass.before, "after": pass.after, "index": pass.index,
            "rationale": pass.rationale, "pointers": pass.pointers, "evicted": pass.evicted, "net": pass.net(),
        })).collect::<Vec<_>>(),
        "refusals": run.refusals.iter().map(|(turn, reason)| json!({ "turn": turn, "reason": reason })).collect::<Vec<_>>(),
        "fallbacks": run.fallbacks.iter().map(|left| json!({
            "turn": left.turn, "before": left.before, "after": left.after, "lost": left.lost,
        })).collect::<Vec<_>>(),
    })
}
