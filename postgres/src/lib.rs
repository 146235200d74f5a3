#![doc = include_str!("../README.md")]

mod blocking;
mod commit;
mod connection;
mod error;
mod migrate;
mod objects;
mod options;
mod retry;
mod store;
mod verify;

pub use self::{
    blocking::Blocking,
    error::Error,
    migrate::{VERSION, migrate},
    objects::Objects,
    options::Options,
    retry::Retry,
    store::PostgresStore,
    verify::{Orphan, Verified},
};
/// What [`Objects::new`] takes.
pub use object_store;
/// What [`Options::tls`] takes.
pub use rustls;
