//! What a policy declares, as plain data.

use proc_macro2::Ident;
use syn::{Attribute, Path, Visibility};

use crate::model::{Kind, Number};

/// What a policy can forbid; `core/src/policy.rs` has the same list.
pub(super) const ACTS: &[&str] = &[
    "Escalation",
    "Mutation",
    "Authority",
    "Override",
    "AcceptLossy",
    "OldestFirst",
    "LargestToolOutput",
    "SupersededReads",
    "FixedTemplate",
    "OpenAiChat",
    "OpenAiResponses",
    "Anthropic",
    "Gemini",
    "Mcp",
    "Static",
    "Dynamic",
];

/// A policy as written.
pub(super) struct Policy {
    pub(super) attrs: Vec<Attribute>,
    pub(super) vis: Visibility,
    pub(super) ident: Ident,
    /// The policy it stands under.
    pub(super) under: Option<Path>,
    /// Where the library is, when it is not at `::keepspan`.
    pub(super) library: Option<Path>,
    pub(super) requires: Vec<(Named, Named)>,
    pub(super) present: Vec<Named>,
    pub(super) pinned: Vec<Named>,
    pub(super) forbid: Vec<Ident>,
    /// `max_budget` and `max_decision`.
    pub(super) ceilings: Vec<Number>,
}

/// A kind, where it is named.
pub(super) struct Named {
    pub(super) kind: Kind,
    pub(super) at: Ident,
}
