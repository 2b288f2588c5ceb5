//! A pipeline over the texts that every Debian machine has, which loses a worker on the way.
//! `cargo run --release --example stream_pipeline`
//!
//! A stream reads the files and gives blocks of them; tasks count the words of the blocks; a task reads the
//! stream of blocks and gives a stream of counts; this program adds these up. Each stage has a bound on the
//! items that wait, so the files may be larger than the memory. In the middle, the worker that reads the
//! files ends without a word, unless it is a thread of this program: the stream goes on where it was. A
//! plain loop then counts the same words, and both must agree.
//!
//! Options: `--size N` (bytes of text, default 2e7), `--workers N` (worker processes instead of threads),
//! `--nodes N` (so many nodes on this machine, a CPU each), `--address auto` (the node that runs on this
//! machine).

use common::{Options, Outcome};
use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tharsis::prelude::*;

type Counts = BTreeMap<String, u64>;

/// Bytes of the files of a block, at least.
const BLOCK_BYTES: usize = 256 << 10;
/// Blocks that are counted at a time.
const COUNTED_MAX: usize = 8;

/// Reads the files, some to a block. If it is told so, the worker of its first attempt ends in the middle.
#[remote(unconsumed_max = 4)]
fn blocks(
    files: Vec<PathBuf>,
    is_to_fail: bool,
) -> Result<impl Iterator<Item = Result<Blob, std::io::Error>>, Error> {
    let fails = is_to_fail && context()?.attempt() == 0;
    let middle = files.len() / 2;
    let mut files = files.into_iter().enumerate().peekable();
    Ok(std::iter::from_fn(move || {
        files.peek()?;
        let mut block = Vec::new();
        while block.len() < BLOCK_BYTES
            && let Some((number, file)) = files.next()
        {
            if fails && number == middle {
                std::process::exit(1);
            }
            match fs::read(file) {
                Ok(text) => block.extend_from_slice(&text),
                Err(error) => return Some(Err(error)),
            }
            block.push(b'\n');
        }
        Some(Ok(block.into()))
    }))
}

#[remote]
fn count(block: Blob) -> Counts {
    counted(&block)
}

/// Counts the words of the blocks, several at a time, and gives the counts in the order of the blocks.
#[remote(unconsumed_max = 4)]
fn counts(mut blocks: ObjectRefStream<Blob>) -> impl Iterator<Item = Result<Counts, Error>> {
    let mut running = VecDeque::new();
    std::iter::from_fn(move || {
        while running.len() < COUNTED_MAX
            && let Some(block) = blocks.next()
        {
            running.push_back(count::remote(&block));
        }
        running.pop_front().map(|counts: ObjectRef<Counts>| counts.get())
    })
}

#[tharsis::main]
fn main() -> Outcome<()> {
    let options = Options::from_args(20_000_000)?;
    let _place = options.start()?;
    let mut files = Vec::new();
    let mut left = options.size as u64;
    find_texts(Path::new("/usr/share"), &mut files, &mut left)?;
    let bytes = options.size as u64 - left;

    let started = Instant::now();
    let mut total = Counts::new();
    let mut items = 0;
    for counts in counts::remote(blocks::remote(files.clone(), options.has_processes())) {
        add(&mut total, counts.get()?);
        items += 1;
    }
    let seconds = started.elapsed().as_secs_f64();
    let mut plain = Counts::new();
    for file in &files {
        add(&mut plain, counted(&fs::read(file)?));
    }
    if total != plain {
        return Err("the stream counted other words than the plain loop".into());
    }
    println!("texts         {} files, {:.1} MB in {items} blocks", files.len(), bytes as f64 / 1e6);
    println!("words         {}, {} different, as in a plain loop", plain.values().sum::<u64>(), plain.len());
    println!("lost workers  {}", usize::from(options.has_processes()));
    println!("seconds       {seconds:.3}");
    Ok(())
}

/// Texts below a folder, in order, until there are enough bytes.
fn find_texts(folder: &Path, files: &mut Vec<PathBuf>, left: &mut u64) -> std::io::Result<()> {
    let mut entries: Vec<_> = fs::read_dir(folder)?.collect::<Result<_, _>>()?;
    entries.sort_unstable_by_key(fs::DirEntry::path);
    for entry in entries {
        let (path, kind) = (entry.path(), entry.file_type()?);
        let name = path.to_string_lossy();
        if kind.is_dir() {
            find_texts(&path, files, left)?;
        } else if kind.is_file() && (name.ends_with("copyright") || name.ends_with(".txt")) {
            let bytes = entry.metadata()?.len();
            if *left < bytes {
                return Ok(());
            }
            *left -= bytes;
            files.push(path);
        }
    }
    Ok(())
}

/// The words of a text, in small letters.
fn counted(text: &[u8]) -> Counts {
    let mut counts = Counts::new();
    for word in text.split(|byte| !byte.is_ascii_alphabetic()).filter(|word| !word.is_empty()) {
        let word = String::from_utf8_lossy(word).to_ascii_lowercase();
        *counts.entry(word).or_default() += 1;
    }
    counts
}

fn add(total: &mut Counts, counts: Counts) {
    for (word, count) in counts {
        *total.entry(word).or_default() += count;
    }
}
