//! Behaviour that users of pandas rely on: labels, order of rows, groups, joins, missing values. Each program
//! runs on one thread, on several, and with every fragment sent as bytes.

use crate::executors::{each_executor, three_parts};
use arrow::array::{Int64Array, RecordBatch};
use std::sync::Arc;
use tharsis_dataframe::{
    Aggregate, Compare, DataFrame, Error, JoinKind, LocalExecutor, Merge, Series, Sort, Squeezed, Value, lit,
    sql,
};

fn ints(frame: &DataFrame, label: &str) -> Vec<Vec<Option<i64>>> {
    each_executor(|executor| frame.collect_on(executor)?.column::<i64>(label))
}

fn texts(frame: &DataFrame, label: &str) -> Vec<Vec<Option<String>>> {
    each_executor(|executor| frame.collect_on(executor)?.column::<String>(label))
}

#[track_caller]
fn assert_ints(frame: &DataFrame, label: &str, expected: &[i64]) {
    let expected: Vec<Option<i64>> = expected.iter().copied().map(Some).collect();
    ints(frame, label).iter().for_each(|found| assert_eq!(*found, expected));
}

#[track_caller]
fn assert_index(frame: &DataFrame, expected: &[i64]) {
    let frame = frame.reset_index(false);
    assert_ints(&frame, "index", expected);
}

#[test]
fn rows_keep_their_order_and_their_labels_when_some_are_left_out() {
    let odd = three_parts().filter(&(three_parts().col("n") % 2).eq(1));
    let frame = three_parts();
    let odd_of_same = frame.filter(&(frame.col("n") % 2).eq(1));
    assert_ints(&odd_of_same, "n", &[1, 3, 5, 7, 9]);
    assert_index(&odd_of_same, &[1, 3, 5, 7, 9]);
    // A condition of another frame is matched by labels.
    assert_ints(&odd, "n", &[1, 3, 5, 7, 9]);
    assert_index(&odd_of_same.tail(2), &[7, 9]);
    assert_index(&odd_of_same.slice(1, 3), &[3, 5]);
}

#[test]
fn a_sort_is_stable_and_its_labels_move_with_the_rows() {
    let sorted = three_parts().sort_values(["k"], Sort::descending());
    assert_ints(&sorted, "n", &[2, 5, 8, 1, 4, 7, 0, 3, 6, 9]);
    assert_index(&sorted.head(3), &[2, 5, 8]);
    assert_index(&sorted.sort_index(Sort::ascending()), &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    assert_ints(&three_parts().nlargest(2, ["n"]), "n", &[9, 8]);
}

#[test]
fn sorted_rows_are_numbered_anew() {
    let last = three_parts().sort_values(["k"], Sort::descending()).reset_index(true).tail(2);
    assert_ints(&last, "n", &[6, 9]);
    assert_index(&last, &[8, 9]);
}

#[test]
fn groups_come_by_key_or_by_first_row() {
    let frame = three_parts();
    let sums = frame.groupby(["k"]).agg([("n", Aggregate::Sum)]);
    assert_ints(&sums, "n", &[18, 12, 15]);
    let firsts = frame.sort_values(["n"], Sort::descending()).groupby(["k"]).sort(false).first();
    assert_ints(&firsts, "n", &[9, 8, 7]);
    let keys = frame.groupby(["k"]).as_index(false).max();
    assert_ints(&keys, "k", &[0, 1, 2]);
    assert_ints(&keys, "n", &[9, 7, 8]);
}

#[test]
fn a_merge_has_the_order_of_the_left_frame() {
    let names = DataFrame::from_columns([
        ("k", vec![2, 0, 2, 7].into()),
        ("name", vec!["two", "zero", "deux", "seven"].into()),
    ]);
    let left = three_parts().merge(&names, Merge::on(["k"]));
    assert_ints(&left, "n", &[0, 2, 2, 3, 5, 5, 6, 8, 8, 9]);
    let found = texts(&left.head(3), "name");
    let expected = ["zero", "two", "deux"].map(|text| Some(text.to_owned()));
    found.iter().for_each(|found| assert_eq!(*found, expected));
    let outer = three_parts().merge(&names, Merge::on(["k"]).how(JoinKind::Outer));
    assert_ints(&outer, "k", &[0, 0, 0, 0, 1, 1, 1, 2, 2, 2, 2, 2, 2, 7]);
    assert_ints(&three_parts().merge(&names, Merge::on(["k"]).how(JoinKind::Anti)), "n", &[1, 4, 7]);
    let right = three_parts().merge(&names, Merge::on(["k"]).how(JoinKind::Right));
    assert_ints(&right, "k", &[2, 2, 2, 0, 0, 0, 0, 2, 2, 2, 7]);
}

#[test]
fn missing_values_are_left_out_of_aggregates_and_equal_nothing() {
    let frame = DataFrame::from_columns([
        ("x", vec![Some(1.0), None, Some(f64::NAN), Some(4.0)].into()),
        ("t", vec![Some("a"), None, Some("b"), Some("a")].into()),
    ]);
    let x = frame.col("x");
    assert_eq!(x.sum().unwrap().as_f64(), Some(5.0));
    assert_eq!(x.count().unwrap().as_i64(), Some(2));
    assert_eq!(x.mean().unwrap().as_f64(), Some(2.5));
    assert_index(&frame.filter(&x.ne(4.0)), &[0, 1, 2]);
    assert_index(&frame.filter(&x.eq(4.0)), &[3]);
    assert_index(&frame.dropna(), &[0, 3]);
    assert_eq!(frame.fillna(0.0).col("x").sum().unwrap().as_f64(), Some(5.0));
    let counts = frame.col("t").value_counts();
    assert_ints(&counts, "count", &[2, 1]);
    assert_eq!((&x / 0).values::<f64>().unwrap()[0], Some(f64::INFINITY));
    assert_eq!((&x - &x).floordiv(0).values::<f64>().unwrap()[0], None);
}

#[test]
fn arithmetic_is_pythons() {
    let frame = DataFrame::from_columns([("a", vec![7, -7, 7, -7].into()), ("b", vec![2, 2, -2, -2].into())]);
    let (a, b) = (frame.col("a"), frame.col("b"));
    assert_eq!(a.floordiv(&b).values::<i64>().unwrap(), [3, -4, -4, 3].map(Some));
    assert_eq!((&a % &b).values::<i64>().unwrap(), [1, 1, -1, -1].map(Some));
    assert_eq!((&a / &b).values::<f64>().unwrap(), [3.5, -3.5, -3.5, 3.5].map(Some));
    assert_eq!(a.pow(2).values::<i64>().unwrap(), [49; 4].map(Some));
}

#[test]
fn series_of_two_frames_meet_at_their_labels() {
    let one = three_parts().sort_values(["k"], Sort::ascending());
    let two = three_parts();
    let sums = &one.col("n") + &two.col("n");
    assert_eq!(sums.values::<i64>().unwrap(), (0..10).map(|n| Some(2 * n)).collect::<Vec<_>>());
    let frame = two.assign("twice", &one.col("n") * 2);
    assert_ints(&frame, "twice", &[0, 2, 4, 6, 8, 10, 12, 14, 16, 18]);
}

#[test]
fn rows_of_several_frames_follow_each_other() {
    let frame = three_parts();
    let both = DataFrame::concat([&frame.head(2), &frame.tail(2)], false);
    assert_ints(&both, "n", &[0, 1, 8, 9]);
    assert_index(&both, &[0, 1, 8, 9]);
    let other = DataFrame::from_columns([("n", vec![5].into()), ("new", vec![6].into())]);
    let wider = DataFrame::concat([&frame.head(1), &other], true);
    assert_eq!(wider.columns().unwrap(), ["n", "k", "new"]);
    assert_index(&wider, &[0, 1]);
    ints(&wider, "k").iter().for_each(|found| assert_eq!(*found, [Some(0), None]));
}

#[test]
fn frames_in_order_are_put_together_by_a_task_for_each_part() {
    let frame = three_parts();
    let both = DataFrame::concat([&frame, &frame.filter(&frame.col("n").gt(6))], true);
    let explanation = both.explain().unwrap();
    assert_eq!((explanation.stages.len(), explanation.tasks), (1, 6), "{explanation}");
    assert_ints(&both, "n", &(0..10).chain(7..10).collect::<Vec<_>>());
    assert_ints(&both.tail(4), "n", &[9, 7, 8, 9]);
    assert_ints(&both.head(11).tail(2), "n", &[9, 7]);
    assert_index(&both.filter(&both.col("n").eq(8)), &[8, 11]);
    // Rows of a sort are still merged.
    let sorted = frame.sort_values(["n"], Sort::descending());
    assert_ints(
        &DataFrame::concat([&sorted, &frame], true).head(12),
        "n",
        &[9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0, 1],
    );
}

#[test]
fn duplicates_leave_their_first_row() {
    let frame = three_parts();
    assert_ints(&frame.drop_duplicates_in(["k"]), "n", &[0, 1, 2]);
    assert_ints(&frame.tail(4).drop_duplicates_in(["k"]), "n", &[6, 7, 8]);
    assert_eq!(frame.col("k").unique().values::<i64>().unwrap(), [0, 1, 2].map(Some));
}

#[test]
fn sql_and_methods_make_the_same_plans() {
    let frame = three_parts();
    let query = "select k, sum(n) as total from t group by k order by total desc";
    let found = sql(query, &[("t", &frame)]);
    assert_ints(&found, "total", &[18, 15, 12]);
    let nested = sql("select n from t where n > (select avg(n) from t)", &[("t", &frame)]);
    assert_ints(&nested, "n", &[5, 6, 7, 8, 9]);
    let exists = sql(
        "select n from t where not exists (select 1 from u where u.n = t.n) order by n",
        &[("t", &frame), ("u", &frame.tail(7))],
    );
    assert_ints(&exists, "n", &[0, 1, 2]);
    let left = sql(
        "select t.n, u.n as m from t left join u on t.n = u.n + 5 order by t.n",
        &[("t", &frame), ("u", &frame)],
    );
    ints(&left, "m").iter().for_each(|found| assert_eq!(found[4..6], [None, Some(0)]));
}

#[test]
fn mistakes_are_told_with_what_there_is() {
    let frame = three_parts();
    let error = frame.select(["m"]).head(1).collect().unwrap_err();
    assert!(matches!(error.root(), Error::Key { .. }), "{error}");
    assert!(error.to_string().contains("frames.rs"), "{error}");
    let error = frame.filter(&frame.col("n")).check().unwrap_err();
    assert_eq!(error.class(), "TypeError");
    let error = frame.groupby(["kk"]).sum().check().unwrap_err();
    assert_eq!(error.class(), "KeyError");
    let error = sql("selec 1", &[]).check().unwrap_err();
    assert_eq!(error.class(), "ValueError");
    let texts = DataFrame::from_columns([("t", vec!["a"].into())]);
    assert_eq!(texts.col("t").mean().unwrap_err().class(), "TypeError");
    assert_eq!(frame.merge(&texts, Merge::on_pairs(["n"], ["t"])).check().unwrap_err().class(), "ValueError");
    assert_eq!(
        tharsis_dataframe::read_csv("/no/such.csv", Default::default()).check().unwrap_err().class(),
        "FileNotFoundError"
    );
}

#[test]
fn files_give_back_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_string_lossy().into_owned();
    let frame = three_parts();
    frame.to_parquet(&path("t.parquet")).unwrap();
    frame.to_csv(&path("t.csv")).unwrap();
    for read in [
        tharsis_dataframe::read_parquet(&path("t.parquet")),
        tharsis_dataframe::read_csv(&path("t.csv"), Default::default()),
    ] {
        assert_ints(&read, "n", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert_ints(&read.groupby(["k"]).sum(), "n", &[18, 12, 15]);
    }
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(files.len(), 2, "only whole files are left");
}

#[test]
fn a_large_file_is_read_once_by_all_its_tasks_and_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("large.parquet").to_string_lossy().into_owned();
    // Values that do not compress: the file is large enough to be cut.
    let values: Vec<i64> =
        (0..2_500_000_i64).map(|n| n.wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64)).collect();
    DataFrame::from_columns([("n", values.clone().into())]).to_parquet(&path).unwrap();
    let read = tharsis_dataframe::read_parquet(&path);
    assert!(std::fs::metadata(&path).unwrap().len() > 10 << 20, "smaller files are not cut");
    let sums = values.iter().fold(0_i64, |sum, value| sum.wrapping_add(*value >> 32));
    let shifted = read.assign("high", read.col("n").floordiv(1_i64 << 32));
    let counted = shifted
        .groupby([&shifted.col("n").isna()])
        .as_index(false)
        .agg_as([("rows", "n", Aggregate::Count), ("high", "high", Aggregate::Sum)]);
    assert_ints(&counted, "rows", &[2_500_000]);
    assert_ints(&counted, "high", &[sums]);
    let expected: Vec<Option<i64>> = values.into_iter().map(Some).collect();
    ints(&read, "n").iter().for_each(|found| assert!(*found == expected, "rows are out of order"));
}

#[test]
fn frames_are_compared_value_by_value() {
    let old = three_parts();
    let new = old.assign("n", old.col("n").replace([(4, -4), (7, -7)]));
    let changed = old.compare(&new);
    assert_eq!(changed.columns().unwrap(), ["n_self", "n_other"]);
    assert_ints(&changed, "n_other", &[-4, -7]);
    assert_index(&changed, &[4, 7]);
    let whole = old.compare_with(&new, &Compare::new().keep_shape(true).keep_equal(true).names("a", "b"));
    assert_ints(&whole, "n_b", &[0, 1, 2, 3, -4, 5, 6, -7, 8, 9]);
    assert_eq!(old.compare(&new.head(3)).check().unwrap_err().class(), "ValueError");
    let both = old.combine(&new.head(5), |left, right| left.keep_where(&right.isna(), right));
    assert_ints(&both, "n", &[0, 1, 2, 3, -4, 5, 6, 7, 8, 9]);
    let most = old.col("n").combine(&new.col("n"), |left, right| left - right);
    assert_ints(&most.rename("n").to_frame(), "n", &[0, 0, 0, 0, 8, 0, 0, 14, 0, 0]);
}

#[test]
fn rows_are_made_of_values_and_values_of_rows() {
    let rows = vec![vec![lit("a"), lit(1), lit(2)], vec![lit("b"), Value::missing(), lit(0.5)]];
    let frame = DataFrame::from_records(["k", "n", "f"], rows);
    assert_eq!(frame.dtypes().unwrap()[2].1, arrow::datatypes::DataType::Float64);
    let records = frame.to_records().unwrap();
    assert_eq!(records[0], [("k", lit("a")), ("n", lit(1)), ("f", lit(2.0))].map(|(k, v)| (k.to_owned(), v)));
    assert!(records[1][1].1.is_missing());
    let numbers = frame.select(["n", "f"]);
    assert_eq!(numbers.values::<f64>().unwrap(), [[Some(1.0), Some(2.0)], [None, Some(0.5)]]);
    assert_eq!(frame.to_dict().unwrap()[0].1, [(lit(0), lit("a")), (lit(1), lit("b"))]);
    let ragged = DataFrame::from_records(["k"], vec![vec![lit(1)], Vec::new()]);
    assert_eq!(ragged.check().unwrap_err().class(), "ValueError");
    let mixed = DataFrame::from_records(["k"], vec![vec![lit(1)], vec![lit("x")]]);
    assert_eq!(mixed.check().unwrap_err().class(), "TypeError");
    assert_eq!(DataFrame::from_records(["k"], Vec::new()).len().unwrap(), 0);
}

#[test]
fn a_series_gives_single_values() {
    let n = three_parts().col("n");
    assert!(matches!(n.squeeze().unwrap(), Squeezed::Series(_)));
    assert_eq!((n.ndim(), n.shape().unwrap(), n.nbytes().unwrap()), (1, (10,), 80));
    let (value, rest) = n.pop(4).unwrap();
    assert_eq!((value, rest.shape().unwrap()), (lit(4), (9,)));
    assert_eq!(n.pop(44).unwrap_err().class(), "KeyError");
    assert_eq!(n.get(44).unwrap(), None);
    let lost = three_parts().col("nothing");
    assert_eq!(lost.get(1).unwrap_err().class(), "KeyError");
    let twice = Series::from_values("n", vec![1, 2, 3]).set_axis(["a", "b", "a"]).to_dict().unwrap();
    assert_eq!(twice, [(lit("a"), lit(3)), (lit("b"), lit(2))]);
    let rows: usize = n.iter_batches().unwrap().map(|batch| batch.unwrap().num_rows()).sum();
    assert_eq!(rows, 10);
    assert_eq!(n.execute().unwrap().sum().unwrap(), lit(45));
}

#[test]
fn rows_of_very_many_parts_have_their_order() {
    const PARTS: i64 = (1 << 14) + 9;
    let part = |n: i64| {
        let numbers = Arc::new(Int64Array::from(vec![n]));
        RecordBatch::try_from_iter_with_nullable([("n", numbers as _, true)]).unwrap()
    };
    let parts: Vec<RecordBatch> = (0..PARTS).map(part).collect();
    let frame = DataFrame::from_batches(parts[0].schema(), parts);
    let before = frame.col("n").shift(1).to_frame();
    let found = before.collect_on(&LocalExecutor::sized(2, 1 << 30)).unwrap().column::<i64>("n").unwrap();
    assert_eq!(found.len() as i64, PARTS);
    assert!(found.into_iter().skip(1).flatten().eq(0..PARTS - 1));
}

#[test]
fn a_thousand_frames_are_put_below_each_other() {
    let frame = |n: i64| DataFrame::from_columns([("n", vec![n].into()), ("x", vec![0.5].into())]);
    let frames: Vec<DataFrame> = (0..1000).map(frame).collect();
    let all = DataFrame::concat(&frames, true).collect_on(&LocalExecutor::sized(2, 1 << 30)).unwrap();
    assert!(all.column::<i64>("n").unwrap().into_iter().flatten().eq(0..1000));
    DataFrame::concat(&frames, false).check().unwrap();
}
