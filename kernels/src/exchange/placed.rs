//! For tests: exchanges whose results are made in offered memory.

use super::Exchange;
use crate::chunk::{Buffer, Chunk, LentBytes};
use crate::error::KernelError;
use crate::evaluate::{Place, Scratch};
use crate::site::Site;
use std::collections::BTreeSet;

/// Memory of a store: as many bytes as were asked for, where a buffer of its own has whole cache lines.
struct Lent(Buffer, usize);

impl AsRef<[u8]> for Lent {
    fn as_ref(&self) -> &[u8] {
        &self.0.bytes()[..self.1]
    }
}

impl AsMut<[u8]> for Lent {
    fn as_mut(&mut self) -> &mut [u8] {
        &mut self.0.elements_mut::<u8>()[..self.1]
    }
}

impl LentBytes for Lent {}

/// Runs an exchange whose site makes no difference, in memory of its own and in memory that it is offered:
/// the results are the same, and lie in the offers if the exchange says so.
pub(super) fn run_placed(
    exchange: &Exchange,
    args: &[Chunk],
    tables: &[Vec<Chunk>],
) -> Result<Vec<Chunk>, KernelError> {
    let site = Site { place: Place { origin: &[], extents: &[] }, stored: 0 };
    let made = exchange.run(site, args, tables, &mut Scratch::new())?;
    let mut scratch = Scratch::new();
    let mut offers = BTreeSet::new();
    for chunk in made.iter().filter(|chunk| !chunk.is_empty()) {
        let lent = Lent(Buffer::zeroed(chunk.len_bytes()), chunk.len_bytes());
        offers.insert(lent.as_ref().as_ptr().addr());
        scratch.offer(Buffer::lent(Box::new(lent)).unwrap());
    }
    let placed = exchange.run(site, args, tables, &mut scratch)?;
    assert_eq!(made.len(), placed.len());
    let mut used = BTreeSet::new();
    for (chunk, placed) in made.iter().zip(&placed) {
        assert_eq!((chunk.dtype(), chunk.shape()), (placed.dtype(), placed.shape()));
        assert_eq!(bytes(chunk), bytes(placed));
        used.extend((!placed.is_empty()).then(|| bytes(placed).as_ptr().addr()));
    }
    assert_eq!(used == offers, exchange.takes_places() || offers.is_empty(), "{exchange:?}");
    assert_eq!(scratch.has_offers(), used != offers, "{exchange:?}");
    Ok(placed)
}

/// The elements of a result, in whose chunk nothing lies between them.
fn bytes(chunk: &Chunk) -> &[u8] {
    let start = chunk.offset() * chunk.dtype().size_bytes();
    &chunk.buffer().bytes()[start..start + chunk.len_bytes()]
}
