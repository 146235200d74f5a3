//! What the crash test and the process that it kills agree on.

use keepspan::{Digest, Episode, Limits, Shown, SpanId, Window, store::AsyncStore};

use crate::{Agent, unsaved};

/// What a process that is to be killed does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Work {
    /// Creates the file.
    Create,
    /// Commits spans of a few bytes, evicts and restores them.
    Small,
    /// Commits megabytes.
    Large,
    /// Passes with summaries and rationales, fallbacks, and their undoing.
    Passes,
    /// Removes texts from the file.
    Redact,
}

impl Work {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Create, Self::Small, Self::Large, Self::Passes, Self::Redact];

    /// Its episode, the same before and after a kill.
    pub fn episode(self) -> Episode {
        let episode = Episode::new("e", "p");
        if self == Self::Large {
            return episode.budget(100_000_000);
        }
        episode.budget(Limits::of(9_000).fixed(100).trigger(6_000).index(1_200).rationale(60).margin(100))
    }
}

/// What a window shows of what it committed: how many records, its tokens, and a digest of its messages.
pub fn believed<St: AsyncStore>(window: &Window<Agent, St>) -> String {
    let unsaved: Vec<SpanId> = unsaved(window).iter().map(|unsaved| unsaved.span).collect();
    let (mut tokens, mut shown) = (0_u64, String::new());
    for message in window.render() {
        if !matches!(message.shown(), Shown::Span(span) if unsaved.contains(&span)) {
            tokens += u64::from(message.tokens());
            shown += &format!("{:?} {} ", message.shown(), Digest::of(message.content().as_bytes()));
        }
    }
    format!("{} {tokens} {}", window.records(), Digest::of(shown.as_bytes()))
}
