//! Where each summary comes from and what became of it: sources on the left, fate on the right. A summary of summaries
//! holds those as its sources, with their own.

use std::collections::BTreeMap;

use maud::{Markup, html};

use super::story::{Source, Story, Summary, number};
use crate::words::{count, ids, several};

/// Sources that get a box each; more are drawn as cells.
const BOXES: usize = 6;
/// Summaries of summaries that are drawn inside one another.
const DEEPEST: u32 = 8;

/// One figure for each summary that is no source of another.
pub fn lineage(story: &Story) -> Markup {
    let by_id: BTreeMap<u64, &Summary> = story.summaries.iter().map(|summary| (summary.span, summary)).collect();
    let inner =
        |span: &u64| story.summaries.iter().any(|other| other.sources.iter().any(|source| source.span == *span));
    html! {
        @for summary in story.summaries.iter().filter(|summary| !inner(&summary.span)) {
            figure.lineage { (tree(summary, &by_id, DEEPEST)) (fate(summary)) }
        }
    }
}

fn tree(summary: &Summary, by_id: &BTreeMap<u64, &Summary>, deepest: u32) -> Markup {
    // A summary is younger than its sources, so this ends; the bound is for a log that says otherwise.
    let inner = |source: &Source| by_id.get(&source.span).filter(|inner| inner.span < summary.span && deepest > 0);
    let plain: Vec<_> = summary.sources.iter().filter(|source| inner(source).is_none()).collect();
    html! {
        div.sources {
            @for inner in summary.sources.iter().filter_map(inner) {
                div.tree { (tree(inner, by_id, deepest.saturating_sub(1))) }
            }
            @if plain.len() <= BOXES {
                @for source in plain { (leaf(source)) }
            } @else {
                @for (lane, sources) in lanes(&plain) { (cells(lane, &sources)) }
            }
        }
        span.arrow {}
        (card(summary))
    }
}

fn card(summary: &Summary) -> Markup {
    let of = summary.sources.iter().map(|source| source.tokens).fold(0, u64::saturating_add);
    html! {
        div.node.summary id={ "s" (summary.span) } {
            b { "s" (summary.span) } " " (summary.lane)
            @if summary.depth > 1 { " " span.tag.grave { "depth " (summary.depth) } }
            br;
            (count(summary.tokens)) " tokens for " (count(of)) ", turn " (summary.turn)
            @if let Some(reason) = &summary.escalation { p.grave { "Summary of summaries: " (reason) } }
            @if let Some(text) = &summary.text { details { summary { "text" } pre { (text) } } }
        }
    }
}

fn leaf(source: &Source) -> Markup {
    html! {
        div.node {
            b { "s" (source.span) } " " (source.lane)
            @if let Some(tool) = &source.tool { " · " (tool) }
            br; (several(source.tokens, "token"))
        }
    }
}

/// A cell each, darker the more tokens it has.
fn cells(lane: &str, sources: &[&Source]) -> Markup {
    let spans: Vec<_> = sources.iter().map(|source| source.span).collect();
    let tokens = sources.iter().map(|source| source.tokens).fold(0, u64::saturating_add);
    let largest = sources.iter().map(|source| source.tokens).max().unwrap_or(1).max(1);
    let names = ids(&spans);
    html! {
        div.node {
            b { (several(number(sources.len()), "span")) } " of " (lane) ", " (several(tokens, "token"))
            div.cells {
                @for source in sources {
                    i style={ "opacity:" (format!("{:.2}", 0.25 + 0.75 * source.tokens as f64 / largest as f64)) }
                      title={ "s" (source.span) @if let Some(tool) = &source.tool { " " (tool) } ": " (several(source.tokens, "token")) } {}
                }
            }
            @if names.len() <= 60 { (names) } @else {
                details { summary { "s" (spans.first().copied().unwrap_or(0)) " … s" (spans.last().copied().unwrap_or(0)) } (names) }
            }
        }
    }
}

fn lanes<'a>(sources: &[&'a Source]) -> BTreeMap<&'a str, Vec<&'a Source>> {
    let mut lanes = BTreeMap::<&str, Vec<&Source>>::new();
    for source in sources {
        lanes.entry(&source.lane).or_default().push(source);
    }
    lanes
}

fn fate(summary: &Summary) -> Markup {
    html! {
        @if let Some(turn) = summary.regrounded {
            span.arrow {}
            div.node.fate { "re-grounded in turn " (turn) br; "its sources came back" }
        }
    }
}
