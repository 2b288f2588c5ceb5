//! Benches over frames: the questions of the db-benchmark, sorts, files, and a shuffle larger than memory.
//!
//! Each runs the same work on frames and on the library under them alone, in the same process and in turn;
//! the library is the floor. Answers are compared outside of the timed part. Peak memory is that of a pass
//! before the library has any rows.

mod csv;
mod parquet;
mod place;
mod questions;
mod random;
mod shuffle;
mod sort;
mod tables;

pub use csv::csv;
pub use parquet::parquet;
pub use place::Setup;
pub use questions::{groupby, join};
pub use shuffle::shuffle;
pub use sort::sort;
pub use tables::Tables;

use super::statistics::median;
use super::{Measurement, Options};
use anyhow::{Result, ensure};
use std::time::Instant;
use tharsis::frame::{DataFrame, Library, Table, read_parquet, sql};

/// Rounds of each job, unless another number is asked for; medians are told.
const ROUNDS: u32 = 3;

/// Rounds of each job.
pub fn rounds(options: &Options) -> u32 {
    options.rounds.unwrap_or(ROUNDS)
}

/// A query whose rows stay in memory.
pub struct Question {
    /// Its name among the details.
    pub name: &'static str,
    /// The query, in words that both sides know.
    pub query: &'static str,
}

/// Seconds of one job on both sides, a value for each round.
#[derive(Default)]
pub struct Times {
    ours_s: Vec<f64>,
    library_s: Vec<f64>,
}

impl Times {
    /// Runs a job once on each side; gives both results.
    pub fn round<A, B>(
        &mut self,
        ours: impl FnOnce() -> Result<A>,
        library: impl FnOnce() -> Result<B>,
    ) -> Result<(A, B)> {
        let (own, own_s) = timed(ours)?;
        self.ours_s.push(own_s);
        let (other, other_s) = timed(library)?;
        self.library_s.push(other_s);
        Ok((own, other))
    }

    /// Median seconds of frames, and of the library.
    pub fn medians(mut self) -> (f64, f64) {
        (median(&mut self.ours_s), median(&mut self.library_s))
    }
}

/// Sums the medians of several jobs, and remembers those of each.
#[derive(Default)]
pub struct Total {
    ours_s: f64,
    library_s: f64,
    jobs: Vec<(&'static str, f64, f64)>,
}

impl Total {
    /// Adds the times of a job.
    pub fn add(&mut self, name: &'static str, times: Times) {
        let (ours_s, library_s) = times.medians();
        self.ours_s += ours_s;
        self.library_s += library_s;
        self.jobs.push((name, ours_s, library_s));
    }

    /// The sums as a figure with its floor; the details are seconds and ratios of each job, and the peak of
    /// memory beside its limit.
    pub fn measurement(self, name: &str, setup: &Setup, peak_bytes: u64) -> Measurement {
        let measured = Measurement::new(name, self.ours_s, "s", self.library_s)
            .with("answered", self.jobs.len() as f64)
            .with("peak_mb", peak_bytes as f64 / 1e6)
            .with("over_limit_mb", (peak_bytes as f64 - setup.memory_bytes() as f64) / 1e6);
        self.jobs.into_iter().fold(measured, |measured, (name, ours_s, library_s)| {
            measured.with(name, ours_s / library_s).with(format!("{name}_s"), ours_s)
        })
    }
}

/// Asks each question of tables; gives the seconds of all of them. Tables and answers lie in memory, but
/// under a limit of the memory the tables stay in their files, and an answer becomes one row as it comes.
pub fn ask(name: &str, options: &Options, stored: &Tables, questions: &[Question]) -> Result<Measurement> {
    match options.memory {
        None => ask_in_memory(name, options, stored, questions),
        Some(_) => ask_files(name, options, stored, questions),
    }
}

fn ask_in_memory(
    name: &str,
    options: &Options,
    stored: &Tables,
    questions: &[Question],
) -> Result<Measurement> {
    let setup = Setup::start(options, 0)?;
    let ((frames, own), peak_bytes) = setup.peak_bytes(|| {
        let frames = load(stored, &setup)?;
        let own = questions.iter().map(|question| {
            let answer = sql(question.query, &refs(&frames)).execute_on(setup.executor())?;
            digest(&answer, &setup)
        });
        let own = own.collect::<Result<Vec<Table>>>()?;
        Ok((frames, own))
    })?;
    let library = Library::new(setup.threads())?;
    for (table, path) in stored.paths() {
        library.run(&format!("create external table {table}_file stored as parquet location '{path}'"))?;
        library.run(&format!("create table {table} as select * from {table}_file"))?;
    }
    let mut total = Total::default();
    for (question, own) in questions.iter().zip(own) {
        let mut times = Times::default();
        for round in 0..rounds(options) {
            let create = format!("create table answer as {}", question.query);
            let (answer, _) = times.round(
                || Ok(sql(question.query, &refs(&frames)).execute_on(setup.executor())?),
                || Ok(library.run(&create)?),
            )?;
            if round == 0 {
                check_same(question.name, &own, &library.table(&digest_query(&answer, "answer")?)?)?;
            }
            library.run("drop table answer")?;
        }
        total.add(question.name, times);
    }
    Ok(total.measurement(name, &setup, peak_bytes))
}

fn ask_files(name: &str, options: &Options, stored: &Tables, questions: &[Question]) -> Result<Measurement> {
    let setup = Setup::start(options, 0)?;
    let frames: Vec<(&str, DataFrame)> =
        stored.paths().iter().map(|(table, path)| (*table, read_parquet(path))).collect();
    let queries = questions.iter().map(|question| {
        let answer = sql(question.query, &refs(&frames));
        digest_query(&answer, &format!("({}) as answer", question.query))
    });
    let queries = queries.collect::<Result<Vec<String>>>()?;
    let collect = |query: &String| Ok(sql(query, &refs(&frames)).collect_on(setup.executor())?);
    let (firsts, peak_bytes) = setup.peak_bytes(|| {
        let firsts = queries.iter().map(|query| timed(|| collect(query)));
        firsts.collect::<Result<Vec<(Table, f64)>>>()
    })?;
    let library = Library::new(setup.threads())?;
    for (table, path) in stored.paths() {
        library.run(&format!("create external table {table} stored as parquet location '{path}'"))?;
    }
    let mut total = Total::default();
    for ((question, query), (own, own_s)) in questions.iter().zip(&queries).zip(firsts) {
        let (other, other_s) = timed(|| Ok(library.table(query)?))?;
        check_same(question.name, &own, &other)?;
        let mut times = Times { ours_s: vec![own_s], library_s: vec![other_s] };
        for _ in 1..rounds(options) {
            times.round(|| collect(query), || Ok(library.table(query)?))?;
        }
        total.add(question.name, times);
    }
    Ok(total.measurement(name, &setup, peak_bytes))
}

/// The result of a job, and its seconds.
fn timed<T>(job: impl FnOnce() -> Result<T>) -> Result<(T, f64)> {
    let started = Instant::now();
    let made = job()?;
    Ok((made, started.elapsed().as_secs_f64()))
}

/// The tables of these files, in memory.
pub fn load(stored: &Tables, setup: &Setup) -> Result<Vec<(&'static str, DataFrame)>> {
    let load =
        |(name, path): &(&'static str, String)| Ok((*name, read_parquet(path).execute_on(setup.executor())?));
    stored.paths().iter().map(load).collect()
}

/// The tables as queries want them.
pub fn refs<'a>(frames: &'a [(&'static str, DataFrame)]) -> Vec<(&'a str, &'a DataFrame)> {
    frames.iter().map(|(name, frame)| (*name, frame)).collect()
}

/// One row that depends on all values of a frame.
pub fn digest(frame: &DataFrame, setup: &Setup) -> Result<Table> {
    Ok(sql(&digest_query(frame, "answer")?, &[("answer", frame)]).collect_on(setup.executor())?)
}

/// The query of the digest of a frame that queries know as `from`: counts, sums of numbers, and the least and
/// greatest of other values.
pub fn digest_query(frame: &DataFrame, from: &str) -> Result<String> {
    let mut columns = vec!["count(*) as rows".to_owned()];
    for (label, dtype) in frame.dtypes()? {
        columns.push(format!("count(\"{label}\") as \"{label}_count\""));
        columns.push(if dtype.is_numeric() {
            format!("sum(cast(\"{label}\" as double)) as \"{label}_sum\"")
        } else {
            format!("min(\"{label}\") as \"{label}_min\", max(\"{label}\") as \"{label}_max\"")
        });
    }
    Ok(format!("select {} from {from}", columns.join(", ")))
}

/// Requires equal rows; floats may differ in the order of their additions.
pub fn check_same(question: &str, found: &Table, expected: &Table) -> Result<()> {
    ensure!(found.len() == expected.len(), "{question}: {} rows, not {}", found.len(), expected.len());
    for (label, other) in found.columns().iter().zip(expected.columns()) {
        for row in 0..found.len() {
            let (one, two) = (found.value(row, label)?, expected.value(row, &other)?);
            let same = match (one.as_f64(), two.as_f64()) {
                (Some(one), Some(two)) => (one - two).abs() <= 1e-9 * one.abs().max(two.abs()),
                _ => one == two,
            };
            ensure!(same, "{question}: {label} of row {row} is {one}, not {two}");
        }
    }
    Ok(())
}
