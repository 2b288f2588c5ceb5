//! Monte Carlo pi, beside the fastest hand-written loop: `cargo run --release --example pi -- [points]`.
use std::time::Instant;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{LocalExecutor, Tensor, execute};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let points: usize = std::env::args().nth(1).map_or(Ok(1_000_000_000), |text| text.parse())?;
    let executor = LocalExecutor::new(2, 200 << 20)?;
    for _ in 0..3 {
        let started = Instant::now();
        let x = default_rng(42).random(&[points, 2])?;
        let inside: Tensor = (&x * &x)?.sum(1)?.sqrt()?.less(1.0)?.count_nonzero(())?;
        let (results, metrics) = execute(&[&inside], &executor)?;
        let pi = 4.0 * results[0].item()?.to_f64() / points as f64;
        println!(
            "pi = {pi}, {:.3} s, {} tasks, peak {} bytes, bound {}",
            started.elapsed().as_secs_f64(),
            metrics.tasks,
            metrics.peak_bytes,
            metrics.bound_bytes
        );
        let started = Instant::now();
        let x = default_rng(42).random(&[points])?;
        let sum = ((x + 1.0)? * 2.0)?.sum(())?;
        let (results, metrics) = execute(&[&sum], &executor)?;
        println!(
            "axpb = {:?}, {:.3} s, {} tasks, peak {} bytes",
            results[0].item()?,
            started.elapsed().as_secs_f64(),
            metrics.tasks,
            metrics.peak_bytes
        );
    }
    Ok(())
}
