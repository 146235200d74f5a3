//! What the derive writes about a state struct: its lanes, their kinds and their routing.

use std::sync::{Mutex, PoisonError};

use crate::{
    Budget,
    journal::LaneRecord,
    kind::{Kind, KindId},
    policy::Governed,
    span::{NewSpan, Origin},
    window::Lender,
};

/// A lane's declaration in a state struct: `schema: Spans`.
///
/// It holds no text and cannot be made, cloned or replaced by a program; the text lives in the
/// [`Window`](crate::Window), and [`Window::lanes`](crate::Window::lanes) lends one typed handle per `Spans` field.
#[derive(Debug)]
pub struct Spans(());

/// A struct whose `Spans` fields are lanes. Implemented by `#[derive(ContextState)]`, never by hand.
#[diagnostic::on_unimplemented(
    message = "`{Self}` declares no lanes, so there is no window of it",
    label = "name a struct that has `#[derive(ContextState)]`"
)]
pub trait ContextState: Governed + Sized {
    /// One handle per lane, named as the fields are.
    type Lanes<'w, St: 'w, S: 'w>;
    #[doc(hidden)]
    const NAME: &'static str;
    #[doc(hidden)]
    const LANES: &'static [LaneSpec];
    #[doc(hidden)]
    const BUDGET: Option<Budget>;
    #[doc(hidden)]
    fn lend<'w, St, S>(lender: Lender<'w, St, S>) -> Self::Lanes<'w, St, S>;
    #[doc(hidden)]
    fn declare(spans: fn() -> Spans) -> Self;
}

pub(crate) fn spans() -> Spans {
    Spans(())
}

/// The marker type of one lane; the derive names it as the field.
pub trait Field: Sized + 'static {
    /// The kind the field's attribute gives it.
    type Kind: Kind;
    /// The struct that has it; a generic one is named by a marker of the same name.
    type State: Governed;
    #[doc(hidden)]
    const AT: (u16, &'static str);
    #[doc(hidden)]
    const SPEC: LaneSpec = LaneSpec::of::<Self>(&[], &[], false, false);
}

/// What is known of a lane at compile time: its name, kind and routes.
#[derive(Clone, Copy, Debug)]
pub struct LaneSpec {
    name: &'static str,
    kind: KindId,
    pinned: bool,
    tools: &'static [&'static str],
    roles: &'static [&'static str],
    on_error: bool,
    otherwise: bool,
}

impl LaneSpec {
    #[doc(hidden)]
    pub const fn of<F: Field>(
        tools: &'static [&'static str],
        roles: &'static [&'static str],
        on_error: bool,
        otherwise: bool,
    ) -> Self {
        Self { name: F::AT.1, kind: F::Kind::ID, pinned: F::Kind::PINNED, tools, roles, on_error, otherwise }
    }

    /// The field's name.
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The field's kind.
    pub const fn kind(&self) -> KindId {
        self.kind
    }

    /// Whether the lane's spans never leave because it is `pinned`.
    pub const fn pinned(&self) -> bool {
        self.pinned
    }
}

/// The lanes that a log names, as specs: `known` where they are the same. The specs of other logs are kept for as long as
/// the process runs, each set once, since lanes are named by static text everywhere.
pub(crate) fn recorded(lanes: &[LaneRecord], known: &'static [LaneSpec]) -> &'static [LaneSpec] {
    static KEPT: Mutex<Vec<&'static [LaneSpec]>> = Mutex::new(Vec::new());

    let same =
        |specs: &[LaneSpec]| specs.len() == lanes.len() && specs.iter().zip(lanes).all(|(spec, lane)| lane.is(spec));
    if same(known) {
        return known;
    }
    let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(specs) = kept.iter().find(|specs| same(specs)) {
        return specs;
    }
    let spec = |lane: &LaneRecord| LaneSpec {
        name: String::leak(lane.name.clone()),
        kind: lane.kind,
        pinned: lane.pinned,
        tools: &[],
        roles: &[],
        on_error: false,
        otherwise: false,
    };
    let specs: &'static [LaneSpec] = Vec::leak(lanes.iter().map(spec).collect());
    kept.push(specs);
    specs
}

/// The lane a span goes to, by the declared routing: `on_error`, then an exact tool name, then the longest `tools`
/// pattern, then `roles`, then `otherwise`. A model has no say in it.
pub(crate) fn route(lanes: &[LaneSpec], span: &NewSpan) -> Option<u16> {
    let position = |wanted: &dyn Fn(&LaneSpec) -> bool| lanes.iter().position(wanted);
    // Whatever role it is sent under: some providers take tool results from the user.
    let tool = span.name.as_deref().filter(|_| span.origin == Origin::Tool);
    let failed = || span.failed.then(|| position(&|lane| lane.on_error)).flatten();
    let exact = || tool.and_then(|name| position(&|lane| lane.tools.contains(&name)));
    let pattern = || {
        let name = tool?;
        let length = |lane: &LaneSpec| lane.tools.iter().filter_map(|pattern| matched(pattern, name)).max();
        let (at, _) = lanes
            .iter()
            .enumerate()
            .filter_map(|(at, lane)| length(lane).map(|length| (at, length)))
            .max_by_key(|(_, length)| *length)?;
        Some(at)
    };
    failed()
        .or_else(exact)
        .or_else(pattern)
        .or_else(|| position(&|lane| lane.roles.contains(&span.role.name())))
        .or_else(|| position(&|lane| lane.otherwise))
        .and_then(|at| u16::try_from(at).ok())
}

/// The length of the pattern's fixed part, when `b_*` matches.
fn matched(pattern: &str, name: &str) -> Option<usize> {
    let prefix = pattern.strip_suffix('*')?;
    name.starts_with(prefix).then_some(prefix.len())
}
