//! Statements of a session that need files, frames or settings.

use crate::executors::{SentExecutor, by_default, each_executor, three_parts};
use arrow::array::{Int64Array, RecordBatch};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use tempfile::TempDir;
use tharsis_dataframe::{
    DataFrame, Error, Executor, JoinKind, KeptPart, Limits, LocalExecutor, LocalPart, Merge, Metrics,
    Outcome, PartBatches, SqlAnswer, SqlSession, Stages, read_parquet, sql,
};

/// Runs statements in turn; gives the rows of the last one.
#[track_caller]
fn rows(session: &mut SqlSession, statements: &[&str]) -> Vec<Vec<String>> {
    let mut last = Vec::new();
    for statement in statements {
        last = session.run(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
    }
    last
}

#[test]
fn rows_are_copied_to_files_and_read_from_them() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let (csv, parquet, added) = (path("t.csv"), path("t.parquet"), path("added"));
    fs::create_dir(&added).unwrap();
    let found = rows(
        &mut SqlSession::default(),
        &[
            "create table t as values (1, 'one'), (2, 'two'), (3, null)",
            &format!(
                "copy (select column1 as n, column2 as name from t) to '{csv}' options (format.has_header true)"
            ),
            &format!("copy t to '{parquet}' stored as parquet"),
            &format!(
                "create external table c stored as csv location '{csv}' options (format.has_header true)"
            ),
            &format!("create external table p stored as parquet location '{parquet}'"),
            &format!(
                "create external table a (n bigint, name varchar) stored as parquet location '{added}/'"
            ),
            "insert into a select n, name from c where n > 1",
            "insert into a values (9, 'nine')",
            "select a.n, a.name, p.column2 from a left join p on a.n = p.column1 order by a.n",
        ],
    );
    assert_eq!(found, [["2", "two", "two"], ["3", "NULL", "NULL"], ["9", "nine", "NULL"]]);
}

/// The bytes of all files of a folder.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(contents(&path));
        } else {
            found.insert(path.clone(), fs::read(path).unwrap());
        }
    }
    found
}

#[test]
fn explaining_a_statement_changes_nothing() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    fs::create_dir(folder.path().join("e")).unwrap();
    fs::write(folder.path().join("e/a.csv"), "a\n7\n").unwrap();
    fs::write(folder.path().join("old.csv"), "a\n7\n").unwrap();
    let before = contents(folder.path());
    let frame = DataFrame::from_columns([("a", vec![1_i64].into())]);
    let mut session = SqlSession::default();
    let external = format!(
        "create external table e (a bigint) stored as csv location '{}/' options (format.has_header true)",
        path("e")
    );
    rows(&mut session, &["create table s (a bigint) as values (1)", &external]);
    // Whether the plan of a statement can be shown: it makes rows.
    let statements = [
        (format!("copy (select a from s) to '{}'", path("new.csv")), true),
        (format!("copy (select a from s) to '{}'", path("old.csv")), true),
        (format!("copy s to '{}/' stored as parquet", path("new")), true),
        ("insert into s values (2)".to_owned(), true),
        ("insert into e select a from s".to_owned(), true),
        ("create table n as select a from s".to_owned(), true),
        ("create view n as select a from s".to_owned(), false),
        ("update s set a = 3".to_owned(), false),
        ("delete from s".to_owned(), false),
        ("drop table s".to_owned(), false),
    ];
    for (statement, is_shown) in &statements {
        for explain in
            ["", "explain ", "explain analyze ", "explain analyze verbose ", "explain explain analyze "]
        {
            let query = format!("{explain}{statement}");
            let of_frames = sql(&query, &[("s", &frame), ("e", &frame)]).columns().unwrap_err();
            assert_eq!(of_frames.class(), "NotImplemented", "{query}: {of_frames}");
            let of_session = session.frame(&query).columns().unwrap_err();
            assert_eq!(of_session.class(), "NotImplemented", "{query}: {of_session}");
            if !explain.is_empty() {
                let ended = session.execute(&query);
                let is_refused = matches!(&ended, Err(error) if error.class() == "NotImplemented");
                assert_eq!(is_refused, !is_shown || explain != "explain ", "{query}: {ended:?}");
            }
            assert_eq!(contents(folder.path()), before, "{query}");
            assert_eq!(rows(&mut session, &["select (select a from s), (select a from e)"]), [["1", "7"]]);
        }
    }
    // The stages are those of the query, and so are the times.
    let shown = rows(&mut session, &["explain insert into s select a + 1 from s"]).concat().join("\n");
    assert!(shown.contains("Dml: op=[Insert Into]") && shown.contains("stage 0"), "{shown}");
    assert!(!rows(&mut session, &["explain analyze select a from s"]).is_empty());
}

#[test]
fn frames_have_names_in_a_session() {
    let sales = DataFrame::from_columns([("city", vec!["Oslo", "Rome"].into()), ("sold", vec![3, 5].into())]);
    let mut session = SqlSession::default();
    session.register("sales", &sales).unwrap();
    assert_eq!(rows(&mut session, &["select city from sales where sold > 4"]), [["Rome"]]);
    session.register("Towns", &sales).unwrap();
    for name in ["Towns", "towns", "\"Towns\""] {
        assert_eq!(rows(&mut session, &[&format!("select count(*) from {name}")]), [["2"]], "{name}");
    }
    session.register("towns", &sales.head(1)).unwrap();
    assert_eq!(rows(&mut session, &["select count(*) from Towns"]), [["1"]]);
    assert_eq!(rows(&mut session, &["select count(*) from \"Towns\""]), [["2"]]);
    let broken = sales.select(["cities"]);
    assert_eq!(session.register("broken", &broken).unwrap_err().class(), "KeyError");
}

#[test]
fn answers_tell_rows_from_changes() {
    let mut session = SqlSession::default();
    assert_eq!(session.execute("create table t as values (1), (2)").unwrap(), SqlAnswer::Done);
    assert_eq!(session.execute("insert into t values (3)").unwrap(), SqlAnswer::Changed(1));
    let SqlAnswer::Rows(table) = session.execute("select a.column1, b.column1 from t a, t b").unwrap() else {
        panic!("a query gives rows");
    };
    assert_eq!((table.len(), table.columns()), (9, vec!["column1".to_owned(), "column1".to_owned()]));
}

#[test]
fn plans_are_explained_by_their_stages() {
    let mut session = SqlSession::default();
    rows(&mut session, &["create table t as values (1), (2)"]);
    let plan = rows(&mut session, &["explain select column1, count(*) from t group by column1"]);
    assert_eq!((plan[0][0].as_str(), plan[1][0].as_str()), ("logical_plan", "stages"));
    assert!(plan[1][1].contains("stage 0"), "{}", plan[1][1]);
    let ran = rows(&mut session, &["explain analyze select count(*) from t"]);
    assert!(ran[1][1].contains("1 tasks made 1 rows"), "{}", ran[1][1]);
}

#[test]
fn settings_of_a_session_go_to_its_tasks() {
    let mut session = SqlSession::default().part_rows_min(1);
    rows(&mut session, &["create table t as values (1704067200), (null)", "set time zone = '+05:00'"]);
    let shown = "select to_timestamp(column1) from t where column1 is not null";
    assert_eq!(rows(&mut session, &[shown]), [["2024-01-01 00:00:00+05:00"]]);
    let error = session.run("set datafusion.runtime.memory_limit = '1G'").unwrap_err();
    assert!(matches!(error, Error::NotImplemented(_)), "{error}");
    assert!(session.run("set datafusion.optimizer.no_such = 1").is_err());
}

#[test]
fn sorts_know_of_files_that_are_sorted_in_part() {
    let folder = TempDir::new().unwrap();
    let csv = folder.path().join("t.csv");
    fs::write(&csv, "a,b,c\n1,1,5\n1,1,4\n1,2,9\n2,1,3\n2,1,1\n").unwrap();
    let found = rows(
        &mut SqlSession::default(),
        &[
            &format!(
                "create external table t (a int, b int, c int) stored as csv with order (a, b) location '{}' \
                 options (format.has_header true)",
                csv.display()
            ),
            "select a, b, c, sum(c) over (partition by b order by a, c) from t order by a, b, c",
        ],
    );
    let expected = [
        ["1", "1", "4", "4"],
        ["1", "1", "5", "9"],
        ["1", "2", "9", "9"],
        ["2", "1", "1", "10"],
        ["2", "1", "3", "13"],
    ];
    assert_eq!(found, expected);
}

#[test]
fn aggregates_of_windows_with_filters_are_sent_to_tasks() {
    let query = "select n, count(*) filter (where n % 2 = 0) over w, sum(n) filter (where n > 1) over w,
                        count(distinct k) filter (where n < 4) over (), max(n) over w
                 from (values (1, 'a'), (2, 'a'), (3, 'b'), (4, null), (null, 'b')) t (n, k)
                 window w as (order by n nulls last) order by n nulls last";
    let found =
        by_default(Arc::new(SentExecutor { attempts: 1 }), || rows(&mut SqlSession::default(), &[query]));
    let expected = [
        ["1", "0", "NULL", "2", "1"],
        ["2", "1", "2", "2", "2"],
        ["3", "1", "5", "2", "3"],
        ["4", "2", "9", "2", "4"],
        ["NULL", "2", "9", "2", "4"],
    ];
    assert_eq!(found, expected);
}

#[test]
fn compressed_files_of_a_table_are_read_by_tasks() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    for (format, compression, extension) in [("csv", "gzip", "csv.gz"), ("json", "zstd", "json.zst")] {
        let options = format!("options (format.compression {compression})");
        let written = path(&format!("t.{extension}"));
        let statements = [
            "create table t as values (1, 'one'), (2, null)",
            &format!(
                "copy (select column1 as n, column2 as name from t) to '{written}' stored as {format} {options}"
            ),
            &format!(
                "create external table c (n bigint, name varchar) stored as {format} location '{written}' {options}"
            ),
            "select n, name from c order by n",
        ];
        let found = by_default(Arc::new(SentExecutor { attempts: 1 }), || {
            rows(&mut SqlSession::default(), &statements)
        });
        assert_eq!(found, [["1", "one"], ["2", "NULL"]], "{format}");
        assert_ne!(fs::read(&written).unwrap()[0], b'1', "{format} is not compressed");
    }
}

#[test]
fn files_that_came_or_went_since_a_look_are_seen() {
    let folder = TempDir::new().unwrap();
    let file = |name: &str| folder.path().join(name);
    fs::write(file("a.csv"), "a\n1\n").unwrap();
    let mut session = SqlSession::default();
    let table = format!(
        "create external table e (a int) stored as csv location '{}/' options ('format.has_header' 'true')",
        folder.path().display()
    );
    let count = ["select count(*), min(a) from e"];
    assert_eq!(rows(&mut session, &[&table, count[0]]), [["1", "1"]]);
    fs::write(file("b.csv"), "a\n2\n").unwrap();
    assert_eq!(rows(&mut session, &count), [["2", "1"]]);
    fs::remove_file(file("a.csv")).unwrap();
    assert_eq!(rows(&mut session, &count), [["1", "2"]]);
}

#[test]
fn a_query_keeps_its_order_through_later_steps() {
    let t = DataFrame::from_columns([("k", vec![3, 1, 2].into()), ("x", vec![1, 3, 2].into())]);
    let u = DataFrame::from_columns([("k", vec![1, 2, 3].into()), ("w", vec![10, 20, 30].into())]);
    let queries = [
        "select k from t order by k desc",
        "select k from t order by x",
        "select k from (select * from t) s order by k desc limit 3",
        "select k from t order by x limit 3",
    ];
    for query in queries {
        let frame = sql(query, &[("t", &t)]);
        assert_eq!(frame.columns().unwrap(), ["k"]);
        let merged = frame.merge(&u, Merge::on(["k"]).how(JoinKind::Left));
        for ordered in [&frame, &merged, &frame.query("k > 0"), &frame.reset_index(true)] {
            for found in each_executor(|executor| ordered.collect_on(executor)?.column::<i64>("k")) {
                assert_eq!(found, [3, 2, 1].map(Some), "{query}");
            }
        }
        assert_eq!(frame.tail(1).col("k").values::<i64>().unwrap(), [Some(1)], "{query}");
        assert_eq!(frame.col("k").shift(1).values::<i64>().unwrap(), [None, Some(3), Some(2)], "{query}");
    }
    let first = sql("select k from t order by k desc limit 2", &[("t", &t)]);
    assert_eq!(first.query("k < 3").col("k").values::<i64>().unwrap(), [Some(2)]);
}

#[test]
fn rows_around_subqueries_pass_between_tasks() {
    let t = three_parts();
    let above = "(select count(*) from t u where u.n > x.n)";
    for (query, expected) in [
        (format!("select n + {above} s from (select * from t limit 7) x"), vec![9; 7]),
        (
            format!(
                "select count(*) s from (select random() r, n from t) x, lateral (values (x.r)) v(r) \
                 where v.r = x.r and {above} < 5"
            ),
            vec![5],
        ),
        (
            format!(
                "select n + a s from (select * from t order by n % 4, n limit 6) x, lateral (select {above} a) y, \
                 lateral (select count(*) from t where t.n < x.n and t.n < y.a) z, lateral (select x.k) w"
            ),
            vec![9; 6],
        ),
    ] {
        let frame = sql(&query, &[("t", &t)]);
        for found in each_executor(|executor| frame.collect_on(executor)?.column::<i64>("s")) {
            assert_eq!(found, expected.iter().copied().map(Some).collect::<Vec<_>>(), "{query}");
        }
    }
}

#[test]
fn limits_of_more_than_32_bits_travel() {
    let folder = TempDir::new().unwrap();
    let path = folder.path().join("t.parquet").to_string_lossy().into_owned();
    DataFrame::from_columns([("n", vec![1, 2, 3].into())]).to_parquet(&path).unwrap();
    let frame = read_parquet(&path);
    let wide = (1_usize << 32) + 1;
    let rows = |frame: &DataFrame| each_executor(|executor| Ok(frame.collect_on(executor)?.len()));
    assert_eq!(rows(&frame.head(1 << 32)), [3; 3]);
    assert_eq!(rows(&frame.query("n > 1").head(wide)), [2; 3]);
    assert_eq!(rows(&frame.slice(wide, wide + 2)), [0; 3]);
    for (query, expected) in [
        ("select * from t where n > 1 limit 4294967296", 2),
        ("select * from t offset 4294967296", 0),
        ("select n from t where n > (select min(n) from t) limit 4294967296", 2),
        ("select n, count(*) from t group by n limit 4294967297", 3),
    ] {
        assert_eq!(rows(&sql(query, &[("t", &frame)])), [expected; 3], "{query}");
    }
}

#[test]
fn fields_of_nested_columns_are_read() {
    let folder = TempDir::new().unwrap();
    let path = format!("{}/t.json", folder.path().display());
    fs::write(&path, "{\"id\":1,\"b\":{\"c\":2,\"d\":\"x\"}}\n{\"id\":3,\"b\":null}\n").unwrap();
    let frame = tharsis_dataframe::read_json(&path);
    let query = "select id, b['c'] as c from t where b['d'] = 'x' or b['c'] is null order by id";
    for found in each_executor(|executor| sql(query, &[("t", &frame)]).collect_on(executor)) {
        assert_eq!(found.column::<i64>("id").unwrap(), [Some(1), Some(3)]);
        assert_eq!(found.column::<i64>("c").unwrap(), [Some(2), None]);
    }
}

#[test]
fn tables_are_found_by_their_names_with_quotes_and_without() {
    let sales = DataFrame::from_columns([("sold", vec![3, 5].into())]);
    for query in ["select sold from Sales", "select sold from sales", "select sold from \"Sales\""] {
        assert_eq!(sql(query, &[("Sales", &sales)]).len().unwrap(), 2, "{query}");
    }
    assert_eq!(sql("select sold from \"a.b\"", &[("a.b", &sales)]).len().unwrap(), 2);
}

#[test]
fn the_order_of_a_subquery_goes_through_what_is_above_it() {
    let t = DataFrame::from_columns([("k", vec![3, 1, 2].into()), ("v", vec![1, 2, 3].into())]);
    let query = "select k from (select k, v from t order by v desc) s where k > 0";
    for found in each_executor(|executor| sql(query, &[("t", &t)]).collect_on(executor)?.column::<i64>("k")) {
        assert_eq!(found, [Some(2), Some(1), Some(3)]);
    }
    assert_eq!(sql(query, &[("t", &t)]).tail(1).col("k").values::<i64>().unwrap(), [Some(3)]);
}

/// Gives these parts for any query.
struct Given(Vec<Arc<dyn KeptPart>>);

impl Given {
    /// A session with a table `t` of a column `n`, all of whose queries give these parts.
    fn session(parts: Vec<Arc<dyn KeptPart>>) -> SqlSession {
        let mut session = SqlSession::on(Arc::new(Given(parts)));
        session.register("t", &DataFrame::from_columns([("n", vec![1, 2].into())])).unwrap();
        session
    }
}

impl Executor for Given {
    fn limits(&self) -> Limits {
        Limits { threads: 3, memory_bytes: 1 << 30 }
    }

    fn execute(&self, _: &Stages) -> Result<Outcome, Error> {
        Ok(Outcome { parts: self.0.clone(), metrics: Metrics::default() })
    }
}

/// A part whose store is lost behind the first batch.
#[derive(Debug)]
struct Torn(RecordBatch);

impl Torn {
    fn lost() -> Error {
        Error::Lost("the store is lost".to_owned())
    }
}

impl KeptPart for Torn {
    fn fetch(&self) -> Result<Vec<RecordBatch>, Error> {
        Err(Torn::lost())
    }

    fn batches(&self) -> Result<PartBatches<'static>, Error> {
        Ok(Box::new([Ok(self.0.clone()), Err(Torn::lost())].into_iter()))
    }

    fn rows(&self) -> usize {
        2 * self.0.num_rows()
    }

    fn bytes(&self) -> usize {
        self.0.get_array_memory_size()
    }
}

fn numbers(from: i64, to: i64) -> RecordBatch {
    let numbers = Arc::new(Int64Array::from_iter_values(from..to));
    RecordBatch::try_from_iter_with_nullable([("n", numbers as _, true)]).unwrap()
}

#[test]
fn a_statement_that_loses_its_rows_while_it_writes_leaves_files_as_they_were() {
    let folder = TempDir::new().unwrap();
    let (file, added) = (folder.path().join("t.csv"), folder.path().join("added"));
    fs::write(&file, "n\n7\n").unwrap();
    fs::create_dir(&added).unwrap();
    let mut session = Given::session(vec![Arc::new(Torn(numbers(0, 3)))]);
    let (old, location) = (file.display(), added.display());
    session.run(&format!("create external table a (n bigint) stored as csv location '{location}/'")).unwrap();
    let statements = [
        format!("copy (select n from t) to '{old}'"),
        format!("copy (select n from t) to '{location}/' stored as csv"),
        "insert into a select n from t".to_owned(),
    ];
    for statement in &statements {
        let error = session.run(statement).err().unwrap_or_else(|| panic!("{statement} has rows"));
        assert!(error.to_string().contains("the store is lost"), "{statement}: {error}");
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "n\n7\n");
    assert_eq!(fs::read_dir(&added).unwrap().count(), 0);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn a_copy_has_the_rows_of_all_parts_in_their_order() {
    let folder = TempDir::new().unwrap();
    let file = folder.path().join("t.csv");
    let part = |from: i64| {
        let batches = (from..from + 8).map(|n| numbers(n, n + 1)).collect();
        Arc::new(LocalPart(batches)) as Arc<dyn KeptPart>
    };
    let mut session = Given::session([0, 8, 16].map(part).to_vec());
    let copy = format!(
        "copy (select n from t order by n) to '{}' options (format.has_header false)",
        file.display()
    );
    assert_eq!(session.execute(&copy).unwrap(), SqlAnswer::Changed(24));
    let lines: Vec<String> = (0..24).map(|n| format!("{n}\n")).collect();
    assert_eq!(fs::read_to_string(&file).unwrap(), lines.concat());
}

#[test]
fn a_copy_takes_the_place_of_a_file_as_other_writers_do() {
    let folder = TempDir::new().unwrap();
    let (file, link) = (folder.path().join("t.csv"), folder.path().join("link.csv"));
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    symlink(&file, &link).unwrap();
    let copy = format!("copy (select 1 as n) to '{}' options (format.has_header false)", link.display());
    rows(&mut SqlSession::default(), &[&copy]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert_eq!(fs::read_to_string(&file).unwrap(), "1\n");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
}

#[test]
fn rows_are_added_to_folders_of_values() {
    let folder = TempDir::new().unwrap();
    let location = folder.path().join("a").display().to_string();
    let found = rows(
        &mut SqlSession::default(),
        &[
            &format!(
                "copy (select 1 as n, 'x' as k) to '{location}/' stored as csv partitioned by (k) \
                      options (format.has_header false)"
            ),
            &format!(
                "create external table a (n bigint, k varchar) stored as csv partitioned by (k) \
                      location '{location}/' options (format.has_header false)"
            ),
            "insert into a values (2, 'x'), (3, 'y')",
            "select n, k from a order by n",
        ],
    );
    assert_eq!(found, [["1", "x"], ["2", "x"], ["3", "y"]]);
    assert_eq!(fs::read_dir(&location).unwrap().count(), 2);
}

#[test]
fn a_statement_that_fails_leaves_no_folders_of_its_own() {
    let folder = TempDir::new().unwrap();
    let mut session = Given::session(vec![Arc::new(Torn(numbers(0, 3)))]);
    let place = |name: &str| folder.path().join(name).display().to_string();
    session
        .run(&format!("create external table a (n bigint) stored as csv location '{}/'", place("new/added")))
        .unwrap();
    let statements = [
        format!("copy (select n from t) to '{}'", place("b/c/t.csv")),
        format!("copy (select n from t) to '{}/' stored as csv", place("d/e")),
        "insert into a select n from t".to_owned(),
    ];
    for statement in &statements {
        let error = session.run(statement).err().unwrap_or_else(|| panic!("{statement} has rows"));
        assert!(error.to_string().contains("the store is lost"), "{statement}: {error}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "{statement}");
    }
}

#[test]
fn objects_of_a_store_are_not_written_one_after_the_other() {
    let mut session = SqlSession::default();
    session.run("create table t as values (1), (2)").unwrap();
    for statement in ["copy t to 's3://bucket/t.parquet'", "copy t to 's3://bucket/t/' stored as csv"] {
        let error = session.run(statement).unwrap_err();
        assert_eq!(error.class(), "NotImplemented", "{statement}: {error}");
        assert!(error.to_string().contains("COPY to s3://") && error.to_string().contains("to_parquet"));
    }
}

#[test]
fn a_frame_does_not_take_the_place_of_a_table_that_a_statement_has_made() {
    let frame = |n: i64| DataFrame::from_columns([("n", vec![n].into())]);
    let mut session = SqlSession::default();
    session.register("Sales", &frame(1)).unwrap();
    assert_eq!(session.run("select n from sales").unwrap(), [["1"]]);
    session.run("drop view sales").unwrap();
    session.run("create table sales as values (7)").unwrap();
    assert!(session.register("sales", &frame(2)).is_err(), "there is a table");
    assert_eq!(session.run("select * from sales").unwrap(), [["7"]]);
    // A frame that is dropped goes with its name in lower case; the next one of its name has both.
    session.register("Costs", &frame(3)).unwrap();
    session.run("drop view \"Costs\"").unwrap();
    assert!(session.run("select * from costs").is_err(), "it was dropped");
    session.register("Costs", &frame(4)).unwrap();
    assert_eq!(session.run("select n from costs").unwrap(), [["4"]]);
    // A frame that has the name itself takes it from one with capital letters.
    session.register("costs", &frame(5)).unwrap();
    assert_eq!(session.run("select n from costs").unwrap(), [["5"]]);
    assert_eq!(session.run("select n from \"Costs\"").unwrap(), [["4"]]);
}

/// An executor that counts the queries that it runs.
struct Counting(LocalExecutor, AtomicUsize);

impl Executor for Counting {
    fn limits(&self) -> Limits {
        self.0.limits()
    }

    fn execute(&self, stages: &Stages) -> Result<Outcome, Error> {
        self.1.fetch_add(1, Ordering::Relaxed);
        self.0.execute(stages)
    }
}

#[test]
fn rows_that_are_added_to_a_table_with_a_key_are_looked_at_alone() {
    let executor = Arc::new(Counting(LocalExecutor::sized(2, 1 << 30), AtomicUsize::new(0)));
    let mut session = SqlSession::on(executor.clone());
    session.run("create table k (n int primary key, s varchar unique) as values (-1, 'a')").unwrap();
    let before = executor.1.load(Ordering::Relaxed);
    for n in 0..50 {
        session.run(&format!("insert into k values ({n}, 's{n}')")).unwrap();
    }
    // A query over all rows for each statement would be a sum of squares.
    assert_eq!(executor.1.load(Ordering::Relaxed) - before, 50);
    assert_eq!(session.run("insert into k values (7, 'new')").unwrap_err().class(), "ValueError");
    assert_eq!(session.run("insert into k values (77, 's7')").unwrap_err().class(), "ValueError");
    assert_eq!(session.run("select count(*), sum(n) from k").unwrap(), [["51", "1224"]]);
}
