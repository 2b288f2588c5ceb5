#[tharsis::main(workers = 2)]
fn main() {}
