//! Standard output: JSON for programs, words for people, colours only where a terminal shows them.

use std::{
    fmt::Display,
    io::{self, BufWriter, IsTerminal as _, StdoutLock, Write},
};

use anstream::{AutoStream, ColorChoice};
use anstyle::{AnsiColor, Style};
use serde::Serialize;

/// What is dim, what stands out, what is wrong.
pub const FAINT: Style = Style::new().dimmed();
pub const STRONG: Style = Style::new().bold();
pub const BAD: Style = AnsiColor::Red.on_default().bold();

/// Standard output.
pub struct Output {
    to: BufWriter<StdoutLock<'static>>,
    json: bool,
    colours: bool,
}

impl Output {
    /// Colours follow the terminal, `NO_COLOR` and `CLICOLOR_FORCE`.
    pub fn new(json: bool) -> Self {
        let stdout = io::stdout();
        let colours = AutoStream::choice(&stdout) != ColorChoice::Never;
        Self { to: BufWriter::new(stdout.lock()), json, colours }
    }

    /// Whether a program reads.
    pub fn is_json(&self) -> bool {
        self.json
    }

    /// Whether a person reads.
    pub fn is_terminal(&self) -> bool {
        io::stdout().is_terminal()
    }

    /// Writes a value as one line of JSON.
    pub fn value(&mut self, value: &impl Serialize) -> io::Result<()> {
        serde_json::to_writer(&mut self.to, value)?;
        self.to.write_all(b"\n")
    }

    /// Writes a line.
    pub fn line(&mut self, line: impl Display) -> io::Result<()> {
        writeln!(self.to, "{line}")
    }

    /// Writes bytes as they are.
    pub fn raw(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.to.write_all(bytes)
    }

    /// Text in a style, where there are colours.
    pub fn paint(&self, style: Style, text: impl Display) -> String {
        if self.colours { format!("{style}{text}{style:#}") } else { text.to_string() }
    }

    /// Writes what is known of one thing, a line a field.
    pub fn fields<'a>(&mut self, fields: impl IntoIterator<Item = (&'a str, String)>) -> io::Result<()> {
        for (name, value) in fields {
            let name = self.paint(FAINT, format_args!("{name:<12}"));
            self.line(format_args!("  {name} {value}"))?;
        }
        Ok(())
    }

    /// Hands everything on. What is not handed on by then is lost with its error.
    pub fn finish(mut self) -> io::Result<()> {
        self.to.flush()
    }
}
