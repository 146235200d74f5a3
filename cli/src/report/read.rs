//! From an episode's history to the story of the report.

use std::collections::BTreeMap;

use keepspan::{
    Fidelity, PruneEvent, SpanId,
    audit::{Happening, History, LogEntry, SpanFacts, Standing},
    store::Store,
};

use super::story::{
    Departure, Limit, Lossy, Mark, MarkKind, Moment, Pass, PolicyAt, Removal, Source, State, Story, Summary, number,
};
use crate::{
    attempts::{State as Ending, attempts, which},
    commands,
    failure::Failure,
    told,
};

/// Tells what happened. Texts are read only from a store that is given.
pub fn story_of(history: &History, name: String, texts: Option<&dyn Store>) -> Result<Story, Failure> {
    let mut reader = Reader {
        history,
        texts,
        turn: 0,
        fixed: 0,
        departures: BTreeMap::new(),
        story: Story {
            store: name,
            episode: history.episode().as_str().to_owned(),
            turns: number(history.turns().len()),
            spans: history.entered(),
            resumed: history.resumed(),
            actions: attempts(history),
            ..Story::default()
        },
    };
    for entry in history.entries() {
        reader.entry(entry)?;
    }
    reader.finish()
}

struct Reader<'a> {
    history: &'a History,
    texts: Option<&'a dyn Store>,
    turn: u64,
    /// What every request takes beside the window, in tokens.
    fixed: u64,
    /// When each span left last.
    departures: BTreeMap<SpanId, (u64, u64)>,
    story: Story,
}

impl Reader<'_> {
    fn entry(&mut self, entry: &LogEntry) -> Result<(), Failure> {
        self.turn = commands::turn(self.history, entry);
        self.fixed = commands::fixed(entry, self.fixed);
        for happening in &entry.happenings {
            self.happening(entry, happening)?;
        }
        let marks = told::entry(entry).into_iter().filter_map(|told| Some(Mark { kind: told.mark?, what: told.text }));
        self.story.moments.push(Moment {
            entry: entry.record,
            turn: self.turn,
            time: entry.time,
            utilization: entry.utilization.saturating_add(self.fixed),
            marks: marks.collect(),
        });
        Ok(())
    }

    fn happening(&mut self, entry: &LogEntry, happening: &Happening) -> Result<(), Failure> {
        let turn = self.turn;
        match happening {
            Happening::Opened { policy, .. } | Happening::PolicyChanged { policy } => {
                self.story.policies.push(PolicyAt { turn, policy: told::policy(policy) });
            }
            Happening::Budget { limit, trigger, .. } => {
                self.story.budget = (*limit > 0).then_some(Limit { limit: *limit, trigger: *trigger });
            }
            Happening::Left(tombstone) => {
                self.departures.insert(tombstone.span(), (entry.record, turn));
            }
            Happening::Summarized { summary, sources, depth, escalation } => {
                let summary = self.summary(summary, sources, *depth, escalation.clone())?;
                self.story.summaries.push(summary);
            }
            Happening::Restored { .. } => self.story.returns = self.story.returns.saturating_add(1),
            Happening::Regrounded { summary, sources } => {
                self.story.returns = self.story.returns.saturating_add(number(sources.len()));
                let mut summaries = self.story.summaries.iter_mut();
                if let Some(summary) = summaries.find(|known| known.span == summary.number()) {
                    summary.regrounded = Some(turn);
                }
            }
            Happening::Discarded { span, reason, recovery } => self.removed(span, "discarded", reason, recovery),
            Happening::Redacted { spans, reason, recovery, authority } => {
                let how = authority.as_ref().map_or_else(|| "redacted".to_owned(), |by| format!("redacted by {by}"));
                for (facts, _) in spans.iter().filter_map(|span| self.history.span(*span)) {
                    self.removed(facts, &how, reason, recovery);
                }
            }
            Happening::Pruning(event) => self.pruning(entry, event),
            _ => {}
        }
        Ok(())
    }

    fn pruning(&mut self, entry: &LogEntry, event: &PruneEvent) {
        let (entry, happenings, turn) = (entry.record, &entry.happenings, self.turn);
        match event {
            PruneEvent::Passed(pass) => self.story.passes.push(Pass {
                entry,
                turn,
                fallback: None,
                before: pass.before,
                after: pass.after,
                gross: pass.gross,
                overhead: pass.overhead().saturating_add(pass.pointers).saturating_add(pass.cache),
                net: pass.net(),
                spans: pass.spans,
            }),
            PruneEvent::FellBack { strategy, before, after, spans, .. } => {
                let freed = before.saturating_sub(*after);
                // Pointers that fold free some as well, so less may have left than was freed.
                let gross = left(happenings).max(freed);
                self.story.passes.push(Pass {
                    entry,
                    turn,
                    fallback: Some((*strategy).to_owned()),
                    before: *before,
                    after: *after,
                    gross,
                    overhead: gross.saturating_sub(freed),
                    net: i64::try_from(freed).unwrap_or(i64::MAX),
                    spans: *spans,
                });
            }
            _ => {}
        }
    }

    fn removed(&mut self, span: &SpanFacts, how: &str, reason: &str, recovery: &str) {
        // A span that was redacted before a commit had it is on record as both.
        self.story.removals.retain(|removal| removal.span != span.span.number());
        self.story.removals.push(Removal {
            span: span.span.number(),
            lane: span.lane.to_owned(),
            tokens: span.tokens.into(),
            turn: self.turn,
            how: how.to_owned(),
            reason: reason.to_owned(),
            recovery: recovery.to_owned(),
        });
    }

    fn summary(
        &self,
        facts: &SpanFacts,
        sources: &[SpanId],
        depth: u32,
        escalation: Option<String>,
    ) -> Result<Summary, Failure> {
        let source = |(facts, _): (&SpanFacts, Standing)| Source {
            span: facts.span.number(),
            lane: facts.lane.to_owned(),
            tool: facts.name.as_deref().map(str::to_owned),
            tokens: facts.tokens.into(),
        };
        Ok(Summary {
            span: facts.span.number(),
            lane: facts.lane.to_owned(),
            tokens: facts.tokens.into(),
            turn: self.turn,
            depth,
            sources: sources.iter().filter_map(|span| self.history.span(*span)).map(source).collect(),
            escalation,
            regrounded: None,
            text: self.text(facts)?,
        })
    }

    /// The text of a span that is still there, where texts are wanted.
    fn text(&self, facts: &SpanFacts) -> Result<Option<String>, Failure> {
        let Some(store) = self.texts else { return Ok(None) };
        match self.history.span(facts.span) {
            None | Some((_, Standing::Gone { .. } | Standing::Unrecorded)) => Ok(None),
            Some(_) => Ok(commands::content(store, facts)?.as_text().map(str::to_owned)),
        }
    }

    /// An attempt without an outcome is uncertain since it began; no entry of its own says so.
    fn open(&mut self) {
        let moments = &mut self.story.moments;
        for attempt in self.story.actions.iter().filter(|one| matches!(one.state, Ending::Uncertain { why: None })) {
            let at = moments.binary_search_by_key(&attempt.record, |moment| moment.entry).ok();
            if let Some(moment) = at.and_then(|at| moments.get_mut(at)) {
                let what = format!(
                    "`{}` ({}) has no outcome on record",
                    attempt.action,
                    which(attempt.signature, attempt.attempt)
                );
                moment.marks.push(Mark { kind: MarkKind::Uncertain, what });
            }
        }
    }

    fn finish(mut self) -> Result<Story, Failure> {
        let mut departures: Vec<_> = std::mem::take(&mut self.departures).into_iter().collect();
        departures.sort_by_key(|(span, (entry, _))| (*entry, *span));
        for (span, (entry, turn)) in departures {
            let Some((facts, standing)) = self.history.span(span) else { continue };
            let (state, summary) = state(&standing);
            self.story.departures.push(Departure {
                span: span.number(),
                lane: facts.lane.to_owned(),
                kind: facts.kind.attribute().to_owned(),
                tool: facts.name.as_deref().map(str::to_owned),
                tokens: facts.tokens.into(),
                entry,
                turn,
                state,
                summary,
                text: self.text(facts)?,
            });
        }
        if let Fidelity::Lossy { since, why, .. } = self.history.fidelity() {
            let turn = self.story.moments.iter().find(|moment| moment.entry >= since).map_or(0, |moment| moment.turn);
            self.story.lossy = Some(Lossy { turn, why });
        }
        self.open();
        self.story.gaps.extend(told::gap(self.history));
        Ok(self.story)
    }
}

/// Tokens of the spans that left in an entry.
fn left(happenings: &[Happening]) -> u64 {
    let left = happenings.iter().map(|one| if let Happening::Left(tombstone) = one { tombstone.tokens() } else { 0 });
    left.fold(0, u64::saturating_add)
}

/// What became of a span that left, and the summary in its place.
fn state(standing: &Standing) -> (State, Option<u64>) {
    match standing {
        Standing::Resident => (State::Resident, None),
        Standing::Replaced { by } => (State::Summarized, Some(by.number())),
        Standing::Retired => (State::Retired, None),
        Standing::Gone { .. } => (State::Removed, None),
        Standing::Unrecorded => (State::Lost, None),
        _ => (State::Evicted, None),
    }
}
