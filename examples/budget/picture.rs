//! One SVG of a [`Report`]: how full the window is under each policy, and the same figures over all seeds.

use std::fmt::Write as _;

use crate::report::{Figures, Pass, Report, Run, spread, thousands};

const INK: &str = "#1f2937";
const FAINT: &str = "#6b7280";
const RULE: &str = "#d1d5db";
const BAD: &str = "#b42318";
const GOOD: &str = "#15803d";
const COLOURS: [&str; 3] = ["#c2410c", "#1d4ed8", "#0f766e"];

/// The left edge, the right edge and the height of a panel's plot, in pixels.
const PLOT: (f64, f64, f64) = (62.0, 790.0, 150.0);
/// From the top of a panel to its plot, and to the next panel.
const PANEL: (f64, f64) = (36.0, 200.0);
/// Where the first panel begins.
const TOP: f64 = 84.0;
/// The tokens at the bottom and the top of a plot.
const TOKENS: (f64, f64) = (11_000.0, 24_800.0);
/// Where the strips of the right column begin, and where their bars begin and end.
const STRIP: (f64, f64, f64) = (886.0, 1_000.0, 1_172.0);

/// Draws the report, 1200 by 760 pixels, on its own: no script, no font, no link.
pub fn svg(report: &Report) -> String {
    let mut page = Page::default();
    heading(&mut page, report);
    let mut top = TOP;
    for (run, colour) in report.runs.iter().zip(COLOURS) {
        panel(&mut page, top, run, colour, report);
        top += PANEL.1;
    }
    turns(&mut page, top - PANEL.1 + PANEL.0 + PLOT.2, turns_of(report));
    strips(&mut page, report);
    legend(&mut page, report);
    page.finish()
}

fn heading(page: &mut Page, report: &Report) {
    let [full, _, kept] = &report.runs;
    let ratio = |run: &Run| run.ratio().map_or_else(|| String::from("without end"), |ratio| format!("{ratio:.1}"));
    page.text(
        (26.0, 36.0),
        &format!(
            "In a full window, a token freed net costs {} tokens of deciding; with room to decide, {}",
            ratio(full),
            ratio(kept)
        ),
        "font-size='20' font-weight='700'",
    );
    page.text(
        (26.0, 60.0),
        &format!(
            "One tool loop, {} tokens in {} turns, under a hard budget of {}. The line is how full the window is: it \
             peaks while the model decides what to drop, then falls.",
            count(report.unpruned),
            full.samples.last().map_or(0.0, |(turn, _)| turn.floor()),
            count(report.budget)
        ),
        &format!("font-size='13' fill='{FAINT}'"),
    );
}

/// One policy: its name and sum, then its trace.
fn panel(page: &mut Page, top: f64, run: &Run, colour: &str, report: &Report) {
    let (left, right, height) = PLOT;
    let plot = top + PANEL.0;
    let bottom = plot + height;
    let y = |tokens: u64| {
        let (low, high) = TOKENS;
        bottom - ((tokens as f64).clamp(low, high) - low) / (high - low) * height
    };
    page.text((left, top + 12.0), run.name, &format!("font-size='15' font-weight='700' fill='{colour}'"));
    page.text((right, top + 12.0), &sum(run), "font-size='13' font-weight='600' text-anchor='end'");
    page.text((left, top + 28.0), run.caption, &format!("font-size='12' fill='{FAINT}'"));

    page.rect((left, plot), (right - left, y(report.budget) - plot), "#fdecea", "over the budget");
    for tokens in [12_000, 16_000, 20_000, 24_000] {
        page.line((left, y(tokens)), (right, y(tokens)), RULE, "stroke-width='0.7'");
        page.text((left - 8.0, y(tokens) + 4.0), &count(tokens), AXIS_END);
    }
    page.line((left, y(report.budget)), (right, y(report.budget)), BAD, "stroke-width='1.4'");
    page.text((right + 6.0, y(report.budget) + 4.0), "hard budget", &format!("font-size='11' fill='{BAD}'"));
    page.line((left, y(run.trigger)), (right, y(run.trigger)), FAINT, "stroke-dasharray='5 4'");
    page.text((right + 6.0, y(run.trigger) + 4.0), &format!("trigger {}", short(run.trigger)), AXIS);
    ticks(page, bottom, turns_of(report));

    let x = |turn: f64| x_of(turn, report);
    let trace: Vec<_> = run.samples.iter().map(|(turn, tokens)| (x(*turn), y(*tokens))).collect();
    page.area(&trace, bottom, colour);
    for left in &run.fallbacks {
        page.square((x(f64::from(left.turn) + 0.5), y(left.after)), colour, "cut without asking a model");
    }
    for (turn, why) in &run.refusals {
        let turn = f64::from(*turn);
        let before = run.samples.iter().find(|(at, _)| *at >= turn).map_or(run.trigger, |(_, tokens)| *tokens);
        page.triangle((x(turn), y(before) - 14.0), INK, why);
    }
    passes(page, run, &|pass: &Pass| (x(f64::from(pass.turn) + 0.5), y(pass.after)));
}

/// A dot and the net number under each pass; a number too near the last one goes below it.
fn passes(page: &mut Page, run: &Run, at: &dyn Fn(&Pass) -> (f64, f64)) {
    let (mut last_x, mut last_y) = (f64::NEG_INFINITY, 0.0_f64);
    for pass in &run.passes {
        let (x, y) = at(pass);
        let net = pass.net();
        let pays = net > i64::try_from(pass.overhead()).unwrap_or(i64::MAX);
        let colour = if pays { GOOD } else { BAD };
        page.dot((x, y), colour);
        let near = x - last_x < 40.0 && (y + 16.0 - last_y).abs() < 11.0;
        (last_x, last_y) = (x, if near { last_y + 13.0 } else { y + 16.0 });
        let plus = if net > 0 { "+" } else { "" };
        let style = format!("font-size='11' font-weight='600' fill='{colour}' text-anchor='middle'");
        page.text((x, last_y), &format!("{plus}{}", thousands(net)), &style);
    }
}

fn sum(run: &Run) -> String {
    let plural = if run.passes.len() == 1 { "decision" } else { "decisions" };
    let (cost, net) = (count(run.overhead()), thousands(run.net()));
    let mut text = format!("{} {plural} cost {cost} tokens and freed {net} net", run.passes.len());
    if run.lost() > 0 {
        let _ = write!(text, "; {} needed tokens cut", count(run.lost()));
    }
    text
}

fn turns_of(report: &Report) -> f64 {
    let last = report.runs.iter().filter_map(|run| run.samples.last());
    last.map(|(turn, _)| turn.floor()).fold(1.0, f64::max)
}

/// Where a turn is; a pass in the last turn needs room behind it.
fn x_of(turn: f64, report: &Report) -> f64 {
    let (left, right, _) = PLOT;
    left + turn / (turns_of(report) + 1.0) * (right - left)
}

fn ticks(page: &mut Page, bottom: f64, last: f64) {
    let (left, right, _) = PLOT;
    page.line((left, bottom), (right, bottom), FAINT, "");
    for (x, _) in quarters(last) {
        page.line((x, bottom), (x, bottom + 4.0), FAINT, "");
    }
}

/// Under the last panel, for all of them.
fn turns(page: &mut Page, bottom: f64, last: f64) {
    for (x, turn) in quarters(last) {
        let word = if turn > 0.0 { "" } else { "turn " };
        page.text((x, bottom + 16.0), &format!("{word}{turn:.0}"), AXIS_MIDDLE);
    }
}

/// Where each quarter of the run is, and its turn.
fn quarters(last: f64) -> impl Iterator<Item = (f64, f64)> {
    let (left, right, _) = PLOT;
    (0..=4_u32).map(move |quarter| {
        let turn = f64::from(quarter) / 4.0 * last;
        (left + turn / (last + 1.0) * (right - left), turn)
    })
}

/// What a strip shows: its title, the axis from and to, the width of a bar and the ticks, all in the figure's own unit.
struct Strip {
    title: &'static str,
    axis: (f64, f64),
    bin: f64,
    ticks: &'static [(f64, &'static str)],
    values: fn(&Figures) -> Vec<f64>,
    say: fn(f64) -> String,
}

const STRIPS: [Strip; 3] = [
    Strip {
        title: "tokens spent deciding",
        axis: (0.0, 14_000.0),
        bin: 1_000.0,
        ticks: &[(0.0, "0"), (4_000.0, "4k"), (8_000.0, "8k"), (12_000.0, "12k")],
        values: |figures| whole(&figures.overhead),
        say: |median| count(median as u64),
    },
    Strip {
        title: "peak while deciding",
        axis: (20_000.0, 24_200.0),
        bin: 100.0,
        ticks: &[(20_000.0, "20k"), (22_000.0, "22k"), (24_000.0, "24k")],
        values: |figures| whole(&figures.peak),
        say: |median| count(median as u64),
    },
    Strip {
        title: "spent per token freed net",
        axis: (0.0, 1.75),
        bin: 0.05,
        ticks: &[(0.0, "0"), (0.5, "0.5"), (1.0, "1"), (1.5, "1.5")],
        values: Figures::ratios,
        say: |median| format!("{median:.2}"),
    },
];

fn strips(page: &mut Page, report: &Report) {
    let mut top = TOP;
    for strip in &STRIPS {
        let title = format!("{} seeds: {}", report.seeds.seeds(), strip.title);
        page.text((STRIP.0, top + 12.0), &title, "font-size='13' font-weight='700'");
        let mut base = top + 60.0;
        for ((run, figures), colour) in report.runs.iter().zip(&report.seeds.policies).zip(COLOURS) {
            histogram(page, base, strip, &(strip.values)(figures), colour);
            page.text((STRIP.0, base - 13.0), run.name, &format!("font-size='12' fill='{colour}'"));
            if let Some((_, median, _)) = spread(&(strip.values)(figures)) {
                page.text((STRIP.0, base), &format!("median {}", (strip.say)(median)), AXIS);
            }
            base += 44.0;
        }
        for (value, label) in strip.ticks {
            let x = strip.x(*value);
            page.line((x, top + 22.0), (x, base - 44.0), RULE, "stroke-width='0.7' stroke-dasharray='2 3'");
            page.text((x, base - 28.0), label, AXIS_MIDDLE);
        }
        top += PANEL.1;
    }
}

impl Strip {
    fn x(&self, value: f64) -> f64 {
        let ((from, to), (_, left, right)) = (self.axis, STRIP);
        left + (value - from) / (to - from) * (right - left)
    }
}

/// How many of the values fall into each bin; the fullest bin is as high as the row.
fn histogram(page: &mut Page, base: f64, strip: &Strip, values: &[f64], colour: &str) {
    let mut bins = std::collections::BTreeMap::<i64, u32>::new();
    for value in values {
        let seeds = bins.entry((value / strip.bin).floor() as i64).or_default();
        *seeds = seeds.saturating_add(1);
    }
    page.line((STRIP.1, base), (STRIP.2, base), RULE, "");
    let fullest = bins.values().copied().max().map_or(1.0, f64::from);
    for (bin, seeds) in bins {
        let from = strip.x(bin as f64 * strip.bin);
        let width = (strip.x((bin as f64 + 1.0) * strip.bin) - from - 0.6).max(2.0);
        let height = f64::from(seeds) / fullest * 32.0;
        page.rect((from, base - height), (width, height), colour, &format!("{seeds} seeds"));
    }
}

fn legend(page: &mut Page, report: &Report) {
    let (mut x, y) = (PLOT.0, 712.0);
    let mut entry = |page: &mut Page, draw: &dyn Fn(&mut Page, f64), words: &str| {
        draw(page, x);
        page.text((x + 14.0, y + 4.0), words, "font-size='12'");
        x += 14.0 + words.chars().count() as f64 * 6.5 + 22.0;
    };
    entry(page, &|page, x| page.dot((x + 4.0, y), GOOD), "decision: freed more net than it cost");
    entry(page, &|page, x| page.dot((x + 4.0, y), BAD), "decision: cost more than it freed net");
    if report.runs.iter().any(|run| !run.refusals.is_empty()) {
        entry(page, &|page, x| page.triangle((x + 4.0, y - 4.0), INK, ""), "decision refused");
    }
    if report.runs.iter().any(|run| !run.fallbacks.is_empty()) {
        entry(page, &|page, x| page.square((x + 4.0, y), FAINT, ""), "oldest output cut instead");
    }
    page.text(
        (PLOT.0, 738.0),
        "Numbers under the dots: tokens the decision freed, less what the model read and wrote to decide and less the \
         pointers left behind.",
        &format!("font-size='12' fill='{FAINT}'"),
    );
}

const AXIS: &str = "font-size='11' fill='#6b7280'";
const AXIS_MIDDLE: &str = "font-size='11' fill='#6b7280' text-anchor='middle'";
const AXIS_END: &str = "font-size='11' fill='#6b7280' text-anchor='end'";

fn count(tokens: u64) -> String {
    thousands(i64::try_from(tokens).unwrap_or(i64::MAX))
}

/// `19.6k`, `20k`.
fn short(tokens: u64) -> String {
    format!("{}k", tokens as f64 / 1_000.0)
}

fn whole(values: &[u64]) -> Vec<f64> {
    values.iter().map(|value| *value as f64).collect()
}

/// SVG in the making; points are (x, y) in pixels.
#[derive(Default)]
struct Page(String);

impl Page {
    fn text(&mut self, (x, y): (f64, f64), text: &str, style: &str) {
        let _ = writeln!(self.0, "<text x='{x:.1}' y='{y:.1}' {style}>{}</text>", escaped(text));
    }

    fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), colour: &str, style: &str) {
        let _ =
            writeln!(self.0, "<line x1='{x1:.1}' y1='{y1:.1}' x2='{x2:.1}' y2='{y2:.1}' stroke='{colour}' {style}/>");
    }

    fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), fill: &str, tip: &str) {
        let _ = writeln!(
            self.0,
            "<rect x='{x:.1}' y='{y:.1}' width='{width:.1}' height='{height:.1}' fill='{fill}'>{}</rect>",
            titled(tip)
        );
    }

    fn dot(&mut self, (x, y): (f64, f64), fill: &str) {
        let _ = writeln!(self.0, "<circle cx='{x:.1}' cy='{y:.1}' r='3.6' fill='{fill}' stroke='#fff'/>");
    }

    fn square(&mut self, (x, y): (f64, f64), stroke: &str, tip: &str) {
        let (x, y) = (x - 3.5, y - 3.5);
        let _ = writeln!(
            self.0,
            "<rect x='{x:.1}' y='{y:.1}' width='7' height='7' fill='#fff' stroke='{stroke}' stroke-width='1.6'>{}</rect>",
            titled(tip)
        );
    }

    /// Points down, its upper edge at the point.
    fn triangle(&mut self, (x, y): (f64, f64), stroke: &str, tip: &str) {
        let _ = writeln!(
            self.0,
            "<path d='M{:.1} {y:.1}h9l-4.5 8z' fill='#fff' stroke='{stroke}' stroke-width='1.4'>{}</path>",
            x - 4.5,
            titled(tip)
        );
    }

    /// A trace and the area under it.
    fn area(&mut self, points: &[(f64, f64)], bottom: f64, colour: &str) {
        let (Some((first, _)), Some((last, _))) = (points.first(), points.last()) else { return };
        let line: Vec<_> = points.iter().map(|(x, y)| format!("{x:.1},{y:.1}")).collect();
        let line = line.join(" ");
        let _ = writeln!(
            self.0,
            "<polygon points='{first:.1},{bottom:.1} {line} {last:.1},{bottom:.1}' fill='{colour}' opacity='0.09'/>\n\
             <polyline points='{line}' fill='none' stroke='{colour}' stroke-width='1.9' stroke-linejoin='round'/>"
        );
    }

    fn finish(self) -> String {
        format!(
            "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 1200 760' width='1200' height='760' role='img' \
             fill='{INK}' font-family=\"system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', Arial, \
             sans-serif\">\n<rect width='1200' height='760' fill='#fff'/>\n{}</svg>\n",
            self.0
        )
    }
}

/// A tooltip; nothing without words.
fn titled(tip: &str) -> String {
    if tip.is_empty() { String::new() } else { format!("<title>{}</title>", escaped(tip)) }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
