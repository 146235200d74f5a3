//! House policies as types: a team writes down once what its agents must keep to, and every struct names it, as
//! `#[context(policy = House)]`. What breaks the policy does not build.
//!
//! [`policy!`](crate::policy!) writes a policy; by hand it is an impl of [`Policy`] and one of [`Permits`] for each act.
//! A policy may stand under another, which it tightens and cannot loosen: what either forbids is forbidden, and the
//! terms of both are held.

mod chain;
mod error;
mod terms;

pub(crate) mod build;

pub(crate) use self::chain::{fault, max_decision};
pub use self::{chain::Link, error::PolicyError, terms::Terms};

/// What a team asks of every struct that names it. Only the crate that defines a policy can say what it
/// [permits](Permits).
pub trait Policy: 'static {
    /// The policy it stands under: [`Unrestricted`], or another one.
    type Under: Rules;
    /// What it asks of a struct.
    const TERMS: Terms;
}

/// Permits an act; `impl<A: Act> Permits<A> for House {}` permits all of them.
pub trait Permits<A: Act> {}

/// The policy of a struct that names none, and the one above every other: permits everything, asks nothing.
#[derive(Debug)]
pub enum Unrestricted {}

/// A policy with all that it stands under, or [`Unrestricted`].
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no policy",
    label = "write one with `policy!`, or implement `Policy`"
)]
pub trait Rules: seal::Rules + 'static {
    #[doc(hidden)]
    const CHAIN: Option<&'static Link>;
}

impl Rules for Unrestricted {
    const CHAIN: Option<&'static Link> = None;
}

#[diagnostic::do_not_recommend]
impl<P: Policy> Rules for P {
    const CHAIN: Option<&'static Link> = Some(&Link { terms: P::TERMS, under: <P::Under as Rules>::CHAIN });
}

/// The policy a state struct is under. The derive writes it.
pub trait Governed {
    /// What `#[context(policy = ..)]` names, or [`Unrestricted`].
    type Policy: Rules;
}

/// The policy permits the act `A` on `F`, a field of the struct `C` or the struct itself, and so does every policy that
/// it stands under.
#[diagnostic::on_unimplemented(
    message = "`{F}` is under the policy `{Self}`, which forbids `{A}`",
    label = "`{C}` declares `policy = {Self}`: keep to what it permits",
    note = "what a policy forbids stays forbidden in every policy under it; only the crate that defines it can permit more"
)]
pub trait Permitted<A: Act, F, C>: seal::Permits<A> {}
#[diagnostic::do_not_recommend]
impl<A: Act, F, C, P: seal::Permits<A>> Permitted<A, F, C> for P {}

/// What a policy can permit or forbid. The types are those that a call of the act names.
pub trait Act: seal::Act {}

macro_rules! acts {
    ($($act:ident),*) => {
        $(
            impl seal::Act for acts::$act {}
            impl Act for acts::$act {}
        )*
    };
}

/// For the code that [`policy!`](crate::policy!) writes.
#[doc(hidden)]
pub mod acts {
    pub use crate::{
        Authority, Escalation, FixedTemplate, LargestToolOutput, Mutation, OldestFirst, SupersededReads,
        action::{AcceptLossy, Override},
        tool::{Anthropic, Dynamic, Gemini, Mcp, OpenAiChat, OpenAiResponses, Static},
    };
}

// `ACTS` in `macros/src/policy/model.rs` is the same list; an act missing there is never permitted by `policy!`.
acts!(
    Escalation,
    Mutation,
    Authority,
    Override,
    AcceptLossy,
    OldestFirst,
    LargestToolOutput,
    SupersededReads,
    FixedTemplate,
    OpenAiChat,
    OpenAiResponses,
    Anthropic,
    Gemini,
    Mcp,
    Static,
    Dynamic
);

mod seal {
    use super::{Policy, Unrestricted};

    #[diagnostic::on_unimplemented(
        message = "`{Self}` is no act that a policy can permit: acts are named by keepspan alone",
        label = "name one of them, as `Escalation`"
    )]
    pub trait Act {}

    pub trait Rules {}
    impl Rules for Unrestricted {}
    impl<P: Policy> Rules for P {}

    /// Holds all along the chain. Private, since the field in `Permitted` is a type of the user's: without this they
    /// could write `impl Permitted<Escalation, their_field, TheirStruct> for TheirPolicy`.
    #[diagnostic::on_unimplemented(
        message = "`{Self}` forbids `{A}`, or a policy that it stands under does: `Permitted` is written by keepspan alone",
        label = "remove this impl; a policy says what it permits by `Permits`, in its own crate"
    )]
    pub trait Permits<A> {}
    #[cfg(not(keepspan_rule_off = "policy"))]
    mod chain {
        use super::super::{Act, Permits, Policy, Unrestricted};
        impl<A: Act> super::Permits<A> for Unrestricted {}
        #[diagnostic::do_not_recommend]
        impl<A: Act, P: Policy + Permits<A>> super::Permits<A> for P where P::Under: super::Permits<A> {}
    }
    #[cfg(keepspan_rule_off = "policy")]
    impl<A, P> Permits<A> for P {}
}
