//! Scores along the values of a parameter, and along sizes of the training set.

use super::validation::{Fit, Problem, Validation, check_some_fit};
use crate::base::{Estimator, Predict};
use crate::metrics::inputs::value_error;
use crate::params::{Params, Setting};
use crate::{Error, Result};
use ndarray::Array2;
use tharsis_numeric::Tensor;

/// The result of [`validation_curve`].
#[derive(Debug)]
#[non_exhaustive]
pub struct ValidationCurve {
    /// The scores of the training sets; (values, splits).
    pub train_scores: Array2<f64>,
    /// The scores of the test sets; (values, splits).
    pub test_scores: Array2<f64>,
    /// Errors of the fits and scores that failed.
    pub failures: Vec<Error>,
}

/// The result of [`learning_curve`].
#[derive(Debug)]
#[non_exhaustive]
pub struct LearningCurve {
    /// The sizes of the training sets, ascending and different.
    pub train_sizes: Vec<usize>,
    /// The scores of the training sets; (sizes, splits).
    pub train_scores: Array2<f64>,
    /// The scores of the test sets; (sizes, splits).
    pub test_scores: Array2<f64>,
    /// Errors of the fits and scores that failed.
    pub failures: Vec<Error>,
}

/// scikit-learn's `validation_curve`: scores on training and test sets for values of a parameter.
///
/// ```
/// use tharsis_learn::linear_model::Ridge;
/// use tharsis_learn::model_selection::validation_curve;
/// use tharsis_numeric::arange;
/// let x = arange(20).reshape(&[20, 1]);
/// let curve = validation_curve(&Ridge::new(), &x, &x.squeeze(None), "alpha", [0.0, 10.0], ..)?;
/// assert_eq!(curve.test_scores.dim(), (2, 5));
/// assert!(curve.test_scores[[1, 0]] < curve.test_scores[[0, 0]]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for a name that is no parameter, and as [`cross_validate`](super::cross_validate).
#[track_caller]
pub fn validation_curve<E, S: Into<Setting>>(
    estimator: &E,
    x: &Tensor,
    y: &Tensor,
    param_name: &str,
    param_range: impl IntoIterator<Item = S>,
    options: impl Into<Validation>,
) -> Result<ValidationCurve>
where
    E: Estimator<Fitted: Predict> + Params + Clone,
{
    let mut scores = Scores::new(x, y, options.into(), E::Fitted::TASK)?;
    for value in param_range {
        let mut estimator = estimator.clone();
        estimator.set(param_name, &value.into())?;
        scores.add(|fit| estimator.fit_any(&fit.x, Some(&fit.y), &fit.options))?;
    }
    let [train_scores, test_scores] = scores.arrays()?;
    Ok(ValidationCurve { train_scores, test_scores, failures: scores.failures })
}

/// scikit-learn's `learning_curve`: scores on training and test sets for parts of the training sets, from
/// their start. Sizes are shares of the first training set, at least one sample; scikit-learn's default is
/// 0.1, 0.325, 0.55, 0.775 and 1.
///
/// ```
/// use tharsis_learn::linear_model::LinearRegression;
/// use tharsis_learn::model_selection::learning_curve;
/// use tharsis_numeric::arange;
/// let x = arange(50).reshape(&[50, 1]);
/// let curve = learning_curve(&LinearRegression::new(), &x, &x.squeeze(None), &[0.25, 1.0], ..)?;
/// assert_eq!(curve.train_sizes, [10, 40]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for shares that are not above 0 and at most 1, and as
/// [`cross_validate`](super::cross_validate).
#[track_caller]
pub fn learning_curve<E>(
    estimator: &E,
    x: &Tensor,
    y: &Tensor,
    train_sizes: &[f64],
    options: impl Into<Validation>,
) -> Result<LearningCurve>
where
    E: Estimator<Fitted: Predict>,
{
    let mut scores = Scores::new(x, y, options.into(), E::Fitted::TASK)?;
    let first = scores.problem.splits.first().ok_or_else(|| value_error("there are no splits"))?;
    let most = scores.problem.part(&first.train).rows()?;
    let mut sizes = Vec::with_capacity(train_sizes.len());
    for &share in train_sizes {
        let is_share = 0.0 < share && share <= 1.0;
        if !is_share {
            return Err(value_error(format!(
                "train_sizes has been interpreted as fractions of the maximum number of training samples and must \
                 be within (0, 1], but is {share}."
            )));
        }
        sizes.push(((share * most as f64) as usize).max(1));
    }
    sizes.sort_unstable();
    sizes.dedup();
    for &size in &sizes {
        scores.add_parts(size, |fit| estimator.fit_any(&fit.x, Some(&fit.y), &fit.options))?;
    }
    let [train_scores, test_scores] = scores.arrays()?;
    Ok(LearningCurve { train_sizes: sizes, train_scores, test_scores, failures: scores.failures })
}

/// Scores of several rounds of fits.
struct Scores {
    problem: Problem,
    rounds: usize,
    fitted: usize,
    train: Vec<f64>,
    test: Vec<f64>,
    failures: Vec<Error>,
}

impl Scores {
    #[track_caller]
    fn new(x: &Tensor, y: &Tensor, options: Validation, task: crate::base::Task) -> Result<Scores> {
        let options = Validation { return_train_score: true, ..options };
        let problem = Problem::new(x, y, options, task)?;
        Ok(Scores {
            problem,
            rounds: 0,
            fitted: 0,
            train: Vec::new(),
            test: Vec::new(),
            failures: Vec::new(),
        })
    }

    /// Adds a round of fits on whole training sets.
    #[track_caller]
    fn add<M: Predict>(&mut self, fit: impl Fn(&Fit) -> Result<M>) -> Result<()> {
        self.add_parts(usize::MAX, fit)
    }

    /// Adds a round of fits on the first rows of the training sets.
    #[track_caller]
    fn add_parts<M: Predict>(&mut self, most: usize, fit: impl Fn(&Fit) -> Result<M>) -> Result<()> {
        let found = self.problem.validated(most, fit)?;
        self.rounds += 1;
        self.fitted += found.fitted();
        self.train.extend(found.train_score);
        self.test.extend(found.test_score);
        self.failures.extend(found.failures);
        Ok(())
    }

    /// The scores as tables; (rounds, splits).
    fn arrays(&mut self) -> Result<[Array2<f64>; 2]> {
        let splits = self.problem.splits.len();
        check_some_fit(&self.failures, self.fitted, self.rounds * splits)?;
        let shape = (self.rounds, splits);
        let array = |scores: &mut Vec<f64>| {
            Array2::from_shape_vec(shape, std::mem::take(scores)).map_err(|_| crate::states::lost())
        };
        Ok([array(&mut self.train)?, array(&mut self.test)?])
    }
}
