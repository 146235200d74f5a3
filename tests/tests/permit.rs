//! Before an action: what it depends on is in the window, and what it does is done once (rules R17, R19).

use std::error::Error;

use keepspan::{
    Action, ContextState, Episode, Failure, Granted, NewSpan, Override, Permission, Spans, Window,
    action::{Canon, Canonical, Requirement, RunError, Settlement, Tried, consent, effect},
    store::MemoryStore,
};

type Outcome = Result<(), Box<dyn Error>>;

#[derive(ContextState)]
struct Migration {
    #[instruction(roles("user"))]
    rules: Spans,
    #[precondition(tools("describe"))]
    schema: Spans,
    #[scope_qualifier]
    target: Spans,
    #[evictable(otherwise)]
    work: Spans,
    #[derived]
    recap: Spans,
}

struct Alter {
    table: &'static str,
}

impl Canonical for Alter {
    fn canonical(&self, form: &mut Canon) {
        self.table.canonical(form);
    }
}

impl Action for Alter {
    type State = Migration;
    type Effect = effect::Destructive;
    type Consent = consent::NotNeeded;
    const NAME: &'static str = "Alter";
    const REQUIRES: &'static [Requirement] = &[
        Requirement::of::<Migration, _>(|lanes| &lanes.schema),
        Requirement::of::<Migration, _>(|lanes| &lanes.target),
    ];
}

fn window(
    store: &std::sync::Arc<MemoryStore>,
    name: &str,
) -> Result<Window<Migration, std::sync::Arc<MemoryStore>>, Box<dyn Error>> {
    Ok(Window::open(store.clone(), Episode::new(name, "p1"))?)
}

#[test]
fn an_action_runs_once_and_its_outcome_is_found_by_every_window() -> Outcome {
    let store = std::sync::Arc::new(MemoryStore::new());
    let mut one = window(&store, "one")?;
    let schema = one.lanes().route(NewSpan::tool("describe", "users.id BIGINT"))?;
    one.lanes().target.push(NewSpan::human("staging, not production"))?;
    let evidence = one.lanes().schema.cite(schema)?;
    let alter = Alter { table: "users" };
    let mut runs = 0;
    let done = one.permit(&alter)?.fresh()?.justified_by(&evidence)?.run(|request: Granted<'_, Alter>| {
        runs += 1;
        Ok::<_, Failure>(format!("altered {}", request.table))
    })?;
    assert_eq!((done.text(), done.attempt().number()), (Some("altered users"), 1));
    let mut two = window(&store, "two")?;
    for window in [&mut one, &mut two] {
        match window.permit(&alter)? {
            Permission::Done(done) => assert_eq!(done.text(), Some("altered users")),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(runs, 1);
    // Another request is another matter, and the second window lacks what it depends on.
    let other = Alter { table: "orders" };
    match two.permit(&other)? {
        Permission::Denied(denied) => assert_eq!(denied.empty(), ["schema", "target"]),
        other => panic!("{other:?}"),
    }
    Ok(())
}

#[test]
fn what_left_is_brought_back_by_one_call() -> Outcome {
    let store = std::sync::Arc::new(MemoryStore::new());
    let mut window = window(&store, "one")?;
    let schema = window.lanes().route(NewSpan::tool("describe", "users.id BIGINT"))?;
    let target = window.lanes().target.push(NewSpan::human("staging, not production"))?;
    let lanes = window.lanes().externalize().wait()?;
    lanes.schema.evict(schema).wait()?;
    lanes.target.evict(target).wait()?;
    let alter = Alter { table: "users" };
    let Permission::Denied(denied) = window.permit(&alter)? else { panic!() };
    assert_eq!(denied.evicted(), [schema, target]);
    assert_eq!(denied.to_string(), "`Alter` is denied: s1, s2 left the window, `bring_back` restores");
    assert_eq!(denied.bring_back().wait()?, [schema, target]);
    let Permission::Fresh(_) = window.permit(&alter)? else { panic!() };
    Ok(())
}

#[test]
fn failures_without_effect_hold_and_others_are_uncertain() -> Outcome {
    let store = std::sync::Arc::new(MemoryStore::new());
    let mut window = window(&store, "one")?;
    let schema = window.lanes().route(NewSpan::tool("describe", "users.id BIGINT"))?;
    window.lanes().target.push(NewSpan::human("staging, not production"))?;
    let alter = Alter { table: "users" };
    let evidence = window.lanes().schema.cite(schema)?;
    let failed = window
        .permit(&alter)?
        .fresh()?
        .justified_by(&evidence)?
        .run(|_| Err::<String, _>(Failure::without_effect("no such table")));
    assert!(matches!(failed, Err(RunError::Failed { .. })), "{failed:?}");
    let Permission::Failed(known) = window.permit(&alter)? else { panic!() };
    assert_eq!(known.why(), "no such table");
    let permit = known.repeat(Override::because("the table was made meanwhile")?).map_err(|d| d.into_inner())?;
    let unknown = permit.justified_by(&evidence)?.run(|_| Ok(std::fs::read_to_string("/no/such/file")?));
    assert!(matches!(unknown, Err(RunError::Uncertain { .. })), "{unknown:?}");
    let Permission::Uncertain(attempt) = window.permit(&alter)? else { panic!() };
    assert_eq!((attempt.number(), attempt.repeats()), (2, Some("the table was made meanwhile")));
    attempt.settle(Settlement::not_done("looked: no column was altered")?).wait()?;
    let Permission::Fresh(permit) = window.permit(&alter)? else { panic!() };
    assert_eq!(permit.attempt(), 3);
    // Another schema is another matter.
    let failed = permit.justified_by(&evidence)?.run(|_| Err::<String, _>(Failure::without_effect("id is a key")));
    assert!(matches!(failed, Err(RunError::Failed { .. })));
    assert!(matches!(window.tried(alter.signature())?, Tried::Failed(_)));
    window.lanes().route(NewSpan::tool("describe", "users.id INT, no key"))?;
    assert!(matches!(window.tried(alter.signature())?, Tried::Never { before: Some(_) }));
    Ok(())
}

#[test]
fn what_an_action_gave_is_verified_with_the_rest() -> Outcome {
    use keepspan::{EpisodeId, audit, store::Store};

    let store = std::sync::Arc::new(keepspan_tests::Faulty::default());
    let mut window = Window::<Migration, _>::open(store.clone(), Episode::new("one", "p1"))?;
    let schema = window.lanes().route(NewSpan::tool("describe", "users.id BIGINT"))?;
    window.lanes().target.push(NewSpan::human("staging, not production"))?;
    let evidence = window.lanes().schema.cite(schema)?;
    let alter = Alter { table: "users" };
    let done = window.permit(&alter)?.fresh()?.justified_by(&evidence)?.run(|_| Ok::<_, Failure>("altered"))?;
    let verified = audit::verify(&store, &EpisodeId::new("one"), |_| {});
    assert_eq!((verified.blobs, verified.faults.len()), (3, 0), "{:?}", verified.faults);
    let sealing = keepspan::store::Batch::new(EpisodeId::new("other"), 0, vec![], vec![vec![1]]);
    Store::commit(&*store, &sealing.sealing(vec![done.sha256()]))?;
    // Another episode redacted the same text: the action is done all the same, and nothing is damaged.
    assert_eq!(audit::verify(&store, &EpisodeId::new("one"), |_| {}).sealed, 1);
    let Permission::Done(done) = window.permit(&alter)? else { panic!() };
    assert_eq!(done.content(), None);
    Ok(())
}

#[test]
fn what_a_stop_left_uncertain_is_listed_and_settled_without_the_request() -> Outcome {
    let store = std::sync::Arc::new(MemoryStore::new());
    let mut before = window(&store, "one")?;
    let schema = before.lanes().route(NewSpan::tool("describe", "users.id BIGINT"))?;
    before.lanes().target.push(NewSpan::human("staging, not production"))?;
    let evidence = before.lanes().schema.cite(schema)?;
    let alter = Alter { table: "users" };
    let permit = before.permit(&alter)?.fresh()?.justified_by(&evidence)?;
    let unknown = permit.run(|_| Err::<String, _>(Failure::unknown("timed out")));
    assert!(matches!(unknown, Err(RunError::Uncertain { unrecorded: None, .. })), "{unknown:?}");
    let mut after = Window::<Migration, _>::resume(store.clone(), Episode::new("one", "p1"))?;
    for attempts in [before.unsettled(), after.unsettled()] {
        let found: Vec<_> = attempts.iter().map(|of| (of.action(), of.number(), of.signature(), of.record())).collect();
        assert_eq!(found, [("Alter", 1, alter.signature(), 1)]);
    }
    let attempt = after.unsettled().remove(0);
    after.settle(&attempt, Settlement::done("altered", "looked at the table")?).wait()?;
    assert!(after.unsettled().is_empty());
    let again = after.settle(&attempt, Settlement::not_done("looked again")?).wait();
    assert!(matches!(again, Err(keepspan::CommitError::Claimed { .. })), "{again:?}");
    let Permission::Done(done) = after.permit(&alter)? else { panic!() };
    assert_eq!((done.text(), done.settled()), (Some("altered"), Some("looked at the table")));
    assert!(Window::<Migration, _>::resume(store, Episode::new("one", "p1"))?.unsettled().is_empty());
    Ok(())
}

/// The record's third signature: the schema is read again after it left, and what is read is what the bad edit made of it.
#[test]
fn a_reread_that_contradicts_what_left_is_reported_with_both_ids() -> Outcome {
    let store = std::sync::Arc::new(MemoryStore::new());
    let mut window = window(&store, "one")?;
    let read = |text: &str| NewSpan::tool("describe", text).reads("users");
    let before = window.lanes().route(read("users.id BIGINT"))?;
    window.lanes().target.push(NewSpan::human("staging, not production"))?;
    window.lanes().externalize().wait()?.schema.evict(before).wait()?;
    let after = window.lanes().route(read("users.id INT"))?;
    let alter = Alter { table: "users" };
    let Permission::Denied(denied) = window.permit(&alter)? else { panic!() };
    assert_eq!(denied.contradicted(), [(before, after)]);
    assert_eq!(
        denied.to_string(),
        "`Alter` is denied: s3 contradicts s1, which left the window before: `bring_back`, and compare"
    );
    assert_eq!(denied.bring_back().wait()?, [before]);
    let Permission::Fresh(_) = window.permit(&alter)? else { panic!() };
    // The older one is evidence no more.
    let stale = window.lanes().schema.cite(before).map(|_| ());
    assert_eq!(stale, Err(keepspan::evidence::EvidenceError::Stale { span: before, by: after }));
    // The same again is no contradiction.
    window.lanes().externalize().wait()?.schema.evict(after).wait()?;
    window.lanes().route(read("users.id INT"))?;
    let Permission::Fresh(_) = window.permit(&alter)? else { panic!() };
    Ok(())
}
