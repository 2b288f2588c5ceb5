//! A program that learns says the same embedded, on worker processes and on two nodes.

// Helpers of tests panic on failure, like tests.
#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use tharsis_trials::{is_long, part};

/// Arguments of the places beside the process itself: one of the two in turn, by the number of the test, and
/// the other one for the next commit. A long run has both.
fn places(test: u64) -> impl Iterator<Item = [&'static str; 2]> {
    let turn = (test + part(2)) % 2;
    let all = [["--workers", "2"], ["--nodes", "2"]];
    (0..).zip(all).filter(move |(at, _)| is_long() || *at == turn).map(|(_, place)| place)
}

/// The output of an example.
fn said(example: &str, arguments: &[&str]) -> String {
    let folder = std::env::current_exe().unwrap().ancestors().nth(2).unwrap().join("examples");
    // `cargo test` builds the examples, `cargo test --test places` does not.
    let ran = Command::new(folder.join(example)).args(arguments).output().unwrap();
    let said = String::from_utf8_lossy(&ran.stdout).into_owned();
    assert!(ran.status.success(), "{example} {arguments:?}: {said}{}", String::from_utf8_lossy(&ran.stderr));
    said
}

#[test]
fn digits_are_told_apart_equally_well_everywhere() {
    let here = said("digits", &[]);
    let scores: Vec<f64> = here
        .lines()
        .filter_map(|line| line.strip_prefix("score on "))
        .map(|rest| rest.rsplit(' ').next().unwrap().parse().unwrap())
        .collect();
    let [new, old] = scores[..] else { panic!("two scores: {here}") };
    assert!(0.95 < new && new < old && old <= 1.0, "{here}");
    for place in places(0) {
        assert_eq!(said("digits", &place), here, "{place:?}");
    }
}

#[test]
fn trees_are_the_same_everywhere() {
    let here = said("trees", &[]);
    let scores: Vec<f64> =
        here.lines().map(|line| line.rsplit(' ').next().unwrap().parse().unwrap()).collect();
    assert!(scores.len() == 8 && scores[..4].iter().all(|score| (0.9..=1.0).contains(score)), "{here}");
    // In debug builds, those of so many samples are made by passes.
    assert!((0.8..1.0).contains(&scores[4]) && (0.1..0.7).contains(&scores[6]), "{here}");
    for place in places(1) {
        assert_eq!(said("trees", &place), here, "{place:?}");
    }
}

#[test]
fn a_picture_has_a_cell_for_each_pair_of_digits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("digits.svg");
    said("digits", &["--picture", path.to_str().unwrap()]);
    let picture = std::fs::read_to_string(Path::new(&path)).unwrap();
    assert_eq!(picture.matches("<rect ").count(), 100);
    assert!(picture.starts_with("<svg ") && picture.ends_with("</svg>\n"));
}
