//! The derive's code reaches nothing the user may have shadowed.

#![no_implicit_prelude]
#![allow(dead_code, non_camel_case_types, unused_imports, reason = "names chosen to be in the way, and not reached")]

/// What a user might have under the names that generated code could reach for.
mod shadows {
    pub mod core {}
    pub mod std {}
    pub mod keepspan {}
    pub struct Option;
    pub struct Some;
    pub struct None;
    pub struct Default;
    pub struct Spans_;
    pub struct str;
    pub struct u16;
    pub struct u64;
    pub struct bool;
    pub struct String;
    pub struct Result;
    pub struct Ok;
    pub struct Err;
}

/// The library under another path.
mod elsewhere {
    pub mod library {
        pub use ::keepspan::*;
    }
}

mod shadowed {
    use super::shadows::*;
    use ::keepspan::{Action, Canonical, ContextState, Spans};

    ::keepspan::policy! {
        pub(super) House { requires(precondition => evictable), pinned(precondition), forbid(Mutation), max_budget = 100 }
    }
    ::keepspan::policy! {
        pub(super) Strict: House { max_decision = 90 + 9 }
    }

    #[derive(ContextState)]
    #[context(budget = 100, fixed = 9 + 1, policy = Strict)]
    pub(super) struct Shadowed {
        #[precondition(tools("a", "b_*"), pinned)]
        r#type: Spans,
        #[evictable(otherwise)]
        pub(super) core: Spans,
        #[context(derived)]
        std: Spans,
    }

    #[derive(Action)]
    #[action(state = Shadowed, requires(r#type), consent, check = agrees)]
    pub(super) struct Request {
        pub(super) r#type: super::Text,
        #[signature(with = super::lower)]
        pub(super) core: super::Text,
        pub(super) keepspan: Shape,
    }

    fn agrees(_: &Request, _: &::keepspan::action::Held<'_>) -> ::core::result::Result<(), super::Text> {
        ::core::result::Result::Ok(())
    }

    #[derive(Canonical)]
    pub(super) enum Shape {
        None,
        Some(super::Text),
        r#Ok { f: super::Text, _f: super::Text, k: super::Text },
    }
}

type Text = ::std::string::String;

fn lower(text: &Text) -> Text {
    text.to_lowercase()
}

/// Names and types that come in through a macro.
mod written {
    macro_rules! written {
        ($name:ident($state:ty, $lane:ident) { $($field:ident: $type:ty,)* } $with:path) => {
            #[derive(::keepspan::Action)]
            #[action(state = $state, requires($lane), check = $with)]
            pub(super) struct $name {
                $(pub(super) $field: $type,)*
                #[signature(skip)]
                at: (),
            }

            impl $name {
                pub(super) fn new($($field: $type),*) -> Self {
                    Self { $($field,)* at: () }
                }
            }

            #[derive(::keepspan::Canonical)]
            pub(super) enum Shape {
                A($($type),*),
                B { $($field: $type),* },
            }
        };
    }

    fn agrees(_: &Request, _: &::keepspan::action::Held<'_>) -> ::core::result::Result<(), super::Text> {
        ::core::result::Result::Ok(())
    }

    written!(Request(super::public::Public, holds) { _f: super::Text, _k: [u8; 2], } self::agrees);
}

mod renamed {
    use super::elsewhere::library::{ContextState, Spans};

    mod keepspan {}

    super::elsewhere::library::policy! {
        pub(super) House { crate = super::elsewhere::library, present(evictable) }
    }

    #[derive(ContextState)]
    #[context(crate = super::elsewhere::library, policy = self::House, budget = 300)]
    pub(super) struct Renamed {
        #[context(evictable)]
        pub(super) work: Spans,
        #[context(constraint)]
        pub(super) limits: Spans,
    }

    #[derive(super::elsewhere::library::Action)]
    #[action(crate = super::elsewhere::library, state = Renamed, requires(limits), destructive)]
    pub(super) struct Request {
        pub(super) part: Part,
    }

    #[derive(super::elsewhere::library::Canonical)]
    #[signature(crate = super::elsewhere::library)]
    pub(super) struct Part(pub(super) u8);
}

mod generic {
    use ::keepspan::{ContextState, Spans};

    #[derive(ContextState)]
    #[context(policy = super::public::House)]
    pub(super) struct Generic<'w, S, const N: usize = 3>
    where
        S: ::core::default::Default + 'w,
    {
        #[context(invariant)]
        pub(super) holds: Spans,
        #[context(skip)]
        pub(super) turn: S,
        #[context(skip)]
        marker: ::core::marker::PhantomData<&'w [S; N]>,
    }
}

/// A struct is as visible as any, and so is all that is written for it.
pub mod public {
    ::keepspan::policy! {
        /// As visible as what is under it.
        pub House { present(invariant) }
    }

    use ::keepspan::{ContextState, Spans};

    macro_rules! visible {
        ($($vis:vis $name:ident,)*) => {
            $(
                #[derive(ContextState)]
                #[context(policy = House)]
                $vis struct $name {
                    #[invariant]
                    $vis holds: Spans,
                }
            )*
        };
    }
    visible! {
        Private,
        pub(super) Parent,
        pub(in crate::public) Path,
        pub(crate) Crate,
        pub Public,
    }
    pub mod inner {
        use ::keepspan::{ContextState, Spans};
        visible! {
            pub(in super::super) Far,
        }
        use super::House;
    }
}

use ::keepspan::{Budget, Episode, Window, store::MemoryStore};

macro_rules! open {
    ($state:ty) => {{
        let opened =
            Window::<$state, _>::open(<MemoryStore as ::core::default::Default>::default(), Episode::new("e", "p"));
        let ::core::result::Result::Ok(window) = opened else { ::std::panic!("the window opens") };
        window
    }};
}

#[test]
fn shadowed_and_renamed_names_are_out_of_the_way() {
    let mut window = open!(shadowed::Shadowed);
    ::std::assert!(window.lanes().core.push("x").is_ok());
    ::std::assert_eq!(window.budget().map(Budget::tokens), ::core::option::Option::Some(100));
    ::std::assert!(open!(public::inner::Far).lanes().holds.push("x").is_ok());
    ::std::assert!(open!(renamed::Renamed).lanes().work.push("x").is_ok());
}

#[test]
fn generics_and_skipped_fields_stay_the_users_own() {
    let mut window = open!(generic::Generic<'static, ::std::string::String>);
    window.state_mut().turn.push('x');
    ::std::assert_eq!(window.state().turn, "x");
    ::std::assert!(window.lanes().holds.push("x").is_ok());
}

#[test]
fn a_struct_inside_a_function_works() {
    use ::keepspan::{ContextState, Spans};
    #[derive(ContextState)]
    struct Inner {
        #[context(constraint)]
        limit: Spans,
    }
    ::std::assert!(open!(Inner).lanes().limit.push("x").is_ok());
}

#[test]
fn a_request_of_shadowed_and_written_names_has_its_signature() {
    use ::keepspan::{Action, Signature};
    let text = |text: &str| <Text as ::core::convert::From<&str>>::from(text);
    let json = |json: &str| -> ::serde_json::Value { ::serde_json::from_str(json).unwrap_or_default() };
    let shape = shadowed::Shape::Ok { f: text("x"), _f: text("y"), k: text("z") };
    let request = shadowed::Request { r#type: text("A"), core: text("A"), keepspan: shape };
    let same = json(r#"{"type": "A", "core": "a", "keepspan": {"Ok": {"f": "x", "_f": "y", "k": "z"}}}"#);
    ::std::assert_eq!(request.signature(), Signature::of("Request", &same));
    for (shape, same) in [(shadowed::Shape::None, "\"None\""), (shadowed::Shape::Some(text("x")), r#"{"Some": "x"}"#)] {
        ::std::assert_eq!(Signature::of("", &shape), Signature::of("", &json(same)));
    }
    let request = renamed::Request { part: renamed::Part(3) };
    ::std::assert_eq!(request.signature(), Signature::of("Request", &json(r#"{"part": 3}"#)));
    let request = written::Request::new(text("x"), [1, 2]);
    ::std::assert_eq!(request.signature(), Signature::of("Request", &json(r#"{"_f": "x", "_k": [1, 2]}"#)));
    let (a, b) = (written::Shape::A(text("x"), [1, 2]), written::Shape::B { _f: text("x"), _k: [1, 2] });
    ::std::assert_eq!(Signature::of("", &a), Signature::of("", &json(r#"{"A": ["x", [1, 2]]}"#)));
    ::std::assert_eq!(Signature::of("", &b), Signature::of("", &json(r#"{"B": {"_f": "x", "_k": [1, 2]}}"#)));
}
