//! Faults that users of other agents reported of the requests they sent: pairs torn, images counted as text, arguments cut,
//! signatures over what was gone. Each over the provider's own JSON, in and out. A number is that of the public report.

use std::sync::Arc;

use keepspan::{
    Abandonment, ByteEstimate, ContextState, CounterError, Episode, EpisodeId, EvictError, FellBack, Finish, Image,
    Limits, ModelAnswer, Mutation, NewSpan, OldestFirst, OneByteAToken, Origin, Outcome as Passed, PushError,
    RedactError, SelectionError, SpanId, Spans, SummaryText, TokenCount, TokenCounter, Window,
    store::{MemoryStore, Store as _},
    tool::{Answer, Anthropic, Gemini, OpenAiChat, OpenAiResponses, RecallCall},
    wire::{self, Format, ImportError, RenderError},
};
use keepspan_tests::{Agent, memory};
use serde_json::{Value, json};

/// Nothing is protected.
#[derive(ContextState)]
struct Loose {
    #[evictable(otherwise)]
    work: Spans,
    #[derived]
    digest: Spans,
}

type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;
type Windowed = Window<Agent, Arc<MemoryStore>>;

/// One token a byte, so that sizes are what the report says.
fn window(limits: impl Into<Limits>) -> Outcome<Windowed> {
    Ok(Window::open_with(memory(), Episode::new("e", "p").budget(limits), OneByteAToken)?)
}

fn text(tokens: usize) -> String {
    "x".repeat(tokens)
}

fn summary() -> Outcome<SummaryText> {
    Ok(ModelAnswer::new(Finish::Stop, "in short").try_into()?)
}

/// What would be sent, which the provider takes.
fn request<F: Format>(format: F, window: &Windowed) -> Outcome<Value> {
    let request = window.render_for(format)?.to_value();
    wire::validate(format, &request)?;
    Ok(request)
}

fn fall_back(window: &mut Windowed) -> Outcome<FellBack> {
    match window.lanes().externalize().wait()?.admit() {
        Ok(pass) => Ok(pass.fall_back(OldestFirst).wait()?),
        Err(refusal) => Ok(refusal.fall_back(OldestFirst).wait()?),
    }
}

fn evict(window: &mut Windowed, span: SpanId) -> Outcome<Result<(), EvictError>> {
    Ok(window.lanes().externalize().wait()?.work.evict(span).wait().map(drop))
}

fn user(text: &str) -> Value {
    json!({ "role": "user", "content": text })
}

/// A turn of Chat with these calls.
fn calls(ids: &[&str]) -> Value {
    let call = |id: &&str| json!({ "id": id, "type": "function", "function": { "name": "read", "arguments": "{}" } });
    json!({ "role": "assistant", "content": null, "tool_calls": ids.iter().map(call).collect::<Vec<_>>() })
}

fn result(id: &str, text: impl Into<String>) -> Value {
    json!({ "role": "tool", "tool_call_id": id, "content": text.into() })
}

/// A user and then exchanges, each of one call and a result of so many tokens.
fn exchanges(count: usize, tokens: usize) -> Vec<Value> {
    let each = |_| [calls(&["call_0"]), result("call_0", text(tokens))];
    std::iter::once(user("Fix it.")).chain((0..count).flat_map(each)).collect()
}

/// B049: the limit was reached after the first of two parallel results, and the second stayed without its call.
#[test]
fn parallel_results_leave_with_their_calls_or_stay() -> Outcome {
    let list = json!([user("u"), calls(&["c1", "c2"]), result("c1", text(5_000)), result("c2", text(200)), { "role": "assistant", "content": "a" }]);
    let mut window = window(Limits::of(8_000).trigger(5_000))?;
    let spans = window.lanes().import(OpenAiChat, &list)?.spans;
    assert!(matches!(fall_back(&mut window)?, FellBack::Freed(_)));
    assert_eq!(window.lanes().work.evicted(), spans[1..4]);
    let sent = request(OpenAiChat, &window)?;
    assert_eq!([&sent["messages"][0], &sent["messages"][2]], [&list[0], &list[4]]);
    assert_eq!(sent["messages"].as_array().map(Vec::len), Some(3));

    window.lanes().externalize().wait()?.work.restore(spans[3]).wait()?;
    assert_eq!(request(OpenAiChat, &window)?["messages"], list);
    Ok(())
}

/// B051: seven parallel results, each under the role of the user, were counted as seven turns.
#[test]
fn seven_results_under_the_role_of_the_user_are_no_turns_of_the_user() -> Outcome {
    let ids = ["t1", "t2", "t3", "t4", "t5", "t6", "t7"];
    let call = ids.map(|id| json!({ "type": "tool_use", "id": id, "name": "read", "input": {} }));
    let results = ids.map(|id| json!({ "type": "tool_result", "tool_use_id": id, "content": text(300) }));
    let list = json!([user("u"), { "role": "assistant", "content": call }, { "role": "user", "content": results }]);
    let mut window = window(20_000)?;
    let spans = window.lanes().import(Anthropic, &list)?.spans;
    let said = window.render().iter().filter(|message| message.origin() == Origin::Human).count();
    assert_eq!((spans.len(), said), (9, 1));
    evict(&mut window, spans[4])??;
    assert_eq!(window.lanes().work.evicted(), spans[1..]);
    request(Anthropic, &window)?;
    Ok(())
}

/// B052: a call that waited for a person was summarized away, and the answer had nothing to attach to.
#[test]
fn a_call_that_waits_is_sent_with_the_answer_that_comes_later() -> Outcome {
    let mut window = window(20_000)?;
    let first = window.lanes().import(OpenAiChat, &json!([user("u"), calls(&["c1"])]))?.spans;
    for n in 0..10 {
        let said = json!([{ "role": "assistant", "content": text(200) }, user(&format!("chat {n}"))]);
        let spans = window.lanes().import(OpenAiChat, &said)?.spans;
        evict(&mut window, spans[0])??;
    }
    let refused = evict(&mut window, first[1])?;
    assert!(matches!(refused, Err(EvictError::Selection(SelectionError::Pending { .. }))), "{refused:?}");
    let answer = window.lanes().import(OpenAiChat, &result("c1", "yes, do it"))?;
    assert!(answer.orphans.is_empty());
    let sent = request(OpenAiChat, &window)?;
    assert_eq!([&sent["messages"][1], &sent["messages"][2]], [&calls(&["c1"]), &result("c1", "yes, do it")]);
    Ok(())
}

/// B053: an intermediate response under the same id made a call that still ran look finished.
#[test]
fn an_interim_result_is_told_and_the_final_one_is_the_result() -> Outcome {
    let call = json!({ "role": "model", "parts": [{ "functionCall": { "id": "g1", "name": "build", "args": {} } }] });
    let mut window = window(20_000)?;
    let turn = window.lanes().import(Gemini, &json!([{ "parts": [{ "text": "u" }] }, call]))?.spans[1];
    window.lanes().route(NewSpan::tool("build", "in progress").interim("g1"))?;
    assert_eq!(window.open_calls().len(), 1);
    assert!(evict(&mut window, turn)?.is_err());
    let done = json!({ "role": "user", "parts": [{ "functionResponse": { "id": "g1", "name": "build", "response": { "output": "done" } } }] });
    let _ = window.lanes().import(Gemini, &done)?;
    let sent = request(Gemini, &window)?;
    assert_eq!([&sent["contents"][1], &sent["contents"][2]], [&call, &done]);
    assert_eq!(sent["contents"][3]["parts"][0]["text"], "[a result, not the last, of build]\nin progress");
    Ok(())
}

/// B054: one call whose answer never came kept everything after it in the window for ever. Closed as lost, it is a result in each
/// format, which says that the effect is unknown.
#[test]
fn a_call_that_is_never_answered_is_closed_in_every_format() -> Outcome {
    fn lost<F: Format>(format: F, list: Value, call: &str, at: &str) -> Outcome {
        let mut window = window(20_000)?;
        let spans = window.lanes().import(format, &list)?.spans;
        let rest = window.lanes().work.push(text(400))?;
        assert!(wire::validate(format, &window.render_for(format)?.to_value()).is_err());
        evict(&mut window, rest)??;
        assert!(evict(&mut window, spans[1])?.is_err());
        window.abandon(spans[1], call, Abandonment::because("the worker died")?).wait()?;
        let sent = request(format, &window)?;
        let told = sent.pointer(at).and_then(Value::as_str).ok_or_else(|| sent.to_string())?;
        assert_eq!(told, "[no result: the worker died; whether it took effect is unknown]");
        evict(&mut window, spans[1])??;
        request(format, &window)?;
        Ok(())
    }
    lost(OpenAiChat, json!([user("u"), calls(&["c1"])]), "c1", "/messages/2/content")?;
    let tool_use =
        json!({ "role": "assistant", "content": [{ "type": "tool_use", "id": "t1", "name": "read", "input": {} }] });
    lost(Anthropic, json!([user("u"), tool_use]), "t1", "/messages/2/content/0/content")?;
    for id in [json!({}), json!({ "id": "g1" })] {
        let mut call = json!({ "name": "read", "args": {} });
        call.as_object_mut().ok_or("no object")?.extend(id.as_object().cloned().ok_or("no object")?);
        let list = json!([{ "parts": [{ "text": "u" }] }, { "role": "model", "parts": [{ "functionCall": call }] }]);
        let id = call["id"].as_str().unwrap_or("read").to_owned();
        lost(Gemini, list, &id, "/contents/2/parts/0/functionResponse/response/error")?;
    }
    for (call, at) in [
        (json!({ "type": "function_call", "name": "custom_tool_call", "arguments": "{}" }), "output"),
        (json!({ "type": "custom_tool_call", "name": "patch", "input": "x" }), "output"),
        (json!({ "type": "local_shell_call", "action": {} }), "output"),
        (json!({ "type": "apply_patch_call", "operation": {} }), "output"),
        (json!({ "type": "shell_call", "action": {} }), "output/0/stdout"),
        (json!({ "type": "computer_call", "action": {} }), "../4/content"),
        (json!({ "type": "tool_search_call", "arguments": {} }), "../4/content"),
    ] {
        let mut call = call;
        call["call_id"] = "c1".into();
        let at = at.strip_prefix("../").map_or_else(|| format!("/input/3/{at}"), |at| format!("/input/{at}"));
        lost(OpenAiResponses, json!([user("u"), call]), "c1", &at)?;
    }
    Ok(())
}

/// The form of a call that came before parallel ones has its result under the function's name.
#[test]
fn a_deprecated_call_is_answered_in_its_own_form() -> Outcome {
    let list = json!([
        user("u"),
        { "role": "assistant", "content": null, "function_call": { "name": "read", "arguments": "{}" } },
        { "role": "function", "name": "read", "content": "secret" },
    ]);
    let mut window = window(20_000)?;
    let spans = window.lanes().import(OpenAiChat, &list)?.spans;
    assert_eq!(request(OpenAiChat, &window)?["messages"], list);
    window.lanes().work.discard(spans[2], Mutation::new("a key", "ask")?).wait()?;
    let sent = request(OpenAiChat, &window)?;
    let told = "[s3 work: removed for good: a key; to recover: ask]";
    assert_eq!(sent["messages"][2], json!({ "role": "function", "name": "read", "content": told }));
    Ok(())
}

/// Consent that nobody gave is not made up where it was lost or removed.
#[test]
fn an_approval_that_was_lost_is_none() -> Outcome {
    let asked = json!({ "type": "mcp_approval_request", "id": "mcpr_1", "server_label": "s", "name": "drop", "arguments": "{}" });
    let mut window = window(20_000)?;
    let turn = window.lanes().import(OpenAiResponses, &json!([user("u"), asked]))?.spans[1];
    window.abandon(turn, "mcpr_1", Abandonment::because("nobody answered")?).wait()?;
    let sent = request(OpenAiResponses, &window)?;
    assert_eq!(sent["input"][2]["approval_request_id"], "mcpr_1");
    assert_eq!(sent["input"][2]["approve"], false);
    assert_eq!(sent["input"][2]["reason"], "[no result: nobody answered; whether it took effect is unknown]");
    Ok(())
}

/// B055: a message with text and a result was kept whole while its call was summarized.
#[test]
fn of_a_message_with_a_result_and_words_only_the_result_leaves() -> Outcome {
    let words = json!({ "type": "text", "text": "and be quick" });
    let list = json!([
        user("u"),
        { "role": "assistant", "content": [{ "type": "tool_use", "id": "t1", "name": "read", "input": {} }] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": text(400) }, words] },
    ]);
    let mut window = window(20_000)?;
    let spans = window.lanes().import(Anthropic, &list)?.spans;
    assert_eq!(request(Anthropic, &window)?["messages"], list);
    let lanes = window.lanes().externalize().wait()?;
    lanes.work.summarize(spans[1..3].to_vec(), summary()?, &lanes.recap).wait()?;
    let sent = request(Anthropic, &window)?;
    assert_eq!(sent["messages"][2], json!({ "role": "user", "content": [words] }));
    assert!(!sent.to_string().contains("t1"));
    Ok(())
}

/// B057: one message of a person and then only exchanges: no cut qualified, and nothing was ever trimmed.
#[test]
fn of_a_history_of_tools_alone_the_oldest_exchanges_leave() -> Outcome {
    let mut window = window(Limits::of(10_000).trigger(4_000))?;
    let _ = window.lanes().import(OpenAiChat, &exchanges(10, 700).into())?;
    assert!(matches!(fall_back(&mut window)?, FellBack::Freed(_)));
    let sent = request(OpenAiChat, &window)?;
    let list = sent["messages"].as_array().ok_or("no list")?;
    assert_eq!(list.first(), Some(&user("Fix it.")));
    assert_eq!(list.last(), Some(&result("call_0", text(700))));
    assert!(list.len() > 4 && list.len() < 21, "{}", list.len());
    Ok(())
}

/// B058: the summarizer's input was cut inside a pair, and each retry at the same place; B059: and a placeholder miscounted what it
/// stood for. Wherever the cut is, it is refused or between exchanges, and the number is that of the spans.
#[test]
fn a_cut_anywhere_is_refused_or_leaves_pairs_and_the_pointer_counts_them() -> Outcome {
    let (mut refused, mut made) = (0, 0);
    for cut in 1..18 {
        let mut window = window(20_000)?;
        let spans = window.lanes().import(OpenAiChat, &exchanges(9, 200).into())?.spans;
        let lanes = window.lanes().externalize().wait()?;
        match lanes.work.summarize(spans[1..=cut].to_vec(), summary()?, &lanes.recap).wait() {
            Ok(_) => made += 1,
            Err(error) => {
                assert!(error.to_string().contains("exchange"), "{error}");
                refused += 1;
                let left = lanes.work.evict(spans[1..=cut].to_vec()).wait()?.len();
                let told = format!("{left} spans");
                assert!(window.render_for(OpenAiChat)?.body().contains(&told), "{told}");
                assert_eq!(window.lanes().work.evicted().len(), left);
            }
        }
        request(OpenAiChat, &window)?;
    }
    assert_eq!((refused, made), (9, 8));
    Ok(())
}

/// B081, B117: what the answer may take was forgotten, and a question beside a result that no window holds was taken for history
/// until nothing was left. What cannot fit is refused before any of it enters; what can is cut down to the question.
#[test]
fn what_does_not_fit_beside_the_answer_is_refused_whole_and_the_question_stays() -> Outcome {
    let window_of = |tokens: u64, output: u64| Limits::of(tokens - output).trigger((tokens - output) * 4 / 5);
    let question = user(&text(20_000));
    let mut held = window(window_of(32_000, 4_000))?;
    let list = json!([question, calls(&["c1"]), result("c1", text(219_000))]);
    let refused = held.lanes().import(OpenAiChat, &list);
    let Err(ImportError::Refused { index: 2, source: PushError::LargerThanBudget { tokens: 219_000, budget, .. } }) =
        refused
    else {
        return Err(format!("{refused:?}").into());
    };
    assert_eq!(budget, 28_000);
    assert!(held.render().is_empty());
    assert!(matches!(held.render_for(OpenAiChat), Err(RenderError::Empty { list: "messages", .. })));

    let parts = (0..10).flat_map(|_| [calls(&["c1"]), result("c1", text(21_900))]);
    let list: Value = std::iter::once(question.clone()).chain(parts).collect();
    let _ = held.lanes().import(OpenAiChat, &list)?;
    assert!(held.headroom() < Some(0));
    assert!(matches!(fall_back(&mut held)?, FellBack::Freed(_)));
    assert!(held.headroom() > Some(0));
    assert_eq!(request(OpenAiChat, &held)?["messages"][0], question);
    Ok(())
}

/// B082: a million characters of base64 in the text of a result were counted as prose, and passed a window of a million tokens.
#[test]
fn base64_in_the_text_of_a_result_is_text_and_refused() -> Outcome {
    let list = json!([user("u"), calls(&["c1"]), result("c1", "QUJD".repeat(261_530)[..1_046_118].to_owned())]);
    let mut window = window(1_000_000)?;
    let refused = window.lanes().import(OpenAiChat, &list);
    assert!(
        matches!(refused, Err(ImportError::Refused { index: 2, source: PushError::LargerThanBudget { .. } })),
        "{refused:?}"
    );
    assert!(window.render().is_empty() && window.open_calls().is_empty());
    Ok(())
}

/// A picture of 1,000 by 1,000 pixels and so many bytes, as base64.
fn picture(bytes: usize) -> String {
    "iVBORw0KGgoAAAANSUhEUgAAA+gAAAPoCAIAAAAAAAAA".to_owned() + &"AAAA".repeat((bytes - 33) / 3)
}

/// B083: a pasted image counted as 398,000 tokens, and the message with it was compacted at once.
#[test]
fn a_pasted_image_costs_its_pixels_and_is_sent_as_it_came() -> Outcome {
    let data = picture(1_200_000);
    let url = format!("data:image/png;base64,{data}");
    let words = "What is wrong here?";
    let mut window = Window::<Agent, _>::open(memory(), Episode::new("e", "p").budget(200_000).trust_estimates())?;
    let list = json!([{ "role": "user", "content": [{ "type": "text", "text": words }, { "type": "image_url", "image_url": { "url": url } }] }]);
    let _ = window.lanes().import(OpenAiChat, &list)?;
    assert!((1_000..3_000).contains(&window.utilization()), "{}", window.utilization());
    assert!(matches!(fall_back(&mut window)?, FellBack::Unneeded));
    assert_eq!(request(OpenAiChat, &window)?["messages"], list);

    let blocks = [
        json!({ "role": "user", "content": [{ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": data } }] }),
        json!({ "role": "user", "content": [{ "type": "input_image", "image_url": url }] }),
        json!({ "role": "user", "parts": [{ "inlineData": { "mimeType": "image/png", "data": data } }] }),
    ];
    let mut costs = Vec::new();
    for (at, block) in blocks.iter().enumerate() {
        let before = window.utilization();
        let _ = match at {
            0 => window.lanes().import(Anthropic, block)?,
            1 => window.lanes().import(OpenAiResponses, block)?,
            _ => window.lanes().import(Gemini, block)?,
        };
        costs.push(window.utilization() - before);
    }
    assert!(costs.iter().all(|cost| (1_000..3_000).contains(cost)), "{costs:?}");
    Ok(())
}

/// B084: images counted at a flat price while the backend billed their bytes.
#[test]
fn a_backend_that_bills_bytes_is_asked_about_imported_images_too() -> Outcome {
    struct Bills;
    impl TokenCounter for Bills {
        fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
            OneByteAToken.text(text)
        }

        fn image(&self, image: Image<'_>) -> Result<TokenCount, CounterError> {
            OneByteAToken.text(&"b".repeat(image.bytes().len() / 2))
        }
    }
    let block =
        json!({ "type": "image", "source": { "type": "base64", "media_type": "image/png", "data": picture(200_000) } });
    let list = json!([{ "role": "user", "content": vec![block; 45] }]);
    let mut window = Window::<Agent, _>::open_with(memory(), Episode::new("e", "p").budget(10_000_000), Bills)?;
    let _ = window.lanes().import(Anthropic, &list)?;
    assert!((4_500_000..4_600_000).contains(&window.utilization()), "{}", window.utilization());
    Ok(())
}

/// B085: 24 Chinese characters were counted as 6 tokens.
#[test]
fn chinese_is_not_counted_at_a_quarter() -> Outcome {
    let said = "请把这个文件里的所有函数改名并且更新所有测试用例吧";
    let mut window =
        Window::<Agent, _>::open_with(memory(), Episode::new("e", "p").budget(1_000).trust_estimates(), ByteEstimate)?;
    let _ = window.lanes().import(OpenAiChat, &user(said))?;
    assert!((15..30).contains(&window.utilization()), "{}", window.utilization());
    Ok(())
}

fn thought(n: u8, call: &str) -> Value {
    json!({ "role": "assistant", "content": [
        { "type": "thinking", "thinking": format!("thought {n}"), "signature": format!("sig{n}") },
        { "type": "text", "text": format!("text {n}") },
        { "type": "tool_use", "id": call, "name": "read", "input": {} },
    ] })
}

fn tool_result(call: &str) -> Value {
    json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": call, "content": format!("{call} {}", text(300)) }] })
}

/// B100: one block of a signed message was deleted, and the provider refused the rest for good.
#[test]
fn no_part_of_a_signed_exchange_goes_without_the_others() -> Outcome {
    let list = json!([user("u"), thought(1, "t1"), tool_result("t1"), thought(2, "t2"), tool_result("t2")]);
    let mut window = window(20_000)?;
    let spans = window.lanes().import(Anthropic, &list)?.spans;
    let mutation = || Mutation::new("a key", "ask");
    for span in &spans[1..] {
        let lanes = window.lanes();
        assert!(lanes.work.discard(*span, mutation()?).wait().is_err());
        let refused = window.lanes().work.redact(*span, mutation()?).wait();
        assert!(matches!(refused, Err(RedactError::Selection(SelectionError::Sealed { .. }))), "{refused:?}");
    }
    assert_eq!(request(Anthropic, &window)?["messages"], list);
    assert!(window.render_for(Anthropic)?.unsealed().is_empty());
    window.lanes().externalize().wait()?.work.redact(spans[3..].to_vec(), mutation()?).wait()?;
    let sent = request(Anthropic, &window)?;
    assert_eq!(sent["messages"][1], list[1]);
    assert!(!sent.to_string().contains("sig2"));
    Ok(())
}

/// B102: signatures over a prefix that a compaction had changed were sent for the rest of the session.
#[test]
fn signed_reasoning_behind_a_change_is_left_out_whole_and_the_rest_stays() -> Outcome {
    let list = json!([
        user("u"),
        thought(1, "t1"),
        tool_result("t1"),
        thought(2, "t2"),
        tool_result("t2"),
        thought(3, "t3"),
        tool_result("t3")
    ]);
    let mut window = window(20_000)?;
    let spans = window.lanes().import(Anthropic, &list)?.spans;
    evict(&mut window, spans[3])??;
    let rendered = window.render_for(Anthropic)?;
    let sent = request(Anthropic, &window)?;
    assert_eq!(rendered.unsealed(), [spans[5]]);
    assert_eq!(sent["messages"][1], list[1]);
    let mut without = list[5].clone();
    without["content"].as_array_mut().ok_or("no blocks")?.remove(0);
    let kept = sent["messages"].as_array().ok_or("no list")?;
    assert!(kept.contains(&without), "{sent}");
    // What comes after the change is signed over what is there now.
    let next = [thought(4, "t4"), tool_result("t4")];
    let _ = window.lanes().import(Anthropic, &json!(next))?;
    assert_eq!(request(Anthropic, &window)?["messages"].as_array().ok_or("no list")?.last_chunk(), Some(&next));
    Ok(())
}

/// What is left of a signed message without its reasoning can be white space, which no provider takes.
#[test]
fn a_signed_message_that_says_nothing_else_is_left_out_with_its_reasoning() -> Outcome {
    let blank = json!({ "role": "assistant", "content": [
        { "type": "thinking", "thinking": "hm", "signature": "sig" }, { "type": "text", "text": " " },
    ] });
    let list = json!([user("u"), { "role": "assistant", "content": text(300) }, user("v"), blank, user("w")]);
    let mut window = window(20_000)?;
    let spans = window.lanes().import(Anthropic, &list)?.spans;
    assert_eq!(request(Anthropic, &window)?["messages"], list);
    evict(&mut window, spans[1])??;
    let sent = request(Anthropic, &window)?;
    assert_eq!(sent["messages"].as_array().map(Vec::len), Some(4), "{sent}");
    Ok(())
}

/// B111: half an emoji at the edge of a cut made a request that was no JSON.
#[test]
fn an_emoji_at_an_edge_is_whole() -> Outcome {
    let said = format!("{}😀{}", text(1_999), text(2_000));
    let list = json!([user("u"), calls(&["c1"]), result("c1", said.as_str())]);
    let mut window = window(20_000)?;
    let spans = window.lanes().import(OpenAiChat, &list)?.spans;
    assert_eq!(request(OpenAiChat, &window)?["messages"], list);
    evict(&mut window, spans[2])??;
    let asked = json!({ "choices": [{ "finish_reason": "tool_calls", "message": { "role": "assistant", "content": null, "tool_calls": [
        { "id": "r1", "type": "function", "function": { "name": "recall_span", "arguments": json!({ "span": spans[2].to_string(), "from_line": 1, "to_line": 1, "search": null }).to_string() } },
    ] } }] });
    let _ = window.lanes().import(OpenAiChat, &asked)?;
    for limit in [2_038, 2_039, 2_040, 2_041, 2_042, 2_043] {
        for call in RecallCall::read(OpenAiChat, &asked)? {
            let reply = NewSpan::from(window.answer_recall(&call, limit).wait()?);
            let mut other = self::window(20_000)?;
            let _ = other.lanes().import(OpenAiChat, &json!([user("u"), asked["choices"][0]["message"]]))?;
            other.lanes().route(reply)?;
            request(OpenAiChat, &other)?;
        }
    }
    Ok(())
}

/// B112, B113: arguments of old calls were cut, first to what is no JSON, then each text in them.
#[test]
fn arguments_are_as_they_came_or_gone_and_recalled_whole() -> Outcome {
    let arguments = json!({ "command": text(600), "path": text(250), "content": "é\u{0}\"".repeat(300) }).to_string();
    let mut turn = calls(&["c1"]);
    turn["tool_calls"][0]["function"]["arguments"] = arguments.as_str().into();
    let list = json!([user("u"), turn, result("c1", "ok"), user("v")]);
    let mut window = window(20_000)?;
    let spans = window.lanes().import(OpenAiChat, &list)?.spans;
    assert_eq!(request(OpenAiChat, &window)?["messages"], list);
    evict(&mut window, spans[1])??;
    assert!(!request(OpenAiChat, &window)?.to_string().contains("xxxx"));
    let recalled = window.recall(spans[1]).wait()?;
    let whole: Value = serde_json::from_str(recalled.content().as_text().ok_or("no text")?)?;
    assert_eq!(whole, list[1]);
    assert_eq!(whole["tool_calls"][0]["function"]["arguments"], arguments);
    Ok(())
}

/// B114: a provider that calls every call `call_0` made three different files one.
#[test]
fn results_under_one_id_stay_apart() -> Outcome {
    let say = |file: &str| result("call_0", format!("{file}{}", text(300)));
    let list =
        json!([user("u"), calls(&["call_0"]), say("A"), calls(&["call_0"]), say("B"), calls(&["call_0"]), say("C")]);
    let mut window = window(20_000)?;
    let spans = window.lanes().import(OpenAiChat, &list)?.spans;
    assert_eq!(request(OpenAiChat, &window)?["messages"], list);
    evict(&mut window, spans[4])??;
    let sent = request(OpenAiChat, &window)?;
    let results: Vec<_> =
        sent["messages"].as_array().into_iter().flatten().filter(|message| message["role"] == "tool").collect();
    assert_eq!(results, [&say("A"), &say("C")]);
    let recalled = window.recall(spans[4]).wait()?;
    assert_eq!(recalled.content().as_text(), say("B")["content"].as_str());
    Ok(())
}

/// What a pass says of itself is no turn of the model, which would be the last one, and that the model had to go on with.
#[test]
fn a_rationale_is_no_word_of_the_model() -> Outcome {
    let mut window = window(Limits::of(8_000).trigger(4_000).index(400).rationale(60))?;
    let _ = window.lanes().import(OpenAiChat, &exchanges(10, 500).into())?;
    let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.to_string())?;
    let first = pass.index().offers().first().map(|offer| offer.span().to_string());
    let proposal = pass.parse(&Answer::prune(first).with_rationale("not needed any more"))?;
    assert!(matches!(pass.apply(proposal).wait()?, Passed::Pruned(_)));
    let sent = request(OpenAiChat, &window)?;
    assert_eq!(sent["messages"].as_array().and_then(|list| list.last()), Some(&user("not needed any more")));
    Ok(())
}

/// A summary of what a user said before and after a model's words left those right before the model's calls, which one provider
/// refuses.
#[test]
fn calls_follow_the_user_where_a_summary_took_what_was_said() -> Outcome {
    let said = |role: &str, words: &str| json!({ "role": role, "parts": [{ "text": words }] });
    let [one, two] = ["one", "two"].map(|words| said("user", &format!("{words} {}", text(200))));
    let call = json!({ "role": "model", "parts": [{ "functionCall": { "name": "read", "args": {} } }] });
    let done =
        json!({ "role": "user", "parts": [{ "functionResponse": { "name": "read", "response": { "output": "x" } } }] });
    let mut window = Window::<Loose, _>::open_with(memory(), Episode::new("e", "p").budget(20_000), OneByteAToken)?;
    let spans = window.lanes().import(Gemini, &json!([one, said("model", "hm"), two, call, done]))?.spans;
    let lanes = window.lanes().externalize().wait()?;
    lanes.work.summarize([spans[0], spans[2]], summary()?, &lanes.digest).wait()?;
    let sent = window.render_for(Gemini)?.to_value();
    wire::validate(Gemini, &sent)?;
    let list = sent["contents"].as_array().ok_or("no list")?;
    assert_eq!(list[1..], [said("model", "hm"), said("user", "[s3: in a summary above]"), call, done]);
    Ok(())
}

/// What came while calls ran is sent behind their results, in the order in which it came.
#[test]
fn what_came_between_a_call_and_its_results_follows_in_its_order() -> Outcome {
    let mut window = window(20_000)?;
    let _ = window.lanes().import(OpenAiChat, &json!([user("u"), calls(&["c1", "c2"]), result("c2", "two")]))?;
    for said in ["a", "b"] {
        window.lanes().route(NewSpan::human(said))?;
    }
    window.lanes().route(NewSpan::model(calls(&["c3"])).calls(["c3"]))?;
    for (id, text) in [("c3", "three"), ("c1", "one")] {
        let _ = window.lanes().import(OpenAiChat, &result(id, text))?;
    }
    window.lanes().route(NewSpan::human("d"))?;
    let sent = request(OpenAiChat, &window)?;
    let wanted = [
        user("u"),
        calls(&["c1", "c2"]),
        result("c2", "two"),
        result("c1", "one"),
        user("a"),
        user("b"),
        calls(&["c3"]),
        result("c3", "three"),
        user("d"),
    ];
    assert_eq!(sent["messages"], json!(wanted));
    Ok(())
}

/// What a message says beside its text takes tokens too, unless it is as little as a role and an id; and only that stays on
/// record when it is redacted.
#[test]
fn what_stands_around_a_text_is_counted_unless_it_is_the_formats_own() -> Outcome {
    let costs = |field: &str, more: usize| -> Outcome<u64> {
        let mut message = result("c1", "short");
        message[field] = text(more).into();
        let mut window = window(20_000)?;
        let _ = window.lanes().import(OpenAiChat, &json!([user("u"), calls(&["c1"]), message]))?;
        assert_eq!(request(OpenAiChat, &window)?["messages"][2], message);
        Ok(window.utilization())
    };
    assert_eq!(costs("name", 10)?, costs("name", 100)?);
    assert!(costs("name", 2_000)? > costs("name", 10)? + 2_000);
    assert_eq!(costs("artifact", 100)?, costs("artifact", 10)? + 90);

    let store = std::sync::Arc::new(MemoryStore::default());
    let mut window = Window::<Agent, _>::open(store.clone(), Episode::new("e", "p"))?;
    let mut message = result("c1", "short");
    message["artifact"] = "API_KEY=sk-test-000".into();
    let spans = window.lanes().import(OpenAiChat, &json!([user("u"), calls(&["c1"]), message]))?.spans;
    let lanes = window.lanes().externalize().wait()?;
    drop(lanes.work.redact(spans[2], Mutation::new("a key", "ask for it")?).wait()?);
    let records = store.read(&EpisodeId::new("e"), 0, 1_000)?;
    let has = |record: &[u8], what: &[u8]| record.windows(what.len()).any(|part| part == what);
    assert!(records.iter().any(|record| has(record, b"tool_call_id") || has(record, b"\x01")));
    assert!(!records.iter().any(|record| has(record, b"sk-test")));
    Ok(())
}

/// Where calls have no ids, a result that the library writes has none either.
#[test]
fn a_lost_result_has_an_id_only_where_its_call_has_one() -> Outcome {
    for id in [None, Some("g1")] {
        let mut call = json!({ "name": "read", "args": {} });
        if let Some(id) = id {
            call["id"] = id.into();
        }
        let list = json!([{ "parts": [{ "text": "u" }] }, { "role": "model", "parts": [{ "functionCall": call }] }]);
        let mut window = window(20_000)?;
        let turn = window.lanes().import(Gemini, &list)?.spans[1];
        window.abandon(turn, id.unwrap_or("read"), Abandonment::because("it died")?).wait()?;
        let sent = request(Gemini, &window)?;
        let response = &sent["contents"][2]["parts"][0]["functionResponse"];
        assert_eq!((response["name"].as_str(), response.get("id").and_then(Value::as_str)), (Some("read"), id));
    }
    Ok(())
}

/// A block stays in the message that it came in, and no other.
#[test]
fn blocks_go_on_only_in_their_own_message() -> Outcome {
    let part = |words: &str| json!({ "type": "text", "text": format!("{words} {}", text(200)) });
    let tool_use = |id: &str| json!({ "type": "tool_use", "id": id, "name": "read", "input": {} });
    let list = json!([
        { "role": "user", "content": [part("a"), part("b"), part("c")] },
        { "role": "assistant", "content": [tool_use("t1"), tool_use("t2")] },
        { "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t1", "content": "1" }, part("d")] },
    ]);
    let mut window = Window::<Loose, _>::open_with(memory(), Episode::new("e", "p").budget(20_000), OneByteAToken)?;
    let spans = window.lanes().import(Anthropic, &list)?.spans;
    window.lanes().work.push(NewSpan::tool("read", "2").answers("t2"))?;
    window.lanes().externalize().wait()?.work.evict(spans[1]).wait()?;
    let sent = window.render_for(Anthropic)?.to_value();
    wire::validate(Anthropic, &sent)?;
    let list = sent["messages"].as_array().ok_or("no list")?;
    assert_eq!(list[0]["content"], json!([part("a")]));
    assert_eq!(list[2]["content"], json!([part("c")]));
    assert_eq!(list[4]["content"].as_array().map(Vec::len), Some(2));
    assert_eq!(list[5]["content"], json!([part("d")]));
    Ok(())
}

/// System text of which a part left is still the system's.
#[test]
fn the_rest_of_a_system_message_is_no_words_of_the_user() -> Outcome {
    fn rest<F: Format>(format: F, list: &Value, part: &Value) -> Outcome {
        let mut window = Window::<Loose, _>::open_with(memory(), Episode::new("e", "p").budget(20_000), OneByteAToken)?;
        let spans = window.lanes().import(format, list)?.spans;
        window.lanes().externalize().wait()?.work.evict(spans[1]).wait()?;
        let sent = window.render_for(format)?.to_value();
        wire::validate(format, &sent)?;
        let list = sent.get("messages").or_else(|| sent.get("input")).and_then(Value::as_array).ok_or("no list")?;
        assert_eq!(list.last(), Some(&json!({ "role": "system", "content": [part] })), "{sent}");
        Ok(())
    }
    let [first, second] = ["text", "input_text"].map(|kind| json!({ "type": kind, "text": text(200) }));
    for role in ["system", "developer"] {
        rest(OpenAiChat, &json!([user("u"), { "role": role, "content": [first, first] }]), &first)?;
        rest(OpenAiResponses, &json!([user("u"), { "role": role, "content": [second, second] }]), &second)?;
    }
    rest(Anthropic, &json!([user("u"), { "role": "system", "content": [first, first] }]), &first)
}

/// Most agents hold their messages in a list: the whole of it again is refused, and a message like one before is not.
#[test]
fn the_whole_history_twice_is_refused() -> Outcome {
    let history = json!([user("u"), calls(&["c1"]), result("c1", "short")]);
    let mut window = window(20_000)?;
    let spans = window.lanes().import(OpenAiChat, &history)?.spans;
    let again = window.lanes().import(OpenAiChat, &history);
    assert!(matches!(again, Err(ImportError::Again { index: 0, span }) if span == spans[0]));
    let lanes = window.lanes().externalize().wait()?;
    drop(lanes.work.evict(spans[1]).wait()?);
    assert!(matches!(window.lanes().import(OpenAiChat, &history), Err(ImportError::Again { .. })));
    assert_eq!(window.lanes().import(OpenAiChat, &json!([user("u")]))?.spans.len(), 1);
    assert_eq!(window.lanes().import(OpenAiChat, &json!([user("u"), user("v")]))?.spans.len(), 2);
    Ok(())
}

/// What another provider calls a message is told, and an answer is one also where it was trimmed.
#[test]
fn messages_of_another_format_are_refused_and_trimmed_answers_are_answers() -> Outcome {
    let mut window = window(20_000)?;
    let of_chat = calls(&["c1"]);
    let refused = |error: &ImportError| error.to_string().contains("OpenAI Chat");
    assert!(window.lanes().import(Anthropic, &of_chat).is_err_and(|error| refused(&error)));
    let of_anthropic =
        json!({ "role": "user", "content": [{ "type": "tool_result", "tool_use_id": "t", "content": "a" }] });
    let error = window.lanes().import(OpenAiChat, &of_anthropic).map(drop).unwrap_err();
    assert!(error.to_string().contains("Anthropic"), "{error}");
    let answer = json!({ "id": "m", "type": "message", "role": "assistant", "stop_reason": "end_turn",
        "content": [{ "type": "text", "text": "a" }] });
    let _ = window.lanes().import(Anthropic, &answer)?;
    let sent = json!([{ "role": "assistant", "content": [{ "type": "text", "text": "a" }] }]);
    assert_eq!(window.render_for(Anthropic)?.to_value()["messages"], sent);
    Ok(())
}

/// A result without its call is text where the provider would refuse it, and stays as it was where its call can be elsewhere.
#[test]
fn an_orphan_is_text_except_where_its_call_can_be_with_the_provider() -> Outcome {
    let mut window = window(20_000)?;
    let imported = window.lanes().import(OpenAiChat, &json!([user("u"), result("c9", "short")]))?;
    assert_eq!(imported.orphans, imported.spans[1..]);
    let sent = request(OpenAiChat, &window)?;
    assert_eq!(sent["messages"][1], user("[a result of unknown]\nshort"));

    let list = json!([{ "type": "function_call_output", "call_id": "c9", "output": "short" }]);
    let body = json!({ "previous_response_id": "resp_1", "input": list });
    let mut window = self::window(20_000)?;
    let imported = window.lanes().import(OpenAiResponses, &body)?;
    assert_eq!((imported.elsewhere, imported.orphans.len()), (Some("previous_response_id"), 1));
    assert_eq!(window.render_for(OpenAiResponses)?.to_value()["input"], list);
    Ok(())
}

/// What stands beside a list of blocks is in no text, so it is not to be long.
#[test]
fn a_message_that_says_more_beside_its_blocks_is_refused() -> Outcome {
    let message = |more: usize| {
        let blocks = json!([{ "type": "text", "text": "u" }]);
        json!([{ "role": "user", "content": blocks, "more": text(more) }])
    };
    let mut window = window(20_000)?;
    assert!(matches!(window.lanes().import(OpenAiChat, &message(300)), Err(ImportError::Message { index: 0, .. })));
    assert!(window.render().is_empty());
    assert_eq!(window.lanes().import(OpenAiChat, &message(100))?.spans.len(), 1);
    Ok(())
}
