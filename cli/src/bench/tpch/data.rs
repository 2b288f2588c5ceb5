//! The tables of TPC-H as Parquet files, made by the generator of the `tpchgen` crate.

use crate::bench::Options;
use crate::bench::frames::Tables;
use anyhow::Result;
use std::path::Path;
use tharsis::frame::DataFrame;
use tpchgen::generators::{
    CustomerGenerator, LineItemGenerator, NationGenerator, OrderGenerator, PartGenerator, PartSuppGenerator,
    RegionGenerator, SupplierGenerator,
};
use tpchgen_arrow::arrow::array::RecordBatchReader;
use tpchgen_arrow::{
    CustomerArrow, LineItemArrow, NationArrow, OrderArrow, PartArrow, PartSuppArrow, RegionArrow,
    SupplierArrow,
};

/// Rows of one batch, and of a row group at most.
const BATCH_ROWS: usize = 64 * 1024;

/// The tables at a scale, 1 of which is about a gigabyte of text.
pub fn tables(options: &Options) -> Result<Tables> {
    let scale = options.scale();
    let mut tables = Tables::open(options, &format!("tpch-{scale}"))?;
    // Each file takes memory while it is made.
    let parts = scale.ceil().max(1.0) as usize;
    macro_rules! table {
        ($name:literal, $arrow:ident, $generator:ident, $parts:expr) => {
            tables.add_files($name, $parts, |part, path| {
                let rows = $arrow::new($generator::new(scale, part as i32 + 1, $parts as i32));
                write(path, rows.with_batch_size(BATCH_ROWS))
            })?;
        };
    }
    table!("nation", NationArrow, NationGenerator, 1);
    table!("region", RegionArrow, RegionGenerator, 1);
    table!("supplier", SupplierArrow, SupplierGenerator, 1);
    table!("part", PartArrow, PartGenerator, parts);
    table!("partsupp", PartSuppArrow, PartSuppGenerator, parts);
    table!("customer", CustomerArrow, CustomerGenerator, parts);
    table!("orders", OrderArrow, OrderGenerator, parts);
    table!("lineitem", LineItemArrow, LineItemGenerator, parts);
    Ok(tables)
}

fn write(path: &Path, rows: impl RecordBatchReader) -> Result<()> {
    let schema = rows.schema();
    let batches = rows.collect::<Result<Vec<_>, _>>()?;
    Ok(DataFrame::from_batches(schema, batches).to_parquet(&path.to_string_lossy())?)
}
