//! Memory: tasks that take too much of it, and what must survive them (scenarios I1, I2).
//!
//! Nothing here comes near the memory of the machine: the nodes are given small limits, and a task stops by
//! itself at [`HOG_BYTES_MAX`].

mod control_group;

use control_group::ControlGroup;
use rustix::fs::{Advice, fadvise};
use std::fs;
use std::io::{Read, Write};
use std::process::{Command, ExitCode, Stdio};
use std::time::Duration;
use tharsis::prelude::*;
use tharsis_scenarios::{Mode, SOON, Scenario, await_within, processes};

/// The behaviours of this file.
pub const ALL: &[Scenario] = tharsis_scenarios::scenarios![
    Processes: i1_a_hog_dies_before_the_kernel_acts,
    i1_the_newest_that_can_run_again_goes_and_keeps_its_retries,
    i1_above_the_soft_limit_nothing_new_starts,
    i1_memory_of_the_machine_is_left_to_others,
    i1_a_task_may_not_take_more_than_it_said,
    i1_what_a_task_starts_counts_with_it,
    i1_the_kernel_would_kill_workers_first,
    i2_page_cache_does_not_count;
];

const MIB: u64 = 1 << 20;
/// Longer than the time between two readings of the memory.
const READING_WAIT: Duration = Duration::from_millis(800);
/// Memory that a hog takes if nobody stops it.
const HOG_BYTES_MAX: u64 = 300 * MIB;
/// The limit of nodes with a hog; their store is 64 MiB, mostly empty.
const LIMIT_BYTES: u64 = 200 * MIB;
/// Set for a driver that reads files in a control group: the folder of the files.
const READER_VARIABLE: &str = "THARSIS_TEST_READS";
/// Limit of that group, and files that are read in it: four times as much.
const GROUP_BYTES: u64 = 128 * MIB;
const FILE_BYTES: u64 = 64 * MIB;
const FILE_COUNT: u64 = 8;
/// Memory of the reader itself: worth killing it for.
const READER_BYTES: u64 = 32 * MIB;

/// Takes memory, a MiB at a time, and says in a file that it has begun.
#[remote]
fn hog(bytes: u64, started: String) -> u64 {
    append(&started, "x");
    let mut all = Vec::new();
    while (all.len() as u64) * MIB < bytes {
        all.push(vec![7_u8; MIB as usize]);
        // So that a look at it is not later than the last byte, as with real work.
        std::thread::sleep(Duration::from_millis(1));
    }
    all.iter().map(|part| u64::from(part[part.len() / 2])).sum::<u64>() / 7
}

/// Has another process take memory: `tail` keeps what it is to print, here until nobody cares.
#[remote]
fn starts_hog(started_with: String, bytes: u64, pid_file: String) -> bool {
    let hog = format!("echo $$ >'{pid_file}'; head -c {bytes} /dev/zero | tail -c {bytes} | sleep 60");
    Command::new("sh")
        .args(["-c", &format!("{started_with}sh -c \"$HOG\"")])
        .env("HOG", hog)
        .status()
        .unwrap()
        .success()
}

/// Has memory until a file appears.
#[remote]
fn keep(bytes: u64, started: String, end: String) -> u64 {
    let part = std::hint::black_box(vec![7_u8; bytes as usize]);
    append(&started, "x");
    while !fs::exists(&end).unwrap() {
        std::thread::sleep(Duration::from_millis(5));
    }
    part.iter().map(|byte| u64::from(*byte)).sum::<u64>() / 7
}

#[remote]
fn number_of_bytes(blob: Blob) -> usize {
    blob.len()
}

#[remote]
fn process() -> u32 {
    std::process::id()
}

/// Reads all files of a folder; a page cache that counted would be many times the limit.
#[remote]
fn read_all(folder: String) -> u64 {
    let mut buffer = vec![1; READER_BYTES as usize];
    let mut sum = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let mut file = fs::File::open(entry.unwrap().path()).unwrap();
        while let Ok(len @ 1..) = file.read(&mut buffer) {
            sum += len as u64;
        }
    }
    sum
}

/// A hog ends with its worker, long before the memory does; node, store and the others stay.
fn i1_a_hog_dies_before_the_kernel_acts(mode: Mode) {
    let session = mode.start_with(2, |init| init.memory_limit_bytes(LIMIT_BYTES));
    let _entered = session.enter();
    let started = session.path("started");
    let blob = tharsis::put(&Blob::from(vec![3; 2 * MIB as usize])).unwrap();
    let hogs = hog::options().max_retries(0).remote(HOG_BYTES_MAX, started.clone());
    let error = hogs.get().unwrap_err();
    assert_eq!(error.kind(), FailureKind::OutOfMemory, "{error}");
    let text = error.to_string();
    for part in ["200 MiB", "hog", "store", "node", "peak", "what to do"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert_eq!(fs::read_to_string(&started).unwrap(), "x", "it was not tried again");
    assert_eq!(number_of_bytes::remote(&blob).get().unwrap(), 2 * MIB as usize);
    drop((hogs, blob));
    session.await_quiet();
}

/// Of three tasks, the newest one that may run again goes, as often as it must, and none of its retries with
/// it.
fn i1_the_newest_that_can_run_again_goes_and_keeps_its_retries(mode: Mode) {
    let session = mode.start_with(3, |init| init.memory_limit_bytes(LIMIT_BYTES));
    let _entered = session.enter();
    let (started, end) = (session.path("keeps"), session.path("end"));
    let is_up = |path: &str, count: usize| fs::read_to_string(path).is_ok_and(|text| count <= text.len());
    let keepers = [0, 1].map(|retries| {
        let keeper = keep::options().max_retries(retries).remote(60 * MIB, started.clone(), end.clone());
        await_within(SOON, "a keeper has its memory", || is_up(&started, 1 + retries as usize));
        keeper
    });
    // With the keepers' it is too much; without them it fits.
    let tries = session.path("hogs");
    let hogs = hog::options().max_retries(1).remote(100 * MIB, tries.clone());
    // One more than its retries allow, if they counted.
    await_within(SOON, "the hog is tried again", || is_up(&tries, 3));
    append(&end, "x");
    for keeper in keepers {
        assert_eq!(keeper.get().unwrap(), 60 * MIB);
    }
    assert_eq!(hogs.get().unwrap(), 100);
    drop(hogs);
    session.await_quiet();
}

/// Above the soft limit a free CPU is not used while a task runs; at its end the next one starts.
fn i1_above_the_soft_limit_nothing_new_starts(mode: Mode) {
    let session =
        mode.start_with(2, |init| init.memory_limit_bytes(LIMIT_BYTES).memory_soft_limit_bytes(100 * MIB));
    let _entered = session.enter();
    let (started, end) = (session.path("keeps"), session.path("end"));
    let keeper = keep::remote(120 * MIB, started.clone(), end.clone());
    await_within(SOON, "the keeper has its memory", || fs::exists(&started).unwrap());
    std::thread::sleep(READING_WAIT);
    let next = process::remote();
    assert_eq!(next.get_timeout(1.0).unwrap_err().kind(), FailureKind::GetTimeout);
    append(&end, "x");
    assert_eq!(keeper.get().unwrap(), 120 * MIB);
    next.get().unwrap();
    drop((keeper, next));
    session.await_quiet();
}

/// Memory that is left to others counts as if the machine did not have it: a node that leaves all of it keeps
/// no worker that has some.
fn i1_memory_of_the_machine_is_left_to_others(mode: Mode) {
    let session = mode.start_with(2, |init| init.min_free_memory_bytes(u64::MAX));
    let _entered = session.enter();
    let hogs = hog::options().max_retries(0).remote(HOG_BYTES_MAX, session.path("started"));
    let error = hogs.get().unwrap_err();
    assert_eq!(error.kind(), FailureKind::OutOfMemory, "{error}");
    assert!(error.to_string().contains("the memory of the machine"), "{error}");
    drop(hogs);
    session.await_quiet();
}

/// A task that said what it needs ends when it takes more, however much the node has left.
fn i1_a_task_may_not_take_more_than_it_said(mode: Mode) {
    let session = mode.start(2);
    let _entered = session.enter();
    let started = session.path("started");
    let greedy = hog::options().memory_bytes(64 * MIB).max_retries(3).remote(HOG_BYTES_MAX, started.clone());
    let error = greedy.get().unwrap_err();
    assert_eq!(error.kind(), FailureKind::OutOfMemory, "{error}");
    let text = error.to_string();
    for part in ["hog took", "64 MiB", "peak", "`memory_bytes`"] {
        assert!(text.contains(part), "{part} is missing in {text}");
    }
    assert_eq!(fs::read_to_string(&started).unwrap(), "x", "it would take as much again");
    let modest = hog::options().memory_bytes(64 * MIB).remote(32 * MIB, started);
    assert_eq!(modest.get().unwrap(), 32);
    drop((greedy, modest));
    session.await_quiet();
}

/// A task that has the memory in another process ends like one that has it itself, and that process with it.
fn i1_what_a_task_starts_counts_with_it(mode: Mode) {
    for (limit, memory, said) in [(LIMIT_BYTES, None, "200 MiB"), (4096 * MIB, Some(64 * MIB), "64 MiB")] {
        let session = mode.start_with(2, |init| init.memory_limit_bytes(limit));
        let _entered = session.enter();
        for started_with in ["", "setsid "] {
            let pid_file = session.path(&format!("{started_with}pid"));
            let options = starts_hog::options().max_retries(0);
            let options = match memory {
                Some(bytes) => options.memory_bytes(bytes),
                None => options,
            };
            let hogs = options.remote(started_with.to_owned(), HOG_BYTES_MAX, pid_file.clone());
            let error = hogs.get_timeout(30.0).unwrap_err();
            assert_eq!(error.kind(), FailureKind::OutOfMemory, "{error}");
            assert!(error.to_string().contains(said), "{said} is missing in {error}");
            let pid = fs::read_to_string(&pid_file).unwrap().trim().parse().unwrap();
            await_within(SOON, "what it started is gone", || !processes::runs(pid));
        }
        session.await_quiet();
    }
}

/// If the kernel has to choose after all, it chooses workers, and never the node before them.
fn i1_the_kernel_would_kill_workers_first(mode: Mode) {
    let session = mode.start(1);
    let _entered = session.enter();
    let worker = process::remote().get().unwrap();
    let score = |pid: u32| -> i32 {
        fs::read_to_string(format!("/proc/{pid}/oom_score_adj")).unwrap().trim().parse().unwrap()
    };
    let (own, node) = (score(std::process::id()), score(session.report().pid));
    assert!(node <= own, "node {node}, driver {own}");
    assert_eq!(score(worker), 800);
    assert!(own < 800, "drivers of this user are not what workers are");
}

/// Files that were read fill the page cache of a container, which is no reason to kill anybody.
fn i2_page_cache_does_not_count(mode: Mode) {
    let session = mode.start(1);
    let group = match ControlGroup::create(GROUP_BYTES) {
        Ok(group) => group,
        Err(cause) => {
            tharsis_trials::not_run(format_args!("no control group can be made: {cause}"));
            return;
        }
    };
    let folder = session.path("files");
    fs::create_dir(&folder).unwrap();
    for number in 0..FILE_COUNT {
        let mut file = fs::File::create(format!("{folder}/{number}")).unwrap();
        let part = vec![number as u8; MIB as usize];
        (0..FILE_BYTES / MIB).for_each(|_| file.write_all(&part).unwrap());
        file.sync_all().unwrap();
        // Or it would be the page cache of this process that is read.
        fadvise(&file, 0, None, Advice::DontNeed).unwrap();
    }
    // It waits until it is in the group, and so is then all that it starts.
    let mut driver = Command::new(std::env::current_exe().unwrap())
        .env(READER_VARIABLE, &folder)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    group.add(driver.id()).unwrap();
    drop(driver.stdin.take());
    let output = driver.wait_with_output().unwrap();
    let told = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{told}");
    assert_eq!(told.trim(), format!("{} bytes by one worker", 2 * FILE_BYTES * FILE_COUNT));
    let peak = group.peak_bytes().unwrap();
    assert!(GROUP_BYTES / 100 * 98 < peak, "the files have filled the group: {peak} of {GROUP_BYTES}");
}

/// Runs the driver of a scenario, if this process is one.
pub fn run_as_driver() -> Option<ExitCode> {
    let folder = std::env::var(READER_VARIABLE).ok()?;
    let waited = std::io::stdin().read_to_end(&mut Vec::new());
    waited.expect("the test closes it");
    let store_bytes = 16 * MIB;
    let session = tharsis::init().workers(1).store_bytes(store_bytes).scratch(format!("{folder}-node"));
    let runtime = session.start().expect("the node starts in the group");
    let before = process::remote().get().expect("a worker");
    // Twice: files that are read again count as in use for the kernel, and not for us.
    let read = (0..2)
        .map(|_| read_all::options().max_retries(0).remote(folder.clone()).get().expect("nobody is killed"));
    let sum: u64 = read.sum();
    let is_same = process::remote().get().expect("a worker") == before && processes::runs(before);
    println!("{sum} bytes by {}", if is_same { "one worker" } else { "several workers" });
    drop(runtime);
    Some(ExitCode::SUCCESS)
}

fn append(path: &str, text: &str) {
    let mut file = fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}
