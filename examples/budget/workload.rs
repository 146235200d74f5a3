//! A tool loop of 40 turns, the same for every policy: what enters the window, and from which turn on it is stale.
//!
//! The agent reads the documents it will need to the end, surveys the code, then edits and tests. Each turn is one
//! thought and one tool result. Sizes are tokens at four bytes each. The numbers below were chosen so that a policy
//! without a gate shows what the record observed; they are properties of the workload, none of a policy.

/// Turns of a run.
pub const TURNS: u32 = 40;
/// Tokens of the system prompt with house rules and tool definitions.
const SYSTEM: u64 = 10_000;
/// Tokens of the task.
const TASK: u64 = 1_200;
/// Tokens of a thought, and after how many turns the next plan replaces it.
const THOUGHT: (Between, Between) = (Between(60, 70), Between(4, 4));

/// What a phase does until its last turn: tools with a weight each.
struct Phase {
    last: u32,
    tools: &'static [(u64, Tool)],
}

const PHASES: [Phase; 3] = [
    Phase { last: 3, tools: &[(1, DESCRIBE)] },
    Phase { last: 10, tools: &[(5, READ), (2, SEARCH)] },
    Phase { last: TURNS, tools: &[(15, DIFF), (15, TEST), (5, GREP), (1, FAILED)] },
];

const DESCRIBE: Tool =
    Tool { name: "describe_table", lane: Lane::Precondition, size: Between(800, 1_100), stale: None };
const READ: Tool =
    Tool { name: "read_file", lane: Lane::Evictable, size: Between(430, 570), stale: Some(Between(1, 5)) };
const SEARCH: Tool =
    Tool { name: "search", lane: Lane::Evictable, size: Between(280, 420), stale: Some(Between(3, 5)) };
/// The loop's tools cap what they return.
const DIFF: Tool = Tool { name: "diff", lane: Lane::Evictable, size: Between(310, 330), stale: Some(Between(2, 3)) };
const TEST: Tool =
    Tool { name: "run_tests", lane: Lane::Evictable, size: Between(310, 330), stale: Some(Between(2, 3)) };
const GREP: Tool = Tool { name: "grep", lane: Lane::Evictable, size: Between(310, 330), stale: Some(Between(2, 3)) };
const FAILED: Tool = Tool { name: "run_migration", lane: Lane::NegativeResult, size: Between(120, 240), stale: None };

/// A tool, its lane, the tokens of a result, and the turns after which a result is superseded; `None`: needed to the end.
#[derive(Clone, Copy)]
struct Tool {
    name: &'static str,
    lane: Lane,
    size: Between,
    stale: Option<Between>,
}

/// From the first to the second, both included.
#[derive(Clone, Copy)]
struct Between(u64, u64);

/// Where a span belongs by the declaration of its state struct.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// System prompt and task.
    Instruction,
    /// What later steps depend on.
    Precondition,
    /// "X failed because Y".
    NegativeResult,
    /// Thoughts, reads, diffs, test output.
    Evictable,
}

/// One span that enters the window.
#[derive(Clone, Debug)]
pub struct Piece {
    /// The turn it enters in; 0 is before the first.
    pub turn: u32,
    /// The tool whose result it is; `None` for instructions and thoughts.
    pub tool: Option<&'static str>,
    /// Where it belongs.
    pub lane: Lane,
    /// Its size in tokens, four bytes each.
    pub tokens: u64,
    /// The turn from which on nothing needs it; `None`: needed to the end.
    pub stale_from: Option<u32>,
    seed: u64,
}

impl Piece {
    /// Whether nothing needs it any more in `turn`.
    pub fn is_stale(&self, turn: u32) -> bool {
        self.stale_from.is_some_and(|from| from <= turn)
    }

    /// Its text: ASCII, exactly four bytes a token, the same for the same seed.
    pub fn text(&self) -> String {
        let mut rng = Rng(self.seed);
        let line: fn(&mut Rng) -> String = match self.tool {
            None if self.lane == Lane::Instruction => rule,
            None => thought,
            Some("describe_table") => column,
            Some("search" | "grep") => hit,
            Some("diff") => change,
            Some("run_tests") => test,
            Some("run_migration") => failure,
            Some(_) => code,
        };
        fill(self.tokens, || line(&mut rng))
    }
}

/// All that enters the window in a run.
#[derive(Clone, Debug)]
pub struct Workload {
    /// System prompt and task.
    pub prefix: Vec<Piece>,
    /// Thought and tool result of each turn, the first turn first.
    pub turns: Vec<[Piece; 2]>,
}

impl Workload {
    /// The workload of a seed, the same on every machine.
    pub fn new(seed: u64) -> Self {
        let mut rng = Rng(seed);
        let mut fixed =
            |tokens| Piece { turn: 0, tool: None, lane: Lane::Instruction, tokens, stale_from: None, seed: rng.next() };
        let prefix = vec![fixed(SYSTEM), fixed(TASK)];
        let turns = (1..=TURNS).filter_map(|turn| Some([thinks(&mut rng, turn), calls(&mut rng, turn)?])).collect();
        Self { prefix, turns }
    }

    /// Tokens of everything, were nothing pruned.
    pub fn tokens(&self) -> u64 {
        self.prefix.iter().chain(self.turns.iter().flatten()).map(|piece| piece.tokens).sum()
    }
}

fn thinks(rng: &mut Rng, turn: u32) -> Piece {
    let (size, stale) = THOUGHT;
    Piece {
        turn,
        tool: None,
        lane: Lane::Evictable,
        tokens: rng.pick(size),
        stale_from: Some(later(turn, rng.pick(stale))),
        seed: rng.next(),
    }
}

fn calls(rng: &mut Rng, turn: u32) -> Option<Piece> {
    let phase = PHASES.iter().find(|phase| turn <= phase.last)?;
    let mut at = rng.below(phase.tools.iter().map(|(weight, _)| weight).sum());
    let (_, tool) = phase.tools.iter().find(|(weight, _)| match at.checked_sub(*weight) {
        Some(rest) => {
            at = rest;
            false
        }
        None => true,
    })?;
    Some(Piece {
        turn,
        tool: Some(tool.name),
        lane: tool.lane,
        tokens: rng.pick(tool.size),
        stale_from: tool.stale.map(|after| later(turn, rng.pick(after))),
        seed: rng.next(),
    })
}

fn later(turn: u32, turns: u64) -> u32 {
    turn.saturating_add(u32::try_from(turns).unwrap_or(u32::MAX))
}

// -------------------------------------------------------------------------------------------------
// The scripted model
// -------------------------------------------------------------------------------------------------

/// Tokens of the list of candidates that the model reads before it decides.
pub const INDEX: u64 = 600;
/// Tokens that the model writes when it decides.
pub const RATIONALE: u64 = 400;
/// How many traces a decision without a gate names.
pub const NAMED: usize = 3;

/// What the model writes, cut or filled to [`RATIONALE`] tokens.
pub fn rationale<T: std::fmt::Display>(picked: &[(T, u64)]) -> String {
    let mut lines = picked.iter().map(|(name, tokens)| {
        format!(
            "Drop {name} ({tokens} tokens): a later step replaced it, and nothing that is left to do refers to it.\n"
        )
    });
    let mut rng = Rng(1);
    fill(RATIONALE, || lines.next().unwrap_or_else(|| thought(&mut rng)))
}

// -------------------------------------------------------------------------------------------------
// Texts
// -------------------------------------------------------------------------------------------------

fn fill(tokens: u64, mut line: impl FnMut() -> String) -> String {
    let bytes = usize::try_from(tokens.saturating_mul(4)).unwrap_or(usize::MAX);
    let mut text = String::new();
    while text.len() < bytes {
        text.push_str(&line());
    }
    // ASCII throughout, so every byte ends a character.
    text.truncate(bytes);
    text
}

const NOUNS: [&str; 16] = [
    "account", "invoice", "ledger", "session", "customer", "payment", "refund", "shipment", "tenant", "audit",
    "report", "currency", "contract", "address", "balance", "webhook",
];
const VERBS: [&str; 12] =
    ["load", "store", "check", "convert", "merge", "update", "parse", "reject", "migrate", "index", "rename", "count"];

fn noun(rng: &mut Rng) -> &'static str {
    rng.word(&NOUNS)
}

fn verb(rng: &mut Rng) -> &'static str {
    rng.word(&VERBS)
}

fn rule(rng: &mut Rng) -> String {
    format!(
        "{}. Before you {} a {}, {} its {} and say which {} it belongs to.\n",
        rng.below(90).saturating_add(10),
        verb(rng),
        noun(rng),
        verb(rng),
        noun(rng),
        noun(rng)
    )
}

fn thought(rng: &mut Rng) -> String {
    format!(
        "The {} step should {} every {} first; after that I {} the {} and run the tests again.\n",
        noun(rng),
        verb(rng),
        noun(rng),
        verb(rng),
        noun(rng)
    )
}

fn column(rng: &mut Rng) -> String {
    let kind = rng.word(&["BIGINT NOT NULL", "TEXT NOT NULL", "NUMERIC(18, 4)", "TIMESTAMP WITH TIME ZONE"]);
    format!("{}.{}_{} {kind} REFERENCES {}\n", noun(rng), noun(rng), noun(rng), noun(rng))
}

fn code(rng: &mut Rng) -> String {
    let (a, b, c) = (noun(rng), verb(rng), noun(rng));
    format!("    let {a} = {b}_{c}(&{c}, {})?;\n    self.{}.push({a}.{}());\n", rng.below(512), noun(rng), verb(rng))
}

fn hit(rng: &mut Rng) -> String {
    format!("src/{}/{}.rs:{}: fn {}_{}(\n", noun(rng), noun(rng), rng.below(900), verb(rng), noun(rng))
}

fn change(rng: &mut Rng) -> String {
    let (a, b) = (noun(rng), noun(rng));
    format!("-    {}_{a}(&{b});\n+    {}_{a}(&mut {b})?;\n     // the {} stays\n", verb(rng), verb(rng), noun(rng))
}

fn test(rng: &mut Rng) -> String {
    format!("test {}::{}_the_{} ... ok ({} ms)\n", noun(rng), verb(rng), noun(rng), rng.below(900))
}

fn failure(rng: &mut Rng) -> String {
    format!("ERROR: cannot {} {}: violates foreign key of {}, statement rolled back\n", verb(rng), noun(rng), noun(rng))
}

/// SplitMix64.
#[derive(Clone, Copy, Debug)]
struct Rng(u64);

impl Rng {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`; 0 when `end` is 0.
    fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or(0)
    }

    fn pick(&mut self, Between(low, high): Between) -> u64 {
        low.saturating_add(self.below(high.saturating_sub(low).saturating_add(1)))
    }

    fn word(&mut self, words: &[&'static str]) -> &'static str {
        let at = usize::try_from(self.below(words.len() as u64)).unwrap_or(0);
        words.get(at).copied().unwrap_or_default()
    }
}
