//! Compares spilling with bare direct writes and reads of the same disk.
//!
//! `cargo run --release -p tharsis-object-store --example spill_floor -- [DIRECTORY] [GB]`

// The example exists to print its results.
#![allow(clippy::print_stdout)]

use rustix::fs::{Mode, OFlags, open, unlink};
use std::env;
use std::error::Error;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tharsis_object_store::spill::{SpillDir, SpillOptions};

const BLOCK: usize = 4 << 20;
const OBJECT: usize = 64 << 20;
const PAGE: usize = 4096;
const ROUNDS: usize = 3;

/// A way to disk and back.
enum Way {
    ByHand { file: OwnedFd, path: PathBuf },
    Spill { dir: Box<SpillDir>, shift: usize },
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut args = env::args().skip(1);
    let directory = args.next().map_or_else(env::temp_dir, PathBuf::from);
    let gigabytes: u64 = args.next().map_or(Ok(2), |arg| arg.parse())?;
    let objects = (gigabytes * 1_000_000_000 / OBJECT as u64).max(1);
    // One page more than needed: runs start on a page, for direct access by hand, or 64 bytes behind one.
    let mut memory = vec![0; OBJECT + 2 * PAGE];
    fill_with_noise(&mut memory);
    let start = memory.as_ptr().align_offset(PAGE);
    let memory = memory.get_mut(start..).ok_or("no page in the memory")?;
    let names = ["by hand", "spill, memory on pages", "spill, memory on 64 bytes"];
    let mut sums = [[0.0; 2]; 3];
    for _ in 0..ROUNDS {
        let ways = [Way::by_hand(&directory)?, Way::spill(&directory, 0)?, Way::spill(&directory, 64)?];
        // Both ways take turns after each object, since the speed of a shared disk changes from second to
        // second.
        for step in 0..2 {
            for number in 0..objects {
                for (way, sum) in ways.iter().zip(&mut sums) {
                    let started = Instant::now();
                    if step == 0 {
                        way.write(memory, number)?
                    } else {
                        way.read(memory, number)?
                    }
                    sum[step] += started.elapsed().as_secs_f64();
                }
            }
        }
    }
    let speed = |seconds: f64| (objects * (ROUNDS * OBJECT) as u64) as f64 / seconds / 1e9;
    let floor = sums[0];
    for (name, [write, read]) in names.iter().zip(sums) {
        println!("{name:26} write {:.2} GB/s, read {:.2} GB/s", speed(write), speed(read));
        let ratios = [floor[0] / write, floor[1] / read, (floor[0] + floor[1]) / (write + read)];
        println!(
            "{:26} of by hand: write {:.2}, read {:.2}, both {:.2}",
            "", ratios[0], ratios[1], ratios[2]
        );
    }
    Ok(())
}

impl Way {
    fn by_hand(directory: &Path) -> Result<Way, Box<dyn Error>> {
        let path = directory.join(format!("spill-floor-{}", std::process::id()));
        let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::DIRECT;
        Ok(Way::ByHand { file: open(&path, flags, Mode::RUSR | Mode::WUSR)?, path })
    }

    fn spill(directory: &Path, shift: usize) -> Result<Way, Box<dyn Error>> {
        let dir = Box::new(SpillDir::open(directory, u64::MAX, &SpillOptions::default())?);
        Ok(Way::Spill { dir, shift })
    }

    fn write(&self, memory: &[u8], number: u64) -> Result<(), Box<dyn Error>> {
        match self {
            Way::ByHand { file, .. } => {
                for (offset, block) in offsets(number).zip(memory[..OBJECT].chunks(BLOCK)) {
                    rustix::io::pwrite(file, block, offset)?;
                }
            }
            Way::Spill { dir, shift } => {
                dir.write(&key(number), &[&memory[*shift..*shift + OBJECT]])?;
            }
        }
        Ok(())
    }

    fn read(&self, memory: &mut [u8], number: u64) -> Result<(), Box<dyn Error>> {
        match self {
            Way::ByHand { file, .. } => {
                for (offset, block) in offsets(number).zip(memory[..OBJECT].chunks_mut(BLOCK)) {
                    rustix::io::pread(file, block, offset)?;
                }
            }
            Way::Spill { dir, shift } => {
                dir.read_into(&key(number), 0, &mut memory[*shift..*shift + OBJECT])?;
            }
        }
        Ok(())
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        if let Way::ByHand { path, .. } = self {
            let _ = unlink(&*path);
        }
    }
}

fn offsets(number: u64) -> impl Iterator<Item = u64> {
    (number * OBJECT as u64..).step_by(BLOCK)
}

fn key(number: u64) -> [u8; 20] {
    let mut key = [0; 20];
    key[..8].copy_from_slice(&number.to_le_bytes());
    key
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
