//! SQL logic tests of the sessions of frames: files of statements with the answers that they must give.
//!
//! Each statement is planned, cut into stages and run as tasks: on threads, through the store of an embedded
//! runtime with each fragment as bytes, or on worker processes. Tables are cut into as many parts as there
//! are partitions, so that small ones are exchanged too.
//!
//! `cases` has files of our own, which `tests/cases.rs` runs everywhere. The program of this package runs the
//! public files of DataFusion:
//!
//! ```text
//! cargo run --release -p tharsis-sqllogic -- FOLDER [--on threads|embedded|workers|library] [--only TEXT]
//!     [--verbose] [--alone]
//! ```
//!
//! Each file runs in DataFusion alone first: what fails there, too, is no fault of tasks.
//!
//! | concern | module |
//! |---|---|
//! | where tasks run | [`place`] |
//! | sessions as the runner wants them | `engine` |
//! | values as texts | `cell` |
//! | a file, record by record | [`mod@file`] |
//! | tables of files that are not there | `absent` |
//! | counts of outcomes | [`report`] |

#![forbid(unsafe_code)]

mod absent;
mod cell;
mod engine;
pub mod file;
pub mod place;
pub mod report;
