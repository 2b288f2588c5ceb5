//! Searches whose candidates get more samples, or more of another resource, the better their scores are.

use super::candidates::{Candidate, ParamDistributions, ParamGrid};
use super::found::FittedSearch;
use super::rows::Split;
use super::search::{Search, searches};
use super::table::CvResults;
use super::validation::Problem;
use crate::Result;
use crate::base::{ByClass, Estimator, FitOptions, Predict, PredictProba, Task, Transform};
use crate::metrics::inputs::value_error;
use crate::params::{Params, Setting};
use crate::saved::{Save, decoded, encoded};
use std::fmt;
use tharsis_numeric::Tensor;
use tharsis_numeric::random::default_rng_words;

/// scikit-learn's `HalvingGridSearchCV`: all combinations of some values of parameters are scored with few
/// samples, the best part of them with more, and so on.
///
/// A round of `factor` has `factor` times as many samples for each candidate as the one before it, and a part
/// in `factor` of the candidates. Samples of a round are drawn from the folds; the draws are not
/// scikit-learn's. Another resource is a parameter of the estimator.
///
/// ```
/// use tharsis_learn::datasets::load_iris;
/// use tharsis_learn::model_selection::{HalvingGridSearchCV, ParamGrid};
/// use tharsis_learn::tree::DecisionTreeClassifier;
/// let iris = load_iris()?;
/// let grid = ParamGrid::new().values("min_samples_leaf", [1i64, 2, 5, 10]);
/// let search = HalvingGridSearchCV::new(DecisionTreeClassifier::new(), grid).factor(2.0);
/// let found = search.resource("max_depth").max_resources(4).fit(&iris.data, &iris.target, ..)?;
/// assert_eq!((&found.n_candidates[..], &found.n_resources[..]), (&[4, 2, 1][..], &[1, 2, 4][..]));
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct HalvingGridSearchCV<E> {
    search: Search<E>,
    grids: Vec<ParamGrid>,
    halving: Halving,
}

/// scikit-learn's `HalvingRandomSearchCV`: as [`HalvingGridSearchCV`], of values that are drawn.
///
/// ```
/// use tharsis_learn::datasets::load_diabetes;
/// use tharsis_learn::linear_model::Ridge;
/// use tharsis_learn::model_selection::{Distribution, HalvingRandomSearchCV, ParamDistributions};
/// let data = load_diabetes()?;
/// let drawn = ParamDistributions::new().draw("alpha", Distribution::LogUniform { low: 1e-3, high: 10.0 });
/// let found = HalvingRandomSearchCV::new(Ridge::new(), drawn).fit(&data.data, &data.target, ..)?;
/// // 442 samples, of which the first round has two for each of five folds.
/// assert_eq!(found.n_candidates, [44, 15, 5, 2]);
/// assert_eq!(found.n_resources, [10, 30, 90, 270]);
/// # Ok::<(), tharsis_learn::Error>(())
/// ```
#[must_use]
#[derive(Clone, Debug)]
pub struct HalvingRandomSearchCV<E> {
    search: Search<E>,
    distributions: ParamDistributions,
    n_candidates: Option<usize>,
    halving: Halving,
}

/// The resources of a candidate of the first round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MinResources {
    /// As many as let the last round have the most.
    Exhaust,
    /// Of samples, two for each fold and class; of other resources one.
    Smallest,
    /// So many.
    Count(usize),
}

/// The part that both searches have.
#[derive(Clone, Debug)]
struct Halving {
    factor: f64,
    /// A parameter; none of samples.
    resource: Option<String>,
    max_resources: Option<usize>,
    min_resources: MinResources,
    aggressive_elimination: bool,
    random_state: u64,
}

/// A fitted [`HalvingGridSearchCV`] or [`HalvingRandomSearchCV`]. It predicts and maps as its best model.
#[derive(Debug)]
#[non_exhaustive]
pub struct FittedHalving<M> {
    /// The results that other searches have: the candidates of all rounds, one round behind the other, and
    /// the best of the last round.
    pub search: FittedSearch<M>,
    /// scikit-learn's `n_resources_`: the resources of each candidate of each round.
    pub n_resources: Vec<usize>,
    /// scikit-learn's `n_candidates_`: the candidates of each round.
    pub n_candidates: Vec<usize>,
    /// scikit-learn's `n_remaining_candidates_`: those that would have been in a next round.
    pub n_remaining_candidates: usize,
    /// scikit-learn's `max_resources_`.
    pub max_resources: usize,
    /// scikit-learn's `min_resources_`.
    pub min_resources: usize,
    /// scikit-learn's `n_required_iterations_`: rounds until there are less than `factor` candidates.
    pub n_required_iterations: usize,
    /// scikit-learn's `n_possible_iterations_`: rounds for which resources are enough.
    pub n_possible_iterations: usize,
}

const GRID: &str = "HalvingGridSearchCV";
const RANDOM: &str = "HalvingRandomSearchCV";
const SAMPLES: &str = "n_samples";

impl Halving {
    fn new(min_resources: MinResources) -> Halving {
        Halving {
            factor: 3.0,
            resource: None,
            max_resources: None,
            min_resources,
            aggressive_elimination: false,
            random_state: 0,
        }
    }

    /// Rounds in which so many things come down to less than `factor`, less one, as scikit-learn computes it.
    fn rounds(&self, things: usize) -> usize {
        ((things as f64).ln() / self.factor.ln()).floor() as usize
    }

    /// The most and the least resources of a candidate, before the candidates are known.
    #[track_caller]
    fn bounds<E>(&self, name: &str, search: &Search<E>, problem: &Problem) -> Result<(usize, usize)>
    where
        E: Estimator<Fitted: Predict> + Params,
    {
        let is_sound = 1.0 < self.factor && self.factor.is_finite();
        if !is_sound {
            return Err(value_error(format!(
                "The 'factor' parameter of {name} must be a float above 1. Got {} instead.",
                self.factor
            )));
        }
        if let Some(resource) = &self.resource
            && !search.estimator.params().iter().any(|(param, _)| param == resource)
        {
            return Err(value_error(format!(
                "Cannot use resource={resource} which is not supported by estimator {}()",
                search.estimator.estimator()
            )));
        }
        let most = match (self.max_resources, &self.resource) {
            (Some(most), _) => most,
            (None, None) => problem.rows()?,
            (None, Some(_)) => {
                return Err(value_error("resource can only be 'n_samples' when max_resources='auto'"));
            }
        };
        let least = match (self.min_resources, &self.resource) {
            (MinResources::Count(count), _) => count,
            (_, Some(_)) => 1,
            (_, None) if E::Fitted::TASK == Task::Classification => {
                2 * problem.splits.len() * problem.classes()?
            }
            (_, None) => 2 * problem.splits.len(),
        };
        if most < least {
            return Err(value_error(format!(
                "min_resources_={least} is greater than max_resources_={most}."
            )));
        }
        if least == 0 {
            return Err(value_error("min_resources_=0: you might have passed an empty dataset X."));
        }
        Ok((most, least))
    }

    /// The rounds of a search.
    #[track_caller]
    fn found<E>(
        &self,
        name: &str,
        search: &Search<E>,
        generate: impl FnOnce(usize, usize) -> Result<Vec<Candidate>>,
        (x, y, options): (&Tensor, &Tensor, &FitOptions),
    ) -> Result<(FittedHalving<()>, Problem)>
    where
        E: Estimator<Fitted: Predict> + Params + Clone,
    {
        let (mut problem, mut scored) = search.begin(x, y, options)?;
        let (most, mut least) = self.bounds(name, search, &problem)?;
        let mut candidates = generate(most, least)?;
        search.check_names(&candidates)?;
        if let Some(resource) = &self.resource
            && candidates.iter().flatten().any(|(name, _)| name == resource)
        {
            return Err(value_error(format!(
                "Cannot use parameter {resource} as the resource since it is part of the searched parameters."
            )));
        }
        let required = 1 + self.rounds(candidates.len());
        if self.min_resources == MinResources::Exhaust {
            let share = most as f64 / self.factor.powi(required as i32 - 1);
            least = least.max(share.floor() as usize);
        }
        let possible = 1 + self.rounds(most / least);
        let rounds = if self.aggressive_elimination { required } else { possible.min(required) };
        let whole = problem.splits.clone();
        let rows = problem.rows()?;
        let (mut n_resources, mut n_candidates) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            // Candidates are eliminated with the least resources as long as those would not last.
            let is_early = self.aggressive_elimination;
            let power = if is_early { (round + possible).saturating_sub(required) } else { round };
            let resources = ((self.factor.powi(power as i32) * least as f64) as usize).min(most);
            match &self.resource {
                None => problem.splits = self.drawn(&problem, &whole, resources as f64 / rows as f64)?,
                Some(resource) => candidates.iter_mut().for_each(|candidate| {
                    candidate.retain(|(name, _)| name != resource);
                    candidate.push((resource.clone(), Setting::Integer(resources as i64)));
                }),
            }
            n_resources.push(resources);
            n_candidates.push(candidates.len());
            let before = scored.means.len();
            search.add(&mut scored, candidates.clone(), &problem)?;
            let kept = (candidates.len() as f64 / self.factor).ceil() as usize;
            candidates = best(candidates, &scored.means[before..], kept);
        }
        problem.splits = whole;
        let last = n_candidates.last().copied().unwrap_or(0);
        let search = scored.found(|results| best_of_last(results, last))?;
        let found = FittedHalving {
            search,
            n_resources,
            n_candidates,
            n_remaining_candidates: candidates.len(),
            max_resources: most,
            min_resources: least,
            n_required_iterations: required,
            n_possible_iterations: possible,
        };
        Ok((found, problem))
    }

    /// A part of the samples of all splits. Those of a larger part are among it.
    #[track_caller]
    fn drawn(&self, problem: &Problem, splits: &[Split], part: f64) -> Result<Vec<Split>> {
        let drawn = |(at, split): (usize, &Split)| {
            let [train, test] = [(&split.train, 0), (&split.test, 1)].map(|(rows, set)| {
                rows.drawn(part, &default_rng_words(&[self.random_state, at as u64, set]))
            });
            Ok(Split { train: train?, test: test? })
        };
        problem.within(|| splits.iter().enumerate().map(drawn).collect())
    }
}

/// The place of the first candidate with the best score among the last ones, so many; of NaN alone the first.
fn best_of_last(results: &CvResults, last: usize) -> usize {
    let from = results.params.len().saturating_sub(last);
    let scores = results.mean_test_score.iter().copied().enumerate().skip(from);
    let mut best = (from, f64::NAN);
    for (at, score) in scores.filter(|(_, score)| !score.is_nan()) {
        if best.1.is_nan() || best.1 < score {
            best = (at, score);
        }
    }
    best.0
}

/// The candidates with the largest scores, the largest last. NaN is less than all numbers.
fn best(candidates: Vec<Candidate>, scores: &[f64], kept: usize) -> Vec<Candidate> {
    let mut order: Vec<(f64, Candidate)> = scores.iter().copied().zip(candidates).collect();
    order.sort_by(|(a, _), (b, _)| b.is_nan().cmp(&a.is_nan()).then(a.total_cmp(b)));
    let gone = order.len().saturating_sub(kept);
    order.into_iter().skip(gone).map(|(_, candidate)| candidate).collect()
}

impl FittedHalving<()> {
    /// The same rounds, with the model of the best candidate.
    fn with_model<M>(
        self,
        model: impl FnOnce(FittedSearch<()>) -> Result<FittedSearch<M>>,
    ) -> Result<FittedHalving<M>> {
        Ok(FittedHalving {
            search: model(self.search)?,
            n_resources: self.n_resources,
            n_candidates: self.n_candidates,
            n_remaining_candidates: self.n_remaining_candidates,
            max_resources: self.max_resources,
            min_resources: self.min_resources,
            n_required_iterations: self.n_required_iterations,
            n_possible_iterations: self.n_possible_iterations,
        })
    }
}

macro_rules! halving {
    ($search:ident, $name:expr, $known:expr) => {
        searches!($search, $name, $known);

        impl<E> $search<E> {
            /// scikit-learn's `factor`: how many times fewer candidates, and more resources for each, a round
            /// has than the one before it; above 1.
            pub fn factor(mut self, factor: f64) -> $search<E> {
                self.halving.factor = factor;
                self
            }

            /// scikit-learn's `resource`: `n_samples`, or a parameter that is a whole number.
            pub fn resource(mut self, resource: &str) -> $search<E> {
                self.halving.resource = (resource != SAMPLES).then(|| resource.to_owned());
                self
            }

            /// scikit-learn's `max_resources`: the most resources of a candidate; all samples by default.
            pub fn max_resources(mut self, max_resources: impl Into<Option<usize>>) -> $search<E> {
                self.halving.max_resources = max_resources.into();
                self
            }

            /// scikit-learn's `min_resources`: those of a candidate of the first round.
            pub fn min_resources(mut self, min_resources: MinResources) -> $search<E> {
                self.halving.min_resources = min_resources;
                self
            }

            /// scikit-learn's `aggressive_elimination`: whether rounds with the least resources go on until
            /// so few candidates are left that resources last to the end.
            pub fn aggressive_elimination(mut self, aggressive_elimination: bool) -> $search<E> {
                self.halving.aggressive_elimination = aggressive_elimination;
                self
            }

            /// scikit-learn's `random_state`: the seed of all draws; the numbers are not scikit-learn's.
            pub fn random_state(mut self, random_state: u64) -> $search<E> {
                self.halving.random_state = random_state;
                self
            }
        }

        impl<E: Estimator<Fitted: Predict> + Params + Clone> $search<E> {
            /// Fits the candidates of all rounds on the folds, and the best one on all samples (n, d) and
            /// targets.
            ///
            /// # Errors
            /// `ValueError` for parameters out of their ranges, names that are no parameters, no candidates,
            /// splits that do not fit the data, and if all fits of a round fail; errors of the last fit.
            #[track_caller]
            pub fn fit(
                &self,
                x: &Tensor,
                y: &Tensor,
                options: impl Into<FitOptions>,
            ) -> Result<FittedHalving<E::Fitted>> {
                self.fit_any(x, Some(y), &options.into())
            }
        }

        impl<E: Estimator<Fitted: Predict> + Params + Clone> Estimator for $search<E> {
            type Fitted = FittedHalving<E::Fitted>;

            fn takes_weights(&self) -> bool {
                self.search.estimator.takes_weights()
            }

            #[track_caller]
            fn fit_any(
                &self,
                x: &Tensor,
                y: Option<&Tensor>,
                options: &FitOptions,
            ) -> Result<FittedHalving<E::Fitted>> {
                let y = y.ok_or_else(|| value_error("a search needs targets, but the target y is None."))?;
                let generate = |most, least| self.candidates(most, least);
                let (found, problem) = self.halving.found($name, &self.search, generate, (x, y, options))?;
                found.with_model(|found| self.search.refitted(found, &problem))
            }
        }
    };
}
halving!(
    HalvingGridSearchCV,
    GRID,
    &["estimator", "factor", "max_resources", "min_resources", "param_grid", "resource"]
);
halving!(
    HalvingRandomSearchCV,
    RANDOM,
    &[
        "estimator",
        "factor",
        "max_resources",
        "min_resources",
        "n_candidates",
        "param_distributions",
        "resource"
    ]
);

impl<E> HalvingGridSearchCV<E> {
    /// A search through a grid, or several grids one behind the other, with five folds, the model's own
    /// score, and a factor of 3.
    pub fn new(estimator: E, grids: impl Into<Vec<ParamGrid>>) -> HalvingGridSearchCV<E> {
        let halving = Halving::new(MinResources::Exhaust);
        HalvingGridSearchCV { search: Search::new(estimator), grids: grids.into(), halving }
    }

    fn candidates(&self, _: usize, _: usize) -> Result<Vec<Candidate>> {
        let mut all = Vec::new();
        for grid in &self.grids {
            all.extend(grid.candidates()?);
        }
        Ok(all)
    }
}

impl<E> HalvingRandomSearchCV<E> {
    /// A search of as many draws as let the last round have the most resources, with five folds, the model's
    /// own score, and a factor of 3.
    pub fn new(estimator: E, distributions: ParamDistributions) -> HalvingRandomSearchCV<E> {
        let halving = Halving::new(MinResources::Smallest);
        HalvingRandomSearchCV { search: Search::new(estimator), distributions, n_candidates: None, halving }
    }

    /// scikit-learn's `n_candidates`: the candidates of the first round; `None` is scikit-learn's `exhaust`.
    pub fn n_candidates(self, n_candidates: impl Into<Option<usize>>) -> HalvingRandomSearchCV<E> {
        HalvingRandomSearchCV { n_candidates: n_candidates.into(), ..self }
    }

    fn candidates(&self, most: usize, least: usize) -> Result<Vec<Candidate>> {
        if self.n_candidates.is_none() && self.halving.min_resources == MinResources::Exhaust {
            return Err(value_error("n_candidates and min_resources cannot be both set to 'exhaust'."));
        }
        self.distributions.candidates(self.n_candidates.unwrap_or(most / least), self.halving.random_state)
    }
}

impl<M: Predict> FittedHalving<M> {
    /// The predictions of the best model for samples (n, d), as an expression.
    #[track_caller]
    pub fn predict(&self, x: &Tensor) -> Tensor {
        self.search.predict(x)
    }

    /// The score of the best model, by the score of the search.
    ///
    /// # Errors
    /// Those of the score.
    #[track_caller]
    pub fn score(&self, x: &Tensor, y: &Tensor, options: impl Into<FitOptions>) -> Result<f64> {
        self.score_any(x, y, &options.into())
    }
}

impl<M: Predict> Predict for FittedHalving<M> {
    const TASK: Task = M::TASK;

    fn name(&self) -> &'static str {
        self.search.name()
    }

    #[track_caller]
    fn predict(&self, x: &Tensor) -> Tensor {
        self.search.predict(x)
    }

    fn class_labels(&self) -> Option<&[i64]> {
        self.search.class_labels()
    }

    #[track_caller]
    fn probabilities(&self, x: &Tensor) -> Option<ByClass<'_>> {
        self.search.probabilities(x)
    }

    #[track_caller]
    fn decisions(&self, x: &Tensor) -> Option<ByClass<'_>> {
        self.search.decisions(x)
    }

    #[track_caller]
    fn score_any(&self, x: &Tensor, y: &Tensor, options: &FitOptions) -> Result<f64> {
        self.search.score_any(x, y, options)
    }
}

impl<M: PredictProba> PredictProba for FittedHalving<M> {
    fn classes(&self) -> &[i64] {
        self.search.classes()
    }

    #[track_caller]
    fn predict_proba(&self, x: &Tensor) -> Tensor {
        self.search.predict_proba(x)
    }

    #[track_caller]
    fn predict_log_proba(&self, x: &Tensor) -> Tensor {
        self.search.predict_log_proba(x)
    }
}

impl<M: Transform> Transform for FittedHalving<M> {
    #[track_caller]
    fn transform(&self, x: &Tensor) -> Tensor {
        self.search.transform(x)
    }

    fn feature_names_out(&self, names: &[String]) -> Option<Vec<String>> {
        self.search.feature_names_out(names)
    }
}

/// Numbers of a search in a file beside the search: the resources and the candidates of rounds, the
/// candidates that are left, the most and the least resources, and rounds that are required and possible.
type SavedRounds = (Vec<usize>, Vec<usize>, usize, [usize; 2], [usize; 2]);

impl<M: Save> Save for FittedHalving<M> {
    const KIND: &'static str = "Halving";

    #[track_caller]
    fn body(&self) -> Result<Vec<u8>> {
        let rounds = (
            &self.n_resources,
            &self.n_candidates,
            self.n_remaining_candidates,
            [self.max_resources, self.min_resources],
            [self.n_required_iterations, self.n_possible_iterations],
        );
        encoded(&(rounds, self.search.body()?))
    }

    fn of_body(body: &[u8]) -> Option<FittedHalving<M>> {
        let (rounds, search): (SavedRounds, Vec<u8>) = decoded(body)?;
        let (n_resources, n_candidates, n_remaining_candidates, resources, iterations) = rounds;
        let search = FittedSearch::of_body(&search)?;
        let candidates = n_candidates.iter().try_fold(0usize, |all, &count| all.checked_add(count))?;
        if candidates != search.cv_results.params.len() || n_resources.len() != n_candidates.len() {
            return None;
        }
        let ([max_resources, min_resources], [n_required_iterations, n_possible_iterations]) =
            (resources, iterations);
        Some(FittedHalving {
            search,
            n_resources,
            n_candidates,
            n_remaining_candidates,
            max_resources,
            min_resources,
            n_required_iterations,
            n_possible_iterations,
        })
    }
}

impl<M: fmt::Display> fmt::Display for FittedHalving<M> {
    /// The candidates of the rounds, and the text of the search.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "rounds of {:?} candidates with {:?} resources, ", self.n_candidates, self.n_resources)?;
        write!(f, "{}", self.search)
    }
}
