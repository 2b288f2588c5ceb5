//! Splits in folds, each of which is the test set once.

use super::rows::{Rows, Split, slices_of};
use crate::Result;
use crate::metrics::contingency::classes_of;
use crate::metrics::inputs::{equal_lengths, labels, settled, value_error};
use crate::metrics::options::defaults;
use std::ops::Range;
use tharsis_numeric::Tensor;
use tharsis_numeric::random::default_rng;

/// scikit-learn's `KFold`: consecutive folds of (nearly) equal size, or random ones if rows are shuffled.
///
/// ```
/// use tharsis_learn::model_selection::KFold;
/// use tharsis_numeric::zeros;
/// let folds = KFold { n_splits: 2, ..KFold::default() };
/// let first = folds.split(&zeros(&[5, 3]))?.next().expect("two splits");
/// assert_eq!(first.test.indices().to_vec::<i64>()?, [0, 1, 2]);
/// assert_eq!(first.train.indices().to_vec::<i64>()?, [3, 4]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct KFold {
    /// The number of folds, at least 2.
    pub n_splits: usize,
    /// Whether rows are put in a random order first.
    pub shuffle: bool,
    /// The seed of that order.
    pub random_state: u64,
}

impl Default for KFold {
    fn default() -> KFold {
        KFold { n_splits: 5, shuffle: false, random_state: 0 }
    }
}

defaults!(KFold);

impl KFold {
    /// The splits of the rows of a tensor (n, ..).
    ///
    /// ```
    /// use tharsis_learn::model_selection::KFold;
    /// use tharsis_numeric::zeros;
    /// let folds = KFold { shuffle: true, random_state: 1, ..KFold::default() };
    /// assert_eq!(folds.split(&zeros(&[20]))?.len(), 5);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for fewer than 2 folds, and for more folds than rows.
    #[track_caller]
    pub fn split(&self, x: &Tensor) -> Result<impl ExactSizeIterator<Item = Split> + use<>> {
        check_two(self.n_splits)?;
        let count = rows_of(x)?;
        check_folds(self.n_splits, count)?;
        let order = self.shuffle.then(|| default_rng(self.random_state).permutation(count));
        let n_splits = self.n_splits;
        Ok((0..n_splits).map(move |fold| {
            let range = part_of(count, n_splits, fold);
            match &order {
                None => around(range, count),
                Some(order) => positions_around(order, range, count),
            }
        }))
    }
}

/// scikit-learn's `GroupKFold`: folds that part no group, of sizes as equal as the groups allow.
///
/// ```
/// use tharsis_learn::model_selection::GroupKFold;
/// use tharsis_numeric::array;
/// let groups = array([0i64, 0, 2, 2, 3, 3]);
/// let first = GroupKFold { n_splits: 2 }.split(&groups)?.next().expect("two splits");
/// assert_eq!(first.test.of(&groups).to_vec::<i64>()?, [0, 0, 3, 3]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct GroupKFold {
    /// The number of folds, at least 2.
    pub n_splits: usize,
}

impl Default for GroupKFold {
    fn default() -> GroupKFold {
        GroupKFold { n_splits: 5 }
    }
}

defaults!(GroupKFold);

impl GroupKFold {
    /// The splits of rows that are of these groups; (n,), integers or booleans.
    ///
    /// ```
    /// use tharsis_learn::model_selection::GroupKFold;
    /// use tharsis_numeric::arange;
    /// assert_eq!(GroupKFold::default().split(&arange(20).floor_divide(2))?.len(), 5);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for fewer than 2 folds, more folds than groups or rows, and more than 2^22 groups;
    /// `TypeError` for groups of another dtype.
    ///
    /// # Distributed
    /// Two passes over the groups, whose distinct values and counts are collected.
    #[track_caller]
    pub fn split(&self, groups: &Tensor) -> Result<impl ExactSizeIterator<Item = Split> + use<>> {
        check_two(self.n_splits)?;
        let groups = settled(&[groups])?.remove(0);
        let count = rows_of(&groups)?;
        let groups = labels(&groups, "groups")?;
        check_folds(self.n_splits, count)?;
        let distinct = classes_of(&groups)?;
        if distinct.len() < self.n_splits {
            let text = format!(
                "Cannot have number of splits n_splits={} greater than the number of groups: {}.",
                self.n_splits,
                distinct.len()
            );
            return Err(value_error(text));
        }
        let places = Tensor::from_elements(&[distinct.len()], &distinct).searchsorted(&groups);
        let counts = places.bincount(None, distinct.len()).to_vec::<i64>()?;
        let folds = lightest_folds(&counts, self.n_splits);
        let fold_of = Tensor::from_elements(&[folds.len()], &folds).take_at(&places, 0);
        Ok((0..self.n_splits).map(move |fold| Split {
            train: Rows::mask(fold_of.not_equal(fold as i64), count),
            test: Rows::mask(fold_of.equal(fold as i64), count),
        }))
    }
}

/// The fold of each group: the largest group goes to the fold with the fewest rows, then the next one.
fn lightest_folds(counts: &[i64], n_splits: usize) -> Vec<i64> {
    let mut order: Vec<usize> = (0..counts.len()).collect();
    order.sort_by_key(|&group| counts[group]);
    let (mut loads, mut folds) = (vec![0; n_splits], vec![0; counts.len()]);
    // Of equal groups the later one comes first.
    for &group in order.iter().rev() {
        let lightest = (0..n_splits).min_by_key(|&fold| loads[fold]).unwrap_or(0);
        loads[lightest] += counts[group];
        folds[group] = lightest as i64;
    }
    folds
}

/// scikit-learn's `LeaveOneOut`: each row is the test set once.
///
/// ```
/// use tharsis_learn::model_selection::LeaveOneOut;
/// use tharsis_numeric::zeros;
/// assert_eq!(LeaveOneOut.split(&zeros(&[7, 2]))?.len(), 7);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct LeaveOneOut;

impl LeaveOneOut {
    /// The splits of the rows of a tensor (n, ..).
    ///
    /// ```
    /// use tharsis_learn::model_selection::LeaveOneOut;
    /// use tharsis_numeric::zeros;
    /// assert_eq!(LeaveOneOut.split(&zeros(&[1])).err().map(|error| error.class()), Some("ValueError"));
    /// ```
    ///
    /// # Errors
    /// `ValueError` for fewer than two rows.
    #[track_caller]
    pub fn split(&self, x: &Tensor) -> Result<impl ExactSizeIterator<Item = Split> + use<>> {
        let count = rows_of(x)?;
        if count < 2 {
            return Err(value_error(format!("Cannot perform LeaveOneOut with n_samples={count}.")));
        }
        Ok((0..count).map(move |row| around(row..row + 1, count)))
    }
}

/// scikit-learn's `TimeSeriesSplit`: test sets that follow their training sets.
///
/// ```
/// use tharsis_learn::model_selection::TimeSeriesSplit;
/// use tharsis_numeric::zeros;
/// let last = TimeSeriesSplit::default().split(&zeros(&[6]))?.last().expect("five splits");
/// assert_eq!(last.train.indices().to_vec::<i64>()?, [0, 1, 2, 3, 4]);
/// assert_eq!(last.test.indices().to_vec::<i64>()?, [5]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct TimeSeriesSplit {
    /// The number of splits, at least 2.
    pub n_splits: usize,
    /// The number of rows of a training set, the latest ones; all earlier rows if none is given, or 0.
    pub max_train_size: Option<usize>,
    /// The number of rows of a test set; rows / (`n_splits` + 1) if none is given.
    pub test_size: Option<usize>,
    /// The number of rows that are left out before each test set.
    pub gap: usize,
}

impl Default for TimeSeriesSplit {
    fn default() -> TimeSeriesSplit {
        TimeSeriesSplit { n_splits: 5, max_train_size: None, test_size: None, gap: 0 }
    }
}

defaults!(TimeSeriesSplit);

impl TimeSeriesSplit {
    /// The splits of the rows of a tensor (n, ..).
    ///
    /// ```
    /// use tharsis_learn::model_selection::TimeSeriesSplit;
    /// use tharsis_numeric::zeros;
    /// let splits = TimeSeriesSplit { gap: 9, ..TimeSeriesSplit::default() };
    /// assert!(splits.split(&zeros(&[6])).is_err());
    /// ```
    ///
    /// # Errors
    /// `ValueError` for fewer than 2 splits, test sets of no rows, and if there are too few rows.
    #[track_caller]
    pub fn split(&self, x: &Tensor) -> Result<impl ExactSizeIterator<Item = Split> + use<>> {
        let TimeSeriesSplit { n_splits, max_train_size, test_size, gap } = *self;
        // As in scikit-learn, none is no limit.
        let max_train_size = max_train_size.filter(|&most| most != 0);
        check_two(n_splits)?;
        let count = rows_of(x)?;
        if count <= n_splits {
            let text = format!(
                "Cannot have number of folds={} greater than the number of samples={count}.",
                n_splits.saturating_add(1)
            );
            return Err(value_error(text));
        }
        let size = test_size.unwrap_or(count / (n_splits + 1));
        let used = n_splits.saturating_mul(size).saturating_add(gap);
        if size == 0 || count <= used {
            let text = format!(
                "Too many splits={n_splits} for number of samples={count} with test_size={size} and gap={gap}."
            );
            return Err(value_error(text));
        }
        Ok((0..n_splits).map(move |at| {
            let start = count - (n_splits - at) * size;
            let end = start - gap;
            let first = max_train_size.map_or(0, |most| end.saturating_sub(most));
            Split { train: Rows::range(first..end, count), test: Rows::range(start..start + size, count) }
        }))
    }
}

/// The number of rows of a tensor.
#[track_caller]
pub(super) fn rows_of(x: &Tensor) -> Result<usize> {
    equal_lengths(&[&settled(&[x])?.remove(0)])
}

#[track_caller]
pub(super) fn check_two(n_splits: usize) -> Result<()> {
    if 2 <= n_splits {
        return Ok(());
    }
    let text = format!(
        "k-fold cross-validation requires at least one train/test split by setting n_splits=2 or more, got n_splits={n_splits}."
    );
    Err(value_error(text))
}

#[track_caller]
pub(super) fn check_folds(n_splits: usize, count: usize) -> Result<()> {
    check_two(n_splits)?;
    if n_splits <= count {
        return Ok(());
    }
    let text = format!(
        "Cannot have number of splits n_splits={n_splits} greater than the number of samples: n_samples={count}."
    );
    Err(value_error(text))
}

/// A part of `count` rows cut in `parts`; the first ones have a row more if need be.
pub(super) fn part_of(count: usize, parts: usize, part: usize) -> Range<usize> {
    let (size, more) = (count / parts, count % parts);
    let start = part * size + part.min(more);
    start..start + size + usize::from(part < more)
}

/// A test set of a range, and a training set of the rows around it.
fn around(test: Range<usize>, count: usize) -> Split {
    let train = Rows::ranges([0..test.start, test.end..count], count);
    Split { train, test: Rows::range(test, count) }
}

/// A test set of a range of positions, and a training set of the others; both in the order of rows.
fn positions_around(order: &Tensor, range: Range<usize>, count: usize) -> Split {
    let rest = slices_of(order, &[0..range.start, range.end..count]);
    let test = slices_of(order, &[range]);
    Split { train: Rows::positions(rest.sort(0), count), test: Rows::positions(test.sort(0), count) }
}
