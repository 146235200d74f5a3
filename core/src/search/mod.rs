//! Full-text search over all that an episode ever held: what was evicted, replaced or summarized is found as well (rule
//! R21). A hit says where the text is; [`Window::recall`] brings it. Feature `search`.
//!
//! Words are runs of letters and digits, in either case, with or without accents. For a part of a word, or a text that is
//! not made of such words (Chinese, Japanese), and for an answer that can be "never", ask the record:
//! [`Window::ask`] with [`Question::text`](crate::Question::text).
//!
//! The index is SQLite's FTS5, compiled in: it needs a C compiler, and a program has one version of `libsqlite3-sys` only.
//!
//! ```
//! # use keepspan::{ContextState, Episode, NewSpan, Spans, Window, store::MemoryStore};
//! use keepspan::search::Search;
//! # #[derive(ContextState)]
//! # struct Agent {
//! #     #[evictable(otherwise)]
//! #     work: Spans,
//! # }
//! # let mut window = Window::<Agent, _>::open(MemoryStore::default(), Episode::new("e", "p"))?;
//! let read = window.lanes().work.push(NewSpan::tool("shell", "error[E0308] in src/gate.rs:41"))?;
//! window.lanes().externalize().wait()?.work.evict(read).wait()?;
//! let mut search = Search::new(&window)?;
//! search.update(&window)?;
//! let hits = search.find(&window, "gate.rs:41 mismatched types", 5)?;
//! assert_eq!(hits[0].span, read);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod error;
mod index;
mod query;

use std::collections::BTreeSet;

pub use self::error::SearchError;
use self::{index::Index, query::expression};
use crate::{
    Content, ContextState, Digest, SpanId, Whereabouts, Window,
    memory::read::{GROUP, Group, read},
    store::{AsyncStore, Store},
    window::{contents::Contents, step::at_once, table::Entry},
};

/// The index of one window, in memory and without the texts themselves. It takes 0.8 times their bytes where they have 400,
/// and a third where they have 4,000 (source code; more of it for text that does not repeat).
#[derive(Debug)]
pub struct Search {
    index: Index,
    window: u64,
    /// How many spans the index has looked at.
    seen: u64,
    /// Those of them that were not in the store yet, or could not be read.
    open: BTreeSet<SpanId>,
    /// Those of them that are no text.
    bytes: u64,
}

/// What an [update](Search::update) did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Updated {
    /// Spans that can be found from now on.
    pub added: u64,
    /// Spans that can not be found any more: they were redacted.
    pub removed: u64,
    /// Spans whose blob is missing, sealed or damaged; every update tries them again.
    pub unreadable: Vec<SpanId>,
}

/// A span that a query found.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Hit {
    /// The span.
    pub span: SpanId,
    /// BM25: the larger the better, comparable within one answer only.
    pub score: f64,
    /// Its lane.
    pub lane: &'static str,
    /// Where its text was when this was asked.
    pub whereabouts: Whereabouts,
}

impl Search {
    /// An empty index for one window; [`update`](Self::update) fills it.
    ///
    /// # Errors
    /// [`SearchError::Index`], when there is no memory for it.
    pub fn new<C: ContextState, St>(window: &Window<C, St>) -> Result<Self, SearchError> {
        let window = window.shared.lock().moment().window;
        Ok(Self { index: Index::new()?, window, seen: 0, open: BTreeSet::new(), bytes: 0 })
    }

    /// Takes in what was externalized since the last update, and takes out what was redacted. O(text of the new spans):
    /// texts that left the window already are read from the store, verified, 64 at a time. A redaction rewrites the index, so
    /// that nothing of the text stays in it. What is not externalized yet is in the window, where a model sees it.
    ///
    /// # Errors
    /// [`SearchError`]: another window, or the store failed; what was read until then is in the index.
    pub fn update<C: ContextState, St: Store>(&mut self, window: &Window<C, St>) -> Result<Updated, SearchError> {
        at_once(self.update_async(window))
    }

    /// As [`update`](Self::update), on a store that answers later. Dropping the future loses nothing: update again.
    ///
    /// # Errors
    /// As [`update`](Self::update).
    pub async fn update_async<C: ContextState, St: AsyncStore>(
        &mut self,
        window: &Window<C, St>,
    ) -> Result<Updated, SearchError> {
        let (new, gone) = {
            let contents = window.shared.lock();
            self.is_of(&contents)?;
            (self.new_in(&contents), contents.gone.keys().copied().collect::<Vec<_>>())
        };
        let mut updated = Updated { removed: self.index.remove(&gone)?, ..Updated::default() };
        updated.added = self.index.add(new.here.iter().filter_map(|(span, text)| Some((*span, text.as_text()?))))?;
        self.seen = new.seen;
        self.bytes = self.bytes.saturating_add(new.bytes);
        self.open = new.open;
        for group in new.stored.chunks(GROUP) {
            let Group { texts, unreadable, failed } = read(&window.shared.store, group).await;
            let utf8 = texts.iter().filter_map(|(span, text)| Some((*span, std::str::from_utf8(text).ok()?)));
            updated.added = updated.added.saturating_add(self.index.add(utf8)?);
            for (span, _) in &texts {
                self.open.remove(span);
            }
            for (span, source) in unreadable {
                if failed {
                    return Err(SearchError::Store { span, source });
                }
                updated.unreadable.push(span);
            }
        }
        Ok(updated)
    }

    /// The spans that a query finds, best first, the newest first among equals; at most `limit`. Words rank: a span needs one
    /// of them, and more is better. What stands in double quotes has to be there, word for word: `retry "exit code 137"`.
    /// A word with marks in it, as `src/gate.rs:41` or `--nocapture`, is the words between them, one after the other.
    ///
    /// Finds what the last [`update`](Self::update) took in; no text is read. O(spans with one of the words).
    ///
    /// # Errors
    /// [`SearchError`]: another window, a quote without its other one, nothing to look for.
    pub fn find<C: ContextState, St>(
        &self,
        window: &Window<C, St>,
        query: &str,
        limit: usize,
    ) -> Result<Vec<Hit>, SearchError> {
        let contents = window.shared.lock();
        self.is_of(&contents)?;
        let found = self.index.find(&expression(query)?, limit)?;
        Ok(found.into_iter().filter_map(|(span, score)| hit(&contents, span, score)).collect())
    }

    /// How many spans are no text and are not searched: images, files. O(1).
    pub fn skipped(&self) -> u64 {
        self.bytes
    }

    /// Span ids are the same in every window, so an index of one would find the wrong spans of another.
    fn is_of(&self, contents: &Contents) -> Result<(), SearchError> {
        if contents.moment().window == self.window { Ok(()) } else { Err(SearchError::OtherWindow) }
    }

    /// What the index has not taken in yet.
    fn new_in(&self, contents: &Contents) -> New {
        let mut new = New { seen: contents.table.len(), ..New::default() };
        let pushed = (self.seen.saturating_add(1)..=new.seen).map(SpanId::mint);
        let looked_at = self.open.iter().copied().chain(pushed);
        for span in looked_at.filter(|span| !contents.gone.contains_key(span)) {
            match contents.table.get(span).filter(|entry| entry.durable) {
                Some(Entry { text: false, .. }) => new.bytes = new.bytes.saturating_add(1),
                Some(Entry { content: Some(content), .. }) => new.here.push((span, content.clone())),
                Some(Entry { digest, .. }) => {
                    new.stored.push((span, *digest));
                    new.open.insert(span);
                }
                None => {
                    new.open.insert(span);
                }
            }
        }
        new
    }
}

#[derive(Default)]
struct New {
    /// Texts that are in the window.
    here: Vec<(SpanId, Content)>,
    /// Texts that are in the store.
    stored: Vec<(SpanId, Digest)>,
    /// These, and what is not in the store yet.
    open: BTreeSet<SpanId>,
    bytes: u64,
    seen: u64,
}

fn hit(contents: &Contents, span: SpanId, score: f64) -> Option<Hit> {
    // Removed since the last update: its text must not be found, not even by its absence.
    let entry = contents.table.get(span).filter(|_| !contents.gone.contains_key(&span))?;
    Some(Hit { span, score, lane: contents.lane_name(entry), whereabouts: Whereabouts::of(contents, span)? })
}
