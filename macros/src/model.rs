//! What a struct declares, as plain data. [`Declared`] is what was written; [`State`] is what was checked, so `expand`
//! never sees a field without a kind.

use proc_macro2::{Ident, Span};
use syn::{Attribute, Expr, Generics, LitStr, Path, Type, Visibility};

/// The struct as written.
pub(crate) struct Declared {
    pub(crate) head: Head,
    /// None: not a struct with named fields, which is reported already.
    pub(crate) fields: Option<Vec<FieldDecl>>,
}

/// What the struct says of itself.
pub(crate) struct Head {
    pub(crate) ident: Ident,
    pub(crate) vis: Visibility,
    pub(crate) generics: Generics,
    /// Where the library is, when it is not at `::keepspan`.
    pub(crate) library: Option<Path>,
    /// The budget's numbers, `budget` among them where it is given.
    pub(crate) numbers: Vec<Number>,
    pub(crate) policy: Option<Path>,
}

/// One number of a budget: `trigger = 20_000`.
pub(crate) struct Number {
    pub(crate) key: Ident,
    pub(crate) value: Expr,
}

/// A field as written: whatever attributes it has.
pub(crate) struct FieldDecl {
    pub(crate) ident: Ident,
    pub(crate) vis: Visibility,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) ty: Type,
    pub(crate) kinds: Vec<KindUse>,
    pub(crate) skip: Option<Ident>,
}

/// A kind's attribute with its keys.
pub(crate) struct KindUse {
    pub(crate) kind: Kind,
    /// The attribute's name, as written.
    pub(crate) at: Ident,
    pub(crate) pinned: Option<Ident>,
    pub(crate) routes: Routes,
}

/// Which spans a lane is sent.
#[derive(Default)]
pub(crate) struct Routes {
    pub(crate) tools: Vec<LitStr>,
    pub(crate) roles: Vec<LitStr>,
    pub(crate) on_error: Option<Ident>,
    pub(crate) otherwise: Option<Ident>,
    /// The first routing key, for errors about routing as a whole.
    pub(crate) first: Option<Ident>,
}

/// The checked struct.
pub(crate) struct State {
    pub(crate) head: Head,
    pub(crate) lanes: Vec<Lane>,
    pub(crate) skipped: Vec<Skipped>,
    /// There were errors: bodies are left out, so that the errors have no follow-ups.
    pub(crate) failed: bool,
}

impl State {
    /// Whether the struct is no one type.
    pub(crate) fn is_generic(&self) -> bool {
        !self.head.generics.params.is_empty()
    }
}

/// A `Spans` field.
pub(crate) struct Lane {
    pub(crate) ident: Ident,
    pub(crate) vis: Visibility,
    pub(crate) docs: Vec<Attribute>,
    pub(crate) kind: Kind,
    /// Where the kind is written.
    pub(crate) at: Span,
    pub(crate) pinned: bool,
    pub(crate) routes: Routes,
}

/// A `#[context(skip)]` field.
pub(crate) struct Skipped {
    pub(crate) ident: Ident,
    pub(crate) ty: Type,
}

macro_rules! kinds {
    ($($kind:ident $name:literal,)*) => {
        /// The kinds, as their attributes name them.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub(crate) enum Kind {
            $($kind,)*
        }

        impl Kind {
            /// The attributes, in the order of the documentation.
            pub(crate) const NAMES: &'static [&'static str] = &[$($name,)*];

            pub(crate) fn named(name: &str) -> Option<Self> {
                match name {
                    $($name => Some(Self::$kind),)*
                    _ => None,
                }
            }

            /// The attribute's name.
            pub(crate) fn name(self) -> &'static str {
                match self {
                    $(Self::$kind => $name,)*
                }
            }

            /// The type in the library's `kind` module.
            pub(crate) fn type_name(self) -> &'static str {
                match self {
                    $(Self::$kind => stringify!($kind),)*
                }
            }
        }
    };
}

kinds! {
    Instruction "instruction",
    Precondition "precondition",
    Invariant "invariant",
    Constraint "constraint",
    NegativeResult "negative_result",
    ScopeQualifier "scope_qualifier",
    Evictable "evictable",
    Rationale "rationale",
    Derived "derived",
}

impl Kind {
    /// The kinds that leave only as a pointer, and that `pinned` therefore keeps in place.
    pub(crate) fn is_protected(self) -> bool {
        match self {
            Self::Precondition | Self::Invariant | Self::Constraint | Self::NegativeResult | Self::ScopeQualifier => {
                true
            }
            Self::Instruction | Self::Evictable | Self::Rationale | Self::Derived => false,
        }
    }
}
