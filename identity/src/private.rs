//! Files and folders that only their user may read, and random bytes.

use crate::IdentityError;
use rustix::fs::OFlags;
use std::fs;
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

pub(crate) fn random<const N: usize>() -> Result<[u8; N], IdentityError> {
    let mut bytes = [0; N];
    let path = Path::new("/dev/urandom");
    let read = fs::File::open(path).and_then(|mut file| file.read_exact(&mut bytes));
    read.map_err(at(path)).map(|()| bytes)
}

/// Makes a folder of mode 0700, with those above it.
pub(crate) fn make_folder(path: &Path) -> Result<(), IdentityError> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path).map_err(at(path))
}

/// Writes a file of mode 0600 so that it is there whole or not at all, and stays after a power cut.
pub(crate) fn write(path: &Path, bytes: &[u8]) -> Result<(), IdentityError> {
    let new = beside(path)?;
    let written = create(&new).and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    let moved = written.and_then(|()| fs::rename(&new, path));
    moved.map_err(|cause| {
        // It is nobody's, and the first error is the one to tell.
        let _removed = fs::remove_file(&new);
        at(path)(cause)
    })
}

/// As [`write()`], unless the file is there already: of several that make it at once, one wins. Says whether
/// this one did.
pub(crate) fn write_new(path: &Path, bytes: &[u8]) -> Result<bool, IdentityError> {
    let new = beside(path)?;
    let written = create(&new).and_then(|mut file| file.write_all(bytes).and_then(|()| file.sync_all()));
    let linked = written.and_then(|()| fs::hard_link(&new, path));
    let _removed = fs::remove_file(&new);
    match linked {
        Ok(()) => Ok(true),
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists => Ok(false),
        Err(cause) => Err(at(path)(cause)),
    }
}

/// Reads a file that nobody else may read; none if it is not there. A link is not followed: where others may
/// write it leads to what they like.
pub(crate) fn read(path: &Path) -> Result<Option<Vec<u8>>, IdentityError> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut file = match fs::File::options().read(true).custom_flags(flags).open(path) {
        Ok(file) => file,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(_) if path.is_symlink() => {
            let text = "it is a link: put the file itself there";
            return Err(at(path)(io::Error::new(io::ErrorKind::PermissionDenied, text)));
        }
        Err(cause) => return Err(at(path)(cause)),
    };
    close_to_group(&file, path).map_err(at(path))?;
    let data = file.metadata().map_err(at(path))?;
    if data.uid() != rustix::process::geteuid().as_raw() {
        let text = format!("it belongs to user {}", data.uid());
        return Err(at(path)(io::Error::new(io::ErrorKind::PermissionDenied, text)));
    }
    let mode = data.mode();
    if mode & 0o077 != 0 {
        let text = format!("others may read it (mode {:03o}); make it 600", mode & 0o777);
        return Err(at(path)(io::Error::new(io::ErrorKind::PermissionDenied, text)));
    }
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes).map_err(at(path))?;
    Ok(Some(bytes))
}

/// Closes a file of this user that a volume has opened to its group, and says so in the log. Kubernetes does
/// so with all files of a volume that is mounted for a pod with `fsGroup`. A file that is open in another way
/// is left to be refused: who made it so is not known.
fn close_to_group(file: &fs::File, path: &Path) -> io::Result<()> {
    let data = file.metadata()?;
    let groups = rustix::process::getgroups().unwrap_or_default();
    let own_group = rustix::process::getegid();
    let is_in = own_group.as_raw() == data.gid() || groups.iter().any(|group| group.as_raw() == data.gid());
    let is_own = data.uid() == rustix::process::geteuid().as_raw();
    if data.mode() & 0o077 == 0o060 && is_own && is_in {
        file.set_permissions(fs::Permissions::from_mode(0o600))?;
        tracing::warn!(
            path = %path.display(),
            "it was open to the group, as a volume with fsGroup makes it, and is closed again"
        );
    }
    Ok(())
}

/// Removes a file, if it is there.
pub(crate) fn remove(path: &Path) -> Result<(), IdentityError> {
    match fs::remove_file(path) {
        Err(cause) if cause.kind() != io::ErrorKind::NotFound => Err(at(path)(cause)),
        _ => Ok(()),
    }
}

/// The names of the files in a folder; none if there is no folder.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let files = fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> = files.filter_map(|file| file.file_name().into_string().ok()).collect();
    names.sort_unstable();
    names
}

fn create(path: &Path) -> io::Result<fs::File> {
    fs::OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)
}

fn beside(path: &Path) -> Result<PathBuf, IdentityError> {
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{:016x}.new", u64::from_le_bytes(random()?)));
    Ok(path.with_file_name(name))
}

pub(crate) fn at(path: &Path) -> impl FnOnce(io::Error) -> IdentityError + '_ {
    |cause| IdentityError::Folder { path: path.to_owned(), cause }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_volume_opened_to_the_group_is_closed_and_the_rest_is_refused() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("keys");
        write(&path, b"secret").unwrap();
        let open = |mode| fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        open(0o660);
        assert_eq!(read(&path).unwrap().as_deref(), Some(&b"secret"[..]));
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, 0o600);
        for mode in [0o640, 0o604, 0o644, 0o664] {
            open(mode);
            let refused = read(&path).unwrap_err().to_string();
            assert!(refused.contains("others may read it"), "{refused}");
            assert_eq!(fs::metadata(&path).unwrap().mode() & 0o7777, mode);
        }
    }

    #[test]
    fn a_link_is_not_followed() {
        let root = tempfile::tempdir().unwrap();
        let (path, link) = (root.path().join("keys"), root.path().join("link"));
        write(&path, b"secret").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let refused = read(&link).unwrap_err().to_string();
        assert!(refused.contains("link"), "{refused}");
        // A file that is written there replaces the link.
        write(&link, b"other").unwrap();
        assert_eq!(read(&path).unwrap().as_deref(), Some(&b"secret"[..]));
        assert_eq!(read(&link).unwrap().as_deref(), Some(&b"other"[..]));
    }
}
