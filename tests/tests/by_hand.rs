//! A `ContextState` written by hand, against the documentation: its handles are refused what the declaration forbids.

use keepspan::{
    Budget, ContextState, DiscardError, Episode, EvictError, Field, Finish, Lane, LaneSpec, ModelAnswer, Mutation,
    PushError, RestoreError, SelectionError, Spans, SummarizeError, Window,
    kind::{Derived, Evictable},
    policy::{Governed, Unrestricted},
    store::MemoryStore,
};

#[derive(ContextState)]
struct Honest {
    #[precondition(pinned)]
    schema: Spans,
    #[derived]
    recap: Spans,
}

/// Claims that lane 0 is evictable.
struct Fake;
impl Field for Fake {
    type Kind = Evictable;
    type State = Forged;
    const AT: (u16, &'static str) = (0, "schema");
}

/// Claims that lane 1 is what it is.
struct Recap;
impl Field for Recap {
    type Kind = Derived;
    type State = Forged;
    const AT: (u16, &'static str) = (1, "recap");
}

/// Claims that lane 1 takes text, and that lane 0 holds summaries.
struct Swapped<const AT: u16>;
impl Field for Swapped<1> {
    type Kind = Evictable;
    type State = Forged;
    const AT: (u16, &'static str) = (1, "recap");
}
impl Field for Swapped<0> {
    type Kind = Derived;
    type State = Forged;
    const AT: (u16, &'static str) = (0, "schema");
}

struct Forged;
struct Handles<'w, St, S> {
    fake: Lane<'w, St, Fake, S>,
    recap: Lane<'w, St, Recap, S>,
    texts: Lane<'w, St, Swapped<1>, S>,
    summaries: Lane<'w, St, Swapped<0>, S>,
}
impl Governed for Forged {
    type Policy = Unrestricted;
}
impl ContextState for Forged {
    type Lanes<'w, St: 'w, S: 'w> = Handles<'w, St, S>;
    const NAME: &'static str = "Forged";
    const LANES: &'static [LaneSpec] = Honest::LANES;
    const BUDGET: Option<Budget> = None;
    fn lend<'w, St, S>(lender: keepspan::__private::Lender<'w, St, S>) -> Handles<'w, St, S> {
        Handles { fake: lender.lane(), recap: lender.lane(), texts: lender.lane(), summaries: lender.lane() }
    }
    fn declare(_: fn() -> Spans) -> Self {
        Self
    }
}

#[test]
fn the_declaration_holds_whatever_a_handles_type_says() -> Result<(), Box<dyn std::error::Error>> {
    let mut window = Window::<Forged, _>::open(MemoryStore::new(), Episode::new("e", "p"))?;
    let lanes = window.lanes();
    let id = lanes.fake.push("users.id BIGINT NOT NULL".repeat(9))?;
    let discarded = lanes.fake.discard(id, Mutation::new("r", "p")?).wait();
    assert!(matches!(discarded, Err(DiscardError::Selection(SelectionError::Forbidden { lane: "schema" }))));
    assert!(matches!(lanes.texts.push("a summary of nothing"), Err(PushError::NoLane)));
    let lanes = lanes.externalize().wait()?;
    let regrounded = lanes.summaries.reground(id).wait();
    assert!(matches!(regrounded, Err(RestoreError::Selection(SelectionError::Forbidden { lane: "schema" }))));
    assert_eq!(lanes.fake.resident(), [id], "no pinned text is taken for a summary");
    assert!(matches!(lanes.fake.evict(id).wait(), Err(EvictError::Kept { lane: "schema", .. })));
    let summary = ModelAnswer::new(Finish::Stop, "x").try_into()?;
    let summarized = lanes.fake.summarize(id, summary, &lanes.recap).wait();
    assert!(matches!(summarized, Err(SummarizeError::Selection(SelectionError::Forbidden { lane: "schema" }))));
    Ok(())
}
