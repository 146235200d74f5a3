//! Events for `tracing`, with the OpenTelemetry GenAI names where they exist and `keepspan.` names elsewhere. Ids and
//! counts only: a span's text never leaves through here.

use crate::{Budget, EpisodeId, PruneEvent};

/// Tells a subscriber what happened to the window's size. A refusal is a warning, the rest is information.
#[cfg(feature = "tracing")]
pub(crate) fn emit(episode: &EpisodeId, budget: Option<&Budget>, event: &PruneEvent) {
    let limit = budget.map_or(0, |budget| budget.limit());
    let headroom = |after: u64| i64::try_from(i128::from(limit).saturating_sub(i128::from(after))).unwrap_or(i64::MAX);
    match event {
        PruneEvent::Passed(pass) => tracing::info!(
            target: "keepspan::prune",
            {
            gen_ai.conversation.id = %episode,
            gen_ai.conversation.compacted = true,
            keepspan.strategy = "model",
            keepspan.before.tokens = pass.before,
            keepspan.after.tokens = pass.after,
            keepspan.headroom.tokens = headroom(pass.after),
            keepspan.gross.tokens = pass.gross,
            keepspan.net.tokens = pass.net(),
            keepspan.index.tokens = pass.index,
            keepspan.rationale.tokens = pass.rationale,
            keepspan.pointers.tokens = pass.pointers,
            keepspan.cache.tokens = pass.cache,
            keepspan.evicted.count = pass.spans,
            },
            "pass applied"
        ),
        PruneEvent::Unchanged { utilization, .. } => tracing::info!(
            target: "keepspan::prune",
            {
            gen_ai.conversation.id = %episode,
            gen_ai.conversation.compacted = false,
            keepspan.strategy = "model",
            keepspan.after.tokens = *utilization,
            keepspan.headroom.tokens = headroom(*utilization),
            },
            "pass changed nothing"
        ),
        PruneEvent::Decided { utilization, index, rationale, accepted, .. } => tracing::info!(
            target: "keepspan::prune",
            {
                gen_ai.conversation.id = %episode,
                keepspan.strategy = "model",
                keepspan.after.tokens = *utilization,
                keepspan.headroom.tokens = headroom(*utilization),
                keepspan.index.tokens = *index,
                keepspan.rationale.tokens = *rationale,
                keepspan.accepted = *accepted,
            },
            "answer read"
        ),
        PruneEvent::Refused { utilization, reason, .. } => tracing::warn!(
            target: "keepspan::prune",
            {
            gen_ai.conversation.id = %episode,
            gen_ai.conversation.compacted = false,
            keepspan.refused.reason = *reason,
            keepspan.after.tokens = *utilization,
            keepspan.headroom.tokens = headroom(*utilization),
            },
            "pass refused"
        ),
        PruneEvent::Undone { before, after, .. } => tracing::info!(
            target: "keepspan::prune",
            {
                gen_ai.conversation.id = %episode,
                keepspan.before.tokens = *before,
                keepspan.after.tokens = *after,
                keepspan.headroom.tokens = headroom(*after),
            },
            "undone"
        ),
        PruneEvent::FellBack { strategy, before, after, spans, .. } => tracing::info!(
            target: "keepspan::prune",
            {
            gen_ai.conversation.id = %episode,
            gen_ai.conversation.compacted = true,
            keepspan.strategy = *strategy,
            keepspan.before.tokens = *before,
            keepspan.after.tokens = *after,
            keepspan.headroom.tokens = headroom(*after),
            keepspan.evicted.count = *spans,
            },
            "fell back"
        ),
    }
}

/// Without the feature nobody listens.
#[cfg(not(feature = "tracing"))]
pub(crate) fn emit(_: &EpisodeId, _: Option<&Budget>, _: &PruneEvent) {}
