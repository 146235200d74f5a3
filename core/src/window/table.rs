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

    pub(crate) fn count(&self) -> TokenCount {
        match self.certainty {
            Certainty::Exact => TokenCount::exact(self.tokens),
            Certainty::UpperBound => TokenCount::upper_bound(self.tokens),
            Certainty::Estimate => TokenCount::estimate(self.tokens),
        }
    }

    pub(crate) fn end(&self) -> u64 {
        self.start.saturating_add(u64::from(self.tokens))
    }
}

/// Entries in blocks of fixed size, so that growing never moves nor over-allocates more than one block.
#[derive(Debug, Default)]
pub(crate) struct Table {
    blocks: Vec<Block>,
    length: u64,
}

#[derive(Debug)]
struct Block {
    entries: Vec<Entry>,
    /// How many of them are resident: a block of pointers is passed over as a whole.
    resident: u32,
}

const BLOCK: usize = 512;

impl Table {
    pub(crate) fn next_id(&self) -> SpanId {
        SpanId::mint(self.length.saturating_add(1))
    }

    pub(crate) fn push(&mut self, entry: Entry) -> SpanId {
        let id = self.next_id();
        let resident = u32::from(entry.residency == Residency::Resident);
        match self.blocks.last_mut() {
            Some(block) if block.entries.len() < BLOCK => {
                block.entries.push(entry);
                block.resident = block.resident.saturating_add(resident);
            }
            // The first block grows as a `Vec` does, so that a small window stays small.
            _ => {
                let mut entries = Vec::with_capacity(if self.blocks.is_empty() { 0 } else { BLOCK });
                entries.push(entry);
                self.blocks.push(Block { entries, resident });
            }
        }
        self.length = id.number();
        id
    }

    /// Changes where a span's text is; gives the entry and whether it was resident.
    pub(crate) fn move_to(&mut self, id: SpanId, residency: Residency) -> Option<(&mut Entry, bool)> {
        let (block, at) = Self::place(id)?;
        let Block { entries, resident } = self.blocks.get_mut(block)?;
        let entry = entries.get_mut(at)?;
        let was = entry.residency == Residency::Resident;
        entry.residency = residency;
        match (was, residency == Residency::Resident) {
            (true, false) => *resident = resident.saturating_sub(1),
            (false, true) => *resident = resident.saturating_add(1),
            _ => {}
        }
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

    pub(crate) fn iter(&self) -> impl Iterator<Item = (SpanId, &Entry)> {
        (1..).map(SpanId::mint).zip(self.blocks.iter().flat_map(|block| &block.entries))
    }

    /// The resident spans, oldest first. O(blocks + spans of blocks that have one).
    pub(crate) fn resident(&self) -> impl Iterator<Item = (SpanId, &Entry)> {
        (0_u64..).zip(&self.blocks).filter(|(_, block)| block.resident > 0).flat_map(|(at, block)| {
            let first = at.saturating_mul(BLOCK as u64).saturating_add(1);
            let ids = (first..).map(SpanId::mint);
            ids.zip(&block.entries).filter(|(_, entry)| entry.is_resident())
        })
    }

    pub(crate) fn len(&self) -> u64 {
        self.length
    }
}
