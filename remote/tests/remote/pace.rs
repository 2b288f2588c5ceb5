//! Speed of the client's side, against a node in a thread. Run it by hand with `cargo test --release -p
//! tharsis-remote --test remote pace -- --ignored --nocapture`.

use crate::loopback::{Plan, start};
use std::time::Instant;
use tharsis_macros::remote;
use tharsis_remote::*;

#[remote]
fn nothing() {}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// Only the submissions, for a profiler.
#[test]
#[ignore = "a measurement"]
fn submissions() {
    let node = start(Plan { workers: 1, slots: 1, ahead: 64, ..Plan::default() });
    let _entered = node.enter();
    let mut samples = Vec::new();
    for _ in 0..300 {
        let started = Instant::now();
        let references: Vec<_> = (0..4000).map(|_| nothing::remote()).collect();
        samples.push(started.elapsed().as_secs_f64() * 1e6 / 4000.0);
        get_all(&references, None).unwrap();
    }
    println!("submit in bursts p50 {:.3} us", median(samples));
}

#[test]
#[ignore = "a measurement"]
fn pace() {
    let node = start(Plan { workers: 1, slots: 1, ahead: 64, ..Plan::default() });
    let _entered = node.enter();
    let latency = median(timed(20_000, || nothing::remote().get().unwrap()));
    println!("round trip p50 {latency:.2} us");
    // As many as fit into the ring, so that the speed of the node does not matter.
    let bursts = (0..20).map(|_| {
        let started = Instant::now();
        let references: Vec<_> = (0..4000).map(|_| nothing::remote()).collect();
        let submitted = started.elapsed().as_secs_f64() * 1e6 / 4000.0;
        get_all(&references, None).unwrap();
        submitted
    });
    println!("submit in bursts p50 {:.3} us", median(bursts.collect()));
    for _ in 0..3 {
        let count = 200_000;
        let started = Instant::now();
        let references: Vec<_> = (0..count).map(|_| nothing::remote()).collect();
        let submitted = started.elapsed();
        get_all(&references, None).unwrap();
        let all = started.elapsed();
        drop(references);
        let per = |t: std::time::Duration| t.as_secs_f64() * 1e6 / f64::from(count);
        println!(
            "submit {:.3} us each, to the end {:.3} us, with releases {:.3} us",
            per(submitted),
            per(all),
            per(started.elapsed())
        );
    }
    let value = Blob::from(vec![1; 1000]);
    let mut references = Vec::new();
    let puts = median(timed(20_000, || references.push(put(&value).unwrap())));
    let gets = median(references.iter().map(|r| timed(1, || r.get().unwrap())[0]).collect());
    println!("put of 1 kB p50 {puts:.2} us, get of own put p50 {gets:.2} us");
    let large = Blob::from(vec![1; 64 << 20]);
    let puts = median(timed(3, || put(&large).unwrap()));
    println!("put of 64 MiB: {:.1} GB/s", (64 << 20) as f64 / puts / 1e3);
    let many: Vec<_> = (0..10_000).map(|_| nothing::remote()).collect();
    wait(&many, Wait { num_returns: many.len(), ..Wait::default() }).unwrap();
    let started = Instant::now();
    get_all(&many, None).unwrap();
    println!("get of 10 000: {:.2} ms", started.elapsed().as_secs_f64() * 1e3);
}

fn timed<T>(count: usize, mut run: impl FnMut() -> T) -> Vec<f64> {
    (0..count)
        .map(|_| {
            let started = Instant::now();
            run();
            started.elapsed().as_secs_f64() * 1e6
        })
        .collect()
}
