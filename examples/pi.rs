//! Monte Carlo pi over tensors, in this process: `cargo run --release --example pi`.
//!
//! Draws points in the unit square and counts those inside the quarter circle. The numbers are a function of
//! the seed and their position, so the estimate is the same to the last digit on threads, worker processes
//! and nodes; none of them is ever stored. Options: see `common/mod.rs`; `--size` is the number of points
//! (default 1e9).

use common::{Options, Outcome};
use std::time::Instant;
use tharsis::tensor::random::default_rng;

#[tharsis::main]
fn main() -> Outcome<()> {
    let options = Options::from_args(1_000_000_000)?;
    let place = options.start()?;
    let started = Instant::now();
    let points = options.size;
    let x = default_rng(42).random(&[points, 2]);
    let inside = (&x * &x).sum(1).sqrt().less(1.0).count_nonzero(..);
    let hits = options.compute(&place, &inside, "pi")?;
    let seconds = started.elapsed().as_secs_f64();
    let estimate = 4.0 * hits / points as f64;
    println!("points        {points}, {:.0} million a second", points as f64 / seconds / 1e6);
    println!("pi is about   {estimate:.8}");
    let expected = 1.64 / (points as f64).sqrt();
    println!("error         {:+.2e} (expected about {expected:.0e})", estimate - std::f64::consts::PI);
    Ok(())
}
