//! The tables of TPC-H as Parquet files, made by the generator of the `tpchgen` crate.

use anyhow::Result;
use std::path::PathBuf;
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

/// A folder with the tables, which is removed at the end.
pub struct Data {
    folder: PathBuf,
    files: Vec<(&'static str, String)>,
}

impl Data {
    /// Makes the tables at a scale, 1 of which is about a gigabyte of text.
    pub fn new(scale: f64) -> Result<Data> {
        let folder = std::env::temp_dir().join(format!("tharsis-tpch-{}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut data = Data { folder, files: Vec::new() };
        // Each file takes memory while it is made.
        let parts = (scale.ceil() as i32).max(1);
        macro_rules! table {
            ($name:literal, $arrow:ident, $generator:ident, $parts:expr) => {
                for part in 1..=$parts {
                    let rows = $arrow::new($generator::new(scale, part, $parts));
                    data.write($name, part, rows.with_batch_size(BATCH_ROWS))?;
                }
                data.name($name);
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
        Ok(data)
    }

    /// Names of the tables, and the folders of their files.
    pub fn files(&self) -> &[(&'static str, String)] {
        &self.files
    }

    fn name(&mut self, name: &'static str) {
        self.files.push((name, format!("{}/", self.folder.join(name).display())));
    }

    fn write(&self, name: &str, part: i32, rows: impl RecordBatchReader) -> Result<()> {
        let folder = self.folder.join(name);
        std::fs::create_dir_all(&folder)?;
        let schema = rows.schema();
        let batches = rows.collect::<Result<Vec<_>, _>>()?;
        let path = folder.join(format!("{part:03}.parquet"));
        DataFrame::from_batches(schema, batches).to_parquet(&path.to_string_lossy())?;
        Ok(())
    }
}

impl Drop for Data {
    fn drop(&mut self) {
        let _already_gone = std::fs::remove_dir_all(&self.folder);
    }
}
