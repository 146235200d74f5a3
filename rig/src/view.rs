//! What a window shows, as the messages of a rig request.

use std::{borrow::Cow, collections::HashMap};

use keepspan::{Message as Shown, ResultState, Shown as What, SpanId};
use rig_core::{
    completion::AssistantContent,
    message::{AssistantMessage, Message, ToolCall, ToolResult, ToolResultContent, UserContent},
};

use crate::piece::{Answer, Piece, read, read_part};

/// The blocks of spans as rig has them, with what a span does not hold: the provider's own items.
pub(crate) type Blocks = HashMap<SpanId, Piece<'static>>;

/// The messages that show the window, but for the spans in `without`. Every result directly follows its call; pointers,
/// summaries and notices are said by the user, so that no turn begins with what its model did not say. What lost its call,
/// or its signature, is text, or left out. O(window).
pub(crate) fn messages(shown: &[Shown], blocks: &Blocks, without: &[SpanId]) -> Vec<Message> {
    let mut view = View::default();
    for message in shown {
        match message.shown() {
            What::Span(span) | What::Pointer(span, _) if without.contains(&span) => {}
            What::Span(_) if message.seal_intact() == Some(false) => {}
            What::Span(span) => match blocks.get(&span) {
                Some(piece) => view.add(piece.clone()),
                None => view.add_read(message),
            },
            _ => view.note(message),
        }
    }
    view.messages
}

#[derive(Default)]
struct View {
    messages: Vec<Message>,
    /// Calls of the newest turn that has some, each until its last result.
    open: Vec<ToolCall>,
}

impl View {
    fn add(&mut self, piece: Piece<'static>) {
        match piece {
            Piece::System(text) => self.messages.push(Message::system(text)),
            Piece::User(block) => self.user(block.into_owned()),
            Piece::Result(answer) => self.result(answer),
            Piece::Said { block, turn, .. } => self.said(block.into_owned(), &turn),
        }
    }

    /// A span that was said in another process.
    fn add_read(&mut self, message: &Shown) {
        let closes = match message.result() {
            Some(ResultState::Final | ResultState::Lost) => Some(true),
            Some(ResultState::Interim) => Some(false),
            _ => None,
        };
        // Results are pushed in the order of their calls; the notice of a lost one names no tool.
        let named = |call: &&ToolCall| message.name().is_none_or(|name| call.function.name == *name);
        let call = closes.and_then(|last| Some((self.open.iter().find(named)?.clone(), last)));
        match (call, read_part(message.content())) {
            (Some((call, last)), Some(part)) => self.result(Answer {
                call: Cow::Owned(call.id),
                name: Cow::Owned(call.function.name),
                part: Cow::Owned(part),
                last,
                failed: message.result() == Some(ResultState::Lost),
            }),
            _ => read(message.role(), message.content()).into_iter().for_each(|piece| self.add(piece)),
        }
    }

    fn note(&mut self, message: &Shown) {
        if let Some(text) = message.content().as_text() {
            self.user(UserContent::text(text));
        }
    }

    fn user(&mut self, block: UserContent) {
        match self.messages.last_mut() {
            Some(Message::User { content }) => content.push(block),
            _ => self.messages.push(Message::User { content: vec![block] }),
        }
    }

    fn said(&mut self, block: AssistantContent, turn: &AssistantMessage) {
        if let AssistantContent::ToolCall(call) = &block {
            let goes_on =
                matches!(self.messages.last(), Some(Message::Assistant(turn)) if turn.tool_calls().next().is_some());
            if !goes_on {
                self.open.clear();
            }
            self.open.push(call.clone());
        }
        match self.messages.last_mut() {
            Some(Message::Assistant(said)) => said.content.push(block),
            _ => self.messages.push(Message::Assistant(turn.clone().with_content(vec![block]))),
        }
    }

    /// A part of a result, directly after the turn that called.
    fn result(&mut self, answer: Answer<'static>) {
        let Some(turn) = self.messages.iter().rposition(|message| has_call(message, &answer)) else {
            return self.user(as_text(answer));
        };
        if answer.last {
            self.open.retain(|call| call.id != *answer.call);
        }
        let after = turn.saturating_add(1);
        if !matches!(self.messages.get(after), Some(Message::User { .. })) {
            self.messages.insert(after, Message::User { content: Vec::new() });
        }
        let Some(Message::User { content }) = self.messages.get_mut(after) else { return };
        let begun = content.iter_mut().find_map(|block| match block {
            UserContent::ToolResult(result) if result.call == *answer.call => Some(result),
            _ => None,
        });
        let part = answer.part.into_owned();
        if let Some(result) = begun {
            return result.content.push(part);
        }
        let results = content.iter().take_while(|block| matches!(block, UserContent::ToolResult(_))).count();
        let (call, name) = (answer.call.into_owned(), answer.name.into_owned());
        let result = ToolResult { call, name, content: vec![part], is_error: answer.failed };
        content.insert(results, UserContent::ToolResult(result));
    }
}

fn has_call(message: &Message, answer: &Answer<'_>) -> bool {
    matches!(message, Message::Assistant(turn) if turn.tool_calls().any(|call| call.id == *answer.call))
}

/// A result whose call is not in the request.
fn as_text(answer: Answer<'_>) -> UserContent {
    match answer.part.into_owned() {
        ToolResultContent::Text(text) => UserContent::Text(text),
        ToolResultContent::Image(image) => UserContent::Image(image),
        ToolResultContent::Json { value } => UserContent::text(value.to_string()),
    }
}
