//! `tharsis join`: this machine becomes one of a cluster, without a node.

use crate::settings::Settings;
use crate::{output, reach};
use anyhow::Result;
use tharsis_identity::Token;

/// Joins with a token, and keeps the identity.
///
/// # Errors
/// `MalformedToken`, `NothingAnswers` or `NotJoined`.
pub fn run(addresses: &str, token: &str, settings: &Settings) -> Result<()> {
    let token: Token = token.parse()?;
    reach::join(&settings.identity_dir(), addresses, &token)?;
    output::line(&format!("This machine has joined the cluster at {addresses}."))
}
