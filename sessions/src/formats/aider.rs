//! aider: the Markdown of its chat history, with many sessions in a file. aider ends what it writes itself with two spaces, and
//! the model does not, which tells the two apart where both write `####` and `>`.
//!
//! SEARCH/REPLACE blocks are the calls of a turn, as one; what aider says next is its result. Other edit formats are text. The
//! commands `/clear` and `/reset` empty the context.

use std::sync::Arc;

use keepspan::Role;
use serde_json::{Value, json};

use super::prose::Adjacent;
use crate::{
    detect::Head,
    error::Fault,
    records::{Record, Source},
    report::RepairKind,
    session::Session,
    step::{CompactionKind, Place},
};

const HEADER: &str = "# aider chat started at ";
/// How aider ends a line of its own.
const BREAK: &str = "  ";

pub(crate) fn looks_like(head: &Head) -> bool {
    head.text.lines().any(|line| line.starts_with(HEADER))
}

pub(crate) fn read(source: &mut Source<'_>, session: &mut Session<'_>) -> Result<(), Fault> {
    let mut chat = Chat::default();
    source.each_text_line(session, |line, place, session| chat.line(line, place, session))?;
    chat.end(session)
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Speaker {
    Person,
    Aider,
    Model,
}

/// What a line is, by its mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Line<'l> {
    /// Marked as this speaker's.
    Of(Speaker, &'l str),
    /// The first of several lines of output, of which only the last ends as aider ends lines.
    Opens(&'l str),
    Unmarked,
}

/// Lines that belong together.
#[derive(Debug)]
struct Block {
    speaker: Speaker,
    text: String,
    place: Place,
    /// Whether lines without a mark go on with it: a code block of the model, or output of several lines.
    open: bool,
}

impl Block {
    fn push(&mut self, line: &str) {
        self.text.push('\n');
        self.text.push_str(line);
    }
}

#[derive(Default)]
struct Chat {
    block: Option<Block>,
    prose: Adjacent,
    /// Whether the session's lines lost their final spaces, by the first of them.
    stripped: Option<bool>,
}

impl Chat {
    fn line(&mut self, line: &str, place: Place, session: &mut Session<'_>) -> Result<(), Fault> {
        let bare = line.strip_suffix('\r').unwrap_or(line);
        if let Some(started) = bare.strip_prefix(HEADER) {
            self.end(session)?;
            *self = Self::default();
            return session.begin(Some(started.trim()), place);
        }
        match self.mark(bare, place, session) {
            Line::Of(speaker, text) => self.add(speaker, text, false, place, session),
            Line::Opens(text) => self.add(Speaker::Aider, text, true, place, session),
            Line::Unmarked => self.unmarked(line, bare, place, session),
        }
    }

    fn mark<'l>(&mut self, line: &'l str, place: Place, session: &mut Session<'_>) -> Line<'l> {
        let of = |mark: &str| {
            let text = line.strip_prefix(mark)?;
            text.strip_prefix(' ').or_else(|| text.is_empty().then_some(text))
        };
        let (speaker, text) = match (of("####"), of(">")) {
            (Some(text), _) => (Speaker::Person, text),
            (_, Some(text)) => (Speaker::Aider, text),
            (None, None) => return Line::Unmarked,
        };
        let broken = line.ends_with(BREAK);
        let before = self.block.as_ref().map(|block| (block.speaker, block.open));
        if !broken && !*self.stripped.get_or_insert(true) {
            return match (speaker, before) {
                (_, Some((Speaker::Aider, true))) => Line::Unmarked,
                // Output begins directly below what it answers.
                (Speaker::Aider, Some((Speaker::Person | Speaker::Aider, _))) => Line::Opens(text),
                _ => {
                    ambiguous("a marked line without aider's two spaces: read as the model's text", place, session);
                    Line::Unmarked
                }
            };
        }
        self.stripped.get_or_insert(false);
        if before == Some((Speaker::Model, true)) {
            ambiguous("a marked line in an open code block: read as the end of the model's text", place, session);
        }
        Line::Of(speaker, text.trim_end_matches(' '))
    }

    fn unmarked(&mut self, line: &str, bare: &str, place: Place, session: &mut Session<'_>) -> Result<(), Fault> {
        let blank = bare.trim().is_empty();
        match &mut self.block {
            Some(block) if block.speaker == Speaker::Model => {
                block.open ^= bare.starts_with("```");
                block.push(line);
                Ok(())
            }
            Some(block) if block.open => {
                block.open = blank || !bare.ends_with(BREAK);
                block.push(line);
                Ok(())
            }
            _ if blank => self.end(session),
            _ => self.add(Speaker::Model, line, bare.starts_with("```"), place, session),
        }
    }

    /// Adds a line to its speaker's block, or begins one.
    fn add(
        &mut self,
        speaker: Speaker,
        line: &str,
        open: bool,
        place: Place,
        session: &mut Session<'_>,
    ) -> Result<(), Fault> {
        if let Some(block) = self.block.as_mut().filter(|block| block.speaker == speaker) {
            block.open = open;
            block.push(line);
            return Ok(());
        }
        self.end(session)?;
        self.block = Some(Block { speaker, text: line.into(), place, open });
        Ok(())
    }

    /// Gives the block that ends here.
    fn end(&mut self, session: &mut Session<'_>) -> Result<(), Fault> {
        let Some(Block { speaker, text, place, .. }) = self.block.take() else { return Ok(()) };
        let text: Arc<str> = text.trim_matches(['\r', '\n']).into();
        match speaker {
            Speaker::Person => {
                self.prose.leave();
                session.human(text.clone(), place)?;
                if matches!(&*text, "/clear" | "/reset") {
                    session.compacted(
                        CompactionKind::Replaced { texts: Vec::new(), summary: None },
                        (None, None),
                        place,
                    )?;
                }
                Ok(())
            }
            Speaker::Model => {
                let edits = edits(&text);
                let call = (!edits.is_empty()).then(|| ("edit", json!({ "edits": edits }).to_string().into()));
                self.prose.model(text, call, session, place)
            }
            Speaker::Aider if self.prose.is_open() => {
                let failed = !text.contains("Applied edit to ");
                self.prose.user(text, failed, Record { text: ">", place }, session)
            }
            Speaker::Aider => session.notice(text, Role::User, place),
        }
    }
}

fn ambiguous(what: &str, place: Place, session: &mut Session<'_>) {
    session.repair(place.line, RepairKind::Ambiguous { what: what.into() });
}

/// The finished SEARCH/REPLACE blocks of a turn: the path is the line above, whether or not a fence stands between.
fn edits(text: &str) -> Vec<Value> {
    let (mut edits, mut path, mut sides): (_, _, [Vec<&str>; 2]) = (Vec::new(), "", Default::default());
    // Which side the lines are of; none outside of a block.
    let mut side = None;
    for line in text.lines() {
        side = match (side, line) {
            (None, "<<<<<<< SEARCH") => {
                sides = Default::default();
                Some(false)
            }
            (None, _) => {
                if !line.trim().is_empty() && !line.starts_with("```") {
                    path = line;
                }
                None
            }
            (Some(false), "=======") => Some(true),
            (Some(true), ">>>>>>> REPLACE") => {
                let [search, replace] = &sides;
                edits.push(json!({ "path": path, "search": search.join("\n"), "replace": replace.join("\n") }));
                None
            }
            (Some(replace), line) => {
                let [search, replaced] = &mut sides;
                if replace {
                    replaced.push(line)
                } else {
                    search.push(line)
                }
                Some(replace)
            }
        };
    }
    edits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_that_were_finished() {
        let text = "Here:\n\na.rs\n```rust\n<<<<<<< SEARCH\nold\n=======\nnew\n\nlines\n>>>>>>> REPLACE\n```\nb.rs\n<<<<<<< \
                    SEARCH\nx\n=======\n";
        assert_eq!(edits(text), [json!({ "path": "a.rs", "search": "old", "replace": "new\n\nlines" })]);
        assert!(edits("=======\n>>>>>>> REPLACE").is_empty());
    }
}
