//! `evict` through a typed handle, and the same by hand: one reference, one index, one list.

use keepspan::{
    Evict, Field, Lane, SpanId, Step,
    kind::Precondition,
    policy::{Governed, Unrestricted},
    rule::Externalized,
    store::MemoryStore,
};

pub struct Migration;
impl Governed for Migration {
    type Policy = Unrestricted;
}
pub struct Schema;
impl Field for Schema {
    type Kind = Precondition;
    type State = Migration;
    const AT: (u16, &'static str) = (3, "schema");
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn typed<'l>(lane: &'l Lane<'_, MemoryStore, Schema, Externalized>, span: SpanId) -> Step<'l, MemoryStore, Evict> {
    lane.evict(span)
}

pub struct RawLane<'w> {
    window: &'w u8,
}
pub struct RawSelection {
    pub ids: Vec<SpanId>,
    pub score: Option<f64>,
}
pub struct RawEvict {
    pub lane: u16,
    pub selection: RawSelection,
}
pub struct RawStep<'w> {
    pub window: &'w u8,
    pub evict: RawEvict,
}

#[unsafe(no_mangle)]
#[inline(never)]
pub fn raw<'w>(lane: &RawLane<'w>, span: SpanId) -> RawStep<'w> {
    RawStep { window: lane.window, evict: RawEvict { lane: 3, selection: RawSelection { ids: vec![span], score: None } } }
}
