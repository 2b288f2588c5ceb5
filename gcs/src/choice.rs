//! The back end of a control store, as the user sets it.

use crate::backend::Backend;
use crate::embedded::Embedded;
use crate::error::StoreError;
use crate::keyspace::EmbeddedLimits;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// The place where the tables are kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum BackendChoice {
    /// In an etcd cluster. Needs the feature `etcd`.
    Etcd {
        /// URLs of its servers.
        endpoints: Vec<String>,
        /// Name of the cluster; it is a prefix of its keys.
        cluster: String,
    },
    /// In a file on this machine, which is made if it is missing. Needs the feature `file`.
    File(PathBuf),
    /// In memory: the cluster ends with the process.
    Memory,
}

impl BackendChoice {
    /// Opens the back end. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Errors of the back end; [`StoreError::Connect`] for etcd if this program was built without it.
    pub async fn open(&self) -> Result<Arc<dyn Backend>, StoreError> {
        match self {
            Self::Etcd { endpoints, cluster } => etcd(endpoints, cluster).await,
            Self::File(path) => Ok(Arc::new(Embedded::open(path, EmbeddedLimits::default()).await?)),
            Self::Memory => Ok(Arc::new(Embedded::memory(EmbeddedLimits::default()))),
        }
    }
}

#[cfg(feature = "etcd")]
async fn etcd(endpoints: &[String], cluster: &str) -> Result<Arc<dyn Backend>, StoreError> {
    let (endpoints, cluster) = (endpoints.to_vec(), cluster.to_owned());
    let options = crate::etcd::EtcdOptions { endpoints, cluster, user: None, tls: None };
    Ok(Arc::new(crate::etcd::Etcd::connect(options).await?))
}

#[cfg(not(feature = "etcd"))]
async fn etcd(endpoints: &[String], _cluster: &str) -> Result<Arc<dyn Backend>, StoreError> {
    let cause = "this program was built without the feature `etcd`".to_owned();
    Err(StoreError::Connect { endpoints: endpoints.to_vec(), cause })
}
