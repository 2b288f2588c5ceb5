//! Files and folders of this user that a volume has opened to its group.
//!
//! Kubernetes gives the group of `fsGroup` read and write on everything in a volume when it is mounted for a
//! new pod: a secret of mode 0600 becomes 0660, a folder of mode 0700 becomes 2770. To refuse these would end
//! a cluster at the first move of its head. So what is exactly that, belongs to this user, and to a group
//! that this process is in, is closed again. Everything else that is open to others is refused as ever: who
//! made it so is not known.
//!
//! A team's folder of mode 2770 looks the same, and to close it would shut the team out. So a folder is
//! closed only if it was this user's alone before: a node leaves a mark of its user in each folder that it
//! found closed.

use std::fs::{File, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// The mark in a folder that was this user's alone.
pub const MARK: &str = ".tharsis";

/// Leaves the mark in a folder that is closed to others. One that takes no file is not marked.
pub fn mark(folder: &Path) {
    let made = File::options().write(true).create_new(true).mode(0o600).open(folder.join(MARK));
    match made {
        Err(cause) if cause.kind() != io::ErrorKind::AlreadyExists => {
            tracing::debug!(%cause, folder = %folder.display(), "the folder is not marked");
        }
        _ => {}
    }
}

/// Whether a folder was this user's alone when a node of this user served there.
fn is_marked(folder: &Path) -> bool {
    folder.join(MARK).symlink_metadata().is_ok_and(|mark| mark.is_file() && is_own(&mark))
}

fn is_own(data: &Metadata) -> bool {
    data.uid() == rustix::process::geteuid().as_raw()
}

/// Closes a file, or a folder with the mark, that a volume has opened to its group, and says so in the log.
///
/// # Errors
/// If the system refuses.
pub fn close_to_group(file: &File, path: &Path) -> io::Result<()> {
    let data = file.metadata()?;
    if !is_opened_by_a_volume(&data) || data.is_dir() && !is_marked(path) {
        return Ok(());
    }
    file.set_permissions(Permissions::from_mode(if data.is_dir() { 0o700 } else { 0o600 }))?;
    tracing::warn!(
        path = %path.display(), mode = format!("{:o}", data.mode() & 0o7777),
        "it was open to the group, as a volume with fsGroup makes it, and is closed again"
    );
    Ok(())
}

/// Whether a folder is open to others only until [`close_to_group`] has closed it.
pub fn is_to_be_closed(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|data| data.is_dir() && is_opened_by_a_volume(&data) && is_marked(folder))
}

fn is_opened_by_a_volume(data: &Metadata) -> bool {
    let mode = data.mode() & 0o7777;
    let is_opened = if data.is_dir() { mode & 0o2077 == 0o2070 } else { mode & 0o077 == 0o060 };
    let groups = rustix::process::getgroups().unwrap_or_default();
    let own_group = rustix::process::getegid();
    let is_in = |group: u32| own_group.as_raw() == group || groups.iter().any(|g| g.as_raw() == group);
    is_opened && is_own(data) && is_in(data.gid())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{DirBuilder, metadata, set_permissions};

    #[test]
    fn what_a_volume_opened_is_closed_and_nothing_else() {
        let root = tempfile::tempdir().unwrap();
        let (file, folder) = (root.path().join("file"), root.path().join("folder"));
        std::fs::write(&file, "x").unwrap();
        DirBuilder::new().create(&folder).unwrap();
        let closed = |path: &Path, mode: u32| {
            set_permissions(path, Permissions::from_mode(mode)).unwrap();
            close_to_group(&File::open(path).unwrap(), path).unwrap();
            metadata(path).unwrap().mode() & 0o7777
        };
        assert_eq!(closed(&file, 0o660), 0o600);
        assert_eq!(closed(&folder, 0o2770), 0o2770, "a team's");
        std::os::unix::fs::symlink(&file, folder.join(MARK)).unwrap();
        assert_eq!(closed(&folder, 0o2770), 0o2770, "a link is no mark");
        std::fs::remove_file(folder.join(MARK)).unwrap();
        set_permissions(&folder, Permissions::from_mode(0o2770)).unwrap();
        assert!(!is_to_be_closed(&folder));
        (0..2).for_each(|_| mark(&folder));
        assert!(is_to_be_closed(&folder) && !is_to_be_closed(&file));
        assert_eq!(closed(&folder, 0o2770), 0o700);
        assert!(!is_to_be_closed(&folder));
        for mode in [0o600, 0o640, 0o604, 0o644, 0o666] {
            assert_eq!(closed(&file, mode), mode);
        }
        for mode in [0o700, 0o750, 0o770, 0o2777, 0o755] {
            assert_eq!(closed(&folder, mode), mode);
        }
    }
}
