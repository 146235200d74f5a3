//! The kinds of spans a lane can hold, as distinct types under sealed traits. What each kind may and may not do is in
//! [`rule`](crate::rule).

use serde::{Deserialize, Deserializer, Serialize};

use crate::evidence::{Cited, Raw, SecondHand, Unbacked};

pub(crate) mod sealed {
    /// Keeps the set of kinds closed.
    pub trait Sealed {}
}

/// The kind of span a lane holds; chosen by the attribute on the field, never by a model.
pub trait Kind: sealed::Sealed + 'static {
    #[doc(hidden)]
    const ID: KindId;
    #[doc(hidden)]
    const PINNED: bool = false;
    /// How far a span of the lane can be trusted as evidence (rule R20).
    #[doc(hidden)]
    type Cited: Cited;
}

/// A kind whose text later correctness depends on: never replaced by a paraphrase (rule R3), left behind only as a
/// [pointer](crate::Pointer), which names each span with its lane where neighbours share it (rule R8).
#[diagnostic::on_unimplemented(
    message = "`{Self}` is no protected kind",
    label = "tag the lane `#[precondition]`, `#[invariant]`, `#[constraint]`, `#[negative_result]` or `#[scope_qualifier]`"
)]
pub trait Protected: Kind {}

macro_rules! kinds {
    ($($(#[$doc:meta])* $kind:ident $number:literal $name:literal $cited:ident,)*) => {
        $(
            $(#[$doc])*
            #[derive(Debug)]
            pub enum $kind {}
            impl sealed::Sealed for $kind {}
            impl Kind for $kind {
                const ID: KindId = KindId($name, $number);
                type Cited = $cited;
            }
        )*

        pub(crate) const IDS: &[KindId] = &[$($kind::ID),*];
    };
}

/// A kind as a value, for reports and records: the name of its attribute.
// No enum: variants of the same names would make the compiler spell out the kinds' paths in every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct KindId(&'static str, #[serde(skip)] u8);

impl KindId {
    /// The attribute that gives a field this kind: `precondition`.
    pub const fn attribute(self) -> &'static str {
        self.0
    }

    /// Whether its text is never replaced by a paraphrase, and leaves only as a pointer that names it: the kinds of
    /// [`Protected`].
    pub const fn is_protected(self) -> bool {
        matches!(self.1, 1..=5)
    }

    /// Its place in a set of kinds: 0 to 8.
    pub(crate) const fn number(self) -> u32 {
        self.1 as u32
    }
}

impl<'de> Deserialize<'de> for KindId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = <std::borrow::Cow<'de, str>>::deserialize(deserializer)?;
        let known = IDS.iter().find(|known| known.0 == name);
        known.copied().ok_or_else(|| serde::de::Error::custom(format!("`{name}` is no kind of span")))
    }
}

kinds! {
    /// System text, house rules, the live task: never leaves.
    Instruction 0 "instruction" Raw,
    /// What a later step's correctness depends on: column types as read, a version, an environment's identity.
    Precondition 1 "precondition" Raw,
    /// What must hold throughout.
    Invariant 2 "invariant" Raw,
    /// A limit the work must respect.
    Constraint 3 "constraint" Raw,
    /// "X failed because Y", a refusal, "nothing there".
    NegativeResult 4 "negative_result" Raw,
    /// "production, not staging", "as of abc123": what summaries drop first.
    ScopeQualifier 5 "scope_qualifier" Raw,
    /// Diffs, exploratory reads, superseded plans.
    Evictable 6 "evictable" Raw,
    /// Text that pruning itself produced: never a candidate (rule R13).
    Rationale 7 "rationale" Unbacked,
    /// Summaries: carry their sources, and are not summarized again (rule R4).
    Derived 8 "derived" SecondHand,
}

/// A protected kind with `pinned`: its spans never leave.
#[derive(Debug)]
pub struct Pinned<K: Protected>(core::convert::Infallible, core::marker::PhantomData<fn() -> K>);

impl<K: Protected> sealed::Sealed for Pinned<K> {}
impl<K: Protected> Kind for Pinned<K> {
    const ID: KindId = K::ID;
    const PINNED: bool = true;
    type Cited = Raw;
}

impl Protected for Precondition {}
impl Protected for Invariant {}
impl Protected for Constraint {}
impl Protected for NegativeResult {}
impl Protected for ScopeQualifier {}
impl<K: Protected> Protected for Pinned<K> {}
