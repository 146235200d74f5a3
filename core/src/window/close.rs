//! Close: the end that leaves nothing open, so that a later owner need not doubt the record (rule R21).

use super::{Externalize, Operation, Shared, Step, Window, contents::Contents, step, step::Plan};
use crate::{
    CloseError, CommitError, ContextState, Digest, SpanId, TokenCounter,
    journal::Event,
    store::{AsyncStore, Store},
};

/// Writes what the store does not have, and that this is all.
struct Close<C>(Externalize<C>);

impl<'w, C: ContextState + 'w, St: 'w> Operation<'w, St> for Close<C> {
    type Output = ();
    type Error = CommitError;
    type Effect = Vec<(SpanId, Digest)>;

    fn plan(self, contents: &Contents, counter: &dyn TokenCounter) -> Result<Plan<Self::Effect>, CommitError> {
        let mut plan = <Externalize<C> as Operation<'w, St>>::plan(self.0, contents, counter)?;
        plan.events.push(Event::Closed);
        Ok(plan)
    }

    fn apply(effect: Self::Effect, fetched: Vec<Vec<u8>>, contents: &mut Contents, shared: &'w Shared<St>) {
        drop(<Externalize<C> as Operation<'w, St>>::apply(effect, fetched, contents, shared));
    }
}

impl<C: ContextState, St> Window<C, St> {
    /// Ends the work of this process in good order: externalizes what is left, records that this is all, and gives the store
    /// back. An episode that is resumed without it goes on as well, but whoever [asks](Self::ask) it for what it never saw
    /// is told that nobody [can know](crate::Doubt::Stopped): the process before may have seen more than is on record.
    ///
    /// # Errors
    /// [`CloseError`] has the window, as it was.
    pub fn close(self) -> Result<St, CloseError<C, St>>
    where
        St: Store,
    {
        step::at_once(self.close_async())
    }

    /// As [`close`](Self::close), on a store that answers later.
    ///
    /// # Errors
    /// As [`close`](Self::close).
    pub async fn close_async(self) -> Result<St, CloseError<C, St>>
    where
        St: AsyncStore,
    {
        match Step::new(&self.shared, Close::<C>(Externalize::new())).await {
            Ok(()) => Ok(self.into_store()),
            Err(error) => Err(CloseError { window: Box::new(self), error }),
        }
    }
}
