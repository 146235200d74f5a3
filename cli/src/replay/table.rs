//! A replay in words: one row a conversation, then what came of all of them.

use std::{collections::BTreeMap, io};

use super::outcome::{BACK, Import, Kept, Mentioning, Outcome, Own, Reference, Removal, Repeated, Replayed, Share};
use crate::{
    output::{BAD, FAINT, Output, STRONG},
    report::story::number,
    words::{begin, count, line, percent, several},
};

/// Rows of each list.
const ROWS: usize = 10;
/// Characters of a conversation's name.
const NAME: usize = 40;

/// Writes all of it.
///
/// # Errors
/// When standard output fails.
pub fn told(replayed: &Replayed, out: &mut Output) -> io::Result<()> {
    let Replayed { file, format, settings, total, conversations, import } = replayed;
    out.line(out.paint(STRONG, line(file)))?;
    out.line(out.paint(
        FAINT,
        format_args!(
            "{format}; budget {}, trigger {}, fixed {}, keep {}; tokens by {}; {} leaves first",
            count(settings.budget),
            count(settings.trigger),
            count(settings.fixed),
            count(settings.keep),
            settings.tokens,
            settings.policy.replace('_', " ")
        ),
    ))?;
    out.line("")?;
    rows(total, conversations, out)?;
    out.line("")?;
    summary(total, settings.budget, out)?;
    late(total, conversations, out)?;
    repeats(total, conversations, out)?;
    own(conversations, out)?;
    script(conversations, out)?;
    imported(import, out)?;
    out.line("")
}

fn rows(total: &Outcome, conversations: &[Outcome], out: &mut Output) -> io::Result<()> {
    let head = [
        "conversation",
        "entries",
        "tokens",
        "turns",
        "peak",
        "evicted",
        "recalled",
        "kept",
        "refused",
        "over",
        "saved",
        "dropped late",
        "pointer late",
        "again",
    ];
    let all = conversations.iter().chain((conversations.len() > 1).then_some(total));
    let rows: Vec<_> = all.map(row).collect();
    table(&head, &rows, out)
}

fn row(outcome: &Outcome) -> Vec<String> {
    let Outcome { name, entries, tokens, turns, keepspan, full, late, repeated, .. } = outcome;
    let kept = keepspan.resident.shares().iter().fold(0_u64, |sum, (_, share)| sum.saturating_add(share.spans));
    let refused = keepspan.refused.values().copied().fold(0, u64::saturating_add);
    let numbers = [
        *entries,
        *tokens,
        *turns,
        keepspan.sizes.peak,
        keepspan.evicted,
        keepspan.recalled,
        kept,
        refused,
        keepspan.unfittable,
    ];
    let mut row = vec![begin(name, NAME)];
    row.extend(numbers.map(count));
    row.push(percent(keepspan.saved, full.sent));
    row.extend([late.plain.calls, late.keepspan.calls, repeated.calls].map(count));
    row
}

/// Aligned: the first column to the left, numbers to the right.
fn table(head: &[&str], rows: &[Vec<String>], out: &mut Output) -> io::Result<()> {
    let width = |at: usize| {
        let cells = rows.iter().filter_map(|row| row.get(at)).map(|cell| cell.chars().count());
        cells.chain(head.get(at).map(|cell| cell.len())).max().unwrap_or(0)
    };
    let widths: Vec<_> = (0..head.len()).map(width).collect();
    let aligned = |cells: &mut dyn Iterator<Item = &str>| {
        let cells = cells.zip(&widths).enumerate();
        let cells = cells
            .map(|(at, (cell, width))| if at == 0 { format!("{cell:<width$}") } else { format!("{cell:>width$}") });
        cells.collect::<Vec<_>>().join("  ")
    };
    out.line(out.paint(FAINT, aligned(&mut head.iter().copied())))?;
    rows.iter().try_for_each(|row| out.line(aligned(&mut row.iter().map(String::as_str))))
}

fn summary(total: &Outcome, budget: u64, out: &mut Output) -> io::Result<()> {
    let Outcome { keepspan, full, plain, .. } = total;
    let Kept { sizes, saved, evicted, evicted_tokens, fallbacks, admitted, recalled, recalled_bytes, changed, .. } =
        keepspan;
    let back = match changed {
        0 => format!("all {} came back as the file has them ({} bytes)", count(*recalled), count(*recalled_bytes)),
        changed => out.paint(BAD, format_args!("{} CAME BACK CHANGED", several(*changed, "span"))),
    };
    let kept = keepspan
        .resident
        .shares()
        .map(|(why, Share { spans, tokens })| format!("{} {why} ({})", count(spans), count(tokens)));
    let refused = reasons(&keepspan.refused);
    let mut fields = vec![
        (
            "window",
            format!(
                "at most {} of {} tokens, where without pruning it is {}; {} instead of {} sent in all, {} saved",
                count(sizes.peak),
                count(budget),
                count(full.peak),
                count(sizes.sent),
                count(full.sent),
                percent(*saved, full.sent)
            ),
        ),
        (
            "evicted",
            format!(
                "{} ({}) by {}; {back}",
                several(*evicted, "span"),
                several(*evicted_tokens, "token"),
                several(*fallbacks, "fallback")
            ),
        ),
        ("kept", format!("{}; pointers take {}", kept.join(", "), several(keepspan.resident.pointers, "token"))),
        ("gate", format!("would have asked a model {}; refused: {refused}", several(*admitted, "time"))),
        (
            "plain",
            format!(
                "a pruner that drops the oldest would have dropped {} ({})",
                several(plain.dropped, "entry"),
                several(plain.dropped_tokens, "token")
            ),
        ),
    ];
    if let Some((at, tokens)) = keepspan.unfittable_at {
        let (turns, at) = (several(keepspan.unfittable, "turn"), format!("line {at}"));
        fields.push(("over", format!("{turns} could not be made to fit, first at {at} with {} tokens", count(tokens))));
    } else if keepspan.unfittable > 0 {
        fields.push(("over", format!("{} could not be made to fit", several(keepspan.unfittable, "turn"))));
    }
    if keepspan.too_large > 0 {
        let first = keepspan.too_large_at.map(|at| format!(", the first in line {at}")).unwrap_or_default();
        let entries = several(keepspan.too_large, "entry");
        fields.push(("too large", format!("{entries} larger than the whole budget never entered{first}")));
    }
    out.fields(fields)
}

/// `over budget 3, decision in band 12`, or `never`.
fn reasons(refused: &BTreeMap<&'static str, u64>) -> String {
    let each: Vec<_> =
        refused.iter().map(|(reason, times)| format!("{} {}", reason.replace('_', " "), count(*times))).collect();
    if each.is_empty() { "never".to_owned() } else { each.join(", ") }
}

fn late(total: &Outcome, conversations: &[Outcome], out: &mut Output) -> io::Result<()> {
    let late = &total.late;
    let far = |(writes, back): (&u64, u64)| format!("{} more than {}", count(*writes), count(back));
    let back: Vec<_> = late.back.iter().zip(BACK).map(far).collect();
    let many = |of: Mentioning| format!("{} ({})", several(of.calls, "call"), several(of.writes, "write"));
    out.line("")?;
    out.line(out.paint(STRONG, "late references"))?;
    out.fields([
        (
            "far back",
            format!(
                "of {} that mention something seen before: {} tokens back",
                several(late.writes, "write"),
                back.join(", ")
            ),
        ),
        ("plain", format!("{} mention what the plain pruner had dropped: gone", many(late.plain))),
        (
            "keepspan",
            format!("{} mention what keepspan had evicted: a pointer stood there, resolvable", many(late.keepspan)),
        ),
    ])?;
    let mut worst: Vec<&Reference> = conversations.iter().flat_map(|outcome| &outcome.late.worst).collect();
    worst.sort_by_key(|reference| std::cmp::Reverse(reference.distance));
    let rows: Vec<_> = worst.into_iter().take(ROWS).map(reference).collect();
    if rows.is_empty() {
        Ok(())
    } else {
        table(&["  mention", "tokens back", "line", "call", "seen in", "line", "plain", "keepspan"], &rows, out)
    }
}

fn reference(reference: &Reference) -> Vec<String> {
    let Reference { line, tool, mention, distance, span, from, from_line, plain_dropped, keepspan_evicted, .. } =
        reference;
    let span = span.map(|span| format!("s{span} ")).unwrap_or_default();
    vec![
        format!("  {}", begin(mention, NAME)),
        count(*distance),
        line.to_string(),
        begin(tool, NAME),
        format!("{span}{}", begin(from, NAME)),
        from_line.to_string(),
        if *plain_dropped { "dropped" } else { "there" }.to_owned(),
        if *keepspan_evicted { "pointer" } else { "there" }.to_owned(),
    ]
}

fn repeats(total: &Outcome, conversations: &[Outcome], out: &mut Output) -> io::Result<()> {
    let repeated = &total.repeated;
    out.line("")?;
    out.line(out.paint(STRONG, "made again after it succeeded"))?;
    let (calls, requests) = (several(repeated.calls, "call"), several(repeated.requests, "request"));
    out.fields([(
        "guard",
        format!("would have stopped {calls} of {requests}; {} of these write", count(repeated.writes)),
    )])?;
    let mut most: Vec<(&str, &Repeated)> = conversations
        .iter()
        .flat_map(|one| one.repeated.most.iter().map(|repeated| (one.name.as_str(), repeated)))
        .collect();
    most.sort_by_key(|(_, repeated)| std::cmp::Reverse(repeated.times));
    let row = |(name, Repeated { tool, arguments, first_line, times, lines, .. }): (&str, &Repeated)| {
        let lines = if lines.0 == lines.1 { lines.0.to_string() } else { format!("{} to {}", lines.0, lines.1) };
        vec![
            format!("  {} {}", begin(tool, NAME), begin(arguments, NAME)),
            count(*times),
            first_line.to_string(),
            lines,
            begin(name, NAME / 2),
        ]
    };
    let rows: Vec<_> = most.into_iter().take(ROWS).map(row).collect();
    if rows.is_empty() {
        Ok(())
    } else {
        table(&["  request", "times", "first line", "again", "conversation"], &rows, out)
    }
}

fn own(conversations: &[Outcome], out: &mut Output) -> io::Result<()> {
    let all: Vec<&Own> = conversations.iter().flat_map(|outcome| &outcome.own).collect();
    if all.is_empty() {
        return Ok(());
    }
    out.line("")?;
    out.line(out.paint(STRONG, "its own compaction, beside keepspan under a budget of what was left"))?;
    let mut rows = Vec::new();
    for own in all.iter().take(ROWS) {
        let own_row = |who: &str, removal: &Removal, then: &str| {
            vec![
                format!("  {who}"),
                own.line.to_string(),
                count(own.before),
                count(removal.after),
                count(removal.spans),
                count(removal.tokens),
                count(removal.wanted),
                count(removal.wanted_by_writes),
                then.to_owned(),
            ]
        };
        rows.push(own_row(&format!("the agent's ({})", own.kind), &own.agent, "gone"));
        rows.extend(own.keepspan.iter().map(|removal| own_row("keepspan", removal, "pointers")));
    }
    table(
        &["  whose", "line", "before", "after", "spans out", "tokens out", "wanted later", "by writes", "then"],
        &rows,
        out,
    )?;
    match all.len().saturating_sub(ROWS) {
        0 => Ok(()),
        more => out.line(format_args!("  and {more} more; `--json` has all")),
    }
}

fn script(conversations: &[Outcome], out: &mut Output) -> io::Result<()> {
    let mut asked =
        conversations.iter().flat_map(|one| one.script.iter().map(move |scripted| (one, scripted))).peekable();
    if asked.peek().is_none() {
        return Ok(());
    }
    out.line("")?;
    out.line(out.paint(STRONG, "the script"))?;
    for (outcome, scripted) in asked {
        let what = match &scripted.refused {
            None => format!("{} left", several(scripted.left, "span")),
            Some(why) if scripted.by_gate => format!("{}: {}", out.paint(BAD, "refused by the gate"), line(why)),
            Some(why) => format!("{}: {}", out.paint(BAD, "refused"), line(why)),
        };
        let (name, after) = (begin(&outcome.name, NAME), count(scripted.after));
        out.line(format_args!("  {name}, after {after}: {}: {what}", line(&scripted.evict.join(", "))))?;
    }
    Ok(())
}

fn imported(import: &Import, out: &mut Output) -> io::Result<()> {
    let Import { bytes, lines, conversations, entries, calls, results, repaired, repairs, left_out, .. } = import;
    out.line("")?;
    out.line(out.paint(STRONG, "read"))?;
    let parts = [
        several(*bytes, "byte"),
        several(*lines, "line"),
        several(*conversations, "conversation"),
        several(*entries, "entry"),
        several(*calls, "call"),
        several(*results, "result"),
    ];
    let kinds = |of: &BTreeMap<&'static str, u64>| {
        let each: Vec<_> = of.iter().map(|(kind, times)| format!("{kind} {}", count(*times))).collect();
        if each.is_empty() { "nothing".to_owned() } else { each.join(", ") }
    };
    out.fields([("file", parts.join(", ")), ("repaired", kinds(repairs)), ("left out", kinds(left_out))])?;
    for repair in repaired.iter().take(ROWS) {
        out.line(format_args!("    {}", line(repair)))?;
    }
    match number(repaired.len().saturating_sub(ROWS)) {
        0 => Ok(()),
        more => out.line(format_args!("    and {more} more; `--json` lists them")),
    }
}
