//! What an action and a form are refused for, where, and what they become.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};

use super::{check, parse};
use crate::errors::Errors;

fn action_errors(source: TokenStream) -> Errors {
    let mut errors = Errors::default();
    match syn::parse2(source) {
        Ok(input) => {
            let (declared, act) = parse::action(input, &mut errors);
            check::declared(&declared, &mut errors);
            check::act(&declared.head, &act, &mut errors);
        }
        Err(error) => errors.push(error),
    }
    errors
}

fn canonical_errors(source: TokenStream) -> Errors {
    let mut errors = Errors::default();
    match syn::parse2(source) {
        Ok(input) => check::declared(&parse::canonical(input, &mut errors), &mut errors),
        Err(error) => errors.push(error),
    }
    errors
}

#[track_caller]
fn is<const N: usize>(errors: Errors, expected: [&str; N]) {
    let found = errors.messages();
    assert_eq!(found, expected, "{found:#?}");
}

/// The errors of an action with these keys.
fn keys(keys: TokenStream) -> Errors {
    action_errors(quote!(
        #[action(#keys)]
        struct Drop {
            table: String,
        }
    ))
}

/// The errors of an action with this field.
fn field(field: TokenStream) -> Errors {
    action_errors(quote!(#[action(state = Agent)] struct Drop { table: String, #field }))
}

fn action(source: TokenStream) -> String {
    syn::parse2(source).map(|input| super::action(input).to_string()).unwrap_or_default()
}

fn canonical(source: TokenStream) -> String {
    syn::parse2(source).map(|input| super::canonical(input).to_string()).unwrap_or_default()
}

#[track_caller]
fn has<const N: usize>(code: &str, parts: [&str; N]) {
    for part in parts {
        assert!(code.contains(part), "{part} in {code}");
    }
}

#[test]
fn right_actions_have_no_error() {
    is(
        action_errors(quote!(
            #[action(state = a::Migration<'a, T, Vec<u8>>, requires(schema, r#type,), destructive)]
            #[action(consent, name = "drop", check = Self::agrees, crate = ks)]
            struct Drop<'a, T> {
                table: &'a str,
                #[signature(skip)]
                #[signature()]
                at: SystemTime,
                #[signature(with = a::lower, name = "old")]
                r#type: T,
            }
        )),
        [],
    );
    is(
        action_errors(quote!(
            #[action(state = Agent)]
            struct Drop;
        )),
        [],
    );
    is(
        field(quote!(
            #[signature(skip)]
            a: u8,
            #[signature(skip)]
            b: u8
        )),
        [],
    );
}

#[test]
fn an_action_is_a_struct_with_named_fields_or_none() {
    let end = "an action is a struct with named fields, or with none";
    let of = |item: TokenStream| action_errors(quote!(#[action(state = Agent)] #item));
    is(
        of(quote!(
            struct A(u8);
        )),
        [&format!("`A` is a tuple struct: {end}")],
    );
    is(
        of(quote!(
            enum A {
                B,
            }
        )),
        [&format!("`A` is an enum: {end}")],
    );
    is(of(quote!(union A { b: u8 })), [&format!("`A` is a union: {end}")]);
    let why = "which of its fields is set is not known, so it has no form";
    is(canonical_errors(quote!(union A { b: u8 })), [&format!("`A` is a union: {why}")]);
}

#[test]
fn action_keys() {
    let expected =
        "expected one of: `state`, `requires`, `destructive`, `consent`, `name`, `check`, `describe`, `crate`";
    let lanes = "`Drop`: `requires` takes a list, as `requires(schema, target)`";
    let name = "`Drop`: `name` takes a text, as `name = \"alter_column\"`";
    let agent = quote!(state = Agent);
    let none =
        "`Drop` names no state: add `#[action(state = Migration)]`, the struct of the windows that can permit it";
    is(keys(quote!()), [none]);
    is(keys(quote!(destructive)), [none]);
    is(keys(quote!(state)), ["`Drop`: `state` takes a value, as `state = Migration`"]);
    is(keys(quote!(#agent, #agent)), ["`Drop` has `state` twice: keep one"]);
    is(keys(quote!(#agent, lanes(schema))), [&format!("`Drop` has an unknown key `lanes`, {expected}")]);
    is(keys(quote!(#agent, 3)), [&format!("`Drop`: {expected}")]);
    is(keys(quote!(#agent, requires)), [lanes]);
    is(keys(quote!(#agent, requires())), [lanes]);
    is(keys(quote!(#agent, requires = schema)), [lanes]);
    is(keys(quote!(#agent, requires("schema"))), [lanes]);
    is(keys(quote!(#agent, requires(schema), requires(target))), ["`Drop` has `requires` twice: keep one"]);
    is(keys(quote!(#agent, requires(a, b, r#a))), ["`Drop` requires `a` twice: keep one"]);
    is(keys(quote!(#agent, destructive, destructive)), ["`Drop` has `destructive` twice: keep one"]);
    is(keys(quote!(#agent, consent, consent)), ["`Drop` has `consent` twice: keep one"]);
    is(
        keys(quote!(#agent, destructive = true)),
        ["`Drop`: unexpected token after `destructive`, separate keys by commas"],
    );
    is(keys(quote!(#agent, name)), ["`Drop`: `name` takes a value, as `name = \"alter_column\"`"]);
    is(keys(quote!(#agent, name = "")), [name]);
    is(keys(quote!(#agent, name = drop)), [name]);
    is(keys(quote!(#agent, name = "a", name = "b")), ["`Drop` has `name` twice: keep one"]);
    is(keys(quote!(#agent, check)), ["`Drop`: `check` takes a value, as `check = agrees`"]);
    is(keys(quote!(#agent, check = a, check = b)), ["`Drop` has `check` twice: keep one"]);
    is(keys(quote!(#agent, describe)), ["`Drop`: `describe` takes a value, as `describe = in_words`"]);
    is(keys(quote!(#agent, describe = a, describe = b)), ["`Drop` has `describe` twice: keep one"]);
    is(keys(quote!(#agent, crate)), ["`Drop`: `crate` takes a value, as `crate = path::to::keepspan`"]);
    is(
        action_errors(quote!(
            #[action]
            struct Drop;
        )),
        [&format!("`Drop`: `#[action(..)]` takes a list, {expected}"), none],
    );
}

#[test]
fn field_keys() {
    let expected = "expected one of: `skip`, `with`, `name`";
    is(field(quote!(#[signature(ignore)] a: u8)), [&format!("`a` has an unknown key `ignore`, {expected}")]);
    is(field(quote!(#[signature] a: u8)), [&format!("`a`: `#[signature(..)]` takes a list, {expected}")]);
    is(field(quote!(#[signature(skip, skip)] a: u8)), ["`a` has `skip` twice: keep one"]);
    is(field(quote!(#[signature(with)] a: u8)), ["`a`: `with` takes a value, as `with = lower_case`"]);
    is(field(quote!(#[signature(with = a, with = b)] a: u8)), ["`a` has `with` twice: keep one"]);
    is(field(quote!(#[signature(name = 3)] a: u8)), ["`a`: `name` takes a text, as `name = \"old_name\"`"]);
    is(field(quote!(#[signature(name = "b", name = "c")] a: u8)), ["`a` has `name` twice: keep one"]);
    is(
        field(quote!(#[signature(skip, with = a, name = "b")] a: u8)),
        [
            "`a` is skipped and in no signature: remove `with`, or `skip`",
            "`a` is skipped and in no signature: remove `name`, or `skip`",
        ],
    );
    let misplaced = "`#[action(..)]` stands on the struct; a field takes `#[signature(..)]`";
    is(field(quote!(#[action(skip)] a: u8)), [&format!("`a`: {misplaced}")]);
}

#[test]
fn names_tell_fields_and_variants_apart() {
    let same = "`a` has the name `table` in the signature, as the field `table` has: choose another";
    is(field(quote!(#[signature(name = "table")] a: u8)), [same]);
    is(field(quote!(#[signature(name = "a")] r#type: u8, #[signature(name = "type")] a: u8)), []);
    is(
        action_errors(quote!(
            #[action(state = Agent)]
            struct Drop {
                #[signature(skip)]
                a: u8,
                #[signature(name = "a")]
                b: u8,
            }
        )),
        [],
    );
    is(
        canonical_errors(quote!(
            enum E {
                A,
                #[signature(name = "A")]
                B {
                    x: u8,
                    #[signature(name = "x")]
                    y: u8,
                },
                C {
                    x: u8,
                },
            }
        )),
        [
            "`y` has the name `x` in the signature, as the field `x` has: choose another",
            "`B` has the name `A` in the signature, as the variant `A` has: choose another",
        ],
    );
}

#[test]
fn keys_of_other_types() {
    is(
        canonical_errors(quote!(
            #[signature(skip)]
            struct A;
        )),
        ["`A` has an unknown key `skip`, expected one of: `crate`"],
    );
    is(
        canonical_errors(quote!(
            enum A {
                #[signature(skip)]
                B,
            }
        )),
        ["`B` has an unknown key `skip`, expected one of: `name`"],
    );
    is(
        canonical_errors(quote!(
            struct A(#[signature(name = "a")] u8, #[signature(skip)] u8);
        )),
        ["`0` stands in a list, where no field has a name: remove `name`"],
    );
    is(
        action_errors(quote!(
            #[action(state = Agent)]
            #[signature(crate = ks)]
            struct Drop;
        )),
        ["`Drop`: `#[signature(..)]` stands on a field; an action takes `#[action(..)]`"],
    );
}

#[test]
fn errors_are_on_the_token_that_is_wrong() -> Result<(), Box<dyn std::error::Error>> {
    for (source, wrong) in [
        ("#[action(requires(a))] struct Request { }", "Request"),
        ("#[action(state = A, requires())] struct Request { }", "requires"),
        ("#[action(state = A, requires(schema, r#schema))] struct Request { }", "r#schema"),
        ("#[action(state = A, undo)] struct Request { }", "undo"),
        ("#[action(state = A, name = \"\")] struct Request { }", "\"\""),
        ("#[action(state = A)] struct Request { #[signature(skip, with = f)] a: u8 }", "with"),
        ("#[action(state = A)] struct Request { a: u8, #[signature(name = \"a\")] b: u8 }", "\"a\""),
        ("#[action(state = A)] struct Request { #[signature(hide)] a: u8 }", "hide"),
        ("#[action(state = A)] enum Request { }", "enum"),
    ] {
        let places = action_errors(source.parse().map_err(|_| source)?).places();
        let found: Vec<_> = places.into_iter().map(|place| (place.start, source.get(place))).collect();
        assert_eq!(found, [(source.find(wrong).ok_or(wrong)?, Some(wrong))], "{source}");
    }
    Ok(())
}

#[test]
fn an_action_says_what_it_is() {
    let code = action(quote!(
        #[action(state = Agent<T>, requires(schema, r#type), destructive, consent, name = "drop", check = Self::agrees)]
        struct Drop<'a, T: Clone, U>
        where
            U: Copy,
        {
            table: &'a [T],
            #[signature(skip)]
            nonce: U,
        }
    ));
    has(
        &code,
        [
            "use :: keepspan :: __private as _k ;",
            "impl < 'a , T : Clone , U > _k :: Action for Drop < 'a , T , U > where U : Copy , T : _k :: Canonical {",
            "impl < 'a , T : Clone , U > _k :: Canonical for Drop < 'a , T , U > where U : Copy , T : _k :: Canonical {",
            "type State = Agent < T > ;",
            "type Effect = _k :: effect :: Destructive ;",
            "type Consent = _k :: consent :: Needed ;",
            "const NAME : _k :: Str = \"drop\" ;",
            "_k :: Requirement :: of :: < Self :: State , _ > (| _l | & _l . schema) ,",
            "(| _l | & _l . r#type)",
            "fn check (& self , _h : & _k :: Held < '_ >) -> _k :: Checked { Self :: agrees (self , _h) }",
            "_f . open () ; _f . field (\"table\" , & self . table) ; _f . close () ;",
        ],
    );
    assert!(!code.contains("nonce"), "{code}");
    let code = action(quote!(
        #[action(state = Agent, crate = self::ks)]
        struct r#Drop;
    ));
    has(
        &code,
        [
            "use self :: ks :: __private as _k ;",
            "type Effect = _k :: effect :: Ordinary ;",
            "type Consent = _k :: consent :: NotNeeded ;",
            "const NAME : _k :: Str = \"Drop\" ;",
            "const REQUIRES : & 'static [_k :: Requirement] = & [] ;",
            "{ _f . open () ; _f . close () ; }",
        ],
    );
    assert!(!code.contains("fn check") && !code.contains("keepspan"), "{code}");
}

#[test]
fn fields_are_written_in_the_order_of_their_names() {
    let code = canonical(quote!(
        struct A {
            b: u8,
            #[signature(name = "é")]
            a: u8,
            r#type: u8,
            #[signature(with = lower, name = "aa")]
            z: u8,
            #[signature(name = "B")]
            c: u8,
        }
    ));
    has(
        &code,
        ["_f . open () ; _f . field (\"B\" , & self . c) ; _f . field (\"aa\" , & lower (& self . z)) ; \
          _f . field (\"b\" , & self . b) ; _f . field (\"type\" , & self . r#type) ; \
          _f . field (\"é\" , & self . a) ; _f . close () ;"],
    );
}

#[test]
fn each_shape_has_its_form() {
    has(
        &canonical(quote!(
            struct A(u8);
        )),
        ["{ _k :: Canonical :: canonical (& self . 0 , _f) ; }"],
    );
    has(
        &canonical(quote!(
            struct A(u8, #[signature(skip)] u8);
        )),
        ["{ _f . list () ; _k :: Canonical :: canonical (& self . 0 , _f) ; _f . end () ; }"],
    );
    has(
        &canonical(quote!(
            struct A(#[signature(skip)] u8);
        )),
        ["{ _f . list () ; _f . end () ; }"],
    );
    has(
        &canonical(quote!(
            struct A;
        )),
        ["{ _f . open () ; _f . close () ; }"],
    );
    has(
        &canonical(quote!(
            enum A {}
        )),
        ["{ match * self { } }"],
    );
    has(
        &canonical(quote!(
            enum A {
                B,
                #[signature(name = "c")]
                C(u8, #[signature(skip)] u8),
                D {
                    f: u8,
                    r#type: u8,
                },
                E {},
            }
        )),
        [
            "Self :: B => _k :: Canonical :: canonical (\"B\" , _f) ,",
            "Self :: C { 0 : _0 , .. } => { _f . variant (\"c\") ; _f . list () ; \
             _k :: Canonical :: canonical (& * _0 , _f) ; _f . end () ; _f . close () ; }",
            "Self :: D { f : _0 , r#type : _1 , .. } => { _f . variant (\"D\") ; _f . open () ; \
             _f . field (\"f\" , & * _0) ; _f . field (\"type\" , & * _1) ; _f . close () ; _f . close () ; }",
            "Self :: E { .. } => { _f . variant (\"E\") ; _f . open () ; _f . close () ; _f . close () ; }",
        ],
    );
}

#[test]
fn only_a_type_in_the_form_is_bound() {
    has(
        &canonical(quote!(
            enum A<T, U, V, const N: usize> {
                B(Vec<[T; N]>),
                C {
                    #[signature(with = f)]
                    u: U,
                    #[signature(skip)]
                    v: V,
                },
            }
        )),
        ["impl < T , U , V , const N : usize > _k :: Canonical for A < T , U , V , N > where T : _k :: Canonical {"],
    );
}

#[test]
fn impls_are_written_after_an_error() {
    let code = action(quote!(
        #[action(state = Agent, requires(schema, schema), check = agrees)]
        struct Drop {
            at: Instant,
        }
    ));
    has(
        &code,
        ["compile_error", "impl _k :: Action for Drop", "type State = Agent ;", "impl _k :: Canonical for Drop"],
    );
    assert!(!code.contains("Requirement :: of") && !code.contains("agrees") && !code.contains("field"), "{code}");
    let code = action(quote!(
        struct Drop;
    ));
    has(&code, ["compile_error", "impl _k :: Canonical for Drop"]);
    let code = canonical(quote!(union A { b: u8 }));
    has(&code, ["compile_error", "impl _k :: Canonical for A"]);
}

#[test]
fn code_is_small_and_linear() {
    let sizes = [1_u32, 10, 50].map(|count| {
        let names: Vec<_> = (0..count).map(|at| format_ident!("field_{at:02}")).collect();
        let code = action(quote!(
            #[action(state = Migration, requires(#(#names),*), destructive, consent, check = agrees)]
            pub struct AlterColumn { #(#names: String),* }
        ));
        assert!(!code.contains("compile_error"), "{code}");
        (count as usize, code.len())
    });
    println!("(fields and lanes, bytes with spaces): {sizes:?}");
    for (count, bytes) in sizes {
        assert!(bytes <= count.saturating_mul(160).saturating_add(700), "{count} fields: {bytes} bytes");
    }
    let [_, (_, ten), (_, fifty)] = sizes;
    assert!(fifty <= ten.saturating_mul(5), "{fifty} to {ten}");
}
