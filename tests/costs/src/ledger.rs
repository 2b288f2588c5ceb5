//! The file of the counts, and what has grown since it was written.

use crate::callgrind::Counts;
use anyhow::{Context, Result};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::process::Command;

/// A unit may cost so much more, in percent, before the test fails.
pub const GROWTH_PERCENT: f64 = 2.0;
/// Functions that take less of a unit than this part are not written down.
const SHOWN_PERCENT: f64 = 1.0;
/// Functions that are named when a unit has grown.
const NAMED_MAX: usize = 8;

/// Cost of a unit of a script.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Cost {
    /// Instructions.
    pub instructions: f64,
    /// The same among four times as many units.
    pub among_more: f64,
    /// Instructions in the functions that take most.
    pub functions: BTreeMap<String, f64>,
}

/// All costs, and what they were counted with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// Compiler, profiler, C library, CPU: the counts of others may differ.
    pub counted_by: String,
    /// By script.
    pub costs: BTreeMap<String, Cost>,
}

impl Cost {
    /// The cost of a unit, from a run with `units` and one with four times as many.
    #[must_use]
    pub fn of(units: u64, few: &Counts, many: &Counts) -> Self {
        let each = |count: u64| (count as f64 * 10.0 / units as f64).round() / 10.0;
        let functions = few.functions.iter().map(|(name, count)| (name.clone(), each(*count)));
        let among_more = (many.total as f64 * 10.0 / (4 * units) as f64).round() / 10.0;
        Self { instructions: each(few.total), among_more, functions: functions.collect() }
    }

    /// Growth beyond what is allowed since `before`, in words; `None` if there is none.
    #[must_use]
    pub fn growth_since(&self, before: &Self) -> Option<String> {
        let most = before.instructions * (1.0 + GROWTH_PERCENT / 100.0);
        if self.instructions <= most {
            return None;
        }
        let percent = (self.instructions / before.instructions - 1.0) * 100.0;
        let mut text = format!(
            "{} instructions instead of {} (+{percent:.1} %):",
            self.instructions, before.instructions
        );
        // A function that is not written down took less than was worth it.
        let known = |name: &String| before.functions.get(name).copied();
        let unknown = before.instructions * SHOWN_PERCENT / 100.0;
        let grown =
            |(name, now): (&String, &f64)| (now - known(name).unwrap_or(unknown.min(*now)), name.clone());
        let mut grown: Vec<_> = self.functions.iter().map(grown).filter(|(by, _)| 0.0 < *by).collect();
        grown.sort_by(|(a, _), (b, _)| b.total_cmp(a));
        for (by, name) in grown.iter().take(NAMED_MAX) {
            let _ = write!(text, "\n    +{by:.1} {name}");
        }
        Some(text)
    }
}

impl Ledger {
    /// Reads the file.
    ///
    /// # Errors
    /// If it is not one that [`Ledger::to_text`] has written.
    pub fn parse(text: &str) -> Result<Self> {
        let table: toml::Table = text.parse().context("the ledger is no TOML")?;
        let number = |value: &toml::Value| value.as_float().or_else(|| value.as_integer().map(|n| n as f64));
        let mut ledger = Self::default();
        for (name, value) in &table {
            if name == "counted_by" {
                ledger.counted_by = value.as_str().context("`counted_by` is no text")?.to_owned();
                continue;
            }
            let cost = value.as_table().with_context(|| format!("{name} is no table"))?;
            let field = |key: &str| {
                cost.get(key).and_then(number).with_context(|| format!("{name} has no number `{key}`"))
            };
            let functions = cost.get("functions").and_then(toml::Value::as_table);
            let functions = functions.into_iter().flatten();
            let functions =
                functions.filter_map(|(name, value)| Some((name.clone(), number(value)?))).collect();
            let cost =
                Cost { instructions: field("instructions")?, among_more: field("among_more")?, functions };
            ledger.costs.insert(name.clone(), cost);
        }
        Ok(ledger)
    }

    /// The file.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = String::from(
            "# Instructions that a unit of work takes, counted by callgrind (`tests/costs`), and among four times as many\n\
             # units; then those in the functions that take most, without what they call. `cargo xtask costs` writes this\n\
             # file; a unit that takes 2 % more fails the tests.\n\n",
        );
        let _ = writeln!(text, "counted_by = {}", toml::Value::from(self.counted_by.as_str()));
        for (name, cost) in &self.costs {
            let Cost { instructions, among_more, functions } = cost;
            let _ =
                writeln!(text, "\n[{name}]\ninstructions = {instructions:.1}\namong_more = {among_more:.1}");
            let _ = writeln!(text, "\n[{name}.functions]");
            let least = instructions * SHOWN_PERCENT / 100.0;
            for (function, count) in functions.iter().filter(|(_, count)| least <= **count) {
                let _ = writeln!(text, "{} = {count:.1}", toml::Value::from(function.as_str()));
            }
        }
        text
    }
}

/// Things that counts depend on besides the code: compiler and settings, profiler, C library, CPU.
///
/// # Errors
/// If the compiler cannot be asked.
pub fn counted_by(valgrind: &str) -> Result<String> {
    let said = |program: &str, word: &str| -> Result<String> {
        let output = Command::new(program).arg(word).output();
        let output = output.with_context(|| format!("cannot start {program}"))?;
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let rustc = said("rustc", "--version")?;
    let libc = said("getconf", "GNU_LIBC_VERSION")?;
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = cpu.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    // Those by which the C library chooses how to copy, of what valgrind passes on.
    let of_copies = ["ssse3", "sse4_2", "avx", "avx2", "bmi2", "fma", "erms"];
    let flags: Vec<_> =
        of_copies.into_iter().filter(|flag| flags.split(' ').any(|has| has == *flag)).collect();
    // Cargo splits a crate in another way for builds that are to be repeated in parts.
    let incremental = option_env!("CARGO_INCREMENTAL").unwrap_or("1");
    // In a run of the tests clippy compiles our crates, and optimises less.
    let driver = if option_env!("RUSTC_WORKSPACE_WRAPPER").is_some() { "clippy" } else { "rustc" };
    let checks = if cfg!(debug_assertions) { "with" } else { "without" };
    Ok(format!(
        "{rustc} by {driver}, {checks} assertions, incremental {incremental}; {valgrind}; {libc}; {} {}",
        std::env::consts::ARCH,
        flags.join(" ")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(functions: &[(&str, u64)]) -> Counts {
        let functions: BTreeMap<_, _> = functions.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        Counts { total: functions.values().sum(), functions }
    }

    #[test]
    fn a_ledger_is_read_as_it_was_written() {
        let few = counts(&[("core::a \"b\"", 9_900), ("core::c", 10_000), ("tiny", 3)]);
        let cost = Cost::of(10, &few, &counts(&[("core::c", 80_000)]));
        let mut ledger = Ledger { counted_by: "one \"two\"".to_owned(), ..Ledger::default() };
        ledger.costs.insert("task-queued".to_owned(), cost.clone());
        let read = Ledger::parse(&ledger.to_text()).unwrap();
        assert_eq!(read.counted_by, ledger.counted_by);
        let Cost { instructions, among_more, functions } = &read.costs["task-queued"];
        assert_eq!((*instructions, *among_more), (1_990.3, 2_000.0));
        let shown: BTreeMap<_, _> = cost.functions.iter().filter(|(name, _)| *name != "tiny").collect();
        assert_eq!(functions.iter().collect::<BTreeMap<_, _>>(), shown);
        assert!(Ledger::parse("[task]\ninstructions = 1").is_err());
    }

    #[test]
    fn what_has_grown_is_named() {
        let of = |functions: &[(&str, u64)]| Cost::of(1, &counts(functions), &Counts::default());
        let before = of(&[("a", 500), ("b", 500)]);
        assert_eq!(of(&[("a", 510), ("b", 510)]).growth_since(&before), None);
        let text = of(&[("a", 490), ("b", 520), ("new", 20)]).growth_since(&before).unwrap();
        assert!(
            text.starts_with("1030 instructions instead of 1000 (+3.0 %):\n    +20.0 b\n    +10.0 new"),
            "{text}"
        );
    }
}
