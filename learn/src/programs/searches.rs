//! Searches for the parameters whose models score best.

use super::args::{
    INTEGER_OR_NONE, N_JOBS, RANDOM_STATE, VERBOSE, class, count, integer_if_given, seed, setting,
    whole_numbers, whole_setting,
};
use super::held::{Around, around, told_methods};
use super::model::{Described, Model, classes, numbers, real, supervised_score, whole};
use super::object::Class;
use crate::base::{FitOptions, Predict, Task};
use crate::held::{AnyEstimator, FittedAny, Tells};
use crate::model_selection::{
    Candidate, Distribution, ErrorScore, FittedSearch, Folds, GridSearchCV, ParamDistributions, ParamGrid,
    RandomizedSearchCV, Scoring, Validation,
};
use crate::params::Setting;
use tharsis_numeric::protocol::{Failure, Scope, Value};
use tharsis_numeric::{DType, Scalar, Tensor};
use tharsis_programs::{Argument, Bound, Kind, Param, Preset, Row};

static OF_GRIDS: Class = Class { absent: ABSENT, ..Class::supervised("GridSearchCV") };
static OF_DRAWS: Class = Class { absent: ABSENT, ..Class::supervised("RandomizedSearchCV") };

pub(super) const ABSENT: &[&str] = &["best_estimator_", "refit_time_", "scorer_"];

pub(super) const ESTIMATOR: Param = Param::needed("estimator", Kind::Object);
pub(super) const GRID: Param = Param::needed("param_grid", Kind::Anything);
/// A name, or several of them.
pub(super) const SCORING: Param =
    Param::new("scoring", Kind::OneOf(&[Kind::Text, Kind::Sequence, Kind::None]), Preset::None).keyword();
/// Whether the best candidate is fitted to all samples; of several scores the name of the one that chooses.
pub(super) const REFIT: Param =
    Param::new("refit", Kind::OneOf(&[Kind::Boolean, Kind::Text]), Preset::Boolean(true)).keyword();
const CV: Param = Param::new("cv", INTEGER_OR_NONE, Preset::None).keyword();
const PRE_DISPATCH: Param =
    Param::new("pre_dispatch", Kind::OneOf(&[Kind::Integer, Kind::Text]), Preset::Text("2*n_jobs")).keyword();
pub(super) const ERROR_SCORE: Param =
    Param::new("error_score", Kind::OneOf(&[Kind::Choice(&["raise"]), Kind::Real]), Preset::Real(f64::NAN))
        .keyword();
const TRAIN: Param = Param::new("return_train_score", Kind::Boolean, Preset::Boolean(false)).keyword();

/// The searches.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.model_selection.GridSearchCV",
        &[ESTIMATOR, GRID, SCORING, N_JOBS, REFIT, CV, VERBOSE, PRE_DISPATCH, ERROR_SCORE, TRAIN],
        "a fit with the best of all combinations of some parameters, by scores on folds",
        |args, _| around::<OfGrids>(&OF_GRIDS, args),
    ),
    class(
        "sk.model_selection.RandomizedSearchCV",
        &[
            ESTIMATOR,
            Param::needed("param_distributions", Kind::Anything),
            Param::new("n_iter", Kind::Integer, Preset::Integer(10)).keyword(),
            SCORING,
            N_JOBS,
            REFIT,
            CV,
            VERBOSE,
            PRE_DISPATCH,
            RANDOM_STATE,
            ERROR_SCORE,
            TRAIN,
        ],
        "a fit with the best of some combinations of parameters that are drawn, by scores on folds",
        |args, _| around::<OfDraws>(&OF_DRAWS, args),
    ),
];

struct OfGrids;

impl Around for OfGrids {
    type Of<T: Tells> = GridSearchCV<AnyEstimator<T>>;

    fn of<T: Tells>(args: &Bound<Value>, estimator: AnyEstimator<T>) -> Result<Self::Of<T>, Failure> {
        Ok(GridSearchCV::new(estimator, grids(args)?).validation(validation(args)?))
    }
}

struct OfDraws;

impl Around for OfDraws {
    type Of<T: Tells> = RandomizedSearchCV<AnyEstimator<T>>;

    fn of<T: Tells>(args: &Bound<Value>, estimator: AnyEstimator<T>) -> Result<Self::Of<T>, Failure> {
        let search = RandomizedSearchCV::new(estimator, drawn(args)?).n_iter(count(args, "n_iter", 1)?);
        Ok(search.random_state(seed(args)?).validation(validation(args)?))
    }
}

/// The lists from which the values of parameters are drawn.
///
/// # Errors
/// `ValueError` for anything else than a dictionary of lists.
pub(super) fn drawn(args: &Bound<Value>) -> Result<ParamDistributions, Failure> {
    let name = "param_distributions";
    let kinds = "an instance of 'dict', an instance of 'list' or an instance of 'tuple'";
    let mut drawn = ParamDistributions::new();
    for (name, values) in dictionary(args.value(name)?, args.owner(), (name, kinds))? {
        drawn = drawn.draw(name, Distribution::Choice(settings(values)?));
    }
    Ok(drawn)
}

/// The entries of a dictionary.
fn dictionary<'a>(
    value: &'a Value,
    owner: &str,
    (name, kinds): (&str, &str),
) -> Result<&'a [(String, Value)], Failure> {
    match value {
        Value::Dictionary(entries) => Ok(entries),
        _ => Err(Failure::value(format!(
            "The '{name}' parameter of {owner} must be {kinds}. Got {} instead.",
            value.look()
        ))),
    }
}

/// The grids of a dictionary, or of a list of them.
///
/// # Errors
/// `ValueError` for anything else.
pub(super) fn grids(args: &Bound<Value>) -> Result<Vec<ParamGrid>, Failure> {
    let name = "param_grid";
    grids_in(args.value(name)?, args.owner(), name)
}

fn grids_in(value: &Value, owner: &str, name: &str) -> Result<Vec<ParamGrid>, Failure> {
    if let Value::List(parts) | Value::Tuple(parts) = value {
        let parts = parts.iter().map(|part| grids_in(part, owner, name));
        return Ok(parts.collect::<Result<Vec<_>, _>>()?.concat());
    }
    let kinds = "an instance of 'dict' or an instance of 'list'";
    let mut grid = ParamGrid::new();
    for (name, values) in dictionary(value, owner, (name, kinds))? {
        grid = grid.values(name, settings(values)?);
    }
    Ok(vec![grid])
}

/// The values of a parameter.
fn settings(values: &Value) -> Result<Vec<Setting>, Failure> {
    match values {
        Value::List(parts) | Value::Tuple(parts) => parts.iter().map(setting).collect(),
        Value::Tensor(tensor) if tensor.ndim()? == 1 => {
            if tensor.dtype()?.is_integer() {
                return Ok(whole_numbers(tensor)?.into_iter().map(whole_setting).collect());
            }
            Ok(tensor.astype(DType::F64).to_vec::<f64>()?.into_iter().map(Setting::Real).collect())
        }
        _ => Err(Failure::value("values of a parameter are a list or an array of one axis")),
    }
}

/// The options of the validation.
///
/// # Errors
/// `ValueError` for folds and scores that do not exist; `NotImplemented` without a last fit.
pub(super) fn validation(args: &Bound<Value>) -> Result<Validation, Failure> {
    let cv = match integer_if_given(args, "cv")? {
        None => Folds::default(),
        Some(_) => count(args, "cv", 2)?.into(),
    };
    let refit = args.value("refit")?;
    let (scoring, further_scoring) = match (args.value("scoring")?, refit) {
        (Value::None, _) => (Scoring::default(), Vec::new()),
        (Value::Text(name), _) => (Scoring::named(name)?, Vec::new()),
        (Value::List(names) | Value::Tuple(names), Value::Text(chosen)) => several(names, chosen)?,
        (_, refit) => {
            return Err(Failure::value(format!(
                "For multi-metric scoring, the parameter refit must be set to a scorer key or a callable to refit \
                 an estimator with the best parameter setting on the whole data and make the best_* attributes \
                 available for that metric. If this is not needed, refit should be set to False explicitly. \
                 {refit:?} was passed."
            )));
        }
    };
    if let Value::Number(Scalar::Bool(false)) = refit {
        return Err(Failure::missing("refit=False of a search"));
    }
    let error_score = match args.value("error_score")? {
        Value::Text(_) => ErrorScore::Raise,
        number => ErrorScore::Number(number.real()?),
    };
    let return_train_score = args.boolean("return_train_score")?;
    Ok(Validation { cv, scoring, further_scoring, error_score, return_train_score, ..Validation::default() })
}

/// The score that chooses, and the others.
fn several(names: &[Value], chosen: &str) -> Result<(Scoring, Vec<Scoring>), Failure> {
    let name = |value: &'_ Value| match value {
        Value::Text(name) => Ok(name.clone()),
        _ => Err(Failure::value("Empty list or non-string entries of scoring were given")),
    };
    let names = names.iter().map(name).collect::<Result<Vec<String>, _>>()?;
    if !names.iter().any(|name| name == chosen) {
        return Err(Failure::value(format!("refit='{chosen}' is none of the scores")));
    }
    let others = names.iter().filter(|name| *name != chosen).map(|name| Scoring::named(name));
    Ok((Scoring::named(chosen)?, others.collect::<crate::Result<_>>()?))
}

/// A value of a candidate.
fn value_of(setting: &Setting) -> Value {
    match setting {
        Setting::None => Value::None,
        Setting::Boolean(is_true) => Value::Number(Scalar::Bool(*is_true)),
        Setting::Integer(whole) => Value::Number(Scalar::Int(*whole)),
        Setting::Real(number) => real(*number),
        Setting::Text(text) => Value::Text(text.clone()),
        Setting::Numbers(list) => numbers(list),
        Setting::Array(array) => Value::Tensor(array.clone()),
    }
}

fn candidate(candidate: &Candidate) -> Value {
    Value::Dictionary(candidate.iter().map(|(name, value)| (name.clone(), value_of(value))).collect())
}

/// scikit-learn's `cv_results_`, behind columns that other results have not.
pub(super) fn results_of<M: Predict>(
    search: &FittedSearch<M>,
    further: impl IntoIterator<Item = (&'static str, Value)>,
) -> Value {
    let (found, main) = (&search.cv_results, search.scored_by());
    let splits = found.split_test_score.ncols();
    let mut entries: Vec<(String, Value)> =
        further.into_iter().map(|(name, column)| (name.to_owned(), column)).collect();
    let mut add = |name: String, column: &str| {
        if let Some(found) = found.column(column) {
            entries.push((name, numbers(&found.to_vec())));
        }
    };
    for name in ["mean_fit_time", "std_fit_time", "mean_score_time", "std_score_time"] {
        add(name.to_owned(), name);
    }
    // With one score all columns end with the same word.
    let own = if found.further.is_empty() { "score" } else { main };
    let tables = std::iter::once((own, "score"));
    for (shown, name) in
        tables.chain(found.further.iter().map(|table| (table.name.as_str(), table.name.as_str())))
    {
        for set in ["test", "train"] {
            for split in 0..splits {
                add(format!("split{split}_{set}_{shown}"), &format!("split{split}_{set}_{name}"));
            }
            for start in ["mean", "std", "rank"] {
                add(format!("{start}_{set}_{shown}"), &format!("{start}_{set}_{name}"));
            }
        }
    }
    entries.push(("params".to_owned(), Value::List(found.params.iter().map(candidate).collect())));
    Value::Dictionary(entries)
}

impl<T: Tells> Described for FittedSearch<FittedAny<T>> {
    const METHODS: &'static [&'static str] = told_methods::<T>();
    const TASK: Task = T::TASK;
}

impl<T: Tells> Model for FittedSearch<FittedAny<T>> {
    fn map(&self, method: &str, x: &Tensor) -> Option<Tensor> {
        match method {
            "predict" => Some(self.predict(x)),
            "predict_proba" => self.chances(x),
            "decision_function" => self.decided(x),
            _ => None,
        }
    }

    fn score(&self, x: &Tensor, y: Option<&Tensor>, options: &FitOptions) -> crate::Result<f64> {
        supervised_score(self, x, y, options)
    }

    fn attribute(&self, name: &str) -> Option<Value> {
        match name {
            "best_index_" => Some(whole(self.best_index)),
            "best_params_" => Some(candidate(&self.best_params)),
            "best_score_" => Some(real(self.best_score)),
            "classes_" => self.class_labels().map(classes),
            "cv_results_" => Some(results_of(self, [])),
            "multimetric_" => Some(Value::Number(Scalar::Bool(!self.cv_results.further.is_empty()))),
            "n_splits_" => Some(whole(self.n_splits)),
            _ => None,
        }
    }
}
