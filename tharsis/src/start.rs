//! From an [`Init`] to a running job.

use crate::init::Init;
use crate::runtime::Started;
use std::path::Path;
use tharsis_protos::handshake::Role;
use tharsis_remote::{Error, FailureKind, Result, connect};
use tharsis_types::CodeUnitId;

/// Starts what `init` describes.
pub(crate) fn start(init: &Init) -> Result<Started> {
    match init.address.as_deref() {
        Some(address) => start_at(init, Path::new(address)),
        None => Err(Error::new(FailureKind::Internal, "the embedded node is not part of this build")),
    }
}

/// Connects to the node at this socket.
fn start_at(init: &Init, socket: &Path) -> Result<Started> {
    let executable = std::env::current_exe().map(|path| path.display().to_string()).unwrap_or_default();
    let role = Role::Driver {
        job_name: init.job_name.clone().unwrap_or_default(),
        namespace: init.namespace.clone().unwrap_or_default(),
        code_unit: CodeUnitId([0; 32]),
        executable,
    };
    let client = connect(socket, role, None)?;
    Ok(Started { client, stop: Box::new(|| {}) })
}
