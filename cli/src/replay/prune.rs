//! The window's side of a replay: spans in, and out without a model.

use std::{collections::HashSet, sync::Arc};

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
pub fn push<St>(window: &mut Session<St>, span: &NewSpan, answers: Option<&Arc<str>>) -> Result<SpanId, PushError> {
    match (window.lanes().route(span.clone()), answers) {
        (Err(PushError::Unasked { .. }), Some(call)) => window.lanes().route(span.clone().orphan(call.clone())),
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

/// Spans that leave in one commit, where all leave.
const TOGETHER: usize = 64;

/// Evicts whatever may leave, protected spans too, until the window takes at most `goal` tokens or nothing is left. What is
/// no larger than a pointer stays.
///
/// # Errors
/// When a pointer could not be counted, or the store failed.
pub fn leave<St: Store>(window: &mut Session<St>, goal: u64) -> Result<Vec<Tombstone>, EvictError> {
    let pointer = window.prices().pointer;
    let pending: HashSet<_> = window.open_calls().into_iter().map(|call| call.span).collect();
    let lanes = window.lanes().externalize().wait()?;
    let mut left = Vec::new();
    // No more than has to leave, and each takes others along.
    let together = if goal == 0 { TOGETHER } else { 1 };
    macro_rules! from {
        ($($lane:ident),*) => { $(
            let mut spans = lanes.$lane.resident();
            let tokens = |span: &SpanId| lanes.$lane.tokens(*span).map_or(0, |count| u64::from(count.tokens()));
            spans.retain(|span| tokens(span) > pointer && !pending.contains(span));
            let mut rest = spans.as_slice();
            while lanes.utilization() > goal && !rest.is_empty() {
                let (now, later) = rest.split_at_checked(together).unwrap_or((rest, &[]));
                rest = later;
                // What left with another is not there any more.
                let now: Vec<_> = now.iter().copied().filter(|span| lanes.$lane.content(*span).is_some()).collect();
                match lanes.$lane.evict(now.as_slice()).wait() {
                    Ok(tombstones) => left.extend(tombstones),
                    // The exchange of one of them waits for a result, or none is there any more.
                    Err(EvictError::Selection(_)) => {
                        for span in now {
                            match lanes.$lane.evict(span).wait() {
                                Ok(tombstones) => left.extend(tombstones),
                                Err(EvictError::Selection(_)) => {}
                                Err(error) => return Err(error),
                            }
                        }
                    }
                    Err(error) => return Err(error),
                }
            }
        )* };
    }
    from!(observed, said, failed, effects);
    Ok(left)
}
