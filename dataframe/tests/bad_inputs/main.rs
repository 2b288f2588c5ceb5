//! Damaged and crafted files: each is an error of the class that says what is wrong, with the name of the
//! file, or what pandas reads from it; never a panic, and never much memory.
//!
//! Each table has a row for each file: its name, how its bytes are made, and what becomes of it.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

mod arrow_files;
mod memory;
mod mutations;
mod parquet_files;
mod texts;

use memory::with_peak;
use std::fs;
use std::panic::PanicHookInfo;
use std::sync::{Mutex, MutexGuard, PoisonError};
use tharsis_dataframe::{DataFrame, Error, LocalExecutor, Table};

/// One file.
pub struct Bad {
    /// Its name in this table.
    pub name: &'static str,
    /// The name of the file.
    pub file: &'static str,
    /// Makes its bytes.
    pub make: fn() -> Vec<u8>,
    /// The outcome of reading it.
    pub expected: Expected,
}

/// The outcome of reading a file.
pub enum Expected {
    /// An error of one of these classes.
    Error(&'static [&'static str]),
    /// As before, by a panic of a library's decoder that the reader of the file caught.
    Caught(&'static [&'static str]),
    /// The rows that it has.
    Rows(fn(&Table)),
}

const CORRUPT: Expected = Expected::Error(&["ValueError"]);
const UNSUPPORTED: Expected = Expected::Error(&["NotImplemented"]);
const TOO_LARGE: Expected = Expected::Error(&["MemoryError"]);

/// Reads each file of a table in a folder of its own.
fn check(rows: &[Bad], read: impl Fn(&str) -> DataFrame) {
    let _alone = alone();
    let mut wrong = Vec::new();
    for row in rows {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(row.file).display().to_string();
        fs::write(&path, (row.make)()).unwrap();
        if let Err(reason) = outcome(row, &path, || collected(&read(&path))) {
            wrong.push(format!("{}: {reason}", row.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn outcome(row: &Bad, path: &str, read: impl FnOnce() -> Result<Table, Error>) -> Result<(), String> {
    let before = panics();
    let (found, peak_bytes) = with_peak(read);
    let panicked = before < panics();
    if PEAK_BYTES < peak_bytes {
        return Err(format!("it took {peak_bytes} bytes of memory"));
    }
    match (&row.expected, found) {
        (Expected::Rows(check), Ok(table)) => {
            check(&table);
            Ok(())
        }
        (Expected::Rows(_), Err(error)) => Err(format!("it was not read: {error}")),
        (Expected::Error(_) | Expected::Caught(_), Ok(table)) => {
            Err(format!("it was read: {} rows", table.len()))
        }
        (Expected::Error(classes) | Expected::Caught(classes), Err(error)) => {
            if !classes.contains(&error.class()) {
                return Err(format!("{}: {error}", error.class()));
            }
            if !error.to_string().contains(path) {
                return Err(format!("the file is not in {error}"));
            }
            if panicked == matches!(row.expected, Expected::Caught(_)) {
                Ok(())
            } else {
                Err(format!("a panic: {panicked}, {error}"))
            }
        }
    }
}

fn collected(frame: &DataFrame) -> Result<Table, Error> {
    frame.collect_on(&LocalExecutor::sized(2, 1 << 30))
}

/// Files are read one by one: memory and panics are those of the process.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info: &PanicHookInfo<'_>| {
            *PANICS.lock().unwrap_or_else(PoisonError::into_inner) += 1;
            // Those of this crate of tests are its failures.
            if info.location().is_some_and(|place| place.file().contains("bad_inputs")) {
                usual(info);
            }
        }));
    });
    alone
}

/// Panics so far.
fn panics() -> usize {
    *PANICS.lock().unwrap_or_else(PoisonError::into_inner)
}

static PANICS: Mutex<usize> = Mutex::new(0);

/// Bytes that reading a bad file may take.
const PEAK_BYTES: usize = 300 << 20;
