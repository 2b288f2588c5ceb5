//! Arguments that several operations read alike, and their parameters.

use crate::model_selection::Share;
use crate::params::Setting;
use tharsis_kernels::DType;
use tharsis_numeric::Tensor;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Argument, Bound, Form, Kind, Look, Param, Preset, Row};

/// An array, or none.
pub(super) const ARRAY_OR_NONE: Kind = Kind::OneOf(&[Kind::Array, Kind::None]);
/// A whole number, or none.
pub(super) const INTEGER_OR_NONE: Kind = Kind::OneOf(&[Kind::Integer, Kind::None]);

/// The seed of random choices; `None` is 0.
pub(super) const RANDOM_STATE: Param = Param::new("random_state", INTEGER_OR_NONE, Preset::None).keyword();
/// Whether inputs are copied; values of programs never change.
pub(super) const COPY: Param = Param::new("copy", Kind::Boolean, Preset::Boolean(true)).keyword();
/// As [`COPY`], under the name of linear models.
pub(super) const COPY_X: Param = Param::new("copy_X", Kind::Boolean, Preset::Boolean(true)).keyword();
/// Threads; those of the request run all passes.
pub(super) const N_JOBS: Param = Param::new("n_jobs", INTEGER_OR_NONE, Preset::None).keyword();
/// Lines of progress.
pub(super) const VERBOSE: Param = Param::new("verbose", Kind::Integer, Preset::Integer(0)).keyword().fixed();
/// Whether a fit starts from the model of the last one.
pub(super) const WARM_START: Param =
    Param::new("warm_start", Kind::Boolean, Preset::Boolean(false)).keyword().fixed();
/// The number of trees.
pub(super) const N_ESTIMATORS: Param = Param::new("n_estimators", Kind::Integer, Preset::Integer(100));
/// Weights of samples.
pub(super) const SAMPLE_WEIGHT: Param = Param::new("sample_weight", ARRAY_OR_NONE, Preset::None);
/// Classes of a metric.
pub(super) const LABELS: Param = Param::new("labels", ARRAY_OR_NONE, Preset::None).keyword();

/// Function of a row.
pub(super) type Run = fn(&mut Bound<Value>, &Scope) -> Result<Value, Failure>;

/// Most things of a kind that a fit keeps.
const KEPT_MAX: usize = 1 << 20;

/// A row of a class: its function makes an estimator.
pub(super) const fn class(
    name: &'static str,
    params: &'static [Param],
    doc: &'static str,
    run: Run,
) -> Row<Value, Scope> {
    Row { name, form: Form::Constructor, params, doc, run }
}

/// A row of a function.
pub(super) const fn function(
    name: &'static str,
    params: &'static [Param],
    doc: &'static str,
    run: Run,
) -> Row<Value, Scope> {
    Row { name, form: Form::Function, params, doc, run }
}

/// A whole number that is at least `least`.
///
/// # Errors
/// `ValueError` if it is not.
pub(super) fn count(args: &Bound<Value>, name: &str, least: usize) -> Result<usize, Failure> {
    let found = args.integer(name)?;
    match usize::try_from(found) {
        Ok(count) if least <= count => Ok(count),
        _ => Err(Failure::value(format!(
            "The '{name}' parameter of {} must be an int in the range [{least}, inf). Got {found} instead.",
            args.owner()
        ))),
    }
}

/// A number of things that a fit keeps, such as trees: as [`count`], and at most [`KEPT_MAX`].
///
/// # Errors
/// As [`count`]; `NotImplemented` for more, which would end the process where memory ends.
pub(super) fn kept(args: &Bound<Value>, name: &str, least: usize) -> Result<usize, Failure> {
    match count(args, name, least)? {
        found if found <= KEPT_MAX => Ok(found),
        found => Err(Failure::missing(format!("{name}={found} of {}: at most {KEPT_MAX}", args.owner()))),
    }
}

/// The seed of random choices.
///
/// # Errors
/// `ValueError` for a negative one, and for one of more than 32 bits.
pub(super) fn seed(args: &Bound<Value>) -> Result<u64, Failure> {
    let value = args.value("random_state")?;
    Ok(crate::params::field(args.owner(), "random_state", &setting(value)?, 0)?)
}

/// A value of programs as one of a parameter.
///
/// # Errors
/// As [`tensor_of`].
pub(super) fn setting(value: &Value) -> Result<Setting, Failure> {
    Ok(match value.look() {
        Look::None => Setting::None,
        Look::Boolean(is_true) => Setting::Boolean(is_true),
        Look::Integer(whole) => whole_setting(whole),
        Look::Real(number) => Setting::Real(number),
        Look::Text(text) => Setting::from(text),
        _ => Setting::Array(tensor_of(value.clone())?),
    })
}

/// A whole number as a value of a parameter: those beyond int64 are floats, which parameters of whole numbers
/// refuse.
pub(super) fn whole_setting(whole: i128) -> Setting {
    match i64::try_from(whole) {
        Ok(whole) => Setting::Integer(whole),
        Err(_) => Setting::Real(whole as f64),
    }
}

/// The elements of an array of integers or booleans, those of uint64 beyond int64 as well.
///
/// # Errors
/// Errors of the run.
pub(super) fn whole_numbers(tensor: &Tensor) -> Result<Vec<i128>, Failure> {
    if tensor.dtype()? == DType::U64 {
        return Ok(tensor.to_vec::<u64>()?.into_iter().map(i128::from).collect());
    }
    Ok(tensor.astype(DType::I64).to_vec::<i64>()?.into_iter().map(i128::from).collect())
}

/// An array.
///
/// # Errors
/// As [`tensor_of`].
pub(super) fn array(args: &Bound<Value>, name: &str) -> Result<Tensor, Failure> {
    tensor_of(args.value(name)?.clone())
}

/// A value as an array.
///
/// # Errors
/// `NotImplemented` for lists with texts, which scikit-learn takes as labels; `TypeError` for other things
/// than numbers; the error that a tensor carries.
pub(super) fn tensor_of(value: Value) -> Result<Tensor, Failure> {
    fn has_text(value: &Value) -> bool {
        match value {
            Value::List(parts) | Value::Tuple(parts) => parts.iter().any(has_text),
            other => matches!(other, Value::Text(_)),
        }
    }
    if has_text(&value) {
        return Err(Failure::missing("labels and other elements that are texts: labels are whole numbers"));
    }
    value.tensor()
}

/// An array, if there is one.
///
/// # Errors
/// As [`array()`].
pub(super) fn array_if_given(args: &Bound<Value>, name: &str) -> Result<Option<Tensor>, Failure> {
    args.some(name)?.map(|value| tensor_of(value.clone())).transpose()
}

/// The weights of samples, if there are any.
///
/// # Errors
/// As [`array()`].
pub(super) fn weights(args: &Bound<Value>) -> Result<Option<Tensor>, Failure> {
    array_if_given(args, "sample_weight")
}

/// Two arrays.
///
/// # Errors
/// As [`array()`].
pub(super) fn pair(args: &Bound<Value>, first: &str, second: &str) -> Result<(Tensor, Tensor), Failure> {
    Ok((array(args, first)?, array(args, second)?))
}

/// A list of whole numbers, if there is one.
///
/// # Errors
/// `NotImplemented` for other labels, and for those beyond int64.
pub(super) fn integers_if_given(args: &Bound<Value>, name: &str) -> Result<Option<Vec<i64>>, Failure> {
    let Some(value) = args.some(name)? else { return Ok(None) };
    if matches!(value, Value::Tensor(_)) {
        let tensor = value.clone().tensor()?;
        let dtype = tensor.dtype()?;
        if !dtype.is_integer() && dtype != DType::Bool {
            return Err(Failure::missing(format!("{name} of dtype {dtype}: labels are whole numbers")));
        }
        let within = |label: i128| {
            i64::try_from(label).map_err(|_| {
                Failure::missing(format!("{name} has {label}: labels are whole numbers within int64"))
            })
        };
        return Ok(Some(whole_numbers(&tensor)?.into_iter().map(within).collect::<Result<_, _>>()?));
    }
    match value.integers() {
        Ok(labels) => Ok(Some(labels)),
        Err(_) => Err(Failure::missing(format!("{name}={}: labels are whole numbers", value.look()))),
    }
}

/// A list of texts, if there is one.
///
/// # Errors
/// `TypeError` for other elements.
pub(super) fn texts_if_given(args: &Bound<Value>, name: &str) -> Result<Option<Vec<String>>, Failure> {
    let wrong = |found: &Value| Failure::kind(format!("{name} has names alone, found {}", found.look()));
    let text = |part: &Value| match part {
        Value::Text(text) => Ok(text.clone()),
        other => Err(wrong(other)),
    };
    match args.some(name)? {
        None => Ok(None),
        Some(Value::List(parts) | Value::Tuple(parts)) => {
            Ok(Some(parts.iter().map(text).collect::<Result<_, _>>()?))
        }
        Some(other) => Err(wrong(other)),
    }
}

/// A list of numbers.
///
/// # Errors
/// As [`array()`].
pub(super) fn reals(value: &Value) -> Result<Vec<f64>, Failure> {
    Ok(value.clone().tensor()?.ravel().astype(DType::F64).to_vec()?)
}

/// A number, if there is one.
///
/// # Errors
/// `Internal` for a parameter of another kind.
pub(super) fn real_if_given(args: &Bound<Value>, name: &str) -> Result<Option<f64>, Failure> {
    if args.some(name)?.is_none() {
        return Ok(None);
    }
    Ok(Some(args.real(name)?))
}

/// A whole number, if there is one.
///
/// # Errors
/// As [`Bound::integer`].
pub(super) fn integer_if_given(args: &Bound<Value>, name: &str) -> Result<Option<i64>, Failure> {
    if args.some(name)?.is_none() {
        return Ok(None);
    }
    Ok(Some(args.integer(name)?))
}

/// The size of a set of rows, if one is given: a number of rows, or a fraction.
///
/// # Errors
/// `ValueError` for a negative number of rows.
pub(super) fn share(args: &Bound<Value>, name: &str) -> Result<Option<Share>, Failure> {
    Ok(match args.value(name)?.look() {
        Look::None => None,
        Look::Real(fraction) => Some(Share::Fraction(fraction)),
        _ => Some(Share::Count(count(args, name, 1)?)),
    })
}
