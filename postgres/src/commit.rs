//! A batch as the arrays of one statement.

use keepspan::{
    Digest, audit,
    store::{Batch, Blob},
};
use tokio_postgres::types::ToSql;

use crate::Error;

/// The statement for a batch, see the functions in the migrations.
pub(crate) fn statement(batch: &Batch) -> &'static str {
    macro_rules! call {
        ($function:literal) => {
            concat!(
                "SELECT ",
                $function,
                "($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, \
                 $24, $25, $26)"
            )
        };
    }
    if batch.seals().is_empty() { call!("commit") } else { call!("commit_sealing") }
}

/// The most bytes of one statement: the server takes 1 GiB in all.
const MOST: usize = 1_000_000_000;

/// A number as the database has it; one beyond is the last, which no log reaches.
pub(crate) fn int(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// The arguments of a [`statement`].
#[derive(Debug)]
pub(crate) struct Arguments<'a> {
    episode: &'a [u8],
    expected: i64,
    attempt: Vec<u8>,
    records: &'a [Vec<u8>],
    digests: Vec<&'a [u8]>,
    contents: Vec<Option<&'a [u8]>>,
    seals: Vec<&'a [u8]>,
    signatures: Vec<&'a [u8]>,
    holders: Vec<&'a [u8]>,
    said: Said,
}

/// What the records say, in columns.
#[derive(Debug, Default)]
struct Said {
    lane_numbers: Vec<i64>,
    lanes: Vec<i32>,
    lane_names: Vec<String>,
    lane_kinds: Vec<&'static str>,
    policy_numbers: Vec<i64>,
    places: Vec<i32>,
    policies: Vec<String>,
    numbers: Vec<i64>,
    spans: Vec<i64>,
    left_lanes: Vec<i32>,
    left_policies: Vec<i64>,
    starts: Vec<i64>,
    ends: Vec<i64>,
    scores: Vec<Option<f64>>,
    sha256s: Vec<Vec<u8>>,
    replacements: Vec<Option<i64>>,
    times: Vec<Option<f64>>,
}

impl<'a> Arguments<'a> {
    /// `outside` says of each blob whether its bytes are elsewhere.
    pub(crate) fn of(batch: &'a Batch, outside: impl Fn(&Blob) -> bool) -> Result<Self, Error> {
        // In one order for everybody, or two commits could wait for each other.
        let mut blobs: Vec<_> = batch.blobs().iter().collect();
        blobs.sort_unstable_by_key(|blob| blob.digest());
        blobs.dedup_by_key(|blob| blob.digest());
        let bytes = |blob: &'a Blob| Some(blob.bytes()).filter(|_| !outside(blob));
        let (digests, contents): (Vec<_>, Vec<_>) =
            blobs.into_iter().map(|blob| (&blob.digest().as_bytes()[..], bytes(blob))).unzip();
        let mut claims: Vec<_> = batch.claims().iter().collect();
        claims.sort_unstable_by_key(|claim| claim.signature);
        let mut seals = bytes_of(batch.seals());
        seals.sort_unstable();
        seals.dedup();
        let inline = contents.iter().flatten().map(|bytes| bytes.len());
        let holders = batch.claims().iter().map(|claim| claim.holder.len());
        let bytes =
            inline.chain(batch.records().iter().map(Vec::len)).chain(holders).fold(0_usize, usize::saturating_add);
        if bytes > MOST {
            return Err(Error::TooLarge { bytes, most: MOST });
        }
        Ok(Self {
            episode: batch.episode().as_str().as_bytes(),
            expected: int(batch.expected()),
            attempt: rand::random::<[u8; 16]>().to_vec(),
            records: batch.records(),
            digests,
            contents,
            seals,
            signatures: claims.iter().map(|claim| &claim.signature.as_bytes()[..]).collect(),
            holders: claims.iter().map(|claim| claim.holder.as_slice()).collect(),
            said: Said::of(batch),
        })
    }

    pub(crate) fn values(&self) -> [&(dyn ToSql + Sync); 26] {
        let Self { episode, expected, attempt, records, digests, contents, seals, signatures, holders, said } = self;
        let Said { lane_numbers, lanes, lane_names, lane_kinds, policy_numbers, places, policies, .. } = said;
        let Said { numbers, spans, left_lanes, left_policies, starts, ends, .. } = said;
        let Said { scores, sha256s, replacements, times, .. } = said;
        [
            episode,
            expected,
            attempt,
            records,
            digests,
            contents,
            seals,
            signatures,
            holders,
            lane_numbers,
            lanes,
            lane_names,
            lane_kinds,
            policy_numbers,
            places,
            policies,
            numbers,
            spans,
            left_lanes,
            left_policies,
            starts,
            ends,
            scores,
            sha256s,
            replacements,
            times,
        ]
    }
}

/// Digests as the database has them.
pub(crate) fn bytes_of(digests: &[Digest]) -> Vec<&[u8]> {
    digests.iter().map(|digest| &digest.as_bytes()[..]).collect()
}

impl Said {
    /// A record that cannot be read says nothing: the store keeps it all the same.
    fn of(batch: &Batch) -> Self {
        let mut said = Self::default();
        for (place, record) in (0..).zip(batch.records()) {
            if let Ok(rows) = audit::rows(record) {
                said.record(int(batch.expected().saturating_add(place)), rows);
            }
        }
        said
    }

    fn record(&mut self, number: i64, rows: audit::Rows) {
        for (lane, (name, kind)) in (0..).zip(rows.lanes) {
            self.lane_numbers.push(number);
            self.lanes.push(lane);
            self.lane_names.push(name.replace('\0', "\u{fffd}"));
            self.lane_kinds.push(kind.attribute());
        }
        for (place, policy) in (0..).zip(rows.policies) {
            // A value of three texts is written; what `jsonb` cannot hold is replaced.
            let policy = serde_json::to_string(&policy).unwrap_or_else(|_| "{}".to_owned());
            self.policy_numbers.push(number);
            self.places.push(place);
            self.policies.push(policy.replace("\\u0000", "\\ufffd"));
        }
        #[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 are far below 2^53")]
        let time = rows.time.map(|time| time as f64 / 1_000.0);
        for row in rows.tombstones {
            self.numbers.push(number);
            self.spans.push(int(row.span.number()));
            self.left_lanes.push(row.lane.into());
            self.left_policies.push(row.policy.into());
            self.starts.push(int(row.start));
            self.ends.push(int(row.end));
            self.scores.push(row.score);
            self.sha256s.push(row.sha256.as_bytes().to_vec());
            self.replacements.push(row.replaced_by.map(|span| int(span.number())));
            self.times.push(time);
        }
    }
}
