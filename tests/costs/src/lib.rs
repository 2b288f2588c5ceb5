//! Costs of units of work, in instructions: of a task, a call of an actor, a put, a record.
//!
//! Times differ from run to run and from machine to machine. Instructions of one thread whose input is fixed
//! do not: `valgrind --tool=callgrind` counts them, and [`ledger`] compares them with those in
//! `benches/costs.toml`. A unit that costs more than 2 % more fails the test, which names the functions that
//! have grown. Nothing here says whether a unit got faster: caches, branches and locks are not counted.
//!
//! Each script runs twice, with one number of units and with four times as many: what a unit costs must not
//! depend on how many there are. That holds on every machine; the numbers of the ledger hold for the compiler
//! that it names, which is that of a run of all tests: there, another one fails. Instructions in the C
//! library are compared where that and the kind of CPU are those of the ledger, too.
//!
//! | file | is |
//! |---|---|
//! | `machine.rs` | a node, or two, with drivers and workers that act at once |
//! | `scripts.rs` | the scripts: fixed work for the machine and the codecs |
//! | `callgrind.rs` | counts of a run, by function |
//! | `ledger.rs` | the file of the counts, and the comparison with it |

#![forbid(unsafe_code)]

pub mod callgrind;
pub mod ledger;
mod machine;
pub mod scripts;
