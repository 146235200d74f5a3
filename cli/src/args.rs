//! The command line: always `keepspan COMMAND FILE WHAT`.

use std::path::PathBuf;

use clap::{
    Args, Parser, Subcommand, ValueEnum,
    builder::{PossibleValuesParser, TypedValueParser as _, styling::Styles},
};
use keepspan::SpanId;
use keepspan_sessions::Format;

use crate::store::{Place, Source};

const STYLES: Styles = Styles::plain().header(clap::builder::styling::Style::new().bold());

const EXIT_CODES: &str = "\
Exit codes: 0 fine; 1 a fault was found: a changed record or text; 2 the command line is wrong, or names what is not \
there; 3 the store, or the session, cannot be read.

Nothing is ever written to a store; `replay --store` makes a new one, and `migrate` makes tables.";

/// Answers what an agent knew: reads a keepspan store, or the recorded session of any agent.
#[derive(Parser, Debug)]
#[command(name = "keepspan", version, styles = STYLES, after_help = EXIT_CODES, max_term_width = 110)]
#[command(disable_help_subcommand = true)]
pub struct Cli {
    /// Print JSON, for programs
    #[arg(long, global = true)]
    pub json: bool,
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// List the episodes of a store
    #[command(after_help = "Example: keepspan episodes run.db")]
    Episodes {
        #[command(flatten)]
        place: Place,
    },
    /// List what happened, a line for each log entry
    #[command(after_help = "Example: keepspan log run.db | tail -20")]
    Log {
        #[command(flatten)]
        source: Source,
    },
    /// List what the agent did to the world, and what nobody knows whether it did
    ///
    /// These are the attempts of the episode's own log, as that log knows them: another episode may have settled one that
    /// is uncertain here.
    #[command(after_help = "Example: keepspan actions run.db | grep uncertain")]
    Actions {
        #[command(flatten)]
        source: Source,
    },
    /// Show the window as the model saw it at a turn
    #[command(after_help = "Example: keepspan at run.db 40")]
    At {
        #[command(flatten)]
        source: Source,
        /// The number of the turn: 1 is the model's first
        turn: u64,
        /// Leave out the text
        #[arg(long)]
        no_text: bool,
    },
    /// Show a span: what it is, who said it, where it is now, what it was derived from, its text
    #[command(after_help = "Example: keepspan show run.db s17 --no-text")]
    Show {
        #[command(flatten)]
        source: Source,
        /// The span
        #[arg(value_name = "ID", value_parser = span_id)]
        span: SpanId,
        /// Leave out the text
        #[arg(long)]
        no_text: bool,
    },
    /// Show the record of a span's evictions
    #[command(after_help = "Example: keepspan tombstone run.db s17")]
    Tombstone {
        #[command(flatten)]
        source: Source,
        /// The span
        #[arg(value_name = "ID", value_parser = span_id)]
        span: SpanId,
    },
    /// Write a span's bytes, verified against its SHA-256, to standard output
    #[command(after_help = "Example: keepspan recall run.db s17 > schema.txt")]
    Recall {
        #[command(flatten)]
        source: Source,
        /// The span
        #[arg(value_name = "ID", value_parser = span_id)]
        span: SpanId,
    },
    /// Check every record, every text and every derivation, of all episodes unless one is named
    ///
    /// With `--blobs`, the object store too: objects that nothing names are listed, one that is not there is a fault.
    #[command(after_help = "Example: keepspan verify run.db && echo intact")]
    Verify {
        #[command(flatten)]
        source: Source,
    },
    /// Write every log entry as a line of JSON, of all episodes unless one is named
    #[command(after_help = "Example: keepspan export run.db | jq 'select(.turn == 40)'")]
    Export {
        #[command(flatten)]
        source: Source,
    },
    /// Write a page for the person on call; it holds no text of a span unless asked to
    #[command(after_help = "Example: keepspan report run.db -o run.html")]
    Report {
        #[command(flatten)]
        source: Source,
        /// The HTML file to write
        #[arg(short, long, value_name = "HTML", required_unless_present = "json")]
        output: Option<PathBuf>,
        /// Put the text of spans that left, and of summaries, into it
        #[arg(long)]
        with_text: bool,
    },
    /// Create the tables of a store in a database, or bring them up to date
    ///
    /// Several may do it at once. It takes a role that may create a schema; an agent's role needs less.
    #[command(after_help = "Example: keepspan migrate postgres://owner@db.internal/agents")]
    Migrate {
        #[command(flatten)]
        place: Place,
    },
    /// Show what keepspan would have done with a recorded session of any agent
    ///
    /// Every entry goes through a window under the budget. What people and system prompts said never leaves; what tools gave that
    /// change something, and errors, leave last, as pointers; reads and what the model said leave first. A plain pruner
    /// that drops the oldest entries runs beside it. At the end every span that left is recalled and compared with the file.
    #[command(after_help = REPLAY)]
    Replay(ReplayArgs),
}

const REPLAY: &str = "\
Examples:
  keepspan replay ~/.claude/projects/x/session.jsonl --budget 60000
  keepspan replay results.json --only 15 --json | jq .total.repeated
  keepspan replay session.jsonl -o session.html --store session.db
  keepspan replay session.jsonl --script prune.jsonl      # lines as {\"after\": 12, \"evict\": [\"s3\"]}";

/// What `replay` takes.
#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// Recorded sessions
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// How the files record sessions; told by their beginning otherwise
    #[arg(long, value_name = "NAME", value_parser = PossibleValuesParser::new(Format::ALL.iter().map(|format| format.name())).try_map(|name| name.parse::<Format>()))]
    pub format: Option<Format>,
    /// What a request may take, in tokens
    #[arg(long, value_name = "TOKENS", default_value_t = 32_000)]
    pub budget: u64,
    /// From where pruning is due, and down to where it goes; five sixths of the budget otherwise
    #[arg(long, value_name = "TOKENS")]
    pub trigger: Option<u64>,
    /// The newest tokens, which a model's answer may not take
    #[arg(long, value_name = "TOKENS")]
    pub keep: Option<u64>,
    /// What is in every request beside the session: tool definitions, a prompt that the file lacks
    #[arg(long, value_name = "TOKENS")]
    pub fixed: Option<u64>,
    /// How tokens are counted
    #[arg(long, value_enum, default_value_t = Tokens::Bytes)]
    pub tokens: Tokens,
    /// What leaves first when no model decides
    #[arg(long, value_enum, default_value_t = Policy::Oldest)]
    pub policy: Policy,
    /// What a scripted model asks to evict, as JSON lines
    #[arg(long, value_name = "FILE")]
    pub script: Option<PathBuf>,
    /// Keep the store in this new file
    #[arg(long, value_name = "FILE")]
    pub store: Option<PathBuf>,
    /// The one conversation to replay, by its name or its number in the file
    #[arg(long, value_name = "NAME")]
    pub only: Option<String>,
    /// The HTML file to write a page to
    #[arg(short, long, value_name = "HTML")]
    pub output: Option<PathBuf>,
}

/// Token counters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Tokens {
    /// An estimate from the bytes
    Bytes,
    /// The tokenizer of GPT-4o and later
    O200k,
    /// The tokenizer of GPT-4
    Cl100k,
}

/// Fallbacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Policy {
    /// The oldest spans
    Oldest,
    /// The largest results of tools
    Largest,
    /// Reads that were made again since
    Superseded,
}

/// An id as a person writes it: `s17`, `S17`, `17`.
fn span_id(text: &str) -> Result<SpanId, String> {
    let id = SpanId::parse(text).or_else(|| SpanId::parse(&format!("s{text}")));
    id.ok_or_else(|| "an id is written `s17`".to_owned())
}
