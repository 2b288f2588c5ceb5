//! scikit-learn's `multiclass`: classifiers of two classes for more of them.

mod one_vs_one;
mod one_vs_rest;

pub use one_vs_one::{FittedOneVsOneClassifier, OneVsOneClassifier};
pub use one_vs_rest::{FittedOneVsRestClassifier, OneVsRestClassifier};

use crate::held::{Classifies, FittedAny, Response};
use tharsis_numeric::{Index, Result, Tensor};

/// The score of the greater one of two classes, and the number above which it is predicted. (n,).
#[track_caller]
fn binary_score(model: &FittedAny<Classifies>, x: &Tensor) -> Result<(Tensor, f64)> {
    let Response { values, is_decision, .. } = model.response(x)?;
    let score = match (values.ndim()?, is_decision) {
        (1, _) => values,
        _ => values.get(&[Index::from(..), Index::from(-1i64)]),
    };
    Ok((score, if is_decision { 0.0 } else { 0.5 }))
}
