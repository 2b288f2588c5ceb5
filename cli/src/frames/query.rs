//! `tharsis sql`: a query over files.

use crate::args::SqlArgs;
use crate::output;
use crate::refusal::Refusal;
use anyhow::Result;
use std::path::Path;
use tharsis::frame::{CsvOptions, DataFrame, read_arrow, read_avro, read_csv, read_json, read_parquet, sql};

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
        Some(path) => {
            match ending(path) {
                "csv" => rows.to_csv(path),
                "json" | "jsonl" | "ndjson" => rows.to_json(path),
                "arrow" | "feather" => rows.to_arrow(path),
                _ => rows.to_parquet(path),
            }?;
            Ok(())
        }
    }
}

/// The frame of a file, a folder or a pattern.
fn table(path: &str) -> DataFrame {
    match ending(path) {
        "csv" => read_csv(path, CsvOptions::new()),
        "tsv" => read_csv(path, CsvOptions::new().sep(b'\t')),
        "json" | "jsonl" | "ndjson" => read_json(path),
        "arrow" | "feather" => read_arrow(path),
        "avro" => read_avro(path),
        _ => read_parquet(path),
    }
}

/// The end of a file's name that says its format, before that of a compression.
fn ending(path: &str) -> &str {
    let packed = [".gz", ".bz2", ".xz", ".zst"];
    let path = packed.iter().find_map(|end| path.strip_suffix(end)).unwrap_or(path);
    Path::new(path).extension().and_then(|ending| ending.to_str()).unwrap_or("")
}
