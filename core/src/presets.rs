//! A state struct to begin with, for an agent that has none of its own yet.

use crate::{ContextState, Spans};

/// A conversation of any agent with tools, with routing that is safe where nothing is known of the tools: a place to
/// start from, and to replace.
///
/// | what enters | lane | may it leave? |
/// | --- | --- | --- |
/// | system and human text, images | [`asked`](Self::asked) | never |
/// | results that failed | [`failed`](Self::failed) | as a pointer, by a fallback |
/// | results of tools that only read, by their names | [`read`](Self::read) | yes; a model is offered them |
/// | results of all other tools, and what tools there are | [`told`](Self::told) | as a pointer, by a fallback |
/// | what the model says | [`said`](Self::said) | yes, where it calls no other tools |
/// | summaries | [`recap`](Self::recap) | as a pointer |
///
/// A turn leaves with all its results, and is as protected as the most protected of them (rule R16): so a turn that writes stays
/// longer than one that reads. The names of [`read`](Self::read) are those of common agents, each in full, since a `search_replace`
/// is no search; whatever is not among them is taken for a tool that acts or that tells what later steps depend on. Once you know
/// which of your tools do, write a struct of your own: copy this one, name your tools, and let `cargo check` show every place that
/// evicts what must stay.
///
/// ```
/// use keepspan::{
///     Advice, Episode, Limits, OldestFirst, Window, presets::Conversation, store::MemoryStore, tool::OpenAiChat,
/// };
/// use serde_json::json;
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let episode = Episode::new("run-1", "prompt-1").budget(Limits::of(4_200)).trust_estimates();
/// let mut window = Window::<Conversation, _>::open(MemoryStore::default(), episode)?;
/// let history = json!([
///     { "role": "user", "content": "Which of the logs is the newest? Touch nothing in /var/prod." },
///     { "role": "assistant", "content": null, "tool_calls": [
///         { "id": "c1", "type": "function", "function": { "name": "read_file", "arguments": "{\"path\":\"a.log\"}" } },
///     ] },
///     { "role": "tool", "tool_call_id": "c1", "content": "2026-11-30 12:00:00 started\n".repeat(250) },
///     { "role": "assistant", "content": "a.log. Next?" },
/// ]);
/// let imported = window.lanes().import(OpenAiChat, &history)?;
/// assert_eq!(imported.spans.len(), 4);
///
/// // Over the trigger, and no model is asked: the read leaves, what was asked stays.
/// let lanes = window.lanes().externalize().wait()?;
/// if !matches!(lanes.advice(), Advice::GoOn(_)) {
///     match lanes.admit() {
///         Ok(pass) => pass.fall_back(OldestFirst).wait()?, // or ask a model
///         Err(refusal) => refusal.fall_back(OldestFirst).wait()?,
///     };
/// }
/// let request = window.render_for(OpenAiChat)?;
/// assert!(request.body().contains("Touch nothing in /var/prod."));
/// assert!(!request.body().contains("started"));
/// # Ok(())
/// # }
/// ```
#[derive(ContextState, Debug)]
pub struct Conversation {
    /// What the system prompt and the people say, images too.
    #[instruction(roles("system", "user"))]
    pub asked: Spans,
    /// Results that failed: "X failed because Y".
    #[negative_result(on_error)]
    pub failed: Spans,
    /// Results of tools that only look: files, listings, searches, pages.
    #[evictable(tools(
        "read",
        "read_file",
        "read_files",
        "read_lines",
        "read_many_files",
        "read_multiple_files",
        "read_text_file",
        "ReadFile",
        "Read",
        "NotebookRead",
        "view",
        "view_file",
        "View",
        "open_file",
        "cat",
        "grep",
        "grep_search",
        "Grep",
        "rg",
        "ripgrep",
        "glob",
        "glob_search",
        "file_glob_search",
        "Glob",
        "ls",
        "LS",
        "list_dir",
        "list_directory",
        "list_files",
        "ListDir",
        "find",
        "find_file",
        "find_files",
        "search",
        "search_code",
        "search_dir",
        "search_file",
        "search_file_content",
        "search_files",
        "search_text",
        "codebase_search",
        "semantic_search",
        "web_search",
        "google_web_search",
        "WebSearch",
        "web_fetch",
        "WebFetch",
        "fetch",
        "fetch_url",
        "recall_span"
    ))]
    pub read: Spans,
    /// Results of all other tools.
    #[precondition(roles("tool"))]
    pub told: Spans,
    /// What the model says.
    #[evictable(otherwise)]
    pub said: Spans,
    /// Summaries.
    #[derived]
    pub recap: Spans,
}
