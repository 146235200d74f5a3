//! What the parts of a struct mean together: one kind per lane, routes that can be reached.

use proc_macro2::{Ident, Span};
use syn::{LitStr, ext::IdentExt as _};

use crate::{
    errors::Errors,
    model::{Declared, FieldDecl, Head, Kind, KindUse, Lane, Number, Routes, Skipped, State},
    parse::{is_spans, listed},
};

const ROLES: &[&str] = &["system", "user", "assistant", "tool"];

pub(crate) fn check(declared: Declared, errors: &mut Errors) -> State {
    let Declared { head, fields } = declared;
    let (mut lanes, mut skipped) = (Vec::new(), Vec::new());
    let named = fields.is_some();
    for field in fields.into_iter().flatten() {
        match field_kind(&field, errors) {
            Some(used) => lanes.push(lane(field, used)),
            None => skipped.push(Skipped { ident: field.ident, ty: field.ty }),
        }
    }
    numbers(&head, errors);
    if named {
        count(&head, &lanes, errors);
        routing(&head, &lanes, errors);
    }
    State { head, lanes, skipped, failed: !errors.is_empty() }
}

/// What a field was found to be; a lane whose kind is missing counts as evictable, so that it still gets a handle.
struct Found {
    kind: Kind,
    pinned: bool,
}

fn lane(field: FieldDecl, found: Found) -> Lane {
    let FieldDecl { ident, vis, docs, kinds, .. } = field;
    let used = kinds.into_iter().next().map(|used| (used.at.span(), used.routes));
    let (at, routes) = used.unwrap_or_else(|| (ident.span(), Routes::default()));
    Lane { ident, vis, docs, kind: found.kind, at, pinned: found.pinned, routes }
}

fn field_kind(field: &FieldDecl, errors: &mut Errors) -> Option<Found> {
    let name = field.ident.unraw();
    let spans = is_spans(&field.ty);
    let Some(used) = field.kinds.first() else {
        return without_kind(field, spans, errors);
    };
    let kind = used.kind.name();
    if let Some(skip) = &field.skip {
        errors.at(skip.span(), format!("`{name}` is a lane, `#[{kind}]`, and skipped: remove one of them"));
    } else if !spans {
        errors.on(&field.ty, format!("`{name}` is `#[{kind}]`, so its type must be `Spans`"));
    }
    for other in field.kinds.iter().skip(1) {
        let second = other.kind.name();
        let message = if other.kind == used.kind {
            format!("`{name}` has `#[{kind}]` twice: remove one")
        } else {
            format!("`{name}` is both `#[{kind}]` and `#[{second}]`: a lane has one kind, remove one")
        };
        errors.at(other.at.span(), message);
    }
    kind_keys(&name, used, errors);
    Some(Found { kind: used.kind, pinned: used.pinned.is_some() && used.kind.is_protected() })
}

fn without_kind(field: &FieldDecl, spans: bool, errors: &mut Errors) -> Option<Found> {
    let name = field.ident.unraw();
    match &field.skip {
        Some(skip) if spans => {
            errors
                .at(skip.span(), format!("`{name}` is a lane and cannot be skipped: give it a kind, or another type"));
        }
        Some(_) => return None,
        None if spans => {
            let attributes: Vec<_> = Kind::NAMES.iter().map(|kind| format!("#[{kind}]")).collect();
            let expected = listed(attributes.iter().map(String::as_str));
            errors.at(field.ident.span(), format!("`{name}` has no kind: add one of {expected}"));
        }
        None => {
            errors.on(&field.ty, format!("`{name}` is no lane, its type is not `Spans`: add `#[context(skip)]`"));
            return None;
        }
    }
    Some(Found { kind: Kind::Evictable, pinned: false })
}

/// The keys a kind may have, and what is in them.
fn kind_keys(name: &Ident, used: &KindUse, errors: &mut Errors) {
    let kind = used.kind.name();
    if let Some(pinned) = used.pinned.as_ref().filter(|_| !used.kind.is_protected()) {
        let why = if used.kind == Kind::Instruction {
            "`#[instruction]` already never leaves: remove `pinned`".to_owned()
        } else {
            let protected = "`#[precondition]`, `#[invariant]`, `#[constraint]`, `#[negative_result]` or \
                             `#[scope_qualifier]`";
            format!("`#[{kind}]` cannot be `pinned`: remove it, or make the lane {protected}")
        };
        errors.at(pinned.span(), format!("`{name}`: {why}"));
    }
    let filled = match used.kind {
        Kind::Rationale => Some("is filled by pruning itself"),
        Kind::Derived => Some("is made by summarize"),
        _ => None,
    };
    if let (Some(filled), Some(key)) = (filled, &used.routes.first) {
        errors.at(key.span(), format!("`{name}`: `#[{kind}]` {filled} and takes no routing: remove `{key}`"));
    }
    for tool in &used.routes.tools {
        pattern(name, tool, errors);
    }
    for role in &used.routes.roles {
        if !ROLES.contains(&role.value().as_str()) {
            let expected = listed(ROLES.iter().copied());
            errors.at(
                role.span(),
                format!("`{name}` has an unknown role `{}`, expected one of: {expected}", role.value()),
            );
        }
    }
}

fn pattern(name: &Ident, tool: &LitStr, errors: &mut Errors) {
    let value = tool.value();
    if value.is_empty() {
        errors.at(
            tool.span(),
            format!("`{name}` has an empty tool name: write the tool's name, or a pattern as `\"db_*\"`"),
        );
    } else if value.strip_suffix('*').unwrap_or(&value).contains('*') {
        errors.at(tool.span(), format!("`{name}`: `*` stands only at the end of a tool pattern, as `\"db_*\"`"));
    }
}

/// All numbers are parts of the budget.
fn numbers(head: &Head, errors: &mut Errors) {
    if head.numbers.iter().any(|number| number.key == "budget") {
        return;
    }
    let name = head.ident.unraw();
    for Number { key, .. } in &head.numbers {
        errors
            .at(key.span(), format!("`{name}` has `{key}` and no `budget`, of which it is a part: add `budget = ..`"));
    }
}

fn count(head: &Head, lanes: &[Lane], errors: &mut Errors) {
    let (name, at) = (head.ident.unraw(), head.ident.span());
    if lanes.is_empty() {
        errors.at(at, format!("`{name}` has no lane: add a `Spans` field with a kind, as `#[evictable] work: Spans`"));
    }
    if lanes.len() > usize::from(u16::MAX) {
        errors.at(at, format!("`{name}` has more than 65535 lanes: split it"));
    }
}

/// Every route is reached by some span, and every span has a route.
fn routing(head: &Head, lanes: &[Lane], errors: &mut Errors) {
    flag(lanes, "on_error", |routes| routes.on_error.as_ref(), errors);
    flag(lanes, "otherwise", |routes| routes.otherwise.as_ref(), errors);
    repeated(lanes, "tool", |routes| &routes.tools, errors);
    repeated(lanes, "role", |routes| &routes.roles, errors);
    let otherwise = lanes.iter().find_map(|lane| Some((lane, lane.routes.otherwise.as_ref()?)));
    let roles: Vec<_> = lanes.iter().flat_map(|lane| &lane.routes.roles).map(LitStr::value).collect();
    if let Some((lane, at)) = otherwise {
        if ROLES.iter().all(|role| roles.iter().any(|used| used == role)) {
            let name = lane.ident.unraw();
            errors.at(
                at.span(),
                format!("`{name}` is never reached: `roles` already route every role, remove `otherwise`"),
            );
        }
    } else if lanes.iter().any(|lane| lane.routes.first.is_some()) {
        let name = head.ident.unraw();
        errors.at(
            head.ident.span(),
            format!("`{name}` routes spans but has no `otherwise` lane: add `otherwise` to one, as `#[evictable(otherwise)]`"),
        );
    }
}

/// A key that one lane of a struct may have.
fn flag(lanes: &[Lane], key: &str, of: fn(&Routes) -> Option<&Ident>, errors: &mut Errors) {
    let mut used = lanes.iter().filter_map(|lane| Some((lane.ident.unraw(), of(&lane.routes)?)));
    let Some((first, _)) = used.next() else { return };
    for (name, at) in used {
        errors.at(at.span(), format!("`{name}` is never reached: `{first}` already has `{key}`, keep one"));
    }
}

/// A tool or role that a struct may route once.
fn repeated(lanes: &[Lane], what: &str, of: fn(&Routes) -> &Vec<LitStr>, errors: &mut Errors) {
    let mut seen = std::collections::HashMap::<String, Ident>::new();
    for (lane, value) in lanes.iter().flat_map(|lane| of(&lane.routes).iter().map(move |value| (lane, value))) {
        let (name, text, at): (Ident, String, Span) = (lane.ident.unraw(), value.value(), value.span());
        match seen.get(&text) {
            Some(first) => errors.at(
                at,
                format!("`{name}` is never reached by the {what} `{text}`: `{first}` already has it, keep one"),
            ),
            None => {
                seen.insert(text, name);
            }
        }
    }
}

#[cfg(test)]
mod tests;
