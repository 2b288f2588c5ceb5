//! The file with a cluster's secret: who can read it is a member.
//!
//! By default it lies in the user's own folder and serves all clusters of the user, so that a node that joins
//! by address finds it, and a head that starts again has the secret that its members know. It is never in a
//! command line, a variable or a log; they have its path.

use crate::own_files::close_to_group;
use std::fs::{DirBuilder, File, Metadata};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use tharsis_protos::proof::{SECRET_BYTES, Secret};
use tharsis_protos::scrape;
use tharsis_types::{Failure, FailureKind};

/// Bytes of the file that are looked at: the digits, the end of the line, and one more to see that it is
/// longer.
const FILE_BYTES_MAX: u64 = 2 * SECRET_BYTES as u64 + 2;

/// The secret in a file, which is made if it is not there.
///
/// # Errors
/// `InvalidArgument` with the path: the file or its folder is open to others, or does not hold a secret.
pub fn load_or_make(path: &Path) -> Result<Secret, Failure> {
    match load(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        outcome => return outcome.map_err(|error| refused(path, &error)),
    }
    let made = make(path);
    match made {
        // Somebody else was faster; there is one secret.
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(refused(path, &error)),
        Ok(()) => {}
    }
    load(path).map_err(|error| refused(path, &error))
}

/// Writes the token of scrapers ([`tharsis_protos::scrape`]) into a file beside the secret that only the user
/// can read. Answers its path.
///
/// # Errors
/// If it cannot be written.
pub fn write_scrape_token(path: &Path, secret: &Secret) -> io::Result<PathBuf> {
    let token_path = path.with_extension("metrics-token");
    let beside = beside(&token_path)?;
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = writeln!(file, "{}", scrape::token(secret));
    written.and_then(|()| std::fs::rename(&beside, &token_path))?;
    Ok(token_path)
}

fn load(path: &Path) -> io::Result<Secret> {
    let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
    let file = File::options().read(true).custom_flags(no_link).open(path)?;
    close_to_group(&file, path)?;
    check_private(&file.metadata()?, 0o077)?;
    let mut text = String::new();
    file.take(FILE_BYTES_MAX).read_to_string(&mut text)?;
    let digits = 2 * SECRET_BYTES;
    Secret::from_hex(&text).ok_or_else(|| wrong(format!("does not hold {digits} hexadecimal digits")))
}

/// Writes a new secret beside the path and links it there, so that nobody reads half of one and none is
/// replaced.
fn make(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    check_private(&std::fs::metadata(folder)?, 0o022)
        .map_err(|error| wrong(format!("its folder {error}")))?;
    let beside = beside(path)?;
    let mut file = File::options().write(true).create_new(true).mode(0o600).open(&beside)?;
    let written = writeln!(file, "{}", Secret::random()?.to_hex()).and_then(|()| file.sync_all());
    let linked = written.and_then(|()| std::fs::hard_link(&beside, path));
    std::fs::remove_file(&beside)?;
    linked
}

/// A name that nobody else uses, nor a process that was killed while it did.
fn beside(path: &Path) -> io::Result<PathBuf> {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{}", Secret::random()?.to_hex()));
    Ok(name.into())
}

/// Refuses what another user owns or may use; `open_bits` are the permissions that others must not have.
fn check_private(data: &Metadata, open_bits: u32) -> io::Result<()> {
    let own_uid = rustix::process::geteuid().as_raw();
    if data.uid() != own_uid {
        return Err(wrong(format!("belongs to user {}, this is user {own_uid}", data.uid())));
    }
    if data.mode() & open_bits != 0 {
        return Err(wrong(format!("is open to others (mode {:o})", data.mode() & 0o7777)));
    }
    Ok(())
}

fn wrong(text: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, text)
}

fn refused(path: &Path, error: &io::Error) -> Failure {
    let text = format!("secret_file: {}: {error}", path.display());
    Failure::new(FailureKind::InvalidArgument, text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, set_permissions};
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn of_many_that_start_at_once_all_have_one_secret() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("a/b/cluster.secret");
        let found: Vec<Secret> = std::thread::scope(|scope| {
            let all: Vec<_> = (0..8).map(|_| scope.spawn(|| load_or_make(&path).unwrap())).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(found.iter().all(|secret| *secret == found[0]));
        let folder = path.parent().unwrap();
        let mode = |path: &Path| path.metadata().unwrap().mode() & 0o777;
        assert_eq!((mode(&path), mode(folder)), (0o600, 0o700));
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), 1, "nothing is left beside it");
    }

    #[test]
    fn what_others_can_read_or_replace_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("cluster.secret");
        load_or_make(&path).unwrap();
        set_permissions(&path, Permissions::from_mode(0o640)).unwrap();
        let error = load_or_make(&path).unwrap_err();
        assert!(error.message.contains("is open to others (mode 640)"), "{error:?}");
        let link = root.path().join("link");
        std::os::unix::fs::symlink(&path, &link).unwrap();
        assert_eq!(load_or_make(&link).unwrap_err().kind, FailureKind::InvalidArgument);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "short").unwrap();
        set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
        let error = load_or_make(&path).unwrap_err();
        assert!(error.message.contains("does not hold 64 hexadecimal digits"), "{error:?}");
        let open = root.path().join("open");
        std::fs::create_dir(&open).unwrap();
        set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        let error = load_or_make(&open.join("cluster.secret")).unwrap_err();
        assert!(error.message.contains("its folder is open to others"), "{error:?}");
    }
}
