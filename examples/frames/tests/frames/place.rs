//! The places in which programs of tests run.

use libtest_mimic::Trial;
use tharsis::frame::DataFrame;
use tharsis::{LocalCluster, Runtime, init};
use tharsis_trials::trial;

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
pub fn in_parts(parts: impl IntoIterator<Item = DataFrame>) -> DataFrame {
    let parts: Vec<DataFrame> = parts.into_iter().collect();
    DataFrame::concat(&parts, true)
}

/// Each test of a list in each place.
pub fn everywhere(module: &str, tests: &[(&'static str, fn())]) -> Vec<Trial> {
    let in_place = |place: Place| {
        tests.iter().map(move |&(name, test)| {
            trial(format!("{module}::{name}::{place:?}"), move || {
                let _held = place.start();
                test();
            })
        })
    };
    Place::ALL.into_iter().flat_map(in_place).collect()
}
