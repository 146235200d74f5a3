//! The trait impls, in a block of their own: nothing in it can be named by the user, and nothing the user has named
//! is reached except through absolute paths.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{format_ident, quote};
use syn::{Lifetime, ext::IdentExt as _};

use super::{Names, fresh};
use crate::model::{Lane, Routes, State};

pub(super) fn expand(state: &State, names: &Names) -> TokenStream {
    let library = &names.library;
    let fields = fields(state, names);
    let state_impl = context_state(state, names);
    quote! {
        const _: () = {
            use #library::__private::{self as _k, kind as _t, Field as _F, LaneSpec as _L};
            type _S = &'static _k::core::primitive::str;
            #fields
            #state_impl
        };
    }
}

fn fields(state: &State, names: &Names) -> TokenStream {
    if state.lanes.is_empty() {
        return TokenStream::new();
    }
    let module = &names.module;
    let impls = state.lanes.iter().enumerate().map(|(at, Lane { ident, kind, pinned, .. })| {
        let (at, name) = (Literal::usize_unsuffixed(at), ident.unraw().to_string());
        let kind = format_ident!("{}", kind.type_name());
        let kind = if *pinned { quote!(_t::Pinned<_t::#kind>) } else { quote!(_t::#kind) };
        quote!(impl _F for _m::#ident { type Kind = #kind; const INDEX: _N = #at; const NAME: _S = #name; })
    });
    quote! {
        use #module as _m;
        type _N = _k::core::primitive::u16;
        #(#impls)*
    }
}

fn context_state(state: &State, names: &Names) -> TokenStream {
    let head = &state.head;
    let (ident, name) = (&head.ident, head.ident.unraw().to_string());
    let (generics, arguments, bounds) = head.generics.split_for_impl();
    let [w, store, s] = ["__w", "__T", "__U"].map(|name| fresh(name, &head.generics));
    let w = Lifetime { apostrophe: Span::call_site(), ident: w };
    let budget = match &head.budget {
        Some(budget) => quote!(Some(#budget)),
        None => quote!(None),
    };
    let (specs, declare) = (specs(state), declare(state));
    let (lanes, lend) = lend(state, names, &w, [&store, &s]);
    quote! {
        #[automatically_derived]
        impl #generics _k::ContextState for #ident #arguments #bounds {
            type Lanes<#w, #store: #w, #s: #w> = #lanes;
            const NAME: _S = #name;
            const LANES: &'static [_L] = #specs;
            const BUDGET: _k::core::option::Option<_k::core::primitive::u64> = _k::core::option::Option::#budget;
            fn lend<#w, #store, #s>(_l: _k::Lender<#w, #store, #s>) -> #lanes { #lend }
            fn declare(_f: fn() -> _k::Spans) -> Self { #declare }
        }
    }
}

/// The type of the handles and the body that lends them.
fn lend(state: &State, names: &Names, w: &Lifetime, [store, s]: [&Ident; 2]) -> (TokenStream, TokenStream) {
    if state.lanes.is_empty() {
        return (quote!(()), TokenStream::new());
    }
    let handles = &names.handles;
    let lanes = state.lanes.iter().map(|lane| &lane.ident);
    (quote!(#handles<#w, #store, #s>), quote!(#handles { #(#lanes: _l.lane(),)* }))
}

/// What is known of the lanes: most have no route, so that case is written once.
fn specs(state: &State) -> TokenStream {
    if state.failed {
        return quote!(&[]);
    }
    let specs = state.lanes.iter().map(|lane| {
        let ident = &lane.ident;
        let Routes { tools, roles, on_error, otherwise, first } = &lane.routes;
        if first.is_none() {
            return quote!(_q::<_m::#ident>());
        }
        let (on_error, otherwise) = (on_error.is_some(), otherwise.is_some());
        quote!(_L::of::<_m::#ident>(&[#(#tools),*], &[#(#roles),*], #on_error, #otherwise))
    });
    let unrouted = state.lanes.iter().any(|lane| lane.routes.first.is_none()).then(|| {
        quote!(
            const fn _q<_X: _F>() -> _L {
                _L::of::<_X>(&[], &[], false, false)
            }
        )
    });
    match unrouted {
        Some(helper) => quote!({ #helper &[#(#specs),*] }),
        None => quote!(&[#(#specs),*]),
    }
}

/// The struct's value. Its lanes are read here once: they are declarations, and a program has no other use for them.
fn declare(state: &State) -> TokenStream {
    if state.failed {
        return quote!(loop {});
    }
    let lanes: Vec<_> = state.lanes.iter().map(|lane| &lane.ident).collect();
    let skipped = state.skipped.iter().map(|field| {
        let (ident, ty) = (&field.ident, &field.ty);
        quote!(#ident: <#ty as _k::core::default::Default>::default(),)
    });
    quote! {
        let _s = Self { #(#lanes: _f(),)* #(#skipped)* };
        let _ = [#(&_s.#lanes),*];
        _s
    }
}
