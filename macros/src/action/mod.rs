//! `#[derive(Action)]` and `#[derive(Canonical)]`: a request's form, and what it asks before it runs.

mod check;
mod expand;
mod model;
mod parse;

use proc_macro2::TokenStream;
use quote::quote;
use syn::DeriveInput;

use crate::errors::Errors;

/// `#[derive(Action)]`, on `proc_macro2` types so that tests can call it. The impls are written even after an error: the
/// user then sees that error alone.
pub(crate) fn action(input: DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let (declared, act) = parse::action(input, &mut errors);
    check::declared(&declared, &mut errors);
    check::act(&declared.head, &act, &mut errors);
    let code = expand::action(&declared, &act, !errors.is_empty());
    let errors = errors.into_compile_error();
    quote!(#code #errors)
}

/// `#[derive(Canonical)]`.
pub(crate) fn canonical(input: DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let declared = parse::canonical(input, &mut errors);
    check::declared(&declared, &mut errors);
    let code = expand::canonical(&declared, !errors.is_empty());
    let errors = errors.into_compile_error();
    quote!(#code #errors)
}

#[cfg(test)]
mod tests;
