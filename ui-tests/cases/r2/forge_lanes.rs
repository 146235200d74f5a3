//@ R2 E0451 fields `shared` and `handles` of struct `Lanes` are private
#![allow(unreachable_code, unused_variables)]

use keepspan::{ContextState, Lanes, rule::Externalized};

fn permit<C: ContextState>(handles: C::Lanes<'static, (), Externalized>) -> Lanes<'static, C, (), Externalized> {
    Lanes { shared: todo!(), handles }
}

fn main() {}
