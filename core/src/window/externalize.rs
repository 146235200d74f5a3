//! Externalize: the only way from open to externalized lanes (rule R2).

use std::marker::PhantomData;

use super::{Lanes, Operation, Shared, contents::Contents, step::Plan};
use crate::{CommitError, ContextState, Digest, SpanId, TokenCounter, journal::Event, rule::Externalized, store::Blob};

/// Writes what the store does not have yet; see [`Lanes::externalize`]. Gives the externalized lanes.
pub struct Externalize<C>(PhantomData<fn() -> C>);

impl<C> Externalize<C> {
    pub(crate) const fn new() -> Self {
        Self(PhantomData)
    }
}

impl<C> std::fmt::Debug for Externalize<C> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Externalize")
    }
}

impl<'w, C: ContextState + 'w, St: 'w> Operation<'w, St> for Externalize<C> {
    type Output = Lanes<'w, C, St, Externalized>;
    type Error = CommitError;
    type Effect = Vec<(SpanId, Digest)>;

    fn plan(self, contents: &Contents, _: &dyn TokenCounter) -> Result<Plan<Self::Effect>, CommitError> {
        Ok(fresh_plan(contents))
    }

    fn apply(effect: Self::Effect, _: Vec<Vec<u8>>, contents: &mut Contents, shared: &'w Shared<St>) -> Self::Output {
        externalized(&effect, contents);
        Lanes::lend(shared)
    }
}

/// What the store does not have yet.
pub(crate) fn fresh_plan(contents: &Contents) -> Plan<Vec<(SpanId, Digest)>> {
    let mut plan = Plan::new(Vec::with_capacity(contents.fresh.len()));
    plan.events.reserve_exact(contents.fresh.len());
    plan.blobs.reserve_exact(contents.fresh.len());
    for &span in &contents.fresh {
        let Some((entry, content)) = contents.table.get(span).and_then(|entry| Some((entry, entry.content.as_ref()?)))
        else {
            continue;
        };
        let blob = Blob::new(content.clone());
        let digest = *blob.digest();
        plan.events.push(Event::Externalized(contents.span_record(span, entry, Some(digest))));
        plan.blobs.push((Some(span), blob));
        plan.effect.push((span, digest));
    }
    plan
}

/// The store has them now.
pub(crate) fn externalized(spans: &[(SpanId, Digest)], contents: &mut Contents) {
    for (span, digest) in spans {
        if let Some(entry) = contents.table.get_mut(*span) {
            entry.digest = *digest;
            entry.durable = true;
        }
    }
    let Contents { fresh, table, .. } = contents;
    fresh.retain(|span| table.get(*span).is_some_and(|entry| !entry.durable));
}
