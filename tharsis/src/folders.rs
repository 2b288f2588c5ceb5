//! The folder of a user's sockets: in `XDG_RUNTIME_DIR`, which is the user's alone, or among temporary files.
//!
//! A folder of the system for sessions (`/run/user/1000`) is removed when the last session of its user ends,
//! with the socket, the logs and the programs of a node that runs on. So it is used for users whose services
//! outlive their sessions (`loginctl enable-linger`); for others only where the folder among temporary files
//! is another user's, who could keep everybody else from starting otherwise.

use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// The variable of the folder that is the user's alone.
const RUNTIME_VARIABLE: &str = "XDG_RUNTIME_DIR";
/// The folders that are removed at the end of the last session.
const OF_SESSIONS: &str = "/run/user";

/// Places for the folders of a user.
#[derive(Clone, Debug)]
struct Places {
    user: u32,
    runtime: Option<PathBuf>,
    /// The runtime folder of the user in an environment that lost the variable, or has another user's.
    other_runtime: Option<PathBuf>,
    temporary: PathBuf,
    /// The folder of the system's notes about users and sessions.
    system: PathBuf,
}

impl Places {
    fn of_process() -> Places {
        let user = rustix::process::geteuid().as_raw();
        let runtime = std::env::var_os(RUNTIME_VARIABLE).map(PathBuf::from);
        let names_temporary = std::env::var_os("TMPDIR").is_some();
        Places {
            user,
            other_runtime: other_runtime(user, runtime.is_some(), names_temporary),
            runtime,
            temporary: std::env::temp_dir(),
            system: PathBuf::from("/"),
        }
    }

    /// The folder among temporary files.
    fn temporary(&self) -> PathBuf {
        self.temporary.join(format!("tharsis-{}", self.user))
    }

    /// The folder in a runtime directory; none if that is not there, or is not this user's alone.
    fn runtime(&self, folder: Option<&PathBuf>) -> Option<PathBuf> {
        let folder = folder.filter(|folder| folder.is_absolute())?;
        let found = folder.metadata().ok()?;
        let is_own = found.is_dir() && found.uid() == self.user && found.permissions().mode() & 0o077 == 0;
        is_own.then(|| folder.join("tharsis"))
    }

    /// Whether a folder outlives the sessions of its user.
    fn is_kept(&self, folder: &Path) -> bool {
        // It may be named by a link, as /var/run is one.
        let real = folder.parent().and_then(|above| above.canonicalize().ok());
        if !real.as_deref().unwrap_or(folder).starts_with(OF_SESSIONS) {
            return true;
        }
        let notes = self.system.join(format!("run/systemd/users/{}", self.user));
        let notes = std::fs::read_to_string(notes).unwrap_or_default();
        let name = notes.lines().find_map(|line| line.strip_prefix("NAME="));
        name.is_some_and(|name| self.system.join("var/lib/systemd/linger").join(name).exists())
    }

    /// The folders in which a node of this user may be, the one for a new node first.
    fn all(&self) -> Vec<PathBuf> {
        let temporary = self.temporary();
        let is_anothers = temporary.symlink_metadata().is_ok_and(|found| found.uid() != self.user);
        match self.runtime(self.runtime.as_ref()) {
            Some(runtime) if is_anothers => vec![runtime],
            Some(runtime) if self.is_kept(&runtime) => vec![runtime, temporary],
            Some(runtime) => vec![temporary, runtime],
            None => {
                let other = self.runtime(self.other_runtime.as_ref());
                std::iter::once(temporary).chain(other).collect()
            }
        }
    }

    /// A file in one of the folders: the one that is there, or the place of a new one.
    fn find(&self, file: &str) -> PathBuf {
        let all = self.all();
        let there = all.iter().map(|folder| folder.join(file)).find(|path| path.symlink_metadata().is_ok());
        there.unwrap_or_else(|| all[0].join(file))
    }
}

/// The runtime folder of a user, if the variable's is of no use: `su` and `sudo` leave that of another user,
/// or none. An environment that names a folder for temporary files instead means that one.
fn other_runtime(user: u32, names_runtime: bool, names_temporary: bool) -> Option<PathBuf> {
    let is_lost = names_runtime || !names_temporary;
    is_lost.then(|| Path::new(OF_SESSIONS).join(user.to_string()))
}

/// The folder for a new node of this user.
pub(crate) fn scratch() -> PathBuf {
    Places::of_process().all().swap_remove(0)
}

/// The folder of this user among temporary files.
pub(crate) fn temporary() -> PathBuf {
    Places::of_process().temporary()
}

/// A file of this user's nodes: the one that is there, or the place of a new one. An environment may have
/// lost the variable, as that of a timer or a service, and the node was started by another.
pub(crate) fn find(file: &str) -> PathBuf {
    Places::of_process().find(file)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{Permissions, create_dir_all, set_permissions, write};
    use tempfile::TempDir;

    fn places() -> (TempDir, Places) {
        let root = tempfile::tempdir().unwrap();
        let (runtime, temporary) = (root.path().join("run"), root.path().join("tmp"));
        for folder in [&runtime, &temporary] {
            create_dir_all(folder).unwrap();
            set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
        }
        let user = rustix::process::geteuid().as_raw();
        let system = root.path().to_owned();
        let places = Places { user, runtime: Some(runtime), other_runtime: None, temporary, system };
        (root, places)
    }

    #[test]
    fn the_runtime_folder_is_used_if_it_is_the_users_alone() {
        let (root, places) = places();
        let (own, other) = (root.path().join("run/tharsis"), places.temporary());
        assert_eq!(places.all(), [own, other.clone()]);
        set_permissions(root.path().join("run"), Permissions::from_mode(0o750)).unwrap();
        assert_eq!(places.all(), std::slice::from_ref(&other), "others may look into it");
        for runtime in [None, Some("relative".into()), Some("".into()), Some(root.path().join("absent"))] {
            assert_eq!(Places { runtime, ..places.clone() }.all(), std::slice::from_ref(&other));
        }
        // It is another's.
        let places = Places { user: places.user + 1, ..places };
        assert_eq!(places.all(), [places.temporary()]);
    }

    #[test]
    fn a_folder_of_sessions_is_kept_for_users_that_linger() {
        let (root, places) = places();
        let folder = Path::new("/run/user/7/tharsis");
        assert!(!places.is_kept(folder) && places.is_kept(Path::new("/run/users/7")));
        let notes = root.path().join("run/systemd/users");
        create_dir_all(&notes).unwrap();
        write(notes.join(places.user.to_string()), "# private\nNAME=ann\nSTATE=active\n").unwrap();
        assert!(!places.is_kept(folder));
        let linger = root.path().join("var/lib/systemd/linger");
        create_dir_all(&linger).unwrap();
        write(linger.join("ann"), "").unwrap();
        assert!(places.is_kept(folder));
    }

    #[test]
    fn what_is_there_is_found_whatever_the_environment_says() {
        let (_root, places) = places();
        let without = Places { runtime: None, ..places.clone() };
        let there = without.find("node.sock");
        create_dir_all(there.parent().unwrap()).unwrap();
        assert_ne!(places.find("node.sock"), there, "none is there");
        write(&there, "").unwrap();
        assert_eq!(places.find("node.sock"), there);
    }

    #[test]
    fn a_node_is_found_from_an_environment_that_lost_the_variable() {
        let (_root, places) = places();
        let lost = Places { runtime: None, other_runtime: places.runtime.clone(), ..places.clone() };
        assert_eq!(lost.find("node.sock"), places.temporary().join("node.sock"), "the place of a new one");
        let there = places.find("node.sock");
        create_dir_all(there.parent().unwrap()).unwrap();
        write(&there, "").unwrap();
        assert_eq!(lost.find("node.sock"), there);
    }

    #[test]
    fn a_node_is_found_from_an_environment_with_the_variable_of_another_user() {
        let (root, places) = places();
        let there = places.find("node.sock");
        create_dir_all(there.parent().unwrap()).unwrap();
        write(&there, "").unwrap();
        // Open to others, as that of another user is of no use.
        let theirs = root.path().join("theirs");
        create_dir_all(&theirs).unwrap();
        set_permissions(&theirs, Permissions::from_mode(0o755)).unwrap();
        let other_runtime = places.runtime.clone();
        let kept = Places { runtime: Some(theirs), other_runtime, ..places.clone() };
        assert_eq!(kept.find("node.sock"), there);
        let own = Some(PathBuf::from("/run/user/7"));
        let of = |runtime, temporary| super::other_runtime(7, runtime, temporary);
        assert_eq!((of(false, false), of(true, false), of(true, true)), (own.clone(), own.clone(), own));
        assert_eq!(of(false, true), None, "one of its own for temporary files");
    }

    #[test]
    fn a_folder_that_another_user_made_first_stops_nobody() {
        let (root, places) = places();
        let squatted = places.temporary();
        create_dir_all(&squatted).unwrap();
        // Of users, root alone gives folders away.
        if std::os::unix::fs::chown(&squatted, Some(places.user + 1), None).is_ok() {
            assert_eq!(places.all(), [root.path().join("run/tharsis")]);
            assert_eq!(Places { runtime: None, ..places.clone() }.all(), [squatted], "it is refused later");
        }
    }
}
