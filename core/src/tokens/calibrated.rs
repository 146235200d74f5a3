//! An estimate that learns from the usage that a provider reports.

use std::sync::{Mutex, MutexGuard, PoisonError};

use super::{ByteEstimate, CounterError, Image, TokenCount, TokenCounter};

/// An estimate that is scaled to what the provider reports: for models whose tokenizer is not public.
///
/// Share it in an [`Arc`](std::sync::Arc): the window counts with it, and the code that calls the model
/// [observes](Self::observe). Its factor applies to text that is counted from then on; the counts that a window already
/// has do not change, so that its sums stay what they were. Images and bytes are as the inner counter says.
///
/// # Convergence
/// The first report is taken as it is, the second for a half, the third for a third, and each from the fourth on for a
/// quarter: four reports of a steady provider leave nothing of a wrong start, and one odd turn moves the factor by a
/// quarter of its oddity. The factor stays within 1/4 and 4.
#[derive(Debug, Default)]
pub struct Calibrated<C = ByteEstimate> {
    counter: C,
    learned: Mutex<Learned>,
}

#[derive(Clone, Copy, Debug)]
struct Learned {
    factor: f64,
    reports: u32,
    /// Totals of the last report that was used.
    estimated: u64,
    reported: u64,
}

impl Default for Learned {
    fn default() -> Self {
        Self { factor: 1.0, reports: 0, estimated: 0, reported: 0 }
    }
}

/// The provider charges for something else than what was counted. Nothing was learned from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "since the last report {estimated} tokens were counted and the provider charged {reported}, more than {} times \
     apart: it is another cost model (bytes of images, say), so count with a counter for this provider",
    Calibrated::MOST
)]
#[non_exhaustive]
pub struct CounterMismatch {
    /// Tokens counted for what was added since the last report.
    pub estimated: u64,
    /// Tokens that the provider charged for it.
    pub reported: u64,
}

impl Calibrated {
    /// How far apart, as a factor in either direction, an estimate and a report may be.
    pub const MOST: u32 = 4;
    /// Tokens by which a request must have grown before a report says something about the counter.
    pub const LEAST: u64 = 256;
}

impl<C> Calibrated<C> {
    /// Begins with what `counter` says.
    pub fn new(counter: C) -> Self {
        Self { counter, learned: Mutex::default() }
    }

    /// Learns from one request: the tokens `estimated` for all of it (the window's utilization, and what is sent beside
    /// it), and the input tokens `reported` for all of it, cached ones included.
    ///
    /// What counts is the growth since the last report, which this counter's present factor priced; growth of less than
    /// [`LEAST`](Calibrated::LEAST) tokens waits for the next report, and after a request became smaller the comparison
    /// begins anew from there.
    ///
    /// # Errors
    /// [`CounterMismatch`] when the two are more than [`MOST`](Calibrated::MOST) times apart.
    pub fn observe(&self, estimated: u64, reported: u64) -> Result<(), CounterMismatch> {
        let mut learned = self.learned();
        let grown = (estimated.checked_sub(learned.estimated), reported.checked_sub(learned.reported));
        let (Some(more_estimated), Some(more_reported)) = grown else {
            *learned = Learned { estimated, reported, ..*learned };
            return Ok(());
        };
        if more_estimated.max(more_reported) < Calibrated::LEAST {
            return Ok(());
        }
        *learned = Learned { estimated, reported, ..*learned };
        let most = u64::from(Calibrated::MOST);
        let (low, high) = (more_estimated.min(more_reported), more_estimated.max(more_reported));
        if low.saturating_mul(most) < high {
            return Err(CounterMismatch { estimated: more_estimated, reported: more_reported });
        }
        learned.learn(more_reported as f64 / more_estimated as f64);
        Ok(())
    }

    /// What the inner counter's estimates are multiplied by at present.
    pub fn factor(&self) -> f64 {
        self.learned().factor
    }

    fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Learned {
    /// `ratio` is reported to estimated, the estimate being made with the present factor.
    fn learn(&mut self, ratio: f64) {
        self.reports = self.reports.saturating_add(1);
        let share = 1.0 / f64::from(self.reports.min(4));
        let most = f64::from(Calibrated::MOST);
        let factor = self.factor * (1.0 - share + share * ratio);
        self.factor = factor.clamp(1.0 / most, most);
    }
}

impl<C: TokenCounter> TokenCounter for Calibrated<C> {
    fn text(&self, text: &str) -> Result<TokenCount, CounterError> {
        let tokens = f64::from(self.counter.text(text)?.tokens()) * self.factor();
        if tokens > f64::from(u32::MAX) {
            return Err(CounterError::too_long());
        }
        // In range, and a whole number.
        Ok(TokenCount::estimate(tokens.ceil() as u32))
    }

    fn bytes(&self, bytes: &[u8]) -> Result<TokenCount, CounterError> {
        self.counter.bytes(bytes)
    }

    fn image(&self, image: Image<'_>) -> Result<TokenCount, CounterError> {
        self.counter.image(image)
    }
}
