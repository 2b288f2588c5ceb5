//! The client's side of the protocol, against a node in a thread.

#![allow(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

// The macros name the crate that users have.
extern crate tharsis_remote as tharsis;

mod loopback;
mod pace;
mod tasks;
