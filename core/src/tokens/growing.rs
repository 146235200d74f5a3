//! Text that grows, counted as it grows.

use super::{CounterError, TokenCount, TokenCounter};

/// A counter that knows where text can be cut without a change of its count.
pub trait Settles: TokenCounter {
    /// The last such place in `text`, in bytes: whatever is appended to `text`, what lies before and what lies after,
    /// each counted alone, add up to the count of both together. 0 where there is none.
    fn settled(&self, text: &str) -> usize;
}

/// The count of a text that is appended to: always what a count of the whole would be, and only new text is counted.
///
/// It keeps the text after the last [settled](Settles::settled) place, normally less than a word; what lies before may
/// be gone. An append costs O(what is appended + what is kept). A text without any such place, as one word of a
/// megabyte, is kept and counted whole each time.
///
/// ```
/// # fn main() -> Result<(), keepspan::CounterError> {
/// # #[cfg(feature = "tiktoken")] {
/// use keepspan::{Growing, O200k, TokenCounter};
///
/// let mut answer = Growing::new(O200k);
/// for chunk in ["The unsafe pr", "une does n", "ot compile."] {
///     answer.push_str(chunk)?;
/// }
/// assert_eq!(answer.count(), O200k.text("The unsafe prune does not compile.")?);
/// # }
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct Growing<C> {
    counter: C,
    settled: TokenCount,
    /// What may still be split differently.
    tail: String,
    count: TokenCount,
}

impl<C: Settles> Growing<C> {
    /// No text yet.
    pub const fn new(counter: C) -> Self {
        let none = TokenCount::exact(0);
        Self { counter, settled: none, tail: String::new(), count: none }
    }

    /// Appends `text`; gives the count of all of it.
    ///
    /// # Errors
    /// The counter's own error; nothing was appended then.
    pub fn push_str(&mut self, text: &str) -> Result<TokenCount, CounterError> {
        let before = self.tail.len();
        self.tail.push_str(text);
        self.settle().inspect_err(|_| self.tail.truncate(before))
    }

    /// The count of all text so far.
    pub const fn count(&self) -> TokenCount {
        self.count
    }

    fn settle(&mut self) -> Result<TokenCount, CounterError> {
        let at = self.counter.settled(&self.tail);
        let Some((done, open)) = self.tail.split_at_checked(at) else {
            return Err(CounterError::new(format!("`settled` gave {at}, where the text has no character's beginning")));
        };
        let settled = if done.is_empty() { self.settled } else { self.settled.plus(self.counter.text(done)?)? };
        self.count = settled.plus(self.counter.text(open)?)?;
        self.settled = settled;
        self.tail.drain(..at);
        Ok(self.count)
    }
}
