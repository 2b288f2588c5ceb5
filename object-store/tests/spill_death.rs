//! A process killed while it spills: its files stay while it lives, and the next start after its death
//! removes them.

// Tests and their helper functions may panic on failure.
#![allow(clippy::unwrap_used)]

use std::env;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tharsis_object_store::spill::{SpillDir, SpillOptions};

const PATH: &str = "THARSIS_TEST_SPILL_DIR";

fn open(path: &Path) -> SpillDir {
    SpillDir::open(path, u64::MAX, &SpillOptions::default()).unwrap()
}

/// Bytes of all files of all sessions in a directory.
fn bytes_in(path: &Path) -> u64 {
    let sessions = fs::read_dir(path).unwrap().map(|session| session.unwrap().path());
    let files = sessions.filter_map(|session| fs::read_dir(session).ok()).flatten();
    files.filter_map(|file| file.ok()?.metadata().ok()).map(|metadata| metadata.len()).sum()
}

/// The child: spills until it is killed.
#[test]
fn spill_for_ever() {
    let Ok(path) = env::var(PATH) else { return };
    let dir = open(path.as_ref());
    let object = vec![7; 9 << 20];
    for number in 0_u64.. {
        let mut key = [0; 20];
        key[..8].copy_from_slice(&number.to_le_bytes());
        dir.write(&key, &[&object]).unwrap();
        if 5 <= number {
            key[..8].copy_from_slice(&(number - 5).to_le_bytes());
            assert!(dir.remove(&key));
        }
    }
}

#[test]
fn left_overs_of_the_killed_are_swept_and_files_of_the_living_are_not() {
    if env::var(PATH).is_ok() {
        return;
    }
    let root = tempfile::tempdir().unwrap();
    let mut child = Command::new(env::current_exe().unwrap())
        .args(["spill_for_ever", "--exact", "--quiet"])
        .env(PATH, root.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let deadline = Instant::now() + Duration::from_secs(60);
    while bytes_in(root.path()) < 20 << 20 {
        assert!(Instant::now() < deadline, "the child spills nothing");
        std::thread::sleep(Duration::from_millis(5));
    }
    // Other processes open and drop the directory without harm to the living one.
    (0..20).for_each(|_| drop(open(root.path())));
    assert!(child.try_wait().unwrap().is_none() && 0 < bytes_in(root.path()));
    child.kill().unwrap();
    // The child was not waited for yet: a zombie holds no lock.
    while bytes_in(root.path()) != 0 {
        assert!(Instant::now() < deadline, "{} bytes are left over", bytes_in(root.path()));
        drop(open(root.path()));
        std::thread::sleep(Duration::from_millis(5));
    }
    child.wait().unwrap();
    assert_eq!(fs::read_dir(root.path()).unwrap().count(), 0);
}
