//! The gate of a window: a pass, or a refusal that can fall back (rules R9 to R11).

use std::{fmt, marker::PhantomData};

use super::{
    apply::Apply,
    fallback::{FallBack, Fallback},
    index::Index,
    proposal::{Preview, Proposal, written},
};
use crate::{
    ApplyError, ContextState, Message, Prices, ProposalError, Step,
    gate::{Admitted, Ask, Held, Refused},
    policy::Permitted,
    rule::PrunesFrom,
    tool::{Answer, Dynamic, Form, Provider, Tool},
    window::{
        Lanes, Shared,
        candidates::Tally,
        contents::{Commit, Contents},
    },
};

/// What to do about the size of a window now; see [`Lanes::advice`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Advice {
    /// Nothing: below the trigger, or without a budget, and the gate would refuse.
    GoOn(Refused),
    /// A pass is affordable and would free enough, but the window is far from the trigger: waiting costs nothing, and more
    /// comes together for one decision.
    MayPrune(Admitted),
    /// The best moment: a pass is affordable and would free enough, and the trigger is reached, or will be once a rationale
    /// is written.
    Prune(Admitted),
    /// At or above the trigger, and no model may decide: fall back.
    FallBack(Refused),
}

impl<'w, C: ContextState + 'w, St, S> Lanes<'w, C, St, S> {
    /// Asks the gate whether a model may decide now (rules R9, R10). O(resident spans).
    ///
    /// # Errors
    /// A [`Refusal`] with the numbers; it can [fall back](Refusal::fall_back). It holds the window, so `?` cannot pass it on:
    /// match it, or pass on its [reason](Refusal::reason).
    pub fn admit(self) -> Result<Pass<'w, C, St>, Refusal<'w, C, St>>
    where
        S: PrunesFrom<C>, // externalized first
    {
        let shared = self.shared;
        let mut contents = shared.lock();
        let admitted = contents.admit(&*shared.counter);
        match admitted {
            Ok((admitted, index)) => {
                contents.line_price = index.price_of_a_line().unwrap_or(contents.line_price);
                Ok(Pass { shared, admitted, index, state: PhantomData })
            }
            Err(refused) => {
                let times = contents.refused(&refused);
                drop(contents);
                Err(Refusal { shared, refused, times, state: PhantomData })
            }
        }
    }

    /// What to do about the window's size, without asking for a pass. O(resident spans), no allocation.
    pub fn advice(&self) -> Advice {
        let contents = self.shared.lock();
        let request = contents.request();
        // What a decision leaves in the window in any case.
        let decided = request.saturating_add(contents.ledger.prices().rationale);
        let reaches = |tokens: u64| contents.budget.is_some_and(|budget| tokens >= budget.trigger());
        match contents.decide() {
            Ok(admitted) if reaches(decided) => Advice::Prune(admitted),
            Ok(admitted) => Advice::MayPrune(admitted),
            Err(refused) if reaches(request) => Advice::FallBack(refused),
            Err(refused) => Advice::GoOn(refused),
        }
    }
}

impl Contents {
    /// What a request takes: the fixed part and the window.
    pub(crate) fn request(&self) -> u64 {
        self.budget.map_or(0, |budget| budget.fixed()).saturating_add(self.utilization)
    }

    /// The gate with expected prices. No allocation.
    fn decide(&self) -> Result<Admitted, Refused> {
        let budget = self.budget.ok_or(Refused::NoBudget)?;
        if !self.trusts_estimates && self.certainty == crate::Certainty::Estimate {
            return Err(Refused::Estimated { utilization: self.utilization });
        }
        if self.commit == Commit::Interrupted {
            return Err(Refused::Interrupted);
        }
        let prices = self.ledger.prices();
        let Prices { index, rationale, .. } = prices;
        if let Some(most) = self.max_decision.filter(|most| index.saturating_add(rationale) > *most) {
            return Err(Refused::AbovePolicy { index, rationale, most });
        }
        let tally = self.tally();
        // No more lines than a tool definition takes, nor than fit the index.
        let most = budget.index().checked_div(self.line_price).unwrap_or(0).min(MOST);
        let (candidates, gross) = tally.largest(most);
        let ask = Ask {
            utilization: self.request(),
            limit: budget.limit(),
            candidates,
            gross: taken(gross, prices.uptake),
            index: prices.index,
            rationale: prices.rationale,
            pointers: taken(candidates.saturating_mul(prices.pointer), prices.uptake),
            cache: self.cache_cost(tally.before),
            margin: budget.margin().max(prices.rationale),
        };
        ask.decide().map_err(|refused| explained(refused, &tally))
    }

    /// Below the trigger a pass is a choice and pays for the cache it loses; above, the space is needed.
    pub(super) fn cache_cost(&self, before: Option<u64>) -> u64 {
        let due = self.budget.is_some_and(|budget| self.request() >= budget.trigger());
        match (self.cache, before) {
            (Some(price), Some(before)) if !due => price.tokens(self.utilization.saturating_sub(before)),
            _ => 0,
        }
    }

    /// The gate, then the index, then the gate again with what the index really is.
    fn admit(&self, counter: &dyn crate::TokenCounter) -> Result<(Admitted, Index), Refused> {
        let expected = self.decide()?;
        let budget = self.budget.ok_or(Refused::NoBudget)?;
        let prices = self.ledger.prices();
        let index =
            self.index(budget.index(), counter).map_err(|error| Refused::Uncounted { error: error.to_string() })?;
        let candidates = u64::try_from(index.offers.len()).unwrap_or(u64::MAX);
        let ask = Ask {
            candidates,
            gross: taken(index.gross(), prices.uptake),
            index: index.tokens,
            pointers: taken(candidates.saturating_mul(prices.pointer), prices.uptake),
            ..expected.ask
        };
        let admitted = ask.decide().map_err(|refused| explained(refused, &self.tally()))?;
        Ok((admitted, index))
    }

    fn refused(&mut self, refused: &Refused) -> u32 {
        let (at, utilization, changes) = (self.pushed_tokens, self.request(), self.changes);
        self.ledger.refused(at, utilization, changes, refused.reason())
    }
}

/// Where there is nothing to prune, says why.
fn explained(refused: Refused, tally: &Tally) -> Refused {
    match refused {
        Refused::NothingToPrune { headroom, .. } => {
            // Whatever candidates there are had no line in the index.
            let held = Held { unlisted: tally.largest(u64::MAX).1, ..tally.held };
            Refused::NothingToPrune { headroom, held }
        }
        other => other,
    }
}

/// What of the offered tokens a model is expected to take.
fn taken(tokens: u64, uptake: u64) -> u64 {
    u64::try_from(u128::from(tokens).saturating_mul(u128::from(uptake)).div_euclid(1_000)).unwrap_or(u64::MAX)
}

const MOST: u64 = crate::tool::MAX_OFFERED as u64;

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
    shared: &'w Shared<St>,
    admitted: Admitted,
    index: Index,
    state: PhantomData<fn() -> C>,
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
        let evictable = |offer: &&super::Offer| contents.is_evictable(offer.span);
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
        let now = [contents.pushed_tokens, contents.request()];
        contents.ledger.decided(now, [self.index.tokens, written], taken, self.index.gross());
        proposed
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
}

/// The names that a form offers.
fn names<'a, F: Form>(
    offers: impl Iterator<Item = &'a super::Offer>,
    lanes: impl FnOnce() -> Vec<String>,
) -> Vec<String> {
    if F::PROPERTY == Dynamic::PROPERTY { offers.map(|offer| offer.span.to_string()).collect() } else { lanes() }
}

impl<'w, C: ContextState + 'w, St> Pass<'w, C, St> {
    /// Books what an answer took that [`Answer::read`] refused: cut off at the output limit, say. In output tokens, as the
    /// provider reports them; what the model read is added.
    pub fn wasted(&self, output_tokens: u64) {
        let mut contents = self.shared.lock();
        let now = [contents.pushed_tokens, contents.request()];
        contents.ledger.decided(now, [self.index.tokens, output_tokens], None, self.index.gross());
    }

    /// Gives the pass up and frees space without a model, as [`Refusal::fall_back`] does: for when no answer could be used.
    pub fn fall_back<B: Fallback>(self, _strategy: B) -> Step<'w, St, FallBack<B>>
    where
        C::Policy: Permitted<B, C, C>,
    {
        Step::new(self.shared, FallBack { refused: Refused::Declined, strategy: PhantomData })
    }
}

impl<C: ContextState, St> fmt::Debug for Pass<'_, C, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pass").field("state", &C::NAME).field("admitted", &self.admitted).finish_non_exhaustive()
    }
}

/// The gate's no, with the permit to free space without a model (rule R14).
#[must_use = "a refused window still has to be freed: fall back, or go on"]
pub struct Refusal<'w, C, St> {
    shared: &'w Shared<St>,
    refused: Refused,
    times: u32,
    state: PhantomData<fn() -> C>,
}

impl<'w, C: ContextState + 'w, St> Refusal<'w, C, St> {
    /// Why, with the numbers.
    pub fn reason(&self) -> &Refused {
        &self.refused
    }

    /// The reason alone, which is an error like any other: for `?`.
    pub fn into_reason(self) -> Refused {
        self.refused
    }

    /// How often this same refusal came by now while nothing changed in the window: above 1, asking again is a loop.
    pub fn times(&self) -> u32 {
        self.times
    }

    /// Frees space without a model, down to the trigger: evictable lanes first, then rationales, then summaries; and, only
    /// to get below the limit, protected lanes that are not pinned. Instructions never leave (rule R14).
    ///
    /// # Errors
    /// [`FallBackError`](crate::FallBackError): above all `Unfittable`, when what may not leave is larger than the limit.
    pub fn fall_back<B: Fallback>(self, _strategy: B) -> Step<'w, St, FallBack<B>>
    where
        C::Policy: Permitted<B, C, C>,
    {
        Step::new(self.shared, FallBack { refused: self.refused, strategy: PhantomData })
    }
}

impl<C: ContextState, St> fmt::Debug for Refusal<'_, C, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Refusal").field("state", &C::NAME).field("refused", &self.refused).finish_non_exhaustive()
    }
}

impl<C, St> fmt::Display for Refusal<'_, C, St> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.refused.fmt(f)
    }
}
