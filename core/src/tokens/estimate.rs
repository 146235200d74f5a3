//! The default counter: an estimate from the classes of neighbouring bytes.

use super::{CounterError, TokenCount, TokenCounter, length};

/// The default counter, for when the model's tokenizer is not at hand. An [estimate](super::Certainty::Estimate).
///
/// Each byte costs by its class and by the class before it, so that a word, a change of case, base64, digits, Chinese
/// text and emoji each cost about what tokenizers make of them, where a flat four bytes a token is nearly three times too
/// low for base64. Fitted to `o200k_base`; a smaller vocabulary gives more for scripts other than Latin: `cl100k_base` has
/// three times as many tokens for Hindi. O(length), over 2.5 GB a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct ByteEstimate;

impl TokenCounter for ByteEstimate {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        let mut before = b'\n';
        let pairs = text.bytes().map(|byte| {
            let row = PAIRS.get(usize::from(before));
            before = byte;
            u64::from(row.and_then(|row| row.get(usize::from(byte))).copied().unwrap_or_default())
        });
        // No text in memory is so long that this sum overflows.
        let cost = pairs.sum::<u64>().saturating_add(unbroken(text).saturating_mul(UNBROKEN));
        let tokens = usize::try_from(cost.div_ceil(UNIT)).map_err(|_| CounterError::too_long())?;
        length(tokens).map(TokenCount::estimate)
    }
}

/// Blocks of 32 letters with nothing between them: no prose, so the pairs within cost too little.
fn unbroken(text: &str) -> u64 {
    let blocks = text.as_bytes().chunks_exact(32);
    // Without a branch in the block, the compiler takes it at once.
    blocks.map(|block| u64::from(block.iter().fold(true, |all, byte| all & byte.is_ascii_alphabetic()))).sum()
}

/// Costs are in units of 1 / 64 token.
const UNIT: u64 = 64;
const UNBROKEN: u64 = 673;

const fn class(byte: u8) -> u8 {
    match byte {
        b' ' => 0,
        b'a'..=b'z' => 2,
        b'A'..=b'Z' => 3,
        b'0'..=b'9' => 4,
        0..=31 | 127 => 1,
        33..=126 => 5,
        0x80..=0xbf => 6,
        // First bytes: Latin with marks, Greek, Cyrillic, Arabic; Indic, Thai; signs; Chinese, Japanese, Korean; emoji.
        0xc0..=0xdf => 7,
        0xe0..=0xe1 => 8,
        0xe2 => 9,
        0xe3..=0xef => 10,
        0xf0.. => 11,
    }
}

/// What a byte of the column's class costs after one of the row's: fitted by least squares of the relative error over
/// recorded agent transcripts, random base64, base32, hex and digits, and prose in ten scripts; Chinese, Japanese and
/// Korean rounded up. What follows a first byte is within the character and free, so the first bytes have no row.
const FITTED: [[u8; 12]; 7] = [
    // space, line, lower, upper, digit, sign, within a character, then the first bytes
    [1, 18, 16, 23, 108, 35, 0, 26, 32, 56, 56, 137],
    [40, 8, 10, 33, 39, 61, 0, 26, 32, 56, 56, 137],
    [13, 22, 11, 78, 81, 24, 0, 26, 32, 56, 56, 137],
    [7, 21, 5, 12, 102, 96, 0, 26, 32, 56, 56, 137],
    [29, 24, 58, 110, 21, 66, 0, 26, 32, 56, 56, 137],
    [24, 17, 43, 42, 44, 8, 0, 26, 32, 56, 56, 137],
    [7, 30, 30, 40, 36, 24, 0, 19, 26, 36, 56, 137],
];

/// What each byte costs after each: a look-up a byte. Text begins after a line end.
static PAIRS: [[u8; 256]; 256] = {
    let mut pairs = [[0; 256]; 256];
    let mut rows = FITTED.as_slice();
    let mut class = 0_u8;
    while let [row, others @ ..] = rows {
        let row = by_byte(row);
        let (mut rest, mut byte) = (pairs.as_mut_slice(), 0_u8);
        while let [first, others @ ..] = rest {
            if self::class(byte) == class {
                *first = row;
            }
            (rest, byte) = (others, byte.wrapping_add(1));
        }
        (rows, class) = (others, class.wrapping_add(1));
    }
    pairs
};

/// A row of [`FITTED`] with a column for each byte, not for each class.
const fn by_byte(row: &[u8; 12]) -> [u8; 256] {
    let mut costs = [0; 256];
    let (mut rest, mut byte) = (costs.as_mut_slice(), 0_u8);
    while let [first, others @ ..] = rest {
        if let (_, [cost, ..]) = row.split_at(class(byte) as usize) {
            *first = *cost;
        }
        (rest, byte) = (others, byte.wrapping_add(1));
    }
    costs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_byte_costs_by_its_class_and_the_one_before() {
        for (before, row) in (0..=u8::MAX).zip(PAIRS) {
            for (byte, cost) in (0..=u8::MAX).zip(row) {
                let fitted = FITTED.get(usize::from(class(before)));
                let fitted = fitted.and_then(|row| row.get(usize::from(class(byte)))).copied();
                assert_eq!(cost, fitted.unwrap_or_default(), "{byte} after {before}");
            }
        }
    }
}
