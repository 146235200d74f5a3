//! What the terms of a policy mean together.

use proc_macro2::Ident;
use syn::ext::IdentExt as _;

use super::model::{ACTS, Named, Policy};
use crate::{errors::Errors, model::Kind, parse::listed};

pub(super) fn check(policy: &Policy, errors: &mut Errors) {
    let name = policy.ident.unraw();
    for (one, other) in &policy.requires {
        if one.kind == other.kind {
            let kind = &one.at;
            let message = format!("`{name}`: a `#[{kind}]` field is there whenever there is one: require another kind");
            errors.at(other.at.span(), message);
        }
    }
    for Named { kind, at } in policy.pinned.iter().filter(|named| !named.kind.is_protected()) {
        let why = if *kind == Kind::Instruction { "already never leaves" } else { "cannot be `pinned`" };
        errors.at(at.span(), format!("`{name}`: `#[{at}]` {why}: remove it"));
    }
    for act in policy.forbid.iter().filter(|act| ACTS.iter().all(|known| *act != known)) {
        let expected = listed(ACTS.iter().copied());
        errors.at(act.span(), format!("`{name}` forbids an unknown act `{act}`, expected one of: {expected}"));
    }
    repeated(&name, policy.present.iter().map(|named| &named.at), errors);
    repeated(&name, policy.pinned.iter().map(|named| &named.at), errors);
    repeated(&name, policy.forbid.iter(), errors);
}

fn repeated<'a>(name: &Ident, words: impl Iterator<Item = &'a Ident>, errors: &mut Errors) {
    let mut seen = Vec::new();
    for word in words {
        if seen.contains(&word) {
            errors.at(word.span(), format!("`{name}` names `{word}` twice: keep one"));
        }
        seen.push(word);
    }
}
