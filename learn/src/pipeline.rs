//! Steps of preparation and a last estimator, fitted and used as one.

use crate::base::{ByClass, Estimator, FitOptions, Predict, PredictProba, Task, Transform};
use crate::checks::refused;
use crate::cluster::{FittedBisectingKMeans, FittedKMeans, FittedMiniBatchKMeans};
use crate::column_transformer::FittedColumnTransformer;
use crate::decomposition::{
    FittedFactorAnalysis, FittedFastICA, FittedIncrementalPCA, FittedNMF, FittedPCA, FittedTruncatedSVD,
};
use crate::discriminant_analysis::FittedLinearDiscriminantAnalysis;
use crate::ensemble::{
    FittedStackingClassifier, FittedStackingRegressor, FittedVotingClassifier, FittedVotingRegressor,
};
use crate::feature_selection::{FittedSelect, FittedVarianceThreshold, Support};
use crate::impute::{FittedKNNImputer, FittedMissingIndicator, FittedSimpleImputer};
use crate::isotonic::FittedIsotonicRegression;
use crate::kernel_approximation::{
    FittedAdditiveChi2Sampler, FittedNystroem, FittedPolynomialCountSketch, FittedRBFSampler,
    FittedSkewedChi2Sampler,
};
use crate::params::{Params, Setting};
use crate::preprocessing::{
    Binarizer, FittedKBinsDiscretizer, FittedKernelCenterer, FittedMaxAbsScaler, FittedMinMaxScaler,
    FittedOneHotEncoder, FittedOrdinalEncoder, FittedPolynomialFeatures, FittedPowerTransformer,
    FittedQuantileTransformer, FittedRobustScaler, FittedSplineTransformer, FittedStandardScaler,
    FittedTargetEncoder, Normalizer,
};
use crate::random_projection::FittedRandomProjection;
use crate::saved::{Deeper, Save, decoded, encoded};
use crate::step::{FittedStep, Map, Step};
use std::fmt;
use tharsis_graph::Error as GraphError;
use tharsis_numeric::{Error, Result, Tensor};

pub use crate::column_transformer::FeatureUnion;

/// scikit-learn's `Pipeline`: transformers, each fitted on what those before it make, and a last estimator.
///
/// A transformer makes an expression, which the passes of the next fit compute on their way: there is no copy
/// of the data between steps. Which methods the fitted pipeline has is known when it is compiled: it
/// predicts if its last model does.
///
/// ```
/// use tharsis_learn::linear_model::LogisticRegression;
/// use tharsis_learn::pipeline::Pipeline;
/// use tharsis_learn::preprocessing::StandardScaler;
/// use tharsis_numeric::array;
///
/// let x = array([-200.0, -100.0, 100.0, 200.0]).reshape(&[4, 1]);
/// let y = array([0i64, 0, 1, 1]);
/// let pipeline = Pipeline::new().step("scale", StandardScaler::new());
/// let model = pipeline.last("model", LogisticRegression::new()).fit(&x, &y, ..)?;
/// assert_eq!(model.predict(&x).to_vec::<i64>()?, [0, 0, 1, 1]);
/// assert_eq!(model.score(&x, &y, ..)?, 1.0);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone)]
pub struct Pipeline<E> {
    steps: Vec<(String, Box<dyn Step>)>,
    last: (String, E),
}

/// A fitted [`Pipeline`].
pub struct FittedPipeline<M> {
    steps: Vec<(String, Map)>,
    last: (String, M),
}

impl Default for Pipeline<()> {
    fn default() -> Pipeline<()> {
        Pipeline { steps: Vec::new(), last: (String::new(), ()) }
    }
}

impl Pipeline<()> {
    /// A pipeline without steps. It can be fitted once it has a last estimator.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Ridge;
    /// use tharsis_learn::pipeline::Pipeline;
    /// use tharsis_numeric::{arange, array};
    /// let pipeline = Pipeline::new().last("ridge", Ridge::new());
    /// let model = pipeline.fit(&arange(2).reshape(&[2, 1]), &array([1.0, 1.0]), ..)?;
    /// assert_eq!(model.last().intercept.sum(), 1.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> Pipeline<()> {
        Pipeline::default()
    }

    /// Adds a transformer behind those that are there.
    ///
    /// ```
    /// use tharsis_learn::decomposition::PCA;
    /// use tharsis_learn::pipeline::Pipeline;
    /// use tharsis_learn::preprocessing::{MaxAbsScaler, Normalizer};
    /// let pipeline = Pipeline::new()
    ///     .step("scale", MaxAbsScaler::new())
    ///     .step("normalize", Normalizer::new())
    ///     .last("pca", PCA::new());
    /// assert_eq!(format!("{pipeline:?}"), "Pipeline(scale, normalize, pca)");
    /// ```
    pub fn step<S>(mut self, name: &str, step: S) -> Pipeline<()>
    where
        S: Estimator + Params + Clone + Send + Sync + 'static,
        S::Fitted: Transform + Send + Sync + 'static,
    {
        self.steps.push((name.to_owned(), Box::new(step)));
        self
    }

    /// The pipeline of these steps and a last estimator, of any kind.
    ///
    /// ```
    /// use tharsis_learn::pipeline::Pipeline;
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::arange;
    /// let pipeline = Pipeline::new().last("scale", StandardScaler::new());
    /// assert_eq!(pipeline.fit_unsupervised(&arange(3).reshape(&[3, 1]), ..)?.last().mean[0], 1.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn last<E: Estimator>(self, name: &str, last: E) -> Pipeline<E> {
        Pipeline { steps: self.steps, last: (name.to_owned(), last) }
    }
}

impl<E: Estimator> Pipeline<E> {
    /// Fits all steps on samples (n, d) and their targets. Weights are those of the last estimator, as
    /// transformers of scikit-learn's pipelines have none unless they are named.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LinearRegression;
    /// use tharsis_learn::pipeline::Pipeline;
    /// use tharsis_learn::preprocessing::MinMaxScaler;
    /// use tharsis_numeric::array;
    /// let x = array([10.0, 20.0]).reshape(&[2, 1]);
    /// let pipeline = Pipeline::new().step("scale", MinMaxScaler::new());
    /// let model = pipeline.last("line", LinearRegression::new()).fit(&x, &array([0.0, 3.0]), ..)?;
    /// assert!((model.last().coef[[0]] - 3.0).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for names that are empty, given twice or with two underlines, behind which names of
    /// parameters begin; the errors of the steps.
    #[track_caller]
    pub fn fit(
        &self,
        x: &Tensor,
        y: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedPipeline<E::Fitted>> {
        self.fit_any(x, Some(y), &options.into())
    }

    /// Fits all steps on samples (n, d), where none needs targets.
    ///
    /// ```
    /// use tharsis_learn::decomposition::PCA;
    /// use tharsis_learn::pipeline::Pipeline;
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::arange;
    /// let x = arange(6).reshape(&[3, 2]);
    /// let pipeline = Pipeline::new().step("scale", StandardScaler::new());
    /// let pipeline = pipeline.last("pca", PCA::new().n_components(1));
    /// assert_eq!(pipeline.fit_unsupervised(&x, ..)?.transform(&x).shape()?, [3, 1]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`fit`](Pipeline::fit); `ValueError` if a step needs targets.
    #[track_caller]
    pub fn fit_unsupervised(
        &self,
        x: &Tensor,
        options: impl Into<FitOptions>,
    ) -> Result<FittedPipeline<E::Fitted>> {
        self.fit_any(x, None, &options.into())
    }

    /// Names of the steps, the last estimator's last.
    fn names(&self) -> Vec<&str> {
        self.steps.iter().map(|(name, _)| name.as_str()).chain([self.last.0.as_str()]).collect()
    }

    #[track_caller]
    fn check(&self) -> Result<()> {
        let names = self.names();
        for (at, name) in names.iter().enumerate() {
            if name.is_empty() || names[..at].contains(name) {
                return Err(refused(format!("Names provided are not unique: {names:?}")));
            }
            if name.contains("__") {
                return Err(refused(format!("Estimator names must not contain __: got [{name:?}]")));
            }
        }
        Ok(())
    }
}

impl<E: Estimator> Estimator for Pipeline<E> {
    type Fitted = FittedPipeline<E::Fitted>;

    fn takes_weights(&self) -> bool {
        self.last.1.takes_weights()
    }

    #[track_caller]
    fn fit_any(
        &self,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<FittedPipeline<E::Fitted>> {
        self.check()?;
        let unweighted = options.unweighted();
        let mut samples = x.clone();
        let mut steps = Vec::with_capacity(self.steps.len());
        for (name, step) in &self.steps {
            let (model, made) = step.fit_step(&samples, y, &unweighted)?;
            samples = made;
            steps.push((name.clone(), model));
        }
        let (name, last) = &self.last;
        Ok(FittedPipeline { steps, last: (name.clone(), last.fit_any(&samples, y, options)?) })
    }
}

impl<E: Estimator + Params> Params for Pipeline<E> {
    fn estimator(&self) -> &'static str {
        "Pipeline"
    }

    fn params(&self) -> Vec<(String, Setting)> {
        let steps = self.steps.iter().map(|(name, step)| (name, step.params()));
        let last: (&String, &dyn Params) = (&self.last.0, &self.last.1);
        let all = steps.chain([last]).flat_map(|(step, params)| {
            params.params().into_iter().map(move |(name, value)| (format!("{step}__{name}"), value))
        });
        all.collect()
    }

    #[track_caller]
    fn set(&mut self, name: &str, value: &Setting) -> Result<()> {
        if let Some((step, param)) = name.split_once("__") {
            if let Some((_, found)) = self.steps.iter_mut().find(|(name, _)| name == step) {
                return found.params_mut().set(param, value);
            }
            if self.last.0 == step {
                return self.last.1.set(param, value);
            }
        }
        let (prefix, _) = name.split_once("__").unwrap_or((name, ""));
        let valid = self.names();
        Err(refused(format!(
            "Invalid parameter '{prefix}' for estimator {self:?}. Valid parameters are: {valid:?}."
        )))
    }
}

impl<M> FittedPipeline<M> {
    /// The model of the last estimator.
    ///
    /// ```
    /// use tharsis_learn::pipeline::Pipeline;
    /// use tharsis_learn::preprocessing::MaxAbsScaler;
    /// use tharsis_numeric::array;
    /// let x = array([-2.0]).reshape(&[1, 1]);
    /// let model = Pipeline::new().last("scale", MaxAbsScaler::new()).fit_unsupervised(&x, ..)?;
    /// assert_eq!(model.last().max_abs[0], 2.0);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    #[must_use]
    pub fn last(&self) -> &M {
        &self.last.1
    }

    /// The samples that the last model gets.
    #[track_caller]
    fn prepared(&self, x: &Tensor) -> Tensor {
        self.steps.iter().fold(x.clone(), |samples, (_, model)| model.transform(&samples))
    }
}

impl<M: Predict> FittedPipeline<M> {
    /// The predictions of the last model for samples (n, d), as an expression.
    ///
    /// ```
    /// use tharsis_learn::linear_model::Ridge;
    /// use tharsis_learn::pipeline::Pipeline;
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::{arange, array};
    /// let pipeline = Pipeline::new().step("scale", StandardScaler::new()).last("ridge", Ridge::new());
    /// let model = pipeline.fit(&arange(2).reshape(&[2, 1]), &array([1.0, 1.0]), ..)?;
    /// assert_eq!(model.predict(&arange(1).reshape(&[1, 1])).to_vec::<f64>()?, [1.0]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        self.last.1.predict(&self.prepared(x))
    }

    /// The score of the last model on samples (n, d) and their targets.
    ///
    /// ```
    /// use tharsis_learn::linear_model::LinearRegression;
    /// use tharsis_learn::pipeline::Pipeline;
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::{arange, array};
    /// let (x, y) = (arange(3).reshape(&[3, 1]), array([0.0, 1.0, 2.0]));
    /// let pipeline = Pipeline::new().step("scale", StandardScaler::new());
    /// let pipeline = pipeline.last("line", LinearRegression::new());
    /// assert!((pipeline.fit(&x, &y, ..)?.score(&x, &y, ..)? - 1.0).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// Those of the last model's `score`.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.last.1.score_any(&self.prepared(x), y, &options.into())
    }
}

impl<M: PredictProba> FittedPipeline<M> {
    /// The probabilities that the last model gives to samples (n, d), as an expression; (n, k).
    ///
    /// ```
    /// use tharsis_learn::naive_bayes::GaussianNB;
    /// use tharsis_learn::pipeline::Pipeline;
    /// use tharsis_learn::preprocessing::StandardScaler;
    /// use tharsis_numeric::array;
    /// let x = array([0.0, 1.0, 8.0, 9.0]).reshape(&[4, 1]);
    /// let pipeline = Pipeline::new().step("scale", StandardScaler::new()).last("bayes", GaussianNB::new());
    /// let model = pipeline.fit(&x, &array([0i64, 0, 1, 1]), ..)?;
    /// assert_eq!(model.predict_proba(&x).shape()?, [4, 2]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn predict_proba(&self, x: &Tensor) -> Tensor {
        self.last.1.predict_proba(&self.prepared(x))
    }
}

impl<M: Transform> FittedPipeline<M> {
    /// Samples (n, d) through all steps, as an expression.
    ///
    /// ```
    /// use tharsis_learn::pipeline::Pipeline;
    /// use tharsis_learn::preprocessing::{MaxAbsScaler, MinMaxScaler};
    /// use tharsis_numeric::array;
    /// let x = array([1.0, 2.0, 4.0]).reshape(&[3, 1]);
    /// let pipeline = Pipeline::new().step("scale", MaxAbsScaler::new()).last("range", MinMaxScaler::new());
    /// let made = pipeline.fit_unsupervised(&x, ..)?.transform(&x);
    /// assert!((made.to_vec::<f64>()?[2] - 1.0).abs() < 1e-12);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` for another number of features.
    #[track_caller]
    pub fn transform(&self, x: &Tensor) -> Tensor {
        self.last.1.transform(&self.prepared(x))
    }
}

impl<M: Transform> Transform for FittedPipeline<M> {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        FittedPipeline::transform(self, x)
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        let steps = self.steps.iter();
        let names = steps
            .map(|(_, step)| step)
            .try_fold(names.to_vec(), |names, step| step.feature_names_out(&names))?;
        self.last.1.feature_names_out(&names)
    }
}

impl<M: Predict> Predict for FittedPipeline<M> {
    const TASK: Task = M::TASK;

    fn name(&self) -> &'static str {
        self.last.1.name()
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        FittedPipeline::predict(self, x)
    }

    fn class_labels(&self) -> Option<&[i64]> {
        self.last.1.class_labels()
    }

    #[track_caller]
    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>> {
        self.last.1.probabilities(&self.prepared(x))
    }

    #[track_caller]
    fn decisions(&self, x: &Tensor) -> Option<ByClass<'_>> {
        self.last.1.decisions(&self.prepared(x))
    }

    #[track_caller]
    fn score_any(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<f64> {
        self.score(x, y, options)
    }
}

impl<M: PredictProba> PredictProba for FittedPipeline<M> {
    fn classes(&self) -> &[i64] {
        self.last.1.classes()
    }

    #[track_caller]
    fn predict_proba(&self, x: &Tensor) -> Tensor {
        FittedPipeline::predict_proba(self, x)
    }

    #[track_caller]
    fn predict_log_proba(&self, x: &Tensor) -> Tensor {
        self.last.1.predict_log_proba(&self.prepared(x))
    }
}

/// A step of a saved pipeline: its name, the name of its type, and its numbers.
type SavedStep = (String, String, Vec<u8>);

/// A type of transformers that a saved pipeline may have.
type ReadStep = (&'static str, fn(&[u8]) -> Option<Map>);

macro_rules! steps {
    ($($model:ty),* $(,)?) => {
        &[$((<$model as Save>::KIND, |body| Some(Box::new(<$model as Save>::of_body(body)?)))),*]
    };
}

/// All such types.
const STEPS: &[ReadStep] = steps![
    FittedBisectingKMeans,
    FittedKMeans,
    FittedMiniBatchKMeans,
    FittedFactorAnalysis,
    FittedFastICA,
    FittedIncrementalPCA,
    FittedNMF,
    FittedPCA,
    FittedTruncatedSVD,
    FittedAdditiveChi2Sampler,
    FittedNystroem,
    FittedPolynomialCountSketch,
    FittedRBFSampler,
    FittedSkewedChi2Sampler,
    FittedRandomProjection,
    FittedLinearDiscriminantAnalysis,
    FittedSelect,
    FittedVarianceThreshold,
    FittedKNNImputer,
    FittedMissingIndicator,
    FittedSimpleImputer,
    Binarizer,
    FittedKBinsDiscretizer,
    FittedKernelCenterer,
    FittedOneHotEncoder,
    FittedOrdinalEncoder,
    FittedMaxAbsScaler,
    FittedMinMaxScaler,
    FittedPolynomialFeatures,
    FittedPowerTransformer,
    FittedQuantileTransformer,
    FittedRobustScaler,
    FittedSplineTransformer,
    FittedStandardScaler,
    FittedTargetEncoder,
    Normalizer,
    FittedIsotonicRegression,
    FittedStackingClassifier,
    FittedStackingRegressor,
    FittedVotingClassifier,
    FittedVotingRegressor,
    FittedColumnTransformer,
    Support,
];

/// Whether a step that is saved has a type that is known here, or an error.
pub(crate) fn is_read_again(saved: &Result<(&'static str, Vec<u8>)>) -> bool {
    saved.as_ref().map_or(true, |(kind, _)| STEPS.iter().any(|(known, _)| known == kind))
}

/// The transformer of a name of a type and of its numbers.
pub(crate) fn read_step(kind: &str, body: &[u8]) -> Option<Map> {
    let (_, read) = STEPS.iter().find(|(known, _)| *known == kind)?;
    read(body)
}

/// A part of other models, of any of these types, in no more others than a file may have.
impl Save for FittedStep {
    const KIND: &'static str = "Step";

    #[track_caller]
    fn body(&self) -> Result<Vec<u8>> {
        encoded(&self.kind_and_body()?)
    }

    fn of_body(body: &[u8]) -> Option<FittedStep> {
        let (kind, body): (String, Vec<u8>) = decoded(body)?;
        FittedStep::of_kind(&kind, &body)
    }

    /// `NotImplemented` for a type that has no place in files, and in too many others.
    #[track_caller]
    fn kind_and_body(&self) -> Result<(&'static str, Vec<u8>)> {
        let missing = |text: &str| Error::here(GraphError::NotImplemented(text.to_owned()));
        let Some(_deeper) = Deeper::one() else {
            return Err(missing("a file of a transformer in so many others"));
        };
        match self.0.step_body().filter(is_read_again) {
            Some(saved) => saved,
            None => Err(missing("a file of a transformer of this type in another one")),
        }
    }

    fn of_kind(kind: &str, body: &[u8]) -> Option<FittedStep> {
        let _deeper = Deeper::one()?;
        read_step(kind, body).map(FittedStep)
    }
}

impl<M: Save> Save for FittedPipeline<M> {
    const KIND: &'static str = "Pipeline";

    /// `NotImplemented` if a step is of a type that has no place in files.
    #[track_caller]
    fn body(&self) -> Result<Vec<u8>> {
        let mut steps: Vec<SavedStep> = Vec::with_capacity(self.steps.len());
        for (name, step) in &self.steps {
            let Some(saved) = step.step_body().filter(is_read_again) else {
                let text = format!("the step '{name}' of a saved pipeline");
                return Err(Error::here(GraphError::NotImplemented(text)));
            };
            let (kind, body) = saved?;
            steps.push((name.clone(), kind.to_owned(), body));
        }
        let (name, last) = &self.last;
        let (kind, body) = last.kind_and_body()?;
        encoded(&(steps, (name.clone(), kind.to_owned(), body)))
    }

    fn of_body(body: &[u8]) -> Option<FittedPipeline<M>> {
        let (steps, last): (Vec<SavedStep>, SavedStep) = decoded(body)?;
        let read = |(name, kind, body): SavedStep| Some((name, read_step(&kind, &body)?));
        let steps = steps.into_iter().map(read).collect::<Option<_>>()?;
        let (name, kind, body) = last;
        Some(FittedPipeline { steps, last: (name, M::of_kind(&kind, &body)?) })
    }
}

impl<E: Estimator> fmt::Debug for Pipeline<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pipeline({})", self.names().join(", "))
    }
}

impl<M> fmt::Debug for FittedPipeline<M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names = self.steps.iter().map(|(name, _)| name.as_str()).chain([self.last.0.as_str()]);
        write!(f, "FittedPipeline({})", names.collect::<Vec<_>>().join(", "))
    }
}

impl<M: fmt::Display> fmt::Display for FittedPipeline<M> {
    /// The names of the steps, and the text of the last model.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, _) in &self.steps {
            write!(f, "{name} -> ")?;
        }
        write!(f, "{}: {}", self.last.0, self.last.1)
    }
}
