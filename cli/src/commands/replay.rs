//! `replay`: a recorded session through keepspan.

use std::{
    collections::HashSet,
    fs::{self, File},
    io::{self, BufRead, BufReader, Cursor, Read as _},
    path::Path,
    sync::Arc,
};

use indicatif::{ProgressBar, ProgressStyle};
use keepspan::{Budget, ByteEstimate, Limits, TokenCounter, store::Store};
use keepspan_sessions::{Format, Report};

use super::report::replaces_no;
use crate::{
    args::{ReplayArgs, Tokens},
    failure::Failure,
    output::Output,
    replay::{
        self, Replay, Scratch, Settings,
        outcome::{Import, Outcome, Replayed, Told},
        script, table,
    },
    report::{self, story::number},
    words::{line, several},
};

/// Bytes from which a bar shows how far it is.
const LONG: u64 = 8 << 20;
/// Bytes from which what leaves goes to a file and not into memory.
const LARGE: u64 = 64 << 20;
/// Bytes that the format is told from.
const HEAD: u64 = 64 << 10;

/// Replays each file; a span that came back changed is a fault.
pub fn replay(args: &ReplayArgs, out: &mut Output) -> Result<(), Failure> {
    let settings = settings(args)?;
    if let Some(path) = &args.output {
        let read = args.files.iter().chain(&args.script).chain(&args.store);
        replaces_no(path, &read.map(AsRef::as_ref).collect::<Vec<_>>())?;
    }
    let kept = args.store.as_deref().map(new_store).transpose()?;
    let mut all = Vec::with_capacity(args.files.len());
    let mut names = HashSet::new();
    for file in &args.files {
        if kept.is_none() {
            names.clear();
        }
        let replayed = one(file, args, &settings, kept.clone(), &mut names)?;
        if out.is_json() {
            out.value(&replayed)?
        } else {
            table::told(&replayed, out)?
        }
        all.push(replayed);
    }
    if let Some(path) = &args.output {
        fs::write(path, report::replayed(&all))
            .map_err(|source| Failure::Write { name: path.display().to_string(), source })?;
    }
    match all.iter().fold(0_u64, |sum, replayed| sum.saturating_add(replayed.total.keepspan.changed)) {
        0 => Ok(()),
        changed => Err(Failure::Faulty(format!("{} came back changed", several(changed, "span")))),
    }
}

fn settings(args: &ReplayArgs) -> Result<Settings, Failure> {
    let set = |limits: Limits, tokens: Option<u64>, key: fn(Limits, u64) -> Limits| match tokens {
        Some(tokens) => key(limits, tokens),
        None => limits,
    };
    let limits = set(Limits::of(args.budget), args.trigger, Limits::trigger);
    let limits = set(set(limits, args.keep, Limits::keep), args.fixed, Limits::fixed);
    let budget = Budget::new(limits).map_err(|error| Failure::Usage(error.to_string()))?;
    let script = args.script.as_deref().map(script::read).transpose()?.unwrap_or_default();
    Ok(Settings {
        limits,
        budget,
        counter: counter(args.tokens)?,
        policy: args.policy,
        script,
        only: args.only.clone(),
    })
}

fn counter(tokens: Tokens) -> Result<Arc<dyn TokenCounter>, Failure> {
    match tokens {
        Tokens::Bytes => Ok(Arc::new(ByteEstimate)),
        #[cfg(feature = "tiktoken")]
        Tokens::O200k => Ok(Arc::new(keepspan::O200k)),
        #[cfg(feature = "tiktoken")]
        Tokens::Cl100k => Ok(Arc::new(keepspan::Cl100k)),
        #[cfg(not(feature = "tiktoken"))]
        _ => Err(Failure::Usage("this tool was built without the feature `tiktoken`: use `--tokens bytes`".to_owned())),
    }
}

fn new_store(path: &Path) -> Result<Arc<dyn Store>, Failure> {
    if path.exists() {
        let name = path.display();
        return Err(Failure::Usage(format!("{name} is there already: name a new file for the store")));
    }
    Ok(Arc::new(keepspan::store::open(path)?))
}

fn one(
    file: &Path,
    args: &ReplayArgs,
    settings: &Settings,
    kept: Option<Arc<dyn Store>>,
    names: &mut HashSet<String>,
) -> Result<Replayed, Failure> {
    let unreadable = |why: String| Failure::Session { file: file.to_path_buf(), why };
    let Opened { length, format, input, bar } = opened(file, args.format)?;
    let (store, is_kept) = match kept {
        Some(store) => (Some(store), true),
        None if length > LARGE => {
            let scratch =
                Scratch::new().map_err(|source| Failure::Write { name: "a scratch file".to_owned(), source })?;
            (Some(Arc::new(scratch) as Arc<dyn Store>), false)
        }
        None => (None, false),
    };
    let mut replay = Replay::new(settings, store, is_kept, names);
    let report = replay::read(input, format, settings, |step, hashes| replay.step(step, hashes));
    bar.finish_and_clear();
    let report = report?.map_err(|error| unreadable(error.to_string()))?;
    let conversations = replay.finish()?;
    if conversations.is_empty() {
        let only = args.only.as_deref().unwrap_or_default();
        let there = several(report.conversations, "conversation");
        return Err(Failure::Usage(format!(
            "{}: none of its {there} is `{}`: `keepspan replay` without `--only` lists them",
            file.display(),
            line(only)
        )));
    }
    let mut total = Outcome { name: "all".to_owned(), line: 1, ..Outcome::default() };
    conversations.iter().for_each(|outcome| total.add(outcome));
    let name = file.file_name().map_or_else(|| file.display().to_string(), |name| name.to_string_lossy().into_owned());
    let settings = told(args, settings);
    Ok(Replayed { file: name, format: format.to_string(), settings, total, conversations, import: import(&report) })
}

/// A file to read.
struct Opened {
    /// In bytes.
    length: u64,
    format: Format,
    input: Box<dyn BufRead>,
    bar: ProgressBar,
}

fn opened(file: &Path, format: Option<Format>) -> Result<Opened, Failure> {
    let unreadable = |why: String| Failure::Session { file: file.to_path_buf(), why };
    let failed = |error: io::Error| match error.kind() {
        io::ErrorKind::NotFound => Failure::NoFile(file.to_path_buf()),
        _ => unreadable(error.to_string()),
    };
    let opened = File::open(file).map_err(failed)?;
    let length = opened.metadata().map_err(failed)?.len();
    let bar = bar(file, length);
    let mut input = bar.wrap_read(opened);
    let mut head = Vec::new();
    input.by_ref().take(HEAD).read_to_end(&mut head).map_err(failed)?;
    let name = file.file_name().and_then(|name| name.to_str());
    let format = match format {
        Some(format) => format,
        None => Format::detect(&head, name).map_err(|error| unreadable(error.to_string()))?,
    };
    let rest = BufReader::with_capacity(1 << 18, input);
    Ok(Opened { length, format, input: Box::new(Cursor::new(head).chain(rest)), bar })
}

/// On standard error, and only on a terminal.
fn bar(file: &Path, length: u64) -> ProgressBar {
    if length < LONG {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {bytes}/{total_bytes}, {eta} left") {
        bar.set_style(style);
    }
    bar.with_message(line(&file.display().to_string()).into_owned())
}

fn told(args: &ReplayArgs, settings: &Settings) -> Told {
    let budget = settings.budget;
    Told {
        budget: budget.tokens(),
        trigger: budget.trigger(),
        fixed: budget.fixed(),
        keep: budget.keep(),
        tokens: match args.tokens {
            Tokens::Bytes => "bytes",
            Tokens::O200k => "o200k",
            Tokens::Cl100k => "cl100k",
        },
        policy: replay::name(args.policy),
    }
}

fn import(report: &Report) -> Import {
    let Report { bytes, lines, conversations, entries, calls, results, compactions, .. } = *report;
    let repaired: Vec<_> = report.repaired.iter().map(ToString::to_string).collect();
    debug_assert!(number(repaired.len()) <= report.repair_count());
    let (repairs, left_out) = (report.repairs.clone(), report.left_out.clone());
    Import { bytes, lines, conversations, entries, calls, results, compactions, repaired, repairs, left_out }
}
