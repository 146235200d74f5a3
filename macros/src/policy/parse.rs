//! Tokens into [`Policy`]; only the shape is judged here.

use proc_macro2::{Ident, TokenStream};
use syn::{
    Attribute, Path, Token,
    ext::IdentExt as _,
    parse::{Parse, ParseBuffer, ParseStream},
};

use super::model::{Named, Policy};
use crate::{
    errors::Errors,
    model::{Kind, Number},
    parse::{each_key, expression, library, list, listed, twice, value},
};

const KEYS: &[&str] = &["requires", "present", "pinned", "forbid", "max_budget", "max_decision", "crate"];

pub(super) fn parse(input: ParseStream<'_>, errors: &mut Errors) -> syn::Result<Policy> {
    let (mut policy, content) = head(input).map_err(|error| {
        // What is left unread would be a second error.
        let _ = input.parse::<TokenStream>();
        let form = "a policy is written `pub House { .. }`, or `pub Strict: House { .. }` under another";
        syn::Error::new(error.span(), form)
    })?;
    terms(&mut policy, &content, errors);
    let rest = input.parse::<TokenStream>()?;
    if !rest.is_empty() {
        errors.on(&rest, format!("`{}` ends before this: write one policy in a `policy!`", policy.ident.unraw()));
    }
    Ok(policy)
}

/// Up to the braces, and what is between them.
fn head<'a>(input: ParseStream<'a>) -> syn::Result<(Policy, ParseBuffer<'a>)> {
    let (attrs, vis, ident) = (input.call(Attribute::parse_outer)?, input.parse()?, input.parse()?);
    let under = input.parse::<Option<Token![:]>>()?.map(|_| input.call(Path::parse_mod_style)).transpose()?;
    let content;
    syn::braced!(content in input);
    let policy = Policy {
        attrs,
        vis,
        ident,
        under,
        library: None,
        requires: Vec::new(),
        present: Vec::new(),
        pinned: Vec::new(),
        forbid: Vec::new(),
        ceilings: Vec::new(),
    };
    Ok((policy, content))
}

fn terms(policy: &mut Policy, content: ParseStream<'_>, errors: &mut Errors) {
    let name = policy.ident.unraw().to_string();
    let mut seen = Vec::<Ident>::new();
    each_key(&name, content, KEYS, errors, &mut |key, input, errors| {
        if seen.contains(key) {
            twice(key, &name, errors);
        }
        seen.push(key.clone());
        let kind = |at: Ident, errors: &mut Errors| named(&name, at, errors);
        match key.to_string().as_str() {
            "requires" => {
                for Pair(one, other) in list(key, input, "`requires(precondition => scope_qualifier)`", &name)? {
                    let both = (kind(one, errors), kind(other, errors));
                    if let (Some(one), Some(other)) = both {
                        policy.requires.push((one, other));
                    }
                }
            }
            "present" => {
                let kinds = list::<Name>(key, input, "`present(instruction)`", &name)?;
                policy.present.extend(kinds.into_iter().filter_map(|Name(at)| kind(at, errors)));
            }
            "pinned" => {
                let kinds = list::<Name>(key, input, "`pinned(constraint)`", &name)?;
                policy.pinned.extend(kinds.into_iter().filter_map(|Name(at)| kind(at, errors)));
            }
            "forbid" => {
                let acts = list::<Name>(key, input, "`forbid(Escalation, Mutation)`", &name)?;
                policy.forbid.extend(acts.into_iter().map(|Name(act)| act));
            }
            "crate" => library(&mut policy.library, key, input, &name, errors)?,
            _ => {
                value(key, input, &format!("`{key} = 24_000`"), &name)?;
                policy.ceilings.push(Number { key: key.clone(), value: expression(key, &name, input)? });
            }
        }
        Ok(())
    });
}

fn named(name: &str, at: Ident, errors: &mut Errors) -> Option<Named> {
    let kind = Kind::named(&at.to_string());
    if kind.is_none() {
        let expected = listed(Kind::NAMES.iter().copied());
        errors.at(at.span(), format!("`{name}` names an unknown kind `{at}`, expected one of: {expected}"));
    }
    kind.map(|kind| Named { kind, at })
}

struct Name(Ident);

impl Parse for Name {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        input.parse().map(Self)
    }
}

/// `precondition => scope_qualifier`
struct Pair(Ident, Ident);

impl Parse for Pair {
    fn parse(input: ParseStream<'_>) -> syn::Result<Self> {
        let one = input.parse()?;
        input.parse::<Token![=>]>()?;
        Ok(Self(one, input.parse()?))
    }
}
