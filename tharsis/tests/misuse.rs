//! Messages of the compiler about misuse of the attributes: each case has the message beside it.
//!
//! `TRYBUILD=overwrite cargo test -p tharsis --test misuse` writes the messages anew.

#[test]
fn misuse_is_explained() {
    trybuild::TestCases::new().compile_fail("tests/misuse/*.rs");
}
