use tharsis::prelude::*;

struct Counter;

#[actor(groups(io = 2))]
impl Counter {
    fn new() -> Self {
        Self
    }

    #[method(group = oi)]
    fn read(&self) -> u64 {
        0
    }
}

fn main() {}
