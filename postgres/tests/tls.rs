//! The connection is encrypted, and to the server that it is meant for.
#![cfg(unix)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects
)]

mod common;

use std::{
    sync::Arc,
    time::{Duration, Instant},
};

use common::{by_hand, own::Server, server};
use keepspan::{
    EpisodeId,
    store::{AsyncStore as _, Batch, Blob},
};
use keepspan_postgres::{
    Error, Options, PostgresStore, migrate,
    rustls::{ClientConfig, RootCertStore, crypto::ring::default_provider, pki_types::CertificateDer},
};
use tokio::{task::spawn_blocking, time::sleep};

/// Trusts one certificate.
fn trusting(certificate: CertificateDer<'static>) -> ClientConfig {
    let mut roots = RootCertStore::empty();
    roots.add(certificate).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots).with_no_client_auth()
}

/// A certificate for `name`, and its key.
fn certificate(name: &str) -> (CertificateDer<'static>, String, String) {
    let made = rcgen::generate_simple_self_signed(vec![name.to_owned()]).unwrap();
    (made.cert.der().clone(), made.cert.pem(), made.signing_key.serialize_pem())
}

#[tokio::test(flavor = "multi_thread")]
async fn it_speaks_tls_to_the_server_that_it_trusts() {
    let Some(address) = server("KEEPSPAN_POSTGRES") else { return };
    let required = |address: &str| Options::new(&address.replace("sslmode=disable", "sslmode=require")).unwrap();
    let refused_with = async |options: Options, told: &str| {
        let begun = Instant::now();
        for refused in [migrate(&options).await.map(drop), PostgresStore::connect(options).await.map(drop)] {
            let refused = refused.unwrap_err();
            assert!(matches!(refused, Error::Server(_)) && refused.to_string().contains(told), "{refused}");
        }
        assert!(begun.elapsed() < Duration::from_secs(10), "not tried again");
    };
    // A server without.
    refused_with(required(&address), "server does not support TLS").await;

    let own = spawn_blocking(Server::start).await.unwrap();
    let (trusted, pem, key) = certificate("127.0.0.1");
    own.write("server.crt", &pem);
    own.write("server.key", &key);
    let client = by_hand(&own.address, &Options::new(&own.address).unwrap()).await;
    client.batch_execute("ALTER SYSTEM SET ssl = on").await.unwrap();
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    while client.query_one("SHOW ssl", &[]).await.unwrap().get::<_, &str>(0) == "off" {
        sleep(Duration::from_millis(5)).await;
    }
    let options = required(&own.address).tls(trusting(trusted));
    migrate(&options).await.unwrap();
    let store = PostgresStore::connect(options).await.unwrap();
    let blob = Blob::new(vec![7; 100_000]);
    store.commit(&Batch::new(EpisodeId::new("e"), 0, vec![blob.clone()], vec![vec![1]])).await.unwrap();
    assert_eq!(store.get_many(&[*blob.digest()]).await.unwrap(), [blob.bytes()]);
    let encrypted = "SELECT count(*), bool_and(ssl) FROM pg_stat_ssl JOIN pg_stat_activity USING (pid) \
                     WHERE application_name = 'keepspan'";
    let row = client.query_one(encrypted, &[]).await.unwrap();
    assert!(row.get::<_, i64>(0) > 0 && row.get::<_, bool>(1));
    // One that nobody vouches for, and one that somebody else is vouched for.
    refused_with(required(&own.address), "UnknownIssuer").await;
    let (other, pem, key) = certificate("db.internal");
    own.write("server.crt", &pem);
    own.write("server.key", &key);
    client.batch_execute("SELECT pg_reload_conf()").await.unwrap();
    sleep(Duration::from_millis(500)).await;
    refused_with(required(&own.address).tls(trusting(other)), "not valid for name").await;
    spawn_blocking(move || drop(own)).await.unwrap();
}
