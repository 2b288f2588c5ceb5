//! The way of a job's program to the nodes that run its tasks: from the node of its driver, unless it is
//! the node's own.
//!
//! Nodes of these clusters are this program. A driver of another one is a copy of this program with a byte
//! more, started with the socket of its node in its environment.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use tharsis::prelude::*;
use tharsis::{LocalCluster, NodeId, get_all};
use tharsis_cluster_tests::{SOON, Scenario, cluster_of, driver, scenarios, small_node};

/// Socket of the node to which this process is a driver, if it is one.
const SOCKET: &str = "THARSIS_CLUSTER_TEST_DRIVER_AT";
/// A resource of the second node alone.
const PRESS: &str = "press";

pub const ALL: &[Scenario] = scenarios![
    tasks_run_on_both_nodes_and_programs_are_fetched,
    a_node_of_the_same_program_fetches_nothing,
    e7_a_program_that_cannot_start_there_is_an_error,
];

#[remote]
fn program() -> (NodeId, String) {
    std::thread::sleep(std::time::Duration::from_millis(30));
    (context().unwrap().node(), std::env::current_exe().unwrap().display().to_string())
}

/// Two nodes; the second one has a press.
fn cluster() -> LocalCluster {
    let mut second = small_node(2.0);
    second.resources.set_custom(PRESS, 1.0).unwrap();
    cluster_of(vec![small_node(2.0), second])
}

/// The programs with which tasks ran, by node: first where the press is, and then on both.
fn programs() -> Result<BTreeMap<NodeId, HashSet<String>>, tharsis::Error> {
    // Fetched once, and then there for all.
    let (there, path) = program::options().resource(PRESS, 1.0).remote().get_timeout(SOON)?;
    let all: Vec<_> = (0..40).map(|_| program::options().spread().remote()).collect();
    let mut programs = BTreeMap::from([(there, HashSet::from([path]))]);
    for (node, path) in get_all(&all, Some(SOON.into()))? {
        programs.entry(node).or_default().insert(path);
    }
    Ok(programs)
}

/// Runs this process as a driver if the environment names its node: prints which programs ran where, or an
/// error.
pub fn run_as_driver() -> Option<ExitCode> {
    let runtime = init().address(std::env::var(SOCKET).ok()?).start_local().unwrap();
    let _entered = runtime.enter();
    match programs() {
        Ok(programs) => programs.iter().for_each(|(node, paths)| {
            paths.iter().for_each(|path| println!("{} {path}", node.0));
        }),
        Err(error) => println!("{:?} {error}", error.kind()),
    }
    // A task that does not need the press still runs.
    println!("then {}", program::remote().get_timeout(SOON).unwrap().0.0);
    Some(ExitCode::SUCCESS)
}

/// The lines of a driver of another program at the first node.
fn lines_of_another_program(cluster: &LocalCluster) -> (String, Vec<String>) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().canonicalize().unwrap().join("another");
    // The byte lies behind what the loader reads. Another process writes: what a trial beside this one starts
    // just now may still have our open files, and a program that is open for writing does not start.
    let line = "cp \"$0\" \"$1\" && echo >> \"$1\"";
    let copied =
        Command::new("sh").args(["-c", line]).arg(std::env::current_exe().unwrap()).arg(&path).status();
    assert!(copied.unwrap().success());
    let output = Command::new(&path).env(SOCKET, cluster.socket(0).unwrap()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    (path.display().to_string(), text.lines().map(str::to_owned).collect())
}

fn tasks_run_on_both_nodes_and_programs_are_fetched() {
    let cluster = cluster();
    let (path, lines) = lines_of_another_program(&cluster);
    let [first, second] = [0, 1].map(|index| format!("{} ", cluster.node(index).unwrap().0));
    let of = |node: &str| lines.iter().filter_map(|line| line.strip_prefix(node)).collect::<Vec<_>>();
    assert_eq!(of(&first), [&*path], "{lines:?}");
    let fetched = of(&second);
    assert!(fetched.len() == 1 && fetched[0].contains("/code/"), "{lines:?}");
    assert_eq!(lines.len(), 3, "{lines:?}");
}

fn files_in(folder: &Path) -> Vec<PathBuf> {
    std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect()
}

/// Its own program is that of the job, so the folder for others stays empty.
fn a_node_of_the_same_program_fetches_nothing() {
    let cluster = cluster();
    let runtime = driver(&cluster, 0);
    let _entered = runtime.enter();
    let own = HashSet::from([std::env::current_exe().unwrap().display().to_string()]);
    let nodes = [0, 1].map(|index| (cluster.node(index).unwrap(), own.clone()));
    assert_eq!(programs().unwrap(), BTreeMap::from(nodes));
    let code = cluster.socket(1).unwrap().with_file_name("code");
    let folders = files_in(&code);
    assert_eq!((folders.len(), files_in(&folders[0])), (1, Vec::new()), "the node's folder for programs");
}

/// A task whose resource only the second node has, where its program cannot be put: its `get` ends, and says
/// why.
fn e7_a_program_that_cannot_start_there_is_an_error() {
    let cluster = cluster();
    // A file replaces the folder in which the node keeps programs of other nodes, so it can fetch none.
    let code = cluster.socket(1).unwrap().with_file_name("code");
    std::fs::remove_dir_all(&code).unwrap();
    std::fs::write(&code, "in the way").unwrap();
    let (_, lines) = lines_of_another_program(&cluster);
    assert!(lines[0].starts_with("WorkerStartFailed "), "{lines:?}");
    let named = code.display().to_string();
    assert!(lines.iter().any(|line| line.contains(&named)), "{lines:?} do not say what is in the way");
    assert_eq!(lines.last(), Some(&format!("then {}", cluster.node(0).unwrap().0)));
}
