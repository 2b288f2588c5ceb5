//! The real data sets against sums of scikit-learn's, and what holds for made ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use tharsis_learn::datasets::*;
use tharsis_numeric::{Axes, Chunks, Index, LocalExecutor, Tensor, array};

fn one(x: &Tensor) -> f64 {
    x.item().unwrap().to_f64()
}

fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() <= 1e-12 * expected.abs().max(1.0), "{found}, expected {expected}");
}

/// Sums of elements, of squares, and of the second feature times the target, as scikit-learn 1.9.1 has them.
#[test]
fn real_data_are_scikit_learns() {
    let sets = [
        (load_iris(), [2078.7, 9539.29, 435.9], "petal width (cm)", 150.0),
        (load_wine(), [159_975.295_999, 118_768_104.780_316_19, 457.26], "proline", 167.0),
        (
            load_breast_cancer(),
            [1_056_474.459_635_6, 955_069_324.085_005, 6395.57],
            "worst fractal dimension",
            357.0,
        ),
        (load_digits(), [561_718.0, 6_907_012.0, 2210.0], "pixel_7_7", 8070.0),
        (load_diabetes(), [0.0, 10.0, 69.715_355_678_415_56], "s6", 67_243.0),
    ];
    for (set, sums, last, target) in sets {
        let set = set.unwrap();
        let second = set.data.get(&[Index::from(..), Index::At(1)]);
        close(one(&set.data.sum(..)), sums[0]);
        close(one(&set.data.square().sum(..)), sums[1]);
        close(one(&second.multiply(&set.target).sum(..)), sums[2]);
        close(one(&set.target.sum(..)), target);
        assert_eq!(set.feature_names.last().map(String::as_str), Some(last));
        assert_eq!(set.feature_names.len(), set.data.shape().unwrap()[1]);
        let classes = one(&set.target.max(..)) as usize + 1;
        assert!(set.target_names.is_empty() || set.target_names.len() == classes);
    }
    let row = load_diabetes().unwrap().data.get(&[Index::At(17), Index::from(..2)]);
    let row = row.to_vec::<f64>().unwrap();
    close(row[0], 0.070_768_752_492_597_8);
    close(row[1], 0.050_680_118_739_818_62);
}

/// The same values for any chunks and threads, and other ones for another seed.
fn same_in_any_chunks(of: impl Fn(u64) -> Tensor) {
    let x = of(1);
    let whole = x.to_vec::<f64>().unwrap();
    let shape = x.shape().unwrap().to_vec();
    let cut = of(1).rechunk(Chunks::PerAxis([&[7], &shape[1..]].concat()));
    let on_one = cut.fetch_on::<f64>(&LocalExecutor::sized(1, 1 << 28)).unwrap();
    assert_eq!(whole, on_one.into_raw_vec_and_offset().0);
    assert_eq!(whole, of(1).to_vec::<f64>().unwrap());
    assert_ne!(whole, of(2).to_vec::<f64>().unwrap());
    let rows = of(1).get(&[Index::from(3..5)]).to_vec::<f64>().unwrap();
    let width = whole.len() / shape[0];
    assert_eq!(rows, whole[3 * width..5 * width]);
}

#[test]
fn made_data_depend_on_the_seed_and_the_position_alone() {
    same_in_any_chunks(|random_state| {
        make_blobs(40, BlobsOptions { random_state, ..BlobsOptions::default() }).unwrap().data
    });
    same_in_any_chunks(|random_state| {
        make_classification(40, Classification { random_state, ..Classification::default() }).unwrap().data
    });
    same_in_any_chunks(|random_state| {
        make_regression(40, Regression { random_state, noise: 1.0, ..Regression::default() }).unwrap().data
    });
    same_in_any_chunks(|random_state| {
        make_moons(40, Moons { random_state, ..Moons::default() }).unwrap().data
    });
    same_in_any_chunks(|random_state| {
        make_circles(40, Circles { random_state, noise: 0.1, ..Circles::default() }).unwrap().data
    });
    same_in_any_chunks(|random_state| make_s_curve(40, Curve { random_state, noise: 0.1 }).unwrap().data);
    same_in_any_chunks(|random_state| make_swiss_roll(40, Curve { random_state, noise: 0.0 }).unwrap().data);
}

#[test]
fn blobs_are_around_their_centres() {
    let centers = Centers::Points(array([-100.0, 0.0, 100.0, 5.0]).reshape(&[2, 2]));
    let options = BlobsOptions { centers, cluster_std: vec![0.5, 2.0], ..BlobsOptions::default() };
    let blobs = make_blobs(4001, options).unwrap();
    assert_eq!(blobs.target.bincount(None, 2).to_vec::<i64>().unwrap(), [2001, 2000]);
    for (cluster, center, deviation) in [(0, [-100.0, 0.0], 0.5), (1, [100.0, 5.0], 2.0)] {
        let own = blobs.data.filter(&blobs.target.equal(cluster));
        let (mean, spread) = (own.mean(0).to_vec::<f64>().unwrap(), own.std(0).to_vec::<f64>().unwrap());
        for axis in 0..2 {
            assert!((mean[axis] - center[axis]).abs() < 0.2, "{mean:?}");
            assert!((spread[axis] - deviation).abs() < 0.1 * deviation, "{spread:?}");
        }
    }
    let in_order = BlobsOptions { shuffle: false, ..BlobsOptions::default() };
    assert_eq!(make_blobs(4, in_order).unwrap().target.to_vec::<i64>().unwrap(), [0, 0, 1, 2]);
    let unequal = BlobsOptions { cluster_std: vec![1.0, 2.0], ..BlobsOptions::default() };
    assert_eq!(make_blobs(4, unequal).unwrap_err().class(), "ValueError");
}

#[test]
fn features_of_made_classes_are_as_many_and_as_dependent_as_said() {
    let options = Classification {
        n_features: 9,
        n_informative: 3,
        n_redundant: 2,
        n_repeated: 1,
        n_classes: 3,
        weights: Some(vec![0.5, 0.25, 0.25]),
        flip_y: 0.0,
        class_sep: 4.0,
        ..Classification::default()
    };
    let made = make_classification(800, options.clone()).unwrap();
    assert_eq!(made.target.bincount(None, 3).to_vec::<i64>().unwrap(), [400, 200, 200]);
    // Three informative features and three of noise are independent; the others depend on them.
    assert_eq!(one(&made.data.matrix_rank(None, None)), 6.0);
    let in_order = make_classification(800, Classification { shuffle: false, ..options.clone() }).unwrap();
    let useful = in_order.data.get(&[Index::from(..), Index::from(..6)]);
    assert_eq!(one(&useful.matrix_rank(None, None)), 3.0);
    // Without combinations clusters are at corners: (+-4, +-4, ..).
    let informative = in_order.data.get(&[Index::from(..100), Index::from(..3)]);
    let center = informative.mean(0).to_vec::<f64>().unwrap();
    assert!(center.iter().all(|&at| (at.abs() - 4.0).abs() < 0.8), "{center:?}");
    let all_flipped = Classification { flip_y: 1.0, ..options.clone() };
    assert_ne!(
        make_classification(800, all_flipped).unwrap().target.to_vec::<i64>().unwrap(),
        made.target.to_vec::<i64>().unwrap()
    );
    let many = Classification { n_informative: 23, n_features: 40, ..Classification::default() };
    assert_eq!(make_classification(10, many).unwrap().data.fetch::<f64>().unwrap().shape(), [10, 40]);
    for refused in [
        Classification { n_classes: 9, ..options.clone() },
        Classification { n_features: 4, ..options.clone() },
        Classification { weights: Some(vec![0.5]), ..options.clone() },
        Classification { flip_y: 1.5, ..options },
    ] {
        assert_eq!(make_classification(10, refused).unwrap_err().class(), "ValueError");
    }
}

#[test]
fn targets_of_made_regressions_are_linear_with_noise() {
    let options = Regression {
        n_features: 5,
        n_informative: 3,
        n_targets: 2,
        bias: 7.0,
        noise: 2.0,
        ..Regression::default()
    };
    let made = make_regression(3000, options.clone()).unwrap();
    assert_eq!(made.coef.shape().unwrap(), [5, 2]);
    assert_eq!(one(&made.coef.any(1).count_nonzero(..)), 3.0);
    let noise = made.target.subtract(made.data.matmul(&made.coef)).subtract(7.0);
    assert!((one(&noise.std(..)) - 2.0).abs() < 0.1);
    assert!(one(&noise.mean(..)).abs() < 0.1);
    let low = make_regression(60, Regression { effective_rank: Some(2), ..options }).unwrap();
    assert!(one(&low.data.square().sum(..)) < 5.0);
}

#[test]
fn singular_values_of_a_low_rank_matrix_are_a_bell_and_a_tail() {
    let options = LowRank { effective_rank: 3, tail_strength: 0.2, random_state: 4 };
    let found = make_low_rank_matrix(30, 8, options).unwrap().singular_values().to_vec::<f64>().unwrap();
    for (at, value) in found.iter().enumerate() {
        let place = at as f64 / 3.0;
        close(*value, 0.8 * (-place * place).exp() + 0.2 * (-0.1 * place).exp());
    }
    let refused = LowRank { tail_strength: 1.5, ..LowRank::default() };
    assert_eq!(make_low_rank_matrix(3, 3, refused).unwrap_err().class(), "ValueError");
}

#[test]
fn moons_and_circles_are_on_their_curves() {
    let moons = make_moons(101, ..).unwrap();
    let first = moons.data.filter(&moons.target.equal(0));
    let second = moons.data.filter(&moons.target.equal(1)).subtract(array([1.0, 0.5]));
    for (half, sign) in [(first, 1.0), (second, -1.0)] {
        assert!((one(&half.square().sum(Axes::from(1)).subtract(1.0).abs().max(..))) < 1e-12);
        assert!(-1e-12 < one(&half.get(&[Index::from(..), Index::At(1)]).multiply(sign).min(..)));
    }
    assert_eq!(moons.target.bincount(None, 2).to_vec::<i64>().unwrap(), [50, 51]);
    let circles = make_circles(80, Circles { factor: 0.25, ..Circles::default() }).unwrap();
    let radius = circles.data.square().sum(1).sqrt();
    let inner = circles.target.equal(1);
    assert!(radius.filter(&inner).allclose(0.25, 1e-12, 0.0, false).item().unwrap().is_true());
    assert!(radius.filter(&inner.logical_not()).allclose(1.0, 1e-12, 0.0, false).item().unwrap().is_true());
    assert!(make_circles(8, Circles { factor: 1.0, ..Circles::default() }).is_err());
    assert!(make_moons(8, Moons { noise: -1.0, ..Moons::default() }).is_err());
}
