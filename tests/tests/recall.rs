//! What a model gets when it recalls: the span at its own place, or exact lines of it (rules R8, R25).

use keepspan::{
    CommitError, Digest, Episode, EpisodeId, FellBack, Finish, Limits, ModelAnswer, Mutation, NewSpan, O200k,
    OneByteAToken, OpenError, RecallError, RecallReply, SelectionError, Shown, SpanId, SummaryText, SummaryTextError,
    SupersededReads, TokenCounter, Window,
    store::{MemoryStore, Store, StoreError},
    tool::{
        AnswerError, Anthropic, Gemini, LimitError, Mcp, OpenAiChat, OpenAiResponses, RecallCall, RecallCallError,
        check,
    },
};
use keepspan_tests::{Agent, Fault, Faulty, memory};
use proptest::prelude::*;
use serde_json::{Value, json};

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Memory = std::sync::Arc<MemoryStore>;
type Windowed<St = Memory> = Window<Agent, St>;

const PLENTY: u64 = 1_000_000;

/// One token a byte, so that a limit is a length.
fn window_over<St: Store>(store: St, limits: impl Into<Limits>) -> Result<Windowed<St>, OpenError> {
    Window::open_with(store, Episode::new("e", "p").budget(limits), OneByteAToken)
}

fn window() -> Result<Windowed, OpenError> {
    window_over(memory(), PLENTY)
}

/// A window whose only span is evicted from `work`.
fn evicted(span: impl Into<NewSpan>) -> Result<(Windowed, SpanId), Box<dyn std::error::Error>> {
    let mut window = window()?;
    let id = window.lanes().work.push(span)?;
    evict(&mut window, id)?;
    Ok((window, id))
}

fn evict<St: Store>(window: &mut Windowed<St>, id: SpanId) -> Outcome {
    window.lanes().externalize().wait()?.work.evict(id).wait()?;
    Ok(())
}

/// A call as a model writes it.
fn call(input: Value) -> Result<RecallCall, Box<dyn std::error::Error>> {
    let body = json!({
        "stop_reason": "tool_use",
        "content": [{ "type": "tool_use", "id": "t1", "name": "recall_span", "input": input }],
    });
    let [call] = RecallCall::read(Anthropic, &body)?.try_into().map_err(|_| "one call")?;
    Ok(call)
}

fn ask<St: Store>(
    window: &mut Windowed<St>,
    input: Value,
    limit: u64,
) -> Result<RecallReply, Box<dyn std::error::Error>> {
    Ok(window.answer_recall(&call(input)?, limit).wait()?)
}

/// What the model is told.
fn told(window: &mut Windowed, input: Value, limit: u64) -> Result<String, Box<dyn std::error::Error>> {
    Ok(ask(window, input, limit)?.text().to_owned())
}

/// What the model is told of a span of `work` that was evicted and never recalled.
fn first_told(text: &str, input: Value, limit: usize) -> Result<String, Box<dyn std::error::Error>> {
    told(&mut evicted(text)?.0, input, u64::try_from(limit)?)
}

fn refused(window: &mut Windowed, input: Value, limit: u64) -> Result<RecallError, Box<dyn std::error::Error>> {
    Ok(window.answer_recall(&call(input)?, limit).wait().err().ok_or("it was answered")?)
}

fn shown(window: &Windowed) -> Vec<Shown> {
    window.render().iter().map(|message| message.shown()).collect()
}

fn texts(window: &Windowed) -> Vec<String> {
    window.render().iter().filter_map(|message| message.content().as_text().map(str::to_owned)).collect()
}

fn summary(text: &str) -> Result<SummaryText, SummaryTextError> {
    ModelAnswer::new(Finish::Stop, text).try_into()
}

// The tool.

#[test]
fn the_definition_is_the_same_everywhere_and_every_provider_takes_it() -> Outcome {
    let description = "Recalls a message that was moved out of the context, word for word as it entered; nothing is read \
        or run again. `span` is the id in its place, as s17. With all else null the whole message comes back to its \
        place, or as much as there is room for. Of a large one ask for a part: the lines `from_line` to `to_line`, \
        counted from 1, or the lines that hold the text `search`, in either case.";
    let schema = json!({
        "type": "object",
        "properties": {
            "span": { "type": "string" },
            "from_line": { "type": ["integer", "null"] },
            "to_line": { "type": ["integer", "null"] },
            "search": { "type": ["string", "null"] },
        },
        "required": ["span", "from_line", "to_line", "search"],
        "additionalProperties": false,
    });
    let strict = |key: &str| json!({ "name": "recall_span", "description": description, key: schema, "strict": true });
    let plain = |key: &str| json!({ "name": "recall_span", "description": description, key: schema });
    let definitions: [(Value, Value, Result<(), LimitError>); 5] = {
        let chat = RecallCall::tool(OpenAiChat);
        let responses = RecallCall::tool(OpenAiResponses);
        let (anthropic, gemini, mcp) = (RecallCall::tool(Anthropic), RecallCall::tool(Gemini), RecallCall::tool(Mcp));
        let mut typed = strict("parameters");
        typed["type"] = "function".into();
        let checked = [
            check(OpenAiChat, &chat),
            check(OpenAiResponses, &responses),
            check(Anthropic, &anthropic),
            check(Gemini, &gemini),
            check(Mcp, &mcp),
        ];
        let [one, two, three, four, five] = checked;
        [
            (chat, json!({ "type": "function", "function": strict("parameters") }), one),
            (responses, typed, two),
            (anthropic, strict("input_schema"), three),
            (gemini, plain("parametersJsonSchema"), four),
            (mcp, plain("inputSchema"), five),
        ]
    };
    for (found, expected, checked) in definitions {
        assert_eq!((found, checked), (expected, Ok(())));
    }
    Ok(())
}

/// Beside the agent's own calls, which need not be readable here, and in the turn's order.
#[test]
fn calls_are_read_from_every_provider_s_turn() -> Outcome {
    let arguments = json!({ "span": "S17", "from_line": 10, "to_line": 40, "search": null });
    let text = arguments.to_string();
    let function = |name: &str, arguments: &str| json!({ "name": name, "arguments": arguments });
    let chat = json!({ "choices": [{ "finish_reason": "tool_calls", "message": { "content": null, "tool_calls": [
        { "id": "a", "type": "function", "function": function("read_file", "{\"path") },
        { "id": "b", "type": "function", "function": function("recall_span", &text) },
    ] } }] });
    let responses = json!({ "status": "completed", "output": [
        { "type": "function_call", "call_id": "a", "name": "read_file", "arguments": "{\"path" },
        { "type": "function_call", "call_id": "b", "name": "recall_span", "arguments": text },
    ] });
    let anthropic = json!({ "stop_reason": "tool_use", "content": [
        { "type": "text", "text": "I need the schema." },
        { "type": "tool_use", "id": "a", "name": "prune_context", "input": { "nonsense": 1 } },
        { "type": "tool_use", "id": "b", "name": "recall_span", "input": arguments },
    ] });
    let gemini = json!({ "candidates": [{ "finishReason": "STOP", "content": { "parts": [
        { "functionCall": { "id": "b", "name": "recall_span", "args": arguments } },
    ] } }] });
    let mcp = json!({ "name": "recall_span", "arguments": arguments });
    let read = [
        RecallCall::read(OpenAiChat, &chat)?,
        RecallCall::read(OpenAiResponses, &responses)?,
        RecallCall::read(Anthropic, &anthropic)?,
        RecallCall::read(Gemini, &gemini)?,
        RecallCall::read(Mcp, &mcp)?,
    ];
    for (at, calls) in read.iter().enumerate() {
        let [call] = calls.as_slice() else { return Err("one call".into()) };
        assert_eq!(call.id(), (at < 4).then_some("b"));
        assert_eq!(call.span().ok(), SpanId::parse("s17"));
    }
    let two = json!({ "stop_reason": "tool_use", "content": [
        { "type": "tool_use", "id": "x", "name": "recall_span", "input": { "span": "s2" } },
        { "type": "tool_use", "id": "y", "name": "recall_span", "input": {} },
    ] });
    let two = RecallCall::read(Anthropic, &two)?;
    assert_eq!(two.iter().map(RecallCall::id).collect::<Vec<_>>(), [Some("x"), Some("y")]);
    assert_eq!(two[1].span(), Err(&RecallCallError::NoSpan), "one that cannot be read keeps its id, for its result");
    let none = json!({ "stop_reason": "end_turn", "content": [] });
    assert_eq!(RecallCall::read(Anthropic, &none)?, []);
    let cut = json!({ "stop_reason": "max_tokens", "content": anthropic["content"] });
    assert!(matches!(RecallCall::read(Anthropic, &cut), Err(AnswerError::Truncated { .. })));
    Ok(())
}

#[test]
fn arguments_are_checked_and_the_model_is_told_why() -> Outcome {
    let long = "9".repeat(300);
    let cases = [
        (json!(null), "the arguments are no JSON object (they are null): call again".to_owned()),
        (json!("s1"), "the arguments are no JSON object (they are a string): call again".to_owned()),
        (json!({}), "`span` is missing: give the id in the pointer, as s17".to_owned()),
        (json!({ "span": null, "from_line": 1 }), "`span` is missing: give the id in the pointer, as s17".to_owned()),
        (json!({ "span": 17 }), "`span` should be a string and is a number: call again".to_owned()),
        (json!({ "span": "17" }), "`17` is no id of a span: give one as the pointer has it, as s17".to_owned()),
        (
            json!({ "span": long }),
            format!("`{}` is no id of a span: give one as the pointer has it, as s17", &long[..200]),
        ),
        (
            json!({ "span": "s1", "lines": 3 }),
            "there is no field `lines`: give `span`, with `from_line` and `to_line`, or `search`".to_owned(),
        ),
        (
            json!({ "span": "s1", "from_line": 0 }),
            "`from_line` is 0: give a whole number from 1 on, or null".to_owned(),
        ),
        (json!({ "span": "s1", "to_line": -4 }), "`to_line` is -4: give a whole number from 1 on, or null".to_owned()),
        (
            json!({ "span": "s1", "to_line": 2.5 }),
            "`to_line` is 2.5: give a whole number from 1 on, or null".to_owned(),
        ),
        (
            json!({ "span": "s1", "from_line": "10" }),
            "`from_line` is \"10\": give a whole number from 1 on, or null".to_owned(),
        ),
        (
            json!({ "span": "s1", "from_line": 4, "to_line": 3 }),
            "`to_line` 3 is before `from_line` 4: lines are counted from 1, both inclusive".to_owned(),
        ),
        (
            json!({ "span": "s1", "search": "" }),
            "`search` is empty or has a line break: give a text within one line, or null".to_owned(),
        ),
        (
            json!({ "span": "s1", "search": "a\nb" }),
            "`search` is empty or has a line break: give a text within one line, or null".to_owned(),
        ),
        (
            json!({ "span": "s1", "to_line": 3, "search": "a" }),
            "`search` and lines are both given: give one, and null for the other".to_owned(),
        ),
    ];
    let (mut window, _) = evicted("text")?;
    for (input, expected) in cases {
        let error = refused(&mut window, input, PLENTY)?;
        assert!(matches!(error, RecallError::Call(_)), "{error:?}");
        assert_eq!(error.to_string(), expected);
    }
    let chat = |arguments: &str| {
        let called = json!({ "id": "c", "function": { "name": "recall_span", "arguments": arguments } });
        json!({ "choices": [{ "finish_reason": "tool_calls", "message": { "tool_calls": [called] } }] })
    };
    let twice = RecallCall::read(OpenAiChat, &chat(r#"{"span": "s1", "span": "s2"}"#))?;
    assert_eq!(twice[0].span(), Err(&RecallCallError::RepeatedField { field: "span" }));
    let cut = RecallCall::read(OpenAiChat, &chat(r#"{"span": "s"#))?;
    assert!(matches!(cut[0].span(), Err(RecallCallError::NotAnObject { .. })));
    // JSON has one kind of number.
    let whole = call(json!({ "span": "s1", "from_line": 2.0 }))?;
    assert_eq!(whole, call(json!({ "span": "s1", "from_line": 2, "to_line": null }))?);
    Ok(())
}

/// The turn, its call, and the result that says why: an exchange like any other.
#[test]
fn a_refusal_is_the_call_s_result() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    for n in 1..=11 {
        lanes.work.push(format!("span {n}"))?;
    }
    lanes.work.push(NewSpan::model("recall").calls(["t1"]))?;
    drop(lanes);
    let call = call(json!({ "span": "s99" }))?;
    let error = window.answer_recall(&call, PLENTY).wait().err().ok_or("it was answered")?;
    let unknown = matches!(&error, RecallError::Selection(SelectionError::Unknown { spans: 12, .. }));
    assert!(unknown, "{error:?}");
    window.lanes().route(call.failed(&error))?;
    let last = window.render().pop().ok_or("the result")?;
    assert_eq!((last.lane(), last.name()), ("failed", Some("recall_span")));
    let said = "s99 does not exist: this episode has 12 spans so far, numbered from s1; an id belongs to one episode";
    assert_eq!(last.content().as_text(), Some(said));
    // Its call has its result, so another is one too many.
    assert!(window.lanes().route(call.failed(&error)).is_err());
    Ok(())
}

// The whole span.

#[test]
fn a_span_that_fits_comes_back_to_its_place_and_is_not_copied() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let schema = lanes.schema.push("users.id BIGINT NOT NULL")?;
    lanes.work.push("later")?;
    lanes.externalize().wait()?.schema.evict(schema).wait()?;
    window.lanes().work.push(NewSpan::model("recall").calls(["t1"]))?;
    let reply = ask(&mut window, json!({ "span": "s1" }), 24)?;
    assert_eq!((reply.span(), reply.call(), reply.times()), (schema, Some("t1"), 1));
    assert_eq!(reply.restored(), [schema]);
    assert_eq!(reply.text(), "[s1 schema: in the window again, at its own place]");
    window.lanes().route(reply)?;
    let expected =
        ["users.id BIGINT NOT NULL", "later", "recall", "[s1 schema: in the window again, at its own place]"];
    assert_eq!(texts(&window), expected);
    let rendered: u64 = window.render().iter().map(|message| u64::from(message.tokens())).sum();
    assert_eq!(window.utilization(), rendered);
    // Now there is nothing to bring back, and asking is no recall.
    let again = ask(&mut window, json!({ "span": "s1" }), 0)?;
    assert_eq!(again.text(), "[s1 schema: in the window already, at its own place]");
    assert_eq!((again.restored(), again.times()), (&[][..], 1));
    Ok(())
}

#[test]
fn an_exchange_comes_back_whole_or_not_at_all() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let turn = lanes.work.push(NewSpan::model("calls two").calls(["a", "b"]))?;
    let one = lanes.schema.push(NewSpan::tool("describe_table", "one\n".repeat(30)).answers("a"))?;
    let two = lanes.work.push(NewSpan::tool("read", "two\n".repeat(30)).answers("b"))?;
    evict(&mut window, two)?;
    assert_eq!(shown(&window), [Shown::Pointer(turn, two)]);
    // The three take 249 tokens, the one that is asked for 120.
    let text = told(&mut window, json!({ "span": "s2" }), 248)?;
    assert_eq!(text, format!("[s2 schema: lines 1 to 30 of 30]\n{}", "one\n".repeat(30)));
    assert_eq!(shown(&window), [Shown::Pointer(turn, two)]);
    let reply = ask(&mut window, json!({ "span": "s2" }), 249)?;
    assert_eq!(reply.text(), "[s2 schema: in the window again, at its own place, with s1, s3 of its exchange]");
    assert_eq!(reply.restored(), [turn, one, two]);
    assert_eq!(shown(&window), [turn, one, two].map(Shown::Span));
    Ok(())
}

#[test]
fn what_the_budget_has_no_room_for_stays_out_and_an_excerpt_is_cut_to_the_rest() -> Outcome {
    let mut window = window_over(memory(), Limits::of(1_300).fixed(100))?;
    let id = window.lanes().work.push("0123456\n".repeat(100))?;
    evict(&mut window, id)?;
    let pointer = window.utilization();
    // It would take 800, and the line that says so 48: one token more than there is.
    window.lanes().work.push("x".repeat(1_200 - 800 - 48 + 1))?;
    let text = told(&mut window, json!({ "span": "s1" }), PLENTY)?;
    let title = "[s1 work: lines 1 to 88 of 100; 89 to 100 left out, ask from_line 89]\n";
    assert_eq!(text, format!("{title}{}", "0123456\n".repeat(88)));
    let (length, free) = (u64::try_from(text.len())?, 1_200 - 353 - pointer);
    assert!(length <= free && free < length + 8, "{length} of {free}");
    window.lanes().route(NewSpan::tool("recall_span", text))?;
    let least = format!("[s1 work: 800 tokens, and no part of it fits into {}]", free - length);
    assert_eq!(told(&mut window, json!({ "span": "s1" }), PLENTY)?, least);
    Ok(())
}

#[test]
fn a_span_that_fits_to_the_token_comes_back() -> Outcome {
    let mut window = window_over(memory(), Limits::of(1_300).fixed(100))?;
    let id = window.lanes().work.push("0123456\n".repeat(100))?;
    evict(&mut window, id)?;
    let reply = "[s1 work: in the window again, at its own place]";
    window.lanes().work.push("x".repeat(1_200 - 800 - reply.len()))?;
    assert_eq!(told(&mut window, json!({ "span": "s1" }), PLENTY)?, reply);
    window.lanes().route(NewSpan::tool("recall_span", reply))?;
    assert_eq!(window.headroom(), Some(0));
    Ok(())
}

/// Out of the middle of a pointer, it leaves one on each side.
#[test]
fn the_pointers_that_come_count_as_well() -> Outcome {
    let middle = |budget: u64| -> Result<(Windowed, RecallReply), Box<dyn std::error::Error>> {
        let mut window = window_over(memory(), budget)?;
        let lanes = window.lanes();
        let ids = [lanes.work.push("a")?, lanes.work.push("b".repeat(800))?, lanes.work.push("c")?];
        lanes.externalize().wait()?.work.evict(ids).wait()?;
        let reply = ask(&mut window, json!({ "span": "s2" }), PLENTY)?;
        Ok((window, reply))
    };
    let (window, reply) = middle(PLENTY)?;
    assert_eq!(window.render().len(), 3);
    let needed = window.utilization() + u64::try_from(reply.text().len())?;
    let span = reply.span();
    assert_eq!(middle(needed)?.1.restored(), [span]);
    assert_eq!(middle(needed - 1)?.1.restored(), []);
    Ok(())
}

#[test]
fn an_evicted_summary_comes_back_and_a_source_of_one_does_not() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let sources = [lanes.work.push("first line\n".repeat(8))?, lanes.work.push("other\n".repeat(8))?];
    let lanes = lanes.externalize().wait()?;
    let recap = lanes.work.summarize(sources, summary("two files")?, &lanes.recap).wait()?;
    drop(lanes);
    let note = "; a summary stands in its place, and `reground` of that brings it back";
    let text = told(&mut window, json!({ "span": "s1" }), PLENTY)?;
    assert_eq!(text, format!("[s1 work: lines 1 to 8 of 8{note}]\n{}", "first line\n".repeat(8)));
    assert_eq!(shown(&window), [Shown::Summary(recap)]);
    window.lanes().externalize().wait()?.recap.evict(recap).wait()?;
    let reply = ask(&mut window, json!({ "span": "s3" }), PLENTY)?;
    assert_eq!(reply.text(), "[s3 recap: in the window again, at its own place]");
    assert_eq!(shown(&window), [Shown::Summary(recap)]);
    window.lanes().recap.reground(recap).wait()?;
    let text = told(&mut window, json!({ "span": "s3" }), PLENTY)?;
    assert!(text.starts_with("[s3 recap: lines 1 to 2 of 2; a summary that has left the window]\n"), "{text}");
    Ok(())
}

#[test]
fn what_was_discarded_says_why_and_how_to_recover() -> Outcome {
    let mut window = window()?;
    let key = window.lanes().work.push("sk-123")?;
    window.lanes().work.discard(key, Mutation::new("a key", "ask the operator")?).wait()?;
    let error = refused(&mut window, json!({ "span": "s1", "from_line": 1 }), PLENTY)?;
    assert_eq!(error.to_string(), "s1 was discarded (a key); to recover: ask the operator");
    Ok(())
}

// Lines.

#[test]
fn lines_are_exact_with_whatever_ends_them() -> Outcome {
    let cases = [
        ("a\r\nb\r\nc\r\n", 2, 3, "[s1 work: lines 2 to 3 of 3]\nb\r\nc\r\n"),
        ("a\nb\nc", 2, 3, "[s1 work: lines 2 to 3 of 3]\nb\nc"),
        ("a\nb\nc", 3, 3, "[s1 work: line 3 of 3]\nc"),
        ("a\n\n\nb\n", 1, 3, "[s1 work: lines 1 to 3 of 4]\na\n\n\n"),
        ("\n\n", 2, 2, "[s1 work: line 2 of 2]\n\n"),
        ("a\rb\u{2028}c\nd", 1, 1, "[s1 work: line 1 of 2]\na\rb\u{2028}c\n"),
        ("größe 🚀\n表\n", 1, 9, "[s1 work: lines 1 to 2 of 2]\ngröße 🚀\n表\n"),
        ("a\nb\n", 3, 3, "[s1 work: there is no line 3, the last is 2]"),
    ];
    for (text, from, to, expected) in cases {
        let (mut window, id) = evicted(text)?;
        let reply = ask(&mut window, json!({ "span": "s1", "from_line": from, "to_line": to }), PLENTY)?;
        assert_eq!(reply.text(), expected);
        assert_eq!(reply.restored(), []);
        assert_eq!(shown(&window), [Shown::Pointer(id, id)], "a part does not bring the span back");
    }
    let (mut window, _) = evicted("a\nb\nc\n")?;
    assert_eq!(told(&mut window, json!({ "span": "s1", "from_line": 2 }), 99)?, "[s1 work: lines 2 to 3 of 3]\nb\nc\n");
    assert_eq!(told(&mut window, json!({ "span": "s1", "to_line": 2 }), 99)?, "[s1 work: lines 1 to 2 of 3]\na\nb\n");
    let most = json!({ "span": "s1", "from_line": u64::MAX, "to_line": u64::MAX });
    let expected = format!("[s1 work: there is no line {}, the last is 3]", u64::MAX);
    assert_eq!(told(&mut window, most, 99)?, expected);
    Ok(())
}

#[test]
fn what_is_left_out_is_said_with_how_to_ask_for_it() -> Outcome {
    let text: String = (1..=20).map(|n| format!("line {n}\n")).collect();
    let expected = "[s1 work: lines 3 to 5 of 20; 6 to 18 left out, ask from_line 6]\nline 3\nline 4\nline 5\n";
    for spare in [0, 6] {
        let part = json!({ "span": "s1", "from_line": 3, "to_line": 18 });
        assert_eq!(first_told(&text, part, expected.len() + spare)?, expected, "whole lines only");
    }
    let expected = "[s1 work: lines 1 to 4 of 20; 5 to 20 left out, ask from_line 5]\nline 1\nline 2\nline 3\nline 4\n";
    assert_eq!(first_told(&text, json!({ "span": "s1" }), expected.len())?, expected);
    // All of them need no word on the rest, and fit where all but one would not.
    let all = "[s1 work: lines 1 to 3 of 3]\nline 1\nline 2\n\n";
    let part = json!({ "span": "s1", "from_line": 1 });
    assert_eq!(first_told("line 1\nline 2\n\n", part, all.len())?, all);
    Ok(())
}

#[test]
fn a_line_that_is_too_long_is_cut_between_characters_and_says_so() -> Outcome {
    let text = format!("{}\nnext\n", "ü".repeat(100));
    let title = "[s1 work: bytes 1 to 18 of 201 of line 1 of 2, which does not fit whole; the next is line 2, ask from_line 2]\n";
    let expected = format!("{title}{}", "ü".repeat(9));
    for spare in [0, 1] {
        assert_eq!(first_told(&text, json!({ "span": "s1" }), expected.len() + spare)?, expected);
    }
    let only = json!({ "span": "s1", "from_line": 1, "to_line": 1 });
    let last = "[s1 work: bytes 1 to 10 of 201 of line 1 of 2, which does not fit whole]\nüüüüü";
    assert_eq!(first_told(&text, only.clone(), last.len())?, last);
    let least = "[s1 work: 206 tokens, and no part of it fits into 66]";
    assert_eq!(first_told(&text, only, 66)?, least);
    Ok(())
}

#[test]
fn part_of_a_resident_span_is_given_and_the_whole_is_pointed_at() -> Outcome {
    let mut window = window()?;
    window.lanes().work.push("a\nb\nc\n")?;
    let expected = "[s1 work: line 2 of 3; all of it is in the window, at its own place]\nb\n";
    let reply = ask(&mut window, json!({ "span": "s1", "from_line": 2, "to_line": 2 }), PLENTY)?;
    assert_eq!((reply.text(), reply.times()), (expected, 0));
    Ok(())
}

#[test]
fn what_is_no_text_says_what_it_is() -> Outcome {
    let png = [&b"\x89PNG\r\n\x1a\n"[..], &[0; 92]].concat();
    let (mut window, id) = evicted(NewSpan::image(png.clone(), 1_000, 1_000))?;
    let tokens = window.lanes().work.tokens(id).ok_or("counted")?.tokens();
    let part = told(&mut window, json!({ "span": "s1", "search": "IHDR" }), PLENTY)?;
    assert_eq!(part, "[s1 work: 100 bytes of a PNG image: no part of them can be shown, ask for the whole]");
    let whole = told(&mut window, json!({ "span": "s1" }), 60)?;
    assert_eq!(
        (tokens, whole.as_str()),
        (1_296, "[s1 work: 100 bytes of a PNG image: 1296 tokens, and there is room for 60]")
    );
    let back = ask(&mut window, json!({ "span": "s1" }), 1_296)?;
    assert_eq!(back.restored(), [id]);
    assert_eq!(window.render()[0].content().as_bytes(), png);
    let part = told(&mut window, json!({ "span": "s1", "from_line": 1 }), PLENTY)?;
    let note = "all of it is in the window, at its own place";
    assert_eq!(part, format!("[s1 work: 100 bytes of a PNG image: no part of them can be shown; {note}]"));
    Ok(())
}

// Search.

fn numbered(lines: usize, hits: &[usize]) -> String {
    (1..=lines).map(|n| if hits.contains(&n) { format!("{n} Needle\n") } else { format!("{n}\n") }).collect()
}

#[test]
fn a_search_shows_what_it_finds_with_the_lines_around() -> Outcome {
    let text = numbered(30, &[1, 5, 6, 20]);
    let find = |words: &str, limit: usize| first_told(&text, json!({ "span": "s1", "search": words }), limit);
    let first = "[lines 1 to 8]\n1 Needle\n2\n3\n4\n5 Needle\n6 Needle\n7\n8\n";
    let expected =
        format!("[s1 work: lines that match: 4 of 30]\n{first}[lines 18 to 22]\n18\n19\n20 Needle\n21\n22\n");
    assert_eq!(find("nEEDLE", expected.len())?, expected);
    // In one byte less: what is said of the rest takes more than the last two of them.
    let title = "[s1 work: lines that match: 4 of 30, of which the first 1; the next is line 5, ask from_line 5]\n";
    let part = format!("{title}[lines 1 to 3]\n1 Needle\n2\n3\n");
    assert_eq!(find("needle", expected.len() - 1)?, part);
    // Without the lines around where these do not fit.
    let alone = format!("{title}[line 1]\n1 Needle\n");
    assert_eq!(find("needle", alone.len())?, alone);
    // Neighbours are one block.
    let text = numbered(9, &[1, 6]);
    let expected = "[s1 work: lines that match: 2 of 9]\n[lines 1 to 8]\n1 Needle\n2\n3\n4\n5\n6 Needle\n7\n8\n";
    let both = first_told(&text, json!({ "span": "s1", "search": "needle" }), expected.len())?;
    assert_eq!(both, expected);
    assert_eq!(find("Nadel", 0)?, "[s1 work: lines that match: none of 30]");
    Ok(())
}

#[test]
fn a_search_takes_neither_signs_nor_letters_for_more_than_they_are() -> Outcome {
    let cases = [
        ("a.c\nabc\n", "A.C", "[s1 work: lines that match: 1 of 2]\n[lines 1 to 2]\na.c\nabc\n"),
        ("GRÖSSE\r\n", "größe", "[s1 work: lines that match: none of 1]"),
        ("GRÖßE\r\nx", "größe", "[s1 work: lines that match: 1 of 2]\n[lines 1 to 2]\nGRÖßE\r\nx"),
        ("ΟΔΟΣ", "οδοσ", "[s1 work: lines that match: 1 of 1]\n[line 1]\nΟΔΟΣ"),
    ];
    for (text, words, expected) in cases {
        let (mut window, _) = evicted(text)?;
        assert_eq!(told(&mut window, json!({ "span": "s1", "search": words }), PLENTY)?, expected);
    }
    Ok(())
}

/// A file of one line: what is shown begins where the words are, and not where the line does.
#[test]
fn a_search_in_a_line_that_is_too_long_shows_it_from_there_on() -> Outcome {
    // Its lower case is a byte longer, in each of these.
    let (mut window, _) = evicted(format!("{}{{\"Port\":5432}},{}\nport", "İ".repeat(50), "x".repeat(500)))?;
    let expected = "[s1 work: bytes 103 to 113 of 615 of line 1 of 2, which does not fit whole; \
                    the next is line 2, ask from_line 2]\nPort\":5432}";
    let limit = u64::try_from(expected.len())?;
    assert_eq!(told(&mut window, json!({ "span": "s1", "search": "PORT" }), limit)?, expected);
    Ok(())
}

// Again and again.

fn superseded(window: &mut Windowed) -> Result<Vec<SpanId>, Box<dyn std::error::Error>> {
    let refusal = window.lanes().externalize().wait()?.admit().err().ok_or("it was admitted")?;
    match refusal.fall_back(SupersededReads).wait()? {
        FellBack::Freed(report) => Ok(report.tombstones().iter().map(|tombstone| tombstone.span()).collect()),
        other => Err(format!("{other:?}").into()),
    }
}

#[test]
fn a_later_recall_of_the_same_part_supersedes_the_earlier_one() -> Outcome {
    let parts = [
        (json!({ "from_line": 101, "to_line": 200 }), json!({ "from_line": 1, "to_line": 100 })),
        (json!({ "from_line": 101 }), json!({ "from_line": 1 })),
        (json!({ "search": "1" }), json!({ "search": "6" })),
        (json!({ "from_line": 2 }), json!({})),
    ];
    for (other, same) in parts {
        let mut window = window_over(memory(), Limits::of(12_000).trigger(2_000).index(1).rationale(1).margin(1))?;
        let id = window.lanes().work.push((1..=1_000).map(|n| format!("{n:07}\n")).collect::<String>())?;
        evict(&mut window, id)?;
        // The third shows less, so that its text is not the second's.
        for (mut input, limit) in [(other, 900), (same.clone(), 900), (same, 500)] {
            window.lanes().work.push(NewSpan::model("call").calls(["t1"]))?;
            input["span"] = "s1".into();
            let reply = ask(&mut window, input, limit)?;
            window.lanes().work.push(reply)?;
        }
        // Not s2 and s3, which are older and of another part.
        let left = superseded(&mut window)?;
        assert_eq!(left, [SpanId::parse("s4"), SpanId::parse("s5")].into_iter().flatten().collect::<Vec<_>>());
    }
    Ok(())
}

/// One span evicted and recalled over and over: 66 reads of one file, and no progress.
#[test]
fn cycles_of_one_span_are_counted_and_the_model_is_told() -> Outcome {
    let read = format!("{}\n", "fn main() {}\n".repeat(400));
    let (mut window, id) = evicted(read.as_str())?;
    let back = "[s1 work: in the window again, at its own place";
    for cycle in 1..=5 {
        let reply = ask(&mut window, json!({ "span": "s1" }), PLENTY)?;
        assert_eq!(reply.times(), cycle);
        assert_eq!(texts(&window), [read.as_str()], "the same bytes every time");
        let again = format!("; recalled {} times before, so write down what you need of it", cycle - 1);
        assert_eq!(reply.text(), format!("{back}{}]", if cycle > 3 { again } else { String::new() }));
        evict(&mut window, id)?;
    }
    // Parts count as well, and other spans apart.
    let reply = ask(&mut window, json!({ "span": "s1", "from_line": 401 }), PLENTY)?;
    let expected = "[s1 work: line 401 of 401; recalled 5 times before, so write down what you need of it]\n\n";
    assert_eq!((reply.times(), reply.text()), (6, expected));
    window.lanes().work.push("other")?;
    assert_eq!(ask(&mut window, json!({ "span": "s2", "from_line": 1 }), PLENTY)?.times(), 0);
    Ok(())
}

/// A stub that invited the agent to run its tools again: six files were read again in full after each pass.
#[test]
fn six_evicted_reads_come_back_by_id_and_nothing_is_read_again() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let mut files = Vec::new();
    for n in 1..=6 {
        let (call, text) = (format!("c{n}"), format!("file {n}\n{}", "let x = 1;\n".repeat(130)));
        lanes.work.push(NewSpan::model(format!("read {n}")).calls([call.as_str()]))?;
        let id = lanes.work.push(NewSpan::tool("read", text.as_str()).answers(call))?;
        files.push((id, text));
    }
    drop(lanes);
    let lanes = window.lanes().externalize().wait()?;
    lanes.work.evict(files.iter().map(|(id, _)| *id).collect::<Vec<_>>()).wait()?;
    drop(lanes);
    assert_eq!(window.render().len(), 1, "one line for all of them");
    assert!(texts(&window)[0].contains("recall any of them by id"), "{}", texts(&window)[0]);
    for (at, (id, text)) in files.iter().enumerate() {
        let first = told(&mut window, json!({ "span": id.to_string(), "to_line": 1 }), PLENTY)?;
        assert_eq!(first, format!("[{id} work: line 1 of 131]\nfile {}\n", at + 1));
        let reply = ask(&mut window, json!({ "span": id.to_string() }), PLENTY)?;
        assert_eq!(reply.restored().last(), Some(id));
        assert!(texts(&window).contains(text), "{id}");
    }
    Ok(())
}

/// Handles that were places in a list meant other messages, or none, once the list had shrunk.
#[test]
fn an_id_means_the_same_span_after_any_number_of_passes() -> Outcome {
    let mut window = window()?;
    let lanes = window.lanes();
    let turns = (1..=150).map(|n| lanes.work.push(format!("turn {n}\n"))).collect::<Result<Vec<_>, _>>()?;
    drop(lanes);
    for some in turns[..130].chunks(40) {
        window.lanes().externalize().wait()?.work.evict(some).wait()?;
    }
    assert_eq!(window.render().len(), 21);
    for id in &turns {
        let expected = format!(
            "[{id} work: line 1 of 1{}]\nturn {}\n",
            if id.number() > 130 { "; all of it is in the window, at its own place" } else { "" },
            id.number()
        );
        assert_eq!(told(&mut window, json!({ "span": id.to_string(), "from_line": 1 }), PLENTY)?, expected);
    }
    let error = refused(&mut window, json!({ "span": "s151" }), PLENTY)?;
    assert!(matches!(error, RecallError::Selection(SelectionError::Unknown { spans: 150, .. })), "{error:?}");
    Ok(())
}

// A store that fails.

#[test]
fn a_store_that_fails_answers_nothing_and_changes_nothing() -> Outcome {
    let store = std::sync::Arc::new(Faulty::default());
    let mut window = window_over(store.clone(), PLENTY)?;
    let text = "a\nb\n".repeat(100);
    let id = window.lanes().work.push(text.as_str())?;
    evict(&mut window, id)?;
    let utilization = window.utilization();
    for (nth, fault) in [(1, Fault::Fails), (1, Fault::BitFlip), (1, Fault::ShortRead), (2, Fault::Fails)] {
        for input in [json!({ "span": "s1" }), json!({ "span": "s1", "search": "b" })] {
            store.arm(nth, fault);
            let part = input.get("search").is_some();
            let answer = window.answer_recall(&call(input)?, PLENTY).wait();
            match answer {
                // An excerpt reads once, and writes nothing.
                Ok(reply) => assert!(part && nth == 2, "{reply:?}"),
                Err(RecallError::Commit(CommitError::Store(StoreError::Corrupt { digest }))) => {
                    assert_eq!(digest, Digest::of(text.as_bytes()));
                }
                Err(RecallError::Commit(CommitError::Store(_))) => assert_eq!(fault, Fault::Fails),
                Err(error) => return Err(error.into()),
            }
            store.arm(0, fault);
            assert_eq!(window.utilization(), utilization);
        }
    }
    assert_eq!(ask(&mut window, json!({ "span": "s1" }), PLENTY)?.times(), 2, "what failed is no recall");
    assert_eq!(window.lanes().work.content(id).as_ref().and_then(keepspan::Content::as_text), Some(text.as_str()));
    Ok(())
}

#[test]
fn only_a_restore_writes() -> Outcome {
    let store = memory();
    let mut window = window_over(store.clone(), PLENTY)?;
    let id = window.lanes().work.push("a\nb\n".repeat(100))?;
    evict(&mut window, id)?;
    let length = || Store::length(&store, &EpisodeId::new("e"));
    let before = length()?;
    for (input, limit, restores) in [
        (json!({ "span": "s1", "search": "b" }), PLENTY, false),
        (json!({ "span": "s1" }), 100, false),
        (json!({ "span": "s1" }), PLENTY, true),
    ] {
        assert_eq!(ask(&mut window, input, limit)?.restored().is_empty(), !restores);
        assert_eq!(length()?, before + u64::from(restores));
    }
    Ok(())
}

proptest! {
    /// Whatever the text and the limit: a reply fits, and following it to the end gives the text back byte for byte.
    #[test]
    fn the_excerpts_of_a_text_add_up_to_it(text in "[aü🚀 \r\n]{1,400}", limit in 240_u64..400) {
        for found in [read_on(&text, limit, OneByteAToken), read_on(&text, limit / 2, O200k)] {
            prop_assert_eq!(&found.map_err(|error| TestCaseError::fail(error.to_string()))?, &text);
        }
    }
}

/// Asks for a text from its first line on, as a model that does what it is told.
fn read_on(
    text: &str,
    limit: u64,
    counter: impl TokenCounter + Copy + 'static,
) -> Result<String, Box<dyn std::error::Error>> {
    let mut window = Window::<Agent, _>::open_with(memory(), Episode::new("e", "p").budget(PLENTY), counter)?;
    let id = window.lanes().work.push(text)?;
    evict(&mut window, id)?;
    let (mut found, mut next) = (String::new(), Some(1_u64));
    while let Some(from) = next {
        let reply = told(&mut window, json!({ "span": "s1", "from_line": from }), limit)?;
        if u64::from(counter.text(&reply)?.tokens()) > limit {
            return Err(format!("{reply} is longer than {limit}").into());
        }
        let (title, lines) = reply.split_once('\n').ok_or("no text")?;
        if title.contains("bytes 1 to") {
            // The rest of a line that fits nowhere is not to be had by lines.
            let line = text.split_inclusive('\n').nth(usize::try_from(from)? - 1).ok_or("no such line")?;
            if !line.starts_with(lines) {
                return Err(format!("{lines:?} does not begin {line:?}").into());
            }
            found.push_str(line);
        } else {
            found.push_str(lines);
        }
        let asked = title.split_once("ask from_line ").map(|(_, line)| line.chars().take_while(char::is_ascii_digit));
        next = asked.map(|line| line.collect::<String>().parse()).transpose()?;
        if next.is_some_and(|next| next <= from) {
            return Err("it does not go on".into());
        }
    }
    Ok(found)
}
