//! A log entry in sentences, for the log and the report.

use std::collections::BTreeMap;

use keepspan::{
    PolicyVersion, PruneEvent, SpanId,
    audit::{Happening, History, LogEntry, SpanFacts},
};
use serde_json::Value;

use crate::{
    attempts::which,
    report::story::MarkKind,
    words::{count, ids, several, signed},
};

/// A sentence, and the row of the report's chart that it belongs in.
pub struct Told {
    pub mark: Option<MarkKind>,
    pub text: String,
}

fn told(mark: MarkKind, text: String) -> Told {
    Told { mark: Some(mark), text }
}

fn plain(text: String) -> Told {
    Told { mark: None, text }
}

/// What an entry says. Spans that did the same are told together.
pub fn entry(entry: &LogEntry) -> Vec<Told> {
    let mut all: Vec<_> = stored(&entry.happenings).into_iter().collect();
    all.extend(entry.happenings.iter().filter_map(happening));
    all.extend(left(&entry.happenings));
    all.extend(restored(&entry.happenings));
    all
}

fn stored(happenings: &[Happening]) -> Option<Told> {
    let stored =
        happenings.iter().filter_map(|one| if let Happening::Stored(facts) = one { Some(facts) } else { None });
    let (spans, tokens): (Vec<_>, Vec<_>) =
        stored.map(|facts: &SpanFacts| (facts.span.number(), u64::from(facts.tokens))).unzip();
    let tokens = tokens.into_iter().fold(0, u64::saturating_add);
    (!spans.is_empty()).then(|| plain(format!("externalized {} ({})", ids(&spans), several(tokens, "token"))))
}

/// What left for pointers. What left for a summary, and a summary that left for its sources, is told with those.
fn left(happenings: &[Happening]) -> Option<Told> {
    let gone =
        |span| happenings.iter().any(|one| matches!(one, Happening::Regrounded { summary, .. } if *summary == span));
    let left = |one: &Happening| match one {
        Happening::Left(tombstone) if tombstone.replaced_by().is_none() && !gone(tombstone.span()) => {
            Some((tombstone.span().number(), tombstone.tokens()))
        }
        _ => None,
    };
    let left: BTreeMap<_, _> = happenings.iter().filter_map(left).collect();
    let spans: Vec<_> = left.keys().copied().collect();
    let tokens = left.into_values().fold(0, u64::saturating_add);
    (!spans.is_empty()).then(|| told(MarkKind::Left, format!("evicted {} ({})", ids(&spans), several(tokens, "token"))))
}

fn restored(happenings: &[Happening]) -> Option<Told> {
    let spans = happenings
        .iter()
        .filter_map(|one| if let Happening::Restored { span } = one { Some(span.number()) } else { None });
    let mut spans: Vec<_> = spans.collect();
    spans.sort_unstable();
    (!spans.is_empty()).then(|| told(MarkKind::Back, format!("{} came back", ids(&spans))))
}

fn happening(happening: &Happening) -> Option<Told> {
    Some(match happening {
        Happening::Stored(_) | Happening::Left(_) | Happening::Restored { .. } => return None,
        Happening::Opened { state, policy: version, .. } => {
            plain(format!("opened `{state}` under policy {}", policy(version)))
        }
        Happening::Resumed { clean: true, .. } => told(MarkKind::Change, "resumed".to_owned()),
        Happening::Resumed { clean: false, .. } => {
            let lost = "resumed; the owner before did not close the window and may have lost what it had not committed";
            told(MarkKind::Change, lost.to_owned())
        }
        Happening::Closed => told(MarkKind::Change, "closed, with everything on record".to_owned()),
        Happening::Budget { limit: 0, .. } => plain("no budget".to_owned()),
        Happening::Budget { limit, trigger, fixed } => {
            plain(format!("budget {}, trigger {}, fixed {}", count(*limit), count(*trigger), count(*fixed)))
        }
        Happening::Summarized { summary, sources, escalation, .. } => {
            summarized(summary, sources, escalation.as_deref())
        }
        Happening::Regrounded { summary, sources } => {
            told(MarkKind::Back, format!("{summary} was re-grounded: {} came back", numbers(sources)))
        }
        Happening::Discarded { span, reason, .. } => {
            told(MarkKind::Removed, format!("{} was discarded: {reason}", span.span))
        }
        Happening::Redacted { spans, reason, authority, .. } => {
            let by = authority.as_ref().map(|authority| format!(" by {authority}")).unwrap_or_default();
            told(MarkKind::Removed, format!("{} redacted{by}: {reason}", numbers(spans)))
        }
        Happening::Abandoned { turn, call, result, reason } => {
            told(MarkKind::Change, format!("call `{call}` of {turn} was abandoned, {} says so: {reason}", result.span))
        }
        Happening::PolicyChanged { policy: version } => told(MarkKind::Change, format!("policy {}", policy(version))),
        Happening::Migrated { reason, lanes } => {
            let lanes: Vec<_> =
                lanes.iter().filter(|(from, to)| from != to).map(|(from, to)| format!("`{from}` is `{to}`")).collect();
            told(MarkKind::Change, format!("lanes migrated ({reason}): {}", lanes.join(", ")))
        }
        Happening::Pruning(event) => pruning(event),
        Happening::Intended { .. }
        | Happening::Done { .. }
        | Happening::Failed { .. }
        | Happening::NotDone { .. }
        | Happening::Doubted { .. } => action(happening)?,
        // What a later version of the library records.
        other => plain(format!("{other:?}")),
    })
}

/// What became of an action, and on what it was begun.
fn action(happening: &Happening) -> Option<Told> {
    Some(match happening {
        Happening::Intended {
            action, about, signature, attempt: number, evidence, consent, repeats, lossy, ..
        } => {
            let evidence = (!evidence.is_empty()).then(|| format!(", justified by {}", numbers(evidence)));
            let consent = consent.map(|span| format!(", with consent in {span}"));
            let repeats = repeats.as_ref().map(|reason| format!("; repeated: {reason}"));
            let lossy = lossy.as_ref().map(|reason| format!("; on a lossy window: {reason}"));
            let about = about.as_ref().map(|about| format!(" {about}")).unwrap_or_default();
            let more: String = [evidence, consent, repeats, lossy].into_iter().flatten().collect();
            told(MarkKind::Acted, format!("`{action}`{about} begins ({}){more}", which(*signature, *number)))
        }
        Happening::Done { action, signature, attempt: number, how, .. } => {
            let how = how.as_ref().map(|how| format!(", as was found out: {how}")).unwrap_or_default();
            told(MarkKind::Acted, format!("`{action}` was done ({}){how}", which(*signature, *number)))
        }
        Happening::Failed { action, signature, attempt: number, why, refused, shown_in, .. } => {
            let what = if *refused { "was refused" } else { "failed without effect" };
            let span = shown_in.map(|span| format!(" ({span})")).unwrap_or_default();
            told(MarkKind::Failed, format!("`{action}` {what} ({}): {why}{span}", which(*signature, *number)))
        }
        Happening::NotDone { action, signature, attempt: number, how, .. } => told(
            MarkKind::Failed,
            format!("`{action}` was not done ({}), as was found out: {how}", which(*signature, *number)),
        ),
        Happening::Doubted { action, signature, attempt: number, why, .. } => told(
            MarkKind::Uncertain,
            format!("`{action}` may have taken effect ({}): {why}", which(*signature, *number)),
        ),
        _ => return None,
    })
}

fn summarized(summary: &SpanFacts, sources: &[SpanId], escalation: Option<&str>) -> Told {
    let (span, tokens) = (summary.span, several(u64::from(summary.tokens), "token"));
    let why = escalation.map(|reason| format!("; a summary of summaries: {reason}")).unwrap_or_default();
    told(MarkKind::Left, format!("{span} summarizes {} in {tokens}{why}", numbers(sources)))
}

fn pruning(event: &PruneEvent) -> Told {
    match event {
        PruneEvent::Decided { index, rationale, accepted, .. } => {
            let what = if *accepted { "a model decided" } else { "a model's answer was refused" };
            plain(format!("{what}: {} tokens read, {} written", count(*index), count(*rationale)))
        }
        PruneEvent::Passed(pass) => told(
            MarkKind::Pass,
            format!(
                "a pass of the model took the request from {} to {} tokens: {} net",
                count(pass.before),
                count(pass.after),
                signed(pass.net())
            ),
        ),
        PruneEvent::Unchanged { .. } => plain("a pass of the model changed nothing".to_owned()),
        PruneEvent::Refused { utilization, reason, .. } => told(
            MarkKind::Refusal,
            format!("a pass was refused at {} tokens: {}", count(*utilization), reason.replace('_', " ")),
        ),
        PruneEvent::Undone { before, after, .. } => {
            told(MarkKind::Back, format!("a pass was undone: from {} to {} tokens", count(*before), count(*after)))
        }
        PruneEvent::FellBack { strategy, before, after, .. } => told(
            MarkKind::Fallback,
            format!("fallback `{strategy}` took the request from {} to {} tokens", count(*before), count(*after)),
        ),
        other => plain(format!("{other:?}")),
    }
}

/// What entered and is in no commit: the only thing that a log can lack.
pub fn gap(history: &History) -> Option<String> {
    let missing = history.missing();
    let text =
        format!("{} entered the window and never reached the store: the process ended before.", numbers(&missing));
    (!missing.is_empty()).then_some(text)
}

/// A policy version: its name, and the model and the prompt where they are known.
pub fn policy(version: &PolicyVersion) -> String {
    let fields = serde_json::to_value(version).unwrap_or_default();
    let field = |name: &str| fields.get(name).and_then(Value::as_str).map(|value| format!("{name} {value}"));
    let more: Vec<_> = [field("model"), field("prompt")].into_iter().flatten().collect();
    if more.is_empty() { version.name().to_owned() } else { format!("{} ({})", version.name(), more.join(", ")) }
}

/// Ids as a list.
pub fn numbers(spans: &[SpanId]) -> String {
    ids(&spans.iter().map(|span| span.number()).collect::<Vec<_>>())
}
