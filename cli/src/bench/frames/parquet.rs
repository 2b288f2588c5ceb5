//! A table in memory written to a Parquet file, and read back to the last value of each column.

use super::questions::group_table;
use super::{Setup, Times, Total, check_same, digest_query, load, rounds};
use crate::bench::{Measurement, Options};
use anyhow::{Context, Result};
use std::path::PathBuf;
use tharsis::frame::{Library, read_parquet, sql};

/// Seconds to write and read `size` rows of the table of groups.
pub fn parquet(options: &Options) -> Result<Measurement> {
    let tables = group_table(options)?;
    let setup = Setup::start(options, 0)?;
    let file = |name: &str| -> String {
        let path: PathBuf = setup.folder().join(name);
        path.to_string_lossy().into_owned()
    };
    let (ours, others) = (file("ours.parquet"), file("library.parquet"));
    let read = |path: &str| -> Result<_> {
        let frame = read_parquet(path);
        Ok(sql(&digest_query(&frame, "answer")?, &[("answer", &frame)]).collect_on(setup.executor())?)
    };
    let ((frames, own), peak_bytes) = setup.peak_bytes(|| {
        let frames = load(&tables, &setup)?;
        let (_, x) = frames.first().context("a table")?;
        x.to_parquet(&ours)?;
        let own = read(&ours)?;
        Ok((frames, own))
    })?;
    let (_, x) = frames.first().context("a table")?;
    let library = Library::new(setup.threads())?;
    for (name, path) in tables.paths() {
        library.run(&format!("create external table {name}_file stored as parquet location '{path}'"))?;
        library.run(&format!("create table {name} as select * from {name}_file"))?;
    }
    // Both sides compress alike.
    let copy = format!("copy x to '{others}' stored as parquet options (format.compression 'zstd(1)')");
    let external = format!("create external table answer stored as parquet location '{others}'");
    let query = digest_query(x, "answer")?;
    let (mut writes, mut reads) = (Times::default(), Times::default());
    for round in 0..rounds(options) {
        writes.round(|| Ok(x.to_parquet(&ours)?), || Ok(library.run(&copy)?))?;
        let library_reads = || {
            library.run(&external)?;
            Ok(library.table(&query)?)
        };
        let (_, other) = reads.round(|| read(&ours), library_reads)?;
        if round == 0 {
            check_same("parquet", &own, &other)?;
        }
        library.run("drop table answer")?;
    }
    let mut total = Total::default();
    total.add("write", writes);
    total.add("read", reads);
    let file_mb = std::fs::metadata(&ours)?.len() as f64 / 1e6;
    let library_mb = std::fs::metadata(&others)?.len() as f64 / 1e6;
    let measured = total.measurement("frame-parquet", &setup, peak_bytes);
    Ok(measured.with("file_mb", file_mb).with("library_file_mb", library_mb))
}
