//! Scans of compressed files: the library leaves the compression out of their messages.

use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::{Result, internal_datafusion_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::physical_plan::{FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use std::sync::Arc;

/// The compression of the files that a plan reads, if it is a scan of compressed ones.
pub(super) fn compression(plan: &Arc<dyn ExecutionPlan>) -> Option<String> {
    let compression = scan(plan)?.file_compression_type;
    compression.is_compressed().then(|| compression.get_variant().to_string())
}

/// The scan of files with this compression.
pub(super) fn with_compression(
    plan: &Arc<dyn ExecutionPlan>,
    compression: &str,
) -> Result<Arc<dyn ExecutionPlan>> {
    let scan = scan(plan).ok_or_else(|| internal_datafusion_err!("a compression of no files"))?;
    let variant: CompressionTypeVariant =
        compression.parse().map_err(|_| internal_datafusion_err!("unknown compression {compression}"))?;
    let scan = FileScanConfigBuilder::from(scan.clone());
    let scan = scan.with_file_compression_type(FileCompressionType::from(variant)).build();
    Ok(DataSourceExec::from_data_source(scan))
}

fn scan(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()
}
