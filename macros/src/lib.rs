//! The derive of `keepspan`. Use it through that crate, which re-exports it.

mod check;
mod errors;
mod expand;
mod model;
mod parse;

/// Makes a struct with named fields the state of a context window: every `Spans` field becomes a lane.
///
/// ```text
/// #[derive(ContextState)]
/// #[context(budget = 24_000)]
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
/// | `budget = 24_000` | the tokens the window may hold: an integer, the path of a `u64` constant, or arithmetic on them | none |
/// | `crate = path` | where the library is, when the dependency has another name or is reached through a re-export | `::keepspan` |
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
/// `pinned` keeps the lane's spans in the window for good; without it, a protected span may leave behind a pointer.
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
