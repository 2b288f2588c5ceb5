//! Options that the examples share: where their tasks run.

use tharsis::{LocalCluster, Runtime, init};

pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// Bytes of the store of each node of `--nodes`.
const STORE_BYTES: u64 = 256 << 20;

/// Options of the command line.
pub struct Options {
    workers: Option<usize>,
    nodes: usize,
    /// Whether plans are printed.
    pub explain: bool,
}

/// The runtime, for as long as it lives.
pub struct Place {
    // Dropped first: the driver before the nodes.
    _runtime: Runtime,
    _cluster: Option<LocalCluster>,
}

impl Options {
    /// The options that the program was given.
    pub fn from_args() -> Outcome<Options> {
        let mut options = Options { workers: None, nodes: 0, explain: false };
        let mut args = std::env::args().skip(1);
        while let Some(flag) = args.next() {
            if flag == "--explain" {
                options.explain = true;
                continue;
            }
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--workers" => options.workers = Some(value.parse()?),
                "--nodes" => options.nodes = value.parse()?,
                _ => return Err(format!("unknown option {flag}").into()),
            }
        }
        Ok(options)
    }

    /// Starts the runtime that they ask for.
    pub fn start(&self) -> Outcome<Place> {
        let cluster = match self.nodes {
            0 => None,
            nodes => Some(LocalCluster::start(nodes, 1.0, STORE_BYTES)?),
        };
        let init = match self.workers {
            Some(count) => init().workers(count),
            None => init(),
        };
        let address = cluster.as_ref().and_then(|cluster| cluster.socket(0));
        let init = match address {
            Some(socket) => init.address(socket.display().to_string()),
            None => init,
        };
        Ok(Place { _runtime: init.start()?, _cluster: cluster })
    }
}
