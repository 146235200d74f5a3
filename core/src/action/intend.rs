//! Intend: what is on record before an action runs (rule R19).

use super::{
    Action, RunError, Signature,
    record::{self, Intent},
    withheld::Asked,
};
use crate::{
    CommitError, Digest, SpanId, TokenCounter,
    evidence::Consent,
    journal::{Event, IntentRecord, now},
    store::Claim,
    window::{Operation, Shared, contents::Contents, externalized, fresh_plan, step::Plan},
};

/// Who was first, where it was somebody else; `spends` is what the attempt would have spent.
pub(super) fn first(error: CommitError, action: &'static str, spends: Option<(SpanId, Vec<Digest>)>) -> RunError {
    match (error, spends) {
        (CommitError::Claimed { signature }, Some((span, consent))) if consent.contains(&signature) => {
            RunError::Spent { action, span }
        }
        (CommitError::Claimed { .. }, _) => RunError::Taken { action },
        (error, _) => RunError::Commit(error),
    }
}

/// Writes that an action is about to run.
pub(super) struct Intend {
    record: IntentRecord,
    signature: Signature,
    spends: Option<(SpanId, Vec<Claim>)>,
}

impl Intend {
    pub(super) fn of<A: Action, St>(asked: Asked<'_, A, St>, evidence: Vec<SpanId>, consent: Option<Consent>) -> Self {
        let Asked { shared, action, signature, lanes, attempt, repeats, lossy, .. } = asked;
        let spends =
            consent.map(|consent| (consent.span(), record::consent(&shared.lock().episode, &consent, &signature)));
        let record = IntentRecord {
            signature: *signature.digest(),
            attempt,
            action: A::NAME.to_owned(),
            requires: lanes,
            evidence,
            consent: spends.as_ref().map(|(span, _)| *span),
            repeats,
            lossy,
            about: action.describe(),
        };
        Self { record, signature, spends }
    }

    /// The consent that it spends, with what that claims.
    pub(super) fn spends(&self) -> Option<(SpanId, Vec<Digest>)> {
        let signatures = |claims: &Vec<Claim>| claims.iter().map(|claim| claim.signature).collect();
        self.spends.as_ref().map(|(span, claims)| (*span, signatures(claims)))
    }
}

impl<'w, St: 'w> Operation<'w, St> for Intend {
    type Output = Intent;
    type Error = CommitError;
    type Effect = (Vec<(SpanId, Digest)>, (Digest, u64), Intent);

    fn plan(self, contents: &Contents, _: &dyn TokenCounter) -> Result<Plan<Self::Effect>, CommitError> {
        let Self { record, signature, spends } = self;
        let Plan { blobs, mut events, effect, .. } = fresh_plan(contents);
        let intent = Intent {
            episode: contents.episode.clone(),
            record: contents.length,
            time: now(),
            action: record.action.clone(),
            repeats: record.repeats.clone(),
            about: record.about.clone(),
        };
        let claim = intent.claim(&signature, record.attempt)?;
        let attempt = (record.signature, record.attempt);
        events.push(Event::Intended(record));
        let claims = spends.into_iter().flat_map(|(_, claims)| claims).chain([claim]).collect();
        Ok(Plan { blobs, claims, events, ..Plan::new((effect, attempt, intent)) })
    }

    fn apply(
        (fresh, attempt, intent): Self::Effect,
        _: Vec<Vec<u8>>,
        contents: &mut Contents,
        _: &'w Shared<St>,
    ) -> Intent {
        externalized(&fresh, contents);
        contents.unsettled.insert(attempt, (intent.clone(), None));
        intent
    }
}
