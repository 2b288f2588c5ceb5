//! Columns as rows and rows as columns, and values of whole frames, with the results of pandas 3.1.

use crate::executors::{each_executor, three_parts};
use tharsis_dataframe::{
    Aggregate, Cut, DataFrame, JoinKind, Melt, Merge, Native, Series, Sort, Value, crosstab, cut, qcut,
    to_datetime,
};

#[track_caller]
fn assert_column<T: Native + PartialEq + std::fmt::Debug>(
    frame: &DataFrame,
    label: &str,
    expected: &[Option<T>],
) {
    for found in each_executor(|executor| frame.collect_on(executor)?.column::<T>(label)) {
        assert_eq!(found, expected);
    }
}

#[track_caller]
fn assert_ints(frame: &DataFrame, label: &str, expected: &[i64]) {
    assert_column(frame, label, &expected.iter().copied().map(Some).collect::<Vec<_>>());
}

#[track_caller]
fn assert_texts(frame: &DataFrame, label: &str, expected: &[&str]) {
    assert_column(frame, label, &expected.iter().map(|text| Some((*text).to_owned())).collect::<Vec<_>>());
}

#[track_caller]
fn assert_series<T: Native + PartialEq + std::fmt::Debug + Clone>(series: &Series, expected: &[T]) {
    let expected: Vec<Option<T>> = expected.iter().cloned().map(Some).collect();
    assert_column(&series.rename("v").to_frame(), "v", &expected);
}

#[test]
fn columns_become_rows() {
    let frame = three_parts();
    let long = frame.melt(["k"], ["n"]);
    assert_eq!(long.columns().unwrap(), ["k", "variable", "value"]);
    assert_ints(&long, "value", &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
    let all = frame.tail(2).melt_with([], [], &Melt::default().var_name("what").value_name("number"));
    assert_texts(&all, "what", &["n", "n", "k", "k"]);
    assert_ints(&all, "number", &[8, 9, 2, 0]);
    assert_ints(&all.reset_index(false), "index", &[0, 1, 2, 3]);
    let mixed = DataFrame::from_columns([("i", vec![1, 2].into()), ("x", vec![Some(0.5), None].into())]);
    assert_column(&mixed.melt([], []), "value", &[Some(1.0), Some(2.0), Some(0.5), None]);
    let texts = mixed.assign("t", "a");
    assert_eq!(texts.melt([], []).check().unwrap_err().class(), "TypeError");
    assert_eq!(frame.melt(["m"], []).check().unwrap_err().class(), "KeyError");
    let none = frame.select(["k"]).melt(["k"], []);
    assert_eq!(none.columns().unwrap(), ["k", "variable", "value"]);
    assert_column::<f64>(&none, "value", &[]);
    assert_texts(&none, "variable", &[]);
}

#[test]
fn columns_become_a_level_of_the_index_and_come_back() {
    let stacked = three_parts().tail(2).stack();
    assert_ints(&stacked, "0", &[8, 2, 9, 0]);
    let flat = stacked.reset_index(false);
    assert_ints(&flat, "level_0", &[8, 8, 9, 9]);
    assert_texts(&flat, "level_1", &["n", "k", "n", "k"]);
    let back = stacked.unstack();
    assert_eq!(back.columns().unwrap(), ["k", "n"]);
    assert_ints(&back, "n", &[8, 9]);
    let half = three_parts().col("n").floordiv(5).rename("half");
    let sums = three_parts().assign("half", &half).groupby(["k", "half"]).sum();
    let wide = sums.unstack();
    assert_eq!(wide.columns().unwrap(), ["0", "1"]);
    assert_ints(&wide, "1", &[15, 7, 13]);
}

#[test]
fn tables_of_two_keys() {
    let frame = three_parts();
    let frame = frame.assign("p", frame.col("n").floordiv(5));
    let table = frame.pivot_table(["k"], "p", "n", Aggregate::Sum);
    assert_eq!(table.columns().unwrap(), ["0", "1"]);
    assert_ints(&table, "0", &[3, 5, 2]);
    assert_ints(&table, "1", &[15, 7, 13]);
    let means = frame.tail(4).pivot_table(["k"], "p", "n", Aggregate::Mean);
    assert_column(&means, "1", &[Some(7.5), Some(7.0), Some(8.0)]);
    let same = crosstab(&frame.col("k"), &frame.col("k"));
    assert_eq!(same.columns().unwrap(), ["0", "1", "2"]);
    assert_ints(&same, "0", &[4, 0, 0]);
    assert_ints(&same, "1", &[0, 3, 0]);
    let twice = frame.groupby(["k"]).agg([("p", Aggregate::Max), ("p", Aggregate::Max)]);
    assert_eq!(twice.check().unwrap_err().class(), "ValueError");
    let counts = crosstab(&frame.col("k"), &frame.col("p"));
    assert_ints(&counts, "0", &[2, 2, 1]);
    assert_ints(&counts, "1", &[2, 1, 2]);
    assert_eq!(counts.index_names().unwrap(), [Some("k".to_owned())]);
    let halves = frame.assign("p", frame.col("p") / 2).pivot_table(["k"], "p", "n", Aggregate::Count);
    assert_eq!(halves.columns().unwrap(), ["0.0", "0.5"]);
    let odd = frame.assign("p", frame.col("p").eq(1)).pivot_table(["k"], "p", "n", Aggregate::Max);
    assert_eq!(odd.columns().unwrap(), ["False", "True"]);
    let few = frame.head(4).pivot(["k"], "n", "p");
    assert_column(&few, "3", &[Some(0), None, None]);
    assert_eq!(frame.pivot(["k"], "p", "n").check().unwrap_err().class(), "ValueError");
    assert_eq!(frame.pivot(["kk"], "p", "n").check().unwrap_err().class(), "KeyError");
}

#[test]
fn lists_become_rows() {
    let texts = vec![Some("a,b"), Some("c"), None];
    let frame = DataFrame::from_columns([("id", vec![1, 2, 3].into()), ("t", texts.into())]);
    let long = frame.assign("t", frame.col("t").str().split(Some(","))).explode("t");
    assert_ints(&long, "id", &[1, 1, 2, 3]);
    let letters = ["a", "b", "c"].map(|text| Some(text.to_owned()));
    assert_column(&long, "t", &[letters.to_vec(), vec![None]].concat());
    assert_ints(&long.reset_index(false), "index", &[0, 0, 1, 2]);
    let blank = Series::from_values("t", vec!["", "x y"]);
    let words = blank.to_frame().assign("t", blank.str().split(None)).explode("t");
    assert_column(&words, "t", &[None, Some("x".to_owned()), Some("y".to_owned())]);
    let many = three_parts().assign("l", three_parts().col("n").astype(arrow::datatypes::DataType::Utf8));
    let many = many.assign("l", many.col("l").str().repeat(2).str().split(Some("5"))).explode("l");
    assert_ints(&many, "n", &[0, 1, 2, 3, 4, 5, 5, 5, 6, 7, 8, 9]);
}

#[test]
fn samples_are_the_same_for_a_seed() {
    let first = three_parts().sample(4, 7).col("n").values::<i64>().unwrap();
    let found = each_executor(|executor| three_parts().sample(4, 7).collect_on(executor)?.column::<i64>("n"));
    found.iter().for_each(|found| assert_eq!(*found, first));
    assert_ne!(three_parts().sample(10, 8).col("n").values::<i64>().unwrap()[..4], first);
    assert_ints(
        &three_parts().sample(10, 3).sort_index(Sort::ascending()),
        "n",
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9],
    );
    assert_eq!(three_parts().sample_part(0.25, 1).len().unwrap(), 2);
    assert_eq!(three_parts().sample_part(1.5, 1).check().unwrap_err().class(), "ValueError");
}

#[test]
fn frames_are_summed_up() {
    let frame = three_parts();
    let sums = frame.sum();
    assert_ints(&sums, "0", &[45, 9]);
    assert_texts(&sums.reset_index(false), "index", &["n", "k"]);
    let ends = frame.agg_rows([Aggregate::Min, Aggregate::Max, Aggregate::Last]);
    assert_ints(&ends, "n", &[0, 9, 9]);
    assert_ints(&ends, "k", &[0, 2, 0]);
    let mixed = DataFrame::from_columns([
        ("a", vec![1, 2, 3, 4].into()),
        ("b", vec![Some(1.5), None, Some(2.5), Some(3.5)].into()),
        ("t", vec!["x", "y", "z", "x"].into()),
    ]);
    let described = mixed.describe();
    assert_eq!(described.columns().unwrap(), ["a", "b"]);
    let a = [4.0, 2.5, 1.290_994_448_735_805_6, 1.0, 1.75, 2.5, 3.25, 4.0];
    assert_column(&described, "a", &a.map(Some));
    assert_column(&described, "b", &[3.0, 2.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5].map(Some));
    let labels = ["count", "mean", "std", "min", "25%", "50%", "75%", "max"];
    assert_texts(&described.reset_index(false), "index", &labels);
    assert_column(&mixed.mean(), "0", &[Some(2.5), Some(2.5)]);
    assert_ints(&mixed.count(), "0", &[4, 3, 4]);
    assert_ints(&mixed.nunique(), "0", &[4, 3, 3]);
    assert_eq!(mixed.max().check().unwrap_err().class(), "TypeError");
    assert_eq!(mixed.select(["t"]).sum().check().unwrap_err().class(), "ValueError");
}

#[test]
fn values_of_frames_change() {
    let frame = DataFrame::from_columns([
        ("a", vec![Some(-1), None, Some(3)].into()),
        ("x", vec![Some(0.125), Some(-2.5), None].into()),
    ]);
    assert_column(&frame.abs(), "a", &[Some(1), None, Some(3)]);
    assert_column(&frame.round(2), "x", &[Some(0.12), Some(-2.5), None]);
    assert_column(&frame.clip(-1, 2), "a", &[Some(-1), None, Some(2)]);
    assert_column(&frame.clip(-1, 2), "x", &[Some(0.125), Some(-1.0), None]);
    assert_column(&frame.replace([(Value::missing(), 0)]), "x", &[Some(0.125), Some(-2.5), Some(0.0)]);
    assert_column(&frame.replace([(3, -3)]), "a", &[Some(-1), None, Some(-3)]);
    assert_column(&frame.isin([Value::from(3), Value::missing()]), "a", &[false, true, true].map(Some));
    let kept = frame.keep_where(&frame.col("a").gt(0), None::<i64>);
    assert_column::<f64>(&kept, "x", &[None, None, None]);
    assert_column(&frame.mask(&frame.col("a").isna(), 9), "x", &[Some(0.125), Some(9.0), None]);
    let filled = frame.keep_where_each(&frame.notna(), 0);
    assert_column(&filled, "a", &[Some(-1), Some(0), Some(3)]);
    assert_column(&filled, "x", &[Some(0.125), Some(-2.5), Some(0.0)]);
    assert_eq!(frame.keep_where(&frame.col("a").gt(0), "no").check().unwrap_err().class(), "TypeError");
    assert_eq!(frame.assign("t", "a").abs().check().unwrap_err().class(), "TypeError");
}

#[test]
fn columns_move_and_duplicates_are_known() {
    let frame = three_parts();
    let inserted = frame.insert(1, "m", &frame.col("n") * 2);
    assert_eq!(inserted.columns().unwrap(), ["n", "m", "k"]);
    let (popped, rest) = inserted.pop("m");
    assert_series(&popped, &[0_i64, 2, 4, 6, 8, 10, 12, 14, 16, 18]);
    assert_eq!(rest.columns().unwrap(), ["n", "k"]);
    assert_eq!(frame.insert(0, "k", 1).check().unwrap_err().class(), "ValueError");
    assert_eq!(frame.insert(3, "z", 1).check().unwrap_err().class(), "IndexError");
    let wider = frame.reindex_columns(["k", "z"]);
    assert_column::<f64>(&wider.head(2), "z", &[None, None]);
    let again = frame.duplicated_in(["k"]);
    assert_series(&again, &[[false; 3].as_slice(), &[true; 7]].concat());
    assert_ints(&frame.filter(&!&again), "n", &[0, 1, 2]);
    assert_series(&frame.duplicated(), &[false; 10]);
}

#[test]
fn texts_become_truth_values_and_numbers_intervals() {
    let frame = DataFrame::from_columns([
        ("t", vec![Some("b"), None, Some("a")].into()),
        ("n", vec![1, 2, 3].into()),
    ]);
    let dummies = frame.get_dummies([]);
    assert_eq!(dummies.columns().unwrap(), ["n", "t_a", "t_b"]);
    assert_column(&dummies, "t_a", &[false, false, true].map(Some));
    let x = Series::from_values("x", vec![0.0, 0.5, 1.0, 2.5]);
    let expected = [None, Some("(0.0, 0.5]"), Some("(0.5, 1.5]"), None].map(|text| text.map(str::to_owned));
    assert_column(&cut(&x, &Cut::at(&[0.0, 0.5, 1.5])).to_frame(), "x", &expected);
    let quarters = qcut(&Series::from_values("q", (1..9).collect::<Vec<i64>>()), 4, None);
    let names = ["(0.999, 2.75]", "(2.75, 4.5]", "(4.5, 6.25]", "(6.25, 8.0]"];
    assert_texts(&quarters.to_frame(), "q", &names.map(|name| [name; 2]).concat());
    assert_eq!(cut(&x, &Cut::at(&[1.0, 1.0, 2.0])).dtype().unwrap_err().class(), "ValueError");
}

/// Long measurements to a wide table of the mean of each month, and back to those above it.
#[test]
fn a_program_reshapes_measurements() {
    let wide = DataFrame::from_columns([
        ("day", vec!["2024-01-05", "2024-01-20", "2024-02-03", "2024-02-10"].into()),
        ("oslo", vec![Some(-4.0), Some(2.0), None, Some(1.0)].into()),
        ("rome", vec![Some(8.0), Some(10.0), Some(11.0), Some(15.0)].into()),
    ]);
    let long = wide.melt_with(["day"], [], &Melt::default().var_name("city").value_name("degrees")).dropna();
    let long = long.assign("month", to_datetime(&long.col("day")).dt().month_name());
    let means = long.pivot_table(["month"], "city", "degrees", Aggregate::Mean);
    assert_texts(&means.reset_index(false), "month", &["February", "January"]);
    assert_column(&means, "oslo", &[Some(1.0), Some(-1.0)]);
    assert_column(&means, "rome", &[Some(13.0), Some(9.0)]);
    let back = means.reset_index(false).melt_with(
        ["month"],
        ["oslo", "rome"],
        &Melt::default().var_name("city").value_name("mean"),
    );
    let both = long.merge(&back, Merge::on(["month", "city"]));
    let warm = both.filter(&both.col("degrees").gt(both.col("mean")));
    assert_texts(&warm, "day", &["2024-01-20", "2024-01-20", "2024-02-10"]);
    assert_texts(&warm, "city", &["oslo", "rome", "rome"]);
    let hot = warm.col("city").value_counts();
    assert_ints(&hot, "count", &[2, 1]);
}

#[test]
fn columns_of_one_label_are_refused_by_name() {
    let frame = DataFrame::from_columns([("a", vec![1, 2].into()), ("b", vec![3, 4].into())]);
    let twice = DataFrame::from_columns([("a", vec![1].into()), ("a", vec![2].into())]);
    let rows = frame.set_axis(["x", "x"]);
    for made in [
        twice,
        rows.transpose(),
        DataFrame::concat_columns([&frame, &frame], JoinKind::Outer),
        frame.set_columns(["x", "x"]),
    ] {
        let error = made.collect().unwrap_err();
        assert_eq!(error.class(), "NotImplemented", "{error}");
        assert!(error.to_string().contains("two columns would have the label"), "{error}");
    }
    // Equal labels of rows that are the same on both sides meet row by row.
    let others = DataFrame::from_columns([("c", vec![5, 6].into())]).set_axis(["x", "x"]);
    let both = DataFrame::concat_columns([&rows, &others], JoinKind::Outer);
    assert_eq!(both.col("c").values::<i64>().unwrap(), [Some(5), Some(6)]);
    let one = DataFrame::from_columns([("c", vec![5].into())]).set_axis(["x"]);
    let error = DataFrame::concat_columns([&rows, &one], JoinKind::Outer).collect().unwrap_err();
    assert!(error.to_string().contains("duplicate labels"), "{error}");
}

/// Two cells of three in a table with texts as values, and a column for missing labels.
fn many_cells(rows: i64, columns: i64) -> DataFrame {
    let cells: Vec<(i64, i64)> =
        (0..rows * columns).filter(|at| at % 3 != 1).map(|at| (at / columns, at % columns)).collect();
    let label = |column: i64| (column != 0).then(|| column as f64 / 2.0);
    DataFrame::from_columns([
        ("row", cells.iter().map(|(row, _)| *row).rev().collect::<Vec<_>>().into()),
        ("column", cells.iter().map(|(_, column)| label(*column)).rev().collect::<Vec<_>>().into()),
        (
            "text",
            cells.iter().map(|(row, column)| format!("{row}/{column}")).rev().collect::<Vec<_>>().into(),
        ),
    ])
}

#[test]
fn a_wide_table_has_the_cells_of_a_narrow_one() {
    let cells = many_cells(4, 91);
    let wide = cells.pivot(["row"], "column", "text");
    let labels = wide.columns().unwrap();
    assert_eq!((labels.len(), &*labels[0], &*labels[1], &*labels[90]), (91, "nan", "0.5", "45.0"));
    for table in each_executor(|executor| wide.collect_on(executor)) {
        for (column, label) in labels.iter().enumerate() {
            let expected: Vec<Option<String>> =
                (0..4).map(|row| ((row * 91 + column) % 3 != 1).then(|| format!("{row}/{column}"))).collect();
            assert_eq!(table.column::<String>(label).unwrap(), expected, "{label}");
        }
    }
    // The same of few columns, which are made in another way.
    let few = cells.filter(&cells.col("column").lt(10)).pivot(["row"], "column", "text");
    let labels = few.columns().unwrap();
    assert_eq!(labels.len(), 19);
    let both = few.collect().unwrap();
    let of_wide = wide.select(labels.iter().map(String::as_str)).collect().unwrap();
    assert_eq!(both, of_wide);
    let sizes = cells.dropna().pivot_table(["row"], "column", "text", Aggregate::Size);
    assert_eq!(sizes.columns().unwrap().len(), 90);
    assert_eq!(sizes.col("1.0").values::<i64>().unwrap(), [Some(1), Some(1), None, Some(1)]);
}
