//! I5: short drivers of one node in parallel, each in a namespace of its own.

use std::collections::BTreeSet;
use std::process::{Child, Command, ExitCode, Stdio};
use tharsis::prelude::*;
use tharsis_scenarios::{Mode, SOON, Scenario, await_file, await_within, mark, marks, open_gate, scenarios};

pub const ALL: &[Scenario] = scenarios![
    Processes:
        i5_drivers_see_no_names_variables_or_workers_of_others;
];

/// The socket of the node whose driver this process is.
const SOCKET: &str = "THARSIS_TEST_TENANT_SOCKET";
/// The folder in which the drivers meet.
const FOLDER: &str = "THARSIS_TEST_TENANT_FOLDER";
/// The number of this driver.
const TENANT: &str = "THARSIS_TEST_TENANT";
const TENANTS: usize = 20;

/// Keeps the number of its driver.
struct Keeper(usize);

#[actor]
impl Keeper {
    fn new(tenant: usize) -> Self {
        Self(tenant)
    }

    /// The number, and the process of the actor.
    fn tell(&self) -> (usize, u32) {
        (self.0, std::process::id())
    }
}

/// The process of a worker, and the number of the driver whose environment it has.
#[remote]
fn look() -> (u32, Option<String>) {
    (std::process::id(), std::env::var(TENANT).ok())
}

/// Runs this process as one of the drivers, if the environment says so. It prints the processes of its
/// workers.
pub fn run_as_driver() -> Option<ExitCode> {
    let tenant: usize = std::env::var(TENANT).ok()?.parse().ok()?;
    let folder = std::env::var(FOLDER).ok()?;
    let init = init().address(std::env::var(SOCKET).ok()?).namespace(format!("tenant {tenant}"));
    let _runtime = init.start().unwrap();
    let keeper = Keeper::options().num_cpus(0.0).create("keeper", tenant).unwrap();
    let (mine, actor) = keeper.tell().get().unwrap();
    let (worker, variable) = look::options().num_cpus(0.0).remote().get().unwrap();
    mark(&format!("{folder}/ready"));
    // All names exist now, and all workers run.
    await_file(&format!("{folder}/gate"));
    let (found, _) = Keeper::options().find("keeper").unwrap().tell().get().unwrap();
    println!("{actor} {worker}");
    let is_right = mine == tenant && found == tenant && variable.is_none();
    Some(if is_right { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn i5_drivers_see_no_names_variables_or_workers_of_others(mode: Mode) {
    let session = mode.start(2);
    let start = |tenant: usize| -> Child {
        Command::new(std::env::current_exe().unwrap())
            .env(SOCKET, session.runtime().socket().unwrap())
            .env(FOLDER, session.path(""))
            .env(TENANT, tenant.to_string())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap()
    };
    let drivers: Vec<_> = (0..TENANTS).map(start).collect();
    await_within(6 * SOON, "all drivers run", || marks(&session.path("ready")) == TENANTS);
    open_gate(&session.path("gate"));
    let mut processes = BTreeSet::new();
    for driver in drivers {
        let ended = driver.wait_with_output().unwrap();
        assert!(ended.status.success(), "a driver has seen what is another's");
        let text = String::from_utf8(ended.stdout).unwrap();
        for process in text.split_whitespace() {
            assert!(processes.insert(process.to_owned()), "{process} works for two drivers");
        }
    }
    assert_eq!(processes.len(), 2 * TENANTS);
    session.await_quiet();
}
