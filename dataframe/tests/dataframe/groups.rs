//! Groups: what each row gets of its group, the rows that are kept, labels of extremes. Expected values are
//! those of pandas.

use crate::executors::{each_executor, three_parts};
use tharsis_dataframe::{Aggregate, DataFrame, GroupBy, GroupKey, Rank, Sort};

const N: f64 = f64::NAN;

/// Ten rows in three parts with a column `v` that misses two values.
fn valued() -> DataFrame {
    let v = [1.5, 2.0, N, 4.0, 1.0, 7.0, 8.0, N, 2.0, 3.0];
    let values = DataFrame::from_columns([("v", v.to_vec().into())]);
    three_parts().assign("v", values.col("v"))
}

/// Four rows, one without a key.
fn keyless() -> DataFrame {
    DataFrame::from_columns([
        ("g", vec![Some("a"), None, Some("a"), Some("b")].into()),
        ("v", vec![1.0, 2.0, 3.0, 4.0].into()),
    ])
}

#[track_caller]
fn assert_floats(frame: &DataFrame, label: &str, expected: &[f64]) {
    for found in each_executor(|executor| frame.collect_on(executor)?.column::<f64>(label)) {
        let found: Vec<f64> = found.into_iter().map(|value| value.unwrap_or(N)).collect();
        assert_eq!(found.len(), expected.len(), "{found:?}");
        let near = |a: f64, b: f64| (a - b).abs() < 1e-12 || (a.is_nan() && b.is_nan());
        assert!(found.iter().zip(expected).all(|(&a, &b)| near(a, b)), "{found:?}\n{expected:?}");
    }
}

#[track_caller]
fn assert_ints(frame: &DataFrame, label: &str, expected: &[i64]) {
    for found in each_executor(|executor| frame.collect_on(executor)?.column::<i64>(label)) {
        assert_eq!(found, expected.iter().copied().map(Some).collect::<Vec<_>>());
    }
}

#[test]
fn steps_stay_within_groups() {
    let frame = valued();
    let groups = frame.groupby(["k"]);
    assert_ints(&groups.cumsum(), "n", &[0, 1, 2, 3, 5, 7, 9, 12, 15, 18]);
    assert_floats(&groups.cumsum(), "v", &[1.5, 2.0, N, 5.5, 3.0, 7.0, 13.5, N, 9.0, 16.5]);
    assert_floats(&groups.shift(1), "v", &[N, N, N, 1.5, 2.0, N, 4.0, 1.0, 7.0, 8.0]);
    assert_floats(&groups.rank(Rank::default()), "v", &[1.0, 2.0, N, 3.0, 1.0, 2.0, 4.0, N, 1.0, 2.0]);
    assert_floats(&groups.ffill(), "v", &[1.5, 2.0, N, 4.0, 1.0, 7.0, 8.0, 1.0, 2.0, 3.0]);
    assert_floats(&groups.bfill(), "v", &[1.5, 2.0, 7.0, 4.0, 1.0, 7.0, 8.0, N, 2.0, 3.0]);
    assert_floats(&groups.diff(1), "n", &[N, N, N, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0, 3.0]);
    assert_eq!(groups.cummax().columns().unwrap(), ["n", "v"]);
}

#[test]
fn aggregates_come_to_each_row() {
    let frame = valued();
    let groups = frame.groupby(["k"]).select(["v"]);
    let each = |a: f64, b: f64, c: f64| [a, b, c, a, b, c, a, b, c, a];
    assert_floats(&groups.transform(Aggregate::Sum), "v", &each(16.5, 3.0, 9.0));
    assert_floats(&groups.transform(Aggregate::Mean), "v", &each(4.125, 1.5, 4.5));
    assert_floats(&groups.transform(Aggregate::Last), "v", &each(3.0, 1.0, 2.0));
    assert_floats(&groups.transform(Aggregate::First), "v", &each(1.5, 2.0, 7.0));
    assert_floats(&groups.transform(Aggregate::Median), "v", &each(3.5, 1.5, 4.5));
    assert_floats(&groups.transform(Aggregate::Quantile(0.5)), "v", &each(3.5, 1.5, 4.5));
    assert_floats(&groups.transform(Aggregate::Nunique), "v", &each(4.0, 2.0, 2.0));
    assert_floats(&groups.transform(Aggregate::Prod), "v", &each(144.0, 2.0, 14.0));
    // The share of each row in its group, in one pass.
    let totals = groups.transform(Aggregate::Sum);
    let shares = frame.assign("share", &frame.col("v") / &totals.col("v"));
    let share = |v: f64, total: f64| v / total;
    assert_floats(&shares.head(2), "share", &[share(1.5, 16.5), share(2.0, 3.0)]);
}

#[test]
fn rows_have_a_place_and_groups_a_number() {
    let frame = valued();
    let groups = frame.groupby(["k"]);
    let placed = frame.assign("c", groups.cumcount()).assign("g", groups.ngroup());
    assert_ints(&placed, "c", &[0, 0, 0, 1, 1, 1, 2, 2, 2, 3]);
    assert_ints(&placed, "g", &[0, 1, 2, 0, 1, 2, 0, 1, 2, 0]);
    let back = frame.sort_values(["n"], Sort::descending()).filter(&frame.col("n").lt(9));
    let by_first = back.assign("g", back.groupby(["k"]).sort(false).ngroup());
    assert_ints(&by_first, "g", &[0, 1, 2, 0, 1, 2, 0, 1, 2]);
    assert_ints(&groups.head(2), "n", &[0, 1, 2, 3, 4, 5]);
    assert_ints(&groups.tail(1), "n", &[7, 8, 9]);
    assert_ints(&groups.nth(1), "n", &[3, 4, 5]);
    assert_ints(&groups.nth(-2), "n", &[4, 5, 6]);
    assert_ints(&groups.nth(-2).reset_index(false), "index", &[4, 5, 6]);
    assert_ints(&groups.filter_groups("v", Aggregate::Sum, |sum| sum.gt(10)), "n", &[0, 3, 6, 9]);
    assert_ints(&groups.pipe(|groups| groups.head(1)), "n", &[0, 1, 2]);
}

#[test]
fn groups_are_numbered_without_those_that_lack_a_key() {
    let texts = vec![None, Some("a"), Some("b"), Some("c"), None];
    let frame = DataFrame::from_columns([("k", vec![1, 0, 2, 2, 3].into()), ("s", texts.into())]);
    let numbers = |groups: GroupBy| frame.assign("g", groups.ngroup());
    assert_floats(&numbers(frame.groupby(["k", "s"])), "g", &[N, 0.0, 1.0, 2.0, N]);
    assert_floats(&numbers(frame.groupby(["s", "k"])), "g", &[N, 0.0, 1.0, 2.0, N]);
    assert_ints(&numbers(frame.groupby(["k", "s"]).dropna(false)), "g", &[1, 0, 2, 3, 4]);
}

#[test]
fn rows_without_a_key_belong_to_no_group() {
    let frame = keyless();
    let groups = frame.groupby(["g"]);
    assert_floats(&groups.cumsum(), "v", &[1.0, N, 4.0, 4.0]);
    assert_floats(&groups.transform(Aggregate::Sum), "v", &[4.0, N, 4.0, 4.0]);
    assert_floats(&frame.assign("g", groups.ngroup()), "g", &[0.0, N, 0.0, 1.0]);
    assert_floats(&groups.head(1), "v", &[1.0, 4.0]);
    assert_floats(&groups.filter_groups("v", Aggregate::Sum, |sum| sum.gt(0)), "v", &[1.0, 3.0, 4.0]);
    let with_missing = frame.groupby(["g"]).dropna(false);
    assert_floats(&with_missing.cumsum(), "v", &[1.0, 2.0, 4.0, 4.0]);
}

#[test]
fn windows_roll_within_groups() {
    let frame = valued();
    let rolled = frame.groupby(["k"]).select(["v"]).rolling(2).min_periods(1).sum();
    assert_eq!(rolled.index_names().unwrap(), [Some("k".to_owned()), None]);
    assert_floats(&rolled, "v", &[1.5, 5.5, 12.0, 11.0, 2.0, 3.0, 1.0, N, 7.0, 9.0]);
    let grown = frame.groupby(["k"]).select(["v"]).expanding().max();
    assert_floats(&grown, "v", &[1.5, 4.0, 8.0, 8.0, 2.0, 2.0, 2.0, N, 7.0, 7.0]);
    let faded = frame.groupby(["k"]).select(["v"]).ewm().alpha(0.5).adjust(false).mean();
    assert_floats(&faded.head(4), "v", &[1.5, 2.75, 5.375, 4.1875]);
    let keyed = keyless().groupby(["g"]).rolling(1).sum();
    assert_floats(&keyed, "v", &[1.0, 3.0, 4.0]);
    let flat = rolled.reset_index(false);
    assert_ints(&flat, "k", &[0, 0, 0, 0, 1, 1, 1, 2, 2, 2]);
}

#[test]
fn labels_of_extremes_products_and_shapes() {
    let frame = valued();
    let groups = frame.groupby(["k"]);
    assert_ints(&groups.idxmin(), "v", &[0, 4, 8]);
    assert_ints(&groups.idxmax(), "v", &[6, 1, 5]);
    assert_floats(&groups.prod(), "v", &[144.0, 2.0, 14.0]);
    assert_ints(&groups.prod(), "n", &[0, 28, 80]);
    assert_floats(&groups.skew(), "v", &[1.19978923754086, N, N]);
    let halves = frame.groupby([&(frame.col("n") % 2)]);
    assert_floats(&halves.kurt(), "v", &[3.693543218022433, 1.5]);
    assert_floats(&halves.skew(), "v", &[1.9073409397343521, 1.1903401282789947]);
    assert_eq!(Aggregate::named("kurt").unwrap(), Aggregate::Kurt);
}

#[test]
fn several_series_are_keys_together() {
    let frame = valued();
    let (half, third) = (frame.col("n") % 2, frame.col("n") % 3);
    let sums = frame.groupby([&half, &third]).select(["n"]).sum();
    // 0 and 6, 4, 2 and 8; 3 and 9, 1 and 7, 5.
    assert_ints(&sums, "n", &[6, 4, 10, 12, 8, 5]);
    // A label between them, and a series of another frame.
    let other = frame.assign("m", &frame.col("n") * 10).filter(&frame.col("n").ge(0));
    let counts = frame.groupby([GroupKey::from(&half), "k".into(), (&(other.col("m") % 20)).into()]).size();
    let of_half = frame.groupby([GroupKey::from(&half), "k".into()]).size();
    assert_eq!(counts.col("size").values::<i64>().unwrap(), of_half.col("size").values::<i64>().unwrap());
    let shifted = frame.groupby([&half, &third]).select(["n"]).shift(1);
    let expected = (0..10).map(|row: i64| (6 <= row).then(|| row - 6)).collect::<Vec<_>>();
    assert_eq!(shifted.col("n").values::<i64>().unwrap(), expected);
}

#[test]
fn the_most_frequent_values_are_sorted() {
    let mode = tharsis_dataframe::Series::from_values("n", vec![3, 1, 3, 1, 2]).mode();
    assert_ints(&mode.to_frame(), "n", &[1, 3]);
}

#[test]
fn programs_of_several_steps_of_groups() {
    let frame = valued();
    // The distance of each value from the mean of its group, in deviations; then the largest of each group.
    let groups = frame.groupby(["k"]).select(["n"]);
    let mean = groups.transform(Aggregate::Mean);
    let deviation = groups.transform(Aggregate::Std);
    let scores = &(&frame.col("n") - &mean.col("n")) / &deviation.col("n");
    let scored = frame.assign("z", scores);
    assert_floats(&scored.head(1), "z", &[-1.161895003862225]);
    assert_ints(&scored.groupby(["k"]).select(["z"]).idxmax(), "z", &[9, 7, 8]);
    // Only groups with four rows; their shares; running shares per group.
    let large = frame.groupby(["k"]).filter_groups("n", Aggregate::Size, |size| size.ge(4));
    let total = large.groupby(["k"]).select(["v"]).transform(Aggregate::Sum);
    let shared = large.assign("share", &large.col("v") / &total.col("v"));
    let running = shared.groupby(["k"]).select(["share"]).cumsum();
    assert_floats(&running, "share", &[1.5 / 16.5, 5.5 / 16.5, 13.5 / 16.5, 1.0]);
    // The first row of each group after a sort, with the labels that it had.
    let best = frame.dropna().sort_values(["v"], Sort::descending()).groupby(["k"]).head(1);
    assert_ints(&best, "n", &[6, 5, 1]);
    assert_ints(&best.reset_index(false), "index", &[6, 5, 1]);
}

#[test]
fn quantiles_of_groups_are_exact() {
    let frame = DataFrame::from_columns([
        ("k", vec!["a", "a", "b", "b", "b"].into()),
        ("v", vec![0.0, 3e9, 1.0, 2.0, 10.0].into()),
    ]);
    assert_floats(&frame.groupby(["k"]).quantile(1.0 / 3.0), "v", &[1e9, 5.0 / 3.0]);
    assert_floats(&frame.groupby(["k"]).quantile(1.0), "v", &[3e9, 10.0]);
}

#[test]
fn columns_go_together_in_each_group() {
    let groups = valued().groupby(["k"]);
    assert_floats(&groups.corr(1), "v", &[0.394_708_941_180_686_3, 1.0, -1.0, 1.0, -1.0, 1.0]);
    assert_floats(&groups.cov(1), "n", &[15.0, 4.25, 9.0, -1.5, 9.0, -7.5]);
    let chosen = valued().groupby(["k"]).select(["v"]);
    assert_floats(&chosen.corrwith(&three_parts().col("n"), 1), "v", &[0.394_708_941_180_686_3, -1.0, -1.0]);
    assert_floats(&chosen.cov_with(&three_parts().col("n"), 4), "v", &[4.25, N, N]);
}

#[test]
fn groups_tell_their_values_and_their_places() {
    let groups = valued().groupby(["k"]);
    let distinct = groups.unique("v").explode("v");
    assert_floats(&distinct, "v", &[1.5, 4.0, 8.0, 3.0, 2.0, 1.0, N, N, 7.0, 2.0]);
    assert_ints(&groups.indices().explode("positions"), "positions", &[0, 3, 6, 9, 1, 4, 7, 2, 5, 8]);
    let each = keyless().groupby(["g"]).dropna(false).each_group().unwrap();
    let sizes: Vec<(String, usize)> =
        each.iter().map(|(keys, rows)| (keys[0].to_string(), rows.len().unwrap())).collect();
    assert_eq!(sizes, [("a".to_owned(), 2), ("b".to_owned(), 1), ("NaN".to_owned(), 1)]);
    assert_floats(&each[0].1, "v", &[1.0, 3.0]);
}
