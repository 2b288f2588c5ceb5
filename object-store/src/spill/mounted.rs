//! Real file systems for tests: small ones, in memory or in a file. If this user may not mount, such a test
//! reports that it was skipped.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A mounted file system, unmounted when dropped.
pub(crate) struct Mounted {
    dir: tempfile::TempDir,
    /// The file system that contains the image.
    _below: Option<Box<Mounted>>,
    image: Option<Image>,
}

/// A file that holds a file system.
struct Image {
    path: PathBuf,
    _folder: Option<tempfile::TempDir>,
}

impl Mounted {
    /// A file system in memory.
    pub(crate) fn tmpfs(options: &str) -> Option<Mounted> {
        Mounted::mount(&["-t", "tmpfs", "-o", options, "none"])
    }

    /// A file system with a journal, on a disk of this many bytes.
    pub(super) fn ext4(bytes: u64) -> Option<Mounted> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        make_ext4(&path, bytes)?;
        Mounted::image(Image { path, _folder: Some(folder) }, None)
    }

    /// The same on a disk with less space than it reports, like a thin-provisioned volume.
    pub(super) fn thin_ext4(bytes: u64, real_bytes: u64) -> Option<Mounted> {
        let below = Mounted::tmpfs(&format!("size={real_bytes}"))?;
        let path = below.path().join("image");
        make_ext4(&path, bytes)?;
        Mounted::image(Image { path, _folder: None }, Some(Box::new(below)))
    }

    /// A new mount of the file system as a power cut at this moment would leave it: only data that has
    /// reached the disk.
    pub(super) fn after_a_power_cut(&self) -> Option<Mounted> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("image");
        fs::copy(&self.image.as_ref().unwrap().path, &path).unwrap();
        Mounted::image(Image { path, _folder: Some(folder) }, None)
    }

    /// Breaks the disk: beyond `bytes`, every read and write is an input/output error. `None` if that cannot
    /// be done.
    pub(super) fn break_disk(&self, bytes: u64) -> Option<()> {
        let path = &self.image.as_ref().unwrap().path;
        let found = run(Command::new("losetup").args(["-n", "-O", "NAME", "-j"]).arg(path))?;
        File::options().write(true).open(path).unwrap().set_len(bytes).unwrap();
        let device = String::from_utf8(found.stdout).unwrap();
        run(Command::new("losetup").args(["-c", device.trim()])).map(drop)
    }

    pub(crate) fn path(&self) -> &Path {
        self.dir.path()
    }

    fn image(image: Image, below: Option<Box<Mounted>>) -> Option<Mounted> {
        let mut mounted = Mounted::mount(&["-o", "loop", image.path.to_str().unwrap()])?;
        (mounted.image, mounted._below) = (Some(image), below);
        Some(mounted)
    }

    fn mount(arguments: &[&str]) -> Option<Mounted> {
        let dir = tempfile::tempdir().unwrap();
        run(Command::new("mount").args(arguments).arg(dir.path()))?;
        Some(Mounted { dir, _below: None, image: None })
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        // A mount that is still in use ends with its last open file.
        let _ = Command::new("umount").arg("-l").arg(self.dir.path()).output();
    }
}

fn make_ext4(path: &Path, bytes: u64) -> Option<Output> {
    File::create(path).unwrap().set_len(bytes).unwrap();
    run(Command::new("mkfs.ext4").args(["-q", "-E", "lazy_itable_init=1,nodiscard"]).arg(path))
}

/// Runs a command; `None`, and a line on the terminal, if it is missing or not permitted.
fn run(command: &mut Command) -> Option<Output> {
    let problem = match command.output() {
        Ok(output) if output.status.success() => return Some(output),
        Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
        Err(cause) => cause.to_string(),
    };
    skip(&format!("{command:?}: {}", problem.trim()));
    None
}

/// Reports that a test, or the rest of it, is skipped.
pub(super) fn skip(reason: &str) {
    // As `tharsis_trials::not_run`, which the models of this package do not know.
    let _told = writeln!(io::stderr(), "\nNOT RUN, a test with a real file system: {reason}");
}
