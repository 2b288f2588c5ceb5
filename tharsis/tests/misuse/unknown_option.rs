use tharsis::prelude::*;

#[remote(num_cpu = 2)]
fn one() -> u64 {
    1
}

fn main() {}
