//@ R2 E0451 fields `shared` and `marker` of struct `Lane` are private
#![allow(unreachable_code, unused_variables)]

use keepspan::{Lane, rule::Externalized};

fn permit<F>() -> Lane<'static, (), F, Externalized> {
    Lane { shared: todo!(), marker: std::marker::PhantomData }
}

fn main() {}
