//! A parameter server: workers fit a linear model, actors keep its parameters.
//! `cargo run --release --example parameter_server`
//!
//! Each worker is an actor with points of its own. In a round it reads the parameters from the servers,
//! computes the gradient over its points and sends it to them. A server is an actor with a part of the
//! parameters; when the gradients of all workers are there, it takes a step. The state of both stays where it
//! is: only parameters and gradients travel. The workers are members of a group: an allreduce tells each of
//! them the error over the points of all, so that they agree on the round that is the last.
//!
//! Options: `--size N` (points, default 1e6), `--workers N` (worker processes instead of threads),
//! `--nodes N` (so many nodes on this machine, a CPU each), `--address auto` (the node that runs on this
//! machine).

use common::{Options, Outcome};
use std::time::Instant;
use tharsis::collective::{self, Member, Reduce};
use tharsis::prelude::*;

const WORKERS: usize = 4;
const SERVERS: usize = 2;
/// Parameters of each server.
const PART: usize = 8;
const ROUNDS_MAX: usize = 200;
/// Mean square error that is small enough.
const ENOUGH: f64 = 1e-16;
/// Features are uniform in -1..1, so the curvature is 1/3 in each direction.
const STEP: f64 = 1.5;

/// Keeps a part of the parameters.
struct Server {
    parameters: Vec<f64>,
    sum: Vec<f64>,
    received: usize,
}

#[actor]
impl Server {
    fn new() -> Self {
        Self { parameters: vec![0.0; PART], sum: vec![0.0; PART], received: 0 }
    }

    fn parameters(&self) -> Vec<f64> {
        self.parameters.clone()
    }

    fn add(&mut self, gradient: Vec<f64>) {
        self.sum.iter_mut().zip(gradient).for_each(|(sum, part)| *sum += part);
        self.received += 1;
        if self.received == WORKERS {
            self.received = 0;
            for (parameter, sum) in self.parameters.iter_mut().zip(&mut self.sum) {
                *parameter -= STEP * std::mem::take(sum) / WORKERS as f64;
            }
        }
    }
}

/// Has points, and handles of the servers.
struct Worker {
    member: Member,
    servers: Vec<ServerHandle>,
    features: Vec<f64>,
    targets: Vec<f64>,
}

#[actor]
impl Worker {
    fn new(member: Member, servers: Vec<ServerHandle>, points: usize) -> Self {
        let mut state = member.rank() as u64;
        let features: Vec<f64> = (0..points * SERVERS * PART).map(|_| uniform(&mut state)).collect();
        let targets = features.chunks(SERVERS * PART).map(|point| dot(point, &truth())).collect();
        Self { member, servers, features, targets }
    }

    /// Computes and sends one gradient; returns the mean square of the errors of all workers before.
    fn round(&mut self) -> Result<f64, Error> {
        let read: Vec<_> = self.servers.iter().map(ServerHandle::parameters).collect();
        let parameters = get_all(&read, None)?.concat();
        let (gradient, loss) = self.gradient(&parameters);
        let parts = self.servers.iter().zip(gradient.chunks(PART));
        let sent: Vec<_> = parts.map(|(server, part)| server.add(part.to_vec())).collect();
        get_all(&sent, None)?;
        let losses = self.member.allreduce(&[loss], Reduce::Sum)?;
        Ok(losses[0] / self.member.size() as f64)
    }

    /// Rounds until the error is small enough, for all workers in the same round. Returns the error of each.
    fn fit(&mut self) -> Result<Vec<f64>, Error> {
        let mut losses = Vec::new();
        while losses.last().is_none_or(|loss| *loss > ENOUGH) && losses.len() < ROUNDS_MAX {
            losses.push(self.round()?);
        }
        Ok(losses)
    }
}

impl Worker {
    fn gradient(&self, parameters: &[f64]) -> (Vec<f64>, f64) {
        let (mut gradient, mut loss) = (vec![0.0; parameters.len()], 0.0);
        let each = 1.0 / self.targets.len() as f64;
        for (point, target) in self.features.chunks(parameters.len()).zip(&self.targets) {
            let error = dot(point, parameters) - target;
            loss += error * error * each;
            gradient.iter_mut().zip(point).for_each(|(sum, feature)| *sum += error * feature * each);
        }
        (gradient, loss)
    }
}

#[tharsis::main]
fn main() -> Outcome<()> {
    let options = Options::from_args(1_000_000)?;
    let _place = options.start()?;
    let started = Instant::now();
    let servers: Vec<_> = (0..SERVERS).map(|_| Server::options().spread().remote()).collect();
    let points = (options.size / WORKERS).max(1);
    let worker = |member| Worker::options().spread().remote(member, servers.clone(), points);
    let workers: Vec<_> = collective::group(WORKERS)?.into_iter().map(worker).collect();
    let fits: Vec<_> = workers.iter().map(WorkerHandle::fit).collect();
    let losses = get_all(&fits, None)?;
    if losses.iter().any(|of_worker| *of_worker != losses[0]) {
        return Err("the workers do not agree on the error".into());
    }
    let losses = &losses[0];
    for (round, loss) in losses.iter().enumerate().step_by(10) {
        println!("round {round:3}     mean square error {loss:.3e}");
    }
    let found: Vec<_> = servers.iter().map(ServerHandle::parameters).collect();
    let found = get_all(&found, None)?.concat();
    let error = found.iter().zip(truth()).map(|(found, truth)| (found - truth).abs()).fold(0.0, f64::max);
    println!("parameters    {} on {SERVERS} servers, largest error {error:.1e}", found.len());
    println!(
        "seconds       {:.3} for {} rounds of {WORKERS} workers",
        started.elapsed().as_secs_f64(),
        losses.len()
    );
    if error > 1e-6 {
        return Err(format!("the parameters are off by {error}").into());
    }
    Ok(())
}

/// The parameters behind the points.
fn truth() -> Vec<f64> {
    (0..SERVERS * PART).map(|at| at as f64 - 7.5).collect()
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

/// SplitMix64 (Steele, Lea, Flood 2014), as a number in -1..1.
fn uniform(state: &mut u64) -> f64 {
    *state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
    let z = (*state ^ (*state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 52) as f64 - 1.0
}
