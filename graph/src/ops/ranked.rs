//! Elements at some places of the order of a tensor that lies in many chunks, without a sort of all others.
//!
//! As for a sort (`sort.rs`), samples cut the elements into buckets, and those of each bucket are counted.
//! Then it is known which buckets have the places: only their elements are taken from the chunks, and sorted.

use super::sort::{CountDealt, Known, Places, Samples, counts};
use crate::error::Error;
use crate::lower::{ExchangeStage, ExprId, Lowering};
use crate::node::{Meta, Operator};
use crate::ops::Resident;
use crate::plan::TensorSpec;
use crate::tiling::{AxisTiling, Tiling};
use std::sync::Arc;
use tharsis_kernels::exchange::{Exchange, SortMap};
use tharsis_kernels::order::Direction;

/// The elements of a tensor (n,) that a sort would put at some places: (k,).
#[derive(Clone, Debug)]
pub struct Ranked {
    /// The places, ascending, smaller than n.
    ranks: Arc<Vec<u64>>,
    known: Known,
}

/// Buckets of which the elements are taken.
#[derive(Debug, PartialEq)]
struct Choice {
    /// The numbers of the buckets, and the places in each that are asked for.
    buckets: Vec<(usize, Vec<u64>)>,
    /// Splitters that bound these buckets, by their numbers.
    splitters: Vec<usize>,
    /// Of what these splitters bound, whether it is one of the buckets.
    wanted: Vec<bool>,
}

impl Ranked {
    /// Elements at these places, which ascend and are smaller than the number of elements.
    pub fn new(ranks: Vec<u64>) -> Ranked {
        assert!(ranks.is_sorted(), "places of an order that do not ascend");
        Ranked { ranks: Arc::new(ranks), known: Known::Nothing }
    }
}

impl Choice {
    /// The buckets, which have these numbers of elements, that places are in.
    fn new(sizes: &[usize], ranks: &[u64]) -> Result<Choice, Error> {
        let mut choice = Choice { buckets: Vec::new(), splitters: Vec::new(), wanted: Vec::new() };
        let (mut bucket, mut start) = (0, 0);
        for &rank in ranks {
            while sizes.get(bucket).is_some_and(|&size| start + size as u64 <= rank) {
                start += sizes[bucket] as u64;
                bucket += 1;
            }
            if bucket == sizes.len() {
                return Err(Error::Internal(format!("place {rank} of {start} elements")));
            }
            match choice.buckets.last_mut() {
                Some((last, ranks)) if *last == bucket => ranks.push(rank - start),
                _ => choice.buckets.push((bucket, vec![rank - start])),
            }
        }
        let mut next = 0;
        for &(bucket, _) in &choice.buckets {
            if next < bucket {
                choice.wanted.push(false);
                choice.splitters.push(bucket - 1);
            }
            choice.wanted.push(true);
            next = bucket + 1;
            if next < sizes.len() {
                choice.splitters.push(bucket);
            }
        }
        if next < sizes.len() {
            choice.wanted.push(false);
        }
        assert_eq!(choice.wanted.len(), choice.splitters.len() + 1, "buckets and what bounds them differ");
        Ok(choice)
    }
}

impl Operator for Ranked {
    fn name(&self) -> &'static str {
        "partition"
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        match inputs[0].shape.len() {
            1 => Ok(Meta { shape: vec![self.ranks.len()], dtype: inputs[0].dtype }),
            _ => Err(Error::Internal("places of the order of other than one axis".to_owned())),
        }
    }

    fn measure(&self) -> Option<Arc<dyn Operator>> {
        match &self.known {
            Known::Nothing => Some(Arc::new(Samples { with_positions: false })),
            Known::Places(places) => Some(Arc::new(CountDealt { map: places.map(DIRECTION) })),
            Known::Counts(..) => None,
        }
    }

    fn measured(&self, measures: &Resident) -> Result<Arc<dyn Operator>, Error> {
        let known = match &self.known {
            Known::Places(places) => Known::Counts(places.clone(), Arc::new(counts(measures)?)),
            _ => Known::Places(Arc::new(Places::new(DIRECTION, measures, |_| BUCKETS)?)),
        };
        Ok(Arc::new(Ranked { known, ..self.clone() }))
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let Known::Counts(places, counts) = &self.known else {
            return Err(Error::Internal("the elements of each bucket are not counted".to_owned()));
        };
        let buckets = places.splitters.len() + 1;
        let choice = Choice::new(&places.sizes(counts), &self.ranks)?;
        let of_chunk = |counts: &[usize]| -> Vec<usize> {
            choice.buckets.iter().map(|&(bucket, _)| counts[bucket]).collect()
        };
        let lengths: Vec<usize> = counts.chunks_exact(buckets).flat_map(of_chunk).collect();
        let table = lowering.add_table(out.dtype, &lengths, &[]);
        let grid = Tiling { axes: vec![AxisTiling::from_lengths(&places.lengths)] };
        let splitters = choice.splitters.iter().map(|&at| places.splitters[at]).collect();
        let map = SortMap { splitters, ..places.map(DIRECTION) };
        let operands = vec![lowering.operand(inputs[0])?, lowering.operand_chunk_number(&grid)?];
        lowering.add_exchange(ExchangeStage {
            function: Exchange::Pick { map, wanted: choice.wanted },
            grid,
            operands,
            reads: Vec::new(),
            outputs: vec![table],
            splits: true,
        });
        let found: Vec<usize> = choice.buckets.iter().map(|(_, ranks)| ranks.len()).collect();
        let grid = Tiling { axes: vec![AxisTiling::from_lengths(&found)] };
        let made = lowering.add_tensor(TensorSpec { dtype: out.dtype, tiling: grid.clone() });
        let reads = lowering.columns(&[table], &grid);
        let ranks = choice.buckets.into_iter().flat_map(|(_, ranks)| ranks).collect();
        lowering.add_exchange(ExchangeStage {
            function: Exchange::Ranked { direction: DIRECTION, ranks },
            grid,
            operands: Vec::new(),
            reads,
            outputs: vec![made],
            splits: false,
        });
        Ok(lowering.load(made))
    }
}

const DIRECTION: Direction = Direction::Ascending;
/// As many that the elements of a few buckets are a small part of all, and few enough that the table by which
/// a bucket is found stays in the first-level cache.
const BUCKETS: usize = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_buckets_with_places_are_chosen_and_neighbours_share_what_bounds_them() {
        let choice = |ranks: &[u64]| Choice::new(&[2, 3, 0, 4, 1], ranks).unwrap();
        let expected = Choice {
            buckets: vec![(1, vec![0, 2])],
            splitters: vec![0, 1],
            wanted: vec![false, true, false],
        };
        assert_eq!(choice(&[2, 4]), expected);
        let expected = Choice {
            buckets: vec![(0, vec![1]), (1, vec![0]), (4, vec![0])],
            splitters: vec![0, 1, 3],
            wanted: vec![true, true, false, true],
        };
        assert_eq!(choice(&[1, 2, 9]), expected);
        assert!(Choice::new(&[2, 3], &[5]).is_err());
    }
}
