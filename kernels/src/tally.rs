//! Histograms of chunks: numbers of elements in bins, or sums of their weights.

use crate::chunk::Chunk;
use crate::dtype::DType;
use crate::element::Element;
use crate::error::KernelError;
use crate::ufunc::Number;
use num_complex::Complex;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Rule by which elements belong to bins. Elements outside of all bins do not count.
///
/// The result has the bins along its first axis and an axis of extent 1 for each other axis of the elements.
/// It is int64, or has the dtype of the weights: int64, uint64, float64 or complex128.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tally {
    /// By intervals between ascending edges, on one axis or on several. Each interval has its lower edge, the
    /// last one its upper edge too. Arguments: elements for each axis, all of one shape; the edges of each
    /// axis; the weights. Bins of several axes are numbered in C order.
    Between {
        /// For each axis, whether its edges are evenly spaced.
        even: Vec<bool>,
        /// Whether there are weights.
        weighted: bool,
    },
    /// By their own values. Arguments: the consecutive numbers of the bins; the elements, int64; the
    /// weights.
    Numbers {
        /// Whether there are weights.
        weighted: bool,
    },
}

impl Tally {
    /// Whether there are weights.
    pub fn is_weighted(&self) -> bool {
        match self {
            Tally::Between { weighted, .. } | Tally::Numbers { weighted } => *weighted,
        }
    }

    /// Applies the function.
    ///
    /// # Errors
    /// `NoLoop` for dtypes that it is not defined for.
    pub fn run(&self, args: &[Chunk]) -> Result<Chunk, KernelError> {
        let (args, weights) = match args {
            [args @ .., weights] if self.is_weighted() => (args, Some(weights)),
            _ => (args, None),
        };
        let (axes, elements) = match self {
            Tally::Between { even, .. } => {
                let (elements, edges) = args.split_at(even.len());
                let pairs = elements.iter().zip(edges).zip(even);
                let axes = pairs.map(|((x, edges), &even)| between(x, edges, even));
                (axes.collect::<Result<Vec<_>, _>>()?, &elements[0])
            }
            Tally::Numbers { .. } => (vec![numbers(&args[0], &args[1])?], &args[1]),
        };
        let mut shape = vec![1; elements.shape().len()];
        if let Some(first) = shape.first_mut() {
            *first = axes.iter().map(|axis| axis.bins()).product();
        }
        match weights.map(Chunk::dtype) {
            None | Some(DType::I64) => sums::<i64>(&axes, elements.len(), weights, &shape),
            Some(DType::U64) => sums::<u64>(&axes, elements.len(), weights, &shape),
            Some(DType::F64) => sums::<f64>(&axes, elements.len(), weights, &shape),
            Some(DType::C128) => sums::<Complex<f64>>(&axes, elements.len(), weights, &shape),
            Some(dtype) => Err(KernelError::NoLoop { function: "histogram", dtypes: vec![dtype] }),
        }
    }
}

/// Bins along one axis.
trait Bins {
    /// Number of bins.
    fn bins(&self) -> usize;

    /// The bins of the elements from `start` on, [`OUTSIDE`] for elements in none of them.
    fn find(&self, start: usize, bins: &mut [usize]);
}

/// Intervals between any edges.
struct Between<'a, T: Element> {
    elements: Cow<'a, [T]>,
    edges: Vec<T>,
}

/// Intervals between evenly spaced edges: the bin is computed, then corrected by the rounded edges.
struct Even<'a> {
    elements: Cow<'a, [f64]>,
    edges: Vec<f64>,
    bins_per_unit: f64,
}

/// Bins numbered from `first` on.
struct Numbers<'a> {
    elements: Cow<'a, [i64]>,
    first: i64,
    bins: usize,
}

impl<T: Element + PartialOrd> Bins for Between<'_, T> {
    fn bins(&self) -> usize {
        self.edges.len() - 1
    }

    fn find(&self, start: usize, bins: &mut [usize]) {
        let (first, last) = (self.edges[0], self.edges[self.bins()]);
        for (bin, &x) in bins.iter_mut().zip(&self.elements[start..]) {
            let found = self.edges.partition_point(|&edge| edge <= x);
            *bin = if first <= x && x <= last { found.min(self.bins()) - 1 } else { OUTSIDE };
        }
    }
}

impl Bins for Even<'_> {
    fn bins(&self) -> usize {
        self.edges.len() - 1
    }

    fn find(&self, start: usize, bins: &mut [usize]) {
        let highest = self.bins() - 1;
        let (first, last) = (self.edges[0], self.edges[highest + 1]);
        for (bin, &x) in bins.iter_mut().zip(&self.elements[start..]) {
            let guess = (((x - first) * self.bins_per_unit) as usize).min(highest);
            let guess = guess - usize::from(guess != 0 && x < self.edges[guess]);
            let found = guess + usize::from(guess != highest && self.edges[guess + 1] <= x);
            *bin = if first <= x && x <= last { found } else { OUTSIDE };
        }
    }
}

impl Bins for Numbers<'_> {
    fn bins(&self) -> usize {
        self.bins
    }

    fn find(&self, start: usize, bins: &mut [usize]) {
        for (bin, &x) in bins.iter_mut().zip(&self.elements[start..]) {
            let place = x.wrapping_sub(self.first) as usize;
            *bin = if place < self.bins { place } else { OUTSIDE };
        }
    }
}

/// The elements of a chunk in C order.
fn elements<T: Element>(chunk: &Chunk) -> Result<Cow<'_, [T]>, KernelError> {
    Ok(match chunk.as_slice::<T>() {
        Some(slice) => Cow::Borrowed(slice),
        None => Cow::Owned(chunk.to_vec::<T>()?),
    })
}

fn numbers<'a>(bins: &Chunk, x: &'a Chunk) -> Result<Box<dyn Bins + 'a>, KernelError> {
    let numbers = bins.to_vec::<i64>()?;
    let first = numbers.first().copied().unwrap_or(0);
    Ok(Box::new(Numbers { elements: elements(x)?, first, bins: numbers.len() }))
}

fn between<'a>(x: &'a Chunk, edges: &Chunk, even: bool) -> Result<Box<dyn Bins + 'a>, KernelError> {
    if edges.len() < 2 {
        return Err(KernelError::Value("a histogram needs two edges at least".to_owned()));
    }
    Ok(match x.dtype() {
        DType::F64 => {
            let (elements, edges) = (elements::<f64>(x)?, edges.to_vec::<f64>()?);
            let bins = edges.len() - 1;
            let bins_per_unit = bins as f64 / (edges[bins] - edges[0]);
            // Edges that repeat are narrower than the distance of floats: the guess may be far off.
            let are_apart = edges.windows(2).all(|pair| pair[0] < pair[1]);
            if even && are_apart && bins_per_unit.is_finite() {
                Box::new(Even { elements, edges, bins_per_unit })
            } else {
                Box::new(Between { elements, edges })
            }
        }
        DType::I64 => Box::new(Between { elements: elements::<i64>(x)?, edges: edges.to_vec()? }),
        DType::U64 => Box::new(Between { elements: elements::<u64>(x)?, edges: edges.to_vec()? }),
        dtype => return Err(KernelError::NoLoop { function: "histogram", dtypes: vec![dtype] }),
    })
}

/// The sum of the weights in each bin; a weight is 1 if there are none.
fn sums<T: Number>(
    axes: &[Box<dyn Bins + '_>],
    count: usize,
    weights: Option<&Chunk>,
    shape: &[usize],
) -> Result<Chunk, KernelError> {
    let weights = weights.map(elements::<T>).transpose()?;
    let bins: usize = axes.iter().map(|axis| axis.bins()).product();
    // Elements outside of all bins are added up behind the last one.
    let mut sums = vec![T::ZERO; bins + 1];
    let (mut found, mut along) = ([0; BLOCK], [0; BLOCK]);
    for start in (0..count).step_by(BLOCK) {
        let found = &mut found[..BLOCK.min(count - start)];
        axes[0].find(start, found);
        for axis in &axes[1..] {
            let along = &mut along[..found.len()];
            axis.find(start, along);
            for (bin, &next) in found.iter_mut().zip(&*along) {
                let is_outside = *bin == OUTSIDE || next == OUTSIDE;
                *bin = if is_outside { OUTSIDE } else { *bin * axis.bins() + next };
            }
        }
        match &weights {
            None => {
                for &mut bin in found {
                    let sum = &mut sums[bin.min(bins)];
                    *sum = sum.plus(T::ONE);
                }
            }
            Some(weights) => {
                for (&mut bin, &weight) in found.iter_mut().zip(&weights[start..]) {
                    let sum = &mut sums[bin.min(bins)];
                    *sum = sum.plus(weight);
                }
            }
        }
    }
    Chunk::from_elements(shape, &sums[..bins])
}

/// The place of elements that are in no bin.
const OUTSIDE: usize = usize::MAX;
/// Elements whose bins are found at once.
const BLOCK: usize = 1024;

#[cfg(test)]
mod tests {
    use super::*;

    fn chunk<T: Element>(elements: &[T]) -> Chunk {
        Chunk::from_elements(&[elements.len()], elements).unwrap()
    }

    #[test]
    fn even_edges_give_the_bins_that_a_search_gives_also_at_the_edges_themselves() {
        for (first, last, bins) in [(0.0, 1.0, 10), (-3.7, 11.9, 97), (1e9, 1e9 + 1e-3, 50), (0.0, 5e-324, 1)]
        {
            let at = |i: usize| first + (last - first) * (i as f64 / bins as f64);
            let mut edges: Vec<f64> = (0..=bins).map(at).collect();
            edges[bins] = last;
            let near = |&edge: &f64| [edge.next_down(), edge, edge.next_up()];
            let mut x: Vec<f64> = edges.iter().flat_map(near).collect();
            x.extend([f64::NAN, f64::INFINITY, f64::NEG_INFINITY]);
            let args = [chunk(&x), chunk(&edges)];
            let counts = |even| {
                let tally = Tally::Between { even: vec![even], weighted: false };
                tally.run(&args).unwrap().to_vec::<i64>().unwrap()
            };
            assert_eq!(counts(true), counts(false), "{first} {last} {bins}");
        }
    }

    #[test]
    fn the_last_interval_has_both_edges_and_what_is_outside_does_not_count() {
        let x = chunk(&[-1i64, 0, 1, 2, 2, 3, 4, 5]);
        let weights = chunk(&[100.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 100.0]);
        let args = [x, chunk(&[0i64, 2, 4]), weights];
        let tally = Tally::Between { even: vec![false], weighted: true };
        assert_eq!(tally.run(&args).unwrap().to_vec::<f64>().unwrap(), [3.0, 60.0]);
        let tally = Tally::Between { even: vec![false], weighted: false };
        assert_eq!(tally.run(&args[..2]).unwrap().to_vec::<i64>().unwrap(), [2, 4]);
    }

    #[test]
    fn bins_of_several_axes_are_in_c_order_and_numbers_count_from_the_first() {
        let (x, y) = (chunk(&[0.5, 1.5, 1.5, 9.0]), chunk(&[0.5, 0.5, 2.5, 0.5]));
        let args = [x, y, chunk(&[0.0, 1.0, 2.0]), chunk(&[0.0, 1.0, 2.0, 3.0])];
        let tally = Tally::Between { even: vec![true, true], weighted: false };
        assert_eq!(tally.run(&args).unwrap().to_vec::<i64>().unwrap(), [1, 0, 0, 1, 0, 1]);
        let args = [chunk(&[2i64, 3, 4]), chunk(&[4i64, 1, 2, 2, 5, i64::MAX, 4])];
        let tally = Tally::Numbers { weighted: false };
        assert_eq!(tally.run(&args).unwrap().to_vec::<i64>().unwrap(), [2, 0, 2]);
    }
}
