//! Values of metrics that are one number or one for each class or output.

use std::fmt;

/// The value of a metric: one number, or one for each class or output if the options ask for that.
///
/// ```
/// use tharsis_learn::metrics::{Average, f1_score};
/// use tharsis_numeric::array;
/// let (y_true, y_pred) = (array([0i64, 1, 1, 0]), array([0i64, 1, 0, 0]));
/// assert_eq!(f1_score(&y_true, &y_pred, Average::Each)?.values(), [0.8, 2.0 / 3.0]);
/// assert_eq!(f1_score(&y_true, &y_pred, ..)?.value(), 2.0 / 3.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub enum Score {
    /// A value for each class, in the order of the labels, or for each output.
    Each(Vec<f64>),
    /// One value.
    One(f64),
}

impl Score {
    /// The number; the mean of several.
    pub fn value(&self) -> f64 {
        match self {
            Score::Each(values) => values.iter().sum::<f64>() / values.len() as f64,
            Score::One(value) => *value,
        }
    }

    /// All numbers of the score.
    pub fn values(&self) -> &[f64] {
        match self {
            Score::Each(values) => values,
            Score::One(value) => std::slice::from_ref(value),
        }
    }
}

impl fmt::Display for Score {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Score::Each(values) => f.debug_list().entries(values).finish(),
            Score::One(value) => value.fmt(f),
        }
    }
}
