//! Writes what sound peers write, a file each, to a folder per entry: where a fuzzer begins.
//!
//! `cargo run -p tharsis-inputs --example seeds -- fuzz/corpus`

use std::path::PathBuf;
use std::{env, fs, io};
use tharsis_inputs::ENTRIES;

fn main() -> io::Result<()> {
    let Some(corpus) = env::args_os().nth(1).map(PathBuf::from) else {
        return Err(io::Error::other("give the folder for the seeds"));
    };
    for entry in ENTRIES {
        let folder = corpus.join(entry.name);
        fs::create_dir_all(&folder)?;
        for (number, seed) in (entry.seeds)().iter().enumerate() {
            fs::write(folder.join(format!("seed-{number}")), seed)?;
        }
    }
    Ok(())
}
