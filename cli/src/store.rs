//! Opens a store to read it, and finds the episode that is meant.

use std::path::Path;

use keepspan::{EpisodeId, store::EmbeddedStore};

use crate::{args::Source, failure::Failure, words::line};

/// Opens the file, and never creates or changes one.
pub fn open(file: &Path) -> Result<EmbeddedStore, Failure> {
    if !file.exists() {
        return Err(Failure::NoFile(file.to_path_buf()));
    }
    Ok(EmbeddedStore::open_read_only(file)?)
}

/// The episodes that are meant: the one that is named, or all.
pub fn episodes(store: &EmbeddedStore, source: &Source) -> Result<Vec<EpisodeId>, Failure> {
    let all: Vec<_> = store.episodes()?.into_iter().map(|(episode, _)| episode).collect();
    match &source.episode {
        None => Ok(all),
        Some(name) => match all.iter().find(|episode| episode.as_str() == name) {
            Some(found) => Ok(vec![found.clone()]),
            None => Err(unknown(name, &all)),
        },
    }
}

/// The one episode that is meant.
pub fn episode(store: &EmbeddedStore, source: &Source) -> Result<EpisodeId, Failure> {
    let (found, file) = (episodes(store, source)?, source.file.display());
    match found.as_slice() {
        [only] => Ok(only.clone()),
        [] => Err(no_episode(&source.file)),
        several => Err(Failure::Usage(format!("{file}: name one of the episodes with --episode: {}", list(several)))),
    }
}

/// A store that nothing was written to.
pub fn no_episode(file: &Path) -> Failure {
    Failure::Usage(format!("{}: the store has no episode yet", file.display()))
}

fn unknown(name: &str, all: &[EpisodeId]) -> Failure {
    let like = |episode: &&EpisodeId| strsim::jaro_winkler(episode.as_str(), name);
    let nearest = all.iter().max_by(|a, b| like(a).total_cmp(&like(b))).filter(|nearest| like(nearest) > 0.8);
    Failure::Usage(match nearest {
        Some(nearest) => format!("no episode `{name}`: did you mean `{}`?", line(nearest.as_str())),
        None if all.is_empty() => format!("no episode `{name}`: the store has none yet"),
        None => format!("no episode `{name}`: the store has {}", list(all)),
    })
}

/// Names, at most ten of them.
fn list(episodes: &[EpisodeId]) -> String {
    let names: Vec<_> = episodes.iter().take(10).map(|episode| format!("`{}`", line(episode.as_str()))).collect();
    match episodes.len().saturating_sub(names.len()) {
        0 => names.join(", "),
        more => format!("{} and {more} more; `keepspan episodes` lists all", names.join(", ")),
    }
}
