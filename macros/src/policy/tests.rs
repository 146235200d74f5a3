//! What a policy is refused for, where, and what one becomes.

use proc_macro2::TokenStream;
use quote::quote;
use syn::parse::Parser as _;

use super::{check, parse, policy};
use crate::errors::Errors;

fn errors(input: TokenStream) -> Errors {
    let mut errors = Errors::default();
    match (|input: syn::parse::ParseStream<'_>| parse::parse(input, &mut errors)).parse2(input) {
        Ok(declared) => check::check(&declared, &mut errors),
        Err(error) => errors.push(error),
    }
    errors
}

#[track_caller]
fn is(input: TokenStream, expected: &[&str]) {
    assert_eq!(errors(input).messages(), expected);
}

#[test]
fn the_head_names_the_policy() {
    let form = "a policy is written `pub House { .. }`, or `pub Strict: House { .. }` under another";
    is(quote!(), &[form]);
    is(quote!(House), &[form]);
    is(
        quote!(
            pub struct House {}
        ),
        &[form],
    );
    is(quote!(pub Strict: {}), &[form]);
    is(quote!(House {} Other {}), &["`House` ends before this: write one policy in a `policy!`"]);
    is(quote!(House {}), &[]);
    is(quote!(pub(crate) Strict: super::House { max_budget = LIMIT * 2, }), &[]);
}

#[test]
fn each_key_has_its_form() {
    let expected = "expected one of: `requires`, `present`, `pinned`, `forbid`, `max_budget`, `max_decision`, `crate`";
    is(quote!(House { budget = 3 }), &[&format!("`House` has an unknown key `budget`, {expected}")]);
    is(quote!(House { 3 }), &[&format!("`House`: {expected}")]);
    let pairs = "`House`: `requires` takes a list, as `requires(precondition => scope_qualifier)`";
    is(quote!(House { requires }), &[pairs]);
    is(quote!(House { requires(precondition) }), &[pairs]);
    is(quote!(House { requires(precondition = invariant) }), &[pairs]);
    is(quote!(House { present() }), &["`House`: `present` takes a list, as `present(instruction)`"]);
    is(quote!(House { pinned = 3 }), &["`House`: `pinned` takes a list, as `pinned(constraint)`"]);
    is(quote!(House { forbid }), &["`House`: `forbid` takes a list, as `forbid(Escalation, Mutation)`"]);
    is(quote!(House { max_budget }), &["`House`: `max_budget` takes a value, as `max_budget = 24_000`"]);
    is(
        quote!(House { max_budget = "x" }),
        &["`max_budget` takes a number of tokens: an integer, the path of a constant, or arithmetic on them"],
    );
    is(quote!(House { max_budget = 1, max_budget = 2 }), &["`House` has `max_budget` twice: keep one"]);
    is(
        quote!(House { forbid(Mutation) forbid(Escalation) }),
        &["`House`: unexpected token after `forbid`, separate keys by commas"],
    );
}

#[test]
fn kinds_and_acts_are_known_and_named_once() {
    let kinds = "expected one of: `instruction`, `precondition`, `invariant`, `constraint`, `negative_result`, \
                 `scope_qualifier`, `evictable`, `rationale`, `derived`";
    is(
        quote!(House { present(rules), requires(precondition => scope) }),
        &[
            &format!("`House` names an unknown kind `rules`, {kinds}"),
            &format!("`House` names an unknown kind `scope`, {kinds}"),
        ],
    );
    is(
        quote!(House { pinned(instruction, evictable, constraint) }),
        &[
            "`House`: `#[instruction]` already never leaves: remove it",
            "`House`: `#[evictable]` cannot be `pinned`: remove it",
        ],
    );
    is(
        quote!(House { requires(invariant => invariant) }),
        &["`House`: a `#[invariant]` field is there whenever there is one: require another kind"],
    );
    is(
        quote!(House { forbid(Evict, Mutation, Mutation), present(derived, derived) }),
        &[
            "`House` forbids an unknown act `Evict`, expected one of: `Escalation`, `Mutation`, `Authority`, `Override`, `AcceptLossy`, `OldestFirst`, \
             `LargestToolOutput`, `SupersededReads`, `FixedTemplate`, `OpenAiChat`, `OpenAiResponses`, `Anthropic`, \
             `Gemini`, `Mcp`, `Static`, `Dynamic`",
            "`House` names `derived` twice: keep one",
            "`House` names `Mutation` twice: keep one",
        ],
    );
}

#[test]
fn errors_are_on_the_token_that_is_wrong() -> Result<(), Box<dyn std::error::Error>> {
    for (source, wrong) in [
        ("House { present(rules) }", "rules"),
        ("House { requires(precondition => precondition, ) }", "precondition,"),
        ("House { pinned(constraint, derived) }", "derived"),
        ("House { forbid(Evict) }", "Evict"),
        ("House { max_budget = Self::MOST }", "Self"),
        ("House { forbid(Mutation), presence(derived) }", "presence"),
    ] {
        let places = errors(source.parse().map_err(|_| source)?).places();
        let found: Vec<_> = places.into_iter().map(|place| (place.start, source.get(place))).collect();
        assert_eq!(found, [(source.find(wrong).ok_or(wrong)?, Some(wrong.trim_end_matches(',')))], "{source}");
    }
    Ok(())
}

#[test]
fn what_is_not_forbidden_is_permitted() {
    let code = policy(quote!(
        /// Ours.
        pub House { forbid(Mutation), requires(precondition => scope_qualifier), pinned(constraint), max_budget = 9 }
    ))
    .to_string();
    for part in [
        "pub enum House { }",
        "type Under = _k :: Unrestricted ;",
        "of (\"House\") . requires :: < _t :: Precondition , _t :: ScopeQualifier > ()",
        ". always_pinned :: < _t :: Constraint > () . max_budget (9)",
        "Permits < _a :: Escalation > for House",
    ] {
        assert!(code.contains(part), "{part} in {code}");
    }
    assert!(!code.contains("Mutation") && !code.contains("compile_error"), "{code}");
}

#[test]
fn a_policy_is_written_after_an_error() {
    let code = policy(quote!(Strict: House { forbid(Evict), max_budget = 9, crate = self::ks })).to_string();
    for part in ["compile_error", "type Under = House", "impl _k :: Policy for Strict", "use self :: ks :: __private"] {
        assert!(code.contains(part), "{part} in {code}");
    }
    assert!(!code.contains("tightens") && !code.contains("keepspan"), "{code}");
}
