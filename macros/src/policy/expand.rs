//! The code of a policy: the type, its terms, and one impl for each act it permits.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::{ext::IdentExt as _, spanned::Spanned as _};

use super::model::{ACTS, Policy};
use crate::{
    expand::held,
    model::{Kind, Number},
};

/// With `failed`, what is held at build time is left out, so that the errors have no follow-ups.
pub(super) fn expand(policy: &Policy, failed: bool) -> TokenStream {
    let Policy { attrs, vis, ident, under, library, .. } = policy;
    let library = library.as_ref().map_or_else(|| quote!(::keepspan), |path| path.to_token_stream());
    let above = under.as_ref().map_or_else(|| quote!(_k::Unrestricted), |path| path.to_token_stream());
    let (name, terms) = (ident.unraw().to_string(), terms(policy));
    let acts = ACTS.iter().filter(|act| policy.forbid.iter().all(|forbidden| forbidden != *act));
    let acts = acts.map(|act| format_ident!("{act}"));
    let tightens = policy.ceilings.iter().filter(|_| under.is_some() && !failed).map(|Number { key, value }| {
        let key = key.to_string();
        held(value.span(), quote!(_k::tightens::<#ident>(#key)))
    });
    // All of it at the name, so that messages about the policy point there.
    let item = quote_spanned!(ident.span()=> enum #ident {});
    quote! {
        #(#attrs)*
        #[allow(missing_debug_implementations)]
        #vis #item
        const _: () = {
            use #library::__private::{self as _k, acts as _a, kind as _t};
            impl _k::Policy for #ident {
                type Under = #above;
                const TERMS: _k::Terms = _k::Terms::of(#name)#terms;
            }
            #(impl _k::Permits<_a::#acts> for #ident {})*
            #(#tightens)*
        };
    }
}

fn terms(policy: &Policy) -> TokenStream {
    let kind = |kind: Kind| {
        let kind = format_ident!("{}", kind.type_name());
        quote!(_t::#kind)
    };
    let requires = policy.requires.iter().map(|(one, other)| {
        let (one, other) = (kind(one.kind), kind(other.kind));
        quote!(.requires::<#one, #other>())
    });
    let present = policy.present.iter().map(|named| kind(named.kind)).map(|kind| quote!(.present::<#kind>()));
    let pinned = policy.pinned.iter().filter(|named| named.kind.is_protected());
    let pinned = pinned.map(|named| kind(named.kind)).map(|kind| quote!(.always_pinned::<#kind>()));
    let ceilings = policy.ceilings.iter().map(|Number { key, value }| quote!(.#key(#value)));
    quote!(#(#requires)* #(#present)* #(#pinned)* #(#ceilings)*)
}
