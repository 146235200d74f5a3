//! `actions`: what the agent did to the world, and what nobody knows whether it did.

use super::opened;
use crate::{
    attempts::attempts,
    failure::Failure,
    output::{BAD, FAINT, Output, STRONG},
    store::Source,
    words::{self, line, short},
};

/// A line an attempt, oldest first.
pub fn actions(source: &Source, out: &mut Output) -> Result<(), Failure> {
    let attempts = attempts(&opened(source)?.history);
    if out.is_json() {
        return Ok(out.value(&attempts)?);
    }
    if attempts.is_empty() {
        out.line("no action on record")?;
    }
    for attempt in attempts {
        let time = attempt.time.map_or_else(|| " ".repeat(23), words::time);
        let at = out.paint(FAINT, format_args!("{:>6}  {time}  {}", attempt.record, short(attempt.signature)));
        let (name, told) = (out.paint(STRONG, line(&attempt.name())), attempt.told());
        let told = if attempt.is_uncertain() { out.paint(BAD, line(&told)) } else { line(&told).into_owned() };
        out.line(format_args!("{at}  {name}  {told}"))?;
    }
    Ok(())
}
