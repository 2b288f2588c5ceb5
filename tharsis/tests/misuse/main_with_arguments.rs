#[tharsis::main]
fn main(count: u64) {}
