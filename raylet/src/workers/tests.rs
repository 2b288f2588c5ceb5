//! Tests of workers that do not start, or are refused.

use super::*;
use tharsis_object_store::bell::BELL_BOARD_BYTES;
use tharsis_object_store::{BellBoard, Segment};

/// Workers of a program that never connects, and writes output all the time.
fn workers_that_say_y(timeout: Duration) -> (Processes, Arc<Inbox>, tempfile::TempDir) {
    let program = ["/usr/bin/yes", "/bin/yes"].iter().find_map(|path| {
        let file = std::fs::File::open(path).ok()?;
        Some(Executable::new(file, PathBuf::from(path)))
    });
    let program = program.unwrap();
    let segment = Arc::new(Segment::anonymous(BELL_BOARD_BYTES).unwrap());
    let inbox = Arc::new(Inbox::new(BellBoard::at(&segment, 0).unwrap()));
    let find_program: FindProgram = Arc::new(move |_job| Ok(program.clone()));
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(LogBook::open(folder.path().join("logs")).unwrap());
    let socket = PathBuf::from("nowhere");
    let (scratch, gpus) = (Vec::new(), GpuNames::default());
    let starting = Starting { socket, find_program, timeout, log, scratch, gpus };
    (Processes::new(Arc::clone(&inbox), starting), inbox, folder)
}

fn failure_of(inbox: &Inbox, wanted: u64) -> Arc<Failure> {
    let started = Instant::now();
    loop {
        match inbox.take() {
            Some(Input::Event(Event::WorkerStartFailed { start, failure })) if start == wanted => {
                return failure;
            }
            Some(_) => {}
            None => std::thread::sleep(Duration::from_millis(1)),
        }
        assert!(started.elapsed() < Duration::from_secs(30), "nobody hears of it");
    }
}

/// The process of a worker, as soon as it has one.
fn pid_of(processes: &Processes, start: u64) -> u32 {
    loop {
        let pid = lock(&processes.shared.workers).table.get(&start).and_then(|worker| worker.pid);
        match pid {
            Some(pid) => return pid,
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}

#[test]
fn a_worker_that_does_not_connect_is_killed_and_its_output_is_in_the_failure() {
    let timeout = Duration::from_millis(200);
    let (processes, inbox, _folder) = workers_that_say_y(timeout);
    let started = Instant::now();
    processes.start(7, JobId(1), None, Vec::new());
    let failure = failure_of(&inbox, 7);
    assert!(timeout <= started.elapsed());
    assert_eq!(failure.kind, FailureKind::WorkerStartFailed, "{failure}");
    assert!(failure.message.contains("did not connect"), "{failure}");
    assert!(failure.log_tail.contains("y\ny\n"), "{}", failure.log_tail);
}

/// The node may have as many clients as it can, or no memory for rings: that is no fault of the others.
#[test]
fn a_thread_that_is_refused_does_not_end_the_process_that_it_shares() {
    let (processes, inbox, _folder) = workers_that_say_y(Duration::from_secs(60));
    let process = Some(ProcessNumber(3));
    [1, 2].into_iter().for_each(|start| processes.start(start, JobId(1), process, Vec::new()));
    let arrivals = processes.arrivals();
    let pid = arrivals.settled().table[&1].pid.unwrap();
    for start in [1, 2] {
        arrivals.arrived(start, pid, ClientId(start as u32)).unwrap();
    }
    arrivals.refused(ClientId(1), &Failure::new(FailureKind::StoreFull, "no rings"));
    let failure = failure_of(&inbox, 1);
    assert_eq!((failure.kind, &failure.message[..]), (FailureKind::WorkerStartFailed, "no rings"));
    std::thread::sleep(Duration::from_millis(100));
    let lives = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    assert!(!lives.contains(") Z "), "{lives}");
    assert!(lock(&processes.shared.workers).table.contains_key(&2), "its neighbour goes on");
    // The last one ends it.
    arrivals.refused(ClientId(2), &Failure::new(FailureKind::StoreFull, "no rings"));
    failure_of(&inbox, 2);
    assert!(lock(&processes.shared.workers).shared.is_empty());
    kill_group(pid);
}

/// The process ends by itself while its workers stand in the table. Whoever ends one of them meanwhile kills
/// by the id of the process, which another one must not have yet.
#[test]
fn a_process_keeps_its_id_until_its_workers_are_gone_from_the_table() {
    let (processes, inbox, _folder) = workers_that_say_y(Duration::from_secs(60));
    for (start, process) in [(1, None), (2, Some(ProcessNumber(3)))] {
        processes.start(start, JobId(1), process, Vec::new());
        let pid = pid_of(&processes, start);
        processes.arrivals().arrived(start, pid, ClientId(start as u32)).unwrap();
        let workers = lock(&processes.shared.workers);
        kill_group(pid);
        // A keeper that reaps too soon does so at once; one that waits for the table waits for this.
        let until = Instant::now() + Duration::from_millis(300);
        while Instant::now() < until {
            let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
            assert!(stat.is_ok(), "the id of worker {start} is free, and the table names it");
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(workers.table[&start].pid, Some(pid));
        drop(workers);
        failure_of(&inbox, start);
        let departure = processes.arrivals().left(ClientId(start as u32), false);
        assert_eq!(departure, Departure::Reported, "it is gone from the table");
    }
}

/// The loop takes none of it.
#[test]
fn output_that_nobody_takes_is_bounded() {
    let (processes, inbox, folder) = workers_that_say_y(Duration::from_secs(60));
    processes.start(1, JobId(1), None, Vec::new());
    let pid = pid_of(&processes, 1);
    // A worker that does not wait for its pipe has written far more than this by then.
    let until = Instant::now() + Duration::from_millis(500);
    while Instant::now() < until {
        std::thread::sleep(Duration::from_millis(20));
    }
    kill_group(pid);
    let (mut bytes, mut room) = (0, Vec::new());
    while let Some(input) = inbox.take() {
        if let Input::Log { text, room: taken, .. } = input {
            bytes += text.len();
            room.push(taken);
        }
    }
    assert!((1..=OUTPUT_BYTES_MAX).contains(&bytes), "{bytes} bytes of output wait");
    drop((room, folder));
}
