//! Tests of frames from outside: on every executor, against plain rows, over files and servers.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod common_types;
mod copies;
mod display;
mod elementwise;
mod executors;
mod file_forms;
mod foreign;
mod frames;
mod functions;
mod grammar;
mod groups;
mod json_arrays;
mod large_sorts;
mod numbers;
mod plain;
mod ranks;
mod reading;
mod reshape;
mod server;
mod skew;
mod small_memory;
mod sql;
mod sql_columns;
mod sql_frames;
mod sql_mistakes;
#[cfg(feature = "sqlite")]
mod sqlite;
mod storage;
mod streaming;
mod texts;
mod times;
mod times_joined;
mod windows;
mod writing;
mod zones;
