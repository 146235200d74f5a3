//! The pointers a window shows: one an evicted span, or one for a whole run of evicted neighbours.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::{Certainty, CounterError, SpanId, TokenCount};

/// A pointer that covers every span from its key to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Run {
    pub(crate) last: SpanId,
    /// What the pointer's own line costs.
    pub(crate) tokens: u32,
}

/// Pointers by the first span they cover.
#[derive(Debug, Default)]
pub(crate) struct Pointers(BTreeMap<SpanId, Run>);

/// A change of the pointers, made ready before a commit, recorded in it and applied after it: so a window that is resumed
/// counts nothing again.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Edit {
    /// The least certain count among the new pointers.
    pub(crate) certainty: Certainty,
    remove: Vec<SpanId>,
    insert: Vec<(SpanId, Run)>,
}

/// Prices the pointer to a run.
type Price<'a> = &'a dyn Fn(SpanId, SpanId) -> Result<TokenCount, CounterError>;

/// How many spans the pointer to a run names; none where it is shared with no neighbour.
type Named<'a> = &'a dyn Fn(SpanId, SpanId) -> Option<usize>;

/// The most spans that a pointer names: neighbours beyond it have another, so that an edit costs no more for a long run.
pub(crate) const MOST_NAMED: usize = 32;

/// A pointer in the making.
#[derive(Clone, Copy)]
struct Piece {
    first: SpanId,
    last: SpanId,
    named: Option<usize>,
    /// Whether the window has just this pointer.
    old: bool,
}

impl Piece {
    /// The pointer to both, where they are neighbours that share one.
    fn joined(self, next: Self) -> Option<Self> {
        let named = self.named?.checked_add(next.named?).filter(|named| *named <= MOST_NAMED)?;
        let joined = Self { first: self.first, last: next.last, named: Some(named), old: false };
        follows(self.last, next.first).then_some(joined)
    }
}

impl Pointers {
    pub(crate) fn iter(&self) -> impl Iterator<Item = (SpanId, Run)> {
        self.0.iter().map(|(first, run)| (*first, *run))
    }

    pub(crate) fn get(&self, first: SpanId) -> Option<Run> {
        self.0.get(&first).copied()
    }

    /// The run that covers `id`; O(log runs).
    fn covering(&self, id: SpanId) -> Option<(SpanId, Run)> {
        let (first, run) = self.0.range(..=id).next_back()?;
        (run.last >= id).then_some((*first, *run))
    }

    /// Pointers for `ids`, ascending, that neighbours share, old and new. O(ids · log runs).
    pub(crate) fn cover(&self, ids: &[SpanId], named: Named<'_>, price: Price<'_>) -> Result<Edit, CounterError> {
        let old =
            |(first, run): (SpanId, Run)| Piece { first, last: run.last, named: named(first, run.last), old: true };
        let mut edit = Edit::new();
        let mut open = None::<Piece>;
        for &id in ids {
            if open.is_none_or(|open| !follows(open.last, id))
                && let Some(run) = before(id).and_then(|before| self.covering(before))
            {
                edit.join(&mut open, old(run), price)?;
            }
            edit.join(&mut open, new(id, named), price)?;
            if let Some(run) = after(id).and_then(|next| Some((next, self.get(next)?))) {
                edit.join(&mut open, old(run), price)?;
            }
        }
        edit.close(open, price)?;
        Ok(edit)
    }

    /// Takes `ids`, ascending, out of the runs that cover them, which may split. O(ids · log runs).
    pub(crate) fn uncover(&self, ids: &[SpanId], price: Price<'_>) -> Result<Edit, CounterError> {
        let mut edit = Edit::new();
        let mut rest: Option<(SpanId, SpanId)> = None;
        for &id in ids {
            let (first, last) = match rest {
                Some((first, last)) if id <= last => (first, last),
                _ => {
                    edit.point(rest.take(), price)?;
                    let Some((first, run)) = self.covering(id) else { continue };
                    edit.remove.push(first);
                    (first, run.last)
                }
            };
            let before = before(id).filter(|before| *before >= first);
            edit.point(before.map(|before| (first, before)), price)?;
            rest = after(id).filter(|next| *next <= last).map(|next| (next, last));
        }
        edit.point(rest, price)?;
        Ok(edit)
    }

    /// The same pointers at the price they have now, where that is another; those that would name too many, in parts.
    /// O(spans that are pointers).
    pub(crate) fn priced_again(&self, named: Named<'_>, price: Price<'_>) -> Result<Edit, CounterError> {
        let mut edit = Edit::new();
        for (first, run) in &self.0 {
            if named(*first, run.last).is_some_and(|named| named > MOST_NAMED) {
                edit.remove.push(*first);
                let mut open = None;
                for id in (first.number()..=run.last.number()).map(SpanId::mint) {
                    edit.join(&mut open, new(id, named), price)?;
                }
                edit.close(open, price)?;
                continue;
            }
            let count = price(*first, run.last)?;
            if count.tokens() != run.tokens {
                edit.certainty = edit.certainty.max(count.certainty());
                edit.remove.push(*first);
                edit.insert.push((*first, Run { last: run.last, tokens: count.tokens() }));
            }
        }
        Ok(edit)
    }

    /// The tokens of the pointers that `edit` removes and of those that it adds.
    pub(crate) fn delta(&self, edit: &Edit) -> (u64, u64) {
        let gone = edit.remove.iter().filter_map(|first| self.0.get(first)).map(|run| u64::from(run.tokens)).sum();
        (gone, edit.come())
    }

    /// The first span for which `edit` makes no sense: a pointer that is not there goes, or one covers spans that never were.
    pub(crate) fn misses(&self, edit: &Edit, spans: u64) -> Option<SpanId> {
        let gone = edit.remove.iter().find(|first| !self.0.contains_key(first)).copied();
        let come =
            |(first, run): &&(SpanId, Run)| first.number() == 0 || run.last < *first || run.last.number() > spans;
        gone.or_else(|| edit.insert.iter().find(come).map(|(first, _)| *first))
    }

    /// Applies `edit`; gives the tokens of the pointers that went and of those that came.
    pub(crate) fn apply(&mut self, edit: Edit) -> (u64, u64) {
        let gone = edit.remove.iter().filter_map(|first| self.0.remove(first)).map(|run| u64::from(run.tokens)).sum();
        let come = edit.come();
        self.0.extend(edit.insert);
        (gone, come)
    }
}

impl Edit {
    /// Whether it changes anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.remove.is_empty() && self.insert.is_empty()
    }

    /// How many pointers it adds.
    pub(crate) fn added(&self) -> u64 {
        u64::try_from(self.insert.len()).unwrap_or(u64::MAX)
    }

    /// The tokens of the pointers that it adds.
    fn come(&self) -> u64 {
        self.insert.iter().map(|(_, run)| u64::from(run.tokens)).sum()
    }

    fn new() -> Self {
        Self { certainty: Certainty::Exact, remove: Vec::new(), insert: Vec::new() }
    }

    /// Adds a pointer to what is open, or closes that and opens this one.
    fn join(&mut self, open: &mut Option<Piece>, next: Piece, price: Price<'_>) -> Result<(), CounterError> {
        let Some((one, joined)) = open.and_then(|one| Some((one, one.joined(next)?))) else {
            return self.close(open.replace(next), price);
        };
        self.remove.extend([one, next].iter().filter(|piece| piece.old).map(|piece| piece.first));
        *open = Some(joined);
        Ok(())
    }

    fn close(&mut self, piece: Option<Piece>, price: Price<'_>) -> Result<(), CounterError> {
        self.point(piece.filter(|piece| !piece.old).map(|piece| (piece.first, piece.last)), price)
    }

    fn point(&mut self, run: Option<(SpanId, SpanId)>, price: Price<'_>) -> Result<(), CounterError> {
        if let Some((first, last)) = run {
            let count = price(first, last)?;
            self.certainty = self.certainty.max(count.certainty());
            self.insert.push((first, Run { last, tokens: count.tokens() }));
        }
        Ok(())
    }
}

fn new(id: SpanId, named: Named<'_>) -> Piece {
    Piece { first: id, last: id, named: named(id, id), old: false }
}

fn before(id: SpanId) -> Option<SpanId> {
    id.number().checked_sub(1).map(SpanId::mint)
}

fn after(id: SpanId) -> Option<SpanId> {
    id.number().checked_add(1).map(SpanId::mint)
}

fn follows(last: SpanId, id: SpanId) -> bool {
    after(last) == Some(id)
}
