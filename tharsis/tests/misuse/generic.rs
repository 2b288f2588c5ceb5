use tharsis::prelude::*;

#[remote]
fn same<T>(value: T) -> T {
    value
}

fn main() {}
