//! The size of the code, its shape after an error, and the generated names.

use proc_macro2::{TokenStream, TokenTree};
use quote::{format_ident, quote};

use super::{derive, snake_case};
use crate::model::Kind;

fn expanded(source: proc_macro2::TokenStream) -> String {
    syn::parse2(source).map(|input| derive(input).to_string()).unwrap_or_default()
}

/// The code as a person would write it: `to_string` puts a space around every token.
fn tight(code: &str) -> usize {
    let mut out = String::new();
    let mut chars = code.chars().peekable();
    while let Some(now) = chars.next() {
        let word = |c: char| c.is_alphanumeric() || c == '_' || c == '\'';
        let between_words = out.chars().last().is_some_and(word) && chars.peek().copied().is_some_and(word);
        if now != ' ' || between_words {
            out.push(now);
        }
    }
    out.len()
}

/// A struct of `count` lanes, all kinds in turn, one in nine routed.
fn lanes(count: usize) -> String {
    let fields = (0..count).zip(Kind::NAMES.iter().cycle()).map(|(at, kind)| {
        let (name, kind) = (format_ident!("field_{at:02}"), format_ident!("{kind}"));
        let routing = match (at, kind == "precondition") {
            (0, _) => quote!((otherwise)),
            (_, true) => {
                let tool = format!("tool_{at:02}");
                quote!((tools(#tool), pinned))
            }
            _ => quote!(),
        };
        quote!(#[#kind #routing] #name: Spans)
    });
    expanded(quote!(#[context(budget = 24_000)] pub struct Migration { #(#fields),* }))
}

#[test]
fn code_is_small_and_linear() {
    let sizes = [1_u32, 10, 50].map(|count| {
        let code = lanes(count as usize);
        assert!(!code.contains("compile_error"), "{code}");
        (count, tight(&code), code.len())
    });
    println!("(fields, tight, spaced): {sizes:?}");
    for (count, tight, spaced) in sizes {
        let count = count as usize;
        assert!(tight <= count.saturating_mul(250).saturating_add(1024), "{count} fields: {tight} bytes");
        // The same budget, with room for the spaces that `to_string` adds.
        assert!(spaced <= count.saturating_mul(350).saturating_add(1300), "{count} fields: {spaced} bytes, spaced");
    }
    let [_, (_, ten, ten_spaced), (_, fifty, fifty_spaced)] = sizes;
    assert!(fifty.saturating_mul(10) <= ten.saturating_mul(55), "{fifty} to {ten}");
    assert!(fifty_spaced.saturating_mul(10) <= ten_spaced.saturating_mul(55), "{fifty_spaced} to {ten_spaced}");
}

#[test]
fn items_are_written_after_an_error() {
    let code = expanded(quote!(
        struct Migration {
            schema: Spans,
            #[evictable]
            work: Spans,
            turn: u32,
        }
    ));
    for part in ["compile_error", "struct MigrationLanes", "schema : :: keepspan :: Lane", "impl _k :: ContextState"] {
        assert!(code.contains(part), "{part} in {code}");
    }
    assert!(!code.contains("Default"), "no follow-up about `u32`: {code}");
    let code = expanded(quote!(
        enum Migration {
            Work(Spans),
        }
    ));
    assert!(code.contains("compile_error") && code.contains("impl _k :: ContextState for Migration"), "{code}");
}

#[test]
fn visibility_and_documentation_are_the_fields_own() {
    let code = expanded(quote!(
        pub(crate) struct Migration {
            #[doc = "As read."]
            #[evictable]
            pub(super) r#type: Spans,
        }
    ));
    for part in [
        "pub (crate) mod migration_lanes { pub (crate) enum r#type { } }",
        "# [doc = \"As read.\"] pub (super) r#type : :: keepspan :: Lane",
        "const AT : _N = (0 , \"type\")",
    ] {
        assert!(code.contains(part), "{part} in {code}");
    }
}

#[test]
fn own_generics_do_not_collide() {
    let code = expanded(quote!(
        struct Migration<'__w, __T> {
            #[evictable]
            work: Spans,
            #[context(skip)]
            turn: Option<&'__w __T>,
        }
    ));
    assert!(code.contains("type Lanes < '__w_ , __T_ : '__w_ , __U : '__w_ >"), "{code}");
}

#[test]
fn the_library_can_have_another_path() {
    let code = expanded(quote!(
        #[context(crate = self::ks)]
        struct A {
            #[evictable]
            work: Spans,
        }
    ));
    assert!(code.contains("use self :: ks :: __private") && !code.contains("keepspan"), "{code}");
}

#[test]
fn module_names_are_snake_case() {
    for (name, expected) in [
        ("Migration", "migration"),
        ("HttpState2", "http_state2"),
        ("HTTPState", "http_state"),
        ("V2Plan", "v2_plan"),
        ("plan", "plan"),
        ("My_Plan", "my_plan"),
        ("ÜberPlan", "über_plan"),
    ] {
        assert_eq!(snake_case(name), expected);
    }
}

/// The text of the source at which each literal, name or number of the code stands.
fn places<'s>(code: TokenStream, source: &'s str, found: &mut Vec<(String, &'s str)>) {
    for token in code {
        let at = source.get(token.span().byte_range()).unwrap_or_default();
        match token {
            TokenTree::Group(group) => places(group.stream(), source, found),
            token => found.push((token.to_string(), at)),
        }
    }
}

#[test]
fn what_is_held_is_held_at_the_users_own_token() -> syn::Result<()> {
    let source =
        "#[context(budget = A, trigger = b::C, policy = House)] struct S { #[constraint(pinned)] limits: Spans }";
    let (code, mut found) = (derive(syn::parse_str(source)?), Vec::new());
    places(code, source, &mut found);
    for (call, at) in
        [("key", "A"), ("\"budget\"", "A"), ("\"trigger\"", "b::C"), ("whole", "House"), ("lane", "constraint")]
    {
        assert!(found.contains(&(call.to_owned(), at)), "{call} at {at} in {found:?}");
    }
    Ok(())
}

#[test]
fn a_struct_without_budget_and_policy_has_nothing_to_evaluate() {
    let code = expanded(quote!(
        struct A {
            #[evictable]
            work: Spans,
        }
    ));
    assert!(!code.contains("_H") && !code.contains("_B") && code.contains("Policy = _k :: Unrestricted"), "{code}");
}

#[test]
fn a_generic_struct_is_named_by_a_marker() {
    let code = expanded(quote!(
        #[context(policy = House)]
        pub(in crate::a) struct Plan<T: Default> {
            #[evictable]
            work: Spans,
            #[context(skip)]
            turn: T,
        }
    ));
    for part in [
        "pub (in crate :: a) enum work { } pub (in crate :: a) enum Plan { }",
        "type _O = plan_lanes :: Plan",
        "impl < T : Default > _k :: Governed for Plan < T > { type Policy = House ; }",
        "impl _k :: Governed for plan_lanes :: Plan { type Policy = House ; }",
    ] {
        assert!(code.contains(part), "{part} in {code}");
    }
}

#[test]
fn markers_are_as_visible_as_the_struct() {
    for (vis, inner) in [
        (quote!(), "pub (super) enum work"),
        (quote!(pub), "pub enum work"),
        (quote!(pub(self)), "pub (super) enum work"),
        (quote!(pub(super)), "pub (in super :: super) enum work"),
        (quote!(pub(in super::super)), "pub (in super :: super :: super) enum work"),
        (quote!(pub(in self)), "pub (super) enum work"),
    ] {
        let code = expanded(quote!(
            #vis struct A {
                #[evictable]
                work: Spans,
            }
        ));
        assert!(code.contains(inner), "{inner} in {code}");
    }
}
