//! No unit of work costs more than the ledger says, and none more among many than among few.
//!
//! `UPDATE_COSTS=1 cargo test -p tharsis-costs --test ledger` writes the ledger, as does `cargo xtask costs`.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tharsis_costs::callgrind::{count, version};
use tharsis_costs::ledger::{Cost, Ledger, compiled_by, counted_with, is_of_a_run};
use tharsis_costs::scripts::{PLANTED, SCRIPTS, Script};
use tharsis_trials::not_run;

/// A unit may cost so many times more among four times as many: tables grow by doubling, trees by levels.
const AMONG_MORE_MAX: f64 = 1.25;

/// The costs as they are now, by script; none without valgrind.
static COSTS: LazyLock<Option<BTreeMap<String, Cost>>> = LazyLock::new(|| {
    version()?;
    let next = AtomicUsize::new(0);
    let work = || {
        let taken = || SCRIPTS.get(next.fetch_add(1, Ordering::Relaxed));
        let cost = |script: &Script| (script.name.to_owned(), cost_of(script));
        std::iter::from_fn(taken).map(cost).collect::<Vec<_>>()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let costs = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    Some(costs.into_iter().collect())
});

fn cost_of(script: &Script) -> Cost {
    let (program, folder) = (Path::new(env!("CARGO_BIN_EXE_costs")), Path::new(env!("CARGO_TARGET_TMPDIR")));
    let run = |units| count(program, script.name, units, folder).unwrap();
    Cost::of(script.units, &run(script.units), &run(4 * script.units))
}

fn file() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    folder.join("../../benches/costs.toml")
}

/// Nothing is compared, which is a failure in a run of all tests: it would be one that nobody sees.
fn skip(reason: &str) {
    assert!(!is_of_a_run(), "{reason}");
    not_run(format!("the costs are not compared: {reason}"));
}

#[test]
fn no_unit_costs_more_than_the_ledger_says() {
    let Some(costs) = &*COSTS else { return skip("there is no valgrind, so nothing is counted") };
    let (compiled_by, counted_with) = (compiled_by().unwrap(), counted_with(&version().unwrap()).unwrap());
    let now = Ledger { compiled_by, counted_with, costs: costs.clone() };
    if std::env::var_os("UPDATE_COSTS").is_some() {
        return std::fs::write(file(), now.to_text()).unwrap();
    }
    let before = Ledger::parse(&std::fs::read_to_string(file()).unwrap()).unwrap();
    let names = |ledger: &Ledger| ledger.costs.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&now), names(&before), "the ledger has other scripts: `cargo xtask costs`");
    if now.compiled_by != before.compiled_by {
        return skip(&format!(
            "this compiler, {}, is not that of the ledger, {}; `cargo xtask costs` writes it anew",
            now.compiled_by, before.compiled_by
        ));
    }
    let with_libraries = now.counted_with == before.counted_with;
    if !with_libraries {
        not_run(format!(
            "the costs are compared without the C library: this machine is {}, that of the ledger {}",
            now.counted_with, before.counted_with
        ));
    }
    let growth = |(name, cost): (&String, &Cost)| {
        Some((name.clone(), cost.growth_since(&before.costs[name], with_libraries)?))
    };
    let grown: Vec<_> =
        now.costs.iter().filter_map(growth).map(|(name, text)| format!("{name}: {text}")).collect();
    assert!(grown.is_empty(), "{}\nif that is what it is worth: `cargo xtask costs`", grown.join("\n"));
}

#[test]
fn a_unit_costs_the_same_among_more() {
    let Some(costs) = &*COSTS else { return };
    let dear = costs.iter().filter(|(_, cost)| cost.instructions * AMONG_MORE_MAX < cost.among_more);
    let dear: Vec<_> = dear
        .map(|(name, cost)| format!("{name}: {} instead of {}", cost.among_more, cost.instructions))
        .collect();
    assert!(dear.is_empty(), "units cost more among four times as many:\n{}", dear.join("\n"));
}

#[test]
fn a_walk_over_all_tasks_is_found() {
    if version().is_none() {
        return;
    }
    let Cost { instructions, among_more, .. } = cost_of(&PLANTED);
    assert!(instructions * AMONG_MORE_MAX < among_more, "{among_more} instead of {instructions}");
}
