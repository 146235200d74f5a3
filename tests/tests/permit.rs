//! Before an action: what it depends on is in the window, and what it does is done once (rules R17, R19).

use std::{
    cell::Cell,
    error::Error,
    time::{Duration, SystemTime},
};

use keepspan::{
    Action, Authority, CommitError, ContextState, Digest, Episode, EpisodeId, Failure, Finish, Granted, ModelAnswer,
    Mutation, NewSpan, Override, Permission, Spans, SummaryText, Window,
    action::{
        AcceptLossy, Canon, Canonical, Held, NotPermitted, PermitError, Requirement, RunError, Settlement, Tried,
        consent, effect,
    },
    store::{Batch, MemoryStore, Store, StoreError},
};
use keepspan_tests::{
    Agent, Counting,
    acts::{Write, ready},
    memory,
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

/// What `Drop` names must be what `target` says: B001.
struct Truncate {
    database: &'static str,
}

impl Canonical for Truncate {
    fn canonical(&self, form: &mut Canon) {
        self.database.canonical(form);
    }
}

impl Action for Truncate {
    type State = Migration;
    type Effect = effect::Ordinary;
    type Consent = consent::NotNeeded;
    const NAME: &'static str = "Truncate";
    const REQUIRES: &'static [Requirement] = &[Requirement::of::<Migration, _>(|lanes| &lanes.target)];

    fn check(&self, held: &Held<'_>) -> Result<(), String> {
        if held.names("target", self.database) {
            return Ok(());
        }
        Err(format!("`target` does not name `{}`", self.database))
    }
}

/// B001: the established target was dropped, and the action went to another database.
#[test]
fn an_action_runs_on_the_target_that_was_established() -> Outcome {
    let store = std::sync::Arc::new(MemoryStore::new());
    let mut window = window(&store, "one")?;
    let target = window.lanes().target.push(NewSpan::human("target=db-local").reads("target"))?;
    let (local, shared) = (Truncate { database: "db-local" }, Truncate { database: "db-shared" });
    let Permission::Denied(denied) = window.permit(&shared)? else { panic!() };
    assert_eq!(denied.mismatch(), Some("`target` does not name `db-shared`"));
    assert_eq!(denied.to_string(), "`Truncate` is denied: `target` does not name `db-shared`");
    let Permission::Fresh(_) = window.permit(&local)? else { panic!() };
    // A pointer names nothing, and an older target counts no more.
    window.lanes().externalize().wait()?.target.evict(target).wait()?;
    let Permission::Denied(denied) = window.permit(&local)? else { panic!() };
    assert_eq!((denied.evicted(), denied.mismatch()), (&[target][..], Some("`target` does not name `db-local`")));
    window.lanes().target.restore(target).wait()?;
    window.lanes().target.push(NewSpan::human("target=db-shared.").reads("target"))?;
    let Permission::Denied(_) = window.permit(&local)? else { panic!() };
    let Permission::Fresh(_) = window.permit(&shared)? else { panic!() };
    for other in ["db", "shared", "db-share", "db-shared.", "db-shared2", "", "target=db-shared"] {
        let action = Truncate { database: Box::leak(other.to_owned().into_boxed_str()) };
        let is_named = matches!(window.permit(&action)?, Permission::Fresh(_));
        assert_eq!(is_named, ["db-shared.", "target=db-shared"].contains(&other), "{other:?}");
    }
    Ok(())
}

#[test]
fn a_denial_says_everything_that_is_missing() -> Outcome {
    let store = memory();
    let (mut window, spans) = ready(store.clone(), "e")?;
    let lost = window.lanes().schema.push(NewSpan::tool("describe_table", "key: abc"))?;
    let lanes = window.lanes().externalize().wait()?;
    lanes.target.evict(spans.target).wait()?;
    let mutation = Mutation::new("a key", "ask the owner")?;
    window.redact_protected(lost, mutation, Authority::of("the owner")?).wait()?;
    let action = Write::to("a");
    let Permission::Denied(denied) = window.permit(&action)? else { panic!() };
    assert_eq!((denied.evicted(), denied.lost()), (&[spans.target][..], &[lost][..]));
    assert_eq!(
        (denied.unrecorded(), denied.empty(), denied.contradicted(), denied.mismatch()),
        (&[][..], &[][..], &[][..], None)
    );
    assert_eq!(denied.lossy(), Some("removed for good: a key"));
    assert_eq!(
        denied.to_string(),
        "`write` is denied: s2 left the window, `bring_back` restores; s4 was removed for good; the window is lossy (removed \
         for good: a key): `accept_lossy(AcceptLossy::because(..)?)` if that does not matter"
    );
    // To accept the one is not to accept the other, and not for the next time.
    let accept = || AcceptLossy::because("the key is not what is written");
    let denied = denied.accept_lossy(accept()?).err().ok_or("permitted")?;
    assert_eq!(denied.to_string(), "`write` is denied: s2 left the window, `bring_back` restores");
    assert_eq!(denied.bring_back().wait()?, [spans.target]);
    let Permission::Denied(denied) = window.permit(&action)? else { panic!() };
    assert_eq!((denied.evicted(), denied.lost()), (&[][..], &[lost][..]));
    let done = denied.accept_lossy(accept()?).map_err(|denied| denied.into_inner())?.run(|_| Ok::<_, Failure>("ok"))?;
    assert_eq!(done.text(), Some("ok"));
    assert!(AcceptLossy::because(" ").is_err() && Override::because("\n").is_err());
    // Where all of a lane is gone there is nothing to act on, accepted or not.
    window.redact_protected(spans.schema, Mutation::new("a name", "ask")?, Authority::of("the owner")?).wait()?;
    let action = Write::to("b");
    let Permission::Denied(denied) = window.permit(&action)? else { panic!() };
    assert_eq!(denied.lost(), [spans.schema, lost]);
    let denied = denied.accept_lossy(accept()?).err().ok_or("permitted")?;
    assert_eq!(denied.empty(), ["schema"]);
    assert_eq!(
        denied.to_string(),
        "`write` is denied: `schema` holds nothing that was observed: observe what the action depends on, and push it there"
    );
    // Nothing to bring back is said so.
    assert!(denied.bring_back().wait().is_err());
    Ok(())
}

#[test]
fn an_action_waits_for_what_a_stop_may_have_lost() -> Outcome {
    let store = memory();
    let (mut window, _) = ready(store.clone(), "e")?;
    drop(window.lanes().externalize().wait()?);
    let lost = window.lanes().target.push(NewSpan::human("not production"))?;
    window.change_policy("p2").wait()?;
    let mut window = Window::<Agent, _>::resume(store, Episode::new("e", "p2"))?;
    let action = Write::to("a");
    let Permission::Denied(denied) = window.permit(&action)? else { panic!() };
    assert_eq!(
        (denied.unrecorded(), denied.evicted(), denied.lossy()),
        (&[lost][..], &[][..], Some("spans were lost"))
    );
    assert_eq!(
        denied.to_string(),
        "`write` is denied: s4 was lost with a process that stopped, and may have been required; the window is lossy (spans \
         were lost): `accept_lossy(AcceptLossy::because(..)?)` if that does not matter"
    );
    let accepted = denied.accept_lossy(AcceptLossy::because("it was said again")?);
    assert_eq!(accepted.map_err(|denied| denied.into_inner())?.attempt(), 1);
    Ok(())
}

/// One call brings back every span with its whole exchange.
#[test]
fn what_is_brought_back_comes_as_whole_exchanges() -> Outcome {
    let (mut window, spans) = ready(memory(), "e")?;
    let lanes = window.lanes();
    let turn = lanes.work.push(NewSpan::model("describes two").calls(["c1", "c2"]))?;
    let one = lanes.schema.push(NewSpan::tool("describe_table", "orders").answers("c1"))?;
    let other = lanes.work.push(NewSpan::tool("list", "files").answers("c2"))?;
    let lanes = window.lanes().externalize().wait()?;
    lanes.schema.evict(one).wait()?;
    lanes.target.evict(spans.target).wait()?;
    let action = Write::to("a");
    let Permission::Denied(denied) = window.permit(&action)? else { panic!() };
    assert_eq!(denied.evicted(), [one, spans.target]);
    assert_eq!(denied.bring_back().wait()?, [spans.target, turn, one, other]);
    let Permission::Fresh(_) = window.permit(&action)? else { panic!() };
    Ok(())
}

#[test]
fn recalled_into_the_window_counts_and_a_pointer_or_an_answer_does_not() -> Outcome {
    let (mut window, spans) = ready(memory(), "e")?;
    let lanes = window.lanes().externalize().wait()?;
    lanes.target.evict(spans.target).wait()?;
    let action = Write::to("a");
    // The program has the text, and the window does not show it.
    let text = window.recall(spans.target).wait()?;
    assert_eq!(text.content().as_text(), Some("staging"));
    assert!(matches!(window.permit(&action)?, Permission::Denied(_)));
    window.lanes().target.restore(spans.target).wait()?;
    assert!(matches!(window.permit(&action)?, Permission::Fresh(_)));
    Ok(())
}

/// What an attempt that came to nothing says of the one before it: nothing.
#[test]
fn what_was_done_stays_done_whatever_is_attempted_after_it() -> Outcome {
    let (mut window, _) = ready(memory(), "e")?;
    let action = Write::to("a");
    let again = || Override::because("once more");
    window.permit(&action)?.fresh()?.run(|_| Ok::<_, Failure>("first"))?;
    let is_done = |window: &mut Window<Agent, std::sync::Arc<MemoryStore>>| match window.permit(&action) {
        Ok(Permission::Done(done)) => (done.text().map(str::to_owned), done.attempt().number()),
        other => panic!("{other:?}"),
    };
    let first = (Some("first".to_owned()), 1);
    assert_eq!(is_done(&mut window), first);
    // A repeat that failed changes nothing.
    let Permission::Done(done) = window.permit(&action)? else { panic!() };
    let permit = done.repeat(again()?).map_err(|denied| denied.into_inner())?;
    assert!(permit.run(|_| Err::<String, _>(Failure::without_effect("offline"))).is_err());
    assert_eq!(is_done(&mut window), first);
    window.lanes().schema.push(NewSpan::tool("describe_table", "users.id INT"))?;
    assert_eq!(is_done(&mut window), first);
    // None is noted of what was done.
    let noted = window.note_failure(&action, Failure::without_effect("read only"));
    assert_eq!(
        noted.map_err(|error| error.to_string()),
        Err("`write` was done, by attempt 1 in episode `e` (record 1): it is not run again in any case, and nothing was noted"
            .to_owned())
    );
    assert_eq!(is_done(&mut window), first);
    // So does one that nobody knew of, once it is known.
    let Permission::Done(done) = window.permit(&action)? else { panic!() };
    let permit = done.repeat(again()?).map_err(|denied| denied.into_inner())?;
    assert_eq!(permit.attempt(), 3);
    assert!(permit.run(|_| Err::<String, _>(Failure::unknown("timed out"))).is_err());
    let Permission::Uncertain(attempt) = window.permit(&action)? else { panic!() };
    assert_eq!((attempt.number(), attempt.why()), (3, Some("timed out")));
    attempt.settle(Settlement::not_done("looked")?).wait()?;
    assert_eq!(is_done(&mut window), first);
    // An uncertain one stays so behind a repeat that failed.
    let action = Write::to("b");
    assert!(window.permit(&action)?.fresh()?.run(|_| Err::<String, _>(Failure::unknown("timed out"))).is_err());
    let Permission::Uncertain(attempt) = window.permit(&action)? else { panic!() };
    let permit = attempt.repeat(again()?).map_err(|denied| denied.into_inner())?;
    assert!(permit.run(|_| Err::<String, _>(Failure::without_effect("offline"))).is_err());
    window.lanes().schema.push(NewSpan::tool("describe_table", "users.id UUID"))?;
    let Permission::Uncertain(attempt) = window.permit(&action)? else { panic!() };
    assert_eq!(attempt.number(), 1);
    let error = attempt.into_inner();
    let noted = window.note_failure(&action, Failure::without_effect("offline"));
    assert!(matches!(&noted, Err(PermitError::Unsettled(attempt)) if **attempt == error), "{noted:?}");
    assert_eq!(
        noted.map_err(|error| error.to_string()),
        Err("attempt 1 of `write` by episode `e` (record 8) may have taken effect: timed out; look at what it changes, then \
             `settle` it; then note the failure"
            .to_owned())
    );
    let Permission::Uncertain(attempt) = window.permit(&action)? else { panic!() };
    attempt.settle(Settlement::done("b was written", "looked")?).wait()?;
    let Permission::Done(done) = window.permit(&action)? else { panic!() };
    assert_eq!((done.attempt().number(), done.text(), done.settled()), (1, Some("b was written"), Some("looked")));
    Ok(())
}

#[test]
fn a_negative_result_is_known_before_the_call_and_ends_when_it_should() -> Outcome {
    let store = memory();
    let (mut window, _) = ready(store.clone(), "e")?;
    let action = Write::to("a");
    let signature = action.signature();
    assert!(matches!(window.tried(signature)?, Tried::Never { before: None }));
    let shown = window.lanes().failed.push(NewSpan::tool("write", "no such table").failed())?;
    window.note_failure(&action, Failure::without_effect("no such table").shown_in(shown))?;
    let Tried::Failed(failed) = window.tried(signature)? else { panic!() };
    assert_eq!((failed.why(), failed.policy(), failed.shown_in()), ("no such table", "p", Some(shown)));
    assert_eq!(failed.under().map(|(lane, _)| lane).collect::<Vec<_>>(), ["schema", "target"]);
    assert_eq!(
        failed.to_string(),
        "attempt 1 of `write` failed in episode `e`: no such table (s4); what it depends on has not changed since: change \
         that, or `repeat(Override::because(..)?)`"
    );
    assert!(matches!(window.permit(&action)?, Permission::Failed(_)));
    // Every window that sees the same is told; one that sees something else may try.
    let (mut same, _) = ready(store.clone(), "same")?;
    assert!(matches!(same.permit(&action)?, Permission::Failed(_)));
    let mut other = Window::<Agent, _>::open(store.clone(), Episode::new("other", "p"))?;
    other.lanes().schema.push(NewSpan::tool("describe_table", "another schema"))?;
    other.lanes().target.push(NewSpan::human("staging"))?;
    assert!(matches!(other.permit(&action)?, Permission::Fresh(permit) if permit.attempt() == 2));
    // The same said again changes nothing, nor does what no lane of it holds, nor that it is evicted and comes back.
    let again = same.lanes().target.push(NewSpan::human("staging"))?;
    same.lanes().work.push("something else")?;
    same.lanes().externalize().wait()?.target.evict(again).wait()?;
    assert!(matches!(same.permit(&action)?, Permission::Failed(_)));
    assert!(matches!(same.tried(signature)?, Tried::Failed(_)));
    window.lanes().target.push(NewSpan::human("staging, the second one"))?;
    assert!(matches!(window.permit(&action)?, Permission::Fresh(_)));
    assert!(
        matches!(window.tried(signature)?, Tried::Never { before: Some(failed) } if failed.why() == "no such table")
    );
    // A refusal holds whatever changes, until an override.
    window.note_failure(&action, Failure::refused("not on a Friday").until(SystemTime::UNIX_EPOCH))?;
    window.lanes().target.push(NewSpan::human("staging, the third one"))?;
    let Permission::Failed(failed) = window.permit(&action)? else { panic!() };
    assert!(failed.is_refused());
    assert_eq!(
        failed.to_string(),
        "attempt 2 of `write` was refused in episode `e`: not on a Friday; that holds until `repeat(Override::because(..)?)`"
    );
    let permit = failed.repeat(Override::because("it is Monday")?).map_err(|denied| denied.into_inner())?;
    let done = permit.run(|_| Ok::<_, Failure>("ok"))?;
    assert_eq!((done.attempt().number(), done.attempt().repeats()), (3, Some("it is Monday")));
    // One with a time holds until then.
    let action = Write::to("b");
    let later = SystemTime::now() + Duration::from_secs(3_600);
    window.note_failure(&action, Failure::without_effect("too many").until(later))?;
    let Permission::Failed(failed) = window.permit(&action)? else { panic!() };
    assert!(
        failed
            .until()
            .is_some_and(|until| later.duration_since(until).is_ok_and(|less| less < Duration::from_millis(1)))
    );
    assert_eq!(
        failed.to_string(),
        "attempt 1 of `write` failed in episode `e`: too many; wait until the time that `until` says, or \
         `repeat(Override::because(..)?)`"
    );
    let action = Write::to("c");
    let earlier = SystemTime::now() - Duration::from_secs(1);
    window.note_failure(&action, Failure::without_effect("too many").until(earlier))?;
    assert!(matches!(window.permit(&action)?, Permission::Fresh(_)));
    // What leaves it open is no negative result.
    let noted = window.note_failure(&action, Failure::unknown("timed out"));
    assert_eq!(
        noted.map_err(|error| error.to_string()),
        Err("whether `write` took effect is open: note a failure that is `without_effect` or `refused`, and run what may take \
             effect on a permit"
            .to_owned())
    );
    Ok(())
}

#[test]
fn whatever_happens_in_the_effect_it_is_never_fresh_after_it() -> Outcome {
    let store = memory();
    let (mut window, _) = ready(store.clone(), "e")?;
    let mut runs = 0;
    for (number, how) in ["error", "panic", "unknown"].into_iter().enumerate() {
        let action = Write::to(how);
        let permit = window.permit(&action)?.fresh()?;
        let effect = |_: Granted<'_, Write>| {
            runs += 1;
            match how {
                "error" => Ok(std::fs::read_to_string("/no/such/file")?),
                "unknown" => Err(Failure::unknown("timed out")),
                _ => panic!("{how}"),
            }
        };
        let ran = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| permit.run(effect).map(drop)));
        match ran {
            Ok(ran) => {
                let Err(RunError::Uncertain { unrecorded: None, .. }) = &ran else { panic!("{ran:?}") };
                if how == "unknown" {
                    assert_eq!(
                        ran.map_err(|error| error.to_string()),
                        Err("`write` may have taken effect: timed out; look at what it changes, then ask for a permit again \
                             and `settle` the attempt"
                            .to_owned())
                    );
                }
            }
            Err(_) => assert_eq!(how, "panic"),
        }
        for window in [&mut window, &mut ready(store.clone(), &format!("other {number}"))?.0] {
            let Permission::Uncertain(attempt) = window.permit(&action)? else { panic!("{how}") };
            assert_eq!((attempt.number(), attempt.action(), attempt.signature()), (1, "write", action.signature()));
        }
    }
    assert_eq!(runs, 3);
    // Of two that settle the same, one is too late, and is told.
    let action = Write::to("panic");
    let (mut other, _) = ready(store.clone(), "settler")?;
    let Permission::Uncertain(here) = window.permit(&action)? else { panic!() };
    let Permission::Uncertain(there) = other.permit(&action)? else { panic!() };
    here.settle(Settlement::done("it was", "looked")?).wait()?;
    let late = there.settle(Settlement::not_done("did not look")?).wait();
    assert!(matches!(late, Err(CommitError::Claimed { .. })), "{late:?}");
    assert!(matches!(other.permit(&action)?, Permission::Done(done) if done.text() == Some("it was")));
    Ok(())
}

#[test]
fn outcomes_are_kept_byte_for_byte_and_told_without_them_once_redacted() -> Outcome {
    let store = memory();
    let (mut window, _) = ready(store.clone(), "e")?;
    let (empty, bytes) = (Write::to("empty"), Write::to("bytes"));
    assert_eq!(window.permit(&empty)?.fresh()?.run(|_| Ok::<_, Failure>(""))?.text(), Some(""));
    window.permit(&bytes)?.fresh()?.run(|_| Ok::<_, Failure>(vec![0_u8, 255, 7]))?;
    let Permission::Done(done) = window.permit(&empty)? else { panic!() };
    assert_eq!((done.text(), done.sha256()), (Some(""), Digest::of(b"")));
    let Permission::Done(done) = window.permit(&bytes)? else { panic!() };
    assert_eq!((done.text(), done.content().map(keepspan::Content::as_bytes)), (None, Some(&[0_u8, 255, 7][..])));
    // The outcome is shown to the model, and turns out to be a secret.
    let secret = Write::to("secret");
    let done = window.permit(&secret)?.fresh()?.run(|_| Ok::<_, Failure>("token: abc"))?;
    let shown = window.lanes().work.push(NewSpan::tool("write", done.text().ok_or("no text")?))?;
    drop(window.lanes().externalize().wait()?);
    window.lanes().work.redact(shown, Mutation::new("a token", "ask")?).wait()?;
    let Permission::Done(gone) = window.permit(&secret)? else { panic!() };
    assert_eq!((gone.content(), gone.text(), gone.sha256()), (None, None, done.sha256()));
    // An outcome that must not be kept is not, and it was done all the same.
    let (mut other, _) = ready(store, "other")?;
    let leaks = Write::to("leaks");
    let mut runs = 0;
    let ran = other.permit(&leaks)?.fresh()?.run(|_| {
        runs += 1;
        Ok::<_, Failure>("token: abc")
    });
    assert_eq!(ran?.text(), Some("token: abc"), "whoever ran it has it all the same");
    let Permission::Done(done) = other.permit(&leaks)? else { panic!() };
    assert_eq!((done.content(), runs), (None, 1));
    Ok(())
}

/// A request with a changeable part: what runs is what the permit was given for.
#[test]
fn a_request_that_changed_does_not_run() -> Outcome {
    struct Moving(Cell<u32>);
    impl Canonical for Moving {
        fn canonical(&self, form: &mut Canon) {
            self.0.get().canonical(form);
        }
    }
    impl Action for Moving {
        type State = Agent;
        type Effect = effect::Ordinary;
        type Consent = consent::NotNeeded;
        const NAME: &'static str = "Moving";
        const REQUIRES: &'static [Requirement] = &[];
    }
    let (mut window, _) = ready(memory(), "e")?;
    let action = Moving(Cell::new(1));
    let permit = window.permit(&action)?.fresh()?;
    action.0.set(2);
    let ran = permit.run(|_| Ok::<_, Failure>(unreachable_outcome()));
    assert!(matches!(ran, Err(RunError::Changed { action: "Moving" })), "{ran:?}");
    assert!(matches!(window.permit(&action)?, Permission::Fresh(permit) if permit.attempt() == 1));
    Ok(())
}

fn unreachable_outcome() -> String {
    panic!("it ran")
}

/// What requires a lane by hand that is not protected, or of another struct, gets no permit.
#[test]
fn a_requirement_is_a_protected_lane_of_the_struct() -> Outcome {
    struct Foreign;
    impl Canonical for Foreign {
        fn canonical(&self, _: &mut Canon) {}
    }
    impl Action for Foreign {
        type State = Agent;
        type Effect = effect::Ordinary;
        type Consent = consent::NotNeeded;
        const NAME: &'static str = "Foreign";
        const REQUIRES: &'static [Requirement] = &[Requirement::of::<Migration, _>(|lanes| &lanes.schema)];
    }
    let (mut window, _) = ready(memory(), "e")?;
    let error = window.permit(&Foreign).err().ok_or("permitted")?;
    assert_eq!(
        error.to_string(),
        "`Foreign` requires `schema`, which is no protected lane of its state struct: derive `Action`, do not write it by hand"
    );
    assert!(matches!(
        window.note_failure(&Foreign, Failure::refused("no")),
        Err(PermitError::NoLane { action: "Foreign", lane: "schema" })
    ));
    Ok(())
}

/// What becomes of claims before they are read.
type Change<'c> = dyn Fn(Vec<Option<Vec<u8>>>) -> Vec<Option<Vec<u8>>> + Sync + 'c;

/// A store whose claims are read as `change` makes them.
struct Tampered<'t> {
    inner: std::sync::Arc<MemoryStore>,
    change: &'t Change<'t>,
}

impl Store for Tampered<'_> {
    fn commit(&self, batch: &Batch) -> Result<(), StoreError> {
        self.inner.commit(batch)
    }

    fn get(&self, digest: &Digest) -> Result<Vec<u8>, StoreError> {
        self.inner.get(digest)
    }

    fn read(&self, episode: &EpisodeId, from: u64, most: u64) -> Result<Vec<Vec<u8>>, StoreError> {
        self.inner.read(episode, from, most)
    }

    fn length(&self, episode: &EpisodeId) -> Result<u64, StoreError> {
        self.inner.length(episode)
    }

    fn holders(&self, signatures: &[Digest]) -> Result<Vec<Option<Vec<u8>>>, StoreError> {
        Ok((self.change)(self.inner.holders(signatures)?))
    }
}

#[test]
fn damaged_claims_are_an_error_and_never_another_answer() -> Outcome {
    let store = memory();
    let (mut window, _) = ready(store.clone(), "e")?;
    let (done, failed) = (Write::to("done"), Write::to("failed"));
    window.permit(&done)?.fresh()?.run(|_| Ok::<_, Failure>("ok"))?;
    window.note_failure(&failed, Failure::refused("no"))?;
    let holders = std::sync::Mutex::new(Vec::new());
    let ask = |number: u32, action: &Write, change: &Change<'_>| {
        let tampered = Tampered { inner: store.clone(), change };
        let window = Window::<Agent, _>::open(tampered, Episode::new(format!("asks {number}"), "p"))?;
        Ok::<_, Box<dyn Error>>(window.tried(action.signature()))
    };
    let mut number = 0;
    for action in [&done, &failed] {
        ask(number, action, &|found| {
            // Of the first attempt; a second look-up finds no other.
            if found.len() == 2 {
                *holders.lock().unwrap() = found.clone();
            }
            found
        })??;
        number += 1;
        let found: Vec<Option<Vec<u8>>> = holders.lock().unwrap().clone();
        let mut changed = Vec::new();
        for at in 0..2 {
            let claim = found[at].clone().ok_or("no claim")?;
            for byte in 0..claim.len() {
                for bit in 0..8 {
                    let mut flipped = claim.clone();
                    flipped[byte] ^= 1 << bit;
                    changed.push((at, flipped));
                }
                changed.push((at, claim[..byte].to_vec()));
            }
            changed.push((at, [claim.clone(), vec![0]].concat()));
            changed.push((at, b"a claim of another program, which says what it likes".to_vec()));
            // The other claim of the same request.
            changed.push((at, found[1 - at].clone().ok_or("no claim")?));
        }
        for (at, claim) in changed {
            let mut all = found.clone();
            all[at] = Some(claim);
            let answer = ask(number, action, &|_| all.clone())?;
            number += 1;
            let Err(error @ PermitError::Store(StoreError::Backend(_))) = answer else { panic!("{answer:?}") };
            assert_eq!(
                error.to_string(),
                "the store failed: a claim is of another version of keepspan, or damaged; mend it, then run the step again"
            );
        }
        // Fewer answers, or none, are none.
        for few in 0..found.len() {
            let answer = ask(number, action, &|found| found.into_iter().take(few).collect())?;
            number += 1;
            assert!(matches!(answer, Err(PermitError::Store(StoreError::Backend(_)))), "{few}: {answer:?}");
        }
    }
    Ok(())
}

#[test]
fn what_did_not_run_says_why_and_what_to_do() -> Outcome {
    let store = memory();
    let (mut one, _) = ready(store.clone(), "one")?;
    let (mut two, _) = ready(store.clone(), "two")?;
    let action = Write::to("a");
    let (first, second) = (one.permit(&action)?.fresh()?, two.permit(&action)?.fresh()?);
    first.run(|_| Ok::<_, Failure>("ok"))?;
    let taken = second.run(|_| Ok::<_, Failure>(unreachable_outcome()));
    assert_eq!(
        taken.map_err(|error| error.to_string()),
        Err("`write` did not run here: another window claimed this attempt first; ask for a permit again, which says what \
             became of it"
            .to_owned())
    );
    let done = two.permit(&action)?.fresh().err().ok_or("fresh")?;
    assert!(matches!(&done, NotPermitted::Done(done) if done.text() == Some("ok")));
    assert_eq!(
        done.to_string(),
        "`write` was done, by attempt 1 in episode `one` (record 1), and its outcome is on record: a repeat that is wanted \
         takes `repeat(Override::because(..)?)`"
    );
    // An owner that was superseded runs nothing.
    let other = Write::to("b");
    let permit = one.permit(&other)?.fresh()?;
    let mut owner = Window::<Agent, _>::resume(store.clone(), Episode::new("one", "p"))?;
    let ran = permit.run(|_| Ok::<_, Failure>(unreachable_outcome()));
    let Err(RunError::Commit(CommitError::Superseded { .. })) = &ran else { panic!("{ran:?}") };
    assert!(
        ran.is_err_and(|error| error.to_string().starts_with("the action did not run, since its intent could not"))
    );
    assert!(matches!(owner.permit(&other)?, Permission::Fresh(permit) if permit.attempt() == 1));
    // One that is superseded while it runs has run it.
    let permit = owner.permit(&other)?.fresh()?;
    let ran = permit.run(|_| {
        Window::<Agent, _>::resume(store.clone(), Episode::new("one", "p"))?;
        Ok::<_, Failure>("ok")
    });
    assert_eq!(
        ran.err().ok_or("recorded")?.to_string().split("; ").last(),
        Some(
            "`Window::recover` if the store did not answer, then ask for a permit again and `settle` the attempt with the \
             outcome"
        )
    );
    assert!(matches!(two.permit(&other)?, Permission::Uncertain(_)));
    Ok(())
}

#[test]
fn the_latest_of_many_attempts_is_found() -> Outcome {
    let store = std::sync::Arc::new(Counting::new(MemoryStore::new()));
    let (mut window, _) = ready(store.clone(), "e")?;
    let action = Write::to("a");
    window.permit(&action)?.fresh()?.run(|_| Ok::<_, Failure>("1"))?;
    let mut most = 0;
    for number in 2..200_u64 {
        store.reads();
        let Permission::Done(done) = window.permit(&action)? else { panic!() };
        most = store.reads().max(most);
        assert_eq!((done.attempt().number(), done.text()), (number - 1, Some(&*(number - 1).to_string())));
        let permit = done.repeat(Override::because("one more")?).map_err(|denied| denied.into_inner())?;
        assert_eq!(permit.run(|_| Ok::<_, Failure>(number.to_string()))?.attempt().number(), number);
    }
    assert!(most <= 9, "{most} look-ups");
    Ok(())
}

/// A text of the window that another episode had redacted: the intent is on record and its text is not, so nothing runs.
#[test]
fn what_does_not_run_after_its_intent_is_uncertain() -> Outcome {
    let store = memory();
    let (mut other, _) = ready(store.clone(), "other")?;
    let secret = other.lanes().work.push("token: abc")?;
    drop(other.lanes().externalize().wait()?);
    other.lanes().work.redact(secret, Mutation::new("a token", "ask")?).wait()?;
    let (mut window, _) = ready(store, "e")?;
    let shown = window.lanes().work.push("token: abc")?;
    let action = Write::to("a");
    let ran = window.permit(&action)?.fresh()?.run(|_| Ok::<_, Failure>(unreachable_outcome()));
    assert!(matches!(ran, Err(RunError::Commit(CommitError::Sealed { span, .. })) if span == shown), "{ran:?}");
    let Permission::Uncertain(attempt) = window.permit(&action)? else { panic!() };
    attempt.settle(Settlement::not_done("it was refused before it ran")?).wait()?;
    window.lanes().work.redact(shown, Mutation::new("a token", "ask")?).wait()?;
    let Permission::Denied(denied) = window.permit(&action)? else { panic!() };
    let permit = denied.accept_lossy(AcceptLossy::because("the token is not what is written")?);
    let done = permit.map_err(|denied| denied.into_inner())?.run(|_| Ok::<_, Failure>("ok"))?;
    assert_eq!(done.attempt().number(), 2);
    Ok(())
}

#[test]
fn a_service_is_given_one_key_for_an_attempt_and_a_permit_knows_what_failed_before() -> Outcome {
    let (mut window, _) = ready(memory(), "one")?;
    let write = Write::to("a");
    let mut keys = Vec::new();
    let failed = window.permit(&write)?.fresh()?.run(|request| {
        keys.push(Granted::idempotency_key(&request));
        Err::<String, _>(Failure::without_effect("offline").until(std::time::SystemTime::UNIX_EPOCH))
    });
    assert!(matches!(failed, Err(RunError::Failed { .. })));
    let permit = window.permit(&write)?.fresh()?;
    assert_eq!(permit.failed_before().map(|before| before.why()), Some("offline"));
    let done = permit.run(|request| {
        keys.push(Granted::idempotency_key(&request));
        Ok::<_, Failure>("ok")
    })?;
    assert_eq!(keys, [1, 2].map(|attempt| format!("{}-{attempt}", write.signature())));
    assert_eq!(done.attempt().idempotency_key(), keys[1]);
    Ok(())
}

/// An older observation by a tool is not superseded by what the model makes of it, nor by one of another lane.
#[test]
fn what_a_model_says_takes_no_observations_place() -> Outcome {
    let (mut window, _) = ready(memory(), "one")?;
    let lanes = window.lanes();
    let seen = lanes.target.push(NewSpan::human("staging").reads("the target"))?;
    lanes.target.push(NewSpan::model("production").reads("the target"))?;
    lanes.work.push(NewSpan::tool("env", "production").reads("the target"))?;
    assert_eq!(window.superseded_by(seen), None);
    assert!(window.lanes().target.cite(seen).is_ok());
    window.lanes().externalize().wait()?.target.evict(seen).wait()?;
    let write = Write::to("a");
    let Permission::Denied(denied) = window.permit(&write)? else { panic!() };
    assert_eq!(denied.evicted(), [seen]);
    Ok(())
}

/// Somebody looks too early, and settles an attempt that is still running.
#[test]
fn what_was_settled_as_not_done_while_it_ran_is_done() -> Outcome {
    let store = memory();
    let (mut one, _) = ready(store.clone(), "one")?;
    let (mut two, _) = ready(store, "two")?;
    let (first, second) = (Write::to("a"), Write::to("b"));
    let settle = |two: &mut Window<Agent, std::sync::Arc<MemoryStore>>, action: &Write, settlement: Settlement| {
        let Ok(Permission::Uncertain(attempt)) = two.permit(action) else { panic!("it is running") };
        attempt.settle(settlement).wait().unwrap();
    };
    let not_done = Settlement::not_done("looked")?;
    let ran = one.permit(&first)?.fresh()?.run(|_| {
        settle(&mut two, &first, not_done);
        Ok::<_, Failure>("ok")
    })?;
    assert_eq!((ran.attempt().number(), ran.text()), (2, Some("ok")));
    assert_eq!(ran.settled(), Some("it ran to its end after it was settled as not done"));
    for window in [&mut one, &mut two] {
        assert!(matches!(window.permit(&first)?, Permission::Done(done) if *done == ran));
    }
    // It ends so that nobody knows, and that is not what was found out before.
    let (unknown, not_done) = (Write::to("c"), Settlement::not_done("looked")?);
    let ran = one.permit(&unknown)?.fresh()?.run(|_| {
        settle(&mut two, &unknown, not_done);
        Err::<String, _>(Failure::unknown("timed out"))
    });
    assert!(matches!(ran, Err(RunError::Uncertain { unrecorded: None, .. })), "{ran:?}");
    for window in [&mut one, &mut two] {
        assert!(matches!(window.permit(&unknown)?, Permission::Uncertain(attempt) if attempt.number() == 2));
    }
    // Of two outcomes the first on record stays, and whoever has the other is told.
    let done = Settlement::done("seen", "looked")?;
    let ran = one.permit(&second)?.fresh()?.run(|_| {
        settle(&mut two, &second, done);
        Ok::<_, Failure>("ok")
    });
    let Err(RunError::Settled { content, .. }) = ran else { panic!("{ran:?}") };
    assert_eq!(content.as_text(), Some("ok"));
    assert!(matches!(one.permit(&second)?, Permission::Done(done) if done.text() == Some("seen")));
    Ok(())
}

/// A runtime that moves futures between threads takes a whole run.
#[test]
fn a_run_can_be_spawned() -> Outcome {
    fn spawned<T: Send + 'static>(future: impl Future<Output = T> + Send + 'static) -> T {
        std::thread::spawn(move || futures_lite::future::block_on(future)).join().unwrap()
    }
    async fn write(request: Granted<'_, Write>) -> Result<String, Failure> {
        std::future::ready(()).await;
        Ok(request.to.clone())
    }
    let texts = spawned(async move {
        let (mut window, _) = ready(memory(), "one").unwrap();
        let (first, second, mark) = (Write::to("a"), Write::to("b"), "!".to_owned());
        let one = window.permit_async(&first).await.unwrap().fresh().unwrap().run_async(write).await.unwrap();
        let permit = window.permit_async(&second).await.unwrap().fresh().unwrap();
        let two = permit.run_async(async |request| {
            let to = write(request).await?;
            Ok(to + &mark)
        });
        [one, two.await.unwrap()].map(|done| done.text().map(str::to_owned))
    });
    assert_eq!(texts, [Some("a".to_owned()), Some("b!".to_owned())]);
    Ok(())
}

/// A payment, which says what it is.
#[derive(Action)]
#[action(state = Agent, requires(target), describe = in_words, check = agrees, name = "pay")]
struct Pay {
    order: u32,
    lane: &'static str,
}

fn in_words(pay: &Pay) -> String {
    format!("for order {}", pay.order)
}

fn agrees(pay: &Pay, held: &keepspan::action::Held<'_>) -> Result<(), String> {
    if held.names(pay.lane, "staging") { Ok(()) } else { Err("it is not staging".to_owned()) }
}

#[test]
fn an_attempt_says_what_it_was_where_its_action_does() -> Outcome {
    let store = memory();
    let (mut window, _) = ready(store.clone(), "e")?;
    window.lanes().target.push(NewSpan::human("on staging"))?;
    let pay = Pay { order: 7, lane: "target" };
    assert!(window.permit(&pay)?.fresh()?.run(|_| Err::<String, _>(Failure::unknown("timed out"))).is_err());
    let mut resumed = Window::<Agent, _>::resume(store.clone(), Episode::new("e", "p"))?;
    for attempt in [window.unsettled().remove(0), resumed.unsettled().remove(0)] {
        assert_eq!((attempt.about(), attempt.why()), (Some("for order 7"), Some("timed out")));
        assert!(attempt.to_string().starts_with("attempt 1 of `pay` (for order 7) by episode `e`"), "{attempt}");
    }
    let Permission::Uncertain(attempt) = resumed.permit(&pay)? else { panic!() };
    assert_eq!((attempt.about(), attempt.why()), (Some("for order 7"), Some("timed out")));
    // A `check` that asks for another lane than it requires would refuse for ever, or never.
    let misspelt = Pay { order: 8, lane: "targte" };
    let Permission::Denied(denied) = resumed.permit(&misspelt)? else { panic!() };
    let says = "its `check` asks for the lane `targte`, which it does not require: add it to `requires(..)`";
    assert_eq!(denied.mismatch(), Some(says));
    // What cannot be brought back says so.
    let nothing = denied.bring_back().wait();
    assert_eq!(
        nothing.map_err(|error| error.to_string()),
        Err(format!("nothing can be brought back: `pay` is denied: {says}"))
    );
    Ok(())
}

#[test]
fn any_error_is_a_failure_and_json_is_an_outcome() -> Outcome {
    let (mut window, _) = ready(memory(), "e")?;
    let boxed: Box<dyn std::error::Error + Send + Sync> = "offline".into();
    let write = Write::to("a");
    let failed = window.permit(&write)?.fresh()?.run(|_| Err::<String, _>(Failure::without_effect(boxed)));
    assert_eq!(failed.map_err(|error| error.to_string()), Err("`write` failed without effect: offline".to_owned()));
    let write = Write::to("b");
    let failed = window.permit(&write)?.fresh()?.run(|_| Ok::<_, Failure>(std::fs::read("/no/such/file")?));
    let Err(RunError::Uncertain { error, .. }) = failed else { panic!("{failed:?}") };
    assert!(error.downcast_ref::<std::io::Error>().is_some());
    let write = Write::to("c");
    let done = window.permit(&write)?.fresh()?.run(|_| Ok::<_, Failure>(serde_json::json!({ "id": 7 })))?;
    assert_eq!(done.text(), Some("{\"id\":7}"));
    Ok(())
}

/// As above, and the next attempt begins just then.
#[test]
fn what_was_done_is_on_record_although_the_next_attempt_began_meanwhile() -> Outcome {
    for fails in [None, Some("timed out")] {
        let store = memory();
        let two = std::sync::Mutex::new(ready(store.clone(), "two")?.0);
        let (action, next) = (Write::to("a"), std::sync::atomic::AtomicBool::new(false));
        let begin = |found| {
            if next.swap(false, std::sync::atomic::Ordering::SeqCst) {
                let mut two = two.lock().unwrap();
                let permit = two.permit(&action).unwrap().fresh().unwrap();
                assert!(permit.run(|_| Err::<String, _>(Failure::without_effect("offline"))).is_err());
            }
            found
        };
        let (mut one, _) = ready(Tampered { inner: store.clone(), change: &begin }, "one")?;
        let not_done = Settlement::not_done("looked")?;
        let ran = one.permit(&action)?.fresh()?.run(|_| {
            let mut two = two.lock().unwrap();
            let Ok(Permission::Uncertain(attempt)) = two.permit(&action) else { panic!("it is running") };
            attempt.settle(not_done).wait().unwrap();
            next.store(true, std::sync::atomic::Ordering::SeqCst);
            match fails {
                None => Ok("ok"),
                Some(why) => Err(Failure::unknown(why)),
            }
        });
        let mut two = two.into_inner()?;
        match (fails, two.permit(&action)?) {
            (None, Permission::Done(done)) => assert_eq!(*done, ran?),
            (Some(_), Permission::Uncertain(attempt)) => assert_eq!(attempt.number(), 3),
            (_, other) => panic!("{ran:?}, {other:?}"),
        }
    }
    Ok(())
}

/// An attempt of another store would end the next one of this before it began: then what crashed would be fresh again.
#[test]
fn an_ending_of_an_attempt_that_nobody_began_is_damage() -> Outcome {
    let (mut one, _) = ready(memory(), "one")?;
    let (mut two, _) = ready(memory(), "two")?;
    let action = Write::to("a");
    assert!(one.permit(&action)?.fresh()?.run(|_| Err::<String, _>(Failure::unknown("timed out"))).is_err());
    let attempt = one.unsettled().into_iter().next().ok_or("it is uncertain")?;
    two.settle(&attempt, Settlement::not_done("looked")?).wait()?;
    assert_eq!(
        two.permit(&action).err().map(|error| error.to_string()).as_deref(),
        Some(
            "the store failed: an attempt that nobody began has an ending: the claims of this store are not whole; mend it, then \
             run the step again"
        )
    );
    Ok(())
}

#[derive(ContextState)]
struct Loose {
    #[evictable(otherwise)]
    schema: Spans,
    #[evictable]
    staging: Spans,
    #[derived]
    recap: Spans,
}

#[derive(ContextState)]
struct Split {
    #[precondition(otherwise)]
    schema: Spans,
    #[precondition]
    staging: Spans,
    #[derived]
    recap: Spans,
}

#[derive(ContextState)]
struct Firm {
    #[precondition(otherwise)]
    schema: Spans,
    #[derived]
    recap: Spans,
}

#[derive(Action)]
#[action(state = Firm, requires(schema))]
struct Rename {
    table: &'static str,
}

/// Resumes as `Firm`, where `schema` is a precondition and the only such lane.
fn firm(store: &std::sync::Arc<MemoryStore>) -> Result<Window<Firm, std::sync::Arc<MemoryStore>>, Box<dyn Error>> {
    let migration = keepspan::Migration::because("what it depends on is one precondition")?.rename("staging", "schema");
    Ok(Window::resume(store.clone(), Episode::new("e", "p").migrate(migration))?)
}

/// A lane that is a precondition now, and was summarized while it was none.
#[test]
fn a_summary_stands_in_for_nothing_that_is_required() -> Outcome {
    let store = memory();
    let mut window = Window::<Loose, _>::open(store.clone(), Episode::new("e", "p"))?;
    let lanes = window.lanes();
    let read = lanes.schema.push(NewSpan::tool("describe", "users.id BIGINT NOT NULL, on production. ".repeat(40)))?;
    lanes.schema.push(NewSpan::tool("describe", "orders.id INT"))?;
    let text = SummaryText::try_from(ModelAnswer::new(Finish::Stop, "constraints verified"))?;
    let lanes = window.lanes().externalize().wait()?;
    let summary = lanes.schema.summarize(read, text, &lanes.recap).wait()?;

    let (mut window, action) = (firm(&store)?, Rename { table: "users" });
    let Permission::Denied(denied) = window.permit(&action)? else { panic!() };
    assert_eq!(denied.replaced(), [(read, summary)]);
    assert_eq!(
        denied.to_string(),
        format!("`Rename` is denied: {read} is in the window as the summary {summary} alone: re-ground that")
    );
    window.lanes().recap.reground(summary).wait()?;
    assert!(window.permit(&action)?.fresh().is_ok());
    Ok(())
}

/// Two lanes that became one: what the one observed takes the place of what the other did, and nobody has seen both.
#[test]
fn lanes_that_became_one_hide_nothing_that_was_required() -> Outcome {
    let store = memory();
    let mut window = Window::<Split, _>::open(store.clone(), Episode::new("e", "p"))?;
    let lanes = window.lanes();
    let older = lanes.schema.push(NewSpan::tool("describe", "users.id BIGINT").reads("users"))?;
    let same = lanes.schema.push(NewSpan::tool("describe", "orders.id INT").reads("orders"))?;
    let newer = lanes.staging.push(NewSpan::tool("describe", "users.id INT").reads("users"))?;
    lanes.staging.push(NewSpan::tool("describe", "orders.id INT").reads("orders"))?;
    window.lanes().externalize().wait()?.schema.evict([older, same]).wait()?;

    let (mut window, action) = (firm(&store)?, Rename { table: "users" });
    for _ in 0..2 {
        let Permission::Denied(denied) = window.permit(&action)? else { panic!() };
        assert_eq!((denied.evicted(), denied.contradicted()), (&[][..], &[(older, newer)][..]));
        window = Window::resume(store.clone(), Episode::new("e", "p"))?;
    }
    let Permission::Denied(denied) = window.permit(&action)? else { panic!() };
    assert_eq!(denied.bring_back().wait()?, [older]);
    assert!(window.permit(&action)?.fresh().is_ok());
    Ok(())
}

/// What did not come to an end observed nothing: an error in place of the schema, or its first page.
#[test]
fn a_call_that_failed_or_goes_on_fills_no_lane() -> Outcome {
    let store = memory();
    let mut window = Window::<Migration, _>::open(store.clone(), Episode::new("e", "p"))?;
    window.lanes().target.push(NewSpan::human("staging"))?;
    let schema = window.lanes().route(NewSpan::tool("describe", "error: connection refused").failed())?;
    let alter = Alter { table: "users" };
    let empty = |window: &mut Window<Migration, std::sync::Arc<MemoryStore>>| match window.permit(&alter) {
        Ok(Permission::Denied(denied)) => denied.empty().to_vec(),
        other => panic!("{other:?}"),
    };
    assert_eq!(empty(&mut window), ["schema"]);
    // Nor after a stop, nor where it is pushed again.
    drop(window.lanes().externalize().wait()?);
    let mut window = Window::<Migration, _>::resume(store, Episode::new("e", "p"))?;
    assert_eq!(empty(&mut window), ["schema"]);
    assert!(window.lanes().schema.cite(schema).is_ok(), "it is evidence of what failed");
    window.lanes().route(NewSpan::model("describe").calls(["c1"]))?;
    let page = window.lanes().route(NewSpan::tool("describe", "page 1 of 9").interim("c1"))?;
    assert_eq!(empty(&mut window), ["schema"]);
    let cited = window.lanes().schema.cite(page).map(|_| ());
    assert_eq!(cited, Err(keepspan::evidence::EvidenceError::Unfinished { span: page }));
    window.lanes().route(NewSpan::tool("describe", "page 9 of 9").answers("c1"))?;
    assert!(matches!(window.permit(&alter)?, Permission::Fresh(_)));
    assert!(window.lanes().schema.cite(page).is_ok());
    Ok(())
}

/// An outcome whose text some episode redacted is on record, and its text is not kept.
#[test]
fn an_outcome_whose_text_was_redacted_before_is_on_record() -> Outcome {
    let store = memory();
    let (mut window, _) = ready(store, "e")?;
    let secret = window.lanes().work.push(NewSpan::tool("env", "key-1"))?;
    drop(window.lanes().externalize().wait()?);
    window.lanes().work.redact(secret, Mutation::new("a key", "ask the vault")?).wait()?;
    let write = Write::to("a");
    let Permission::Denied(denied) = window.permit(&write)? else { panic!() };
    let permit = denied.accept_lossy(AcceptLossy::because("it was a key")?).map_err(|denied| denied.into_inner())?;
    assert!(permit.run(|_| Ok::<_, Failure>("key-1")).is_ok());
    let Permission::Done(done) = window.permit(&write)? else { panic!() };
    assert_eq!(done.content(), None);
    assert!(window.unsettled().is_empty());
    Ok(())
}

/// An attempt of another store is settled here, between a permit and its run: it ends nothing that begins here.
#[test]
fn an_ending_is_of_the_intent_that_it_ends() -> Outcome {
    let (mut there, _) = ready(memory(), "there")?;
    let store = memory();
    let (mut here, _) = ready(store.clone(), "here")?;
    let (mut beside, _) = ready(store, "beside")?;
    let action = Write::to("a");
    assert!(there.permit(&action)?.fresh()?.run(|_| Err::<String, _>(Failure::unknown("timed out"))).is_err());
    let foreign = there.unsettled().remove(0);
    let permit = here.permit(&action)?.fresh()?;
    beside.settle(&foreign, Settlement::not_done("looked at another system")?).wait()?;
    let crashed = permit.run(|_| Err::<String, _>(Failure::unknown("crashed")));
    assert!(matches!(crashed, Err(RunError::Uncertain { .. })), "{crashed:?}");
    for window in [&mut here, &mut beside] {
        assert!(matches!(window.permit(&action), Err(PermitError::Store(_))), "it is never fresh");
    }
    Ok(())
}
