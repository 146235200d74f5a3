//! A schema migration in a real SQL database, done twice by the same scripted agent under a small
//! window.
//!
//! `cargo run --example migration` builds two real database files, `prod.db` and `staging.db`, and
//! lets a deterministic "model" migrate production. It reads the schema once, at the start, then
//! works through tool output many times the size of its window. A scripted pruner makes room the way
//! a model was once seen to: the schema dump goes first ("redundant, already summarized"), then the
//! summary is summarized.
//!
//! The runs differ only in the [`Memory`] behind the window:
//!
//! * **plain** obeys the pruner, as most agents do today: it deletes, and lets paraphrases stand in.
//! * **kept** is keepspan: text leaves only to a pointer that can be recalled, and unsafe proposals
//!   are refused.
//! * **control** never prunes. It shows that the agent itself is able to do the job.
//!
//! Nothing scripts the outcome. The model decides each step by parsing what its window holds at that
//! moment, the statements run in SQLite, and a check at the end compares every final row with the
//! data that was put in.
//!
//! Exit code: 0 as expected (plain wrong, kept and control right), 1 not as expected, 2 usage or I/O
//! error.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use keepspan::{
    ContextState, Episode, Finish, Message, ModelAnswer, NewSpan, Shown, SpanId, Spans, SummaryText, Window,
    store::Store,
};
use rusqlite::{Connection, params};

mod place;

use place::Place;

// -------------------------------------------------------------------------------------------------
// Memory: what an agent's window can do
// -------------------------------------------------------------------------------------------------

/// What a text is, as its tool declares it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    /// The task.
    Instruction,
    /// Output of `describe_table`.
    Schema,
    /// Which database something was verified against.
    Scope,
    /// "X failed because Y".
    Failure,
    /// Files, diffs, query plans, test runs.
    Work,
}

/// How an entry of the window came to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    /// The text itself.
    Text(Kind),
    /// A paraphrase of other entries.
    Summary,
    /// What is left of evicted texts; [`Memory::lookup`] brings each back.
    Pointer,
}

/// One entry of the window, exactly as the model sees it.
#[derive(Clone, Debug)]
struct Entry {
    id: u64,
    role: Role,
    text: String,
}

/// What the pruner asks for.
#[derive(Clone, Debug)]
enum Proposal {
    /// Take these out of the window.
    Evict { ids: Vec<u64>, reason: &'static str },
    /// Put this text in their place.
    Summarize { ids: Vec<u64>, text: String, reason: &'static str },
}

/// What became of a proposal.
#[derive(Clone, Debug)]
enum Outcome {
    /// The texts are gone.
    Deleted,
    /// The texts are gone from the window, and a pointer to them is left.
    Pointed,
    /// A summary stands in for them.
    Summarized,
    /// The window is as it was. `rule` is short, `why` is the error's own text.
    Refused { rule: String, why: String },
}

/// An agent's window, as the agent and the pruner use it.
trait Memory {
    /// Puts a text into the window and returns its id.
    fn remember(&mut self, kind: Kind, text: String) -> Result<u64>;
    /// Exactly what the model sees now, oldest first.
    fn window(&self) -> Result<Vec<Entry>>;
    /// The tokens of [`Memory::window`].
    fn utilization(&self) -> usize;
    /// Obeys a proposal, or refuses it.
    fn propose(&mut self, proposal: &Proposal) -> Result<Outcome>;
    /// The text behind a pointer seen in the window; `None` if there is no such thing.
    fn lookup(&mut self, pointer: u64) -> Result<Option<String>>;
    /// The texts of these kinds that pointers name: before a destructive step, those that it depends on.
    fn missing(&mut self, _needs: &[Kind]) -> Result<Vec<u64>> {
        Ok(Vec::new())
    }
}

/// Tokens of a text: bytes over four, rounded up.
fn tokens(text: &str) -> usize {
    text.len().div_ceil(4)
}

/// The memory of an agent as built today: a list of texts that does what the pruner says.
#[derive(Default)]
struct Plain {
    entries: Vec<Entry>,
    last_id: u64,
}

impl Plain {
    fn push(&mut self, role: Role, text: String) -> u64 {
        self.last_id = self.last_id.saturating_add(1);
        self.entries.push(Entry { id: self.last_id, role, text });
        self.last_id
    }
}

impl Memory for Plain {
    fn remember(&mut self, kind: Kind, text: String) -> Result<u64> {
        Ok(self.push(Role::Text(kind), text))
    }

    fn window(&self) -> Result<Vec<Entry>> {
        Ok(self.entries.clone())
    }

    fn utilization(&self) -> usize {
        self.entries.iter().map(|entry| tokens(&entry.text)).sum()
    }

    fn propose(&mut self, proposal: &Proposal) -> Result<Outcome> {
        match proposal {
            Proposal::Evict { ids, .. } => {
                self.entries.retain(|entry| !ids.contains(&entry.id));
                Ok(Outcome::Deleted)
            }
            Proposal::Summarize { ids, text, .. } => {
                self.entries.retain(|entry| !ids.contains(&entry.id));
                self.push(Role::Summary, text.clone());
                Ok(Outcome::Summarized)
            }
        }
    }

    fn lookup(&mut self, _pointer: u64) -> Result<Option<String>> {
        Ok(None)
    }
}

// ==== The keepspan memory ========================================================================

/// The agent's state: one annotated lane for each kind of text. This is all that a developer writes.
#[derive(ContextState)]
struct Migration {
    #[instruction(roles("user"))]
    task: Spans,
    #[precondition(tools("describe_table"))]
    schema: Spans,
    #[scope_qualifier]
    target: Spans,
    #[negative_result(on_error)]
    failed: Spans,
    #[evictable(otherwise)]
    work: Spans,
    #[derived]
    recap: Spans,
}

/// The memory of an agent on keepspan.
struct Kept {
    window: Window<Migration, Arc<dyn Store>>,
    lanes: BTreeMap<u64, (SpanId, &'static str)>,
}

impl Kept {
    fn note(&mut self, span: SpanId, lane: &'static str) -> u64 {
        self.lanes.insert(span.number(), (span, lane));
        span.number()
    }

    /// The spans a proposal names, and the one lane they are in.
    fn named(&self, ids: &[u64]) -> Result<(Vec<SpanId>, &'static str)> {
        let found: Vec<_> = ids.iter().filter_map(|id| self.lanes.get(id).copied()).collect();
        let Some(&(_, lane)) = found.iter().find(|(_, lane)| *lane != "work").or(found.first()) else {
            bail!("the proposal names no span of the window");
        };
        Ok((found.into_iter().map(|(span, _)| span).collect(), lane))
    }

    fn evict(&mut self, spans: Vec<SpanId>, lane: &str) -> Result<Outcome> {
        let lanes = self.window.lanes().externalize().wait()?;
        let evicted = match lane {
            "schema" => lanes.schema.evict(spans).wait(),
            "target" => lanes.target.evict(spans).wait(),
            "failed" => lanes.failed.evict(spans).wait(),
            "recap" => lanes.recap.evict(spans).wait(),
            "work" => lanes.work.evict(spans).wait(),
            // `lanes.task.evict(..)` does not compile.
            _ => {
                return Ok(unwritable(
                    "never leaves",
                    "`task` holds `Instruction` spans, which never leave the window",
                ));
            }
        };
        Ok(match evicted {
            Ok(_) => Outcome::Pointed,
            Err(error) => Outcome::Refused { rule: "refused at run time".to_owned(), why: error.to_string() },
        })
    }

    fn summarize(&mut self, spans: Vec<SpanId>, lane: &str, text: &str) -> Result<Outcome> {
        match lane {
            "work" => {}
            // `lanes.recap.summarize(..)` does not compile.
            "recap" => {
                return Ok(unwritable(
                    "R4",
                    "`recap` holds summaries, and a summary is not summarized again: re-ground instead",
                ));
            }
            // Neither does it for a protected lane.
            _ => {
                let why = format!("`{lane}` is kept word for word: a summary cannot stand in for its spans");
                return Ok(unwritable("R3", &why));
            }
        }
        let lanes = self.window.lanes().externalize().wait()?;
        let summary = SummaryText::try_from(ModelAnswer::new(Finish::Stop, text))?;
        match lanes.work.summarize(spans, summary, &lanes.recap).wait() {
            Ok(span) => {
                self.note(span, "recap");
                Ok(Outcome::Summarized)
            }
            Err(error) => Ok(Outcome::Refused { rule: "refused at run time".to_owned(), why: error.to_string() }),
        }
    }
}

/// What a host answers to a proposal for which no call can be written.
fn unwritable(rule: &str, why: &str) -> Outcome {
    Outcome::Refused { rule: format!("{rule}, by the compiler"), why: why.to_owned() }
}

/// The lane of a kind.
fn lane_of(kind: Kind) -> &'static str {
    match kind {
        Kind::Instruction => "task",
        Kind::Schema => "schema",
        Kind::Scope => "target",
        Kind::Failure => "failed",
        Kind::Work => "work",
    }
}

/// The kind of a lane.
fn kind_of(lane: &str) -> Kind {
    match lane {
        "task" => Kind::Instruction,
        "schema" => Kind::Schema,
        "target" => Kind::Scope,
        "failed" => Kind::Failure,
        _ => Kind::Work,
    }
}

impl Memory for Kept {
    fn remember(&mut self, kind: Kind, text: String) -> Result<u64> {
        let lanes = self.window.lanes();
        let span = match kind {
            Kind::Instruction => lanes.task.push(NewSpan::human(text)),
            Kind::Schema => lanes.schema.push(NewSpan::tool("describe_table", text)),
            Kind::Scope => lanes.target.push(NewSpan::human(text)),
            Kind::Failure => lanes.failed.push(NewSpan::notice(text)),
            Kind::Work => lanes.work.push(NewSpan::tool("shell", text)),
        }?;
        Ok(self.note(span, lane_of(kind)))
    }

    fn window(&self) -> Result<Vec<Entry>> {
        let entry = |message: Message| {
            let kind = kind_of(message.lane());
            let (span, role) = match message.shown() {
                Shown::Summary(span) => (span, Role::Summary),
                Shown::Pointer(first, _) => (first, Role::Pointer),
                Shown::Span(span) | Shown::Discarded(span) => (span, Role::Text(kind)),
                other => bail!("a window that shows {other:?} is newer than this program"),
            };
            let text = message.content().as_text().unwrap_or_default().to_owned();
            Ok(Entry { id: span.number(), role, text })
        };
        self.window.render().into_iter().map(entry).collect()
    }

    fn utilization(&self) -> usize {
        usize::try_from(self.window.utilization()).unwrap_or(usize::MAX)
    }

    fn propose(&mut self, proposal: &Proposal) -> Result<Outcome> {
        match proposal {
            Proposal::Evict { ids, .. } => {
                let (spans, lane) = self.named(ids)?;
                self.evict(spans, lane)
            }
            Proposal::Summarize { ids, text, .. } => {
                let (spans, lane) = self.named(ids)?;
                self.summarize(spans, lane, text)
            }
        }
    }

    fn lookup(&mut self, pointer: u64) -> Result<Option<String>> {
        let Some(&(span, _)) = self.lanes.get(&pointer) else { return Ok(None) };
        let recalled = self.window.recall(span).wait()?;
        Ok(recalled.content().as_text().map(str::to_owned))
    }

    fn missing(&mut self, needs: &[Kind]) -> Result<Vec<u64>> {
        let lanes = self.window.lanes();
        let evicted = |kind: &Kind| match kind {
            Kind::Schema => lanes.schema.evicted(),
            Kind::Scope => lanes.target.evicted(),
            Kind::Failure => lanes.failed.evicted(),
            Kind::Instruction | Kind::Work => Vec::new(),
        };
        Ok(needs.iter().flat_map(evicted).map(SpanId::number).collect())
    }
}

/// Opens the keepspan memory, its store in `dir` where it is a file.
fn open_kept(dir: &Path, place: &Place, budget: usize) -> Result<Box<dyn Memory>> {
    let store = place.open(&dir.join("episode.db"))?;
    let episode = Episode::new("migration", "scripted-pruner-1").budget(u64::try_from(budget)?);
    Ok(Box::new(Kept { window: Window::open(store, episode)?, lanes: BTreeMap::new() }))
}

/// The program that does what the plain memory did, and what the compiler says to it.
const REJECTED: (&str, &str) = (
    include_str!("../ui-tests/cases/r1/evict_precondition.rs"),
    include_str!("../ui-tests/cases/r1/evict_precondition.stderr"),
);

// -------------------------------------------------------------------------------------------------
// The pruner: scripted, and always of the opinion that it knows what is redundant
// -------------------------------------------------------------------------------------------------

/// The proposals of the pruner, in the order it thinks of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Idea {
    FirstSummary,
    EvictSchema,
    RestateFailure,
    EvictFailure,
    EvictScope,
    SummarizeSummary,
    EvictWork,
}

impl Idea {
    const ALL: [Idea; 7] = [
        Idea::FirstSummary,
        Idea::EvictSchema,
        Idea::RestateFailure,
        Idea::EvictFailure,
        Idea::EvictScope,
        Idea::SummarizeSummary,
        Idea::EvictWork,
    ];

    fn title(self) -> &'static str {
        match self {
            Idea::FirstSummary => "summarize old work",
            Idea::EvictSchema => "evict the schema dump",
            Idea::RestateFailure => "summarize the failure note",
            Idea::EvictFailure => "evict the failure note",
            Idea::EvictScope => "evict the scope note",
            Idea::SummarizeSummary => "summarize the summary",
            Idea::EvictWork => "evict old work",
        }
    }
}

/// Remembers only what it was refused.
#[derive(Default)]
struct Pruner {
    refused_now: Vec<Idea>,
    refusals: BTreeMap<Idea, usize>,
}

impl Pruner {
    fn begin_pass(&mut self) {
        self.refused_now.clear();
    }

    fn heard(&mut self, idea: Idea, outcome: &Outcome) {
        if let Outcome::Refused { .. } = outcome {
            self.refused_now.push(idea);
            let count = self.refusals.entry(idea).or_default();
            *count = count.saturating_add(1);
        }
    }

    /// The next proposal for this window.
    fn next(&self, window: &[Entry]) -> Option<(Idea, Proposal)> {
        Idea::ALL.into_iter().filter(|idea| self.would_try(*idea)).find_map(|idea| Some((idea, idea.proposal(window)?)))
    }

    /// A refused summary is tried once more under later pressure, then dropped; the rest is tried in
    /// each pass.
    fn would_try(&self, idea: Idea) -> bool {
        let refusals = self.refusals.get(&idea).copied().unwrap_or_default();
        let restates = matches!(idea, Idea::RestateFailure | Idea::SummarizeSummary);
        !(self.refused_now.contains(&idea) || (restates && refusals >= 2))
    }
}

impl Idea {
    fn proposal(self, window: &[Entry]) -> Option<Proposal> {
        let of = |role: Role| ids_of(window, role);
        let summaries = of(Role::Summary);
        let summarized = !summaries.is_empty();
        let evict = |ids: Vec<u64>, reason| (summarized && !ids.is_empty()).then_some(Proposal::Evict { ids, reason });
        let work = older_half(&of(Role::Text(Kind::Work)));
        match self {
            Idea::FirstSummary => (!summarized && !work.is_empty()).then(|| Proposal::Summarize {
                ids: work,
                text: recap(window),
                reason: "old tool output",
            }),
            Idea::EvictSchema => evict(of(Role::Text(Kind::Schema)), "redundant, already summarized"),
            Idea::RestateFailure => {
                let ids = of(Role::Text(Kind::Failure));
                (!ids.is_empty()).then(|| Proposal::Summarize {
                    ids,
                    text: "One-statement backfill explored.".to_owned(),
                    reason: "one line is enough",
                })
            }
            Idea::EvictFailure => evict(of(Role::Text(Kind::Failure)), "an attempt that led nowhere"),
            Idea::EvictScope => evict(of(Role::Text(Kind::Scope)), "the recap says it already"),
            Idea::SummarizeSummary => (summarized && !work.is_empty()).then(|| Proposal::Summarize {
                text: recap_of_recaps(window),
                ids: summaries.into_iter().chain(work).collect(),
                reason: "the recap can be shorter",
            }),
            Idea::EvictWork => (!work.is_empty()).then_some(Proposal::Evict { ids: work, reason: "superseded" }),
        }
    }
}

fn ids_of(window: &[Entry], role: Role) -> Vec<u64> {
    window.iter().filter(|entry| entry.role == role).map(|entry| entry.id).collect()
}

fn older_half(ids: &[u64]) -> Vec<u64> {
    ids.iter().take(ids.len().div_ceil(2)).copied().collect()
}

/// The first summary: each sentence is true, and none says what the constraints are.
fn recap(window: &[Entry]) -> String {
    let has = |kind| !ids_of(window, Role::Text(kind)).is_empty();
    let mut text = String::from("Old code and query plans read.");
    match (has(Kind::Schema), has(Kind::Scope)) {
        (true, true) => text.push_str(" Schema constraints verified against production, not staging."),
        (true, false) => text.push_str(" Schema constraints verified."),
        _ => {}
    }
    if has(Kind::Failure) {
        text.push_str(" One-statement backfill tried, failed because closed rows refuse UPDATE.");
    }
    text
}

/// The summary of summaries: cuts each sentence at its first qualifier, unaware of what that drops.
fn recap_of_recaps(window: &[Entry]) -> String {
    let mut sentences: Vec<String> = Vec::new();
    for entry in window.iter().filter(|entry| entry.role == Role::Summary) {
        for sentence in entry.text.split('.').map(str::trim).filter(|sentence| !sentence.is_empty()) {
            let cut = [" against ", " because ", ","].iter().filter_map(|mark| sentence.find(mark)).min();
            let short = cut.and_then(|at| sentence.get(..at)).unwrap_or(sentence).to_owned();
            if !sentences.contains(&short) {
                sentences.push(short);
            }
        }
    }
    let mut text = sentences.join(". ");
    text.push('.');
    text
}

// -------------------------------------------------------------------------------------------------
// The session: feeds the window, starts the pruner, keeps the log
// -------------------------------------------------------------------------------------------------

/// One proposal and what became of it.
struct Event {
    idea: Idea,
    ids: Vec<u64>,
    reason: &'static str,
    outcome: Outcome,
}

/// One thing the model needed to know for a step, and where it got it.
struct Decision {
    fact: &'static str,
    used: String,
    source: String,
}

struct Session {
    memory: Box<dyn Memory>,
    /// `None` for the control run, which never prunes.
    budget: Option<usize>,
    pruner: Pruner,
    passes: usize,
    read: usize,
    samples: Vec<usize>,
    events: Vec<Event>,
    decisions: Vec<Decision>,
    /// Which look-ups brought something back.
    recalled: Vec<u64>,
}

impl Session {
    fn new(memory: Box<dyn Memory>, budget: Option<usize>) -> Self {
        Session {
            memory,
            budget,
            pruner: Pruner::default(),
            passes: 0,
            read: 0,
            samples: Vec::new(),
            events: Vec::new(),
            decisions: Vec::new(),
            recalled: Vec::new(),
        }
    }

    /// Puts a text into the window; makes room before, so that the model sees what it just read.
    fn observe(&mut self, kind: Kind, text: String) -> Result<()> {
        let cost = tokens(&text);
        self.read = self.read.saturating_add(cost);
        if let Some(budget) = self.budget
            && self.memory.utilization().saturating_add(cost) > percent(budget, 90)
        {
            self.samples.push(self.memory.utilization());
            self.prune(percent(budget, 60))?;
        }
        self.memory.remember(kind, text)?;
        self.samples.push(self.memory.utilization());
        Ok(())
    }

    fn prune(&mut self, target: usize) -> Result<()> {
        self.passes = self.passes.saturating_add(1);
        self.pruner.begin_pass();
        for _ in 0..PROPOSALS_PER_PASS {
            if self.memory.utilization() <= target {
                break;
            }
            let Some((idea, proposal)) = self.pruner.next(&self.memory.window()?) else {
                break;
            };
            let outcome = self.memory.propose(&proposal)?;
            self.pruner.heard(idea, &outcome);
            let (Proposal::Evict { ids, reason } | Proposal::Summarize { ids, reason, .. }) = proposal;
            self.events.push(Event { idea, ids, reason, outcome });
        }
        self.samples.push(self.memory.utilization());
        Ok(())
    }

    /// Looks for a fact: in the texts of the window, then behind pointers of the right kind, and only
    /// then in a summary, the weakest evidence there is.
    fn find<T>(&mut self, kind: Kind, parse: impl Fn(&str) -> Option<T>) -> Result<Option<(T, String)>> {
        let window = self.memory.window()?;
        for entry in window.iter().filter(|entry| matches!(entry.role, Role::Text(_))) {
            if let Some(value) = parse(&entry.text) {
                let how = if self.recalled.contains(&entry.id) { "recalled" } else { "in the window" };
                return Ok(Some((value, format!("s{} {how}", entry.id))));
            }
        }
        for id in self.memory.missing(&[kind])? {
            if let Some(value) = self.recall(id)?.as_deref().and_then(&parse) {
                return Ok(Some((value, format!("s{id} recalled"))));
            }
        }
        let summaries = window.iter().filter(|entry| entry.role == Role::Summary);
        Ok(summaries.into_iter().find_map(|entry| Some((parse(&entry.text)?, format!("s{}, a summary", entry.id)))))
    }

    fn recall(&mut self, id: u64) -> Result<Option<String>> {
        let text = self.memory.lookup(id)?;
        if text.is_some() && !self.recalled.contains(&id) {
            self.recalled.push(id);
        }
        Ok(text)
    }

    /// Recalls what the memory says a destructive step depends on.
    fn before_step(&mut self, needs: &[Kind]) -> Result<()> {
        for id in self.memory.missing(needs)? {
            self.recall(id)?;
        }
        Ok(())
    }

    fn decided(&mut self, fact: &'static str, used: impl Into<String>, source: impl Into<String>) {
        self.decisions.push(Decision { fact, used: used.into(), source: source.into() });
    }
}

/// Ends a pass in which nothing gets smaller.
const PROPOSALS_PER_PASS: usize = 24;

fn percent(of: usize, percent: usize) -> usize {
    of.saturating_mul(percent) / 100
}

// -------------------------------------------------------------------------------------------------
// The data: what goes in, and what must come out
// -------------------------------------------------------------------------------------------------

const ACCOUNTS: usize = 30;
const ROWS: usize = 180;
const CURRENCIES: [&str; 3] = ["EUR", "USD", "GBP"];

const SCHEMA: &str = "\
CREATE TABLE {db}.account (
  account_no TEXT PRIMARY KEY CHECK (length(account_no) = 5), -- leading zeros count
  holder TEXT NOT NULL,
  currency TEXT NOT NULL
);
CREATE TABLE {db}.ledger (
  id INTEGER PRIMARY KEY,
  account_no TEXT NOT NULL REFERENCES account (account_no), -- leading zeros count
  amount BIGINT NOT NULL CHECK (typeof(amount) = 'integer'), -- minor units: 1999 is 19.99
  booked_at TEXT NOT NULL, -- UTC
  closed INTEGER NOT NULL DEFAULT 0 -- 1: final
);
CREATE INDEX {db}.ledger_by_account ON ledger (account_no, booked_at);
CREATE TRIGGER {db}.ledger_closed BEFORE UPDATE ON ledger WHEN OLD.closed = 1
BEGIN SELECT RAISE(ABORT, 'closed row: rows are never updated, only copied'); END;
CREATE TABLE {db}.env (name TEXT NOT NULL);";

/// Small and good enough for sample data (splitmix64).
struct Rng(u64);

impl Rng {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (mixed ^ (mixed >> 31)).checked_rem(limit).unwrap_or_default()
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let at = self.below(u64::try_from(from.len()).unwrap_or(1));
        usize::try_from(at).ok().and_then(|at| from.get(at)).copied().unwrap_or_default()
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct LedgerRow {
    id: i64,
    account_no: String,
    cents: i64,
    currency: String,
}

/// What a correct migration of production ends with.
struct Truth {
    account_nos: Vec<String>,
    ledger: Vec<LedgerRow>,
    staging: String,
}

/// Creates both database files and fills them; returns what must be true at the end.
fn create_databases(dir: &Path, seed: u64) -> Result<(Connection, Truth)> {
    fs::create_dir_all(dir)?;
    let db = Connection::open(dir.join("prod.db"))?;
    let staging = dir.join("staging.db");
    db.execute("ATTACH ?1 AS staging", params![staging.to_string_lossy()])?;
    let mut rng = Rng(seed);
    let (account_nos, ledger) = fill(&db, "main", "production", &mut rng)?;
    fill(&db, "staging", "staging", &mut rng)?;
    // A rebuild drops the old table; SQLite asks for this to be off meanwhile.
    db.execute_batch("PRAGMA foreign_keys = OFF")?;
    let staging = dump(&db, "staging")?;
    Ok((db, Truth { account_nos, ledger, staging }))
}

fn fill(db: &Connection, name: &str, env: &str, rng: &mut Rng) -> Result<(Vec<String>, Vec<LedgerRow>)> {
    db.execute_batch(&SCHEMA.replace("{db}", name))?;
    db.execute(&format!("INSERT INTO {name}.env VALUES (?1)"), params![env])?;
    let tx = db.unchecked_transaction()?;
    let mut accounts: Vec<(String, &str)> = Vec::new();
    for (at, currency) in (0..ACCOUNTS).zip(CURRENCIES.into_iter().cycle()) {
        let account_no = match at {
            0 => "00417".to_owned(),
            _ => format!("{:02}{:03}", at, rng.below(1_000)),
        };
        let holder =
            format!("{} {}", rng.pick(&["Ada", "Grace", "Edgar", "Barbara"]), rng.pick(&["Lin", "Roy", "Sato"]));
        tx.execute(&format!("INSERT INTO {name}.account VALUES (?1, ?2, ?3)"), params![account_no, holder, currency])?;
        accounts.push((account_no, currency));
    }
    let mut ledger = Vec::new();
    for (id, (account_no, currency)) in (1_i64..).zip(accounts.iter().cycle().take(ROWS)) {
        let cents = i64::try_from(rng.below(90_000))?.saturating_add(199);
        let booked_at =
            format!("2026-{:02}-{:02}T00:30:00Z", rng.below(12).saturating_add(1), rng.below(28).saturating_add(1));
        // Even rows are closed, so some closed rows are not in euros.
        let closed = i64::from(id.checked_rem(2) == Some(0));
        tx.execute(
            &format!("INSERT INTO {name}.ledger VALUES (?1, ?2, ?3, ?4, ?5)"),
            params![id, account_no, cents, booked_at, closed],
        )?;
        ledger.push(LedgerRow { id, account_no: account_no.clone(), cents, currency: (*currency).to_owned() });
    }
    tx.commit()?;
    Ok((accounts.into_iter().map(|(account_no, _)| account_no).collect(), ledger))
}

/// Everything in a database, schema and rows, as text.
fn dump(db: &Connection, name: &str) -> Result<String> {
    let mut text = describe(db, name, &["account", "ledger"])?;
    for table in ["account", "ledger"] {
        text.push_str(&query(db, &format!("SELECT * FROM {name}.{table} ORDER BY 1"))?);
    }
    Ok(text)
}

// -------------------------------------------------------------------------------------------------
// The tools
// -------------------------------------------------------------------------------------------------

/// Any query as lines of `a | b | c`, values as SQLite quotes them.
fn query(db: &Connection, sql: &str) -> Result<String> {
    let mut statement = db.prepare(sql)?;
    let columns = statement.column_count();
    let mut rows = statement.query([])?;
    let mut text = String::new();
    while let Some(row) = rows.next()? {
        let mut cells = Vec::new();
        for column in 0..columns {
            cells.push(match row.get_ref(column)? {
                rusqlite::types::ValueRef::Text(value) => {
                    format!("'{}'", String::from_utf8_lossy(value))
                }
                rusqlite::types::ValueRef::Integer(value) => value.to_string(),
                other => format!("{other:?}"),
            });
        }
        writeln!(text, "{}", cells.join(" | "))?;
    }
    Ok(text)
}

/// `describe_table`: the statements SQLite keeps for a table.
fn describe(db: &Connection, name: &str, tables: &[&str]) -> Result<String> {
    let mut text = String::new();
    for table in tables {
        writeln!(text, "describe_table {name}.{table}")?;
        let mut statement =
            db.prepare(&format!("SELECT sql FROM {name}.sqlite_master WHERE tbl_name = ?1 AND type = 'table'"))?;
        for sql in statement.query_map(params![table], |row| row.get::<_, String>(0))? {
            writeln!(text, "{}", sql?)?;
        }
    }
    Ok(text)
}

/// Which databases are attached and what they say they are.
fn attached(db: &Connection) -> Result<Vec<(String, String)>> {
    let mut statement = db.prepare("SELECT name FROM pragma_database_list WHERE name <> 'temp'")?;
    let names = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    names
        .into_iter()
        .map(|name| {
            let env = db.query_row(&format!("SELECT name FROM {name}.env"), [], |row| row.get::<_, String>(0))?;
            Ok((name, env))
        })
        .collect()
}

/// The tests of the project: each query counts violations (180 is [`ROWS`]).
const TESTS: [(&str, &str); 4] = [
    (
        "keys_agree",
        "SELECT count(*) FROM \
         (SELECT account_no FROM main.ledger EXCEPT SELECT account_no FROM main.account)",
    ),
    ("no_row_lost", "SELECT 180 - count(*) FROM main.ledger"),
    ("currency_set", "SELECT count(*) FROM main.ledger WHERE currency IS NULL"),
    ("cents_are_integers", "SELECT count(*) FROM main.ledger WHERE typeof(amount_cents) <> 'integer'"),
];

fn run_tests(db: &Connection) -> Result<String> {
    let mut text = String::from("running 4 tests\n");
    for (name, sql) in TESTS {
        match db.query_row(sql, [], |row| row.get::<_, i64>(0)) {
            Ok(0) => writeln!(text, "test {name} ... ok")?,
            Ok(rows) => writeln!(text, "test {name} ... FAILED: expected 0 rows, got {rows}\n  {sql}")?,
            Err(error) => writeln!(text, "test {name} ... FAILED: {error}")?,
        }
    }
    Ok(text)
}

/// A plausible source file of the project under migration.
fn source_file(rng: &mut Rng, version: usize) -> String {
    let verb = rng.pick(&["load", "export", "audit", "merge", "replay"]);
    let noun = rng.pick(&["statement", "booking", "holder", "report", "journal"]);
    let limit = rng.below(900).saturating_add(100);
    let mut text = format!("//! {verb} of a {noun}, batch size {limit}.\n");
    for step in 0..6_u8 {
        let action = rng.pick(&["filter", "group", "sort", "check", "emit"]);
        let on = rng.pick(&["page", "cursor", "batch", "window", "index"]);
        let _ = writeln!(text, "fn {verb}_{noun}_{step}(input: &{}) -> Result<(), Error> {{", noun.to_uppercase());
        let _ = writeln!(text, "    input.{action}_{on}({}, v{version})?.{action}()\n}}", rng.below(limit));
    }
    text
}

/// The lines that differ, one file against another.
fn diff(name: &str, old: &str, new: &str) -> String {
    let mut text = format!("--- a/{name}\n+++ b/{name}\n");
    for (before, after) in old.lines().zip(new.lines()).filter(|(before, after)| before != after) {
        let _ = writeln!(text, "-{before}\n+{after}");
    }
    text
}

const PLANS: [&str; 4] = [
    "SELECT holder, count(*) FROM main.account JOIN main.ledger USING (account_no) \
     GROUP BY account_no",
    "SELECT * FROM main.ledger WHERE booked_at > '2026-06-01' ORDER BY booked_at LIMIT {n}",
    "SELECT account_no, max(booked_at) FROM main.ledger GROUP BY account_no HAVING count(*) > {n}",
    "SELECT holder FROM main.account WHERE account_no IN \
     (SELECT account_no FROM main.ledger WHERE id < {n})",
];

/// A column of a rebuilt table: name, declaration, and the expression that fills it.
struct Column {
    name: &'static str,
    declared: String,
    filled_by: String,
}

fn column(name: &'static str, declared: impl Into<String>, filled_by: impl Into<String>) -> Column {
    Column { name, declared: declared.into(), filled_by: filled_by.into() }
}

/// Rebuilds a table the way SQLite documents it: new table, copy, drop, rename, triggers again.
fn rebuild(db: &Connection, name: &str, table: &str, columns: &[Column]) -> Result<()> {
    let declared: Vec<String> = columns.iter().map(|column| format!("  {} {}", column.name, column.declared)).collect();
    let filled: Vec<&str> = columns.iter().map(|column| column.filled_by.as_str()).collect();
    let tx = db.unchecked_transaction()?;
    let mut statement =
        tx.prepare(&format!("SELECT sql FROM {name}.sqlite_master WHERE tbl_name = ?1 AND type = 'trigger'"))?;
    let triggers =
        statement.query_map(params![table], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    drop(statement);
    tx.execute_batch(&format!(
        "CREATE TABLE {name}.{table}_new (\n{}\n);
         INSERT INTO {name}.{table}_new SELECT {} FROM {name}.{table};
         DROP TABLE {name}.{table};
         ALTER TABLE {name}.{table}_new RENAME TO {table};",
        declared.join(",\n"),
        filled.join(", "),
    ))?;
    for trigger in triggers {
        tx.execute_batch(&trigger.replacen("CREATE TRIGGER ", &format!("CREATE TRIGGER {name}."), 1))?;
    }
    tx.commit()?;
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// The agent: one piece of code for all runs; it knows only what its window tells it
// -------------------------------------------------------------------------------------------------

const TASK: &str = "\
Task: move the shop's database to layout v2, in three steps.
 1. account: rebuild the table, key account_no.
 2. ledger: add the column currency, from the row's account.
 3. ledger: replace amount by amount_cents.
Every number and every sum must mean the same afterwards. Touch only the database that was verified.
Read what you need, then plan, then migrate. Run the tests after each step.";

const ONE_STATEMENT: &str = "UPDATE {db}.ledger SET currency = a.currency FROM {db}.account AS a \
                             WHERE a.account_no = ledger.account_no";

/// Where a guess comes from when not even a summary speaks of the matter.
const GUESS: &str = "its own guess";

struct Agent<'a> {
    label: &'static str,
    db: &'a Connection,
    files: PathBuf,
    rng: Rng,
    session: Session,
    /// The tokens of tool output in one round of work.
    round: usize,
}

impl Agent<'_> {
    fn run(&mut self) -> Result<()> {
        self.session.observe(Kind::Instruction, TASK.to_owned())?;
        self.read_preconditions()?;
        self.try_one_statement()?;
        self.work("1/4 read the code", 4)?;
        self.step_account()?;
        self.work("2/4 account rebuilt", 3)?;
        self.step_currency()?;
        self.work("3/4 currency filled", 3)?;
        self.step_cents()?;
        self.work("4/4 cents stored", 2)?;
        self.session.observe(Kind::Work, run_tests(self.db)?)
    }

    fn read_preconditions(&mut self) -> Result<()> {
        for table in ["account", "ledger"] {
            self.session.observe(Kind::Schema, describe(self.db, "main", &[table])?)?;
        }
        let mut scope = String::from("scope of the schema reads: verified against ");
        let databases = attached(self.db)?;
        let (read, rest): (Vec<_>, Vec<_>) = databases.iter().partition(|(name, _)| name == "main");
        let join = |list: &[&(String, String)]| list.iter().map(|(_, env)| env.as_str()).collect::<Vec<_>>().join(" ");
        writeln!(scope, "{}, not {}", join(&read), join(&rest))?;
        for (name, env) in &databases {
            writeln!(scope, "  {name}: env = {env}")?;
        }
        self.session.observe(Kind::Scope, scope)?;
        let rows = query(self.db, "SELECT * FROM main.ledger LIMIT 5")?;
        self.session.observe(Kind::Work, format!("first rows of main.ledger\n{rows}"))
    }

    /// Really tried, really refused by the database, and rolled back.
    fn try_one_statement(&mut self) -> Result<()> {
        let tx = self.db.unchecked_transaction()?;
        tx.execute_batch("ALTER TABLE main.ledger ADD COLUMN currency TEXT NOT NULL DEFAULT 'EUR'")?;
        let sql = ONE_STATEMENT.replace("{db}", "main");
        let Err(error) = tx.execute_batch(&sql) else { bail!("the one-statement backfill was expected to fail") };
        tx.rollback()?;
        self.session.observe(Kind::Failure, failure_text(&sql, &error))
    }

    /// A round of real tool output, many windows long in all.
    fn work(&mut self, what: &str, rounds: usize) -> Result<()> {
        let until = self.session.read.saturating_add(self.round.saturating_mul(rounds));
        while self.session.read < until {
            let text = match self.rng.below(8) {
                0..=2 => self.read_a_file()?,
                3..=4 => self.edit_a_file()?,
                5..=6 => self.explain_a_query()?,
                _ => run_tests(self.db)?,
            };
            self.session.observe(Kind::Work, text)?;
        }
        eprintln!(
            "[{:7}] {what:22} read {:>7} tokens, window {:>6}, {:>3} prune passes",
            self.label,
            grouped(self.session.read),
            grouped(self.session.memory.utilization()),
            self.session.passes,
        );
        Ok(())
    }

    fn read_a_file(&mut self) -> Result<String> {
        let path = self.files.join(format!("module_{}.rs", self.rng.below(40)));
        if !path.exists() {
            fs::write(&path, source_file(&mut self.rng, 1))?;
        }
        Ok(format!("read_file {}\n{}", file_name(&path), fs::read_to_string(&path)?))
    }

    fn edit_a_file(&mut self) -> Result<String> {
        let path = self.files.join(format!("module_{}.rs", self.rng.below(40)));
        let old = fs::read_to_string(&path).unwrap_or_default();
        let new = if old.is_empty() {
            source_file(&mut self.rng, 1)
        } else {
            old.replace("v1", "v2").replace("page", "slice")
        };
        fs::write(&path, &new)?;
        Ok(format!("edit_file\n{}", diff(&file_name(&path), &old, &new)))
    }

    fn explain_a_query(&mut self) -> Result<String> {
        let sql = self.rng.pick(&PLANS).replace("{n}", &self.rng.below(100).to_string());
        let plan = query(self.db, &format!("EXPLAIN QUERY PLAN {sql}"))?;
        let rows = query(self.db, &format!("SELECT count(*) FROM ({sql})"))?;
        Ok(format!("explain {sql}\n{plan}rows: {rows}"))
    }

    // ---- the steps ----

    fn step_account(&mut self) -> Result<()> {
        self.session.before_step(&[Kind::Schema, Kind::Scope])?;
        let key = self.declared("account", "account_no", "step 1: type of account_no", "INTEGER PRIMARY KEY")?;
        for name in self.targets("step 1: databases")? {
            rebuild(
                self.db,
                &name,
                "account",
                &[
                    column("account_no", &key, "account_no"),
                    column("holder", "TEXT NOT NULL", "holder"),
                    column("currency", "TEXT NOT NULL", "currency"),
                ],
            )?;
        }
        let report = run_tests(self.db)?;
        let failed = report.contains("keys_agree ... FAILED");
        self.session.observe(Kind::Work, report)?;
        if failed { self.repair_keys() } else { Ok(()) }
    }

    /// The test says that the keys differ, so the model reads the schema again: its own edit by now.
    fn repair_keys(&mut self) -> Result<()> {
        let now = describe(self.db, "main", &["account", "ledger"])?;
        self.session.observe(Kind::Schema, now)?;
        let found = self.session.find(Kind::Schema, |text| parse_column(text, "account", "account_no"))?;
        let Some((key, source)) = found else { bail!("the schema just read is not in the window") };
        let key = key.split_whitespace().next().unwrap_or("INTEGER").to_owned();
        self.session.decided("step 1: repair, type", key.clone(), format!("{source}: re-read, its own edit"));
        for name in self.targets("step 1: repair, databases")? {
            rebuild(self.db, &name, "ledger", &ledger_columns(&format!("{key} NOT NULL"), None, false))?;
        }
        let report = run_tests(self.db)?;
        self.session.observe(Kind::Work, report)
    }

    fn step_currency(&mut self) -> Result<()> {
        self.session.before_step(&[Kind::Schema, Kind::Scope, Kind::Failure])?;
        match self.session.find(Kind::Failure, parse_failure)? {
            Some((why, source)) => {
                self.session.decided("step 2: why UPDATE failed", why, source);
                let key = self.declared("ledger", "account_no", "step 2: type of account_no", "INTEGER NOT NULL")?;
                for name in self.targets("step 2: databases")? {
                    let from_account =
                        format!("(SELECT a.currency FROM {name}.account AS a WHERE a.account_no = ledger.account_no)");
                    rebuild(self.db, &name, "ledger", &ledger_columns(&key, Some(&from_account), false))?;
                }
            }
            None => {
                self.session.decided(
                    "step 2: why UPDATE failed",
                    "nothing known: tries UPDATE again",
                    "nothing in the window",
                );
                for name in self.targets("step 2: databases")? {
                    self.update_in_place(&name)?;
                }
            }
        }
        let report = run_tests(self.db)?;
        self.session.observe(Kind::Work, report)
    }

    /// Retries what had failed before; then leaves out the rows that refuse: there is a default.
    fn update_in_place(&mut self, name: &str) -> Result<()> {
        self.db.execute_batch(&format!("ALTER TABLE {name}.ledger ADD COLUMN currency TEXT NOT NULL DEFAULT 'EUR'"))?;
        let sql = ONE_STATEMENT.replace("{db}", name);
        if let Err(error) = self.db.execute_batch(&sql) {
            self.session.observe(Kind::Failure, failure_text(&sql, &error))?;
            self.db.execute_batch(&format!("{sql} AND closed = 0"))?;
            self.session.decided("step 2: rows that refuse", "left at the column's default, EUR", GUESS);
        }
        Ok(())
    }

    fn step_cents(&mut self) -> Result<()> {
        self.session.before_step(&[Kind::Schema, Kind::Scope])?;
        let key = self.declared("ledger", "account_no", "step 3: type of account_no", "INTEGER NOT NULL")?;
        // Without the comment of the schema, a column named `amount` reads as whole currency units.
        let unit = self.schema_fact(parse_minor_units)?;
        let minor = unit.is_some();
        let (used, source) = match unit {
            Some(unit) => unit,
            None => ("whole units, so * 100".to_owned(), self.grounds()?),
        };
        self.session.decided("step 3: unit of amount", used, source);
        for name in self.targets("step 3: databases")? {
            let mut columns = ledger_columns(&key, Some("currency"), true);
            for column in columns.iter_mut().filter(|column| column.name == "amount_cents" && !minor) {
                column.filled_by = "amount * 100".to_owned();
            }
            rebuild(self.db, &name, "ledger", &columns)?;
        }
        let report = run_tests(self.db)?;
        self.session.observe(Kind::Work, report)
    }

    // ---- what the model knows ----

    /// How a column was declared when it was read; if that is gone, what such a column usually is.
    fn declared(&mut self, table: &str, name: &str, fact: &'static str, usual: &str) -> Result<String> {
        let found = self.schema_fact(|text| parse_column(text, table, name))?;
        let (declared, source) = match found {
            Some(found) => found,
            None => (usual.to_owned(), self.grounds()?),
        };
        self.session.decided(fact, declared.clone(), source);
        Ok(declared)
    }

    /// A fact of the schema as it was read. If it is gone and nothing claims that it was checked, the
    /// model reads the schema again; told "verified", it sees no need to.
    fn schema_fact<T>(&mut self, parse: impl Fn(&str) -> Option<T>) -> Result<Option<(T, String)>> {
        if let Some(found) = self.session.find(Kind::Schema, &parse)? {
            return Ok(Some(found));
        }
        if self.claim()?.is_none() {
            let now = describe(self.db, "main", &["account", "ledger"])?;
            self.session.observe(Kind::Schema, now)?;
        }
        self.session.find(Kind::Schema, &parse)
    }

    /// The summary that says the schema was verified, if the window has one.
    fn claim(&self) -> Result<Option<u64>> {
        let window = self.session.memory.window()?;
        let mut summaries = window.iter().filter(|entry| entry.role == Role::Summary);
        let claim = summaries.find(|entry| entry.text.contains("constraints verified"));
        Ok(claim.map(|entry| entry.id))
    }

    fn grounds(&self) -> Result<String> {
        let claim = self.claim()?;
        Ok(claim.map_or(GUESS.to_owned(), |id| format!("s{id}, a summary: \"verified\"")))
    }

    /// The verified database; if nothing says which one that was, every one that has the tables.
    fn targets(&mut self, fact: &'static str) -> Result<Vec<String>> {
        let databases = attached(self.db)?;
        let (targets, source) = match self.session.find(Kind::Scope, parse_scope)? {
            Some((verified, source)) => {
                let names = databases.into_iter().filter(|(_, env)| *env == verified);
                (names.map(|(name, _)| name).collect::<Vec<_>>(), source)
            }
            None => (databases.into_iter().map(|(name, _)| name).collect(), self.grounds()?),
        };
        self.session.decided(fact, targets.join(" + "), source);
        Ok(targets)
    }
}

/// The columns of `ledger`; `currency` and `cents` say how far the migration has come.
fn ledger_columns(key: &str, currency: Option<&str>, cents: bool) -> Vec<Column> {
    let mut columns = vec![column("id", "INTEGER PRIMARY KEY", "id"), column("account_no", key, "account_no")];
    columns.push(column(if cents { "amount_cents" } else { "amount" }, "BIGINT NOT NULL", "amount"));
    columns.push(column("booked_at", "TEXT NOT NULL", "booked_at"));
    columns.push(column("closed", "INTEGER NOT NULL DEFAULT 0", "closed"));
    columns.extend(currency.map(|from| column("currency", "TEXT NOT NULL", from)));
    columns
}

fn failure_text(sql: &str, error: &rusqlite::Error) -> String {
    format!("tried: {sql}\nfailed because: {error}\nrolled back\n")
}

fn file_name(path: &Path) -> String {
    path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default()
}

/// Finds the declaration of a column in the output of `describe_table`.
fn parse_column(text: &str, table: &str, name: &str) -> Option<String> {
    let (_, rest) = text.split_once(&format!("describe_table main.{table}\n"))?;
    let lines = rest.lines().take_while(|line| !line.starts_with("describe_table"));
    lines.map(str::trim).find_map(|line| {
        let declared = line.strip_prefix(name)?.strip_prefix(' ')?;
        let declared = declared.split("--").next().unwrap_or(declared);
        Some(declared.trim().trim_end_matches(',').to_owned())
    })
}

fn parse_minor_units(text: &str) -> Option<String> {
    let schema = text.strip_prefix("describe_table")?;
    let line = schema.lines().find(|line| line.trim_start().starts_with("amount ") && line.contains("minor units"))?;
    line.split_once("-- ").map(|(_, comment)| comment.to_owned())
}

/// A recap that still names the database serves as well as the note itself.
fn parse_scope(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("verified against ")?;
    rest.split_once(", not ").map(|(verified, _)| verified.to_owned())
}

/// A recap that still gives the reason serves as well as the error itself.
fn parse_failure(text: &str) -> Option<String> {
    let relevant = text.contains("tried: UPDATE main.ledger") || text.contains("backfill tried");
    let (_, why) = text.split_once("failed because")?;
    relevant.then(|| why.lines().next().unwrap_or(why).trim_start_matches([':', ' ']).to_owned())
}

// -------------------------------------------------------------------------------------------------
// The check: every final row against what was put in
// -------------------------------------------------------------------------------------------------

/// What is wrong in the final databases, counted.
struct Verdict {
    accounts_renamed: usize,
    rows_with_wrong_key: usize,
    rows_with_wrong_money: usize,
    rows_with_wrong_currency: usize,
    staging_changed: bool,
    tests_failed: usize,
    final_rows: Vec<LedgerRow>,
}

impl Verdict {
    fn is_right(&self) -> bool {
        !self.staging_changed
            && self.accounts_renamed == 0
            && self.rows_with_wrong_key == 0
            && self.rows_with_wrong_money == 0
            && self.rows_with_wrong_currency == 0
    }
}

fn check(db: &Connection, truth: &Truth) -> Result<Verdict> {
    let mut statement = db.prepare("SELECT CAST(account_no AS TEXT) FROM main.account")?;
    let account_nos = statement.query_map([], |row| row.get::<_, String>(0))?.collect::<Result<Vec<_>, _>>()?;
    let mut statement =
        db.prepare("SELECT id, CAST(account_no AS TEXT), amount_cents, currency FROM main.ledger ORDER BY id")?;
    let final_rows = statement
        .query_map([], |row| {
            Ok(LedgerRow { id: row.get(0)?, account_no: row.get(1)?, cents: row.get(2)?, currency: row.get(3)? })
        })?
        .collect::<Result<Vec<_>, _>>()?;
    if final_rows.len() != truth.ledger.len() {
        bail!("{} ledger rows went in, {} came out", truth.ledger.len(), final_rows.len());
    }
    let wrong = |differs: fn(&LedgerRow, &LedgerRow) -> bool| {
        truth.ledger.iter().zip(&final_rows).filter(|(want, have)| differs(want, have)).count()
    };
    Ok(Verdict {
        accounts_renamed: truth.account_nos.iter().filter(|number| !account_nos.contains(number)).count(),
        rows_with_wrong_key: wrong(|want, have| want.account_no != have.account_no),
        rows_with_wrong_money: wrong(|want, have| want.cents != have.cents),
        rows_with_wrong_currency: wrong(|want, have| want.currency != have.currency),
        tests_failed: run_tests(db)?.matches("FAILED").count(),
        staging_changed: dump(db, "staging")? != truth.staging,
        final_rows,
    })
}

/// A finished run.
struct Run {
    session: Session,
    verdict: Verdict,
    truth: Truth,
}

fn run_agent(label: &'static str, memory: Box<dyn Memory>, dir: &Path, args: &Args) -> Result<Run> {
    let (db, truth) = create_databases(dir, args.seed).context("cannot create the databases")?;
    let files = dir.join("src");
    fs::create_dir_all(&files)?;
    let budget = (label != "control").then_some(args.budget);
    let session = Session::new(memory, budget);
    let mut agent = Agent { label, db: &db, files, rng: Rng(args.seed.wrapping_add(1)), session, round: args.budget };
    agent.run().with_context(|| format!("the {label} run failed"))?;
    let verdict = check(&db, &truth)?;
    Ok(Run { session: agent.session, verdict, truth })
}

// -------------------------------------------------------------------------------------------------
// The report
// -------------------------------------------------------------------------------------------------

const WIDTH: usize = 100;

fn heading(title: &str) {
    println!("\n{title}\n{}", "─".repeat(WIDTH));
}

/// 12345 as `12,345`.
fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && digits.len().saturating_sub(at).checked_rem(3) == Some(0) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

fn clip(text: &str, width: usize) -> String {
    if text.chars().count() <= width {
        return text.to_owned();
    }
    text.chars().take(width.saturating_sub(1)).chain(['…']).collect()
}

/// Lines of one text, broken at spaces.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.chars().count().saturating_add(word.chars().count()) < width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// A table of one label column (28 wide) and one column a run.
fn row(label: &str, cells: &[String]) {
    let width = 71_usize.checked_div(cells.len()).unwrap_or(71).saturating_sub(2);
    let columns: Vec<Vec<String>> = cells.iter().map(|cell| wrap(cell, width)).collect();
    let height = columns.iter().map(Vec::len).max().unwrap_or(1).max(1);
    for line in 0..height {
        let mut text = format!("{:28}", if line == 0 { clip(label, 27) } else { String::new() });
        for column in &columns {
            let cell = column.get(line).map(String::as_str).unwrap_or_default();
            let _ = write!(text, " {:width$} ", clip(cell, width));
        }
        println!("{}", text.trim_end());
    }
}

fn names(runs: &[(&str, &Run)]) -> Vec<String> {
    runs.iter().map(|(name, _)| name.to_uppercase()).collect()
}

fn report_proposals(runs: &[(&str, &Run)]) {
    heading("What the pruner proposed, and what became of it");
    row("", &names(runs));
    for idea in Idea::ALL {
        let cells: Vec<String> = runs.iter().map(|(_, run)| outcome_of(idea, &run.session.events)).collect();
        let first = runs.iter().find_map(|(_, run)| run.session.events.iter().find(|event| event.idea == idea));
        let Some(first) = first else { continue };
        row(idea.title(), &cells);
        println!("  \"{}\"", first.reason);
    }
    for (name, run) in runs {
        let mut said: Vec<&str> = Vec::new();
        for event in &run.session.events {
            if let Outcome::Refused { rule, why } = &event.outcome
                && !said.contains(&rule.as_str())
            {
                said.push(rule);
                println!("\n{name} refused to {} ({}):", event.idea.title(), ids_text(&event.ids));
                wrap(why, WIDTH.saturating_sub(4)).iter().for_each(|line| println!("    {line}"));
            }
        }
        if !run.session.recalled.is_empty() {
            let ids: Vec<String> = run.session.recalled.iter().map(|id| format!("s{id}")).collect();
            println!("\n{name} recalled {} before acting on them.", ids.join(", "));
        }
    }
}

/// "deleted, 12 times" for one idea in one run.
fn outcome_of(idea: Idea, events: &[Event]) -> String {
    let mut counts: BTreeMap<String, (usize, String)> = BTreeMap::new();
    for event in events.iter().filter(|event| event.idea == idea) {
        let what = match &event.outcome {
            Outcome::Deleted => "deleted".to_owned(),
            Outcome::Pointed => "evicted to a pointer".to_owned(),
            Outcome::Summarized => "replaced by a summary".to_owned(),
            Outcome::Refused { rule, .. } => format!("REFUSED: {rule}"),
        };
        let entry = counts.entry(what).or_insert_with(|| (0, ids_text(&event.ids)));
        entry.0 = entry.0.saturating_add(1);
    }
    let texts: Vec<String> = counts
        .into_iter()
        .map(
            |(what, (count, ids))| {
                if count == 1 { format!("{what} ({ids})") } else { format!("{what}, {count} times") }
            },
        )
        .collect();
    if texts.is_empty() { "never came to it".to_owned() } else { texts.join("; ") }
}

fn ids_text(ids: &[u64]) -> String {
    let shown: Vec<String> = ids.iter().take(3).map(|id| format!("s{id}")).collect();
    let more = ids.len().saturating_sub(shown.len());
    if more == 0 { shown.join(" ") } else { format!("{} and {more} more", shown.join(" ")) }
}

fn report_decisions(runs: &[(&str, &Run)]) {
    heading("What the model knew when it acted");
    row("", &names(runs));
    let mut facts: Vec<&str> = Vec::new();
    for decision in runs.iter().flat_map(|(_, run)| &run.session.decisions) {
        if !facts.contains(&decision.fact) {
            facts.push(decision.fact);
        }
    }
    facts.sort_unstable();
    for fact in facts {
        let cell = |run: &Run| {
            let found = run.session.decisions.iter().find(|decision| decision.fact == fact);
            found.map_or("not needed".to_owned(), |decision| format!("{} [{}]", decision.used, decision.source))
        };
        row(fact, &runs.iter().map(|(_, run)| cell(run)).collect::<Vec<_>>());
    }
}

fn report_rows(runs: &[(&str, &Run)]) {
    heading("Final rows of prod.db: ledger (account_no, amount_cents, currency)");
    let Some((_, first)) = runs.first() else {
        return;
    };
    row("    MUST BE", &names(runs));
    let show = |row: &LedgerRow| format!("{} {:>8} {}", row.account_no, row.cents, row.currency);
    for want in first.truth.ledger.iter().take(5) {
        let cells: Vec<String> = runs
            .iter()
            .map(|(_, run)| match run.verdict.final_rows.iter().find(|have| have.id == want.id) {
                Some(have) if have == want => show(have),
                Some(have) => format!("{}  <- wrong", show(have)),
                None => "missing  <- wrong".to_owned(),
            })
            .collect();
        row(&format!("{:3} {}", want.id, show(want)), &cells);
    }
    println!();
    let count = |pick: fn(&Verdict) -> usize, of: usize| -> Vec<String> {
        runs.iter().map(|(_, run)| format!("{} of {of}", pick(&run.verdict))).collect()
    };
    row("account numbers lost", &count(|verdict| verdict.accounts_renamed, ACCOUNTS));
    row("rows with a wrong account", &count(|verdict| verdict.rows_with_wrong_key, ROWS));
    row("rows with wrong money", &count(|verdict| verdict.rows_with_wrong_money, ROWS));
    row("rows with a wrong currency", &count(|verdict| verdict.rows_with_wrong_currency, ROWS));
    let staging = |run: &Run| if run.verdict.staging_changed { "CHANGED" } else { "untouched" }.to_owned();
    row("staging.db", &runs.iter().map(|(_, run)| staging(run)).collect::<Vec<_>>());
    let tests = |run: &Run| format!("{} of {} fail", run.verdict.tests_failed, TESTS.len());
    row("the project's own tests", &runs.iter().map(|(_, run)| tests(run)).collect::<Vec<_>>());
    let result = |run: &Run| if run.verdict.is_right() { "RIGHT" } else { "WRONG" }.to_owned();
    row("the database is", &runs.iter().map(|(_, run)| result(run)).collect::<Vec<_>>());
}

/// The window over time, as bars; the budget is the dashed line.
fn chart(samples: &[usize], budget: usize) -> Vec<String> {
    const BARS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];
    const COLUMNS: usize = 38;
    let rows = 8_usize;
    let bucket = samples.len().div_ceil(COLUMNS).max(1);
    let peaks: Vec<usize> = samples.chunks(bucket).map(|part| part.iter().copied().max().unwrap_or_default()).collect();
    // Eighths of a row; the top row lies just above the budget.
    let eighths = |used: usize| used.saturating_mul(rows).saturating_mul(8).checked_div(budget).unwrap_or_default();
    let mut lines = Vec::new();
    for level in (0..=rows).rev() {
        let base = level.saturating_mul(8);
        let label = if level == rows { grouped(budget) } else { String::new() };
        let bars = peaks.iter().map(|peak| {
            let fill = eighths(*peak).saturating_sub(base).min(8);
            let empty = if level == rows { '╌' } else { ' ' };
            if fill == 0 { empty } else { BARS.get(fill).copied().unwrap_or('█') }
        });
        lines.push(format!("{label:>7} ┤{}", bars.collect::<String>()));
    }
    lines.push(format!("{:>7} └{}", 0, "─".repeat(peaks.len())));
    lines
}

fn report_charts(runs: &[(&str, &Run)], budget: usize) {
    heading("Tokens in the window over time (╌ is the budget; each column shows the fullest moment)");
    let charts: Vec<Vec<String>> = runs.iter().map(|(_, run)| chart(&run.session.samples, budget)).collect();
    let height = charts.iter().map(Vec::len).max().unwrap_or_default();
    let title = |(name, run): &(&str, &Run)| {
        let peak = run.session.samples.iter().copied().max().unwrap_or_default();
        format!(
            "{:50}",
            format!("        {}: peak {}, {} passes", name.to_uppercase(), grouped(peak), run.session.passes)
        )
    };
    println!("{}", runs.iter().map(title).collect::<String>().trim_end());
    for line in 0..height {
        let cells =
            charts.iter().map(|chart| format!("{:50}", chart.get(line).map(String::as_str).unwrap_or_default()));
        println!("{}", cells.collect::<String>().trim_end());
    }
}

fn report(runs: &[(&str, &Run)], control: &Run, args: &Args) {
    println!("\nOne migration, the same agent, budget {} tokens, seed {}.", grouped(args.budget), args.seed);
    for (name, run) in runs {
        let times = run.session.read.checked_div(args.budget).unwrap_or_default();
        println!("  {name}: {} tokens of tool output read, {times} windows full", grouped(run.session.read));
    }
    let able = if control.verdict.is_right() { "right" } else { "WRONG" };
    println!("  control: with an unbounded window the same agent ends {able}");
    report_proposals(runs);
    report_decisions(runs);
    report_rows(runs);
    report_charts(runs, args.budget);
    let (program, error) = REJECTED;
    heading("The plain run's first mistake, written with keepspan, does not compile");
    println!("{program}\n{error}");
}

// -------------------------------------------------------------------------------------------------
// Main
// -------------------------------------------------------------------------------------------------

/// Runs one schema migration twice under a small context window: with a plain pruner and with keepspan.
///
/// Exit code: 0 as expected (plain ends wrong, kept right), 1 not as expected, 2 usage or I/O error.
#[derive(Debug, Parser)]
#[command(name = "migration")]
struct Args {
    /// Tokens the window may hold (a token is four bytes)
    #[arg(long, value_name = "TOKENS", default_value_t = 2_400, value_parser = parse_budget)]
    budget: usize,
    /// Varies the rows and the tool output
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Keep the databases and the store in this directory
    #[arg(long, value_name = "DIR")]
    keep: Option<PathBuf>,
    #[command(flatten)]
    place: Place,
}

fn parse_budget(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(budget) if (1_500..=50_000).contains(&budget) => Ok(budget),
        Ok(_) => Err("must be from 1500 to 50000: below that the task itself does not fit".to_owned()),
        Err(error) => Err(format!("{error}")),
    }
}

fn run_all(dir: &Path, args: &Args) -> Result<bool> {
    let kept_dir = dir.join("kept");
    fs::create_dir_all(&kept_dir)?;
    // First, so that an address that is wrong is told before any work.
    let keepspan = open_kept(&kept_dir, &args.place, args.budget)?;
    let plain = run_agent("plain", Box::<Plain>::default(), &dir.join("plain"), args)?;
    let kept = run_agent("kept", keepspan, &kept_dir, args)?;
    let control = run_agent("control", Box::<Plain>::default(), &dir.join("control"), args)?;
    report(&[("plain", &plain), ("kept", &kept)], &control, args);
    let as_expected = !plain.verdict.is_right() && kept.verdict.is_right() && control.verdict.is_right();
    if as_expected {
        println!("\nAs expected: the plain run ended in wrong data without one error or failed test.");
        println!("The kept run, same agent and same pruner, ended right.");
    } else {
        println!("\nNOT as expected.");
    }
    Ok(as_expected)
}

fn start(args: &Args) -> Result<bool> {
    let Some(dir) = &args.keep else {
        let dir = tempfile::tempdir().context("cannot create a temporary directory")?;
        return run_all(dir.path(), args);
    };
    for run in ["plain", "kept", "control"] {
        if dir.join(run).exists() {
            bail!("{} already holds a run; name another directory", dir.display());
        }
    }
    let as_expected = run_all(dir, args)?;
    println!("\nkept in {}", dir.display());
    Ok(as_expected)
}

fn main() -> ExitCode {
    match start(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(1),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}
