//! How long to try.

use std::time::Duration;

use tokio::time::Instant;

/// How often and how long a statement is tried again after the connection was lost or the server was not up. What the
/// server refuses is not tried again, but for a deadlock or a conflict that it asks to repeat.
///
/// Between attempts lies a pause that doubles from `first` up to `most`, of which each takes a random part, so that agents
/// that lost one server do not come back at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retry {
    /// The pause after the first attempt, at most; 1 ms at the least.
    pub first: Duration,
    /// The longest pause.
    pub most: Duration,
    /// After this long nothing is tried again, and what has no answer yet is given up.
    pub deadline: Duration,
}

impl Default for Retry {
    /// 10 ms doubling up to 1 s, for 30 s.
    fn default() -> Self {
        Self { first: Duration::from_millis(10), most: Duration::from_secs(1), deadline: Duration::from_secs(30) }
    }
}

/// Without a pause the server would be asked as fast as it refuses.
const LEAST: Duration = Duration::from_millis(1);

/// The longest deadline that a clock has.
const LONGEST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Retry {
    /// From now.
    pub(crate) fn until(&self) -> (Instant, Instant) {
        let now = Instant::now();
        (now, now.checked_add(self.deadline.min(LONGEST)).unwrap_or(now))
    }

    /// The pause after `attempts`: half of the step for sure, the rest at random.
    pub(crate) fn pause(&self, attempts: u32) -> Duration {
        let doubled = 1_u32.checked_shl(attempts.saturating_sub(1)).unwrap_or(u32::MAX);
        let step = self.first.max(LEAST).saturating_mul(doubled).min(self.most.max(LEAST));
        step.mul_f64(rand::random_range(0.5..=1.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_the_most_and_differ() {
        let retry = Retry::default();
        let mut seen = std::collections::HashSet::new();
        for (attempts, step) in [(1, 10), (2, 20), (5, 160), (8, 1_000), (40, 1_000), (u32::MAX, 1_000)] {
            for _ in 0..20 {
                let pause = retry.pause(attempts);
                assert!(pause <= Duration::from_millis(step) && pause * 2 >= Duration::from_millis(step), "{pause:?}");
                seen.insert(pause);
            }
        }
        assert!(seen.len() > 100, "{} of 120 pauses differ", seen.len());
    }
}
