//! A large CSV file, read to the last value of each column.

use super::random::Random;
use super::tables::Tables;
use super::{Setup, Times, Total, check_same, rounds};
use crate::bench::{Measurement, Options};
use anyhow::{Result, bail};
use std::fmt::Write as _;
use std::fs::{self, File};
use std::io::Write;
use tharsis::frame::{CsvOptions, Library, read_csv, sql};

/// Depends on every value, and needs no room.
const QUERY: &str = "select count(*) as rows, max(id1) as id1, max(id2) as id2, max(id3) as id3, \
                     sum(id4) as id4, sum(id5) as id5, sum(id6) as id6, sum(v1) as v1, sum(v2) as v2, \
                     sum(v3) as v3 from x";
/// Rows that are made at a time.
const CHUNK_ROWS: usize = 1 << 18;
const HEADER: &str = "id1,id2,id3,id4,id5,id6,v1,v2,v3\n";
/// Keys that have many values are below this.
const MANY: u64 = 100_001;
/// Seed of the first chunk.
const SEED: u64 = 5;

/// Seconds to read a file of `size` gigabytes, the columns of which are those of the questions about groups.
pub fn csv(options: &Options) -> Result<Measurement> {
    let bytes = (options.scale() * 1e9) as u64;
    let tables = Tables::open(options, &format!("csv-{}", bytes / 1_000_000))?;
    let path = tables.folder().join("x.csv").to_string_lossy().into_owned();
    if !fs::exists(&path)? {
        make(&path, bytes)?;
    }
    let setup = Setup::start(options, 0)?;
    let frame = read_csv(&path, CsvOptions::default());
    let read = || Ok(sql(QUERY, &[("x", &frame)]).collect_on(setup.executor())?);
    let (own, peak_bytes) = setup.peak_bytes(read)?;
    let library = Library::new(setup.threads())?;
    library.run(&format!("create external table x stored as csv location '{path}'"))?;
    check_same("csv", &own, &library.table(QUERY)?)?;
    let mut times = Times::default();
    for _ in 0..rounds(options) {
        times.round(read, || Ok(library.run(QUERY)?))?;
    }
    let mut total = Total::default();
    total.add("read", times);
    let measured = total.measurement("frame-csv", &setup, peak_bytes);
    let rate = fs::metadata(&path)?.len() as f64 / 1e9 / measured.value;
    Ok(measured.with("gb_per_s", rate))
}

/// Makes a file of at least this many bytes, beside its path first. Threads make chunks of it, which are
/// written in order.
fn make(path: &str, bytes: u64) -> Result<()> {
    let unfinished = format!("{path}.unfinished");
    let mut file = File::create(&unfinished)?;
    file.write_all(HEADER.as_bytes())?;
    let (mut written, mut next) = (0, 0);
    while written < bytes {
        let threads = std::thread::available_parallelism()?.get();
        let chunks = std::thread::scope(|scope| {
            let running: Vec<_> =
                (next..next + threads).map(|number| scope.spawn(move || chunk(number))).collect();
            running.into_iter().map(|thread| thread.join()).collect::<Vec<_>>()
        });
        for chunk in chunks {
            let Ok(text) = chunk else { bail!("a thread that makes lines panicked") };
            written += text.len() as u64;
            file.write_all(text.as_bytes())?;
        }
        next += threads;
    }
    file.sync_all()?;
    Ok(fs::rename(unfinished, path)?)
}

/// The lines of a chunk.
fn chunk(number: usize) -> String {
    let mut random = Random::new(SEED + number as u64);
    let mut text = String::with_capacity(CHUNK_ROWS * 52);
    for _ in 0..CHUNK_ROWS {
        let (id1, id2, id3) = (random.within(1..101), random.within(1..101), random.within(1..MANY));
        let (id4, id5, id6) = (random.within(1..101), random.within(1..101), random.within(1..MANY));
        let (v1, v2, v3) = (random.within(1..6), random.within(1..16), random.price());
        // Writing to a text cannot fail.
        let _written =
            writeln!(text, "id{id1:03},id{id2:03},id{id3:010},{id4},{id5},{id6},{v1},{v2},{v3:.6}");
    }
    text
}
