//! The page of a replay.

use crate::replay::outcome::Replayed;

/// The whole page.
pub fn replayed(_all: &[Replayed]) -> String {
    String::new()
}
