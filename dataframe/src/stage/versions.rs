//! Versions of files in object stores and on web servers: the library leaves them out of the messages of
//! scans, and a file of the same size may take another one's place within a second.

use datafusion::common::{Result, internal_datafusion_err};
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use prost::Message;
use std::sync::Arc;

/// The tag and the version of each file of each group of a scan, in their order; an empty text for none.
#[derive(Clone, PartialEq, Message)]
pub(super) struct VersionsNode {
    #[prost(string, repeated, tag = "1")]
    tags: Vec<String>,
    #[prost(string, repeated, tag = "2")]
    versions: Vec<String>,
}

impl VersionsNode {
    /// Those of the files that a plan reads, if it is a scan of files that have some. Those of a disk have
    /// others on each machine.
    pub(super) fn of(plan: &Arc<dyn ExecutionPlan>) -> Option<VersionsNode> {
        let scan = scan(plan).filter(|scan| !crate::scan::is_on_disk(&scan.object_store_url))?;
        let files = || scan.file_groups.iter().flat_map(FileGroup::iter).map(|file| &file.object_meta);
        if files().all(|meta| meta.e_tag.is_none() && meta.version.is_none()) {
            return None;
        }
        Some(VersionsNode {
            tags: files().map(|meta| meta.e_tag.clone().unwrap_or_default()).collect(),
            versions: files().map(|meta| meta.version.clone().unwrap_or_default()).collect(),
        })
    }

    /// The scan whose files have these versions.
    pub(super) fn of_files(self, plan: &Arc<dyn ExecutionPlan>) -> Result<Arc<dyn ExecutionPlan>> {
        let scan = scan(plan).ok_or_else(|| internal_datafusion_err!("versions of no files"))?;
        let mut known = self.tags.into_iter().zip(self.versions);
        let mut groups = Vec::with_capacity(scan.file_groups.len());
        for group in &scan.file_groups {
            let mut files = group.files().to_vec();
            for file in &mut files {
                let (tag, version) =
                    known.next().ok_or_else(|| internal_datafusion_err!("a file without a version"))?;
                file.object_meta.e_tag = Some(tag).filter(|tag| !tag.is_empty());
                file.object_meta.version = Some(version).filter(|version| !version.is_empty());
            }
            let made = FileGroup::new(files);
            groups.push(match group.file_statistics(None) {
                Some(statistics) => made.with_statistics(Arc::new(statistics.clone())),
                None => made,
            });
        }
        let scan = FileScanConfigBuilder::from(scan.clone()).with_file_groups(groups).build();
        Ok(DataSourceExec::from_data_source(scan))
    }
}

fn scan(plan: &Arc<dyn ExecutionPlan>) -> Option<&FileScanConfig> {
    plan.downcast_ref::<DataSourceExec>()?.data_source().downcast_ref::<FileScanConfig>()
}
