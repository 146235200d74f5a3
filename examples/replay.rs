//! Replays a recorded conversation through keepspan under a token budget.
//!
//! `cargo run --example replay -- FILE` reads OpenAI Chat messages: an array, JSON lines, or any record that carries a
//! `messages` or `traj` list. Every message enters by the routing declared on [`Conversation`]; when the window is over
//! `--budget`, the oldest evictable spans leave to pointers, with no model asked. At the end every evicted span is
//! recalled from the store and compared byte for byte with the file.
//!
//! Exit code: 0 all recalled, 1 something came back changed, 2 usage, input or I/O error.

use std::{
    fs,
    io::{IsTerminal as _, Write as _},
    path::PathBuf,
    process::ExitCode,
};

use anyhow::{Context as _, Result, bail};
use clap::Parser;
use keepspan::{ContextState, Episode, NewSpan, Role, SpanId, Spans, Window, store::EmbeddedStore};
use serde_json::Value;

/// What a conversation holds, and what of it may leave.
#[derive(ContextState)]
struct Conversation {
    #[instruction(roles("system", "user"))]
    asked: Spans,
    #[negative_result(on_error)]
    failed: Spans,
    #[evictable(otherwise)]
    work: Spans,
}

/// Replays recorded OpenAI Chat messages under a token budget and proves that nothing was lost.
#[derive(Parser)]
struct Args {
    /// An array of messages, JSON lines, or records with a `messages` or `traj` list
    file: PathBuf,
    /// The tokens that the window may take (four bytes a token)
    #[arg(long, default_value_t = 4_000)]
    budget: u64,
    /// Keep the store in this file; it must not exist yet
    #[arg(long)]
    store: Option<PathBuf>,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

/// What one conversation came to.
#[derive(Default)]
struct Tally {
    spans: usize,
    blank: usize,
    evicted: usize,
    recalled_bytes: usize,
    changed: usize,
    tokens: u64,
    peak: u64,
    over: u64,
}

fn run(args: &Args) -> Result<bool> {
    let text = fs::read_to_string(&args.file).with_context(|| args.file.display().to_string())?;
    let conversations = conversations(&text)?;
    if conversations.is_empty() {
        bail!("{}: no list of chat messages found: expected an array, or `messages` or `traj`", args.file.display());
    }
    let scratch = tempfile::tempdir()?;
    let path = args.store.clone().unwrap_or_else(|| scratch.path().join("replay.db"));
    let store = std::sync::Arc::new(keepspan::store::open(&path)?);
    println!("{}: {} conversations, budget {} tokens", args.file.display(), conversations.len(), args.budget);
    println!(
        "{:>5} {:>6} {:>8} {:>8} {:>8} {:>8} {:>10}",
        "no.", "spans", "tokens", "peak", "now", "evicted", "recalled"
    );
    let mut changed = 0_usize;
    for (at, messages) in conversations.iter().enumerate() {
        progress(at, conversations.len());
        let (tally, now) = replay(&store, at, messages, args.budget).with_context(|| format!("conversation {at}"))?;
        changed = changed.saturating_add(tally.changed);
        show(at, &tally, now);
    }
    println!(
        "{}",
        if changed == 0 { "every evicted span came back byte for byte" } else { "SOME SPANS CAME BACK CHANGED" }
    );
    Ok(changed == 0)
}

fn show(at: usize, tally: &Tally, now: u64) {
    let Tally { spans, tokens, peak, evicted, recalled_bytes, .. } = tally;
    print!("{at:>5} {spans:>6} {tokens:>8} {peak:>8} {now:>8} {evicted:>8} {recalled_bytes:>8} B");
    if tally.over > 0 {
        print!("  {} tokens over: what is left is protected, and stays", tally.over);
    }
    if tally.blank > 0 {
        print!("  ({} messages without content left out)", tally.blank);
    }
    println!();
}

fn progress(at: usize, all: usize) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{}/{all}\r", at.saturating_add(1));
        let _ = std::io::stderr().flush();
    }
}

type Store = std::sync::Arc<EmbeddedStore>;

fn replay(store: &Store, at: usize, messages: &[Value], budget: u64) -> Result<(Tally, u64)> {
    let mut window =
        Window::<Conversation, _>::open(store.clone(), Episode::new(format!("replay-{at}"), "oldest-first"))?;
    let mut pushed: Vec<(SpanId, String)> = Vec::new();
    let mut tally = Tally::default();
    for (index, message) in messages.iter().enumerate() {
        let Some((span, text)) = span(message).with_context(|| format!("message {index}"))? else {
            tally.blank = tally.blank.saturating_add(1);
            continue;
        };
        let before = window.utilization();
        pushed.push((window.lanes().route(span).with_context(|| format!("message {index}"))?, text));
        tally.tokens = tally.tokens.saturating_add(window.utilization().saturating_sub(before));
        tally.peak = tally.peak.max(window.utilization());
        make_room(&mut window, budget)?;
    }
    tally.spans = pushed.len();
    tally.over = window.utilization().saturating_sub(budget);
    prove(&mut window, &pushed, &mut tally)?;
    Ok((tally, window.utilization()))
}

/// Oldest first, and only as much as needed. No model is asked.
fn make_room(window: &mut Window<Conversation, Store>, budget: u64) -> Result<()> {
    if window.utilization() <= budget {
        return Ok(());
    }
    let lanes = window.lanes().externalize().wait()?;
    for oldest in lanes.work.resident() {
        if lanes.utilization() <= budget {
            break;
        }
        lanes.work.evict(oldest).wait()?;
    }
    Ok(())
}

/// Recalls every evicted span and compares it with what the file said.
fn prove(window: &mut Window<Conversation, Store>, pushed: &[(SpanId, String)], tally: &mut Tally) -> Result<()> {
    let evicted = window.lanes().work.evicted();
    tally.evicted = evicted.len();
    for (span, text) in pushed.iter().filter(|(span, _)| evicted.binary_search(span).is_ok()) {
        let recalled = window.recall(*span).wait()?;
        if recalled.content().as_text() == Some(text) {
            tally.recalled_bytes = tally.recalled_bytes.saturating_add(text.len());
        } else {
            eprintln!("{span} came back changed");
            tally.changed = tally.changed.saturating_add(1);
        }
    }
    Ok(())
}

/// A chat message as a span with its text; `None` when it has neither content nor calls.
fn span(message: &Value) -> Result<Option<(NewSpan, String)>> {
    let text = text(message);
    if text.is_empty() {
        return Ok(None);
    }
    let role = message.get("role").and_then(Value::as_str).unwrap_or_default();
    let name = message.get("name").and_then(Value::as_str).unwrap_or("tool");
    let span = match role {
        "system" | "developer" => NewSpan::notice(text.as_str()),
        "user" => NewSpan::human(text.as_str()),
        "assistant" => NewSpan::model(text.as_str()),
        // tau-bench marks a failed call in its text alone.
        "tool" | "function" if text.starts_with("Error") => NewSpan::tool(name, text.as_str()).failed(),
        "tool" | "function" => NewSpan::tool(name, text.as_str()),
        other => bail!("unknown role `{other}`: expected system, developer, user, assistant, tool or function"),
    };
    Ok(Some((span.role(shown_as(role)), text)))
}

fn shown_as(role: &str) -> Role {
    match role {
        "system" | "developer" => Role::System,
        "user" => Role::User,
        "assistant" => Role::Assistant,
        _ => Role::Tool,
    }
}

/// The content, and the calls as JSON; blocks stay as they are.
fn text(message: &Value) -> String {
    let content = match message.get("content") {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(blocks) => blocks.to_string(),
    };
    match message.get("tool_calls").filter(|calls| !calls.is_null()) {
        Some(calls) if content.is_empty() => calls.to_string(),
        Some(calls) => format!("{content}\n{calls}"),
        None => content,
    }
}

/// Every list of chat messages in a JSON document or in JSON lines.
fn conversations(text: &str) -> Result<Vec<Vec<Value>>> {
    let values = serde_json::Deserializer::from_str(text).into_iter::<Value>();
    let values: Vec<_> = values.collect::<Result<_, _>>().context("not JSON")?;
    let mut found = Vec::new();
    // JSON lines of messages are one such list themselves.
    collect(Value::Array(values), &mut found);
    Ok(found)
}

fn collect(value: Value, found: &mut Vec<Vec<Value>>) {
    match value {
        Value::Array(items) if is_conversation(&items) => found.push(items),
        Value::Array(items) => items.into_iter().for_each(|item| collect(item, found)),
        Value::Object(fields) => fields.into_iter().for_each(|(_, field)| collect(field, found)),
        _ => {}
    }
}

fn is_conversation(items: &[Value]) -> bool {
    !items.is_empty() && items.iter().all(|item| item.get("role").is_some_and(Value::is_string))
}
