use tharsis::prelude::*;

struct Counter(u64);

#[actor]
impl Counter {
    fn new(count: u64) -> Option<Self> {
        Some(Self(count))
    }
}

fn main() {}
