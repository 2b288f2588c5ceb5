//! The contract of all estimators, held by tests that go through the classes of programs, so that none is
//! left out: second fits, parts of samples, chunks and weights.

use super::names::members;
use super::{classes, inputs, is_of_labels, params, reply, samples_of, target};
use serde_json::{Value as Json, json};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Methods whose results are compared.
const METHODS: [&str; 5] = ["predict", "predict_proba", "decision_function", "transform", "score_samples"];

/// Parameters that make a class small, or that it needs.
fn small(class: &str) -> Json {
    let mut params = params(class);
    let keywords = params.as_object_mut().unwrap();
    if ["Forest", "Trees", "AdaBoost"].iter().any(|word| class.contains(word)) {
        keywords.insert("n_estimators".to_owned(), json!(7));
    }
    if class.contains("HistGradient") {
        keywords.insert("max_iter".to_owned(), json!(7));
    }
    params
}

/// The shape and the numbers of a result.
type Numbers = (Vec<u64>, Vec<f64>);

fn number(json: &Json) -> f64 {
    match json {
        Json::Bool(is_true) => f64::from(u8::from(*is_true)),
        Json::Object(object) => match object["f"].as_str().unwrap() {
            "nan" => f64::NAN,
            "inf" => f64::INFINITY,
            _ => f64::NEG_INFINITY,
        },
        number => number.as_f64().unwrap_or_else(|| panic!("{number} is no number")),
    }
}

/// The numbers of an array in a reply, of a sparse one too.
fn numbers(result: &Json) -> Numbers {
    fn flat(json: &Json, found: &mut Vec<f64>) {
        match json {
            Json::Array(parts) => parts.iter().for_each(|part| flat(part, found)),
            other => found.push(number(other)),
        }
    }
    let mut found = Vec::new();
    let Some(array) = result.get("arr") else {
        return (Vec::new(), vec![number(result)]);
    };
    flat(&array["lit"], &mut found);
    (array["shape"].as_array().unwrap().iter().map(|extent| extent.as_u64().unwrap()).collect(), found)
}

/// The methods of a class that are compared.
fn methods_of(class: &str) -> Vec<&'static str> {
    let (known, _) = members(class);
    METHODS.into_iter().filter(|method| known.contains(method)).collect()
}

/// Runs a function of each of several things, on a few threads, and collects the mistakes that it tells.
fn mistakes<T: Sync>(of: &[T], look: impl Fn(&T) -> Vec<String> + Sync) -> Vec<String> {
    let (next, wrong) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(thing) = of.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let found = look(thing);
                    wrong.lock().unwrap().extend(found);
                }
            });
        }
    });
    let mut wrong = wrong.into_inner().unwrap();
    wrong.sort();
    wrong
}

/// Whether two results are the same to a part of the largest number of the first.
fn are_near((shape, a): &Numbers, (other_shape, b): &Numbers, tolerance: f64) -> bool {
    let scale = a.iter().filter(|a| a.is_finite()).fold(0.0f64, |most, a| most.max(a.abs()));
    let near = |(a, b): (&f64, &f64)| {
        a == b || a.is_nan() && b.is_nan() || (a - b).abs() <= tolerance * scale.max(f64::MIN_POSITIVE)
    };
    shape == other_shape && a.len() == b.len() && a.iter().zip(b).all(near)
}

/// A program of two estimators of a class, of which the second one is fitted to other samples before.
#[test]
fn a_second_fit_makes_the_model_of_a_first_one() {
    let all = classes();
    let wrong = mistakes(&all, |class| {
        let (x, y) = (samples_of(class), target(class));
        let other = if class.ends_with("KernelCenterer") { x.clone() } else { json!({"$": "other"}) };
        let (other, other_y) =
            if is_of_labels(class) { (json!([7, 9, 9]), Json::Null) } else { (other, y.clone()) };
        let mut program = vec![
            json!(["other", "np.add", [x, 1]]),
            json!(["a", class, [], small(class)]),
            json!(["b", class, [], small(class)]),
            json!(["_", "sk.fit", [{"$": "a"}, x, y]]),
            json!(["_", "sk.fit", [{"$": "b"}, other, other_y]]),
            json!(["_", "sk.fit", [{"$": "b"}, x, y]]),
        ];
        let methods = methods_of(class);
        let mut out = Vec::new();
        for method in &methods {
            for model in ["a", "b"] {
                let name = format!("{method}_{model}");
                program.push(json!([name, format!("sk.{method}"), [{"$": model}, x]]));
                out.push(name);
            }
        }
        let found = reply(&json!({"in": inputs(), "prog": program, "out": out}));
        if found["ok"] != true {
            return vec![format!("{class}: {found}")];
        }
        let result = |method: &str, model: &str| &found["out"][format!("{method}_{model}")];
        let differ = methods.iter().filter(|method| result(method, "a") != result(method, "b"));
        differ.map(|method| format!("{class}.{method} differs")).collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Samples do not change what a model tells of those beside them.
#[test]
fn a_part_of_the_samples_is_told_what_all_are() {
    let all: Vec<&str> = classes().into_iter().filter(|class| !class.ends_with("KernelCenterer")).collect();
    let wrong = mistakes(&all, |class| {
        let x = samples_of(class);
        let rows = [7, 2, 11];
        let mut program = vec![
            json!(["m", class, [], small(class)]),
            json!(["_", "sk.fit", [{"$": "m"}, x, target(class)]]),
            json!(["part", "np.take", [x, rows], {"axis": 0}]),
        ];
        let methods = methods_of(class);
        let mut out = Vec::new();
        for method in &methods {
            for (of, of_what) in [("all", &x), ("part", &json!({"$": "part"}))] {
                let name = format!("{method}_{of}");
                program.push(json!([name, format!("sk.{method}"), [{"$": "m"}, of_what]]));
                out.push(name);
            }
        }
        let found = reply(&json!({"in": inputs(), "prog": program, "out": out}));
        if found["ok"] != true {
            return vec![format!("{class}: {found}")];
        }
        let mut wrong = Vec::new();
        for method in &methods {
            let [(shape, all), (part_shape, part)] =
                ["all", "part"].map(|of| numbers(&found["out"][format!("{method}_{of}")]));
            let width = all.len() / 12;
            let taken: Vec<f64> =
                rows.iter().flat_map(|&row| &all[row * width..(row + 1) * width]).copied().collect();
            let expected = ([&[3], &shape[1..]].concat(), taken);
            if !are_near(&expected, &(part_shape, part.clone()), 1e-9) {
                wrong.push(format!("{class}.{method}: {part:?}, not {:?}", expected.1));
            }
        }
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The results of all methods of a class, after a fit to some rows of the samples with weights.
fn weighted(class: &str, rows: &[usize], weights: &[f64], context: &Json) -> Result<Vec<Numbers>, String> {
    let mut program = vec![
        json!(["m", class, [], small(class)]),
        json!(["some", "np.take", [samples_of(class), rows], {"axis": 0}]),
        json!(["some_y", "np.take", [target(class), rows], {"axis": 0}]),
    ];
    let mut fit = vec![json!({"$": "m"}), json!({"$": "some"}), json!({"$": "some_y"})];
    if !weights.is_empty() {
        fit.push(json!(weights));
    }
    program.push(json!(["_", "sk.fit", fit]));
    let methods = methods_of(class);
    for method in &methods {
        program.push(json!([method, format!("sk.{method}"), [{"$": "m"}, samples_of(class)]]));
    }
    let found = reply(&json!({"ctx": context, "in": inputs(), "prog": program, "out": methods}));
    if found["ok"] == true {
        return Ok(methods.iter().map(|method| numbers(&found["out"][*method])).collect());
    }
    Err(format!("{}: {}", found["err"]["class"].as_str().unwrap(), found["err"]["msg"].as_str().unwrap()))
}

/// Models of draws, of folds and of orders of samples: others for other numbers of samples.
const OF_ORDERS: [&str; 14] = [
    "AdaBoostRegressor",
    "BaggingClassifier",
    "BaggingRegressor",
    "CV",
    "DummyClassifier",
    "ExtraTrees",
    "KMeans",
    "PassiveAggressive",
    "Perceptron",
    "RandomForest",
    "SGD",
    "Selector",
    "Stacking",
    "IsolationForest",
];

#[test]
fn samples_without_weight_are_as_if_they_were_not_there() {
    let all: Vec<&str> = classes()
        .into_iter()
        .filter(|class| !is_of_labels(class) && !class.ends_with("KernelCenterer"))
        .filter(|class| !OF_ORDERS.iter().any(|word| class.contains(word)))
        .collect();
    let seen = AtomicUsize::new(0);
    let wrong = mistakes(&all, |class| {
        let every: Vec<usize> = (0..12).collect();
        let left: Vec<usize> = every.iter().copied().filter(|row| ![3, 8].contains(row)).collect();
        let weight = |row: usize| if [3, 8].contains(&row) { 0.0 } else { 1.0 + (row % 3) as f64 };
        let of = |rows: &[usize]| rows.iter().map(|&row| weight(row)).collect::<Vec<f64>>();
        let whole = json!({});
        match (weighted(class, &every, &of(&every), &whole), weighted(class, &left, &of(&left), &whole)) {
            (Ok(all), Ok(part)) => {
                seen.fetch_add(1, Ordering::Relaxed);
                let is_same = all.iter().zip(&part).all(|(a, b)| are_near(a, b, 1e-5));
                if is_same { Vec::new() } else { vec![format!("{class}: {all:?}, not {part:?}")] }
            }
            (Err(error), Err(_)) if error.contains("sample_weight") || error.contains("sample weights") => {
                Vec::new()
            }
            (all, part) => vec![format!("{class}: {all:?}, {part:?}")],
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(20 < seen.into_inner());
}

#[test]
fn chunks_of_the_samples_change_roundings_alone() {
    let all: Vec<&str> = classes()
        .into_iter()
        .filter(|class| !is_of_labels(class) && !class.ends_with("KernelCenterer"))
        .collect();
    let wrong = mistakes(&all, |class| {
        let every: Vec<usize> = (0..12).collect();
        let whole = weighted(class, &every, &[], &json!({}));
        [1, 5]
            .into_iter()
            .filter_map(|rows| {
                let cut = weighted(class, &every, &[], &json!({"chunks": rows}));
                match (&whole, cut) {
                    (Ok(whole), Ok(cut)) if whole.iter().zip(&cut).all(|(a, b)| are_near(a, b, 1e-6)) => None,
                    (whole, cut) => Some(format!("{class} by {rows}: {cut:?}, not {whole:?}")),
                }
            })
            .collect()
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A program of a class and of samples with a row of NaN or of infinity: the reply to a fit of these, or to a
/// method of a model of sound ones.
fn of_bad(class: &str, is_nan: bool, method: Option<&str>) -> Json {
    let rows = if class.ends_with("KernelCenterer") { 4 } else { 12 };
    let zeros: Vec<Vec<f64>> = (0..rows).map(|row| vec![f64::from(u8::from(row != 2))]).collect();
    // Samples are positive: those of the row are 0 / 0 or 1 / 0 times as large.
    let above = if is_nan { json!({"$": "zeros"}) } else { json!(1.0) };
    let mut program = vec![
        json!(["factor", "np.divide", [above, {"$": "zeros"}]]),
        json!(["bad", "np.multiply", [samples_of(class), {"$": "factor"}]]),
        json!(["m", class, [], small(class)]),
    ];
    let fitted_to = if method.is_some() { samples_of(class) } else { json!({"$": "bad"}) };
    program.push(json!(["_", "sk.fit", [{"$": "m"}, fitted_to, target(class)]]));
    if let Some(method) = method {
        program.push(json!(["out", format!("sk.{method}"), [{"$": "m"}, {"$": "bad"}]]));
    }
    let mut inputs = inputs();
    inputs["zeros"] = json!({"lit": zeros});
    reply(&json!({"in": inputs, "prog": program, "out": if method.is_some() { vec!["out"] } else { vec![] }}))
}

/// Classes whose tag `allow_nan` is true in the source of scikit-learn 1.9.1, with its defaults. They refuse
/// infinity. `ColumnTransformer` and `FeatureUnion` have no such tag there, and look at no samples: their
/// members in this test take NaN.
const TAKE_NAN: [&str; 23] = [
    "BaggingClassifier",
    "BaggingRegressor",
    "ColumnTransformer",
    "DecisionTreeClassifier",
    "DecisionTreeRegressor",
    "ExtraTreesClassifier",
    "ExtraTreesRegressor",
    "FeatureUnion",
    "KNNImputer",
    "MaxAbsScaler",
    "MinMaxScaler",
    "MissingIndicator",
    "OneHotEncoder",
    "OrdinalEncoder",
    "PowerTransformer",
    "QuantileTransformer",
    "RandomForestClassifier",
    "RandomForestRegressor",
    "RobustScaler",
    "SimpleImputer",
    "StandardScaler",
    "TargetEncoder",
    "VarianceThreshold",
];
/// Classes that take NaN and infinity: `ensure_all_finite=False` in 1.9.1, and dummies look at nothing.
const TAKE_ALL: [&str; 5] = [
    "DummyClassifier",
    "DummyRegressor",
    "HistGradientBoostingClassifier",
    "HistGradientBoostingRegressor",
    "IsolationForest",
];
/// Classes whose fit reads nothing, and finds nothing to refuse: scikit-learn's looks at all samples.
const READ_NOTHING: [&str; 2] = ["Binarizer", "Normalizer"];
/// Classes to whose models NaN is a category, or a place of missing values, that was not there in the fit.
const KNOW_NO_NAN: [&str; 3] = ["MissingIndicator", "OneHotEncoder", "OrdinalEncoder"];

const ONLY_ONE: Option<&str> = Some(
    "This solver needs samples of at least 2 classes in the data, but the data contains only one class: ",
);
const NOT_GREATER: Option<&str> = Some("The number of classes has to be greater than one; got 1 class");

/// Classifiers, ascending, and how those refuse targets of one class that cannot tell it, in the source of
/// scikit-learn 1.9.1. There are three differences: its `LinearDiscriminantAnalysis` is fitted, and fails in
/// `predict_proba`; its `HistGradientBoostingClassifier` and `OneVsRestClassifier` have a second column of
/// probabilities, of no class.
const OF_ONE_CLASS: [(&str, Option<&str>); 31] = [
    ("AdaBoostClassifier", None),
    ("BaggingClassifier", None),
    ("BernoulliNB", None),
    ("CalibratedClassifierCV", ONLY_ONE),
    ("CategoricalNB", None),
    ("ComplementNB", None),
    ("DecisionTreeClassifier", None),
    ("DummyClassifier", None),
    ("ExtraTreesClassifier", None),
    ("GaussianNB", None),
    ("HistGradientBoostingClassifier", None),
    ("KNeighborsClassifier", None),
    ("LinearDiscriminantAnalysis", ONLY_ONE),
    ("LinearSVC", ONLY_ONE),
    ("LogisticRegression", ONLY_ONE),
    ("LogisticRegressionCV", ONLY_ONE),
    ("MultiOutputClassifier", None),
    ("MultinomialNB", None),
    ("NearestCentroid", NOT_GREATER),
    ("OneVsOneClassifier", Some("OneVsOneClassifier can not be fit when only one class is present.")),
    ("OneVsRestClassifier", None),
    ("PassiveAggressiveClassifier", NOT_GREATER),
    ("Perceptron", NOT_GREATER),
    ("QuadraticDiscriminantAnalysis", Some("The number of classes has to be greater than one. Got 1 class.")),
    ("RadiusNeighborsClassifier", None),
    ("RandomForestClassifier", None),
    ("RidgeClassifier", None),
    ("RidgeClassifierCV", None),
    ("SGDClassifier", NOT_GREATER),
    ("StackingClassifier", ONLY_ONE),
    ("VotingClassifier", None),
];

#[test]
fn one_class_is_told_and_refused_as_by_scikit_learn() {
    let is_classifier = |class: &&str| {
        let (methods, attributes) = members(class);
        methods.contains(&"predict") && attributes.contains(&"classes_")
    };
    let all: Vec<&str> = classes().into_iter().filter(is_classifier).collect();
    let bare = |class: &str| class.rsplit('.').next().unwrap().to_owned();
    let mut known: Vec<String> = all.iter().map(|class| bare(class)).collect();
    known.sort();
    assert_eq!(known, OF_ONE_CLASS.map(|(name, _)| name.to_owned()));
    let wrong = mistakes(&all, |class| {
        let name = &*bare(class);
        let (_, refusal) = OF_ONE_CLASS.into_iter().find(|(known, _)| *known == name).unwrap();
        let ones = if name == "MultiOutputClassifier" { json!(vec![[1, 1]; 12]) } else { json!(vec![1; 12]) };
        let mut program = vec![
            json!(["m", class, [], small(class)]),
            json!(["_", "sk.fit", [{"$": "m"}, samples_of(class), ones]]),
        ];
        let mut out = methods_of(class);
        out.retain(|method| refusal.is_none() && method.starts_with("predict"));
        for method in &out {
            program.push(json!([method, format!("sk.{method}"), [{"$": "m"}, samples_of(class)]]));
        }
        let found = reply(&json!({"in": inputs(), "prog": program, "out": out}));
        let told = found["err"]["msg"].as_str().unwrap_or_default();
        match refusal {
            Some(text) if found["err"]["class"] == "ValueError" && told.starts_with(text) => Vec::new(),
            None if found["ok"] == true => {
                let is_wrong = |method: &&&str| {
                    let (shape, told) = numbers(&found["out"][**method]);
                    let is_of_one = **method == "predict" || shape == [12u64, 1];
                    !(is_of_one && told.iter().all(|told| (told - 1.0).abs() < 1e-12))
                };
                out.iter().filter(is_wrong).map(|method| format!("{class}.{method}: {found}")).collect()
            }
            _ => vec![format!("{class}: {found}")],
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn samples_that_are_not_finite_are_taken_and_refused_as_by_scikit_learn() {
    let all: Vec<&str> = classes().into_iter().filter(|class| !is_of_labels(class)).collect();
    let bare = |class: &str| class.rsplit('.').next().unwrap().to_owned();
    let known: Vec<String> = all.iter().map(|class| bare(class)).collect();
    let listed = [&TAKE_NAN[..], &TAKE_ALL, &READ_NOTHING, &KNOW_NO_NAN].concat();
    let unknown: Vec<&&str> =
        listed.iter().filter(|name| !known.iter().any(|known| known == *name)).collect();
    assert!(unknown.is_empty(), "{unknown:?}");
    let wrong = mistakes(&all, |class| {
        let name = &*bare(class);
        let mut wrong = Vec::new();
        for is_nan in [true, false] {
            let takes = TAKE_ALL.contains(&name) || is_nan && TAKE_NAN.contains(&name);
            let found = of_bad(class, is_nan, None);
            let is_taken = takes || READ_NOTHING.contains(&name);
            if (found["ok"] == true) != is_taken || !is_taken && found["err"]["class"] != "ValueError" {
                wrong.push(format!("{class}, NaN {is_nan}, fit: {found}"));
            }
            for method in methods_of(class) {
                let found = of_bad(class, is_nan, Some(method));
                let is_new = is_nan && KNOW_NO_NAN.contains(&name);
                let is_taken = if name == "VarianceThreshold" { true } else { takes && !is_new };
                let text = match (is_new, is_nan) {
                    (true, _) => "",
                    (_, true) => "Input X contains NaN.",
                    (_, false) => "Input X contains infinity or a value too large for dtype('float64').",
                };
                let is_told = found["err"]["msg"].as_str().is_some_and(|told| told.starts_with(text));
                let is_refused = found["err"]["class"] == "ValueError" && is_told;
                if (found["ok"] == true) != is_taken || !is_taken && !is_refused {
                    wrong.push(format!("{class}, NaN {is_nan}, {method}: {found}"));
                }
            }
        }
        wrong
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
