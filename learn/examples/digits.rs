//! Handwritten digits, told apart: `cargo run --release -p tharsis-learn-examples --example digits`.
//!
//! Splits 1 797 images of 8 x 8 blocks, scales them, fits a logistic regression, and counts which digits it
//! takes for which, as a table and as a picture (`--picture FILE`, SVG). Options: see
//! `examples/common/mod.rs`; what is printed is the same everywhere.

// It talks to people.
#![allow(clippy::print_stdout)]

mod picture;

use common::{Options, Outcome};
use tharsis::learn::datasets::load_digits;
use tharsis::learn::linear_model::LogisticRegression;
use tharsis::learn::metrics::{classification_report, confusion_matrix};
use tharsis::learn::model_selection::{TrainTestSplit, train_test_split};
use tharsis::learn::pipeline::Pipeline;
use tharsis::learn::preprocessing::StandardScaler;

#[tharsis::main]
fn main() -> Outcome<()> {
    let (picture, args) = without_picture(std::env::args().skip(1));
    let options = Options::parse(args, 0)?;
    let place = options.start()?;

    let digits = load_digits()?;
    let split = TrainTestSplit { stratify: Some(digits.target.clone()), ..TrainTestSplit::default() };
    let [x, y] = train_test_split([&digits.data, &digits.target], split)?;
    let pipeline =
        Pipeline::new().step("scale", StandardScaler::new()).last("classify", LogisticRegression::new());
    let model = pipeline.fit(&x.train, &y.train, ..)?;
    let found = model.predict(&x.test);
    let matrix = confusion_matrix(&y.test, &found, ..)?.to_vec::<i64>()?;

    println!("{} images to learn from, {} to be told", x.train.shape()?[0], x.test.shape()?[0]);
    println!(
        "{} steps, {}",
        model.last().n_iter,
        if model.last().converged { "converged" } else { "not converged" }
    );
    println!("\n{}", classification_report(&y.test, &found, ..)?);
    println!("true digit (row), digit that was told (column)");
    for row in matrix.chunks(10) {
        println!("{}", row.iter().map(|count| format!("{count:>4}")).collect::<String>());
    }
    println!("\nscore on new images  {:.12}", model.score(&x.test, &y.test, ..)?);
    println!("score on old images  {:.12}", model.score(&x.train, &y.train, ..)?);
    if let Some(path) = picture {
        std::fs::write(&path, picture::of_matrix(&matrix, &digits.target_names))?;
        println!("picture              {path}");
    }
    drop(place);
    Ok(())
}

/// The file of the picture, and the arguments that are left.
fn without_picture(args: impl Iterator<Item = String>) -> (Option<String>, Vec<String>) {
    let (mut path, mut left) = (None, Vec::new());
    let mut args = args;
    while let Some(arg) = args.next() {
        if arg == "--picture" {
            path = args.next();
        } else {
            left.push(arg);
        }
    }
    (path, left)
}
