//! Parameters of estimators by name, for searches and for programs.
//!
//! Each estimator lists its parameters once, by the macro `parameters`: the name in scikit-learn and the
//! field. What a type of fields takes is a [`Parameter`].

use crate::checks::refused;
use serde::{Deserialize, Serialize};
use std::fmt;
use tharsis_numeric::{DType, Result, Tensor};
use tharsis_programs::Look;

/// The value of a parameter.
///
/// ```
/// use tharsis_learn::Setting;
/// assert_eq!(Setting::from(0.5).to_string(), "0.5");
/// assert_eq!(Setting::from("log2").to_string(), "'log2'");
/// assert_eq!(Setting::from(vec![0.25, 0.75]).to_string(), "[0.25, 0.75]");
/// ```
#[derive(Clone, Debug, Serialize, Deserialize)]
pub enum Setting {
    /// Python's `None`.
    None,
    /// `True` or `False`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A float.
    Real(f64),
    /// A word.
    Text(String),
    /// A list of numbers.
    Numbers(Vec<f64>),
    /// An array; one of float64 in files.
    Array(#[serde(with = "crate::saved::stored")] Tensor),
}

impl Setting {
    /// The value as Python would see it.
    fn look(&self) -> Look<'_> {
        match self {
            Setting::None => Look::None,
            Setting::Boolean(is_true) => Look::Boolean(*is_true),
            Setting::Integer(whole) => Look::Integer((*whole).into()),
            Setting::Real(number) => Look::Real(*number),
            Setting::Text(text) => Look::Text(text),
            Setting::Numbers(numbers) => {
                Look::List(numbers.iter().map(|&number| Look::Real(number)).collect())
            }
            Setting::Array(_) => Look::Array,
        }
    }
}

impl fmt::Display for Setting {
    /// Python's text of the value.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.look().fmt(f)
    }
}

impl From<bool> for Setting {
    fn from(is_true: bool) -> Setting {
        Setting::Boolean(is_true)
    }
}

impl From<i64> for Setting {
    fn from(whole: i64) -> Setting {
        Setting::Integer(whole)
    }
}

impl From<f64> for Setting {
    fn from(number: f64) -> Setting {
        Setting::Real(number)
    }
}

impl From<&str> for Setting {
    fn from(text: &str) -> Setting {
        Setting::Text(text.to_owned())
    }
}

impl From<Vec<f64>> for Setting {
    fn from(numbers: Vec<f64>) -> Setting {
        Setting::Numbers(numbers)
    }
}

/// Estimators whose parameters have names.
pub trait Params {
    /// scikit-learn's name of the estimator.
    fn estimator(&self) -> &'static str;

    /// scikit-learn's `get_params`: names and values. Those of the steps of a pipeline are named
    /// `step__parameter`.
    ///
    /// ```
    /// use tharsis_learn::Params;
    /// use tharsis_learn::linear_model::Ridge;
    /// let params = Ridge::new().alpha(0.5).params();
    /// assert_eq!(params[0].0, "alpha");
    /// assert_eq!(params[0].1.to_string(), "0.5");
    /// ```
    fn params(&self) -> Vec<(String, Setting)>;

    /// scikit-learn's `set_params`, of one parameter. Ranges are checked by `fit`.
    ///
    /// ```
    /// use tharsis_learn::Params;
    /// use tharsis_learn::linear_model::Ridge;
    /// let mut ridge = Ridge::new();
    /// ridge.set("alpha", &0.25.into())?;
    /// assert_eq!(ridge.params()[0].1.to_string(), "0.25");
    /// let refused = ridge.set("alhpa", &0.25.into()).expect_err("no such parameter");
    /// let text = "Invalid parameter 'alhpa' for estimator Ridge(alpha=0.25). Valid parameters are: ";
    /// assert!(refused.to_string().starts_with(text));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// `ValueError` if there is no parameter of this name, or if it takes no such values; errors of the run
    /// of an array.
    fn set(&mut self, name: &str, value: &Setting) -> Result<()>;
}

/// A type of fields of estimators.
pub(crate) trait Parameter: Sized {
    /// scikit-learn's words for what the parameter must be, where whole numbers are at least `least`.
    fn words(least: usize) -> String;

    /// The field of a value; none if it takes no such values.
    fn of(value: &Setting) -> Option<Self>;

    /// As [`of`](Parameter::of), for types that read arrays.
    ///
    /// # Errors
    /// Errors of the run that computes an array.
    #[track_caller]
    fn read(value: &Setting) -> Result<Option<Self>> {
        Ok(Self::of(value))
    }

    /// The value of the field.
    fn setting(&self) -> Setting;
}

impl Parameter for bool {
    fn words(_: usize) -> String {
        "an instance of 'bool'".to_owned()
    }

    fn of(value: &Setting) -> Option<bool> {
        if let Setting::Boolean(is_true) = value { Some(*is_true) } else { None }
    }

    fn setting(&self) -> Setting {
        Setting::Boolean(*self)
    }
}

impl Parameter for f64 {
    fn words(_: usize) -> String {
        "a float".to_owned()
    }

    /// As in Python, booleans are whole numbers, and those are numbers.
    fn of(value: &Setting) -> Option<f64> {
        match *value {
            Setting::Boolean(is_true) => Some(f64::from(u8::from(is_true))),
            Setting::Integer(whole) => Some(whole as f64),
            Setting::Real(number) => Some(number),
            _ => None,
        }
    }

    fn setting(&self) -> Setting {
        Setting::Real(*self)
    }
}

/// A part of the samples, above 0 and at most 1. scikit-learn reads a whole number as a number of samples
/// instead, so that 1 would be one sample and not all.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fraction(pub(crate) f64);

impl Parameter for Fraction {
    fn words(_: usize) -> String {
        "a float in the range (0.0, 1.0]".to_owned()
    }

    fn of(value: &Setting) -> Option<Fraction> {
        if let Setting::Real(part) = value { Some(Fraction(*part)) } else { None }
    }

    fn setting(&self) -> Setting {
        Setting::Real(self.0)
    }
}

impl Parameter for usize {
    fn words(least: usize) -> String {
        format!("an int in the range [{least}, inf)")
    }

    fn of(value: &Setting) -> Option<usize> {
        match *value {
            Setting::Boolean(is_true) => Some(usize::from(is_true)),
            Setting::Integer(whole) => usize::try_from(whole).ok(),
            _ => None,
        }
    }

    fn setting(&self) -> Setting {
        Setting::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
    }
}

impl Parameter for i64 {
    fn words(_: usize) -> String {
        "an instance of 'int'".to_owned()
    }

    fn of(value: &Setting) -> Option<i64> {
        match *value {
            Setting::Boolean(is_true) => Some(i64::from(is_true)),
            Setting::Integer(whole) => Some(whole),
            _ => None,
        }
    }

    fn setting(&self) -> Setting {
        Setting::Integer(*self)
    }
}

impl Parameter for u64 {
    fn words(_: usize) -> String {
        format!("an int in the range [0, {}] or None", u32::MAX)
    }

    /// The seed of random choices, which `None` does not leave to chance.
    fn of(value: &Setting) -> Option<u64> {
        match *value {
            Setting::None => Some(0),
            Setting::Boolean(is_true) => Some(u64::from(is_true)),
            Setting::Integer(whole) => u32::try_from(whole).ok().map(u64::from),
            _ => None,
        }
    }

    fn setting(&self) -> Setting {
        Setting::Integer(i64::try_from(*self).unwrap_or(i64::MAX))
    }
}

impl<T: Parameter> Parameter for Option<T> {
    fn words(least: usize) -> String {
        format!("{} or None", T::words(least))
    }

    fn of(value: &Setting) -> Option<Option<T>> {
        if let Setting::None = value { Some(None) } else { T::of(value).map(Some) }
    }

    #[track_caller]
    fn read(value: &Setting) -> Result<Option<Option<T>>> {
        if let Setting::None = value { Ok(Some(None)) } else { Ok(T::read(value)?.map(Some)) }
    }

    fn setting(&self) -> Setting {
        self.as_ref().map_or(Setting::None, T::setting)
    }
}

impl Parameter for Vec<f64> {
    fn words(_: usize) -> String {
        "an array-like".to_owned()
    }

    fn of(value: &Setting) -> Option<Vec<f64>> {
        if let Setting::Numbers(numbers) = value { Some(numbers.clone()) } else { None }
    }

    #[track_caller]
    fn read(value: &Setting) -> Result<Option<Vec<f64>>> {
        match value {
            Setting::Array(array) => array.ravel().astype(DType::F64).to_vec().map(Some),
            other => Ok(Vec::of(other)),
        }
    }

    fn setting(&self) -> Setting {
        Setting::Numbers(self.clone())
    }
}

impl Parameter for String {
    fn words(_: usize) -> String {
        "an instance of 'str'".to_owned()
    }

    fn of(value: &Setting) -> Option<String> {
        if let Setting::Text(text) = value { Some(text.clone()) } else { None }
    }

    fn setting(&self) -> Setting {
        Setting::Text(self.clone())
    }
}

impl From<usize> for Auto<usize> {
    fn from(number: usize) -> Auto<usize> {
        Auto(Some(number))
    }
}

impl Parameter for Tensor {
    fn words(_: usize) -> String {
        "an array-like".to_owned()
    }

    fn of(value: &Setting) -> Option<Tensor> {
        if let Setting::Array(array) = value { Some(array.clone()) } else { None }
    }

    fn setting(&self) -> Setting {
        Setting::Array(self.clone())
    }
}

impl Parameter for [f64; 2] {
    fn words(_: usize) -> String {
        "an instance of 'tuple'".to_owned()
    }

    fn of(value: &Setting) -> Option<[f64; 2]> {
        Vec::of(value)?.try_into().ok()
    }

    #[track_caller]
    fn read(value: &Setting) -> Result<Option<[f64; 2]>> {
        Ok(Vec::read(value)?.and_then(|numbers| numbers.try_into().ok()))
    }

    fn setting(&self) -> Setting {
        Setting::Numbers(self.to_vec())
    }
}

/// A parameter that scikit-learn chooses itself if it is `auto`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Auto<T>(pub(crate) Option<T>);

impl<T: Parameter> Parameter for Auto<T> {
    fn words(least: usize) -> String {
        format!("a str among {{'auto'}} or {}", T::words(least))
    }

    fn of(value: &Setting) -> Option<Auto<T>> {
        match value {
            Setting::Text(text) if text == "auto" => Some(Auto(None)),
            other => T::of(other).map(|found| Auto(Some(found))),
        }
    }

    #[track_caller]
    fn read(value: &Setting) -> Result<Option<Auto<T>>> {
        match value {
            Setting::Text(text) if text == "auto" => Ok(Some(Auto(None))),
            other => Ok(T::read(other)?.map(|found| Auto(Some(found)))),
        }
    }

    fn setting(&self) -> Setting {
        self.0.as_ref().map_or_else(|| Setting::from("auto"), T::setting)
    }
}

/// A choice of words as a [`Parameter`]. Of several words for a choice the first one is shown.
macro_rules! words {
    ($choice:ty, [$($word:literal => $variant:path),+ $(,)?]) => {
        impl $crate::params::Parameter for $choice {
            fn words(_: usize) -> String {
                tharsis_programs::Kind::Choice(&[$($word),+]).to_string()
            }

            fn of(value: &$crate::Setting) -> Option<$choice> {
                let $crate::Setting::Text(text) = value else { return None };
                $(if text == $word {
                    return Some($variant);
                })+
                None
            }

            fn setting(&self) -> $crate::Setting {
                $(if *self == $variant {
                    return $word.into();
                })+
                $crate::Setting::None
            }
        }
    };
}
pub(crate) use words;

/// [`Params`] of an estimator: the names of its parameters and their fields, and the least whole number that
/// scikit-learn's refusal of a negative one tells.
macro_rules! parameters {
    (
        $estimator:ty, |$model:ident| $name:expr,
        [$($param:literal => $($field:ident).+ $(>= $least:literal)?),* $(,)?]
    ) => {
        impl $crate::Params for $estimator {
            fn estimator(&self) -> &'static str {
                let $model = self;
                $name
            }

            fn params(&self) -> Vec<(String, $crate::Setting)> {
                vec![$(($param.to_owned(), $crate::params::Parameter::setting(&self.$($field).+))),*]
            }

            #[track_caller]
            fn set(&mut self, name: &str, value: &$crate::Setting) -> tharsis_numeric::Result<()> {
                $(if name == $param {
                    let least: &[usize] = &[$($least)?];
                    let least = least.first().copied().unwrap_or(0);
                    let found = $crate::params::field($crate::Params::estimator(self), name, value, least)?;
                    self.$($field).+ = found;
                    return Ok(());
                })*
                // Of estimators without parameters nothing reads it.
                let _ = value;
                Err($crate::params::unknown(self, &<$estimator>::default(), name))
            }
        }
    };
    ($estimator:ty, $name:expr, [$($param:literal => $($field:ident).+ $(>= $least:literal)?),* $(,)?]) => {
        $crate::params::parameters!(
            $estimator,
            |_model| $name,
            [$($param => $($field).+ $(>= $least)?),*]
        );
    };
}
pub(crate) use parameters;

/// An estimator: its parameters with their names, types, the types that its methods take, and defaults.
macro_rules! estimator {
    (
        $(#[$doc:meta])*
        $estimator:ident {
            $($(#[$told:meta])* $field:ident $param:literal $(>= $least:literal)?: $kind:ty, $given:ty = $default:expr;)*
        }
    ) => {
        $(#[$doc])*
        #[must_use]
        #[derive(Clone, Debug)]
        pub struct $estimator {
            $($field: $kind,)*
        }

        $crate::params::parameters!(
            $estimator, stringify!($estimator), [$($param => $field $(>= $least)?),*]
        );

        impl Default for $estimator {
            fn default() -> $estimator {
                $estimator { $($field: $default,)* }
            }
        }

        impl $estimator {
            /// An estimator with scikit-learn's defaults.
            pub fn new() -> $estimator {
                $estimator::default()
            }

            $($(#[$told])* pub fn $field(self, $field: $given) -> $estimator {
                $estimator { $field: $field.into(), ..self }
            })*
        }
    };
}
pub(crate) use estimator;

/// The field of a value.
///
/// # Errors
/// `ValueError` in scikit-learn's words if it takes no such values; errors of the run of an array.
#[track_caller]
pub(crate) fn field<T: Parameter>(estimator: &str, name: &str, value: &Setting, least: usize) -> Result<T> {
    T::read(value)?.ok_or_else(|| {
        let words = T::words(least);
        refused(format!("The '{name}' parameter of {estimator} must be {words}. Got {value} instead."))
    })
}

/// The error of a parameter that an estimator does not have.
#[track_caller]
pub(crate) fn unknown(estimator: &dyn Params, default: &dyn Params, name: &str) -> crate::Error {
    let params = estimator.params();
    let mut names: Vec<&str> = params.iter().map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    let names = Look::List(names.into_iter().map(Look::Text).collect());
    let text = shown(estimator, default);
    refused(format!("Invalid parameter '{name}' for estimator {text}. Valid parameters are: {names}."))
}

/// An estimator as scikit-learn shows it: its name, and the parameters that are not at their defaults.
pub(crate) fn shown(estimator: &dyn Params, default: &dyn Params) -> String {
    let pairs = estimator.params().into_iter().zip(default.params());
    let changed = pairs.filter(|((_, value), (_, default))| value.to_string() != default.to_string());
    let changed: Vec<String> = changed.map(|((name, value), _)| format!("{name}={value}")).collect();
    format!("{}({})", estimator.estimator(), changed.join(", "))
}
