//! A pass: priced by the gate, decided by a model, checked, and applied in one commit. Where the gate refuses, a fallback
//! frees the space without a model.

mod admit;
mod apply;
mod ask;
mod error;
mod fallback;
mod index;
mod pass;
mod proposal;
mod undo;

pub(crate) use self::fallback::strategy_named;
pub use self::{
    admit::{Advice, Refusal},
    apply::{Apply, Outcome, Report},
    error::{ApplyError, FallBackError, ProposalError},
    fallback::{FallBack, Fallback, FellBack, FixedTemplate, LargestToolOutput, OldestFirst, SupersededReads},
    index::{Index, Offer},
    pass::Pass,
    proposal::{Preview, Proposal},
    undo::Undo,
};
