//! The back end of a control store, as the user sets it.

use crate::backend::Backend;
use crate::embedded::Embedded;
use crate::error::StoreError;
use crate::keyspace::EmbeddedLimits;
use serde::{Deserialize, Serialize};
use std::fmt;
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
        /// Means by which it and its servers know each other.
        #[serde(default)]
        access: EtcdAccess,
    },
    /// In a file on this machine, which is made if it is missing. Needs the feature `file`.
    File(PathBuf),
    /// In memory: the cluster ends with the process.
    Memory,
}

/// Means by which a control store and the servers of its etcd know each other. Secrets stay in their files:
/// this is a part of what a node is told when it starts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct EtcdAccess {
    /// File with the certificate of the authority that signed those of the servers, as PEM.
    pub ca: Option<PathBuf>,
    /// Files with the certificate and the key that are shown to the servers, as PEM.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// A user, and the file with its password.
    pub user: Option<(String, PathBuf)>,
}

impl fmt::Display for BackendChoice {
    /// As a log or a command names it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Etcd { endpoints, .. } => write!(f, "etcd at {}", endpoints.join(", ")),
            Self::File(path) => write!(f, "{}", path.display()),
            Self::Memory => f.write_str("in memory"),
        }
    }
}

impl BackendChoice {
    /// Whether control stores of other clusters may reach the same place.
    #[must_use]
    pub fn is_shared(&self) -> bool {
        matches!(self, Self::Etcd { .. })
    }

    /// Opens the back end. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Errors of the back end; [`StoreError::Connect`] for etcd if this program was built without it.
    pub async fn open(&self) -> Result<Arc<dyn Backend>, StoreError> {
        match self {
            Self::Etcd { endpoints, cluster, access } => etcd(endpoints, cluster, access).await,
            Self::File(path) => Ok(Arc::new(Embedded::open(path, EmbeddedLimits::default()).await?)),
            Self::Memory => Ok(Arc::new(Embedded::memory(EmbeddedLimits::default()))),
        }
    }
}

#[cfg(feature = "etcd")]
async fn etcd(
    endpoints: &[String],
    cluster: &str,
    access: &EtcdAccess,
) -> Result<Arc<dyn Backend>, StoreError> {
    use crate::etcd::{Etcd, EtcdOptions, EtcdTls, EtcdUser};
    let user = match &access.user {
        Some((name, file)) => {
            let password = text(file)?.trim_end_matches(['\r', '\n']).to_owned();
            Some(EtcdUser { name: name.clone(), password })
        }
        None => None,
    };
    let identity = match &access.identity {
        Some((certificate, key)) => Some((text(certificate)?, text(key)?)),
        None => None,
    };
    let tls = match &access.ca {
        Some(ca) => Some(EtcdTls { ca: text(ca)?, identity }),
        None => None,
    };
    let (endpoints, cluster) = (endpoints.to_vec(), cluster.to_owned());
    Ok(Arc::new(Etcd::connect(EtcdOptions { endpoints, cluster, user, tls }).await?))
}

#[cfg(feature = "etcd")]
fn text(file: &std::path::Path) -> Result<String, StoreError> {
    let failed = |cause: std::io::Error| StoreError::Io {
        path: file.to_owned(),
        is_full: false,
        cause: cause.to_string(),
    };
    std::fs::read_to_string(file).map_err(failed)
}

#[cfg(not(feature = "etcd"))]
async fn etcd(
    endpoints: &[String],
    _cluster: &str,
    _access: &EtcdAccess,
) -> Result<Arc<dyn Backend>, StoreError> {
    let cause = "this program was built without the feature `etcd`".to_owned();
    Err(StoreError::Connect { endpoints: endpoints.to_vec(), cause })
}
