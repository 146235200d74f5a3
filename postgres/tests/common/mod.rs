//! What the tests of this crate share: stores of their own on the servers that the environment names.
#![allow(dead_code)]

pub mod own;
pub mod proxy;
pub mod sql;

use std::{
    env,
    sync::atomic::{AtomicU32, Ordering},
    time::SystemTime,
};

use keepspan_postgres::{Options, PostgresStore, migrate};
use tokio_postgres::{Client, NoTls};

/// An address from the environment; says that a test is skipped without.
pub fn server(variable: &str) -> Option<String> {
    let address = env::var(variable).ok();
    if address.is_none() {
        println!("skipped: {variable} is not set; `eval \"$(scripts/servers start)\"` starts the servers");
    }
    address
}

/// A schema that no other test has; nothing is in it yet.
pub fn schema(address: &str) -> Options {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
    let name = format!("test_{}_{}", since.as_nanos(), NEXT.fetch_add(1, Ordering::Relaxed));
    Options::new(address).unwrap().schema(name).unwrap()
}

/// A store that no other test has.
pub async fn fresh(address: &str) -> Options {
    let options = schema(address);
    assert_eq!(migrate(&options).await.unwrap(), 0);
    options
}

pub async fn open(options: &Options) -> PostgresStore {
    PostgresStore::connect(options.clone()).await.unwrap()
}

/// The name of the schema.
pub fn named(options: &Options) -> String {
    let shown = format!("{options:?}");
    shown.split("schema: \"").nth(1).and_then(|rest| rest.split('"').next()).unwrap().to_owned()
}

/// A connection of one's own, in the schema, beside the store.
pub async fn by_hand(address: &str, options: &Options) -> Client {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute(&format!("SET search_path = {}", named(options))).await.unwrap();
    client
}
