//! The places in which programs of tests run.

use libtest_mimic::{Arguments, Trial};
use std::process::ExitCode;
use tharsis::frame::DataFrame;
use tharsis::{LocalCluster, Runtime, init};

const STORE_BYTES: u64 = 128 << 20;

/// The place where tasks run.
#[derive(Clone, Copy, Debug)]
enum Place {
    Threads,
    Embedded,
    Workers,
    Nodes,
}

/// The owners that keep a place.
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
#[allow(dead_code, reason = "not every program needs it")]
pub fn in_parts(parts: impl IntoIterator<Item = DataFrame>) -> DataFrame {
    let parts: Vec<DataFrame> = parts.into_iter().collect();
    DataFrame::concat(&parts, true)
}

/// Runs each program in each place, one after the other: a program has one runtime at a time.
pub fn run_everywhere(tests: &[(&'static str, fn())]) -> ExitCode {
    let trials = Place::ALL.into_iter().flat_map(|place| {
        tests.iter().map(move |&(name, test)| {
            Trial::test(format!("{name}::{place:?}"), move || {
                let _held = place.start();
                test();
                Ok(())
            })
        })
    });
    let arguments = Arguments { test_threads: Some(1), ..Arguments::from_args() };
    libtest_mimic::run(&arguments, trials.collect()).exit_code()
}
