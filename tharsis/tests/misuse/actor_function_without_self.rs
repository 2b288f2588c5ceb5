use tharsis::prelude::*;

struct Counter(u64);

#[actor]
impl Counter {
    fn new(count: u64) -> Self {
        Self(count)
    }

    fn limit() -> u64 {
        10
    }
}

fn main() {}
