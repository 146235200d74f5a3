//! The rules the compiler holds, one trait each. A refused call names the user's own field in its first line and says
//! what to do. Each trait has a private trait of its own above it: the field is a type of the user's, so without that
//! they could write `impl MayLeave<their_field> for Instruction`.
//!
//! `keepspan_rule_off` (with `keepspan_unsealed`) is set by the check in `ui-tests` alone: it takes one rule out, to show
//! that the cases of that rule fail because of it and nothing else.

use crate::{
    action::{
        consent::{Needed, NotNeeded},
        effect::{Destructive, Ordinary},
    },
    evidence::{Raw, SecondHand, Unbacked, Verified},
    kind::{
        Constraint, Derived, Evictable, Instruction, Invariant, NegativeResult, Pinned, Precondition, Protected,
        Rationale, ScopeQualifier,
    },
};

/// Lanes as lent by [`Window::lanes`](crate::Window::lanes): text may enter, nothing may leave.
#[derive(Debug)]
pub enum Open {}

/// Lanes whose every span is written, synced, read back and found equal (rule R2): spans may leave, no text may enter.
///
/// Only a store call mints this state, through [`Lanes::externalize`](crate::Lanes::externalize).
#[derive(Debug)]
pub enum Externalized {}

/// R1: nothing leaves the window before it is externalized.
#[diagnostic::on_unimplemented(
    message = "`{F}` is evicted before it was externalized: its `{K}` spans would be lost for good",
    label = "externalize first: `let lanes = lanes.externalize().wait()?;` (`.await?` on an async store)",
    note = "an evicted span is a pointer into the store, so the store has to hold it first"
)]
pub trait LeavesFrom<F, K>: seal::LeavesFrom {}
impl<F, K> LeavesFrom<F, K> for Externalized {}
#[cfg(keepspan_rule_off = "R1")]
impl<F, K> LeavesFrom<F, K> for Open {}

/// R1, R3: a summary takes the place of its sources, so those must be externalized as well.
#[diagnostic::on_unimplemented(
    message = "`{F}` is summarized before it was externalized: its `{K}` spans would be lost for good",
    label = "externalize first: `let lanes = lanes.externalize().wait()?;` (`.await?` on an async store)",
    note = "a summary stands for spans that the store holds; without them nothing could be read again"
)]
pub trait SummarizedFrom<F, K>: seal::SummarizedFrom {}
impl<F, K> SummarizedFrom<F, K> for Externalized {}
#[cfg(keepspan_rule_off = "R1")]
impl<F, K> SummarizedFrom<F, K> for Open {}

/// R2: text enters open lanes only, so that an externalized window stays externalized.
#[diagnostic::on_unimplemented(
    message = "`{F}` is pushed to while the lanes are externalized: the new span would not be in the store",
    label = "take open lanes again: `let lanes = window.lanes();`",
    note = "pushing ends the externalized state; externalize again before the next eviction"
)]
pub trait EntersWhile<F>: seal::EntersWhile {}
impl<F> EntersWhile<F> for Open {}
#[cfg(keepspan_rule_off = "R2")]
impl<F> EntersWhile<F> for Externalized {}

/// R2, R9: a pass is asked for when everything it could evict is in the store.
#[diagnostic::on_unimplemented(
    message = "`{C}` is pruned before it was externalized: what a model chooses would be lost for good",
    label = "externalize first: `let lanes = lanes.externalize().wait()?;` (`.await?` on an async store)",
    note = "a pass evicts to pointers into the store, so the store has to hold the spans first"
)]
pub trait PrunesFrom<C>: seal::PrunesFrom {}
impl<C> PrunesFrom<C> for Externalized {}
#[cfg(keepspan_rule_off = "R9")]
impl<C> PrunesFrom<C> for Open {}

/// The kinds whose spans may leave at all: not `#[instruction]`, nothing `pinned`.
#[diagnostic::on_unimplemented(
    message = "`{F}` holds `{Self}` spans, which never leave the window",
    label = "evict from an `#[evictable]` lane instead",
    note = "`#[instruction]` and `pinned` lanes are kept in the window for the whole episode"
)]
pub trait MayLeave<F>: seal::MayLeave {}
impl<F> MayLeave<F> for Precondition {}
impl<F> MayLeave<F> for Invariant {}
impl<F> MayLeave<F> for Constraint {}
impl<F> MayLeave<F> for NegativeResult {}
impl<F> MayLeave<F> for ScopeQualifier {}
impl<F> MayLeave<F> for Evictable {}
impl<F> MayLeave<F> for Derived {}
// Held back by `Candidate` below, with words of its own.
impl<F> MayLeave<F> for Rationale {}
#[cfg(keepspan_rule_off = "keep")]
impl<F> MayLeave<F> for Instruction {}
#[cfg(keepspan_rule_off = "keep")]
#[diagnostic::do_not_recommend]
impl<F, K: Protected> MayLeave<F> for Pinned<K> {}

/// R13: rationales are never candidates.
#[diagnostic::on_unimplemented(
    message = "`{F}` holds what pruning itself wrote, and a `#[rationale]` is never a candidate for pruning",
    label = "choose spans of another lane; a non-model policy clears rationales",
    note = "a pruner that prunes its own decisions feeds on itself and frees nothing"
)]
pub trait Candidate<F>: seal::Candidate {}
impl<F> Candidate<F> for Instruction {}
impl<F> Candidate<F> for Precondition {}
impl<F> Candidate<F> for Invariant {}
impl<F> Candidate<F> for Constraint {}
impl<F> Candidate<F> for NegativeResult {}
impl<F> Candidate<F> for ScopeQualifier {}
impl<F> Candidate<F> for Evictable {}
impl<F> Candidate<F> for Derived {}
#[diagnostic::do_not_recommend]
impl<F, K: Protected> Candidate<F> for Pinned<K> {}
#[cfg(keepspan_rule_off = "R13")]
impl<F> Candidate<F> for Rationale {}

/// R3: protected text is never replaced by a paraphrase.
#[diagnostic::on_unimplemented(
    message = "`{F}` is kept word for word: a summary cannot stand in for its `{Self}` spans",
    label = "keep the text, or evict it to a pointer: `lanes.{F}.evict(id)`",
    note = "summaries drop qualifiers; only `#[evictable]` spans may be replaced by one"
)]
pub trait Replaceable<F>: seal::Replaceable {}
impl<F> Replaceable<F> for Evictable {}
// Held back by `FirstHand` below, with words of its own.
impl<F> Replaceable<F> for Derived {}
#[cfg(keepspan_rule_off = "R3")]
mod paraphrased {
    use super::*;
    impl<F> Replaceable<F> for Instruction {}
    impl<F> Replaceable<F> for Precondition {}
    impl<F> Replaceable<F> for Invariant {}
    impl<F> Replaceable<F> for Constraint {}
    impl<F> Replaceable<F> for NegativeResult {}
    impl<F> Replaceable<F> for ScopeQualifier {}
    impl<F> Replaceable<F> for Rationale {}
    #[diagnostic::do_not_recommend]
    impl<F, K: Protected> Replaceable<F> for Pinned<K> {}
}

/// R4: a summary is not summarized again.
#[diagnostic::on_unimplemented(
    message = "`{F}` holds summaries, and a summary is not summarized again: re-ground instead",
    label = "bring the sources back: `lanes.{F}.reground(id)`, then summarize those",
    note = "each further summary drops qualifiers that the last one kept; `escalate` is the explicit, logged way out"
)]
pub trait FirstHand<F>: seal::FirstHand {}
impl<F> FirstHand<F> for Instruction {}
impl<F> FirstHand<F> for Precondition {}
impl<F> FirstHand<F> for Invariant {}
impl<F> FirstHand<F> for Constraint {}
impl<F> FirstHand<F> for NegativeResult {}
impl<F> FirstHand<F> for ScopeQualifier {}
impl<F> FirstHand<F> for Evictable {}
impl<F> FirstHand<F> for Rationale {}
#[diagnostic::do_not_recommend]
impl<F, K: Protected> FirstHand<F> for Pinned<K> {}
#[cfg(keepspan_rule_off = "R4")]
impl<F> FirstHand<F> for Derived {}

/// R5: a summary exists only with its sources, so nothing is pushed into a derived lane.
#[diagnostic::on_unimplemented(
    message = "`{F}` holds summaries with their sources; text cannot be pushed into a `#[derived]` lane",
    label = "make one from its sources: `lanes.work.summarize(ids, text, &lanes.{F})`",
    note = "a summary without sources could not be checked, nor undone"
)]
pub trait TakesText<F>: seal::TakesText {}
impl<F> TakesText<F> for Instruction {}
impl<F> TakesText<F> for Precondition {}
impl<F> TakesText<F> for Invariant {}
impl<F> TakesText<F> for Constraint {}
impl<F> TakesText<F> for NegativeResult {}
impl<F> TakesText<F> for ScopeQualifier {}
impl<F> TakesText<F> for Evictable {}
impl<F> TakesText<F> for Rationale {}
#[diagnostic::do_not_recommend]
impl<F, K: Protected> TakesText<F> for Pinned<K> {}
#[cfg(keepspan_rule_off = "R5")]
impl<F> TakesText<F> for Derived {}

/// R5: summaries live in a `#[derived]` lane.
#[diagnostic::on_unimplemented(
    message = "`{F}` holds no summaries: its kind is `{Self}`",
    label = "name a `#[derived]` lane of the same struct",
    note = "a summary must stay marked as one, with its sources"
)]
pub trait HoldsSummaries<F>: seal::HoldsSummaries {}
impl<F> HoldsSummaries<F> for Derived {}
#[cfg(keepspan_rule_off = "R5")]
impl<F> HoldsSummaries<F> for Evictable {}

/// R23: only evictable text may be removed for good, as a declared mutation.
#[diagnostic::on_unimplemented(
    message = "`{F}` cannot be discarded: its `{Self}` spans are never removed for good",
    label = "keep the text, or evict it to a pointer: `lanes.{F}.evict(id)`",
    note = "only an `#[evictable]` lane has spans that may be removed for good"
)]
pub trait MayBeDiscarded<F>: seal::MayBeDiscarded {}
impl<F> MayBeDiscarded<F> for Evictable {}
#[cfg(keepspan_rule_off = "R23")]
mod discarded {
    use super::*;
    impl<F> MayBeDiscarded<F> for Instruction {}
    impl<F> MayBeDiscarded<F> for Precondition {}
    impl<F> MayBeDiscarded<F> for Invariant {}
    impl<F> MayBeDiscarded<F> for Constraint {}
    impl<F> MayBeDiscarded<F> for NegativeResult {}
    impl<F> MayBeDiscarded<F> for ScopeQualifier {}
    impl<F> MayBeDiscarded<F> for Rationale {}
    impl<F> MayBeDiscarded<F> for Derived {}
    #[diagnostic::do_not_recommend]
    impl<F, K: Protected> MayBeDiscarded<F> for Pinned<K> {}
}

/// R23: what must not be kept can be taken out of the store as well, from lanes that nothing later depends on.
#[diagnostic::on_unimplemented(
    message = "`{F}` cannot be redacted: its `{Self}` spans are protected",
    label = "its owner can: `window.redact_protected(id, mutation, authority)`, which is logged",
    note = "only `#[evictable]`, `#[rationale]` and `#[derived]` lanes have spans that may be redacted"
)]
pub trait MayBeRedacted<F>: seal::MayBeRedacted {}
impl<F> MayBeRedacted<F> for Evictable {}
impl<F> MayBeRedacted<F> for Rationale {}
impl<F> MayBeRedacted<F> for Derived {}
#[cfg(keepspan_rule_off = "R23")]
mod redacted {
    use super::*;
    impl<F> MayBeRedacted<F> for Instruction {}
    impl<F> MayBeRedacted<F> for Precondition {}
    impl<F> MayBeRedacted<F> for Invariant {}
    impl<F> MayBeRedacted<F> for Constraint {}
    impl<F> MayBeRedacted<F> for NegativeResult {}
    impl<F> MayBeRedacted<F> for ScopeQualifier {}
    #[diagnostic::do_not_recommend]
    impl<F, K: Protected> MayBeRedacted<F> for Pinned<K> {}
}

/// R18: an action depends on protected text alone.
#[diagnostic::on_unimplemented(
    message = "`{F}` holds `{Self}` spans, and no action can depend on those",
    label = "what an action's correctness depends on is a precondition: tag the lane `#[precondition]`",
    note = "only `#[precondition]`, `#[invariant]`, `#[constraint]`, `#[negative_result]` and `#[scope_qualifier]` spans are kept word for word"
)]
pub trait MayBeRequired<F>: seal::MayBeRequired {}
impl<F> MayBeRequired<F> for Precondition {}
impl<F> MayBeRequired<F> for Invariant {}
impl<F> MayBeRequired<F> for Constraint {}
impl<F> MayBeRequired<F> for NegativeResult {}
impl<F> MayBeRequired<F> for ScopeQualifier {}
#[diagnostic::do_not_recommend]
impl<F, K: Protected> MayBeRequired<F> for Pinned<K> {}
#[cfg(keepspan_rule_off = "R18")]
mod required {
    use super::*;
    impl<F> MayBeRequired<F> for Instruction {}
    impl<F> MayBeRequired<F> for Evictable {}
    impl<F> MayBeRequired<F> for Rationale {}
    impl<F> MayBeRequired<F> for Derived {}
}

/// R20: consent comes from a person's own words.
#[diagnostic::on_unimplemented(
    message = "`{F}` holds `{Self}` spans, and nobody consents in those",
    label = "cite what the person said: a span pushed with `NewSpan::human`, by its own lane",
    note = "a summary that says the user agreed is the summarizer's word, not the user's"
)]
pub trait MayConsent<F>: seal::MayConsent {}
impl<F> MayConsent<F> for Instruction {}
impl<F> MayConsent<F> for Precondition {}
impl<F> MayConsent<F> for Invariant {}
impl<F> MayConsent<F> for Constraint {}
impl<F> MayConsent<F> for NegativeResult {}
impl<F> MayConsent<F> for ScopeQualifier {}
impl<F> MayConsent<F> for Evictable {}
#[diagnostic::do_not_recommend]
impl<F, K: Protected> MayConsent<F> for Pinned<K> {}
#[cfg(keepspan_rule_off = "R20")]
impl<F> MayConsent<F> for Rationale {}
#[cfg(keepspan_rule_off = "R20")]
impl<F> MayConsent<F> for Derived {}

/// R20: a destructive action rests on first-hand evidence. `A` is the action, `E` its [effect](crate::action::effect).
#[diagnostic::on_unimplemented(
    message = "`{A}` is destructive, and `{Self}` evidence cannot justify it",
    label = "cite a tool's result or a person's statement by its own lane; of a summary, re-ground it and cite a source",
    note = "a summary or a rationale says what a model made of the evidence; what qualified it may be gone"
)]
pub trait Justifies<A, E>: seal::Justifies<E> {}
impl<A, E> Justifies<A, E> for Raw where Self: seal::Justifies<E> {}
impl<A, E> Justifies<A, E> for Verified where Self: seal::Justifies<E> {}
impl<A> Justifies<A, Ordinary> for SecondHand {}
impl<A> Justifies<A, Ordinary> for Unbacked {}
#[cfg(keepspan_rule_off = "R20")]
impl<A> Justifies<A, Destructive> for SecondHand {}
#[cfg(keepspan_rule_off = "R20")]
impl<A> Justifies<A, Destructive> for Unbacked {}

/// A permit with evidence.
#[derive(Debug)]
pub enum Grounded {}

/// A permit without evidence.
#[derive(Debug)]
pub enum Ungrounded {}

/// R20: a destructive action does not run without evidence.
#[diagnostic::on_unimplemented(
    message = "`{A}` is destructive and runs on no evidence",
    label = "say what justifies it first: `permit.justified_by(&evidence)?`",
    note = "evidence is a span that is cited: `let evidence = window.lanes().schema.cite(id)?;`"
)]
pub trait RunsOn<A, E>: seal::RunsOn<E> {}
impl<A, E> RunsOn<A, E> for Grounded where Self: seal::RunsOn<E> {}
impl<A> RunsOn<A, Ordinary> for Ungrounded {}
#[cfg(keepspan_rule_off = "R20")]
impl<A> RunsOn<A, Destructive> for Ungrounded {}

/// A permit that a person consented to.
#[derive(Debug)]
pub enum Consented {}

/// A permit that nobody was asked about.
#[derive(Debug)]
pub enum Unconsented {}

/// An action that needs a person's consent does not run without it. `A` is the action, `N` whether it
/// [needs](crate::action::consent) one.
#[diagnostic::on_unimplemented(
    message = "`{A}` runs only with a person's consent",
    label = "say who agreed first: `permit.consented_by(consent)?`",
    note = "consent is made of what a person said: `let consent = window.lanes().rules.consent(id)?;`"
)]
pub trait RunsWith<A, N>: seal::RunsWith<N> {}
impl<A, N> RunsWith<A, N> for Consented where Self: seal::RunsWith<N> {}
impl<A> RunsWith<A, NotNeeded> for Unconsented {}
#[cfg(keepspan_rule_off = "consent")]
impl<A> RunsWith<A, Needed> for Unconsented {}

/// Which kinds and states each rule is for. Only what is listed here can implement the rule's trait, whatever the field.
mod seal {
    use super::*;

    macro_rules! only {
        ($($rule:ident: $($who:ty),*;)*) => {
            $(
                #[diagnostic::on_unimplemented(
                    message = "`{Self}` is given its rules by keepspan alone: none can be switched off",
                    label = "remove this impl; choose the lane's kind by its attribute instead"
                )]
                pub trait $rule {}
                $(
                    #[cfg(not(keepspan_unsealed))]
                    impl $rule for $who {}
                )*
                #[cfg(keepspan_unsealed)]
                impl<T> $rule for T {}
            )*
        };
    }

    only! {
        LeavesFrom: Externalized;
        SummarizedFrom: Externalized;
        EntersWhile: Open;
        PrunesFrom: Externalized;
        MayLeave: Precondition, Invariant, Constraint, NegativeResult, ScopeQualifier, Evictable, Derived, Rationale;
        Candidate:
            Instruction, Precondition, Invariant, Constraint, NegativeResult, ScopeQualifier, Evictable, Derived;
        Replaceable: Evictable, Derived;
        FirstHand:
            Instruction, Precondition, Invariant, Constraint, NegativeResult, ScopeQualifier, Evictable, Rationale;
        TakesText:
            Instruction, Precondition, Invariant, Constraint, NegativeResult, ScopeQualifier, Evictable, Rationale;
        HoldsSummaries: Derived;
        MayBeDiscarded: Evictable;
        MayBeRedacted: Evictable, Rationale, Derived;
        MayBeRequired: Precondition, Invariant, Constraint, NegativeResult, ScopeQualifier;
        MayConsent: Instruction, Precondition, Invariant, Constraint, NegativeResult, ScopeQualifier, Evictable;
    }

    #[cfg(not(keepspan_unsealed))]
    mod pinned {
        use super::*;
        impl<K: Protected> Candidate for Pinned<K> {}
        impl<K: Protected> FirstHand for Pinned<K> {}
        impl<K: Protected> TakesText for Pinned<K> {}
        impl<K: Protected> MayBeRequired for Pinned<K> {}
        impl<K: Protected> MayConsent for Pinned<K> {}
    }

    macro_rules! only_for {
        ($($rule:ident: $($who:ty => $what:ty),*;)*) => {
            $(
                #[diagnostic::on_unimplemented(
                    message = "`{Self}` is given its rules by keepspan alone: none can be switched off",
                    label = "remove this impl; say what the action does by its attribute instead"
                )]
                pub trait $rule<T> {}
                $(
                    #[cfg(not(keepspan_unsealed))]
                    impl $rule<$what> for $who {}
                )*
                #[cfg(keepspan_unsealed)]
                impl<S, T> $rule<T> for S {}
            )*
        };
    }

    only_for! {
        Justifies:
            Raw => Ordinary, Raw => Destructive, Verified => Ordinary, Verified => Destructive,
            SecondHand => Ordinary, Unbacked => Ordinary;
        RunsOn: Grounded => Ordinary, Grounded => Destructive, Ungrounded => Ordinary;
        RunsWith: Consented => NotNeeded, Consented => Needed, Unconsented => NotNeeded;
    }
}
