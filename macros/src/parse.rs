//! Attributes and fields into [`Declared`]. Only the shape is judged here; what the parts mean together is in `check`.

use proc_macro2::{Ident, Span, TokenStream, TokenTree};
use quote::ToTokens as _;
use syn::{
    Attribute, Data, DeriveInput, Expr, Fields, Lit, LitStr, Meta, Path, Token, Type,
    ext::IdentExt as _,
    parse::{Parse, ParseStream, Parser as _},
    punctuated::Punctuated,
    spanned::Spanned as _,
};

use crate::{
    errors::Errors,
    model::{Declared, FieldDecl, Head, Kind, KindUse, Number, Routes},
};

const STRUCT_KEYS: &[&str] =
    &["budget", "fixed", "trigger", "index", "rationale", "margin", "reserve", "keep", "policy", "crate"];
const KIND_KEYS: &[&str] = &["tools", "roles", "on_error", "otherwise", "pinned"];

pub(crate) fn parse(input: DeriveInput, errors: &mut Errors) -> Declared {
    let fields = fields(input.data, &input.ident, errors);
    let DeriveInput { ident, vis, generics, .. } = input;
    let mut head = Head { ident, vis, generics, library: None, numbers: Vec::new(), policy: None };
    for attr in &input.attrs {
        struct_attr(attr, &mut head, errors);
    }
    Declared { head, fields }
}

/// A list as the messages give it.
pub(crate) fn listed<'a>(names: impl IntoIterator<Item = &'a str>) -> String {
    names.into_iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ")
}

fn fields(data: Data, name: &Ident, errors: &mut Errors) -> Option<Vec<FieldDecl>> {
    let (at, found) = match data {
        Data::Struct(data) => match data.fields {
            Fields::Named(fields) => {
                return Some(fields.named.into_iter().filter_map(|field| field_decl(field, errors)).collect());
            }
            Fields::Unnamed(_) => (name.span(), "is a tuple struct"),
            Fields::Unit => (name.span(), "is a unit struct"),
        },
        Data::Enum(data) => (data.enum_token.span, "is an enum"),
        Data::Union(data) => (data.union_token.span, "is a union"),
    };
    errors.at(at, format!("`{}` {found}: declare the lanes in a struct with named fields", name.unraw()));
    None
}

fn struct_attr(attr: &Attribute, head: &mut Head, errors: &mut Errors) {
    if !attr.path().is_ident("context") {
        return;
    }
    let name = head.ident.unraw().to_string();
    entries(&name, attr, STRUCT_KEYS, errors, &mut |key, input, errors| {
        if key == "crate" {
            library(&mut head.library, key, input, &name, errors)
        } else if key == "policy" {
            value(key, input, "`policy = House`", &name)?;
            let path = input.call(Path::parse_mod_style)?;
            once(&mut head.policy, path, key, &name, errors);
            Ok(())
        } else {
            value(key, input, &format!("`{key} = 24_000`"), &name)?;
            let value = expression(key, &name, input)?;
            if head.numbers.iter().any(|number| number.key == *key) {
                twice(key, &name, errors);
            } else {
                head.numbers.push(Number { key: key.clone(), value });
            }
            Ok(())
        }
    });
}

/// `crate = path`, where the library is.
pub(crate) fn library(
    slot: &mut Option<Path>,
    key: &Ident,
    input: ParseStream<'_>,
    name: &str,
    errors: &mut Errors,
) -> syn::Result<()> {
    value(key, input, "`crate = path::to::keepspan`", name)?;
    let path = input.call(Path::parse_mod_style)?;
    once(slot, path, key, name, errors);
    Ok(())
}

fn field_decl(field: syn::Field, errors: &mut Errors) -> Option<FieldDecl> {
    let ident = field.ident?;
    let name = ident.unraw().to_string();
    let (mut docs, mut kinds, mut skip) = (Vec::new(), Vec::new(), None);
    for attr in field.attrs {
        let known = attr.path().get_ident().and_then(|at| Some((at.clone(), Kind::named(&at.to_string())?)));
        if let Some((at, kind)) = known {
            kinds.push(kind_attr(&name, &attr, at, kind, errors));
        } else if attr.path().is_ident("context") {
            field_attr(&name, &attr, &mut kinds, &mut skip, errors);
        } else if attr.path().is_ident("doc") {
            docs.push(attr);
        }
    }
    Some(FieldDecl { ident, vis: field.vis, docs, ty: field.ty, kinds, skip })
}

/// `#[context(skip)]`, or `#[context(precondition(..))]` where another derive owns the short attribute.
fn field_attr(name: &str, attr: &Attribute, kinds: &mut Vec<KindUse>, skip: &mut Option<Ident>, errors: &mut Errors) {
    let known: Vec<&str> = core::iter::once("skip").chain(Kind::NAMES.iter().copied()).collect();
    entries(name, attr, &known, errors, &mut |key, input, errors| {
        let Some(kind) = Kind::named(&key.to_string()) else {
            once(skip, key.clone(), key, name, errors);
            return Ok(());
        };
        let mut used = KindUse { kind, at: key.clone(), pinned: None, routes: Routes::default() };
        if input.peek(syn::token::Paren) {
            let content;
            syn::parenthesized!(content in input);
            kind_keys(name, &content, &mut used, errors);
        }
        kinds.push(used);
        Ok(())
    });
}

fn kind_attr(name: &str, attr: &Attribute, at: Ident, kind: Kind, errors: &mut Errors) -> KindUse {
    let mut used = KindUse { kind, at, pinned: None, routes: Routes::default() };
    match &attr.meta {
        Meta::Path(_) => {}
        Meta::List(list) => {
            let parser = |input: ParseStream<'_>| {
                kind_keys(name, input, &mut used, errors);
                Ok(())
            };
            if let Err(error) = parser.parse2(list.tokens.clone()) {
                errors.push(error);
            }
        }
        Meta::NameValue(pair) => {
            let kind = kind.name();
            errors.at(pair.eq_token.span, format!("`{name}`: write `#[{kind}]` or `#[{kind}(..)]`"));
        }
    }
    used
}

fn kind_keys(name: &str, input: ParseStream<'_>, used: &mut KindUse, errors: &mut Errors) {
    each_key(name, input, KIND_KEYS, errors, &mut |key, input, errors| {
        let routes = &mut used.routes;
        if key == "pinned" {
            once(&mut used.pinned, key.clone(), key, name, errors);
            return Ok(());
        }
        routes.first.get_or_insert_with(|| key.clone());
        if key == "tools" {
            strings(&mut routes.tools, key, input, name, errors)
        } else if key == "roles" {
            strings(&mut routes.roles, key, input, name, errors)
        } else if key == "on_error" {
            once(&mut routes.on_error, key.clone(), key, name, errors);
            Ok(())
        } else {
            once(&mut routes.otherwise, key.clone(), key, name, errors);
            Ok(())
        }
    });
}

/// Reads one key's value, after the key.
pub(crate) type Take<'t> = &'t mut dyn FnMut(&Ident, ParseStream<'_>, &mut Errors) -> syn::Result<()>;

/// The keys of an attribute, as `#[context(..)]`.
pub(crate) fn entries(name: &str, attr: &Attribute, known: &[&str], errors: &mut Errors, take: Take<'_>) {
    let Meta::List(list) = &attr.meta else {
        let (path, expected) = (attr.path(), listed(known.iter().copied()));
        let attribute = path.get_ident().map(Ident::to_string).unwrap_or_default();
        errors.at(path.span(), format!("`{name}`: `#[{attribute}(..)]` takes a list, expected one of: {expected}"));
        return;
    };
    let parser = |input: ParseStream<'_>| {
        each_key(name, input, known, errors, take);
        Ok(())
    };
    if let Err(error) = parser.parse2(list.tokens.clone()) {
        errors.push(error);
    }
}

/// Every key up to the end, going on after an error at the next comma.
pub(crate) fn each_key(name: &str, input: ParseStream<'_>, known: &[&str], errors: &mut Errors, take: Take<'_>) {
    while !input.is_empty() {
        if let Err(error) = one_key(name, input, known, errors, take) {
            errors.push(error);
            skip_to_comma(input);
        }
        // The separator, when there is one: `one_key` ends at a comma or at the end.
        let _ = input.parse::<Token![,]>();
    }
}

fn one_key(name: &str, input: ParseStream<'_>, known: &[&str], errors: &mut Errors, take: Take<'_>) -> syn::Result<()> {
    let expected = || listed(known.iter().copied());
    let key = input
        .call(Ident::parse_any)
        .map_err(|e| syn::Error::new(e.span(), format!("`{name}`: expected one of: {}", expected())))?;
    if !known.iter().any(|known| key == *known) {
        let message = format!("`{name}` has an unknown key `{key}`, expected one of: {}", expected());
        return Err(syn::Error::new(key.span(), message));
    }
    take(&key, input, errors)?;
    if input.is_empty() || input.peek(Token![,]) {
        return Ok(());
    }
    Err(input.error(format!("`{name}`: unexpected token after `{key}`, separate keys by commas")))
}

/// Types in a key's value may hold commas between `<` and `>`; a mistake there is then reported twice, which is harmless.
fn skip_to_comma(input: ParseStream<'_>) {
    while !input.is_empty() && !input.peek(Token![,]) {
        if input.parse::<TokenTree>().is_err() {
            return;
        }
    }
}

pub(crate) fn value(key: &Ident, input: ParseStream<'_>, example: &str, name: &str) -> syn::Result<()> {
    if input.parse::<Option<Token![=]>>()?.is_some() {
        return Ok(());
    }
    Err(syn::Error::new(key.span(), format!("`{name}`: `{key}` takes a value, as {example}")))
}

pub(crate) fn once<T>(slot: &mut Option<T>, value: T, key: &Ident, name: &str, errors: &mut Errors) {
    if slot.is_some() {
        twice(key, name, errors);
    } else {
        *slot = Some(value);
    }
}

pub(crate) fn twice(key: &Ident, name: &str, errors: &mut Errors) {
    errors.at(key.span(), format!("`{name}` has `{key}` twice: keep one"));
}

fn strings(
    slot: &mut Vec<LitStr>,
    key: &Ident,
    input: ParseStream<'_>,
    name: &str,
    errors: &mut Errors,
) -> syn::Result<()> {
    let example = if key == "tools" { "`tools(\"describe_table\", \"db_*\")`" } else { "`roles(\"user\")`" };
    let wrong = |at: Span| syn::Error::new(at, format!("`{name}`: `{key}` takes string literals, as {example}"));
    if !input.peek(syn::token::Paren) {
        return Err(wrong(key.span()));
    }
    let content;
    syn::parenthesized!(content in input);
    let values = Punctuated::<LitStr, Token![,]>::parse_terminated(&content);
    let values = values.map_err(|error| {
        // What is left unread would be a second error.
        let _ = content.parse::<TokenStream>();
        wrong(error.span())
    })?;
    if values.is_empty() {
        return Err(wrong(key.span()));
    }
    if slot.is_empty() {
        slot.extend(values);
    } else {
        twice(key, name, errors);
    }
    Ok(())
}

/// Values between parentheses, at least one.
pub(crate) fn list<T: Parse>(
    key: &Ident,
    input: ParseStream<'_>,
    example: &str,
    name: &str,
) -> syn::Result<Punctuated<T, Token![,]>> {
    let wrong = |at| syn::Error::new(at, format!("`{name}`: `{key}` takes a list, as {example}"));
    if !input.peek(syn::token::Paren) {
        return Err(wrong(key.span()));
    }
    let content;
    syn::parenthesized!(content in input);
    let values = Punctuated::parse_terminated(&content).map_err(|error| {
        // What is left unread would be a second error.
        let _ = content.parse::<TokenStream>();
        wrong(error.span())
    })?;
    if values.is_empty() { Err(wrong(key.span())) } else { Ok(values) }
}

/// A number of tokens. What syn accepts as an expression depends on which of its features a build turns on, so only the forms
/// that every build accepts are let through.
pub(crate) fn expression(key: &Ident, name: &str, input: ParseStream<'_>) -> syn::Result<Expr> {
    let start = input.span();
    let wrong = |at: Span| {
        let takes = "takes a number of tokens: an integer, the path of a constant, or arithmetic on them";
        syn::Error::new(at, format!("`{key}` {takes}"))
    };
    let expr = input.parse::<Expr>().map_err(|_| wrong(start))?;
    if !is_number(&expr) {
        return Err(wrong(expr.span()));
    }
    match own_type(expr.to_token_stream()) {
        Some(at) => Err(syn::Error::new(at, format!("`{key}` is a constant of its own: write `{name}`, not `Self`"))),
        None => Ok(expr),
    }
}

/// Where `Self` is written.
fn own_type(tokens: TokenStream) -> Option<Span> {
    tokens.into_iter().find_map(|token| match token {
        TokenTree::Ident(ident) => (ident == "Self").then(|| ident.span()),
        TokenTree::Group(group) => own_type(group.stream()),
        _ => None,
    })
}

fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Lit(lit) => matches!(lit.lit, Lit::Int(_)),
        Expr::Path(_) => true,
        Expr::Binary(binary) => is_number(&binary.left) && is_number(&binary.right),
        Expr::Paren(paren) => is_number(&paren.expr),
        Expr::Group(group) => is_number(&group.expr),
        Expr::Cast(cast) => is_number(&cast.expr),
        Expr::Call(call) => call.args.iter().all(is_number),
        _ => false,
    }
}

/// Whether a type is written as `Spans`, in any module.
pub(crate) fn is_spans(ty: &Type) -> bool {
    match ty {
        Type::Path(path) if path.qself.is_none() => {
            path.path.segments.last().is_some_and(|last| last.ident == "Spans" && last.arguments.is_none())
        }
        // A type that came through a `macro_rules!` fragment.
        Type::Group(group) => is_spans(&group.elem),
        Type::Paren(paren) => is_spans(&paren.elem),
        _ => false,
    }
}
