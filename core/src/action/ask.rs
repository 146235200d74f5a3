//! Asking: may this action run, and was it tried before (rules R17, R19).

use super::{
    Action, Attempt, Done, Failure, Permission, PermitError, Settle, Settlement, Signature, Tried, Withheld,
    attempt::Latest,
    denial::{lanes, still_holds},
    end::{End, Ended, Noted, failed},
    record::{Attempts, Intent},
    withheld::Asked,
};
use crate::{
    CommitError, Content, ContextState, Digest, Window,
    journal::now,
    store::{AsyncStore, Store, StoreError, fetch},
    window::{Shared, Step, at_once, run, step::content},
};

impl<C: ContextState, St> Window<C, St> {
    /// Asks whether an action may run now: whether it was done already, whatever window did it, and whether every span of
    /// every lane that it requires is in this one. O(spans of those lanes) and one look-up in the store; for a request that was
    /// attempted before, O(log attempts) more.
    ///
    /// ```
    /// # use keepspan::{ContextState, Episode, Failure, Granted, NewSpan, Permission, Spans, Window, action, store::MemoryStore};
    /// # use keepspan::{action::{Canon, Canonical, Requirement}, Action};
    /// # #[derive(ContextState)]
    /// # struct Migration { #[precondition(otherwise)] schema: Spans }
    /// # struct AlterColumn { table: String }
    /// # impl Canonical for AlterColumn { fn canonical(&self, form: &mut Canon) { self.table.canonical(form) } }
    /// # impl Action for AlterColumn {
    /// #     type State = Migration; type Effect = action::effect::Destructive; type Consent = action::consent::NotNeeded;
    /// #     const NAME: &'static str = "AlterColumn";
    /// #     const REQUIRES: &'static [Requirement] = &[Requirement::of::<Migration, _>(|lanes| &lanes.schema)];
    /// # }
    /// // Takes a `Granted`, so nothing but a permit can run it.
    /// fn alter(request: Granted<'_, AlterColumn>) -> Result<String, Failure> {
    ///     Ok(format!("{} altered", request.table))
    /// }
    ///
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let mut window = Window::<Migration, _>::open(MemoryStore::new(), Episode::new("e", "p"))?;
    /// let id = window.lanes().schema.push(NewSpan::tool("describe", "users.id BIGINT"))?;
    /// let evidence = window.lanes().schema.cite(id)?;
    ///
    /// let action = AlterColumn { table: "users".into() };
    /// let permit = window.permit(&action)?.fresh()?;
    /// let done = permit.justified_by(&evidence)?.run(alter)?;
    /// assert_eq!(done.text(), Some("users altered"));
    ///
    /// // The same request again, in this or any other process: not run, and its outcome given.
    /// match window.permit(&action)? {
    ///     Permission::Done(done) => assert_eq!(done.text(), Some("users altered")),
    ///     other => unreachable!("{other:?}"),
    /// }
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`PermitError`]: the store failed, or a commit of this window is in doubt.
    pub fn permit<'w, A: Action<State = C>>(&'w mut self, action: &'w A) -> Result<Permission<'w, A, St>, PermitError>
    where
        St: Store,
    {
        at_once(self.permit_async(action))
    }

    /// As [`permit`](Self::permit), on a store that answers later.
    ///
    /// # Errors
    /// As [`permit`](Self::permit).
    pub async fn permit_async<'w, A: Action<State = C>>(
        &'w mut self,
        action: &'w A,
    ) -> Result<Permission<'w, A, St>, PermitError>
    where
        St: AsyncStore,
    {
        let shared = &self.shared;
        shared.lock().is_idle()?;
        let lanes = lanes::<A>()?;
        let signature = Signature::of(A::NAME, action);
        let (number, tried) = tried(shared, signature).await?;
        let (attempt, repeats, lossy, before) = (number, None, None, None);
        let mut asked = Box::new(Asked { shared, action, signature, lanes, attempt, before, repeats, lossy });
        Ok(match tried {
            Tried::Done(why) => Permission::Done(Withheld { asked, why }),
            Tried::Failed(why) => Permission::Failed(Withheld { asked, why }),
            Tried::Uncertain(why) => Permission::Uncertain(Withheld { asked, why }),
            Tried::Never { before } => {
                asked.before = before;
                asked.attempt = number.saturating_add(1);
                match asked.granted() {
                    Ok(permit) => Permission::Fresh(permit),
                    Err(denied) => Permission::Denied(denied),
                }
            }
        })
    }

    /// What is known of a request, by its signature, whatever window attempted it: before a tool call, whether it failed,
    /// why, and under which versions of what it depends on. As many look-ups in the store as for a [`permit`](Self::permit).
    ///
    /// # Errors
    /// [`PermitError`]: the store failed.
    pub fn tried(&self, signature: Signature) -> Result<Tried, PermitError>
    where
        St: Store,
    {
        at_once(self.tried_async(signature))
    }

    /// As [`tried`](Self::tried), on a store that answers later.
    ///
    /// # Errors
    /// As [`tried`](Self::tried).
    pub async fn tried_async(&self, signature: Signature) -> Result<Tried, PermitError>
    where
        St: AsyncStore,
    {
        Ok(tried(&self.shared, signature).await?.1)
    }

    /// Attempts of this episode that its log has no outcome of, oldest first by their records: what a process that stopped, a
    /// time-out or a cancelled future left behind, and what is running now. Another window may have settled one meanwhile,
    /// which [`tried`](Self::tried) knows. O(such attempts).
    pub fn unsettled(&self) -> Vec<Attempt> {
        let contents = self.shared.lock();
        let attempt = |(&(signature, number), (intent, why)): (&(Digest, u64), &(Intent, Option<String>))| Attempt {
            why: why.clone(),
            ..Attempt::of(Signature::from_digest(signature), number, intent.clone())
        };
        let mut attempts: Vec<_> = contents.unsettled.iter().map(attempt).collect();
        attempts.sort_by_key(Attempt::record);
        attempts
    }

    /// Puts on record what was found out about an attempt that is uncertain: that it took effect, with its outcome, or that it
    /// did not, and then the action is fresh again. One commit.
    ///
    /// # Errors
    /// [`CommitError::Claimed`](crate::CommitError::Claimed) where it ended meanwhile, or was settled by another window; nothing was written then.
    pub fn settle(&mut self, attempt: &Attempt, settlement: Settlement) -> Step<'_, St, Settle> {
        Step::new(&self.shared, Settle::of(attempt, settlement))
    }

    /// Puts on record that an action failed without effect, or that somebody refused it, where no permit ran it: from now on
    /// the same request [fails](Permission::Failed) until that has changed, in every window of the store. One commit.
    ///
    /// # Errors
    /// [`PermitError`]: the failure is not [without effect](Failure::without_effect) or a [refusal](Failure::refused); the
    /// request was done already; an attempt is uncertain and must be settled first; the store failed.
    pub fn note_failure<A: Action<State = C>>(&mut self, action: &A, failure: Failure) -> Result<(), PermitError>
    where
        St: Store,
    {
        at_once(self.note_failure_async(action, failure))
    }

    /// As [`note_failure`](Self::note_failure), on a store that answers later.
    ///
    /// # Errors
    /// As [`note_failure`](Self::note_failure).
    pub async fn note_failure_async<A: Action<State = C>>(
        &mut self,
        action: &A,
        failure: Failure,
    ) -> Result<(), PermitError>
    where
        St: AsyncStore,
    {
        if failure.is_uncertain() {
            return Err(PermitError::Unknown { action: A::NAME });
        }
        let lanes = lanes::<A>()?;
        let signature = Signature::of(A::NAME, action);
        let (number, tried) = tried(&self.shared, signature).await?;
        match tried {
            Tried::Uncertain(attempt) => return Err(PermitError::Unsettled(Box::new(attempt))),
            Tried::Done(done) => return Err(PermitError::Done(Box::new(done))),
            Tried::Never { .. } | Tried::Failed(_) => {}
        }
        let how = Ended::Failed(failed(&failure, &lanes, &self.shared.lock()));
        let intent = Intent::of(action, self.shared.lock().episode.clone());
        let attempt = Attempt::of(signature, number.saturating_add(1), intent);
        run(&self.shared, Noted(End::of(&attempt, how))).await?;
        Ok(())
    }
}

/// What is known of a request, with the number of its attempts.
async fn tried<St: AsyncStore>(shared: &Shared<St>, signature: Signature) -> Result<(u64, Tried), StoreError> {
    let Attempts { latest, before } = Attempts::of(&shared.store, &signature).await?;
    let Some(latest) = latest else { return Ok((0, Tried::Never { before: None })) };
    let number = latest.number;
    let mut failed = None;
    // An attempt that came to nothing says nothing of one before it that did not.
    let [first, then] = if latest.came_to_nothing() { [before, Some(latest)] } else { [Some(latest), None] };
    for attempt in [first, then].into_iter().flatten() {
        let tried = match Latest::of(signature, attempt) {
            Latest::Open(attempt) => {
                let unsettled = &shared.lock().unsettled;
                let known = unsettled.get(&(*signature.digest(), attempt.number));
                let why = known.and_then(|(_, why)| why.clone());
                Tried::Uncertain(Attempt { why, ..attempt })
            }
            Latest::Failed(failed) if still_holds(&failed.failure, &shared.lock(), now()) => Tried::Failed(failed),
            Latest::Done { attempt, sha256, text, time, how } => {
                let content = outcome(&shared.store, sha256).await?.map(|bytes| content(bytes, text));
                Tried::Done(Done { attempt, content, sha256, time, how })
            }
            Latest::Failed(lapsed) => {
                failed = Some(lapsed);
                continue;
            }
            Latest::NotDone => continue,
        };
        return Ok((number, tried));
    }
    Ok((number, Tried::Never { before: failed }))
}

/// Puts on record that an action was done although its attempt was settled as not done while it ran: as one more attempt,
/// since no claim is taken back. None where that could not be done, or is on record already.
pub(super) async fn done_after_all<St: AsyncStore>(
    shared: &Shared<St>,
    attempt: &Attempt,
    content: Content,
) -> Option<Done> {
    // Somebody may begin the next attempt meanwhile, and then it is one after that.
    loop {
        let (number, known) = tried(shared, attempt.signature).await.ok()?;
        if let Tried::Done(_) = known {
            return None;
        }
        let how = Ended::Done(content.clone(), Some("it ran to its end after it was settled as not done".to_owned()));
        let again = Attempt { number: number.saturating_add(1), ..attempt.clone() };
        match run(shared, Noted(End::of(&again, how))).await {
            Ok(()) => break,
            Err(CommitError::Claimed { .. }) => {}
            Err(_) => return None,
        }
    }
    match tried(shared, attempt.signature).await.ok()?.1 {
        Tried::Done(done) => Some(done),
        _ => None,
    }
}

/// Opens the attempt once more, as another one, that was settled as not done while it ran and failed so that nobody knows: it
/// is uncertain, whatever was found out before it ended. As well as it can be done: what is on record of it says so in any case.
pub(super) async fn doubted_after_all<St: AsyncStore>(shared: &Shared<St>, attempt: &Attempt) {
    while let Ok((number, Tried::Never { .. } | Tried::Failed(_))) = tried(shared, attempt.signature).await {
        let end = Ended::Doubted("it ran to its end after it was settled as not done".to_owned());
        let attempt = Attempt { number: number.saturating_add(1), ..attempt.clone() };
        if !matches!(run(shared, Noted(End::of(&attempt, end))).await, Err(CommitError::Claimed { .. })) {
            return;
        }
    }
}

/// What an action gave; none where that was redacted.
async fn outcome<St: AsyncStore>(store: &St, sha256: Digest) -> Result<Option<Vec<u8>>, StoreError> {
    match fetch(store, &[sha256]).await {
        Ok(found) => Ok(found.into_iter().next()),
        Err(StoreError::Sealed { .. }) => Ok(None),
        Err(error) => Err(error),
    }
}
