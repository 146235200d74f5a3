//! A session's own compactions, each beside keepspan under a budget of what was left.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use keepspan::{Episode, Limits, NewSpan, Tombstone, store::MemoryStore};
use keepspan_sessions::{Compaction, CompactionKind, Entry};

use super::{
    mentions::{ByHash, hash, mentions},
    outcome::{Own, Removal},
    prune::{Session, fall_back, leave, push},
    run::Settings,
    state::Act,
};
use crate::{failure::Failure, report::story::number};

/// Bytes of text that a context holds at most: no model reads more, so a session without compactions keeps no more here.
const MOST_BYTES: usize = 16 << 20;

/// What the agent's own context holds, as far as the file says.
#[derive(Debug, Default)]
pub struct Context {
    live: Vec<Live>,
    bytes: usize,
    /// Texts were let go: there was more than a context holds.
    incomplete: bool,
    done: Vec<Own>,
    /// Where an entry was taken out, by the number of the compaction.
    out: HashMap<usize, Vec<(usize, Who)>>,
    wanted: HashSet<(usize, Who, usize, bool)>,
    /// The last compaction whose text mentions it.
    said: ByHash<usize>,
}

/// An entry of the context.
#[derive(Debug)]
struct Live {
    entry: usize,
    tokens: u64,
    /// As it entered; `None` once texts were let go.
    span: Option<NewSpan>,
    answers: Option<Arc<str>>,
    /// Its text was taken out by an earlier compaction, and it is still there.
    cleared: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Who {
    Agent,
    Keepspan,
}

impl Context {
    /// Takes an entry in.
    pub fn enter(&mut self, entry: usize, tokens: u64, told: &Entry) {
        self.bytes = self.bytes.saturating_add(told.text.len());
        if self.bytes > MOST_BYTES && !self.incomplete {
            self.incomplete = true;
            self.live.iter_mut().for_each(|live| live.span = None);
        }
        let span = (!self.incomplete).then(|| told.span.clone());
        self.live.push(Live { entry, tokens, span, answers: told.answers.clone(), cleared: false });
    }

    /// A compaction of the session's own; what became of it, in words.
    ///
    /// # Errors
    /// When keepspan failed beside it.
    pub fn compacted(&mut self, compaction: &Compaction, settings: &Settings) -> Result<String, Failure> {
        let before = self.tokens();
        let (kind, texts, absent, taken) = self.taken(&compaction.kind);
        let summary = texts.iter().map(|text| settings.count(text)).fold(0_u64, u64::saturating_add);
        let number = self.done.len();
        let mut agent = Removal::default();
        for live in self.live.iter_mut().filter(|live| taken.contains(&live.entry)) {
            live.cleared = true;
            agent.spans = agent.spans.saturating_add(1);
            agent.tokens = agent.tokens.saturating_add(live.tokens);
            self.out.entry(live.entry).or_default().push((number, Who::Agent));
        }
        let left = self.tokens().saturating_add(summary);
        agent.after = left;
        let keepspan = if self.incomplete { None } else { Some(self.beside(number, left, settings)?) };
        for text in texts {
            mentions(&text, |mention| {
                self.said.insert(hash(mention), number);
            });
        }
        if kind != CLEARED {
            self.live.retain(|live| !live.cleared);
            self.bytes = 0;
            self.incomplete &= !self.live.is_empty();
        }
        let told = format!("the agent's own compaction ({kind}) took out {} tokens of {before}", agent.tokens);
        let Compaction { place, tokens_before, tokens_saved, .. } = compaction;
        let (line, tokens_before, tokens_saved) = (place.line, *tokens_before, *tokens_saved);
        self.done.push(Own { line, kind, tokens_before, tokens_saved, before, left, absent, agent, keepspan });
        Ok(told)
    }

    /// What the context takes, without what was cleared.
    fn tokens(&self) -> u64 {
        let there = self.live.iter().filter(|live| !live.cleared);
        there.fold(0, |sum, live| sum.saturating_add(live.tokens))
    }

    /// What a compaction takes out: its kind, the texts in their place, the calls that are not there, the entries.
    fn taken(&self, kind: &CompactionKind) -> (&'static str, Vec<Arc<str>>, u64, HashSet<usize>) {
        let there = || self.live.iter().filter(|live| !live.cleared);
        match kind {
            CompactionKind::Summary { text, kept_from } => {
                let first = kept_from.and_then(|first| usize::try_from(first).ok()).unwrap_or(usize::MAX);
                let gone = there().map(|live| live.entry).filter(|entry| *entry < first).collect();
                ("summary", text.iter().cloned().collect(), 0, gone)
            }
            CompactionKind::Cleared { calls } => {
                let results: HashMap<_, _> =
                    there().filter_map(|live| Some((live.answers.clone()?, live.entry))).collect();
                let gone: HashSet<_> = calls.iter().filter_map(|call| results.get(call).copied()).collect();
                let absent = number(calls.iter().filter(|call| !results.contains_key(*call)).count());
                (CLEARED, Vec::new(), absent, gone)
            }
            CompactionKind::Replaced { texts, summary } => {
                let texts = texts.iter().chain(summary).cloned().collect();
                ("replaced", texts, 0, there().map(|live| live.entry).collect())
            }
            CompactionKind::Forgot { entries, text } => {
                let forgotten = |live: &&Live| entries.contains(&number(live.entry));
                let gone = there().filter(forgotten).map(|live| live.entry).collect();
                ("forgot", text.iter().cloned().collect(), 0, gone)
            }
            _ => ("unknown", Vec::new(), 0, HashSet::new()),
        }
    }

    /// The same context in a window of its own, which has to come to `left` tokens.
    fn beside(&mut self, number: usize, left: u64, settings: &Settings) -> Result<Removal, Failure> {
        let all = self.live.iter().fold(0_u64, |sum, live| sum.saturating_add(live.tokens));
        // All fit in, so that none is too large to enter, and pruning brings them down to what was left.
        let limits = Limits::of(all.max(left).saturating_mul(2).saturating_add(1_000)).trigger(left.saturating_add(1));
        let episode = Episode::new("beside", "replay").budget(limits).trust_estimates();
        let mut window = Session::open_with(MemoryStore::new(), episode, settings.counter.clone())
            .map_err(|error| Failure::Replay(error.to_string()))?;
        let mut entries = HashMap::new();
        for live in &self.live {
            if let Some(span) = &live.span {
                let id = push(&mut window, span, live.answers.as_ref())
                    .map_err(|error| Failure::Replay(error.to_string()))?;
                entries.insert(id, live.entry);
            }
        }
        let gone = self::left(&mut window, left, settings)?;
        let mut removal = Removal { after: window.utilization(), ..Removal::default() };
        for tombstone in gone {
            removal.spans = removal.spans.saturating_add(1);
            removal.tokens = removal.tokens.saturating_add(tombstone.tokens());
            if let Some(entry) = entries.get(&tombstone.span()) {
                self.out.entry(*entry).or_default().push((number, Who::Keepspan));
            }
        }
        Ok(removal)
    }

    /// A call mentions what was last seen in an entry.
    pub fn mentioned(&mut self, mention: u64, entry: usize, act: Act) {
        let Some(out) = self.out.get(&entry) else { return };
        let told = self.said.get(&mention);
        for (number, who) in out {
            // The summary tells it again.
            if *who == Who::Agent && told.is_some_and(|told| told >= number) {
                continue;
            }
            self.wanted.insert((*number, *who, entry, false));
            if act == Act::Write {
                self.wanted.insert((*number, *who, entry, true));
            }
        }
    }

    /// All compactions, with what was wanted of what they took out.
    pub fn finish(self) -> Vec<Own> {
        let Self { mut done, wanted, .. } = self;
        for (number, who, _, write) in wanted {
            let Some(own) = done.get_mut(number) else { continue };
            let removal = if who == Who::Agent { Some(&mut own.agent) } else { own.keepspan.as_mut() };
            if let Some(removal) = removal {
                let count = if write { &mut removal.wanted_by_writes } else { &mut removal.wanted };
                *count = count.saturating_add(1);
            }
        }
        done
    }
}

const CLEARED: &str = "cleared";

/// Prunes to `goal` tokens without a model: by the policy, then whatever else may leave.
fn left(window: &mut Session<MemoryStore>, goal: u64, settings: &Settings) -> Result<Vec<Tombstone>, Failure> {
    let failed = |error: &dyn std::fmt::Display| Failure::Replay(error.to_string());
    let lanes = window.lanes().externalize().wait().map_err(|error| failed(&error))?;
    let fell = match lanes.admit() {
        Ok(pass) => super::prune::decline(pass, settings.policy),
        Err(refusal) => fall_back(refusal, settings.policy),
    };
    let mut gone = match fell.map_err(|error| failed(&error))? {
        keepspan::FellBack::Freed(report) => report.tombstones().to_vec(),
        _ => Vec::new(),
    };
    gone.extend(leave(window, goal).map_err(|error| failed(&error))?);
    Ok(gone)
}
