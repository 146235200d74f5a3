//! Ask: first the window, then the store.

use super::{
    Doubt, Memory, Question, Whereabouts, complete,
    question::{Look, Test},
    read::{GROUP, Group, read},
};
use crate::{
    Content, ContextState, Digest, SpanId, Window,
    store::{AsyncStore, Store},
    window::{Shared, step::at_once},
};

impl<C: ContextState, St> Window<C, St> {
    /// Whether the episode ever held something, in the window or not, summarized or not (rule R21). Nothing changes, and
    /// nothing fails: what cannot be read is a [`Doubt`]. What it costs depends on the [`Question`].
    ///
    /// ```
    /// # use keepspan::{ContextState, Episode, Memory, NewSpan, Question, Spans, Window, store::MemoryStore};
    /// # #[derive(ContextState)]
    /// # struct Agent {
    /// #     #[evictable(otherwise)]
    /// #     work: Spans,
    /// # }
    /// # let mut window = Window::<Agent, _>::open(MemoryStore::default(), Episode::new("e", "p"))?;
    /// let read = window.lanes().work.push(NewSpan::tool("read", "429, retry after 30, request req-7f2"))?;
    /// window.lanes().externalize().wait()?.work.evict(read).wait()?;
    /// let answer = match window.ask(&Question::text("req-7f2")) {
    ///     Memory::Recorded { spans, .. } => format!("seen: recall {}", spans[0].span()),
    ///     Memory::NotRecorded => "never seen".to_owned(), // a fact
    ///     Memory::Unknown { why } => format!("nothing can be said: {why}"),
    ///     _ => "nothing can be said".to_owned(),
    /// };
    /// assert_eq!(answer, format!("seen: recall {read}"));
    /// # Ok::<_, Box<dyn std::error::Error>>(())
    /// ```
    pub fn ask(&self, question: &Question) -> Memory
    where
        St: Store,
    {
        at_once(self.ask_async(question))
    }

    /// As [`ask`](Self::ask), on a store that answers later.
    pub async fn ask_async(&self, question: &Question) -> Memory
    where
        St: AsyncStore,
    {
        let (Look { mut matched, here, stored, doubt }, incomplete) = {
            let contents = self.shared.lock();
            (question.look(&contents), complete(&contents).err())
        };
        let mut doubt = doubt;
        // Without the lock: the test may be the user's.
        if let Some(test) = question.test() {
            let passes = |content: &Content| content.as_text().is_some_and(test);
            matched.extend(here.iter().filter(|(_, content)| passes(content)).map(|(span, _)| *span));
            let unread = search(&self.shared.store, &stored, test, &mut matched).await;
            doubt = doubt.or(unread);
            matched.sort_unstable();
        }
        // What says which span to look at comes before what says that nobody knows.
        doubt = doubt.or(incomplete);
        if doubt.is_none() && (matched.is_empty() || !question.is_unique()) {
            doubt = superseded(&self.shared).await;
        }
        let contents = self.shared.lock();
        let spans: Vec<_> = matched.into_iter().filter_map(|span| Whereabouts::of(&contents, span)).collect();
        let doubt = doubt.filter(|_| spans.is_empty() || !question.is_unique());
        Memory::new(spans, doubt)
    }
}

/// Whether the store has records that this window has not: what they say may have been it.
async fn superseded<St: AsyncStore>(shared: &Shared<St>) -> Option<Doubt> {
    let (episode, records) = {
        let contents = shared.lock();
        (contents.episode.clone(), contents.length)
    };
    let found = shared.store.length(&episode).await;
    (!found.is_ok_and(|found| found == records)).then_some(Doubt::Superseded)
}

/// Adds the spans whose stored text passes; gives the first that could not be read.
async fn search<St: AsyncStore>(
    store: &St,
    stored: &[(SpanId, Digest)],
    test: &Test,
    matched: &mut Vec<SpanId>,
) -> Option<Doubt> {
    let mut doubt = None;
    for group in stored.chunks(GROUP) {
        let Group { texts, unreadable, failed } = read(store, group).await;
        let passes = |text: &[u8]| std::str::from_utf8(text).is_ok_and(test);
        matched.extend(texts.iter().filter(|(_, text)| passes(text)).map(|(span, _)| *span));
        if let (None, Some((span, source))) = (&doubt, unreadable.into_iter().next()) {
            doubt = Some(Doubt::Unreadable { span, source });
        }
        if failed {
            break;
        }
    }
    doubt
}
