//! Where an example keeps its store: in a file, or on servers that many machines share.

use std::{path::Path, sync::Arc};

use anyhow::Result;
use keepspan::store::Store;

/// Where the store is.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct Place {
    /// Keep the store in this database and not in a file: `postgres://..` (needs `--features postgres`)
    #[arg(long, value_name = "URL")]
    store: Option<String>,
    /// And its large texts there: `s3://..`, `file://..`
    #[arg(long, value_name = "URL", requires = "store")]
    blobs: Option<String>,
}

impl Place {
    /// Opens the store: the file, or in the database what stands for it, a schema of its own.
    pub fn open(&self, file: &Path) -> Result<Arc<dyn Store>> {
        match &self.store {
            None => Ok(Arc::new(keepspan::store::open(file)?)),
            Some(address) => shared(address, self.blobs.as_deref(), file),
        }
    }

    /// As arguments, for a process that goes on.
    #[allow(dead_code, reason = "the migration runs in one process")]
    pub fn arguments(&self) -> Vec<String> {
        let argument = |(name, value): (&str, &Option<String>)| Some(format!("--{name}={}", value.as_ref()?));
        [("store", &self.store), ("blobs", &self.blobs)].into_iter().filter_map(argument).collect()
    }
}

#[cfg(feature = "postgres")]
fn shared(address: &str, blobs: Option<&str>, file: &Path) -> Result<Arc<dyn Store>> {
    use std::{
        fs,
        time::{Duration, SystemTime},
    };

    use keepspan_postgres::{Blocking, Objects, Options, Retry};

    // Kept where the file would be, so that a process that goes on finds it, and a run that begins anew does not.
    let name = file.with_extension("schema");
    if !name.exists() {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH)?;
        fs::write(&name, format!("example_{}_{}", since.as_nanos(), std::process::id()))?;
    }
    let schema = fs::read_to_string(name)?;
    // Somebody waits for it.
    let retry = Retry { deadline: Duration::from_secs(5), ..Retry::default() };
    let mut options = Options::new(address)?.schema(schema.as_str())?.retry(retry);
    if let Some(blobs) = blobs {
        // So low that these small texts are objects too.
        options = options.objects(Objects::open(blobs)?.above(500));
    }
    Blocking::migrate(&options)?;
    Ok(Arc::new(Blocking::connect(options)?))
}

#[cfg(not(feature = "postgres"))]
fn shared(address: &str, _: Option<&str>, _: &Path) -> Result<Arc<dyn Store>> {
    anyhow::bail!("`--store {address}`: run it with `--features postgres`")
}
