//! Numbers, times and text from a store, as a person reads them.

use std::borrow::Cow;

use keepspan::Digest;

/// `12,345`.
pub fn count(number: u64) -> String {
    let digits = number.to_string();
    let mut grouped = String::with_capacity(digits.len().saturating_mul(2));
    for (left, digit) in (1..=digits.len()).rev().zip(digits.chars()) {
        grouped.push(digit);
        if left > 1 && left % 3 == 1 {
            grouped.push(',');
        }
    }
    grouped
}

/// `-12,345`.
pub fn signed(number: i64) -> String {
    format!("{}{}", if number < 0 { "-" } else { "" }, count(number.unsigned_abs()))
}

/// `1 span`, `2 spans`, `2 passes`, `2 entries`.
pub fn several(number: u64, word: &str) -> String {
    let plural = match (number, word.strip_suffix('y')) {
        (1, _) => word.to_owned(),
        (_, Some(stem)) => format!("{stem}ies"),
        _ if word.ends_with('s') => format!("{word}es"),
        _ => format!("{word}s"),
    };
    format!("{} {plural}", count(number))
}

/// `93 %`; nothing of nothing is 0.
pub fn percent(part: u64, whole: u64) -> String {
    let percent = if whole == 0 { 0.0 } else { part as f64 / whole as f64 * 100.0 };
    format!("{} %", count(percent.round() as u64))
}

/// `2026-11-30 09:12:07 UTC`, of milliseconds since 1970; a time that no calendar has is shown as the number.
pub fn time(ms: u64) -> String {
    let stamp = i64::try_from(ms).ok().and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    stamp.map_or_else(|| format!("{ms} ms"), |stamp| stamp.strftime("%Y-%m-%d %H:%M:%S UTC").to_string())
}

/// `2 h 14 min`, of milliseconds.
pub fn duration(ms: u64) -> String {
    let seconds = ms / 1_000;
    match (seconds / 3_600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds} s"),
        (0, minutes, seconds) if minutes < 10 => format!("{minutes} min {seconds} s"),
        (0, minutes, _) => format!("{minutes} min"),
        (hours, minutes, _) => format!("{} h {minutes} min", count(hours)),
    }
}

/// The first eight digits of a digest.
pub fn short(digest: Digest) -> String {
    format!("{:.8}", digest.to_string())
}

/// Text from a store with what would act on a terminal or reorder a line made visible: `\u{1b}`. Line ends and tabs
/// stay.
pub fn plain(text: &str) -> Cow<'_, str> {
    if !text.contains(acts) {
        return Cow::Borrowed(text);
    }
    let text = text.replace("\r\n", "\n");
    let mut shown = String::with_capacity(text.len());
    for char in text.chars() {
        if acts(char) { shown.extend(char.escape_unicode()) } else { shown.push(char) }
    }
    Cow::Owned(shown)
}

/// As [`plain`], on one line.
pub fn line(text: &str) -> Cow<'_, str> {
    match plain(text) {
        shown if shown.contains(['\n', '\t']) => Cow::Owned(shown.replace(['\n', '\t'], " ")),
        shown => shown,
    }
}

/// The beginning of a text, on one line, of at most so many characters.
pub fn begin(text: &str, most: usize) -> String {
    let mut chars = text.chars();
    let begin: String = chars.by_ref().take(most).collect();
    format!("{}{}", line(&begin), if chars.next().is_some() { "…" } else { "" })
}

/// Controls and the marks that reorder text.
fn acts(char: char) -> bool {
    match char {
        '\n' | '\t' => false,
        '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        other => other.is_control(),
    }
}

/// `s1 to s4, s9`, of numbers in ascending order.
pub fn ids(spans: &[u64]) -> String {
    let mut runs: Vec<(u64, u64)> = Vec::new();
    for &span in spans {
        match runs.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(span) => *last = span,
            _ => runs.push((span, span)),
        }
    }
    let run = |(first, last): &(u64, u64)| match last.saturating_sub(*first) {
        0 => format!("s{first}"),
        1 => format!("s{first}, s{last}"),
        _ => format!("s{first} to s{last}"),
    };
    runs.iter().map(run).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_written_by_hand() {
        for (number, expected) in [(0, "0"), (999, "999"), (1_000, "1,000"), (1_234_567, "1,234,567")] {
            assert_eq!(count(number), expected);
        }
        assert_eq!(signed(-1_000), "-1,000");
        assert_eq!(
            (several(1, "pass"), several(2, "pass"), several(0, "span")),
            ("1 pass".into(), "2 passes".into(), "0 spans".into())
        );
        assert_eq!((percent(1, 3), percent(1, 0)), ("33 %".into(), "0 %".into()));
        assert_eq!(time(1_796_029_927_000), "2026-11-30 09:12:07 UTC");
        assert_eq!(time(u64::MAX), "18446744073709551615 ms");
        assert_eq!(
            [duration(59_999), duration(90_000), duration(3_540_000), duration(8_040_000)],
            ["59 s", "1 min 30 s", "59 min", "2 h 14 min"]
        );
    }

    #[test]
    fn what_acts_on_a_terminal_is_shown() {
        assert_eq!(plain("a\tb\nü"), "a\tb\nü");
        assert_eq!(plain("\u{1b}[31mred\u{202e}"), "\\u{1b}[31mred\\u{202e}");
        assert_eq!((line("a\r\nb"), line("a\rb")), ("a b".into(), "a\\u{d}b".into()));
    }

    #[test]
    fn neighbours_fold() {
        assert_eq!(ids(&[1, 2, 3, 4, 9, 11, 12]), "s1 to s4, s9, s11, s12");
        assert_eq!(ids(&[]), "");
    }
}
