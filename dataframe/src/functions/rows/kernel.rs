//! Kinds of functions of single values.

use datafusion::common::ScalarValue;

/// A function of each text and of constants. The result is missing where the text is, except for truth
/// values, which are false there.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kernel {
    Text(fn(&str, &Constants) -> Option<String>),
    Truth(fn(&str) -> bool),
    Whole(fn(&str, &Constants) -> i64),
    Texts(fn(&str, &Constants) -> Vec<String>),
    /// A whole number, or none.
    Optional(fn(&str, &Constants) -> Option<i64>),
    /// A whole number, or the reason why the run fails.
    Checked(fn(&str, &Constants) -> Result<i64, String>),
    /// A whole number, or none, or the reason why the run fails.
    Perhaps(fn(&str, &Constants) -> Result<Option<i64>, String>),
    /// A number that looks random, of an integer and a seed.
    Random,
    /// A float rounded to decimals.
    Round,
    /// A measure of a list of floats.
    Across,
    /// A duration as a text, in the form for the finest one of a series.
    Length,
}

/// The arguments after the first.
#[derive(Debug)]
pub(crate) struct Constants(pub(crate) Vec<ScalarValue>);

impl Constants {
    pub(super) fn whole(&self, at: usize) -> Option<i64> {
        match self.0.get(at) {
            Some(ScalarValue::Int64(value)) => *value,
            _ => None,
        }
    }

    pub(super) fn float(&self, at: usize) -> Option<f64> {
        match self.0.get(at) {
            Some(ScalarValue::Float64(value)) => *value,
            _ => None,
        }
    }

    pub(super) fn text(&self, at: usize) -> Option<&str> {
        self.0.get(at).and_then(|value| value.try_as_str().flatten())
    }
}
