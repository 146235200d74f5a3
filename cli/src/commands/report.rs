//! `report`: the page.

use std::{fs, path::Path};

use super::{Opened, opened};
use crate::{args::Source, failure::Failure, output::Output, report};

/// Writes the page; with `--json`, the data behind it goes to standard output.
pub fn report(source: &Source, output: Option<&Path>, with_text: bool, out: &mut Output) -> Result<(), Failure> {
    let Opened { store, history } = opened(source)?;
    let name = source
        .file
        .file_name()
        .map_or_else(|| source.file.display().to_string(), |name| name.to_string_lossy().into_owned());
    let story = report::story_of(&history, name, with_text.then_some(&store))?;
    if let Some(path) = output {
        fs::write(path, report::page(&story))
            .map_err(|source| Failure::Write { name: path.display().to_string(), source })?;
    }
    if out.is_json() {
        out.value(&story)?;
    }
    Ok(())
}
