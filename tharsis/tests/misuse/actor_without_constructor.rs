use tharsis::prelude::*;

struct Counter(u64);

#[actor]
impl Counter {
    fn count(&self) -> u64 {
        self.0
    }
}

fn main() {}
