//! A request has one signature, whatever wrote it.

use keepspan::{Action, Canonical, ContextState, Signature, Spans, action::Held};
use serde_json::json;
use std::time::SystemTime;

#[derive(ContextState)]
struct Migration {
    #[precondition]
    schema: Spans,
    #[scope_qualifier(pinned)]
    target: Spans,
    #[evictable]
    work: Spans,
}

#[derive(ContextState)]
struct Generic<T: Default> {
    #[precondition]
    schema: Spans,
    #[context(skip)]
    x: T,
}

fn lower(text: &String) -> String {
    text.to_lowercase()
}
fn agrees(it: &AlterColumn, held: &Held<'_>) -> Result<(), String> {
    let _ = (&it.table, held.texts("x").count());
    Ok(())
}

#[derive(Action)]
#[action(state = Migration, requires(schema, target), destructive, consent, name = "alter_column", check = agrees)]
struct AlterColumn {
    table: String,
    #[signature(skip)]
    asked_at: SystemTime,
    #[signature(with = lower)]
    column: String,
    #[signature(name = "old_name")]
    renamed: u32,
}

#[derive(Action)]
#[action(state = Generic<T>, requires(schema), check = Self::agrees)]
struct Move<'a, T: Default, const N: usize> {
    to: &'a str,
    t: T,
    n: [u8; N],
}
impl<T: Default, const N: usize> Move<'_, T, N> {
    fn agrees(&self, _held: &Held<'_>) -> Result<(), String> {
        Ok(())
    }
}

#[derive(Action)]
#[action(state = Migration)]
struct Nothing;

#[derive(Canonical)]
enum E<T> {
    A,
    B(T),
    C(u8, T),
    D {
        r#type: T,
        #[signature(skip)]
        _x: u8,
    },
    #[signature(name = "e")]
    E(),
}

#[test]
fn it_works() {
    let it = AlterColumn { table: "t".into(), asked_at: SystemTime::now(), column: "ID".into(), renamed: 3 };
    let _ = it.asked_at;
    assert_eq!(it.signature(), Signature::of("alter_column", &json!({"table": "t", "column": "id", "old_name": 3.0})));
    let it = Move { to: "x", t: 3, n: [1] };
    assert_eq!(it.signature(), Signature::of("Move", &json!({"to": "x", "t": 3, "n": [1]})));
    assert_eq!(Nothing.signature(), Signature::of("Nothing", &json!({})));
    let it = [E::A, E::B(1), E::C(1, 2), E::D { r#type: 4, _x: 3 }, E::E()];
    assert_eq!(
        Signature::of("x", &it),
        Signature::of("x", &json!(["A", {"B": 1}, {"C": [1, 2]}, {"D": {"type": 4}}, {"e": []}]))
    );
}
