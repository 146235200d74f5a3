//! The rules as facts about types: they hold on any toolchain, whatever the messages say.

use std::{future::IntoFuture, sync::Arc};

use keepspan::{
    Budget, ContextState, Discard, Escalation, Evict, Externalize, Lane, Lanes, Limits, Mutation, Pointer, Recall,
    Reground, Restore, Spans, Step, Summarize, SummaryText, Tombstone, Window,
    kind::{
        Constraint, Derived, Evictable, Instruction, Invariant, NegativeResult, Pinned, Precondition, Protected,
        Rationale, ScopeQualifier,
    },
    policy::{Act, Permits, Permitted, Policy, Rules, Terms, Unrestricted},
    rule::{
        Candidate, EntersWhile, Externalized, FirstHand, HoldsSummaries, LeavesFrom, MayBeDiscarded, MayBeRequired,
        MayLeave, Open, Replaceable, SummarizedFrom, TakesText,
    },
    store::MemoryStore,
};
use serde::de::DeserializeOwned;
use static_assertions::{assert_eq_align, assert_eq_size, assert_impl_all, assert_not_impl_any};

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
}
type F = agent_lanes::schema;

// R1, R2: only externalized lanes let spans leave, only open ones let text in.
assert_impl_all!(Externalized: LeavesFrom<F, Precondition>, SummarizedFrom<F, Evictable>);
assert_not_impl_any!(Open: LeavesFrom<F, Precondition>, LeavesFrom<F, Evictable>, SummarizedFrom<F, Evictable>);
assert_impl_all!(Open: EntersWhile<F>);
assert_not_impl_any!(Externalized: EntersWhile<F>);

// What never leaves.
assert_not_impl_any!(Instruction: MayLeave<F>);
assert_not_impl_any!(Pinned<Precondition>: MayLeave<F>);
assert_not_impl_any!(Pinned<ScopeQualifier>: MayLeave<F>);

// R13.
assert_not_impl_any!(Rationale: Candidate<F>);

// R3, R23, for the five protected kinds and the two that are kept for other reasons.
macro_rules! kept_word_for_word {
    ($($kind:ty),*) => { $(assert_not_impl_any!($kind: Replaceable<F>, MayBeDiscarded<F>, HoldsSummaries<F>);)* };
}
kept_word_for_word!(Precondition, Invariant, Constraint, NegativeResult, ScopeQualifier, Instruction, Rationale);
assert_impl_all!(Precondition: Protected, MayLeave<F>, Candidate<F>, TakesText<F>);
assert_impl_all!(ScopeQualifier: Protected);
assert_not_impl_any!(Evictable: Protected);
assert_impl_all!(Evictable: Replaceable<F>, MayBeDiscarded<F>, FirstHand<F>);

// R4, R5.
assert_not_impl_any!(Derived: FirstHand<F>, TakesText<F>, MayBeDiscarded<F>);
assert_impl_all!(Derived: HoldsSummaries<F>, MayLeave<F>);
assert_not_impl_any!(Evictable: HoldsSummaries<F>);

// R18.
assert_impl_all!(Precondition: MayBeRequired<F>);
assert_impl_all!(Pinned<ScopeQualifier>: MayBeRequired<F>);
assert_not_impl_any!(Instruction: MayBeRequired<F>);
assert_not_impl_any!(Evictable: MayBeRequired<F>);
assert_not_impl_any!(Rationale: MayBeRequired<F>);
assert_not_impl_any!(Derived: MayBeRequired<F>);

// R12: a budget is checked when it is made, and a policy's word goes down the chain.
enum House {}
impl Policy for House {
    type Under = Unrestricted;
    const TERMS: Terms = Terms::of("House");
}
impl Permits<Mutation> for House {}
enum Strict {}
impl Policy for Strict {
    type Under = House;
    const TERMS: Terms = Terms::of("Strict");
}
impl<A: Act> Permits<A> for Strict {}
assert_impl_all!(Unrestricted: Rules, Permitted<Escalation, F, Agent>, Permitted<Mutation, F, Agent>);
assert_impl_all!(House: Rules, Permitted<Mutation, F, Agent>);
assert_impl_all!(Strict: Permitted<Mutation, F, Agent>);
assert_not_impl_any!(House: Permitted<Escalation, F, Agent>);
assert_not_impl_any!(Strict: Permitted<Escalation, F, Agent>);
assert_not_impl_any!(Unrestricted: Policy);
assert_not_impl_any!(Budget: Default, DeserializeOwned, From<u64>, From<Limits>);

// Nothing that stands for a permit or a record can be copied or made up.
assert_not_impl_any!(Spans: Clone, Default, From<String>, From<&'static str>);
assert_not_impl_any!(Lane<'static, MemoryStore, F, Open>: Clone, Default);
assert_not_impl_any!(Lanes<'static, Agent, MemoryStore, Externalized>: Clone, Default, std::ops::DerefMut);
assert_not_impl_any!(Tombstone: Default, From<keepspan::SpanId>);
assert_not_impl_any!(Pointer: Default, From<String>, std::str::FromStr);
assert_not_impl_any!(SummaryText: Default, From<String>, From<&'static str>, std::str::FromStr);
assert_not_impl_any!(Window<Agent, MemoryStore>: Clone);

// Handles cost nothing, and travel between threads.
assert_eq_size!(Lane<'static, MemoryStore, F, Open>, &'static ());
assert_eq_align!(Lane<'static, MemoryStore, F, Externalized>, &'static ());
assert_eq_size!(Option<Lane<'static, MemoryStore, F, Open>>, &'static ());
assert_impl_all!(Window<Agent, MemoryStore>: Send, Sync);
assert_impl_all!(Lanes<'static, Agent, MemoryStore, Open>: Send, Sync);

// Nor read from bytes that somebody else wrote.
assert_not_impl_any!(Spans: DeserializeOwned);
assert_not_impl_any!(Tombstone: DeserializeOwned);
assert_not_impl_any!(Pointer: DeserializeOwned);
assert_not_impl_any!(SummaryText: DeserializeOwned);
assert_not_impl_any!(Escalation: DeserializeOwned, Default, From<String>, From<&'static str>);
assert_not_impl_any!(Mutation: DeserializeOwned, Default, From<String>, From<&'static str>);

// A step can be awaited on any executor, on a store that many windows share.
type Shared = Arc<MemoryStore>;
type Running<O> = <Step<'static, Shared, O> as IntoFuture>::IntoFuture;
assert_impl_all!(Lanes<'static, Agent, Shared, Externalized>: Send, Sync);
assert_impl_all!(Step<'static, Shared, Evict>: Send, Sync);
assert_impl_all!(Running<Externalize<Agent>>: Send);
assert_impl_all!(Running<Evict>: Send);
assert_impl_all!(Running<Summarize>: Send);
assert_impl_all!(Running<Restore>: Send);
assert_impl_all!(Running<Reground>: Send);
assert_impl_all!(Running<Discard>: Send);
assert_impl_all!(Running<Recall>: Send);

// Protection is of the five kinds, pinned or not.
assert_not_impl_any!(Instruction: Protected);
assert_not_impl_any!(Rationale: Protected);
assert_not_impl_any!(Derived: Protected);
assert_impl_all!(Pinned<Constraint>: Protected);

#[test]
fn the_facts_above_are_checked_when_this_compiles() {}
