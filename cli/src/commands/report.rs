//! `report`: the page.

use std::{fs, io::Read as _, path::Path};

use super::{Opened, opened};
use crate::{args::Source, failure::Failure, output::Output, report};

/// Writes the page; with `--json`, the data behind it goes to standard output.
pub fn report(source: &Source, output: Option<&Path>, with_text: bool, out: &mut Output) -> Result<(), Failure> {
    if let Some(path) = output.filter(|path| is_store(path, &source.file)) {
        let output = path.display();
        return Err(Failure::Usage(format!(
            "{output} is a store, which a page would replace: choose another name for the page"
        )));
    }
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

/// Whether a file is this store, by whatever name, or another one.
fn is_store(path: &Path, file: &Path) -> bool {
    let same = || Some(fs::canonicalize(path).ok()? == fs::canonicalize(file).ok()?);
    let begins = || {
        let mut first = [0; 4];
        fs::File::open(path).ok()?.read_exact(&mut first).ok()?;
        Some(first == *b"redb")
    };
    path.is_file() && (same() == Some(true) || begins() == Some(true))
}
