//! The README's table of costs: each pair interleaved, medians. `cargo bench -p keepspan-tests --bench ratios`

mod pair;
mod timing;

use std::{fs, time::Duration};

use self::{
    pair::{
        Evicting, Inputs, Lane, SIZES, Side, Typed,
        disk::{self, Disk},
        raw,
    },
    timing::{interleave, median, time},
};

fn main() {
    pair::same_work();
    println!("| what | size | keepspan | baseline | ratio |");
    println!("| --- | --- | ---: | ---: | ---: |");
    SIZES.iter().for_each(|&spans| push(spans));
    SIZES.iter().for_each(|&spans| evict(spans, Lane::Evictable, "evict 10 spans into one pointer"));
    SIZES.iter().for_each(|&spans| evict(spans, Lane::Protected, "evict 10 spans that their pointer names"));
    SIZES.iter().for_each(|&spans| render(spans));
    externalize(1, 2);
    externalize(50, 10);
}

/// More rounds for what is quick.
fn rounds(spans: usize) -> usize {
    (400_000 / spans).clamp(21, 1_001)
}

fn row(what: &str, size: &str, unit: &str, [ours, theirs]: [f64; 2]) {
    println!("| {what} | {size} | {ours:.2} {unit} | {theirs:.2} {unit} | {:.2} |", ours / theirs);
}

fn push(spans: usize) {
    fn fill<T: Side>(inputs: &Inputs) -> Duration {
        let mut side = T::open();
        time(|| side.fill(Lane::Evictable, inputs))
    }
    let inputs = Inputs::new(spans, 400);
    let all = interleave(rounds(spans), || fill::<Typed>(&inputs), || fill::<raw::Window>(&inputs));
    row("push a span of 400 B", &format!("into {spans}"), "us", all.map(|micros| micros / spans as f64));
}

fn evict(spans: usize, lane: Lane, what: &str) {
    fn next<T: Side>(window: &mut Evicting<'_, T>) -> Duration {
        let group = window.group();
        time(|| window.evict(group))
    }
    let inputs = Inputs::new(spans, 400);
    let (mut typed, mut raw) = (Evicting::<Typed>::new(lane, &inputs), Evicting::<raw::Window>::new(lane, &inputs));
    // As many as a window of 100,000 has to give, twice.
    let times = interleave(5_000, || next(&mut typed), || next(&mut raw));
    row(what, &format!("of {spans}"), "us", times);
}

fn render(spans: usize) {
    let inputs = Inputs::new(spans, 400);
    let typed = Evicting::<Typed>::new(Lane::Evictable, &inputs).all();
    let raw = Evicting::<raw::Window>::new(Lane::Evictable, &inputs).all();
    let times = interleave(rounds(spans), || time(|| typed.render()), || time(|| raw.render()));
    row("render, a quarter evicted", &format!("{spans} spans"), "us", times);
}

/// Commits to both files in turn, `rounds` files of 2,000 spans of 4 KB each.
fn externalize(per_commit: usize, rounds: usize) {
    let inputs = Inputs::new(2_000, 4_096);
    let groups = disk::groups(&inputs, per_commit);
    let (mut ours, mut theirs) = (Tally::default(), Tally::default());
    for _ in 0..rounds {
        let (mut typed, mut raw) = (disk::Typed::open(), disk::Raw::open());
        for (at, group) in groups.iter().enumerate() {
            if at % 2 == 0 {
                ours.add(&mut typed, group);
                theirs.add(&mut raw, group);
            } else {
                theirs.add(&mut raw, group);
                ours.add(&mut typed, group);
            }
        }
        (ours.file, theirs.file) = (typed.file_size(), raw.file_size());
    }
    let size = format!("2,000, {per_commit} a commit");
    row("externalize spans of 4 KB, per commit", &size, "us", [median(ours.times), median(theirs.times)]);
    let text = (2_000 * 4_096) as f64;
    let written = [ours.written, theirs.written].map(|bytes| bytes as f64 / rounds as f64 / text);
    row("bytes written / bytes of text", &size, "x", written);
    row("size of the file / bytes of text", &size, "x", [ours.file, theirs.file].map(|bytes| bytes as f64 / text));
}

#[derive(Default)]
struct Tally {
    times: Vec<Duration>,
    written: u64,
    file: u64,
}

impl Tally {
    fn add<D: Disk>(&mut self, disk: &mut D, group: &disk::Group) {
        let before = written();
        self.times.push(disk.write(group));
        self.written += written() - before;
    }
}

/// Bytes this process sent to disks so far, as Linux counts them.
fn written() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap_or_default();
    let line = io.lines().find_map(|line| line.strip_prefix("write_bytes: "));
    line.and_then(|bytes| bytes.parse().ok()).unwrap_or(0)
}
