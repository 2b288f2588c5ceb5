//! Cost of a task in the machine alone; run it in release mode:
//! `cargo test --release -p tharsis-core --test throughput -- --ignored throughput --nocapture`

#[allow(dead_code, reason = "not every test uses all of it")]
mod bench;

use bench::{Bench, cpu_ns};
use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// Bytes per queued task and nanoseconds per task, when all tasks are submitted before any starts.
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
