//! The seeds of random tests: the same ones in a usual run, fresh ones in a long run, or those that the user
//! names. The part of listed cases that a usual run tries: another one for each commit.

use anyhow::{Context, Result};
use std::path::Path;
use std::process::Command;
use std::time::{SystemTime, UNIX_EPOCH};

/// Variable with the seed that the user names. See `tests/trials`.
const SEED: &str = "THARSIS_SEED";
/// Variable with the number of the part of listed cases. See `tests/trials`.
const PART: &str = "THARSIS_TEST_PART";
/// Variable with the seed of property tests, which the library for them reads.
const OF_PROPERTIES: &str = "PROPTEST_RNG_SEED";
/// Seed of property tests in a usual run; `.cargo/config.toml` has it too, for runs by hand.
const USUAL: u64 = 1;

/// The amount of random cases, and where they begin.
pub struct Seeds {
    is_long: bool,
    are_named: bool,
    of_properties: u64,
    part: u64,
}

impl Seeds {
    /// Those of a run of the tree at a root.
    ///
    /// # Errors
    ///
    /// If the user names a seed or a part that is no number.
    pub fn find(is_long: bool, root: &Path) -> Result<Self> {
        let (seed, part) = (given(SEED)?, given(PART)?);
        let of_properties = seed.unwrap_or_else(|| fresh_if(is_long));
        let part = part.unwrap_or_else(|| commits(root).unwrap_or_default());
        Ok(Self { is_long, are_named: seed.is_some(), of_properties, part })
    }

    /// Those of a usual run.
    #[cfg(test)]
    pub fn usual() -> Self {
        Self { is_long: false, are_named: false, of_properties: USUAL, part: 0 }
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

    /// The number of the part of listed cases.
    pub fn part(&self) -> u64 {
        self.part
    }

    /// Hands them to a test program.
    pub fn set(&self, command: &mut Command) {
        command.env(OF_PROPERTIES, self.of_properties.to_string()).env(PART, self.part.to_string());
        if self.is_long {
            command.env("THARSIS_LONG", "1");
        }
    }
}

/// A number that the user names by a variable.
fn given(variable: &str) -> Result<Option<u64>> {
    let given = std::env::var_os(variable).map(|value| {
        let value = value.to_string_lossy().into_owned();
        value.parse().with_context(|| format!("{variable} is no number from 0 to 2^64 - 1: {value:?}"))
    });
    given.transpose()
}

/// The number of commits up to the one of the tree, if there is one.
fn commits(root: &Path) -> Option<u64> {
    let words = ["rev-list", "--count", "HEAD"];
    let output = Command::new("git").args(words).current_dir(root).output().ok()?;
    String::from_utf8(output.stdout).ok()?.trim().parse().ok()
}

fn fresh_if(is_long: bool) -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    // The nanoseconds of centuries fit.
    if is_long { since.map_or(USUAL, |since| since.as_nanos() as u64) } else { USUAL }
}

#[cfg(test)]
mod tests {
    use super::{OF_PROPERTIES, Seeds, USUAL, commits};
    use std::process::Command;

    #[test]
    fn runs_by_hand_have_the_seed_of_a_usual_run() {
        let settings = std::fs::read_to_string(crate::root().join(".cargo/config.toml")).unwrap();
        assert!(settings.contains(&format!("\n{OF_PROPERTIES} = \"{USUAL}\"\n")), "{settings}");
    }

    #[test]
    fn a_long_run_has_other_seeds_than_the_environment_says() {
        let seeds = Seeds { is_long: true, are_named: false, of_properties: 7, part: 5 };
        let mut command = Command::new("env");
        seeds.set(command.env(OF_PROPERTIES, "1"));
        let said = String::from_utf8(command.output().unwrap().stdout).unwrap();
        assert!(
            said.contains(&format!("{OF_PROPERTIES}=7\n")) && said.contains("THARSIS_LONG=1\n"),
            "{said}"
        );
        assert!(said.contains("THARSIS_TEST_PART=5\n"), "{said}");
    }

    #[test]
    fn each_commit_has_another_part() {
        let folder = tempfile::tempdir().unwrap();
        let git = |words: &[&str]| {
            let mut git = Command::new("git");
            git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
            git.args(["-c", "user.name=test", "-c", "user.email=test@localhost"]);
            assert!(git.args(words).current_dir(folder.path()).status().unwrap().success());
        };
        git(&["init", "--quiet", "--template="]);
        assert_eq!(commits(folder.path()), None);
        for count in 1..=2 {
            git(&["commit", "--quiet", "--allow-empty", "--message", "one"]);
            assert_eq!(commits(folder.path()), Some(count));
        }
    }
}
