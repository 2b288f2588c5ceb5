use tharsis::prelude::*;

struct Counter;

#[actor(max_restart = 1)]
impl Counter {
    fn new() -> Self {
        Self
    }
}

fn main() {}
