//! Reading many texts: a group at a time, each verified, and one bad blob does not hide the others.

use crate::{
    Digest, SpanId,
    store::{AsyncStore, StoreError, fetch},
};

/// How many texts are in memory at once.
pub(crate) const GROUP: usize = 64;

/// What a group of texts gave.
#[derive(Debug, Default)]
pub(crate) struct Group {
    pub(crate) texts: Vec<(SpanId, Vec<u8>)>,
    /// With what the store said of each.
    pub(crate) unreadable: Vec<(SpanId, StoreError)>,
    /// The store itself failed: to read on is of no use.
    pub(crate) failed: bool,
}

/// Reads texts and verifies them.
pub(crate) async fn read<St: AsyncStore>(store: &St, group: &[(SpanId, Digest)]) -> Group {
    let mut read = Group::default();
    let mut rest = group.to_vec();
    while let Some((first, _)) = rest.first().copied() {
        let digests: Vec<_> = rest.iter().map(|(_, digest)| *digest).collect();
        let source = match fetch(store, &digests).await {
            Ok(texts) => {
                read.texts = rest.into_iter().map(|(span, _)| span).zip(texts).collect();
                break;
            }
            Err(source) => source,
        };
        let bad = match source {
            StoreError::Missing { digest } | StoreError::Sealed { digest } | StoreError::Corrupt { digest } => {
                rest.iter().position(|(_, other)| *other == digest)
            }
            _ => None,
        };
        match bad {
            Some(at) => read.unreadable.push((rest.remove(at).0, source)),
            None => {
                read.unreadable.push((first, source));
                read.failed = true;
                break;
            }
        }
    }
    read
}
