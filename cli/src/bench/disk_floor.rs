//! Speed of a disk without us: pieces of a file written and read back past the page cache, a few blocks in
//! flight.

use super::noise;
use anyhow::{Context, Result};
use rustix::fs::{Mode, OFlags, open, unlink};
use rustix::io::Errno;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Instant;
use tharsis_object_store::spill::DirectBuffer;

/// Bytes of one request.
const BLOCK_BYTES: usize = 4 << 20;
/// Requests at a time, the number of spilling threads.
const IN_FLIGHT: usize = 3;

/// Seconds per byte of a disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct DiskSpeed {
    /// Seconds to write a byte.
    pub write_s: f64,
    /// Seconds to read a byte back.
    pub read_s: f64,
}

/// Writes pieces of a file one after the other and reads them back in the given order.
///
/// # Errors
/// Errors of the disk.
pub fn disk_speed(folder: &Path, piece_bytes: usize, order: &[usize]) -> Result<DiskSpeed> {
    let piece_bytes = piece_bytes.next_multiple_of(BLOCK_BYTES);
    let file = DirectFile::create(folder.join("floor"))?;
    let mut lanes: Vec<_> = (0..IN_FLIGHT).map(|lane| lane_of(lane as u64)).collect();
    let bytes = (piece_bytes * order.len()) as f64;
    let started = Instant::now();
    for piece in 0..order.len() {
        file.each_block(&mut lanes, piece * piece_bytes, piece_bytes, |fd, block, at| {
            rustix::io::pwrite(fd, block, at)
        })?;
    }
    rustix::fs::fdatasync(&file.fd)?;
    let write_s = started.elapsed().as_secs_f64() / bytes;
    let started = Instant::now();
    for piece in order {
        file.each_block(&mut lanes, piece * piece_bytes, piece_bytes, |fd, block, at| {
            rustix::io::pread(fd, block, at)
        })?;
    }
    Ok(DiskSpeed { write_s, read_s: started.elapsed().as_secs_f64() / bytes })
}

impl DiskSpeed {
    /// The mean of two measurements.
    #[must_use]
    pub fn mean(self, other: DiskSpeed) -> DiskSpeed {
        DiskSpeed {
            write_s: (self.write_s + other.write_s) / 2.0,
            read_s: (self.read_s + other.read_s) / 2.0,
        }
    }

    /// Seconds to write a number of bytes and to read them back.
    #[must_use]
    pub fn round_trip_s(self, bytes: f64) -> f64 {
        (self.write_s + self.read_s) * bytes
    }
}

/// A file that bypasses the page cache, removed on drop.
struct DirectFile {
    fd: OwnedFd,
    path: PathBuf,
}

impl DirectFile {
    fn create(path: PathBuf) -> Result<DirectFile> {
        let flags = OFlags::CREATE | OFlags::TRUNC | OFlags::RDWR;
        let mode = Mode::RUSR | Mode::WUSR;
        let opened = match open(&path, flags | OFlags::DIRECT, mode) {
            // Some file systems do not support direct access.
            Err(Errno::INVAL) => open(&path, flags, mode),
            other => other,
        };
        let fd = opened.with_context(|| format!("cannot create {}", path.display()))?;
        Ok(DirectFile { fd, path })
    }

    /// Applies `act` to each block of a range, with one thread per lane; the lanes take blocks in turn.
    fn each_block(
        &self,
        lanes: &mut [DirectBuffer],
        start: usize,
        len: usize,
        act: impl Fn(&OwnedFd, &mut [u8], u64) -> Result<usize, Errno> + Sync,
    ) -> Result<()> {
        let (step, act) = (BLOCK_BYTES * lanes.len(), &act);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (start..)
                .step_by(BLOCK_BYTES)
                .zip(lanes)
                .map(|(first, lane)| {
                    scope.spawn(move || -> Result<()> {
                        for at in (first..start + len).step_by(step) {
                            let done = act(&self.fd, lane, at as u64)?;
                            anyhow::ensure!(done == BLOCK_BYTES, "the disk took {done} bytes of a block");
                        }
                        Ok(())
                    })
                })
                .collect();
            threads.into_iter().try_for_each(|thread| match thread.join() {
                Ok(outcome) => outcome,
                Err(_) => anyhow::bail!("a thread of the disk's floor panicked"),
            })
        })
    }
}

impl Drop for DirectFile {
    fn drop(&mut self) {
        // If this fails, the file is left in a folder that the bench removes.
        let _gone = unlink(&*self.path);
    }
}

/// Memory of one request at a time; requests from huge pages are the fastest.
fn lane_of(seed: u64) -> DirectBuffer {
    let mut lane = DirectBuffer::new(BLOCK_BYTES);
    noise::fill(&mut lane, seed);
    lane
}
