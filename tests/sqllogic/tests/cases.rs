//! The files of `cases`, each on threads, through an embedded store and on worker processes.

#![forbid(unsafe_code)]
// All of it is test code.
#![allow(clippy::expect_used, clippy::panic)]

use libtest_mimic::Trial;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tharsis_sqllogic::file;
use tharsis_sqllogic::place::Place;
use tharsis_sqllogic::report::Report;
use tharsis_trials::{run, trial_of};

#[tharsis::main]
fn main() -> ExitCode {
    let folder =
        Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets it")).join("cases");
    let files = file::files(&folder).expect("the folder of cases");
    let trials =
        Place::ALL.into_iter().flat_map(|place| files.iter().map(move |file| trial(place, file.clone())));
    run(trials.collect())
}

fn trial(place: Place, file: PathBuf) -> Trial {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    trial_of(format!("{place:?}::{stem}").to_lowercase(), move || {
        let started = place.start().map_err(|error| error.to_string())?;
        let outcomes = file::run(&file, &started, &[]).map_err(|error| error.to_string())?;
        let report = Report::of(outcomes, None);
        match report.failures() + report.in_other_words {
            0 if 0 < report.passed => Ok(()),
            _ => Err(format!("{report}\n{}", report.details.join("\n"))),
        }
    })
}
