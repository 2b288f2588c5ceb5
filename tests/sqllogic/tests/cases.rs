//! The files of `cases`, each on threads, through an embedded store and on worker processes.

#![forbid(unsafe_code)]
// All of it is test code.
#![allow(clippy::expect_used, clippy::panic)]

use libtest_mimic::{Arguments, Failed, Trial};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use tharsis_sqllogic::file;
use tharsis_sqllogic::place::Place;
use tharsis_sqllogic::report::Report;

#[tharsis::main]
fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases");
    let files = file::files(&folder).expect("the folder of cases");
    let trials =
        Place::ALL.into_iter().flat_map(|place| files.iter().map(move |file| trial(place, file.clone())));
    libtest_mimic::run(&Arguments::from_args(), trials.collect()).exit_code()
}

fn trial(place: Place, file: PathBuf) -> Trial {
    let stem = file.file_stem().unwrap_or_default().to_string_lossy().into_owned();
    Trial::test(format!("{place:?}::{stem}").to_lowercase(), move || {
        let started = place.start()?;
        let outcomes = file::run(&file, &started, &[]).map_err(|error| Failed::from(error.to_string()))?;
        let report = Report::of(outcomes, None);
        match report.failures() + report.in_other_words {
            0 if 0 < report.passed => Ok(()),
            _ => Err(format!("{report}\n{}", report.details.join("\n")).into()),
        }
    })
}
