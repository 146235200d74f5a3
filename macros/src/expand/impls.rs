//! The trait impls, in a block of their own: nothing in it can be named by the user, and nothing the user has named
//! is reached except through absolute paths.

use proc_macro2::{Ident, Literal, Span, TokenStream};
use quote::{ToTokens, format_ident, quote};
use syn::{Lifetime, ext::IdentExt as _, spanned::Spanned as _};

use super::{Names, fresh, held, located};
use crate::model::{Head, Lane, Number, Routes, State};

pub(super) fn expand(state: &State, names: &Names) -> TokenStream {
    let library = &names.library;
    let (fields, constants, governed) = (fields(state, names), constants(state), governed(state, names));
    let state_impl = context_state(state, names);
    quote! {
        const _: () = {
            use #library::__private::{self as _k, kind as _t, At as _N, Field as _F, LaneSpec as _L, Str as _S};
            #fields
            #constants
            #governed
            #state_impl
        };
    }
}

fn fields(state: &State, names: &Names) -> TokenStream {
    if state.lanes.is_empty() {
        return TokenStream::new();
    }
    let (module, own) = (&names.module, own(state, names));
    let impls = state.lanes.iter().enumerate().map(|(at, Lane { ident, kind, pinned, routes, .. })| {
        let (at, name) = (Literal::usize_unsuffixed(at), ident.unraw().to_string());
        let kind = format_ident!("{}", kind.type_name());
        let routes = self::routes(routes);
        let kind = if *pinned { quote!(_t::Pinned<_t::#kind>) } else { quote!(_t::#kind) };
        quote!(impl _F for _m::#ident { type Kind = #kind; type State = _O; const AT: _N = (#at, #name); #routes })
    });
    quote! {
        use #module as _m;
        type _O = #own;
        #(#impls)*
    }
}

/// The type that stands for the struct in messages.
fn own(state: &State, names: &Names) -> TokenStream {
    let (ident, module) = (&state.head.ident, &names.module);
    if state.is_generic() { quote!(#module::#ident) } else { quote!(#ident) }
}

/// The policy, which a generic struct's marker is under as well.
fn governed(state: &State, names: &Names) -> TokenStream {
    let head = &state.head;
    let (generics, arguments, bounds) = head.generics.split_for_impl();
    let (ident, own) = (&head.ident, own(state, names));
    let policy = head.policy.as_ref().map_or_else(|| quote!(_k::Unrestricted), ToTokens::to_token_stream);
    let marker = state.is_generic() && !state.lanes.is_empty();
    let marker = marker.then(|| quote!(impl _k::Governed for #own { type Policy = #policy; }));
    quote! {
        impl #generics _k::Governed for #ident #arguments #bounds { type Policy = #policy; }
        #marker
    }
}

/// The declaration as constants, which `cargo check` evaluates: those of the impl are not before a program uses them. A
/// struct without a budget and a policy has nothing to evaluate.
fn constants(state: &State) -> TokenStream {
    if state.failed {
        return TokenStream::new();
    }
    let (lanes, budget) = (held_lanes(state), held_budget(state));
    quote!(#lanes #budget)
}

/// The struct and its lanes against the policy.
fn held_lanes(state: &State) -> TokenStream {
    let Some(policy) = &state.head.policy else { return TokenStream::new() };
    let (name, specs) = (state.head.ident.unraw().to_string(), specs(state));
    let whole = held(policy.span(), quote!(_H.whole()));
    let lanes = state.lanes.iter().enumerate().map(|(at, lane)| {
        let at = Literal::usize_unsuffixed(at);
        held(lane.at, quote!(_H.lane(#at)))
    });
    quote! {
        const _A: &[_L] = #specs;
        const _H: _k::HeldLanes = _k::HeldLanes::of::<_O>(#name, _A);
        #whole
        #(#lanes)*
    }
}

/// The budget against itself and the policy.
fn held_budget(state: &State) -> TokenStream {
    let Head { ident, numbers, .. } = &state.head;
    let (budget, others): (Vec<_>, Vec<_>) = numbers.iter().partition(|number| number.key == "budget");
    let Some(Number { value: budget, .. }) = budget.first() else { return TokenStream::new() };
    let others = others.iter().map(|Number { key, value }| quote!(.#key(#value)));
    // One of them at most is at fault.
    let keys = numbers.iter().map(|Number { key, value }| {
        let key = key.to_string();
        located(value.span(), quote!(_B.key(#key)))
    });
    let name = ident.unraw().to_string();
    quote! {
        const _B: _k::HeldBudget = _k::HeldBudget::of::<_O>(#name, _k::Limits::of(#budget)#(#others)*);
        const _: () = { #(#keys;)* };
    }
}

fn context_state(state: &State, names: &Names) -> TokenStream {
    let head = &state.head;
    let (ident, name) = (&head.ident, head.ident.unraw().to_string());
    let (generics, arguments, bounds) = head.generics.split_for_impl();
    let [w, store, s] = ["__w", "__T", "__U"].map(|name| fresh(name, &head.generics));
    let w = Lifetime { apostrophe: Span::call_site(), ident: w };
    // Without `budget`, any other number has failed.
    let budget = if head.numbers.is_empty() || state.failed { quote!(_k::NONE) } else { quote!(_B.budget()) };
    let specs = if head.policy.is_some() && !state.failed { quote!(_A) } else { specs(state) };
    let declare = declare(state);
    let (lanes, lend) = lend(state, names, &w, [&store, &s]);
    quote! {
        #[automatically_derived]
        impl #generics _k::ContextState for #ident #arguments #bounds {
            type Lanes<#w, #store: #w, #s: #w> = #lanes;
            const NAME: _S = #name;
            const LANES: &'static [_L] = #specs;
            const BUDGET: _k::Built = #budget;
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

/// What is known of the lanes.
fn specs(state: &State) -> TokenStream {
    let lanes = state.lanes.iter().map(|lane| &lane.ident).filter(|_| !state.failed);
    quote!(&[#(_m::#lanes::SPEC),*])
}

/// A lane's routes; most have none, which is the default.
fn routes(Routes { tools, roles, on_error, otherwise, first }: &Routes) -> Option<TokenStream> {
    let (on_error, otherwise) = (on_error.is_some(), otherwise.is_some());
    let spec = quote!(_L::of::<Self>(&[#(#tools),*], &[#(#roles),*], #on_error, #otherwise));
    first.is_some().then(|| quote!(const SPEC: _L = #spec;))
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
