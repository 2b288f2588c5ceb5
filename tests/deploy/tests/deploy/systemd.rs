//! The units in `deploy/systemd` as `systemd-analyze` sees them.

use crate::root;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::Command;

const UNITS: [&str; 3] = ["tharsis-head.service", "tharsis-worker.service", "tharsis-control.service"];
/// Worst exposure that `systemd-analyze security` may find, times ten: 2.0 of 10.
const EXPOSURE_MAX: u32 = 20;
const PROGRAM: &str = "/usr/local/bin/tharsis";

fn folder() -> PathBuf {
    root().join("deploy/systemd")
}

/// `systemd-analyze`, if it is there; otherwise a line of the report says that a test did not run.
fn analyze() -> Option<Command> {
    if Command::new("systemd-analyze").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return Some(Command::new("systemd-analyze"));
    }
    tharsis_trials::not_run("systemd-analyze is not installed");
    None
}

/// The lines `NAME=` of a unit.
fn values(unit: &str, name: &str) -> Vec<String> {
    let text = std::fs::read_to_string(folder().join(unit)).unwrap();
    let values = text.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    values.map(str::to_owned).collect()
}

#[test]
fn units_have_no_errors_and_no_warnings() {
    let Some(_) = analyze() else { return };
    let place = tempfile::tempdir().unwrap();
    // The program need not be installed here, but something must be there.
    let program = place.path().join("tharsis");
    std::fs::write(&program, "#!/bin/sh\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    for unit in UNITS {
        let text = std::fs::read_to_string(folder().join(unit)).unwrap();
        let copy = place.path().join(unit);
        let verify = |text: &str| {
            std::fs::write(&copy, text.replace(PROGRAM, &program.display().to_string())).unwrap();
            let output = analyze().unwrap().args(["verify", "--man=no"]).arg(&copy).output().unwrap();
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            (output.status.success(), said.lines().filter(|line| line.contains(unit)).collect::<String>())
        };
        assert_eq!(verify(&text), (true, String::new()), "{unit}");
        // It would say so.
        let (_, said) = verify(&text.replace("NoNewPrivileges", "NoNewPrivilege"));
        assert!(said.contains("NoNewPrivilege"), "{unit}: {said}");
    }
}

/// The program says so itself (`raylet/src/readiness.rs`), and nobody else of the unit is believed.
#[test]
fn units_count_as_started_when_they_serve() {
    for unit in UNITS {
        assert_eq!(values(unit, "Type"), ["notify"], "{unit}");
        assert_eq!(values(unit, "NotifyAccess"), ["main"], "{unit}");
    }
}

#[test]
fn units_expose_little_of_the_machine() {
    for unit in UNITS {
        let Some(mut analyze) = analyze() else { return };
        let threshold = format!("--threshold={EXPOSURE_MAX}");
        let output =
            analyze.args(["security", "--offline=true", &threshold]).arg(folder().join(unit)).output();
        let output = output.unwrap();
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{unit}: {}", said.lines().last().unwrap_or_default());
    }
}

#[test]
fn the_end_of_one_worker_or_of_the_head_does_not_end_a_unit() {
    for unit in UNITS {
        for (name, value) in [
            ("OOMPolicy", "continue"),
            ("OOMScoreAdjust", "-500"),
            ("StartLimitIntervalSec", "0"),
            ("Restart", "on-failure"),
        ] {
            assert_eq!(values(unit, name), [value], "{unit}: {name}");
        }
    }
}

#[test]
fn units_are_hardened_alike_and_no_token_is_in_their_text() {
    for name in ["ProtectSystem", "NoNewPrivileges", "SystemCallFilter", "CapabilityBoundingSet", "UMask"] {
        let [head, others @ ..] = UNITS.map(|unit| values(unit, name));
        assert!(!head.is_empty() && others.iter().all(|other| *other == head), "{name}");
    }
    for unit in UNITS {
        assert!(
            values(unit, "ExecStart").iter().all(|line| line.starts_with(PROGRAM) && !line.contains("token"))
        );
        assert!(values(unit, "Environment").is_empty(), "{unit}: everybody can read a unit");
    }
    assert_eq!(values(UNITS[1], "EnvironmentFile"), ["/etc/tharsis/worker.env"]);
}

/// Its folders hold the key of the authority, and nodes run programs of others.
#[test]
fn the_control_store_shares_no_user_and_no_folder_with_nodes() {
    for name in ["User", "Group", "StateDirectory", "LogsDirectory"] {
        let [head, worker, control] = UNITS.map(|unit| values(unit, name));
        assert_eq!((head.clone(), control), (worker, vec!["tharsis-control".to_owned()]), "{name}");
        assert!(!head.is_empty() && head != ["tharsis-control"], "{name}");
    }
    let settings = std::fs::read_to_string(folder().join("control.toml")).unwrap();
    let places: Vec<_> = settings.lines().filter(|line| line.contains("/var/")).collect();
    assert_eq!(places.len(), 3);
    assert!(places.iter().all(|line| line.contains("/tharsis-control/")), "{places:?}");
}
