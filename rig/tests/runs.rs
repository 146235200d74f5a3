//! Runs of a rig agent over one window, with a scripted model.
#![expect(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "a test that panics fails")]

mod common;

use std::{
    sync::{Arc, Mutex, atomic::Ordering},
    task::{Context, Waker},
};

use common::*;
use futures_executor::block_on;
use futures_util::StreamExt as _;
use keepspan::{
    ByteEstimate, CommitError, Episode, LargestToolOutput, Outcome, Window,
    store::MemoryStore,
    tool::{Answer, Anthropic},
};
use keepspan_rig::{Keepspan, Stop, TOMBSTONE};
use rig_agent::{
    AgentBuilder, AgentHook, HookContext,
    agent::{CompletionCallAction, CompletionCallEvent, DispatchAction, DispatchEvent, RequestPatch, RunSettled},
    completion::PromptError,
};
use rig_core::{
    completion::AssistantContent,
    effect::EffectKind,
    message::{AssistantMessage, CallId, Message, Reasoning, ToolName, ToolResultContent, UserContent},
    test_utils::{MockCompletionModel, MockStreamEvent, MockTurn},
};
use serde_json::json;

/// One description, five reads of about 1,000 tokens, an answer.
fn long_loop() -> MockCompletionModel {
    let described = MockTurn::tool_call("c0", "describe_table", json!({}));
    let reads = (1..=5).map(|n| read(&format!("c{n}"), n));
    MockCompletionModel::from_turns([described].into_iter().chain(reads).chain([MockTurn::text("done")]))
}

#[test]
fn a_tool_loop_over_its_budget_shrinks_and_keeps_what_is_protected() {
    let (model, keepspan) = (long_loop(), Keepspan::new(window(MemoryStore::default())));
    let entries = Entries::default();
    let agent = agent(&model, &keepspan);
    let answer = block_on(async { agent.prompt("Add a column.").add_hook(entries.clone()).await }).unwrap();
    assert_eq!(answer.output(), "done");

    let requests = sent(&model);
    assert_eq!(requests.len(), 7);
    let sizes: Vec<_> = requests.iter().map(|request| texts(request).concat().len()).collect();
    assert!(sizes[4] < sizes[3] + 1_000, "the fifth request would be the first over the trigger: {sizes:?}");
    for request in &requests[1..] {
        let texts = texts(request);
        assert_eq!(texts.iter().filter(|text| *text == SCHEMA).count(), 1, "{texts:#?}");
        assert_eq!(texts[0], "Migrate the users table.");
        assert_eq!(texts[1], "Add a column.");
    }
    let last = texts(&requests[6]);
    assert!(last.iter().any(|text| text.starts_with("[s") && text.contains("kept in the store")), "{last:#?}");
    assert!(last.contains(&page(5, 1_000)) && !last.contains(&page(1, 1_000)));

    block_on(async {
        let window = keepspan.window().await;
        let left = window.tombstones().unwrap();
        assert!(!left.is_empty() && left.iter().all(|tombstone| tombstone.lane() == "work"));
        let noted = entries.0.lock().unwrap().clone();
        assert_eq!(noted, left.iter().map(|left| serde_json::to_value(left).unwrap()).collect::<Vec<_>>());
        assert_eq!(window.uncommitted().spans, 0, "the answer is committed as well");
        assert_eq!(window.render().last().unwrap().content().as_text(), Some("done"));
        assert_eq!(window.open_calls(), []);
    });
}

/// What the run has of tombstones when it ends.
#[derive(Clone, Default)]
struct Entries(Arc<Mutex<Vec<serde_json::Value>>>);

impl AgentHook for Entries {
    async fn on_run_settled(&self, ctx: &HookContext, _: RunSettled<'_>) {
        self.0.lock().unwrap().extend(ctx.entries(TOMBSTONE).into_iter().map(|entry| entry.value));
    }
}

#[test]
fn below_the_trigger_requests_are_what_rig_makes_of_them() {
    let script = || MockCompletionModel::from_turns([read("c1", 1), read("c2", 2), MockTurn::text("done")]);
    let (with, without) = (script(), script());
    let keepspan = Keepspan::new(window(MemoryStore::default()));
    block_on(agent(&with, &keepspan).prompt("Look.").into_future()).unwrap();
    let plain = AgentBuilder::new(without.clone()).preamble("Migrate the users table.").default_max_turns(9);
    block_on(plain.tool(Read).build().prompt("Look.").into_future()).unwrap();
    let histories = |model| sent(model).into_iter().map(|request| request.chat_history).collect::<Vec<_>>();
    assert_eq!(histories(&with), histories(&without));
}

#[test]
fn each_message_enters_once_by_the_declared_routing() {
    let turns = [
        MockTurn::tool_call("c0", "describe_table", json!({})),
        MockTurn::tool_call("c1", "broken", json!({})),
        MockTurn::text("I cannot."),
    ];
    let (model, keepspan) = (MockCompletionModel::from_turns(turns), Keepspan::new(window(MemoryStore::default())));
    block_on(agent(&model, &keepspan).prompt("Add a column.").into_future()).unwrap();
    let window = block_on(async { held(&*keepspan.window().await) });
    let lanes: Vec<_> = window.iter().map(|(lane, _)| *lane).collect();
    assert_eq!(lanes, ["rules", "rules", "work", "schema", "work", "failed", "work"], "{window:#?}");
    assert_eq!(window[0].1, "Add a column.");
    assert_eq!(window[1].1, "Migrate the users table.");
    assert_eq!(window[5].1, "permission denied on /etc/shadow");
    assert_eq!(window[6].1, "I cannot.");
    let failed = sent(&model)[2].chat_history.last().cloned();
    let Some(Message::User { content }) = failed else { panic!("{failed:?}") };
    assert!(matches!(&content[..], [UserContent::ToolResult(result)] if result.is_error));
}

#[test]
fn parallel_calls_leave_with_all_their_results() {
    let both = [call("a", "read", json!({ "n": 1 })), call("b", "read", json!({ "n": 2, "tokens": 900 }))];
    let turns = [
        MockTurn::from_contents([AssistantContent::text("Both.")].into_iter().chain(both)),
        read("c", 3),
        read("d", 4),
        MockTurn::text("done"),
    ];
    let model = MockCompletionModel::from_turns(turns);
    let keepspan = Keepspan::new(window(MemoryStore::default())).falling_back(LargestToolOutput);
    let agent = AgentBuilder::new(model.clone()).default_max_turns(9).add_hook(keepspan.clone()).tool(Read);
    block_on(agent.build().prompt("Read.").into_future()).unwrap();
    let requests = sent(&model);
    assert_eq!(texts(&requests[1])[4..], [page(1, 1_000), page(2, 900)]);
    let last = texts(&requests[3]);
    assert!(!last.contains(&page(1, 1_000)) && !last.contains(&page(2, 900)) && !last.contains(&"Both.".to_owned()));
    block_on(async {
        let window = keepspan.window().await;
        let left: Vec<_> = window.tombstones().unwrap().iter().map(|left| left.span().number()).collect();
        assert_eq!(left, [2, 3, 4, 5, 6], "the turn's text, its two calls, their results");
    });
}

#[test]
fn what_must_stay_and_does_not_fit_stops_the_run_before_the_call() {
    let rules = "Never touch production. ".repeat(600);
    let (model, keepspan) = (long_loop(), Keepspan::new(window(MemoryStore::default())));
    let agent = agent(&model, &keepspan);
    block_on(async {
        for _ in 0..2 {
            keepspan.window().await.lanes().rules.push(rules.as_str()).unwrap();
        }
        let error = agent.prompt("Add a column.").await.unwrap_err();
        let PromptError::Cancelled { reason, .. } = error else { panic!("{error:?}") };
        assert!(reason.contains("unfittable") && reason.contains("instructions and pinned"), "{reason}");
        let stopped = keepspan.stopped().await.unwrap();
        assert!(matches!(*stopped, Stop::FallBack(_)), "{stopped:?}");
        assert_eq!(stopped.to_string(), reason);
        assert_eq!(keepspan.window().await.uncommitted().spans, 0);
    });
    assert_eq!(model.request_count(), 0);
}

#[test]
fn a_result_larger_than_the_budget_stops_the_run() {
    let turns = [MockTurn::tool_call("c1", "read", json!({ "n": 1, "tokens": 20_000 })), MockTurn::text("done")];
    let (model, keepspan) = (MockCompletionModel::from_turns(turns), Keepspan::new(window(MemoryStore::default())));
    let error = block_on(agent(&model, &keepspan).prompt("Read.").into_future()).unwrap_err();
    assert!(error.to_string().contains("split it, or raise the budget"), "{error}");
    assert_eq!(model.request_count(), 1);
}

#[test]
fn the_newest_result_can_leave_as_well() {
    // Over the limit at once: what is before it is an instruction.
    let turns = [MockTurn::tool_call("c1", "read", json!({ "n": 1, "tokens": 4_000 })), MockTurn::text("done")];
    let (model, keepspan) = (MockCompletionModel::from_turns(turns), Keepspan::new(window(MemoryStore::default())));
    block_on(agent(&model, &keepspan).prompt("Read.").into_future()).unwrap();
    let requests = sent(&model);
    let last = texts(&requests[1]);
    assert_eq!(last.len(), 3, "{last:#?}");
    assert!(last[2].starts_with("[s3 to s4: 2 spans"), "{last:#?}");
}

/// Another hook, which sends what it wants.
struct Overwrites(fn(&[Message]) -> Vec<Message>);

impl AgentHook for Overwrites {
    async fn on_completion_call(&self, _: &HookContext, event: CompletionCallEvent<'_>) -> CompletionCallAction {
        CompletionCallAction::patch(RequestPatch::new().history((self.0)(event.history)))
    }
}

fn overwritten(by: fn(&[Message]) -> Vec<Message>) -> (usize, PromptError, Arc<Stop>) {
    let (model, keepspan) = (long_loop(), Keepspan::new(window(MemoryStore::default())));
    let agent = agent(&model, &keepspan);
    block_on(async {
        let error = agent.prompt("Add a column.").add_hook(Overwrites(by)).await.unwrap_err();
        (model.request_count(), error, keepspan.stopped().await.unwrap())
    })
}

#[test]
fn a_hook_that_drops_what_is_protected_is_stopped() {
    // It keeps the pairs whole, and the schema is gone.
    let (sent, error, stopped) = overwritten(|history| {
        let of = |message: &Message, what| format!("{message:?}").contains(what);
        let there = history.iter().any(|message| of(message, SCHEMA));
        history.iter().filter(|message| !there || !of(message, "\"c0\"")).cloned().collect()
    });
    assert!(matches!(*stopped, Stop::Missing { lane: "schema", .. }), "{stopped:?}");
    assert!(error.to_string().contains("another hook changed the request"), "{error}");
    assert_eq!(sent, 2, "the first two requests have nothing to drop");
}

#[test]
fn a_hook_that_shortens_what_is_protected_is_stopped() {
    let (sent, _, stopped) = overwritten(|history| {
        let text = serde_json::to_string(history).unwrap().replace(" NOT NULL", "");
        serde_json::from_str(&text).unwrap()
    });
    assert!(matches!(*stopped, Stop::Missing { lane: "schema", .. }), "{stopped:?}");
    assert_eq!(sent, 2);
}

#[test]
fn a_hook_that_tears_pairs_or_sends_all_again_is_stopped() {
    let (sent, _, stopped) = overwritten(|history| history.get(..1).unwrap_or_default().to_vec());
    assert!(matches!(*stopped, Stop::Unpaired(_)), "{stopped:?}");
    assert_eq!(sent, 1);
    let (sent, _, stopped) = overwritten(<[Message]>::to_vec);
    assert!(matches!(*stopped, Stop::OverBudget { messages: 5_401.., limit: 6_000, .. }), "{stopped:?}");
    assert_eq!(sent, 6, "until all of it is too much");
}

#[test]
fn a_hook_that_only_adds_is_let_through() {
    let (model, keepspan) = (long_loop(), Keepspan::new(window(MemoryStore::default())));
    let agent = agent(&model, &keepspan);
    let adds = Overwrites(|history| {
        let hint = Message::user("Mind the time.");
        [hint].into_iter().chain(history.iter().take(3).cloned()).collect()
    });
    block_on(async { agent.prompt("Add a column.").max_turns(2).add_hook(adds).await }).unwrap_err();
    let requests = sent(&model);
    assert_eq!(requests.len(), 2);
    assert_eq!(texts(&requests[1])[1], "Mind the time.");
}

/// Another run on the same window, in the middle of this one.
struct Meanwhile(rig_agent::Agent);

impl AgentHook for Meanwhile {
    async fn on_completion_call(&self, _: &HookContext, _: CompletionCallEvent<'_>) -> CompletionCallAction {
        self.0.prompt("Something else.").await.unwrap();
        CompletionCallAction::continue_run()
    }
}

#[test]
fn of_two_runs_at_once_the_one_that_misses_something_is_stopped() {
    let (model, keepspan) = (MockCompletionModel::text("done"), Keepspan::new(window(MemoryStore::default())));
    let other = agent(&model, &keepspan);
    block_on(async {
        let run = agent(&model, &keepspan).prompt("Add a column.").add_hook(Meanwhile(other));
        let error = run.await.unwrap_err();
        assert!(error.to_string().contains("give each run a window of its own"), "{error}");
    });
    assert_eq!(model.request_count(), 1, "the other's");
}

/// A hook that is asked after the gate.
struct After;

impl AgentHook for After {
    async fn on_dispatch(&self, _: &HookContext, event: DispatchEvent<'_>) -> DispatchAction {
        let EffectKind::Completion { request, stream } = event.kind else { return DispatchAction::proceed() };
        let mut request = request.clone();
        request.chat_history.retain(|message| !matches!(message, Message::System { .. }));
        DispatchAction::patch(EffectKind::Completion { request, stream: *stream })
    }
}

#[test]
fn a_hook_after_the_gate_is_found_out_by_the_answer() {
    let (model, keepspan) = (long_loop(), Keepspan::new(window(MemoryStore::default())));
    let agent = agent(&model, &keepspan);
    block_on(async {
        agent.prompt("Add a column.").add_hook(After).await.unwrap_err();
        let stopped = keepspan.stopped().await.unwrap();
        assert!(
            matches!(&*stopped, Stop::Sent(stop) if matches!(**stop, Stop::Missing { lane: "rules", .. })),
            "{stopped:?}"
        );
    });
    assert_eq!(model.request_count(), 1);
}

#[test]
fn tools_beyond_the_fixed_part_are_over_the_budget() {
    let (model, keepspan) = (long_loop(), Keepspan::new(window(MemoryStore::default())));
    let agent = AgentBuilder::new(model.clone()).context("word ".repeat(8_000)).add_hook(keepspan.clone());
    let error = block_on(agent.build().prompt("Go.").into_future()).unwrap_err();
    assert!(error.to_string().contains("raise `fixed` to what they take"), "{error}");
    assert_eq!(model.request_count(), 0);
}

#[test]
fn a_second_run_goes_on_in_the_same_window() {
    let store = Arc::new(MemoryStore::default());
    let (model, keepspan) = (long_loop(), Keepspan::new(window(store.clone())));
    let first = block_on(agent(&model, &keepspan).prompt("Add a column.").into_future()).unwrap();
    let before = block_on(async { held(&*keepspan.window().await) });
    keepspan.into_window().unwrap().close().unwrap();

    // Another process, which was given no history.
    let again =
        || Keepspan::new(Window::<Coder, _>::resume(store.clone(), Episode::new("e", "p").trust_estimates()).unwrap());
    let (model, keepspan) = (MockCompletionModel::from_turns([read("c9", 9), MockTurn::text("fine")]), again());
    block_on(agent(&model, &keepspan).prompt("And now?").into_future()).unwrap();
    let requests = sent(&model);
    let texts = texts(&requests[0]);
    for (_, text) in before.iter().filter(|(lane, _)| *lane != "work") {
        assert_eq!(texts.iter().filter(|there| *there == text).count(), 1, "{text}");
    }
    assert_eq!(texts.last().unwrap(), "And now?");
    let calls = |message: &Message| matches!(message, Message::Assistant(turn) if turn.tool_calls().next().is_some());
    assert!(requests[0].chat_history.iter().any(calls), "what was not evicted is an exchange again");
    keepspan.into_window().unwrap().close().unwrap();

    // A third one, which was given all that the first one said: nothing enters twice.
    let (model, keepspan) = (MockCompletionModel::from_turns([MockTurn::text("yes")]), again());
    let spans = block_on(async { keepspan.window().await.records() });
    block_on(async { agent(&model, &keepspan).prompt("And now?").history(first.messages).await }).unwrap();
    assert_eq!(sent(&model).len(), 1);
    let after = block_on(async { held(&*keepspan.window().await) });
    let twice = after.iter().filter(|(_, text)| text == "And now?").count();
    assert_eq!(twice, 2, "the same words are another message");
    assert_eq!(after.iter().filter(|(_, text)| text == "Add a column.").count(), 1);
    assert!(spans > 0);
}

#[test]
fn what_a_models_own_pass_evicted_is_gone_from_the_next_request() {
    let turns = [read("c1", 1), read("c2", 2), MockTurn::text("two files"), MockTurn::text("fine")];
    let (model, keepspan) = (MockCompletionModel::from_turns(turns), Keepspan::new(window(MemoryStore::default())));
    let agent = agent(&model, &keepspan);
    block_on(async {
        agent.prompt("Read.").await.unwrap();
        let mut window = keepspan.window().await;
        let pass = window.lanes().externalize().await.unwrap().admit().unwrap();
        let input = json!({ "spans": ["s3", "s4"] });
        let content = json!([{ "type": "text", "text": "File 1 is stale." },
            { "type": "tool_use", "id": "t", "name": "prune_context", "input": input }]);
        let answer = json!({ "type": "message", "stop_reason": "tool_use", "content": content });
        let proposal = pass.parse(&Answer::read(Anthropic, &answer).unwrap()).unwrap();
        assert!(matches!(pass.apply(proposal).await.unwrap(), Outcome::Pruned(_)));
        drop(window);
        agent.prompt("And?").await.unwrap();
    });
    let last = sent(&model).remove(3).chat_history;
    let Some(Message::User { content }) = last.last() else { panic!("{last:?}") };
    let said: Vec<_> = content.iter().map(|block| serde_json::to_string(block).unwrap()).collect();
    assert!(said[0].contains("File 1 is stale.") && said[1].contains("And?"), "{said:?}");
    assert!(!format!("{last:?}").contains("file 1\\n") && format!("{last:?}").contains("file 2\\n"));
}

#[test]
fn results_of_an_earlier_process_keep_their_calls() {
    let store = Arc::new(MemoryStore::default());
    let both = [("a", 1), ("b", 2)].map(|(id, n)| call(id, "read", json!({ "n": n, "tokens": 100 })));
    // As another program may have it: the second result first.
    let result = |id: &str, n| {
        let (call, name) = (CallId::from_wire(id), ToolName::new("read").unwrap());
        UserContent::tool_result(call, name, vec![ToolResultContent::text(page(n, 100))])
    };
    let turn = Message::Assistant(AssistantMessage::new(both.to_vec()));
    let results = Message::User { content: vec![result("b", 2), result("a", 1)] };
    let said = [Message::user("Read."), turn, results, Message::assistant("done")];
    let (model, keepspan) = (MockCompletionModel::text("yes"), Keepspan::new(window(store.clone())));
    block_on(async { agent(&model, &keepspan).prompt("Sure?").history(said).await }).unwrap();
    let before = sent(&model).remove(0).chat_history;
    drop(keepspan);
    let window = Window::<Coder, _>::resume(store, Episode::new("e", "p").trust_estimates()).unwrap();
    let (model, keepspan) = (MockCompletionModel::text("fine"), Keepspan::new(window));
    block_on(agent(&model, &keepspan).prompt("And?").into_future()).unwrap();
    let after = sent(&model).remove(0).chat_history;
    let calls = |message: &Message| match message {
        Message::Assistant(turn) => Some(turn.tool_calls().cloned().collect::<Vec<_>>()),
        _ => None,
    };
    assert_eq!(calls(&after[2]), calls(&before[2]));
    assert_eq!(after[3], before[3], "each result under its own call");
}

#[test]
fn a_run_that_is_given_its_history_enters_what_is_new() {
    let turns = [MockTurn::text("one"), MockTurn::text("two"), MockTurn::text("three")];
    let (model, keepspan) = (MockCompletionModel::from_turns(turns), Keepspan::new(window(MemoryStore::default())));
    let agent = agent(&model, &keepspan);
    let mut history = Vec::new();
    for _ in 0..3 {
        block_on(async { agent.chat("Go on.", &mut history).await }).unwrap();
    }
    let window = block_on(async { held(&*keepspan.window().await) });
    let work: Vec<_> = window.iter().map(|(_, text)| text.as_str()).collect();
    assert_eq!(work, ["Go on.", "Migrate the users table.", "one", "Go on.", "two", "Go on.", "three"]);
    let requests = sent(&model);
    assert_eq!(requests[2].chat_history.len(), 6);
}

#[test]
fn a_call_without_a_result_is_closed_by_the_next_run() {
    let mut window = window(MemoryStore::default());
    let lanes = window.lanes();
    lanes.route(human("Deploy.")).unwrap();
    let block = serde_json::to_string(&call("c1", "deploy", json!({}))).unwrap();
    lanes.route(keepspan::NewSpan::model(block).calls(["c1"])).unwrap();
    let (model, keepspan) = (MockCompletionModel::text("I look first."), Keepspan::new(window));
    block_on(agent(&model, &keepspan).prompt("What happened?").into_future()).unwrap();
    let texts = texts(&sent(&model)[0]);
    assert_eq!(texts[3], "[no result: the run ended before it came; whether it took effect is unknown]", "{texts:#?}");
}

#[test]
fn the_model_recalls_what_left() {
    let turns = [read("c1", 1), read("c2", 2), read("c3", 3), read("c4", 4)];
    let recall = |id: &str, args| MockTurn::tool_call(id, "recall_span", args);
    let whole = json!({ "span": "s4", "from_line": null, "to_line": null, "search": null });
    let lines = json!({ "span": "s4", "from_line": 1, "to_line": 1, "search": null });
    let turns =
        turns.into_iter().chain([recall("r1", lines), recall("r2", json!({ "span": "s99" })), recall("r3", whole)]);
    let model = MockCompletionModel::from_turns(turns.chain([MockTurn::text("done")]));
    let keepspan = Keepspan::new(window(MemoryStore::default()));
    block_on(agent(&model, &keepspan).prompt("Read.").into_future()).unwrap();
    let requests = sent(&model);
    let tools = &requests[0].tools;
    assert!(tools.iter().any(|tool| tool.name == *"recall_span" && tool.parameters["required"][0] == "span"));
    let last = |at: usize| texts(&requests[at]).pop().unwrap();
    assert!(!texts(&requests[4]).contains(&page(1, 1_000)));
    assert_eq!(last(5), "[s4 work: line 1 of 251]\nfile 1\n", "{:#?}", texts(&requests[5]));
    assert!(last(6).contains("s99 does not exist"), "{}", last(6));
    let whole = texts(&requests[7]);
    assert_eq!(whole.iter().filter(|text| **text == page(1, 1_000)).count(), 1, "at its own place: {whole:#?}");
    assert!(last(7).starts_with("[s4 work: "), "{}", last(7));
    block_on(async {
        let shown = keepspan.window().await.render();
        assert_eq!(shown.iter().filter(|message| message.name() == Some("recall_span")).count(), 3);
    });
}

#[test]
fn a_store_that_fails_stops_the_run_and_loses_nothing() {
    let store = Arc::new(Failing::default());
    let turns = [MockTurn::tool_call("c0", "describe_table", json!({})), MockTurn::text("done")];
    let (model, keepspan) = (MockCompletionModel::from_turns(turns), Keepspan::new(window(store.clone())));
    let agent = agent(&model, &keepspan);
    block_on(async {
        store.down.store(true, Ordering::Relaxed);
        let error = agent.prompt("Add a column.").await.unwrap_err();
        assert!(error.to_string().contains("no space left on device"), "{error}");
        assert!(matches!(*keepspan.stopped().await.unwrap(), Stop::Commit(CommitError::Store(_))));
        assert_eq!(model.request_count(), 0, "nothing is sent before it is durable");
        assert_eq!(keepspan.window().await.unsaved()[0].content.as_text(), Some("Add a column."));

        store.down.store(false, Ordering::Relaxed);
        agent.prompt("Add a column.").await.unwrap();
        assert!(keepspan.stopped().await.is_none());
        let texts: Vec<_> = held(&*keepspan.window().await).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts.iter().filter(|text| *text == "Add a column.").count(), 1, "the same message, once");
        assert_eq!(texts[3], SCHEMA);
        assert_eq!(keepspan.window().await.uncommitted().spans, 0);
    });
}

#[test]
fn a_commit_without_an_answer_is_settled_by_the_next_run() {
    let store = Arc::new(Failing::default());
    let turns = [MockTurn::text("one"), MockTurn::text("two")];
    let (model, keepspan) = (MockCompletionModel::from_turns(turns), Keepspan::new(window(store.clone())));
    let agent = agent(&model, &keepspan);
    block_on(async {
        store.silent.store(true, Ordering::Relaxed);
        agent.prompt("Add a column.").await.unwrap_err();
        assert_eq!(model.request_count(), 0);
        agent.prompt("Add a column.").await.unwrap();
        agent.prompt("Go on.").await.unwrap();
        let texts: Vec<_> = held(&*keepspan.window().await).into_iter().map(|(_, text)| text).collect();
        assert_eq!(texts, ["Add a column.", "Migrate the users table.", "one", "Go on.", "two"]);
        assert_eq!(keepspan.window().await.uncommitted().spans, 0);
    });
}

#[test]
fn signed_reasoning_is_left_out_once_something_before_it_left() {
    let signed = AssistantContent::Reasoning(Reasoning::new("A chart.")).with_native(json!({ "signature": "abc" }));
    let turn = [signed, AssistantContent::text("I read on."), call("c2", "read", json!({ "n": 2 }))];
    let turns = [read("c1", 1), MockTurn::from_contents(turn), read("c3", 3), MockTurn::text("done")];
    let (model, keepspan) = (MockCompletionModel::from_turns(turns), Keepspan::new(window(MemoryStore::default())));
    block_on(agent(&model, &keepspan).prompt("Read.").into_future()).unwrap();
    let requests = sent(&model);
    let has = |at: usize, text: &str| texts(&requests[at]).iter().any(|there| there.contains(text));
    assert!(has(2, "A chart.") && has(2, "I read on.") && has(2, &page(1, 1_000)));
    assert!(!has(3, "A chart.") && has(3, "I read on.") && !has(3, &page(1, 1_000)));
}

/// A run that is dropped in the middle of its `nth` commit.
fn dropped(
    store: Later,
    nth: usize,
    fill: fn(&mut Window<Coder, Later>),
) -> (MockCompletionModel, Keepspan<Coder, Later>) {
    let stuck = store.stuck.clone();
    let opened = Window::open_async(store, Episode::new("e", "p").trust_estimates(), ByteEstimate);
    let mut window = block_on(opened).unwrap();
    fill(&mut window);
    let (model, keepspan) = (MockCompletionModel::text("done"), Keepspan::new(window));
    let agent = AgentBuilder::new(model.clone()).add_hook(keepspan.clone()).build();
    stuck.store(nth, Ordering::Relaxed);
    let mut run = agent.prompt("Add a column.").into_future();
    while stuck.load(Ordering::Relaxed) > 0 {
        assert!(run.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    }
    (model, keepspan)
}

#[test]
fn a_run_that_is_dropped_while_it_commits_is_gone_on_with() {
    for writes in [false, true] {
        let (model, keepspan) = dropped(Later { writes, ..Later::default() }, 1, |_| ());
        let agent = AgentBuilder::new(model).add_hook(keepspan.clone()).build();
        block_on(async {
            agent.prompt("Add a column.").await.unwrap();
            let texts: Vec<_> = held(&*keepspan.window().await).into_iter().map(|(_, text)| text).collect();
            assert_eq!(texts, ["Add a column.", "done"]);
        });
    }
}

#[test]
fn a_span_whose_number_was_taken_is_found_under_its_new_one() {
    // The prompt is committed, then the text of what closes the call, then its record, after which the run is dropped.
    let (model, keepspan) = dropped(Later { writes: true, ..Later::default() }, 3, |window| {
        let block = serde_json::to_string(&call("c1", "deploy", json!({}))).unwrap();
        window.lanes().route(human("Deploy.")).unwrap();
        window.lanes().route(keepspan::NewSpan::model(block).calls(["c1"])).unwrap();
    });
    let agent = AgentBuilder::new(model.clone()).add_hook(keepspan).build();
    block_on(agent.prompt("Tell me.").into_future()).unwrap();
    let texts = texts(&sent(&model)[0]);
    // Said as text, since no such tool is offered.
    assert!(texts[2].contains("[no result: "), "{texts:#?}");
    assert_eq!(texts[3..], ["Add a column.", "Tell me."]);
}

#[test]
fn an_empty_result_closes_its_call() {
    let turns = [MockTurn::tool_call("c1", "silent", json!({})), MockTurn::text("done")];
    let (model, keepspan) = (MockCompletionModel::from_turns(turns), Keepspan::new(window(MemoryStore::default())));
    block_on(agent(&model, &keepspan).prompt("Go.").into_future()).unwrap();
    let window = block_on(async { held(&*keepspan.window().await) });
    assert_eq!(window[3].1, "[empty result]");
    assert_eq!(sent(&model).len(), 2);
}

#[test]
fn a_streamed_run_is_shaped_as_well() {
    let stream = |event| [event, MockStreamEvent::final_response_with_total_tokens(1)];
    let call = |n: u64| stream(MockStreamEvent::tool_call(format!("c{n}"), "read", json!({ "n": n })));
    let turns = (1..=5).map(call).chain([stream(MockStreamEvent::text("done"))]);
    let (model, keepspan) =
        (MockCompletionModel::from_stream_turns(turns), Keepspan::new(window(MemoryStore::default())));
    let agent = agent(&model, &keepspan);
    block_on(async {
        let mut items = agent.prompt("Read.").stream();
        while let Some(item) = items.next().await {
            item.unwrap();
        }
        assert!(!keepspan.window().await.tombstones().unwrap().is_empty());
        assert_eq!(keepspan.window().await.render().last().unwrap().content().as_text(), Some("done"));
    });
    let requests = sent(&model);
    assert!(!texts(&requests[5]).contains(&page(1, 1_000)));
}

#[test]
fn images_and_reasoning_are_kept_as_they_are() {
    // The head of a PNG of 64 by 32 pixels.
    let png = [
        0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 64, 0, 0, 0, 32, 8, 6, 0,
        0, 0,
    ];
    let encoded = "iVBORw0KGgoAAAANSUhEUgAAAEAAAAAgCAYAAAA=";
    let image = UserContent::image_base64(encoded, Some(rig_core::message::ImageMediaType::PNG), None);
    let prompt = Message::User { content: vec![UserContent::text("What is this?"), image.clone()] };
    let signed = AssistantContent::Reasoning(Reasoning::new("A chart.")).with_native(json!({ "signature": "abc" }));
    let turns = [
        MockTurn::from_contents([
            signed.clone(),
            AssistantContent::text("I read."),
            call("c1", "read", json!({ "n": 1 })),
        ]),
        MockTurn::text("A chart."),
    ];
    let store = Arc::new(MemoryStore::default());
    let (model, keepspan) = (MockCompletionModel::from_turns(turns), Keepspan::new(window(store.clone())));
    block_on(agent(&model, &keepspan).prompt(prompt.clone()).into_future()).unwrap();
    assert_eq!(sent(&model)[0].chat_history.last(), Some(&prompt));
    let mut window = keepspan.into_window().unwrap();
    let shown = window.render();
    assert_eq!(shown[1].content().as_bytes(), png);
    assert!(shown[1].tokens() < 400, "priced by its pixels: {}", shown[1].tokens());
    let reasoning = shown.iter().find(|message| message.seal_intact().is_some()).unwrap();
    assert_eq!(serde_json::from_str::<AssistantContent>(reasoning.content().as_text().unwrap()).unwrap(), signed);

    // In another run they are what they were, as far as the span has it.
    window.lanes().externalize().wait().map(drop).unwrap();
    let (model, keepspan) = (MockCompletionModel::text("Yes."), Keepspan::new(window));
    block_on(agent(&model, &keepspan).prompt("Sure?").into_future()).unwrap();
    let history = sent(&model).remove(0).chat_history;
    let Message::User { content } = &history[1] else { panic!("{history:?}") };
    assert_eq!(content[1], image);
    let Message::Assistant(turn) = &history[2] else { panic!("{history:?}") };
    assert_eq!(turn.content.len(), 3);
    assert!(
        matches!(AssistantMessage::new(turn.content.clone()).tool_calls().next(), Some(call) if call.function.name == *"read")
    );
}

#[test]
fn what_a_person_said_is_not_there_because_the_model_repeats_it() {
    let said = [AssistantContent::text("Add a column."), call("c1", "read", json!({ "n": 1 }))];
    let turns = [MockTurn::from_contents(said), MockTurn::text("done")];
    let (model, keepspan) = (MockCompletionModel::from_turns(turns), Keepspan::new(window(MemoryStore::default())));
    let agent = agent(&model, &keepspan);
    let other = Overwrites(|history| {
        let replaced =
            |(at, message): (usize, &Message)| if at == 0 { Message::user("Go on.") } else { message.clone() };
        history.iter().enumerate().map(replaced).collect()
    });
    block_on(async {
        agent.prompt("Add a column.").add_hook(other).await.unwrap_err();
        let stopped = keepspan.stopped().await.unwrap();
        assert!(matches!(*stopped, Stop::Missing { lane: "rules", .. }), "{stopped:?}");
    });
    assert_eq!(model.request_count(), 1);
}
