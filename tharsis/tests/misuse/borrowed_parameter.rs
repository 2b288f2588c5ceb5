use tharsis::prelude::*;

#[remote]
fn length(text: &str) -> usize {
    text.len()
}

fn main() {}
