//! `((x + 1) * 2).sum()` over random numbers: `cargo run --release --example axpb`.
//!
//! One fused task per chunk; nothing is stored but a number each. Options: see `common/mod.rs`; `--size` is
//! the number of elements (default 3.6e9: 29 GB as numbers).

use common::{Options, Outcome};
use std::time::Instant;
use tharsis::tensor::random::default_rng;

#[tharsis::main]
fn main() -> Outcome<()> {
    let options = Options::from_args(3_600_000_000)?;
    let place = options.start()?;
    let started = Instant::now();
    let count = options.size;
    let x = default_rng(1).random(&[count]);
    let total = options.compute(&place, &((&x + 1.0) * 2.0).sum(..), "axpb")?;
    let seconds = started.elapsed().as_secs_f64();
    println!("elements      {count}, {:.0} million a second", count as f64 / seconds / 1e6);
    println!("mean          {:.8} (expected 3)", total / count as f64);
    Ok(())
}
