//! Output of submitted programs: a file each, and one before it when it has grown large.
//!
//! The bytes are kept as they were written. A file that reaches half of the limit takes the place of the one
//! before it, so that at least the last half of the limit is kept. A reader that follows holds the file that
//! it reads, and finishes it before it goes on with the next one.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Bytes of output of one program that are kept, at least half of them.
const KEPT_BYTES_MAX: u64 = 64 << 20;
/// Bytes that are looked through at once for ends of lines.
const BLOCK_BYTES: u64 = 64 << 10;

/// The output of a program while it is written.
pub struct OutputFile {
    path: PathBuf,
    file: File,
    len_bytes: u64,
    half_bytes: u64,
}

/// Reads the output of a program, also while it is written.
pub struct OutputReader {
    path: PathBuf,
    file: File,
    inode: u64,
}

fn path_of(folder: &Path, name: &str) -> PathBuf {
    folder.join(format!("{name}.log"))
}

fn before(path: &Path) -> PathBuf {
    path.with_extension("log.1")
}

/// Whether there is output of a program.
#[must_use]
pub fn exists(folder: &Path, name: &str) -> bool {
    path_of(folder, name).exists()
}

/// Removes the output of a program.
pub fn remove(folder: &Path, name: &str) {
    let path = path_of(folder, name);
    // One of them is seldom there.
    let _before = fs::remove_file(before(&path));
    let _removed = fs::remove_file(path);
}

/// Removes the output of the programs that wrote longest ago, except for `live` ones, until `kept_max` are
/// left: their names.
pub fn remove_oldest(folder: &Path, kept_max: usize, live: &[String]) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut found: Vec<_> = entries
        .filter_map(|entry| {
            let name = entry.file_name().to_str()?.strip_suffix(".log")?.to_owned();
            Some((entry.metadata().ok()?.modified().ok()?, name))
        })
        .filter(|(_, name)| !live.contains(name))
        .collect();
    found.sort();
    let too_many = found.len().saturating_sub(kept_max);
    found.truncate(too_many);
    found.iter().for_each(|(_, name)| remove(folder, name));
    found.into_iter().map(|(_, name)| name).collect()
}

impl OutputFile {
    /// Begins the output of a program. What another one of that name wrote is gone.
    ///
    /// # Errors
    /// If the folder or the file cannot be made.
    pub fn create(folder: &Path, name: &str) -> io::Result<Self> {
        DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
        remove(folder, name);
        let path = path_of(folder, name);
        Ok(Self { file: new_file(&path)?, path, len_bytes: 0, half_bytes: KEPT_BYTES_MAX / 2 })
    }

    /// Adds bytes.
    ///
    /// # Errors
    /// If they cannot be written; later ones may be.
    pub fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.half_bytes <= self.len_bytes {
            fs::rename(&self.path, before(&self.path))?;
            self.file = new_file(&self.path)?;
            self.len_bytes = 0;
        }
        self.file.write_all(bytes)?;
        self.len_bytes += bytes.len() as u64;
        Ok(())
    }
}

fn new_file(path: &Path) -> io::Result<File> {
    OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

impl OutputReader {
    /// Begins to read, `tail` lines before the end.
    ///
    /// # Errors
    /// If there is no output of that program.
    pub fn open(folder: &Path, name: &str, tail: u32) -> io::Result<Self> {
        let path = path_of(folder, name);
        let mut last = File::open(&path)?;
        let mut lines_left = u64::from(tail);
        let offset = tail_offset(&mut last, &mut lines_left)?;
        if 0 < lines_left
            && offset == 0
            && let Ok(mut first) = File::open(before(&path))
        {
            let offset = tail_offset(&mut first, &mut lines_left)?;
            return Self::at(path, first, offset);
        }
        Self::at(path, last, offset)
    }

    fn at(path: PathBuf, mut file: File, offset: u64) -> io::Result<Self> {
        file.seek(SeekFrom::Start(offset))?;
        let inode = file.metadata()?.ino();
        Ok(Self { path, file, inode })
    }

    /// The next bytes, at most `len_max`; none if there are no more now.
    ///
    /// # Errors
    /// If they cannot be read.
    pub fn read(&mut self, len_max: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; len_max];
        loop {
            // Whether it is the last file is seen before its end is: more may be written in between.
            let next = File::open(&self.path).and_then(|next| Ok((next.metadata()?.ino(), next)));
            let len = self.file.read(&mut bytes)?;
            match next {
                Ok((inode, next)) if len == 0 && inode != self.inode => {
                    (self.file, self.inode) = (next, inode);
                }
                _ => {
                    bytes.truncate(len);
                    return Ok(bytes);
                }
            }
        }
    }
}

/// The place at which the last `lines` lines of a file begin; `lines` becomes the number of those that it
/// does not have.
fn tail_offset(file: &mut File, lines: &mut u64) -> io::Result<u64> {
    let len_bytes = file.metadata()?.len();
    if *lines == 0 {
        return Ok(len_bytes);
    }
    let mut end = len_bytes;
    let mut block = vec![0; BLOCK_BYTES as usize];
    while 0 < end {
        let begin = end.saturating_sub(BLOCK_BYTES);
        let part = &mut block[..(end - begin) as usize];
        file.seek(SeekFrom::Start(begin))?;
        file.read_exact(part)?;
        for (index, byte) in part.iter().enumerate().rev() {
            let at = begin + index as u64 + 1;
            // The end of the last line begins none.
            if *byte == b'\n' && at < len_bytes {
                *lines -= 1;
                if *lines == 0 {
                    return Ok(at);
                }
            }
        }
        end = begin;
    }
    if 0 < len_bytes {
        *lines -= 1;
    }
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(reader: &mut OutputReader) -> String {
        let mut text = Vec::new();
        loop {
            let bytes = reader.read(3).unwrap();
            if bytes.is_empty() {
                return String::from_utf8(text).unwrap();
            }
            text.extend(bytes);
        }
    }

    fn tail(folder: &Path, lines: u32) -> String {
        all(&mut OutputReader::open(folder, "it", lines).unwrap())
    }

    #[test]
    fn the_last_lines_are_read_with_and_without_an_end() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = OutputFile::create(folder.path(), "it").unwrap();
        assert_eq!(tail(folder.path(), 5), "");
        file.write(b"one\ntwo\nthree\n").unwrap();
        assert_eq!(tail(folder.path(), 1), "three\n");
        assert_eq!(tail(folder.path(), 2), "two\nthree\n");
        assert_eq!(tail(folder.path(), 3), "one\ntwo\nthree\n");
        assert_eq!(tail(folder.path(), 0), "");
        file.write(b"four").unwrap();
        assert_eq!(tail(folder.path(), 2), "three\nfour");
        assert_eq!(tail(folder.path(), u32::MAX), "one\ntwo\nthree\nfour");
        file.write(&vec![b'x'; 3 * BLOCK_BYTES as usize]).unwrap();
        assert!(tail(folder.path(), 2).starts_with("three\nfourxx"));
    }

    #[test]
    fn a_reader_follows_from_file_to_file_and_at_most_two_are_kept() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = OutputFile::create(folder.path(), "it").unwrap();
        file.half_bytes = 6;
        file.write(b"a1\na2\n").unwrap();
        let mut reader = OutputReader::open(folder.path(), "it", 9).unwrap();
        assert_eq!(reader.read(3).unwrap(), b"a1\n");
        file.write(b"b1\nb2\n").unwrap();
        assert_eq!(all(&mut reader), "a2\nb1\nb2\n");
        assert_eq!(tail(folder.path(), 3), "a2\nb1\nb2\n");
        file.write(b"c1\n").unwrap();
        assert_eq!(all(&mut reader), "c1\n");
        assert_eq!(tail(folder.path(), 9), "b1\nb2\nc1\n", "the first file is gone");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn the_oldest_output_is_removed_unless_it_is_still_written() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a", "b", "c"] {
            OutputFile::create(folder.path(), name).unwrap().write(b"x").unwrap();
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        assert_eq!(remove_oldest(folder.path(), 1, &["a".to_owned()]), ["b"]);
        assert!(exists(folder.path(), "a") && !exists(folder.path(), "b") && exists(folder.path(), "c"));
    }
}
