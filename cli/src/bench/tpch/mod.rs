//! The 22 questions of TPC-H over Parquet files, beside the library under frames alone.
//!
//! Both sides read the same files and give the same rows, which is checked. The floor is the library with
//! its own plan in one process with as many threads.

mod data;

use super::statistics::median;
use super::{Measurement, Options, Place};
use anyhow::{Result, ensure};
use data::Data;
use std::time::Instant;
use tharsis::frame::{
    DataFrame, Executor, LocalExecutor, RemoteExecutor, Table, read_parquet, sql, sql_by_library,
};

/// Rounds of each question; medians are told.
const ROUNDS: usize = 3;
/// Memory of a store with worker processes, and of operators.
const MEMORY_BYTES: u64 = 4 << 30;

/// The questions, with the names under which their ratios are told.
const QUESTIONS: [(&str, &str); 22] = [
    ("q01", include_str!("queries/q01.sql")),
    ("q02", include_str!("queries/q02.sql")),
    ("q03", include_str!("queries/q03.sql")),
    ("q04", include_str!("queries/q04.sql")),
    ("q05", include_str!("queries/q05.sql")),
    ("q06", include_str!("queries/q06.sql")),
    ("q07", include_str!("queries/q07.sql")),
    ("q08", include_str!("queries/q08.sql")),
    ("q09", include_str!("queries/q09.sql")),
    ("q10", include_str!("queries/q10.sql")),
    ("q11", include_str!("queries/q11.sql")),
    ("q12", include_str!("queries/q12.sql")),
    ("q13", include_str!("queries/q13.sql")),
    ("q14", include_str!("queries/q14.sql")),
    ("q15", include_str!("queries/q15.sql")),
    ("q16", include_str!("queries/q16.sql")),
    ("q17", include_str!("queries/q17.sql")),
    ("q18", include_str!("queries/q18.sql")),
    ("q19", include_str!("queries/q19.sql")),
    ("q20", include_str!("queries/q20.sql")),
    ("q21", include_str!("queries/q21.sql")),
    ("q22", include_str!("queries/q22.sql")),
];

/// Seconds of all questions, the median of each; the details are ratios to the library.
pub fn tpch(options: &Options) -> Result<Measurement> {
    let scale = if options.quick { options.size as f64 / 10.0 } else { options.size as f64 };
    let data = Data::new(scale)?;
    let threads = std::thread::available_parallelism()?.get();
    let init = || tharsis::init().num_cpus(threads as f64).store_bytes(MEMORY_BYTES);
    let runtime = match options.on {
        Place::Threads => None,
        Place::Embedded => Some(init().start_local()?),
        Place::Workers => Some(init().workers(threads).start_local()?),
    };
    let executor: Box<dyn Executor> = match &runtime {
        None => Box::new(LocalExecutor::sized(threads, MEMORY_BYTES)),
        Some(runtime) => Box::new(RemoteExecutor::new(runtime).memory_bytes(MEMORY_BYTES)),
    };
    let frames: Vec<(&str, DataFrame)> =
        data.files().iter().map(|(name, path)| (*name, read_parquet(path))).collect();
    let tables: Vec<(&str, &DataFrame)> = frames.iter().map(|(name, frame)| (*name, frame)).collect();
    let (mut total_s, mut floor_s, mut ratios) = (0.0, 0.0, Vec::new());
    for (name, question) in QUESTIONS {
        let (mut ours, mut alone) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS {
            let started = Instant::now();
            let found = sql(question, &tables).collect_on(&*executor)?;
            ours.push(started.elapsed().as_secs_f64());
            let started = Instant::now();
            let expected = sql_by_library(question, data.files(), threads)?;
            alone.push(started.elapsed().as_secs_f64());
            if round == 0 {
                check_same(name, &found, &expected)?;
            }
        }
        let (own_s, library_s) = (median(&mut ours), median(&mut alone));
        total_s += own_s;
        floor_s += library_s;
        ratios.push((name, own_s / library_s));
    }
    let measured = Measurement::new("tpch", total_s, "s", floor_s).with("answered", ratios.len() as f64);
    Ok(ratios.into_iter().fold(measured, |measured, (name, ratio)| measured.with(name, ratio)))
}

/// Requires equal rows; floats may differ in the order of their additions.
fn check_same(question: &str, found: &Table, expected: &Table) -> Result<()> {
    ensure!(found.len() == expected.len(), "{question}: {} rows, not {}", found.len(), expected.len());
    for (label, other) in found.columns().iter().zip(expected.columns()) {
        for row in 0..found.len() {
            let (one, two) = (found.value(row, label)?, expected.value(row, &other)?);
            let same = match (one.as_f64(), two.as_f64()) {
                (Some(one), Some(two)) => (one - two).abs() <= 1e-9 * one.abs().max(two.abs()),
                _ => one == two,
            };
            ensure!(same, "{question}: {label} of row {row} is {one}, not {two}");
        }
    }
    Ok(())
}
