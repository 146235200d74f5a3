//! Pictures: their bytes and size, never their base64 as text.

use base64::{Engine as _, engine::general_purpose::STANDARD};

/// A picture of a message or result.
#[derive(Debug)]
pub(crate) enum Picture {
    /// Its bytes, and its size in pixels.
    Sized { bytes: Vec<u8>, width: u32, height: u32 },
    /// It, or its size, is not in the file.
    Missing {
        /// What is there.
        what: String,
    },
}

impl Picture {
    /// From the bytes in base64.
    pub(crate) fn from_base64(text: &str) -> Self {
        let Ok(bytes) = STANDARD.decode(text) else {
            return Self::Missing { what: format!("{} characters that are no base64", text.len()) };
        };
        let size = imagesize::blob_size(&bytes).ok();
        match size.and_then(|size| Some((u32::try_from(size.width).ok()?, u32::try_from(size.height).ok()?))) {
            Some((width @ 1.., height @ 1..)) => Self::Sized { bytes, width, height },
            _ => Self::Missing { what: format!("{} bytes of unknown size in pixels", bytes.len()) },
        }
    }

    /// From a URL, which can hold the bytes.
    pub(crate) fn from_url(url: &str) -> Self {
        match url.strip_prefix("data:").and_then(|data| data.split_once(";base64,")) {
            Some((_, data)) => Self::from_base64(data),
            None => Self::Missing { what: url.chars().take(200).collect() },
        }
    }
}
