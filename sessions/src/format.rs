//! The formats, by name.

use std::{fmt, str::FromStr};

/// How a file records sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Format {
    /// Session lines of Claude Code.
    ClaudeCode,
    /// Session lines of pi.
    Pi,
    /// Rollout lines of Codex CLI.
    Codex,
    /// `events.jsonl` of Copilot CLI.
    Copilot,
    /// The wire log of Kimi CLI.
    Kimi,
    /// A session of Gemini CLI: one document, or lines.
    GeminiCli,
    /// An exported session of goose.
    Goose,
    /// The messages of a cline session, or of its compaction.
    Cline,
    /// OpenHands: event lines, or a log of one model call.
    OpenHands,
    /// A `.traj` of SWE-agent.
    SweAgent,
    /// A `.traj.json` of mini-swe-agent, or its older bare list.
    MiniSweAgent,
    /// Trajectories of tau-bench.
    TauBench,
    /// Results of tau2-bench.
    Tau2,
    /// An Inspect evaluation log, as JSON. A sample whose texts are attachments is held until its end.
    Inspect,
    /// SWE-agent trajectories as published by Nebius.
    Nebius,
    /// Trajectories of SWE-smith.
    SweSmith,
    /// The Markdown chat history of aider.
    Aider,
    /// OpenAI Chat Completions: bodies, message lists, training files, cassettes.
    Chat,
    /// OpenAI Responses: bodies, item lists, cassettes.
    Responses,
    /// Anthropic Messages: bodies, message lists, cassettes.
    Anthropic,
    /// Gemini `generateContent`: bodies, content lists, cassettes.
    Gemini,
}

impl Format {
    /// All of them, in the order of their documentation.
    pub const ALL: &'static [Self] = &[
        Self::ClaudeCode,
        Self::Pi,
        Self::Codex,
        Self::Copilot,
        Self::Kimi,
        Self::GeminiCli,
        Self::Goose,
        Self::Cline,
        Self::OpenHands,
        Self::SweAgent,
        Self::MiniSweAgent,
        Self::TauBench,
        Self::Tau2,
        Self::Inspect,
        Self::Nebius,
        Self::SweSmith,
        Self::Aider,
        Self::Chat,
        Self::Responses,
        Self::Anthropic,
        Self::Gemini,
    ];

    /// The name that [`FromStr`] reads: `claude-code`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Pi => "pi",
            Self::Codex => "codex",
            Self::Copilot => "copilot",
            Self::Kimi => "kimi",
            Self::GeminiCli => "gemini-cli",
            Self::Goose => "goose",
            Self::Cline => "cline",
            Self::OpenHands => "openhands",
            Self::SweAgent => "swe-agent",
            Self::MiniSweAgent => "mini-swe-agent",
            Self::TauBench => "tau-bench",
            Self::Tau2 => "tau2",
            Self::Inspect => "inspect",
            Self::Nebius => "nebius",
            Self::SweSmith => "swe-smith",
            Self::Aider => "aider",
            Self::Chat => "chat",
            Self::Responses => "responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    pub(crate) fn names() -> String {
        Self::ALL.iter().map(|format| format.name()).collect::<Vec<_>>().join(", ")
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A name that no format has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{name}` is no format: name one of {}", Format::names())]
pub struct UnknownFormat {
    name: String,
}

impl FromStr for Format {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<Self, UnknownFormat> {
        let known = Self::ALL.iter().find(|format| format.name().eq_ignore_ascii_case(name.trim()));
        known.copied().ok_or_else(|| UnknownFormat { name: name.into() })
    }
}
