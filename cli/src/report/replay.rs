//! The page of a replay: as the report of an episode, of each file.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::{
    chart::chart,
    page::{document, tile},
    story::{Limit, Story, number},
};
use crate::{
    replay::outcome::{BACK, Import, Outcome, Own, Reference, Removal, Repeated, Replayed, Told},
    words::{begin, count, percent, several},
};

/// Conversations with a chart, those with the most tokens; all are in the table.
const CHARTS: usize = 8;
/// Rows of a table at most.
const ROWS: usize = 200;
/// Characters of a name.
const NAME: usize = 80;

/// The whole page. O(conversations + turns).
pub fn replayed(all: &[Replayed]) -> String {
    let title = all.iter().map(|replayed| replayed.file.as_str()).collect::<Vec<_>>().join(", ");
    document(&title, &html! { @for replayed in all { (file(replayed)) } })
}

fn file(replayed: &Replayed) -> Markup {
    let Replayed { file, format, settings, total, conversations, import } = replayed;
    let mut largest: Vec<_> = conversations.iter().collect();
    largest.sort_by_key(|outcome| std::cmp::Reverse(outcome.tokens));
    html! {
        header {
            p.store { (format) ", tokens by " (settings.tokens) ", " (settings.policy.replace('_', " ")) " leaves first" }
            h1 { (file) }
            (tiles(total, settings))
            ul.said { @for (weight, text) in sentences(total, settings) { li.(weight) { (text) } } }
        }
        section {
            h2 { "The window over time" }
            @for outcome in largest.iter().take(CHARTS) {
                @if conversations.len() > 1 { h3 { (begin(&outcome.name, NAME)) } }
                (chart(&story(outcome, settings)))
            }
            @if largest.len() > CHARTS { p.quiet { "The " (CHARTS) " largest of " (count(number(largest.len()))) " conversations." } }
        }
        (table_of(conversations))
        (late(total, conversations))
        (repeats(total, conversations))
        (own(conversations))
        (script(conversations))
        (read(import))
    }
}

fn story(outcome: &Outcome, settings: &Told) -> Story {
    Story {
        turns: outcome.turns,
        budget: Some(Limit { limit: settings.budget, trigger: settings.trigger }),
        moments: outcome.moments.clone(),
        ..Story::default()
    }
}

fn tiles(total: &Outcome, settings: &Told) -> Markup {
    let Outcome { turns, keepspan, full, late, repeated, .. } = total;
    html! {
        dl.tiles {
            (tile("turns", &count(*turns)))
            (tile("peak", &percent(keepspan.sizes.peak, settings.budget)))
            (tile("saved", &percent(keepspan.saved, full.sent)))
            (tile("left", &count(keepspan.evicted)))
            (tile("late, dropped", &count(late.plain.calls)))
            (tile("made again", &count(repeated.calls)))
        }
    }
}

/// What came of it, each with its weight.
fn sentences(total: &Outcome, settings: &Told) -> Vec<(&'static str, String)> {
    let Outcome { keepspan, full, plain, late, repeated, .. } = total;
    let mut said = vec![match keepspan.changed {
        0 => ("fine", format!("All {} that left came back as the file has them.", several(keepspan.recalled, "span"))),
        changed => ("grave", format!("{} came back changed.", several(changed, "span"))),
    }];
    said.push((
        if keepspan.unfittable == 0 { "fine" } else { "grave" },
        format!(
            "The largest request took {} of {} tokens; without pruning it takes {}. {} could not be made to fit.",
            count(keepspan.sizes.peak),
            count(settings.budget),
            count(full.peak),
            several(keepspan.unfittable, "turn")
        ),
    ));
    said.push((
        if late.plain.calls == 0 { "fine" } else { "note" },
        format!(
            "{} mention what a pruner that drops the oldest ({}) had dropped; {} mention what keepspan had evicted, where a \
             pointer stood.",
            several(late.plain.calls, "call"),
            several(plain.dropped, "entry"),
            several(late.keepspan.calls, "call")
        ),
    ));
    said.push((
        if repeated.calls == 0 { "fine" } else { "note" },
        format!(
            "{} were made again after they succeeded, {} of them writes.",
            several(repeated.calls, "call"),
            count(repeated.writes)
        ),
    ));
    if keepspan.too_large > 0 {
        said.push((
            "grave",
            format!("{} larger than the whole budget never entered.", several(keepspan.too_large, "entry")),
        ));
    }
    said
}

fn table_of(conversations: &[Outcome]) -> Markup {
    let numbers = |outcome: &Outcome| {
        let Outcome { line, entries, tokens, turns, keepspan, full, late, repeated, .. } = outcome;
        let refused = keepspan.refused.values().copied().fold(0, u64::saturating_add);
        let mut row = [*line, *entries, *tokens, *turns, full.peak, keepspan.sizes.peak, keepspan.evicted, refused]
            .map(count)
            .to_vec();
        row.push(count(keepspan.unfittable));
        row.push(percent(keepspan.saved, full.sent));
        row.extend([late.plain.calls, late.keepspan.calls, repeated.calls].map(count));
        row
    };
    let head = [
        "line",
        "entries",
        "tokens",
        "turns",
        "unpruned",
        "peak",
        "evicted",
        "refused",
        "over",
        "saved",
        "late, dropped",
        "late, pointer",
        "made again",
    ];
    html! {
        section {
            h2 { "Conversations" }
            div.wide.tall {
                table {
                    thead { tr { th { "conversation" } @for name in head { th.number { (name) } } } }
                    tbody { @for outcome in conversations.iter().take(ROWS) {
                        tr { td.prose { (begin(&outcome.name, NAME)) } @for number in numbers(outcome) { td.number { (number) } } }
                    } }
                }
            }
        }
    }
}

fn late(total: &Outcome, conversations: &[Outcome]) -> Markup {
    let mut worst: Vec<&Reference> = conversations.iter().flat_map(|outcome| &outcome.late.worst).collect();
    worst.sort_by_key(|reference| std::cmp::Reverse(reference.distance));
    let far =
        total.late.back.iter().zip(BACK).map(|(writes, back)| format!("{} more than {}", count(*writes), count(back)));
    let far = far.collect::<Vec<_>>().join(", ");
    html! {
        section {
            h2 { "Late references" }
            p.quiet { "Of " (several(total.late.writes, "write")) " that mention something seen before: " (far) " tokens back. Below, what had left, one row a call." }
            @if !worst.is_empty() {
                div.wide.tall { table {
                    thead { tr { th { "mention" } th.number { "tokens back" } th.number { "line" } th { "call" } th { "seen in" } th.number { "line" } th { "plain" } th { "keepspan" } } }
                    tbody { @for reference in worst.iter().take(ROWS) { (late_row(reference)) } }
                } }
            }
        }
    }
}

fn late_row(reference: &Reference) -> Markup {
    let Reference { line, tool, mention, distance, span, from, from_line, plain_dropped, keepspan_evicted, .. } =
        reference;
    html! {
        tr {
            td.prose { (begin(mention, NAME)) }
            td.number { (count(*distance)) }
            td.number { (line) }
            td { (begin(tool, NAME)) }
            td { @if let Some(span) = span { "s" (span) " " } (begin(from, NAME)) }
            td.number { (from_line) }
            td.bad[*plain_dropped] { @if *plain_dropped { "dropped" } @else { "there" } }
            td { @if *keepspan_evicted { "pointer" } @else { "there" } }
        }
    }
}

fn repeats(total: &Outcome, conversations: &[Outcome]) -> Markup {
    let mut most: Vec<(&str, &Repeated)> = conversations
        .iter()
        .flat_map(|one| one.repeated.most.iter().map(|repeated| (one.name.as_str(), repeated)))
        .collect();
    most.sort_by_key(|(_, repeated)| std::cmp::Reverse(repeated.times));
    html! {
        @if !most.is_empty() {
            section {
                h2 { "Made again after it succeeded" }
                p.quiet { "A guard would have stopped " (several(total.repeated.calls, "call")) " of " (several(total.repeated.requests, "request")) "." }
                div.wide.tall { table {
                    thead { tr { th { "tool" } th { "arguments" } th.number { "times" } th.number { "first line" } th.number { "last line" } th { "conversation" } } }
                    tbody { @for (name, Repeated { tool, arguments, first_line, times, lines, .. }) in most.iter().take(ROWS) {
                        tr {
                            td { (begin(tool, NAME)) } td.prose { (begin(arguments, NAME)) } td.number { (count(*times)) }
                            td.number { (first_line) } td.number { (lines.1) } td { (begin(name, NAME)) }
                        }
                    } }
                } }
            }
        }
    }
}

fn own(conversations: &[Outcome]) -> Markup {
    let all: Vec<&Own> = conversations.iter().flat_map(|outcome| &outcome.own).collect();
    let head = ["line", "before", "after", "spans out", "tokens out", "wanted later", "by writes"];
    html! {
        @if !all.is_empty() {
            section {
                h2 { "Its own compaction, beside keepspan" }
                p.quiet { "At the same point, with what was left to the agent as the budget. Wanted later: spans of which a later call mentions something that was seen nowhere since." }
                div.wide.tall { table {
                    thead { tr { th { "whose" } @for name in head { th.number { (name) } } th { "then" } } }
                    tbody { @for own in all.iter().take(ROWS) {
                        (own_row(&format!("the agent's ({})", own.kind), own, &own.agent, "gone"))
                        @if let Some(removal) = &own.keepspan { (own_row("keepspan", own, removal, "pointers")) }
                    } }
                } }
            }
        }
    }
}

fn own_row(whose: &str, own: &Own, removal: &Removal, then: &str) -> Markup {
    let Removal { spans, tokens, after, wanted, wanted_by_writes } = *removal;
    html! {
        tr {
            td { (whose) }
            td.number { (own.line) }
            @for number in [own.before, after, spans, tokens, wanted, wanted_by_writes] { td.number { (count(number)) } }
            td { (then) }
        }
    }
}

fn script(conversations: &[Outcome]) -> Markup {
    let asked: Vec<_> =
        conversations.iter().flat_map(|one| one.script.iter().map(move |scripted| (one, scripted))).collect();
    html! {
        @if !asked.is_empty() {
            section {
                h2 { "The script" }
                div.wide.tall { table {
                    thead { tr { th { "conversation" } th.number { "after" } th { "evict" } th { "what came of it" } } }
                    tbody { @for (outcome, scripted) in asked.iter().take(ROWS) {
                        tr {
                            td { (begin(&outcome.name, NAME)) } td.number { (count(scripted.after)) } td.prose { (scripted.evict.join(", ")) }
                            td.prose.bad[scripted.refused.is_some()] {
                                @match &scripted.refused { Some(why) => { "refused: " (why) } None => { (several(scripted.left, "span")) " left" } }
                            }
                        }
                    } }
                } }
            }
        }
    }
}

fn read(import: &Import) -> Markup {
    let kinds = |of: &BTreeMap<&'static str, u64>| {
        let each: Vec<_> = of.iter().map(|(kind, times)| format!("{kind} {}", count(*times))).collect();
        if each.is_empty() { "nothing".to_owned() } else { each.join(", ") }
    };
    html! {
        section {
            h2 { "What was read" }
            p.quiet {
                (several(import.bytes, "byte")) ", " (several(import.entries, "entry")) ", " (several(import.calls, "call")) ", "
                (several(import.results, "result")) ". Repaired: " (kinds(&import.repairs)) ". Left out: " (kinds(&import.left_out)) "."
            }
            @if !import.repaired.is_empty() {
                details { summary { "each of them" } ul { @for repair in import.repaired.iter().take(ROWS) { li { (repair) } } } }
            }
        }
    }
}
