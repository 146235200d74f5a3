//! What tells the same request again (rule R19).

use std::fmt;

use super::{Canon, Canonical};
use crate::Digest;

/// SHA-256 over an action's name and canonical form: the same for the same request, in every process. Shown as 64
/// lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Signature(Digest);

impl Signature {
    /// The signature of a request under a name.
    pub fn of(name: &str, request: &(impl Canonical + ?Sized)) -> Self {
        let mut form = Canon::new(name);
        request.canonical(&mut form);
        Self(form.digest())
    }

    pub(crate) fn digest(&self) -> &Digest {
        &self.0
    }
}

impl fmt::Display for Signature {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
