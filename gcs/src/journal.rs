//! The file under an embedded store: three tables of a redb database, one commit per change.
//!
//! | table | key | value |
//! |---|---|---|
//! | `entries` | the key | value, version, revision and lease, as postcard |
//! | `leases` | the lease | its length in ms |
//! | `meta` | `format`, `revision`, `next_lease` | a number |
//!
//! A commit returns when it is on disk. If a crash interrupts a commit (torn or missing pages), its checksums
//! show that at the next start, and the commit before it is used. History for watches is not kept here: after
//! a start, watchers of earlier revisions list again.

use crate::error::{StoreError, chain};
use crate::keyspace::EmbeddedLimits;
use crate::keyspace::{Commit, Entry, KeySpace};
use redb::{
    CommitError, Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition,
    TableError, TableHandle, TransactionError,
};
use rustix::fs::OFlags;
use std::collections::BTreeMap;
use std::fs::{File, Permissions};
use std::io::{ErrorKind, Read};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::time::Instant;

/// Version of the format. Changes whenever files of older releases cannot be read unchanged.
const FORMAT: u64 = 1;
/// The key space is in memory anyway, so the file needs little more than its own pages in flight.
const CACHE_BYTES: usize = 4 << 20;

/// First bytes of a redb file.
const DATABASE_MAGIC: &[u8; 4] = b"redb";
/// Size of a page of such a file.
const PAGE_BYTES: u64 = 4096;

const ENTRIES: TableDefinition<&[u8], &[u8]> = TableDefinition::new("entries");
const LEASES: TableDefinition<u64, u64> = TableDefinition::new("leases");
const META: TableDefinition<&str, u64> = TableDefinition::new("meta");

/// An error of the database or of the system.
type Cause = dyn std::error::Error + 'static;

/// An open file.
#[derive(Debug)]
pub(crate) struct Journal {
    database: Database,
    path: PathBuf,
}

impl Journal {
    /// Opens or makes the file and reads all of it. Blocks.
    pub(crate) fn open(path: &Path, limits: EmbeddedLimits) -> Result<(Self, KeySpace), StoreError> {
        check_format(path)?;
        let database = match create(path) {
            Err(DatabaseError::Storage(StorageError::Corrupted(_))) if complete_last_page(path)? => {
                create(path)
            }
            other => other,
        };
        let database = database.map_err(|error| match error {
            DatabaseError::DatabaseAlreadyOpen => StoreError::InUse { path: path.to_owned() },
            error if is_foreign(path) => {
                let cause = format!("it is no file of tables: {}", chain(&error));
                StoreError::Io { path: path.to_owned(), is_full: false, cause }
            }
            error => io(path, &error),
        })?;
        let journal = Self { database, path: path.to_owned() };
        journal.prepare()?;
        let space = journal.read(limits)?;
        Ok((journal, space))
    }

    /// Makes a change durable. Blocks until it is on disk.
    pub(crate) fn commit(&self, commit: &Commit) -> Result<(), StoreError> {
        let fail = |error: &Cause| io(&self.path, error);
        let write = self.database.begin_write().map_err(|e| fail(&e))?;
        {
            let mut entries = write.open_table(ENTRIES).map_err(|e| fail(&e))?;
            for (key, entry) in &commit.keys {
                match entry {
                    Some(entry) => {
                        let bytes = postcard::to_stdvec(entry).map_err(|e| fail(&e))?;
                        entries.insert(key.as_slice(), bytes.as_slice()).map_err(|e| fail(&e))?;
                    }
                    None => {
                        entries.remove(key.as_slice()).map_err(|e| fail(&e))?;
                    }
                }
            }
            let mut leases = write.open_table(LEASES).map_err(|e| fail(&e))?;
            for (lease, ttl) in &commit.leases {
                match ttl {
                    Some(ttl) => leases.insert(lease, millis(*ttl)).map_err(|e| fail(&e))?,
                    None => leases.remove(lease).map_err(|e| fail(&e))?,
                };
            }
            let mut meta = write.open_table(META).map_err(|e| fail(&e))?;
            meta.insert("revision", commit.revision).map_err(|e| fail(&e))?;
            meta.insert("next_lease", commit.next_lease).map_err(|e| fail(&e))?;
        }
        write.commit().map_err(|e| fail(&e))
    }

    /// Makes the tables of a new file, and checks the format of an old one.
    fn prepare(&self) -> Result<(), StoreError> {
        let fail = |error: &Cause| io(&self.path, error);
        let write = self.database.begin_write().map_err(|e| fail(&e))?;
        let own = [ENTRIES.name(), LEASES.name(), META.name()];
        let foreign = {
            let mut tables = write.list_tables().map_err(|e| fail(&e))?;
            tables.find(|table| !own.contains(&table.name())).map(|table| table.name().to_owned())
        };
        {
            write.open_table(ENTRIES).map_err(|e| fail(&e))?;
            write.open_table(LEASES).map_err(|e| fail(&e))?;
            let mut meta = write.open_table(META).map_err(|e| fail(&e))?;
            let found = meta.get("format").map_err(|e| fail(&e))?.map(|format| format.value());
            match found {
                Some(FORMAT) => {}
                Some(found) => {
                    return Err(StoreError::Format { path: self.path.clone(), found, wanted: FORMAT });
                }
                None => {
                    // A later release may have more tables, and has a format.
                    if let Some(table) = foreign {
                        let cause = format!("it is the database of another program, with a table {table:?}");
                        return Err(StoreError::Io { path: self.path.clone(), is_full: false, cause });
                    }
                    for (name, value) in [("format", FORMAT), ("revision", 1), ("next_lease", 1)] {
                        meta.insert(name, value).map_err(|e| fail(&e))?;
                    }
                }
            }
        }
        write.commit().map_err(|e| fail(&e))
    }

    fn read(&self, limits: EmbeddedLimits) -> Result<KeySpace, StoreError> {
        let fail = |error: &Cause| io(&self.path, error);
        let read = self.database.begin_read().map_err(|e| fail(&e))?;
        let mut entries = BTreeMap::new();
        for row in read.open_table(ENTRIES).map_err(|e| fail(&e))?.iter().map_err(|e| fail(&e))? {
            let (key, value) = row.map_err(|e| fail(&e))?;
            let entry: Entry = postcard::from_bytes(value.value()).map_err(|error| StoreError::Corrupt {
                what: format!("key {:?}", String::from_utf8_lossy(key.value())),
                problem: error.to_string(),
            })?;
            entries.insert(key.value().to_vec(), entry);
        }
        let mut leases = BTreeMap::new();
        for row in read.open_table(LEASES).map_err(|e| fail(&e))?.iter().map_err(|e| fail(&e))? {
            let (lease, ttl) = row.map_err(|e| fail(&e))?;
            leases.insert(lease.value(), Duration::from_millis(ttl.value()));
        }
        let meta = read.open_table(META).map_err(|e| fail(&e))?;
        let counter = |name: &'static str| {
            let missing =
                || StoreError::Corrupt { what: "meta table".to_owned(), problem: format!("has no {name}") };
            meta.get(name).map_err(|e| fail(&e))?.map(|value| value.value()).ok_or_else(missing)
        };
        let counters = (counter("revision")?, counter("next_lease")?);
        Ok(KeySpace::restored(limits, entries, leases, counters, Instant::now()))
    }
}

/// Refuses a file of another format while it is only read: to open it for writing changes bytes of it. One
/// that was not closed cannot be read before it is repaired; [`Journal::prepare`] refuses it then, and leaves
/// what it holds as it is.
fn check_format(path: &Path) -> Result<(), StoreError> {
    // A pipe, say, could be waited for without end.
    if !path.symlink_metadata().is_ok_and(|found| found.is_file() && 0 < found.len()) {
        return Ok(());
    }
    let found = || -> Result<u64, redb::Error> {
        let file = Database::builder().set_cache_size(CACHE_BYTES).open_read_only(path)?;
        let meta = file.begin_read()?.open_table(META)?;
        Ok(meta.get("format")?.map_or(FORMAT, |format| format.value()))
    };
    match found() {
        Ok(found) if found != FORMAT => {
            Err(StoreError::Format { path: path.to_owned(), found, wanted: FORMAT })
        }
        // It is opened for writing next, which tells what is wrong with it.
        Ok(_) | Err(_) => Ok(()),
    }
}

fn create(path: &Path) -> Result<Database, DatabaseError> {
    let file = open_own(path).map_err(|cause| DatabaseError::Storage(StorageError::Io(cause)))?;
    Database::builder().set_cache_size(CACHE_BYTES).create_file(file)
}

/// Opens or makes the file, for its user alone: it holds what users write, and their command lines. One that
/// is somebody else's, or is reached by a link, is refused.
fn open_own(path: &Path) -> std::io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let opened = options.custom_flags(OFlags::NOFOLLOW.bits().cast_signed()).open(path);
    let refused = |text: &str| Err(std::io::Error::new(ErrorKind::PermissionDenied, text));
    let file = match opened {
        Err(_) if path.is_symlink() => return refused("it is a link: name the file itself"),
        opened => opened?,
    };
    let found = file.metadata()?;
    if !found.is_file() {
        return refused("it is no regular file");
    }
    if found.uid() != rustix::process::geteuid().as_raw() {
        return refused("it is another user's");
    }
    if found.mode() & 0o077 != 0 {
        // One of an earlier release, or on a volume whose files are given to a group at each mount.
        file.set_permissions(Permissions::from_mode(0o600))?;
    }
    Ok(file)
}

/// Whether a file is not empty and begins like no database.
fn is_foreign(path: &Path) -> bool {
    let mut magic = [0; DATABASE_MAGIC.len()];
    let is_file = path.symlink_metadata().is_ok_and(|found| found.is_file() && 0 < found.len());
    let read = File::open(path).and_then(|mut file| file.read_exact(&mut magic));
    is_file && (read.is_err() || magic != *DATABASE_MAGIC)
}

/// Fills up a partly written last page; returns whether there was one. The database refuses such a file as
/// truncated, although it does not need the page: if a commit needs it, the zeros do not match its checksum
/// and the commit before is used.
fn complete_last_page(path: &Path) -> Result<bool, StoreError> {
    let fail = |error: std::io::Error| io(path, &error);
    let mut file = open_own(path).map_err(fail)?;
    let len_bytes = file.metadata().map_err(fail)?.len();
    let mut magic = [0; DATABASE_MAGIC.len()];
    if len_bytes.is_multiple_of(PAGE_BYTES)
        || file.read_exact(&mut magic).is_err()
        || magic != *DATABASE_MAGIC
    {
        return Ok(false);
    }
    file.set_len(len_bytes.next_multiple_of(PAGE_BYTES)).map_err(fail)?;
    Ok(true)
}

fn io(path: &Path, error: &Cause) -> StoreError {
    let is_full = kind_of(error).is_some_and(|kind| {
        matches!(kind, ErrorKind::FileTooLarge | ErrorKind::QuotaExceeded | ErrorKind::StorageFull)
    });
    StoreError::Io { path: path.to_owned(), is_full, cause: chain(error) }
}

/// Kind of the error of the system behind an error of the database, which names no source.
fn kind_of(error: &Cause) -> Option<ErrorKind> {
    let of = |error: &StorageError| match error {
        StorageError::Io(cause) => Some(cause.kind()),
        _ => None,
    };
    if let Some(error) = error.downcast_ref::<std::io::Error>() {
        return Some(error.kind());
    }
    if let Some(error) = error.downcast_ref::<StorageError>() {
        return of(error);
    }
    if let Some(DatabaseError::Storage(error)) = error.downcast_ref() {
        return of(error);
    }
    if let Some(TransactionError::Storage(error)) = error.downcast_ref() {
        return of(error);
    }
    if let Some(TableError::Storage(error)) = error.downcast_ref() {
        return of(error);
    }
    match error.downcast_ref() {
        Some(CommitError::Storage(error)) => of(error),
        _ => None,
    }
}

fn millis(ttl: Duration) -> u64 {
    u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> Result<(), StoreError> {
        Journal::open(path, EmbeddedLimits::default()).map(drop)
    }

    fn mode(path: &Path) -> u32 {
        path.metadata().unwrap().permissions().mode() & 0o777
    }

    #[test]
    fn the_file_is_its_users_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        open(&path).unwrap();
        assert_eq!(mode(&path), 0o600);
        // As an earlier release made it, or as a volume is mounted.
        for wide in [0o644, 0o660] {
            std::fs::set_permissions(&path, Permissions::from_mode(wide)).unwrap();
            open(&path).unwrap();
            assert_eq!(mode(&path), 0o600);
        }
    }

    #[test]
    fn a_file_of_a_later_release_is_refused_and_not_changed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        open(&path).unwrap();
        let later = Database::open(&path).unwrap();
        let write = later.begin_write().unwrap();
        write.open_table(META).unwrap().insert("format", FORMAT + 1).unwrap();
        // One that only the later release knows.
        write.open_table(TableDefinition::<u64, u64>::new("more")).unwrap();
        write.commit().unwrap();
        drop(later);
        let (before, found, wanted) = (std::fs::read(&path).unwrap(), FORMAT + 1, FORMAT);
        assert_eq!(open(&path), Err(StoreError::Format { path: path.clone(), found, wanted }));
        assert!(before == std::fs::read(&path).unwrap(), "not a byte is another");
    }

    #[test]
    fn the_database_of_another_program_is_refused_and_gets_no_tables() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        let other = Database::create(&path).unwrap();
        let write = other.begin_write().unwrap();
        let table: TableDefinition<&str, u64> = TableDefinition::new("accounts");
        write.open_table(table).unwrap().insert("a", 1).unwrap();
        write.commit().unwrap();
        drop(other);
        let refused = open(&path).unwrap_err().to_string();
        assert!(refused.contains("another program") && refused.contains("accounts"), "{refused}");
        let other = Database::open(&path).unwrap();
        assert_eq!(other.begin_read().unwrap().list_tables().unwrap().count(), 1);
    }

    #[test]
    fn a_link_is_refused_and_what_it_leads_to_stays_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (target, link) = (folder.path().join("target"), folder.path().join("link"));
        std::fs::write(&target, b"").unwrap();
        std::os::unix::fs::symlink(&target, &link).unwrap();
        let refused = open(&link).unwrap_err().to_string();
        assert!(refused.contains("link"), "{refused}");
        assert_eq!(target.metadata().unwrap().len(), 0);
        std::fs::remove_file(&target).unwrap();
        assert!(open(&link).unwrap_err().to_string().contains("link"));
        assert!(!target.exists(), "it is not made either");
    }
}
