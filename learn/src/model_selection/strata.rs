//! Splits that keep the shares of classes.

use super::folds::{check_folds, check_two, part_of, rows_of};
use super::rows::{Rows, Split, slices_of};
use crate::Result;
use crate::metrics::contingency::classes_of;
use crate::metrics::inputs::{Pass, labels, listed, settled, value_error};
use crate::metrics::options::defaults;
use std::ops::Range;
use tharsis_numeric::Tensor;
use tharsis_numeric::random::{Generator, default_rng};

/// scikit-learn's `StratifiedKFold`: folds in which each class has (nearly) its share of rows.
///
/// ```
/// use tharsis_learn::model_selection::StratifiedKFold;
/// use tharsis_numeric::array;
/// let y = array([0i64, 0, 1, 1]);
/// let first = StratifiedKFold { n_splits: 2, ..StratifiedKFold::default() }.split(&y)?.next();
/// assert_eq!(first.expect("two splits").test.indices().to_vec::<i64>()?, [0, 2]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct StratifiedKFold {
    /// The number of folds, at least 2.
    pub n_splits: usize,
    /// Whether the rows of each class are put in a random order first.
    pub shuffle: bool,
    /// The seed of that order.
    pub random_state: u64,
}

impl Default for StratifiedKFold {
    fn default() -> StratifiedKFold {
        StratifiedKFold { n_splits: 5, shuffle: false, random_state: 0 }
    }
}

defaults!(StratifiedKFold);

impl StratifiedKFold {
    /// The splits of rows that are of these classes; (n,), integers or booleans. Without shuffling they are
    /// scikit-learn's.
    ///
    /// ```
    /// use tharsis_learn::model_selection::StratifiedKFold;
    /// use tharsis_numeric::arange;
    /// assert_eq!(StratifiedKFold::default().split(&(arange(20) % 3))?.len(), 5);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for fewer than 2 folds, more folds than rows, and if no class has as many rows as there
    /// are folds; `TypeError` for classes of another dtype.
    ///
    /// # Distributed
    /// Three passes over the classes; rows are ordered by class as by [`Tensor::argsort`].
    #[track_caller]
    pub fn split(&self, y: &Tensor) -> Result<impl ExactSizeIterator<Item = Split> + use<>> {
        check_two(self.n_splits)?;
        let count = rows_of(y)?;
        check_folds(self.n_splits, count)?;
        let strata = Strata::of(y)?;
        if strata.counts.iter().all(|&count| count < self.n_splits) {
            let text = format!(
                "n_splits={} cannot be greater than the number of members in each class.",
                self.n_splits
            );
            return Err(value_error(text));
        }
        let order = if self.shuffle {
            strata.shuffled(&default_rng(self.random_state))
        } else {
            strata.places.argsort(0)
        };
        let shares = strata.fold_shares(self.n_splits)?;
        Ok(shares.into_iter().map(move |ranges| {
            let test = slices_of(&order, &ranges);
            let train = slices_of(&order, &gaps(&ranges, count));
            let rows = |positions: &Tensor| Rows::positions(positions.sort(0), count);
            Split { train: rows(&train), test: rows(&test) }
        }))
    }
}

/// The gaps that ranges leave among `count` elements.
fn gaps(ranges: &[Range<usize>], count: usize) -> Vec<Range<usize>> {
    let starts = std::iter::once(0).chain(ranges.iter().map(|range| range.end));
    let ends = ranges.iter().map(|range| range.start).chain(std::iter::once(count));
    starts.zip(ends).map(|(start, end)| start..end).filter(|gap| !gap.is_empty()).collect()
}

/// Rows by class.
pub(super) struct Strata {
    /// The place of the class of each row among the distinct ones; (n,), int64.
    places: Tensor,
    /// The rows of each class, in ascending order of classes.
    pub(super) counts: Vec<usize>,
}

impl Strata {
    /// Counts the rows of each class.
    ///
    /// # Errors
    /// `ValueError` for more than 2^22 classes and another shape; `TypeError` for another dtype.
    #[track_caller]
    pub(super) fn of(y: &Tensor) -> Result<Strata> {
        let y = labels(&settled(&[y])?.remove(0), "y")?;
        let classes = classes_of(&y)?;
        let places = Tensor::from_elements(&[classes.len()], &classes).searchsorted(&y);
        let mut pass = Pass::default();
        pass.want(places.bincount(None, classes.len()));
        let counts = pass.run()?.next::<i64>()?.into_iter().map(|count| count as usize).collect();
        Ok(Strata { places, counts })
    }

    /// The first row of each of these classes: in an order by class it is where the class starts.
    ///
    /// # Errors
    /// Errors of the run.
    #[track_caller]
    fn first_rows(&self, classes: &[usize]) -> Result<Vec<i64>> {
        let starts = self.starts();
        let starts: Vec<i64> = classes.iter().map(|&class| starts[class] as i64).collect();
        let starts = Tensor::from_elements(&[starts.len()], &starts);
        self.places.argsort(0).take_at(&starts, 0).to_vec()
    }

    /// The rows of each class one behind the other, those of a class in a random order.
    pub(super) fn shuffled(&self, generator: &Generator) -> Tensor {
        let count = self.counts.iter().sum();
        let order = generator.permutation(count);
        order.take_at(&self.places.take_at(&order, 0).argsort(0), 0)
    }

    /// The start of each class in an order by class.
    pub(super) fn starts(&self) -> Vec<usize> {
        let mut next = 0;
        let start = |&count: &usize| {
            let start = next;
            next += count;
            start
        };
        self.counts.iter().map(start).collect()
    }

    /// For each fold the range of each class in an order by class. A fold has every `n_splits`-th row of an
    /// order by first occurrence of classes: so sizes of folds differ by one at most.
    ///
    /// # Errors
    /// Errors of the run that tells first occurrences.
    #[track_caller]
    fn fold_shares(&self, n_splits: usize) -> Result<Vec<Vec<Range<usize>>>> {
        let mut by_first: Vec<usize> = (0..self.counts.len()).collect();
        let firsts = self.first_rows(&by_first)?;
        by_first.sort_by_key(|&class| firsts[class]);
        let mut next = self.starts();
        let mut befores = vec![0; self.counts.len()];
        let mut before = 0;
        for class in by_first {
            befores[class] = before;
            before += self.counts[class];
        }
        // The numbers below `end` that are `fold` more than a multiple of `n_splits`.
        let below = |end: usize, fold: usize| part_of(end, n_splits, fold).len();
        let share = |fold: usize, class: usize| {
            below(befores[class] + self.counts[class], fold) - below(befores[class], fold)
        };
        let mut shares = Vec::new();
        for fold in 0..n_splits {
            let mut ranges = Vec::new();
            for (class, next) in next.iter_mut().enumerate() {
                let start = *next;
                *next += share(fold, class);
                ranges.push(start..*next);
            }
            shares.push(ranges);
        }
        Ok(shares)
    }

    /// The rows of a training and a test set of these sizes in a random order, with each class's share.
    ///
    /// # Errors
    /// `ValueError` for a class of a single row, and for sets smaller than the number of classes.
    #[track_caller]
    pub(super) fn split(&self, generator: &Generator, train: usize, test: usize) -> Result<Split> {
        let classes = self.counts.len();
        let few: Vec<usize> = (0..classes).filter(|&class| self.counts[class] < 2).collect();
        if !few.is_empty() {
            let text = format!(
                "The least populated classes in y have only 1 member, which is too few. The minimum number of groups for any class cannot be less than 2. They are those of the rows [{}]",
                listed(&self.first_rows(&few)?, ", ")
            );
            return Err(value_error(text));
        }
        for (name, size) in [("train_size", train), ("test_size", test)] {
            if size < classes {
                let text = format!(
                    "The {name} = {size} should be greater or equal to the number of classes = {classes}"
                );
                return Err(value_error(text));
            }
        }
        let count = self.counts.iter().sum();
        let of_train = nearest_shares(&self.counts, train);
        let left: Vec<usize> =
            self.counts.iter().zip(&of_train).map(|(count, train)| count - train).collect();
        let of_test = nearest_shares(&left, test);
        let order = self.shuffled(generator);
        let starts = self.starts();
        let set = |from: &[usize], sizes: &[usize], total: usize| {
            let ranges: Vec<Range<usize>> =
                from.iter().zip(sizes).map(|(&from, &size)| from..from + size).collect();
            slices_of(&order, &ranges).take_at(&generator.permutation(total), 0)
        };
        let behind: Vec<usize> = starts.iter().zip(&of_train).map(|(start, train)| start + train).collect();
        Ok(Split {
            train: Rows::positions(set(&starts, &of_train, train), count),
            test: Rows::positions(set(&behind, &of_test, test), count),
        })
    }
}

/// Numbers of rows with the sum `total` and shares nearest to those of the classes. What remains after
/// rounding down goes to the largest remainders, the first class of equal ones.
fn nearest_shares(counts: &[usize], total: usize) -> Vec<usize> {
    let all: u128 = counts.iter().map(|&count| count as u128).sum::<u128>().max(1);
    let product = |count: usize| count as u128 * total as u128;
    let mut shares: Vec<usize> = counts.iter().map(|&count| (product(count) / all) as usize).collect();
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&class| std::cmp::Reverse(product(counts[class]) % all));
    let rest = total - shares.iter().sum::<usize>();
    for class in order.into_iter().take(rest) {
        shares[class] += 1;
    }
    shares
}
