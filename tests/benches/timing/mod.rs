//! Times two sides in one run.

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

#[allow(dead_code, reason = "not every bench has two sides")]
/// Alternates which side is first, so that neither has the warmer caches; the medians, in microseconds.
pub fn interleave(rounds: usize, mut one: impl FnMut() -> Duration, mut other: impl FnMut() -> Duration) -> [f64; 2] {
    let (mut ones, mut others) = (Vec::new(), Vec::new());
    for round in 0..rounds {
        if round % 2 == 0 {
            ones.push(one());
            others.push(other());
        } else {
            others.push(other());
            ones.push(one());
        }
    }
    [median(ones), median(others)]
}

/// In microseconds.
pub fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e6
}

/// How long `work` takes; dropping what it gives is not part of it.
pub fn time<T>(work: impl FnOnce() -> T) -> Duration {
    let began = Instant::now();
    let done = black_box(work());
    let took = began.elapsed();
    drop(done);
    took
}
