//! `tharsis sql`: a query over files.

use crate::args::SqlArgs;
use crate::output;
use crate::refusal::Refusal;
use anyhow::Result;
use std::path::Path;
use tharsis::frame::{CsvOptions, DataFrame, read_arrow, read_csv, read_json, read_parquet, sql};

/// Answers a query, or prints its plan.
///
/// # Errors
/// `Query` for a mistake in the query or a file that is missing; an error of the run.
pub fn run(asked: &SqlArgs) -> Result<()> {
    let tables: Vec<(&str, DataFrame)> =
        asked.tables.iter().map(|(name, path)| (name.as_str(), table(path))).collect();
    let named: Vec<(&str, &DataFrame)> = tables.iter().map(|(name, frame)| (*name, frame)).collect();
    let rows = sql(&asked.query, &named);
    rows.check().map_err(|cause| Refusal::Query { cause: cause.root().clone() })?;
    match &asked.output {
        _ if asked.explain => output::line(&rows.explain()?.to_string()),
        None => output::line(&rows.collect()?.to_string()),
        Some(path) if ending(path) == "csv" => Ok(rows.to_csv(path)?),
        Some(path) => Ok(rows.to_parquet(path)?),
    }
}

/// The frame of a file, a folder or a pattern.
fn table(path: &str) -> DataFrame {
    match ending(path) {
        "csv" => read_csv(path, CsvOptions::default()),
        "json" | "jsonl" | "ndjson" => read_json(path),
        "arrow" => read_arrow(path),
        _ => read_parquet(path),
    }
}

fn ending(path: &str) -> &str {
    Path::new(path).extension().and_then(|ending| ending.to_str()).unwrap_or("")
}
