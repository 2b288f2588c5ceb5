//! The 22 questions of TPC-H over Parquet files, beside the library under frames alone.
//!
//! Both sides read the same files and give the same rows, which is checked. The floor is the library with
//! its own plan in one process with as many threads.

mod data;

use super::frames::{Setup, Times, Total, check_same, rounds};
use super::{Measurement, Options};
use anyhow::Result;
use data::tables;
use tharsis::frame::{DataFrame, Library, read_parquet, sql};

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

/// Seconds of all questions, the median of each; the details are ratios to the library, and seconds.
pub fn tpch(options: &Options) -> Result<Measurement> {
    let tables = tables(options)?;
    let setup = Setup::start(options, 0)?;
    let frames: Vec<(&str, DataFrame)> =
        tables.paths().iter().map(|(name, path)| (*name, read_parquet(path))).collect();
    let refs: Vec<(&str, &DataFrame)> = frames.iter().map(|(name, frame)| (*name, frame)).collect();
    let (own, peak_bytes) = setup.peak_bytes(|| {
        let answers =
            QUESTIONS.iter().map(|(_, question)| Ok(sql(question, &refs).collect_on(setup.executor())?));
        answers.collect::<Result<Vec<_>>>()
    })?;
    let library = Library::new(setup.threads())?;
    for (name, path) in tables.paths() {
        library.run(&format!("create external table {name} stored as parquet location '{path}'"))?;
    }
    let mut total = Total::default();
    for ((name, question), own) in QUESTIONS.iter().zip(own) {
        check_same(name, &own, &library.table(question)?)?;
        let mut times = Times::default();
        for _ in 0..rounds(options) {
            times.round(
                || Ok(sql(question, &refs).collect_on(setup.executor())?),
                || Ok(library.table(question)?),
            )?;
        }
        total.add(name, times);
    }
    Ok(total.measurement("tpch", &setup, peak_bytes))
}
