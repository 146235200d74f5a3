//! Walks over documents: what most of them share.

use std::sync::Arc;

use super::blocks::Text;
use crate::{
    error::Fault,
    records::{Document, Record, Source},
    session::Session,
    step::Place,
};

/// Each document of the file, which mostly has one; lines of JSON are documents, too.
pub(crate) fn documents(
    source: &mut Source<'_>,
    session: &mut Session<'_>,
    mut one: impl FnMut(&mut Document<'_, '_>, &mut Session<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    let mut document = Document::new(source);
    while document.more()? {
        one(&mut document, session)?;
    }
    Ok(())
}

/// Each conversation of the file: the elements of its lists, or its documents themselves.
pub(crate) fn conversations(
    source: &mut Source<'_>,
    session: &mut Session<'_>,
    mut one: impl FnMut(&mut Document<'_, '_>, &mut Session<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    documents(source, session, |document, session| {
        if !document.at_array()? {
            return one(document, session);
        }
        document.array()?;
        while document.element()? {
            one(document, session)?;
        }
        Ok(())
    })
}

/// Each element of the list ahead.
pub(crate) fn each(
    document: &mut Document<'_, '_>,
    session: &mut Session<'_>,
    mut one: impl FnMut(Record<'_>, &mut Session<'_>) -> Result<(), Fault>,
) -> Result<(), Fault> {
    document.array()?;
    while document.element()? {
        one(document.value()?, session)?;
    }
    Ok(())
}

/// The name of a conversation, as far as its record was walked: files put it before the messages or after them.
#[derive(Default)]
pub(crate) struct Name(Option<Arc<str>>);

impl Name {
    /// A text or number that names it; null does not.
    pub(crate) fn is(&mut self, name: Record<'_>) {
        match serde_json::from_str::<Text<'_>>(name.text) {
            Ok(text) => self.0 = Some(text.into()),
            Err(_) if name.text == "null" => {}
            Err(_) => self.0 = Some(name.text.into()),
        }
    }

    pub(crate) fn get(&self) -> Option<&str> {
        self.0.as_deref()
    }
}

/// Text that stands once in a file and belongs to each of its conversations.
pub(crate) type Shared = Option<(Arc<str>, Place)>;
