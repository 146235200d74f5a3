//! The impls, in a block of their own: nothing in it can be named by the user, and nothing the user has named is reached
//! except through absolute paths.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens as _, format_ident, quote, quote_spanned};
use syn::{GenericParam, Generics, Member, Type, ext::IdentExt as _, parse_quote, spanned::Spanned as _};

use super::{
    check,
    model::{Act, Body, Content, Declared, Field, Head, Variant},
};

pub(super) fn action(declared: &Declared, act: &Act, failed: bool) -> TokenStream {
    let (form, bounded) = (form(declared, failed), bounded(declared));
    let action = act.state.as_ref().map(|state| action_impl(&declared.head, &bounded, act, state, failed));
    block(&declared.head, quote!(#form #action))
}

pub(super) fn canonical(declared: &Declared, failed: bool) -> TokenStream {
    block(&declared.head, form(declared, failed))
}

fn block(head: &Head, impls: TokenStream) -> TokenStream {
    let library = head.library.as_ref().map_or_else(|| quote!(::keepspan), |path| path.to_token_stream());
    quote! {
        const _: () = {
            use #library::__private as _k;
            #impls
        };
    }
}

fn action_impl(head: &Head, bounded: &Generics, act: &Act, state: &Type, failed: bool) -> TokenStream {
    let ident = &head.ident;
    let (generics, arguments, bounds) = bounded.split_for_impl();
    let effect = if act.destructive.is_some() { quote!(Destructive) } else { quote!(Ordinary) };
    let consent = if act.consent.is_some() { quote!(Needed) } else { quote!(NotNeeded) };
    let name = act.name.as_ref().map_or_else(|| ident.unraw().to_string(), syn::LitStr::value);
    let requires = act.requires.iter().flatten().filter(|_| !failed).map(|lane| {
        let at = here(lane.span());
        quote_spanned!(at=> _k::Requirement::of::<Self::State, _>(|_l| &_l.#lane))
    });
    let check = act.check.as_ref().filter(|_| !failed).map(|path| {
        quote_spanned!(here(path.span())=> fn check(&self, _h: &_k::Held<'_>) -> _k::Checked { #path(self, _h) })
    });
    let describe = act.describe.as_ref().filter(|_| !failed).map(|path| {
        let words = quote_spanned!(here(path.span())=> _k::described(#path(self)));
        quote!(fn describe(&self) -> _k::Described { #words })
    });
    quote! {
        #[automatically_derived]
        impl #generics _k::Action for #ident #arguments #bounds {
            type State = #state;
            type Effect = _k::effect::#effect;
            type Consent = _k::consent::#consent;
            const NAME: _k::Str = #name;
            const REQUIRES: &'static [_k::Requirement] = &[#(#requires),*];
            #check
            #describe
        }
    }
}

fn form(declared: &Declared, failed: bool) -> TokenStream {
    let Declared { head, body } = declared;
    let (ident, bounded) = (&head.ident, bounded(declared));
    let (generics, arguments, bounds) = bounded.split_for_impl();
    let body = if failed { TokenStream::new() } else { self::body(body) };
    quote! {
        #[automatically_derived]
        impl #generics _k::Canonical for #ident #arguments #bounds {
            fn canonical(&self, _f: &mut _k::Canon) { #body }
        }
    }
}

fn body(body: &Body) -> TokenStream {
    match body {
        Body::Struct(content) => value(content, &|field| {
            let (start, end) = ends(&field.ty);
            let (mut place, member) = (quote_spanned!(start=> &), relocated(&field.member, end));
            place.extend(quote_spanned!(end=> self.#member));
            place
        }),
        Body::Enum(variants) if variants.is_empty() => quote!(match *self {}),
        Body::Enum(variants) => {
            let arms = variants.iter().map(arm);
            quote!(match self { #(#arms)* })
        }
        Body::Other => TokenStream::new(),
    }
}

fn arm(variant: &Variant) -> TokenStream {
    let ident = &variant.ident;
    let (name, _) = check::key(variant);
    if matches!(variant.content, Content::Unit) {
        return quote!(Self::#ident => _k::Canonical::canonical(#name, _f),);
    }
    let bindings = variant.content.fields().iter().filter(|field| field.is_kept()).map(|field| {
        let (member, bound) = (&field.member, bound(field));
        quote!(#member: #bound,)
    });
    let content = value(&variant.content, &|field| {
        let ((start, end), mut bound) = (ends(&field.ty), bound(field));
        bound.set_span(end);
        quote_spanned!(start=> &*#bound)
    });
    quote!(Self::#ident { #(#bindings)* .. } => { _f.variant(#name); #content _f.close(); })
}

/// What a variant's field is bound to.
fn bound(field: &Field) -> Ident {
    format_ident!("_{}", field.position, span = Span::call_site())
}

/// Writes the fields as one value; `place` is where a field is, by reference.
fn value(content: &Content, place: &dyn Fn(&Field) -> TokenStream) -> TokenStream {
    let given = |field: &Field| {
        let place = place(field);
        match &field.with {
            Some(with) => {
                let path = &with.value;
                quote_spanned!(here(path.span())=> &#path(#place))
            }
            None => place,
        }
    };
    match content {
        Content::Record(fields) => {
            let mut kept: Vec<_> = fields.iter().filter(|field| field.is_kept()).collect();
            kept.sort_by_key(|field| field.key().0);
            let entries = kept.into_iter().map(|field| {
                let ((key, _), given) = (field.key(), given(field));
                quote!(_f.field(#key, #given);)
            });
            quote!(_f.open(); #(#entries)* _f.close();)
        }
        Content::Tuple(fields) => {
            let values = fields.iter().filter(|field| field.is_kept()).map(|field| {
                let given = given(field);
                quote!(_k::Canonical::canonical(#given, _f);)
            });
            // The form of a type around one value is that value's.
            if let [field] = fields.as_slice()
                && field.is_kept()
            {
                return quote!(#(#values)*);
            }
            quote!(_f.list(); #(#values)* _f.end();)
        }
        Content::Unit => quote!(_f.open(); _f.close();),
    }
}

/// The place of a token of the user's, for names of ours.
fn here(at: Span) -> Span {
    Span::call_site().located_at(at)
}

/// Where a type begins and ends: an expression whose tokens stand there is, to the compiler, at the whole type.
fn ends(ty: &Type) -> (Span, Span) {
    let (start, end) = (ty.span(), ty.to_token_stream().into_iter().last().map(|token| token.span()));
    (here(start), here(end.unwrap_or(start)))
}

/// A field's name, written at `at`.
fn relocated(member: &Member, at: Span) -> Member {
    let mut member = member.clone();
    match &mut member {
        Member::Named(ident) => ident.set_span(ident.span().located_at(at)),
        Member::Unnamed(index) => index.span = at,
    }
    member
}

/// The generics, and that every type among them that is part of the form has one.
fn bounded(Declared { head, body }: &Declared) -> Generics {
    let fields: Vec<&Field> = match body {
        Body::Struct(content) => content.fields().iter().collect(),
        Body::Enum(variants) => variants.iter().flat_map(|variant| variant.content.fields()).collect(),
        Body::Other => Vec::new(),
    };
    let written = fields.into_iter().filter(|field| field.is_kept() && field.with.is_none());
    let types: TokenStream = written.map(|field| field.ty.to_token_stream()).collect();
    let mut bounded = head.generics.clone();
    for param in &head.generics.params {
        if let GenericParam::Type(param) = param
            && names(types.clone(), &param.ident)
        {
            let ident = &param.ident;
            bounded.make_where_clause().predicates.push(parse_quote!(#ident: _k::Canonical));
        }
    }
    bounded
}

/// Whether a type names a parameter.
fn names(tokens: TokenStream, ident: &Ident) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(found) => found == *ident,
        TokenTree::Group(group) => names(group.stream(), ident),
        _ => false,
    })
}
