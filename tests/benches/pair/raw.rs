//! The untyped twin, as one would write it by hand: a `Vec` of spans, the same records, pointers and token counts, and
//! no types that forbid anything. Same crates, same store, no lock.

use std::{collections::BTreeMap, fmt::Write as _, ops::Range, sync::Arc, time::SystemTime};

use keepspan::{
    EpisodeId, Origin, Role,
    store::{Batch, Blob, MemoryStore, Store},
};
use serde::{Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use super::{Inputs, Lane, Side};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

pub struct Window {
    store: Arc<MemoryStore>,
    episode: EpisodeId,
    names: Vec<Arc<str>>,
    numbers: BTreeMap<Arc<str>, u16>,
    /// How many of them are written.
    named: usize,
    /// What the next record goes on from.
    chain: [u8; 32],
    budget: u64,
    /// Records written.
    length: u64,
    spans: Vec<Span>,
    /// Positions of the spans that are not in the store yet.
    fresh: Vec<usize>,
    /// By the first span covered.
    pointers: BTreeMap<u64, Run>,
    pushed: u64,
    utilization: u64,
}

struct Span {
    text: Option<Arc<str>>,
    digest: Hex,
    start: u64,
    tokens: u32,
    /// From 1, as they came.
    name: Option<u16>,
    lane: Lane,
    origin: Origin,
    role: Role,
    durable: bool,
}

#[derive(Clone, Copy, Serialize)]
struct Run {
    last: u64,
    tokens: u32,
}

/// Pointers that go and pointers that come.
type Edit = (Vec<u64>, Vec<(u64, Run)>);

pub struct Message {
    pub role: Role,
    pub origin: Origin,
    pub lane: &'static str,
    pub name: Option<Arc<str>>,
    pub text: Arc<str>,
    pub tokens: u32,
    /// The first and last span shown.
    pub spans: (u64, u64),
}

/// What a record says, in the same places as keepspan's own.
#[derive(Serialize)]
struct Entry<'a> {
    time: u64,
    spans: u64,
    names: &'a [Arc<str>],
    notes: &'a [()],
    events: &'a [Event],
}

#[derive(Serialize)]
#[allow(dead_code, reason = "what a twin of a window never does has its number all the same")]
enum Event {
    Opened,
    Resumed,
    Limited,
    Externalized(Externalized),
    Evicted(Evicted),
    Pointed(Certainty, Vec<u64>, Vec<(u64, Run)>),
}

#[derive(Serialize)]
#[allow(dead_code, reason = "all counts of the twin are estimates")]
enum Certainty {
    Exact,
    UpperBound,
    Estimate,
}

#[derive(Serialize)]
struct Externalized {
    span: u64,
    lane: u16,
    origin: Origin,
    role: Role,
    name: Option<u16>,
    start: u64,
    tokens: u32,
    certainty: Certainty,
    sha256: Option<Hex>,
    bytes: u64,
    text: bool,
    part: u8,
    reads: Option<()>,
    failed: bool,
    wire: Option<u8>,
}

#[derive(Clone, Serialize)]
pub struct Evicted {
    pub span: u64,
    pub lane: u16,
    pub name: Option<u16>,
    pub start: u64,
    pub end: u64,
    pub policy: u32,
    pub score: Option<f64>,
    pub sha256: Hex,
    pub derivation: Vec<u64>,
    pub replaced_by: Option<u64>,
}

#[derive(Clone, Copy)]
pub struct Hex([u8; 32]);

impl Hex {
    fn digits(&self, digits: &mut [u8; 64]) {
        for (pair, byte) in digits.chunks_exact_mut(2).zip(self.0) {
            pair[0] = b"0123456789abcdef"[usize::from(byte >> 4)];
            pair[1] = b"0123456789abcdef"[usize::from(byte & 15)];
        }
    }
}

impl Serialize for Hex {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(&self.0)
    }
}

impl Lane {
    fn name(self) -> &'static str {
        if self == Self::Evictable { "work" } else { "schema" }
    }

    /// Its place among the lanes of the typed side's struct.
    fn number(self) -> u16 {
        if self == Self::Evictable { 6 } else { 1 }
    }
}

/// Four bytes a token.
fn count(text: &str) -> Outcome<u32> {
    Ok(u32::try_from(text.len())?.div_ceil(4))
}

impl Window {
    fn push(&mut self, lane: Lane, name: Arc<str>, text: Arc<str>) -> Outcome<u64> {
        let tokens = count(&text)?;
        if text.is_empty() || u64::from(tokens) > self.budget {
            return Err("empty, or larger than the budget".into());
        }
        let name = self.number(name)?;
        self.fresh.push(self.spans.len());
        self.spans.push(Span {
            text: Some(text),
            digest: Hex([0; 32]),
            start: self.pushed,
            tokens,
            name: Some(name),
            lane,
            origin: Origin::Tool,
            role: Role::Tool,
            durable: false,
        });
        self.pushed += u64::from(tokens);
        self.utilization += u64::from(tokens);
        Ok(self.spans.len() as u64)
    }

    fn number(&mut self, name: Arc<str>) -> Outcome<u16> {
        if let Some(number) = self.numbers.get(&name) {
            return Ok(*number);
        }
        let number = u16::try_from(self.names.len() + 1)?;
        self.names.push(name.clone());
        self.numbers.insert(name, number);
        Ok(number)
    }

    fn name(&self, span: &Span) -> Option<&Arc<str>> {
        self.names.get(usize::from(span.name?) - 1)
    }

    fn span(&self, id: u64) -> Option<&Span> {
        self.spans.get(usize::try_from(id).ok()?.checked_sub(1)?)
    }

    fn commit(&mut self, blobs: Vec<Blob>, events: &[Event]) -> Outcome<()> {
        let time = u64::try_from(SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?.as_millis())?;
        let (spans, names) = (self.spans.len() as u64, &self.names[self.named..]);
        let mut record = postcard::to_extend(&Entry { time, spans, names, notes: &[], events }, vec![7])?;
        let chain = Sha256::new().chain_update(self.chain).chain_update(&record).finalize();
        record.extend_from_slice(&chain);
        let batch = Batch::new(self.episode.clone(), self.length, blobs, vec![record]);
        self.store.commit(&batch)?;
        (self.chain, self.named) = (chain.into(), self.names.len());
        self.length += 1;
        Ok(())
    }

    fn write_fresh(&mut self) -> Outcome<()> {
        let (mut blobs, mut events) = (Vec::new(), Vec::new());
        for &at in &self.fresh {
            let span = &mut self.spans[at];
            let Some(text) = &span.text else { continue };
            let blob = Blob::new(text.clone());
            span.digest = Hex(*blob.digest().as_bytes());
            events.push(Event::Externalized(span.record(at as u64 + 1, text)));
            blobs.push(blob);
        }
        if !events.is_empty() {
            self.commit(blobs, &events)?;
        }
        for at in std::mem::take(&mut self.fresh) {
            self.spans[at].durable = true;
        }
        Ok(())
    }

    fn evict(&mut self, lane: Lane, ids: &[u64]) -> Outcome<Vec<Evicted>> {
        let mut ids = ids.to_vec();
        ids.sort_unstable();
        if ids.is_empty() || ids.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err("nothing, or a span named twice".into());
        }
        let tombstones = ids.iter().map(|&id| self.tombstone(lane, id)).collect::<Outcome<Vec<_>>>()?;
        let edit = self.cover(&ids)?;
        let pointed = Event::Pointed(Certainty::Estimate, edit.0.clone(), edit.1.clone());
        let events: Vec<_> = tombstones.iter().cloned().map(Event::Evicted).chain([pointed]).collect();
        self.commit(Vec::new(), &events)?;
        for id in ids {
            let span = &mut self.spans[id as usize - 1];
            span.text = None;
            self.utilization -= u64::from(span.tokens);
        }
        self.repoint(edit);
        Ok(tombstones)
    }

    fn tombstone(&self, lane: Lane, id: u64) -> Outcome<Evicted> {
        let span = self.span(id).ok_or("no such span")?;
        if span.lane != lane || !span.durable || span.text.is_none() {
            return Err("in another lane, not in the store, or gone already".into());
        }
        Ok(Evicted {
            span: id,
            lane: span.lane.number(),
            name: span.name,
            start: span.start,
            end: span.start + u64::from(span.tokens),
            policy: 0,
            score: None,
            sha256: span.digest,
            derivation: Vec::new(),
            replaced_by: None,
        })
    }

    /// The protected ones of these spans.
    fn named(&self, first: u64, last: u64) -> impl Iterator<Item = u64> {
        (first..=last).filter(|id| self.span(*id).is_some_and(|span| span.lane == Lane::Protected))
    }

    /// Whether one pointer stands for these spans: it does not name more than 32.
    fn fits(&self, first: u64, last: u64) -> bool {
        self.named(first, last).count() <= 32
    }

    /// Joins each span with its evicted neighbours.
    fn cover(&self, ids: &[u64]) -> Outcome<Edit> {
        let (mut gone, mut runs) = (Vec::new(), Vec::<(u64, u64)>::new());
        for &id in ids {
            match runs.last_mut() {
                Some((first, last)) if *last + 1 == id && self.fits(*first, id) => *last = id,
                _ => runs.push((self.run_before(id, &mut gone).unwrap_or(id), id)),
            }
            if let (Some(run), Some(next)) = (runs.last_mut(), self.pointers.get(&(id + 1)))
                && self.fits(run.0, next.last)
            {
                gone.push(id + 1);
                run.1 = next.last;
            }
        }
        let run = |(first, last)| Ok((first, Run { last, tokens: count(&self.pointer(first, last))? }));
        Ok((gone, runs.into_iter().map(run).collect::<Outcome<_>>()?))
    }

    /// The first span of the run that ends right before `id`.
    fn run_before(&self, id: u64, gone: &mut Vec<u64>) -> Option<u64> {
        let (&first, run) = self.pointers.range(..id).next_back()?;
        (run.last + 1 == id && self.fits(first, id)).then(|| {
            gone.push(first);
            first
        })
    }

    fn repoint(&mut self, (gone, come): Edit) {
        for first in gone {
            self.utilization -= self.pointers.remove(&first).map_or(0, |run| u64::from(run.tokens));
        }
        for (first, run) in come {
            self.utilization += u64::from(run.tokens);
            self.pointers.insert(first, run);
        }
    }

    fn pointer(&self, first: u64, last: u64) -> String {
        let (Some(from), Some(to)) = (self.span(first), self.span(last)) else { return String::new() };
        if first != last {
            let (spans, tokens) = (last - first + 1, to.start + u64::from(to.tokens) - from.start);
            // Writing to a `String` never fails.
            let mut text = String::with_capacity(128);
            let _ = write!(text, "[s{first} to s{last}: {spans} spans, {tokens} tokens kept in the store");
            for (at, id) in self.named(first, last).enumerate() {
                text.push_str(if at == 0 { "; schema" } else { "" });
                let _ = write!(text, " s{id}");
            }
            text.push_str("; recall any of them by id]");
            return text;
        }
        let mut digits = [0; 64];
        from.digest.digits(&mut digits);
        let short = std::str::from_utf8(&digits[..8]).unwrap();
        let (lane, tokens, name) = (from.lane.name(), from.tokens, self.name(from));
        let (of, name) = name.map_or(("", ""), |name| (" from ", &**name));
        format!("[s{first} {lane}{of}{name}: {tokens} tokens kept in the store, sha256 {short}; recall s{first}]")
    }

    fn messages(&self) -> Vec<Message> {
        let mut messages = Vec::new();
        for (span, id) in self.spans.iter().zip(1..) {
            let (text, tokens, origin, last) = match (&span.text, self.pointers.get(&id)) {
                (Some(text), _) => (text.clone(), span.tokens, span.origin, id),
                (None, Some(run)) => (self.pointer(id, run.last).into(), run.tokens, Origin::Notice, run.last),
                (None, None) => continue,
            };
            messages.push(Message {
                role: span.role,
                origin,
                lane: span.lane.name(),
                name: self.name(span).cloned(),
                text,
                tokens,
                spans: (id, last),
            });
        }
        messages
    }
}

impl Span {
    fn record(&self, span: u64, text: &str) -> Externalized {
        Externalized {
            span,
            lane: self.lane.number(),
            origin: self.origin,
            role: self.role,
            name: self.name,
            start: self.start,
            tokens: self.tokens,
            certainty: Certainty::Estimate,
            sha256: Some(self.digest),
            bytes: text.len() as u64,
            text: true,
            part: 0,
            reads: None,
            failed: false,
            wire: None,
        }
    }
}

impl Side for Window {
    type Rendered = Vec<Message>;
    type Evicted = Vec<Evicted>;

    fn open() -> Self {
        let (store, episode) = (Arc::new(MemoryStore::new()), EpisodeId::new("e"));
        // What the typed side's first record is here is of no matter, as long as there is one.
        store.commit(&Batch::new(episode.clone(), 0, Vec::new(), vec![b"{}".to_vec()])).unwrap();
        let (spans, fresh, pointers) = (Vec::new(), Vec::new(), BTreeMap::new());
        let (names, numbers, budget) = (Vec::new(), BTreeMap::new(), u64::MAX);
        Self {
            store,
            episode,
            names,
            numbers,
            named: 0,
            chain: [0; 32],
            budget,
            length: 1,
            spans,
            fresh,
            pointers,
            pushed: 0,
            utilization: 0,
        }
    }

    fn fill(&mut self, lane: Lane, inputs: &Inputs) {
        let mut ids = Vec::new();
        for (tool, text) in inputs.iter() {
            ids.push(self.push(lane, tool.clone(), text.into()).unwrap());
        }
    }

    fn externalize(&mut self) {
        self.write_fresh().unwrap();
    }

    fn evict(&mut self, lane: Lane, spans: Range<usize>) -> Vec<Evicted> {
        let ids: [u64; super::TAKEN] = std::array::from_fn(|at| (spans.start + at) as u64 + 1);
        self.evict(lane, &ids).unwrap()
    }

    fn render(&self) -> Vec<Message> {
        self.messages()
    }

    fn trace(&self) -> (Vec<Vec<u8>>, u64) {
        (self.store.read(&self.episode, 1, u64::MAX).unwrap(), self.utilization)
    }

    fn shown(&self) -> Vec<String> {
        self.messages().iter().map(|message| message.text.to_string()).collect()
    }
}
