//! A change of model, prompt or policy is an event (rule R22).

use super::{Operation, Shared, contents::Contents, step::Plan};
use crate::{CommitError, PolicyVersion, TokenCounter, journal::Event};

/// Logs a new policy version; see [`Window::change_policy`](crate::Window::change_policy).
#[derive(Debug)]
pub struct ChangePolicy(pub(crate) PolicyVersion);

impl<'w, St> Operation<'w, St> for ChangePolicy {
    type Output = ();
    type Error = CommitError;
    type Effect = PolicyVersion;

    fn plan(self, contents: &Contents, _: &dyn TokenCounter) -> Result<Plan<PolicyVersion>, CommitError> {
        let mut plan = Plan::new(self.0);
        if plan.effect != contents.policy {
            plan.events.push(Event::PolicyChanged(plan.effect.clone()));
        }
        Ok(plan)
    }

    fn apply(policy: PolicyVersion, _: Vec<Vec<u8>>, contents: &mut Contents, _: &'w Shared<St>) {
        contents.under(policy);
    }
}

impl Contents {
    /// Another policy is in force: what was decided under the one before is not applied under it.
    pub(crate) fn under(&mut self, policy: PolicyVersion) {
        if self.policy != policy {
            self.changes = self.changes.saturating_add(1);
            self.policies = self.policies.saturating_add(1);
            self.policy = policy;
        }
    }
}
