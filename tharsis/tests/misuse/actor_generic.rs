use tharsis::prelude::*;

struct Holder<T>(T);

#[actor]
impl<T> Holder<T> {
    fn new(value: T) -> Self {
        Self(value)
    }
}

fn main() {}
