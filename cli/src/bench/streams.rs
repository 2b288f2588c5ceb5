//! Streams: items per second, and bytes per second of large ones.

use super::statistics::{median, quantile};
use super::{Measurement, Options, floors, tasks};
use anyhow::{Result, ensure};
use std::time::Instant;
use tharsis::prelude::*;

/// Workers for tasks, as in the benches of tasks; a stream has a worker of its own.
const WORKERS: usize = 2;
/// Bytes of a small item, and how many of them may exist that were not taken.
const SMALL_BYTES: usize = 100;
const SMALL_UNCONSUMED: u32 = 1_000;
/// Bytes of a large item.
const LARGE_BYTES: usize = 1_000_000;
/// Bytes of the memcpy that large items are compared with: out of any cache, as items in the store are.
const MEMCPY_BYTES: usize = 100_000_000;

/// The same bytes again and again: what an item costs is its way to the consumer.
#[remote]
fn items(count: usize, bytes: usize) -> impl Iterator<Item = Blob> {
    std::iter::repeat_n(Blob::from(vec![7_u8; bytes]), count)
}

/// Items of 100 bytes that a driver reads one after the other; `large_gb_s` of items of a megabyte, and its
/// ratio to a memcpy. The floor is that of messages over a socket.
pub fn stream(options: &Options) -> Result<Measurement> {
    let (small, large) = if options.quick { (20_000, 200) } else { (200_000, 2_000) };
    let floor = floors::socket_echo_per_s(small)?;
    let memcpy = floors::memcpy_gb_s(MEMCPY_BYTES);
    let _runtime = tasks::runtime(options, WORKERS)?;
    let (mut rates, mut speeds) = (Vec::new(), Vec::new());
    for run in 0..6 {
        let of_small = small as f64 / read_s(small, SMALL_BYTES, SMALL_UNCONSUMED)?;
        let of_large = (large * LARGE_BYTES) as f64 / 1e9 / read_s(large, LARGE_BYTES, 16)?;
        if run > 0 {
            rates.push(of_small);
            speeds.push(of_large);
        }
    }
    let speed = median(&mut speeds);
    Ok(Measurement::new("stream", median(&mut rates), "items/s", floor)
        .with("best", quantile(&rates, 1.0))
        .with("large_gb_s", speed)
        .with("large_ratio", speed / memcpy))
}

/// Seconds to read a stream to its end, from the first item on: the worker has started then.
fn read_s(count: usize, bytes: usize, unconsumed_max: u32) -> Result<f64> {
    let mut stream = items::options().unconsumed_max(unconsumed_max).remote(count + 1, bytes);
    let first = stream.next().map(|item| item.get()).transpose()?;
    ensure!(first.is_some(), "the stream has no items");
    let started = Instant::now();
    let mut read = 0;
    for item in stream {
        let item = item.get()?;
        ensure!(item.len() == bytes && item[bytes - 1] == 7, "an item is not what was made");
        read += 1;
    }
    ensure!(read == count, "{read} of {count} items came");
    Ok(started.elapsed().as_secs_f64())
}
