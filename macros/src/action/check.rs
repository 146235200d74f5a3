//! What the parts mean together: names that tell fields apart, keys that do not contradict each other.

use std::collections::HashMap;

use proc_macro2::Span;
use syn::{Member, ext::IdentExt as _};

use super::model::{Act, Body, Content, Declared, Field, Head, Variant};
use crate::errors::Errors;

pub(super) fn declared(declared: &Declared, errors: &mut Errors) {
    match &declared.body {
        Body::Struct(content) => self::content(content, errors),
        Body::Enum(variants) => {
            variants.iter().for_each(|variant| content(&variant.content, errors));
            apart("variant", variants.iter().map(|variant| (variant.ident.unraw().to_string(), key(variant))), errors);
        }
        Body::Other => {}
    }
}

pub(super) fn act(head: &Head, act: &Act, errors: &mut Errors) {
    let name = head.ident.unraw();
    if act.state.is_none() && !act.state_met {
        let add = "add `#[action(state = Migration)]`, the struct of the windows that can permit it";
        errors.at(head.ident.span(), format!("`{name}` names no state: {add}"));
    }
    let lanes: Vec<_> = act.requires.iter().flatten().collect();
    for (at, lane) in lanes.iter().enumerate() {
        if lanes.iter().take(at).any(|other| other.unraw() == lane.unraw()) {
            errors.at(lane.span(), format!("`{name}` requires `{}` twice: keep one", lane.unraw()));
        }
    }
}

/// A variant's name in the form, and where that is written.
pub(super) fn key(variant: &Variant) -> (String, Span) {
    let own = || (variant.ident.unraw().to_string(), variant.ident.span());
    variant.name.as_ref().map_or_else(own, |name| (name.value(), name.span()))
}

fn content(content: &Content, errors: &mut Errors) {
    for field in content.fields() {
        keys(field, errors);
    }
    if let Content::Record(fields) = content {
        let kept = fields.iter().filter(|field| field.is_kept());
        apart("field", kept.map(|field| (field.label(), field.key())), errors);
    }
}

fn keys(field: &Field, errors: &mut Errors) {
    let label = field.label();
    let named = field.name.as_ref().map(|name| &name.at);
    for key in field.with.as_ref().map(|with| &with.at).into_iter().chain(named).filter(|_| !field.is_kept()) {
        errors.at(key.span(), format!("`{label}` is skipped and in no signature: remove `{key}`, or `skip`"));
    }
    if let (Member::Unnamed(_), Some(key)) = (&field.member, named.filter(|_| field.is_kept())) {
        errors.at(key.span(), format!("`{label}` stands in a list, where no field has a name: remove `name`"));
    }
}

/// That no two have one name in the form.
fn apart(what: &str, named: impl Iterator<Item = (String, (String, Span))>, errors: &mut Errors) {
    let mut seen = HashMap::<String, String>::new();
    for (label, (name, at)) in named {
        match seen.get(&name) {
            Some(first) => errors.at(
                at,
                format!(
                    "`{label}` has the name `{name}` in the signature, as the {what} `{first}` has: choose another"
                ),
            ),
            None => {
                seen.insert(name, label);
            }
        }
    }
}
