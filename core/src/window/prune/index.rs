//! What a model is shown to decide by: one line a candidate, within the price that the gate was told.

use std::fmt::{self, Write as _};

use crate::{
    CounterError, SpanId, TokenCounter,
    pointer::{LONGEST_NAME, plain},
    tool::MAX_OFFERED,
    window::{candidates::Unit, contents::Contents, table::Entry},
};

/// How much of a candidate's first line is shown, in characters.
const PREVIEW: usize = 40;

/// A span, or an exchange, that may leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    pub(super) span: SpanId,
    pub(super) lane: &'static str,
    pub(super) tokens: u64,
    age: u64,
    line: String,
}

impl Offer {
    /// Its id; of an exchange, that of its first span.
    pub fn span(&self) -> SpanId {
        self.span
    }

    /// The lane of that span.
    pub fn lane(&self) -> &'static str {
        self.lane
    }

    /// What it takes, in tokens; of an exchange, all its spans together.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// The tokens that entered after it.
    pub fn age(&self) -> u64 {
        self.age
    }

    /// The tool it came from, and the start of its text on one line.
    pub fn line(&self) -> &str {
        &self.line
    }
}

impl fmt::Display for Offer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { span, lane, tokens, age, line } = self;
        write!(f, "{span} {lane} {tokens} tokens, {age} ago: {line}")
    }
}

/// The candidates of a pass, oldest first. Its text is what the model reads, one line each.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Index {
    pub(super) offers: Vec<Offer>,
    pub(super) tokens: u64,
    left_out: u64,
    /// The first span that it knows nothing of.
    pub(super) until: SpanId,
    /// What ended after this was among the newest tokens, which are no candidates.
    pub(super) recent: u64,
}

impl Index {
    /// The candidates.
    pub fn offers(&self) -> &[Offer] {
        &self.offers
    }

    /// What the text takes, by the window's own counter: at most the budget's `index`.
    pub fn tokens(&self) -> u64 {
        self.tokens
    }

    /// Candidates that the price, or the largest tool definition, had no room for. The largest are offered first.
    pub fn left_out(&self) -> u64 {
        self.left_out
    }

    /// What a line takes on average, rounded up.
    pub(super) fn price_of_a_line(&self) -> Option<u64> {
        let lines = u64::try_from(self.offers.len()).ok().filter(|lines| *lines > 0)?;
        Some(self.tokens.div_ceil(lines))
    }

    /// What the candidates take together, in tokens.
    pub(super) fn gross(&self) -> u64 {
        self.offers.iter().fold(0, |sum, offer| sum.saturating_add(offer.tokens))
    }
}

impl fmt::Display for Index {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.offers.iter().try_for_each(|offer| writeln!(f, "{offer}"))
    }
}

impl Contents {
    /// Offers the largest candidates that fit `price` tokens, evictable lanes before summaries. Each line is counted once:
    /// a line ends in a newline and the next begins with a letter, where the counts of tokenizers add up.
    pub(super) fn index(&self, price: u64, counter: &dyn TokenCounter) -> Result<Index, CounterError> {
        let rank = |unit: &Unit| (unit.class, std::cmp::Reverse(unit.tokens), unit.span);
        let (mut units, mut all) = (Vec::new(), 0_u64);
        self.units().filter(|unit| self.is_candidate(unit)).for_each(|unit| {
            // Twice as many as are offered are kept, so that each is compared a few times, whatever the window holds.
            if units.len() >= MAX_OFFERED.saturating_mul(2) {
                units.select_nth_unstable_by_key(MAX_OFFERED, rank);
                units.truncate(MAX_OFFERED);
            }
            units.push(unit);
            all = all.saturating_add(1);
        });
        units.sort_unstable_by_key(rank);
        units.truncate(MAX_OFFERED);
        let mut index = Index {
            offers: Vec::with_capacity(units.len()),
            tokens: 0,
            left_out: 0,
            until: self.table.next_id(),
            recent: self.recent(),
        };
        let mut line = String::new();
        for unit in units {
            let offer = self.offer(&unit);
            line.clear();
            // Writing to a `String` never fails.
            let _ = writeln!(line, "{offer}");
            let tokens = u64::from(counter.text(&line)?.tokens());
            let sum = index.tokens.saturating_add(tokens);
            // A shorter line further down may fit, but the order says what is worth more.
            if sum > price {
                break;
            }
            index.tokens = sum;
            index.offers.push(offer);
        }
        index.left_out = all.saturating_sub(u64::try_from(index.offers.len()).unwrap_or(u64::MAX));
        index.offers.sort_unstable_by_key(|offer| offer.span);
        Ok(index)
    }

    fn offer(&self, unit: &Unit) -> Offer {
        let entry = self.table.get(unit.span);
        let end = entry.map_or(0, |entry| entry.end());
        Offer {
            span: unit.span,
            lane: entry.map_or("?", |entry| self.lane_name(entry)),
            tokens: unit.tokens,
            age: self.pushed_tokens.saturating_sub(end),
            line: entry.map(|entry| self.first_words(entry)).unwrap_or_default(),
        }
    }

    /// The tool a span came from and how its text begins, on one line.
    pub(super) fn first_words(&self, entry: &Entry) -> String {
        let name = self.name(entry);
        let mut line =
            String::with_capacity(name.map_or(0, |name| name.len()).min(LONGEST_NAME).saturating_add(PREVIEW + 1));
        if let Some(name) = name {
            line.extend(name.chars().take(LONGEST_NAME).map(plain).chain([' ']));
        }
        let named = line.len();
        let text = entry.content.as_ref().and_then(|content| content.as_text()).unwrap_or("bytes");
        let mut blank = true;
        // Of blanks in a row the first is shown, as a space; of those before the first word none.
        let words = text.chars().filter_map(|c| {
            let inside = !std::mem::replace(&mut blank, c.is_whitespace());
            if blank { inside.then_some(' ') } else { Some(plain(c)) }
        });
        line.extend(words.take(PREVIEW));
        line.truncate(line.trim_end().len().max(named));
        line
    }

    /// The longest usual line, for the expected price of one.
    pub(crate) fn usual_line(lane: &str) -> String {
        format!("s1000 {lane} 1000 tokens, 10000 ago: read_file {}\n", "word ".repeat(PREVIEW / 5))
    }
}
