//! Text put together while a constant is evaluated, so that a failed build can name the user's own numbers.

use std::fmt;

/// The longest text, in bytes; a piece that no longer fits is left out.
const ROOM: usize = 1024;

/// A text of at most [`ROOM`] bytes.
#[derive(Clone, Copy)]
pub(crate) struct Text {
    bytes: [u8; ROOM],
    length: usize,
}

impl Text {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; ROOM], length: 0 }
    }

    /// Adds a piece.
    pub(crate) const fn and(mut self, piece: &str) -> Self {
        if let Some((_, free)) = self.bytes.split_at_mut_checked(self.length)
            && let Some((place, _)) = free.split_at_mut_checked(piece.len())
        {
            place.copy_from_slice(piece.as_bytes());
            self.length = self.length.saturating_add(piece.len());
        }
        self
    }

    /// Adds a number as one writes it in code: `24_000`.
    pub(crate) const fn number(self, number: u64) -> Self {
        let text = match number / 1000 {
            0 => self,
            thousands => self.number(thousands).and("_"),
        };
        let text = if number >= 100 { text.digit(number / 100 % 10) } else { text };
        let text = if number >= 10 { text.digit(number / 10 % 10) } else { text };
        text.digit(number % 10)
    }

    const fn digit(self, digit: u64) -> Self {
        self.and(match digit {
            0 => "0",
            1 => "1",
            2 => "2",
            3 => "3",
            4 => "4",
            5 => "5",
            6 => "6",
            7 => "7",
            8 => "8",
            _ => "9",
        })
    }

    pub(crate) const fn as_str(&self) -> &str {
        match self.bytes.split_at_checked(self.length) {
            // Whole pieces only, so it is UTF-8.
            Some((text, _)) => match str::from_utf8(text) {
                Ok(text) => text,
                Err(_) => "",
            },
            None => "",
        }
    }
}

impl fmt::Display for Text {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Equality, in a constant.
pub(crate) const fn same(one: &str, other: &str) -> bool {
    let (mut one, mut other) = (one.as_bytes(), other.as_bytes());
    loop {
        match (one.split_first(), other.split_first()) {
            (Some((a, rest)), Some((b, others))) if *a == *b => (one, other) = (rest, others),
            (None, None) => return true,
            _ => return false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Text;

    #[test]
    fn numbers_are_grouped_in_threes() {
        for (number, expected) in [
            (0, "0"),
            (7, "7"),
            (10, "10"),
            (999, "999"),
            (1_000, "1_000"),
            (1_090, "1_090"),
            (24_000, "24_000"),
            (1_000_001, "1_000_001"),
            (u64::MAX, "18_446_744_073_709_551_615"),
        ] {
            assert_eq!(Text::new().number(number).as_str(), expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_left_out_whole() {
        let (long, cut) = ("ü".repeat(500), "ü".repeat(13));
        assert_eq!(Text::new().and(&long).and(&cut).and("!").as_str(), format!("{long}!"));
    }
}
