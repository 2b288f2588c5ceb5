//! Checks of data before any pass, with the texts of scikit-learn, and the data that have passed them.

use crate::engine::Engine;
use crate::options::FitOptions;
use tharsis_graph::Error as GraphError;
use tharsis_kernels::{Kind, UnaryOp};
use tharsis_numeric::elementwise::unary;
use tharsis_numeric::{DType, Error, Result, Tensor, where_};

/// Arrays of the size of a matrix that exist at the same time while it is decomposed in this process.
const HELD_AT_ONCE: u64 = 4;
/// Bytes that matrices may take in this process in any case.
const HELD_LEAST_BYTES: u64 = 64 << 20;

/// A `ValueError`.
#[track_caller]
pub(crate) fn refused(text: impl Into<String>) -> Error {
    Error::here(GraphError::Value(text.into()))
}

/// Samples and their targets and weights, checked as far as that needs no pass. Elements are float64.
pub(crate) struct Training {
    /// Name of the estimator, for errors.
    pub(crate) estimator: &'static str,
    /// Runs the passes.
    pub(crate) engine: Engine,
    /// The samples; (rows, columns).
    pub(crate) x: Tensor,
    /// The samples in their own dtype, in which integers keep all digits.
    pub(crate) own: Tensor,
    /// Number of samples; not zero.
    pub(crate) rows: usize,
    /// Number of features; not zero.
    pub(crate) columns: usize,
    /// The weight of each sample; (rows,). A negative one is NaN.
    pub(crate) weight: Option<Tensor>,
    /// The targets in their own dtype, (rows,) or (rows, k); those of unsupervised estimators are not read.
    target: Option<Tensor>,
}

impl Training {
    /// Checks samples, and weights if the options have them. Sizes that only running tells are computed.
    ///
    /// # Errors
    /// `ValueError` for shapes that do not fit, complex numbers, no samples or no features; errors of a run.
    #[track_caller]
    pub(crate) fn unsupervised(
        estimator: &'static str,
        x: &Tensor,
        options: &FitOptions,
    ) -> Result<Training> {
        Training::checked(estimator, x, None, options)
    }

    /// As [`Training::unsupervised`], with targets.
    ///
    /// # Errors
    /// As there; `ValueError` if there are no targets, or not as many as samples.
    #[track_caller]
    pub(crate) fn supervised(
        estimator: &'static str,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<Training> {
        let Some(y) = y else {
            return Err(refused(format!(
                "This {estimator} estimator requires y to be passed, but the target y is None."
            )));
        };
        Training::checked(estimator, x, Some(y), options)
    }

    #[track_caller]
    fn checked(
        estimator: &'static str,
        x: &Tensor,
        y: Option<&Tensor>,
        options: &FitOptions,
    ) -> Result<Training> {
        check_matrix(x)?;
        let engine = Engine::new(options.chosen_executor());
        let given: Vec<&Tensor> = std::iter::once(x).chain(y).chain(options.weights()).collect();
        let mut known = engine.with_sizes(&given)?.into_iter();
        let mut next = || known.next().ok_or_else(|| refused("an input has been lost"));
        let x = next()?;
        let target = y.map(|_| next()).transpose()?;
        let weight = options.weights().map(|_| next()).transpose()?;
        let &[rows, columns] = x.shape()? else { return Err(refused("X has lost an axis")) };
        check_shape(estimator, [rows, columns], [1, 1])?;
        if let Some(y) = &target {
            check_target(y, rows)?;
        }
        if let Some(weight) = &weight {
            check_weight(weight, rows)?;
        }
        // A negative weight becomes NaN, which no state hides.
        let weight = weight.map(|weight| weight.astype(DType::F64));
        let weight = weight.map(|weight| where_(&weight.less(0.0), f64::NAN, &weight));
        Ok(Training { estimator, engine, x: x.astype(DType::F64), own: x, rows, columns, weight, target })
    }

    /// Options of fits that run on the same executor.
    pub(crate) fn options(&self) -> FitOptions {
        FitOptions::new().executor(self.engine.executor())
    }

    /// As [`Training::options`], with the weights of these data.
    pub(crate) fn weighted_options(&self) -> FitOptions {
        match &self.weight {
            Some(weight) => self.options().sample_weight(weight),
            None => self.options(),
        }
    }

    /// These data without weights.
    ///
    /// # Errors
    /// `TypeError`, as scikit-learn has it, if there are any.
    #[track_caller]
    pub(crate) fn without_weights(self) -> Result<Training> {
        if self.weight.is_none() {
            return Ok(self);
        }
        let text = format!("{}.fit() got an unexpected keyword argument 'sample_weight'", self.estimator);
        Err(Error::here(GraphError::Type(text)))
    }

    /// A part of the samples, with their targets and weights. Sizes that only running tells are computed.
    ///
    /// # Errors
    /// Errors of a run.
    #[track_caller]
    pub(crate) fn part(&self, of: impl Fn(&Tensor) -> Tensor) -> Result<Training> {
        let parts: Vec<Tensor> =
            std::iter::once(&self.own).chain(&self.target).chain(&self.weight).map(of).collect();
        let mut known = self.engine.with_sizes(&parts.iter().collect::<Vec<_>>())?.into_iter();
        let mut next = || known.next().ok_or_else(|| refused("an input has been lost"));
        let own = next()?;
        let target = self.target.as_ref().map(|_| next()).transpose()?;
        let weight = self.weight.as_ref().map(|_| next()).transpose()?;
        let rows = own.shape()?.first().copied().unwrap_or(0);
        let (estimator, engine, columns) = (self.estimator, self.engine.clone(), self.columns);
        Ok(Training { estimator, engine, x: own.astype(DType::F64), own, rows, columns, weight, target })
    }

    /// The targets as one column, float64; (rows, 1).
    ///
    /// # Errors
    /// `ValueError` if there are none, or several columns.
    #[track_caller]
    pub(crate) fn one_target(&self) -> Result<Tensor> {
        let targets = self.target_columns()?;
        match *targets.shape()? {
            [_, 1] => Ok(targets),
            _ => {
                let shape = targets.shape()?;
                Err(refused(format!("y should be a 1d array, got an array of shape {shape:?} instead.")))
            }
        }
    }

    /// The targets in their own dtype; (rows,) or (rows, k).
    ///
    /// # Errors
    /// `ValueError` if there are none.
    #[track_caller]
    pub(crate) fn target(&self) -> Result<&Tensor> {
        self.target.as_ref().ok_or_else(|| refused("the target y is None"))
    }

    /// Whether there is one target: of one axis, or of one column.
    ///
    /// # Errors
    /// `ValueError` if there is none.
    #[track_caller]
    pub(crate) fn has_one_target(&self) -> Result<bool> {
        Ok(matches!(*self.target()?.shape()?, [_] | [_, 1]))
    }

    /// The targets as columns, float64; (rows, k), k = 1 for targets of one axis.
    ///
    /// # Errors
    /// `ValueError` if there are none.
    #[track_caller]
    pub(crate) fn target_columns(&self) -> Result<Tensor> {
        let y = self.target()?.astype(DType::F64);
        Ok(if y.ndim()? == 1 { y.expand_dims(1) } else { y })
    }

    /// The sum of the weights, not zero; without weights the number of samples.
    ///
    /// # Errors
    /// `ValueError` for weights that are NaN, negative or all zero; `OverflowError` for a sum beyond float64;
    /// errors of the pass.
    #[track_caller]
    pub(crate) fn weight_sum(&self) -> Result<f64> {
        let Some(weight) = &self.weight else { return Ok(self.rows as f64) };
        let states = self.engine.run(&[&weight.sum(..)])?;
        if states.iter().flatten().any(|sum| !sum.is_finite()) {
            return Err(self.not_finite(Nan::Refused));
        }
        let sum: f64 = states.iter().map(|sum| sum.sum()).sum();
        if sum == 0.0 {
            return Err(refused("Weights sum to zero, can't be normalized"));
        }
        Ok(sum)
    }

    /// Checks that there are so many samples and features.
    ///
    /// # Errors
    /// `ValueError` if there are fewer.
    #[track_caller]
    pub(crate) fn check_least(&self, rows: usize, columns: usize) -> Result<()> {
        check_shape(self.estimator, [self.rows, self.columns], [rows, columns])
    }

    /// Checks that a square matrix, which is decomposed in this process, fits the memory of the executor.
    ///
    /// # Errors
    /// `MemoryError` with both numbers of bytes.
    #[track_caller]
    pub(crate) fn check_square(&self, extent: usize) -> Result<()> {
        self.check_held(extent, extent)
    }

    /// Checks that a matrix which this process holds, with what is made of it, fits the memory of the
    /// executor.
    ///
    /// # Errors
    /// `MemoryError` with both numbers of bytes.
    #[track_caller]
    pub(crate) fn check_held(&self, rows: usize, columns: usize) -> Result<()> {
        let needed_bytes = (rows as u64)
            .saturating_mul(columns as u64)
            .saturating_mul(size_of::<f64>() as u64)
            .saturating_mul(HELD_AT_ONCE);
        let limit_bytes = self.engine.memory_bytes().max(HELD_LEAST_BYTES);
        if needed_bytes <= limit_bytes {
            return Ok(());
        }
        Err(Error::here(GraphError::Memory { needed_bytes, limit_bytes }))
    }

    /// The error of sums of finite numbers that are not finite.
    #[track_caller]
    pub(crate) fn beyond_float64(&self) -> Error {
        Error::here(GraphError::Overflow(format!(
            "{}: sums of the samples exceed float64; scale them down first",
            self.estimator
        )))
    }

    /// The error of a state that is not finite: as [`Training::explain_not_finite`], or that of sums beyond
    /// float64.
    #[track_caller]
    pub(crate) fn not_finite(&self, nan: Nan) -> Error {
        match self.explain_not_finite(nan) {
            Err(error) => error,
            Ok(()) => self.beyond_float64(),
        }
    }

    /// Checks the samples by a pass of its own: for estimators that learn nothing from their numbers.
    ///
    /// # Errors
    /// As [`Training::explain_not_finite`]; errors of the pass.
    #[track_caller]
    pub(crate) fn check_finite(&self, nan: Nan) -> Result<()> {
        let is_wrong = match nan {
            Nan::Missing => self.x.isinf(),
            Nan::Refused => self.x.isfinite().logical_not(),
        };
        let found = self.engine.run(&[&is_wrong.any(..)])?;
        if found.iter().all(|found| found.sum() == 0.0) {
            return Ok(());
        }
        self.explain_not_finite(nan)
    }

    /// As [`Training::check_finite`], of the targets.
    ///
    /// # Errors
    /// As there.
    #[track_caller]
    pub(crate) fn check_finite_target(&self) -> Result<()> {
        let found = self.engine.run(&[&self.target_columns()?.isfinite().all(..)])?;
        if found.iter().all(|found| found.sum() != 0.0) {
            return Ok(());
        }
        self.explain_not_finite(Nan::Refused)
    }

    /// Finds out why a state is not finite: a second pass, over data that a first one could not sum.
    ///
    /// # Errors
    /// `ValueError` that names the first column with NaN or infinity in samples, targets or weights. No error
    /// if there is none: then a sum has left the range of float64.
    #[track_caller]
    pub(crate) fn explain_not_finite(&self, nan: Nan) -> Result<()> {
        let mut inputs = vec![("X", self.x.clone(), nan)];
        if let Some(y) = &self.target {
            inputs.push(("y", y.astype(DType::F64), Nan::Refused));
        }
        if let Some(weight) = &self.weight {
            inputs.push(("sample_weight", weight.clone(), Nan::Refused));
        }
        for (name, input, nan) in inputs {
            let columns = self.engine.run(&[&input.isnan().any(0), &input.isinf().any(0)])?;
            let first = |at: usize| columns[at].iter().position(|&found| found != 0.0);
            let place = |column: usize| match input.ndim() {
                Ok(2) => format!(" (first in column {column})"),
                _ => String::new(),
            };
            if let (Nan::Refused, Some(column)) = (nan, first(0)) {
                return Err(refused(match name {
                    "sample_weight" => "Input sample_weight contains NaN or negative values.".to_owned(),
                    _ => format!("Input {name} contains NaN{}.", place(column)),
                }));
            }
            if let Some(column) = first(1) {
                return Err(refused(format!(
                    "Input {name} contains infinity or a value too large for dtype('float64'){}.",
                    place(column)
                )));
            }
        }
        Ok(())
    }
}

/// Whether an estimator takes NaN for a value that is missing. Infinity is an error in both cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nan {
    /// NaN is left out.
    Missing,
    /// NaN is an error.
    Refused,
}

/// The samples for a model that was fitted on so many features, in float64. They carry a `ValueError` when
/// run for NaN and infinity.
///
/// # Errors
/// The error that the tensor carries; `ValueError` for other than two axes, complex numbers, or another
/// number of features.
#[track_caller]
pub(crate) fn samples_for(model: &str, x: &Tensor, columns: usize) -> Result<Tensor> {
    checked_for(model, x, columns, Nan::Refused)
}

/// As [`samples_for`], where NaN may stand for missing values.
///
/// # Errors
/// As there.
#[track_caller]
pub(crate) fn checked_for(model: &str, x: &Tensor, columns: usize, nan: Nan) -> Result<Tensor> {
    check_samples(model, x, columns)?;
    Ok(finite(x, nan).astype(DType::F64))
}

/// As [`samples_for`], without a look at the numbers: for models that take all, or check them in the kernel
/// that reads them.
///
/// # Errors
/// As there.
#[track_caller]
pub(crate) fn unchecked_for(model: &str, x: &Tensor, columns: usize) -> Result<Tensor> {
    check_samples(model, x, columns)?;
    Ok(x.astype(DType::F64))
}

/// The same numbers, which carry a `ValueError` in scikit-learn's words when run for infinity, and for NaN if
/// it is refused.
///
/// The check is an element-wise function of its own, fused with the arithmetic that reads the numbers. So
/// there is no second pass, and no result that has to show what was read.
#[track_caller]
pub(crate) fn finite(x: &Tensor, nan: Nan) -> Tensor {
    let check = match nan {
        Nan::Missing => UnaryOp::RequireNotInfinite,
        Nan::Refused => UnaryOp::RequireFinite,
    };
    match x.dtype() {
        Ok(dtype) if dtype.is_float() => unary(check, x),
        _ => x.clone(),
    }
}

/// Checks the samples for a model that was fitted on so many features.
///
/// # Errors
/// As [`samples_for`].
#[track_caller]
pub(crate) fn check_samples(model: &str, x: &Tensor, columns: usize) -> Result<()> {
    check_matrix(x)?;
    let found = x.shape()?[1];
    if found != columns && found != tharsis_numeric::select::UNKNOWN {
        return Err(refused(format!(
            "X has {found} features, but {model} is expecting {columns} features as input."
        )));
    }
    Ok(())
}

/// The samples for a transformer that takes any number of features, in float64.
///
/// # Errors
/// The error that the tensor carries; `ValueError` for other than two axes and for complex numbers.
#[track_caller]
pub(crate) fn samples_of_any(x: &Tensor) -> Result<Tensor> {
    check_matrix(x)?;
    Ok(x.astype(DType::F64))
}

/// A result in the dtype of the samples if that is of floats: as in scikit-learn, maps keep float32.
pub(crate) fn in_dtype_of(x: &Tensor, made: Tensor) -> Tensor {
    match x.dtype() {
        Ok(dtype) if dtype.kind() == Kind::Float && dtype != DType::F64 => made.astype(dtype),
        _ => made,
    }
}

/// Checks that samples have two axes, and real numbers.
///
/// # Errors
/// As [`samples_for`].
#[track_caller]
pub(crate) fn check_matrix(x: &Tensor) -> Result<()> {
    let rank = x.ndim()?;
    if x.dtype()?.is_complex() {
        return Err(refused("Complex data not supported"));
    }
    match rank {
        2 => Ok(()),
        0 | 1 => Err(refused(format!(
            "Expected 2D array, got {} array instead. Reshape your data either using array.reshape(-1, 1) if \
             your data has a single feature or array.reshape(1, -1) if it contains a single sample.",
            if rank == 0 { "scalar" } else { "1D" }
        ))),
        _ => Err(refused(format!("Found array with dim {rank}, while dim <= 2 is required."))),
    }
}

#[track_caller]
fn check_shape(estimator: &str, [rows, columns]: [usize; 2], least: [usize; 2]) -> Result<()> {
    for ((count, least), thing) in [rows, columns].into_iter().zip(least).zip(["sample", "feature"]) {
        if count < least {
            return Err(refused(format!(
                "Found array with {count} {thing}(s) (shape=({rows}, {columns})) while a minimum of {least} is \
                 required by {estimator}."
            )));
        }
    }
    Ok(())
}

#[track_caller]
fn check_target(y: &Tensor, rows: usize) -> Result<()> {
    if y.dtype()?.is_complex() {
        return Err(refused("Complex data not supported"));
    }
    let shape = y.shape()?;
    match *shape {
        [found] | [found, _] if found != rows => Err(refused(format!(
            "Found input variables with inconsistent numbers of samples: [{rows}, {found}]"
        ))),
        [_] => Ok(()),
        [_, targets] if 0 < targets => Ok(()),
        _ => Err(refused(format!("y should be a 1d array, got an array of shape {shape:?} instead."))),
    }
}

#[track_caller]
fn check_weight(weight: &Tensor, rows: usize) -> Result<()> {
    if weight.dtype()?.is_complex() {
        return Err(refused("Complex data not supported"));
    }
    match *weight.shape()? {
        [found] if found == rows => Ok(()),
        [found] => Err(refused(format!("sample_weight.shape == ({found},), expected ({rows},)!"))),
        _ => Err(refused("Sample weights must be 1D array or scalar")),
    }
}
