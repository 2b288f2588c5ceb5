//! Splits against those of scikit-learn that `oracle/record_splits.py` recorded, and what holds for random
//! ones.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

use serde_json::Value;
use tharsis_learn::Result;
use tharsis_learn::model_selection::*;
use tharsis_numeric::{Chunks, Tensor, arange, zeros};

fn positions(value: &Value) -> Vec<i64> {
    value.as_array().unwrap().iter().map(|position| position.as_i64().unwrap()).collect()
}

/// The splits of a case, or the error.
fn splits(name: &str, parameters: &Value, rows: &Value, chunk: usize) -> Result<Vec<Split>> {
    let size = |name: &str| parameters.get(name).map(|value| value.as_u64().unwrap() as usize);
    let n_splits = size("n_splits").unwrap_or(5);
    let x = match rows {
        Value::Array(labels) => {
            let labels: Vec<i64> = labels.iter().map(|label| label.as_i64().unwrap()).collect();
            Tensor::from_elements(&[labels.len()], &labels).rechunk(Chunks::Each(chunk))
        }
        count => zeros(&[count.as_u64().unwrap() as usize, 2]),
    };
    Ok(match name {
        "KFold" => KFold { n_splits, ..KFold::default() }.split(&x)?.collect(),
        "LeaveOneOut" => LeaveOneOut.split(&x)?.collect(),
        "TimeSeriesSplit" => {
            let (max_train_size, test_size) = (size("max_train_size"), size("test_size"));
            let gap = size("gap").unwrap_or(0);
            TimeSeriesSplit { n_splits, max_train_size, test_size, gap }.split(&x)?.collect()
        }
        "StratifiedKFold" => StratifiedKFold { n_splits, ..StratifiedKFold::default() }.split(&x)?.collect(),
        "GroupKFold" => GroupKFold { n_splits }.split(&x)?.collect(),
        other => panic!("{other}"),
    })
}

#[test]
fn splits_without_random_numbers_are_scikit_learns() {
    let record: Value = serde_json::from_str(include_str!("oracle/splits.json")).unwrap();
    for case in record["cases"].as_array().unwrap() {
        for chunk in [1, 4, 100] {
            let found = splits(case[0].as_str().unwrap(), &case[1], &case[2], chunk);
            let Value::Array(expected) = &case[3] else {
                assert_eq!(found.err().map(|error| error.class()), Some("ValueError"), "{case}");
                continue;
            };
            let found = found.unwrap_or_else(|error| panic!("{case}: {error}"));
            assert_eq!(found.len(), expected.len(), "{case}");
            for (split, expected) in found.iter().zip(expected) {
                assert_eq!(split.train.indices().to_vec::<i64>().unwrap(), positions(&expected[0]), "{case}");
                assert_eq!(split.test.indices().to_vec::<i64>().unwrap(), positions(&expected[1]), "{case}");
            }
        }
    }
}

/// All rows of both sets, sorted.
fn together(split: &Split) -> Vec<i64> {
    let mut rows = split.train.indices().to_vec::<i64>().unwrap();
    rows.extend(split.test.indices().to_vec::<i64>().unwrap());
    rows.sort_unstable();
    rows
}

#[test]
fn shuffled_folds_have_each_row_once_and_depend_on_the_seed_alone() {
    let all: Vec<i64> = (0..23).collect();
    let folds = |random_state| KFold { n_splits: 4, shuffle: true, random_state };
    let tests = |random_state: u64| -> Vec<Vec<i64>> {
        let splits: Vec<Split> = folds(random_state).split(&zeros(&[23])).unwrap().collect();
        assert!(splits.iter().all(|split| together(split) == all));
        splits.iter().map(|split| split.test.indices().to_vec().unwrap()).collect()
    };
    let first = tests(1);
    assert_eq!(first.iter().map(Vec::len).collect::<Vec<_>>(), [6, 6, 6, 5]);
    let mut once = first.concat();
    once.sort_unstable();
    assert_eq!(once, all);
    assert_eq!(first, tests(1));
    assert_ne!(first, tests(2));
    let cut = zeros(&[23]).rechunk(Chunks::Each(2));
    let of_cut: Vec<Vec<i64>> =
        folds(1).split(&cut).unwrap().map(|split| split.test.of(&arange(23)).to_vec().unwrap()).collect();
    assert_eq!(of_cut, first);
}

#[test]
fn shuffled_strata_keep_the_shares_of_classes() {
    let y = arange(60) % 3;
    let folds = StratifiedKFold { n_splits: 4, shuffle: true, random_state: 5 };
    let plain = StratifiedKFold { n_splits: 4, ..StratifiedKFold::default() };
    let mut is_other = false;
    for (split, plain) in folds.split(&y).unwrap().zip(plain.split(&y).unwrap()) {
        assert_eq!(split.test.of(&y).bincount(None, 3).to_vec::<i64>().unwrap(), [5, 5, 5]);
        assert_eq!(together(&split), (0..60).collect::<Vec<i64>>());
        is_other |=
            split.test.indices().to_vec::<i64>().unwrap() != plain.test.indices().to_vec::<i64>().unwrap();
    }
    assert!(is_other);
}

#[test]
fn each_random_split_is_drawn_anew() {
    let splits = ShuffleSplit {
        n_splits: 3,
        test_size: Some(Share::Count(4)),
        train_size: Some(0.5.into()),
        ..ShuffleSplit::default()
    };
    let found: Vec<Split> = splits.split(&zeros(&[21])).unwrap().collect();
    let tests: Vec<Vec<i64>> = found.iter().map(|split| split.test.indices().to_vec().unwrap()).collect();
    assert!(tests.iter().all(|test| test.len() == 4));
    assert_ne!(tests[0], tests[1]);
    for split in &found {
        assert_eq!(split.train.indices().shape().unwrap(), [10]);
        let mut rows = together(split);
        rows.dedup();
        assert_eq!(rows.len(), 14, "no row is in both sets");
    }
}

#[test]
fn train_and_test_sets_of_all_tensors_have_the_same_rows() {
    let x = arange(40).reshape(&[20, 2]).rechunk(Chunks::Each(3));
    // Of a size that is known only after a run.
    let y = arange(25).filter(&arange(25).less(20));
    let [x, y] =
        train_test_split([&x, &y], TrainTestSplit { random_state: 3, ..Default::default() }).unwrap();
    let pairs = |x: &Tensor, y: &Tensor| -> Vec<i64> {
        let firsts: Vec<i64> = x.get(&[(..).into(), 0.into()]).to_vec().unwrap();
        let rows = y.to_vec::<i64>().unwrap();
        assert_eq!(firsts, rows.iter().map(|row| 2 * row).collect::<Vec<_>>());
        rows
    };
    let (train, test) = (pairs(&x.train, &y.train), pairs(&x.test, &y.test));
    assert_eq!((train.len(), test.len()), (15, 5));
    let mut all = [train, test].concat();
    assert_ne!(all, (0..20).collect::<Vec<_>>());
    all.sort_unstable();
    assert_eq!(all, (0..20).collect::<Vec<_>>());
    let in_order = TrainTestSplit { shuffle: false, test_size: Some(0.3.into()), ..Default::default() };
    let [part] = train_test_split([&arange(10)], in_order).unwrap();
    assert_eq!(part.test.to_vec::<i64>().unwrap(), [7, 8, 9]);
}

#[test]
fn stratified_sets_have_the_share_of_each_class() {
    let y = arange(50).greater_equal(40);
    let options =
        TrainTestSplit { stratify: Some(y.clone()), test_size: Some(0.2.into()), ..Default::default() };
    let [part] = train_test_split([&y], options).unwrap();
    assert_eq!(part.test.count_nonzero(..).item().unwrap().to_f64(), 2.0);
    assert_eq!(part.train.count_nonzero(..).item().unwrap().to_f64(), 8.0);
    assert_eq!(part.train.shape().unwrap(), [40]);
    let lonely = arange(10).equal(3);
    let options = TrainTestSplit { stratify: Some(lonely), ..Default::default() };
    let error = train_test_split([&arange(10)], options).unwrap_err();
    assert!(error.to_string().starts_with("The least populated classes in y have only 1 member"), "{error}");
}

#[test]
fn sizes_that_leave_a_set_empty_or_exceed_the_rows_are_refused() {
    let split = |rows: usize, train: Option<Share>, test: Option<Share>| {
        let options = TrainTestSplit { train_size: train, test_size: test, ..Default::default() };
        train_test_split([&arange(rows)], options).map(|_| ()).map_err(|error| error.class())
    };
    assert_eq!(split(1, None, None), Err("ValueError"));
    assert_eq!(split(0, None, None), Err("ValueError"));
    for size in [
        Share::Count(0),
        Share::Count(10),
        Share::Fraction(0.0),
        Share::Fraction(1.0),
        Share::Fraction(f64::NAN),
    ] {
        assert_eq!(split(10, None, Some(size)), Err("ValueError"), "{size:?}");
        assert_eq!(split(10, Some(size), None), Err("ValueError"), "{size:?}");
    }
    assert_eq!(split(10, Some(0.6.into()), Some(0.6.into())), Err("ValueError"));
    assert_eq!(split(10, Some(Share::Count(6)), Some(Share::Count(5))), Err("ValueError"));
    assert_eq!(split(10, Some(Share::Count(6)), Some(Share::Count(4))), Ok(()));
    let error = train_test_split([&arange(3), &arange(4)], ..).unwrap_err();
    let text = "Found input variables with inconsistent numbers of samples: [3, 4]";
    assert!(error.to_string().starts_with(text), "{error}");
}

#[test]
fn rows_of_a_tensor_of_another_length_are_refused() {
    let y = arange(12) % 2;
    let mut splits: Vec<Split> = KFold::default().split(&zeros(&[12])).unwrap().collect();
    splits.extend(KFold { shuffle: true, ..KFold::default() }.split(&zeros(&[12])).unwrap());
    splits.extend(StratifiedKFold::default().split(&y).unwrap());
    splits.extend(GroupKFold { n_splits: 2 }.split(&y).unwrap());
    splits.extend(ShuffleSplit::default().split(&zeros(&[12])).unwrap());
    splits.extend(TimeSeriesSplit::default().split(&zeros(&[12])).unwrap());
    // Of these lengths only a run tells.
    let late = |rows: usize| arange(20).filter(&arange(20).less(rows as i64));
    for (at, split) in splits.iter().enumerate() {
        for rows in [&split.train, &split.test] {
            for wrong in [zeros(&[11]), zeros(&[13, 2]), zeros(&[]), late(11), late(13)] {
                let error = rows.of(&wrong).execute().unwrap_err();
                assert!(matches!(error.class(), "ValueError" | "IndexError"), "split {at}: {error}");
            }
            let expected = rows.indices().to_vec::<i64>().unwrap();
            assert_eq!(rows.of(&arange(12)).to_vec::<i64>().unwrap(), expected);
            assert_eq!(rows.of(&late(12)).to_vec::<i64>().unwrap(), expected);
        }
    }
}

#[test]
fn no_training_rows_at_most_are_no_limit() {
    let splits = |most: Option<usize>| {
        let split = TimeSeriesSplit { max_train_size: most, ..TimeSeriesSplit::default() };
        let splits: Vec<Split> = split.split(&zeros(&[12])).unwrap().collect();
        splits.iter().map(|split| split.train.indices().to_vec::<i64>().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(splits(Some(0)), splits(None));
}

/// Comparing each row with each class would be 10^10 comparisons.
#[test]
fn many_classes_are_counted_in_the_time_of_a_sort() {
    let y = arange(200_000) / 2;
    let y = y.astype(tharsis_numeric::DType::I64);
    let folds = StratifiedKFold { n_splits: 2, ..StratifiedKFold::default() };
    let split = folds.split(&y).unwrap().next().unwrap();
    assert_eq!(split.test.indices().to_vec::<i64>().unwrap().len(), 100_000);
}
