//! Attributes and fields into [`Declared`] and [`Act`]. Only the shape is judged here.

use proc_macro2::Ident;
use syn::{
    Attribute, Data, DeriveInput, Fields, Index, LitStr, Member, Path, ext::IdentExt as _, parse::ParseStream,
    spanned::Spanned as _,
};

use super::model::{Act, Body, Content, Declared, Field, Head, Key, Variant};
use crate::{
    errors::Errors,
    parse::{entries, library, list, once, value},
};

const ACTION_KEYS: &[&str] = &["state", "requires", "destructive", "consent", "name", "check", "describe", "crate"];
const TYPE_KEYS: &[&str] = &["crate"];
const FIELD_KEYS: &[&str] = &["skip", "with", "name"];
const VARIANT_KEYS: &[&str] = &["name"];

/// A request: a struct with named fields, or none.
pub(super) fn action(input: DeriveInput, errors: &mut Errors) -> (Declared, Act) {
    let DeriveInput { ident, generics, attrs, data, .. } = input;
    let mut head = Head { ident, generics, library: None };
    let mut act = Act::default();
    for attr in &attrs {
        if attr.path().is_ident("action") {
            action_attr(attr, &mut head, &mut act, errors);
        } else if attr.path().is_ident("signature") {
            let name = head.ident.unraw();
            errors.at(
                attr.path().span(),
                format!("`{name}`: `#[signature(..)]` stands on a field; an action takes `#[action(..)]`"),
            );
        }
    }
    let (at, found) = match data {
        Data::Struct(data) => match data.fields {
            Fields::Unnamed(_) => (head.ident.span(), "is a tuple struct"),
            fields => {
                let body = Body::Struct(content(fields, errors));
                return (Declared { head, body }, act);
            }
        },
        Data::Enum(data) => (data.enum_token.span, "is an enum"),
        Data::Union(data) => (data.union_token.span, "is a union"),
    };
    let name = head.ident.unraw();
    errors.at(at, format!("`{name}` {found}: an action is a struct with named fields, or with none"));
    (Declared { head, body: Body::Other }, act)
}

pub(super) fn canonical(input: DeriveInput, errors: &mut Errors) -> Declared {
    let DeriveInput { ident, generics, attrs, data, .. } = input;
    let mut head = Head { ident, generics, library: None };
    let name = head.ident.unraw().to_string();
    for attr in attrs.iter().filter(|attr| attr.path().is_ident("signature")) {
        entries(&name, attr, TYPE_KEYS, errors, &mut |key, input, errors| {
            library(&mut head.library, key, input, &name, errors)
        });
    }
    let body = match data {
        Data::Struct(data) => Body::Struct(content(data.fields, errors)),
        Data::Enum(data) => Body::Enum(data.variants.into_iter().map(|one| variant(one, errors)).collect()),
        Data::Union(data) => {
            let why = "which of its fields is set is not known, so it has no form";
            errors.at(data.union_token.span, format!("`{name}` is a union: {why}"));
            Body::Other
        }
    };
    Declared { head, body }
}

fn action_attr(attr: &Attribute, head: &mut Head, act: &mut Act, errors: &mut Errors) {
    let name = head.ident.unraw().to_string();
    entries(&name, attr, ACTION_KEYS, errors, &mut |key, input, errors| {
        match key.to_string().as_str() {
            "state" => {
                act.state_met = true;
                value(key, input, "`state = Migration`", &name)?;
                let state = input.parse()?;
                once(&mut act.state, state, key, &name, errors);
            }
            "requires" => {
                let lanes = list(key, input, "`requires(schema, target)`", &name)?.into_iter().collect();
                once(&mut act.requires, lanes, key, &name, errors);
            }
            "destructive" => once(&mut act.destructive, key.clone(), key, &name, errors),
            "consent" => once(&mut act.consent, key.clone(), key, &name, errors),
            "name" => {
                let text = text(key, input, "`name = \"alter_column\"`", &name)?;
                once(&mut act.name, text, key, &name, errors);
            }
            "check" => {
                value(key, input, "`check = agrees`", &name)?;
                let path = input.call(Path::parse_mod_style)?;
                once(&mut act.check, path, key, &name, errors);
            }
            "describe" => {
                value(key, input, "`describe = in_words`", &name)?;
                let path = input.call(Path::parse_mod_style)?;
                once(&mut act.describe, path, key, &name, errors);
            }
            _ => library(&mut head.library, key, input, &name, errors)?,
        }
        Ok(())
    });
}

fn content(fields: Fields, errors: &mut Errors) -> Content {
    let mut parsed = |fields: syn::punctuated::Punctuated<syn::Field, _>| -> Vec<Field> {
        fields.into_iter().enumerate().map(|(position, one)| field(position, one, errors)).collect()
    };
    match fields {
        Fields::Named(fields) => Content::Record(parsed(fields.named)),
        Fields::Unnamed(fields) => Content::Tuple(parsed(fields.unnamed)),
        Fields::Unit => Content::Unit,
    }
}

fn field(position: usize, field: syn::Field, errors: &mut Errors) -> Field {
    let member = field.ident.map_or_else(|| Member::Unnamed(Index::from(position)), Member::Named);
    let mut parsed = Field { member, position, ty: field.ty, skip: None, with: None, name: None };
    let name = parsed.label();
    for attr in &field.attrs {
        misplaced(&name, attr, errors);
        if !attr.path().is_ident("signature") {
            continue;
        }
        entries(&name, attr, FIELD_KEYS, errors, &mut |key, input, errors| {
            let at = key.clone();
            if key == "skip" {
                once(&mut parsed.skip, at, key, &name, errors);
            } else if key == "with" {
                value(key, input, "`with = lower_case`", &name)?;
                let value = input.call(Path::parse_mod_style)?;
                once(&mut parsed.with, Key { at, value }, key, &name, errors);
            } else {
                let value = text(key, input, "`name = \"old_name\"`", &name)?;
                once(&mut parsed.name, Key { at, value }, key, &name, errors);
            }
            Ok(())
        });
    }
    parsed
}

fn variant(variant: syn::Variant, errors: &mut Errors) -> Variant {
    let label = variant.ident.unraw().to_string();
    let mut name = None;
    for attr in &variant.attrs {
        misplaced(&label, attr, errors);
        if !attr.path().is_ident("signature") {
            continue;
        }
        entries(&label, attr, VARIANT_KEYS, errors, &mut |key, input, errors| {
            let text = text(key, input, "`name = \"old_name\"`", &label)?;
            once(&mut name, text, key, &label, errors);
            Ok(())
        });
    }
    Variant { ident: variant.ident, name, content: content(variant.fields, errors) }
}

/// `#[action(..)]` where the compiler lets it stand and nothing reads it.
fn misplaced(name: &str, attr: &Attribute, errors: &mut Errors) {
    if attr.path().is_ident("action") {
        let message = format!("`{name}`: `#[action(..)]` stands on the struct; a field takes `#[signature(..)]`");
        errors.at(attr.path().span(), message);
    }
}

/// A text that is not empty.
fn text(key: &Ident, input: ParseStream<'_>, example: &str, name: &str) -> syn::Result<LitStr> {
    value(key, input, example, name)?;
    let at = input.span();
    match input.parse::<LitStr>() {
        Ok(text) if !text.value().is_empty() => Ok(text),
        _ => Err(syn::Error::new(at, format!("`{name}`: `{key}` takes a text, as {example}"))),
    }
}
