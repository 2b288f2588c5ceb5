use tharsis::prelude::*;

struct Counter;

impl Counter {
    #[remote]
    fn count(&self) -> u64 {
        0
    }
}

fn main() {}
