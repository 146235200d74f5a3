//! The spans of an episode, by id: ids are minted in order, so the id is the position.

use crate::{Certainty, Content, Digest, Origin, Role, SpanId, TokenCount};

/// Whether a span's text is in the window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Residency {
    Resident,
    /// A pointer stands in its place.
    Evicted,
    /// A summary stands in its place.
    Replaced,
    /// Removed by a declared mutation.
    Discarded,
    /// A summary that was re-grounded or escalated.
    Retired,
    /// It entered, and the process ended before a commit had it: only its number is known.
    Unrecorded,
}

/// One span: 80 bytes beside its text.
#[derive(Debug)]
pub(crate) struct Entry {
    /// The text, shared with batches and renders; `None` once it left.
    pub(crate) content: Option<Content>,
    /// Set once the store holds the span.
    pub(crate) digest: Digest,
    pub(crate) start: u64,
    pub(crate) tokens: u32,
    /// Index into the window's tool names.
    pub(crate) name: Option<std::num::NonZeroU16>,
    pub(crate) lane: u16,
    pub(crate) certainty: Certainty,
    pub(crate) origin: Origin,
    pub(crate) role: Role,
    pub(crate) residency: Residency,
    pub(crate) durable: bool,
    /// A commit with its bytes was begun, so the store may have them.
    pub(crate) offered: bool,
    /// Content is text, known also after it left.
    pub(crate) text: bool,
    /// Part of an exchange (rule R16).
    pub(crate) exchange: bool,
}

const _: () = assert!(size_of::<Entry>() <= 80);

impl Entry {
    pub(crate) fn is_resident(&self) -> bool {
        self.residency == Residency::Resident
    }

    /// Whether the window shows it, or a notice in its place.
    pub(crate) fn is_shown(&self) -> bool {
        matches!(self.residency, Residency::Resident | Residency::Discarded)
    }

    pub(crate) fn count(&self) -> TokenCount {
        TokenCount::of(self.tokens, self.certainty)
    }

    /// A span of which only the number is known, after so many tokens.
    pub(crate) fn unrecorded(start: u64) -> Self {
        Self {
            content: None,
            digest: Digest::from_bytes([0; 32]),
            start,
            tokens: 0,
            name: None,
            lane: u16::MAX,
            certainty: Certainty::Exact,
            origin: Origin::Notice,
            role: Role::System,
            residency: Residency::Unrecorded,
            durable: false,
            offered: false,
            text: false,
            exchange: false,
        }
    }

    /// The same span, not committed yet, at another place.
    pub(crate) fn again(&self, start: u64) -> Self {
        Self { content: self.content.clone(), start, durable: false, ..*self }
    }

    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.tokens))
    }
}

/// Entries in blocks of fixed size, so that growing never moves nor over-allocates more than one block.
#[derive(Debug, Default)]
pub(crate) struct Table {
    blocks: Vec<Block>,
    /// One bit for each block that has a resident entry: in a long episode most have none.
    occupied: Vec<u64>,
    length: u64,
}

#[derive(Debug)]
struct Block {
    entries: Vec<Entry>,
    /// One bit for each of them that is resident, so that a walk passes over pointers, 64 at a time.
    resident: [u64; WORDS],
}

const BLOCK: usize = 512;
const WORDS: usize = BLOCK / 64;

impl Block {
    /// Whether any of them is resident.
    fn is_occupied(&self) -> bool {
        self.resident.iter().any(|word| *word != 0)
    }

    fn mark(&mut self, at: usize, resident: bool) {
        let bit = 1_u64 << (at & 63);
        if let Some(word) = self.resident.get_mut(at >> 6) {
            *word = if resident { *word | bit } else { *word & !bit };
        }
    }

    fn push(&mut self, entry: Entry) {
        self.mark(self.entries.len(), entry.is_resident());
        self.entries.push(entry);
    }
}

impl Table {
    pub(crate) fn next_id(&self) -> SpanId {
        SpanId::mint(self.length.saturating_add(1))
    }

    pub(crate) fn push(&mut self, entry: Entry) -> SpanId {
        let (id, resident) = (self.next_id(), entry.is_resident());
        match self.blocks.last_mut() {
            Some(block) if block.entries.len() < BLOCK => block.push(entry),
            // The first block grows as a `Vec` does, so that a small window stays small.
            _ => {
                let entries = Vec::with_capacity(if self.blocks.is_empty() { 0 } else { BLOCK });
                let mut block = Block { entries, resident: [0; WORDS] };
                block.push(entry);
                self.blocks.push(block);
            }
        }
        self.length = id.number();
        self.occupy(self.blocks.len().saturating_sub(1), resident);
        id
    }

    /// Puts an entry in the place of one that is [unrecorded](Residency::Unrecorded).
    pub(crate) fn fill(&mut self, id: SpanId, entry: Entry) {
        if let Some((at, place)) = Self::place(id)
            && let Some(block) = self.blocks.get_mut(at)
            && let Some(slot) = block.entries.get_mut(place)
        {
            let resident = entry.is_resident();
            *slot = entry;
            block.mark(place, resident);
            self.occupy(at, resident);
        }
    }

    /// Notes whether a block has a resident entry, after one of it became resident or no more.
    fn occupy(&mut self, block: usize, resident: bool) {
        let occupied = resident || self.blocks.get(block).is_some_and(Block::is_occupied);
        let word = block >> 6;
        if word >= self.occupied.len() {
            self.occupied.resize(word.saturating_add(1), 0);
        }
        if let Some(word) = self.occupied.get_mut(word) {
            let bit = 1_u64 << (block & 63);
            *word = if occupied { *word | bit } else { *word & !bit };
        }
    }

    /// Changes where a span's text is; gives the entry and whether it was resident.
    pub(crate) fn move_to(&mut self, id: SpanId, residency: Residency) -> Option<(&mut Entry, bool)> {
        let (at, place) = Self::place(id)?;
        let block = self.blocks.get_mut(at)?;
        let resident = residency == Residency::Resident && place < block.entries.len();
        block.mark(place, resident);
        self.occupy(at, resident);
        let entry = self.blocks.get_mut(at)?.entries.get_mut(place)?;
        let was = entry.is_resident();
        entry.residency = residency;
        Some((entry, was))
    }

    fn place(id: SpanId) -> Option<(usize, usize)> {
        let at = usize::try_from(id.number().checked_sub(1)?).ok()?;
        Some((at.checked_div(BLOCK)?, at.checked_rem(BLOCK)?))
    }

    pub(crate) fn get(&self, id: SpanId) -> Option<&Entry> {
        let (block, at) = Self::place(id)?;
        self.blocks.get(block)?.entries.get(at)
    }

    pub(crate) fn get_mut(&mut self, id: SpanId) -> Option<&mut Entry> {
        let (block, at) = Self::place(id)?;
        self.blocks.get_mut(block)?.entries.get_mut(at)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = (SpanId, &mut Entry)> {
        (1..).map(SpanId::mint).zip(self.blocks.iter_mut().flat_map(|block| &mut block.entries))
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SpanId, &Entry)> {
        (1..).map(SpanId::mint).zip(self.blocks.iter().flat_map(|block| &block.entries))
    }

    /// The resident spans, oldest first. O(resident spans + blocks that have any).
    pub(crate) fn resident(&self) -> impl Iterator<Item = (SpanId, &Entry)> {
        let occupied = (0_usize..).step_by(64).zip(&self.occupied).flat_map(|(first, word)| {
            bits(*word).filter_map(move |at| Some(first.saturating_add(usize::try_from(at).ok()?)))
        });
        let blocks = occupied.filter_map(|at| {
            let first = u64::try_from(at.saturating_mul(BLOCK)).ok()?;
            Some((first, self.blocks.get(at)?))
        });
        blocks.flat_map(|(first, block)| {
            let words = (first..).step_by(64).zip(block.resident).zip(block.entries.chunks(64));
            words.flat_map(|((first, word), entries)| {
                bits(word).filter_map(move |at| {
                    let id = SpanId::mint(first.saturating_add(u64::from(at)).saturating_add(1));
                    Some((id, entries.get(usize::try_from(at).ok()?)?))
                })
            })
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.length
    }
}

/// The places of the bits that are set, lowest first.
fn bits(mut word: u64) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        let at = word.trailing_zeros();
        word &= word.checked_sub(1)?;
        Some(at)
    })
}
