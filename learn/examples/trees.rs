//! Tumours, told apart by trees: `cargo run --release -p tharsis-learn-examples --example trees`.
//!
//! Splits 569 samples of 30 features, grows a forest and boosted trees on one part, and scores both on the
//! other. Options: see `examples/common/mod.rs`; what is printed is the same everywhere.

// It talks to people.
#![allow(clippy::print_stdout)]

use common::{Options, Outcome};
use tharsis::learn::datasets::load_breast_cancer;
use tharsis::learn::ensemble::{HistGradientBoostingClassifier, RandomForestClassifier};
use tharsis::learn::model_selection::{TrainTestSplit, train_test_split};

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
    drop(place);
    Ok(())
}
