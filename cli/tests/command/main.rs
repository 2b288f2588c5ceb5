//! The `tharsis` command as a user runs it: real processes, their output and status, and what they leave
//! behind.

#![forbid(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "helpers of tests fail as tests do"
)]

#[path = "../home/mod.rs"]
mod home;

mod bad_input;
mod bench;
mod cookbook;
mod deploy;
mod doctor;
mod drain;
mod eval;
mod hosts;
mod identity;
mod nodes;
mod options;
mod pages;
mod port;
mod settings;
mod sql;
mod sql_terminal;
mod telemetry;
mod top;
mod upgrade;
