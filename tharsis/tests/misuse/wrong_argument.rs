use tharsis::prelude::*;

#[remote]
fn square(x: i64) -> i64 {
    x * x
}

#[remote]
fn name(x: i64) -> String {
    x.to_string()
}

fn main() {
    let wrong_type = square::remote("three");
    let wrong_reference = square::remote(name::remote(3));
    let wrong_count = square::remote(1, 2);
}
