//! `tharsis authority`: another key for the authority of the head on this machine.

use crate::args::AuthorityCommand;
use crate::output;
use crate::settings::Settings;
use anyhow::Result;
use std::time::Duration;
use tharsis::process;
use tharsis_identity::Authority;

/// Heads that run look for another key every 2 s.
const HEADS_HEAR: Duration = Duration::from_secs(4);

/// Replaces the key, or ends the trust in the former one.
///
/// # Errors
/// `NoAuthority`, `Replacing`, `NotReplacing`, `Overlap`.
pub fn run(asked: AuthorityCommand) -> Result<()> {
    match asked {
        AuthorityCommand::Rotate { settings } => {
            let settings = Settings::read(&settings)?;
            authority(&settings)?.rotate()?;
            // A token that is made next names the new key, and the head must show it.
            std::thread::sleep(HEADS_HEAR);
            let overlap = settings.certificate_lifetime()?.as_secs();
            output::line(
                "The authority has another key. What the former one signed is good until it is retired.",
            )?;
            output::line(&format!(
                "All nodes use the new one in {overlap} s; then run: tharsis authority retire"
            ))
        }
        AuthorityCommand::Retire { force, settings } => {
            let settings = Settings::read(&settings)?;
            let overlap = if force { HEADS_HEAR } else { settings.certificate_lifetime()? };
            authority(&settings)?.retire(overlap)?;
            output::line(
                "What the former key signed is good no more. Machines that were away join with new tokens.",
            )
        }
    }
}

fn authority(settings: &Settings) -> Result<Authority> {
    Ok(Authority::load(&process::authority_folder(&settings.identity_dir()))?)
}
