//! The page. Every text goes through `maud`, which escapes it; the style and the script are constants, and the page's own
//! policy lets nothing else run and nothing be loaded.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use keepspan::Digest;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::{
    chart::chart,
    lineage::lineage,
    sentences::{Weight, sentences},
    story::{Departure, Pass, Story, number},
};
use crate::{
    attempts::Attempt,
    words::{count, percent, plain, several, short, signed, time},
};

const STYLE: &str = include_str!("page.css");
const SCRIPT: &str = include_str!("page.js");

/// Rows of a table at most, the latest; a browser takes seconds for more.
const ROWS: usize = 2_000;

/// The whole page. O(entries + spans).
pub fn page(story: &Story) -> String {
    let body = html! {
        (head(story))
        section { h2 { "Utilization" } (chart(story)) }
        (actions(story))
        (passes(story))
        (departures(story))
        @if !story.summaries.is_empty() {
            section { h2 { "Summaries and their sources" } (lineage(story)) }
        }
        (removals(story))
    };
    document(&story.episode, &body)
}

/// A page that loads nothing.
pub(super) fn document(title: &str, body: &Markup) -> String {
    let policy = format!(
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{}'",
        BASE64_STANDARD.encode(Digest::of(SCRIPT.as_bytes()).as_bytes())
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta http-equiv="Content-Security-Policy" content=(policy);
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) " · keepspan" }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (body)
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    // Marks that reorder text would make it read as something else.
    plain(&page.into_string()).into_owned()
}

fn head(story: &Story) -> Markup {
    let said = sentences(story);
    html! {
        header {
            p.store { (story.store) }
            h1 { (story.episode) }
            (tiles(story))
            ul.said {
                @for sentence in &said {
                    li.(match sentence.weight { Weight::Fine => "fine", Weight::Note => "note", Weight::Grave => "grave" }) { (sentence.text) }
                }
            }
        }
    }
}

fn tiles(story: &Story) -> Markup {
    let peak = story.peak().map_or(0, |peak| peak.utilization);
    let net = story.passes.iter().map(|pass| pass.net).fold(0, i64::saturating_add);
    let peak_of = story.budget.map_or_else(|| count(peak), |budget| percent(peak, budget.limit));
    html! {
        dl.tiles {
            (tile("turns", &count(story.turns)))
            (tile("peak", &peak_of))
            (tile("freed net", &signed(net)))
            (tile("left", &count(number(story.departures.len()))))
            (tile("came back", &count(story.returns)))
            (tile("removed", &count(number(story.removals.len()))))
        }
    }
}

/// One number of the top.
pub(super) fn tile(name: &str, value: &str) -> Markup {
    html! { div { dt { (name) } dd { (value) } } }
}

/// As the command `actions` lists them; one that is uncertain is shown however old it is.
fn actions(story: &Story) -> Markup {
    let rows = &story.actions;
    let old = rows.len().saturating_sub(ROWS);
    let shown = rows.iter().enumerate().filter(|(at, attempt)| *at >= old || attempt.is_uncertain());
    html! {
        @if !rows.is_empty() {
            section {
                h2 { "Actions" }
                p.quiet { "Each attempt, by what this episode's own log knows: another episode may have settled one that is uncertain." }
                @if old > 0 {
                    p.quiet { "The latest " (count(number(ROWS))) " of " (count(number(rows.len()))) ", and all that are uncertain; `keepspan actions` lists all." }
                }
                div.wide.tall {
                    table {
                        thead { tr { th.number { "entry" } th { "time" } th { "signature" } th { "action" } th.number { "attempt" } th { "state" } } }
                        tbody { @for (_, attempt) in shown { (attempt_row(attempt)) } }
                    }
                }
            }
        }
    }
}

fn attempt_row(attempt: &Attempt) -> Markup {
    html! {
        tr {
            td.number { (attempt.record) }
            td { @if let Some(ms) = attempt.time { (time(ms)) } }
            td { (short(attempt.signature)) }
            td { (attempt.action) }
            td.number { (attempt.attempt) }
            td.prose.bad[attempt.is_uncertain()] { (attempt.told()) }
        }
    }
}

fn passes(story: &Story) -> Markup {
    let sum = |of: fn(&Pass) -> u64| count(story.passes.iter().map(of).fold(0, u64::saturating_add));
    let net = story.passes.iter().map(|pass| pass.net).fold(0, i64::saturating_add);
    html! {
        @if !story.passes.is_empty() {
            section {
                h2 { "Passes and fallbacks" }
                p.quiet { "In tokens. Overhead: what the model read and wrote to decide, and what stayed in place of what left." }
                div.wide.tall {
                    table {
                        thead { tr { th { "turn" } th { "by" } @for name in ["spans", "before", "after", "gross", "overhead", "net"] { th.number { (name) } } } }
                        tbody { @for pass in &story.passes { (pass_row(pass)) } }
                        tfoot { tr {
                            td colspan="2" { (several(number(story.passes.len()), "row")) }
                            td.number { (sum(|pass| pass.spans)) } td {} td {}
                            td.number { (sum(|pass| pass.gross)) } td.number { (sum(|pass| pass.overhead)) } (net_cell(net))
                        } }
                    }
                }
            }
        }
    }
}

fn pass_row(pass: &Pass) -> Markup {
    html! {
        tr {
            td { (pass.turn) }
            td { @match &pass.fallback { Some(name) => { "fallback " (name) } None => "model" } }
            @for tokens in [pass.spans, pass.before, pass.after, pass.gross, pass.overhead] { td.number { (count(tokens)) } }
            (net_cell(pass.net))
        }
    }
}

fn net_cell(net: i64) -> Markup {
    html! { td.number.(if net > 0 { "good" } else { "bad" }) { (signed(net)) } }
}

fn departures(story: &Story) -> Markup {
    let rows = &story.departures;
    let shown = rows.get(rows.len().saturating_sub(ROWS)..).unwrap_or_default();
    html! {
        section {
            h2 { "What left the window" }
            @if rows.is_empty() { p.quiet { "Nothing did." } } @else {
                form.filters {
                    (filter("lane", shown, |row| &row.lane))
                    (filter("kind", shown, |row| &row.kind))
                    (filter("state", shown, |row| row.state.word()))
                    input type="search" name="text" placeholder="id, tool, text" aria-label="Filter by id, tool or text";
                    output {}
                }
                @if rows.len() > shown.len() {
                    p.quiet { "The latest " (count(number(shown.len()))) " of " (count(number(rows.len()))) "; `keepspan log` lists all." }
                }
                div.wide.tall {
                    table #left {
                        thead { tr { th { "span" } th { "lane" } th { "kind" } th { "tool" } th.number { "tokens" } th.number { "left in turn" } th { "now" } } }
                        tbody { @for row in shown { (departure(row)) } }
                    }
                }
            }
        }
    }
}

fn departure(row: &Departure) -> Markup {
    html! {
        tr data-lane=(row.lane) data-kind=(row.kind) data-state=(row.state.word()) {
            td { "s" (row.span) }
            td { (row.lane) }
            td { (row.kind) }
            td { @if let Some(tool) = &row.tool { (tool) } }
            td.number { (count(row.tokens)) }
            td.number { (row.turn) }
            td {
                (row.state.word())
                @if let Some(summary) = row.summary { " in " a href={ "#s" (summary) } { "s" (summary) } }
                @if let Some(text) = &row.text { details { summary { "text" } pre { (text) } } }
            }
        }
    }
}

/// One choice for each value there is.
fn filter(name: &str, rows: &[Departure], of: fn(&Departure) -> &str) -> Markup {
    let values: std::collections::BTreeSet<_> = rows.iter().map(of).collect();
    html! {
        select name=(name) aria-label=(name) {
            option value="" { "any " (name) }
            @for value in values { option value=(value) { (value) } }
        }
    }
}

fn removals(story: &Story) -> Markup {
    html! {
        @if !story.removals.is_empty() {
            section {
                h2 { "Removed for good" }
                div.wide {
                    table {
                        thead { tr { th { "span" } th { "lane" } th.number { "tokens" } th.number { "turn" } th { "how" } th { "reason" } th { "to recover" } } }
                        tbody { @for removal in &story.removals {
                            tr {
                                td { "s" (removal.span) } td { (removal.lane) }
                                td.number { (count(removal.tokens)) } td.number { (removal.turn) }
                                td { (removal.how) } td.prose { (removal.reason) } td.prose { (removal.recovery) }
                            }
                        } }
                    }
                }
            }
        }
    }
}
