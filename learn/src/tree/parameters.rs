//! Parameters that trees share, and the texts of those out of their ranges.

use super::criterion::Criterion;
use crate::checks::refused;
use crate::params::{Parameter, Setting, words};
use tharsis_numeric::Result;

/// scikit-learn's `criterion` of classifiers: the impurity of a node, which splits make small.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ClassCriterion {
    /// The chance that two samples of the node are of different classes.
    #[default]
    Gini,
    /// The information that the class of a sample of the node has; `log_loss` is the same.
    Entropy,
}

words!(
    ClassCriterion,
    [
        "gini" => ClassCriterion::Gini, "entropy" => ClassCriterion::Entropy,
        "log_loss" => ClassCriterion::Entropy
    ]
);

impl From<ClassCriterion> for Criterion {
    fn from(criterion: ClassCriterion) -> Criterion {
        match criterion {
            ClassCriterion::Gini => Criterion::Gini,
            ClassCriterion::Entropy => Criterion::Entropy,
        }
    }
}

/// scikit-learn's `max_features`: the number of features that are looked at for a split.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum MaxFeatures {
    /// All; `None` in scikit-learn.
    All,
    /// The root of their number.
    Sqrt,
    /// The binary logarithm of their number.
    Log2,
    /// So many.
    Count(usize),
    /// A part of them, above 0 and at most 1.
    Share(f64),
}

impl From<usize> for MaxFeatures {
    fn from(count: usize) -> MaxFeatures {
        MaxFeatures::Count(count)
    }
}

impl From<f64> for MaxFeatures {
    fn from(share: f64) -> MaxFeatures {
        MaxFeatures::Share(share)
    }
}

impl MaxFeatures {
    /// The number of features, of so many.
    ///
    /// # Errors
    /// `ValueError` for no features, or a share that is none.
    #[track_caller]
    pub(crate) fn of(self, estimator: &str, features: usize) -> Result<usize> {
        let got = match self {
            MaxFeatures::All => return Ok(features),
            MaxFeatures::Sqrt => return Ok(((features as f64).sqrt() as usize).max(1)),
            MaxFeatures::Log2 => return Ok(((features as f64).log2() as usize).max(1)),
            MaxFeatures::Count(count) if 0 < count => return Ok(count.min(features)),
            MaxFeatures::Share(share) if 0.0 < share && share <= 1.0 => {
                return Ok(((share * features as f64) as usize).max(1));
            }
            MaxFeatures::Count(count) => count.to_string(),
            MaxFeatures::Share(share) => share.to_string(),
        };
        let words = MaxFeatures::words(1);
        Err(refused(format!(
            "The 'max_features' parameter of {estimator} must be {words}. Got {got} instead."
        )))
    }
}

impl Parameter for MaxFeatures {
    fn words(_: usize) -> String {
        "an int in the range [1, inf), a float in the range (0.0, 1.0], a str among {'log2', 'sqrt'} or None"
            .to_owned()
    }

    fn of(value: &Setting) -> Option<MaxFeatures> {
        match value {
            Setting::None => Some(MaxFeatures::All),
            Setting::Real(share) => Some(MaxFeatures::Share(*share)),
            Setting::Text(text) if text == "sqrt" => Some(MaxFeatures::Sqrt),
            Setting::Text(text) if text == "log2" => Some(MaxFeatures::Log2),
            other => usize::of(other).map(MaxFeatures::Count),
        }
    }

    fn setting(&self) -> Setting {
        match self {
            MaxFeatures::All => Setting::None,
            MaxFeatures::Sqrt => "sqrt".into(),
            MaxFeatures::Log2 => "log2".into(),
            MaxFeatures::Count(count) => count.setting(),
            MaxFeatures::Share(share) => Setting::Real(*share),
        }
    }
}

/// Checks of the parameters of one estimator.
#[derive(Clone, Copy)]
pub(crate) struct Ranges {
    pub(crate) estimator: &'static str,
}

impl Ranges {
    /// A number from `least` on.
    ///
    /// # Errors
    /// `ValueError` for a smaller one.
    #[track_caller]
    pub(crate) fn int(self, name: &str, found: usize, least: usize) -> Result<()> {
        let range = format!("an int in the range [{least}, inf)");
        self.check(name, least <= found, &range, &found)
    }

    /// A number from `least` on, if there is one.
    ///
    /// # Errors
    /// `ValueError` for a smaller one.
    #[track_caller]
    pub(crate) fn optional_int(self, name: &str, found: Option<usize>, least: usize) -> Result<()> {
        let range = format!("an int in the range [{least}, inf) or None");
        found.map_or(Ok(()), |found| self.check(name, least <= found, &range, &found))
    }

    /// A finite number that is not negative.
    ///
    /// # Errors
    /// `ValueError` for another one.
    #[track_caller]
    pub(crate) fn not_negative(self, name: &str, found: f64) -> Result<()> {
        let is_sound = 0.0 <= found && found.is_finite();
        self.check(name, is_sound, "a float in the range [0.0, inf)", &found)
    }

    /// Any parameter.
    ///
    /// # Errors
    /// `ValueError` unless it is in its range.
    #[track_caller]
    pub(crate) fn check(
        self,
        name: &str,
        is_sound: bool,
        range: &str,
        found: &dyn std::fmt::Display,
    ) -> Result<()> {
        if is_sound {
            return Ok(());
        }
        let Ranges { estimator } = self;
        Err(refused(format!("The '{name}' parameter of {estimator} must be {range}. Got {found} instead.")))
    }
}
