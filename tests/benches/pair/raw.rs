//! The untyped twin, as one would write it by hand: a `Vec` of spans, the same records, pointers and token counts, and
//! no types that forbid anything. Same crates, same store, no lock.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use keepspan::{
    EpisodeId, Origin, PolicyVersion, Role,
    store::{Batch, Blob, MemoryStore, Store},
};
use serde::{Serialize, Serializer};

use super::{Inputs, Lane, Side};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

pub struct Window {
    store: Arc<MemoryStore>,
    episode: EpisodeId,
    policy: PolicyVersion,
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
    name: Option<Arc<str>>,
    lane: Lane,
    origin: Origin,
    role: Role,
    durable: bool,
}

#[derive(Clone, Copy)]
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

#[derive(Serialize)]
struct Externalized<'a> {
    event: &'static str,
    span: u64,
    lane: &'static str,
    origin: Origin,
    role: Role,
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    start: u64,
    tokens: u32,
    certainty: &'static str,
    sha256: Hex,
    bytes: u64,
    text: bool,
}

#[derive(Serialize)]
pub struct Evicted {
    event: &'static str,
    pub span: u64,
    pub lane: &'static str,
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<Arc<str>>,
    pub start: u64,
    pub end: u64,
    pub policy: PolicyVersion,
    pub sha256: Hex,
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
        let mut digits = [0; 64];
        self.digits(&mut digits);
        serializer.serialize_str(std::str::from_utf8(&digits).unwrap())
    }
}

impl Lane {
    fn name(self) -> &'static str {
        if self == Self::Evictable { "work" } else { "schema" }
    }

    fn kind(self) -> &'static str {
        if self == Self::Evictable { "evictable" } else { "precondition" }
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

    fn span(&self, id: u64) -> Option<&Span> {
        self.spans.get(usize::try_from(id).ok()?.checked_sub(1)?)
    }

    fn commit(&mut self, blobs: Vec<Blob>, records: Vec<Vec<u8>>) -> Outcome<()> {
        let batch = Batch::new(self.episode.clone(), self.length, blobs, records);
        self.store.commit(&batch)?;
        self.length += batch.records().len() as u64;
        Ok(())
    }

    fn write_fresh(&mut self) -> Outcome<()> {
        let (mut blobs, mut records) = (Vec::new(), Vec::new());
        for &at in &self.fresh {
            let span = &mut self.spans[at];
            let Some(text) = &span.text else { continue };
            let blob = Blob::new(text.clone());
            span.digest = Hex(*blob.digest().as_bytes());
            records.push(serde_json::to_vec(&span.record(at as u64 + 1, text))?);
            blobs.push(blob);
        }
        if !records.is_empty() {
            self.commit(blobs, records)?;
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
        let records = tombstones.iter().map(serde_json::to_vec).collect::<Result<_, _>>()?;
        self.commit(Vec::new(), records)?;
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
            event: "evicted",
            span: id,
            lane: span.lane.name(),
            kind: span.lane.kind(),
            name: span.name.clone(),
            start: span.start,
            end: span.start + u64::from(span.tokens),
            policy: self.policy.clone(),
            sha256: span.digest,
        })
    }

    fn folds(&self, id: u64) -> bool {
        self.span(id).is_some_and(|span| span.lane == Lane::Evictable)
    }

    /// Joins each span with its evicted neighbours where both fold.
    fn cover(&self, ids: &[u64]) -> Outcome<Edit> {
        let (mut gone, mut runs) = (Vec::new(), Vec::<(u64, u64)>::new());
        for &id in ids {
            match runs.last_mut() {
                _ if !self.folds(id) => {
                    runs.push((id, id));
                    continue;
                }
                Some((first, last)) if *last + 1 == id && self.folds(*first) => *last = id,
                _ => runs.push((self.run_before(id, &mut gone).unwrap_or(id), id)),
            }
            if let (Some(run), Some(next)) = (runs.last_mut(), self.pointers.get(&(id + 1)))
                && self.folds(id + 1)
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
        (run.last + 1 == id && self.folds(first)).then(|| {
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
            return format!(
                "[s{first} to s{last}: {spans} spans, {tokens} tokens kept in the store; recall any of them by id]"
            );
        }
        let mut digits = [0; 64];
        from.digest.digits(&mut digits);
        let short = std::str::from_utf8(&digits[..8]).unwrap();
        let (lane, tokens, name) = (from.lane.name(), from.tokens, from.name.as_deref());
        let (of, name) = name.map_or(("", ""), |name| (" from ", name));
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
                name: span.name.clone(),
                text,
                tokens,
                spans: (id, last),
            });
        }
        messages
    }
}

impl Span {
    fn record(&self, span: u64, text: &str) -> Externalized<'_> {
        Externalized {
            event: "externalized",
            span,
            lane: self.lane.name(),
            origin: self.origin,
            role: self.role,
            name: self.name.as_deref(),
            start: self.start,
            tokens: self.tokens,
            certainty: "estimate",
            sha256: self.digest,
            bytes: text.len() as u64,
            text: true,
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
        let (policy, budget) = (PolicyVersion::new("p"), u64::MAX);
        Self { store, episode, policy, budget, length: 1, spans, fresh, pointers, pushed: 0, utilization: 0 }
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
