//! Tests of times without seconds, of zones and of what the library does to them.

use crate::sql::SqlSession;

#[track_caller]
fn assert_value(session: &mut SqlSession, value: &str, expected: &str) {
    let rows = session.run(&format!("select {value} from t"));
    assert_eq!(rows.unwrap_or_else(|error| panic!("{value}: {error}")), [[expected]], "{value}");
}

#[test]
fn times_need_no_seconds() {
    let mut session = SqlSession::default();
    let made = "create table t as select timestamp '2024-03-30 06:00:00' as n, '2024-03-30 6:05' as s";
    session.run(made).expect("a table");
    for (value, expected) in [
        ("timestamp '2024-01-02 10:30'", "2024-01-02 10:30:00"),
        ("'2024-03-30 6:00:00'::timestamp", "2024-03-30 06:00:00"),
        ("cast('2024-03-30T6:00' as timestamp)", "2024-03-30 06:00:00"),
        ("try_cast('2024-03-30 25:00' as timestamp)", "NULL"),
        ("cast('2024-03-30 6:00' as date)", "2024-03-30"),
        ("extract(hour from timestamptz '2024-03-30 6:00+02')", "4"),
        ("s::timestamp", "2024-03-30 06:05:00"),
        ("to_timestamp(s)", "2024-03-30 06:05:00"),
        ("n = '2024-03-30 6:00'", "true"),
        ("'2024-03-30 5:59' < n", "true"),
        ("n between '2024-03-30 5:00' and '2024-03-30 6:00'", "true"),
        ("n in ('2024-03-30 7:00', '2024-03-30 6:00')", "true"),
        ("n is distinct from '2024-03-30 6:00'", "false"),
        ("n::text || ' 6:00'", "2024-03-30T06:00:00 6:00"),
        ("cast(s as date)", "2024-03-30"),
        ("try_cast('x' || s as date)", "NULL"),
        ("n < s", "true"),
        ("n between s and s", "false"),
        ("s in (n, n + interval '5 minutes')", "true"),
        ("case n when '2024-03-30 6:00' then 1 else 2 end", "1"),
        ("case s when n then 1 else 2 end", "2"),
        ("nullif(n, '2024-03-30 6:00')", "NULL"),
        ("greatest(n, '2024-03-30 7:00')", "2024-03-30 07:00:00"),
        ("least('2024-03-30 5:00', n)", "2024-03-30 05:00:00"),
        ("nvl2(nullif(n, n), n, '2024-03-30 7:00')", "2024-03-30 07:00:00"),
        ("case when n is null then n else '2024-03-30 7:00' end", "2024-03-30 07:00:00"),
        ("case when n is null then n else s end", "2024-03-30 06:05:00"),
        ("n in (select '2024-03-30 6:00')", "true"),
        ("'2024-03-30 6:00' in (select x.n from t x)", "true"),
        ("(select count(*) from t x where x.n = any (select '2024-03-30 6:00')) = 1", "true"),
        ("(select count(*) from t x where x.n in (select y.s from t y where y.s >= x.s)) = 0", "true"),
        ("(select count(*) from (select x.n from t x union select '2024-03-30 6:00') u) = 1", "true"),
        ("(select count(*) from (select x.s from t x union select x.n from t x) u) = 2", "true"),
        ("(select max(u.n) from (select x.n from t x union select x.s from t x) u)", "2024-03-30 06:05:00"),
        ("date_trunc('hour', '2024-03-30 6:05')", "2024-03-30 06:00:00"),
        ("date_bin(interval '1 hour', n, '2024-03-30 5:30')", "2024-03-30 05:30:00"),
        ("extract(minute from s::timestamp)", "5"),
        ("arrow_cast(s, 'Dictionary(Int32, Utf8)')::timestamp", "2024-03-30 06:05:00"),
        ("n < arrow_cast(s, 'Dictionary(Int32, Utf8)')", "true"),
        ("greatest(n, arrow_cast(s, 'Dictionary(Int32, Utf8)'))", "2024-03-30 06:05:00"),
        ("n in (select arrow_cast('2024-03-30 6:00', 'Dictionary(Int32, Utf8)'))", "true"),
        ("to_timestamp(arrow_cast(s, 'Dictionary(Int32, Utf8)'))", "2024-03-30 06:05:00"),
    ] {
        assert_value(&mut session, value, expected);
    }
    session.run("create view v as select s::timestamp as n from t").expect("a view");
    session.run("create view w as select n from v where n > '2024-03-30 6:04'").expect("a view");
    assert_eq!(session.run("select n from w").expect("a row"), [["2024-03-30 06:05:00"]]);
    session.run("insert into t values ('2024-03-31 7:00', 'x')").expect("a row");
    session.run("update t set n = '2024-03-31 8:00' where n > '2024-03-31 6:00'").expect("a row");
    assert_eq!(session.run("select max(n) from t").expect("a row"), [["2024-03-31 08:00:00"]]);
    session.run("select timestamp '2024-03-30 25:00'").expect_err("no such hour");
}

#[test]
fn moments_are_read_on_the_clock_of_their_zone() {
    let mut session = SqlSession::default();
    let berlin = "arrow_cast('2024-03-30T23:30:00Z', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')";
    session.run(&format!("create table t as select {berlin} as ts")).expect("a table");
    for (value, expected) in [
        ("ts::date", "2024-03-31"),
        ("ts::timestamp::date", "2024-03-31"),
        ("try_cast(ts as timestamp)::date", "2024-03-31"),
        ("to_date(ts)", "2024-03-31"),
        ("arrow_cast(ts, 'Date32')", "2024-03-31"),
        ("arrow_cast(ts, 'Timestamp(Microsecond, None)')", "2024-03-31 00:30:00"),
        ("arrow_try_cast(ts, 'Timestamp(Second, None)')", "2024-03-31 00:30:00"),
        ("cast_to_type(ts, timestamp '2024-01-01 00:00:00')", "2024-03-31 00:30:00"),
        ("try_cast_to_type(ts, timestamp '2024-01-01 00:00:00')", "2024-03-31 00:30:00"),
        ("cast_to_type(timestamp '2024-03-31 00:30:00', ts) = ts", "true"),
        ("arrow_cast('2024-03-31 0:30', 'Timestamp(Second, None)')", "2024-03-31 00:30:00"),
        ("to_local_time(ts)", "2024-03-31 00:30:00"),
        ("ts::time", "00:30:00"),
        ("ts::timestamp::time", "00:30:00"),
        ("ts::timestamp", "2024-03-31 00:30:00"),
        ("extract(hour from ts)", "0"),
        ("extract(hour from ts::timestamp)", "0"),
        ("ts::timestamp = timestamp '2024-03-31 00:30:00'", "true"),
    ] {
        assert_value(&mut session, value, expected);
    }
}

#[test]
fn the_library_casts_to_the_zone_of_greenwich() {
    let mut session = SqlSession::default();
    session.run("create table t as select date '2024-03-31' as d, '2024-03-31' as s").expect("a table");
    for (zone, is_changed) in [("UTC", false), ("+00:00", false), ("+02:00", true), ("Europe/Berlin", true)] {
        session.run(&format!("set time zone = '{zone}'")).expect("a zone");
        for (value, function) in [("d", "tharsis_time_of_reading"), ("s", "tharsis_zoned_texts")] {
            let plan = session.run(&format!("explain select {value}::timestamptz from t")).expect("a plan");
            assert_eq!(plan.concat().concat().contains(function), is_changed, "{zone}: {plan:?}");
        }
    }
}

#[test]
fn texts_beside_keys_of_times_are_times() {
    let mut session = SqlSession::default();
    let berlin = "arrow_cast('2024-03-30T23:30:00Z', 'Timestamp(Microsecond, Some(\"Europe/Berlin\"))')";
    let made = format!("create table t as select {berlin} as k, '2024-03-31 0:30' as s");
    session.run(&made).expect("a table");
    for key in ["k", "k::timestamp"] {
        for rows in [
            "(select @ as k from t) x join (select s as k from t) y using (k)",
            "(select s as k from t) x join (select @ as k from t) y using (k)",
            "(select s as k from t) x natural join (select @ as k from t) y",
            "(select @ from t intersect select s from t) x",
            "(select s from t intersect select @ from t) x",
            "(select @ from t union select s from t) x",
        ] {
            let query = format!("select count(*) from {rows}").replace('@', key);
            assert_eq!(session.run(&query).expect(&query), [["1"]], "{query}");
        }
    }
}

#[test]
fn moments_without_a_local_time_are_errors_or_missing() {
    let mut session = SqlSession::default();
    let moment = "arrow_cast(n, 'Timestamp(Microsecond, Some(\"Asia/Tokyo\"))')";
    for last in [1 - i64::MAX, i64::MAX, 8_210_266_876_799_999_999] {
        session.run(&format!("create or replace table m as select {last} as n")).expect("a table");
        session.run(&format!("create or replace table t as select {moment} as ts from m")).expect("a table");
        assert_value(&mut session, "arrow_try_cast(ts, 'Date32') is null", "true");
        for value in ["arrow_cast(ts, 'Date32')", "to_date(ts)", "to_local_time(ts)"] {
            let error = session.run(&format!("select {value} from t")).expect_err("no such time");
            assert_eq!(error.class(), "ValueError", "{value}: {error}");
        }
        for kind in ["timestamp", "date"] {
            assert_value(&mut session, &format!("try_cast(ts as {kind}) is null"), "true");
            let error = session.run(&format!("select ts::{kind} from t")).expect_err("no such time");
            assert_eq!(error.class(), "ValueError", "{kind}: {error}");
        }
    }
}

#[test]
fn formats_lose_no_part_of_a_time() {
    let mut session = SqlSession::default();
    session.run("create table t as select '01/02/2024 10' as s, '01/02/24 10 PM' as p").expect("a table");
    for (value, expected) in [
        ("to_timestamp('01/02/2024 10', '%d/%m/%Y %H')", "2024-02-01 10:00:00"),
        ("to_timestamp(s, '%d/%m/%Y %H')", "2024-02-01 10:00:00"),
        ("to_timestamp(p, '%d/%m/%y %I %p')", "2024-02-01 22:00:00"),
        ("to_timestamp(s, '%Y', '%d/%m/%Y %-H')", "2024-02-01 10:00:00"),
        ("to_timestamp(s || ':30', '%d/%m/%Y %H', '%d/%m/%Y %H:%M')", "2024-02-01 10:30:00"),
        ("to_timestamp(s || ':30', '%d/%m/%Y %R')", "2024-02-01 10:30:00"),
        ("to_timestamp(nullif(s, s), '%d/%m/%Y %H')", "NULL"),
        ("to_timestamp('01/02/2024', '%d/%m/%Y')", "2024-02-01 00:00:00"),
        ("to_unixtime('01/01/1970 01', '%d/%m/%Y %H')", "3600"),
        ("to_timestamp(arrow_cast(s, 'Dictionary(Int32, Utf8)'), '%d/%m/%Y %H')", "2024-02-01 10:00:00"),
        ("to_timestamp(s, arrow_cast('%d/%m/%Y %H', 'Dictionary(Int32, Utf8)'))", "2024-02-01 10:00:00"),
    ] {
        assert_value(&mut session, value, expected);
    }
    for format in ["%d/%m/%Y %I", "%d/%m/%Y %M", "%d/%m/%Y %p", "%d/%m/%Y %H %S", "%d/%m/%Y %H:%M.%f"] {
        let error = session.run(&format!("select to_timestamp(s, '{format}') from t"));
        let error = error.expect_err("a part that would be left out");
        assert_eq!(error.class(), "ValueError", "{error}");
        assert!(error.to_string().contains("the format"), "{error}");
    }
}

#[test]
fn formats_that_are_no_literals_lose_no_part_of_a_time() {
    let mut session = SqlSession::default();
    let made = "create table t as select * from (values ('01/02/2024 10', '%d/%m/%Y %H'), \
                ('02/02/2024 11:30', '%d/%m/%Y %R'), ('x', null)) as v(s, f)";
    session.run(made).expect("a table");
    let rows = session.run("select to_timestamp(s, f) from t order by s").expect("rows");
    assert_eq!(rows, [["2024-02-01 10:00:00"], ["2024-02-02 11:30:00"], ["NULL"]]);
    session.run("create view v as select to_timestamp(s, f) as n from t").expect("a view");
    let rows = session.run("select n from v order by n").expect("rows");
    assert_eq!(rows, [["2024-02-01 10:00:00"], ["2024-02-02 11:30:00"], ["NULL"]]);
    for call in [
        "to_timestamp(s, '%d/%m/%Y' || ' %H')",
        "to_timestamp('01/02/2024 10', '%d/%m/%Y' || ' %H')",
        "to_timestamp(s, '%Y', case when s > 'x' then '%Y' else '%d/%m/%Y %H' end)",
    ] {
        let rows = session.run(&format!("select {call} from t where s = '01/02/2024 10'"));
        assert_eq!(
            rows.unwrap_or_else(|error| panic!("{call}: {error}")),
            [["2024-02-01 10:00:00"]],
            "{call}"
        );
    }
    session.run("prepare p(text) as select to_timestamp('01/02/2024 10', $1)").expect("a statement");
    let rows = session.run("execute p('%d/%m/%Y %H')").expect("a row");
    assert_eq!(rows, [["2024-02-01 10:00:00"]]);
    let error = session.run("select to_timestamp(s, '%d/%m/%Y' || ' %I') from t").expect_err("no half");
    assert_eq!(error.class(), "ValueError", "{error}");
    assert!(error.to_string().contains("has an hour from 1 to 12, %I, without %p"), "{error}");
}
