//! How an action fails: with no effect, or so that nobody knows.

use std::{error::Error, fmt, time::SystemTime};

use crate::SpanId;

/// Why an action failed, and whether it can have taken effect. Any error becomes one by `?`: then that is
/// [unknown](Self::unknown), since a request that timed out may have arrived.
///
/// ```
/// use keepspan::Failure;
///
/// fn book(seats: u32) -> Result<String, Failure> {
///     if seats == 0 {
///         return Err(Failure::without_effect("the flight is full"));
///     }
///     Ok(std::fs::read_to_string("/no/such/service")?) // it may have taken effect
/// }
/// assert!(book(0).is_err_and(|failure| !failure.is_uncertain()));
/// assert!(book(1).is_err_and(|failure| failure.is_uncertain()));
/// ```
// No `Error` itself: then `?` could not take every error.
#[derive(Debug)]
pub struct Failure {
    pub(super) how: How,
    pub(super) why: String,
    pub(super) until: Option<SystemTime>,
    pub(super) shown_in: Option<SpanId>,
    pub(super) source: Option<Box<dyn Error + Send + Sync>>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Unknown,
    WithoutEffect,
    Refused,
}

impl Failure {
    fn new(how: How, why: impl Into<String>) -> Self {
        Self { how, why: why.into(), until: None, shown_in: None, source: None }
    }

    /// It failed, and whether it took effect is unknown: the attempt stays [uncertain](super::Permission::Uncertain) until
    /// somebody settles it.
    pub fn unknown(why: impl Into<String>) -> Self {
        Self::new(How::Unknown, why)
    }

    /// It failed and took no effect for certain: the service said so, or was never asked. A negative result, which holds
    /// until what the action requires has changed, or the time that [`until`](Self::until) says.
    pub fn without_effect(why: impl Into<String>) -> Self {
        Self::new(How::WithoutEffect, why)
    }

    /// Somebody refused it: holds until an override.
    pub fn refused(why: impl Into<String>) -> Self {
        Self::new(How::Refused, why)
    }

    /// The time from which it may be tried again, as a service's `retry-after` says. Of no effect on a refusal.
    #[must_use]
    pub fn until(self, time: SystemTime) -> Self {
        Self { until: Some(time), ..self }
    }

    /// The span that shows it: a tool's error, a person's refusal.
    #[must_use]
    pub fn shown_in(self, span: SpanId) -> Self {
        Self { shown_in: Some(span), ..self }
    }

    /// Whether it may have taken effect.
    pub fn is_uncertain(&self) -> bool {
        self.how == How::Unknown
    }

    /// Why it failed.
    pub fn why(&self) -> &str {
        &self.why
    }
}

impl<E: Error + Send + Sync + 'static> From<E> for Failure {
    fn from(error: E) -> Self {
        Self { source: Some(Box::new(error)), ..Self::unknown("") }.described()
    }
}

impl Failure {
    /// Says why by the errors under it.
    fn described(mut self) -> Self {
        let mut error = self.source.as_deref().map(|error| error as &dyn Error);
        while let Some(link) = error {
            let colon = if self.why.is_empty() { "" } else { ": " };
            self.why = format!("{}{colon}{link}", self.why);
            error = link.source();
        }
        self
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}
