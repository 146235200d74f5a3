//! Every mistake in a struct is reported at once.

use proc_macro2::{Span, TokenStream};
use quote::ToTokens;

/// The errors met so far, each on the narrowest token that is wrong.
#[derive(Default)]
pub(crate) struct Errors(Option<syn::Error>);

impl Errors {
    pub(crate) fn push(&mut self, error: syn::Error) {
        match &mut self.0 {
            Some(first) => first.combine(error),
            None => self.0 = Some(error),
        }
    }

    pub(crate) fn at(&mut self, span: Span, message: impl core::fmt::Display) {
        self.push(syn::Error::new(span, message));
    }

    /// On all of the tokens, where they are several.
    pub(crate) fn on(&mut self, tokens: &impl ToTokens, message: impl core::fmt::Display) {
        self.push(syn::Error::new_spanned(tokens, message));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    pub(crate) fn into_compile_error(self) -> TokenStream {
        self.0.map(syn::Error::into_compile_error).unwrap_or_default()
    }

    #[cfg(test)]
    pub(crate) fn messages(self) -> Vec<String> {
        self.0.into_iter().flatten().map(|error| error.to_string()).collect()
    }

    /// Where the errors are, in a source parsed from a string.
    #[cfg(test)]
    pub(crate) fn places(self) -> Vec<core::ops::Range<usize>> {
        self.0.into_iter().flatten().map(|error| error.span().byte_range()).collect()
    }
}
