//! The program of the page, which has it as its `main`.

use std::collections::BTreeSet;
use tharsis::NodeId;
use tharsis::prelude::*;

/// The number of primes in a range, and the node that counted them.
#[remote(max_retries = 5)]
fn primes_in(from: u64, to: u64) -> (usize, NodeId) {
    let is_prime = |n: &u64| {
        let mut d = 2;
        while d * d <= *n && !n.is_multiple_of(d) {
            d += 1;
        }
        1 < *n && *n < d * d
    };
    ((from..to).filter(is_prime).count(), context().unwrap().node())
}

pub fn count_primes() -> Result<(), Error> {
    let init = match std::env::args().nth(1) {
        Some(address) => init().address(address),
        None => init(),
    };
    let _runtime = init.start()?;
    let part = |n: u64| primes_in::options().spread().remote(n * 12_500, (n + 1) * 12_500);
    let parts: Vec<_> = (0..400).map(part).collect();
    let (mut count, mut nodes) = (0, BTreeSet::new());
    for (primes, node) in get_all(&parts, None)? {
        count += primes;
        nodes.insert(node);
    }
    println!("{count} primes below 5000000, counted on {} nodes", nodes.len());
    Ok(())
}
