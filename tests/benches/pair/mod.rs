//! The two sides of every comparison behind one interface, so that the benches and the table of ratios time the same
//! work.

#![allow(dead_code, reason = "each bench uses its part")]

pub mod disk;
pub mod raw;
mod typed;

use std::{ops::Range, sync::Arc};

pub use self::typed::Typed;

/// Window sizes, in spans.
pub const SIZES: [usize; 3] = [100, 2_000, 100_000];
/// Spans one eviction takes.
pub const TAKEN: usize = 10;
/// One eviction every so many spans, so that runs stay apart and each has its own pointer.
pub const STRIDE: usize = 40;

/// The lane that a window's spans are in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lane {
    /// `work`: neighbours share a pointer.
    Evictable,
    /// `schema`: the pointer that they share names each.
    Protected,
}

/// What is pushed: texts of one length, as a program has them before they enter.
pub struct Inputs {
    pub tools: [Arc<str>; 4],
    pub texts: Vec<String>,
}

impl Inputs {
    pub fn new(spans: usize, bytes: usize) -> Self {
        let line = "src/window.rs:120: the lane lends a permit; ";
        let text = |n: usize| format!("{n} {}", line.repeat(bytes / line.len() + 1))[..bytes].to_owned();
        Self { tools: ["read", "grep", "list", "diff"].map(Arc::from), texts: (0..spans).map(text).collect() }
    }

    /// Each text with its tool.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &str)> {
        self.tools.iter().cycle().zip(self.texts.iter().map(String::as_str))
    }
}

/// A window over a `MemoryStore`, typed or not.
pub trait Side {
    type Rendered;
    type Evicted;

    fn open() -> Self;
    fn fill(&mut self, lane: Lane, inputs: &Inputs);
    fn externalize(&mut self);
    /// Evicts the spans at these positions.
    fn evict(&mut self, lane: Lane, spans: Range<usize>) -> Self::Evicted;
    fn render(&self) -> Self::Rendered;
    /// Every record written, and the running utilization: what must be the same on both sides.
    fn trace(&self) -> (Vec<Vec<u8>>, u64);
    /// The rendered texts.
    fn shown(&self) -> Vec<String>;

    fn filled(lane: Lane, inputs: &Inputs) -> Self
    where
        Self: Sized,
    {
        let mut side = Self::open();
        side.fill(lane, inputs);
        side.externalize();
        side
    }
}

/// A window from which spans are evicted, group by group; a new one when there are no more.
pub struct Evicting<'a, T> {
    pub side: T,
    inputs: &'a Inputs,
    lane: Lane,
    next: usize,
}

impl<'a, T: Side> Evicting<'a, T> {
    pub fn new(lane: Lane, inputs: &'a Inputs) -> Self {
        Self { side: T::filled(lane, inputs), inputs, lane, next: 0 }
    }

    /// The next group, ready to be evicted.
    pub fn group(&mut self) -> Range<usize> {
        if self.next + TAKEN > self.inputs.texts.len() {
            *self = Self::new(self.lane, self.inputs);
        }
        let group = self.next..self.next + TAKEN;
        self.next += STRIDE;
        group
    }

    pub fn evict(&mut self, group: Range<usize>) -> T::Evicted {
        self.side.evict(self.lane, group)
    }

    /// A window from which every group is gone: what a render is timed on.
    pub fn all(mut self) -> T {
        while self.next + TAKEN <= self.inputs.texts.len() {
            let group = self.group();
            self.evict(group);
        }
        self.side
    }
}

/// Fails unless both sides write the same bytes, show the same texts and count the same tokens.
pub fn same_work() {
    for lane in [Lane::Evictable, Lane::Protected] {
        let inputs = Inputs::new(200, 400);
        let typed = Evicting::<Typed>::new(lane, &inputs).all();
        let raw = Evicting::<raw::Window>::new(lane, &inputs).all();
        let ((records, tokens), (twins, count)) = (typed.trace(), raw.trace());
        assert_eq!(tokens, count);
        // All but the clock and the chain, which begins with another record.
        let said = |record: &Vec<u8>| {
            let clock = record[1..].iter().position(|byte| *byte < 0x80).unwrap() + 2;
            record[clock..record.len() - 32].to_vec()
        };
        let said = |records: Vec<Vec<u8>>| records.iter().map(said).collect::<Vec<_>>();
        let (records, twins) = (said(records), said(twins));
        let differs = records.iter().zip(&twins).position(|(record, twin)| record != twin);
        assert_eq!((records.len(), differs), (twins.len(), None), "the two write different records");
        assert_eq!(typed.shown(), raw.shown());
    }
}
