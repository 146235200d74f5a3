//! What a type declares of its form, and an action of itself, as plain data.

use proc_macro2::{Ident, Span};
use syn::{Generics, LitStr, Member, Path, Type, ext::IdentExt as _, spanned::Spanned as _};

/// A type as written.
pub(super) struct Declared {
    pub(super) head: Head,
    pub(super) body: Body,
}

/// What the type says of itself.
pub(super) struct Head {
    pub(super) ident: Ident,
    pub(super) generics: Generics,
    /// Where the library is, when it is not at `::keepspan`.
    pub(super) library: Option<Path>,
}

/// What the type is made of.
pub(super) enum Body {
    Struct(Content),
    Enum(Vec<Variant>),
    /// Nothing with a form, which is reported already.
    Other,
}

/// One variant of an enum.
pub(super) struct Variant {
    pub(super) ident: Ident,
    pub(super) name: Option<LitStr>,
    pub(super) content: Content,
}

/// The fields, and how they stand together.
pub(super) enum Content {
    Record(Vec<Field>),
    Tuple(Vec<Field>),
    Unit,
}

impl Content {
    pub(super) fn fields(&self) -> &[Field] {
        match self {
            Self::Record(fields) | Self::Tuple(fields) => fields,
            Self::Unit => &[],
        }
    }
}

/// A field as written: whatever keys it has.
pub(super) struct Field {
    pub(super) member: Member,
    /// How many fields stand before it.
    pub(super) position: usize,
    pub(super) ty: Type,
    pub(super) skip: Option<Ident>,
    pub(super) with: Option<Key<Path>>,
    pub(super) name: Option<Key<LitStr>>,
}

impl Field {
    /// Whether it is part of the form.
    pub(super) fn is_kept(&self) -> bool {
        self.skip.is_none()
    }

    /// What messages call it.
    pub(super) fn label(&self) -> String {
        match &self.member {
            Member::Named(ident) => ident.unraw().to_string(),
            Member::Unnamed(index) => index.index.to_string(),
        }
    }

    /// Its key in the form, and where that is written.
    pub(super) fn key(&self) -> (String, Span) {
        self.name.as_ref().map_or_else(|| (self.label(), self.at()), |name| (name.value.value(), name.value.span()))
    }

    /// Where messages about the field are.
    pub(super) fn at(&self) -> Span {
        match &self.member {
            Member::Named(ident) => ident.span(),
            Member::Unnamed(_) => self.ty.span(),
        }
    }
}

/// A key that has a value.
pub(super) struct Key<T> {
    pub(super) at: Ident,
    pub(super) value: T,
}

/// `#[action(..)]`.
#[derive(Default)]
pub(super) struct Act {
    pub(super) state: Option<Type>,
    /// The key was met, whatever its value.
    pub(super) state_met: bool,
    pub(super) requires: Option<Vec<Ident>>,
    pub(super) destructive: Option<Ident>,
    pub(super) consent: Option<Ident>,
    pub(super) name: Option<LitStr>,
    pub(super) check: Option<Path>,
    pub(super) describe: Option<Path>,
}
