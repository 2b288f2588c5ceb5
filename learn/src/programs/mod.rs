//! Estimators, metrics and splits as operations of programs, under scikit-learn's names.
//!
//! A row makes an estimator of its parameters, which the row lists and the binder checks. The estimator is an
//! object of the program: `sk.fit` changes it and returns it, as in scikit-learn, and methods read the model
//! of the last fit. What a method returns is an expression of that model, which later fits leave alone.
//! Passes run on the executor of the request, within its memory and its time.
//!
//! Parameters that have no effect on results (`copy`, `n_jobs`) are taken and not read; `random_state` of
//! `None` is 0. Others of scikit-learn that are not implemented are fixed at their defaults.

mod args;
mod classification;
mod cluster;
mod clusterings;
mod columns;
mod covariance;
mod decomposition;
mod discriminant;
mod distributions;
mod dummy;
mod encoders;
mod feature_selection;
mod generalized;
mod halving;
mod held;
mod holding;
mod impute;
mod kernels;
mod label_sets;
mod linear;
mod linear_selection;
mod methods;
mod mixture;
mod model;
mod naive_bayes;
mod neighbors;
mod object;
mod pairwise;
mod pipelines;
mod preprocessing;
mod ranking;
mod regression;
mod searches;
mod splits;
mod stochastic;
mod svm;
mod trees;

use tharsis_numeric::protocol::Tables;

/// The operations of this crate, for the evaluator of programs over tensors.
///
/// ```
/// use serde_json::json;
/// use tharsis_learn::programs::TABLES;
/// use tharsis_numeric::protocol::{Here, answer_on};
/// let request = json!({
///     "in": {"x": {"lit": [[0.0], [1.0], [2.0]]}, "y": {"lit": [1.0, 3.0, 5.0]}},
///     "prog": [
///         ["m", "sk.linear_model.LinearRegression", []],
///         ["_", "sk.fit", [{"$": "m"}, {"$": "x"}, {"$": "y"}]],
///         ["r", "sk.score", [{"$": "m"}, {"$": "x"}, {"$": "y"}]]
///     ],
///     "out": ["r"]
/// });
/// assert_eq!(answer_on(&request, ".".as_ref(), &Here, TABLES)["out"]["r"], json!(1.0));
/// ```
pub const TABLES: Tables = &[
    linear::ROWS,
    linear_selection::ROWS,
    stochastic::ROWS,
    svm::ROWS,
    generalized::ROWS,
    discriminant::ROWS,
    preprocessing::ROWS,
    distributions::ROWS,
    encoders::ROWS,
    label_sets::ROWS,
    impute::ROWS,
    feature_selection::ROWS,
    covariance::ROWS,
    decomposition::ROWS,
    kernels::ROWS,
    cluster::ROWS,
    mixture::ROWS,
    naive_bayes::ROWS,
    neighbors::ROWS,
    dummy::ROWS,
    trees::ROWS,
    holding::ROWS,
    pipelines::ROWS,
    columns::ROWS,
    searches::ROWS,
    halving::ROWS,
    methods::ROWS,
    classification::ROWS,
    ranking::ROWS,
    regression::ROWS,
    clusterings::ROWS,
    pairwise::ROWS,
    splits::ROWS,
];
