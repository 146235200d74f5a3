//! Utilization over time, with a row of marks for each kind of event below it. Positions are percentages, so the picture
//! takes any width and its words keep their size.

use std::fmt::Write as _;

use maud::{Markup, html};

use super::story::{MarkKind, Moment, Story};
use crate::words::{count, time};

/// Points of the line at most: a screen has no more.
const POINTS: usize = 1_500;

/// Marks of a row closer than this, in percent of the width, are one.
const APART: f64 = 0.2;

/// The kinds of marks, by row: name in the legend and class.
pub const ROWS: [(MarkKind, &str, &str); 13] = [
    (MarkKind::Pass, "passes", "pass"),
    (MarkKind::Refusal, "passes refused", "refusal"),
    (MarkKind::Fallback, "fallbacks", "fallback"),
    (MarkKind::Left, "left", "left"),
    (MarkKind::Back, "came back", "back"),
    (MarkKind::Removed, "removed", "removed"),
    (MarkKind::Acted, "actions", "acted"),
    (MarkKind::Failed, "not done", "failed"),
    (MarkKind::Uncertain, "uncertain", "uncertain"),
    (MarkKind::Change, "changes", "change"),
    (MarkKind::Late, "late references", "late"),
    (MarkKind::Repeated, "made again", "repeated"),
    (MarkKind::Compacted, "own compaction", "compacted"),
];

/// What the axes span.
struct Scale {
    moments: usize,
    top: u64,
}

impl Scale {
    fn of(story: &Story) -> Self {
        let highest =
            story.peak().map_or(0, |peak| peak.utilization).max(story.budget.map_or(0, |budget| budget.limit));
        // A tenth of air above the highest line.
        Self { moments: story.moments.len(), top: highest.saturating_add(highest / 10).max(1) }
    }

    /// Percent from the left.
    fn x(&self, at: usize) -> f64 {
        (at as f64 + 0.5) / self.moments.max(1) as f64 * 100.0
    }

    /// Percent from the top.
    fn y(&self, tokens: u64) -> f64 {
        100.0 - tokens as f64 / self.top as f64 * 100.0
    }
}

/// The chart; nothing but a note when there are no entries.
pub fn chart(story: &Story) -> Markup {
    if story.moments.is_empty() {
        return html! { p.quiet { "The log has no entries." } };
    }
    let scale = Scale::of(story);
    html! {
        div.charted { div.chart {
            div.plot {
                (plot(story, &scale))
                @for tokens in ticks(scale.top) {
                    span.tick style={ "top:" (per(scale.y(tokens))) } { (short(tokens)) }
                }
                @if let Some(budget) = story.budget {
                    span.line.limit style={ "top:" (per(scale.y(budget.limit))) } { "limit " (count(budget.limit)) }
                    span.line.trigger style={ "top:" (per(scale.y(budget.trigger))) } { "trigger " (count(budget.trigger)) }
                }
            }
            @for (kind, name, class) in ROWS { (row(story, &scale, kind, name, class)) }
            (turns(story, &scale))
            div.cross hidden {}
        }
        p.detail role="status" aria-live="polite" data-none="Point at the chart, or use the arrow keys, to read an entry." {}
        (moments(story, &scale)) }
    }
}

fn plot(story: &Story, scale: &Scale) -> Markup {
    let line = line(&story.moments, scale);
    let end = per(100.0);
    html! {
        svg viewBox="0 0 100 100" preserveAspectRatio="none" role="img" aria-label="Tokens in the window at each log entry" {
            @for tokens in ticks(scale.top) {
                line.grid x1="0" x2="100" y1=(fixed(scale.y(tokens))) y2=(fixed(scale.y(tokens))) {}
            }
            path.area d={ "M0 100" (line) "L" (end.trim_end_matches('%')) " 100Z" } {}
            path.used d={ "M" (line.trim_start_matches('L')) } {}
            @if let Some(budget) = story.budget {
                line.limit x1="0" x2="100" y1=(fixed(scale.y(budget.limit))) y2=(fixed(scale.y(budget.limit))) {}
                line.trigger x1="0" x2="100" y1=(fixed(scale.y(budget.trigger))) y2=(fixed(scale.y(budget.trigger))) {}
            }
        }
    }
}

/// Steps, as the window changes at an entry and not between two. Of many entries the least and the most in each stretch.
fn line(moments: &[Moment], scale: &Scale) -> String {
    let stretch = moments.len().div_ceil(POINTS / 2).max(1);
    let mut path = String::new();
    let mut last = scale.y(moments.first().map_or(0, |moment| moment.utilization));
    let _ = write!(path, "L0 {}", fixed(last));
    let mut at = 0_usize;
    for stretch in moments.chunks(stretch) {
        let mut tokens: Vec<_> = stretch.iter().map(|moment| moment.utilization).collect();
        let end = tokens.last().copied();
        if stretch.len() > 1 {
            tokens = tokens.iter().min().into_iter().chain(tokens.iter().max()).copied().collect();
            tokens.extend(end);
        }
        let x = (at as f64) / scale.moments as f64 * 100.0;
        for tokens in tokens {
            let y = scale.y(tokens);
            if (y - last).abs() > f64::EPSILON {
                let _ = write!(path, "L{x} {}L{x} {y}", fixed(last), x = fixed(x), y = fixed(y));
                last = y;
            }
        }
        at = at.saturating_add(stretch.len());
    }
    let _ = write!(path, "L100 {}", fixed(last));
    path
}

fn row(story: &Story, scale: &Scale, kind: MarkKind, name: &str, class: &str) -> Markup {
    let marked = story.moments.iter().enumerate();
    let marked =
        marked.filter_map(|(at, moment)| Some((at, moment, moment.marks.iter().find(|mark| mark.kind == kind)?)));
    // Where the next mark still shows: no two in one place.
    let mut free = f64::MIN;
    let mut marks = Vec::new();
    for (at, moment, mark) in marked {
        if scale.x(at) >= free {
            free = scale.x(at) + APART;
            marks.push((scale.x(at), moment.turn, &mark.what));
        }
    }
    html! {
        @if !marks.is_empty() {
            div.row.(class) {
                span.name { i.mark {} (name) }
                @for (x, turn, what) in marks {
                    i.mark style={ "left:" (per(x)) } title={ "turn " (turn) ": " (what) } {}
                }
            }
        }
    }
}

/// The axis: turns, at most seven of them.
fn turns(story: &Story, scale: &Scale) -> Markup {
    let step = round(story.turns.div_ceil(6).max(1));
    let mut next = 0;
    let mut marks = Vec::new();
    for (at, moment) in story.moments.iter().enumerate() {
        if moment.turn >= next {
            marks.push((scale.x(at), moment.turn));
            next = moment.turn.checked_div(step).unwrap_or(0).saturating_add(1).saturating_mul(step);
        }
    }
    html! {
        div.axis {
            @for (x, turn) in marks {
                span style={ "left:" (per(x)) } { @if turn == 0 { "turn " } (turn) }
            }
        }
    }
}

/// What the script shows for each entry: one element, and all of the store's text in it is escaped as everything is.
fn moments(story: &Story, scale: &Scale) -> Markup {
    html! {
        ol.moments hidden {
            @for (at, moment) in story.moments.iter().enumerate() {
                li data-x=(fixed(scale.x(at))) {
                    b { "turn " (moment.turn) } ", entry " (moment.entry)
                    @if let Some(ms) = moment.time { ", " (time(ms)) }
                    ": " (count(moment.utilization)) " tokens"
                    @for mark in &moment.marks { br; (mark.what) }
                }
            }
        }
    }
}

/// Three to six round numbers up to `top`.
fn ticks(top: u64) -> Vec<u64> {
    let step = round(top.div_ceil(6));
    (0..=6).map(|times| step.saturating_mul(times)).filter(|tick| *tick <= top).collect()
}

/// The smallest of 1, 2, 5, 10, 20, 50 .. that is no smaller.
fn round(number: u64) -> u64 {
    let power = 10_u64.saturating_pow(number.checked_ilog10().unwrap_or(0));
    let steps = [1, 2, 5, 10].map(|times| power.saturating_mul(times));
    steps.into_iter().find(|step| *step >= number).unwrap_or(number)
}

/// `800`, `1.5k`, `2M`.
fn short(tokens: u64) -> String {
    match tokens {
        0..1_000 => tokens.to_string(),
        1_000..1_000_000 => format!("{}k", tokens as f64 / 1e3),
        _ => format!("{}M", tokens as f64 / 1e6),
    }
}

fn per(percent: f64) -> String {
    format!("{}%", fixed(percent))
}

/// Two decimals are a tenth of a pixel.
fn fixed(number: f64) -> String {
    format!("{number:.2}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round() {
        assert_eq!(ticks(26_400), [0, 5_000, 10_000, 15_000, 20_000, 25_000]);
        assert_eq!(ticks(1), [0, 1]);
        assert_eq!([0, 1, 49, 50, 51, 6_600].map(round), [1, 1, 50, 50, 100, 10_000]);
        assert_eq!([999, 1_500, 2_000_000].map(short), ["999", "1.5k", "2M"]);
    }

    #[test]
    fn a_long_log_keeps_its_peaks() {
        let moment = |entry: u64| Moment {
            entry,
            turn: entry,
            time: None,
            utilization: if entry == 77_777 { 900 } else { entry % 7 },
            marks: Vec::new(),
        };
        let moments: Vec<_> = (0..100_000).map(moment).collect();
        let path = line(&moments, &Scale { moments: moments.len(), top: 1_000 });
        assert!(path.contains(" 10.00L"), "900 of 1,000 is 10 % below the top");
        assert!(path.len() < 120_000, "{}", path.len());
    }
}
