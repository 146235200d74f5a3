//! `policy!`: a house policy's type, its terms and the acts it permits.

mod check;
mod expand;
mod model;
mod parse;

use proc_macro2::TokenStream;
use syn::parse::Parser as _;

use crate::errors::Errors;

/// The macro, on `proc_macro2` types so that tests can call it.
pub(crate) fn policy(input: TokenStream) -> TokenStream {
    let mut errors = Errors::default();
    let declared = (|input: syn::parse::ParseStream<'_>| parse::parse(input, &mut errors)).parse2(input);
    let code = match declared {
        Ok(declared) => {
            check::check(&declared, &mut errors);
            expand::expand(&declared, !errors.is_empty())
        }
        Err(error) => {
            errors.push(error);
            TokenStream::new()
        }
    };
    let errors = errors.into_compile_error();
    quote::quote!(#code #errors)
}

#[cfg(test)]
mod tests;
