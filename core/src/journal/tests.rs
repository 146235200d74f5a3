//! Logs whose chain is whole and whose contents are not: forged from a real one, record by record.

use std::sync::Arc;

use super::*;
use crate::{
    Abandonment, ContextState, Episode, Finish, ModelAnswer, NewSpan, ResumeError, SpanId, Spans, SummaryText, Window,
    audit::History,
    span::Part,
    store::{Batch, Blob, MemoryStore, Store},
};

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
type Forge<T> = fn(&mut T);
type ForgeSummary = fn(&mut SpanRecord, &mut Vec<SpanId>, &mut u32);

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[evictable(otherwise)]
    work: Spans,
    #[derived]
    recap: Spans,
}

/// A record with its events.
#[derive(Clone)]
struct Entry {
    time: u64,
    spans: u64,
    names: Vec<Arc<str>>,
    notes: Vec<Note>,
    events: Vec<Event>,
}

/// Records of `work`, one a commit.
fn log(work: impl FnOnce(&mut Window<Agent, Arc<MemoryStore>>) -> Outcome) -> Outcome<(Arc<MemoryStore>, Vec<Entry>)> {
    let store = Arc::new(MemoryStore::default());
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    work(&mut window)?;
    let (mut entries, mut chain) = (Vec::new(), beginning(&EpisodeId::new("e")));
    for record in Store::read(&store, &EpisodeId::new("e"), 0, u64::MAX)? {
        assert!(follows(&record, &chain));
        let (super::Entry { time, spans, names, notes, events }, next) = read(&record)?;
        entries.push(Entry { time, spans, names, notes, events: events.collect::<Result<_, _>>()? });
        chain = next;
    }
    Ok((store, entries))
}

/// A store with these records, each going on from the one before, and with every text.
fn forged(store: &MemoryStore, entries: &[Entry]) -> Outcome<Arc<MemoryStore>> {
    let (forged, id) = (Arc::new(MemoryStore::default()), EpisodeId::new("e"));
    let (mut records, mut blobs, mut chain) = (Vec::new(), Vec::new(), beginning(&id));
    for Entry { time, spans, names, notes, events } in entries {
        let sealed = Unsealed { time: *time, spans: *spans, names, notes, events }.seal(&chain)?;
        chain = sealed.chain;
        records.push(sealed.bytes);
        for event in events {
            if let Event::Externalized(span) | Event::Summarized { summary: span, .. } = event {
                blobs.extend(span.sha256.and_then(|digest| store.get(&digest).ok()).map(Blob::new));
            }
        }
    }
    Store::commit(&forged, &Batch::new(id, 0, blobs, records))?;
    Ok(forged)
}

/// What a resume and a history say of it, which must be the same: the record and the fault.
fn refusal(store: &MemoryStore, entries: &[Entry]) -> Outcome<(Option<u64>, Fault)> {
    refused(forged(store, entries)?)
}

fn refused(forged: Arc<MemoryStore>) -> Outcome<(Option<u64>, Fault)> {
    let read = History::read(&forged, &EpisodeId::new("e")).err().map(|error| error.to_string());
    match Window::<Agent, _>::resume(forged, Episode::new("e", "p")) {
        Err(ResumeError::Journal(error)) => {
            assert_eq!(read, Some(error.to_string()));
            match error {
                JournalError::Record { record, fault, .. } => Ok((Some(record), fault)),
                JournalError::Whole { fault, .. } => Ok((None, fault)),
                other => Err(other.into()),
            }
        }
        Err(other) => Err(other.into()),
        Ok(_) => Err("it was taken".into()),
    }
}

fn s(number: u64) -> SpanId {
    SpanId::mint(number)
}

/// Two spans of work, of which the first is evicted: records 0 to 2.
fn evicted(window: &mut Window<Agent, Arc<MemoryStore>>) -> Outcome {
    let first = window.lanes().work.push("x".repeat(400))?;
    window.lanes().schema.push("users.id BIGINT")?;
    window.lanes().externalize().wait()?.work.evict(first).wait()?;
    Ok(())
}

/// Three spans of work, of which the first two are summarized: records 0 to 2.
fn summarized(window: &mut Window<Agent, Arc<MemoryStore>>) -> Outcome {
    let work = ["a", "b", "c"].map(|text| window.lanes().work.push(text.repeat(400)));
    let [a, b, _] = work;
    let lanes = window.lanes().externalize().wait()?;
    let short: SummaryText = ModelAnswer::new(Finish::Stop, "short").try_into()?;
    lanes.work.summarize([a?, b?], short, &lanes.recap).wait()?;
    Ok(())
}

/// Changes the one event that `change` knows.
fn change(entries: &mut [Entry], mut change: impl FnMut(&mut Event) -> bool) {
    let changed =
        entries.iter_mut().flat_map(|entry| &mut entry.events).filter_map(|event| change(event).then_some(()));
    assert_eq!(changed.count(), 1);
}

fn drop_event(entries: &mut [Entry], which: impl Fn(&Event) -> bool) {
    let before: usize = entries.iter().map(|entry| entry.events.len()).sum();
    entries.iter_mut().for_each(|entry| entry.events.retain(|event| !which(event)));
    let after: usize = entries.iter().map(|entry| entry.events.len()).sum();
    assert_eq!(after.checked_add(1), Some(before));
}

#[test]
fn what_is_not_forged_is_taken() -> Outcome {
    for work in [evicted, summarized] {
        let (store, entries) = log(work)?;
        Window::<Agent, _>::resume(forged(&store, &entries)?, Episode::new("e", "p"))?;
    }
    Ok(())
}

#[test]
fn a_tombstone_says_what_its_span_says() -> Outcome {
    let (store, entries) = log(evicted)?;
    let place = "its tombstone is of another text, place, lane or tool";
    let cases: [(Forge<TombstoneRecord>, &str); 8] = [
        (|gone| gone.sha256 = Digest::of(b"another"), place),
        (|gone| gone.start = 1, place),
        (|gone| gone.end = 7, place),
        (|gone| gone.lane = 0, place),
        (|gone| gone.name = std::num::NonZeroU16::new(1), place),
        (|gone| gone.policy = 1, "its tombstone names a policy that was not in force"),
        (|gone| gone.replaced_by = Some(s(2)), "its tombstone does not fit where it was"),
        (|gone| gone.span = s(2), place),
    ];
    for (forge, what) in cases {
        let mut forged = entries.clone();
        let mut span = s(1);
        change(&mut forged, |event| match event {
            Event::Evicted(gone) => {
                forge(gone);
                span = gone.span;
                true
            }
            _ => false,
        });
        assert_eq!(refusal(&store, &forged)?, (Some(2), Fault::Contradicts { span, what }));
    }
    let mut forged = entries.clone();
    change(&mut forged, |event| match event {
        Event::Evicted(gone) => {
            gone.derivation = vec![s(2)];
            true
        }
        _ => false,
    });
    let what = "its tombstone names other sources than it was made of";
    assert_eq!(refusal(&store, &forged)?, (Some(2), Fault::Provenance { span: s(1), what }));
    Ok(())
}

#[test]
fn what_left_has_a_pointer_and_nothing_else_has() -> Outcome {
    let (store, entries) = log(evicted)?;
    let whole = "it left, and no pointer stands in its place; or the reverse";
    let mut unpointed = entries.clone();
    drop_event(&mut unpointed, |event| matches!(event, Event::Pointed(_)));
    assert_eq!(refusal(&store, &unpointed)?, (None, Fault::Contradicts { span: s(1), what: whole }));
    let mut resident = entries.clone();
    drop_event(&mut resident, |event| matches!(event, Event::Evicted(_)));
    assert_eq!(refusal(&store, &resident)?, (None, Fault::Contradicts { span: s(1), what: whole }));
    let mut twice = entries;
    let last = twice.last().cloned().ok_or("no record")?;
    twice.push(last);
    let what = "its tombstone does not fit where it was";
    assert_eq!(refusal(&store, &twice)?, (Some(3), Fault::Contradicts { span: s(1), what }));
    Ok(())
}

#[test]
fn nothing_leaves_that_no_record_brought() -> Outcome {
    let (store, mut entries) = log(evicted)?;
    // The span before it keeps the number free.
    drop_event(&mut entries, |event| matches!(event, Event::Externalized(record) if record.span == s(1)));
    let what = "it left before the store had it";
    assert_eq!(refusal(&store, &entries)?, (Some(2), Fault::Contradicts { span: s(1), what }));
    change(&mut entries, |event| match event {
        Event::Evicted(gone) => {
            gone.span = s(9);
            true
        }
        _ => false,
    });
    assert_eq!(refusal(&store, &entries)?, (Some(2), Fault::NoSpan { span: s(9) }));
    Ok(())
}

#[test]
fn nothing_leaves_a_lane_that_keeps_its_spans() -> Outcome {
    let (store, mut entries) = log(evicted)?;
    change(&mut entries, |event| match event {
        Event::Opened { lanes, .. } => lanes.get_mut(1).map(|lane| lane.pinned = true).is_some(),
        _ => false,
    });
    let what = "it left a lane whose spans never leave";
    assert_eq!(refusal(&store, &entries)?, (Some(2), Fault::Contradicts { span: s(1), what }));
    Ok(())
}

#[test]
fn a_summary_names_its_sources_and_its_depth() -> Outcome {
    let (store, entries) = log(summarized)?;
    let provenance = |what| Fault::Provenance { span: s(4), what };
    let (sources, depth) = ("it names no sources, or one twice", "its depth is not one more than that of its sources");
    let absent = "a summary takes its place, and it was not in the window";
    let cases: [(ForgeSummary, Fault); 10] = [
        (|_, sources, _| sources.clear(), provenance(sources)),
        (|_, sources, _| sources.push(s(9)), Fault::NoSpan { span: s(9) }),
        (|_, sources, _| sources.push(s(0)), Fault::NoSpan { span: s(0) }),
        (|_, sources, _| sources.reverse(), provenance(sources)),
        (|_, sources, _| sources.push(s(2)), provenance(sources)),
        (|_, _, depth| *depth = 0, provenance(depth)),
        (|_, _, depth| *depth = 2, provenance(depth)),
        (|summary, _, _| summary.tokens = 10_000, provenance("it is no smaller than its sources")),
        (|summary, _, _| summary.lane = 1, provenance("it is in a lane that holds no summaries")),
        (|summary, _, _| summary.sha256 = None, provenance("it is not the next span, or has no digest")),
    ];
    for (forge, fault) in cases {
        let mut forged = entries.clone();
        change(&mut forged, |event| match event {
            Event::Summarized { summary, sources, depth, .. } => {
                forge(summary, sources, depth);
                true
            }
            _ => false,
        });
        assert_eq!(refusal(&store, &forged)?, (Some(2), fault));
    }
    // A source that is a pointer already.
    let (store, mut entries) = log(|window| {
        evicted(window)?;
        let work = window.lanes().work.push("x".repeat(400))?;
        let lanes = window.lanes().externalize().wait()?;
        let short: SummaryText = ModelAnswer::new(Finish::Stop, "short").try_into()?;
        lanes.work.summarize(work, short, &lanes.recap).wait()?;
        Ok(())
    })?;
    change(&mut entries, |event| match event {
        Event::Summarized { sources, .. } => {
            sources.insert(0, s(1));
            true
        }
        _ => false,
    });
    assert_eq!(refusal(&store, &entries)?, (Some(4), Fault::Contradicts { span: s(1), what: absent }));
    Ok(())
}

#[test]
fn protected_text_has_no_summary() -> Outcome {
    let (store, mut entries) = log(summarized)?;
    change(&mut entries, |event| match event {
        Event::Externalized(record) if record.span == s(2) => {
            record.lane = 0;
            true
        }
        _ => false,
    });
    let what = "a source is not in the store, or in a lane that no summary replaces";
    assert_eq!(refusal(&store, &entries)?, (Some(2), Fault::Provenance { span: s(4), what }));
    Ok(())
}

#[test]
fn each_source_of_a_summary_has_its_tombstone() -> Outcome {
    let (store, mut entries) = log(summarized)?;
    drop_event(&mut entries, |event| matches!(event, Event::Evicted(gone) if gone.span == s(2)));
    let what = "a summary took its place, and no tombstone says so";
    assert_eq!(refusal(&store, &entries)?, (Some(2), Fault::Contradicts { span: s(2), what }));
    Ok(())
}

#[test]
fn sources_come_back_as_they_left() -> Outcome {
    let (store, entries) = log(|window| {
        summarized(window)?;
        window.lanes().recap.reground(s(4)).wait()?;
        Ok(())
    })?;
    let mut other = entries.clone();
    change(&mut other, |event| match event {
        Event::Regrounded { sources, .. } => {
            sources.push(s(3));
            true
        }
        _ => false,
    });
    let what = "its sources are not those that came back";
    assert_eq!(refusal(&store, &other)?, (Some(3), Fault::Provenance { span: s(4), what }));
    let mut twice = entries;
    let last = twice.last().cloned().ok_or("no record")?;
    twice.push(last);
    let what = "its sources come back, and it was not in the window";
    assert_eq!(refusal(&store, &twice)?, (Some(4), Fault::Contradicts { span: s(4), what }));
    Ok(())
}

#[test]
fn a_result_has_its_call() -> Outcome {
    let (store, entries) = log(|window| {
        let lanes = window.lanes();
        lanes.work.push(NewSpan::model("I run it.").calls(["call_1"]))?;
        lanes.work.push(NewSpan::tool("run", "done").answers("call_1"))?;
        drop(lanes.externalize().wait()?);
        Ok(())
    })?;
    let mut unasked = entries.clone();
    change(&mut unasked, |event| match event {
        Event::Externalized(SpanRecord { part: part @ Part::Answers(_), .. }) => {
            *part = Part::Answers("call_2".into());
            true
        }
        _ => false,
    });
    let what = "it is the result of a call that nobody made";
    assert_eq!(refusal(&store, &unasked)?, (None, Fault::Contradicts { span: s(2), what }));
    let mut unnamed = entries;
    unnamed.iter_mut().for_each(|entry| entry.names.clear());
    assert_eq!(refusal(&store, &unnamed)?, (Some(1), Fault::Unknown { what: "tool name" }));
    Ok(())
}

#[test]
fn an_abandoned_call_was_open_and_the_next_span_says_so() -> Outcome {
    let (store, entries) = log(|window| {
        let turn = window.lanes().work.push(NewSpan::model("I run it.").calls(["call_1"]))?;
        window.abandon(turn, "call_1", Abandonment::because("gone")?).wait()?;
        Ok(())
    })?;
    let forge = |forge: fn(&mut SpanRecord)| {
        let mut other = entries.clone();
        change(&mut other, |event| match event {
            Event::Abandoned { result, .. } => {
                forge(result);
                true
            }
            _ => false,
        });
        refusal(&store, &other)
    };
    let what = "a call was abandoned, and this is not what stands for it";
    let fault = |span| (Some(1), Fault::Contradicts { span, what });
    assert_eq!(forge(|result| result.part = Part::None)?, fault(s(2)));
    assert_eq!(forge(|result| result.sha256 = None)?, fault(s(2)));
    assert_eq!(forge(|result| result.span = s(3))?, fault(s(3)));
    let what = "it is the result of a call that nobody made";
    let other = forge(|result| result.part = Part::Lost(s(1), "call_2".into()))?;
    assert_eq!(other, (None, Fault::Contradicts { span: s(2), what }));
    Ok(())
}

#[test]
fn a_span_is_recorded_once_and_in_its_place() -> Outcome {
    let (store, entries) = log(evicted)?;
    let again = "it is recorded twice, and not the same";
    let before = "it begins before the span before it ends";
    let cases: [(Forge<SpanRecord>, SpanId, Fault); 5] = [
        (|span| span.span = s(1), s(2), Fault::Contradicts { span: s(1), what: again }),
        (|span| span.start = 0, s(2), Fault::Contradicts { span: s(2), what: before }),
        (|span| span.sha256 = None, s(2), Fault::Contradicts { span: s(2), what: "it has no digest" }),
        (|span| span.lane = 9, s(2), Fault::Unknown { what: "lane" }),
        (|span| span.span = s(0), s(2), Fault::NoSpan { span: s(0) }),
    ];
    for (forge, which, fault) in cases {
        let mut forged = entries.clone();
        change(&mut forged, |event| match event {
            Event::Externalized(span) if span.span == which => {
                forge(span);
                true
            }
            _ => false,
        });
        assert_eq!(refusal(&store, &forged)?, (Some(1), fault));
    }
    Ok(())
}

#[test]
fn a_damaged_number_does_not_fill_the_memory() -> Outcome {
    let (store, entries) = log(evicted)?;
    let far = s(1 << 60);
    let mut brought = entries.clone();
    change(&mut brought, |event| match event {
        Event::Externalized(span) if span.span == s(2) => {
            span.span = far;
            true
        }
        _ => false,
    });
    assert_eq!(refusal(&store, &brought)?, (Some(1), Fault::NoSpan { span: far }));
    let mut entered = entries.clone();
    entered.iter_mut().for_each(|entry| entry.spans = 1 << 60);
    assert_eq!(refusal(&store, &entered)?, (Some(0), Fault::Unreadable));
    let (store, mut written) = log(|window| {
        evicted(window)?;
        window.change_policy("p2").wait()?;
        Ok(())
    })?;
    if let Some(last) = written.last_mut() {
        last.events.push(Event::Booked { note: Note::Unchanged { at: 0, utilization: 0 }, written: Some(far) });
    }
    assert_eq!(refusal(&store, &written)?, (Some(3), Fault::Unreadable));
    // Each record a little more than the one before.
    let mut little = entries;
    let last = little.last().cloned().ok_or("no record")?;
    little.extend((1..=3).map(|more| Entry {
        spans: more << 19,
        events: vec![Event::Resumed { state: String::new(), clean: true }],
        ..last.clone()
    }));
    assert_eq!(refusal(&store, &little)?, (Some(5), Fault::Unreadable));
    Ok(())
}

#[test]
fn an_episode_begins_once() -> Outcome {
    let (store, entries) = log(evicted)?;
    let mut twice = entries.clone();
    let (first, last) = (twice.first().cloned().ok_or("no record")?, twice.last_mut().ok_or("no record")?);
    last.events.extend(first.events);
    assert_eq!(refusal(&store, &twice)?, (Some(2), Fault::Opening));
    assert_eq!(refusal(&store, entries.get(1..).unwrap_or_default())?, (Some(0), Fault::Opening));
    Ok(())
}

#[test]
fn records_of_another_version_are_named_so() -> Outcome {
    let (store, _) = log(evicted)?;
    let (newer, id) = (Arc::new(MemoryStore::default()), EpisodeId::new("e"));
    let mut record = Store::read(&store, &id, 0, 1)?.pop().ok_or("no record")?;
    record.truncate(record.len().saturating_sub(32));
    *record.first_mut().ok_or("no version")? = 9;
    let chain = Digest::of_two(beginning(&id).as_bytes(), &record);
    record.extend_from_slice(chain.as_bytes());
    Store::commit(&newer, &Batch::new(id, 0, Vec::new(), vec![record]))?;
    assert_eq!(refused(newer)?, (Some(0), Fault::Version { found: 9, supported: VERSION }));
    Ok(())
}

#[test]
fn what_comes_back_was_a_pointer() -> Outcome {
    let (store, mut entries) = log(evicted)?;
    if let Some(last) = entries.last_mut() {
        last.events.push(Event::Restored { span: s(2) });
    }
    let what = "it comes back, and was no pointer";
    assert_eq!(refusal(&store, &entries)?, (Some(2), Fault::Contradicts { span: s(2), what }));
    Ok(())
}

#[test]
fn what_is_redacted_says_why() -> Outcome {
    let (store, mut entries) = log(evicted)?;
    if let Some(last) = entries.last_mut() {
        last.events.push(Event::Redacted { spans: vec![s(2)], mutations: Vec::new(), authority: None });
    }
    let what = "it was removed for good, and no reason is given";
    assert_eq!(refusal(&store, &entries)?, (Some(2), Fault::Contradicts { span: s(2), what }));
    Ok(())
}
