//! Exact counts of OpenAI's models, by their own vocabularies (feature `tiktoken`).

use super::{CounterError, Image, ImageCost, Settles, TokenCount, TokenCounter, length};

/// The tokenizer of GPT-4o, GPT-4.1, GPT-5, the o-series and gpt-oss: `o200k_base`. [Exact](super::Certainty::Exact)
/// for text; what a provider adds around each message is not text and not counted.
///
/// A special token's name inside text, such as `<|endoftext|>`, is ordinary text, as it is to the provider. Images are
/// estimated by [`ImageCost::OPENAI`], since several models with different prices share the tokenizer: name the model's
/// with [`WithImages`](super::WithImages). The first count unpacks the vocabulary, once a process: 80 ms and 24 MB.
#[derive(Clone, Copy, Debug, Default)]
pub struct O200k;

/// The tokenizer of GPT-4, GPT-3.5 and the embedding models: `cl100k_base`. As [`O200k`] otherwise.
#[derive(Clone, Copy, Debug, Default)]
pub struct Cl100k;

impl TokenCounter for O200k {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        count("o200k_base", text)
    }

    fn image(&self, image: Image<'_>) -> Result<TokenCount, CounterError> {
        ImageCost::OPENAI.guess(image)
    }
}

impl TokenCounter for Cl100k {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        count("cl100k_base", text)
    }

    fn image(&self, image: Image<'_>) -> Result<TokenCount, CounterError> {
        ImageCost::OPENAI.guess(image)
    }
}

impl Settles for O200k {
    fn settled(&self, text: &str) -> usize {
        settled(text)
    }
}

impl Settles for Cl100k {
    fn settled(&self, text: &str) -> usize {
        settled(text)
    }
}

fn count(vocabulary: &str, text: &str) -> Result<TokenCount, CounterError> {
    length(text.len())?; // the tokenizer's own limit
    let Some(encoding) = tiktoken::get_encoding(vocabulary) else {
        return Err(CounterError::new(format!("`{vocabulary}` is not built into `tiktoken`")));
    };
    length(encoding.count(text)).map(TokenCount::exact)
}

/// The last place where both vocabularies split, whatever follows: their patterns look ahead only within white space
/// and at apostrophes, and never back.
fn settled(text: &str) -> usize {
    let mut after = text.char_indices().rev().peekable();
    while let (Some((at, _)), Some(&(_, before))) = (after.next(), after.peek()) {
        if text.get(at..).is_some_and(|rest| splits(before, rest)) {
            return at;
        }
    }
    0
}

/// Whether a piece ends after `before` when `rest`, not empty, follows.
fn splits(before: char, rest: &str) -> bool {
    let newline = |c: char| matches!(c, '\r' | '\n');
    let next = rest.chars().next().unwrap_or_default();
    match before {
        // White space up to a newline is one piece, and `/` may end a run of signs and newlines.
        '\r' | '\n' => {
            next != '/' && rest.chars().find(|c| newline(*c) || !c.is_whitespace()).is_some_and(|c| !newline(c))
        }
        _ if before.is_ascii_digit() => next.is_ascii() && !next.is_ascii_digit(),
        // "don" and "'t" may be one piece.
        _ if before.is_ascii_alphabetic() => next.is_ascii() && !next.is_ascii_alphabetic() && next != '\'',
        _ => next == ' ' && !before.is_whitespace(),
    }
}
