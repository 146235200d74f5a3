//! Requests in and out: what was imported comes back as it was, and what is left after any legal prune is a request that
//! the provider takes.

use std::{fs, path::Path};

use keepspan::{
    ContextState, Episode, Message, ModelAnswer, Mutation, SpanId, Spans, SummaryText, Window,
    store::MemoryStore,
    tool::{Anthropic, Gemini, OpenAiChat, OpenAiResponses},
    wire::{self, Format},
};
use proptest::{
    prelude::*,
    test_runner::{Config, TestRunner},
};
use serde_json::{Value, json};

#[derive(ContextState)]
struct Agent {
    #[instruction(roles("system"))]
    rules: Spans,
    #[scope_qualifier(roles("user"))]
    asked: Spans,
    #[negative_result(on_error)]
    failed: Spans,
    #[evictable(otherwise)]
    work: Spans,
    #[derived]
    digest: Spans,
}

type Held = Window<Agent, MemoryStore>;

/// A conversation as a provider took it.
#[derive(Clone, Debug)]
struct Conversation {
    format: &'static str,
    source: String,
    body: Value,
}

/// What a window gives for a history: the spans, and a request.
trait Wire: Format {
    const HISTORY: &'static str;
    const ASIDE: Option<&'static str>;
}
impl Wire for OpenAiChat {
    const HISTORY: &'static str = "messages";
    const ASIDE: Option<&'static str> = None;
}
impl Wire for OpenAiResponses {
    const HISTORY: &'static str = "input";
    const ASIDE: Option<&'static str> = Some("instructions");
}
impl Wire for Anthropic {
    const HISTORY: &'static str = "messages";
    const ASIDE: Option<&'static str> = Some("system");
}
impl Wire for Gemini {
    const HISTORY: &'static str = "contents";
    const ASIDE: Option<&'static str> = Some("systemInstruction");
}

fn window() -> Held {
    Window::open(MemoryStore::default(), Episode::new("e", "p")).unwrap()
}

/// The part of a body that is history.
fn history<F: Wire>(body: &Value) -> Value {
    let mut history = json!({ F::HISTORY: body[F::HISTORY] });
    if let Some(aside) = F::ASIDE.filter(|aside| body.get(*aside).is_some_and(|value| !value.is_null())) {
        history[aside] = body[aside].clone();
    }
    history
}

fn comes_back<F: Wire>(format: F, Conversation { source, body, .. }: &Conversation) -> usize {
    let mut window = window();
    let imported = window.lanes().import(format, body).unwrap_or_else(|error| panic!("{source}: {error}"));
    let rendered = window.render_for(format).unwrap();
    let (found, wanted) = (rendered.to_value(), history::<F>(body));
    if found != wanted {
        let differ = |list: &Value| list.as_array().cloned().unwrap_or_default();
        for (at, (found, wanted)) in differ(&found[F::HISTORY]).iter().zip(&differ(&wanted[F::HISTORY])).enumerate() {
            assert_eq!(found, wanted, "{source}, message {at}");
        }
        assert_eq!(found, wanted, "{source}");
    }
    assert_eq!(serde_json::from_str::<Value>(rendered.history()).unwrap(), wanted[F::HISTORY], "{source}");
    imported.spans.len()
}

/// Every conversation of the corpus in the four formats; none without it.
fn recorded() -> Vec<Conversation> {
    let Some(corpus) = std::env::var_os("KEEPSPAN_CORPUS") else {
        eprintln!("SKIPPED: KEEPSPAN_CORPUS is not set, so the recorded conversations are not at hand");
        return Vec::new();
    };
    let corpus = Path::new(&corpus);
    let read = |path: &str| fs::read_to_string(corpus.join(path)).unwrap();
    let parsed = |path: &str| serde_json::from_str::<Value>(&read(path)).unwrap();
    let mut all = Vec::new();
    for format in ["openai-chat", "openai-responses", "anthropic-messages", "gemini-api"] {
        for conversation in parsed(&format!("{format}/cassettes.json"))["conversations"].as_array().unwrap() {
            for (at, exchange) in conversation["exchanges"].as_array().unwrap().iter().enumerate() {
                let source = format!("{format} {} {at}", conversation["source"]);
                all.push(Conversation { format, source, body: exchange["request"]["body"].clone() });
            }
        }
    }
    let mut chat = |source: String, messages: &Value| {
        all.push(Conversation { format: "openai-chat", source, body: json!({ "messages": messages }) });
    };
    for (at, chats) in parsed("openai-chat/swe-gym-openhands.json").as_array().unwrap().iter().enumerate() {
        chat(format!("swe-gym {at}"), &chats["messages"]);
    }
    for (at, line) in read("openai-chat/tau2-sft-train.jsonl").lines().enumerate() {
        chat(format!("tau2-sft {at}"), &serde_json::from_str::<Value>(line).unwrap()["messages"]);
    }
    for (at, run) in parsed("tau-bench/airline-gpt4o-writes.json").as_array().unwrap().iter().enumerate() {
        chat(format!("tau-bench {at}"), &run["traj"]);
    }
    chat("openhands".to_owned(), &parsed("openhands/llm-log-fncall.json")["messages"]);
    all
}

fn each(conversation: &Conversation) -> usize {
    match conversation.format {
        "openai-chat" => comes_back(OpenAiChat, conversation),
        "openai-responses" => comes_back(OpenAiResponses, conversation),
        "anthropic-messages" => comes_back(Anthropic, conversation),
        _ => comes_back(Gemini, conversation),
    }
}

#[test]
fn recorded_conversations_come_back_as_they_were() {
    let recorded = recorded();
    let spans: usize = recorded.iter().map(each).sum();
    if !recorded.is_empty() {
        println!("{} conversations, {spans} spans", recorded.len());
        assert!(recorded.len() >= 57 && spans >= 1_000);
    }
}

/// One random step of pruning, as far as it is legal.
fn prune(window: &mut Held, pick: (u8, u16, u16)) -> bool {
    let (what, one, other) = pick;
    let Ok(lanes) = window.lanes().externalize().wait() else { return false };
    let at = |spans: &[SpanId], pick: u16| spans.get(usize::from(pick) % spans.len().max(1)).copied();
    let resident = lanes.work.resident();
    match what % 8 {
        // A run of neighbours, as an oldest-first pruner takes them.
        0 | 1 => {
            let some: Vec<_> = resident.iter().copied().take(usize::from(one) % 6 + 1).collect();
            lanes.work.evict(some).wait().is_ok()
        }
        2 | 3 => at(&resident, one).is_some_and(|span| lanes.work.evict(span).wait().is_ok()),
        4 => at(&lanes.work.evicted(), one).is_some_and(|span| lanes.work.restore(span).wait().is_ok()),
        5 => {
            let summary = || SummaryText::try_from(ModelAnswer::new(keepspan::Finish::Stop, "short")).unwrap();
            let Some(first) = resident.iter().position(|span| Some(*span) == at(&resident, one)) else { return false };
            (1..=usize::from(other) % 4 + 1).any(|many| {
                let some: Vec<_> = resident.iter().copied().skip(first).take(many).collect();
                lanes.work.summarize(some, summary(), &lanes.digest).wait().is_ok()
            })
        }
        6 => {
            let mutation = Mutation::new("a secret", "ask for it again").unwrap();
            at(&resident, one).is_some_and(|span| lanes.work.redact(span, mutation).wait().is_ok())
        }
        _ => at(&lanes.digest.resident(), one).is_some_and(|span| lanes.digest.reground(span).wait().is_ok()),
    }
}

/// Prunes at random, and judges every request; how many prunes there were.
fn stays_valid<F: Wire>(
    format: F,
    conversation: &Conversation,
    picks: &[(u8, u16, u16)],
) -> Result<u32, TestCaseError> {
    let mut window = window();
    let _ = window.lanes().import(format, &conversation.body).unwrap();
    let mut pruned = 0;
    let mut before = window.render_for(format).unwrap();
    for pick in picks {
        let first = first_change(&window.render(), &{
            if !prune(&mut window, *pick) {
                continue;
            }
            window.render()
        });
        pruned += 1;
        let after = window.render_for(format).unwrap();
        let judged = wire::validate(format, &after.to_value());
        prop_assert!(judged.is_ok(), "{}: after {pick:?}: {judged:?}\n{}", conversation.source, after.body());
        // What stands before the first change is the same, byte for byte.
        let same =
            before.history().bytes().zip(after.history().bytes()).take_while(|(one, other)| one == other).count();
        let listed = first.iter().filter(|message| F::ASIDE.is_none() || message.role() != keepspan::Role::System);
        let text: usize = listed.filter_map(|message| message.content().as_text()).map(str::len).sum();
        prop_assert!(
            same >= text,
            "{}: after {pick:?}: {same} bytes are the same, and {text} bytes of text",
            conversation.source
        );
        before = after;
    }
    Ok(pruned)
}

/// The messages that are the same before and after.
fn first_change(before: &[Message], after: &[Message]) -> Vec<Message> {
    let same = |(one, other): &(&Message, &Message)| one.shown() == other.shown() && one.content() == other.content();
    let same = before.iter().zip(after).take_while(same).map(|(one, _)| one.clone()).collect::<Vec<_>>();
    // A seal that breaks takes blocks away at its own place.
    let whole = |(message, now): &(&Message, &Message)| message.seal_intact() == now.seal_intact();
    same.iter().zip(after).take_while(whole).map(|(message, _)| message.clone()).collect()
}

fn pruned(conversation: &Conversation, picks: &[(u8, u16, u16)]) -> Result<u32, TestCaseError> {
    match conversation.format {
        "openai-chat" => stays_valid(OpenAiChat, conversation, picks),
        "openai-responses" => stays_valid(OpenAiResponses, conversation, picks),
        "anthropic-messages" => stays_valid(Anthropic, conversation, picks),
        _ => stays_valid(Gemini, conversation, picks),
    }
}

fn is_valid(Conversation { format, body, .. }: &Conversation) -> bool {
    match *format {
        "openai-chat" => wire::validate(OpenAiChat, &history::<OpenAiChat>(body)).is_ok(),
        "openai-responses" => wire::validate(OpenAiResponses, &history::<OpenAiResponses>(body)).is_ok(),
        "anthropic-messages" => wire::validate(Anthropic, &history::<Anthropic>(body)).is_ok(),
        _ => wire::validate(Gemini, &history::<Gemini>(body)).is_ok(),
    }
}

#[test]
fn what_is_left_after_any_prune_is_valid() {
    let mut valid = recorded();
    valid.retain(is_valid);
    if valid.is_empty() {
        return;
    }
    let total = std::cell::Cell::new(0);
    let case = (any::<prop::sample::Index>(), prop::collection::vec(any::<(u8, u16, u16)>(), 1..24));
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(3_000) });
    let run = runner.run(&case, |(index, picks)| {
        total.set(total.get() + pruned(index.get(&valid), &picks)?);
        Ok(())
    });
    run.unwrap_or_else(|error| panic!("{error}"));
    println!("{} prunes over {} conversations", total.get(), valid.len());
    assert!(total.get() >= 10_000, "{}", total.get());
}
