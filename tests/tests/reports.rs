//! Faults that users of other agents reported, as small inputs with the right outcome.

use keepspan::{
    Episode, Finish, ModelAnswer, NewSpan, Origin, PushError, Role, SelectionError, Shown, SpanId, SummarizeError,
    SummaryText, Window, store::MemoryStore,
};
use keepspan_tests::{Agent, FourBytes, memory};

type Outcome = Result<(), Box<dyn std::error::Error>>;
type Memory = std::sync::Arc<MemoryStore>;

fn window(budget: u64) -> Result<Window<Agent, Memory>, keepspan::OpenError> {
    Window::open_with(memory(), Episode::new("e", "p").budget(budget), FourBytes)
}

fn summary(text: &str) -> Result<SummaryText, keepspan::SummaryTextError> {
    ModelAnswer::new(Finish::Stop, text).try_into()
}

/// Oldest first, whatever may leave, until the window fits.
fn compact(window: &mut Window<Agent, Memory>, budget: u64) -> Outcome {
    let lanes = window.lanes().externalize().wait()?;
    for span in lanes.work.resident() {
        if lanes.utilization() <= budget {
            break;
        }
        lanes.work.evict(span).wait()?;
    }
    Ok(())
}

fn texts(window: &Window<Agent, Memory>) -> Vec<String> {
    window.render().iter().filter_map(|message| message.content().as_text().map(str::to_owned)).collect()
}

/// The database that is safe is named early; a compaction later, another one is truncated.
#[test]
fn which_database_is_safe_survives_every_compaction() -> Outcome {
    let mut window = window(16_000)?;
    let fact = "target=db-local, a throw-away database";
    let id = window.lanes().schema.push(fact)?;
    for turn in 0..40 {
        window.lanes().work.push(format!("{turn} {}", "x".repeat(3_600)))?;
        compact(&mut window, 12_000)?;
    }
    assert_eq!(texts(&window).first().map(String::as_str), Some(fact));
    assert_eq!(window.recall(id).wait()?.content().as_text(), Some(fact));
    Ok(())
}

/// House rules are part of what gets summarized away; the question itself is trimmed.
#[test]
fn rules_and_the_live_question_stay_word_for_word_and_in_order() -> Outcome {
    let mut window = window(4_000)?;
    let lanes = window.lanes();
    let kept = ["no co-author trailer", "tracker items as a table", "do B, not A"];
    for rule in kept {
        lanes.rules.push(NewSpan::human(rule))?;
    }
    for turn in 0..18 {
        lanes.work.push(format!("{turn} {}", "x".repeat(2_000)))?;
    }
    compact(&mut window, 1_000)?;
    assert_eq!(&texts(&window)[..3], kept);
    Ok(())
}

/// Stubs that say "run the tool again" make the model do so; stubs without a handle are a dead end.
#[test]
fn a_pointer_says_what_was_there_how_to_recall_it_and_nothing_else() -> Outcome {
    let mut window = window(9_000)?;
    let lanes = window.lanes();
    let read = "fn main() {}\n".repeat(400);
    let id = lanes.schema.push(NewSpan::tool("describe_table", read.as_str()))?;
    for _ in 0..5 {
        window.lanes().externalize().wait()?.schema.evict(id).wait()?;
        let [line] = texts(&window).try_into().map_err(|_| "one line")?;
        assert!(line.starts_with("[s1 schema from describe_table: 1300 tokens"), "{line}");
        assert!(line.contains("recall s1") && !line.contains("again") && !line.contains("run"), "{line}");
        assert!(window.utilization() < 40, "{}", window.utilization());
        assert_eq!(window.lanes().schema.restore(id).wait()?, [id]);
        assert_eq!(texts(&window), [read.as_str()]);
    }
    Ok(())
}

/// A provider's error text, an empty answer, a cut-off one: each once replaced a whole history.
#[test]
fn a_failed_summary_replaces_nothing() -> Outcome {
    let mut window = window(100_000)?;
    let lanes = window.lanes();
    let ids = (0..195).map(|n| lanes.work.push(format!("turn {n}"))).collect::<Result<Vec<_>, _>>()?;
    let before = texts(&window);
    for (finish, text) in [
        (Finish::Failed, "Error: rate limited"),
        (Finish::Stop, ""),
        (Finish::Length, "the agent then"),
        (Finish::ToolCall, ""),
        (Finish::ReasoningOnly, "hmm"),
    ] {
        assert!(SummaryText::try_from(ModelAnswer::new(finish, text)).is_err());
    }
    assert_eq!(texts(&window), before);
    assert_eq!(ids.len(), before.len());
    Ok(())
}

/// Eight exact values stated early; three passes of a summarizer that replaces values by their labels.
#[test]
fn exact_values_are_resolvable_through_provenance_after_three_passes() -> Outcome {
    let mut window = window(100_000)?;
    let mut stated = Vec::new();
    let mut summaries = Vec::new();
    for pass in 0..3 {
        let lanes = window.lanes();
        let mut sources = Vec::new();
        for n in 0..8 {
            let fact = format!("the limit of {pass}-{n} is {}; {}", 7_919 * (n + 1), "filler ".repeat(20));
            sources.push(lanes.work.push(fact.as_str())?);
            stated.push(fact);
        }
        let lanes = lanes.externalize().wait()?;
        summaries.push(lanes.work.summarize(sources, summary("limits were set")?, &lanes.recap).wait()?);
    }
    let mut found = Vec::new();
    for id in summaries {
        let derivation = window.derivation(id).ok_or("a summary has sources")?;
        assert_eq!(derivation.depth(), 1);
        for source in derivation.sources() {
            found.extend(window.recall(*source).wait()?.content().as_text().map(str::to_owned));
        }
    }
    assert_eq!(found, stated);
    Ok(())
}

/// A source counted in two summaries compounds with every pass.
#[test]
fn no_span_is_covered_by_two_summaries() -> Outcome {
    let mut window = window(100_000)?;
    let lanes = window.lanes();
    let id = lanes.work.push("x".repeat(2_000))?;
    let lanes = lanes.externalize().wait()?;
    lanes.work.summarize(id, summary("x")?, &lanes.recap).wait()?;
    let again = lanes.work.summarize(id, summary("x")?, &lanes.recap).wait();
    assert!(matches!(again, Err(SummarizeError::Selection(SelectionError::Replaced { span })) if span == id));
    Ok(())
}

/// A background notice in a user-role message was taken for the user's consent.
#[test]
fn a_notice_under_the_user_role_is_no_statement_of_a_person() -> Outcome {
    let mut window = window(1_000)?;
    window.lanes().work.push(NewSpan::notice("background task done").role(Role::User))?;
    let message = window.render().pop().ok_or("one message")?;
    assert_eq!((message.role(), message.origin()), (Role::User, Origin::Notice));
    Ok(())
}

/// A prompt larger than the window: trimming it to nothing was called a success.
#[test]
fn what_cannot_fit_is_refused_and_what_is_there_stays() -> Outcome {
    let mut window = window(4_000)?;
    let lanes = window.lanes();
    lanes.rules.push("rule")?;
    let refused = lanes.rules.push("x".repeat(36_000));
    assert!(matches!(refused, Err(PushError::LargerThanBudget { tokens: 9_000, budget: 4_000, .. })));
    assert_eq!(texts(&window), ["rule"]);
    Ok(())
}

/// Narration without its evidence: the call was removed and nothing was left in its place.
#[test]
fn whatever_leaves_leaves_something_in_its_place() -> Outcome {
    let mut window = window(1_000)?;
    let lanes = window.lanes();
    let said = lanes.rules.push(NewSpan::model("created the ticket"))?;
    let call = lanes.work.push(NewSpan::tool("create_ticket", "id 7".repeat(50)))?;
    lanes.externalize().wait()?.work.evict(call).wait()?;
    let shown: Vec<_> = window.render().iter().map(|message| message.shown()).collect();
    assert_eq!(shown, [Shown::Span(said), Shown::Pointer(call, call)]);
    Ok(())
}

/// Ids as models write them.
#[test]
fn ids_are_read_in_either_case_and_nothing_else_is() {
    assert_eq!(SpanId::parse("S3"), SpanId::parse("s3"));
    assert_eq!(SpanId::parse("3"), None);
}
