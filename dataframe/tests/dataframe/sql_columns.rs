//! Columns of statements: fields of structs, wherever the rows come from.

use std::fs;
use tempfile::TempDir;
use tharsis_dataframe::{DataFrame, SqlSession, read_json, read_parquet, sql};

const LINES: &str = "{\"id\":1,\"s\":{\"x\":3,\"y\":{\"z\":\"a\"}}}\n{\"id\":2,\"s\":{\"x\":1,\"y\":{\"z\":\"b\"}}}\n\
                     {\"id\":3,\"s\":null}\n";

/// Queries of a table `t` of the lines, and their rows.
const FIELDS: [(&str, &[&str]); 19] = [
    ("select s.x from t order by id", &["3", "1", "NULL"]),
    ("select s['x'] from t order by id", &["3", "1", "NULL"]),
    ("select get_field(s, 'x') from t order by id", &["3", "1", "NULL"]),
    ("select t.s.x, id from t order by id", &["3 1", "1 2", "NULL 3"]),
    ("select s.x, s.y.z from t where id = 1", &["3 a"]),
    ("select s.x + 1 as x from t where s.x is not null order by x", &["2", "4"]),
    ("select s.y.z from t order by s.x", &["b", "a", "NULL"]),
    ("select id from t order by s.x desc nulls last", &["1", "2", "3"]),
    ("select id from t where s.x > 1 and s.y.z = 'a'", &["1"]),
    ("select sum(s.x), max(s.y.z) from t", &["4 b"]),
    ("select s.y.z, count(*) from t group by s.y.z order by s.y.z", &["a 1", "b 1", "NULL 1"]),
    ("select distinct s.x from t order by 1", &["1", "3", "NULL"]),
    ("select sum(s.x) over (order by id) from t order by id", &["3", "4", "4"]),
    ("select a.id, b.s.x from t a join t b on a.s.x = b.s.x order by 1", &["1 3", "2 1"]),
    ("select a.s.x from t a left join t b on a.s.x = b.id order by 1", &["1", "3", "NULL"]),
    ("select id from t where s.x = (select max(i.s.x) from t i)", &["1"]),
    ("select id from t o where exists (select 1 from t i where i.s.x < o.s.x)", &["1"]),
    ("with c as (select s from t union all select s from t) select sum(s.x) from c", &["8"]),
    ("select x from (select s.x as x from t) q where x > 1", &["3"]),
];

/// A session for each place that the rows of `t` may come from.
fn sessions(folder: &TempDir) -> Vec<(&'static str, SqlSession)> {
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::write(path("t.jsonl"), LINES).unwrap();
    read_json(&path("t.jsonl")).to_parquet(&path("t.parquet")).unwrap();
    let (lines, parquet) = (read_json(&path("t.jsonl")), read_parquet(&path("t.parquet")));
    let registered = |frame: &DataFrame| {
        let mut session = SqlSession::default();
        session.register("t", frame).unwrap();
        session
    };
    let made = |statement: String| {
        let mut session = SqlSession::default();
        session.run(&statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
        session
    };
    let rows = format!("select * from read_json('{}')", path("t.jsonl"));
    let external = format!("create external table t stored as parquet location '{}'", path("t.parquet"));
    let rows_here = lines.collect().unwrap().batch().clone();
    let rows_here = DataFrame::from_batches(rows_here.schema(), vec![rows_here]);
    vec![
        ("lines", registered(&lines)),
        ("parquet", registered(&parquet)),
        ("rows", registered(&rows_here)),
        ("view of a call", made(format!("create view t as {rows}"))),
        ("table", made(format!("create table t as {rows}"))),
        ("external table", made(external)),
    ]
}

#[test]
fn fields_are_read_from_rows_of_all_places() {
    let folder = TempDir::new().unwrap();
    for (place, mut session) in sessions(&folder) {
        for (query, expected) in FIELDS {
            let rows = session.run(query).unwrap_or_else(|error| panic!("{place}: {query}: {error}"));
            let rows: Vec<String> = rows.into_iter().map(|row| row.join(" ")).collect();
            assert_eq!(rows, expected, "{place}: {query}");
            session
                .run(&format!("explain {query}"))
                .unwrap_or_else(|error| panic!("{place}: {query}: {error}"));
        }
    }
}

#[test]
fn fields_are_read_by_calls_and_by_frames() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.jsonl").display().to_string();
    fs::write(&path, LINES).unwrap();
    let query = format!("select sum(s.x) as x from read_json('{path}') where s.y.z <> 'b'");
    assert_eq!(SqlSession::default().run(&query).unwrap(), [["3"]]);
    assert_eq!(SqlSession::default().frame(&query).col("x").values::<i64>().unwrap(), [Some(3)]);
    let t = read_json(&path);
    let found = sql("select s.x as x from t where id < 3 order by s.x", &[("t", &t)]);
    assert_eq!(found.col("x").values::<i64>().unwrap(), [Some(1), Some(3)]);
}
