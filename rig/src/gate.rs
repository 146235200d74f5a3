//! The last gate: what a request must hold before it is sent.

use std::collections::HashMap;

use keepspan::{Budget, ByteEstimate, ContextState, Message as Shown, Role, Shown as What, TokenCounter as _, Window};
use rig_core::{completion::CompletionRequest, transcript::validate_canonical};

use crate::{
    error::Stop,
    piece::{Held, counted, pieces},
    view::kind,
};

/// Checks a whole request against the window: what must not be lost is in it byte for byte, as often as in the window, its
/// calls are paired, and it fits. O(request and window).
///
/// # Errors
/// What of it does not hold.
pub(crate) fn check<C: ContextState, St>(window: &Window<C, St>, request: &CompletionRequest) -> Result<(), Stop> {
    validate_canonical(&request.chat_history)?;
    let shown = window.render();
    let pieces = pieces(&request.chat_history);
    let mut there = counted(&pieces);
    fits(window.budget(), &shown, &there, request)?;
    for message in shown.iter().filter(|message| message.seal_intact() != Some(false) && stays::<C>(message)) {
        let What::Span(span) = message.shown() else { continue };
        match there.get_mut(&(message.role() == Role::Assistant, held(message))).filter(|times| **times > 0) {
            Some(times) => *times = times.saturating_sub(1),
            None => return Err(Stop::Missing { span, lane: message.lane() }),
        }
    }
    Ok(())
}

/// Whether a message may not be missing while it is in the window.
fn stays<C: ContextState>(message: &Shown) -> bool {
    kind::<C>(message).is_none_or(|kind| kind.is_protected() || kind.attribute() == "instruction")
}

fn held(message: &Shown) -> Held<'_> {
    match message.content().as_text() {
        Some(text) => Held::Text(text.into()),
        None => Held::Bytes(message.content().as_bytes().to_vec()),
    }
}

/// What is in the window costs what it was counted as; the rest is estimated.
fn fits(
    budget: Option<Budget>,
    shown: &[Shown],
    there: &HashMap<(bool, Held<'_>), usize>,
    request: &CompletionRequest,
) -> Result<(), Stop> {
    let Some(budget) = budget else { return Ok(()) };
    let counted: HashMap<_, _> = shown.iter().map(|message| (held(message), u64::from(message.tokens()))).collect();
    let cost = |((_, held), times): (&(bool, Held<'_>), &usize)| {
        let tokens = counted.get(held).copied().unwrap_or_else(|| estimate(held));
        tokens.saturating_mul(u64::try_from(*times).unwrap_or(u64::MAX))
    };
    let messages = there.iter().map(cost).fold(0, u64::saturating_add);
    let tools = request.tools.iter().filter_map(|tool| serde_json::to_string(tool).ok());
    let documents = request.documents.iter().map(ToString::to_string);
    let beside = tools.chain(documents).map(|text| estimate(&Held::Text(text.into()))).fold(0, u64::saturating_add);
    let (fixed, limit) = (budget.fixed(), budget.limit());
    let needed = messages.saturating_add(beside.max(fixed));
    if needed > limit { Err(Stop::OverBudget { needed, limit, messages, beside, fixed }) } else { Ok(()) }
}

fn estimate(held: &Held<'_>) -> u64 {
    let count = match held {
        Held::Text(text) => ByteEstimate.text(text),
        Held::Bytes(bytes) => ByteEstimate.bytes(bytes),
    };
    count.map_or(u64::MAX, |count| u64::from(count.tokens()))
}
