//! Clusters of machines, played by network namespaces: the page that leads to one, cables that are pulled,
//! packets that are lost in one direction. Where namespaces cannot be made, the tests say so and do nothing.

mod field;
mod page;
mod primes;

use crate::Behaviour;
use crate::home::{self, await_that};
use field::Field;
pub use field::is_possible;
use page::the_page_leads_from_one_machine_to_ten;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::{Child, ExitCode, Stdio};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tharsis::prelude::*;

/// Set where this program is the driver of a test.
const DRIVER: &str = "MACHINES_DRIVER";
/// Seconds for which a lease lasts in these tests.
const LEASE_S: u64 = 4;
/// Steps of the driver, and of one of its branches.
const STEPS: u64 = 600;
const BRANCH: u64 = 150;
/// Milliseconds that a step takes.
const TASK_MS: u64 = 100;

pub const ALL: &[Behaviour] = behaviours![
    a_machine_that_is_cut_off_starts_no_work_of_others,
    a_machine_that_only_hears_is_dead_to_the_others,
    h7_seconds_of_silence_change_nothing,
];

/// With eleven machines it needs all cores.
pub const ALONE: &[Behaviour] = behaviours![the_page_leads_from_one_machine_to_ten];

/// Runs as the program of the page, or as the driver of a test, if this process is one.
pub fn run_as_program() -> Option<ExitCode> {
    if std::env::args().next().is_some_and(|name| name.ends_with(page::PROGRAM)) {
        primes::count_primes().unwrap();
        return Some(ExitCode::SUCCESS);
    }
    std::env::var(DRIVER).ok().map(|log| drive(&log))
}

/// Notes its start in the log and takes a while.
#[remote(max_retries = 20)]
fn step(number: u64, log: String) -> u64 {
    use std::io::Write;
    let node = context().unwrap().node();
    let line = format!("{node} {} {number}\n", now_ms());
    let mut file = std::fs::File::options().append(true).create(true).open(log).unwrap();
    file.write_all(line.as_bytes()).unwrap();
    std::thread::sleep(Duration::from_millis(TASK_MS));
    number * number
}

/// Steps that belong to the node on which this runs.
#[remote(max_retries = 20)]
fn branch(from: u64, to: u64, log: String) -> u64 {
    let steps: Vec<_> = (from..to).map(|number| step::remote(number, log.clone())).collect();
    get_all(&steps, None).unwrap().into_iter().sum()
}

/// The driver: steps in branches on whatever nodes there are, and the sum of their values. A branch has work
/// for its node alone for longer than a lease lasts.
fn drive(log: &str) -> ExitCode {
    let _runtime = init().address("auto").start().unwrap();
    let branch = |n: u64| branch::options().spread().remote(n * BRANCH, (n + 1) * BRANCH, log.to_owned());
    let tasks: Vec<_> = (0..STEPS / BRANCH).map(branch).collect();
    let sum: u64 = tasks.iter().map(|task| task.get_timeout(120.0).unwrap()).sum();
    println!("{sum}");
    ExitCode::SUCCESS
}

fn now_ms() -> u128 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_millis()
}

/// Machines with nodes of two CPUs; the first one is the head.
struct Cluster {
    field: Field,
}

impl Cluster {
    fn new(count: usize) -> Self {
        let field = Field::new(count);
        let lease = format!("--lease-ttl {LEASE_S}s");
        let head = field.machine(1);
        let started = head.must(&format!(
            "tharsis start --head --host 10.0.0.1 --port 7600 --num-cpus 2 --store 16MiB {lease}"
        ));
        let line = joining_line(&started);
        for number in 2..=count {
            field.machine(number).must(&format!("{line} --num-cpus 2 --store 16MiB"));
        }
        let cluster = Self { field };
        cluster.await_nodes(count);
        cluster
    }

    fn await_nodes(&self, count: usize) {
        await_that(&format!("{count} nodes"), || self.nodes().len() == count);
    }

    /// Ids of the nodes, as the head lists them.
    fn nodes(&self) -> BTreeSet<String> {
        let status = self.field.machine(1).must("tharsis status --json");
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        let nodes = status["nodes"].as_array().unwrap().iter();
        nodes.map(|node| node["node"].as_str().unwrap().to_owned()).collect()
    }

    /// The id of the node on a machine, as tasks see it.
    fn node(&self, number: usize) -> String {
        let status = self.field.machine(number).must("tharsis status --json");
        let status: serde_json::Value = serde_json::from_str(&status).unwrap();
        status["node"].as_str().unwrap().to_owned()
    }

    fn log(&self) -> PathBuf {
        self.field.machine(1).home.path("steps")
    }

    /// Starts the driver on the head, and waits until every machine has begun to work for it.
    fn drive(&self, machines: usize) -> Child {
        let program = std::env::current_exe().unwrap();
        let mut driver = self.field.machine(1).shell(&program.display().to_string());
        driver.env(DRIVER, self.log()).stdout(Stdio::piped()).stderr(Stdio::inherit());
        let driver = driver.spawn().unwrap();
        await_that("all machines work", || steps(&self.log()).len() == machines);
        driver
    }
}

/// When the steps of each node began, in ms since 1970.
fn steps(log: &Path) -> BTreeMap<String, Vec<u128>> {
    let mut found: BTreeMap<String, Vec<u128>> = BTreeMap::new();
    for line in std::fs::read_to_string(log).unwrap_or_default().lines() {
        let mut words = line.split(' ');
        let (node, at) = (words.next().unwrap(), words.next().unwrap().parse().unwrap());
        found.entry(node.to_owned()).or_default().push(at);
    }
    found
}

/// The line that a head prints for other machines.
fn joining_line(started: &str) -> String {
    let line = started.lines().find_map(|line| line.strip_prefix("Join another machine:"));
    line.unwrap_or_else(|| panic!("no line for other machines in:\n{started}")).trim().to_owned()
}

fn assert_sum(driver: Child) {
    let ended = home::end_of(driver);
    assert_eq!(ended.status, 0, "{}", ended.err);
    let sum: u64 = (0..STEPS).map(|number| number * number).sum();
    assert_eq!(ended.out.trim(), sum.to_string());
}

fn a_machine_that_is_cut_off_starts_no_work_of_others() {
    let cluster = Cluster::new(3);
    let far = cluster.node(3);
    let driver = cluster.drive(3);
    cluster.field.set_cable(3, false);
    let (cut, lease) = (now_ms(), u128::from(LEASE_S) * 1000);
    cluster.await_nodes(2);
    let dead = now_ms();
    println!("dead to the others {} ms after the cut", dead - cut);
    assert_sum(driver);
    let late = steps(&cluster.log())[&far].iter().filter(|at| cut + lease <= **at).count();
    assert_eq!(late, 0, "steps began on the machine after its lease was over");
    // It hears of its death, ends, and joins again as a new node.
    cluster.field.set_cable(3, true);
    let machine = cluster.field.machine(3);
    await_that("its node ends", || machine.run("tharsis status --json").status != 0);
    machine.must("tharsis start --address 10.0.0.1:7600 --num-cpus 2 --store 16MiB");
    cluster.await_nodes(3);
    assert_ne!(cluster.node(3), far);
}

fn a_machine_that_only_hears_is_dead_to_the_others() {
    let cluster = Cluster::new(3);
    let driver = cluster.drive(3);
    cluster.field.machine(3).set_mute(1, true);
    let cut = Instant::now();
    cluster.await_nodes(2);
    println!("dead to the others {:?} after the cut", cut.elapsed());
    assert_sum(driver);
    cluster.field.machine(3).set_mute(1, false);
    await_that("its node ends", || cluster.field.machine(3).run("tharsis status --json").status != 0);
}

/// Silences of half a lease, of each machine in turn, while work goes on.
fn h7_seconds_of_silence_change_nothing() {
    let cluster = Cluster::new(3);
    let before = cluster.nodes();
    let driver = cluster.drive(3);
    for number in [2, 3, 2] {
        cluster.field.set_cable(number, false);
        std::thread::sleep(Duration::from_secs(LEASE_S) / 2);
        cluster.field.set_cable(number, true);
        std::thread::sleep(Duration::from_secs(1));
    }
    assert_sum(driver);
    assert_eq!(cluster.nodes(), before, "nobody is declared dead");
}
