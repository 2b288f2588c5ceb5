//! Runs that are cancelled, wherever tasks run: on threads, embedded, on worker processes, on two nodes.

use super::place::in_parts;
use std::path::Path;
use std::time::{Duration, Instant};
use tharsis::Cancel;
use tharsis::frame::{DataFrame, Error, SqlSession, Table, function};

pub const TESTS: [(&str, fn()); 2] = [
    ("a_cancelled_run_ends_and_the_next_one_works", a_cancelled_run_ends_and_the_next_one_works),
    ("a_cancelled_statement_leaves_the_session", a_cancelled_statement_leaves_the_session),
];

/// Long enough for a task that nobody lets go on.
const HELD: Duration = Duration::from_secs(30);

/// The rows, once there is a file `open` in a folder. Makes a file when it begins.
#[function]
fn gated(rows: Table, folder: String) -> Result<Table, Error> {
    // Also asked for the types of what it gives.
    if rows.is_empty() {
        return Ok(rows);
    }
    let folder = Path::new(&folder);
    let failed = |error: std::io::Error| Error::Value(error.to_string());
    std::fs::write(folder.join("begun"), "").map_err(failed)?;
    let until = Instant::now() + HELD;
    while !folder.join("open").exists() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
    Ok(rows)
}

fn numbers() -> DataFrame {
    in_parts((0..8).map(|part| DataFrame::from_columns([("n", vec![part, part + 1].into())])))
}

fn folder(name: &str) -> std::path::PathBuf {
    let folder = std::env::temp_dir().join(format!("tharsis-cancels-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// A handle that is cancelled once a task has begun.
fn once_begun(folder: &Path) -> Cancel {
    let begun = folder.join("begun");
    Cancel::when(move || begun.exists())
}

fn a_cancelled_run_ends_and_the_next_one_works() {
    let folder = folder("run");
    let held = numbers().map_chunk(gated::with(folder.display().to_string()));
    let cancel = once_begun(&folder);
    let started = Instant::now();
    let error = cancel.run(|| held.collect()).unwrap_err();
    assert!(matches!(error.root(), Error::Cancelled), "{error}");
    let error = cancel.run(|| held.iter_batches().and_then(|mut batches| batches.next().transpose()));
    assert_eq!(error.unwrap_err().class(), "Cancelled", "rows as they are made, too");
    assert!(started.elapsed() < HELD, "nobody has waited for the tasks");
    std::fs::write(folder.join("open"), "").unwrap();
    // The tasks that ran end, so that there is room for others.
    assert_eq!(held.len().unwrap(), 16);
    std::fs::remove_dir_all(&folder).unwrap();
}

fn a_cancelled_statement_leaves_the_session() {
    let folder = folder("session");
    let mut session = SqlSession::default();
    session.register("held", &numbers().map_chunk(gated::with(folder.display().to_string()))).unwrap();
    session.run("create table t as values (1)").unwrap();
    let cancel = once_begun(&folder);
    for statement in ["create table u as select * from held", "insert into t select n from held"] {
        let error = cancel.run(|| session.run(statement)).unwrap_err();
        assert_eq!(error.class(), "Cancelled", "{statement}: {error}");
    }
    std::fs::write(folder.join("open"), "").unwrap();
    assert_eq!(session.run("select count(*) from t").unwrap(), [["1"]], "nothing was added");
    assert!(session.run("select * from u").is_err(), "nothing was made");
    assert_eq!(session.run("select count(*) from held").unwrap(), [["16"]]);
    std::fs::remove_dir_all(&folder).unwrap();
}
