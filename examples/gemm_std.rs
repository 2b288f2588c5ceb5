//! `(a.dot(a.T) - a).std()` of a random matrix: `cargo run --release --features tensor --example gemm_std`.
//!
//! Products are made in tiles, and only half of the symmetric one. Options: see `common/mod.rs`; `--size` is
//! the number of rows and of columns (default 5000); `--memory 1e9` makes larger matrices run in a gigabyte,
//! computing tiles again.

use common::{Options, Outcome};
use std::time::Instant;
use tharsis::tensor::random::default_rng;

#[tharsis::main]
fn main() -> Outcome<()> {
    let options = Options::from_args(5_000)?;
    let place = options.start()?;
    let started = Instant::now();
    let n = options.size;
    let a = default_rng(7).random(&[n, n]);
    let spread = options.compute(&place, &(a.dot(&a.t()) - &a).std(..), "gemm-std")?;
    let rate = 2.0 * (n as f64).powi(3) / started.elapsed().as_secs_f64() / 1e9;
    println!("n             {n}, {rate:.1} GFLOP/s");
    println!("deviation     {spread:.6} (expected about {:.6})", (n as f64 / 18.0).sqrt());
    Ok(())
}
