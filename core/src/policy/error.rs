//! Where a policy is broken, in the same words at run time and in a failed build.

use crate::{Limits, kind::KindId, text::Text};

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
    pub(super) const fn text(&self) -> Text {
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
    pub(super) const fn key(&self, limits: &Limits) -> &'static str {
        match self {
            Self::Decision { .. } => limits.decision_key(),
            _ => "budget",
        }
    }
}

pub(super) const fn state_text(name: &str) -> Text {
    Text::new().and("`").and(name)
}

const fn field_text(state: &str, policy: &str, field: &str, kind: KindId) -> Text {
    let text = state_text(field).and("` of `").and(state).and("` is a `#[").and(kind.attribute());
    text.and("]`, which the policy `").and(policy)
}
