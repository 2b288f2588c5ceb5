//! Options of fits.

use std::fmt;
use std::ops::RangeFull;
use std::sync::Arc;
use tharsis_graph::Executor;
use tharsis_numeric::{Tensor, default_executor};

/// Options of a fit or a score; `..` is the default of each.
///
/// ```
/// use tharsis_learn::FitOptions;
/// use tharsis_learn::linear_model::LinearRegression;
/// use tharsis_numeric::{arange, array};
///
/// let (x, y) = (arange(3).reshape(&[3, 1]), array([0.0, 1.0, 9.0]));
/// let weights = array([1.0, 1.0, 0.0]);
/// let model = LinearRegression::new().fit(&x, &y, FitOptions::new().sample_weight(&weights))?;
/// assert!((model.coef[[0]] - 1.0).abs() < 1e-12);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Default)]
pub struct FitOptions {
    sample_weight: Option<Tensor>,
    executor: Option<Arc<dyn Executor>>,
}

impl FitOptions {
    /// The defaults: all samples count once; the default executor.
    ///
    /// ```
    /// use tharsis_learn::FitOptions;
    /// let options = FitOptions::new();
    /// assert!(format!("{options:?}").contains("sample_weight: None"));
    /// ```
    pub fn new() -> FitOptions {
        FitOptions::default()
    }

    /// scikit-learn's `sample_weight`: how much each sample counts, not negative; (n,).
    ///
    /// ```
    /// use tharsis_learn::FitOptions;
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 4.0]).reshape(&[2, 1]);
    /// let options = FitOptions::new().sample_weight(&array([3.0, 1.0]));
    /// assert_eq!(StandardScaler::new().fit(&x, options)?.mean[0], 1.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn sample_weight(self, weights: &Tensor) -> FitOptions {
        FitOptions { sample_weight: Some(weights.clone()), ..self }
    }

    /// Runs the passes on this executor instead of the default one.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use tharsis_learn::FitOptions;
    /// use tharsis_learn::preprocessing::MinMaxScaler;
    /// use tharsis_numeric::{LocalExecutor, arange};
    /// let options = FitOptions::new().executor(Arc::new(LocalExecutor::sized(1, 1 << 20)));
    /// assert_eq!(MinMaxScaler::new().fit(&arange(5).reshape(&[5, 1]), options)?.data_max[0], 4.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn executor(self, executor: Arc<dyn Executor>) -> FitOptions {
        FitOptions { executor: Some(executor), ..self }
    }

    /// The weights, if there are any.
    pub(crate) fn weights(&self) -> Option<&Tensor> {
        self.sample_weight.as_ref()
    }

    /// These options without weights.
    pub(crate) fn unweighted(&self) -> FitOptions {
        FitOptions { sample_weight: None, ..self.clone() }
    }

    /// The executor of the passes.
    pub(crate) fn chosen_executor(&self) -> Arc<dyn Executor> {
        self.executor.clone().unwrap_or_else(default_executor)
    }
}

impl From<RangeFull> for FitOptions {
    fn from(_: RangeFull) -> FitOptions {
        FitOptions::new()
    }
}

impl From<&FitOptions> for FitOptions {
    fn from(options: &FitOptions) -> FitOptions {
        options.clone()
    }
}

impl fmt::Debug for FitOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let executor = self.executor.as_ref().map(|executor| executor.limits());
        let mut fields = f.debug_struct("FitOptions");
        fields.field("sample_weight", &self.sample_weight).field("executor", &executor).finish()
    }
}
