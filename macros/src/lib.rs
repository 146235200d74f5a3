//! The macros of `keepspan`. Use them through that crate, which re-exports them.

mod action;
mod check;
mod errors;
mod expand;
mod model;
mod parse;
mod policy;

/// Makes a struct with named fields the state of a context window: every `Spans` field becomes a lane.
///
/// ```text
/// #[derive(ContextState)]
/// #[context(budget = 24_000, fixed = 1_200, trigger = 20_000)]
/// struct Migration {
///     #[instruction]                                  rules:  Spans,
///     #[precondition(tools("describe_table", "db_*"))] schema: Spans,
///     #[negative_result(on_error)]                    failed: Spans,
///     #[evictable(otherwise)]                         work:   Spans,
///     #[derived]                                      recap:  Spans,
///     #[context(skip)]                                turn:   u32,
/// }
/// ```
///
/// # On the struct: `#[context(..)]`
///
/// | key | meaning | default |
/// | --- | --- | --- |
/// | `budget = 24_000` | the tokens that a request may take in all | none |
/// | `fixed = 1_200` | of these, in every request whatever is pruned: system prompt, tool definitions | 0 |
/// | `reserve = 4_000` | kept free for the model's output; the limit is the budget less this | 0 |
/// | `trigger = 20_000` | the utilization, fixed part included, from which pruning is due | 5/6 of the limit |
/// | `index = 600`, `rationale = 400` | what deciding a pass reads and writes | 1/40, 1/60 of the limit |
/// | `margin = 600` | what a pass must reclaim more than, net | 3/2 of the rationale |
/// | `keep = 2_000` | the newest tokens, which are never candidates | 0 |
/// | `policy = House` | the house policy it is under, as visible as the struct; see `policy!` | none |
/// | `crate = path` | where the library is, when the dependency has another name or is reached through a re-export | `::keepspan` |
///
/// Each number is in tokens: an integer, the path of a `u64` constant, or arithmetic on them. A budget that cannot work,
/// and a struct that breaks its policy, do not build: `cargo check` names the numbers or the field.
///
/// # On a field: its kind
///
/// A field whose type is written `Spans` (in any module, as `keepspan::Spans`) is a lane and has exactly one kind.
/// Where another derive owns an attribute of that name, write `#[context(precondition(..))]` instead.
///
/// | attribute | holds | keys |
/// | --- | --- | --- |
/// | `#[instruction]` | system text, house rules, the live task; it never leaves | routing |
/// | `#[precondition]` | what a later step's correctness depends on | routing, `pinned` |
/// | `#[invariant]` | what must hold throughout | routing, `pinned` |
/// | `#[constraint]` | a limit the work must respect | routing, `pinned` |
/// | `#[negative_result]` | what failed and why, refusals, "nothing there" | routing, `pinned` |
/// | `#[scope_qualifier]` | "production, not staging", "as of abc123" | routing, `pinned` |
/// | `#[evictable]` | diffs, exploratory reads, superseded plans | routing |
/// | `#[rationale]` | what pruning itself wrote | none |
/// | `#[derived]` | summaries | none |
///
/// `pinned` keeps the lane's spans in the window for good; without it, a protected span may leave behind a pointer that names it.
///
/// Every other field needs `#[context(skip)]` and a type that is `Default`: it is the program's own.
///
/// # Routing
///
/// Which lane a span goes to is declared, so a model has no say in it. The first that fits decides, in this order:
///
/// 1. `on_error`: results that failed, on one lane.
/// 2. `tools("describe_table")`: the tool of exactly this name.
/// 3. `tools("db_*")`: tools whose name begins so; the longest such pattern. `*` stands at the end only.
/// 4. `roles("user")`: spans of this role, one of `system`, `user`, `assistant`, `tool`.
/// 5. `otherwise`: all that is left, on one lane. It is required as soon as any lane is routed.
///
/// A lane without these keys gets only what the program pushes to it. A tool, a role, `on_error` or `otherwise` that
/// is given twice in a struct is an error, since the second would never be reached; so is `otherwise` where `roles`
/// name every role.
///
/// # What it writes
///
/// For `Migration`: the struct of handles `MigrationLanes<'w, St, S>`, with one field per lane that has the name,
/// visibility and documentation of yours, and the `ContextState` impl. The markers that messages name, such as
/// `schema`, are in the hidden module `migration_lanes`.
#[proc_macro_derive(
    ContextState,
    attributes(
        context,
        instruction,
        precondition,
        invariant,
        constraint,
        negative_result,
        scope_qualifier,
        evictable,
        rationale,
        derived
    )
)]
pub fn context_state(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    expand::derive(input).into()
}

/// Makes a struct with named fields, or with none, a request that changes the world outside: what its signature is made of,
/// and what has to be in the window before it runs.
///
/// ```text
/// #[derive(Action)]
/// #[action(state = Migration, requires(schema, target), destructive, consent, check = agrees)]
/// struct AlterColumn {
///     table: String,
///     #[signature(with = lower_case)]    column:   String,
///     #[signature(name = "to")]          new_type: String,
///     #[signature(skip)]                 asked_at: SystemTime,
/// }
///
/// fn agrees(request: &AlterColumn, held: &Held<'_>) -> Result<(), String> { .. }
/// ```
///
/// # On the struct: `#[action(..)]`
///
/// | key | meaning | default |
/// | --- | --- | --- |
/// | `state = Migration` | the struct of the windows that can permit it | required |
/// | `requires(schema, target)` | its lanes whose spans must be in the window; each of a protected kind, and visible from here (`pub(crate)`, where the state is in another module) | none |
/// | `destructive` | it cannot be taken back, so it runs on first-hand evidence only | it can be made good |
/// | `consent` | a person has to agree, once for each time it runs | nobody has to |
/// | `name = "alter_column"` | what records and messages call it, and what its signature begins with | the struct's name |
/// | `check = path` | `fn(&Self, &Held<'_>) -> Result<(), String>`: whether the required lanes speak of this very request | they do |
/// | `describe = path` | `fn(&Self) -> String`: the request in words, for whoever has to find out whether an attempt took effect; it goes on record | nothing |
/// | `crate = path` | where the library is, when the dependency has another name or is reached through a re-export | `::keepspan` |
///
/// # On a field: `#[signature(..)]`
///
/// The signature is made of the name and of every field, by the field's name, so the order of fields has no part in it.
/// A field's type is `Canonical`: numbers, texts, options, collections, JSON values, and types that derive it.
///
/// | key | meaning |
/// | --- | --- |
/// | `skip` | it differs when the same is asked again: a clock, a nonce, a trace id |
/// | `with = path` | `fn(&Field) -> impl Canonical` gives what stands for it |
/// | `name = "old_name"` | its name in the signature, as it was before it was renamed |
///
/// Two requests are the same when their signatures are. So skip only what has no part in what the request does.
///
/// # What it writes
///
/// The impls of `Action` and `Canonical`; do not derive `Canonical` as well.
#[proc_macro_derive(Action, attributes(action, signature))]
pub fn action(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    action::action(input).into()
}

/// Gives a struct or an enum its canonical form, so that a request can hold it.
///
/// ```text
/// #[derive(Canonical)]
/// enum Column {
///     Whole,
///     #[signature(name = "Int")]  Integer { bits: u8, #[signature(skip)] seen: Instant },
/// }
/// ```
///
/// A struct with named fields is a record, `struct Id(u64)` is its one value, any other tuple struct a list, and a struct
/// without fields an empty record. A variant without fields is the text of its name, any other a record of one entry, from
/// its name to what it holds. The type's own name has no part in it.
///
/// | where | key | meaning |
/// | --- | --- | --- |
/// | type | `#[signature(crate = path)]` | where the library is, when it is not at `::keepspan` |
/// | variant, named field | `#[signature(name = "old_name")]` | its name in the signature, as it was before it was renamed |
/// | field | `#[signature(skip)]` | it is left out |
/// | field | `#[signature(with = path)]` | `fn(&Field) -> impl Canonical` gives what stands for it |
#[proc_macro_derive(Canonical, attributes(signature))]
pub fn canonical(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(input as syn::DeriveInput);
    action::canonical(input).into()
}

/// Writes a house policy: a type that state structs name, as `#[context(policy = House)]`.
///
/// ```text
/// policy! {
///     /// What every agent of ours keeps to.
///     pub House {
///         requires(precondition => scope_qualifier),
///         pinned(constraint),
///         forbid(Escalation, Mutation),
///         max_budget = 100_000,
///     }
/// }
///
/// policy! {
///     /// For agents with access to production.
///     pub Strict: House {
///         present(instruction),
///         max_decision = 2_000,
///     }
/// }
/// ```
///
/// A policy stands alone or, after a colon, under another one: it adds to that, and a `max_` key above the other's does
/// not build. Kinds are named as their attributes are.
///
/// | key | what it asks |
/// | --- | --- |
/// | `requires(a => b, ..)` | no field of the kind `a` without one of the kind `b` in the same struct |
/// | `present(a, ..)` | at least one field of each kind |
/// | `pinned(a, ..)` | every field of these protected kinds is `pinned` |
/// | `forbid(Act, ..)` | not to be done, see below; what is not listed is permitted |
/// | `max_budget = 100_000` | the most that a budget may be, in tokens; a window without a budget does not open |
/// | `max_decision = 2_000` | the most that deciding a pass may cost, in tokens: index and rationale, as declared and, at run time, as measured |
/// | `crate = path` | nothing: where the library is, when not at `::keepspan` |
///
/// The acts are the types that a call names: `Escalation`, `Mutation`, `Authority`, `Override` and `AcceptLossy`; the fallbacks `OldestFirst`, `LargestToolOutput`,
/// `SupersededReads` and `FixedTemplate`; and of the tools that a pass offers a model, the providers `OpenAiChat`,
/// `OpenAiResponses`, `Anthropic`, `Gemini` and `Mcp`, and the forms `Static` and `Dynamic`.
///
/// A struct that breaks a policy, or one that the policy stands under, does not build; a forbidden act does not compile
/// where it is called. An episode's own budget is held to the policy when its window opens.
#[proc_macro]
pub fn policy(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    policy::policy(input.into()).into()
}
