//! Classical machine learning with scikit-learn's names and habits, on tensors that may be larger than
//! memory.
//!
//! Data are read pass by pass: each pass is a plan over the chunks of a tensor whose results are small, and
//! is bounded in memory before it runs.
//!
//! # Design
//! An estimator is a builder with scikit-learn's parameters and defaults. `fit` checks them before it reads
//! anything, and returns a model of another type, so that there is no model that is not fitted. The state of
//! a model is small arrays, in float64 whatever the dtype of the data. `transform` and `predict` of a model
//! are expressions: a model that is fitted on them computes them in its own passes, without a copy of the
//! data between the two.
//!
//! For fixed chunks a model of at most 300 features is the same to the bit on any number of threads that have
//! 12 MiB or more of memory each. Wider products are cut by the memory of a thread; that and other chunks
//! change roundings.
//!
//! ```
//! use tharsis_learn::linear_model::Ridge;
//! use tharsis_numeric::{arange, array};
//!
//! let x = arange(6).reshape(&[6, 1]);
//! let y = array([1.0, 3.0, 5.0, 7.0, 9.0, 11.0]);
//! let model = Ridge::new().alpha(1e-9).fit(&x, &y, ..)?;
//! assert!((model.coef[[0]] - 2.0).abs() < 1e-8);
//! assert!((model.score(&x, &y, ..)? - 1.0).abs() < 1e-12);
//! # Ok::<(), tharsis_learn::Error>(())
//! ```

#![forbid(unsafe_code)]

pub mod base;
mod bounds;
pub mod calibration;
mod checks;
pub mod cluster;
mod column_transformer;
pub mod compose;
pub mod covariance;
pub mod datasets;
pub mod decomposition;
mod dense;
pub mod discriminant_analysis;
pub mod dummy;
mod engine;
pub mod ensemble;
mod feature_names;
pub mod feature_selection;
pub mod foreign;
pub mod frozen;
mod held;
mod held_files;
pub mod impute;
pub mod isotonic;
pub mod kernel_approximation;
mod labels;
mod layouts;
pub mod linear_model;
pub mod metrics;
pub mod mixture;
pub mod model_selection;
pub mod multiclass;
pub mod multioutput;
pub mod naive_bayes;
mod named;
pub mod neighbors;
mod options;
mod params;
mod passes;
pub mod pipeline;
pub mod preprocessing;
pub mod programs;
pub mod random_projection;
mod saved;
mod score;
mod show;
mod states;
mod step;
mod step_parts;
pub mod svm;
pub mod tree;

pub use held::{AnyClassifier, AnyEstimator, AnyRegressor, Classifies, FittedAny, Regresses, Tells};
pub use named::{FittedNamed, Named, Table};
pub use options::FitOptions;
pub use params::{Params, Setting};
pub use saved::Save;
pub use tharsis_numeric::{Error, Result};
