//! The words of `tharsis top`.

use crate::settings::flags::FlagsOf;
use crate::settings::{key, parse};
use clap::Args as ClapArgs;
use std::time::Duration;

/// The shortest time between two looks.
const INTERVAL_MIN: Duration = Duration::from_millis(100);

/// Frequency and form of the view.
#[derive(Clone, Debug, ClapArgs)]
pub struct TopArgs {
    /// Time between two looks, such as 500ms; at least 100ms.
    #[arg(long, value_name = "DURATION", default_value = "1s", value_parser = interval)]
    pub interval: Duration,
    /// Print it once, and end; without a terminal it is so in any case.
    #[arg(long)]
    pub once: bool,
    /// One JSON object, once: that of `tharsis status` with jobs, runs and ages.
    #[arg(long)]
    pub json: bool,
    /// The node to ask, and the identity to show to others.
    #[command(flatten)]
    pub settings: FlagsOf<{ key::CALL }>,
}

fn interval(text: &str) -> Result<Duration, String> {
    let interval = parse::positive_duration(text)?;
    if interval < INTERVAL_MIN { Err("must be at least 100ms".to_owned()) } else { Ok(interval) }
}
