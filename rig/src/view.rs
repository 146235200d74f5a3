//! What a window shows, as the messages of a rig request.

use std::collections::HashMap;

use keepspan::{ContextState, LaneSpec, Message as Shown, ResultState, Shown as What, SpanId, kind::KindId};
use rig_core::message::{
    AssistantContent, AssistantMessage, Message, ToolCall, ToolResult, ToolResultContent, UserContent,
};

use crate::piece::{Piece, of_turn, pieces, read, read_part};

/// The blocks of spans as rig has them, each as a message of its own: with what a span does not hold, the provider's items.
pub(crate) type Blocks = HashMap<SpanId, Message>;

/// The messages that show the window, but for the spans in `without`. Every result directly follows its call; pointers,
/// summaries and notices are said by the user, so that no turn begins with what its model did not say. What lost its call is
/// text, and what lost its signature is left out. O(window).
pub(crate) fn messages<C: ContextState>(shown: &[Shown], blocks: &Blocks, without: &[SpanId]) -> Vec<Message> {
    let mut view = View::default();
    for message in shown {
        match message.shown() {
            What::Span(span) if without.contains(&span) => {}
            What::Pointer(first, last) if first == last && without.contains(&first) => {}
            What::Span(_) if message.seal_intact() == Some(false) => {}
            // What pruning wrote is no turn of the model's, and a request does not end with one.
            What::Span(_) if kind::<C>(message).is_some_and(|kind| kind.attribute() == "rationale") => {
                view.note(message)
            }
            What::Span(span) => match blocks.get(&span) {
                Some(block) => view.add(block),
                None => view.add_read(message),
            },
            _ => view.note(message),
        }
    }
    view.messages
}

/// The kind of a message's lane.
pub(crate) fn kind<C: ContextState>(message: &Shown) -> Option<KindId> {
    C::LANES.iter().find(|lane| lane.name() == message.lane()).map(LaneSpec::kind)
}

#[derive(Default)]
struct View {
    messages: Vec<Message>,
    /// Calls of the newest turn that has some, each until its result.
    open: Vec<ToolCall>,
}

impl View {
    fn add(&mut self, block: &Message) {
        for piece in pieces([block]) {
            match piece {
                Piece::System(text) => self.messages.push(Message::system(text)),
                Piece::User(block) => self.user(block.clone()),
                Piece::Result { result, .. } => self.result(result.clone(), true),
                Piece::Said { turn, block, .. } => self.said(turn, block),
            }
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
            (Some((call, last)), Some(part)) => {
                let is_error = message.result() == Some(ResultState::Lost);
                self.result(ToolResult { is_error, ..call.result(vec![part]) }, last);
            }
            _ => read(message.role(), message.content()).iter().for_each(|block| self.add(block)),
        }
    }

    fn note(&mut self, message: &Shown) {
        message.content().as_text().into_iter().for_each(|text| self.user(UserContent::text(text)));
    }

    fn user(&mut self, block: UserContent) {
        match self.messages.last_mut() {
            Some(Message::User { content }) => content.push(block),
            _ => self.messages.push(Message::User { content: vec![block] }),
        }
    }

    fn said(&mut self, turn: &AssistantMessage, block: &AssistantContent) {
        if let AssistantContent::ToolCall(call) = block {
            if !matches!(self.messages.last(), Some(Message::Assistant(turn)) if turn.tool_calls().next().is_some()) {
                self.open.clear();
            }
            self.open.push(call.clone());
        }
        match self.messages.last_mut() {
            Some(Message::Assistant(said)) => said.content.push(block.clone()),
            _ => self.messages.push(Message::Assistant(of_turn(turn, block))),
        }
    }

    /// A part of a result, directly after the turn that called.
    fn result(&mut self, part: ToolResult, last: bool) {
        let called = |message: &Message| match message {
            Message::Assistant(turn) => turn.tool_calls().any(|call| call.id == part.call),
            _ => false,
        };
        let Some(turn) = self.messages.iter().rposition(called) else {
            return part.content.into_iter().for_each(|part| self.user(as_text(part)));
        };
        if last {
            self.open.retain(|call| call.id != part.call);
        }
        let after = turn.saturating_add(1);
        if !matches!(self.messages.get(after), Some(Message::User { .. })) {
            self.messages.insert(after, Message::User { content: Vec::new() });
        }
        let Some(Message::User { content }) = self.messages.get_mut(after) else { return };
        let begun = content.iter_mut().find_map(|block| match block {
            UserContent::ToolResult(result) if result.call == part.call => Some(result),
            _ => None,
        });
        if let Some(result) = begun {
            return result.content.extend(part.content);
        }
        let results = content.iter().take_while(|block| matches!(block, UserContent::ToolResult(_))).count();
        content.insert(results, UserContent::ToolResult(part));
    }
}

/// A part of a result whose call is not in the request.
fn as_text(part: ToolResultContent) -> UserContent {
    match part {
        ToolResultContent::Text(text) => UserContent::Text(text),
        ToolResultContent::Image(image) => UserContent::Image(image),
        ToolResultContent::Json { value } => UserContent::text(value.to_string()),
    }
}
