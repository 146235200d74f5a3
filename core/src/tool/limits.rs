//! What each provider takes, in one table.

/// A provider's limits. Those from `properties` on hold for definitions in strict mode.
#[derive(Debug)]
pub struct Limits {
    /// The object with the name, as a JSON pointer into a definition.
    pub(super) tool: &'static str,
    /// The key of the schema in it.
    pub(super) schema: &'static str,
    /// Whether a definition is strict that does not say so; none where there is no such mode.
    pub(super) strict: Option<bool>,
    pub(super) name_characters: usize,
    /// Besides ASCII letters, digits and `_`.
    pub(super) name_others: &'static str,
    /// Whether a name starts with a letter or `_`.
    pub(super) name_starts_as_word: bool,
    pub(super) description_characters: usize,
    pub(super) properties: usize,
    pub(super) optional: usize,
    /// Values of several types, and `anyOf`.
    pub(super) unions: usize,
    /// Objects within objects.
    pub(super) levels: usize,
    pub(super) enum_values: usize,
    /// In an enum of more than 250 values.
    pub(super) long_enum_characters: usize,
    /// Of names and enum values together.
    pub(super) characters: usize,
    pub(super) keywords: &'static [&'static str],
}

const UNSTATED: usize = usize::MAX;

// OpenAI: "Structured Outputs: supported schemas" as recorded in February 2026 by jsonschemaprofiles.unitvectorylabs.com;
// `oneOf` and `patternProperties` as client libraries refuse them. Description: the API's own error text, "Expected a
// string with maximum length 1024". Older figures (100 properties, 5 levels, 500 enum values) are superseded.
pub(super) const OPENAI_CHAT: Limits = Limits {
    tool: "/function",
    schema: "parameters",
    strict: Some(false),
    name_characters: 64,
    name_others: "-",
    name_starts_as_word: false,
    description_characters: 1_024,
    properties: 5_000,
    optional: 0,
    unions: UNSTATED,
    levels: 10,
    enum_values: 1_000,
    long_enum_characters: 15_000,
    characters: 120_000,
    keywords: &[
        "allOf",
        "oneOf",
        "not",
        "if",
        "then",
        "else",
        "dependentRequired",
        "dependentSchemas",
        "patternProperties",
    ],
};

pub(super) const OPENAI_RESPONSES: Limits = Limits { tool: "", strict: Some(true), ..OPENAI_CHAT };

// Anthropic: "Structured outputs" on platform.claude.com, July 2026. The counts are over all strict tools of a request,
// of which there may be 20; how large an enum its grammar compiler takes is not stated. Name: as client libraries have it.
pub(super) const ANTHROPIC: Limits = Limits {
    schema: "input_schema",
    strict: Some(false),
    name_starts_as_word: false,
    optional: 24,
    unions: 16,
    keywords: &[
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "multipleOf",
        "minLength",
        "maxLength",
        "maxItems",
        "uniqueItems",
    ],
    ..PLAIN
};

// Gemini: the `FunctionDeclaration` references; where its interfaces differ, what all of them take.
pub(super) const GEMINI: Limits = Limits { schema: "parametersJsonSchema", name_others: "-", ..PLAIN };

// MCP: the tools page of 2025-11-25, a SHOULD.
pub(super) const MCP: Limits =
    Limits { schema: "inputSchema", name_characters: 128, name_others: "-.", name_starts_as_word: false, ..PLAIN };

const PLAIN: Limits = Limits {
    tool: "",
    schema: "",
    strict: None,
    name_characters: 64,
    name_others: "-",
    name_starts_as_word: true,
    description_characters: UNSTATED,
    properties: UNSTATED,
    optional: UNSTATED,
    unions: UNSTATED,
    levels: UNSTATED,
    enum_values: UNSTATED,
    long_enum_characters: UNSTATED,
    characters: UNSTATED,
    keywords: &[],
};
