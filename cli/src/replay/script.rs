//! A scripted model: which spans it asks to evict, and when.

use std::{fs, path::Path};

use serde::Deserialize;

use crate::failure::Failure;

/// One line of a script.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ask {
    /// When: once so many entries of the conversation entered.
    pub after: u64,
    /// What it names.
    pub evict: Vec<String>,
    /// In which conversation; in each where it does not say.
    #[serde(default)]
    pub conversation: Option<String>,
}

/// Reads a script, JSON lines.
///
/// # Errors
/// When the file cannot be read, or a line is no such line.
pub fn read(path: &Path) -> Result<Vec<Ask>, Failure> {
    let name = path.display();
    let text = fs::read_to_string(path).map_err(|error| Failure::Usage(format!("{name}: {error}; check the path")))?;
    let lines = text.lines().zip(1_u64..).filter(|(line, _)| !line.trim().is_empty());
    let ask = |(line, number): (&str, u64)| {
        serde_json::from_str(line).map_err(|error| {
            let form = r#"{"after": 12, "evict": ["s3"]}"#;
            Failure::Usage(format!("{name}, line {number}: {error}; write lines as {form}"))
        })
    };
    lines.map(ask).collect()
}
