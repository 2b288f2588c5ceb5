//! Functions of the program give the same wherever they run: on threads, embedded, on worker processes, on two
//! nodes.
//!
//! The program is its own node and worker, so it brings its own `main`.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod faults;
mod groups;
mod rows;

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use tharsis::frame::DataFrame;
use tharsis::{LocalCluster, Runtime, init};

const STORE_BYTES: u64 = 128 << 20;

/// Where tasks run.
#[derive(Clone, Copy, Debug)]
enum Place {
    Threads,
    Embedded,
    Workers,
    Nodes,
}

/// What keeps a place.
struct Held {
    // Dropped first: the driver before the nodes.
    _runtime: Option<Runtime>,
    _cluster: Option<LocalCluster>,
}

impl Place {
    const ALL: [Place; 4] = [Place::Threads, Place::Embedded, Place::Workers, Place::Nodes];

    fn start(self) -> Held {
        let cluster = match self {
            Place::Nodes => Some(LocalCluster::start(2, 1.0, STORE_BYTES).unwrap()),
            _ => None,
        };
        let runtime = match (self, &cluster) {
            (Place::Threads, _) => None,
            (Place::Workers, _) => Some(init().workers(2).start().unwrap()),
            (_, Some(cluster)) => {
                let socket = cluster.socket(0).unwrap().display().to_string();
                Some(init().address(socket).start().unwrap())
            }
            _ => Some(init().start().unwrap()),
        };
        Held { _runtime: runtime, _cluster: cluster }
    }
}

/// A frame of several parts of these columns, so that several tasks have its rows.
fn in_parts(parts: impl IntoIterator<Item = DataFrame>) -> DataFrame {
    let parts: Vec<DataFrame> = parts.into_iter().collect();
    DataFrame::concat(&parts, true)
}

#[tharsis::main]
fn main() -> ExitCode {
    let tests: Vec<(&str, fn())> = [&rows::TESTS[..], &groups::TESTS[..], &faults::TESTS[..]].concat();
    let trials = Place::ALL.into_iter().flat_map(|place| {
        tests.iter().map(move |&(name, test)| {
            Trial::test(format!("{name}::{place:?}"), move || {
                let _held = place.start();
                test();
                Ok(())
            })
        })
    });
    // A program has one runtime at a time.
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
