//! The window's side of a replay: spans in, and out without a model.

use std::sync::Arc;

use keepspan::{
    EvictError, FallBackError, Fallback, FellBack, LargestToolOutput, NewSpan, OldestFirst, Pass, PushError, Refusal,
    SpanId, SupersededReads, Tombstone, Window, store::Store,
};

use super::state::Conversation;
use crate::args::Policy;

/// What a session's spans go through.
pub type Session<St> = Window<Conversation, St>;

/// Pushes a span; the result of a call that never entered is an orphan.
///
/// # Errors
/// As [`keepspan::Lanes::route`].
pub fn push<St>(window: &mut Session<St>, span: NewSpan, answers: Option<&Arc<str>>) -> Result<SpanId, PushError> {
    match (window.lanes().route(span.clone()), answers) {
        (Err(PushError::Unasked { .. }), Some(call)) => window.lanes().route(span.orphan(call.clone())),
        (pushed, _) => pushed,
    }
}

/// Frees space as the policy says, after a refusal of the gate.
///
/// # Errors
/// As [`Refusal::fall_back`].
pub fn fall_back<St: Store>(refusal: Refusal<'_, Conversation, St>, policy: Policy) -> Result<FellBack, FallBackError> {
    match policy {
        Policy::Oldest => refusal.fall_back(OldestFirst).wait(),
        Policy::Largest => refusal.fall_back(LargestToolOutput).wait(),
        Policy::Superseded => refusal.fall_back(SupersededReads).wait(),
    }
}

/// As [`fall_back`], after a pass that no model takes.
///
/// # Errors
/// As [`Pass::fall_back`].
pub fn decline<St: Store>(pass: Pass<'_, Conversation, St>, policy: Policy) -> Result<FellBack, FallBackError> {
    match policy {
        Policy::Oldest => pass.fall_back(OldestFirst).wait(),
        Policy::Largest => pass.fall_back(LargestToolOutput).wait(),
        Policy::Superseded => pass.fall_back(SupersededReads).wait(),
    }
}

/// The name of a policy's fallback.
pub fn name(policy: Policy) -> &'static str {
    match policy {
        Policy::Oldest => OldestFirst::NAME,
        Policy::Largest => LargestToolOutput::NAME,
        Policy::Superseded => SupersededReads::NAME,
    }
}

/// Evicts whatever may leave, protected spans too, until the window takes at most `goal` tokens or nothing is left.
///
/// # Errors
/// When a pointer could not be counted, or the store failed.
pub fn leave<St: Store>(window: &mut Session<St>, goal: u64) -> Result<Vec<Tombstone>, EvictError> {
    let pointer = window.prices().pointer;
    let lanes = window.lanes().externalize().wait()?;
    let mut left = Vec::new();
    macro_rules! from {
        ($($lane:ident),*) => { $(
            for span in lanes.$lane.resident() {
                if lanes.utilization() <= goal {
                    return Ok(left);
                }
                if lanes.$lane.tokens(span).is_none_or(|count| u64::from(count.tokens()) <= pointer) {
                    continue;
                }
                match lanes.$lane.evict(span).wait() {
                    Ok(tombstones) => left.extend(tombstones),
                    // It left with another, or its exchange waits for a result.
                    Err(EvictError::Selection(_)) => {}
                    Err(error) => return Err(error),
                }
            }
        )* };
    }
    from!(observed, said, failed, effects);
    Ok(left)
}
