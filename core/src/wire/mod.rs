//! Conversations in the four formats that providers take, over JSON values.

pub mod validate;

pub use self::validate::validate;
