//! A choice of rows.

use crate::metrics::inputs::settled;
use std::ops::Range;
use tharsis_graph::Error as GraphError;
use tharsis_graph::ops::{CountReduced, Require};
use tharsis_numeric::random::Generator;
use tharsis_numeric::select::UNKNOWN;
use tharsis_numeric::{Error, Index, Tensor, arange, concatenate};

/// Most slices that are put one behind the other.
const SLICES_MAX: usize = 256;

/// Some rows of tensors of one length.
#[derive(Clone, Debug)]
pub struct Rows {
    chosen: Chosen,
    /// The length of those tensors.
    count: usize,
}

#[derive(Clone, Debug)]
enum Chosen {
    /// Those where this is true; (n,), bool.
    Mask(Tensor),
    /// Those at these positions, in this order; (rows,), int64.
    Positions(Tensor),
    /// Those in these ranges, which ascend.
    Ranges(Vec<Range<usize>>),
}

/// The rows to train with, and those to test with.
#[derive(Clone, Debug)]
pub struct Split {
    /// The rows of the training set.
    pub train: Rows,
    /// The rows of the test set.
    pub test: Rows,
}

impl Rows {
    /// The rows, of so many, where a mask is true.
    pub(super) fn mask(mask: Tensor, count: usize) -> Rows {
        Rows { chosen: Chosen::Mask(mask), count }
    }

    /// The rows, of so many, at these positions.
    pub(super) fn positions(positions: Tensor, count: usize) -> Rows {
        Rows { chosen: Chosen::Positions(positions), count }
    }

    /// The rows of a range, of so many.
    pub(super) fn range(range: Range<usize>, count: usize) -> Rows {
        Rows { chosen: Chosen::Ranges(vec![range]), count }
    }

    /// The rows of some ranges, of so many; empty ranges are left out.
    pub(super) fn ranges<const N: usize>(ranges: [Range<usize>; N], count: usize) -> Rows {
        let ranges = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        Rows { chosen: Chosen::Ranges(ranges), count }
    }

    /// The rows at these positions, of so many.
    ///
    /// ```
    /// use tharsis_learn::model_selection::Rows;
    /// use tharsis_numeric::array;
    /// let x = array([5i64, 6, 7]);
    /// assert_eq!(Rows::at(&[2, 0], 3)?.of(&x).to_vec::<i64>()?, [7, 5]);
    /// assert!(Rows::at(&[3], 3).is_err());
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `IndexError` for a position at or behind the end.
    #[track_caller]
    pub fn at(positions: &[usize], count: usize) -> crate::Result<Rows> {
        if let Some(&beyond) = positions.iter().find(|&&position| count <= position) {
            let text = format!("index {beyond} is out of bounds for axis 0 with size {count}");
            return Err(Error::here(GraphError::Indices(text)));
        }
        let positions: Vec<i64> = positions.iter().map(|&position| position as i64).collect();
        Ok(Rows::positions(Tensor::from_elements(&[positions.len()], &positions), count))
    }

    /// These rows of a tensor: (n, ..) to (rows, ..), an expression.
    ///
    /// ```
    /// use tharsis_learn::model_selection::LeaveOneOut;
    /// use tharsis_numeric::array;
    /// let x = array([5i64, 6, 7]);
    /// let second = LeaveOneOut.split(&x)?.nth(1).expect("three splits");
    /// assert_eq!(second.train.of(&x).to_vec::<i64>()?, [5, 7]);
    /// assert_eq!(second.test.of(&x).to_vec::<i64>()?, [6]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// The tensor carries a `ValueError` if `x` has another number of rows than the tensor that was split;
    /// when run if only running tells.
    ///
    /// # Distributed
    /// Slices move nothing. Rows in a random order are taken as by [`Tensor::take_at`].
    #[track_caller]
    pub fn of(&self, x: &Tensor) -> Tensor {
        let count = self.count;
        let refusal = |found: &str| format!("Found a tensor of {found} rows, the split is of {count} rows");
        let found = match x.shape() {
            Ok(shape) => shape.first().copied(),
            Err(error) => return Tensor::from(error),
        };
        match found {
            Some(found) if found == count => self.taken(x),
            Some(UNKNOWN) => {
                let rows = Tensor::apply(CountReduced { axes: vec![0], keepdims: false }, &[x]);
                let message = refusal("another number of");
                Tensor::apply(Require { message }, &[&self.taken(x), &rows.equal(count as f64).all(..)])
            }
            Some(found) => Tensor::from(Error::here(GraphError::Value(refusal(&found.to_string())))),
            None => Tensor::from(Error::here(GraphError::Value(refusal("no")))),
        }
    }

    /// A part of these rows that is drawn, in their order; all if the part is all.
    ///
    /// # Errors
    /// `ValueError` for more rows than there are; errors of the run that tells how many.
    #[track_caller]
    pub(super) fn drawn(&self, part: f64, generator: &Generator) -> crate::Result<Rows> {
        let positions = settled(&[&self.indices()])?.remove(0);
        let rows = positions.shape()?.first().copied().unwrap_or(0);
        let wanted = (part * rows as f64) as usize;
        if rows < wanted {
            let text = format!("Cannot sample {wanted} out of arrays with dim {rows} when replace is False");
            return Err(Error::here(GraphError::Value(text)));
        }
        if rows == wanted {
            return Ok(self.clone());
        }
        let chosen = generator.permutation(rows).get(&[Index::from(..wanted as i64)]).sort(0);
        Ok(Rows::positions(positions.take_at(&chosen, 0), self.count))
    }

    /// Checks that these are rows of so many.
    ///
    /// # Errors
    /// `ValueError` if they are not.
    #[track_caller]
    pub(super) fn check_count(&self, count: usize) -> crate::Result<()> {
        if self.count == count {
            return Ok(());
        }
        let lengths = format!("[{count}, {}]", self.count);
        let text = format!("Found input variables with inconsistent numbers of samples: {lengths}");
        Err(Error::here(GraphError::Value(text)))
    }

    /// These rows of a tensor of as many rows as were split.
    #[track_caller]
    fn taken(&self, x: &Tensor) -> Tensor {
        match &self.chosen {
            Chosen::Mask(mask) => x.filter(mask),
            Chosen::Positions(positions) => x.take_at(positions, 0),
            Chosen::Ranges(ranges) => slices_of(x, ranges),
        }
    }

    /// The positions of these rows, as scikit-learn's splitters give them; (rows,), int64, an expression.
    ///
    /// ```
    /// use tharsis_learn::model_selection::TimeSeriesSplit;
    /// use tharsis_numeric::zeros;
    /// let splits = TimeSeriesSplit { n_splits: 2, ..TimeSeriesSplit::default() }.split(&zeros(&[6]))?;
    /// let tests = splits.map(|split| split.test.indices().to_vec::<i64>());
    /// let tests = tests.collect::<Result<Vec<_>, _>>()?;
    /// assert_eq!(tests, [[2, 3], [4, 5]]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    #[track_caller]
    pub fn indices(&self) -> Tensor {
        match &self.chosen {
            Chosen::Mask(mask) => mask.flatnonzero(),
            Chosen::Positions(positions) => positions.clone(),
            Chosen::Ranges(_) => self.taken(&arange(self.count)),
        }
    }
}

/// The rows of a tensor in these ranges, which ascend.
#[track_caller]
pub(super) fn slices_of(x: &Tensor, ranges: &[Range<usize>]) -> Tensor {
    let ranges: Vec<&Range<usize>> = ranges.iter().filter(|range| !range.is_empty()).collect();
    if SLICES_MAX < ranges.len() {
        return x.take_at(&places_in(&ranges), 0);
    }
    let parts: Vec<Tensor> = ranges.into_iter().map(|range| slice_of(x, range.clone())).collect();
    match &parts[..] {
        [] => slice_of(x, 0..0),
        [part] => part.clone(),
        parts => concatenate(&parts.iter().collect::<Vec<_>>(), 0),
    }
}

/// The numbers in these ranges, which ascend and are not empty, as an expression; int64. A plan of it does
/// not grow with the number of ranges.
#[track_caller]
fn places_in(ranges: &[&Range<usize>]) -> Tensor {
    let mut total = 0;
    let (mut ends, mut offsets) = (Vec::new(), Vec::new());
    for range in ranges {
        offsets.push(range.start as i64 - total as i64);
        total += range.len();
        ends.push(total as i64);
    }
    let array = |numbers: &[i64]| Tensor::from_elements(&[numbers.len()], numbers);
    let at = arange(total);
    let range = array(&ends).searchsorted(&(&at + 1));
    at + array(&offsets).take_at(&range, 0)
}

/// The rows of a tensor in a range.
#[track_caller]
pub(super) fn slice_of(x: &Tensor, range: Range<usize>) -> Tensor {
    x.get(&[Index::from(range.start as i64..range.end as i64)])
}

#[cfg(test)]
mod tests {
    use super::{SLICES_MAX, slices_of};
    use std::ops::Range;
    use tharsis_numeric::arange;

    #[test]
    fn many_ranges_are_the_same_rows_as_few() {
        let count = SLICES_MAX + 10;
        let ranges: Vec<Range<usize>> = (0..count).map(|at| 5 * at..5 * at + at % 4).collect();
        let expected: Vec<i64> = ranges.iter().cloned().flatten().map(|row| row as i64).collect();
        for ranges in [&ranges[..], &ranges[..20], &ranges[..1]] {
            let found = slices_of(&arange(5 * count), ranges).to_vec::<i64>().unwrap();
            let rows: usize = ranges.iter().map(Range::len).sum();
            assert_eq!(found, expected[..rows]);
        }
        // Enough that are not empty.
        let ranges: Vec<Range<usize>> = (0..2 * count).map(|at| 3 * at..3 * at + 2).collect();
        let expected: Vec<i64> = ranges.iter().cloned().flatten().map(|row| row as i64).collect();
        assert_eq!(slices_of(&arange(6 * count), &ranges).to_vec::<i64>().unwrap(), expected);
    }
}
