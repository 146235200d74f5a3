//! What can go wrong between a window and a request.

use crate::{CounterError, PushError, SpanId};

/// Why a request was not imported. Nothing of it is in the window, unless `pushed` says so.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// There is no history in it.
    #[error(
        "{format}: no history found: give a request or a whole response body, its list of messages, or one message; a body has its history \
         in `{list}`, and an error answer or a chunk of a stream has none"
    )]
    NoHistory {
        /// The format.
        format: &'static str,
        /// The field of a body that has the history.
        list: &'static str,
    },
    /// It is nested so deep that no parser would take the request that it is in.
    #[error(
        "{format}: nested more than 100 levels deep, so nothing was imported: keep such a value as text, or in a file"
    )]
    TooDeep {
        /// The format.
        format: &'static str,
    },
    /// It is no message of the format.
    #[error("{format}, message {index}: {what}; nothing was imported: leave it out, or give what the provider takes")]
    Message {
        /// The format.
        format: &'static str,
        /// Its place in the list, from 0.
        index: usize,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A span has no place in the window: no lane takes it, or it is too large.
    #[error("message {index}: {source}; nothing was imported")]
    Refused {
        /// The message's place in the list, from 0.
        index: usize,
        /// Why.
        source: PushError,
    },
    /// It begins as what was imported before: most likely the whole history again.
    #[error(
        "message {index}: it begins as what is in the window from {span} on, so nothing was imported: import only the messages that are \
         new; where it is another conversation that begins alike, open another episode"
    )]
    Again {
        /// The message's place in the list, from 0.
        index: usize,
        /// The span that it begins with.
        span: SpanId,
    },
    /// A span could not be counted.
    #[error("message {index} could not be counted: {source}; nothing was imported: count with another counter")]
    Counter {
        /// The message's place in the list, from 0.
        index: usize,
        /// What the counter said.
        source: CounterError,
    },
    /// A span was refused after others had entered.
    #[error("message {index}: {source}; {} spans before it are in the window: go on from there, or open another window", pushed.len())]
    Stopped {
        /// The message's place in the list, from 0.
        index: usize,
        /// Those that entered.
        pushed: Vec<SpanId>,
        /// Why.
        source: PushError,
    },
}

/// Why a window cannot be sent. The window is as it was.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RenderError {
    /// There is nothing to send, and no provider takes an empty history.
    #[error("{format}: the window shows nothing that goes into `{list}`: push what the model is to answer first")]
    Empty {
        /// The format.
        format: &'static str,
        /// The field of a body that has the history.
        list: &'static str,
    },
    /// A span was imported from another format, and is more than text.
    #[error(
        "{span} was imported from {imported}, and its blocks are not {format}'s: render for {imported}, or import the conversation as {format}"
    )]
    OtherFormat {
        /// The span.
        span: SpanId,
        /// The format that was asked for.
        format: &'static str,
        /// The one that it is of.
        imported: &'static str,
    },
    /// A model's turn that calls tools, and whose content is no message of the format.
    #[error(
        "{span} makes calls or is sealed, and its content is no message of {format}: push such a turn with `Lanes::import`, or with the \
         provider's JSON as its content"
    )]
    NoMessage {
        /// The span.
        span: SpanId,
        /// The format.
        format: &'static str,
    },
    /// Bytes that this place of the format does not take.
    #[error(
        "{span} holds bytes that {format} does not take there: give a PNG, JPEG, GIF or WebP image of the user, or its text"
    )]
    Bytes {
        /// The span.
        span: SpanId,
        /// The format.
        format: &'static str,
    },
}
