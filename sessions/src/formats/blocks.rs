//! The content of messages: text, a list of blocks, one block, or nothing. Providers and agents spell the same few blocks in
//! their own ways; all of them are here, with every field optional.

use std::{fmt, ops::Deref, sync::Arc};

use serde::{
    Deserialize, Deserializer,
    de::{self, MapAccess, SeqAccess, Visitor},
};
use serde_json::value::RawValue;

use crate::{
    picture::Picture,
    session::{Piece, Session},
    step::Place,
};

/// A string, borrowed where it has no escapes; with them, it is made once.
#[derive(Clone, Debug)]
pub(crate) enum Text<'a> {
    Borrowed(&'a str),
    Owned(Arc<str>),
}

impl Default for Text<'_> {
    fn default() -> Self {
        Self::Borrowed("")
    }
}

impl Deref for Text<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        match self {
            Self::Borrowed(text) => text,
            Self::Owned(text) => text,
        }
    }
}

impl From<Text<'_>> for Arc<str> {
    fn from(text: Text<'_>) -> Self {
        match text {
            Text::Borrowed(text) => text.into(),
            Text::Owned(text) => text,
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Text<'de>, E> {
        Ok(Text::Borrowed(text))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Text<'de>, E> {
        Ok(Text::Owned(text.into()))
    }
}

/// What a message says.
#[derive(Debug, Default)]
pub(crate) enum Content<'a> {
    /// It was null, or not there.
    #[default]
    Nothing,
    Text(Text<'a>),
    Blocks(Vec<Block<'a>>),
}

impl Content<'_> {
    /// Whether there is no text and no block in it.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::Nothing => true,
            Self::Text(text) => text.is_empty(),
            Self::Blocks(blocks) => blocks.is_empty(),
        }
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Content<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ContentVisitor(std::marker::PhantomData))
    }
}

struct ContentVisitor<'a>(std::marker::PhantomData<Content<'a>>);

impl<'de: 'a, 'a> Visitor<'de> for ContentVisitor<'a> {
    type Value = Content<'a>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text, a list of blocks, or null")
    }

    fn visit_borrowed_str<E: de::Error>(self, text: &'de str) -> Result<Content<'a>, E> {
        Ok(Content::Text(Text::Borrowed(text)))
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Content<'a>, E> {
        Ok(Content::Text(Text::Owned(text.into())))
    }

    fn visit_unit<E: de::Error>(self) -> Result<Content<'a>, E> {
        Ok(Content::Nothing)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Content<'a>, A::Error> {
        let mut blocks = Vec::new();
        while let Some(StringOrBlock(block)) = list.next_element()? {
            blocks.push(block);
        }
        Ok(Content::Blocks(blocks))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Content<'a>, A::Error> {
        Block::deserialize(de::value::MapAccessDeserializer::new(map)).map(|block| Content::Blocks(vec![block]))
    }
}

/// A block, or text in its place.
struct StringOrBlock<'a>(Block<'a>);

impl<'de: 'a, 'a> Deserialize<'de> for StringOrBlock<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let content = deserializer.deserialize_any(ContentVisitor(std::marker::PhantomData))?;
        match content {
            Content::Text(text) => {
                Ok(Self(Block { kind: Text::Borrowed("text"), text: Some(text), ..Block::default() }))
            }
            Content::Blocks(blocks) => Ok(Self(blocks.into_iter().next().unwrap_or_default())),
            Content::Nothing => Ok(Self(Block::default())),
        }
    }
}

/// One block of any provider or agent.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Block<'a> {
    #[serde(rename = "type", borrow)]
    pub(crate) kind: Text<'a>,
    #[serde(borrow)]
    pub(crate) text: Option<Text<'a>>,
    #[serde(borrow, alias = "reasoning")]
    pub(crate) thinking: Option<Text<'a>>,
    #[serde(borrow, alias = "thinkingSignature")]
    pub(crate) signature: Option<Text<'a>>,
    /// Of a redacted block, or of a picture.
    #[serde(borrow)]
    pub(crate) data: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) refusal: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) name: Option<Text<'a>>,
    #[serde(borrow, alias = "arguments")]
    pub(crate) input: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) tool_use_id: Option<Text<'a>>,
    #[serde(borrow)]
    pub(crate) content: Content<'a>,
    pub(crate) is_error: Option<bool>,
    #[serde(borrow)]
    pub(crate) source: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) image_url: Option<&'a RawValue>,
    #[serde(borrow)]
    pub(crate) image: Option<Text<'a>>,
}

/// Where a picture's bytes can be.
#[derive(Default, Deserialize)]
#[serde(default)]
struct PictureSource<'a> {
    #[serde(borrow)]
    data: Option<Text<'a>>,
    #[serde(borrow)]
    url: Option<Text<'a>>,
    #[serde(borrow, rename = "fileId", alias = "file_id")]
    file: Option<Text<'a>>,
}

impl<'a> Block<'a> {
    /// The picture of a block that is one.
    pub(crate) fn picture(&self) -> Option<Picture> {
        if !matches!(&*self.kind, "image" | "image_url" | "input_image" | "computer_screenshot") {
            return None;
        }
        if let Some(url) = self.image.as_deref() {
            return Some(Picture::from_url(url));
        }
        if let Some(data) = self.data.as_deref() {
            return Some(Picture::from_base64(data));
        }
        let Some(source) = self.image_url.or(self.source) else {
            return Some(Picture::Missing { what: "nothing of it".into() });
        };
        if let Ok(url) = serde_json::from_str::<Text<'_>>(source.get()) {
            return Some(Picture::from_url(&url));
        }
        let source: PictureSource<'_> = serde_json::from_str(source.get()).unwrap_or_default();
        Some(match (&source.data, &source.url, &source.file) {
            (Some(data), _, _) => Picture::from_base64(data),
            (_, Some(url), _) => Picture::from_url(url),
            (_, _, Some(file)) => Picture::Missing { what: file.chars().take(200).collect() },
            _ => Picture::Missing { what: "nothing of it".into() },
        })
    }

    /// Its text, of a block that is plain text whatever it is called.
    pub(crate) fn plain(&mut self) -> Option<Arc<str>> {
        match &*self.kind {
            "" | "text" | "input_text" | "output_text" | "summary_text" | "reasoning_text" => {
                self.text.take().map(Arc::from)
            }
            "refusal" => self.refusal.take().map(Arc::from),
            _ => None,
        }
    }

    /// The arguments of a call: as they are in the file, or the text that they are.
    pub(crate) fn arguments(&self) -> Arc<str> {
        arguments(self.input)
    }
}

/// Arguments as a call has them: JSON, or the text of a string, which mostly is JSON again.
pub(crate) fn arguments(raw: Option<&RawValue>) -> Arc<str> {
    let Some(raw) = raw.map(RawValue::get) else { return "{}".into() };
    let text = raw.starts_with('"').then(|| serde_json::from_str::<Text<'_>>(raw));
    text.and_then(Result::ok).map_or_else(|| json(raw), Arc::from)
}

/// JSON as it is sent: without the white space of a file that was written for people.
pub(crate) fn json(text: &str) -> Arc<str> {
    if !text.contains('\n') {
        return text.into();
    }
    let (mut compact, mut quoted, mut escaped) = (String::with_capacity(text.len()), false, false);
    for next in text.chars() {
        if quoted || !next.is_ascii_whitespace() {
            compact.push(next);
        }
        quoted ^= next == '"' && !escaped;
        escaped = next == '\\' && !escaped;
    }
    compact.into()
}

/// The text and pictures of a result or a user's message; other blocks are reported as unknown.
pub(crate) fn pieces(content: Content<'_>, session: &mut Session<'_>, place: Place) -> Vec<Piece> {
    match content {
        Content::Nothing => Vec::new(),
        Content::Text(text) => vec![Piece::Text(text.into())],
        Content::Blocks(blocks) => blocks.into_iter().filter_map(|block| piece(block, session, place)).collect(),
    }
}

/// The text or picture of one block.
pub(crate) fn piece(mut block: Block<'_>, session: &mut Session<'_>, place: Place) -> Option<Piece> {
    if let Some(text) = block.plain() {
        return Some(Piece::Text(text));
    }
    let picture = block.picture().map(Piece::Picture);
    if picture.is_none() {
        session.unknown(&format!("block {}", &*block.kind), place.line);
    }
    picture
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn white_space_goes_from_between_and_stays_within() {
        let pretty = "{\n  \"a b\": [1, \"x \\\" y\\\\\" ],\n \"c\": { } }";
        assert_eq!(&*json(pretty), r#"{"a b":[1,"x \" y\\"],"c":{}}"#);
        assert_eq!(&*json("{ \"a\": 1 }"), "{ \"a\": 1 }");
    }

    #[test]
    fn content_in_every_shape() {
        for (text, texts) in [
            ("null", &[][..]),
            ("\"a\\n\"", &["a\n"]),
            ("[]", &[]),
            (r#"["a",{"type":"text","text":"b"},null]"#, &["a", "b", ""]),
            (r#"{"type":"input_text","text":"c"}"#, &["c"]),
        ] {
            let found = match serde_json::from_str(text).unwrap() {
                Content::Nothing => Vec::new(),
                Content::Text(text) => vec![text.to_string()],
                Content::Blocks(blocks) => blocks.iter().map(|b| b.text.as_deref().unwrap_or("").to_owned()).collect(),
            };
            assert_eq!(found, texts, "{text}");
        }
        assert!(serde_json::from_str::<Content<'_>>("5").is_err());
    }
}
