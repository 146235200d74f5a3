//! Replay: what keepspan would have done with a recorded session, and what a plain pruner would have lost.

mod ahead;
mod calls;
mod conversation;
mod late;
mod mentions;
pub mod outcome;
mod own;
mod prune;
mod run;
mod scratch;
pub mod script;
mod state;
pub mod table;

pub use self::{
    ahead::read,
    prune::name,
    run::{Replay, Settings},
    scratch::Scratch,
};
