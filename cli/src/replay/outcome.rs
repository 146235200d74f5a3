//! What a replay came to, for programs, the table and the page. Tokens by the one counter of the run; lines of the file.

use std::collections::BTreeMap;

use serde::Serialize;

use super::state::Act;
use crate::report::story::Moment;

/// One file.
#[derive(Debug, Serialize)]
pub struct Replayed {
    pub file: String,
    pub format: String,
    pub settings: Told,
    /// All conversations together; its lists are empty.
    pub total: Outcome,
    pub conversations: Vec<Outcome>,
    pub import: Import,
}

/// The settings of the run.
#[derive(Clone, Debug, Serialize)]
pub struct Told {
    pub budget: u64,
    pub trigger: u64,
    pub fixed: u64,
    pub keep: u64,
    pub tokens: &'static str,
    pub policy: &'static str,
}

/// What one conversation came to.
#[derive(Debug, Default, Serialize)]
pub struct Outcome {
    pub name: String,
    /// Where it begins.
    pub line: u64,
    pub entries: u64,
    pub tokens: u64,
    /// How often the model was asked: runs of its entries.
    pub turns: u64,
    pub keepspan: Kept,
    /// The same without anything leaving.
    pub full: Sizes,
    pub plain: Plain,
    pub late: Late,
    pub repeated: Repeats,
    /// Its own compactions, each beside keepspan.
    pub own: Vec<Own>,
    /// What the script asked for, and what came of it.
    pub script: Vec<Scripted>,
    #[serde(skip)]
    pub moments: Vec<Moment>,
}

/// The requests of a run, in tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sizes {
    /// The largest request.
    pub peak: u64,
    /// All requests together.
    pub sent: u64,
}

/// What keepspan did.
#[derive(Debug, Default, Serialize)]
pub struct Kept {
    #[serde(flatten)]
    pub sizes: Sizes,
    /// What all requests together would have taken more without it.
    pub saved: u64,
    pub evicted: u64,
    pub evicted_tokens: u64,
    /// How often a fallback freed space.
    pub fallbacks: u64,
    /// How often the gate would have let a model decide.
    pub admitted: u64,
    /// How often it would not, by reason.
    pub refused: BTreeMap<&'static str, u64>,
    pub resident: Resident,
    /// Evicted spans that came back as the file has them.
    pub recalled: u64,
    pub recalled_bytes: u64,
    /// Evicted spans that came back otherwise.
    pub changed: u64,
    /// Turns whose request was over the limit with everything gone that may leave.
    pub unfittable: u64,
    /// The first of them: its line and what it took.
    pub unfittable_at: Option<(u64, u64)>,
    /// Entries larger than the whole budget, which never entered.
    pub too_large: u64,
    /// The line of the first of them.
    pub too_large_at: Option<u64>,
}

/// What is in the window at the end, by why it is.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Resident {
    /// Instructions: they never leave.
    pub instructions: Share,
    /// Parts of exchanges that lack a result.
    pub pending: Share,
    /// Among the newest tokens, which `--keep` keeps.
    pub recent: Share,
    /// Protected, and there was room.
    pub protected: Share,
    /// No larger than the pointer that would stand there.
    pub small: Share,
    /// Might leave, and there was room.
    pub room: Share,
    /// The pointers that stand for what left, in tokens.
    pub pointers: u64,
}

/// Spans, and what they take.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Share {
    pub spans: u64,
    pub tokens: u64,
}

/// What a plain pruner would have done at the same trigger: the oldest entries are dropped, but for system prompts.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Plain {
    #[serde(flatten)]
    pub sizes: Sizes,
    pub dropped: u64,
    pub dropped_tokens: u64,
}

/// Calls that mention what was last seen long before.
#[derive(Debug, Default, Serialize)]
pub struct Late {
    pub calls: u64,
    pub writes: u64,
    /// Writes whose farthest mention is more than [`BACK`] tokens back.
    pub back: [u64; 3],
    /// Calls, and writes, that mention what was last seen in an entry that a plain pruner had dropped.
    pub plain: Mentioning,
    /// Those where it was last seen in a span that keepspan had evicted: a pointer stood there.
    pub keepspan: Mentioning,
    /// The farthest of these, one a call, the farthest first.
    pub worst: Vec<Reference>,
}

/// The distances of [`Late::back`], in tokens.
pub const BACK: [u64; 3] = [2_000, 5_000, 20_000];

/// How many calls, and how many of these are writes.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Mentioning {
    pub calls: u64,
    pub writes: u64,
}

/// A call that mentions what was last seen far back.
#[derive(Clone, Debug, Serialize)]
pub struct Reference {
    pub line: u64,
    pub tool: String,
    pub act: Act,
    /// What it mentions.
    pub mention: String,
    /// The tokens between.
    pub distance: u64,
    /// The span that it was last seen in; none where it was too large to enter.
    pub span: Option<u64>,
    /// What that is: a tool, or who said it.
    pub from: String,
    pub from_line: u64,
    pub plain_dropped: bool,
    pub keepspan_evicted: bool,
}

/// Calls that were made, and succeeded, before.
#[derive(Debug, Default, Serialize)]
pub struct Repeats {
    /// How many a guard would have stopped.
    pub calls: u64,
    /// Those that write, by their tool's name; the others are shells.
    pub writes: u64,
    /// How many requests they repeat.
    pub requests: u64,
    /// The most repeated first.
    pub most: Vec<Repeated>,
}

/// One request that was made again.
#[derive(Clone, Debug, Serialize)]
pub struct Repeated {
    pub tool: String,
    pub act: Act,
    /// Its arguments, shortened.
    pub arguments: String,
    pub signature: String,
    /// Where it succeeded first.
    pub first_line: u64,
    /// How often it was made again.
    pub times: u64,
    /// Where it was made again first, and last.
    pub lines: (u64, u64),
}

/// A compaction of the session's own beside keepspan under a budget of what was left.
#[derive(Clone, Debug, Serialize)]
pub struct Own {
    pub line: u64,
    /// `summary`, `cleared`, `replaced` or `forgot`.
    pub kind: &'static str,
    /// The agent's own count of the tokens before, and of those saved.
    pub tokens_before: Option<u64>,
    pub tokens_saved: Option<u64>,
    /// What the entries took that its context held.
    pub before: u64,
    /// What was left of them, its summary included: the budget for keepspan.
    pub left: u64,
    /// Ids of cleared calls that the file does not have.
    pub absent: u64,
    pub agent: Removal,
    /// `None` where the context was too large to be kept for it.
    pub keepspan: Option<Removal>,
}

/// What was taken out, and what later writes wanted of it.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Removal {
    pub spans: u64,
    pub tokens: u64,
    /// What the request took then.
    pub after: u64,
    /// Spans of these that later calls mention something of that was seen nowhere since.
    pub wanted: u64,
    /// Those that writes mention.
    pub wanted_by_writes: u64,
}

/// One line of the script in one conversation.
#[derive(Clone, Debug, Serialize)]
pub struct Scripted {
    pub after: u64,
    pub evict: Vec<String>,
    /// Spans that left.
    pub left: u64,
    /// Why nothing did.
    pub refused: Option<String>,
    /// Whether the gate refused, or else the answer was.
    pub by_gate: bool,
}

/// What reading the file came to.
#[derive(Debug, Serialize)]
pub struct Import {
    pub bytes: u64,
    pub lines: u64,
    pub conversations: u64,
    pub entries: u64,
    pub calls: u64,
    pub results: u64,
    pub compactions: u64,
    /// Skipped or put right, a sentence each with its line; the reader lists so many at most.
    pub repaired: Vec<String>,
    /// How many there were, by kind.
    pub repairs: BTreeMap<&'static str, u64>,
    /// What the model never saw, by kind.
    pub left_out: BTreeMap<&'static str, u64>,
}

impl Outcome {
    /// Adds the numbers of another, and leaves its lists.
    pub fn add(&mut self, other: &Self) {
        let sums = [
            (&mut self.entries, other.entries),
            (&mut self.tokens, other.tokens),
            (&mut self.turns, other.turns),
            (&mut self.late.calls, other.late.calls),
            (&mut self.late.writes, other.late.writes),
            (&mut self.repeated.calls, other.repeated.calls),
            (&mut self.repeated.writes, other.repeated.writes),
            (&mut self.repeated.requests, other.repeated.requests),
            (&mut self.plain.dropped, other.plain.dropped),
            (&mut self.plain.dropped_tokens, other.plain.dropped_tokens),
        ];
        sum(sums);
        sum(self.late.back.iter_mut().zip(other.late.back));
        self.late.plain.add(other.late.plain);
        self.late.keepspan.add(other.late.keepspan);
        self.full.add(other.full);
        self.plain.sizes.add(other.plain.sizes);
        self.keepspan.add(&other.keepspan);
    }
}

impl Kept {
    fn add(&mut self, other: &Self) {
        self.sizes.add(other.sizes);
        self.resident.add(&other.resident);
        sum([
            (&mut self.saved, other.saved),
            (&mut self.evicted, other.evicted),
            (&mut self.evicted_tokens, other.evicted_tokens),
            (&mut self.fallbacks, other.fallbacks),
            (&mut self.admitted, other.admitted),
            (&mut self.recalled, other.recalled),
            (&mut self.recalled_bytes, other.recalled_bytes),
            (&mut self.changed, other.changed),
            (&mut self.unfittable, other.unfittable),
            (&mut self.too_large, other.too_large),
        ]);
        for (reason, times) in &other.refused {
            sum([(self.refused.entry(reason).or_default(), *times)]);
        }
    }
}

impl Resident {
    /// Each share with its name.
    pub fn shares(&self) -> [(&'static str, Share); 6] {
        [
            ("instructions", self.instructions),
            ("protected", self.protected),
            ("pending", self.pending),
            ("recent", self.recent),
            ("no larger than a pointer", self.small),
            ("for which there was room", self.room),
        ]
    }

    fn add(&mut self, other: &Self) {
        let Self { instructions, pending, recent, protected, small, room, pointers } = self;
        instructions.add(other.instructions);
        pending.add(other.pending);
        recent.add(other.recent);
        protected.add(other.protected);
        small.add(other.small);
        room.add(other.room);
        sum([(pointers, other.pointers)]);
    }
}

impl Share {
    /// Adds spans with what they take.
    pub fn add(&mut self, other: Self) {
        sum([(&mut self.spans, other.spans), (&mut self.tokens, other.tokens)]);
    }
}

impl Sizes {
    /// Takes a request in.
    pub fn sent(&mut self, tokens: u64) {
        self.peak = self.peak.max(tokens);
        self.sent = self.sent.saturating_add(tokens);
    }

    fn add(&mut self, other: Self) {
        self.peak = self.peak.max(other.peak);
        self.sent = self.sent.saturating_add(other.sent);
    }
}

impl Mentioning {
    /// Counts a call.
    pub fn count(&mut self, act: Act) {
        self.add(Self { calls: 1, writes: u64::from(act == Act::Write) });
    }

    fn add(&mut self, other: Self) {
        sum([(&mut self.calls, other.calls), (&mut self.writes, other.writes)]);
    }
}

fn sum<'a>(numbers: impl IntoIterator<Item = (&'a mut u64, u64)>) {
    numbers.into_iter().for_each(|(sum, number)| *sum = sum.saturating_add(number));
}
