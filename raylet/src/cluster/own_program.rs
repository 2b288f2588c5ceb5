//! The program that this node runs. A job may run the same one: nodes of a local cluster are the driver's
//! program, and programs as data run in the command that nodes are. Then nothing has to be fetched.
//!
//! Refused: to take a file at the path that the driver names. It may be another one on this machine, and it
//! may change while it is hashed. The program of a process does neither.

use crate::executable::Executable;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use tharsis_types::CodeUnitId;

/// The program of this process.
const PATH: &str = "/proc/self/exe";
/// Bytes of a program in memory at a time, while it is hashed.
const STEP_BYTES: usize = 1 << 20;

/// The program of this process, hashed at most once. None if it cannot be read: then jobs that run it fetch
/// it.
#[derive(Default)]
pub struct OwnProgram(OnceLock<Option<(CodeUnitId, Executable)>>);

impl OwnProgram {
    /// This program, if it has so many bytes and this hash. Reads all of it when a program of this length is
    /// first asked for.
    #[must_use]
    pub fn if_it_is(&self, unit: CodeUnitId, len: u64) -> Option<Executable> {
        let file = File::open(PATH).ok()?;
        if file.metadata().ok()?.len() != len {
            return None;
        }
        let hashed = || {
            let unit = hash(&file).ok()?;
            let path = std::fs::read_link(PATH).ok()?;
            Some((unit, Executable::new(file, path)))
        };
        let (own, executable) = self.0.get_or_init(hashed).as_ref()?;
        (*own == unit).then(|| executable.clone())
    }
}

/// The hash of a file from its start, wherever others that share the descriptor have read to.
pub fn hash(file: &File) -> io::Result<CodeUnitId> {
    let mut hasher = blake3::Hasher::new();
    let (mut buffer, mut offset) = (vec![0; STEP_BYTES], 0);
    loop {
        match file.read_at(&mut buffer, offset)? {
            0 => return Ok(CodeUnitId(*hasher.finalize().as_bytes())),
            len => {
                hasher.update(&buffer[..len]);
                offset += len as u64;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_program_is_taken_for_its_own_by_its_bytes() {
        let file = File::open(PATH).unwrap();
        let (unit, data) = (hash(&file).unwrap(), file.metadata().unwrap());
        let own = OwnProgram::default();
        assert!(own.if_it_is(unit, data.len() + 1).is_none() && own.if_it_is(unit, 0).is_none());
        assert!(own.0.get().is_none(), "one of another length needs no hash");
        assert!(own.if_it_is(CodeUnitId([7; 32]), data.len()).is_none(), "another one of this length");
        let found = own.if_it_is(unit, data.len()).unwrap();
        assert_eq!(found.file().metadata().unwrap().ino(), data.ino());
        assert_eq!(found.path(), std::env::current_exe().unwrap());
    }
}
