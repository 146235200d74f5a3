//! A definition against what a provider states.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::{LimitError, Provider};

/// Checks a tool's definition against what a provider states: name, description and root, and in strict mode the whole
/// schema. A definition that passes can still be refused for what is not stated, such as the size of a compiled grammar.
///
/// # Errors
/// [`LimitError`] for the first limit it breaks.
pub fn check<P: Provider>(_provider: P, definition: &Value) -> Result<(), LimitError> {
    let (provider, limits) = (P::NAME, P::LIMITS);
    let missing = |at| LimitError::NotADefinition { provider, at };
    let tool = definition.pointer(limits.tool).and_then(Value::as_object).ok_or_else(|| missing("the tool object"))?;
    let name = tool.get("name").and_then(Value::as_str).ok_or_else(|| missing("its name"))?;
    let schema = tool.get(limits.schema).filter(|schema| has_type(schema, "object"));
    let schema = schema.ok_or_else(|| missing("the schema of an object"))?;
    named::<P>(name)?;
    let description = tool.get("description").and_then(Value::as_str).unwrap_or_default();
    most::<P>("characters of description", description.chars().count(), limits.description_characters)?;
    let strict = limits.strict.is_some_and(|default| tool.get("strict").and_then(Value::as_bool).unwrap_or(default));
    walk::<P>(schema, strict)
}

fn named<P: Provider>(name: &str) -> Result<(), LimitError> {
    most::<P>("characters of name", name.chars().count(), P::LIMITS.name_characters)?;
    let allowed = |c: char| c.is_ascii_alphanumeric() || c == '_' || P::LIMITS.name_others.contains(c);
    let starts = |c: char| !P::LIMITS.name_starts_as_word || c.is_ascii_alphabetic() || c == '_';
    if name.starts_with(starts) && name.chars().all(allowed) {
        Ok(())
    } else {
        Err(LimitError::Name { provider: P::NAME, name: name.to_owned() })
    }
}

/// What is counted over a whole schema.
#[derive(Default)]
struct Total {
    properties: usize,
    optional: usize,
    unions: usize,
    enum_values: usize,
    characters: usize,
}

/// A schema in a schema: where it is, and how many objects it is in, itself counted.
struct Node<'a> {
    schema: &'a Map<String, Value>,
    at: String,
    level: usize,
}

/// Visits every schema in a schema; with a stack of its own, since a definition may be nested to any depth.
fn walk<P: Provider>(schema: &Value, strict: bool) -> Result<(), LimitError> {
    let mut total = Total::default();
    let mut open = vec![(schema, String::new(), 0_usize)];
    while let Some((schema, at, above)) = open.pop() {
        let Some(map) = schema.as_object() else { continue };
        let object = has_type(schema, "object") || map.contains_key("properties");
        let node = Node { schema: map, at, level: above.saturating_add(usize::from(object)) };
        let characters = offered(&node)?;
        if strict {
            closed::<P>(&node, object)?;
            count::<P>(&node, characters, &mut total)?;
        }
        push_children(&node, &mut open);
    }
    let limits = P::LIMITS;
    most::<P>("properties", total.properties, limits.properties)?;
    most::<P>("optional properties", total.optional, limits.optional)?;
    most::<P>("unions", total.unions, limits.unions)?;
    most::<P>("enum values", total.enum_values, limits.enum_values)?;
    most::<P>("characters of names and enum values", total.characters, limits.characters)
}

/// The characters of an enum's values, of which there must be some and no two the same.
fn offered(node: &Node<'_>) -> Result<usize, LimitError> {
    let Some(values) = node.schema.get("enum").and_then(Value::as_array) else { return Ok(0) };
    let texts: Vec<_> = values.iter().filter_map(Value::as_str).collect();
    let distinct: BTreeSet<_> = texts.iter().collect();
    if values.is_empty() || distinct.len() < texts.len() {
        return Err(LimitError::Enum { at: node.at.clone() });
    }
    Ok(texts.iter().map(|text| text.chars().count()).fold(0, usize::saturating_add))
}

fn closed<P: Provider>(node: &Node<'_>, object: bool) -> Result<(), LimitError> {
    if object && node.schema.get("additionalProperties") != Some(&Value::Bool(false)) {
        return Err(LimitError::NotClosed { provider: P::NAME, at: node.at.clone() });
    }
    match P::LIMITS.keywords.iter().find(|keyword| node.schema.contains_key(**keyword)) {
        Some(keyword) => Err(LimitError::Keyword { provider: P::NAME, keyword, at: node.at.clone() }),
        None => most::<P>("nested objects", node.level, P::LIMITS.levels),
    }
}

fn count<P: Provider>(node: &Node<'_>, enum_characters: usize, total: &mut Total) -> Result<(), LimitError> {
    let list = |key: &str| node.schema.get(key).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
    let values = list("enum").len();
    if values > 250 {
        most::<P>("characters in an enum of more than 250 values", enum_characters, P::LIMITS.long_enum_characters)?;
    }
    let required: BTreeSet<_> = list("required").iter().filter_map(Value::as_str).collect();
    for name in node.schema.get("properties").and_then(Value::as_object).into_iter().flat_map(Map::keys) {
        total.properties = total.properties.saturating_add(1);
        total.optional = total.optional.saturating_add(usize::from(!required.contains(name.as_str())));
        total.characters = total.characters.saturating_add(name.chars().count());
    }
    let union = node.schema.contains_key("anyOf") || node.schema.get("type").is_some_and(Value::is_array);
    total.unions = total.unions.saturating_add(usize::from(union));
    total.enum_values = total.enum_values.saturating_add(values);
    total.characters = total.characters.saturating_add(enum_characters);
    Ok(())
}

fn push_children<'a>(node: &Node<'a>, open: &mut Vec<(&'a Value, String, usize)>) {
    let mut push = |at: String, schema: &'a Value| open.push((schema, at, node.level));
    for (key, value) in node.schema {
        match (key.as_str(), value) {
            ("properties" | "$defs" | "definitions", Value::Object(schemas)) => {
                schemas.iter().for_each(|(name, schema)| push(format!("{}/{key}/{name}", node.at), schema));
            }
            ("anyOf" | "allOf" | "oneOf" | "prefixItems", Value::Array(schemas)) => {
                schemas.iter().enumerate().for_each(|(i, schema)| push(format!("{}/{key}/{i}", node.at), schema));
            }
            ("items", schema) => push(format!("{}/{key}", node.at), schema),
            _ => {}
        }
    }
}

fn has_type(schema: &Value, name: &str) -> bool {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|found| found == name),
        found => found.is_some_and(|found| found == name),
    }
}

fn most<P: Provider>(what: &'static str, found: usize, most: usize) -> Result<(), LimitError> {
    if found > most { Err(LimitError::Most { provider: P::NAME, what, most, found }) } else { Ok(()) }
}
