//! Runs of the tests of small workspaces: those that are interrupted or killed leave nothing behind, what is
//! wrong makes a run fail, and what was compiled is not compiled again.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod again;
mod forms;
mod interrupted;
mod refused;
mod workspace;
