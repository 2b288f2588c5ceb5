//! The seeds of random tests: the same ones in a usual run, fresh ones in a long run, or those that the user
//! names.

use anyhow::{Context, Result};
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Variable with the seed that the user names. See `tests/trials`.
const SEED: &str = "THARSIS_SEED";
/// Variable with the seed of property tests, which the library for them reads.
const OF_PROPERTIES: &str = "PROPTEST_RNG_SEED";
/// Seed of property tests in a usual run; `.cargo/config.toml` has it too, for runs by hand.
const USUAL: u64 = 1;

/// The amount of random cases, and where they begin.
pub struct Seeds {
    is_long: bool,
    are_named: bool,
    of_properties: u64,
}

impl Seeds {
    /// Those of a run.
    ///
    /// # Errors
    ///
    /// If the user names a seed that is no number.
    pub fn find(is_long: bool) -> Result<Self> {
        let given = std::env::var_os(SEED).map(|seed| {
            let seed = seed.to_string_lossy().into_owned();
            seed.parse::<u64>().with_context(|| format!("{SEED} is no number from 0 to 2^64 - 1: {seed:?}"))
        });
        let given = given.transpose()?;
        let of_properties = given.unwrap_or_else(|| fresh_if(is_long));
        Ok(Self { is_long, are_named: given.is_some(), of_properties })
    }

    /// Those of a usual run.
    #[cfg(test)]
    pub fn usual() -> Self {
        Self { is_long: false, are_named: false, of_properties: USUAL }
    }

    /// Whether all cases run.
    pub fn is_long(&self) -> bool {
        self.is_long
    }

    /// Whether the user has named them.
    pub fn are_named(&self) -> bool {
        self.are_named
    }

    /// The seed of property tests. The library does not print it when one fails.
    pub fn of_properties(&self) -> u64 {
        self.of_properties
    }

    /// Hands them to a test program.
    pub fn set(&self, command: &mut Command) {
        command.env(OF_PROPERTIES, self.of_properties.to_string());
        if self.is_long {
            command.env("THARSIS_LONG", "1");
        }
    }
}

fn fresh_if(is_long: bool) -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    // The nanoseconds of centuries fit.
    if is_long { since.map_or(USUAL, |since| since.as_nanos() as u64) } else { USUAL }
}

#[cfg(test)]
mod tests {
    use super::{OF_PROPERTIES, Seeds, USUAL};
    use std::process::Command;

    #[test]
    fn runs_by_hand_have_the_seed_of_a_usual_run() {
        let settings = std::fs::read_to_string(crate::root().join(".cargo/config.toml")).unwrap();
        assert!(settings.contains(&format!("\n{OF_PROPERTIES} = \"{USUAL}\"\n")), "{settings}");
    }

    #[test]
    fn a_long_run_has_other_seeds_than_the_environment_says() {
        let seeds = Seeds { is_long: true, are_named: false, of_properties: 7 };
        let mut command = Command::new("env");
        seeds.set(command.env(OF_PROPERTIES, "1"));
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(
            said.contains(&format!("{OF_PROPERTIES}=7\n")) && said.contains("THARSIS_LONG=1\n"),
            "{said}"
        );
    }
}
