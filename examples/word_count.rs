//! Words of the texts that every Debian machine has, counted over remote tasks: `cargo run --release
//! --example word_count`.
//!
//! Map: a task reads some files and counts their words, one table for each part of the alphabet of hashes.
//! Shuffle: the tables stay in the store, and each reducer names its part of every map as an argument.
//! Reduce: a task adds up one part. A plain loop then does the same in one thread, and both must agree.
//! Options: `--workers N` (worker processes instead of threads), `--parts N` (reducers, default 8), `--files
//! N` (files of one map, default 16), `--address auto` (the node that runs on this machine).

use std::collections::{BTreeSet, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::time::Instant;
use tharsis::prelude::*;

/// Number of times each word was seen.
type Counts = HashMap<String, u64>;

/// Counts the words of some files: one table for each part.
#[remote]
fn map(paths: Vec<PathBuf>, parts: usize) -> Result<Returns<Counts>, std::io::Error> {
    let mut tables = vec![Counts::new(); parts];
    for path in paths {
        let text = std::fs::read(&path)?;
        for_each_word(&text, |word| add(&mut tables[part_of(word, parts)], word, 1));
    }
    Ok(Returns(tables))
}

/// Adds up the tables of one part.
#[remote]
fn reduce(tables: Values<Counts>) -> Counts {
    let mut sum = Counts::new();
    for (word, count) in tables.into_iter().flatten() {
        add(&mut sum, &word, count);
    }
    sum
}

#[tharsis::main]
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let options = Options::from_args()?;
    let files = find_files()?;
    let bytes = files.iter().map(|path| Ok(std::fs::metadata(path)?.len())).sum::<std::io::Result<u64>>()?;
    let _runtime = options.start()?;

    let started = Instant::now();
    let counts = count_with_tasks(&files, &options)?;
    let with_tasks = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let plain = count_plainly(&files)?;
    let in_a_loop = started.elapsed().as_secs_f64();
    if counts != plain {
        return Err("the tasks counted other words than the plain loop".into());
    }

    let mut order: Vec<_> = counts.iter().collect();
    order.sort_by_key(|(word, count)| (std::cmp::Reverse(**count), word.as_str()));
    for (word, count) in order.iter().take(10) {
        println!("{count:>9}  {word}");
    }
    println!("files         {}, {:.1} MiB", files.len(), bytes as f64 / (1 << 20) as f64);
    println!("words         {}, {} different", counts.values().sum::<u64>(), counts.len());
    println!("tasks         {with_tasks:.3} s");
    println!("plain loop    {in_a_loop:.3} s, the same counts");
    Ok(())
}

fn count_with_tasks(files: &[PathBuf], options: &Options) -> tharsis::Result<Counts> {
    let calls = files.chunks(options.files).map(|paths| {
        let map = map::options().num_returns(options.parts as u32);
        map.remote(paths.to_vec(), options.parts)
    });
    let tables: Vec<_> = calls.collect();
    let sums = (0..options.parts).map(|part| {
        let tables: Vec<_> = tables.iter().map(|of_map| of_map[part].clone()).collect();
        reduce::remote(&tables)
    });
    let sums: Vec<_> = sums.collect();
    // No word is in two parts.
    Ok(get_all(&sums, None)?.into_iter().flatten().collect())
}

fn count_plainly(files: &[PathBuf]) -> std::io::Result<Counts> {
    let mut counts = Counts::new();
    for path in files {
        for_each_word(&std::fs::read(path)?, |word| add(&mut counts, word, 1));
    }
    Ok(counts)
}

/// Words are runs of ASCII letters, in lower case.
fn for_each_word(text: &[u8], mut see: impl FnMut(&str)) {
    let mut word = String::new();
    for letters in text.split(|byte| !byte.is_ascii_alphabetic()).filter(|letters| !letters.is_empty()) {
        word.clear();
        word.extend(letters.iter().map(|byte| char::from(byte.to_ascii_lowercase())));
        see(&word);
    }
}

fn add(counts: &mut Counts, word: &str, count: u64) {
    match counts.get_mut(word) {
        Some(sum) => *sum += count,
        None => drop(counts.insert(word.to_owned(), count)),
    }
}

/// The part that a word belongs to, in every process.
fn part_of(word: &str, parts: usize) -> usize {
    let mut hasher = DefaultHasher::new();
    word.hash(&mut hasher);
    (hasher.finish() % parts as u64) as usize
}

/// Licences, and the copyright notices of packages; each file once, whatever links lead to it.
fn find_files() -> Result<Vec<PathBuf>, Box<dyn std::error::Error>> {
    let licenses = entries(Path::new("/usr/share/common-licenses"));
    let notices = entries(Path::new("/usr/share/doc")).into_iter().map(|package| package.join("copyright"));
    let all = licenses.into_iter().chain(notices).filter_map(|path| path.canonicalize().ok());
    let files: BTreeSet<_> = all.filter(|path| path.is_file()).collect();
    if files.is_empty() {
        return Err("no texts in /usr/share/common-licenses and /usr/share/doc".into());
    }
    Ok(files.into_iter().collect())
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).collect()
}

struct Options {
    parts: usize,
    files: usize,
    workers: Option<usize>,
    address: Option<String>,
}

impl Options {
    fn from_args() -> Result<Self, Box<dyn std::error::Error>> {
        let mut options = Self { parts: 8, files: 16, workers: None, address: None };
        let mut args = std::env::args().skip(1);
        while let Some(flag) = args.next() {
            let value = args.next().ok_or_else(|| format!("{flag} needs a value"))?;
            match flag.as_str() {
                "--parts" => options.parts = value.parse::<usize>()?.max(1),
                "--files" => options.files = value.parse::<usize>()?.max(1),
                "--workers" => options.workers = Some(value.parse()?),
                "--address" => options.address = Some(value),
                _ => return Err(format!("unknown option {flag}").into()),
            }
        }
        Ok(options)
    }

    fn start(&self) -> tharsis::Result<tharsis::Runtime> {
        let init = match self.workers {
            Some(count) => init().workers(count),
            None => init(),
        };
        match &self.address {
            Some(address) => init.address(address).start(),
            None => init.start(),
        }
    }
}
