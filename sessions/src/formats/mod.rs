//! One module a format: whether a file looks like it, and its records as steps.

use crate::{Format, detect::Head, error::Fault, records::Source, session::Session};

pub(crate) mod blocks;

mod aider;
mod cline;
mod goose;
mod inspect;
mod messages;
mod mini_swe_agent;
mod nebius;
mod openhands_log;
mod pi;
mod prose;
mod swe_agent;
mod swe_smith;
mod tau2;
mod tau_bench;
mod walk;

type Read = fn(&mut Source<'_>, &mut Session<'_>) -> Result<(), Fault>;

/// In the order in which they are asked: the peculiar before the common.
pub(crate) const LOOKS_LIKE: &[(Format, fn(&Head) -> bool)] = &[
    (Format::Pi, pi::looks_like),
    (Format::Goose, goose::looks_like),
    (Format::Cline, cline::looks_like),
    (Format::OpenHands, openhands_log::looks_like),
    (Format::SweAgent, swe_agent::looks_like),
    (Format::MiniSweAgent, mini_swe_agent::looks_like),
    (Format::TauBench, tau_bench::looks_like),
    (Format::Tau2, tau2::looks_like),
    (Format::Inspect, inspect::looks_like),
    (Format::Nebius, nebius::looks_like),
    (Format::SweSmith, swe_smith::looks_like),
    (Format::Aider, aider::looks_like),
];

/// What reads the format.
pub(crate) fn read(format: Format) -> Read {
    match format {
        Format::Pi => pi::read,
        Format::Goose => goose::read,
        Format::Cline => cline::read,
        Format::OpenHands => openhands_log::read,
        Format::SweAgent => swe_agent::read,
        Format::MiniSweAgent => mini_swe_agent::read,
        Format::TauBench => tau_bench::read,
        Format::Tau2 => tau2::read,
        Format::Inspect => inspect::read,
        Format::Nebius => nebius::read,
        Format::SweSmith => swe_smith::read,
        Format::Aider => aider::read,
        _ => not_yet,
    }
}

fn not_yet(source: &mut Source<'_>, _: &mut Session<'_>) -> Result<(), Fault> {
    Err(crate::records::lacks(source.place(), "this format is not supported yet"))
}
