use tharsis::prelude::*;

struct Counter(u64);

#[actor]
impl Counter {
    fn new(count: u64) -> Self {
        Self(count)
    }

    fn finish(self) -> u64 {
        self.0
    }
}

fn main() {}
