//! Opens a store to read it, and finds the episode that is meant.

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use keepspan::{
    EpisodeId,
    store::{EmbeddedStore, Store},
};

use crate::{failure::Failure, server, words::line};

/// Where a store is.
#[derive(clap::Args, Debug)]
pub struct Place {
    /// The store's file, or the address of its database: postgres://user@host/database
    #[arg(value_name = "STORE")]
    file: PathBuf,
    /// The schema in the database
    #[arg(long, value_name = "NAME", default_value = "keepspan")]
    pub schema: String,
    /// Where a store in a database has its large texts: s3://bucket/folder, file:///folder
    #[arg(long, value_name = "URL")]
    pub blobs: Option<String>,
}

/// The store and the episode, in every command.
#[derive(clap::Args, Debug)]
pub struct Source {
    #[command(flatten)]
    pub place: Place,
    /// The episode, where the store has several
    #[arg(short, long, value_name = "NAME")]
    episode: Option<String>,
}

/// A store that is only read.
pub struct Kept {
    pub store: Arc<dyn Store>,
    /// With the number of their records.
    pub episodes: Vec<(EpisodeId, u64)>,
    /// The same store, where it is on a server.
    #[cfg(feature = "postgres")]
    pub server: Option<Arc<keepspan_postgres::Blocking>>,
}

impl Place {
    /// The file, where it is one.
    pub fn file(&self) -> Option<&Path> {
        self.address().is_none().then_some(&self.file)
    }

    /// The address, where it is a database.
    pub fn address(&self) -> Option<&str> {
        let begins = |name: &&str| ["postgres://", "postgresql://"].iter().any(|begin| name.starts_with(begin));
        self.file.to_str().filter(begins)
    }

    /// As messages name it: an address without the user and the password.
    pub fn name(&self) -> String {
        let Some(address) = self.address() else { return self.file.display().to_string() };
        let place = address.split_once("://").map_or(address, |(_, place)| place);
        let place = place.split('?').next().unwrap_or_default();
        let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
        format!("{} of postgres://{place}", self.schema)
    }

    /// As a page names it, which others read: a file without its folder.
    pub fn title(&self) -> String {
        let file = self.file().and_then(Path::file_name);
        file.map_or_else(|| self.name(), |name| name.to_string_lossy().into_owned())
    }

    /// Opens the store, and never creates or changes one.
    pub fn open(&self) -> Result<Kept, Failure> {
        if let Some(address) = self.address() {
            return server::open(self, address);
        }
        if !self.file.exists() {
            return Err(Failure::NoFile(self.file.clone()));
        }
        let store = EmbeddedStore::open_read_only(&self.file)?;
        Ok(Kept {
            episodes: store.episodes()?,
            store: Arc::new(store),
            #[cfg(feature = "postgres")]
            server: None,
        })
    }

    /// A store that nothing was written to.
    pub fn no_episode(&self) -> Failure {
        Failure::Usage(format!("{}: the store has no episode yet", self.name()))
    }
}

impl Source {
    /// The episodes that are meant: the one that is named, or all.
    pub fn episodes(&self, kept: &Kept) -> Result<Vec<EpisodeId>, Failure> {
        let all: Vec<_> = kept.episodes.iter().map(|(episode, _)| episode.clone()).collect();
        match &self.episode {
            None => Ok(all),
            Some(name) => match all.iter().find(|episode| episode.as_str() == name) {
                Some(found) => Ok(vec![found.clone()]),
                None => Err(unknown(name, &all)),
            },
        }
    }

    /// The one episode that is meant.
    pub fn episode(&self, kept: &Kept) -> Result<EpisodeId, Failure> {
        match self.episodes(kept)?.as_slice() {
            [only] => Ok(only.clone()),
            [] => Err(self.place.no_episode()),
            several => Err(Failure::Usage(format!(
                "{}: name one of the episodes with --episode: {}",
                self.place.name(),
                list(several)
            ))),
        }
    }
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
