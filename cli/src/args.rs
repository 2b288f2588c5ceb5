//! What can be typed.

use clap::{Args as ClapArgs, Parser, Subcommand};
use std::path::PathBuf;

/// Call functions remotely and get futures: on one machine or on many.
#[derive(Debug, Parser)]
#[command(name = "tharsis", version, about, arg_required_else_help = true)]
pub struct Args {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Measure: each figure beside a floor from the same run.
    Bench {
        /// Which bench; `all` for the table.
        #[arg(default_value = "all")]
        name: String,
        /// One line of JSON each.
        #[arg(long)]
        json: bool,
        /// Workers as threads of this process.
        #[arg(long)]
        embedded: bool,
        /// A tenth of the work.
        #[arg(long)]
        quick: bool,
    },
    /// The process that `bench coldstart` starts.
    #[command(hide = true)]
    BenchFirst {
        /// `processes`, `embedded` or `nothing`.
        mode: String,
    },
    /// The other process of a floor.
    #[command(hide = true)]
    BenchPeer {
        /// Which floor.
        kind: String,
        /// Its argument.
        argument: String,
    },
    /// Run a node in the foreground.
    Node(NodeArgs),
    /// Start a node in the background.
    Start {
        /// Begin a cluster.
        #[arg(long, conflicts_with = "address", required_unless_present = "address")]
        head: bool,
        /// Join the cluster whose head is at HOST:PORT.
        #[arg(long, value_parser = host_and_port)]
        address: Option<String>,
        /// What the node has.
        #[command(flatten)]
        node: NodeArgs,
    },
    /// Show nodes, resources, the store, and what waits and why.
    Status {
        /// One JSON object.
        #[arg(long)]
        json: bool,
        /// Socket of the node to ask; by default the one that `start` made.
        #[arg(long)]
        socket: Option<PathBuf>,
    },
    /// Stop the node of this machine and its workers.
    Stop {
        /// Socket of the node to stop; by default the one that `start` made.
        #[arg(long)]
        socket: Option<PathBuf>,
    },
    /// Print the version.
    Version {
        /// One JSON object.
        #[arg(long)]
        json: bool,
    },
}

/// What a node has.
#[derive(Clone, Debug, ClapArgs)]
pub struct NodeArgs {
    /// Where it listens for drivers and workers; by default in the user's own folder.
    #[arg(long)]
    pub socket: Option<PathBuf>,
    /// CPUs it offers; by default those of the machine.
    #[arg(long, value_parser = amount, allow_negative_numbers = true)]
    pub num_cpus: Option<f64>,
    /// GPUs it offers.
    #[arg(long, value_parser = amount, allow_negative_numbers = true)]
    pub num_gpus: Option<f64>,
    /// Accept more GPUs than the machine has.
    #[arg(long)]
    pub allow_fake_resources: bool,
    /// Size of the object store, such as 512MiB or 4GB.
    #[arg(long, value_parser = bytes)]
    pub store: Option<u64>,
    /// Custom resources as JSON: '{"tpu": 2}'.
    #[arg(long, value_parser = resources)]
    pub resources: Option<CustomResources>,
    /// Labels: key=value, several with commas.
    #[arg(long, value_delimiter = ',', value_parser = label)]
    pub labels: Vec<(String, String)>,
    /// How much is logged.
    #[arg(long, default_value = "warn", value_parser = ["error", "warn", "info", "debug", "trace"])]
    pub log_level: String,
}

/// Custom resources by name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CustomResources(pub Vec<(String, f64)>);

fn host_and_port(text: &str) -> Result<String, String> {
    let (host, port) = text.rsplit_once(':').ok_or("expected HOST:PORT")?;
    if host.is_empty() || port.parse::<u16>().is_err() {
        return Err("expected HOST:PORT with a port from 1 to 65535".into());
    }
    Ok(text.to_owned())
}

fn amount(text: &str) -> Result<f64, String> {
    let amount: f64 = text.parse().map_err(|_| "expected a number".to_owned())?;
    tharsis_types::resources::units("amount", amount).map(|_| amount).map_err(|bad| bad.to_string())
}

fn label(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("expected key=value".into()),
    }
}

fn resources(text: &str) -> Result<CustomResources, String> {
    let map: std::collections::BTreeMap<String, f64> =
        serde_json::from_str(text).map_err(|cause| format!("expected a JSON object of numbers: {cause}"))?;
    for (name, amount) in &map {
        tharsis_types::resources::check_name(name).map_err(|bad| bad.to_string())?;
        tharsis_types::resources::units(name, *amount).map_err(|bad| bad.to_string())?;
    }
    Ok(CustomResources(map.into_iter().collect()))
}

/// A size in bytes: a number with a suffix.
fn bytes(text: &str) -> Result<u64, String> {
    const SUFFIXES: [(&str, u64); 10] = [
        ("KiB", 1 << 10),
        ("MiB", 1 << 20),
        ("GiB", 1 << 30),
        ("TiB", 1 << 40),
        ("KB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
        ("B", 1),
        ("", 1),
    ];
    let wrong =
        || "expected a size such as 512MiB; suffixes are B, KB, MB, GB, TB, KiB, MiB, GiB, TiB".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(digits);
    let (_, unit) = SUFFIXES.iter().find(|(name, _)| *name == suffix).ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let total = number.checked_mul(*unit).ok_or_else(wrong)?;
    if total < tharsis::machine::STORE_BYTES_MIN {
        return Err(format!("the smallest store is {} bytes", tharsis::machine::STORE_BYTES_MIN));
    }
    Ok(total)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Args, clap::Error> {
        Args::try_parse_from(std::iter::once(&"tharsis").chain(words))
    }

    #[test]
    fn bad_arguments_are_refused_with_flag_and_value() {
        let bad: &[(&[&str], &[&str])] = &[
            (&["start"], &["--head"]),
            (&["start", "--address", "somewhere"], &["--address", "somewhere", "HOST:PORT"]),
            (&["start", "--head", "--store", "4x"], &["--store", "4x", "MiB"]),
            (&["start", "--head", "--store", "1KiB"], &["--store", "smallest"]),
            (&["start", "--head", "--resources", "{\"CPU\":2}"], &["--resources", "CPU", "reserved"]),
            (&["start", "--head", "--labels", "k"], &["--labels", "k", "key=value"]),
            (&["start", "--head", "--log-level", "loud"], &["--log-level", "loud", "warn"]),
            (&["start", "--head", "--num-cpus", "-1"], &["--num-cpus"]),
            (&["start", "--head", "--num-cpu", "1"], &["--num-cpu", "--num-cpus"]),
        ];
        for (words, parts) in bad {
            let text = parse(words).unwrap_err().to_string();
            for part in *parts {
                assert!(text.contains(part), "{part} missing in: {text}");
            }
        }
    }

    #[test]
    fn sizes_have_suffixes() {
        assert_eq!(bytes("512MiB"), Ok(512 << 20));
        assert_eq!(bytes("4GB"), Ok(4_000_000_000));
        assert!(bytes("99999999999TiB").is_err());
        assert!(parse(&["start", "--head", "--num-cpus", "0"]).is_ok());
    }
}
