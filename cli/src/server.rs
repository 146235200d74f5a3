//! A store in a database: what only a build with the feature `postgres` can do.

#[cfg(feature = "postgres")]
pub use self::with::{migrate, objects, open};
#[cfg(not(feature = "postgres"))]
pub use self::without::{migrate, objects, open};

/// What the object store of a database has, beside what the database names.
#[derive(serde::Serialize)]
pub struct Objects {
    pub objects: u64,
    /// Objects that nothing names, in words.
    pub orphans: Vec<String>,
    /// What is wrong, in words.
    pub faults: Vec<String>,
}

#[cfg(not(feature = "postgres"))]
mod without {
    use super::Objects;
    use crate::{
        failure::Failure,
        store::{Kept, Place},
    };

    fn none<T>() -> Result<T, Failure> {
        Err(Failure::Usage("this `keepspan` reads files only: build it with `--features postgres`".to_owned()))
    }

    pub fn open(_: &Place, _: &str) -> Result<Kept, Failure> {
        none()
    }

    pub fn migrate(_: &Place) -> Result<(i32, i32), Failure> {
        none()
    }

    #[expect(clippy::unnecessary_wraps, reason = "as the one that can fail")]
    pub fn objects(_: &Kept, _: &Place) -> Result<Option<Objects>, Failure> {
        Ok(None)
    }
}

#[cfg(feature = "postgres")]
mod with {
    use std::{
        sync::Arc,
        time::{Duration, SystemTime},
    };

    use keepspan_postgres::{Blocking, Options, Orphan, Retry, VERSION};

    use super::Objects;
    use crate::{
        failure::Failure,
        store::{Kept, Place},
        words,
    };

    fn options(place: &Place, address: &str) -> Result<Options, Failure> {
        // Somebody waits for it.
        let retry = Retry { deadline: Duration::from_secs(5), ..Retry::default() };
        let options = Options::new(address)?.schema(&*place.schema)?.retry(retry);
        Ok(match &place.blobs {
            Some(blobs) => options.objects(keepspan_postgres::Objects::open(blobs)?),
            None => options,
        })
    }

    pub fn open(place: &Place, address: &str) -> Result<Kept, Failure> {
        let store = Arc::new(Blocking::connect(options(place, address)?)?);
        Ok(Kept { episodes: store.episodes()?, store: store.clone(), server: Some(store) })
    }

    /// Brings the tables up to date. Gives the version before, 0 for none, and the one there is now.
    pub fn migrate(place: &Place) -> Result<(i32, i32), Failure> {
        let none = || Failure::Usage(format!("{}: a file needs no migration; name a database", place.name()));
        let address = place.address().ok_or_else(none)?;
        Ok((Blocking::migrate(&options(place, address)?)?, VERSION))
    }

    /// Whether the database and the object store agree, where there is one.
    pub fn objects(kept: &Kept, place: &Place) -> Result<Option<Objects>, Failure> {
        let Some(server) = kept.server.as_ref().filter(|_| place.blobs.is_some()) else { return Ok(None) };
        let found = server.verify()?;
        let dangling =
            found.dangling.iter().map(|digest| format!("the object of blob {digest} is not there: its text is lost"));
        let sealed = found.orphans.iter().filter(|orphan| orphan.sealed).map(|orphan| {
            format!(
                "the object of blob {} is there, though its text was removed: run `PostgresStore::scrub`",
                orphan.digest
            )
        });
        Ok(Some(Objects {
            objects: found.objects,
            faults: dangling.chain(sealed).collect(),
            orphans: found.orphans.iter().filter(|orphan| !orphan.sealed).map(told).collect(),
        }))
    }

    fn told(orphan: &Orphan) -> String {
        let since = orphan.since.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let since = words::time(u64::try_from(since.as_millis()).unwrap_or(u64::MAX));
        format!("{}, {} bytes, since {since}", orphan.digest, words::count(orphan.bytes))
    }
}
