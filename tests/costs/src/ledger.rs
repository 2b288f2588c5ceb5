//! The file of the counts, and what has grown since it was written.

use crate::callgrind::Counts;
use anyhow::{Context, Result, bail};
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
    /// The part of these in the C library: it depends on its version, and on the CPU.
    pub of_libraries: f64,
    /// Instructions among four times as many units.
    pub among_more: f64,
    /// Instructions in the functions that take most.
    pub functions: BTreeMap<String, f64>,
}

/// All costs, and what they were counted with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ledger {
    /// The compiler of the program: the counts of another one differ.
    pub compiled_by: String,
    /// C library, CPU, profiler: with others, only instructions outside of the C library are compared.
    pub counted_with: String,
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
        let (instructions, of_libraries) = (each(few.total), each(few.of_libraries));
        Self { instructions, of_libraries, among_more, functions: functions.collect() }
    }

    /// The instructions that are compared.
    fn compared(&self, with_libraries: bool) -> f64 {
        if with_libraries { self.instructions } else { self.instructions - self.of_libraries }
    }

    /// Growth beyond what is allowed since `before`, in words; `None` if there is none. Those of libraries
    /// count if they are the same ones.
    #[must_use]
    pub fn growth_since(&self, before: &Self, with_libraries: bool) -> Option<String> {
        let (is, was) = (self.compared(with_libraries), before.compared(with_libraries));
        if is <= was * (1.0 + GROWTH_PERCENT / 100.0) {
            return None;
        }
        let percent = (is / was - 1.0) * 100.0;
        let mut text = format!("{is:.1} instructions instead of {was:.1} (+{percent:.1} %):");
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
            if let Some(text) = value.as_str() {
                let field = match name.as_str() {
                    "compiled_by" => &mut ledger.compiled_by,
                    "counted_with" => &mut ledger.counted_with,
                    _ => bail!("the ledger has a text `{name}`"),
                };
                text.clone_into(field);
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
            let cost = Cost {
                instructions: field("instructions")?,
                of_libraries: field("of_libraries")?,
                among_more: field("among_more")?,
                functions,
            };
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
        let _ = writeln!(text, "compiled_by = {}", toml::Value::from(self.compiled_by.as_str()));
        let _ = writeln!(text, "counted_with = {}", toml::Value::from(self.counted_with.as_str()));
        for (name, cost) in &self.costs {
            let Cost { instructions, of_libraries, among_more, functions } = cost;
            let _ = writeln!(text, "\n[{name}]\ninstructions = {instructions:.1}");
            let _ = writeln!(text, "of_libraries = {of_libraries:.1}\namong_more = {among_more:.1}");
            let _ = writeln!(text, "\n[{name}.functions]");
            let least = instructions * SHOWN_PERCENT / 100.0;
            for (function, count) in functions.iter().filter(|(_, count)| least <= **count) {
                let _ = writeln!(text, "{} = {count:.1}", toml::Value::from(function.as_str()));
            }
        }
        text
    }
}

/// Whether a run of all tests has compiled this program: it has clippy as its compiler. The ledger is for
/// these runs, so it is a failure if they cannot compare.
#[must_use]
pub const fn is_of_a_run() -> bool {
    option_env!("RUSTC_WORKSPACE_WRAPPER").is_some()
}

/// The compiler on which counts depend, and its settings.
///
/// # Errors
/// If it cannot be asked.
pub fn compiled_by() -> Result<String> {
    let rustc = said("rustc", "--version")?;
    // In a run of the tests clippy compiles our crates, and optimises less.
    let driver = if is_of_a_run() { "clippy" } else { "rustc" };
    let checks = if cfg!(debug_assertions) { "with" } else { "without" };
    Ok(format!("{rustc} by {driver}, {checks} assertions, {}", std::env::consts::ARCH))
}

/// Things on which the counts of libraries depend: the profiler, the C library, the CPU.
///
/// # Errors
/// If the C library cannot be asked.
pub fn counted_with(valgrind: &str) -> Result<String> {
    let libc = said("getconf", "GNU_LIBC_VERSION")?;
    let cpu = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = cpu.lines().find(|line| line.starts_with("flags")).unwrap_or_default();
    // Those by which the C library chooses how to copy, of what valgrind passes on.
    let of_copies = ["ssse3", "sse4_2", "avx", "avx2", "bmi2", "fma", "erms"];
    let flags: Vec<_> =
        of_copies.into_iter().filter(|flag| flags.split(' ').any(|has| has == *flag)).collect();
    Ok(format!("{valgrind}; {libc}; {}", flags.join(" ")))
}

fn said(program: &str, word: &str) -> Result<String> {
    let output = Command::new(program).arg(word).output();
    let output = output.with_context(|| format!("cannot start {program}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counts(functions: &[(&str, u64)]) -> Counts {
        let functions: BTreeMap<_, _> = functions.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let of_libraries = functions.get("malloc").copied().unwrap_or(0);
        Counts { total: functions.values().sum(), of_libraries, functions }
    }

    #[test]
    fn a_ledger_is_read_as_it_was_written() {
        let few = counts(&[("malloc", 9_900), ("core::\"c\"", 10_000), ("tiny", 3)]);
        let cost = Cost::of(10, &few, &counts(&[("core::\"c\"", 80_000)]));
        let (compiled_by, counted_with) = ("one \"two\"".to_owned(), "three".to_owned());
        let mut ledger = Ledger { compiled_by, counted_with, ..Ledger::default() };
        ledger.costs.insert("task-queued".to_owned(), cost.clone());
        let read = Ledger::parse(&ledger.to_text()).unwrap();
        assert_eq!((&read.compiled_by, &read.counted_with), (&ledger.compiled_by, &ledger.counted_with));
        let Cost { instructions, of_libraries, among_more, functions } = &read.costs["task-queued"];
        assert_eq!((*instructions, *of_libraries, *among_more), (1_990.3, 990.0, 2_000.0));
        let shown: BTreeMap<_, _> = cost.functions.iter().filter(|(name, _)| *name != "tiny").collect();
        assert_eq!(functions.iter().collect::<BTreeMap<_, _>>(), shown);
        assert!(Ledger::parse("[task]\ninstructions = 1").is_err());
    }

    #[test]
    fn what_has_grown_is_named() {
        let of = |functions: &[(&str, u64)]| Cost::of(1, &counts(functions), &Counts::default());
        let before = of(&[("a", 500), ("b", 500)]);
        assert_eq!(of(&[("a", 510), ("b", 510)]).growth_since(&before, true), None);
        let text = of(&[("a", 490), ("b", 520), ("new", 20)]).growth_since(&before, true).unwrap();
        let wanted = "1030.0 instructions instead of 1000.0 (+3.0 %):\n    +20.0 b\n    +10.0 new";
        assert!(text.starts_with(wanted), "{text}");
        let dear_library = of(&[("a", 500), ("b", 500), ("malloc", 90)]);
        assert!(dear_library.growth_since(&before, true).is_some());
        assert_eq!(dear_library.growth_since(&before, false), None, "another library is not compared");
    }
}
