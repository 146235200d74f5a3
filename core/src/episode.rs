//! An episode: one agent's run, under a policy version that every tombstone carries (rule R22).

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Limits, Migration};

/// The model, prompt and pruning policy in force. A change is a logged event, and each tombstone takes the version from
/// the window, never from the caller (rule R22).
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PolicyVersion {
    policy: Arc<str>,
    model: Option<Arc<str>>,
    prompt: Option<Arc<str>>,
}

impl PolicyVersion {
    /// A version of the pruning policy, by a name of your own: `"2026-11"`.
    pub fn new(policy: impl Into<Arc<str>>) -> Self {
        Self { policy: policy.into(), model: None, prompt: None }
    }

    /// The model that decides.
    #[must_use]
    pub fn model(self, model: impl Into<Arc<str>>) -> Self {
        Self { model: Some(model.into()), ..self }
    }

    /// The version of the prompt that asks it to.
    #[must_use]
    pub fn prompt(self, prompt: impl Into<Arc<str>>) -> Self {
        Self { prompt: Some(prompt.into()), ..self }
    }

    /// The name of the policy.
    pub fn name(&self) -> &str {
        &self.policy
    }
}

impl From<&str> for PolicyVersion {
    fn from(policy: &str) -> Self {
        Self::new(policy)
    }
}

/// The name of one agent's run in a store: 1 to 200 bytes.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct EpisodeId(Arc<str>);

impl EpisodeId {
    /// The longest name, in bytes.
    pub const MAX_BYTES: usize = 200;

    /// Takes any name; [`Window::open`](crate::Window::open) refuses one that is empty or too long.
    pub fn new(name: impl Into<Arc<str>>) -> Self {
        Self(name.into())
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for EpisodeId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a window is opened for: a name in the store, the policy in force and, where it differs from the struct's, a
/// token budget.
#[derive(Clone, Debug)]
pub struct Episode {
    pub(crate) id: EpisodeId,
    pub(crate) policy: PolicyVersion,
    pub(crate) limits: Option<Limits>,
    pub(crate) trusts_estimates: bool,
    pub(crate) migration: Option<Migration>,
}

impl Episode {
    /// An episode under `policy`.
    pub fn new(name: impl Into<Arc<str>>, policy: impl Into<PolicyVersion>) -> Self {
        Self { id: EpisodeId::new(name), policy: policy.into(), limits: None, trusts_estimates: false, migration: None }
    }

    /// A budget in place of the struct's `#[context(budget = ..)]`: [`Limits`], or the tokens alone.
    /// [`Window::open`](crate::Window::open) refuses one that cannot work, or that the struct's policy does not allow
    /// (rule R12).
    #[must_use]
    pub fn budget(self, limits: impl Into<Limits>) -> Self {
        Self { limits: Some(limits.into()), ..self }
    }

    /// Lets the gate decide by [estimates](crate::Certainty::Estimate), which it refuses otherwise: they may be off in
    /// either direction, so the budget may be exceeded unseen (rule R25).
    #[must_use]
    pub fn trust_estimates(self) -> Self {
        Self { trusts_estimates: true, ..self }
    }

    /// Says how lanes changed since the episode was written, for [`Window::resume`](crate::Window::resume), which logs it; of
    /// no effect when they did not.
    #[must_use]
    pub fn migrate(self, migration: Migration) -> Self {
        Self { migration: Some(migration), ..self }
    }
}
