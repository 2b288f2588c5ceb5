//! A sort of all rows of a table by random numbers.

use super::random::Random;
use super::tables::Tables;
use super::{Setup, Times, Total, check_same, digest, digest_query, load, refs, rounds};
use crate::bench::{Measurement, Options};
use anyhow::{Context, Result, ensure};
use arrow::array::{ArrayRef, AsArray, Int64Array, RecordBatch};
use arrow::datatypes::Int64Type;
use std::sync::Arc;
use tharsis::frame::{Library, sql};

const QUERY: &str = "select * from x order by k";

/// Seconds of a sort; `size` is rows, each of a random number and its place.
pub fn sort(options: &Options) -> Result<Measurement> {
    let mut tables = Tables::open(options, &format!("sort-{}", options.size))?;
    tables.add("x", options.size, |part, rows| {
        let mut random = Random::new(1 + part as u64);
        let keys = Int64Array::from_iter_values(rows.clone().map(|_| random.bits() as i64));
        let places = Int64Array::from_iter_values(rows.map(|row| row as i64));
        let columns: [(&str, ArrayRef); 2] = [("k", Arc::new(keys)), ("v", Arc::new(places))];
        Ok(RecordBatch::try_from_iter(columns)?)
    })?;
    let setup = Setup::start(options, 0)?;
    let ((frames, own), peak_bytes) = setup.peak_bytes(|| {
        let frames = load(&tables, &setup)?;
        let sorted = sql(QUERY, &refs(&frames)).execute_on(setup.executor())?;
        Ok((frames, digest(&sorted, &setup)?))
    })?;
    let library = Library::new(setup.threads())?;
    for (name, path) in tables.paths() {
        library.run(&format!("create external table {name}_file stored as parquet location '{path}'"))?;
        library.run(&format!("create table {name} as select * from {name}_file"))?;
    }
    let mut times = Times::default();
    for round in 0..rounds(options) {
        let (sorted, _) = times.round(
            || Ok(sql(QUERY, &refs(&frames)).execute_on(setup.executor())?),
            || Ok(library.run(&format!("create table answer as {QUERY}"))?),
        )?;
        if round == 0 {
            check_same("sort", &own, &library.table(&digest_query(&sorted, "answer")?)?)?;
            let rows = sorted.collect_on(setup.executor())?;
            let keys = rows.array("k")?.as_primitive_opt::<Int64Type>().context("keys are no integers")?;
            ensure!(keys.values().is_sorted() && keys.len() == options.size, "the rows are not in order");
        }
        library.run("drop table answer")?;
    }
    let mut total = Total::default();
    total.add("sort", times);
    Ok(total.measurement("frame-sort", &setup, peak_bytes))
}
