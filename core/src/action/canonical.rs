//! One form for one request, whatever wrote it.

use crate::Digest;

/// A value with one form: what a request's signature is made of.
pub trait Canonical {
    /// Writes the form.
    fn canonical(&self, form: &mut Canon);
}

/// The form of a request, as it is written.
#[derive(Debug)]
pub struct Canon {
    bytes: Vec<u8>,
}

impl Canon {
    pub(crate) fn new(name: &str) -> Self {
        let mut form = Self { bytes: b"keepspan action 1\0".to_vec() };
        name.canonical(&mut form);
        form
    }

    pub(crate) fn digest(&self) -> Digest {
        Digest::of(&self.bytes)
    }
}

impl Canonical for str {
    fn canonical(&self, form: &mut Canon) {
        form.bytes.extend_from_slice(&u64::try_from(self.len()).unwrap_or(u64::MAX).to_be_bytes());
        form.bytes.extend_from_slice(self.as_bytes());
    }
}

impl Canonical for String {
    fn canonical(&self, form: &mut Canon) {
        self.as_str().canonical(form);
    }
}
