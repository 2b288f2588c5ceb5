//! Trees against a search of all thresholds of all features, which knows nothing of bins and passes.

use tharsis_learn::tree::{DecisionTreeClassifier, DecisionTreeRegressor};
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{DType, Tensor};

/// The sum of squared distances to the mean.
fn squares(y: &[f64]) -> f64 {
    let mean = y.iter().sum::<f64>() / y.len() as f64;
    y.iter().map(|y| (y - mean) * (y - mean)).sum()
}

/// The predictions for some rows, of the tree of other rows that is best at each step.
fn best_tree(x: &[Vec<f64>], y: &[f64], depth: usize, new: &[Vec<f64>]) -> Vec<f64> {
    let mean = y.iter().sum::<f64>() / y.len() as f64;
    let mut best: Option<(f64, usize, f64)> = None;
    for feature in 0..x[0].len() {
        let mut values: Vec<f64> = x.iter().map(|row| row[feature]).collect();
        values.sort_by(f64::total_cmp);
        values.dedup();
        for pair in values.windows(2) {
            let threshold = pair[0] / 2.0 + pair[1] / 2.0;
            let side = |is_left: bool| -> Vec<f64> {
                let rows = x.iter().zip(y).filter(|(row, _)| (row[feature] <= threshold) == is_left);
                rows.map(|(_, &y)| y).collect()
            };
            let left = squares(&side(true)) + squares(&side(false));
            if best.is_none_or(|(least, ..)| left < least - 1e-9) {
                best = Some((left, feature, threshold));
            }
        }
    }
    let Some((_, feature, threshold)) = best.filter(|_| 0 < depth && 1e-9 < squares(y)) else {
        return vec![mean; new.len()];
    };
    let side = |is_left: bool| -> Vec<f64> {
        let chosen: Vec<usize> =
            (0..x.len()).filter(|&row| (x[row][feature] <= threshold) == is_left).collect();
        let of_x: Vec<Vec<f64>> = chosen.iter().map(|&row| x[row].clone()).collect();
        let of_y: Vec<f64> = chosen.iter().map(|&row| y[row]).collect();
        best_tree(&of_x, &of_y, depth - 1, new)
    };
    let (left, right) = (side(true), side(false));
    new.iter()
        .enumerate()
        .map(|(at, row)| if row[feature] <= threshold { left[at] } else { right[at] })
        .collect()
}

fn rows(x: &Tensor) -> Vec<Vec<f64>> {
    x.astype(DType::F64)
        .fetch::<f64>()
        .unwrap()
        .outer_iter()
        .map(|row| row.iter().copied().collect())
        .collect()
}

#[test]
fn a_tree_of_few_values_is_the_best_of_all() {
    for seed in 0..12 {
        let generator = default_rng(seed);
        let (count, depth) = (30 + 20 * seed as usize, 1 + seed as usize % 5);
        let x = generator.integers(0, 9, &[count, 3]);
        let y = generator.normal(0.0, 1.0, &[count]) + x.get(&[(..).into(), 1i64.into()]);
        let new = generator.integers(-1, 10, &[100, 3]);
        let model = DecisionTreeRegressor::new().max_depth(depth).fit(&x, &y, ..).unwrap();
        let expected = best_tree(&rows(&x), &y.to_vec::<f64>().unwrap(), depth, &rows(&new));
        let found = model.predict(&new).to_vec::<f64>().unwrap();
        let far = expected.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(far < 1e-9, "seed {seed}: {far}");
    }
}

/// With two classes Gini's impurity is twice the squared error of their numbers.
#[test]
fn a_tree_of_classes_is_the_best_of_all() {
    for seed in 0..8 {
        let generator = default_rng(100 + seed);
        let x = generator.integers(0, 12, &[90, 2]);
        let y = generator.random(&[90]).less(x.get(&[(..).into(), 0i64.into()]) / 12.0);
        let depth = 1 + seed as usize % 3;
        let model = DecisionTreeClassifier::new().max_depth(depth).fit(&x, &y, ..).unwrap();
        let numbers = y.astype(DType::F64).to_vec::<f64>().unwrap();
        let expected = best_tree(&rows(&x), &numbers, depth, &rows(&x));
        let found = model.predict_proba(&x).get(&[(..).into(), 1i64.into()]).to_vec::<f64>().unwrap();
        let far = expected.iter().zip(&found).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        assert!(far < 1e-9, "seed {seed}: {far}");
    }
}
