//! Violations as they are found, and the looks at JSON that every format needs.

use serde_json::Value;

use super::{Format, Invalid, Rule, Violation};

/// A message, or a block, part or call in it.
#[derive(Clone, Copy, Debug)]
pub(super) struct At {
    message: usize,
    item: Option<(&'static str, usize)>,
}

impl At {
    pub(super) fn message(message: usize) -> Self {
        Self { message, item: None }
    }

    /// The `item`th of the message's `list`.
    pub(super) fn item(self, list: &'static str, item: usize) -> Self {
        Self { item: Some((list, item)), ..self }
    }
}

/// Where a type of block may stand: its name, and the roles.
pub(super) type Kinds = [(&'static str, &'static [&'static str])];

/// What was found so far.
#[derive(Debug)]
pub struct Judge {
    provider: &'static str,
    list: &'static str,
    strict: bool,
    violations: Vec<Violation>,
}

impl Judge {
    pub(super) fn new<F: Format>(list: &'static str) -> Self {
        Self { provider: F::NAME, list, strict: F::STRICT, violations: Vec::new() }
    }

    pub(super) fn found(&mut self, at: At, rule: Rule) {
        let Self { list, .. } = *self;
        let At { message, item } = at;
        let pointer = match item {
            Some((inner, item)) => format!("{list}/{message}/{inner}/{item}"),
            None => format!("{list}/{message}"),
        };
        self.violations.push(Violation { pointer, message: Some(message), item: item.map(|(_, item)| item), rule });
    }

    /// Only `rule`, of the history as a whole.
    pub(super) fn refusing(mut self, rule: Rule) -> Result<(), Invalid> {
        self.violations.push(Violation { pointer: self.list.to_owned(), message: None, item: None, rule });
        self.done()
    }

    pub(super) fn done(mut self) -> Result<(), Invalid> {
        if self.violations.is_empty() {
            return Ok(());
        }
        // Calls are found unanswered only where their results are missed.
        self.violations.sort_by_key(|violation| (violation.message, violation.item));
        Err(Invalid { provider: self.provider, violations: self.violations })
    }

    pub(super) fn role<'a>(&mut self, message: &'a Value, at: At, roles: &[&str]) -> Option<&'a str> {
        let role = self.text(message, "role", "/role", at)?;
        if roles.contains(&role) {
            return Some(role);
        }
        self.found(at, Rule::Role);
        None
    }

    /// The block's type, if it is known and this role can have it.
    pub(super) fn kind<'a>(&mut self, block: &'a Value, at: At, kinds: &Kinds, role: &str) -> Option<&'a str> {
        let kind = self.text(block, "type", "/type", at)?;
        let Some((_, roles)) = kinds.iter().find(|(name, _)| *name == kind) else {
            self.unknown(at);
            return None;
        };
        if roles.contains(&role) {
            return Some(kind);
        }
        self.found(at, Rule::WrongRole);
        None
    }

    pub(super) fn unknown(&mut self, at: At) {
        if self.strict {
            self.found(at, Rule::Unknown);
        }
    }

    /// A text that is not empty: an id, a name.
    pub(super) fn text<'a>(&mut self, of: &'a Value, field: &'static str, pointer: &str, at: At) -> Option<&'a str> {
        let text = of.pointer(pointer).and_then(Value::as_str).filter(|text| !text.is_empty());
        self.needs(text.is_some(), field, at);
        text
    }

    pub(super) fn needs(&mut self, given: bool, field: &'static str, at: At) {
        if !given {
            self.found(at, Rule::Field { field });
        }
    }
}

/// Whether a field is there and not null.
pub(super) fn given(of: &Value, field: &str) -> bool {
    of.get(field).is_some_and(|value| !value.is_null())
}
