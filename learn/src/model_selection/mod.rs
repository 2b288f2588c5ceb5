//! scikit-learn's `model_selection`: splitters, validations and searches.
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

mod candidates;
mod curves;
mod folds;
mod found;
mod halving;
mod rows;
mod scoring;
mod search;
mod shuffle;
mod strata;
mod table;
mod validation;

pub use candidates::{Candidate, Distribution, ParamDistributions, ParamGrid};
pub use curves::{LearningCurve, ValidationCurve, learning_curve, validation_curve};
pub use folds::{GroupKFold, KFold, LeaveOneOut, TimeSeriesSplit};
pub use found::FittedSearch;
pub use halving::{FittedHalving, HalvingGridSearchCV, HalvingRandomSearchCV, MinResources};
pub use rows::{Rows, Split};
pub use scoring::Scoring;
pub use search::{GridSearchCV, RandomizedSearchCV};
pub use shuffle::{Share, ShuffleSplit, TrainTest, TrainTestSplit, train_test_split};
pub use strata::StratifiedKFold;
pub use table::{CvResults, ScoreTable};
pub use validation::{
    ErrorScore, Folds, FurtherScore, Validated, Validation, cross_val_predict, cross_val_predict_proba,
    cross_val_score, cross_validate,
};
pub(crate) use validation::{Fit, cross_val_tell, each_split};
