//! `tharsis sql`: a query over files.

use crate::args::SqlArgs;
use crate::format::Format;
use crate::output;
use crate::refusal::Refusal;
use anyhow::Result;
use tharsis::frame::{
    CsvOptions, DataFrame, WriteOptions, read_arrow, read_avro, read_csv, read_json, read_parquet, sql,
};

/// Answers a query, or prints its plan.
///
/// # Errors
/// `Query` for a mistake in the query or a file that is missing; an error of the run.
pub fn query(asked: &SqlArgs) -> Result<()> {
    let tables: Vec<(&str, DataFrame)> =
        asked.tables.iter().map(|(name, path)| (name.as_str(), table(path))).collect();
    let named: Vec<(&str, &DataFrame)> = tables.iter().map(|(name, frame)| (*name, frame)).collect();
    let rows = sql(&asked.query, &named);
    rows.check().map_err(|cause| Refusal::Query { cause: cause.root().clone() })?;
    match &asked.output {
        _ if asked.explain => output::line(&rows.explain()?.to_string()),
        None => output::line(&rows.collect()?.to_string()),
        Some(path) => write(&rows, path),
    }
}

/// Writes rows to a file in the format that its ending says.
fn write(rows: &DataFrame, path: &str) -> Result<()> {
    match Format::of(path) {
        Some(Format::Csv) => rows.to_csv(path),
        Some(Format::Tsv) => rows.to_csv_with(path, WriteOptions::new().sep(b'\t')),
        Some(Format::Json) => rows.to_json(path),
        Some(Format::Arrow) => rows.to_arrow(path),
        // The words of the command have been checked: no other format is written.
        Some(Format::Parquet | Format::Avro) | None => rows.to_parquet(path),
    }?;
    Ok(())
}

/// The frame of a file, a folder or a pattern.
fn table(path: &str) -> DataFrame {
    match Format::of(path) {
        Some(Format::Csv) => read_csv(path, CsvOptions::new()),
        Some(Format::Tsv) => read_csv(path, CsvOptions::new().sep(b'\t')),
        Some(Format::Json) => read_json(path),
        Some(Format::Arrow) => read_arrow(path),
        Some(Format::Avro) => read_avro(path),
        Some(Format::Parquet) | None => read_parquet(path),
    }
}
