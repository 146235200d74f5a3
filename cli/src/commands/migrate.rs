//! `migrate`: the tables of a store in a database.

use serde::Serialize;

use crate::{failure::Failure, output::Output, server, store::Place};

#[derive(Serialize)]
struct Migrated {
    before: i32,
    now: i32,
}

/// The one command that writes: tables, and never what is in them.
pub fn migrate(place: &Place, out: &mut Output) -> Result<(), Failure> {
    let (before, now) = server::migrate(place)?;
    if out.is_json() {
        return Ok(out.value(&Migrated { before, now })?);
    }
    let name = place.name();
    let said = match before {
        0 => format!("created, version {now}"),
        _ if before == now => format!("up to date, version {now}"),
        _ => format!("brought from version {before} to {now}"),
    };
    Ok(out.line(format_args!("{name}: {said}"))?)
}
