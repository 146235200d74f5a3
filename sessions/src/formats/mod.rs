//! One module a format: whether a file looks like it, and its records as steps.

use crate::{Format, detect::Head, error::Fault, records::Source, session::Session};

pub(crate) mod blocks;

mod aider;
mod anthropic;
mod chat;
mod claude_code;
mod cline;
mod codex;
mod copilot;
mod gemini;
mod gemini_cli;
mod goose;
mod inspect;
mod kimi;
mod mini_swe_agent;
mod nebius;
mod openhands;
mod openhands_log;
mod pi;
mod prose;
mod responses;
mod swe_agent;
mod swe_smith;
mod tau2;
mod tau_bench;
mod walk;
mod wire;

type LooksLike = fn(&Head) -> bool;
type Read = fn(&mut Source<'_>, &mut Session<'_>) -> Result<(), Fault>;

/// In the order in which they are asked: the peculiar before the common.
pub(crate) const LOOKS_LIKE: &[(Format, LooksLike)] = &[
    (Format::ClaudeCode, claude_code::looks_like),
    (Format::Pi, pi::looks_like),
    (Format::Codex, codex::looks_like),
    (Format::Copilot, copilot::looks_like),
    (Format::Kimi, kimi::looks_like),
    (Format::GeminiCli, gemini_cli::looks_like),
    (Format::OpenHands, openhands::looks_like),
    (Format::Goose, goose::looks_like),
    (Format::Cline, cline::looks_like),
    (Format::SweAgent, swe_agent::looks_like),
    (Format::MiniSweAgent, mini_swe_agent::looks_like),
    (Format::TauBench, tau_bench::looks_like),
    (Format::Tau2, tau2::looks_like),
    (Format::Inspect, inspect::looks_like),
    (Format::Nebius, nebius::looks_like),
    (Format::SweSmith, swe_smith::looks_like),
    (Format::Aider, aider::looks_like),
    (Format::Gemini, gemini::looks_like),
    (Format::Anthropic, anthropic::looks_like),
    (Format::Chat, chat::looks_like),
    (Format::Responses, responses::looks_like),
];

/// What reads the format.
pub(crate) fn read(format: Format) -> Read {
    match format {
        Format::Pi => pi::read,
        Format::Goose => goose::read,
        Format::Cline => cline::read,
        Format::SweAgent => swe_agent::read,
        Format::MiniSweAgent => mini_swe_agent::read,
        Format::TauBench => tau_bench::read,
        Format::Tau2 => tau2::read,
        Format::Inspect => inspect::read,
        Format::Nebius => nebius::read,
        Format::SweSmith => swe_smith::read,
        Format::Aider => aider::read,
        Format::ClaudeCode => claude_code::read,
        Format::Codex => codex::read,
        Format::Copilot => copilot::read,
        Format::Kimi => kimi::read,
        Format::GeminiCli => gemini_cli::read,
        Format::OpenHands => openhands::read,
        Format::Chat => chat::read,
        Format::Responses => responses::read,
        Format::Anthropic => anthropic::read,
        Format::Gemini => gemini::read,
    }
}
