//! `report`: the page.

use std::{fs, io::Read as _, path::Path};

use super::{Opened, opened};
use crate::{failure::Failure, output::Output, report, store::Source};

/// Writes the page; with `--json`, the data behind it goes to standard output.
pub fn report(source: &Source, output: Option<&Path>, with_text: bool, out: &mut Output) -> Result<(), Failure> {
    if let Some(path) = output {
        replaces_no(path, source.place.file().as_slice())?;
    }
    let Opened { store, history } = opened(source)?;
    let story = report::story_of(&history, source.place.title(), with_text.then_some(&*store))?;
    if let Some(path) = output {
        fs::write(path, report::page(&story))
            .map_err(|source| Failure::Write { name: path.display().to_string(), source })?;
    }
    if out.is_json() {
        out.value(&story)?;
    }
    Ok(())
}

/// Whether a page may have this name: it would replace a file that was read, by whatever name, or a store.
pub fn replaces_no(path: &Path, files: &[&Path]) -> Result<(), Failure> {
    let what = match files.iter().any(|file| is(path, file)) {
        _ if is_store(path) => "a store",
        true => "what is read",
        false => return Ok(()),
    };
    let name = path.display();
    Err(Failure::Usage(format!("{name} is {what}, which a page would replace: choose another name for the page")))
}

fn is(path: &Path, file: &Path) -> bool {
    let same = || Some(fs::canonicalize(path).ok()? == fs::canonicalize(file).ok()?);
    same() == Some(true)
}

fn is_store(path: &Path) -> bool {
    let begins = || {
        let mut first = [0; 4];
        fs::File::open(path).ok()?.read_exact(&mut first).ok()?;
        Some(first == *b"redb")
    };
    path.is_file() && begins() == Some(true)
}
