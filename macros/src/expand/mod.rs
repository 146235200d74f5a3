//! The code of a checked struct. Every item is paid for in every build of a user's crate, so what can live in the
//! library does, and names inside the block are short.

mod impls;
mod lanes;

use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, format_ident, quote};
use syn::{DeriveInput, GenericParam, Generics, ext::IdentExt as _};

use crate::{check, errors::Errors, model::State, parse};

/// The derive, on `proc_macro2` types so that tests can call it. The items are written even after an error: the user
/// then sees that error alone, and completion goes on working.
pub(crate) fn derive(input: DeriveInput) -> TokenStream {
    let mut errors = Errors::default();
    let state = check::check(parse::parse(input, &mut errors), &mut errors);
    let code = expand(&state);
    let errors = errors.into_compile_error();
    quote!(#code #errors)
}

fn expand(state: &State) -> TokenStream {
    let names = Names::of(state);
    let lanes = lanes::expand(state, &names);
    let impls = impls::expand(state, &names);
    quote!(#lanes #impls)
}

/// The names of the generated items.
struct Names {
    module: Ident,
    handles: Ident,
    library: TokenStream,
}

impl Names {
    fn of(state: &State) -> Self {
        let ident = state.head.ident.unraw();
        Self {
            module: format_ident!("{}_lanes", snake_case(&ident.to_string()), span = ident.span()),
            handles: format_ident!("{}Lanes", ident, span = ident.span()),
            library: state.head.library.as_ref().map_or_else(|| quote!(::keepspan), |path| path.to_token_stream()),
        }
    }
}

/// A call that is evaluated by `cargo check` and fails at `at`, the token of the user's that it is about. A constant for
/// each call: every failure is reported.
pub(crate) fn held(at: Span, call: TokenStream) -> TokenStream {
    let call = located(at, call);
    quote!(const _: () = #call;)
}

/// The same code, written at `at`.
fn located(at: Span, code: TokenStream) -> TokenStream {
    let token = |mut token: TokenTree| {
        if let TokenTree::Group(group) = &token {
            token = TokenTree::Group(Group::new(group.delimiter(), located(at, group.stream())));
        }
        token.set_span(at);
        token
    };
    code.into_iter().map(token).collect()
}

/// `HttpState2` becomes `http_state2`, `HTTPState` becomes `http_state`.
fn snake_case(name: &str) -> String {
    let chars: Vec<char> = name.chars().collect();
    let mut out = String::with_capacity(name.len());
    for (at, &now) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| chars.get(at)).copied();
        let after = chars.get(at.saturating_add(1)).copied();
        let starts = before.is_some_and(|c| c.is_lowercase() || c.is_numeric())
            || before.is_some_and(char::is_uppercase) && after.is_some_and(char::is_lowercase);
        if now.is_uppercase() && starts {
            out.push('_');
        }
        out.extend(now.to_lowercase());
    }
    out
}

/// A name that none of the user's generics has: they are in scope where the trait's own parameters are written.
fn fresh(name: &str, generics: &Generics) -> Ident {
    let mut name = name.to_owned();
    let taken = |name: &str| {
        generics.params.iter().any(|param| match param {
            GenericParam::Lifetime(param) => param.lifetime.ident == name,
            GenericParam::Type(param) => param.ident == name,
            GenericParam::Const(param) => param.ident == name,
        })
    };
    while taken(&name) {
        name.push('_');
    }
    format_ident!("{name}")
}

#[cfg(test)]
mod tests;
