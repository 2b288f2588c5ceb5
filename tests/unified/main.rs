//! A package without code. Cargo builds what it selects with the features that any of it asks for: one
//! package alone gets other ones than the whole workspace, so its dependencies would be compiled again after
//! a run of all tests. `./test PACKAGE` selects this one beside it, which depends on everything and is itself
//! not built.

fn main() {}
