//! The items a user may meet: the marker types, named in messages, and the struct of handles.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt as _;

use super::Names;
use crate::model::{Lane, State};

pub(super) fn expand(state: &State, names: &Names) -> TokenStream {
    if state.lanes.is_empty() {
        return TokenStream::new();
    }
    let Names { module, handles, library } = names;
    let vis = &state.head.vis;
    // With the field's own span, so that messages about a lane point at its declaration.
    let markers = state.lanes.iter().map(|lane| &lane.ident);
    let fields = state.lanes.iter().map(
        |Lane { ident, vis, docs, .. }| quote!(#(#docs)* #vis #ident: #library::Lane<'w, St, #module::#ident, S>,),
    );
    let doc = format!("The lane handles of `{}`.", state.head.ident.unraw());
    // A handle the user never touches is no dead code: `window.lanes()` lends them all.
    quote! {
        #[doc(hidden)]
        #[allow(non_camel_case_types, missing_debug_implementations)]
        #vis mod #module { #(pub enum #markers {})* }
        #[doc = #doc]
        #[allow(dead_code, nonstandard_style, missing_debug_implementations)]
        #vis struct #handles<'w, St, S> { #(#fields)* }
    }
}
