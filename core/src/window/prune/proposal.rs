//! What a model proposes, checked name by name against the window (rule R15).

use super::Index;
use crate::{
    ApplyError, ProposalError, SelectionError, SpanId, SummaryText, TokenCounter,
    tool::{Answer, Form as _, Request, Static},
    window::{
        candidates::{Class, Unit},
        contents::{Contents, Moment, repeated},
        summarize::{Finish, ModelAnswer},
        table::Residency,
    },
};

/// What a model proposed, checked: spans to evict, and spans to replace by a summary. It is checked again when it is
/// applied, and one that was made for another window, or before this one changed, is refused there.
#[derive(Clone, Debug)]
pub struct Proposal {
    /// The window and the state that it was made for.
    pub(super) moment: Moment,
    pub(super) evict: Vec<SpanId>,
    pub(super) summaries: Vec<(Vec<SpanId>, SummaryText)>,
    pub(super) rationale: Option<String>,
    /// What the model wrote, in tokens, where its provider or the counter said so.
    pub(super) written: u64,
    pub(super) already: Vec<SpanId>,
}

impl Proposal {
    /// The spans that become pointers, ascending; exchanges are whole.
    pub fn evicts(&self) -> &[SpanId] {
        &self.evict
    }

    /// The sources of each summary, ascending.
    pub fn summarizes(&self) -> impl Iterator<Item = &[SpanId]> {
        self.summaries.iter().map(|(sources, _)| sources.as_slice())
    }

    /// What the model said beside its calls.
    pub fn rationale(&self) -> Option<&str> {
        self.rationale.as_deref()
    }

    /// Spans that were named and are out of the window already: nothing is left to do for them (rule R24).
    pub fn already(&self) -> &[SpanId] {
        &self.already
    }

    /// Whether there is nothing to do.
    pub fn is_empty(&self) -> bool {
        self.evict.is_empty() && self.summaries.is_empty()
    }
}

/// What applying a proposal would come to, in tokens; see [`Pass::preview`](super::Pass::preview).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preview {
    /// What the request takes now, its fixed part included.
    pub before: u64,
    /// What it would take.
    pub after: u64,
    /// What would leave.
    pub gross: u64,
    /// Pointers and summaries that would take its place.
    pub pointers: u64,
    /// The rationale, where it stays.
    pub rationale: u64,
}

impl Contents {
    pub(super) fn propose(&self, answer: &Answer, written: u64, index: &Index) -> Result<Proposal, ProposalError> {
        let mut naming = Naming { contents: self, index, already: Vec::new() };
        let (mut evict, mut summaries) = (Vec::new(), Vec::new());
        for request in answer.requests()? {
            match request {
                Request::Prune { property, names } => evict.extend(naming.named(*property, names, false)?),
                Request::Summarize { property, names, summary } => {
                    let sources = naming.named(*property, names, true)?;
                    if !sources.is_empty() {
                        let text = ModelAnswer::new(Finish::Stop, summary);
                        summaries.push((sources, SummaryText::try_from(text)?));
                    }
                }
            }
        }
        evict.sort_unstable();
        let rationale = Some(answer.rationale().trim()).filter(|text| !text.is_empty()).map(str::to_owned);
        let proposal = Proposal { evict, summaries, rationale, written, already: naming.already, ..self.no_proposal() };
        self.vet(&proposal)?;
        self.none_recent(&proposal, index.recent)?;
        Ok(proposal)
    }

    /// Whether nothing leaves that was among the newest tokens when the index was made: pushes make it older meanwhile.
    fn none_recent(&self, proposal: &Proposal, recent: u64) -> Result<(), ProposalError> {
        let mut all = proposal.summaries.iter().flat_map(|(sources, _)| sources).chain(&proposal.evict);
        match all.find(|span| self.table.get(**span).is_some_and(|entry| entry.end() > recent)) {
            Some(span) => Err(self.is_recent(*span)),
            None => Ok(()),
        }
    }

    fn is_recent(&self, span: SpanId) -> ProposalError {
        ProposalError::Recent { span, keep: self.budget.map_or(0, |budget| budget.keep()) }
    }

    /// One that asks for nothing.
    pub(super) fn no_proposal(&self) -> Proposal {
        Proposal {
            moment: self.moment(),
            evict: Vec::new(),
            summaries: Vec::new(),
            rationale: None,
            written: 0,
            already: Vec::new(),
        }
    }

    /// What a proposal takes out of the window, in tokens.
    pub(super) fn taken_by(&self, proposal: &Proposal) -> u64 {
        let sources = proposal.summaries.iter().map(|(sources, _)| self.tokens_of(sources));
        sources.fold(self.tokens_of(&proposal.evict), u64::saturating_add)
    }

    /// Whether a proposal was made for this window as it is: spans have the same ids in every window.
    pub(super) fn fits(&self, proposal: &Proposal) -> Result<(), ApplyError> {
        let now = self.moment();
        match proposal.moment {
            made if made == now => Ok(()),
            made if made.window == now.window => Err(ApplyError::Outdated),
            _ => Err(ApplyError::OtherWindow),
        }
    }

    /// Whether every span of a proposal may leave in the way it says, now.
    pub(super) fn vet(&self, proposal: &Proposal) -> Result<(), ProposalError> {
        let sources = proposal.summaries.iter().flat_map(|(sources, _)| sources);
        let mut all: Vec<_> = proposal.evict.iter().chain(sources.clone()).copied().collect();
        all.sort_unstable();
        if let Some(span) = repeated(&all) {
            return Err(ProposalError::Overlap { span });
        }
        all.iter().try_for_each(|span| self.may_leave(*span))?;
        sources.into_iter().try_for_each(|span| self.may_be_source(*span))?;
        self.no_half(&all)?;
        if !proposal.summaries.is_empty() && self.derived_lane().is_none() {
            return Err(ProposalError::NoDerivedLane);
        }
        Ok(())
    }

    fn may_leave(&self, span: SpanId) -> Result<(), ProposalError> {
        let entry = self.entry(span)?;
        let lane = self.lane_name(entry);
        self.in_state(span, entry, Residency::Resident)?;
        if self.wires.is_opaque(span) {
            return Err(SelectionError::Opaque { span }.into());
        }
        match self.class(entry.lane) {
            Class::Kept => return Err(ProposalError::Kept { span, lane }),
            Class::Rationale => return Err(ProposalError::NeverCandidate { span, lane }),
            Class::Evictable | Class::Derived | Class::Protected => {}
        }
        if !entry.durable {
            return Err(SelectionError::NotExternalized { span }.into());
        }
        self.not_pending(span, entry)?;
        if entry.end() > self.recent() {
            return Err(self.is_recent(span));
        }
        Ok(())
    }

    fn may_be_source(&self, span: SpanId) -> Result<(), ProposalError> {
        let entry = self.entry(span)?;
        let lane = self.lane_name(entry);
        match self.class(entry.lane) {
            Class::Evictable => Ok(()),
            Class::Derived => Err(ProposalError::DerivedSource { span, lane }),
            _ => Err(ProposalError::ProtectedSource { span, lane }),
        }
    }

    pub(super) fn is_evictable(&self, span: SpanId) -> bool {
        self.unit(span).all(|(part, entry)| self.class_of(part, entry) == Class::Evictable)
    }

    /// The lane that summaries go to: the first `#[derived]` one.
    pub(super) fn derived_lane(&self) -> Option<u16> {
        self.lane_of(Class::Derived)
    }

    /// The first lane of a class.
    pub(super) fn lane_of(&self, class: Class) -> Option<u16> {
        self.classes.iter().position(|found| *found == class).and_then(|at| u16::try_from(at).ok())
    }

    /// Whether a model is offered the lane's spans, for eviction or as sources of a summary.
    fn offers(&self, lane: u16, as_sources: bool) -> bool {
        let class = self.class(lane);
        if as_sources { class == Class::Evictable } else { class.is_offered() }
    }

    /// The lanes whose spans a model is offered: the same for every window of a type.
    pub(super) fn offered_lanes(&self, as_sources: bool) -> Vec<String> {
        let offered = (0_u16..).zip(self.lanes).filter(|(lane, _)| self.offers(*lane, as_sources));
        offered.map(|(_, lane)| lane.name().to_owned()).collect()
    }

    /// What is evicted when a lane is named: each candidate in it, but for summaries written since the last push, which
    /// the same answer may have asked for (rule R24).
    fn candidates_in(&self, lane: u16) -> impl Iterator<Item = Unit> {
        let written = |unit: &Unit, start| unit.class == Class::Derived && start >= self.newest;
        let named = move |unit: &Unit| {
            self.table.get(unit.span).is_some_and(|entry| entry.lane == lane && !written(unit, entry.start))
        };
        self.units().filter(move |unit| named(unit) && self.is_candidate(unit))
    }
}

/// Names into spans, each once.
struct Naming<'a> {
    contents: &'a Contents,
    index: &'a Index,
    already: Vec<SpanId>,
}

impl Naming<'_> {
    /// Spans or the candidates of lanes, as the tool's property says; a program's answer may name either.
    fn named(
        &mut self,
        property: Option<&str>,
        names: &[String],
        as_sources: bool,
    ) -> Result<Vec<SpanId>, ProposalError> {
        let lane = |name: &String| self.lane(name).is_some();
        let by_lane = match property {
            Some(property) => property == Static::PROPERTY,
            None => !names.is_empty() && names.iter().all(lane),
        };
        if by_lane { self.lanes(names, as_sources) } else { self.spans(names) }
    }

    fn lane(&self, name: &str) -> Option<u16> {
        let name = name.trim();
        let position =
            |same: fn(&str, &str) -> bool| self.contents.lanes.iter().position(|lane| same(lane.name(), name));
        // Two lanes may differ in capitals alone.
        let at = position(|lane, name| lane == name).or_else(|| position(str::eq_ignore_ascii_case))?;
        u16::try_from(at).ok()
    }

    /// The spans named, with those that leave together with them, ascending.
    fn spans(&mut self, names: &[String]) -> Result<Vec<SpanId>, ProposalError> {
        let id = |name: &String| {
            let offered = self.index.offers.len();
            SpanId::parse(name).ok_or_else(|| ProposalError::NoId { name: shown(name), offered })
        };
        let mut named = names.iter().map(id).collect::<Result<Vec<_>, _>>()?;
        named.sort_unstable();
        if let Some(span) = repeated(&named) {
            return Err(ProposalError::Twice { span });
        }
        let mut resident = Vec::with_capacity(named.len());
        for span in named {
            match self.contents.entry(span)?.residency {
                Residency::Resident => resident.push(span),
                Residency::Discarded => return Err(SelectionError::Discarded { span }.into()),
                _ => self.already.push(span),
            }
        }
        let whole = self.contents.whole(resident, Residency::Resident);
        // Also a result that came meanwhile and completes an exchange that was pending.
        match whole.iter().find(|span| **span >= self.index.until) {
            Some(span) => Err(ProposalError::Newer { span: *span }),
            None => Ok(whole),
        }
    }

    /// The candidates of the lanes named.
    fn lanes(&mut self, names: &[String], as_sources: bool) -> Result<Vec<SpanId>, ProposalError> {
        let offered = || self.contents.offered_lanes(as_sources).join(", ");
        let mut lanes = Vec::with_capacity(names.len());
        for name in names {
            let lane =
                self.lane(name).ok_or_else(|| ProposalError::NoLane { name: shown(name), offered: offered() })?;
            if !self.contents.offers(lane, as_sources) {
                return Err(ProposalError::LaneNotOffered { name: shown(name), offered: offered() });
            }
            lanes.push(lane);
        }
        // Pushes make what was among the newest tokens older, and complete what was pending.
        let Index { until, recent, .. } = *self.index;
        let known =
            |unit: &Unit| self.contents.unit(unit.span).all(|(span, entry)| span < until && entry.end() <= recent);
        let wanted = |unit: &Unit| known(unit) && (!as_sources || self.contents.is_evictable(unit.span));
        let units = lanes.into_iter().flat_map(|lane| self.contents.candidates_in(lane)).filter(wanted);
        let mut spans: Vec<_> = units.map(|unit| unit.span).collect();
        spans.sort_unstable();
        spans.dedup();
        Ok(self.contents.whole(spans, Residency::Resident))
    }
}

/// A name as a message shows it: a model can write anything.
fn shown(name: &str) -> String {
    crate::pointer::Plain(&name.chars().take(60).collect::<String>()).to_string()
}

/// What the model wrote: as its provider reported, or else its words and names as counted. It is spent, so what cannot be
/// counted is charged all the same, at a token a byte.
pub(super) fn written(answer: &Answer, counter: &dyn TokenCounter) -> u64 {
    if let Some(reported) = answer.output_tokens() {
        return reported;
    }
    let count = |text: &str| match text {
        "" => 0,
        text => counter
            .text(text)
            .map_or_else(|_| u64::try_from(text.len()).unwrap_or(u64::MAX), |count| u64::from(count.tokens())),
    };
    answer.calls().iter().fold(count(answer.rationale()), |sum, call| {
        let names = count(&call.names().join(" "));
        sum.saturating_add(names).saturating_add(count(call.summary().unwrap_or_default()))
    })
}
