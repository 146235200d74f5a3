//! Resume: the same window again, from its log, after a stop at any point (rule R26).

use std::collections::BTreeMap;

use super::{Shared, Window, contents::Contents, discard::elsewhere, migrate, step};
use crate::{
    Budget, ByteEstimate, Certainty, CommitError, Content, ContextState, Digest, Episode, EpisodeId, NewSpan,
    OpenError, ResumeError, SpanId, TokenCounter,
    journal::{Event, Facts, MutationRecord, Probe, Replay, Replayed},
    store::{AsyncStore, Batch, Store, StoreError, fetch},
};

/// What is in the window and in no commit yet: what a stop now would lose.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Uncommitted {
    /// Spans.
    pub spans: usize,
    /// Their tokens.
    pub tokens: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// A span that no commit has yet; see [`Window::unsaved`].
#[derive(Clone, Debug)]
pub struct Unsaved {
    /// The span.
    pub span: SpanId,
    /// Its lane.
    pub lane: &'static str,
    /// Its text or bytes.
    pub content: Content,
    new: NewSpan,
}

/// The span once more, to be pushed: its content, origin, role, tool, calls and what it read. The size of an image is not kept,
/// so one is counted by its bytes; say it again with [`NewSpan::sized`].
impl From<Unsaved> for NewSpan {
    fn from(unsaved: Unsaved) -> Self {
        unsaved.new
    }
}

impl<C: ContextState, St> Window<C, St> {
    /// Opens an episode again that a process left, however it ended, and becomes its owner: whoever else holds it is
    /// [superseded](CommitError::Superseded) at its next commit. Tokens are counted by [`ByteEstimate`].
    ///
    /// Every record is checked: its digest against the record before, what it says of a span against what was said before,
    /// each summary's sources and depth. The texts in the window are read and verified against their SHA-256; what left it
    /// is read when it is asked for, or all of it by [`verify`](crate::audit::verify). O(records) and what is resident.
    ///
    /// What was pushed and not committed is the only thing that can be missing: [`uncommitted`](Self::uncommitted) says how
    /// much that is before a stop, and [`missing`](Self::missing) which numbers are known to be without a text after it. Where
    /// the process before did not [`close`](Self::close) its window, [`ask`](Self::ask) says no more what was never seen, and
    /// no later close brings that back.
    ///
    /// Fields with `#[context(skip)]` are in no record and begin with their default. The budget is that of the struct and of
    /// `episode` now, the policy version that of `episode`; a difference is logged.
    ///
    /// # Errors
    /// [`ResumeError`] names the record, the span or the lanes.
    pub fn resume(store: St, episode: Episode) -> Result<Self, ResumeError>
    where
        St: Store,
    {
        step::at_once(Self::resume_async(store, episode, ByteEstimate))
    }

    /// As [`resume`](Self::resume), with the token counter that the episode was opened with.
    ///
    /// # Errors
    /// As [`resume`](Self::resume).
    pub fn resume_with(store: St, episode: Episode, counter: impl TokenCounter + 'static) -> Result<Self, ResumeError>
    where
        St: Store,
    {
        step::at_once(Self::resume_async(store, episode, counter))
    }

    /// As [`resume_with`](Self::resume_with), on a store that answers later.
    ///
    /// # Errors
    /// As [`resume`](Self::resume).
    pub async fn resume_async(
        store: St,
        mut episode: Episode,
        counter: impl TokenCounter + 'static,
    ) -> Result<Self, ResumeError>
    where
        St: AsyncStore,
    {
        let migration = episode.migration.take();
        let policy = episode.policy.clone();
        let Replayed { mut contents, facts } = replayed::<C, St>(&store, episode, &counter).await?;
        same_counter(&facts, Contents::probe(&counter))?;
        let mut events = vec![Event::Resumed { state: C::NAME.to_owned(), clean: facts.closed }];
        if contents.policy != policy {
            events.push(Event::PolicyChanged(policy.clone()));
            contents.under(policy);
        }
        if facts.ceiling != contents.ceiling() {
            events.push(Event::Limited(contents.ceiling()));
        }
        events.extend(migrate::migrate(&mut contents, C::LANES, migration, &counter)?);
        let sealed = contents.load(&store, &BTreeMap::new(), &counter).await?;
        events.extend((!sealed.is_empty()).then(|| redacted(&sealed)));
        let record = contents.sealed(&events).map_err(|error| CommitError::Record(error.into()))?;
        let batch = Batch::new(contents.episode.clone(), contents.length, Vec::new(), vec![record.bytes]);
        store.commit(&batch).await.map_err(CommitError::from)?;
        contents.recorded(record.chain, contents.taken_along().0, 0);
        for (span, mutation) in &sealed {
            contents.remove(*span, mutation);
        }
        if !facts.closed {
            contents.stopped.get_or_insert(contents.length.saturating_sub(1));
        }
        let shared = Shared::new(store, counter, contents);
        Ok(Self { shared, state: C::declare(crate::state::spans) })
    }

    /// What is in the window and in no commit yet: what a stop now would lose. O(such spans).
    pub fn uncommitted(&self) -> Uncommitted {
        let contents = self.shared.lock();
        contents.fresh.iter().filter_map(|span| contents.table.get(*span)).fold(Uncommitted::default(), |sum, entry| {
            let bytes = entry.content.as_ref().map_or(0, |content| content.as_bytes().len());
            Uncommitted {
                spans: sum.spans.saturating_add(1),
                tokens: sum.tokens.saturating_add(u64::from(entry.tokens)),
                bytes: sum.bytes.saturating_add(u64::try_from(bytes).unwrap_or(u64::MAX)),
            }
        })
    }

    /// The spans themselves, oldest first: for an owner that was [superseded](CommitError::Superseded) and has to push them
    /// again: each [is](Unsaved#impl-From<Unsaved>-for-NewSpan) a span to push.
    pub fn unsaved(&self) -> Vec<Unsaved> {
        let contents = self.shared.lock();
        let unsaved = |span: &SpanId| {
            let entry = contents.table.get(*span)?;
            let content = entry.content.clone()?;
            let name = contents.name(entry).cloned();
            let part = contents.part(*span);
            // A span that is pushed again gets another number, which an excerpt of it would not name.
            let renumbered = |of: SpanId| contents.table.get(of).is_none_or(|source| !source.durable);
            let of_another = contents.recalled_from(*span, entry).is_some_and(renumbered);
            let reads = contents.reads.subject(*span).filter(|_| !of_another).cloned();
            let new = NewSpan::again(content.clone(), entry.origin, entry.role, name, part, reads);
            let new = if contents.failed.contains(span) { new.failed() } else { new };
            let new = match contents.wires.get(*span) {
                Some(wire) => new.framed(wire.clone(), wire.media(entry.origin, &content)),
                None => new,
            };
            Some(Unsaved { span: *span, lane: contents.lane_name(entry), content, new })
        };
        contents.fresh.iter().filter_map(unsaved).collect()
    }

    /// Spans that entered and whose text no commit had when a process ended, as far as the log knows of them: another span
    /// that came later, or the record of a pass, names their number.
    pub fn missing(&self) -> Vec<SpanId> {
        self.shared.lock().gaps.iter().copied().collect()
    }

    /// How many records the episode's log has, as far as this window knows: the number of the next one.
    pub fn records(&self) -> u64 {
        self.shared.lock().length
    }

    /// The store, when the window is not needed any more. What is [uncommitted](Self::uncommitted) goes with the window.
    pub fn into_store(self) -> St {
        self.shared.store
    }
}

/// The window of a log, under the numbers of whoever resumes it.
async fn replayed<C: ContextState, St: AsyncStore>(
    store: &St,
    episode: Episode,
    counter: &dyn TokenCounter,
) -> Result<Replayed, ResumeError> {
    let contents = Contents::prepared::<C>(episode, counter)?;
    Ok(Replay::over(contents, C::LANES).read(store).await?)
}

/// Counts of two counters do not add up (rule R25); two estimates may differ, being what they are.
fn same_counter(facts: &Facts, found: Probe) -> Result<(), ResumeError> {
    match facts.probe {
        Some(recorded) if recorded != found => {
            let estimates = [recorded, found].iter().all(|probe| probe.certainty == Certainty::Estimate);
            if estimates {
                return Ok(());
            }
            Err(ResumeError::Counter { recorded: recorded.tokens, found: found.tokens })
        }
        _ => Ok(()),
    }
}

/// How many texts are read at once.
const GROUP: usize = 64;

impl Contents {
    /// An empty window of `C`, with all that its numbers say.
    pub(crate) fn prepared<C: ContextState>(episode: Episode, counter: &dyn TokenCounter) -> Result<Self, OpenError> {
        let bytes = episode.id.as_str().len();
        if bytes == 0 || bytes > EpisodeId::MAX_BYTES {
            return Err(OpenError::Name { bytes });
        }
        let budget = match episode.limits {
            Some(limits) => Some(Budget::new(limits)?),
            None => C::BUDGET,
        };
        if let Some(fault) = crate::policy::fault::<C>(budget) {
            return Err(fault.into());
        }
        let mut contents = Self::new(episode, C::LANES, budget);
        contents.max_decision = crate::policy::max_decision::<C>();
        contents.expect(counter);
        Ok(contents)
    }

    /// Brings in the texts of what is resident, from `texts` where they are, and else from the store, verified. Gives what
    /// another episode had sealed, with what is to stand in its place.
    pub(crate) async fn load<S: AsyncStore>(
        &mut self,
        store: &S,
        texts: &BTreeMap<SpanId, Content>,
        counter: &dyn TokenCounter,
    ) -> Result<Vec<(SpanId, MutationRecord)>, ResumeError> {
        let unread = self.table.resident().filter(|(_, entry)| entry.content.is_none());
        let (mut here, mut wanted) = (Vec::new(), Vec::new());
        for (span, entry) in unread {
            match texts.get(&span) {
                Some(content) => here.push((span, content.clone())),
                None => wanted.push((span, entry.digest)),
            }
        }
        for (span, content) in here {
            if let Some(entry) = self.table.get_mut(span) {
                entry.content = Some(content);
            }
        }
        let mut sealed = Vec::new();
        for group in wanted.chunks(GROUP) {
            let mut group = group.to_vec();
            let found = loop {
                let digests: Vec<_> = group.iter().map(|(_, digest)| *digest).collect();
                match fetch(store, &digests).await {
                    Ok(found) => break found,
                    Err(StoreError::Sealed { digest }) if digests.contains(&digest) => {
                        for (span, _) in group.extract_if(.., |(_, of)| *of == digest) {
                            sealed.push((span, self.notice(span, &elsewhere(), counter)?));
                        }
                    }
                    Err(error) => return Err(of_span(error, &group)),
                }
            };
            for ((span, _), bytes) in group.into_iter().zip(found) {
                if let Some(entry) = self.table.get_mut(span) {
                    entry.content = Some(step::content(bytes, entry.text));
                }
            }
        }
        Ok(sealed)
    }
}

fn redacted(sealed: &[(SpanId, MutationRecord)]) -> Event {
    let (spans, mutations) = sealed.iter().cloned().unzip();
    Event::Redacted { spans, mutations, authority: None }
}

/// Which span a store's error is about.
fn of_span(error: StoreError, group: &[(SpanId, Digest)]) -> ResumeError {
    let named = match &error {
        StoreError::Missing { digest } | StoreError::Corrupt { digest } => Some(*digest),
        _ => None,
    };
    match group.iter().find(|(_, digest)| Some(*digest) == named) {
        Some((span, _)) => ResumeError::Text { span: *span, source: error },
        None => CommitError::from(error).into(),
    }
}
