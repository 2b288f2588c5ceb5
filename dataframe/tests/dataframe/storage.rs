//! Files on web servers and in object stores: read by parts, with what the environment says, and errors that
//! say which kind of failure it was. The server is a real one; a program that needs an environment of its own
//! is this one, started again.

use crate::executors::{SentExecutor, by_default, each_executor, three_parts};
use crate::server::Server;
use arrow::datatypes::DataType;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tharsis_dataframe::{
    Aggregate, Compression, CsvOptions, DataFrame, Error, Executor, Limits, LocalExecutor, Outcome, Sort,
    SqlSession, Stages, WriteOptions, read_csv, read_json, read_parquet, sql,
};

/// The address of the server, in the environment of a program.
const SERVER: &str = "THARSIS_TEST_SERVER";

/// Runs the test of this name again as a program with this environment, or the program if this is it.
fn as_program(test: &str, environment: &[(&str, &str)], program: impl FnOnce(&str)) {
    if let Ok(address) = std::env::var(SERVER) {
        return program(&address);
    }
    let address = environment.iter().find(|(name, _)| *name == "SERVER").unwrap().1;
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("storage::{test}"), "--nocapture"])
        .env(SERVER, address)
        .envs(environment.iter().copied())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// The bytes of a file that is written by a frame.
fn file_of(write: impl FnOnce(&str)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = format!("{}/file", folder.path().display());
    write(&path);
    std::fs::read(&path).unwrap()
}

/// Numbers in order, and others that do not compress.
fn numbers(rows: i64) -> DataFrame {
    let noise = |salt: i64| -> Vec<i64> {
        (0..rows).map(|n| (n + salt).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64)).collect()
    };
    let n: Vec<i64> = (0..rows).collect();
    DataFrame::from_columns([("n", n.into()), ("a", noise(1).into()), ("b", noise(2).into())])
}

fn parquet(frame: &DataFrame, row_group_rows: usize) -> Vec<u8> {
    let options = WriteOptions::new().row_group_size(row_group_rows).compression(Compression::None);
    file_of(|path| frame.to_parquet_with(path, options).unwrap())
}

#[test]
fn filters_leave_out_row_groups_and_pages() {
    let server = Server::start();
    let frame = numbers(400_000);
    let one = LocalExecutor::sized(2, 1 << 30);
    // Forty row groups; and one row group with many pages, of which two of three columns are read, with their
    // dictionaries.
    for (name, row_group_rows, most) in [("groups", 10_000, 0.1), ("pages", 400_000, 0.45)] {
        let bytes = parquet(&frame, row_group_rows);
        let size = bytes.len();
        server.add(&format!("/{name}.parquet"), bytes);
        let read = read_parquet(&format!("http://{}/{name}.parquet", server.address));
        let some = sql("select sum(a) s from t where n >= 200000 and n < 200100", &[("t", &read)]);
        server.take_sent();
        let found = some.collect_on(&one).unwrap().column::<i64>("s").unwrap()[0].unwrap();
        let sent = server.take_sent();
        let expected = (200_000_i64..200_100)
            .map(|n| (n + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15_u64 as i64))
            .fold(0_i64, i64::wrapping_add);
        assert_eq!(found, expected, "{name}");
        assert!((sent as f64) < size as f64 * most, "{name}: {sent} of {size} bytes were read");
        // One column of three, all rows.
        server.take_sent();
        let all = read.groupby([&read.col("n").lt(0)]).agg([("a", Aggregate::Count)]);
        assert_eq!(all.col("a").values::<i64>().unwrap(), [Some(400_000)]);
        let sent = server.take_sent();
        assert!(size / 4 < sent && sent < size * 3 / 4, "{name}: {sent} of {size} bytes were read");
    }
}

#[test]
fn a_file_on_a_web_server_is_cut_between_tasks() {
    let server = Server::start();
    let frame = numbers(100_000);
    let text = file_of(|path| frame.to_csv(path).unwrap());
    assert!(4 << 20 < text.len(), "{}", text.len());
    server.add("/a b/t.csv", text);
    server.add(
        "/t.json.gz",
        file_of(|path| {
            frame.head(100).to_json_with(path, WriteOptions::new().compression(Compression::Gzip)).unwrap();
        }),
    );
    let read = read_csv(&format!("http://{}/a%20b/t.csv", server.address), CsvOptions::new());
    let sums = each_executor(|executor| {
        let (table, metrics) = read.collect_with_metrics(executor)?;
        assert!(metrics.stages.is_empty() || metrics.stages[0].tasks == executor.limits().threads);
        table.column::<i64>("n")
    });
    let expected: Vec<Option<i64>> = (0..100_000).map(Some).collect();
    assert!(sums.iter().all(|found| *found == expected));
    let json = read_json(&format!("http://{}/t.json.gz", server.address));
    assert_eq!(json.len().unwrap(), 100);
}

/// Replaces a file by one of the same size and the same time between planning and the first task, in so many
/// first runs.
struct Replacing {
    server: Server,
    runs: AtomicU64,
    until: u64,
}

fn version(run: u64) -> Vec<u8> {
    format!("n\n{}", format!("{}\n", 10 + run).repeat(1000)).into_bytes()
}

impl Executor for Replacing {
    fn limits(&self) -> Limits {
        Limits { threads: 3, memory_bytes: 1 << 30 }
    }

    fn execute(&self, stages: &Stages) -> Result<Outcome, Error> {
        let run = self.runs.fetch_add(1, Ordering::Relaxed);
        if run < self.until {
            self.server.add("/t.csv", version(run + 1));
        }
        SentExecutor { attempts: 1 }.execute(stages)
    }
}

#[test]
fn a_file_of_the_same_size_and_time_is_known_by_its_tag() {
    let server = Server::start();
    server.add("/t.csv", version(0));
    let read = read_csv(&format!("http://{}/t.csv", server.address), CsvOptions::new());
    let run = |first, until| {
        read.collect_on(&Replacing { server: server.clone(), runs: AtomicU64::new(first), until })
    };
    assert_eq!(run(0, 1).unwrap().column::<i64>("n").unwrap(), vec![Some(11); 1000]);
    let error = run(50, u64::MAX).unwrap_err();
    assert_eq!(error.class(), "OSError");
    assert!(error.to_string().contains("changed"), "{error}");
}

#[test]
fn each_failure_of_a_server_has_its_class() {
    let server = Server::start();
    for name in ["denied", "slow", "busy", "broken"] {
        server.add(&format!("/{name}.csv"), b"n\n1\n2\n".to_vec());
    }
    server.fail("/busy.csv", 2);
    server.fail("/broken.csv", usize::MAX);
    let environment = [
        ("SERVER", server.address.as_str()),
        ("THARSIS_STORAGE_TIMEOUT", "1"),
        ("THARSIS_STORAGE_RETRIES", "2"),
    ];
    as_program("each_failure_of_a_server_has_its_class", &environment, |address| {
        let read = |name: &str| read_csv(&format!("http://{address}/{name}.csv"), CsvOptions::new());
        let failure = |name: &str| {
            let error = read(name).collect().unwrap_err();
            assert!(error.to_string().contains(&format!("http://{address}/{name}.csv")), "{error}");
            error.class()
        };
        assert_eq!(failure("denied"), "PermissionError");
        assert_eq!(failure("missing"), "FileNotFoundError");
        assert_eq!(failure("broken"), "ConnectionError");
        assert_eq!(read("busy").len().unwrap(), 2, "after two failures it is read");
        let started = Instant::now();
        assert_eq!(failure("slow"), "TimeoutError");
        assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
        // Nobody listens there.
        let error = read_csv("http://127.0.0.1:9/t.csv", CsvOptions::new()).collect().unwrap_err();
        assert_eq!(error.class(), "ConnectionError", "{error}");
    });
}

#[test]
fn a_server_that_fails_in_the_middle_of_a_run_fails_the_run() {
    let server = Server::start();
    server.add("/t.parquet", parquet(&numbers(1_000), 100));
    let environment = [("SERVER", server.address.as_str()), ("THARSIS_STORAGE_RETRIES", "1")];
    as_program("a_server_that_fails_in_the_middle_of_a_run_fails_the_run", &environment, |address| {
        let path = format!("http://{address}/t.parquet");
        let frame = read_parquet(&path);
        let rows = || frame.collect_on(&LocalExecutor::sized(2, 1 << 30)).map(|table| table.len());
        assert_eq!(rows().unwrap(), 1_000);
        Server::tell_to_fail(address, "/t.parquet");
        let error = rows().unwrap_err();
        assert_eq!(error.class(), "ConnectionError", "{error}");
        assert!(error.to_string().contains(&path), "{error}");
    });
}

/// The environment of a program that uses the server as its object store.
fn of_bucket<'a>(server: &'a Server, endpoint: &'a str) -> [(&'static str, &'a str); 7] {
    [
        ("SERVER", server.address.as_str()),
        ("AWS_ENDPOINT", endpoint),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_ACCESS_KEY_ID", "a-key"),
        ("AWS_SECRET_ACCESS_KEY", "a-secret"),
        ("AWS_REGION", "eu-central-1"),
        ("THARSIS_STORAGE_RETRIES", "1"),
    ]
}

#[test]
fn buckets_are_read_with_the_keys_of_the_environment() {
    let server = Server::start();
    let text = |n: i64| format!("n\n{n}\n").into_bytes();
    server.add("/bucket/data/k=1/a.csv", text(1));
    server.add("/bucket/data/k=1/b.csv", text(2));
    server.add("/bucket/data/k=2/c.csv", text(3));
    server.add("/bucket/data/_SUCCESS", Vec::new());
    server.add("/bucket/other/a1.csv", text(4));
    server.add("/bucket/other/a2.csv", text(5));
    server.add("/bucket/other/b1.csv", text(6));
    let endpoint = format!("http://{}", server.address);
    let environment = of_bucket(&server, &endpoint);
    as_program("buckets_are_read_with_the_keys_of_the_environment", &environment, |_| {
        let values = |path: &str, label: &str| {
            let frame = read_csv(path, CsvOptions::new());
            frame.col(label).values::<i64>().unwrap().into_iter().flatten().collect::<Vec<_>>()
        };
        assert_eq!(values("s3://bucket/data", "n"), [1, 2, 3]);
        assert_eq!(values("s3://bucket/data/", "k"), [1, 1, 2]);
        assert_eq!(values("s3://bucket/data/*/*.csv", "k"), [1, 1, 2]);
        assert_eq!(values("s3://bucket/other/a*.csv", "n"), [4, 5]);
        assert_eq!(values("s3://bucket/other/b1.csv", "n"), [6]);
        let class = |path: &str| read_csv(path, CsvOptions::new()).check().unwrap_err().class();
        assert_eq!(class("s3://bucket/none.csv"), "FileNotFoundError");
        assert_eq!(class("s3://bucket/other/z*.csv"), "FileNotFoundError");
        assert_eq!(class("s3://bucket/denied.csv"), "PermissionError");
    });
    let requests = server.requests();
    assert!(requests.is_empty() || requests.iter().all(|(_, _, key)| key == "a-key"), "{requests:?}");
}

#[test]
fn a_statement_looks_at_files_once_however_often_it_is_planned() {
    let server = Server::start();
    server.add("/t.csv", b"City,Sold,A\nOslo,1,2\nOslo,3,4\n".to_vec());
    let url = format!("http://{}/t.csv", server.address);
    let asked = |query: &str| {
        let before = server.requests().len();
        let rows = SqlSession::default().run(&query.replace('$', &url)).unwrap();
        (rows, server.requests().len() - before)
    };
    let (expected, in_quotes) = asked(
        "select \"City\", sum(\"Sold\" + \"A\") from read_csv('$') group by \"City\" order by max(\"A\")",
    );
    let (rows, in_letters) =
        asked("select city, sum(sold + a) from read_csv('$') group by city order by max(a)");
    assert_eq!((&rows, rows.len()), (&expected, 1));
    // Each name is planned for once more; the first of these plans looks at the file for all of them.
    assert!(in_letters <= 2 * in_quotes, "{in_letters} requests, and {in_quotes} for names in quotes");
}

#[test]
fn frames_are_written_to_buckets() {
    let server = Server::start();
    server.add("/bucket/out/part-00000-1f-0123456789abcdef.csv", b"n\n9\n".to_vec());
    server.add("/bucket/mine/notes.txt", b"mine".to_vec());
    server.add("/bucket/denied/part-0.csv", Vec::new());
    let endpoint = format!("http://{}", server.address);
    as_program("frames_are_written_to_buckets", &of_bucket(&server, &endpoint), |address| {
        let sent = Arc::new(SentExecutor { attempts: 2 });
        by_default(sent, || {
            // Three tasks, twice each: their files become one object.
            let parts = three_parts();
            parts.to_csv("s3://bucket/one.csv").unwrap();
            parts.to_parquet("s3://bucket/one.parquet").unwrap();
            for read in
                [read_csv("s3://bucket/one.csv", CsvOptions::new()), read_parquet("s3://bucket/one.parquet")]
            {
                let values: Vec<i64> = read.col("n").values().unwrap().into_iter().flatten().collect();
                assert_eq!(values, (0..10).collect::<Vec<_>>());
            }
            // More than one part of an upload.
            numbers(1_000_000).to_parquet("s3://bucket/large.parquet").unwrap();
            assert_eq!(read_parquet("s3://bucket/large.parquet").len().unwrap(), 1_000_000);
            let options = WriteOptions::new().partition_cols(["k"]);
            parts.to_csv_with("s3://bucket/out/", options).unwrap();
            let read = read_csv("s3://bucket/out/", CsvOptions::new()).sort_values(["n"], Sort::ascending());
            let values: Vec<i64> = read.col("n").values().unwrap().into_iter().flatten().collect();
            assert_eq!(values, (0..10).collect::<Vec<_>>());
            // Characters that keys and folders of partitions escape come back as they were.
            let odd = DataFrame::from_columns([
                ("k", vec!["a/b", "50%", "50%25"].into()),
                ("n", vec![1_i64, 2, 3].into()),
            ]);
            let options = WriteOptions::new().partition_cols(["k"]);
            odd.to_parquet_with("s3://bucket/100% odd/", options).unwrap();
            let read = read_parquet("s3://bucket/100% odd/").sort_values(["n"], Sort::ascending());
            let keys: Vec<String> =
                read.col("k").astype(DataType::Utf8).values().unwrap().into_iter().flatten().collect();
            assert_eq!(keys, ["a/b", "50%", "50%25"]);
            let class = |path: &str| parts.to_csv(path).unwrap_err().class();
            assert_eq!(class("s3://bucket/mine/"), "FileExistsError");
            assert_eq!(class("s3://bucket/denied/a.csv"), "PermissionError");
            assert_eq!(class("s3://bucket"), "FileExistsError");
            assert_eq!(class(&format!("http://{address}/a.csv")), "NotImplemented");
        });
    });
    if std::env::var(SERVER).is_ok() {
        return;
    }
    let (files, in_parts) = server.files();
    assert!(!in_parts);
    let kept: Vec<_> = files.iter().filter(|path| !path.contains("/k=")).collect();
    let expected = [
        "/bucket/denied/part-0.csv",
        "/bucket/large.parquet",
        "/bucket/mine/notes.txt",
        "/bucket/one.csv",
        "/bucket/one.parquet",
    ];
    assert_eq!(kept, expected);
    assert!(files.iter().any(|path| path.starts_with("/bucket/out/k=2/part-00000-")), "{files:?}");
}
