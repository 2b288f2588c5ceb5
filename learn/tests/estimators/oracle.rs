//! Answers of scikit-learn that the programs `oracle/record*.py` have recorded, and the comparison with them.

use ndarray::{ArrayD, IxDyn};
use serde_json::Value;
use std::sync::OnceLock;
use tharsis_learn::{FitOptions, Params, Result, Setting};
use tharsis_numeric::{Chunks, Tensor};
use tharsis_trials::{is_long, part};

/// Files beside the first one.
const FURTHER: [&str; 5] =
    ["clusters.json", "decompositions.json", "ensembles.json", "linear.json", "neighbors.json"];

/// All that was recorded.
pub struct Answers(Value);

/// One fit.
pub struct Case<'a> {
    answers: &'a Answers,
    facts: &'a Value,
}

impl Answers {
    /// Those of all files, which are parsed once for all tests.
    pub fn read() -> &'static Answers {
        static ALL: OnceLock<Answers> = OnceLock::new();
        ALL.get_or_init(|| {
            let mut all = file("answers.json");
            for name in FURTHER {
                let mut further = file(name);
                assert_eq!(all["version"], further["version"]);
                all["cases"].as_array_mut().unwrap().append(further["cases"].as_array_mut().unwrap());
                all["data"].as_object_mut().unwrap().append(further["data"].as_object_mut().unwrap());
            }
            Answers(all)
        })
    }

    /// Those of one file, which is not among the others.
    pub fn alone(name: &str) -> Answers {
        Answers(file(name))
    }

    /// The fits of an estimator.
    pub fn of(&self, estimator: &str) -> Vec<Case<'_>> {
        let cases = self.0["cases"].as_array().unwrap().iter();
        let cases: Vec<Case<'_>> = cases
            .filter(|facts| facts["estimator"] == *estimator)
            .map(|facts| Case { answers: self, facts })
            .collect();
        assert!(!cases.is_empty(), "nothing is recorded of {estimator}");
        cases
    }

    /// A part of a data set: `x`, `y` or `w`.
    pub fn data(&self, set: &str, part: &str) -> ArrayD<f64> {
        array(&self.0["data"][set][part])
    }
}

impl Case<'_> {
    pub fn x(&self) -> ArrayD<f64> {
        self.answers.data(self.set(), "x")
    }

    pub fn y(&self) -> Tensor {
        Tensor::from_array(&self.answers.data(self.set(), "y"))
    }

    /// The labels, as integers.
    pub fn labels(&self) -> Tensor {
        Tensor::from_array(&self.answers.data(self.set(), "y").mapv(|label| label as i64))
    }

    pub fn set(&self) -> &str {
        self.facts["data"].as_str().unwrap()
    }

    pub fn options(&self) -> FitOptions {
        if self.facts["weights"] == true {
            FitOptions::new().sample_weight(&Tensor::from_array(&self.answers.data(self.set(), "w")))
        } else {
            FitOptions::new()
        }
    }

    /// The weights of the samples, if the case has any.
    pub fn weights(&self) -> Option<Tensor> {
        (self.facts["weights"] == true).then(|| Tensor::from_array(&self.answers.data(self.set(), "w")))
    }

    /// The methods whose results are recorded.
    pub fn recorded(&self) -> Vec<&str> {
        self.facts["methods"].as_object().unwrap().keys().map(String::as_str).collect()
    }

    /// All parameters, by name.
    pub fn params(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.facts["params"].as_object().unwrap().iter().map(|(name, value)| (name.as_str(), value))
    }

    /// An estimator with the parameters of the case, but arrays.
    pub fn configured<E: Params>(&self, mut estimator: E) -> E {
        for (name, value) in self.params().filter(|(_, value)| !value.is_object()) {
            let setting = match value {
                Value::Null => Setting::None,
                Value::Bool(is_true) => (*is_true).into(),
                Value::String(text) => text.as_str().into(),
                Value::Array(_) => self.numbers(name).unwrap().into(),
                number if number.is_i64() => number.as_i64().unwrap().into(),
                number => number.as_f64().unwrap().into(),
            };
            estimator.set(name, &setting).unwrap();
        }
        estimator
    }

    pub fn number(&self, parameter: &str) -> Option<f64> {
        self.facts["params"][parameter].as_f64()
    }

    pub fn is(&self, parameter: &str) -> Option<bool> {
        self.facts["params"][parameter].as_bool()
    }

    pub fn text(&self, parameter: &str) -> Option<&str> {
        self.facts["params"][parameter].as_str()
    }

    pub fn numbers(&self, parameter: &str) -> Option<Vec<f64>> {
        let values = self.facts["params"][parameter].as_array()?;
        Some(values.iter().map(|value| value.as_f64().unwrap()).collect())
    }

    pub fn array(&self, parameter: &str) -> Option<ArrayD<f64>> {
        let value = &self.facts["params"][parameter];
        value.is_object().then(|| array(value))
    }

    /// Whether the attribute is the recorded one within a tolerance, relative and absolute.
    pub fn attribute(&self, name: &str, found: impl Into<ArrayD<f64>>, tolerance: f64) {
        self.same(name, &array(&self.facts["attributes"][name]), &found.into(), tolerance);
    }

    /// Whether the attribute is the recorded one, up to a part of its largest number.
    pub fn relative(&self, name: &str, found: impl Into<ArrayD<f64>>, tolerance: f64) {
        let expected = array(&self.facts["attributes"][name]);
        let largest = expected.iter().fold(f64::MIN_POSITIVE, |largest: f64, part| largest.max(part.abs()));
        self.same(name, &(expected / largest), &(found.into() / largest), 0.5 * tolerance);
    }

    /// Whether the first rows of a result are the recorded ones.
    pub fn method(&self, name: &str, found: &Tensor, tolerance: f64) {
        let expected = array(&self.facts["methods"][name]);
        let found = found.astype(tharsis_numeric::DType::F64).fetch::<f64>().unwrap();
        let rows = expected.shape()[0];
        let first = found.slice_axis(ndarray::Axis(0), ndarray::Slice::from(..rows)).to_owned();
        self.same(name, &expected, &first, tolerance);
    }

    /// The first rows of a result, as they were recorded.
    pub fn result(&self, name: &str) -> ArrayD<f64> {
        array(&self.facts["methods"][name])
    }

    /// As [`Case::method`], of absolute values: for columns that have no sign.
    pub fn lengths(&self, name: &str, found: &Tensor, tolerance: f64) {
        let expected = array(&self.facts["methods"][name]).mapv(f64::abs);
        let found = found.fetch::<f64>().unwrap().mapv(f64::abs);
        let first =
            found.slice_axis(ndarray::Axis(0), ndarray::Slice::from(..expected.shape()[0])).to_owned();
        self.same(name, &expected, &first, tolerance);
    }

    pub fn score(&self, found: f64, tolerance: f64) {
        let expected = array(&self.facts["methods"]["score"]);
        self.same("score", &expected, &ndarray::arr0(found).into_dyn(), tolerance);
    }

    fn same(&self, name: &str, expected: &ArrayD<f64>, found: &ArrayD<f64>, tolerance: f64) {
        let case = format!(
            "{} of {}, weights {}, {}",
            name,
            self.set(),
            self.facts["weights"],
            self.facts["params"]
        );
        assert_eq!(expected.shape(), found.shape(), "{case}");
        for (at, (&expected, &found)) in expected.iter().zip(found).enumerate() {
            let near = (expected - found).abs() <= tolerance * (1.0 + expected.abs());
            assert!(near || expected.is_nan() && found.is_nan(), "{case}: [{at}] {found}, not {expected}");
        }
    }
}

/// The answers of a file.
fn file(name: &str) -> Value {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR");
    let path = std::path::Path::new(&folder).join("tests/oracle").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// An array as it was recorded.
fn array(value: &Value) -> ArrayD<f64> {
    let shape: Vec<usize> =
        value["shape"].as_array().expect("an array").iter().map(|n| n.as_u64().unwrap() as usize).collect();
    let values = value["values"].as_array().unwrap().iter().map(|v| v.as_f64().unwrap_or(f64::NAN));
    ArrayD::from_shape_vec(IxDyn(&shape), values.collect()).unwrap()
}

/// Names of ways to cut rows into chunks.
pub const CUTS: [&str; 4] = ["whole", "even", "ragged", "rows"];

/// The samples, cut in this way.
pub fn cut(x: &ArrayD<f64>, cut: &str) -> Tensor {
    let (rows, columns) = (x.shape()[0], x.shape()[1]);
    let tensor = Tensor::from_array(x);
    match cut {
        "even" => tensor.rechunk(Chunks::PerAxis(vec![7, columns])),
        "ragged" if 20 < rows => {
            tensor.rechunk(Chunks::Lengths(vec![vec![1, 17, rows - 20, 2], vec![columns]]))
        }
        "rows" => tensor.rechunk(Chunks::PerAxis(vec![1, columns.div_ceil(2)])),
        _ => tensor,
    }
}

/// Ways to cut the samples of the fit of this number among so many: one of them in turn, and the next one for
/// the next commit. In a long run each fit has all of them. So it is where there are fewer fits than ways:
/// any run cuts the samples of each estimator in all ways.
pub fn ways(fit: usize, fits: usize) -> Vec<&'static str> {
    let has_all = is_long() || fits < CUTS.len();
    let turn = (fit + part(CUTS.len() as u64) as usize) % CUTS.len();
    CUTS.into_iter().enumerate().filter(|(at, _)| has_all || *at == turn).map(|(_, way)| way).collect()
}

/// Runs a check on each recorded fit of an estimator, for [`ways`] to cut its samples.
pub fn each(estimator: &str, check: impl Fn(&Case<'_>, &Tensor)) {
    let cases = Answers::read().of(estimator);
    for (at, case) in cases.iter().enumerate() {
        for way in ways(at, cases.len()) {
            check(case, &cut(&case.x(), way));
        }
    }
}

#[test]
fn any_run_cuts_samples_in_all_ways() {
    for fits in 1..=2 * CUTS.len() {
        let had: Vec<Vec<&str>> = (0..fits).map(|fit| ways(fit, fits)).collect();
        assert!(CUTS.iter().all(|way| had.iter().flatten().any(|had| had == way)), "{had:?}");
        let count = if is_long() || fits < CUTS.len() { CUTS.len() } else { 1 };
        assert!(had.iter().all(|ways| ways.len() == count), "{had:?}");
    }
}

/// Whether something is refused by an error of this class, whose text begins like this.
pub fn assert_refused<T>(made: Result<T>, class: &str, start: &str) {
    let error = made.err().unwrap_or_else(|| panic!("not refused: {start}"));
    assert_eq!(error.class(), class, "{error}");
    assert!(error.to_string().starts_with(start), "{error}");
}
