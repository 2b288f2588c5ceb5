//! A hundred thousand actors in shared processes.

use super::{Measurement, Options, places, tasks};
use anyhow::{Result, bail};
use std::time::{Duration, Instant};
use tharsis::Runtime;
use tharsis::prelude::*;

/// Workers for tasks, as in the benches of tasks.
const WORKERS: usize = 2;
/// Actors that live at the same time: each is a client of the node, as its workers and the driver are, and a
/// node has room for 4 096 clients.
const ALIVE_MAX: usize = 4_000;
/// Workers that may be there when the next actors are created, so that all of these have room.
const LEFT_MAX: usize = 64;
/// The longest time in which actors without handles must have ended.
const END_WAIT: Duration = Duration::from_secs(60);

struct Count(u64);

#[actor(shared_process = true)]
impl Count {
    fn new() -> Self {
        Self(0)
    }

    fn next(&mut self) -> u64 {
        self.0 += 1;
        self.0
    }
}

/// One part of the actors, all of which have lived at the same time.
struct Wave {
    created_s: f64,
    ended_s: f64,
    bytes: u64,
}

/// Seconds in which so many actors in shared processes are created, answer a call each, and have ended; as
/// many at a time as a node has clients. `actor_bytes` is what each of the first wave takes in all processes,
/// `created_s` the part of the time until they have answered. The floor is that of as many bare threads.
pub fn many(options: &Options) -> Result<Measurement> {
    let actors = options.size;
    let parts = || (0..actors).step_by(ALIVE_MAX).map(|first| ALIVE_MAX.min(actors - first));
    let floor_s = parts().map(super::actors::threads_s).sum::<Result<f64>>()?;
    let runtime = tasks::runtime(options, WORKERS)?;
    // The first process of a program takes longer.
    wave(&runtime, WORKERS)?;
    let waves = parts().map(|part| wave(&runtime, part)).collect::<Result<Vec<_>>>()?;
    let created_s: f64 = waves.iter().map(|wave| wave.created_s).sum();
    let ended_s: f64 = waves.iter().map(|wave| wave.ended_s).sum();
    let each = waves.first().map_or(0.0, |wave| wave.bytes as f64 / actors.min(ALIVE_MAX) as f64);
    Ok(Measurement::new("actors-many", created_s + ended_s, "s", floor_s)
        .with("actors", actors as f64)
        .with("alive", actors.min(ALIVE_MAX) as f64)
        .with("created_s", created_s)
        .with("actor_bytes", each))
}

fn wave(runtime: &Runtime, actors: usize) -> Result<Wave> {
    crate::allocator::give_back();
    let before = places::family_bytes();
    let started = Instant::now();
    let counts: Vec<_> = (0..actors).map(|_| Count::remote()).collect();
    let first: Vec<_> = counts.iter().map(CountHandle::next).collect();
    if get_all(&first, None)?.iter().any(|number| *number != 1) {
        bail!("an actor was called before");
    }
    let created_s = started.elapsed().as_secs_f64();
    let bytes = places::family_bytes().saturating_sub(before);
    let ending = Instant::now();
    drop((counts, first));
    // The threads of the actors end a little later than these.
    let is_over = || -> Result<bool> {
        let report = runtime.report()?;
        Ok(report.task_count == 0 && report.worker_count <= LEFT_MAX)
    };
    while !is_over()? {
        if ending.elapsed() > END_WAIT {
            bail!("actors without handles live on");
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(Wave { created_s, ended_s: ending.elapsed().as_secs_f64(), bytes })
}
