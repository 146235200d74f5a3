//! What may leave a window, and why the rest may not: one walk over the resident spans, without allocation.

use crate::{
    LaneSpec, SpanId,
    gate::Held,
    kind::{Derived, Evictable, Instruction, Kind as _, Rationale},
    window::{
        contents::Contents,
        table::{Entry, Residency},
    },
};

/// In which order lanes give way when no model decides (rule R14); a unit of several lanes has its last class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    Evictable,
    Rationale,
    Derived,
    Protected,
    /// Instructions and pinned lanes.
    Kept,
}

impl Class {
    pub(crate) fn of(lane: &LaneSpec) -> Self {
        let kind = lane.kind();
        match () {
            () if lane.pinned() || kind == Instruction::ID => Self::Kept,
            () if kind == Evictable::ID => Self::Evictable,
            () if kind == Rationale::ID => Self::Rationale,
            () if kind == Derived::ID => Self::Derived,
            () => Self::Protected,
        }
    }

    /// Whether a model is offered such spans (rules R13, R15).
    pub(crate) fn is_offered(self) -> bool {
        matches!(self, Self::Evictable | Self::Derived)
    }
}

/// What leaves as a whole: a span, or an exchange (rule R16).
#[derive(Clone, Copy, Debug)]
pub struct Unit {
    /// Its first resident span.
    pub(crate) span: SpanId,
    /// Of its resident spans together.
    pub(crate) tokens: u64,
    /// What the usual pointers to it take: one a span, or one for neighbours, which names those that are protected.
    pub(crate) price: u64,
    pub(crate) class: Class,
    pub(crate) standing: Standing,
    /// Tokens of the resident spans before it.
    pub(crate) before: u64,
}

impl Unit {
    /// Whether the usual pointers to it take as much as itself.
    pub(crate) fn is_small(&self) -> bool {
        self.tokens <= self.price
    }
}

/// Whether a unit can be taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Free,
    /// Its exchange lacks a result.
    Pending,
    /// Among the newest tokens, which the budget keeps.
    Recent,
}

/// What a pass could reclaim, counted by powers of two so that the largest can be summed without sorting.
#[derive(Clone, Debug)]
pub(crate) struct Tally {
    counts: [u64; BUCKETS],
    tokens: [u64; BUCKETS],
    pub(crate) held: Held,
    /// Tokens before the first candidate.
    pub(crate) before: Option<u64>,
}

const BUCKETS: usize = 65;

impl Tally {
    fn add(&mut self, unit: &Unit) {
        let bucket = usize::try_from(u64::BITS.saturating_sub(unit.tokens.leading_zeros())).unwrap_or(0);
        if let (Some(count), Some(tokens)) = (self.counts.get_mut(bucket), self.tokens.get_mut(bucket)) {
            *count = count.saturating_add(1);
            *tokens = tokens.saturating_add(unit.tokens);
        }
        self.before.get_or_insert(unit.before);
    }

    /// How many of the `most` largest there are, and at least how many tokens they take: exact where all fit, and by the
    /// average of the last bucket where not, since its largest are no smaller.
    pub(crate) fn largest(&self, most: u64) -> (u64, u64) {
        let (mut left, mut sum) = (most, 0_u64);
        for (count, tokens) in self.counts.iter().zip(&self.tokens).rev() {
            let average = tokens.checked_div(*count).unwrap_or(0);
            sum = sum.saturating_add(if *count <= left { *tokens } else { average.saturating_mul(left) });
            left = left.saturating_sub(*count);
        }
        (most.saturating_sub(left), sum)
    }
}

impl Contents {
    pub(crate) fn class(&self, lane: u16) -> Class {
        self.classes.get(usize::from(lane)).copied().unwrap_or(Class::Kept)
    }

    /// The class of a span: what the library cannot read is kept, whatever its lane.
    pub(crate) fn class_of(&self, span: SpanId, entry: &Entry) -> Class {
        if self.wires.is_opaque(span) { Class::Kept } else { self.class(entry.lane) }
    }

    /// Spans that end after this are among the newest tokens, which the budget keeps.
    pub(crate) fn recent(&self) -> u64 {
        match self.budget.map_or(0, |budget| budget.keep()) {
            0 => u64::MAX,
            keep => self.newest.saturating_sub(keep),
        }
    }

    /// Every unit that has a resident span, oldest first. O(resident spans), no allocation.
    pub(crate) fn units(&self) -> impl Iterator<Item = Unit> {
        let recent = self.recent();
        let mut before = 0_u64;
        self.table.resident().filter_map(move |(span, entry)| {
            let here = before;
            before = before.saturating_add(u64::from(entry.tokens));
            if entry.exchange {
                return self.exchange(span, here, recent);
            }
            let standing = if entry.end() > recent { Standing::Recent } else { Standing::Free };
            let (tokens, class) = (u64::from(entry.tokens), self.class_of(span, entry));
            Some(Unit { span, tokens, price: self.pointer_price, class, standing, before: here })
        })
    }

    /// The unit of an exchange, at the first of its resident spans.
    fn exchange(&self, span: SpanId, before: u64, recent: u64) -> Option<Unit> {
        let mut resident = self.unit(span);
        let (first, entry) = resident.next()?;
        if first != span {
            return None;
        }
        let (mut tokens, mut class, mut end) = (u64::from(entry.tokens), self.class_of(first, entry), entry.end());
        let (mut price, mut last) = (self.pointer_price, first);
        for (part, entry) in resident {
            let here = self.class_of(part, entry);
            price = price.saturating_add(match here {
                _ if last.next() != part => self.pointer_price,
                Class::Protected => self.name_price,
                _ => 0,
            });
            last = part;
            tokens = tokens.saturating_add(u64::from(entry.tokens));
            class = class.max(here);
            end = end.max(entry.end());
        }
        let standing = match () {
            () if self.exchanges.is_pending(span) => Standing::Pending,
            () if end > recent => Standing::Recent,
            () => Standing::Free,
        };
        Some(Unit { span, tokens, price, class, standing, before })
    }

    /// The resident spans that leave together with `span`, itself among them, oldest first.
    pub(crate) fn unit(&self, span: SpanId) -> impl Iterator<Item = (SpanId, &Entry)> {
        self.parts(span).filter(|(_, entry)| entry.is_resident())
    }

    /// The spans of the exchange that `span` is part of, or itself alone, oldest first.
    pub(super) fn parts(&self, span: SpanId) -> impl Iterator<Item = (SpanId, &Entry)> {
        let exchange = self.table.get(span).filter(|entry| entry.exchange).and_then(|_| self.exchanges.unit(span));
        let alone = exchange.is_none().then_some(span);
        let parts = exchange.unwrap_or_default().iter().copied().chain(alone);
        parts.filter_map(|span| Some((span, self.table.get(span)?)))
    }

    /// `spans` with all that leaves or comes back together with them, ascending (rule R16): parts that are in the same
    /// state as those named. O(spans · log spans).
    pub(crate) fn whole(&self, spans: Vec<SpanId>, state: Residency) -> Vec<SpanId> {
        let exchange = |span: &SpanId| self.table.get(*span).is_some_and(|entry| entry.exchange);
        if !spans.iter().any(exchange) {
            return spans;
        }
        let parts = spans.iter().flat_map(|span| self.parts(*span)).filter(|(_, entry)| entry.residency == state);
        let mut whole: Vec<_> = parts.map(|(span, _)| span).collect();
        whole.sort_unstable();
        whole.dedup();
        whole
    }

    /// Whether a unit is a candidate of a pass: offered, free, and larger than the usual pointers to it.
    pub(crate) fn is_candidate(&self, unit: &Unit) -> bool {
        unit.class.is_offered() && unit.standing == Standing::Free && !unit.is_small()
    }

    /// Counts the candidates, and what is none. O(resident spans), no allocation.
    pub(crate) fn tally(&self) -> Tally {
        let mut tally = Tally { counts: [0; BUCKETS], tokens: [0; BUCKETS], held: Held::default(), before: None };
        // Walked from inside, which costs half of what a `for` loop would over the nested blocks.
        self.units().for_each(|unit| {
            if self.is_candidate(&unit) {
                return tally.add(&unit);
            }
            let held = &mut tally.held;
            let part = match (unit.standing, unit.class) {
                (_, Class::Kept) => &mut held.kept,
                (Standing::Pending, _) => &mut held.pending,
                (Standing::Recent, _) => &mut held.recent,
                (Standing::Free, Class::Protected) => &mut held.protected,
                (Standing::Free, Class::Rationale) => &mut held.rationales,
                (Standing::Free, _) => &mut held.small,
            };
            *part = part.saturating_add(unit.tokens);
        });
        tally
    }
}
