//! What tells the same request again (rule R19).

use std::{fmt, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{Canon, Canonical};
use crate::Digest;

/// SHA-256 over an action's name and canonical form: the same for the same request, in every process. Shown as 64
/// lower-case hex digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Signature(Digest);

impl Signature {
    /// The signature of a request under a name: a tool call, by the tool's name and its JSON arguments, has that of the
    /// [`Action`](super::Action) with this name and these fields. O(its length): the form is written once and hashed once.
    pub fn of(name: &str, request: &(impl Canonical + ?Sized)) -> Self {
        let mut form = Canon::new(name);
        request.canonical(&mut form);
        Self(form.digest())
    }

    pub(crate) const fn from_digest(digest: Digest) -> Self {
        Self(digest)
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

/// A signature as it is shown.
impl FromStr for Signature {
    type Err = NotASignature;

    fn from_str(hex: &str) -> Result<Self, NotASignature> {
        Digest::parse(hex).map(Self).ok_or(NotASignature { length: hex.len() })
    }
}

/// A text is no signature.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("these {length} bytes are no signature: give the 64 hex digits that one is shown as")]
#[non_exhaustive]
pub struct NotASignature {
    /// The text's length, in bytes.
    pub length: usize,
}
