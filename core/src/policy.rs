//! House policies as types: a team writes down once what its agents must keep to, and every struct names it, as
//! `#[context(policy = House)]`. What breaks the policy does not build.
//!
//! [`policy!`](crate::policy!) writes a policy; by hand it is an impl of [`Policy`] and one of [`Permits`] for each act.
//! A policy may stand under another, which it tightens and cannot loosen: what either forbids is forbidden, and the
//! terms of both are held.

use crate::{
    Budget, BudgetError, ContextState, LaneSpec, Limits,
    kind::{self, Kind, KindId, Protected},
    text::{Text, same},
};

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

/// A policy's terms, and those above it.
#[doc(hidden)]
#[derive(Debug)]
pub struct Link {
    terms: Terms,
    under: Option<&'static Link>,
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
        Escalation, FixedTemplate, LargestToolOutput, Mutation, OldestFirst, SupersededReads,
        tool::{Anthropic, Dynamic, Gemini, Mcp, OpenAiChat, OpenAiResponses, Static},
    };
}

// `ACTS` in `macros/src/policy/model.rs` is the same list; an act missing there is never permitted by `policy!`.
acts!(
    Escalation,
    Mutation,
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

/// What a policy asks of a struct, beside the acts it permits.
///
/// ```
/// use keepspan::{
///     kind::{Constraint, Precondition, ScopeQualifier},
///     policy::Terms,
/// };
///
/// const TERMS: Terms = Terms::of("House")
///     .requires::<Precondition, ScopeQualifier>()
///     .always_pinned::<Constraint>()
///     .max_budget(100_000);
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    name: &'static str,
    /// The kinds that require another, and all pairs of them.
    requiring: Set,
    requires: Set,
    present: Set,
    pinned: Set,
    budget: Option<u64>,
    decision: Option<u64>,
}

impl Terms {
    /// Asks nothing yet; `name` is what messages call the policy.
    pub const fn of(name: &'static str) -> Self {
        let none = Set(0);
        Self { name, requiring: none, requires: none, present: none, pinned: none, budget: None, decision: None }
    }

    /// No field of the kind `K` without one of the kind `O`.
    #[must_use]
    pub const fn requires<K: Kind, O: Kind>(self) -> Self {
        let (requiring, requires) = (self.requiring.with(K::ID.number()), self.requires.with(pair(K::ID, O::ID)));
        Self { requiring, requires, ..self }
    }

    /// At least one field of the kind `K`.
    #[must_use]
    pub const fn present<K: Kind>(self) -> Self {
        Self { present: self.present.with(K::ID.number()), ..self }
    }

    /// Every field of the kind `K` is `pinned`.
    #[must_use]
    pub const fn always_pinned<K: Protected>(self) -> Self {
        Self { pinned: self.pinned.with(K::ID.number()), ..self }
    }

    /// The most that a budget may be, in tokens; a struct without a budget is refused when its window opens.
    #[must_use]
    pub const fn max_budget(self, tokens: u64) -> Self {
        Self { budget: Some(tokens), ..self }
    }

    /// The most that deciding a pass may cost, in tokens: index and rationale.
    #[must_use]
    pub const fn max_decision(self, tokens: u64) -> Self {
        Self { decision: Some(tokens), ..self }
    }

    const fn lane(&self, state: &'static str, lanes: &[LaneSpec], lane: &LaneSpec) -> Option<PolicyError> {
        let (kind, field, policy) = (lane.kind(), lane.name(), self.name);
        if self.pinned.has(kind.number()) && !lane.pinned() {
            return Some(PolicyError::Unpinned { state, policy, field, kind });
        }
        // Most kinds require none, and this is evaluated for each lane in each build.
        let mut kinds: &[KindId] = if self.requiring.has(kind.number()) { kind::IDS } else { &[] };
        while let Some((needed, rest)) = kinds.split_first() {
            if self.requires.has(pair(kind, *needed)) && !holds(lanes, *needed) {
                return Some(PolicyError::Alone { state, policy, field, kind, needed: *needed });
            }
            kinds = rest;
        }
        None
    }

    const fn absent(&self, state: &'static str, lanes: &[LaneSpec]) -> Option<PolicyError> {
        let mut kinds = kind::IDS;
        while let Some((kind, rest)) = kinds.split_first() {
            if self.present.has(kind.number()) && !holds(lanes, *kind) {
                return Some(PolicyError::Absent { state, policy: self.name, kind: *kind });
            }
            kinds = rest;
        }
        None
    }

    const fn over(&self, state: &'static str, budget: Budget) -> Option<PolicyError> {
        let policy = self.name;
        if let Some(most) = self.budget
            && budget.tokens() > most
        {
            return Some(PolicyError::Budget { state, policy, budget: budget.tokens(), most });
        }
        if let Some(most) = self.decision
            && budget.decision() > most
        {
            let (index, rationale) = (budget.index(), budget.rationale());
            return Some(PolicyError::Decision { state, policy, index, rationale, most });
        }
        None
    }

    /// Where it allows more than `above`, a policy that it stands under.
    const fn looser(&self, above: &Self) -> Option<PolicyError> {
        let (policy, under) = (self.name, above.name);
        match (self.budget, above.budget) {
            (Some(tokens), Some(most)) if tokens > most => {
                return Some(PolicyError::Looser { policy, under, key: "max_budget", tokens, most });
            }
            _ => {}
        }
        match (self.decision, above.decision) {
            (Some(tokens), Some(most)) if tokens > most => {
                Some(PolicyError::Looser { policy, under, key: "max_decision", tokens, most })
            }
            _ => None,
        }
    }
}

/// Numbers below 128: kinds, or pairs of them.
#[derive(Clone, Copy, Debug)]
struct Set(u128);

impl Set {
    const fn with(self, number: u32) -> Self {
        Self(self.0 | bit(number))
    }

    const fn has(self, number: u32) -> bool {
        self.0 & bit(number) != 0
    }
}

const fn bit(number: u32) -> u128 {
    1_u128.wrapping_shl(number)
}

/// Nine kinds make 81 pairs.
const fn pair(kind: KindId, other: KindId) -> u32 {
    kind.number().saturating_mul(9).saturating_add(other.number())
}

const fn holds(lanes: &[LaneSpec], kind: KindId) -> bool {
    let mut lanes = lanes;
    while let Some((lane, rest)) = lanes.split_first() {
        if lane.kind().number() == kind.number() {
            return true;
        }
        lanes = rest;
    }
    false
}

/// Where a struct, or the budget of an episode, breaks a policy. All numbers are tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.text())]
#[non_exhaustive]
pub enum PolicyError {
    /// No field of a kind that must be there.
    Absent {
        /// The struct.
        state: &'static str,
        /// The policy.
        policy: &'static str,
        /// The kind.
        kind: KindId,
    },
    /// A field of one kind, and none of the kind that must go with it.
    Alone {
        /// The struct.
        state: &'static str,
        /// The policy.
        policy: &'static str,
        /// The field.
        field: &'static str,
        /// Its kind.
        kind: KindId,
        /// The kind that is missing.
        needed: KindId,
    },
    /// A field that may leave, of a kind that the policy keeps.
    Unpinned {
        /// The struct.
        state: &'static str,
        /// The policy.
        policy: &'static str,
        /// The field.
        field: &'static str,
        /// Its kind.
        kind: KindId,
    },
    /// Neither the struct nor the episode has a budget.
    Unbounded {
        /// The struct.
        state: &'static str,
        /// The policy.
        policy: &'static str,
        /// The most that a budget may be.
        most: u64,
    },
    /// The budget is too large.
    Budget {
        /// The struct.
        state: &'static str,
        /// The policy.
        policy: &'static str,
        /// The budget.
        budget: u64,
        /// The most that it may be.
        most: u64,
    },
    /// Deciding costs too much.
    Decision {
        /// The struct.
        state: &'static str,
        /// The policy.
        policy: &'static str,
        /// What deciding reads.
        index: u64,
        /// What deciding writes.
        rationale: u64,
        /// The most that both may be.
        most: u64,
    },
    /// A policy allows more than the one it stands under.
    Looser {
        /// The policy.
        policy: &'static str,
        /// The one above it.
        under: &'static str,
        /// `max_budget` or `max_decision`.
        key: &'static str,
        /// What it allows.
        tokens: u64,
        /// What the one above allows.
        most: u64,
    },
}

impl PolicyError {
    /// The message, at run time and in a failed build alike.
    const fn text(&self) -> Text {
        let text = Text::new();
        match *self {
            Self::Absent { state, policy, kind } => text
                .and("`")
                .and(state)
                .and("` has no `#[")
                .and(kind.attribute())
                .and("]` field, and the policy `")
                .and(policy)
                .and("` asks for one: add it"),
            Self::Alone { state, policy, field, kind, needed } => field_text(state, policy, field, kind)
                .and("` allows only beside a `#[")
                .and(needed.attribute())
                .and("]` field: add one"),
            Self::Unpinned { state, policy, field, kind } => {
                let text = field_text(state, policy, field, kind).and("` keeps in the window: write `#[");
                text.and(kind.attribute()).and("(pinned)]`")
            }
            Self::Unbounded { state, policy, most } => state_text(state)
                .and("` has no budget, and the policy `")
                .and(policy)
                .and("` allows at most ")
                .number(most)
                .and(": declare `#[context(budget = ..)]`, or give the episode one"),
            Self::Budget { state, policy, budget, most } => state_text(state)
                .and("`: budget ")
                .number(budget)
                .and(" is above the ")
                .number(most)
                .and(" that the policy `")
                .and(policy)
                .and("` allows: lower the budget"),
            Self::Decision { state, policy, index, rationale, most } => state_text(state)
                .and("`: deciding costs ")
                .number(index.saturating_add(rationale))
                .and(" (index ")
                .number(index)
                .and(" + rationale ")
                .number(rationale)
                .and("), above the ")
                .number(most)
                .and(" that the policy `")
                .and(policy)
                .and("` allows: let the decision read and write less"),
            Self::Looser { policy, under, key, tokens, most } => state_text(policy)
                .and("`: ")
                .and(key)
                .and(" ")
                .number(tokens)
                .and(" is above the ")
                .number(most)
                .and(" of `")
                .and(under)
                .and("`, under which it stands and which it can only tighten: lower it, or leave it out"),
        }
    }

    /// The key whose value is at fault, of those that are given.
    const fn key(&self, limits: &Limits) -> &'static str {
        match self {
            Self::Decision { .. } => limits.decision_key(),
            _ => "budget",
        }
    }
}

const fn state_text(name: &str) -> Text {
    Text::new().and("`").and(name)
}

const fn field_text(state: &str, policy: &str, field: &str, kind: KindId) -> Text {
    let text = state_text(field).and("` of `").and(state).and("` is a `#[").and(kind.attribute());
    text.and("]`, which the policy `").and(policy)
}

/// The first of the chain's policies that a lane breaks.
const fn lane_fault(
    chain: Option<&Link>,
    state: &'static str,
    lanes: &[LaneSpec],
    lane: &LaneSpec,
) -> Option<PolicyError> {
    let mut chain = chain;
    while let Some(link) = chain {
        if let Some(error) = link.terms.lane(state, lanes, lane) {
            return Some(error);
        }
        chain = link.under;
    }
    None
}

/// The first of the chain's policies that the struct as a whole breaks, or that loosens another.
const fn whole_fault(chain: Option<&Link>, state: &'static str, lanes: &[LaneSpec]) -> Option<PolicyError> {
    let mut chain = chain;
    while let Some(link) = chain {
        if let Some(error) = loosened(link) {
            return Some(error);
        }
        if let Some(error) = link.terms.absent(state, lanes) {
            return Some(error);
        }
        chain = link.under;
    }
    None
}

const fn loosened(link: &Link) -> Option<PolicyError> {
    let mut above = link.under;
    while let Some(next) = above {
        if let Some(error) = link.terms.looser(&next.terms) {
            return Some(error);
        }
        above = next.under;
    }
    None
}

/// The first of the chain's policies that a budget breaks.
const fn budget_fault(chain: Option<&Link>, state: &'static str, budget: Budget) -> Option<PolicyError> {
    let mut chain = chain;
    while let Some(link) = chain {
        if let Some(error) = link.terms.over(state, budget) {
            return Some(error);
        }
        chain = link.under;
    }
    None
}

/// Where an episode breaks the struct's policy. The struct itself was held to it when it was compiled, unless its
/// [`ContextState`] is hand-written.
pub(crate) fn fault<C: ContextState>(budget: Option<Budget>) -> Option<PolicyError> {
    let (chain, state, lanes) = (<C::Policy as Rules>::CHAIN, C::NAME, C::LANES);
    whole_fault(chain, state, lanes)
        .or_else(|| lanes.iter().find_map(|lane| lane_fault(chain, state, lanes, lane)))
        .or_else(|| match budget {
            Some(budget) => budget_fault(chain, state, budget),
            None => unbounded(chain, state),
        })
}

fn unbounded(chain: Option<&'static Link>, state: &'static str) -> Option<PolicyError> {
    let mut chain = std::iter::successors(chain, |link| link.under);
    chain.find_map(|Link { terms, .. }| {
        terms.budget.map(|most| PolicyError::Unbounded { state, policy: terms.name, most })
    })
}

/// What the code of the derive and of `policy!` calls while it is compiled. Each call that can fail is at the token of the
/// user's that it is about; what they share is worked out once a struct, since nearly all of them find no fault.
pub(crate) mod build {
    use super::*;

    /// A struct's lanes and its policy.
    #[derive(Debug)]
    pub struct HeldLanes {
        chain: Option<&'static Link>,
        state: &'static str,
        lanes: &'static [LaneSpec],
        /// Whether a lane is at fault.
        fault: bool,
    }

    impl HeldLanes {
        /// Goes through all lanes.
        pub const fn of<C: Governed>(state: &'static str, lanes: &'static [LaneSpec]) -> Self {
            let chain = <C::Policy as Rules>::CHAIN;
            let mut left = lanes;
            let mut fault = false;
            while let Some((lane, rest)) = left.split_first() {
                fault = fault || lane_fault(chain, state, lanes, lane).is_some();
                left = rest;
            }
            Self { chain, state, lanes, fault }
        }

        /// Fails where the struct as a whole breaks its policy.
        #[track_caller]
        pub const fn whole(&self) {
            if let Some(error) = whole_fault(self.chain, self.state, self.lanes) {
                fail(&error.text())
            }
        }

        /// Fails where the lane with the number `at` breaks the policy.
        #[track_caller]
        pub const fn lane(&self, at: u16) {
            if self.fault
                && let Some((_, rest)) = self.lanes.split_at_checked(at as usize)
                && let Some(lane) = rest.first()
                && let Some(error) = lane_fault(self.chain, self.state, self.lanes, lane)
            {
                fail(&error.text())
            }
        }
    }

    /// A struct's budget and its policy.
    #[derive(Debug)]
    pub struct HeldBudget {
        state: &'static str,
        limits: Limits,
        budget: Result<Budget, BudgetError>,
        over: Option<PolicyError>,
    }

    impl HeldBudget {
        /// Makes the budget.
        pub const fn of<C: Governed>(state: &'static str, limits: Limits) -> Self {
            let budget = Budget::new(limits);
            let over = match budget {
                Ok(budget) => budget_fault(<C::Policy as Rules>::CHAIN, state, budget),
                Err(_) => None,
            };
            Self { state, limits, budget, over }
        }

        /// Fails where the value of `key` makes the budget impossible, or more than the policy allows.
        #[track_caller]
        pub const fn key(&self, key: &str) {
            match (&self.budget, &self.over) {
                (Err(error), _) if same(error.key(&self.limits), key) => {
                    fail(&state_text(self.state).and("`: ").and(error.text().as_str()))
                }
                (Ok(_), Some(error)) if same(error.key(&self.limits), key) => fail(&error.text()),
                _ => {}
            }
        }

        /// [`ContextState::BUDGET`].
        pub const fn budget(&self) -> Built {
            match self.budget {
                Ok(budget) => Some(budget),
                Err(error) => fail(&error.text()),
            }
        }
    }

    /// The type of [`ContextState::BUDGET`].
    pub type Built = Option<Budget>;
    /// No budget.
    pub const NONE: Built = None;

    /// Fails where the value of `key` loosens a policy that `P` stands under.
    #[track_caller]
    pub const fn tightens<P: Rules>(key: &str) {
        if let Some(link) = P::CHAIN
            && let Some(error) = loosened(link)
            && let PolicyError::Looser { key: at, .. } = error
            && same(at, key)
        {
            fail(&error.text())
        }
    }

    #[track_caller]
    #[expect(clippy::panic, reason = "evaluated in a constant, where a panic is a compile error")]
    const fn fail(text: &Text) -> ! {
        panic!("{}", text.as_str())
    }
}
