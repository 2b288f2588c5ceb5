//! Tables as Parquet files, made in parallel, that are kept if the user names a folder.

use crate::bench::Options;
use anyhow::{Context, Result, bail};
use arrow::array::RecordBatch;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tharsis::frame::DataFrame;

/// Rows of a file.
const FILE_ROWS: usize = 1 << 20;

/// A folder with tables, each in a folder of its own.
pub struct Tables {
    folder: PathBuf,
    is_kept: bool,
    paths: Vec<(&'static str, String)>,
}

impl Tables {
    /// The folder of data with this name: in the folder that the user named, or a temporary one that is
    /// removed at the end.
    pub fn open(options: &Options, name: &str) -> Result<Tables> {
        let folder = match &options.data {
            Some(folder) => folder.join(name),
            None => std::env::temp_dir().join(format!("tharsis-{name}-{}", std::process::id())),
        };
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Tables { folder, is_kept: options.data.is_some(), paths: Vec::new() })
    }

    /// Names of the tables, and the folders of their files.
    pub fn paths(&self) -> &[(&'static str, String)] {
        &self.paths
    }

    /// The folder of all tables.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds a table of a number of rows, a part of which `make` gives: the number of the part and its first
    /// and last row. It is not made again if it is there.
    pub fn add(
        &mut self,
        name: &'static str,
        rows: usize,
        make: impl Fn(usize, std::ops::Range<usize>) -> Result<RecordBatch> + Sync,
    ) -> Result<()> {
        self.add_files(name, rows.div_ceil(FILE_ROWS), |part, path| {
            let first = part * FILE_ROWS;
            let batch = make(part, first..rows.min(first + FILE_ROWS))?;
            Ok(DataFrame::from_batches(batch.schema(), vec![batch]).to_parquet(&path.to_string_lossy())?)
        })
    }

    /// Adds a table of a number of files, each of which `make` writes. They are not made again if they are
    /// there.
    pub fn add_files(
        &mut self,
        name: &'static str,
        files: usize,
        make: impl Fn(usize, &Path) -> Result<()> + Sync,
    ) -> Result<()> {
        let table = self.folder.join(name);
        if !table.exists() {
            let unfinished = self.folder.join(format!("{name}.unfinished"));
            let _none = fs::remove_dir_all(&unfinished);
            fs::create_dir_all(&unfinished)?;
            in_parallel(files, |file| make(file, &unfinished.join(format!("{file:03}.parquet"))))?;
            fs::rename(&unfinished, &table)?;
        }
        self.paths.push((name, format!("{}/", table.display())));
        Ok(())
    }
}

/// Does pieces of work on as many threads as there are CPUs.
fn in_parallel(count: usize, work: impl Fn(usize) -> Result<()> + Sync) -> Result<()> {
    let (next, work) = (AtomicUsize::new(0), &work);
    let threads = std::thread::available_parallelism()?.get().min(count);
    let one_thread = || {
        loop {
            match next.fetch_add(1, Ordering::Relaxed) {
                number if number < count => work(number)?,
                _ => return Ok(()),
            }
        }
    };
    std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(one_thread)).collect();
        running.into_iter().try_for_each(|thread| match thread.join() {
            Ok(outcome) => outcome,
            Err(_) => bail!("a thread that makes data panicked"),
        })
    })
}

impl Drop for Tables {
    fn drop(&mut self) {
        if !self.is_kept {
            let _already_gone = fs::remove_dir_all(&self.folder);
        }
    }
}
