//! How close spilling comes to bare direct writes and reads of the same disk.
//!
//! `cargo run --release -p tharsis-object-store --example spill_floor -- [DIRECTORY] [GB]`

// Its output is the point of it.
#![allow(clippy::print_stdout)]

use rustix::fs::{Mode, OFlags, open, unlink};
use std::env;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tharsis_object_store::spill::{SpillDir, SpillOptions};

const BLOCK: usize = 4 << 20;
const OBJECT: usize = 64 << 20;
const ROUNDS: usize = 4;

/// Seconds of a write and of a read.
type Seconds = [f64; 2];

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let directory = args.next().map_or_else(env::temp_dir, PathBuf::from);
    let gigabytes: u64 = args.next().map_or(Ok(2), |arg| arg.parse())?;
    let objects = gigabytes * 1_000_000_000 / OBJECT as u64;
    // One page more, so that runs can start on a page, as direct access by hand needs, and 64 bytes behind one.
    let mut memory = vec![0; OBJECT + 2 * 4096];
    fill_with_noise(&mut memory);
    let start = memory.as_ptr().align_offset(4096);
    let names = ["by hand", "spill, memory on pages", "spill, memory on 64 bytes"];
    let mut best = [[f64::INFINITY; 2]; 3];
    for _ in 0..ROUNDS {
        let page = &mut memory[start..start + OBJECT];
        let runs = [
            by_hand(&directory, page, objects)?,
            spilled(&directory, page, objects)?,
            spilled(&directory, &mut memory[start + 64..start + 64 + OBJECT], objects)?,
        ];
        for (best, run) in best.iter_mut().zip(runs) {
            *best = [best[0].min(run[0]), best[1].min(run[1])];
        }
    }
    let speed = |seconds: f64| (objects * OBJECT as u64) as f64 / seconds / 1e9;
    for (name, [write, read]) in names.iter().zip(best) {
        println!(
            "{name:26} write {:.2} GB/s, read {:.2} GB/s, both {:.3} s; by hand / this: write {:.2}, read {:.2}, both {:.2}",
            speed(write),
            speed(read),
            write + read,
            best[0][0] / write,
            best[0][1] / read,
            (best[0][0] + best[0][1]) / (write + read),
        );
    }
    Ok(())
}

fn by_hand(directory: &Path, memory: &mut [u8], objects: u64) -> Result<Seconds, Box<dyn Error>> {
    let path = directory.join(format!("spill-floor-{}", std::process::id()));
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::DIRECT;
    let file = open(&path, flags, Mode::RUSR | Mode::WUSR)?;
    let per_object = (OBJECT / BLOCK) as u64;
    let block = |at: u64| (at % per_object) as usize * BLOCK;
    let started = Instant::now();
    for at in 0..objects * per_object {
        rustix::io::pwrite(&file, &memory[block(at)..block(at) + BLOCK], at * BLOCK as u64)?;
    }
    let write = started.elapsed().as_secs_f64();
    let started = Instant::now();
    for at in 0..objects * per_object {
        rustix::io::pread(&file, &mut memory[block(at)..block(at) + BLOCK], at * BLOCK as u64)?;
    }
    let read = started.elapsed().as_secs_f64();
    unlink(&path)?;
    Ok([write, read])
}

fn spilled(directory: &Path, memory: &mut [u8], objects: u64) -> Result<Seconds, Box<dyn Error>> {
    let dir = SpillDir::open(directory, u64::MAX, &SpillOptions::default())?;
    let key = |number: u64| {
        let mut key = [0; 20];
        key[..8].copy_from_slice(&number.to_le_bytes());
        key
    };
    let started = Instant::now();
    for number in 0..objects {
        dir.write(&key(number), &[memory])?;
    }
    let write = started.elapsed().as_secs_f64();
    let started = Instant::now();
    for number in 0..objects {
        dir.read_into(&key(number), 0, memory)?;
    }
    Ok([write, started.elapsed().as_secs_f64()])
}

fn fill_with_noise(memory: &mut [u8]) {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    for chunk in memory.chunks_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        chunk.copy_from_slice(&state.to_le_bytes()[..chunk.len()]);
    }
}
