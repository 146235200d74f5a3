//! Calls that a model writes in its prose: no id, and the result is the next turn of the user.

use std::sync::Arc;

use keepspan::Role;
use serde_json::{Map, Value};

use super::blocks::{Content, pieces};
use crate::{
    error::Fault,
    records::Record,
    session::{NewCall, Outcome, Piece, Session, Turn},
    step::Place,
};

/// A conversation whose calls are answered by the turn that follows.
#[derive(Debug, Default)]
pub(crate) struct Adjacent {
    /// The id minted for the call of the turn before.
    open: Option<Arc<str>>,
    /// Whether the task was given. Who speaks later without being asked is the program.
    tasked: bool,
    /// Whether a person can speak later, too.
    attended: bool,
}

impl Adjacent {
    /// A conversation in which a person takes part.
    pub(crate) fn attended() -> Self {
        Self { attended: true, ..Self::default() }
    }

    /// The model's turn, and the call in its text: tool and arguments.
    pub(crate) fn model(
        &mut self,
        text: Arc<str>,
        call: Option<(&str, Arc<str>)>,
        session: &mut Session<'_>,
        place: Place,
    ) -> Result<(), Fault> {
        self.open = None;
        let mut turn = Turn::default();
        match call {
            None => turn.say(text),
            Some((tool, arguments)) => {
                let id = session.mint_id();
                let call = NewCall { id: Some(id.clone()), name: tool.into(), arguments };
                self.open = Some(id);
                // A turn without text still has to say its call.
                if text.is_empty() { turn.call(call) } else { turn.say_with(text, vec![call]) }
            }
        }
        session.turn(turn, place)
    }

    /// The turn after: a result where there was a call, else the task, else what the program says.
    pub(crate) fn user(
        &mut self,
        text: Arc<str>,
        failed: bool,
        record: Record<'_>,
        session: &mut Session<'_>,
    ) -> Result<(), Fault> {
        let place = record.place;
        if let Some(call) = self.open.take() {
            let parts = vec![Piece::Text(text)];
            return session.result(
                Outcome { call: Some(&call), failed, parts, ..Outcome::default() },
                record.text,
                place,
            );
        }
        if std::mem::replace(&mut self.tasked, true) && !self.attended {
            session.notice(text, Role::User, place)
        } else {
            session.human(text, place)
        }
    }

    /// Whether the turn before has a call that waits for its result.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// The call of the turn before gets no result.
    pub(crate) fn leave(&mut self) {
        self.open = None;
    }
}

/// The text of content that is one text, whatever number of blocks holds it.
pub(crate) fn text(content: Content<'_>, session: &mut Session<'_>, place: Place) -> Arc<str> {
    let mut texts: Vec<Arc<str>> = Vec::new();
    for piece in pieces(content, session, place) {
        match piece {
            Piece::Text(text) => texts.push(text),
            Piece::Picture(_) => session.unknown("picture beside prose", place.line),
        }
    }
    match &mut *texts {
        [one] => std::mem::take(one),
        _ => texts.join("\n").into(),
    }
}

/// The closed fenced blocks of `text`: the fence's language, and what is inside.
pub(crate) fn fenced(text: &str) -> impl Iterator<Item = (&str, &str)> {
    let (mut open, mut at) = (None, 0_usize);
    text.split_inclusive('\n').filter_map(move |line| {
        let start = at;
        at = at.saturating_add(line.len());
        let language = line.strip_prefix("```")?.trim();
        match open.take() {
            None => {
                open = Some((language, at));
                None
            }
            Some((language, from)) => text.get(from..start).map(|inside| (language, inside.trim())),
        }
    })
}

/// The call `<function=name><parameter=key>value</parameter></function>` of `text`: its name and its arguments, all texts. A
/// model that is stopped at `</function` never writes the end, so it is not asked for.
pub(crate) fn tagged(text: &str) -> Option<(&str, Value)> {
    let (name, mut rest) = text.split_once("<function=")?.1.split_once('>')?;
    rest = rest.split_once("</function").map_or(rest, |(call, _)| call);
    let mut arguments = Map::new();
    while let Some((key, value)) = rest.split_once("<parameter=").and_then(|(_, next)| next.split_once('>')) {
        let (value, after) = value.split_once("</parameter>").unwrap_or((value, ""));
        // One line end beside each tag belongs to the tag.
        let value = value.strip_prefix('\n').unwrap_or(value);
        let value = value.strip_suffix('\n').unwrap_or(value);
        arguments.insert(key.to_owned(), Value::from(value));
        rest = after;
    }
    (!name.is_empty() && !name.contains(char::is_whitespace)).then_some((name, Value::Object(arguments)))
}

/// The commands of SWE-agent's own interface. Whatever else it runs is a command of the shell.
const INTERFACE: &[&str] =
    &["create", "edit", "find_file", "goto", "open", "scroll_down", "scroll_up", "search_dir", "search_file", "submit"];

/// The tool that runs a command of SWE-agent: a name of its interface, or `bash`.
pub(crate) fn swe_agent_tool(command: &str) -> &'static str {
    let word = command.split_whitespace().next().unwrap_or_default();
    INTERFACE.iter().copied().find(|name| *name == word).unwrap_or("bash")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn closed_blocks_in_their_order() {
        let text = "Look:\n```python\nx = 1\n```\nNow\n```\n\nls -F\n```\na ``` in a line\n```\nnever closed";
        assert_eq!(fenced(text).collect::<Vec<_>>(), [("python", "x = 1"), ("", "ls -F")]);
    }

    #[test]
    fn a_tagged_call_needs_no_end() {
        let text = "So:\n<function=edit>\n<parameter=path>a.rs</parameter>\n<parameter=new>\nb\n\n</parameter>\n";
        assert_eq!(tagged(text), Some(("edit", json!({ "path": "a.rs", "new": "b\n" }))));
        assert_eq!(tagged("<function=submit>\n</function>"), Some(("submit", json!({}))));
        for none in ["", "<function=", "<function=>", "the tag <function=name of tool>"] {
            assert_eq!(tagged(none), None, "{none}");
        }
    }

    #[test]
    fn a_command_outside_the_interface_is_one_of_the_shell() {
        assert_eq!(swe_agent_tool("edit 1:1\nx\nend_of_edit"), "edit");
        assert_eq!(swe_agent_tool("python a.py"), "bash");
    }
}
