//! One form for one request, whatever wrote it: its bytes, what it takes for the same, and what it tells apart.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque},
    marker::PhantomData,
    num::NonZero,
    rc::Rc,
    sync::Arc,
    time::{Duration, SystemTime},
};

use keepspan::{
    Action, Canonical, ContextState, Digest, Signature, Spans,
    action::{Bytes, Held},
};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

fn of(value: &(impl Canonical + ?Sized)) -> Signature {
    Signature::of("pinned", value)
}

/// The signature of the form that the documentation gives: `value` are the bytes that follow the name.
fn hashed(name: &str, value: &[u8]) -> String {
    let length = [u8::try_from(name.len()).unwrap_or(0x80)];
    assert!(length < [0x80], "a longer name has a longer number");
    Digest::of(&[b"keepspan action 1\0s", &length[..], name.as_bytes(), value].concat()).to_string()
}

#[derive(Canonical)]
struct Nothing;

#[derive(Canonical)]
struct Id(u64);

#[derive(Canonical)]
struct Pair(u8, #[signature(with = none)] &'static str, Option<u8>);

fn none(_: &&str) -> Option<u8> {
    None
}

#[derive(Canonical)]
struct Record {
    b: u8,
    a: &'static str,
    aa: Nothing,
    c: Option<u8>,
}

#[derive(Canonical)]
enum Wait<T = u8> {
    Idle,
    #[signature(name = "Until")]
    For(Option<T>),
    Both(T, T),
    Named {
        r#type: T,
        #[signature(skip)]
        f: T,
    },
    Empty {},
}

/// The digits were computed by another program, in another language, from the documentation.
#[test]
fn every_kind_of_value_has_these_bytes() {
    let map = BTreeMap::from([(1, Some('a')), (-1, Some('b')), (300, Some('c')), (2, None)]);
    let record = Record { b: 1, a: "x", aa: Nothing, c: None };
    let cases: [(Signature, &[u8], &str); 23] = [
        (of(&()), b"n", "66183267fac285663cfd608c5a574d0ab85eed8e1e24325006450d0acc096a39"),
        (of(&true), b"t", "845fa109e01a6747d04f1324def1d88618a7e5831fae98543d1872529137cd30"),
        (of(&false), b"f", "1b6c2dde3d3a13cd704fb5e2101865f4f3d3f1dc0536f88c408f57f123249cb3"),
        (of(&0), b"+\0", "b804788bf38a96a6a29e15e2a884564946c17a36c04f23f0a0f7b59c0fb137b7"),
        (of(&300), b"+\xac\x02", "1cf8072c021a4e9f2fe722f489bde5849299f8b09fa185cff1730b7e48b5f131"),
        (
            of(&u128::MAX),
            b"+\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x03",
            "f4776eb5b9926adf7fa6a353c3f699936cadd1b5665381b780e5d1fd9b671510",
        ),
        (of(&-1), b"-\x01", "5b77de4b6c87a095bf7c6421f42b75a7049b33160d5559bbc5680b9b4ddd564a"),
        (
            of(&i128::MIN),
            b"-\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02",
            "55a05d30053619afdad841276e21fdb5dc2ba9b290e01b5b575953d5bdc72351",
        ),
        (of(&0.5), b"d\x3f\xe0\0\0\0\0\0\0", "77a1eb3a0497b5d29569d80c1827aa71f81d02e8c49a086889e2f97238627041"),
        (of(&-f32::NAN), b"d\x7f\xf8\0\0\0\0\0\0", "b29032f0cd2846d9d281bc0c0c6fa59134faf026a0634cc0d71cd775e4c2e45b"),
        (
            of(&f64::INFINITY),
            b"d\x7f\xf0\0\0\0\0\0\0",
            "b47c7322dd79f4c4f6e8b58bf1cceee1e233f3f81f5b97fb50e34c44f47e173d",
        ),
        (
            of(&2_f64.powi(128)),
            b"d\x47\xf0\0\0\0\0\0\0",
            "aa4ce30cb6d5598e2fbfc40640f2a162e241f57bda8ba0c1380329384c94c290",
        ),
        (of("né"), b"s\x03n\xc3\xa9", "e96a69a4f0b5b70a09b0c1901be920c0b6380283d8c01795ee832c5b315aed3c"),
        (
            of(&"x".repeat(200)),
            &[&b"s\xc8\x01"[..], &[b'x'; 200]].concat(),
            "39f2c3423501a851511014c4c0781634cd8abd13337a916afd30d3c3f6acf6a0",
        ),
        (of(&Bytes(&[0, 255])), b"b\x02\0\xff", "0db104ece8d53ed4831f54ee8fe869e596e8dd9f4956aed50b556a17ad2ae1d9"),
        (
            of(&(1, [0; 0], None::<u8>)),
            b"[+\x01[]n]",
            "3928c4684e981836127877fd883c68c728c31430bd2adff300fec0bc2ef1ffab",
        ),
        (of(&Pair(1, "x", None)), b"[+\x01nn]", &hashed("pinned", b"[+\x01nn]")),
        (
            of(&record),
            b"{s\x01as\x01xs\x02aa{}s\x01b+\x01}",
            "facafd4797f2d23794eaa24bc9313858e1af0091911c49f29c382a07894352ae",
        ),
        (
            of(&map),
            b"{+\x01s\x01a+\xac\x02s\x01c-\x01s\x01b}",
            "f06f3126cb9f945e77a3faa8b1cc49fc75376eeec0d1a4977249b6ae48fe9df2",
        ),
        (of(&Wait::<u8>::Idle), b"s\x04Idle", "4d2cd54dba9aafa0774a2423b2b27c97c1d6bdfe02942f2d4b43c4a412c3bfe8"),
        (of(&Wait::Both(1, 2)), b"{s\x04Both[+\x01+\x02]}", &hashed("pinned", b"{s\x04Both[+\x01+\x02]}")),
        (of(&Wait::For(None::<u8>)), b"{s\x05Untiln}", &hashed("pinned", b"{s\x05Untiln}")),
        (of(&Id(7)), b"+\x07", &hashed("pinned", b"+\x07")),
    ];
    for (signature, bytes, digits) in cases {
        assert_eq!(signature.to_string(), hashed("pinned", bytes), "{bytes:?}");
        assert_eq!(signature.to_string(), digits, "{bytes:?}");
    }
}

#[derive(ContextState)]
struct Agent {
    #[precondition]
    schema: Spans,
    #[scope_qualifier(pinned)]
    r#type: Spans,
}

#[derive(Canonical)]
struct Limits {
    share: f32,
    rows: u16,
}

#[derive(Action)]
#[action(state = Agent, requires(schema, r#type), destructive, consent, name = "alter_column", check = agrees)]
struct AlterColumn<'a> {
    table: &'a str,
    #[signature(with = lower_case)]
    column: String,
    #[signature(name = "to")]
    new_type: Cow<'a, str>,
    limits: Limits,
    tags: BTreeSet<&'a str>,
    retries: NonZero<i8>,
    note: Option<String>,
    #[signature(skip)]
    asked_at: SystemTime,
}

fn lower_case(text: &str) -> String {
    text.to_lowercase()
}

fn agrees(request: &AlterColumn<'_>, held: &Held<'_>) -> Result<(), String> {
    held.names("schema", request.table).then_some(()).ok_or_else(|| "another table".into())
}

fn alter_column() -> AlterColumn<'static> {
    AlterColumn {
        table: "users",
        column: "ID".into(),
        new_type: "BIGINT".into(),
        limits: Limits { share: 0.25, rows: 1_000 },
        tags: BTreeSet::from(["b", "a"]),
        retries: NonZero::new(3).unwrap_or(NonZero::<i8>::MIN),
        note: None,
        asked_at: SystemTime::now(),
    }
}

#[test]
fn a_whole_action_has_these_bytes() {
    let request = alter_column();
    assert!(request.asked_at <= SystemTime::now(), "it has no part in what follows");
    let signature = request.signature();
    let bytes = b"{s\x06columns\x02ids\x06limits{s\x04rows+\xe8\x07s\x05shared\x3f\xd0\0\0\0\0\0\0}s\x07retries+\x03\
                  s\x05tables\x05userss\x04tags[s\x01as\x01b]s\x02tos\x06BIGINT}";
    assert_eq!(signature.to_string(), hashed("alter_column", bytes));
    assert_eq!(signature.to_string(), "f690b383b01fc4a3ddc639e93c86fed16b4c5ea48f4306e48f944b72a6f8e4ca");
    let call = json!({
        "to": "BIGINT", "tags": ["a", "b"], "table": "users", "retries": 3.0, "note": null, "column": "id",
        "limits": { "share": 0.25, "rows": 1000 },
    });
    assert_eq!(
        Signature::of("alter_column", &call),
        signature,
        "a tool call by name and arguments is the same request"
    );
    assert_ne!(Signature::of("alter_columns", &call), signature);
    assert_ne!(AlterColumn { table: "user", ..alter_column() }.signature(), signature);
    assert_ne!(AlterColumn { note: Some(String::new()), ..alter_column() }.signature(), signature);
}

#[test]
fn an_action_requires_the_lanes_that_it_names() {
    let required = format!("{:?}", AlterColumn::REQUIRES);
    assert_eq!(AlterColumn::REQUIRES.len(), 2);
    assert!(required.contains("\"schema\"") && required.contains("\"type\""), "{required}");
    assert!(Ping::REQUIRES.is_empty());
}

#[derive(Action)]
#[action(state = Agent)]
struct Ping;

#[derive(ContextState)]
struct Generic<T: Default> {
    #[invariant]
    holds: Spans,
    #[context(skip)]
    turn: T,
}

#[derive(Action)]
#[action(state = Generic<T>, requires(holds), check = Self::agrees)]
struct Move<'a, T: Default, U, const N: usize>
where
    U: Copy,
{
    to: &'a [U],
    turn: T,
    #[signature(skip)]
    seen: PhantomData<[U; N]>,
}

impl<T: Default, U: Copy, const N: usize> Move<'_, T, U, N> {
    fn agrees(&self, held: &Held<'_>) -> Result<(), String> {
        held.texts("holds").nth(self.to.len()).map(drop).ok_or_else(|| format!("{} {N}", self.to.len()))
    }
}

#[test]
fn generic_and_empty_actions_have_a_signature() {
    let request = Move::<u8, i64, 3> { to: &[1, 2], turn: 4, seen: PhantomData };
    assert_eq!(request.signature(), Signature::of("Move", &json!({ "turn": 4, "to": [1, 2] })));
    assert_eq!(request.seen, PhantomData);
    assert_eq!(Move::<u8, i64, 3>::REQUIRES.len(), 1);
    assert_eq!(Ping.signature(), Signature::of("Ping", &json!({})));
    let mut window =
        keepspan::Window::<Generic<u8>, _>::open(keepspan_tests::memory(), keepspan::Episode::new("e", "p"));
    assert_eq!(window.as_mut().map(|window| window.state().turn).ok(), Some(0));
}

mod moved {
    use keepspan::Canonical;

    #[derive(Canonical)]
    pub struct Bounds {
        pub rows: u64,
        pub note: Option<u8>,
        pub share: f64,
    }
}

#[test]
fn a_struct_that_is_moved_renamed_or_grown_keeps_its_signatures() {
    let bounds = moved::Bounds { rows: 1_000, note: None, share: 0.25 };
    assert_eq!(of(&bounds), of(&Limits { share: 0.25, rows: 1_000 }));
}

#[test]
fn numbers_are_told_apart_by_their_value() {
    let one = of(&1_u8);
    let ones = [
        of(&1_i8),
        of(&1_u16),
        of(&1_i16),
        of(&1_u32),
        of(&1_i32),
        of(&1_u64),
        of(&1_i64),
        of(&1_u128),
        of(&1_i128),
        of(&1_usize),
        of(&1_isize),
        of(&1_f32),
        of(&1_f64),
        of(&NonZero::<u128>::MIN),
        of(&json!(1)),
        of(&json!(1.0)),
    ];
    assert!(ones.iter().all(|signature| *signature == one), "{ones:?}");
    assert_eq!(of(&-0.0), of(&0));
    assert_eq!(of(&i64::MIN), of(&(i64::MIN as f64)));
    assert_eq!(of(&json!(u64::MAX)), of(&u64::MAX));
    assert_eq!(of(&json!(1e20)), of(&100_000_000_000_000_000_000_u128));
    assert_eq!(of(&(i128::MIN as f64)), of(&i128::MIN));
    assert_ne!(of(&9_007_199_254_740_993_u64), of(&9_007_199_254_740_992_u64));
    assert_ne!(of(&0.1_f32), of(&0.1_f64));
    assert_ne!(of(&f64::INFINITY), of(&f64::NEG_INFINITY));
    assert_ne!(of(&1), of(&-1));
    assert_ne!(of(&1), of(&true));
}

#[test]
fn text_is_as_it_is_and_what_holds_a_value_is_the_value() {
    let text = of("a");
    let same = [
        of(&"a"),
        of(&'a'),
        of(&String::from("a")),
        of(&Cow::Borrowed("a")),
        of(&Arc::<str>::from("a")),
        of(&Rc::<str>::from("a")),
        of(&Box::<str>::from("a")),
        of(&&mut "a"),
        of(&Some("a")),
        of(&Some(Some("a"))),
        of(&json!("a")),
    ];
    assert!(same.iter().all(|signature| *signature == text), "{same:?}");
    assert_ne!(of("é"), of("e\u{301}"), "nothing is normalized");
    assert_ne!(of("a"), of("a "));
    assert_ne!(of(""), of(&()));
    assert_ne!(of("1"), of(&1));
    assert_ne!(of("a"), of(&Bytes(b"a")));
    assert_ne!(of(&[1_u8]), of(&Bytes(&[1])));
}

#[test]
fn nothing_is_null() {
    let null = of(&Value::Null);
    let same = [of(&()), of(&None::<u8>), of(&Some(None::<u8>)), of(&PhantomData::<SystemTime>)];
    assert!(same.iter().all(|signature| *signature == null), "{same:?}");
    assert_eq!(of(&json!({ "a": null })), of(&Nothing));
    assert_eq!(of(&BTreeMap::from([(1, None::<u8>)])), of(&json!({})));
    let others = [of(&json!([null])), of(&json!([])), of(&json!({})), of(&false), of(&0)];
    assert!(others.iter().all(|signature| *signature != null), "{others:?}");
}

#[test]
fn lists_keep_their_order_and_sets_have_none() {
    let list = of(&json!([2, 1]));
    let same = [of(&[2, 1]), of(&vec![2, 1]), of(&VecDeque::from([2, 1])), of(&(2, 1)), of(&[2, 1][..])];
    assert!(same.iter().all(|signature| *signature == list), "{same:?}");
    let set = of(&json!([1, 2]));
    assert_ne!(list, set);
    assert_eq!(of(&BTreeSet::from([2, 1])), set);
    assert_eq!(of(&HashSet::from([2, 1])), set);
    assert_eq!(of(&BTreeSet::from([-1, 1])), of(&json!([1, -1])), "by the bytes of the forms");
    let long = "x".repeat(200);
    let texts = [long.as_str(), "b", "ab", ""];
    assert_eq!(of(&HashSet::from(texts)), of(&json!(["", "ab", "b", long])), "whatever their lengths");
    assert_ne!(of(&((), ((), ()))), of(&((), (), ())));
}

#[derive(Canonical, PartialEq, Eq, PartialOrd, Ord)]
struct Key {
    a: &'static str,
    #[signature(skip)]
    b: u8,
}

#[test]
fn entries_whose_keys_have_one_form_are_in_the_order_of_their_values() {
    let [first, second] = [1, 2].map(|b| move |value: &'static str| (Key { a: "k", b }, value));
    assert_eq!(of(&BTreeMap::from([first("x"), second("y")])), of(&BTreeMap::from([first("y"), second("x")])));
    assert_ne!(of(&BTreeMap::from([first("x"), second("y")])), of(&BTreeMap::from([first("x"), second("x")])));
}

#[derive(Canonical)]
struct Upload {
    #[signature(with = Bytes)]
    body: Vec<u8>,
    #[signature(with = Vec::len)]
    parts: Vec<SystemTime>,
}

#[test]
fn with_gives_a_field_another_form() {
    let upload = Upload { body: vec![1, 2], parts: vec![SystemTime::now(); 3] };
    assert_eq!(of(&upload).to_string(), hashed("pinned", b"{s\x04bodyb\x02\x01\x02s\x05parts+\x03}"));
}

#[test]
fn a_duration_is_a_record_and_variants_are_as_serde_writes_them() {
    assert_eq!(of(&Duration::new(3, 5)), of(&json!({ "secs": 3, "nanos": 5 })));
    assert_eq!(of(&Wait::<u8>::Idle), of(&json!("Idle")));
    assert_eq!(of(&Wait::For(Some(3))), of(&json!({ "Until": 3 })));
    assert_eq!(of(&Wait::Both(1, 2)), of(&json!({ "Both": [1, 2] })));
    let named = Wait::Named { r#type: 4, f: 5 };
    assert!(matches!(named, Wait::Named { f: 5, .. }));
    assert_eq!(of(&named), of(&json!({ "Named": { "type": 4 } })));
    assert_eq!(of(&Wait::<u8>::Empty {}), of(&json!({ "Empty": {} })));
    assert_ne!(of(&Wait::For(None::<u8>)), of(&json!({})), "which variant it is stays in the form");
}

#[test]
fn a_signature_is_read_back_as_it_is_shown() -> Result<(), Box<dyn std::error::Error>> {
    let signature = of("x");
    let shown = signature.to_string();
    assert_eq!(shown.parse::<Signature>()?, signature);
    assert_eq!(serde_json::to_value(signature)?, json!(shown));
    assert_eq!(serde_json::from_value::<Signature>(json!(shown))?, signature);
    assert_eq!(postcard::from_bytes::<Signature>(&postcard::to_allocvec(&signature)?)?, signature);
    for wrong in ["", &shown[1..], &"g".repeat(64), &"+a".repeat(32), &format!("{shown}0"), &"é".repeat(32)] {
        let error = wrong.parse::<Signature>().err().ok_or(wrong)?;
        assert_eq!(error.length, wrong.len());
        assert!(error.to_string().starts_with(&format!("these {} bytes are no signature", wrong.len())));
        assert!(serde_json::from_value::<Signature>(json!(wrong)).is_err());
    }
    Ok(())
}

/// JSON of few different parts, so that two are often alike.
fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-2..3_i64).prop_map(Value::from),
        (-4..5_i8).prop_map(|halves| Value::from(f64::from(halves) / 2.0)),
        Just(json!(-0.0)),
        prop::sample::select(&[0, 127, 128, i64::MAX, i64::MIN][..]).prop_map(Value::from),
        prop::sample::select(&[u64::MAX, 1 << 63][..]).prop_map(Value::from),
        prop::sample::select(&[1e300, 18446744073709551616.0, -9223372036854775808.0][..]).prop_map(Value::from),
        key().prop_map(Value::from),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::vec((key(), inner), 0..3)
                .prop_map(|entries| Value::Object(entries.into_iter().collect::<Map<_, _>>())),
        ]
    })
}

/// Texts that are forms, or the start of each other, or about as long as a length has room for in one byte.
fn key() -> impl Strategy<Value = String> {
    let long = [127, 128].map(|length| "a".repeat(length));
    let short = ["", "a", "aa", "b", "}", "n", "s\u{1}a", "é", "\0"].map(String::from);
    prop::sample::select([&short[..], &long[..]].concat())
}

/// What a value comes to: numbers by their value, and no null in an object.
fn normal(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            let float = number.as_f64().filter(|_| number.is_f64());
            match float.filter(|float| float.fract() == 0.0 && float.abs() <= 2_f64.powi(63)) {
                Some(float) if float < 0.0 => Value::from(float as i64),
                Some(float) => Value::from(float as u64),
                None => value.clone(),
            }
        }
        Value::Array(values) => values.iter().map(normal).collect(),
        Value::Object(entries) => {
            let kept = entries.iter().filter(|(_, value)| !value.is_null());
            kept.map(|(key, value)| (key.clone(), normal(value))).collect()
        }
        other => other.clone(),
    }
}

/// The same, as it could be written as well: nulls in objects, whole numbers as floats.
fn disguised(value: &Value) -> Value {
    match value {
        Value::Number(number) => {
            number.as_i64().filter(|n| n.abs_diff(0) < 100).map_or(value.clone(), |n| Value::from(n as f64))
        }
        Value::Array(values) => values.iter().map(disguised).collect(),
        Value::Object(entries) => {
            let entries = entries.iter().map(|(key, value)| (key.clone(), disguised(value)));
            entries.chain([("not there".to_owned(), Value::Null)]).collect()
        }
        other => other.clone(),
    }
}

/// A JSON value that is written by the collections of the standard library, whose order is another one.
enum Std {
    Value(Value),
    List(Vec<Std>),
    Map(HashMap<String, Std>),
}

impl Canonical for Std {
    fn canonical(&self, form: &mut keepspan::action::Canon) {
        match self {
            Self::Value(value) => value.canonical(form),
            Self::List(values) => values.canonical(form),
            Self::Map(entries) => entries.canonical(form),
        }
    }
}

impl From<&Value> for Std {
    fn from(value: &Value) -> Self {
        match value {
            Value::Array(values) => Self::List(values.iter().map(Self::from).collect()),
            Value::Object(entries) => {
                Self::Map(entries.iter().map(|(key, value)| (key.clone(), Self::from(value))).collect())
            }
            value => Self::Value(value.clone()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn two_values_have_one_form_when_they_come_to_the_same(one in value(), other in value()) {
        prop_assert_eq!(of(&one) == of(&other), normal(&one) == normal(&other), "{} and {}", one, other);
        prop_assert_eq!(of(&one), of(&normal(&one)));
        prop_assert_eq!(of(&one), of(&disguised(&one)));
    }

    #[test]
    fn where_one_value_ends_and_the_next_begins_is_in_the_form(values in prop::collection::vec(value(), 0..4), cut in 0..4_usize) {
        let (left, right) = values.split_at(cut.min(values.len()));
        prop_assert_ne!(of(&values), of(&[left, right]));
        prop_assert_eq!(of(&(left, right)), of(&[left, right]));
    }

    #[test]
    fn the_order_of_a_map_has_no_part_in_it(value in value()) {
        prop_assert_eq!(of(&Std::from(&value)), of(&value));
        if let Value::Object(entries) = &value {
            let sorted: BTreeMap<&str, &Value> = entries.iter().map(|(key, value)| (key.as_str(), value)).collect();
            prop_assert_eq!(of(&sorted), of(&value));
        }
    }

    #[test]
    fn maps_and_sets_of_any_keys_are_in_one_order(numbers in prop::collection::vec(any::<(i16, u8)>(), 0..20)) {
        let hashed: HashMap<i16, u8> = numbers.iter().copied().collect();
        let sorted: BTreeMap<i64, Option<u32>> = hashed.iter().map(|(key, value)| ((*key).into(), Some((*value).into()))).collect();
        prop_assert_eq!(of(&hashed), of(&sorted));
        let members: HashSet<(i16, u8)> = numbers.iter().copied().collect();
        let same: BTreeSet<(u64, i16)> = members.iter().map(|(key, value)| ((*value).into(), *key)).collect();
        let turned: Vec<_> = same.iter().map(|(value, key)| (*key, *value)).collect();
        prop_assert_eq!(of(&members), of(&turned.into_iter().collect::<BTreeSet<_>>()));
    }

    #[test]
    fn an_integer_has_one_form_in_every_width(number: i16, wide: i128) {
        let same = [of(&i32::from(number)), of(&i64::from(number)), of(&i128::from(number)), of(&f32::from(number))];
        prop_assert!(same.iter().all(|signature| *signature == of(&number)));
        prop_assert_eq!(of(&wide) == of(&number), wide == i128::from(number));
        prop_assert_eq!(of(&wide.unsigned_abs()) == of(&wide), wide >= 0);
    }

    #[test]
    fn floats_are_one_when_they_are_equal(one: f64, other: f64, bits: u64) {
        prop_assert_eq!(of(&one) == of(&other), one == other);
        let float = f64::from_bits(bits);
        prop_assert_eq!(of(&float), of(&if float.is_nan() { f64::NAN } else { float + 0.0 }));
    }
}
