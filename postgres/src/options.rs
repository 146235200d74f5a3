//! Where the store is, and how to get there.

use std::{str::FromStr as _, sync::Arc, time::Duration};

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use rustls::{ClientConfig, RootCertStore, crypto::ring::default_provider};
use tokio_postgres::{Config, NoTls, config::SslMode};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::{Error, Objects, Retry};

/// The longest wait for a connection; the system takes no more than some weeks.
const LONGEST: Duration = Duration::from_secs(24 * 60 * 60);

/// Where the store is, and how to get there.
#[derive(Clone, Debug)]
pub struct Options {
    config: Config,
    pub(crate) schema: String,
    connections: usize,
    pub(crate) retry: Retry,
    pub(crate) objects: Option<Objects>,
    tls: Option<Arc<ClientConfig>>,
}

impl Options {
    /// The store in the schema `keepspan` of the database at `address`: `postgres://user@host:5432/database`, or what
    /// [`Config`] reads. Encrypted where the server can, and always with `?sslmode=require`; a certificate is checked, and
    /// the name in it, whenever there is one, so `verify-ca` and `verify-full` mean the same.
    ///
    /// # Errors
    /// [`Error::Address`].
    pub fn new(address: &str) -> Result<Self, Error> {
        let address =
            address.replace("sslmode=verify-ca", "sslmode=require").replace("sslmode=verify-full", "sslmode=require");
        let mut config = Config::from_str(&address).map_err(Error::Address)?;
        if config.get_application_name().is_none() {
            config.application_name("keepspan");
        }
        Ok(Self {
            config,
            schema: "keepspan".to_owned(),
            connections: 16,
            retry: Retry::default(),
            objects: None,
            tls: None,
        })
    }

    /// Another schema: a store of its own in the same database.
    ///
    /// # Errors
    /// [`Error::SchemaName`] for what would have to be quoted.
    pub fn schema(self, name: impl Into<String>) -> Result<Self, Error> {
        let schema = name.into();
        let plain =
            |(at, byte): (usize, u8)| byte.is_ascii_lowercase() || byte == b'_' || at > 0 && byte.is_ascii_digit();
        if schema.is_empty() || schema.len() > 63 || !schema.bytes().enumerate().all(plain) {
            return Err(Error::SchemaName { name: schema });
        }
        Ok(Self { schema, ..self })
    }

    /// The most connections of one [`PostgresStore`](crate::PostgresStore); 16 unless said. One more statement at once waits.
    #[must_use]
    pub fn connections(self, most: usize) -> Self {
        Self { connections: most.max(1), ..self }
    }

    /// How long to try.
    #[must_use]
    pub fn retry(self, retry: Retry) -> Self {
        Self { retry, ..self }
    }

    /// Large blobs go there, and not into the database.
    #[must_use]
    pub fn objects(self, objects: Objects) -> Self {
        Self { objects: Some(objects), ..self }
    }

    /// TLS as you set it up: certificates of your own. Otherwise those that the system trusts, which `SSL_CERT_FILE` names.
    #[must_use]
    pub fn tls(self, tls: ClientConfig) -> Self {
        Self { tls: Some(Arc::new(tls)), ..self }
    }

    pub(crate) fn pool(&self) -> Result<Pool, Error> {
        let mut config = self.config.clone();
        // Otherwise a connection that nobody is at the other end of takes all the time that there is for another.
        let part = self.retry.deadline.checked_div(3).unwrap_or_default().min(LONGEST);
        if config.get_connect_timeout().is_none() {
            config.connect_timeout(part);
        }
        if config.get_tcp_user_timeout().is_none() {
            config.tcp_user_timeout(part);
        }
        let fast = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = match (&self.tls, config.get_ssl_mode()) {
            (None, SslMode::Disable) => Manager::from_config(config, NoTls, fast),
            (tls, _) => {
                let tls = tls.as_deref().cloned().map_or_else(system, Ok)?;
                Manager::from_config(config, MakeRustlsConnect::new(tls), fast)
            }
        };
        // It refuses only a timeout without a runtime, and there is no timeout.
        Pool::builder(manager).max_size(self.connections).build().map_err(|_| Error::Closed)
    }
}

/// TLS with the certificates that the system trusts.
fn system() -> Result<ClientConfig, Error> {
    let mut roots = RootCertStore::empty();
    // One that cannot be read is not trusted.
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let tls = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let tls = tls.with_safe_default_protocol_versions().map_err(Error::Tls)?;
    Ok(tls.with_root_certificates(roots).with_no_client_auth())
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_schema_that_would_have_to_be_quoted_is_refused() {
        let options = Options::new("postgres://localhost/db").unwrap();
        for name in ["", "A", "a-b", "1a", "a b", "a\"; --", "ä", &"a".repeat(64)] {
            assert!(matches!(options.clone().schema(name), Err(Error::SchemaName { name: named }) if named == name));
        }
        for name in ["a", "_1", "keepspan_2", &"a".repeat(63)] {
            assert_eq!(options.clone().schema(name).unwrap().schema, name);
        }
        assert!(matches!(Options::new("postgres://localhost:port/db"), Err(Error::Address(_))));
    }
}
