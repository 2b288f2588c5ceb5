use tharsis::prelude::*;

#[remote]
fn text() -> impl std::fmt::Display {
    3
}

fn main() {}
