//! Candidates of searches: values of parameters, all combinations or some that are drawn.

use crate::Result;
use crate::metrics::inputs::value_error;
use crate::params::Setting;
use std::collections::BTreeMap;
use tharsis_kernels::Key;
use tharsis_kernels::random::below;

/// Values of some parameters, by name.
pub type Candidate = Vec<(String, Setting)>;

/// Sets the draws of searches apart from all others.
const PURPOSE: &str = "search";

/// Most candidates of a search: each is a fit for each fold.
const CANDIDATES_MAX: usize = 1 << 20;

/// scikit-learn's `ParameterGrid`: values of parameters, of which all combinations are candidates.
#[derive(Clone, Debug, Default)]
pub struct ParamGrid {
    values: BTreeMap<String, Vec<Setting>>,
}

impl ParamGrid {
    /// A grid without parameters, whose only candidate is the estimator as it is.
    ///
    /// ```
    /// use tharsis_learn::model_selection::ParamGrid;
    /// assert_eq!(ParamGrid::new().candidates()?.len(), 1);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> ParamGrid {
        ParamGrid::default()
    }

    /// Values of a parameter; those of a step of a pipeline is named `step__parameter`. They replace earlier
    /// ones.
    ///
    /// ```
    /// use tharsis_learn::model_selection::ParamGrid;
    /// let grid = ParamGrid::new().values("b", [1i64, 2]).values("a", ["x", "y"]);
    /// let candidates = grid.candidates()?;
    /// let texts: Vec<String> = candidates.iter().map(|one| format!("{}{}", one[0].1, one[1].1)).collect();
    /// assert_eq!(texts, ["'x'1", "'x'2", "'y'1", "'y'2"]);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn values<S: Into<Setting>>(mut self, name: &str, values: impl IntoIterator<Item = S>) -> ParamGrid {
        self.values.insert(name.to_owned(), values.into_iter().map(Into::into).collect());
        self
    }

    /// All combinations in scikit-learn's order: names ascend, and the last one changes first.
    ///
    /// # Errors
    /// `ValueError` for a parameter without values, and for more than 2^20 combinations.
    #[track_caller]
    pub fn candidates(&self) -> Result<Vec<Candidate>> {
        let count = self.count()?;
        if (CANDIDATES_MAX as u64) < count {
            return Err(value_error(format!("a grid of {count} combinations: at most {CANDIDATES_MAX}")));
        }
        Ok((0..count).map(|at| self.at(at)).collect())
    }

    /// The number of combinations.
    ///
    /// # Errors
    /// `ValueError` for a parameter without values, and for a number of more than 64 bits.
    #[track_caller]
    fn count(&self) -> Result<u64> {
        let mut count = 1u64;
        for (name, values) in &self.values {
            if values.is_empty() {
                return Err(value_error(format!(
                    "Parameter grid for parameter '{name}' need a non-empty sequence, got: []"
                )));
            }
            let more = count.checked_mul(values.len() as u64);
            count = more.ok_or_else(|| value_error("a grid of more than 2^64 - 1 combinations"))?;
        }
        Ok(count)
    }

    /// The combination at a place.
    fn at(&self, place: u64) -> Candidate {
        let mut left = place;
        let mut made: Candidate = Vec::with_capacity(self.values.len());
        for (name, values) in self.values.iter().rev() {
            let count = values.len() as u64;
            made.push((name.clone(), values[(left % count) as usize].clone()));
            left /= count;
        }
        made.reverse();
        made
    }
}

impl From<ParamGrid> for Vec<ParamGrid> {
    fn from(grid: ParamGrid) -> Vec<ParamGrid> {
        vec![grid]
    }
}

/// A source of values of a parameter.
#[derive(Clone, Debug)]
pub enum Distribution {
    /// One of these, all equally likely.
    Choice(Vec<Setting>),
    /// Whole numbers from `low` to `high`, without `high`.
    Integers {
        /// The least number.
        low: i64,
        /// The number behind the largest one.
        high: i64,
    },
    /// Numbers from `low` to `high` whose logarithms are equally likely.
    LogUniform {
        /// The least number; positive.
        low: f64,
        /// The largest number.
        high: f64,
    },
    /// Numbers from `low` to `high`, equally likely.
    Uniform {
        /// The least number.
        low: f64,
        /// The largest number.
        high: f64,
    },
}

/// Sources of values of parameters, by name.
#[derive(Clone, Debug, Default)]
pub struct ParamDistributions {
    sources: BTreeMap<String, Distribution>,
}

impl ParamDistributions {
    /// No parameters.
    ///
    /// ```
    /// use tharsis_learn::model_selection::ParamDistributions;
    /// assert_eq!(ParamDistributions::new().candidates(3, 0)?.len(), 1);
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn new() -> ParamDistributions {
        ParamDistributions::default()
    }

    /// The source of the values of a parameter.
    ///
    /// ```
    /// use tharsis_learn::model_selection::{Distribution, ParamDistributions};
    /// let drawn = ParamDistributions::new().draw("k", Distribution::Integers { low: 3, high: 4 });
    /// assert_eq!(drawn.candidates(2, 0)?[1][0].1.to_string(), "3");
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    pub fn draw(mut self, name: &str, source: Distribution) -> ParamDistributions {
        self.sources.insert(name.to_owned(), source);
        self
    }

    /// So many candidates. If all sources are lists, these are different combinations of them, or all of
    /// them if there are fewer.
    ///
    /// # Errors
    /// `ValueError` for ranges without numbers, lists without values or of more than 2^64 - 1 combinations,
    /// and more than 2^20 candidates.
    #[track_caller]
    pub fn candidates(&self, n_iter: usize, random_state: u64) -> Result<Vec<Candidate>> {
        if n_iter == 0 || CANDIDATES_MAX < n_iter {
            return Err(value_error(format!(
                "The 'n_iter' parameter must be an int in the range [1, {CANDIDATES_MAX}]. Got {n_iter} instead."
            )));
        }
        if let Some(grid) = self.grid() {
            let count = grid.count()?;
            let key = Key::for_purpose(random_state, 0, PURPOSE);
            // A part of a shuffle: each place of the front gets one of those behind it. Of all the others,
            // which may be many, only those that have moved are kept.
            let mut moved: BTreeMap<u64, u64> = BTreeMap::new();
            let drawn = (0..count.min(n_iter as u64)).map(|at| {
                let other = at + below(key.bits(at), count - at);
                let first = moved.get(&at).copied().unwrap_or(at);
                grid.at(moved.insert(other, first).unwrap_or(other))
            });
            return Ok(drawn.collect());
        }
        let candidate = |at: usize| -> Result<Candidate> {
            let mut made = Vec::with_capacity(self.sources.len());
            for (param, (name, source)) in self.sources.iter().enumerate() {
                let key = Key::for_purpose(random_state, 1 + param as u64, PURPOSE);
                made.push((name.clone(), source.at(name, key, at as u64)?));
            }
            Ok(made)
        };
        (0..n_iter).map(candidate).collect()
    }

    /// The grid of lists alone.
    fn grid(&self) -> Option<ParamGrid> {
        let lists = self.sources.iter().map(|(name, source)| match source {
            Distribution::Choice(values) => Some((name.clone(), values.clone())),
            _ => None,
        });
        Some(ParamGrid { values: lists.collect::<Option<_>>()? })
    }
}

impl Distribution {
    /// The value of a draw.
    #[track_caller]
    fn at(&self, name: &str, key: Key, draw: u64) -> Result<Setting> {
        let empty = || value_error(format!("the distribution of '{name}' has no values: {self:?}"));
        let share = || key.uniform(draw);
        Ok(match *self {
            Distribution::Choice(ref values) => match values.len() {
                0 => return Err(empty()),
                count => values[below(key.bits(draw), count as u64) as usize].clone(),
            },
            Distribution::Integers { low, high } if low < high => {
                Setting::Integer(low.wrapping_add(below(key.bits(draw), high.abs_diff(low)) as i64))
            }
            Distribution::Uniform { low, high } if low <= high && (high - low).is_finite() => {
                Setting::Real((low + share() * (high - low)).min(high))
            }
            Distribution::LogUniform { low, high } if 0.0 < low && low <= high && high.is_finite() => {
                let exponent = low.ln() + share() * (high.ln() - low.ln());
                Setting::Real(exponent.exp().clamp(low, high))
            }
            _ => return Err(empty()),
        })
    }
}
