//! Tables as texts and HTML, as pandas 3.1 prints them.

use tharsis_dataframe::{DataFrame, date_range, to_datetime};

#[track_caller]
fn assert_shown(frame: &DataFrame, expected: &str) {
    assert_eq!(format!("\n{}\n", frame.collect().unwrap()), expected);
}

fn mixed() -> DataFrame {
    DataFrame::from_columns([
        ("n", vec![1, -20, 3].into()),
        ("x", vec![Some(1.5), None, Some(-0.25)].into()),
        ("text", vec![Some("a"), Some("long text"), None].into()),
        ("yes", vec![true, false, true].into()),
    ])
}

#[test]
fn columns_are_aligned_right_and_the_index_left() {
    assert_shown(
        &mixed(),
        "
    n     x       text    yes
0   1  1.50          a   True
1 -20   NaN  long text  False
2   3 -0.25        NaN   True
",
    );
    let heads =
        DataFrame::from_columns([("a long header", vec![1].into()), ("another header", vec!["x"].into())]);
    assert_shown(
        &heads,
        "
   a long header another header
0              1              x
",
    );
}

#[test]
fn floats_have_as_many_decimals_as_they_need() {
    let floats = |values: Vec<Option<f64>>| DataFrame::from_columns([("v", values.into())]);
    let big = floats(vec![Some(1.0), Some(1_234_567.891), Some(0.1)]);
    assert_shown(
        &big,
        "
             v
0        1.000
1  1234567.891
2        0.100
",
    );
    let huge = floats(vec![Some(1.0), Some(1e300), Some(0.1)]);
    assert_shown(
        &huge,
        "
               v
0   1.000000e+00
1  1.000000e+300
2   1.000000e-01
",
    );
    let small = floats(vec![Some(1.0), Some(1e-9), None]);
    assert_shown(
        &small,
        "
              v
0  1.000000e+00
1  1.000000e-09
2           NaN
",
    );
    let whole = floats(vec![Some(1.0), Some(2.0), Some(f64::INFINITY)]);
    assert_shown(
        &whole,
        "
     v
0  1.0
1  2.0
2  inf
",
    );
}

#[test]
fn times_and_the_levels_of_an_index() {
    let texts = DataFrame::from_columns([
        ("d", vec![Some("2024-01-01"), None].into()),
        ("t", vec!["2024-01-01 10:00", "2024-01-02 00:00"].into()),
    ]);
    let times = texts.assign("d", to_datetime(&texts.col("d"))).assign("t", to_datetime(&texts.col("t")));
    assert_shown(
        &times,
        "
           d                   t
0 2024-01-01 2024-01-01 10:00:00
1        NaT 2024-01-02 00:00:00
",
    );
    let frame = DataFrame::from_columns([
        ("k", vec!["a", "b", "a", "a"].into()),
        ("j", vec![1, 2, 2, 1].into()),
        ("v", vec![1, 2, 3, 4].into()),
    ]);
    let one = frame.groupby(["k"]).sum();
    assert_eq!(one.collect().unwrap().to_string(), "   j  v\nk      \na  4  8\nb  2  2");
    let two = frame.groupby(["k", "j"]).sum();
    assert_eq!(two.collect().unwrap().to_string(), "     v\nk j   \na 1  5\n  2  3\nb 2  2");
}

#[test]
fn long_and_wide_tables_are_cut() {
    let long =
        DataFrame::from_columns([("n", (0..100).collect::<Vec<i64>>().into()), ("t", vec!["x"; 100].into())]);
    assert_shown(
        &long,
        "
     n  t
0    0  x
1    1  x
2    2  x
3    3  x
4    4  x
..  .. ..
95  95  x
96  96  x
97  97  x
98  98  x
99  99  x

[100 rows x 2 columns]
",
    );
    let labels: Vec<String> = (0..12).map(|at| format!("column_{at}")).collect();
    let columns = labels.iter().enumerate().map(|(at, label)| (label.as_str(), vec![at as i64].into()));
    assert_shown(
        &DataFrame::from_columns(columns),
        "
   column_0  column_1  column_2  ...  column_9  column_10  column_11
0         0         1         2  ...         9         10         11

[1 rows x 12 columns]
",
    );
    let texts = ["a".repeat(50), "b".repeat(49)];
    assert_shown(
        &DataFrame::from_columns([("t", texts.to_vec().into())]),
        &format!("\n{}t\n0  {}...\n1  {}\n", " ".repeat(51), "a".repeat(46), texts[1]),
    );
    let empty = long.head(0);
    assert_shown(&empty, "\nEmpty DataFrame\nColumns: [n, t]\nIndex: []\n");
}

#[test]
fn tables_are_written_as_html() {
    let frame =
        DataFrame::from_columns([("k", vec!["a<b"].into()), ("v", vec![0.5].into())]).set_index(["k"]);
    let expected = "<table border=\"1\" class=\"dataframe\">
  <thead>
    <tr style=\"text-align: right;\">
      <th></th>
      <th>v</th>
    </tr>
    <tr>
      <th>k</th>
      <th></th>
    </tr>
  </thead>
  <tbody>
    <tr>
      <th>a&lt;b</th>
      <td>0.5</td>
    </tr>
  </tbody>
</table>";
    assert_eq!(frame.collect().unwrap().to_html().unwrap(), expected);
    let labels: Vec<String> = (0..21).map(|at| format!("c{at}")).collect();
    let columns = labels.iter().map(|label| (label.as_str(), vec![7; 100].into()));
    let html = DataFrame::from_columns(columns).collect().unwrap().to_html().unwrap();
    assert!(html.contains("<th>c9</th>\n      <th>...</th>\n      <th>c11</th>"), "{html}");
    assert!(html.ends_with("</table>\n<p>100 rows × 21 columns</p>"), "{html}");
    assert_eq!(html.matches("<td>7</td>").count(), 10 * 20);
}

#[test]
fn a_frame_is_shown_without_a_run() {
    assert_eq!(mixed().to_string(), "DataFrame[n: Int64, x: Float64, text: Utf8, yes: Boolean]");
    assert_eq!((&mixed().col("x") * 2).to_string(), "Series[x: Float64]");
    assert!(mixed().select(["m"]).to_string().contains("no column"));
    let days = date_range("2024-01-01", 1, "D").to_frame();
    assert!(days.to_string().starts_with("DataFrame[0: Timestamp"));
}
