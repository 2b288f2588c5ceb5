//! No unit of work costs more than the ledger says, and none more among many than among few.
//!
//! `UPDATE_COSTS=1 cargo test -p tharsis-costs --test ledger` writes the ledger, as does `cargo xtask costs`.

// A test may stop where it fails, also in what its functions share.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use tharsis_costs::callgrind::{count, version};
use tharsis_costs::ledger::{Cost, Ledger, counted_by};
use tharsis_costs::scripts::SCRIPTS;

/// A unit may cost so many times more among four times as many: tables grow by doubling, trees by levels.
const AMONG_MORE_MAX: f64 = 1.25;

/// The costs as they are now, by script; none without valgrind.
static COSTS: LazyLock<Option<BTreeMap<String, Cost>>> = LazyLock::new(|| {
    version()?;
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let next = AtomicUsize::new(0);
    let work = || {
        let taken = || SCRIPTS.get(next.fetch_add(1, Ordering::Relaxed));
        let cost = |script: &tharsis_costs::scripts::Script| {
            let run =
                |units| count(Path::new(env!("CARGO_BIN_EXE_costs")), script.name, units, folder).unwrap();
            let (few, many) = (run(script.units), run(4 * script.units));
            (script.name.to_owned(), Cost::of(script.units, &few, &many))
        };
        std::iter::from_fn(taken).map(cost).collect::<Vec<_>>()
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let costs = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        workers.into_iter().flat_map(|worker| worker.join().unwrap()).collect::<Vec<_>>()
    });
    Some(costs.into_iter().collect())
});

fn file() -> PathBuf {
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").map(PathBuf::from).unwrap_or_default();
    folder.join("../../benches/costs.toml")
}

/// Says something that the harness does not keep for itself, as it does what a test that passes prints.
fn say(text: &str) {
    let _ = writeln!(std::io::stderr(), "tests/costs: {text}");
}

#[test]
fn no_unit_costs_more_than_the_ledger_says() {
    let Some(costs) = &*COSTS else { return say("skipped: no valgrind, so nothing is counted") };
    let now = Ledger { counted_by: counted_by(&version().unwrap()).unwrap(), costs: costs.clone() };
    if std::env::var_os("UPDATE_COSTS").is_some() {
        return std::fs::write(file(), now.to_text()).unwrap();
    }
    let before = Ledger::parse(&std::fs::read_to_string(file()).unwrap()).unwrap();
    let names = |ledger: &Ledger| ledger.costs.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(&now), names(&before), "the ledger has other scripts: `cargo xtask costs`");
    if now.counted_by != before.counted_by {
        let (now, before) = (now.counted_by, before.counted_by);
        return say(&format!(
            "not compared: counted by another toolchain\n  now    {now}\n  ledger {before}"
        ));
    }
    let grown =
        now.costs.iter().filter_map(|(name, cost)| Some((name, cost.growth_since(&before.costs[name])?)));
    let grown: Vec<_> = grown.map(|(name, text)| format!("{name}: {text}")).collect();
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
