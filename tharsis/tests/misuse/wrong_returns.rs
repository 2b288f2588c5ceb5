use tharsis::prelude::*;

#[remote(num_returns = 3)]
fn pair() -> (u64, u64) {
    (1, 2)
}

fn main() {}
