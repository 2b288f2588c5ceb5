//! `tharsis doctor`: checks whether a node would run well on this machine, with the settings that it is to
//! have. Nothing is started, and nothing is left behind.
//!
//! | read | for |
//! |---|---|
//! | [`facts`] | facts about a machine, as data |
//! | [`gather`], [`disk`], [`network`] | how they are measured |
//! | [`judge`] | what they mean, without a look at the machine |
//! | [`row`] | the checks as they are shown |

mod disk;
mod facts;
mod gather;
mod judge;
mod network;
mod row;

use crate::commands::node;
use crate::output;
use crate::refusal::Refusal;
use crate::settings::{Flags, Settings};
use anyhow::Result;
use row::State;
use serde_json::json;

/// Checks this machine for a node that joins at `address`, or is alone or a head without one.
///
/// # Errors
/// `ChecksFailed`; the error of settings that no node would have.
pub fn run(address: Option<&str>, flags: &Flags, json: bool) -> Result<()> {
    node::check_flags(address, flags)?;
    let rows = judge::rows(&gather::facts(address, &Settings::read(flags)?)?);
    if json {
        output::line(&json!({ "checks": rows }).to_string())?;
    } else {
        row::lines(&rows).iter().try_for_each(|line| output::line(line))?;
    }
    let failed = rows.iter().filter(|row| row.state == State::Failed).count();
    if failed == 0 { Ok(()) } else { Err(Refusal::ChecksFailed { failed, all: rows.len() }.into()) }
}
