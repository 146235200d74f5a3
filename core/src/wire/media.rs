//! Images and files within JSON: counted for what they are, never as text.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::frame;
use crate::{CounterError, Image, TokenCount, TokenCounter};

/// What a span's JSON costs when its images and files are no text.
#[derive(Clone, Debug)]
pub(crate) struct Media {
    /// The JSON without them.
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
enum Part {
    Image { bytes: Vec<u8>, width: u32, height: u32 },
    File(Vec<u8>),
}

/// A value, and what is written in its place.
type Hole<'v> = (&'v Value, &'static str);

/// An image whose size nobody here can tell: as large as providers take one before they scale it down.
const UNKNOWN: u32 = 1_568;

impl Media {
    /// `None` where there is neither.
    pub(super) fn of(value: &Value) -> Option<Self> {
        let (mut holes, mut parts) = (Vec::new(), Vec::new());
        find(value, &mut holes, &mut parts);
        if parts.is_empty() {
            return None;
        }
        let mut text = Vec::new();
        frame::write(value, &holes, &mut text);
        Some(Self { text: frame::text(text), parts })
    }

    pub(crate) fn count(&self, counter: &dyn TokenCounter) -> Result<TokenCount, CounterError> {
        self.parts.iter().try_fold(counter.text(&self.text)?, |sum, part| {
            sum.plus(match part {
                Part::Image { bytes, width, height } => counter.image(Image::new(bytes, *width, *height)?)?,
                Part::File(bytes) => counter.bytes(bytes)?,
            })
        })
    }
}

/// What blocks with a file are called; within any other, base64 is text.
const FILES: &[&str] = &[
    "image",
    "image_url",
    "input_image",
    "computer_screenshot",
    "image_generation_call",
    "document",
    "file",
    "input_file",
    "input_audio",
];
/// The same in a format that has no types.
const INLINE: &[&str] = &["inlineData", "inline_data"];

/// Walks JSON for blocks with files and images, and their data; the holes come in its order.
fn find<'v>(value: &'v Value, holes: &mut Vec<Hole<'v>>, parts: &mut Vec<Part>) {
    match value {
        Value::Array(values) => values.iter().for_each(|value| find(value, holes, parts)),
        Value::Object(fields) => {
            let kind = fields.get("type").and_then(Value::as_str);
            let kind = kind.filter(|kind| FILES.contains(kind));
            if let Some(kind) = kind {
                return data(value, kind.contains("image") || kind.contains("screenshot"), holes, parts);
            }
            for (name, value) in fields {
                if INLINE.contains(&name.as_str()) {
                    data(value, false, holes, parts)
                } else {
                    find(value, holes, parts)
                }
            }
        }
        _ => {}
    }
}

/// Takes the data out of a block: base64, in a URL or not. What a link leads to is of unknown size.
fn data<'v>(block: &'v Value, image: bool, holes: &mut Vec<Hole<'v>>, parts: &mut Vec<Part>) {
    let fields = match block {
        Value::Object(fields) => fields,
        Value::Array(values) => return values.iter().for_each(|value| data(value, image, holes, parts)),
        _ => return,
    };
    let media = ["media_type", "mimeType", "mime_type"].iter().find_map(|name| fields.get(*name)?.as_str());
    let image = media.map_or(image, |media| media.starts_with("image/"));
    for (name, value) in fields {
        match value {
            Value::String(text) => {
                if let Some((media, data)) = text.strip_prefix("data:").and_then(|data| data.split_once(";base64,")) {
                    take(value, data, media.starts_with("image/"), holes, parts);
                } else if matches!(name.as_str(), "data" | "file_data" | "result") {
                    if is_data(text) {
                        take(value, text, image, holes, parts);
                    }
                } else if image && matches!(name.as_str(), "url" | "image_url" | "file_id") {
                    parts.push(Part::Image { bytes: Vec::new(), width: UNKNOWN, height: UNKNOWN });
                }
            }
            _ => data(value, image, holes, parts),
        }
    }
}

/// Whether a text can be a file: of some length, and base64.
fn is_data(text: &str) -> bool {
    let base64 = |byte: u8| byte.is_ascii_alphanumeric() || b"+/=\r\n".contains(&byte);
    text.len() >= 64 && text.bytes().all(base64)
}

fn take<'v>(value: &'v Value, data: &str, is_image: bool, holes: &mut Vec<Hole<'v>>, parts: &mut Vec<Part>) {
    // What is no base64 stays in, and is counted as the text it is.
    let Ok(bytes) = STANDARD.decode(data.trim_end()) else { return };
    holes.push((value, "\"\""));
    let size = imagesize::blob_size(&bytes).ok();
    let side = |side: usize| u32::try_from(side).unwrap_or(u32::MAX);
    parts.push(match size {
        Some(size) if size.width > 0 && size.height > 0 => {
            Part::Image { bytes, width: side(size.width), height: side(size.height) }
        }
        _ if is_image => Part::Image { bytes, width: UNKNOWN, height: UNKNOWN },
        _ => Part::File(bytes),
    });
}
