//! Splits in two random sets.

use super::folds::rows_of;
use super::rows::{Rows, Split, slice_of};
use super::strata::Strata;
use crate::Result;
use crate::metrics::inputs::{equal_lengths, settled, value_error};
use crate::metrics::options::defaults;
use crate::params::{Parameter, Setting};
use tharsis_numeric::Tensor;
use tharsis_numeric::random::default_rng;

/// Size of a set of rows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Share {
    /// A number of rows.
    Count(usize),
    /// A fraction of the rows, between 0 and 1.
    Fraction(f64),
}

impl Parameter for Share {
    fn words(least: usize) -> String {
        format!("{} or a float in the range (0.0, 1.0]", usize::words(least))
    }

    fn of(value: &Setting) -> Option<Share> {
        match value {
            Setting::Real(part) => Some(Share::Fraction(*part)),
            _ => usize::of(value).map(Share::Count),
        }
    }

    fn setting(&self) -> Setting {
        match self {
            Share::Count(count) => count.setting(),
            Share::Fraction(part) => part.setting(),
        }
    }
}

impl From<f64> for Share {
    fn from(fraction: f64) -> Share {
        Share::Fraction(fraction)
    }
}

impl From<usize> for Share {
    fn from(count: usize) -> Share {
        Share::Count(count)
    }
}

/// scikit-learn's `ShuffleSplit`: sets of rows drawn anew for each split.
///
/// ```
/// use tharsis_learn::model_selection::ShuffleSplit;
/// use tharsis_numeric::zeros;
/// let splits = ShuffleSplit { n_splits: 3, test_size: Some(0.25.into()), ..ShuffleSplit::default() };
/// for split in splits.split(&zeros(&[8]))? {
///     assert_eq!(split.test.indices().shape()?, [2]);
/// }
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ShuffleSplit {
    /// The number of splits.
    pub n_splits: usize,
    /// The size of a test set: a tenth of the rows, or all that a given training set leaves, if none is
    /// given.
    pub test_size: Option<Share>,
    /// The size of a training set: all rows that are not in the test set if none is given.
    pub train_size: Option<Share>,
    /// The seed of the draws.
    pub random_state: u64,
}

impl Default for ShuffleSplit {
    fn default() -> ShuffleSplit {
        ShuffleSplit { n_splits: 10, test_size: None, train_size: None, random_state: 0 }
    }
}

/// Options of [`train_test_split`].
#[derive(Clone, Debug)]
pub struct TrainTestSplit {
    /// The size of the test set: a quarter of the rows, or all that a given training set leaves, if none is
    /// given.
    pub test_size: Option<Share>,
    /// The size of the training set: all rows that are not in the test set if none is given.
    pub train_size: Option<Share>,
    /// The seed of the draw.
    pub random_state: u64,
    /// Whether rows are drawn; else the first ones are the training set, and the next ones the test set.
    pub shuffle: bool,
    /// Classes (n,) that have their share in both sets.
    pub stratify: Option<Tensor>,
}

impl Default for TrainTestSplit {
    fn default() -> TrainTestSplit {
        TrainTestSplit { test_size: None, train_size: None, random_state: 0, shuffle: true, stratify: None }
    }
}

defaults!(ShuffleSplit, TrainTestSplit);

/// The two parts of a tensor.
#[derive(Clone, Debug)]
pub struct TrainTest {
    /// The rows of the training set.
    pub train: Tensor,
    /// The rows of the test set.
    pub test: Tensor,
}

impl ShuffleSplit {
    /// The splits of the rows of a tensor (n, ..).
    ///
    /// ```
    /// use tharsis_learn::model_selection::ShuffleSplit;
    /// use tharsis_numeric::zeros;
    /// assert_eq!(ShuffleSplit::default().split(&zeros(&[20]))?.len(), 10);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for sizes that leave a set empty or exceed the rows.
    ///
    /// # Distributed
    /// A random order is made as by [`Tensor::argsort`].
    #[track_caller]
    pub fn split(&self, x: &Tensor) -> Result<impl ExactSizeIterator<Item = Split> + use<>> {
        check_fractions(self.train_size, self.test_size)?;
        let count = rows_of(x)?;
        let sizes = Sizes::of(count, self.train_size, self.test_size, 0.1)?;
        let generator = default_rng(self.random_state);
        Ok((0..self.n_splits).map(move |_| sizes.drawn(&generator.permutation(count), count)))
    }
}

/// scikit-learn's `train_test_split`: the rows of tensors of one length (n, ..), cut in a training and a test
/// set. Both are expressions: nothing runs before their values are asked for.
///
/// ```
/// use tharsis_learn::model_selection::{TrainTestSplit, train_test_split};
/// use tharsis_numeric::arange;
/// let (x, y) = (arange(20).reshape(&[10, 2]), arange(10));
/// let options = TrainTestSplit { test_size: Some(0.3.into()), ..TrainTestSplit::default() };
/// let [x, y] = train_test_split([&x, &y], options)?;
/// assert_eq!((x.train.shape()?, x.test.shape()?), (&[7, 2][..], &[3, 2][..]));
/// let pairs = x.test.sum(1).subtract(&y.test * 4);
/// assert_eq!(pairs.to_vec::<i64>()?, [1, 1, 1]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for different lengths, sizes that leave a set empty or exceed the rows, classes of a single
/// row, sets smaller than the number of classes, and classes without shuffling.
///
/// # Distributed
/// A random order is made as by [`Tensor::argsort`], and rows are taken as by [`Tensor::take_at`]; without
/// shuffling they are slices. Classes take two passes.
#[track_caller]
pub fn train_test_split<const N: usize>(
    tensors: [&Tensor; N],
    options: impl Into<TrainTestSplit>,
) -> Result<[TrainTest; N]> {
    let TrainTestSplit { test_size, train_size, random_state, shuffle, stratify } = options.into();
    check_fractions(train_size, test_size)?;
    if !shuffle && stratify.is_some() {
        return Err(value_error("Stratified train/test split is not implemented for shuffle=False"));
    }
    let known = settled(&tensors)?;
    let all: Vec<&Tensor> = known.iter().chain(&stratify).collect();
    if known.is_empty() {
        return Err(value_error("At least one array required as input"));
    }
    let all = settled(&all)?;
    let count = equal_lengths(&all.iter().collect::<Vec<_>>())?;
    let sizes = Sizes::of(count, train_size, test_size, 0.25)?;
    let generator = default_rng(random_state);
    let split = match (shuffle, &stratify) {
        (false, _) => sizes.in_order(count),
        (true, None) => sizes.drawn(&generator.permutation(count), count),
        (true, Some(classes)) => Strata::of(classes)?.split(&generator, sizes.train, sizes.test)?,
    };
    let mut parts = known.iter();
    Ok(tensors.map(|tensor| {
        let x = parts.next().unwrap_or(tensor);
        TrainTest { train: split.train.of(x), test: split.test.of(x) }
    }))
}

/// The rows of two sets.
#[derive(Clone, Copy)]
struct Sizes {
    train: usize,
    test: usize,
}

impl Sizes {
    /// Sizes of sets of `count` rows; a fraction of them is rounded up for the test set, and down for the
    /// training set.
    #[track_caller]
    fn of(count: usize, train: Option<Share>, test: Option<Share>, usual: f64) -> Result<Sizes> {
        let rows = |name: &str, share: Share, rounded: fn(f64) -> f64| match share {
            Share::Count(rows) if 0 < rows && rows < count => Ok(rows),
            Share::Fraction(share) if 0.0 < share && share < 1.0 => {
                Ok(rounded(share * count as f64) as usize)
            }
            Share::Count(rows) => Err(refused_size(name, &rows, count)),
            Share::Fraction(share) => Err(refused_size(name, &share, count)),
        };
        let of_test = |share| rows("test_size", share, f64::ceil);
        let of_train = |share| rows("train_size", share, f64::floor);
        let sizes = match (train, test) {
            (None, None) => {
                let test = (usual * count as f64).ceil() as usize;
                Sizes { train: count.saturating_sub(test), test }
            }
            (None, Some(test)) => {
                let test = of_test(test)?;
                Sizes { train: count.saturating_sub(test), test }
            }
            (Some(train), None) => {
                let train = of_train(train)?;
                Sizes { train, test: count.saturating_sub(train) }
            }
            (Some(train), Some(test)) => Sizes { train: of_train(train)?, test: of_test(test)? },
        };
        if count < sizes.train.saturating_add(sizes.test) {
            let text = format!(
                "The sum of train_size and test_size = {}, should be smaller than the number of samples {count}. Reduce test_size and/or train_size.",
                sizes.train + sizes.test
            );
            return Err(value_error(text));
        }
        if sizes.train == 0 {
            let text = format!(
                "With n_samples={count}, test_size={test:?} and train_size={train:?}, the resulting train set will be empty. Adjust any of the aforementioned parameters."
            );
            return Err(value_error(text));
        }
        Ok(sizes)
    }

    /// The first rows, and the next ones, of so many.
    fn in_order(self, count: usize) -> Split {
        let Sizes { train, test } = self;
        Split { train: Rows::range(0..train, count), test: Rows::range(train..train + test, count) }
    }

    /// The first positions are those of the test set.
    fn drawn(self, order: &Tensor, count: usize) -> Split {
        let Sizes { train, test } = self;
        let part = |range| Rows::positions(slice_of(order, range), count);
        Split { train: part(test..test + train), test: part(0..test) }
    }
}

/// Checks fractions, which needs no data.
#[track_caller]
fn check_fractions(train: Option<Share>, test: Option<Share>) -> Result<()> {
    for (name, share) in [("test_size", test), ("train_size", train)] {
        if let Some(Share::Fraction(fraction)) = share {
            let is_part = 0.0 < fraction && fraction < 1.0;
            if !is_part {
                let text =
                    format!("{name}={fraction} should be a float in the (0, 1) range, or a number of rows");
                return Err(value_error(text));
            }
        }
    }
    if let (Some(Share::Fraction(train)), Some(Share::Fraction(test))) = (train, test)
        && 1.0 < train + test
    {
        let text = format!(
            "The sum of test_size and train_size = {}, should be in the (0, 1) range. Reduce test_size and/or train_size.",
            train + test
        );
        return Err(value_error(text));
    }
    Ok(())
}

fn refused_size(name: &str, size: &dyn std::fmt::Debug, count: usize) -> crate::Error {
    let text = format!(
        "{name}={size:?} should be either positive and smaller than the number of samples {count} or a float in the (0, 1) range"
    );
    value_error(text)
}
