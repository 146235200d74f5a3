//! From what a person or a model writes to what FTS5 reads: all of it quoted, so that no mark of theirs is syntax.

use super::SearchError;

/// The FTS5 expression of a query: any of its words, and each phrase in quotes.
pub(super) fn expression(query: &str) -> Result<String, SearchError> {
    let parts: Vec<_> = query.split('"').collect();
    if let (true, Some(at)) = (parts.len().is_multiple_of(2), query.rfind('"')) {
        return Err(SearchError::OpenQuote { at });
    }
    let (unquoted, quoted) = (parts.iter().step_by(2), parts.iter().skip(1).step_by(2));
    if let Some(part) = quoted.clone().find(|part| !has_word(part)) {
        return Err(SearchError::NoWord { part: (*part).to_owned() });
    }
    let phrases: Vec<_> = quoted.map(|part| phrase(part)).collect();
    let words = unquoted.flat_map(|part| part.split(is_gap)).filter(|word| has_word(word)).map(phrase);
    let any = phrases.iter().cloned().chain(words).collect::<Vec<_>>().join(" OR ");
    match phrases.as_slice() {
        [] if any.is_empty() => Err(SearchError::NoWord { part: query.to_owned() }),
        [] => Ok(any),
        // Words beside phrases only rank.
        phrases => Ok(format!("{} AND ({any})", phrases.join(" AND "))),
    }
}

fn phrase(part: &str) -> String {
    format!("\"{}\"", part.replace(is_gap, " "))
}

/// FTS5 reads no further than a NUL.
fn is_gap(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

fn has_word(part: &str) -> bool {
    part.contains(char::is_alphanumeric)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_that_is_written_is_quoted() {
        let cases = [
            ("src/gate.rs:41 x", Ok(r#""src/gate.rs:41" OR "x""#)),
            ("a \"b c\"", Ok(r#""b c" AND ("b c" OR "a")"#)),
            ("\"a\" \"b\"", Ok(r#""a" AND "b" AND ("a" OR "b")"#)),
            ("a OR NOT b* && c\0d", Ok(r#""a" OR "OR" OR "NOT" OR "b*" OR "c" OR "d""#)),
            ("a \"b", Err(r#"OpenQuote { at: 2 }"#)),
            (" ", Err(r#"NoWord { part: " " }"#)),
            ("a \"->\"", Err(r#"NoWord { part: "->" }"#)),
        ];
        for (query, expected) in cases {
            let found = expression(query).map_err(|error| format!("{error:?}"));
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{query}");
        }
    }
}
