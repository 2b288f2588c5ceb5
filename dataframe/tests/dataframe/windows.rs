//! Windows over the order of rows: shifts, running sums, ranks, rolling windows. Expected values are those
//! of pandas.

use crate::executors::{each_executor, three_parts};
use tharsis_dataframe::{Aggregate, DataFrame, Rank, RankMethod, Series, Sort, date_range};

#[test]
fn rows_are_not_numbered_for_a_step_that_reads_no_numbers() {
    let frame = three_parts();
    let grouped = frame.filter(&frame.col("n").gt(2)).groupby(["k"]).sum();
    let stages = grouped.explain().unwrap().to_string();
    assert!(!stages.contains("RowNumberExec"), "{stages}");
    let plain = frame.groupby(["k"]).sum().explain().unwrap().to_string();
    assert_eq!(stages.matches("stage ").count(), plain.matches("stage ").count(), "{stages}\n{plain}");
    for sums in each_executor(|executor| grouped.collect_on(executor)?.column::<i64>("n")) {
        assert_eq!(sums, [Some(18), Some(11), Some(13)]);
    }
    // Labels that come out are numbered still.
    let kept = frame.filter(&frame.col("n").gt(2));
    assert!(kept.explain().unwrap().to_string().contains("RowNumberExec"));
    let twice = kept.filter(&kept.col("k").eq(0)).reset_index(true);
    for found in each_executor(|executor| twice.collect_on(executor)?.column::<i64>("n")) {
        assert_eq!(found, [Some(3), Some(6), Some(9)]);
    }
}

const X: Option<f64> = None;

/// A series on every executor against numbers, with `X` for missing ones.
#[track_caller]
fn assert_floats(series: &Series, expected: &[Option<f64>]) {
    let frame = series.rename("x").to_frame();
    for found in each_executor(|executor| frame.collect_on(executor)?.column::<f64>("x")) {
        let near = |a: &Option<f64>, b: &Option<f64>| match (a, b) {
            (Some(a), Some(b)) => (a - b).abs() < 1e-9 * b.abs().max(1.0),
            (a, b) => a.is_none() && b.is_none(),
        };
        assert_eq!(found.len(), expected.len());
        let same = found.iter().zip(expected).all(|(found, expected)| near(found, expected));
        assert!(same, "{found:?}\n{expected:?}");
    }
}

fn some(values: &[f64]) -> Vec<Option<f64>> {
    values.iter().map(|&value| (!value.is_nan()).then_some(value)).collect()
}

const N: f64 = f64::NAN;

/// Eight values in parts of three, two and three rows, two of them missing.
fn gaps() -> Series {
    let part = |values: Vec<Option<f64>>| DataFrame::from_columns([("x", values.into())]);
    let parts = [
        part(vec![X, Some(3.0), Some(1.0)]),
        part(vec![Some(4.0), X]),
        part(vec![Some(1.0), Some(5.0), Some(9.0)]),
    ];
    DataFrame::concat(&parts, true).col("x")
}

#[test]
fn steps_go_through_rows_in_their_order() {
    let x = gaps();
    assert_floats(&x.shift(1), &some(&[N, N, 3.0, 1.0, 4.0, N, 1.0, 5.0]));
    assert_floats(&x.shift(-2), &some(&[1.0, 4.0, N, 1.0, 5.0, 9.0, N, N]));
    assert_floats(&x.diff(1), &some(&[N, N, -2.0, 3.0, N, N, 4.0, 4.0]));
    assert_floats(&x.cumsum(), &some(&[N, 3.0, 4.0, 8.0, N, 9.0, 14.0, 23.0]));
    assert_floats(&x.cumprod(), &some(&[N, 3.0, 3.0, 12.0, N, 12.0, 60.0, 540.0]));
    assert_floats(&x.cummin(), &some(&[N, 3.0, 1.0, 1.0, N, 1.0, 1.0, 1.0]));
    assert_floats(&x.cummax(), &some(&[N, 3.0, 3.0, 4.0, N, 4.0, 5.0, 9.0]));
    assert_floats(&x.ffill(), &some(&[N, 3.0, 1.0, 4.0, 4.0, 1.0, 5.0, 9.0]));
    assert_floats(&x.bfill(), &some(&[3.0, 3.0, 1.0, 4.0, 1.0, 1.0, 5.0, 9.0]));
    assert_floats(&x.interpolate(), &some(&[N, 3.0, 1.0, 4.0, 2.5, 1.0, 5.0, 9.0]));
    assert_floats(&x.pct_change(1), &some(&[N, N, -2.0 / 3.0, 3.0, N, N, 4.0, 0.8]));
}

#[test]
fn ranks_are_by_value() {
    let x = gaps();
    let by = |method| x.rank(Rank::by(method));
    assert_floats(&by(RankMethod::Average), &some(&[N, 3.0, 1.5, 4.0, N, 1.5, 5.0, 6.0]));
    assert_floats(&by(RankMethod::Min), &some(&[N, 3.0, 1.0, 4.0, N, 1.0, 5.0, 6.0]));
    assert_floats(&by(RankMethod::Max), &some(&[N, 3.0, 2.0, 4.0, N, 2.0, 5.0, 6.0]));
    assert_floats(&by(RankMethod::First), &some(&[N, 3.0, 1.0, 4.0, N, 2.0, 5.0, 6.0]));
    assert_floats(&by(RankMethod::Dense), &some(&[N, 2.0, 1.0, 3.0, N, 1.0, 4.0, 5.0]));
    let descending = Rank::by(RankMethod::First).descending();
    assert_floats(&x.rank(descending), &some(&[N, 4.0, 5.0, 3.0, N, 6.0, 2.0, 1.0]));
    let parts = [N, 0.5, 0.25, 2.0 / 3.0, N, 0.25, 5.0 / 6.0, 1.0];
    assert_floats(&x.rank(Rank::default().pct()), &some(&parts));
    let dense = Rank::by(RankMethod::Dense).pct();
    assert_floats(&x.rank(dense), &some(&[N, 0.4, 0.2, 0.6, N, 0.2, 0.8, 1.0]));
}

#[test]
fn windows_move_with_the_rows() {
    let x = gaps();
    let rolling = x.rolling(3).min_periods(2);
    assert_floats(&rolling.sum(), &some(&[N, N, 4.0, 8.0, 5.0, 5.0, 6.0, 15.0]));
    assert_floats(&rolling.mean(), &some(&[N, N, 2.0, 8.0 / 3.0, 2.5, 2.5, 3.0, 5.0]));
    assert_floats(&rolling.min(), &some(&[N, N, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]));
    assert_floats(&rolling.max(), &some(&[N, N, 3.0, 4.0, 4.0, 4.0, 5.0, 9.0]));
    assert_floats(&rolling.count(), &some(&[N, 1.0, 2.0, 3.0, 2.0, 2.0, 2.0, 3.0]));
    assert_floats(&rolling.var(), &some(&[N, N, 2.0, 7.0 / 3.0, 4.5, 4.5, 8.0, 16.0]));
    let deviations =
        [N, N, 2.0_f64.sqrt(), (7.0_f64 / 3.0).sqrt(), 4.5_f64.sqrt(), 4.5_f64.sqrt(), 8.0_f64.sqrt(), 4.0];
    assert_floats(&rolling.std(), &some(&deviations));
    assert_floats(&rolling.median(), &some(&[N, N, 2.0, 3.0, 2.5, 2.5, 3.0, 5.0]));
    assert_floats(&rolling.quantile(0.25), &some(&[N, N, 1.5, 2.0, 1.75, 1.75, 2.0, 3.0]));
    let centred = x.rolling(4).min_periods(1).center(true).sum();
    assert_floats(&centred, &some(&[3.0, 4.0, 8.0, 8.0, 6.0, 10.0, 15.0, 15.0]));
    assert_floats(&x.rolling(2).sum(), &some(&[N, N, 4.0, 5.0, N, N, 6.0, 14.0]));
    assert_floats(&x.rolling(3).count(), &some(&[N, N, 2.0, 3.0, 2.0, 2.0, 2.0, 3.0]));
}

#[test]
fn windows_grow_or_fade() {
    let x = gaps();
    assert_floats(&x.expanding().sum(), &some(&[N, 3.0, 4.0, 8.0, 8.0, 9.0, 14.0, 23.0]));
    assert_floats(&x.expanding().count(), &some(&[0.0, 1.0, 2.0, 3.0, 3.0, 4.0, 5.0, 6.0]));
    assert_floats(&x.expanding().median(), &some(&[N, 3.0, 2.0, 3.0, 3.0, 2.0, 3.0, 3.5]));
    assert_floats(&x.expanding().max(), &some(&[N, 3.0, 3.0, 4.0, 4.0, 4.0, 5.0, 9.0]));
    let faded = [N, 3.0, 5.0 / 3.0, 3.0, 3.0, 1.608695652173913, 3.581818181818182, 6.495798319327731];
    assert_floats(&x.ewm().alpha(0.5).mean(), &some(&faded));
    let recursive = x.ewm().span(4.0).adjust(false).mean();
    assert_floats(
        &recursive,
        &some(&[
            N,
            3.0,
            2.1999999999999997,
            2.92,
            2.92,
            1.9094736842105264,
            3.1456842105263156,
            5.48741052631579,
        ]),
    );
    let half = x.ewm().halflife(2.0).min_periods(3).mean();
    let expected = [
        N,
        N,
        N,
        2.8123273572878915,
        2.8123273572878915,
        1.9507721595960692,
        3.1766235091371566,
        5.287396414372735,
    ];
    assert_floats(&half, &some(&expected));
    assert_eq!(x.ewm().mean().collect().unwrap_err().class(), "ValueError");
    assert_eq!(x.ewm().alpha(2.0).mean().collect().unwrap_err().class(), "ValueError");
}

fn ints(frame: &DataFrame, label: &str) -> Vec<Vec<Option<i64>>> {
    each_executor(|executor| frame.collect_on(executor)?.column::<i64>(label))
}

#[track_caller]
fn assert_ints(frame: &DataFrame, label: &str, expected: &[i64]) {
    let expected: Vec<Option<i64>> = expected.iter().copied().map(Some).collect();
    ints(frame, label).iter().for_each(|found| assert_eq!(*found, expected));
}

#[test]
fn windows_follow_a_sort_and_meet_other_columns_without_a_join() {
    let sorted = three_parts().sort_values(["k"], Sort::descending());
    let summed = sorted.assign("c", sorted.col("n").cumsum());
    assert_ints(&summed, "c", &[2, 7, 15, 16, 20, 27, 27, 30, 36, 45]);
    assert_ints(&summed.reset_index(false), "index", &[2, 5, 8, 1, 4, 7, 0, 3, 6, 9]);
    assert!(!summed.explain().unwrap().to_string().contains("Join"));
    let grown = sorted.filter(&sorted.col("n").diff(1).gt(0));
    assert_ints(&grown, "n", &[5, 8, 4, 7, 3, 6, 9]);
    assert_ints(&grown.reset_index(false), "index", &[5, 8, 4, 7, 3, 6, 9]);
    let before = sorted.col("n").cumsum().shift(1);
    let expected =
        [None, Some(2), Some(7), Some(15), Some(16), Some(20), Some(27), Some(27), Some(30), Some(36)];
    ints(&sorted.assign("c", before), "c").iter().for_each(|found| assert_eq!(*found, expected));
    assert_eq!(sorted.col("n").diff(1).abs().sum().unwrap().as_i64(), Some(35));
    // Windows of a computed column, a filter of it, groups of what is left.
    let frame = three_parts();
    let moved = frame.assign("m", frame.col("n").rolling(3).mean());
    let late = moved.filter(&moved.col("m").ge(3.0));
    assert_ints(&late.groupby(["k"]).sum(), "n", &[15, 11, 13]);
    // All columns of a frame at once.
    assert_ints(&frame.cumsum(), "k", &[0, 1, 3, 3, 4, 6, 6, 7, 9, 9]);
    assert_eq!(frame.shift(1).columns().unwrap(), ["n", "k"]);
}

#[test]
fn texts_are_shifted_and_filled_but_not_added() {
    let texts = Series::from_values("t", vec![Some("a"), None, Some("c")]);
    assert_eq!(texts.ffill().values::<String>().unwrap()[1].as_deref(), Some("a"));
    assert_eq!(texts.shift(-1).values::<String>().unwrap()[1].as_deref(), Some("c"));
    assert_eq!(texts.cumsum().collect().unwrap_err().class(), "TypeError");
    assert_eq!(gaps().rolling(2).min_periods(3).sum().collect().unwrap_err().class(), "ValueError");
    assert_eq!(texts.rolling(2).mean().collect().unwrap_err().class(), "TypeError");
}

#[test]
fn products_and_shapes_of_whole_columns() {
    let x = gaps();
    assert_eq!(x.prod().unwrap().as_f64(), Some(540.0));
    let near = |found: Option<f64>, expected: f64| assert!((found.unwrap() - expected).abs() < 1e-12);
    near(x.skew().unwrap().as_f64(), 1.0440666009104942);
    near(x.kurt().unwrap().as_f64(), 1.096585177098161);
    assert!(x.dropna().rolling(1).sum().shift(6).kurt().unwrap().is_missing());
}

#[test]
fn numbers_come_from_the_order_before_a_window_and_after_a_limit() {
    let frame = three_parts();
    let first = frame.sort_values(["k"], Sort::descending()).head(4);
    assert_ints(&first.cumsum(), "n", &[2, 7, 15, 16]);
    let again = first.sort_values(["n"], Sort::ascending()).cumsum();
    assert_ints(&again, "n", &[1, 3, 8, 16]);
    // A window by key must not sort the rows before they are numbered.
    let placed = frame.assign("m", frame.groupby(["k"]).cumsum().col("n"));
    let ranked =
        placed.assign("r", placed.groupby(["k"]).select(["n"]).rank(Rank::default().descending()).col("n"));
    assert_ints(&ranked, "m", &[0, 1, 2, 3, 5, 7, 9, 12, 15, 18]);
    assert_floats(&ranked.col("r"), &some(&[4.0, 3.0, 3.0, 3.0, 2.0, 2.0, 2.0, 1.0, 1.0, 1.0]));
}

#[test]
fn large_values_leave_no_trace_in_windows() {
    let x = Series::from_values("x", vec![1e16, 1.0, 2.0, 4.0, 4.0, 4.0]);
    assert_floats(&x.rolling(2).sum(), &some(&[N, 1e16, 3.0, 6.0, 8.0, 8.0]));
    assert_floats(&x.rolling(2).mean(), &some(&[N, 5e15, 1.5, 3.0, 4.0, 4.0]));
    assert_floats(
        &x.rolling(2).var().keep_where(&x.lt(5), f64::NAN),
        &some(&[N, 4.999_999_999_999_999e31, 0.5, 2.0, 0.0, 0.0]),
    );
    assert_floats(&x.rolling(1).min_periods(0).sum(), &some(&[1e16, 1.0, 2.0, 4.0, 4.0, 4.0]));
    assert_eq!(x.idxmax().unwrap().as_i64(), Some(0));
    assert_eq!(gaps().idxmin().unwrap().as_i64(), Some(2));
}

#[test]
fn long_windows_and_many_rows() {
    let n: Vec<i64> = (0..5000).collect();
    let part = |from: usize, to: usize| DataFrame::from_columns([("n", n[from..to].to_vec().into())]);
    let frame = DataFrame::concat(&[part(0, 1), part(1, 3000), part(3000, 5000)], true);
    let long = frame.col("n").rolling(2000);
    let last = |s: Series| s.values::<f64>().unwrap()[4999];
    assert_eq!(last(long.var()), Some(333_500.0));
    assert_eq!(last(long.sum()), Some(7_999_000.0));
    assert_ints(&frame.cumsum().tail(1), "n", &[12497500]);
    // The frames that were put together are sorted each for itself, and merged.
    let plan = frame.cumsum().explain().unwrap().to_string();
    let last = plan.rsplit("stage 1").next().unwrap();
    assert!(last.contains("SortPreservingMergeExec") && !last.contains("SortExec"), "{plan}");
}

#[test]
fn a_limit_leaves_windows_the_rows_that_they_need() {
    let frame = three_parts();
    let first = |series: Series, expected: &[i64]| {
        assert_ints(&series.rename("x").to_frame().head(expected.len()), "x", expected);
    };
    let n = frame.col("n");
    first(n.shift(-2), &[2, 3]);
    first(n.diff(-1), &[-1, -1]);
    first(
        n.rank(Rank::by(RankMethod::Min).descending()).astype(arrow::datatypes::DataType::Int64),
        &[10, 9, 8],
    );
    first(
        n.rolling(4).min_periods(1).center(true).sum().astype(arrow::datatypes::DataType::Int64),
        &[1, 3, 6],
    );
    let sorted = frame.sort_values(["k"], Sort::descending());
    first(sorted.col("n").shift(-1), &[5, 8, 1]);
    first(sorted.groupby(["k"]).shift(-1).col("n"), &[5, 8]);
    let gaps = gaps().to_frame();
    assert_floats(&gaps.bfill().head(2).col("x"), &some(&[3.0, 3.0]));
    assert_floats(&gaps.head(2).bfill().col("x"), &some(&[3.0, 3.0]));
    assert_floats(&gaps.interpolate().tail(4).col("x"), &some(&[2.5, 1.0, 5.0, 9.0]));
}

#[test]
fn programs_of_several_windows() {
    let frame = three_parts();
    // The signal of a crossing: a short mean above a long one, and where that changes.
    let n = &frame.col("n") * &frame.col("k");
    let with = frame.assign("x", n);
    let (short, long) = (with.col("x").rolling(2).mean(), with.col("x").rolling(4).mean());
    let crossed = with.assign("above", short.gt(&long).astype(arrow::datatypes::DataType::Int64));
    assert_ints(&crossed, "above", &[0, 0, 0, 1, 0, 1, 1, 0, 1, 1]);
    let turns = crossed.filter(&crossed.col("above").diff(1).ne(0));
    assert_ints(&turns, "n", &[0, 3, 4, 5, 7, 8]);
    // Sessions: a running count of starts is the key of groups.
    let starts = frame.col("k").lt(frame.col("k").shift(1)).astype(arrow::datatypes::DataType::Int64);
    let sessions = frame.assign("session", starts.cumsum());
    assert_ints(&sessions.groupby(["session"]).sum(), "n", &[3, 12, 21, 9]);
    let largest = sessions.groupby(["session"]).agg([("n", tharsis_dataframe::Aggregate::Max)]);
    assert_ints(&largest.cumsum(), "n", &[2, 7, 15, 24]);
    // The two largest of each group by rank, then joined back.
    let ranked =
        frame.assign("r", frame.groupby(["k"]).select(["n"]).rank(Rank::default().descending()).col("n"));
    let top = ranked.filter(&ranked.col("r").le(2)).sort_values(["k", "r"], Sort::ascending());
    assert_ints(&top, "n", &[9, 6, 7, 4, 8, 5]);
}

#[test]
fn a_limit_does_not_change_a_value_of_all_rows() {
    let frame = three_parts();
    let totals = frame.groupby(["k"]).transform(Aggregate::Sum);
    let all = frame.eval_series("n.sum()", &[]).rename("n").to_frame();
    let shifted = frame.col("n").cumsum().shift(-1).rename("n").to_frame();
    for whole in [totals, all, shifted] {
        let expected = whole.collect().expect("all rows").column::<f64>("n").expect("sums");
        for rows in [1, 2, 5] {
            let first = whole.head(rows);
            for found in each_executor(|executor| first.collect_on(executor)?.column::<f64>("n")) {
                assert_eq!(found, expected[..rows], "{}", first.explain().expect("a plan"));
            }
        }
    }
}

#[test]
fn windows_have_ranks_and_distinct_values() {
    let x = gaps();
    let rolling = x.rolling(3).min_periods(1);
    assert_floats(&rolling.first(), &some(&[N, 3.0, 3.0, 3.0, 1.0, 4.0, 1.0, 1.0]));
    assert_floats(&rolling.last(), &some(&[N, 3.0, 1.0, 4.0, 4.0, 1.0, 5.0, 9.0]));
    assert_floats(&rolling.nunique(), &some(&[N, 1.0, 2.0, 3.0, 2.0, 2.0, 2.0, 3.0]));
    assert_floats(&rolling.rank(Rank::default()), &some(&[N, 1.0, 1.0, 3.0, N, 1.0, 2.0, 3.0]));
    let largest = x.expanding().rank(Rank::by(RankMethod::Min).descending().pct());
    assert_floats(&largest, &some(&[N, 1.0, 1.0, 1.0 / 3.0, N, 0.75, 0.2, 1.0 / 6.0]));
    let refused = x.rolling(3).rank(Rank::by(RankMethod::Dense)).dtype().unwrap_err();
    assert_eq!(refused.class(), "ValueError");
    let faded = x.ewm().alpha(0.5);
    assert_eq!(faded.agg(Aggregate::Mean).values::<f64>().unwrap(), faded.mean().values::<f64>().unwrap());
    assert_eq!(faded.agg(Aggregate::Max).dtype().unwrap_err().class(), "ValueError");
    assert_eq!(rolling.pipe(|windows| windows.sum().values::<f64>().unwrap().len()), 8);
}

#[test]
fn infinite_values_are_missing_in_spans_of_time() {
    let days = date_range("2024-01-01", 3, "D");
    let frame = DataFrame::from_columns([("v", vec![1.0, f64::INFINITY, 2.0].into())]);
    let frame = frame.assign("t", days).set_index(["t"]);
    let sums = frame.col("v").rolling_span("2D");
    assert_floats(&sums.sum(), &[Some(1.0), Some(1.0), Some(2.0)]);
    assert_floats(&sums.count(), &[Some(1.0), Some(2.0), Some(2.0)]);
}

#[test]
fn windows_have_names_that_no_column_has() {
    // A plan of this column, another one and the order has three: the first window would be of this name.
    let frame =
        DataFrame::from_columns([("x", vec![1, 2].into()), ("__tharsis_window_3", vec![3, 4].into())]);
    assert_eq!(frame.shift(1).col("x").values::<i64>().unwrap(), [None, Some(1)]);
    assert_eq!(frame.shift(1).col("__tharsis_window_3").values::<i64>().unwrap(), [None, Some(3)]);
    let groups = DataFrame::from_columns([
        ("k", vec![1, 1, 2].into()),
        ("a", vec![1, 2, 3].into()),
        ("b", vec![4, 5, 6].into()),
    ]);
    let filled = groups.groupby(["k"]).rolling(2).sum().bfill();
    assert_eq!(filled.col("a").values::<f64>().unwrap(), [Some(3.0), Some(3.0), None]);
    assert_eq!(filled.col("b").values::<f64>().unwrap(), [Some(9.0), Some(9.0), None]);
}
