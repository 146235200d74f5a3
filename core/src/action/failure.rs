//! How an action fails: with no effect, or so that nobody knows.

use std::{error::Error, fmt, time::SystemTime};

use crate::SpanId;

/// Why an action failed, and whether it can have taken effect. An error type becomes one by `?`, and a boxed error by
/// `.map_err(Failure::unknown)?`: then that is [unknown](Self::unknown), since a request that timed out may have arrived.
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
    pub(super) error: Boxed,
}

/// Any error, or a text.
type Boxed = Box<dyn Error + Send + Sync>;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    Unknown,
    WithoutEffect,
    Refused,
}

impl Failure {
    fn new(how: How, error: Boxed) -> Self {
        let mut why = error.to_string();
        let mut link = error.source();
        while let Some(cause) = link {
            why = format!("{why}: {cause}");
            link = cause.source();
        }
        Self { how, why, until: None, shown_in: None, error }
    }

    /// It failed, and whether it took effect is unknown: the attempt stays [uncertain](super::Permission::Uncertain) until
    /// somebody settles it.
    pub fn unknown(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(How::Unknown, why.into())
    }

    /// It failed and took no effect for certain: the service said so, or was never asked. A negative result, which holds
    /// until what the action requires has changed, or the time that [`until`](Self::until) says.
    pub fn without_effect(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(How::WithoutEffect, why.into())
    }

    /// Somebody refused it: holds until an override.
    pub fn refused(why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self::new(How::Refused, why.into())
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
        Self::unknown(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}
