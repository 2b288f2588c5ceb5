//! A choice of rows.

use std::ops::Range;
use tharsis_numeric::{Index, Tensor, arange, concatenate};

/// Some rows of tensors of one length.
#[derive(Clone, Debug)]
pub struct Rows {
    chosen: Chosen,
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
    pub(super) fn mask(mask: Tensor) -> Rows {
        Rows { chosen: Chosen::Mask(mask) }
    }

    pub(super) fn positions(positions: Tensor) -> Rows {
        Rows { chosen: Chosen::Positions(positions) }
    }

    /// The rows of a range.
    pub(super) fn range(range: Range<usize>) -> Rows {
        Rows { chosen: Chosen::Ranges(vec![range]) }
    }

    /// The rows of some ranges; empty ones are left out.
    pub(super) fn ranges<const N: usize>(ranges: [Range<usize>; N]) -> Rows {
        let ranges = ranges.into_iter().filter(|range| !range.is_empty()).collect();
        Rows { chosen: Chosen::Ranges(ranges) }
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
    /// The tensor carries an `IndexError` if `x` has fewer rows than the tensor that was split.
    ///
    /// # Distributed
    /// Slices move nothing. Rows in a random order are taken as by [`Tensor::take_at`].
    #[track_caller]
    pub fn of(&self, x: &Tensor) -> Tensor {
        match &self.chosen {
            Chosen::Mask(mask) => x.filter(mask),
            Chosen::Positions(positions) => x.take_at(positions, 0),
            Chosen::Ranges(ranges) => {
                let slice =
                    |range: &Range<usize>| x.get(&[Index::from(range.start as i64..range.end as i64)]);
                let parts: Vec<Tensor> = ranges.iter().map(slice).collect();
                match &parts[..] {
                    [] => x.get(&[Index::from(0..0)]),
                    [part] => part.clone(),
                    parts => concatenate(&parts.iter().collect::<Vec<_>>(), 0),
                }
            }
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
            Chosen::Ranges(ranges) => self.of(&arange(ranges.last().map_or(0, |range| range.end))),
        }
    }
}
