//! The permit for one decision: what a model is shown, what it answered, and what comes of it (rules R9, R15).

use std::{fmt, marker::PhantomData};

use super::{Apply, FallBack, Fallback, Index, Offer, Preview, Proposal, proposal::written};
use crate::{
    ApplyError, ContextState, Lanes, Message, ProposalError, Stale, Step,
    gate::{Admitted, Refused},
    policy::Permitted,
    rule::PrunesFrom,
    tool::{Answer, Dynamic, Form, Provider, Tool},
    window::Shared,
};

/// The permit for one decision of a model, minted by the gate alone (rule R9). It holds the window: nothing enters or
/// leaves until it is [applied](Pass::apply) or dropped, and dropping it changes nothing.
///
/// The request that decides is the window, the index and a tool. A bad answer is no reason to stop: the pass can still
/// [fall back](Pass::fall_back), or take a program's [`Answer`].
///
/// ```
/// # use keepspan::{ContextState, Episode, Index, Message, NewSpan, Spans, Window, store::MemoryStore};
/// use keepspan::{FellBack, LargestToolOutput, Outcome, tool::{Answer, Dynamic, OpenAiChat}};
/// # #[derive(ContextState)]
/// # #[context(budget = 4_000, trigger = 3_000)]
/// # struct Agent { #[evictable(otherwise)] work: Spans }
/// # fn ask(_: &[Message], _: &Index, _: serde_json::Value) -> serde_json::Value {
/// #     serde_json::json!({ "usage": { "completion_tokens": 90 },
/// #         "choices": [{ "finish_reason": "length", "message": { "content": "Let me" } }] })
/// # }
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let mut window = Window::<Agent, _>::open(MemoryStore::default(), Episode::new("e", "p").trust_estimates())?;
/// # for n in 0..4 { window.lanes().route(NewSpan::tool("read", format!("{n} {}", "let x = 1;\n".repeat(150))))?; }
/// if let Ok(pass) = window.lanes().externalize().wait()?.admit()
///     && let Some(tool) = pass.tool(OpenAiChat, Dynamic)
/// {
///     let response = ask(&pass.render(), pass.index(), tool);
///     let read = Answer::read(OpenAiChat, &response);
///     if read.is_err() {
///         pass.wasted(response["usage"]["completion_tokens"].as_u64().unwrap_or(0));
///     }
///     match read.ok().and_then(|answer| pass.parse(&answer).ok()) {
///         Some(proposal) => {
///             println!("{} tokens after it", pass.preview(&proposal)?.after);
///             if let Outcome::Pruned(report) = pass.apply(proposal).wait()? {
///                 println!("{} spans left", report.tombstones().len());
///             }
///         }
///         None => {
///             if let FellBack::Freed(report) = pass.fall_back(LargestToolOutput).wait()? {
///                 println!("{} spans left without it", report.tombstones().len());
///             }
///         }
///     }
/// }
/// # assert_eq!((window.accounting().passes, window.accounting().rejected), (0, 1));
/// # Ok(())
/// # }
/// ```
#[must_use = "a pass changes nothing until a proposal is applied"]
pub struct Pass<'w, C, St> {
    pub(in crate::window) shared: &'w Shared<St>,
    pub(super) admitted: Admitted,
    pub(super) index: Index,
    pub(super) state: PhantomData<fn() -> C>,
}

impl<'w, C: ContextState + 'w, St> Pass<'w, C, St> {
    /// The numbers on which it was admitted.
    pub fn admitted(&self) -> &Admitted {
        &self.admitted
    }

    /// As [`Window::render`](crate::Window::render), which the pass keeps from being called.
    pub fn render(&self) -> Vec<Message> {
        self.shared.lock().render()
    }

    /// What the model is to read beside the window: `pass.index().to_string()`, one line a candidate.
    pub fn index(&self) -> &Index {
        &self.index
    }

    /// The tool `prune_context` as `provider` takes it: by lane name ([`Static`](crate::tool::Static), the same text in
    /// every request, which keeps the provider's cache) or by span id ([`Dynamic`](crate::tool::Dynamic)). `None` when
    /// there is nothing to offer. No protected lane or id is offered (rule R15).
    pub fn tool<P: Provider, F: Form>(&self, _: P, _: F) -> Option<serde_json::Value>
    where
        C::Policy: Permitted<P, C, C> + Permitted<F, C, C>,
    {
        let names = names::<F>(self.index.offers.iter(), || self.shared.lock().offered_lanes(false));
        Tool::prune::<F>(names).definition::<P>()
    }

    /// The tool `summarize_context`, which puts a text of the model's in the place of evictable spans: as
    /// [`tool`](Self::tool), and `None` as well when the struct has no `#[derived]` lane.
    pub fn summary_tool<P: Provider, F: Form>(&self, _: P, _: F) -> Option<serde_json::Value>
    where
        C::Policy: Permitted<P, C, C> + Permitted<F, C, C>,
    {
        let contents = self.shared.lock();
        contents.derived_lane()?;
        let evictable = |offer: &&Offer| contents.is_evictable(offer.span);
        let spans = self.index.offers.iter().filter(evictable);
        let names = names::<F>(spans, || contents.offered_lanes(true));
        Tool::summarize::<F>(names).definition::<P>()
    }

    /// Reads a model's answer into a proposal, checking every name again, whatever the tool's schema promised (rule R15).
    /// Capitals do not matter; a span that is a pointer already is left out and listed in [`Proposal::already`].
    ///
    /// What the model read and wrote is in the [accounting](crate::Window::accounting) from here on, whatever becomes of
    /// it, so parse each answer once.
    ///
    /// # Errors
    /// [`ProposalError`] names the fault and the span; the window is as it was.
    pub fn parse(&self, answer: &Answer) -> Result<Proposal, ProposalError> {
        let written = written(answer, &*self.shared.counter);
        let mut contents = self.shared.lock();
        let proposed = contents.propose(answer, written, &self.index);
        let taken = proposed.as_ref().ok().map(|proposal| contents.taken_by(proposal));
        contents.decided(&self.index, written, taken);
        proposed
    }

    /// Lets the window go while a model decides in the background: it can be pushed to meanwhile, and
    /// [`Lanes::rebase`](crate::Lanes::rebase) goes on from there. Make the request first: [`render`](Self::render),
    /// [`index`](Self::index), [`tool`](Self::tool).
    ///
    /// ```
    /// # use keepspan::{ContextState, Episode, NewSpan, Outcome, Spans, Window, store::MemoryStore, tool::Answer};
    /// # #[derive(ContextState)]
    /// # #[context(budget = 4_000, trigger = 3_000)]
    /// # struct Agent { #[evictable(otherwise)] work: Spans }
    /// # fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// # let mut window = Window::<Agent, _>::open(MemoryStore::default(), Episode::new("e", "p").trust_estimates())?;
    /// # for n in 0..4 { window.lanes().route(NewSpan::tool("read", format!("{n} {}", "let x = 1;\n".repeat(150))))?; }
    /// let pass = window.lanes().externalize().wait()?.admit().map_err(|refusal| refusal.into_reason())?;
    /// let (index, draft) = (pass.index().to_string(), pass.into_draft());
    /// # let _ = index;
    /// window.lanes().route(NewSpan::human("And the tests?"))?;  // the agent goes on while the model decides
    /// let pass = window.lanes().externalize().wait()?.rebase(draft)?;
    /// let proposal = pass.parse(&Answer::prune(["s1", "s2"]))?;
    /// assert!(matches!(pass.apply(proposal).wait()?, Outcome::Pruned(_)));
    /// # Ok(())
    /// # }
    /// ```
    pub fn into_draft(self) -> Draft<C> {
        let contents = self.shared.lock();
        let (window, edits) = (contents.moment().window, contents.edits);
        drop(contents);
        Draft { window, edits, admitted: self.admitted, index: self.index, state: PhantomData }
    }

    /// What applying would do, without doing it.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub fn preview(&self, proposal: &Proposal) -> Result<Preview, ApplyError> {
        self.shared.lock().preview(proposal, &*self.shared.counter)
    }

    /// Applies a proposal: tombstones, summaries and the pass's record in one atomic commit, then the window. The window
    /// is smaller after it, or as it was. The rationale goes to the `#[rationale]` lane, if there is one (rule R13).
    pub fn apply(self, proposal: Proposal) -> Step<'w, St, Apply> {
        Step::new(self.shared, Apply { proposal, index: self.index.tokens })
    }

    /// Books what an answer took that [`Answer::read`] refused: cut off at the output limit, say. In output tokens, as the
    /// provider reports them; what the model read is added.
    pub fn wasted(&self, output_tokens: u64) {
        self.shared.lock().decided(&self.index, output_tokens, None);
    }

    /// Gives the pass up and frees space without a model, as [`Refusal::fall_back`](super::Refusal::fall_back) does: for
    /// when no answer could be used.
    pub fn fall_back<B: Fallback>(self, _strategy: B) -> Step<'w, St, FallBack<B>>
    where
        C::Policy: Permitted<B, C, C>,
    {
        Step::new(self.shared, FallBack { refused: Refused::Declined, strategy: PhantomData })
    }
}

/// A decision under way that holds no window: what the gate admitted, and the version of the window it was admitted for.
#[must_use = "a draft does nothing until `Lanes::rebase` makes it a pass again"]
pub struct Draft<C> {
    window: u64,
    edits: u64,
    admitted: Admitted,
    index: Index,
    state: PhantomData<fn() -> C>,
}

impl<C> Draft<C> {
    /// As [`Pass::index`].
    pub fn index(&self) -> &Index {
        &self.index
    }
}

impl<C: ContextState> fmt::Debug for Draft<C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Draft").field("state", &C::NAME).field("admitted", &self.admitted).finish_non_exhaustive()
    }
}

impl<'w, C: ContextState + 'w, St, S> Lanes<'w, C, St, S> {
    /// Goes on with a draft: safe while nothing but pushes happened since it was made, and refused as stale otherwise. What
    /// was pushed meanwhile is none of its candidates, and stays.
    ///
    /// # Errors
    /// [`Stale`]; the window is as it was.
    pub fn rebase(self, draft: Draft<C>) -> Result<Pass<'w, C, St>, Stale>
    where
        S: PrunesFrom<C>, // externalized first
    {
        let Draft { window, edits, admitted, index, state } = draft;
        let shared = self.shared;
        let contents = shared.lock();
        if contents.moment().window != window {
            return Err(Stale::OtherWindow);
        }
        match contents.edits.saturating_sub(edits) {
            0 => {}
            changes => return Err(Stale::Changed { changes }),
        }
        drop(contents);
        Ok(Pass { shared, admitted, index, state })
    }
}

/// The names that a form offers.
fn names<'a, F: Form>(offers: impl Iterator<Item = &'a Offer>, lanes: impl FnOnce() -> Vec<String>) -> Vec<String> {
    if F::PROPERTY == Dynamic::PROPERTY { offers.map(|offer| offer.span.to_string()).collect() } else { lanes() }
}

impl<C: ContextState, St> fmt::Debug for Pass<'_, C, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("state", &C::NAME).field("admitted", &self.admitted).finish_non_exhaustive()
    }
}
