//! What an action rests on: cited spans, no better than where they are from, for as long as they are what they were (rule R20).

use std::{error::Error, sync::Arc};

use keepspan::{
    Episode, Escalation, Failure, Finish, Limits, ModelAnswer, Mutation, NewSpan, Origin, Permission, Recovered, Role,
    SelectionError, SpanId, SummaryText, Window,
    action::{Granted, RunError},
    evidence::{Evidence, EvidenceError, Raw, Trust, Verified},
    store::MemoryStore,
    tool::{Anthropic, RecallCall},
};
use keepspan_tests::{
    Agent, Fault, Faulty,
    acts::{Erase, Ready, Send, Write, ready},
    memory,
};

type Outcome<T = ()> = Result<T, Box<dyn Error>>;
type Windowed = Window<Agent, Arc<MemoryStore>>;

fn window() -> Outcome<(Windowed, Ready)> {
    ready(memory(), "e")
}

/// A text that is long enough for a summary to be shorter.
fn long(text: &str) -> String {
    format!("{text}{}", ", and so on".repeat(20))
}

fn summary(text: &str) -> Outcome<SummaryText> {
    Ok(ModelAnswer::new(Finish::Stop, text).try_into()?)
}

fn erase() -> Erase {
    Erase { table: "users".to_owned() }
}

/// Whether the evidence still justifies what cannot be taken back; nothing runs.
fn holds<T>(window: &mut Windowed, evidence: &Evidence<T>) -> Outcome<Result<(), EvidenceError>>
where
    T: keepspan::rule::Justifies<Erase, keepspan::action::effect::Destructive>,
{
    let action = erase();
    let Permission::Fresh(permit) = window.permit(&action)? else { return Err("not fresh".into()) };
    Ok(permit.justified_by(evidence).map(drop))
}

#[test]
fn only_what_a_tool_or_a_person_said_is_first_hand() -> Outcome {
    let (mut window, ready) = window()?;
    let lanes = window.lanes();
    for (span, origin, says) in [
        (NewSpan::model("it is staging"), Origin::Model, "the model's own text"),
        (NewSpan::notice("it is staging"), Origin::Notice, "a notice of the program"),
        (NewSpan::notice("it is staging").role(Role::User), Origin::Notice, "a notice of the program"),
    ] {
        let span = lanes.target.push(span)?;
        let error = lanes.target.cite(span).err().ok_or("cited")?;
        assert_eq!(error, EvidenceError::NotFirstHand { span, origin });
        let expected = format!("{span} is {says}: cite the tool's result or the person's statement that it rests on");
        assert_eq!(error.to_string(), expected);
    }
    let raw: Evidence<Raw> = lanes.target.cite(ready.target)?;
    assert_eq!((raw.span(), raw.trust()), (ready.target, Trust::Seen));
    assert_eq!(window.trust(ready.target), Some(Trust::Seen));
    assert_eq!(window.trust(SpanId::parse("s99").ok_or("no id")?), None);
    assert_eq!(
        window.lanes().schema.cite(ready.target).err(),
        Some(EvidenceError::Selection(SelectionError::OtherLane {
            span: ready.target,
            lane: "schema",
            actual: "target"
        }))
    );
    // What a rationale says is its author's alone, whoever that is said to be.
    let said = window.lanes().decisions.push(NewSpan::tool("prune", "s1 is stale"))?;
    assert_eq!(window.lanes().decisions.cite(said)?.trust(), Trust::Hearsay);
    drop(window.lanes().externalize().wait()?);
    let error = window.recall(said).wait()?.cite().err();
    assert!(matches!(error, Some(EvidenceError::NotFirstHand { .. })), "{error:?}");
    Ok(())
}

#[test]
fn evidence_holds_for_as_long_as_its_span_is_what_it_was() -> Outcome {
    let (mut window, ready) = window()?;
    let evidence = window.lanes().target.cite(ready.target)?;
    assert_eq!(holds(&mut window, &evidence)?, Ok(()));

    // Another window has the same numbers.
    let (mut other, _) = self::window()?;
    let elsewhere = holds(&mut other, &evidence)?;
    assert_eq!(elsewhere, Err(EvidenceError::OtherWindow { span: ready.target }));
    assert_eq!(
        elsewhere.map_err(|error| error.to_string()),
        Err("s2 was cited in another window, or before this one was recovered: cite it again, in the one that is asked for the permit".to_owned())
    );

    // It left: what was recalled is evidence all the same.
    let work = window.lanes().work.push(NewSpan::tool("read", "users is empty"))?;
    let lanes = window.lanes().externalize().wait()?;
    let evidence = lanes.work.cite(work)?;
    lanes.work.evict(work).wait()?;
    let left = EvidenceError::NotResident { span: work };
    assert_eq!(window.lanes().work.cite(work).err(), Some(left.clone()));
    assert_eq!(
        left.to_string(),
        "s4 is not in the window: restore it, or cite what `Window::recall` gives: `recalled.cite()?`"
    );
    assert_eq!(holds(&mut window, &evidence)?, Err(left));
    let verified: Evidence<Verified> = window.recall(work).wait()?.cite()?;
    assert_eq!((verified.span(), verified.trust()), (work, Trust::Stored));
    assert_eq!(holds(&mut window, &verified)?, Ok(()));
    window.lanes().work.restore(work).wait()?;
    assert_eq!(holds(&mut window, &evidence)?, Ok(()));

    // A newer observation took its place.
    let older = window.lanes().work.push(NewSpan::tool("read", "users: 0 rows").reads("users"))?;
    let lanes = window.lanes().externalize().wait()?;
    let (raw, recalled) = (lanes.work.cite(older)?, window.recall(older).wait()?.cite()?);
    let newer = window.lanes().work.push(NewSpan::tool("read", "users: 9 rows").reads("users"))?;
    let stale = EvidenceError::Stale { span: older, by: newer };
    assert_eq!(window.lanes().work.cite(older).err(), Some(stale.clone()));
    assert_eq!(holds(&mut window, &raw)?, Err(stale.clone()));
    assert_eq!(holds(&mut window, &recalled)?, Err(stale.clone()));
    assert_eq!(
        stale.to_string(),
        "s5 is stale: s6 is a newer observation of the same subject: cite that one, and look whether the action still fits"
    );

    // What the store does not have was never verified.
    let error = window.recall(newer).wait()?.cite().err().ok_or("cited")?;
    assert_eq!(error, EvidenceError::Unverified { span: newer });
    assert_eq!(
        error.to_string(),
        "s6 was recalled from the window itself and is not in the store yet: externalize first, or cite it by its lane"
    );
    Ok(())
}

#[test]
fn what_was_redacted_is_no_evidence_any_more() -> Outcome {
    let (mut window, _) = window()?;
    let span = window.lanes().work.push(NewSpan::tool("read", "password: x"))?;
    let lanes = window.lanes().externalize().wait()?;
    let raw = lanes.work.cite(span)?;
    let (text, verified) = (window.recall(span).wait()?, window.recall(span).wait()?.cite()?);
    window.lanes().work.redact(span, Mutation::new("a password", "ask")?).wait()?;
    let action = erase();
    let Permission::Denied(denied) = window.permit(&action)? else { return Err("not lossy".into()) };
    let accept = || keepspan::action::AcceptLossy::because("the password says nothing of users");
    let permit = denied.accept_lossy(accept()?).map_err(|denied| denied.into_inner())?;
    assert_eq!(permit.justified_by(&raw).err(), Some(EvidenceError::NotResident { span }));
    for verified in [verified, text.cite()?] {
        let Permission::Denied(denied) = window.permit(&action)? else { return Err("not lossy".into()) };
        let permit = denied.accept_lossy(accept()?).map_err(|denied| denied.into_inner())?;
        let error = permit.justified_by(&verified).err();
        assert_eq!(error, Some(EvidenceError::Selection(SelectionError::Discarded { span })));
    }
    assert_eq!(window.trust(span), None);
    Ok(())
}

#[test]
fn a_summary_is_no_better_than_its_weakest_source() -> Outcome {
    let (mut window, _) = window()?;
    let lanes = window.lanes();
    let push = |span: NewSpan| lanes.work.push(span);
    let first_hand = [push(NewSpan::tool("read", long("seen")))?, push(NewSpan::human(long("said")))?];
    let mixed = [push(NewSpan::tool("read", long("seen")))?, push(NewSpan::model(long("guessed")))?];
    let other = push(NewSpan::tool("read", long("seen")))?;
    let lanes = window.lanes().externalize().wait()?;
    let good = lanes.work.summarize(first_hand, summary("good")?, &lanes.recap).wait()?;
    let weak = lanes.work.summarize(mixed, summary("weak")?, &lanes.recap).wait()?;
    let third = lanes.work.summarize(other, summary("third")?, &lanes.recap).wait()?;
    assert_eq!(lanes.recap.cite(good)?.trust(), Trust::Digested);
    assert_eq!(lanes.recap.cite(weak)?.trust(), Trust::Hearsay);
    // One of a good and a weak one is weak; one of two good ones is not better for that.
    let why = || Escalation::because("no room");
    let text = window.recall(good).wait()?;
    assert!(matches!(text.cite(), Err(EvidenceError::NotFirstHand { origin: Origin::Model, .. })));
    let lanes = window.lanes().externalize().wait()?;
    let both = lanes.recap.escalate([good, third], summary("b")?, why()?).wait()?;
    assert_eq!(lanes.recap.cite(both)?.trust(), Trust::Digested);
    assert_eq!(lanes.recap.cite(good).err(), Some(EvidenceError::NotResident { span: good }));
    let all = lanes.recap.escalate([weak, both], summary("a")?, why()?).wait()?;
    assert_eq!(lanes.recap.cite(all)?.trust(), Trust::Hearsay);
    assert_eq!((window.trust(good), window.trust(both)), (Some(Trust::Digested), Some(Trust::Digested)));
    // The sources that come back are what they were.
    window.lanes().recap.reground(all).wait()?;
    let raw = window.lanes().work.cite(first_hand[0])?;
    assert_eq!(raw.trust(), Trust::Seen);
    // A source that is gone can back nothing.
    let lanes = window.lanes().externalize().wait()?;
    let again = lanes.work.summarize(other, summary("again")?, &lanes.recap).wait()?;
    assert_eq!(window.trust(again), Some(Trust::Digested));
    window.lanes().work.redact(other, Mutation::new("a key", "ask")?).wait()?;
    assert_eq!(window.trust(again), Some(Trust::Hearsay));
    Ok(())
}

/// Asks for lines of a span as a model does, and pushes the answer, as a program does.
fn excerpt(window: &mut Windowed, of: SpanId, call: &str) -> Outcome<SpanId> {
    let response = serde_json::json!({ "type": "message", "stop_reason": "tool_use", "content": [{ "type": "tool_use",
        "id": call, "name": "recall_span", "input": { "span": of.to_string(), "from_line": 1, "to_line": 1, "search": null } }] });
    window.lanes().work.push(NewSpan::model("recalls").calls([call]))?;
    let calls = RecallCall::read(Anthropic, &response)?;
    let reply = window.answer_recall(calls.first().ok_or("no call")?, 500).wait()?;
    Ok(window.lanes().work.push(NewSpan::from(reply))?)
}

#[test]
fn an_excerpt_is_no_better_than_what_it_is_of() -> Outcome {
    let store = memory();
    let (mut window, _) = ready(store.clone(), "e")?;
    let lanes = window.lanes();
    let guess = lanes.work.push(NewSpan::model("users is empty\nso drop it"))?;
    let seen =
        lanes.work.push(NewSpan::tool("count", "users: 0 rows\nthat is all of it, so far as this tool can see"))?;
    let source = lanes.work.push(NewSpan::tool("read", long("seen")))?;
    let lanes = window.lanes().externalize().wait()?;
    let summary = lanes.work.summarize(source, summary("s\nt")?, &lanes.recap).wait()?;
    lanes.work.evict([guess, seen]).wait()?;
    let of_guess = excerpt(&mut window, guess, "c1")?;
    let of_summary = excerpt(&mut window, summary, "c2")?;
    let of_seen = excerpt(&mut window, seen, "c3")?;
    let of_excerpt = excerpt(&mut window, of_guess, "c4")?;
    for (span, trust) in [
        (of_guess, Trust::Hearsay),
        (of_summary, Trust::Digested),
        (of_seen, Trust::Stored),
        (of_excerpt, Trust::Hearsay),
    ] {
        assert_eq!(window.trust(span), Some(trust), "{span}");
    }
    for span in [of_guess, of_summary, of_excerpt] {
        let error = window.lanes().work.cite(span).err();
        assert_eq!(error, Some(EvidenceError::NotFirstHand { span, origin: Origin::Model }));
    }
    assert_eq!(window.lanes().work.cite(of_seen)?.trust(), Trust::Stored);
    drop(window.lanes().externalize().wait()?);
    assert!(window.recall(of_guess).wait()?.cite().is_err());
    assert!(window.recall(of_seen).wait()?.cite().is_ok());
    // One that says it is of a span to come is of none, and so is one that lost what it is of: neither is a look at the world.
    let next = |span: SpanId| format!("s{}", span.number() + 1);
    let odd = window.lanes().work.push(NewSpan::tool("recall_span", "odd").reads(next(of_excerpt)))?;
    window.lanes().work.push(NewSpan::model("recalls").calls(["c5", "c6"]))?;
    let [other, failed] = ["c5", "c6"].map(|call| {
        let response = serde_json::json!({ "type": "message", "stop_reason": "tool_use", "content": [{ "type": "tool_use",
            "id": call, "name": "recall_span", "input": { "span": summary.to_string(), "from_line": 1, "to_line": 1, "search": null } }] });
        RecallCall::read(Anthropic, &response).unwrap().remove(0)
    });
    let other = NewSpan::from(window.answer_recall(&other, 500).wait()?).reads("recall_span({})");
    let failed = NewSpan::from(window.answer_recall(&failed, 500).wait()?).failed();
    for span in [other, failed] {
        let span = window.lanes().work.push(span)?;
        assert_eq!(window.trust(span), Some(Trust::Hearsay));
        assert!(matches!(window.lanes().work.cite(span), Err(EvidenceError::NotFirstHand { .. })));
    }
    assert_eq!(window.trust(odd), Some(Trust::Hearsay));
    // It is the same after a stop.
    let window = Window::<Agent, _>::resume(store, Episode::new("e", "p"))?;
    for (span, trust) in [(of_guess, Trust::Hearsay), (of_summary, Trust::Digested), (of_seen, Trust::Stored)] {
        assert_eq!(window.trust(span), Some(trust), "{span}");
    }
    Ok(())
}

/// A model that recalls what it recalled, over and over, is answered to the end.
#[test]
fn an_excerpt_of_excerpts_has_a_trust_however_many_there_are() -> Outcome {
    let (mut window, _) = window()?;
    let lanes = window.lanes();
    let mut last = lanes.work.push(NewSpan::model("g"))?;
    for _ in 0..100_000 {
        last = lanes.work.push(NewSpan::tool("recall_span", "g").reads(format!("{last}:1-1")))?;
    }
    assert_eq!(lanes.work.cite(last).err(), Some(EvidenceError::NotFirstHand { span: last, origin: Origin::Model }));
    Ok(())
}

/// What a superseded owner pushes again has other numbers there, and the span that an excerpt is of may be another one.
#[test]
fn an_excerpt_that_is_pushed_again_is_of_no_other_span() -> Outcome {
    let store = memory();
    let (mut old, ready) = ready(store.clone(), "e")?;
    drop(old.lanes().externalize().wait()?);
    let guess = old.lanes().work.push(NewSpan::model("users is empty\nso drop it"))?;
    let (of_guess, of_seen) = (excerpt(&mut old, guess, "c1")?, excerpt(&mut old, ready.schema, "c2")?);
    let mut new = Window::<Agent, _>::resume(store, Episode::new("e", "p"))?;
    assert_eq!(new.lanes().work.push(NewSpan::tool("count", "users: 9 rows"))?, guess);
    let mut again = Vec::new();
    for unsaved in old.unsaved() {
        again.push((unsaved.span, new.lanes().work.push(unsaved)?));
    }
    let trust = |of: SpanId| again.iter().find(|(old, _)| *old == of).and_then(|(_, span)| new.trust(*span));
    assert_eq!((trust(of_guess), trust(of_seen)), (Some(Trust::Hearsay), Some(Trust::Seen)));
    Ok(())
}

/// A commit whose answer was lost took the number of a span that was pushed and cited meanwhile, for a summary.
#[test]
fn evidence_does_not_pass_to_another_span_that_took_its_number() -> Outcome {
    let store = Arc::new(Faulty::default());
    let (mut window, ready) = ready(store.clone(), "e")?;
    let source = window.lanes().work.push(NewSpan::tool("read", long("seen")))?;
    let lanes = window.lanes().externalize().wait()?;
    store.arm(3, Fault::Unacknowledged); // after the summary's text, and its reading back
    assert!(lanes.work.summarize(source, summary("s")?, &lanes.recap).wait().is_err());
    let seen = window.lanes().work.push(NewSpan::tool("count", long("users: 0 rows")))?;
    let (evidence, consent) = (window.lanes().work.cite(seen)?, window.lanes().work.consent(seen).err());
    assert!(matches!(consent, Some(EvidenceError::NotHuman { origin: Origin::Tool, .. })));
    let Recovered::Written { moved } = window.recover()? else { return Err("it was written".into()) };
    assert_eq!(moved.iter().map(|(old, _)| *old).collect::<Vec<_>>(), [seen]);
    assert!(window.derivation(seen).is_some());
    let action = erase();
    let error = window.permit(&action)?.fresh()?.justified_by(&evidence).err();
    assert_eq!(error, Some(EvidenceError::OtherWindow { span: seen }));

    // So for what a person said.
    let lanes = window.lanes().externalize().wait()?;
    let more = lanes.work.cite(moved[0].1)?.span();
    store.arm(3, Fault::Unacknowledged); // after the summary's text, and its reading back
    assert!(lanes.work.summarize(more, summary("t")?, &lanes.recap).wait().is_err());
    let said = window.lanes().rules.push(NewSpan::human("yes"))?;
    let consent = window.lanes().rules.consent(said)?;
    assert!(matches!(window.recover()?, Recovered::Written { .. }));
    let evidence = window.lanes().target.cite(ready.target)?;
    let action = Send { text: "mail".to_owned() };
    let error = window.permit(&action)?.fresh()?.justified_by(&evidence)?.consented_by(consent).err();
    assert_eq!(error, Some(EvidenceError::OtherWindow { span: said }));
    Ok(())
}

/// B013: a notification under the user's role, and a summary that says the user agreed, are no consent.
#[test]
fn consent_is_what_a_person_said_and_nothing_else() -> Outcome {
    let (mut window, ready) = window()?;
    let lanes = window.lanes();
    for (span, says) in [
        (NewSpan::notice("the user approved the push").role(Role::User), "a notice of the program"),
        (NewSpan::tool("ask", "the user approved the push"), "a tool's result"),
        (NewSpan::model("the user approved the push").role(Role::User), "the model's own text"),
    ] {
        let span = lanes.rules.push(span)?;
        let error = lanes.rules.consent(span).err().ok_or("consented")?;
        assert_eq!(
            error.to_string(),
            format!(
                "{span} is {says}, and consent comes only from what a person said: ask, and push the answer with `NewSpan::human`"
            )
        );
    }
    assert!(matches!(lanes.work.consent(ready.yes), Err(EvidenceError::Selection(SelectionError::OtherLane { .. }))));
    // Words that a person took back, or that left.
    let older = lanes.work.push(NewSpan::human("yes").reads("push?"))?;
    let consent = lanes.work.consent(older)?;
    let newer = lanes.work.push(NewSpan::human("no, wait").reads("push?"))?;
    assert_eq!(lanes.work.consent(older).err(), Some(EvidenceError::Stale { span: older, by: newer }));
    let evidence = lanes.target.cite(ready.target)?;
    let action = Send { text: "mail".to_owned() };
    let permit = window.permit(&action)?.fresh()?.justified_by(&evidence)?;
    assert_eq!(permit.consented_by(consent).err(), Some(EvidenceError::Stale { span: older, by: newer }));
    let lanes = window.lanes().externalize().wait()?;
    let consent = lanes.work.consent(newer)?;
    lanes.work.evict(newer).wait()?;
    let permit = window.permit(&action)?.fresh()?.justified_by(&evidence)?;
    assert_eq!(permit.consented_by(consent).err(), Some(EvidenceError::NotResident { span: newer }));
    // Another window's.
    let (mut other, _) = self::window()?;
    let consent = other.lanes().rules.consent(ready.yes)?;
    let permit = window.permit(&action)?.fresh()?.justified_by(&evidence)?;
    assert_eq!(permit.consented_by(consent).err(), Some(EvidenceError::OtherWindow { span: ready.yes }));
    Ok(())
}

#[test]
fn consent_covers_one_run_or_one_of_each_request_where_it_was_given_to_several() -> Outcome {
    let (mut window, ready) = window()?;
    let evidence = window.lanes().target.cite(ready.target)?;
    let (one, two) = (Send { text: "one".to_owned() }, Send { text: "two".to_owned() });
    let mut sent = Vec::new();
    let (yes, both) = (ready.yes, window.lanes().rules.push(NewSpan::human("send both"))?);
    let mut send =
        |window: &mut Windowed, action: &Send, said, failure: Option<Failure>| -> Outcome<Result<(), RunError>> {
            let consent = window.lanes().rules.consent(said)?;
            let consent = if said == both { consent.for_several() } else { consent };
            let permit = window.permit(action)?.fresh()?.justified_by(&evidence)?.consented_by(consent)?;
            let effect = |action: Granted<'_, Send>| match failure {
                Some(failure) => Err(failure),
                None => {
                    sent.push(action.text.clone());
                    Ok("sent")
                }
            };
            Ok(permit.run(effect).map(drop))
        };
    // It failed, and what it depends on changed since: the same yes is none to the second time.
    let failed = send(&mut window, &one, yes, Some(Failure::without_effect("offline")))?;
    assert!(matches!(failed, Err(RunError::Failed { .. })), "{failed:?}");
    window.lanes().target.push(NewSpan::human("online again"))?;
    let spent = send(&mut window, &one, yes, None)?;
    let Err(error @ RunError::Spent { .. }) = spent else { return Err(format!("{spent:?}").into()) };
    assert_eq!(
        error.to_string(),
        "`send` did not run: the consent in s3 was spent by an earlier run; ask the person again"
    );
    // Nothing was attempted, and a yes to one thing is none to another.
    assert!(matches!(window.permit(&one)?, Permission::Fresh(permit) if permit.attempt() == 2));
    assert!(matches!(send(&mut window, &two, yes, None)?, Err(RunError::Spent { .. })));
    // What was said of both covers each once.
    let failed = send(&mut window, &one, both, Some(Failure::without_effect("offline")))?;
    assert!(matches!(failed, Err(RunError::Failed { .. })), "{failed:?}");
    assert!(send(&mut window, &two, both, None)?.is_ok());
    window.lanes().target.push(NewSpan::human("online once more"))?;
    assert!(matches!(send(&mut window, &one, both, None)?, Err(RunError::Spent { .. })));
    assert_eq!(sent, ["two"]);
    // The same words do not cover a request once more because they are said to be of several now, or of one.
    for said in [yes, both] {
        let consent = window.lanes().rules.consent(said)?;
        let consent = if said == yes { consent.for_several() } else { consent };
        let permit = window.permit(&one)?.fresh()?.justified_by(&evidence)?.consented_by(consent)?;
        let spent = permit.run(|_| Ok::<_, Failure>("sent"));
        assert!(matches!(spent, Err(RunError::Spent { span, .. }) if span == said), "{spent:?}");
    }
    Ok(())
}

#[test]
fn what_can_be_made_good_runs_on_any_evidence_and_it_is_on_record() -> Outcome {
    let store = memory();
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p").budget(Limits::of(9_000)))?;
    let spans = keepspan_tests::acts::prepare(&mut window)?;
    let source = window.lanes().work.push(NewSpan::tool("read", long("seen")))?;
    let said = window.lanes().decisions.push(NewSpan::model("as I see it"))?;
    let lanes = window.lanes().externalize().wait()?;
    let summary = lanes.work.summarize(source, summary("s")?, &lanes.recap).wait()?;
    let (second_hand, unbacked) = (lanes.recap.cite(summary)?, lanes.decisions.cite(said)?);
    let raw = lanes.schema.cite(spans.schema)?;
    let action = Write::to("a");
    let permit = window.permit(&action)?.fresh()?;
    permit.justified_by(&second_hand)?.justified_by(&unbacked)?.justified_by(&raw)?.run(|_| Ok::<_, Failure>("ok"))?;
    // The log says on what, and reads again as it was written.
    drop(window);
    let resumed = Window::<Agent, _>::resume(store.clone(), Episode::new("e", "p").budget(Limits::of(9_000)))?;
    assert!(keepspan::audit::verify(&store, &keepspan::EpisodeId::new("e"), |_| {}).faults.is_empty());
    assert_eq!(resumed.trust(summary), Some(Trust::Digested));
    Ok(())
}
