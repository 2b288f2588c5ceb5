//! Naive Bayes.

use super::args::{ARRAY_OR_NONE, class};
use super::model::{array, classes, model, real, supervised_score, wholes};
use super::object::{Class, Instance};
use crate::naive_bayes::{
    BernoulliNB, CategoricalNB, ComplementNB, FittedBernoulliNB, FittedCategoricalNB, FittedComplementNB,
    FittedGaussianNB, FittedMultinomialNB, GaussianNB, MultinomialNB,
};
use tharsis_numeric::protocol::{Scope, Value};
use tharsis_programs::{Kind, Param, Preset, Row};

static GAUSSIAN: Class = Class::supervised("GaussianNB");
static MULTINOMIAL: Class = Class::supervised("MultinomialNB");
static BERNOULLI: Class = Class::supervised("BernoulliNB");
static COMPLEMENT: Class = Class::supervised("ComplementNB");
static CATEGORICAL: Class = Class::supervised("CategoricalNB");

const ALPHA: Param = Param::new("alpha", Kind::OneOf(&[Kind::Real, Kind::Array]), Preset::Real(1.0))
    .keyword()
    .only(Kind::Real);
const FORCE_ALPHA: Param = Param::new("force_alpha", Kind::Boolean, Preset::Boolean(true)).keyword().fixed();
const FIT_PRIOR: Param = Param::new("fit_prior", Kind::Boolean, Preset::Boolean(true)).keyword();
const CLASS_PRIOR: Param = Param::new("class_prior", ARRAY_OR_NONE, Preset::None).keyword();

/// Naive Bayes.
pub(super) const ROWS: &[Row<Value, Scope>] = &[
    class(
        "sk.naive_bayes.GaussianNB",
        &[
            Param::new("priors", ARRAY_OR_NONE, Preset::None).keyword(),
            Param::new("var_smoothing", Kind::Real, Preset::Real(1e-9)).keyword(),
        ],
        "classes by features with normal distributions",
        |args, _| Instance::made::<GaussianNB>(&GAUSSIAN, args),
    ),
    class(
        "sk.naive_bayes.MultinomialNB",
        &[ALPHA, FORCE_ALPHA, FIT_PRIOR, CLASS_PRIOR],
        "classes by features that count",
        |args, _| Instance::made::<MultinomialNB>(&MULTINOMIAL, args),
    ),
    class(
        "sk.naive_bayes.BernoulliNB",
        &[
            ALPHA,
            FORCE_ALPHA,
            Param::new("binarize", Kind::OneOf(&[Kind::Real, Kind::None]), Preset::Real(0.0))
                .keyword()
                .only(Kind::Real),
            FIT_PRIOR,
            CLASS_PRIOR,
        ],
        "classes by features that are there or not",
        |args, _| Instance::made::<BernoulliNB>(&BERNOULLI, args),
    ),
    class(
        "sk.naive_bayes.ComplementNB",
        &[
            ALPHA,
            FORCE_ALPHA,
            FIT_PRIOR,
            CLASS_PRIOR,
            Param::new("norm", Kind::Boolean, Preset::Boolean(false)).keyword(),
        ],
        "classes by counts of features in all other classes",
        |args, _| Instance::made::<ComplementNB>(&COMPLEMENT, args),
    ),
    class(
        "sk.naive_bayes.CategoricalNB",
        &[
            Param::new("alpha", Kind::Real, Preset::Real(1.0)).keyword(),
            FORCE_ALPHA,
            FIT_PRIOR,
            CLASS_PRIOR,
            Param::new(
                "min_categories",
                Kind::OneOf(&[Kind::None, Kind::Array, Kind::Integer]),
                Preset::None,
            )
            .keyword(),
        ],
        "classes by features that are categories",
        |args, _| Instance::made::<CategoricalNB>(&CATEGORICAL, args),
    ),
];

model!(
    FittedGaussianNB,
    maps: [predict, predict_log_proba, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "class_count_" => array(&m.class_count),
        "class_prior_" => array(&m.class_prior),
        "classes_" => classes(&m.classes),
        "epsilon_" => real(m.epsilon),
        "theta_" => array(&m.theta),
        "var_" => array(&m.var),
    },
);

model!(
    FittedMultinomialNB,
    maps: [predict, predict_log_proba, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "class_count_" => array(&m.class_count),
        "class_log_prior_" => array(&m.class_log_prior),
        "classes_" => classes(&m.classes),
        "feature_count_" => array(&m.feature_count),
        "feature_log_prob_" => array(&m.feature_log_prob),
    },
);

model!(
    FittedBernoulliNB,
    maps: [predict, predict_log_proba, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "class_count_" => array(&m.class_count),
        "class_log_prior_" => array(&m.class_log_prior),
        "classes_" => classes(&m.classes),
        "feature_count_" => array(&m.feature_count),
        "feature_log_prob_" => array(&m.feature_log_prob),
    },
);

model!(
    FittedComplementNB,
    maps: [predict, predict_log_proba, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "class_count_" => array(&m.class_count),
        "class_log_prior_" => array(&m.class_log_prior),
        "classes_" => classes(&m.classes),
        "feature_all_" => array(&m.feature_all),
        "feature_count_" => array(&m.feature_count),
        "feature_log_prob_" => array(&m.feature_log_prob),
    },
);

model!(
    FittedCategoricalNB,
    maps: [predict, predict_log_proba, predict_proba],
    score: |m, x, y, options| supervised_score(m, x, y, options),
    attributes: |m| {
        "category_count_" => Value::List(m.category_count.iter().map(array).collect()),
        "class_count_" => array(&m.class_count),
        "class_log_prior_" => array(&m.class_log_prior),
        "classes_" => classes(&m.classes),
        "feature_log_prob_" => Value::List(m.feature_log_prob.iter().map(array).collect()),
        "n_categories_" => wholes(&m.n_categories()),
    },
);
