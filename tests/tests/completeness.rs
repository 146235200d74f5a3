//! A claim is made on spans that are in the window, and no span is taken for absent because the window does not show it
//! (rules R17, R21).

use std::collections::{BTreeMap, BTreeSet};

use keepspan::{Episode, Finish, Incomplete, ModelAnswer, Mutation, NewSpan, SpanId, Window, store::MemoryStore};
use keepspan_tests::{Agent, memory};

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Windowed = Window<Agent, std::sync::Arc<MemoryStore>>;

fn window() -> Result<Windowed, keepspan::OpenError> {
    Window::open(memory(), Episode::new("e", "p"))
}

/// A span that no episode here comes to.
fn never(number: u64) -> Result<SpanId, String> {
    SpanId::parse(&format!("s{}", 1_000_000 + number)).ok_or_else(|| "no id".to_owned())
}

/// The record's lines, each as a window that came to be so: what is resident and tombstoned was evicted and restored; what is
/// neither was discarded, or never there.
#[test]
fn every_recorded_completeness_is_found_again() -> Outcome {
    let Some(corpus) = std::env::var_os("KEEPSPAN_CORPUS").map(std::path::PathBuf::from) else {
        eprintln!("SKIPPED: KEEPSPAN_CORPUS is not set, so the recorded claims are not at hand");
        return Ok(());
    };
    let (mut lines, mut complete, mut discarded, mut absent, mut brought_back) = (0, 0, 0, 0, 0);
    for line in std::fs::read_to_string(corpus.join("../vectors/completeness.jsonl"))?.lines() {
        let given: BTreeMap<String, BTreeSet<String>> = serde_json::from_str(line)?;
        let of = |key: &str| given.get(key).ok_or(format!("no {key} in {line}"));
        let (resident, tombstoned, required) = (of("resident")?, of("tombstoned")?, of("required")?);
        let mut window = window()?;
        let mut spans = BTreeMap::new();
        for id in resident.iter().chain(tombstoned).chain(required) {
            if spans.contains_key(id) {
                continue;
            }
            let entered = resident.contains(id) || tombstoned.contains(id);
            let lanes = window.lanes();
            let span = match (entered, id.len() % 2) {
                (true, 0) => lanes.schema.push(NewSpan::tool("describe_table", id.as_str()))?,
                (true, _) => lanes.work.push(NewSpan::tool("read", id.as_str()))?,
                (false, 0) => {
                    let span = lanes.work.push(NewSpan::tool("read", id.as_str()))?;
                    lanes.work.discard(span, Mutation::new("a key", "ask")?).wait()?;
                    discarded += 1;
                    span
                }
                (false, _) => {
                    absent += 1;
                    never(absent)?
                }
            };
            spans.insert(id.clone(), span);
        }
        let ids =
            |of: &mut dyn Iterator<Item = &String>| of.filter_map(|id| spans.get(id)).copied().collect::<BTreeSet<_>>();
        let schema: BTreeSet<_> = window.lanes().schema.resident().into_iter().collect();
        for half in [true, false] {
            let here = |span: &SpanId| schema.contains(span) == half;
            let leave: Vec<_> = ids(&mut tombstoned.iter()).into_iter().filter(here).collect();
            let back: Vec<_> = ids(&mut tombstoned.intersection(resident)).into_iter().filter(here).collect();
            let lanes = window.lanes().externalize().wait()?;
            for span in &leave {
                if half {
                    lanes.schema.evict(*span).wait()?
                } else {
                    lanes.work.evict(*span).wait()?
                };
            }
            for span in &back {
                if half {
                    lanes.schema.restore(*span).wait()?
                } else {
                    lanes.work.restore(*span).wait()?
                };
                brought_back += 1;
            }
        }
        let (wanted, unrecoverable) = (ids(&mut required.iter()), ids(&mut of("unrecoverable")?.iter()));
        let missing = ids(&mut required.iter().filter(|id| tombstoned.contains(*id) && !resident.contains(*id)));
        assert_eq!(wanted.len(), required.len(), "{line}");
        match window.assert_complete(line, wanted.iter().rev().chain(&wanted).copied()) {
            Ok(token) => {
                assert!(required.is_subset(resident), "{line}");
                assert_eq!((token.claim(), token.spans()), (line, &*wanted.into_iter().collect::<Vec<_>>()));
                complete += 1;
            }
            Err(incomplete) => {
                assert!(!required.is_subset(resident), "{line}");
                assert_eq!(incomplete.missing(), missing.into_iter().collect::<Vec<_>>(), "{line}");
                assert_eq!(incomplete.unrecoverable(), unrecoverable.into_iter().collect::<Vec<_>>(), "{line}");
            }
        }
        lines += 1;
    }
    assert_eq!(lines, 500);
    assert!(complete > 0 && discarded > 0 && absent > 0 && brought_back > 0);
    Ok(())
}

/// The same without the file, with what else can become of a span.
#[test]
fn a_claim_says_what_can_be_brought_back_and_what_cannot() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let [here, away, gone, secret] =
        ["here", "away", "gone", "secret"].map(|text| lanes.work.push(NewSpan::tool("read", text)).map_err(Box::new));
    let (here, away, gone, secret) = (here?, away?, gone?, secret?);
    let source = lanes.work.push(NewSpan::tool("read", "a long text, of which a few words are made ".repeat(9)))?;
    lanes.work.discard(gone, Mutation::new("a key", "ask")?).wait()?;
    let lanes = lanes.externalize().wait()?;
    lanes.work.evict(away).wait()?;
    let short = ModelAnswer::new(Finish::Stop, "x").try_into()?;
    let summary = lanes.work.summarize(source, short, &lanes.recap).wait()?;
    lanes.work.redact(secret, Mutation::new("a password", "ask")?).wait()?;

    let never = never(1)?;
    let Err(incomplete) = window.assert_complete("all", [never, summary, source, secret, gone, away, here]) else {
        return Err("it is not complete".into());
    };
    assert_eq!(incomplete.claim(), "all");
    assert_eq!(incomplete.missing(), [away, source]);
    assert_eq!(incomplete.unrecoverable(), [gone, secret, never]);
    assert_eq!(
        incomplete.to_string(),
        "\"all\" is not substantiated: s2, s5 left the window, restore or re-ground; s3, s4, s1000001 is neither in the \
         window nor in the store: drop the claim, or observe it again"
    );
    assert_eq!(window.assert_complete("two", [summary, here, here])?.spans(), [here, summary]);

    // What it says to do does it.
    window.lanes().work.restore(away).wait()?;
    window.lanes().recap.reground(summary).wait()?;
    assert_eq!(window.assert_complete("now", [away, source])?.claim(), "now");
    // A summary keeps no text of a source that was redacted under it.
    let short = ModelAnswer::new(Finish::Stop, "x").try_into()?;
    let lanes = window.lanes().externalize().wait()?;
    let summary = lanes.work.summarize(source, short, &lanes.recap).wait()?;
    lanes.work.redact(source, Mutation::new("a password", "ask")?).wait()?;
    let Err(incomplete) = window.assert_complete("then", [source, summary]) else {
        return Err("it is not complete".into());
    };
    assert_eq!((incomplete.missing(), incomplete.unrecoverable()), (&[][..], &[source][..]));
    // On nothing, anything may be claimed: it is for the program to name what a claim rests on.
    assert!(window.assert_complete("", []).is_ok());
    Ok(())
}

#[test]
fn what_a_stop_lost_is_unrecoverable() -> Outcome {
    let store = memory();
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    let kept = window.lanes().work.push("kept")?;
    drop(window.lanes().externalize().wait()?);
    let lost = window.lanes().work.push("lost")?;
    assert!(window.assert_complete("both", [kept, lost]).is_ok(), "in the window, though not in the store");
    // A later span's record knows of the number.
    window.change_policy("p2").wait()?;
    drop(window);
    let mut window = Window::<Agent, _>::resume(store, Episode::new("e", "p2"))?;
    let lost_too = window.assert_complete("both", [kept, lost]);
    assert_eq!(lost_too.map_err(|incomplete: Incomplete| incomplete.unrecoverable().to_vec()).err(), Some(vec![lost]));
    Ok(())
}
