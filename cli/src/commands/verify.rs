//! `verify`: every record, text and derivation.

use indicatif::{ProgressBar, ProgressStyle};
use keepspan::audit::{self, Progress};
use serde::Serialize;

use crate::{
    failure::Failure,
    output::{BAD, Output, STRONG},
    report::story::number,
    server::{self, Objects},
    store::Source,
    words::{line, several},
};

#[derive(Serialize)]
struct Verified {
    episode: String,
    records: u64,
    texts: u64,
    bytes: u64,
    /// Texts that the store has removed, as the log says.
    sealed: u64,
    faults: Vec<String>,
}

/// Every episode that is meant, even after a fault.
pub fn verify(source: &Source, out: &mut Output) -> Result<(), Failure> {
    let kept = source.place.open()?;
    let mut faults = 0_u64;
    let episodes = source.episodes(&kept)?;
    if episodes.is_empty() {
        // A store in which there is nothing is not one that is intact.
        return Err(source.place.no_episode());
    }
    for episode in episodes {
        let bar = bar(episode.as_str());
        let found = audit::verify(&kept.store, &episode, |progress: Progress| {
            bar.set_length(progress.of);
            bar.set_position(progress.blobs);
        });
        bar.finish_and_clear();
        faults = faults.saturating_add(number(found.faults.len()));
        let verified = Verified {
            episode: episode.as_str().to_owned(),
            records: found.records,
            texts: found.blobs,
            bytes: found.bytes,
            sealed: found.sealed,
            faults: found.faults.iter().map(ToString::to_string).collect(),
        };
        if out.is_json() { out.value(&verified)? } else { told(&verified, out)? }
    }
    if let Some(found) = server::objects(&kept, &source.place)? {
        faults = faults.saturating_add(number(found.faults.len()));
        if out.is_json() { out.value(&found)? } else { objects(&found, out)? }
    }
    match faults {
        0 => Ok(()),
        faults => Err(Failure::Faulty(format!("{} found", several(faults, "fault")))),
    }
}

fn told(verified: &Verified, out: &mut Output) -> std::io::Result<()> {
    let Verified { episode, records, texts, sealed, faults, .. } = verified;
    let name = out.paint(STRONG, line(episode));
    let (records, texts) = (several(*records, "record"), several(*texts, "text"));
    let sealed = if *sealed > 0 { format!(", apart from {sealed} removed as the log says") } else { String::new() };
    if faults.is_empty() {
        return out.line(format_args!("{name}: {records} and {texts} checked, all as they were written{sealed}"));
    }
    out.line(format_args!(
        "{name}: {records} and {texts} checked{sealed}; {}",
        several(number(faults.len()), "fault")
    ))?;
    each_fault(faults, out)
}

fn objects(found: &Objects, out: &mut Output) -> std::io::Result<()> {
    let Objects { objects, orphans, faults } = found;
    let name = out.paint(STRONG, "objects");
    let said = match (faults.len(), orphans.len()) {
        (0, 0) => "each is named".to_owned(),
        (0, unnamed) => format!("{} without a name", number(unnamed)),
        (wrong, _) => several(number(wrong), "fault"),
    };
    out.line(format_args!("{name}: {objects} there; {said}"))?;
    for orphan in orphans {
        out.line(format_args!("  orphan {orphan}"))?;
    }
    each_fault(faults, out)
}

fn each_fault(faults: &[String], out: &mut Output) -> std::io::Result<()> {
    for fault in faults {
        let mark = out.paint(BAD, "fault");
        out.line(format_args!("  {mark} {}", line(fault)))?;
    }
    Ok(())
}

/// On standard error, and only on a terminal.
fn bar(episode: &str) -> ProgressBar {
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{msg} {wide_bar} {pos}/{len} texts, {eta} left") {
        bar.set_style(style);
    }
    bar.with_message(line(episode).into_owned())
}
