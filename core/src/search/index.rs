//! The inverted index: an FTS5 table in memory, without the texts.

use std::sync::{Mutex, MutexGuard, PoisonError};

use rusqlite::{Connection, params};

use super::SearchError;
use crate::SpanId;

/// `contentless_delete` keeps no text and still takes rows out; the tokenizer is the default one, named.
const SCHEMA: &str =
    "CREATE VIRTUAL TABLE spans USING fts5(text, content='', contentless_delete=1, tokenize='unicode61')";

#[derive(Debug)]
pub(super) struct Index(Mutex<Connection>);

impl Index {
    pub(super) fn new() -> Result<Self, SearchError> {
        let index = Connection::open_in_memory()?;
        index.execute_batch(SCHEMA)?;
        Ok(Self(Mutex::new(index)))
    }

    /// Adds texts, all or none; gives their number.
    pub(super) fn add<'t>(&mut self, texts: impl Iterator<Item = (SpanId, &'t str)>) -> Result<u64, SearchError> {
        let index = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let transaction = index.transaction()?;
        let mut added = 0_u64;
        {
            let mut insert = transaction.prepare_cached("INSERT INTO spans (rowid, text) VALUES (?1, ?2)")?;
            for (span, text) in texts {
                insert.execute(params![row(span), text])?;
                added = added.saturating_add(1);
            }
        }
        transaction.commit()?;
        Ok(added)
    }

    /// Takes spans out; gives how many were there. Their words would stay until their part of the index is merged, so it is.
    pub(super) fn remove(&mut self, spans: &[SpanId]) -> Result<u64, SearchError> {
        let index = self.0.get_mut().unwrap_or_else(PoisonError::into_inner);
        let transaction = index.transaction()?;
        let mut removed = 0_usize;
        {
            let mut delete = transaction.prepare_cached("DELETE FROM spans WHERE rowid = ?1")?;
            for span in spans {
                removed = removed.saturating_add(delete.execute([row(*span)])?);
            }
        }
        if removed > 0 {
            transaction.execute("INSERT INTO spans (spans) VALUES ('optimize')", [])?;
        }
        transaction.commit()?;
        Ok(u64::try_from(removed).unwrap_or(u64::MAX))
    }

    /// The spans that match an FTS5 expression, best first.
    pub(super) fn find(&self, expression: &str, limit: usize) -> Result<Vec<(SpanId, f64)>, SearchError> {
        let index = self.lock();
        let mut select = index
            .prepare_cached("SELECT rowid, rank FROM spans WHERE spans MATCH ?1 ORDER BY rank, rowid DESC LIMIT ?2")?;
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        let rows =
            select.query_map(params![expression, limit], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, f64>(1)?)))?;
        rows.map(|row| {
            let (span, rank) = row?;
            // FTS5 gives the better the smaller.
            Ok((SpanId::mint(span.unsigned_abs()), -rank))
        })
        .collect()
    }

    fn lock(&self) -> MutexGuard<'_, Connection> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn row(span: SpanId) -> i64 {
    i64::try_from(span.number()).unwrap_or(i64::MAX)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    /// Whether the bytes of the index have `word` in them, whatever a query would say.
    fn holds(index: &Index, word: &str) -> bool {
        let sql = "SELECT EXISTS (SELECT 1 FROM spans_data WHERE instr(block, ?1)) OR \
                   EXISTS (SELECT 1 FROM spans_idx WHERE instr(term, ?1))";
        index.lock().query_row(sql, [word.as_bytes()], |row| row.get(0)).unwrap()
    }

    #[test]
    fn nothing_of_a_removed_text_stays_in_the_index() {
        let mut index = Index::new().unwrap();
        for id in (1..=200).map(SpanId::mint) {
            let text = format!("word {id} {}", if id.number() == 7 { "hunter2" } else { "zebra" });
            assert_eq!(index.add([(id, text.as_str())].into_iter()).unwrap(), 1);
        }
        assert!(holds(&index, "hunter2") && holds(&index, "zebra"));
        assert_eq!(index.remove(&[SpanId::mint(7), SpanId::mint(999)]).unwrap(), 1);
        assert!(!holds(&index, "hunter2") && holds(&index, "zebra"));
        assert_eq!(index.remove(&[SpanId::mint(7)]).unwrap(), 0);
    }
}
