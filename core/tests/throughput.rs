//! What a task costs in the machine alone; run it in release mode:
//! `cargo test --release -p tharsis-core --test throughput -- --ignored throughput --nocapture`

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tharsis_core::event::{Member, Output, OutputValue, TaskOutcome};
use tharsis_core::node::Config;
use tharsis_core::{Action, Event, MS, Node};
use tharsis_types::{
    ClientId, FunctionId, JobId, NodeId, ObjectId, Placement, RefId, Resources, RetryOn, TaskArgs, TaskClass,
    TaskId,
};

/// Counts the bytes in use.
struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        // SAFETY: as required of our caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as required of our caller.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const TASK_COUNT: u64 = 1_000_000;
const BATCH: u64 = 256;
const DRIVER: ClientId = ClientId(1);
const NODE: NodeId = NodeId(1);
const JOB: JobId = JobId(1);

struct Bench {
    node: Node,
    root: TaskId,
    now: u64,
    out: Vec<Action>,
    /// Runs that workers have and not finished.
    sent: Vec<(ClientId, u32)>,
    next_client: u32,
    finished: u64,
}

impl Bench {
    fn new() -> Self {
        let resources = Resources::cpus(2.0).unwrap();
        let member = Member { node: NODE, resources, labels: Vec::new() };
        let config = Config {
            member,
            store_bytes: 1 << 20,
            annex_bytes: 0,
            create_timeout: 1000 * MS,
            can_spill: false,
            high_water_bytes: u64::MAX,
            low_water_bytes: u64::MAX,
            relay_bytes_min: 1 << 20,
            lineage_bytes_max: 64 << 20,
        };
        let root = TaskId::root(JOB);
        let mut bench = Self {
            node: Node::new(config),
            root,
            now: MS,
            out: Vec::new(),
            sent: Vec::new(),
            next_client: 1,
            finished: 0,
        };
        bench.feed(Event::DriverJoined { client: DRIVER, job: JOB });
        let class = TaskClass {
            job: JOB,
            function: FunctionId(1),
            signature: 0,
            function_name: "nothing".into(),
            name: "nothing".into(),
            call_site: "bench.rs:1".into(),
            resources: Resources::cpus(1.0).unwrap(),
            priority: 0,
            returns: 1,
            max_retries: 3,
            retry_on: RetryOn::Nothing,
            timeout_ms: 0,
            max_calls: 0,
            placement: Placement::Default,
        };
        bench.feed(Event::ClassDefined { client: DRIVER, class: 0, definition: Ok(Arc::new(class)) });
        bench
    }

    fn feed(&mut self, event: Event) {
        self.node.handle(self.now, event, &mut self.out);
    }

    fn submit(&mut self, n: u64) {
        let args = TaskArgs { payload: [7; 8].into(), ..TaskArgs::default() };
        let task = self.root.child(n);
        self.feed(Event::Submitted {
            client: DRIVER,
            class: 0,
            task,
            tokens: [n].into_iter().collect(),
            args,
        });
    }

    /// The end of a batch, and what the workers and the driver do about it.
    fn turn(&mut self) {
        self.now += 10_000;
        self.node.settle(self.now, &mut self.out);
        let mut actions = std::mem::take(&mut self.out);
        for action in actions.drain(..) {
            match action {
                Action::StartWorker { start, .. } => {
                    self.next_client += 1;
                    self.feed(Event::WorkerReady { start, client: ClientId(self.next_client) });
                }
                Action::Run { client, run } => {
                    assert!(self.node.run(run).is_some());
                    self.sent.push((client, run));
                }
                Action::Deliver { token, object, .. } => {
                    self.finished += 1;
                    let reference = RefId { object, owner: NODE };
                    self.feed(Event::Released { client: DRIVER, token, reference });
                }
                _ => {}
            }
        }
        // The buffer is as long as the longest batch from here on.
        if self.out.is_empty() {
            self.out = actions;
        }
        let outcome = |byte: u8| {
            TaskOutcome::Returned(smallvec::smallvec![Output {
                value: OutputValue::Inline([byte].into()),
                nested: Vec::new(),
            }])
        };
        for (client, run) in std::mem::take(&mut self.sent) {
            self.feed(Event::Finished { client, run, run_ns: 200, outcome: outcome(1) });
        }
    }

    fn empty(&self) {
        self.node.check();
        assert_eq!(self.node.snapshot().object_count, 0);
        let task = ObjectId::output(self.root.child(0), 0);
        assert!(self.node.value(task).is_none());
    }
}

/// Time this thread has run on a CPU, which other processes do not stretch.
fn cpu_ns() -> u64 {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    stat.split_whitespace().next().unwrap().parse().unwrap()
}

fn stream(task_count: u64) -> f64 {
    let mut bench = Bench::new();
    let start = cpu_ns();
    for n in 0..task_count {
        bench.submit(n);
        if n % BATCH == BATCH - 1 {
            bench.turn();
        }
    }
    while bench.finished < task_count {
        bench.turn();
    }
    bench.empty();
    (cpu_ns() - start) as f64 / task_count as f64
}

/// Bytes a queued task, and nanoseconds a task, with all submitted before any starts.
fn backlog(task_count: u64) -> (f64, f64) {
    let mut bench = Bench::new();
    let before = IN_USE.load(Ordering::Relaxed);
    let start = cpu_ns();
    for n in 0..task_count {
        bench.submit(n);
    }
    let bytes = (IN_USE.load(Ordering::Relaxed) - before) as f64 / task_count as f64;
    while bench.finished < task_count {
        bench.turn();
    }
    bench.empty();
    (bytes, (cpu_ns() - start) as f64 / task_count as f64)
}

#[test]
fn a_task_that_is_queued_is_small() {
    let (bytes, _) = backlog(20_000);
    assert!(bytes < 400.0, "{bytes} bytes");
}

#[test]
#[ignore = "a measurement; say --ignored"]
fn throughput() {
    println!("stream: {:.0} ns a task in batches of {BATCH}", stream(TASK_COUNT));
    let (bytes, ns) = backlog(TASK_COUNT);
    println!("backlog of {TASK_COUNT}: {bytes:.0} bytes a queued task, {ns:.0} ns a task");
}
