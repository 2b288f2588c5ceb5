//! Tumours, told apart by trees: `cargo run --release -p tharsis-learn-examples --example trees`.
//!
//! Splits 569 samples of 30 features, grows a forest and boosted trees on one part, and scores both on the
//! other. Then both learn from 4 000 samples that are made. Options: see `examples/common/mod.rs`; what is
//! printed is the same everywhere.

// It talks to people.
#![allow(clippy::print_stdout)]

use common::{Options, Outcome};
use tharsis::learn::datasets::{load_breast_cancer, make_classification};
use tharsis::learn::ensemble::{HistGradientBoostingClassifier, RandomForestClassifier};
use tharsis::learn::model_selection::{TrainTestSplit, train_test_split};
use tharsis::tensor::Tensor;

#[tharsis::main]
fn main() -> Outcome<()> {
    let options = Options::parse(std::env::args().skip(1), 0)?;
    let place = options.start()?;

    let tumours = load_breast_cancer()?;
    let split = TrainTestSplit { stratify: Some(tumours.target.clone()), ..TrainTestSplit::default() };
    let [x, y] = train_test_split([&tumours.data, &tumours.target], split)?;
    let forest = RandomForestClassifier::new().fit(&x.train, &y.train, ..)?;
    let boosted = HistGradientBoostingClassifier::new().fit(&x.train, &y.train, ..)?;

    println!("forest on old samples   {:.12}", forest.score(&x.train, &y.train, ..)?);
    println!("forest on new samples   {:.12}", forest.score(&x.test, &y.test, ..)?);
    println!("boosting on old samples {:.12}", boosted.score(&x.train, &y.train, ..)?);
    println!("boosting on new samples {:.12}", boosted.score(&x.test, &y.test, ..)?);

    let made = make_classification(4_000, ..)?;
    let forest =
        RandomForestClassifier::new().n_estimators(5).oob_score(true).fit(&made.data, &made.target, ..)?;
    let boosted = HistGradientBoostingClassifier::new().max_iter(5).early_stopping(true);
    let boosted = boosted.fit(&made.data, &made.target, ..)?;
    println!("forest out of bag       {}", forest.oob_score().unwrap_or(f64::NAN));
    println!("chances by the forest   {}", sum(&forest.predict_proba(&made.data))?);
    println!("loss of left out ones   {}", boosted.validation_score.last().unwrap_or(&f64::NAN).abs());
    println!("boosted scores          {}", sum(&boosted.decision_function(&made.data))?);
    drop(place);
    Ok(())
}

/// The sum of numbers, each weighed by its place: another one for any other number.
fn sum(numbers: &Tensor) -> Outcome<f64> {
    Ok(numbers.to_vec::<f64>()?.iter().zip(1..).map(|(number, place)| number / f64::from(place)).sum())
}
