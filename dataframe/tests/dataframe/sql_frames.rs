//! Frames that statements read: `select * from f` has the rows of `f`, whatever steps have made them.

use tharsis_dataframe::{AsOf, DataFrame, Series, Sort, SqlAnswer, SqlSession, Table, sql, to_datetime};

/// Times in Greenwich. The clock of Berlin is put back between the second and the third.
const TIMES: [&str; 6] = [
    "2024-10-26 22:10",
    "2024-10-27 00:30",
    "2024-10-27 01:20",
    "2024-10-27 01:50",
    "2024-10-27 22:50",
    "2024-10-27 23:20",
];

/// These times by the clock of a zone, and numbers from 1.
fn events(zone: &str) -> DataFrame {
    let times = to_datetime(&Series::from_values("t", TIMES.to_vec()));
    let numbers: Vec<i64> = (1..=TIMES.len() as i64).collect();
    let frame = DataFrame::from_columns([("v", numbers.into())]);
    frame.assign("t", times.dt().tz_localize("UTC").dt().tz_convert(zone))
}

/// The rows of a frame in the order of `t`, by each door of statements.
fn rows_by_doors(frame: &DataFrame) -> Vec<(&'static str, Table)> {
    let query = "select * from f order by t";
    let mut session = SqlSession::default();
    session.register("f", frame).unwrap();
    for statement in [
        "create view v as select * from f",
        "create table made as select * from f",
        "prepare p(bigint) as select * from f where $1 > 0 order by t",
    ] {
        session.run(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    let mut found = vec![
        ("sql", sql(query, &[("f", frame)]).collect().unwrap()),
        ("a frame of a session", session.frame(query).collect().unwrap()),
    ];
    for statement in [query, "select * from v order by t", "select * from made order by t", "execute p(1)"] {
        let answer = session.execute(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        let SqlAnswer::Rows(rows) = answer else { panic!("{statement} has no rows") };
        found.push((statement, rows));
    }
    found
}

#[test]
fn times_of_a_zone_are_those_of_the_frame() {
    let berlin = events("Europe/Berlin");
    let labelled = berlin.set_index(["t"]);
    let parts = berlin.assign("hour", berlin.col("t").dt().hour());
    let parts = parts.assign("day", parts.col("t").dt().date());
    let parts = parts.assign("reading", parts.col("t").dt().tz_remove());
    let parts = parts.assign("floor", parts.col("t").dt().floor("D"));
    let parts = parts.assign("ceil", parts.col("t").dt().ceil("D"));
    for (step, frame) in [
        ("parts", parts),
        ("hours", berlin.resample("t", "h").sum().reset_index(false)),
        ("days", berlin.resample("t", "D").sum().reset_index(false)),
        ("windows", labelled.rolling_span("1h").sum().reset_index(false)),
        ("nearest", berlin.merge_asof(&events("America/New_York"), AsOf::on("t"))),
        ("night", labelled.between_time("02:00", "02:40").reset_index(false)),
    ] {
        let expected = frame.sort_values(["t"], Sort::ascending()).reset_index(true).collect().unwrap();
        assert!(!expected.is_empty(), "{step}");
        for (door, rows) in rows_by_doors(&frame) {
            assert_eq!(rows.columns(), expected.columns(), "{step}: {door}");
            assert_eq!(rows.batch().columns(), expected.batch().columns(), "{step}: {door}");
        }
    }
}

#[test]
fn whole_numbers_of_frames_wrap_and_those_of_statements_do_not() {
    let frame = DataFrame::from_columns([("t", vec![1, 2].into()), ("a", vec![i64::MAX, 2].into())]);
    let squared = frame.assign("b", &frame.col("a") * &frame.col("a"));
    for (door, rows) in rows_by_doors(&squared) {
        assert_eq!(rows.column::<i64>("b").unwrap(), [Some(1), Some(4)], "{door}");
    }
    for value in ["a * a", "b + a", "sum(a)"] {
        let error = sql(&format!("select {value} as c from f"), &[("f", &squared)]).collect();
        assert_eq!(error.unwrap_err().class(), "OverflowError", "{value}");
    }
}

#[test]
fn scans_of_frames_read_what_statements_ask_for() {
    let frame = DataFrame::from_columns([("a", vec![1, 2].into()), ("b", vec![3, 4].into())]);
    let mut session = SqlSession::default();
    session.register("f", &frame.assign("c", &frame.col("a") + &frame.col("b"))).unwrap();
    session.run("create view v as select a as x from f").unwrap();
    for query in ["select a from f where a > 1", "select x from v where x > 1"] {
        let shown = session.run(&format!("explain {query}")).unwrap().concat().join("\n");
        assert!(shown.contains("projection=[a]") && !shown.contains("FrameRows"), "{query}: {shown}");
    }
}

#[test]
fn frames_of_ordered_and_limited_rows_are_read_in_their_order() {
    let t = DataFrame::from_columns([("a", vec![1, 2, 3].into()), ("b", vec![4, 5, 6].into())]);
    let first = sql("select b from t order by a desc limit 2", &[("t", &t)]);
    let again = sql("select b from f order by b desc", &[("f", &first)]);
    for frame in [&first, &again] {
        for query in ["select b from f", "select b from f where b > 0 limit 2"] {
            let found = sql(query, &[("f", frame)]);
            assert_eq!(found.col("b").values::<i64>().unwrap(), [Some(6), Some(5)], "{query}");
        }
    }
    let listed = sql("select array_to_string(array_agg(b), ' ') as l from f", &[("f", &first)]);
    assert_eq!(listed.col("l").values::<String>().unwrap(), [Some("6 5".to_owned())]);
}
