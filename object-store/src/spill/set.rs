//! Several spill directories, used as one.

use super::compact::Compacted;
use super::dir::SpillDir;
use super::error::SpillError;
use super::options::{DirUsage, SpillOptions, Written};
use crate::annex::AnnexFile;
use crate::error::{NoSpace, StoreError};
use crate::transfer::ObjectKey;
use std::cmp::Reverse;
use std::path::PathBuf;
use std::sync::Arc;

/// A directory and its quota.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpillPlace {
    /// The directory.
    pub path: PathBuf,
    /// Bytes that it may use.
    pub quota_bytes: u64,
}

/// Spill directories, each usually on its own device.
pub struct SpillSet {
    dirs: Vec<Arc<SpillDir>>,
}

impl SpillSet {
    /// Opens every directory.
    ///
    /// # Errors
    /// The error of [`SpillDir::open`] for the first directory that fails.
    pub fn open(places: &[SpillPlace], options: &SpillOptions) -> Result<SpillSet, SpillError> {
        let open = |place: &SpillPlace| SpillDir::open(&place.path, place.quota_bytes, options).map(Arc::new);
        Ok(SpillSet { dirs: places.iter().map(open).collect::<Result<_, _>>()? })
    }

    /// Bytes that all directories may use.
    pub fn quota_bytes(&self) -> u64 {
        self.dirs.iter().map(|dir| dir.quota_bytes()).fold(0, u64::saturating_add)
    }

    /// A file in the first directory for values that are larger than memory, within the directory's quota.
    ///
    /// # Errors
    /// As [`SpillDir::annex`].
    pub fn annex(&self) -> Result<Option<AnnexFile>, StoreError> {
        self.dirs.first().map(SpillDir::annex).transpose()
    }

    /// Writes an object to the directory with the fewest writers; of equals, to the one with the most room.
    /// If a directory fails, the next one is tried.
    ///
    /// # Errors
    /// As [`SpillDir::write`]: the error of the last directory, if all of them refused.
    pub fn write(&self, key: &ObjectKey, parts: &[&[u8]]) -> Result<Written, SpillError> {
        if self.find(key).is_some() {
            return Err(SpillError::Exists { key: *key });
        }
        let needed_bytes = parts.iter().map(|part| part.len() as u64).sum();
        let loads: Vec<(usize, u64)> = self.dirs.iter().map(|dir| dir.load()).collect();
        let nowhere = NoSpace { needed_bytes, available_bytes: 0, place: "a set without directories" };
        let mut last = SpillError::NoSpace { path: PathBuf::new(), cause: nowhere };
        for index in order(&loads, needed_bytes) {
            let Some(dir) = self.dirs.get(index) else { continue };
            match dir.write(key, parts) {
                Err(error) if error.is_of_directory() => last = error,
                result => return result,
            }
        }
        Err(last)
    }

    /// Reads a range of an object, as [`SpillDir::read_into`] does.
    ///
    /// # Errors
    /// As [`SpillDir::read_into`].
    pub fn read_into(&self, key: &ObjectKey, offset: u64, target: &mut [u8]) -> Result<(), SpillError> {
        self.find(key).ok_or(SpillError::NotFound { key: *key })?.read_into(key, offset, target)
    }

    /// Length of an object, if it is here.
    pub fn len_of(&self, key: &ObjectKey) -> Option<u64> {
        self.dirs.iter().find_map(|dir| dir.len_of(key))
    }

    /// Removes an object, and returns whether it was here.
    pub fn remove(&self, key: &ObjectKey) -> bool {
        self.dirs.iter().any(|dir| dir.remove(key))
    }

    /// Compacts every directory, moving at most `move_bytes_max` in each.
    ///
    /// # Errors
    /// The first error of [`SpillDir::compact`], after all directories were compacted.
    pub fn compact(&self, move_bytes_max: u64) -> Result<Compacted, SpillError> {
        let mut sum = Compacted::default();
        let mut result = Ok(());
        for dir in &self.dirs {
            match dir.compact(move_bytes_max) {
                Ok(done) => {
                    sum.freed_bytes += done.freed_bytes;
                    sum.moved_bytes += done.moved_bytes;
                    sum.corrupt.extend(done.corrupt);
                }
                Err(error) => result = result.and(Err(error)),
            }
        }
        result.map(|()| sum)
    }

    /// The usage of each directory.
    pub fn usage(&self) -> Vec<DirUsage> {
        self.dirs.iter().map(|dir| dir.usage()).collect()
    }

    fn find(&self, key: &ObjectKey) -> Option<&SpillDir> {
        self.dirs.iter().map(|dir| &**dir).find(|dir| dir.len_of(key).is_some())
    }
}

/// The order in which directories are tried, from the writers and free bytes of each. A directory without
/// room comes last; its error is then the result.
fn order(loads: &[(usize, u64)], needed_bytes: u64) -> Vec<usize> {
    let mut order: Vec<usize> = (0..loads.len()).collect();
    order.sort_by_key(|&index| {
        let (writers_count, free_bytes) = loads[index];
        (free_bytes < needed_bytes, writers_count, Reverse(free_bytes))
    });
    order
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn directories_with_room_come_first_then_the_idle_then_the_roomy() {
        assert_eq!(order(&[(0, 10), (2, 500), (1, 100), (1, 200)], 50), [3, 2, 1, 0]);
        assert_eq!(order(&[], 50), []);
    }

    #[test]
    fn a_set_fills_its_directories_and_then_says_why_not() {
        let root = tempfile::tempdir().unwrap();
        let place = |name: &str| SpillPlace { path: root.path().join(name), quota_bytes: 100_000 };
        let set = SpillSet::open(&[place("a"), place("b")], &SpillOptions::default()).unwrap();
        for number in 0..4 {
            set.write(&[number; 20], &[&[number; 40_000]]).unwrap();
        }
        assert!(matches!(set.write(&[0; 20], &[b"x"]), Err(SpillError::Exists { .. })));
        match set.write(&[9; 20], &[&[9; 40_000]]) {
            Err(SpillError::Quota { cause, .. }) => assert_eq!(cause.needed_bytes, 45_056),
            other => panic!("{other:?}"),
        }
        assert!(set.usage().iter().all(|usage| usage.objects_count == 2));
        for number in 0..4 {
            let mut back = vec![0; 40_000];
            set.read_into(&[number; 20], 0, &mut back).unwrap();
            assert!(back.iter().all(|byte| *byte == number) && set.len_of(&[number; 20]) == Some(40_000));
            assert!(set.remove(&[number; 20]));
        }
        assert!(set.usage().iter().all(|usage| (usage.used_bytes, usage.segments_count) == (0, 0)));
    }
}
