//! The state of the node of a host, as `tharsis status` there tells it.

use super::file::Host;
use super::ssh::NotRun;
use crate::refusal::NO_ANSWER;
use crate::settings::Key;
use tharsis_protos::report::Report;

/// Why the state of a host is not known, or why something failed there.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// Nothing ran there.
    #[error(transparent)]
    NotRun(#[from] NotRun),
    /// The program failed.
    #[error("{0}")]
    Failed(String),
    /// It answered something else than this release does.
    #[error("the program there answers something else than this release: {0}")]
    Unreadable(String),
}

impl Host {
    /// The report of its node; `None` if none runs.
    ///
    /// # Errors
    /// [`HostError`].
    pub async fn report(&self) -> Result<Option<Report>, HostError> {
        let mut words = vec!["status".to_owned(), "--json".to_owned()];
        words.extend(self.flags(|key| key == Key::Socket));
        let ran = self.run(&words, None).await?;
        match ran.status {
            0 => {
                serde_json::from_str(&ran.out).map(Some).map_err(|bad| HostError::Unreadable(bad.to_string()))
            }
            status if status == i32::from(NO_ANSWER) => Ok(None),
            _ => Err(HostError::Failed(ran.reason())),
        }
    }

    /// The version of the program there.
    ///
    /// # Errors
    /// [`HostError`].
    pub async fn version(&self) -> Result<String, HostError> {
        let ran = self.run(&["version".to_owned(), "--json".to_owned()], None).await?;
        let version = serde_json::from_str::<serde_json::Value>(&ran.out);
        let version = version.ok().and_then(|said| said["version"].as_str().map(str::to_owned));
        version.ok_or_else(|| HostError::Unreadable(ran.reason()))
    }
}

/// Whether a report names a node as a member.
pub fn knows(report: &Report, node: u64) -> bool {
    report.nodes.iter().any(|row| row.node == node)
}
