//! `tharsis eval`: programs as data, one reply per line, in the order of the requests. Programs over tensors
//! and over frames each have an evaluator of their own; that of tensors has the estimators too.
//!
//! A failing program gets a reply like any other and does not change the exit status, which tells whether
//! requests could be read and replies written.

use super::eval_places::Started;
use crate::{frames, output, refusal::Refusal};
use anyhow::{Context, Result};
use serde_json::Value as Json;
use std::io::Write;
use std::path::{Path, PathBuf};
use tharsis_learn::programs::TABLES;
use tharsis_numeric::protocol as tensors;

/// Answers the requests of standard input, or those in the files of a folder.
///
/// # Errors
/// If requests cannot be read or replies cannot be written.
pub fn run(folder: Option<&Path>) -> Result<()> {
    let replies = std::io::stdout().lock();
    match folder {
        None => {
            let (folder, places) = (Path::new("."), Started::default());
            output::until_nobody_reads(tensors::eval_by(std::io::stdin().lock(), replies, |request| {
                answer(request, folder, &places)
            }))
        }
        Some(folder) => answer_files(folder, replies),
    }
}

/// The reply to a program by the evaluator that it is for.
fn answer(request: &Json, folder: &Path, places: &Started) -> Json {
    let about_frames = frames::answer(request, folder, places);
    about_frames.unwrap_or_else(|| tensors::answer_on(request, folder, places, TABLES))
}

/// Prints one line per operation.
///
/// # Errors
/// If it cannot be written.
pub fn list() -> Result<()> {
    let mut lines = Vec::new();
    tensors::list(&mut lines)?;
    tensors::list_further(&mut lines, TABLES)?;
    frames::list(&mut lines)?;
    output::line(String::from_utf8_lossy(&lines).trim_end())
}

fn answer_files(folder: &Path, mut replies: impl Write) -> Result<()> {
    let places = Started::default();
    for path in programs(folder)? {
        let text = std::fs::read(&path).with_context(|| path.display().to_string())?;
        let answered = tensors::eval_text_by(&text, &mut replies, |request| answer(request, folder, &places));
        output::until_nobody_reads(answered)?;
    }
    Ok(())
}

/// The files with programs, by name.
fn programs(folder: &Path) -> Result<Vec<PathBuf>> {
    let unreadable =
        |error: std::io::Error| Refusal::NoPrograms { folder: folder.to_owned(), cause: error.to_string() };
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(unreadable)? {
        let path = entry.map_err(unreadable)?.path();
        if path.extension().is_some_and(|extension| extension == "json" || extension == "jsonl") {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}
