//! A store made by the library: one episode with everything in it, and the binary that reads it.

#![allow(dead_code, clippy::indexing_slicing, reason = "no test file needs all of it, and a test may panic")]

use std::{
    path::{Path, PathBuf},
    process::{Command, Output},
};

use keepspan::{
    Advice, ContextState, Episode, Escalation, FellBack, Finish, ModelAnswer, Mutation, NewSpan, OldestFirst,
    Outcome as Applied, PolicyVersion, Selection, SpanId, Spans, SummaryText, Window, store::EmbeddedStore,
    tool::Answer,
};

pub type Outcome<T = ()> = Result<T, Box<dyn std::error::Error>>;

/// Would run, load or break out if anything were not escaped; and would act on a terminal.
pub const HOSTILE: &str =
    "</script><script>window.broken=1</script><img src=x onerror=\"window.broken=1\">'\"&\u{1b}[31m";

/// What a tool gave that is no text.
pub const BYTES: [u8; 4] = [0, 159, 146, 150];

/// In texts of spans only, never in a reason, a lane or a tool's name.
pub const SECRET: &str = "BIGINT NOT NULL";

#[derive(ContextState)]
#[context(budget = 8_000, fixed = 400, trigger = 6_600, index = 400, rationale = 200)]
pub struct Migration {
    #[instruction(roles("system", "user"))]
    rules: Spans,
    #[precondition(tools("describe_table"))]
    pub schema: Spans,
    #[negative_result(on_error)]
    failed: Spans,
    #[evictable(otherwise)]
    pub work: Spans,
    #[rationale]
    decisions: Spans,
    #[derived]
    recap: Spans,
}

/// A folder with one store in it.
pub struct Made {
    pub folder: tempfile::TempDir,
    pub file: PathBuf,
}

impl Made {
    /// Runs `keepspan COMMAND FILE ARGS`.
    pub fn run(&self, command: &str, args: &[&str]) -> Outcome<Ran> {
        keepspan(std::iter::once(command).chain([self.path()]).chain(args.iter().copied()))
    }

    pub fn path(&self) -> &str {
        self.file.to_str().unwrap_or_default()
    }
}

/// What the binary did.
#[derive(Debug)]
pub struct Ran {
    pub code: Option<i32>,
    pub out: String,
    pub bytes: Vec<u8>,
    pub err: String,
}

impl Ran {
    /// Each line as JSON.
    pub fn json(&self) -> Outcome<Vec<serde_json::Value>> {
        Ok(self.out.lines().map(serde_json::from_str).collect::<Result<_, _>>()?)
    }
}

impl From<Output> for Ran {
    fn from(output: Output) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self { code: output.status.code(), out: text(&output.stdout), err: text(&output.stderr), bytes: output.stdout }
    }
}

pub fn binary() -> Command {
    Command::new(env!("CARGO_BIN_EXE_keepspan"))
}

pub fn keepspan<'a>(args: impl IntoIterator<Item = &'a str>) -> Outcome<Ran> {
    Ok(binary().args(args).output()?.into())
}

type Agent = Window<Migration, EmbeddedStore>;

/// One finished episode, `migrate-42`.
pub fn made() -> Outcome<Made> {
    named("migrate-42")
}

/// The same under another name.
pub fn named(name: &str) -> Outcome<Made> {
    let made = empty()?;
    episode(&made.file, name)?;
    Ok(made)
}

/// A store without an episode.
pub fn empty() -> Outcome<Made> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("run.db");
    drop(keepspan::store::open(&file)?);
    Ok(Made { folder, file })
}

/// Two episodes in one store.
pub fn made_twice() -> Outcome<Made> {
    let made = empty()?;
    for name in ["migrate-42", "migrate-43"] {
        episode(&made.file, name)?;
    }
    Ok(made)
}

/// Twenty-eight turns: a table is read, files are read, a model prunes, a fallback frees, spans come back, are summarized,
/// summarized again and brought back, one is discarded and one redacted, the policy changes, and the process is killed
/// with a span that no commit has.
pub fn episode(file: &Path, name: &str) -> Outcome {
    let under = |policy: &str| Episode::new(name, PolicyVersion::new(policy).model("opus-5")).trust_estimates();
    let mut window = Window::<Migration, _>::open(keepspan::store::open(file)?, under("2026-11"))?;
    window.lanes().route(NewSpan::notice("Migrate the database. Never touch production."))?;
    window.lanes().route(NewSpan::human("Add an index on users.email."))?;
    turn(&mut window, 1, "describe_table", &format!("users.id {SECRET}, users.email TEXT"))?;
    for number in 2..20 {
        turn(&mut window, number, "read_file", &source(number))?;
        prune(&mut window)?;
    }
    evict_and_restore(&mut window)?;
    window.change_policy(PolicyVersion::new("2026-12").model("opus-5")).wait()?;
    summaries(&mut window)?;
    window.lanes().work.push("lost with the process")?;
    let secret = window.lanes().work.push("password=hunter2 in .env, read by mistake")?;
    let discard = Mutation::new(format!("a password {HOSTILE}"), "ask the vault for a new one")?;
    window.lanes().work.discard(secret, discard).wait()?;
    drop(window);
    let mut window = Window::<Migration, _>::resume(keepspan::store::open(file)?, under("2026-12"))?;
    let key = window.lanes().work.push(format!("key=0123456789abcdef in the log of the build of {name}"))?;
    let redact = Mutation::new("a key of the build", "none is needed")?;
    window.lanes().externalize().wait()?.work.redact(key, redact).wait()?;
    for number in 20..28 {
        turn(&mut window, number, "read_file", &source(number))?;
    }
    turn(&mut window, 28, HOSTILE, HOSTILE)?;
    window.lanes().route(NewSpan::tool("screenshot", BYTES.to_vec()))?;
    fall_back(&mut window)?;
    drop(window.lanes().externalize().wait()?);
    Ok(())
}

/// A turn that calls a tool and has its result; the result's id.
fn turn(window: &mut Agent, number: u64, tool: &str, result: &str) -> Outcome<SpanId> {
    let lanes = window.lanes();
    let call = format!("c{number}");
    lanes.route(NewSpan::model(format!("Turn {number}: {{\"call\":\"{tool}\"}}")).calls([call.as_str()]))?;
    let result = lanes.route(NewSpan::tool(tool, result).answers(call))?;
    drop(lanes.externalize().wait()?);
    Ok(result)
}

fn source(number: u64) -> String {
    format!("// file {number}, users.id {SECRET}\n{}", "let x = 1;\n".repeat(150))
}

/// Asks a scripted model when pruning is due: its first answer names what is not there, its second the oldest spans.
fn prune(window: &mut Agent) -> Outcome {
    let lanes = window.lanes().externalize().wait()?;
    if !matches!(lanes.advice(), Advice::Prune(_)) {
        return Ok(());
    }
    let pass = lanes.admit().map_err(|refusal| refusal.to_string())?;
    let offered: Vec<_> = pass.index().offers().iter().map(|offer| offer.span().to_string()).collect();
    let answer = Answer::prune(offered.into_iter().take(8)).with_rationale("They were read again later.").spent(60);
    assert!(pass.parse(&Answer::prune(["s9999"]).spent(40)).is_err());
    let proposal = pass.parse(&answer)?;
    match pass.apply(proposal).wait()? {
        Applied::Pruned(_) => Ok(()),
        Applied::Unchanged => Err("the pass changed nothing".into()),
    }
}

fn evict_and_restore(window: &mut Agent) -> Outcome {
    let lanes = window.lanes();
    let column = lanes.schema.push(format!("orders.id {SECRET}"))?;
    let lanes = lanes.externalize().wait()?;
    lanes.schema.evict(Selection::from(column).scored(0.5)).wait()?;
    let back = lanes.work.evicted().into_iter().next().ok_or("something was evicted")?;
    lanes.work.restore(back).wait()?;
    Ok(())
}

fn summaries(window: &mut Agent) -> Outcome {
    let lanes = window.lanes();
    let mut notes = Vec::new();
    for number in 0..30 {
        notes
            .push(lanes.work.push(format!("Plan {number}: {}", "check the index, then the foreign keys. ".repeat(4)))?);
    }
    let lanes = lanes.externalize().wait()?;
    let (some, rest) = notes.split_at(20);
    let first = lanes.work.summarize(some.to_vec(), summary("Plans 0 to 19 check indices.")?, &lanes.recap).wait()?;
    let second = lanes.work.summarize(rest.to_vec(), summary("Plans 20 to 29 as well.")?, &lanes.recap).wait()?;
    let reason = Escalation::because(format!("the window was full {HOSTILE}"))?;
    lanes.recap.escalate([first, second], summary("All plans.")?, reason).wait()?;
    let lanes = window.lanes();
    let alone = lanes.work.push(format!("One more plan. {}", "Look at the triggers. ".repeat(20)))?;
    let lanes = lanes.externalize().wait()?;
    let third = lanes.work.summarize(alone, summary("Triggers.")?, &lanes.recap).wait()?;
    lanes.recap.reground(third).wait()?;
    Ok(())
}

fn summary(text: &str) -> Outcome<SummaryText> {
    Ok(SummaryText::try_from(ModelAnswer::new(Finish::Stop, text))?)
}

/// The window is too full to ask a model, so the program frees space without it.
fn fall_back(window: &mut Agent) -> Outcome {
    let Err(refusal) = window.lanes().externalize().wait()?.admit() else { return Err("it is over budget".into()) };
    match refusal.fall_back(OldestFirst).wait()? {
        FellBack::Freed(_) => Ok(()),
        other => Err(format!("nothing was freed: {other:?}").into()),
    }
}

/// Changes one byte wherever the file holds `text`: the engine leaves old copies of its pages.
pub fn flip(file: &Path, text: &[u8]) -> Outcome {
    let mut bytes = std::fs::read(file)?;
    let found = bytes.windows(text.len()).enumerate().filter(|(_, window)| *window == text);
    let places: Vec<_> = found.map(|(at, _)| at).collect();
    assert!(!places.is_empty(), "the text is in the file");
    for at in places {
        bytes[at] ^= 1;
    }
    Ok(std::fs::write(file, bytes)?)
}
