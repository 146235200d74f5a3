//! What a `tracing` subscriber hears of pruning. In a binary of its own: whether anybody listens is cached per process.

use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, PoisonError},
};

use keepspan::{Episode, FellBack, Limits, OldestFirst, OneByteAToken, Window, tool::Answer};
use keepspan_tests::{Agent, memory};
use tracing::{Event, Metadata, Subscriber, field, span};

type Outcome = Result<(), Box<dyn std::error::Error>>;

const SECRET: &str = "hunter2";

/// Fields of the events under `keepspan`, by name.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<BTreeMap<String, String>>>>);

struct Fields(BTreeMap<String, String>);

impl field::Visit for Fields {
    fn record_debug(&mut self, field: &field::Field, value: &dyn Debug) {
        self.0.insert(field.name().to_owned(), format!("{value:?}"));
    }
}

impl Subscriber for Heard {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        metadata.target().starts_with("keepspan")
    }
    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }
    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}
    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}
    fn event(&self, event: &Event<'_>) {
        let mut fields = Fields(BTreeMap::new());
        event.record(&mut fields);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(fields.0);
    }
    fn enter(&self, _: &span::Id) {}
    fn exit(&self, _: &span::Id) {}
}

#[test]
fn a_subscriber_hears_counts_under_standard_names_and_no_text() -> Outcome {
    let heard = Heard::default();
    tracing::subscriber::with_default(heard.clone(), || -> Outcome {
        let episode = Episode::new("e-7", "p").budget(Limits::of(24_000));
        let mut window = Window::<Agent, _>::open_with(memory(), episode, OneByteAToken)?;
        let text = format!("{SECRET} {}", "x".repeat(992));
        for _ in 0..12 {
            window.lanes().work.push(text.as_str())?;
        }
        let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
        let proposal = pass.parse(&Answer::prune(["s1", "s2", "s3", "s4"]).with_rationale(SECRET))?;
        assert!(matches!(pass.apply(proposal).wait()?, keepspan::Outcome::Pruned(_)));
        for _ in 0..16 {
            window.lanes().work.push(text.as_str())?;
        }
        let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("refused")?;
        assert!(matches!(refusal.fall_back(OldestFirst).wait()?, FellBack::Freed(_)));
        Ok(())
    })?;
    let heard = heard.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
    let said: Vec<_> = heard.iter().map(|fields| fields["message"].as_str()).collect();
    assert_eq!(said, ["answer read", "pass applied", "pass refused", "fell back"]);
    for fields in &heard {
        assert_eq!(fields["gen_ai.conversation.id"], "e-7");
        let compacted = ["pass applied", "fell back"].contains(&fields["message"].as_str());
        assert_eq!(fields.get("gen_ai.conversation.compacted").is_some_and(|said| said == "true"), compacted);
        assert!(fields.contains_key("keepspan.headroom.tokens"));
        assert!(!format!("{fields:?}").contains(SECRET));
    }
    assert_eq!(heard[1]["keepspan.evicted.count"], "4");
    Ok(())
}
