//! The command line: always `keepspan COMMAND FILE WHAT`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, builder::styling::Styles};
use keepspan::SpanId;

const STYLES: Styles = Styles::plain().header(clap::builder::styling::Style::new().bold());

const EXIT_CODES: &str = "\
Exit codes: 0 fine; 1 a fault was found: a changed record or text; 2 the command line is wrong, or names what is not \
there; 3 the store cannot be read.

Nothing is ever written to a store.";

/// Answers what an agent knew: reads a keepspan store.
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

/// The store, in every command.
#[derive(Args, Debug)]
pub struct Source {
    /// The store's file
    pub file: PathBuf,
    /// The episode, where the store has several
    #[arg(short, long, value_name = "NAME")]
    pub episode: Option<String>,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// List the episodes of a store
    #[command(after_help = "Example: keepspan episodes run.db")]
    Episodes {
        /// The store's file
        file: PathBuf,
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
}

/// An id as a person writes it: `s17`, `S17`, `17`.
fn span_id(text: &str) -> Result<SpanId, String> {
    let id = SpanId::parse(text).or_else(|| SpanId::parse(&format!("s{text}")));
    id.ok_or_else(|| "an id is written `s17`".to_owned())
}
