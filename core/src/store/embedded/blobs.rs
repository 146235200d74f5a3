//! How a blob lies in the file: pieces that fill their pages, and a head with the rest.

use std::ops::Range;

use redb::{ReadOnlyTable, ReadableTable, Table};

use super::{Fault, after};
use crate::{
    Digest,
    store::{Blob, StoreError},
};

/// What fills 16, 8, 4, 2 and 1 pages of 4,096 bytes exactly: a leaf of one entry spends 4 bytes on itself, 4 on the
/// value's end and 8 on the key.
const FITS: [usize; 5] = [65_520, 32_752, 16_368, 8_176, PAGE];
pub(super) const PAGE: usize = 4_080;

/// What a head says instead of its first piece when the blob is sealed.
pub(super) const SEALED: u64 = u64::MAX;

/// Writes `blob`, when it is new, from piece `first` on; the number of the next free piece.
pub(super) fn put(
    heads: &mut Table<'_, &'static [u8; 32], &'static [u8]>,
    pieces: &mut Table<'_, u64, &'static [u8]>,
    blob: &Blob,
    first: u64,
) -> Result<u64, Fault> {
    if heads.get(blob.digest().as_bytes())?.is_some() {
        return Ok(first);
    }
    let (mut rest, mut next) = (blob.bytes(), first);
    for size in FITS {
        while let Some((piece, more)) = rest.split_at_checked(size) {
            pieces.insert(next, piece)?;
            (rest, next) = (more, after(Some(next))?);
        }
    }
    let head = [first.to_le_bytes().as_slice(), &next.to_le_bytes(), rest].concat();
    heads.insert(blob.digest().as_bytes(), head.as_slice())?;
    Ok(next)
}

/// Leaves a stub as long as the head was: the engine overwrites a value by one of the same length, and otherwise moves
/// what follows, which may leave a copy of it at the end of the page.
pub(super) fn seal(
    heads: &mut Table<'_, &'static [u8; 32], &'static [u8]>,
    pieces: &mut Table<'_, u64, &'static [u8]>,
    digest: &Digest,
) -> Result<(), Fault> {
    let mut head = heads.get(digest.as_bytes())?.map_or(vec![0; 16], |head| head.value().to_vec());
    if let Some((first, end, _)) = parts(&head) {
        pieces.retain_in(first..end, |_, _| false)?;
    }
    head.fill(u8::MAX);
    heads.insert(digest.as_bytes(), head.as_slice())?;
    Ok(())
}

/// The first piece, the one after the last, and the tail.
pub(super) fn parts(head: &[u8]) -> Option<(u64, u64, &[u8])> {
    let (first, head) = head.split_first_chunk()?;
    let (end, tail) = head.split_first_chunk()?;
    Some((u64::from_le_bytes(*first), u64::from_le_bytes(*end), tail))
}

/// Where a blob is: the numbers of its pieces, and what lies beside its digest.
struct Place {
    digest: Digest,
    pieces: Range<u64>,
    tail: Vec<u8>,
    /// Which of those asked for.
    at: usize,
}

/// The blobs under `digests`, in their order. What was written together lies together, and is read by one walk.
pub(super) fn blobs(
    heads: &ReadOnlyTable<&'static [u8; 32], &'static [u8]>,
    pieces: &ReadOnlyTable<u64, &'static [u8]>,
    digests: &[Digest],
) -> Result<Vec<Vec<u8>>, Fault> {
    let mut places = Vec::with_capacity(digests.len());
    for (at, digest) in digests.iter().enumerate() {
        places.push(place(heads, *digest, at)?);
    }
    places.sort_unstable_by_key(|place| place.pieces.start);
    let mut found = vec![Vec::new(); digests.len()];
    for run in places.chunk_by(|one, other| one.pieces.end == other.pieces.start) {
        let (Some(first), Some(last)) = (run.first(), run.last()) else { continue };
        let mut walk = pieces.range(first.pieces.start..last.pieces.end)?;
        for place in run {
            let mut bytes = Vec::new();
            for number in place.pieces.clone() {
                match walk.next().transpose()? {
                    Some((key, piece)) if key.value() == number => {
                        // Most blobs are one piece and a tail: no room for more, and no second allocation.
                        let spare = if number == place.pieces.start { place.tail.len() } else { 0 };
                        bytes.reserve_exact(piece.value().len().saturating_add(spare));
                        bytes.extend_from_slice(piece.value());
                    }
                    _ => return Err(StoreError::Corrupt { digest: place.digest }.into()),
                }
            }
            bytes.extend_from_slice(&place.tail);
            if let Some(slot) = found.get_mut(place.at) {
                *slot = bytes;
            }
        }
    }
    Ok(found)
}

fn place(heads: &ReadOnlyTable<&'static [u8; 32], &'static [u8]>, digest: Digest, at: usize) -> Result<Place, Fault> {
    let Some(head) = heads.get(digest.as_bytes())? else {
        return Err(StoreError::Missing { digest }.into());
    };
    match parts(head.value()) {
        Some((SEALED, ..)) => Err(StoreError::Sealed { digest }.into()),
        Some((first, end, tail)) => Ok(Place { digest, pieces: first..end, tail: tail.to_vec(), at }),
        None => Err(StoreError::Corrupt { digest }.into()),
    }
}
