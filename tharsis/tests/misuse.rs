//! Compiler messages for misuse of the attributes: the expected message is beside each case.
//!
//! `TRYBUILD=overwrite cargo test -p tharsis --test misuse` writes the messages again.

#[test]
fn misuse_is_explained() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
