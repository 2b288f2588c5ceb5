//! Objects: small and large puts and gets.

use super::statistics::{median, quantile};
use super::{Measurement, Options, floors, tasks};
use anyhow::{Context, Result, bail};
use std::time::Instant;
use tharsis::LocalCluster;
use tharsis::prelude::*;

/// Bytes of a small object.
const SMALL_BYTES: usize = 1000;
/// Bytes of a large object.
pub const LARGE_BYTES: usize = 1_000_000_000;

/// Reads of each large object; the first one finds the caches full of the copied bytes.
const GETS_PER_PUT: usize = 20;

/// put and get of a kilobyte.
pub fn small(options: &Options) -> Result<Measurement> {
    let rounds = if options.quick { 2_000 } else { 20_000 };
    let _runtime = tasks::runtime(options, 1)?;
    let value = Blob::from(vec![7u8; SMALL_BYTES]);
    let (mut puts, mut gets) = (Vec::with_capacity(rounds), Vec::with_capacity(rounds));
    for _ in 0..rounds {
        let started = Instant::now();
        let reference = put(&value)?;
        puts.push(started.elapsed().as_secs_f64() * 1e6);
        let started = Instant::now();
        let read = reference.get()?;
        gets.push(started.elapsed().as_secs_f64() * 1e6);
        if read.len() != SMALL_BYTES {
            bail!("the object has {} bytes", read.len());
        }
    }
    let (put_us, get_us) = (median(&mut puts), median(&mut gets));
    Ok(Measurement::new("object-small", put_us, "us", 0.0)
        .with("get_us", get_us)
        .with("put_p99_us", quantile(&puts, 0.99)))
}

#[remote]
fn make(bytes: usize) -> Blob {
    Blob::from(vec![7u8; bytes])
}

/// A gigabyte that a task made on one node, read by a driver on another.
pub fn transfer(options: &Options) -> Result<Measurement> {
    let bytes = if options.quick { LARGE_BYTES / 10 } else { LARGE_BYTES };
    let floor = floors::tcp_gb_s(bytes)?;
    let cluster = LocalCluster::start(2, 1.0, bytes as u64 * 5 / 2)?;
    let (mut rates, cold) = transfer_rates(&cluster, bytes)?;
    Ok(Measurement::new("transfer", median(&mut rates), "GB/s", floor).with("cold_gb_s", cold))
}

/// GB/s at which a driver on the first node reads objects of the second one: of all reads but the first, and
/// of that.
pub fn transfer_rates(cluster: &LocalCluster, bytes: usize) -> Result<(Vec<f64>, f64)> {
    let socket = cluster.socket(0).context("the first node is gone")?;
    let far = cluster.node(1).context("the second node is gone")?;
    let _runtime = tharsis::init().address(socket.display().to_string()).start()?;
    let mut rates = Vec::new();
    let mut cold = 0.0;
    for run in 0..6 {
        let object = make::options().node(far, false).remote(bytes);
        tharsis::wait(std::slice::from_ref(&object), Wait { fetch: false, ..Wait::default() })?;
        let started = Instant::now();
        let read = object.get()?;
        let rate = bytes as f64 / 1e9 / started.elapsed().as_secs_f64();
        if read.len() != bytes || read[bytes - 1] != 7 {
            bail!("the object is not what the task returned");
        }
        if run == 0 {
            cold = rate;
        } else {
            rates.push(rate);
        }
    }
    Ok((rates, cold))
}

/// put of a gigabyte into warm pages, and the cost of the first put.
pub fn large(options: &Options) -> Result<Measurement> {
    let bytes = if options.quick { LARGE_BYTES / 10 } else { LARGE_BYTES };
    let floor = floors::memcpy_gb_s(bytes);
    let cold_floor = floors::cold_memcpy_gb_s(bytes)?;
    let init = if options.embedded { tharsis::init().num_cpus(1.0) } else { tharsis::init().workers(1) };
    let _runtime = init.store_bytes(bytes as u64 * 5 / 2).start()?;
    let value = Blob::from(vec![7u8; bytes]);
    let mut rates = Vec::new();
    let (mut gets, mut first_gets) = (Vec::new(), Vec::new());
    let mut cold = 0.0;
    for run in 0..6 {
        let started = Instant::now();
        let reference = put(&value)?;
        let rate = bytes as f64 / 1e9 / started.elapsed().as_secs_f64();
        for get in 0..GETS_PER_PUT {
            let started = Instant::now();
            let read = reference.get()?;
            let us = started.elapsed().as_secs_f64() * 1e6;
            gets.push(us);
            if get == 0 {
                first_gets.push(us);
            }
            if read.len() != bytes || read[bytes - 1] != 7 {
                bail!("the object is not what was put");
            }
        }
        if run == 0 {
            cold = rate;
        } else {
            rates.push(rate);
        }
    }
    Ok(Measurement::new("object-large", median(&mut rates), "GB/s", floor)
        .with("get_us", median(&mut gets))
        .with("first_get_us", median(&mut first_gets))
        .with("cold_gb_s", cold)
        .with("cold_ratio", cold / cold_floor))
}
