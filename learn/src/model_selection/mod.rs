//! scikit-learn's splitters: `model_selection`.
//!
//! A split is a pair of [`Rows`], the rows to train with and those to test with. They are slices or
//! expressions of positions, which [`Rows::of`] takes from any tensor of as many rows: no positions are
//! collected. Random orders are functions of `random_state`, whatever the chunks; they are not
//! scikit-learn's.
//!
//! ```
//! use tharsis_learn::model_selection::KFold;
//! use tharsis_numeric::arange;
//! let x = arange(4);
//! let folds = KFold { n_splits: 2, ..KFold::default() };
//! for split in folds.split(&x)? {
//!     assert_eq!(split.train.of(&x).shape()?, [2]);
//! }
//! # Ok::<(), tharsis_learn::Error>(())
//! ```

mod folds;
mod rows;
mod shuffle;
mod strata;

pub use folds::{GroupKFold, KFold, LeaveOneOut, TimeSeriesSplit};
pub use rows::{Rows, Split};
pub use shuffle::{Share, ShuffleSplit, TrainTest, TrainTestSplit, train_test_split};
pub use strata::StratifiedKFold;
