//! Every message, and that all the mistakes of a struct are reported at once.

use proc_macro2::TokenStream;
use quote::quote;

use super::check;
use crate::{errors::Errors, parse::parse};

fn messages(source: TokenStream) -> Vec<String> {
    let mut errors = Errors::default();
    match syn::parse2(source) {
        Ok(input) => {
            check(parse(input, &mut errors), &mut errors);
        }
        Err(error) => errors.push(error),
    }
    errors.messages()
}

/// The messages of a struct with this field and a lane that takes the rest.
fn field(field: TokenStream) -> Vec<String> {
    messages(quote!(struct Migration { #field, #[evictable(otherwise)] work: Spans }))
}

fn is<const N: usize>(found: Vec<String>, expected: [&str; N]) {
    assert_eq!(found, expected, "{found:#?}");
}

const KINDS: &str = "`#[instruction]`, `#[precondition]`, `#[invariant]`, `#[constraint]`, `#[negative_result]`, \
                     `#[scope_qualifier]`, `#[evictable]`, `#[rationale]`, `#[derived]`";

#[test]
fn right_structs_have_no_error() {
    is(
        messages(quote!(
            #[context(budget = LIMIT * 2, crate = ks)]
            struct Migration {
                #[instruction(roles("system"))]
                rules: keepspan::Spans,
                #[precondition(tools("describe_table", "db_*", "*"), pinned)]
                schema: Spans,
                #[context(negative_result(on_error))]
                failed: ::keepspan::Spans,
                #[evictable(otherwise)]
                work: Spans,
                #[rationale]
                decisions: Spans,
                #[derived()]
                recap: Spans,
                #[context(skip)]
                turn: u32,
            }
        )),
        [],
    );
    is(
        messages(quote!(
            struct Migration {
                #[evictable]
                work: Spans,
            }
        )),
        [],
    );
}

#[test]
fn only_structs_with_named_fields() {
    let end = "declare the lanes in a struct with named fields";
    is(
        messages(quote!(
            enum A {
                B,
            }
        )),
        [&format!("`A` is an enum: {end}")],
    );
    is(messages(quote!(union A { b: u8 })), [&format!("`A` is a union: {end}")]);
    is(
        messages(quote!(
            struct A(Spans);
        )),
        [&format!("`A` is a tuple struct: {end}")],
    );
    is(
        messages(quote!(
            struct A;
        )),
        [&format!("`A` is a unit struct: {end}")],
    );
    is(
        messages(quote!(
            struct A {
                #[context(skip)]
                turn: u32,
            }
        )),
        ["`A` has no lane: add a `Spans` field with a kind, as `#[evictable] work: Spans`"],
    );
}

#[test]
fn struct_keys() {
    let number = "`budget` takes a number of tokens: an integer, the path of a constant, or arithmetic on them";
    let expected = "expected one of: `budget`, `fixed`, `trigger`, `index`, `rationale`, `margin`, `reserve`, `keep`, \
                    `policy`, `crate`";
    let with = |keys| {
        messages(quote!(
            #[context(#keys)]
            struct A {
                #[evictable]
                work: Spans,
            }
        ))
    };
    is(with(quote!(size = 3)), [&format!("`A` has an unknown key `size`, {expected}")]);
    is(with(quote!(budget)), ["`A`: `budget` takes a value, as `budget = 24_000`"]);
    is(with(quote!(crate)), ["`A`: `crate` takes a value, as `crate = path::to::keepspan`"]);
    is(with(quote!(budget = "x", crate = b)), [number]);
    is(with(quote!(budget = { 3 })), [number]);
    is(with(quote!(budget = 1, budget = 2)), ["`A` has `budget` twice: keep one"]);
    is(with(quote!(budget = 9, trigger = 1, trigger = 2)), ["`A` has `trigger` twice: keep one"]);
    is(with(quote!(policy)), ["`A`: `policy` takes a value, as `policy = House`"]);
    is(with(quote!(policy = House, policy = Other)), ["`A` has `policy` twice: keep one"]);
    is(with(quote!(budget = 1 2)), ["`A`: unexpected token after `budget`, separate keys by commas"]);
    is(with(quote!(3)), [&format!("`A`: {expected}")]);
    is(
        messages(quote!(
            #[context]
            struct A {
                #[evictable]
                work: Spans,
            }
        )),
        [&format!("`A`: `#[context(..)]` takes a list, {expected}")],
    );
}

#[test]
fn a_budget_is_a_constant_with_parts() {
    let with = |keys| {
        messages(quote!(
            #[context(#keys)]
            struct A {
                #[evictable]
                work: Spans,
            }
        ))
    };
    is(with(quote!(trigger = 9)), ["`A` has `trigger` and no `budget`, of which it is a part: add `budget = ..`"]);
    is(
        with(quote!(keep = 9, policy = House, index = 3)),
        [
            "`A` has `keep` and no `budget`, of which it is a part: add `budget = ..`",
            "`A` has `index` and no `budget`, of which it is a part: add `budget = ..`",
        ],
    );
    is(
        with(quote!(budget = LIMIT * 2, fixed = 3 + (Self::FIXED as u64))),
        ["`fixed` is a constant of its own: write `A`, not `Self`"],
    );
    is(
        with(quote!(budget = 9, trigger = "x")),
        ["`trigger` takes a number of tokens: an integer, the path of a constant, or arithmetic on them"],
    );
    is(with(quote!(budget = crate::LIMIT, trigger = f(8), keep = 1)), []);
}

#[test]
fn one_kind_per_lane() {
    is(field(quote!(schema: Spans)), [&format!("`schema` has no kind: add one of {KINDS}")]);
    is(
        field(quote!(#[precondition] #[evictable] schema: Spans)),
        ["`schema` is both `#[precondition]` and `#[evictable]`: a lane has one kind, remove one"],
    );
    is(field(quote!(#[evictable] #[evictable] schema: Spans)), ["`schema` has `#[evictable]` twice: remove one"]);
    is(
        field(quote!(#[precondition] schema: Vec<Spans>)),
        ["`schema` is `#[precondition]`, so its type must be `Spans`"],
    );
    is(
        field(quote!(#[precondition] schema: Spans<u8>)),
        ["`schema` is `#[precondition]`, so its type must be `Spans`"],
    );
    is(
        field(quote!(#[precondition = 3] schema: Spans)),
        ["`schema`: write `#[precondition]` or `#[precondition(..)]`"],
    );
}

#[test]
fn skipped_fields() {
    is(field(quote!(turn: u32)), ["`turn` is no lane, its type is not `Spans`: add `#[context(skip)]`"]);
    is(
        field(quote!(#[context(skip)] r#type: Spans)),
        ["`type` is a lane and cannot be skipped: give it a kind, or another type"],
    );
    is(
        field(quote!(#[context(skip)] #[evictable] old: Spans)),
        ["`old` is a lane, `#[evictable]`, and skipped: remove one of them"],
    );
    is(
        field(quote!(#[context(omit)] turn: u32)),
        [
            "`turn` has an unknown key `omit`, expected one of: `skip`, `instruction`, `precondition`, `invariant`, \
             `constraint`, `negative_result`, `scope_qualifier`, `evictable`, `rationale`, `derived`",
            "`turn` is no lane, its type is not `Spans`: add `#[context(skip)]`",
        ],
    );
}

#[test]
fn kind_keys() {
    is(
        field(quote!(#[precondition(tool("a"))] schema: Spans)),
        ["`schema` has an unknown key `tool`, expected one of: `tools`, `roles`, `on_error`, `otherwise`, `pinned`"],
    );
    let tools = "`schema`: `tools` takes string literals, as `tools(\"describe_table\", \"db_*\")`";
    is(field(quote!(#[precondition(tools)] schema: Spans)), [tools]);
    is(field(quote!(#[precondition(tools())] schema: Spans)), [tools]);
    is(field(quote!(#[precondition(tools = "a")] schema: Spans)), [tools]);
    is(field(quote!(#[precondition(tools("a", 3))] schema: Spans)), [tools]);
    let roles = "`schema`: `roles` takes string literals, as `roles(\"user\")`";
    is(field(quote!(#[precondition(roles(user))] schema: Spans)), [roles]);
    is(field(quote!(#[precondition(pinned, pinned)] schema: Spans)), ["`schema` has `pinned` twice: keep one"]);
    is(field(quote!(#[precondition(tools("a"), tools("b"))] schema: Spans)), ["`schema` has `tools` twice: keep one"]);
    is(
        field(quote!(#[precondition(on_error = true)] schema: Spans)),
        ["`schema`: unexpected token after `on_error`, separate keys by commas"],
    );
    is(
        field(quote!(#[precondition(tools(""))] schema: Spans)),
        ["`schema` has an empty tool name: write the tool's name, or a pattern as `\"db_*\"`"],
    );
    let star = "`schema`: `*` stands only at the end of a tool pattern, as `\"db_*\"`";
    is(field(quote!(#[precondition(tools("*a", "b**"))] schema: Spans)), [star, star]);
    is(
        field(quote!(#[precondition(roles("developer"))] schema: Spans)),
        ["`schema` has an unknown role `developer`, expected one of: `system`, `user`, `assistant`, `tool`"],
    );
}

#[test]
fn keys_that_a_kind_does_not_take() {
    is(
        field(quote!(#[instruction(pinned)] rules: Spans)),
        ["`rules`: `#[instruction]` already never leaves: remove `pinned`"],
    );
    is(
        field(quote!(#[derived(pinned)] recap: Spans)),
        ["`recap`: `#[derived]` cannot be `pinned`: remove it, or make the lane `#[precondition]`, `#[invariant]`, \
          `#[constraint]`, `#[negative_result]` or `#[scope_qualifier]`"],
    );
    is(
        field(quote!(#[rationale(on_error)] why: Spans)),
        ["`why`: `#[rationale]` is filled by pruning itself and takes no routing: remove `on_error`"],
    );
    is(
        field(quote!(#[derived(tools("a"))] recap: Spans)),
        ["`recap`: `#[derived]` is made by summarize and takes no routing: remove `tools`"],
    );
}

#[test]
fn routes_that_are_never_reached() {
    is(
        field(quote!(#[evictable(otherwise)] first: Spans)),
        ["`work` is never reached: `first` already has `otherwise`, keep one"],
    );
    is(
        field(quote!(#[invariant(on_error)] a: Spans, #[constraint(on_error)] b: Spans)),
        ["`b` is never reached: `a` already has `on_error`, keep one"],
    );
    is(
        field(quote!(#[invariant(tools("t"))] a: Spans, #[constraint(tools("t"))] b: Spans)),
        ["`b` is never reached by the tool `t`: `a` already has it, keep one"],
    );
    is(
        field(quote!(#[invariant(roles("user", "user"))] a: Spans)),
        ["`a` is never reached by the role `user`: `a` already has it, keep one"],
    );
    is(
        field(quote!(#[invariant(roles("user", "system", "tool", "assistant"))] a: Spans)),
        ["`work` is never reached: `roles` already route every role, remove `otherwise`"],
    );
    is(
        messages(quote!(
            struct A {
                #[invariant(tools("t"))]
                a: Spans,
            }
        )),
        ["`A` routes spans but has no `otherwise` lane: add `otherwise` to one, as `#[evictable(otherwise)]`"],
    );
}

#[test]
fn all_mistakes_at_once() {
    let found = messages(quote!(
        #[context(size = 1, budget = "x")]
        struct Migration {
            schema: Spans,
            #[precondition(tool("a"), roles("nobody"), on_error)]
            target: Spans,
            turn: u32,
            #[evictable]
            #[derived]
            work: Spans,
        }
    ));
    assert_eq!(found.len(), 8, "{found:#?}");
}

#[test]
fn each_error_is_on_the_narrowest_token() {
    let at = |source: &str| -> String {
        let mut errors = Errors::default();
        match syn::parse_str(source) {
            Ok(input) => {
                check(parse(input, &mut errors), &mut errors);
            }
            Err(error) => errors.push(error),
        }
        errors.places().into_iter().filter_map(|place| source.get(place)).collect::<Vec<_>>().join("|")
    };
    for (source, expected) in [
        ("enum A {}", "enum"),
        ("struct A { schema: Spans }", "schema"),
        ("struct A { #[evictable] a: Spans, turn: Vec<u32> }", "Vec<u32>"),
        ("struct A { #[evictable] a: x::Spans<u8> }", "x::Spans<u8>"),
        ("struct A { #[evictable] #[derived] a: Spans }", "derived"),
        ("struct A { #[evictable(otherwise)] a: Spans, #[evictable(otherwise)] b: Spans }", "otherwise"),
        ("struct A { #[evictable(otherwise, tools(\"a\", \"a\"))] a: Spans }", "\"a\""),
        ("#[context(budget = \"x\")] struct A { #[instruction(pinned)] a: Spans }", "\"x\"|pinned"),
        ("struct Abc { #[evictable(on_error)] a: Spans }", "Abc"),
    ] {
        assert_eq!(at(source), expected, "{source}");
    }
}
