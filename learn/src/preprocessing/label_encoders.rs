//! Labels as numbers from 0 on, and as columns.

use crate::base::{Estimator, FitOptions};
use crate::checks::{Training, refused};
use crate::labels::{Classes, class_tensor};
use crate::params::parameters;
use crate::saved::saved;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_graph::ops::Require;
use tharsis_kernels::Kind;
use tharsis_numeric::{DType, Result, Tensor, where_};

/// scikit-learn's `LabelEncoder`: the position of each label among all of them.
///
/// Labels are whole numbers of any dtype.
///
/// ```
/// use tharsis_learn::preprocessing::LabelEncoder;
/// use tharsis_numeric::array;
/// let y = array([30i64, 10, 30, 50]);
/// let model = LabelEncoder::new().fit(&y, ..)?;
/// assert_eq!(model.classes, [10, 30, 50]);
/// assert_eq!(model.transform(&y).to_vec::<i64>()?, [1, 0, 1, 2]);
/// assert_eq!(model.inverse_transform(&array([2i64, 0])).to_vec::<i64>()?, [50, 10]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug, Default)]
pub struct LabelEncoder {}

/// A fitted [`LabelEncoder`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedLabelEncoder {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
}

parameters!(LabelEncoder, "LabelEncoder", []);

/// The distinct labels (n,). One or two passes.
#[track_caller]
fn labels(estimator: &'static str, y: &Tensor, options: &FitOptions) -> Result<Vec<i64>> {
    let x = if y.ndim()? == 1 { y.expand_dims(1) } else { y.clone() };
    let training = Training::supervised(estimator, &x, Some(y), options)?.without_weights()?;
    Ok(Classes::of(&training)?.values)
}

/// Labels (n,) that compare with whole numbers. Those of uint64 stay as they are: int64 does not hold all.
#[track_caller]
fn numbers(y: &Tensor) -> Result<Tensor> {
    let y = match *y.shape()? {
        [_, 1] => y.squeeze(Some(&[1])),
        [_] => y.clone(),
        ref shape => {
            return Err(refused(format!("y should be a 1d array, got an array of shape {shape:?} instead.")));
        }
    };
    Ok(match y.dtype()? {
        dtype if dtype.is_complex() => return Err(refused("Complex data not supported")),
        dtype if dtype.kind() == Kind::Float => y.astype(DType::F64),
        DType::U64 => y,
        _ => y.astype(DType::I64),
    })
}

impl LabelEncoder {
    /// An estimator; it has no parameters.
    pub fn new() -> LabelEncoder {
        LabelEncoder::default()
    }

    /// Finds the distinct labels (n,). One pass, rarely two.
    ///
    /// # Errors
    /// `ValueError` for labels that are not whole, of other than one axis, none or complex; `TypeError` for
    /// weights; errors of the passes.
    #[track_caller]
    pub fn fit(&self, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedLabelEncoder> {
        self.fit_any(y, None, &options.into())
    }
}

impl Estimator for LabelEncoder {
    type Fitted = FittedLabelEncoder;

    fn takes_weights(&self) -> bool {
        false
    }

    /// As [`fit`](LabelEncoder::fit): the labels stand in the place of samples.
    #[track_caller]
    fn fit_any(&self, y: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedLabelEncoder> {
        Ok(FittedLabelEncoder { classes: labels("LabelEncoder", y, options)? })
    }
}

/// Something of labels, all of which are known. Carries a `ValueError` when run otherwise.
#[track_caller]
fn of_known(made: &Tensor, is_known: &Tensor) -> Tensor {
    let message = "y contains previously unseen labels".to_owned();
    Tensor::apply(Require { message }, &[made, is_known])
}

impl FittedLabelEncoder {
    /// The positions of labels (n,), as an expression; (n,), int64. Carries a `ValueError` for other than one
    /// axis; when run for a label that the fit has not seen.
    #[track_caller]
    pub fn transform(&self, y: &Tensor) -> Tensor {
        let y = match numbers(y) {
            Ok(y) => y,
            Err(error) => return Tensor::from(error),
        };
        let classes = class_tensor(&self.classes);
        // A label beyond int64 may find a class here, which is another number than it.
        let wanted = if matches!(y.dtype(), Ok(DType::U64)) { y.astype(DType::I64) } else { y.clone() };
        let place = classes.searchsorted(&wanted).minimum(self.classes.len() as i64 - 1);
        of_known(&place, &classes.take_at(&place, 0).equal(&y))
    }

    /// The labels at positions (n,), as an expression; (n,), int64. Carries a `ValueError` for other than one
    /// axis; when run for a position of no label.
    #[track_caller]
    pub fn inverse_transform(&self, positions: &Tensor) -> Tensor {
        let positions = match numbers(positions) {
            Ok(positions) => positions,
            Err(error) => return Tensor::from(error),
        };
        let is_known = positions.greater_equal(0).logical_and(positions.less(self.classes.len() as i64));
        let positions = of_known(&positions.astype(DType::I64), &is_known);
        class_tensor(&self.classes).take_at(&positions, 0)
    }
}

saved!(FittedLabelEncoder, "LabelEncoder", |model| !model.classes.is_empty());

impl fmt::Display for FittedLabelEncoder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LabelEncoder of classes {:?}", self.classes)
    }
}

/// scikit-learn's `LabelBinarizer`: a column for each label, or one for two of them.
///
/// Labels are whole numbers of any dtype.
///
/// ```
/// use tharsis_learn::preprocessing::LabelBinarizer;
/// use tharsis_numeric::array;
/// let y = array([7i64, 3, 7]);
/// let model = LabelBinarizer::new().neg_label(-1).fit(&y, ..)?;
/// let made = model.transform(&y);
/// assert_eq!((made.shape()?, made.to_vec::<i64>()?), (&[3, 1][..], vec![1, -1, 1]));
/// assert_eq!(model.inverse_transform(&made).to_vec::<i64>()?, [7, 3, 7]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct LabelBinarizer {
    neg_label: i64,
    pos_label: i64,
}

/// A fitted [`LabelBinarizer`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[non_exhaustive]
pub struct FittedLabelBinarizer {
    /// scikit-learn's `classes_`, ascending; (k,).
    pub classes: Vec<i64>,
    neg_label: i64,
    pos_label: i64,
}

parameters!(LabelBinarizer, "LabelBinarizer", ["neg_label" => neg_label, "pos_label" => pos_label]);

impl Default for LabelBinarizer {
    fn default() -> LabelBinarizer {
        LabelBinarizer { neg_label: 0, pos_label: 1 }
    }
}

impl LabelBinarizer {
    /// An estimator with scikit-learn's defaults: zeros and ones.
    pub fn new() -> LabelBinarizer {
        LabelBinarizer::default()
    }

    /// scikit-learn's `neg_label`: the number of other labels.
    pub fn neg_label(self, neg_label: i64) -> LabelBinarizer {
        LabelBinarizer { neg_label, ..self }
    }

    /// scikit-learn's `pos_label`: the number of the label of a column.
    pub fn pos_label(self, pos_label: i64) -> LabelBinarizer {
        LabelBinarizer { pos_label, ..self }
    }

    /// Finds the distinct labels (n,). One pass, rarely two.
    ///
    /// # Errors
    /// `ValueError` for a `neg_label` that is not below `pos_label`, labels that are not whole, of other than
    /// one axis, none or complex; `TypeError` for weights; errors of the passes.
    #[track_caller]
    pub fn fit(&self, y: &Tensor, options: impl Into<FitOptions>) -> Result<FittedLabelBinarizer> {
        self.fit_any(y, None, &options.into())
    }
}

impl Estimator for LabelBinarizer {
    type Fitted = FittedLabelBinarizer;

    fn takes_weights(&self) -> bool {
        false
    }

    /// As [`fit`](LabelBinarizer::fit): the labels stand in the place of samples.
    #[track_caller]
    fn fit_any(&self, y: &Tensor, _: Option<&Tensor>, options: &FitOptions) -> Result<FittedLabelBinarizer> {
        let LabelBinarizer { neg_label, pos_label } = *self;
        if pos_label <= neg_label {
            let text = format!("neg_label={neg_label} must be strictly less than pos_label={pos_label}.");
            return Err(refused(text));
        }
        Ok(FittedLabelBinarizer { classes: labels("LabelBinarizer", y, options)?, neg_label, pos_label })
    }
}

impl FittedLabelBinarizer {
    /// Labels (n,) as columns, as an expression; (n, k), or (n, 1) for at most two labels, int64. A label
    /// that the fit has not seen has no column. Carries a `ValueError` for other than one axis.
    #[track_caller]
    pub fn transform(&self, y: &Tensor) -> Tensor {
        let y = match numbers(y) {
            Ok(y) => y.expand_dims(1),
            Err(error) => return Tensor::from(error),
        };
        let is_label = match self.classes[..] {
            // A single label is the first of two.
            [only] => y.equal(only).logical_and(false),
            [_, second] => y.equal(second),
            _ => y.equal(class_tensor(&self.classes)),
        };
        where_(&is_label, self.pos_label, self.neg_label)
    }

    /// The labels of columns, as an expression: (n, k) to (n,), int64. Of at most two labels the second one
    /// is that of numbers above the middle of both marks, else the label is that of the largest number.
    /// Carries a `ValueError` for another number of columns.
    #[track_caller]
    pub fn inverse_transform(&self, made: &Tensor) -> Tensor {
        self.back(made).unwrap_or_else(Tensor::from)
    }

    #[track_caller]
    fn back(&self, made: &Tensor) -> Result<Tensor> {
        let classes = class_tensor(&self.classes);
        let columns = match *made.shape()? {
            [_] => 1,
            [_, columns] => columns,
            _ => return Err(refused("y should be an array of one or two axes")),
        };
        if 2 < self.classes.len() {
            if columns != self.classes.len() {
                return Err(refused("The number of class is not equal to the number of dimension of y."));
            }
            return Ok(classes.take_at(&made.argmax(1), 0));
        }
        if 2 < columns {
            let shape = made.shape()?;
            return Err(refused(format!("output_type='binary', but y.shape = {shape:?}")));
        }
        let numbers = match made.ndim()? {
            1 => made.clone(),
            _ => made.get(&[(..).into(), (columns as i64 - 1).into()]),
        };
        let middle = (self.neg_label as f64 + self.pos_label as f64) / 2.0;
        let last = self.classes.len() as i64 - 1;
        let place = where_(&numbers.astype(DType::F64).greater(middle), last, 0);
        Ok(classes.take_at(&place, 0))
    }
}

saved!(FittedLabelBinarizer, "LabelBinarizer", |model| {
    !model.classes.is_empty() && model.neg_label < model.pos_label
});

impl fmt::Display for FittedLabelBinarizer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "LabelBinarizer of classes {:?}", self.classes)
    }
}
