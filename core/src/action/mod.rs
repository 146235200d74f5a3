//! What is done to the world outside: an action names the lanes that its correctness depends on, runs only on a permit,
//! and once only for its signature (rules R17 to R20).
//!
//! [`Window::permit`](crate::Window::permit) answers what may be done with a request now, by what the store has on record of
//! its [`Signature`], whatever window put it there:
//!
//! | on record | the answer | from there |
//! | --- | --- | --- |
//! | nothing, or an attempt that came to nothing | [`Fresh`](Permission::Fresh), or [`Denied`](Permission::Denied) where a required span is not in the window | [`Permit::run`]; [`bring_back`](Withheld::bring_back), [`accept_lossy`](Withheld::accept_lossy) |
//! | an outcome | [`Done`](Permission::Done), with it | [`repeat`](Withheld::repeat), with an [`Override`] |
//! | a failure without effect, or a refusal | [`Failed`](Permission::Failed) while that holds: until what it requires has changed, or the time that it names; a refusal for good | the same |
//! | an intent without an ending | [`Uncertain`](Permission::Uncertain): it crashed, timed out, was cancelled, or runs now | [`settle`](Withheld::settle), once somebody looked |
//!
//! An attempt claims its number in the same commit that records its intent, before it runs, and its ending after: both once
//! only across every process that shares the store. An attempt that came to nothing hides none before it that did, or may
//! have. A request that is to be another one needs a field that differs.

mod ask;
mod attempt;
pub mod canonical;
mod denial;
mod end;
mod error;
mod failure;
mod intend;
mod permission;
mod permit;
mod record;
mod signature;
mod withheld;

pub(crate) use self::record::{Ending, FailureRecord, Intent};
pub use self::{
    attempt::{Attempt, Done, FailedAttempt, Tried},
    canonical::{Bytes, Canon, Canonical},
    denial::{Denial, Held},
    end::Settle,
    error::{PermitError, RunError},
    failure::Failure,
    permission::{AcceptLossy, NotPermitted, Override, Permission, Settlement},
    permit::{Granted, Permit},
    signature::{NotASignature, Signature},
    withheld::{BringBack, Withheld},
};
use crate::{
    ContextState, Field, Lane,
    rule::{MayBeRequired, Open},
};

/// A request that changes the world outside. `#[derive(Action)]` writes it. Two types of the same name and fields are the same
/// request; what can change through a shared reference, as a `Cell`, is read when the permit is asked for and when it runs, and
/// must not change after.
pub trait Action: Canonical {
    /// The struct of the windows that can permit it.
    type State: ContextState;
    /// [`effect::Ordinary`] or [`effect::Destructive`].
    type Effect: effect::Effect;
    /// [`consent::NotNeeded`] or [`consent::Needed`].
    type Consent: consent::Consents;
    /// What records and messages call it, and what its signature begins with.
    const NAME: &'static str;
    /// The lanes whose spans must be in the window before it runs (rule R17).
    const REQUIRES: &'static [Requirement];

    /// Whether what the required lanes hold speaks of this very request: that `target` names the database that is to be
    /// dropped. Asked before a permit is given; the text of an error is what the refusal says.
    ///
    /// # Errors
    /// Says what does not agree.
    fn check(&self, held: &Held<'_>) -> Result<(), String> {
        let _ = held;
        Ok(())
    }

    /// The request in words, for whoever has to find out whether an attempt took effect: "refund of order 17". It goes on
    /// record with the intent, so leave out what must not be kept; the default says nothing.
    fn describe(&self) -> Option<String> {
        None
    }

    /// What tells the same request again, in every process and on every machine. O(its length). Permits compute it themselves, from
    /// the name and the canonical form.
    fn signature(&self) -> Signature {
        Signature::of(Self::NAME, self)
    }
}

/// The handles of a struct's lanes, and one of them.
type Handle<C, F> = for<'a> fn(&'a <C as ContextState>::Lanes<'static, (), Open>) -> &'a Lane<'static, (), F, Open>;

/// A lane that an action requires (rule R18): one of a protected kind, since only such text is kept word for word.
#[derive(Clone, Copy, Debug)]
pub struct Requirement {
    state: &'static str,
    lane: u16,
    name: &'static str,
}

impl Requirement {
    /// The lane that `handle` names: `Requirement::of::<Migration, _>(|lanes| &lanes.schema)`.
    pub const fn of<C: ContextState, F: Field>(handle: Handle<C, F>) -> Self
    where
        F::Kind: MayBeRequired<F>,
    {
        let _ = handle;
        Self { state: C::NAME, lane: F::AT.0, name: F::AT.1 }
    }

    /// The lane's number in `C`; none where it is a lane of another struct, or not protected.
    pub(crate) fn lane_of<C: ContextState>(&self) -> Option<u16> {
        let spec = C::LANES.get(usize::from(self.lane)).filter(|_| self.state == C::NAME)?;
        (spec.name() == self.name && spec.kind().is_protected()).then_some(self.lane)
    }
}

/// What an action does to the world.
pub mod effect {
    /// Whether an action needs first-hand evidence (rule R20).
    pub trait Effect: super::seal::Closed + 'static {}

    /// It can be made good.
    #[derive(Debug)]
    pub enum Ordinary {}

    /// It cannot be taken back: it runs on first-hand evidence only.
    #[derive(Debug)]
    pub enum Destructive {}

    impl Effect for Ordinary {}
    impl Effect for Destructive {}
}

/// Whether a person has to agree to an action.
pub mod consent {
    /// Whether an action needs a person's consent.
    pub trait Consents: super::seal::Closed + 'static {}

    /// Nobody has to be asked.
    #[derive(Debug)]
    pub enum NotNeeded {}

    /// A person has to say so, once for each time it runs.
    #[derive(Debug)]
    pub enum Needed {}

    impl Consents for NotNeeded {}
    impl Consents for Needed {}
}

mod seal {
    use super::{consent, effect};

    #[diagnostic::on_unimplemented(
        message = "`{Self}` is no effect and no consent of an action: those are named by keepspan alone",
        label = "name one of them, as `effect::Destructive`; `#[derive(Action)]` does so by the action's attribute"
    )]
    pub trait Closed {}
    impl Closed for effect::Ordinary {}
    impl Closed for effect::Destructive {}
    impl Closed for consent::NotNeeded {}
    impl Closed for consent::Needed {}
}
