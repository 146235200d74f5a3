//! `keepspan`: answers what an agent knew, from its store. `keepspan --help` lists the commands and the exit codes.

mod args;
mod attempts;
mod commands;
mod failure;
mod output;
mod replay;
mod report;
mod server;
mod store;
mod told;
mod words;

use std::process::ExitCode;

use clap::Parser as _;

use self::{
    args::{Cli, Command},
    failure::Failure,
    output::Output,
};

fn main() -> ExitCode {
    let cli = Cli::parse();
    match run(&cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) if failure.is_closed_pipe() => ExitCode::SUCCESS,
        Err(failure) => {
            use std::io::Write as _;
            // Nobody is left to tell when standard error is closed as well.
            let _ = writeln!(std::io::stderr(), "error: {}", words::line(&failure.to_string()));
            failure.code()
        }
    }
}

fn run(cli: &Cli) -> Result<(), Failure> {
    let mut out = Output::new(cli.json);
    let done = match &cli.command {
        Command::Episodes { place } => commands::episodes(place, &mut out),
        Command::Log { source } => commands::log(source, &mut out),
        Command::Actions { source } => commands::actions(source, &mut out),
        Command::At { source, turn, no_text } => commands::at(source, *turn, *no_text, &mut out),
        Command::Show { source, span, no_text } => commands::show(source, *span, *no_text, &mut out),
        Command::Tombstone { source, span } => commands::tombstone(source, *span, &mut out),
        Command::Recall { source, span } => commands::recall(source, *span, &mut out),
        Command::Verify { source } => commands::verify(source, &mut out),
        Command::Export { source } => commands::export(source, &mut out),
        Command::Report { source, output, with_text } => {
            commands::report(source, output.as_deref(), *with_text, &mut out)
        }
        Command::Migrate { place } => commands::migrate(place, &mut out),
        Command::Replay(args) => commands::replay(args, &mut out),
    };
    // What was found before a fault is told too.
    out.finish()?;
    done
}
