//! The part of `deploy/slurm` that runs on each machine, with the variables that Slurm sets and real nodes on
//! addresses of the loopback interface.
//!
//! The program of the job is this one, so it brings its own `main`.

use crate::Behaviour;
use crate::home::{Ended, Home, await_that, kill, root, without_settings};
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::time::{Duration, Instant};
use tharsis::{Error, init, remote};

/// Tells this program that it is the program of the job, and the status that it ends with.
const PROGRAM_VARIABLE: &str = "TEST_OF_SLURM";
const MACHINES: usize = 3;
/// Long enough for a job on a busy machine, where its program alone may take twenty seconds.
const JOB_WAIT: Duration = Duration::from_secs(120);

/// The node on which it runs: the parent of its worker.
#[remote(num_cpus = 1)]
fn node_of_task() -> u32 {
    std::thread::sleep(Duration::from_millis(100));
    std::os::unix::process::parent_id()
}

pub const ALL: &[Behaviour] = behaviours![
    a_job_has_a_node_on_each_machine_and_leaves_nothing,
    the_status_of_the_program_is_that_of_the_job,
];

/// Runs as the program of a job, if this process is one.
pub fn run_as_program() -> Option<ExitCode> {
    let status: u8 = std::env::var(PROGRAM_VARIABLE).ok()?.parse().unwrap();
    if status == 0 {
        println!("nodes: {}", nodes_that_run_tasks().unwrap());
    }
    Some(ExitCode::from(status))
}

/// Submits tasks until every node has run one, or for twenty seconds.
fn nodes_that_run_tasks() -> Result<usize, Error> {
    let _runtime = init().address("auto").start()?;
    let (mut nodes, until) = (BTreeSet::new(), Instant::now() + Duration::from_secs(20));
    while nodes.len() < MACHINES && Instant::now() < until {
        let tasks: Vec<_> = (0..4 * MACHINES).map(|_| node_of_task::remote()).collect();
        for task in tasks {
            nodes.insert(task.get()?);
        }
    }
    Ok(nodes.len())
}

/// A job as Slurm would run it: the same script on each machine.
struct Job {
    home: Home,
    id: String,
    parts: Vec<Child>,
}

impl Job {
    fn start(number: u32, status: u8) -> Self {
        let home = Home::new();
        let id = format!("{}{number}", std::process::id());
        let script = root().join("deploy/slurm/node.sh");
        let program = Path::new(env!("CARGO_BIN_EXE_tharsis"));
        let path = format!("{}:{}", program.parent().unwrap().display(), std::env::var("PATH").unwrap());
        std::fs::create_dir(home.path("shared")).unwrap();
        let part = |rank: usize| {
            let own = home.path(&format!("machine-{rank}"));
            std::fs::create_dir(&own).unwrap();
            let mut part = Command::new("bash");
            without_settings(&mut part).arg(&script).arg(std::env::current_exe().unwrap()).env("PATH", &path);
            part.env("SLURM_PROCID", rank.to_string()).env("SLURM_NTASKS", MACHINES.to_string());
            part.env("SLURMD_NODENAME", format!("127.0.0.{}", 1 + rank)).env("SLURM_JOB_ID", &id);
            part.env("SLURM_SUBMIT_DIR", home.path("shared")).env("SLURM_TMPDIR", own);
            part.env("SLURM_CPUS_ON_NODE", "1").env("SLURM_MEM_PER_NODE", "600");
            part.env(PROGRAM_VARIABLE, status.to_string());
            part.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
        };
        let parts = (0..MACHINES).map(part).collect();
        Self { home, id, parts }
    }

    /// Running processes of the job.
    fn processes(&self) -> Vec<u32> {
        let all = procfs::process::all_processes().unwrap().flatten();
        let ours = all.filter(|process| {
            let runs = process.stat().is_ok_and(|stat| !matches!(stat.state, 'Z' | 'X'));
            let job = process.environ().ok().and_then(|all| all.get(OsStr::new("SLURM_JOB_ID")).cloned());
            runs && job.as_deref() == Some(OsStr::new(&self.id))
        });
        ours.map(|process| process.pid as u32).collect()
    }

    /// Waits for the end of all parts, and checks that nothing is left of them.
    fn end(&mut self) -> Vec<Ended> {
        let until = Instant::now() + JOB_WAIT;
        while self.parts.iter_mut().any(|part| part.try_wait().unwrap().is_none()) && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
        }
        let is_over = Instant::now() < until;
        if !is_over {
            self.processes().into_iter().for_each(|pid| kill(pid, "KILL"));
        }
        let parts = self.parts.drain(..);
        let ended: Vec<_> = parts.map(|part| Ended::of(part.wait_with_output().unwrap())).collect();
        let said: String = ended.iter().map(|part| format!("{}{}\n", part.out, part.err)).collect();
        assert!(is_over, "the job did not end within {JOB_WAIT:?}:\n{said}");
        await_that("no process is left", || self.processes().is_empty());
        for folder in ["shared", "machine-0", "machine-1", "machine-2"] {
            let left: Vec<_> = std::fs::read_dir(self.home.path(folder)).unwrap().flatten().collect();
            assert!(left.is_empty(), "{folder}: {left:?}");
        }
        ended
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        for pid in self.processes() {
            kill(pid, "KILL");
        }
    }
}

fn a_job_has_a_node_on_each_machine_and_leaves_nothing() {
    let mut job = Job::start(1, 0);
    let ended = job.end();
    assert!(
        ended.iter().all(|part| part.status == 0),
        "{}",
        ended.iter().map(|part| part.err.as_str()).collect::<String>()
    );
    assert_eq!(ended[0].out.trim(), format!("nodes: {MACHINES}"));
}

fn the_status_of_the_program_is_that_of_the_job() {
    let mut job = Job::start(2, 7);
    let ended = job.end();
    assert_eq!(ended.iter().map(|part| part.status).collect::<Vec<_>>(), [7, 0, 0]);
}
