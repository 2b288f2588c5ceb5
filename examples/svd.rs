//! Singular value decomposition of a tall random matrix, and a look at how well it multiplies back:
//! `cargo run --release --features tensor --example svd`.
//!
//! The rows are made again whenever they are needed, and never all in memory. Options: see `common/mod.rs`;
//! `--size` is the number of rows (default 1e7, with 32 columns).

use common::{Options, Outcome};
use std::time::Instant;
use tharsis::tensor::random::default_rng;

const COLUMNS: usize = 32;

#[tharsis::main]
fn main() -> Outcome<()> {
    let options = Options::from_args(10_000_000)?;
    let place = options.start()?;
    let started = Instant::now();
    let rows = options.size;
    let x = default_rng(3).random(&[rows, COLUMNS]);
    let (u, s, vt) = x.svd();
    let difference = ((u * s).matmul(&vt) - &x).abs().max(..);
    let largest = options.compute(&place, &difference, "svd")?;
    let seconds = started.elapsed().as_secs_f64();
    println!("rows          {rows} x {COLUMNS}, {:.2} million a second", rows as f64 / seconds / 1e6);
    println!("difference    {largest:.2e} at most");
    Ok(())
}
