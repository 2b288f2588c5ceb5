//! Searches whose candidates get more samples, or more of another resource, the better their scores are.

use super::args::{N_JOBS, RANDOM_STATE, VERBOSE, class, count, seed};
use super::held::{Around, around, told_methods};
use super::model::{Described, Model, supervised_score, whole, wholes};
use super::object::Class;
use super::searches::{
    ABSENT, ERROR_SCORE, ESTIMATOR, GRID, REFIT, SCORING, drawn, grids, results_of, validation,
};
use crate::base::{FitOptions, Task};
use crate::held::{AnyEstimator, FittedAny, Tells};
use crate::model_selection::{FittedHalving, HalvingGridSearchCV, HalvingRandomSearchCV, MinResources};
use tharsis_numeric::Tensor;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_programs::{Argument, Bound, Kind, Look, Param, Preset, Row};

static OF_GRIDS: Class = Class { absent: ABSENT, ..Class::supervised("HalvingGridSearchCV") };
static OF_DRAWS: Class = Class { absent: ABSENT, ..Class::supervised("HalvingRandomSearchCV") };

const FACTOR: Param = Param::new("factor", Kind::Real, Preset::Integer(3)).keyword();
const RESOURCE: Param = Param::new("resource", Kind::Text, Preset::Text("n_samples")).keyword();
const MAX_RESOURCES: Param =
    Param::new("max_resources", Kind::OneOf(&[Kind::Choice(&["auto"]), Kind::Integer]), Preset::Text("auto"))
        .keyword();
const LEAST: Kind = Kind::OneOf(&[Kind::Choice(&["exhaust", "smallest"]), Kind::Integer]);
const AGGRESSIVE: Param =
    Param::new("aggressive_elimination", Kind::Boolean, Preset::Boolean(false)).keyword();
const CV: Param = Param::new("cv", Kind::Integer, Preset::Integer(5)).keyword();
/// One score, where other searches take several.
const ONE_SCORE: Param = SCORING.only(Kind::OneOf(&[Kind::Text, Kind::None]));
const TRAIN: Param = Param::new("return_train_score", Kind::Boolean, Preset::Boolean(true)).keyword();

const DISTRIBUTIONS: Param = Param::needed("param_distributions", Kind::Anything);
const CANDIDATES: Kind = Kind::OneOf(&[Kind::Choice(&["exhaust"]), Kind::Integer]);

/// The parameters of a search: the first ones of its own, and `min_resources` with its default.
macro_rules! params {
    ([$($own:expr),+], $least:literal) => {
        &[
            ESTIMATOR,
            $($own,)+
            FACTOR,
            RESOURCE,
            MAX_RESOURCES,
            Param::new("min_resources", LEAST, Preset::Text($least)).keyword(),
            AGGRESSIVE,
            CV,
            ONE_SCORE,
            REFIT,
            ERROR_SCORE,
            TRAIN,
            RANDOM_STATE,
            N_JOBS,
            VERBOSE,
        ]
    };
}

/// The searches by halving.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.model_selection.HalvingGridSearchCV",
        params!([GRID], "exhaust"),
        "a fit with the best of all combinations of some parameters, the worse of which are left out early",
        |args, _| around::<OfGrids>(&OF_GRIDS, args),
    ),
    class(
        "sk.model_selection.HalvingRandomSearchCV",
        params!(
            [DISTRIBUTIONS, Param::new("n_candidates", CANDIDATES, Preset::Text("exhaust")).keyword()],
            "smallest"
        ),
        "a fit with the best of some combinations that are drawn, the worse of which are left out early",
        |args, _| around::<OfDraws>(&OF_DRAWS, args),
    ),
];

/// The options that both searches have.
macro_rules! with_options {
    ($search:expr, $args:expr) => {
        $search
            .factor($args.real("factor")?)
            .resource($args.text("resource")?)
            .max_resources(number_if_given($args, "max_resources")?)
            .min_resources(min_resources($args)?)
            .aggressive_elimination($args.boolean("aggressive_elimination")?)
            .random_state(seed($args)?)
            .validation(validation($args)?)
    };
}

struct OfGrids;

impl Around for OfGrids {
    type Of<T: Tells> = HalvingGridSearchCV<AnyEstimator<T>>;

    fn of<T: Tells>(args: &Bound<Value>, estimator: AnyEstimator<T>) -> Result<Self::Of<T>, Failure> {
        let search = HalvingGridSearchCV::new(estimator, grids(args)?);
        Ok(with_options!(search, args))
    }
}

struct OfDraws;

impl Around for OfDraws {
    type Of<T: Tells> = HalvingRandomSearchCV<AnyEstimator<T>>;

    fn of<T: Tells>(args: &Bound<Value>, estimator: AnyEstimator<T>) -> Result<Self::Of<T>, Failure> {
        let search = HalvingRandomSearchCV::new(estimator, drawn(args)?);
        Ok(with_options!(search.n_candidates(number_if_given(args, "n_candidates")?), args))
    }
}

/// A whole number from 1 on; none of a word.
fn number_if_given(args: &Bound<Value>, name: &str) -> Result<Option<usize>, Failure> {
    match args.value(name)?.look() {
        Look::Text(_) => Ok(None),
        _ => count(args, name, 1).map(Some),
    }
}

fn min_resources(args: &Bound<Value>) -> Result<MinResources, Failure> {
    Ok(match args.value("min_resources")?.look() {
        Look::Text("exhaust") => MinResources::Exhaust,
        Look::Text(_) => MinResources::Smallest,
        _ => MinResources::Count(count(args, "min_resources", 1)?),
    })
}

/// One of the numbers of rounds for each candidate of a round.
fn of_candidates(n_candidates: &[usize], of: impl Fn(usize) -> usize) -> Value {
    let each = n_candidates.iter().enumerate().flat_map(|(round, &count)| vec![of(round); count]);
    wholes(&each.collect::<Vec<usize>>())
}

impl<T: Tells> Described for FittedHalving<FittedAny<T>> {
    const METHODS: &'static [&'static str] = told_methods::<T>();
    const TASK: Task = T::TASK;
}

impl<T: Tells> Model for FittedHalving<FittedAny<T>> {
    fn map(&self, method: &str, x: &Tensor) -> Option<Tensor> {
        self.search.map(method, x)
    }

    fn score(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> crate::Result<f64> {
        supervised_score(self, x, y, options)
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        let resources = |round: usize| self.n_resources.get(round).copied().unwrap_or(0);
        match name {
            "cv_results_" => {
                let rounds = [
                    ("iter", of_candidates(&self.n_candidates, |round| round)),
                    ("n_resources", of_candidates(&self.n_candidates, resources)),
                ];
                Some(results_of(&self.search, rounds))
            }
            "max_resources_" => Some(whole(self.max_resources)),
            "min_resources_" => Some(whole(self.min_resources)),
            "n_candidates_" => Some(wholes(&self.n_candidates)),
            "n_iterations_" => Some(whole(self.n_candidates.len())),
            "n_possible_iterations_" => Some(whole(self.n_possible_iterations)),
            "n_remaining_candidates_" => Some(whole(self.n_remaining_candidates)),
            "n_required_iterations_" => Some(whole(self.n_required_iterations)),
            "n_resources_" => Some(wholes(&self.n_resources)),
            other => self.search.attribute(other),
        }
    }
}
