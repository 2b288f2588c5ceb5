use tharsis::prelude::*;

#[remote]
async fn numbers() -> impl Iterator<Item = u64> {
    0..3
}

fn main() {}
