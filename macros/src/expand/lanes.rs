//! The items a user may meet: the marker types, named in messages, and the struct of handles.

use proc_macro2::TokenStream;
use quote::{ToTokens as _, quote};
use syn::{Visibility, ext::IdentExt as _};

use super::Names;
use crate::model::{Lane, State};

pub(super) fn expand(state: &State, names: &Names) -> TokenStream {
    if state.lanes.is_empty() {
        return TokenStream::new();
    }
    let Names { module, handles, library } = names;
    let head = &state.head;
    let vis = &head.vis;
    // With the field's own span, so that messages about a lane point at its declaration.
    let markers = state.lanes.iter().map(|lane| &lane.ident);
    let fields = state.lanes.iter().map(
        |Lane { ident, vis, docs, .. }| quote!(#(#docs)* #vis #ident: #library::Lane<'w, St, #module::#ident, S>,),
    );
    let inner = inner(vis);
    // Stands for a generic struct, which is no one type.
    let ident = &head.ident;
    let state = state.is_generic().then(|| quote!(#inner enum #ident {}));
    let doc = format!("The lane handles of `{}`.", head.ident.unraw());
    // A handle the user never touches is no dead code: `window.lanes()` lends them all.
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, missing_debug_implementations)]
        #vis mod #module { #(#inner enum #markers {})* #state }
        #[doc = #doc]
        #[allow(dead_code, nonstandard_style, missing_debug_implementations)]
        #vis struct #handles<'w, St, S> { #(#fields)* }
    }
}

/// A visibility as it is written one module further in.
fn inner(vis: &Visibility) -> TokenStream {
    let Visibility::Restricted(restricted) = vis else {
        return match vis {
            Visibility::Public(_) => quote!(pub),
            _ => quote!(pub(super)),
        };
    };
    let path = &restricted.path;
    if path.is_ident("self") {
        quote!(pub(super))
    } else if path.segments.first().is_some_and(|first| first.ident == "super") {
        quote!(pub(in super::#path))
    } else {
        vis.to_token_stream()
    }
}
