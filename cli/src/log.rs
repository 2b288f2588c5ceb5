//! The log of a node or control store: how much, in what form, and where.
//!
//! Without `log_file` it goes to standard error. A file is renamed when it is full, `log` to `log.1`, that to
//! `log.2` and so on, and the oldest is dropped, so that a node that runs for months fills no disk.

use crate::output;
use crate::settings::{Error, Key, Settings, parse};
use rustix::fs::OFlags;
use std::ffi::OsString;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tharsis::process::{NODE_VARIABLE, WORKER_SOCKET_VARIABLE};
use tracing::level_filters::LevelFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

/// The settings of the log, which the process of a node gets as variables.
const KEYS: [Key; 5] = [Key::LogLevel, Key::LogFormat, Key::LogFile, Key::LogFileSize, Key::LogFiles];

/// Choices about the log.
#[derive(Debug)]
pub struct LogChoice {
    texts: Vec<(Key, String)>,
    origin: String,
}

/// A log file with its older parts. Lines of several threads do not mix.
#[derive(Clone, Debug)]
struct LogFile(Arc<Mutex<Rotation>>);

#[derive(Debug)]
struct Rotation {
    path: PathBuf,
    bytes_max: u64,
    /// Files that are kept, with the one in use.
    files: usize,
    file: File,
    written_bytes: u64,
}

/// Begins the log of a node that `tharsis start` made. This process is one if the variable of nodes is set.
pub fn begin_of_node() {
    let is_set = |name: &str| std::env::var_os(name).is_some();
    if !is_set(NODE_VARIABLE) || is_set(WORKER_SOCKET_VARIABLE) {
        return;
    }
    // A node that a program started shares the program's terminal: it logs errors only.
    let unsaid = |key| (key == Key::LogLevel).then(|| "error".to_owned());
    let text = |key: Key| std::env::var(key.variable()).ok().or_else(|| unsaid(key));
    let choice = LogChoice::new(text, Key::LogFile.variable());
    if let Err(error) = choice.begin() {
        output::complain(&format!("tharsis: {error}"));
        choice.begin_on(BoxMakeWriter::new(io::stderr));
    }
}

impl LogChoice {
    /// The choices of these settings.
    pub fn of(settings: &Settings) -> Self {
        let text = |key| settings.value(key).map(|value| value.text.clone());
        Self::new(text, settings.who(Key::LogFile))
    }

    fn new(text: impl Fn(Key) -> Option<String>, origin: String) -> Self {
        let texts = KEYS.into_iter().filter_map(|key| Some((key, text(key).or_else(|| key.default_text())?)));
        Self { texts: texts.collect(), origin }
    }

    /// The variables that tell a new process the same.
    pub fn variables(&self) -> impl Iterator<Item = (String, OsString)> {
        self.texts.iter().map(|(key, text)| match key {
            Key::LogFile => {
                (key.variable(), std::path::absolute(text).unwrap_or_else(|_| text.into()).into())
            }
            _ => (key.variable(), text.into()),
        })
    }

    /// Checks that the file can be written.
    ///
    /// # Errors
    /// [`Error::BadValue`].
    pub fn check(&self) -> Result<(), Error> {
        self.file().map(drop)
    }

    /// Begins the log of this process. A program can have one log; the first one stays.
    ///
    /// # Errors
    /// [`Error::BadValue`] for a file that cannot be written.
    pub fn begin(&self) -> Result<(), Error> {
        match self.file()? {
            Some(file) => self.begin_on(BoxMakeWriter::new(move || file.clone())),
            None => self.begin_on(BoxMakeWriter::new(io::stderr)),
        }
        Ok(())
    }

    fn begin_on(&self, writer: BoxMakeWriter) {
        let level = self.text(Key::LogLevel).parse().unwrap_or(LevelFilter::WARN);
        let log = tracing_subscriber::fmt().with_writer(writer).with_ansi(false).with_max_level(level);
        let _there_is_one = match self.text(Key::LogFormat) {
            "json" => log.json().flatten_event(true).try_init(),
            _ => log.try_init(),
        };
    }

    fn file(&self) -> Result<Option<LogFile>, Error> {
        let path = match self.text(Key::LogFile) {
            "" => return Ok(None),
            path => Path::new(path),
        };
        let bad = |problem: String| Error::BadValue {
            origin: self.origin.clone(),
            value: path.display().to_string(),
            problem,
        };
        let bytes_max = parse::log_file_size(self.text(Key::LogFileSize)).map_err(bad)?;
        let files = parse::log_files(self.text(Key::LogFiles)).map_err(bad)?;
        let opened = Rotation::open(path.to_owned(), bytes_max, files);
        let opened = opened.map_err(|cause| bad(format!("cannot be written: {cause}")))?;
        Ok(Some(LogFile(Arc::new(Mutex::new(opened)))))
    }

    fn text(&self, key: Key) -> &str {
        self.texts.iter().find(|(known, _)| *known == key).map_or("", |(_, text)| text)
    }
}

impl Rotation {
    fn open(path: PathBuf, bytes_max: u64, files: usize) -> io::Result<Self> {
        let file = append_to(&path)?;
        let written_bytes = file.metadata()?.len();
        Ok(Self { path, bytes_max, files, file, written_bytes })
    }

    /// Writes a line, in another file if this one is full.
    fn write(&mut self, line: &[u8]) -> io::Result<()> {
        let line_bytes = line.len() as u64;
        if 0 < self.written_bytes && self.bytes_max < self.written_bytes + line_bytes {
            // A file that cannot be renamed grows on: too long a log is better than none.
            let _grows = self.rotate();
        }
        self.file.write_all(line)?;
        self.written_bytes += line_bytes;
        Ok(())
    }

    fn rotate(&mut self) -> io::Result<()> {
        for older in (1..self.files).rev() {
            match std::fs::rename(self.part(older - 1), self.part(older)) {
                Err(cause) if cause.kind() != io::ErrorKind::NotFound => return Err(cause),
                _ => {}
            }
        }
        if self.files == 1 {
            std::fs::remove_file(&self.path)?;
        }
        self.file = append_to(&self.path)?;
        self.written_bytes = self.file.metadata()?.len();
        Ok(())
    }

    /// Path of a part of the log; 0 is the file in use.
    fn part(&self, age: usize) -> PathBuf {
        if age == 0 {
            return self.path.clone();
        }
        let mut name = self.path.clone().into_os_string();
        name.push(format!(".{age}"));
        name.into()
    }
}

impl Write for LogFile {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.lock().write(line)?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.lock().file.flush()
    }
}

impl LogFile {
    fn lock(&self) -> MutexGuard<'_, Rotation> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A file that only its user can read. A link is not followed: in a shared folder it may be somebody else's.
fn append_to(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    OpenOptions::new().create(true).append(true).mode(0o600).custom_flags(flags).open(path)
}

/// An empty file that only its user can read, in the place of an older one of this user, which is `.before`
/// from now on: its last lines may say why the node ended. The folder is not known to be closed to others
/// yet: what they have put there is left alone.
///
/// # Errors
/// If there is a link, or somebody else's file.
pub fn fresh(path: &Path) -> io::Result<File> {
    let file = own_file(path)?;
    if file.metadata()?.len() == 0 {
        return Ok(file);
    }
    let mut before = path.as_os_str().to_owned();
    before.push(".before");
    let file = if std::fs::rename(path, before).is_ok() { own_file(path)? } else { file };
    file.set_len(0)?;
    Ok(file)
}

/// A file of this user, which is made if it is missing.
fn own_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits().cast_signed();
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true).mode(0o600);
    let file = options.custom_flags(flags).open(path)?;
    let owner = file.metadata()?.uid();
    if owner != rustix::process::geteuid().as_raw() {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, format!("it belongs to user {owner}")));
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_log_is_renamed_and_the_oldest_part_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("node.log");
        let text = |age: usize| {
            let name = if age == 0 { "node.log".to_owned() } else { format!("node.log.{age}") };
            std::fs::read_to_string(folder.path().join(name)).unwrap_or_default()
        };
        let mut log = Rotation::open(path.clone(), 8, 3).unwrap();
        for line in ["aaa\n", "bbb\n", "ccc\n"] {
            log.write(line.as_bytes()).unwrap();
        }
        assert_eq!((text(0), text(1), text(2)), ("ccc\n".into(), "aaa\nbbb\n".into(), String::new()));
        // A new process goes on in the same file.
        let mut log = Rotation::open(path.clone(), 8, 3).unwrap();
        for line in ["ddd\n", "longer than a file\n", "eee\n"] {
            log.write(line.as_bytes()).unwrap();
        }
        assert_eq!((text(0), text(1)), ("eee\n".into(), "longer than a file\n".into()));
        assert_eq!((text(2), text(3)), ("ccc\nddd\n".into(), String::new()));
        let mut alone = Rotation::open(path, 8, 1).unwrap();
        alone.write(b"ffff fff\n").unwrap();
        assert_eq!(text(0), "ffff fff\n");
    }

    #[test]
    fn a_link_in_the_place_of_a_log_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (path, other) = (folder.path().join("node.log"), folder.path().join("other"));
        std::os::unix::fs::symlink(&other, &path).unwrap();
        assert!(Rotation::open(path.clone(), 8, 1).is_err() && !other.exists());
        std::fs::write(&other, "somebody's").unwrap();
        assert!(fresh(&path).is_err());
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "somebody's");
        let before = other.with_file_name(format!("{}.before", other.file_name().unwrap().display()));
        for _ in 0..2 {
            // The second start finds nothing to keep.
            fresh(&other).unwrap();
            assert_eq!(std::fs::read_to_string(&other).unwrap(), "");
            assert_eq!(std::fs::read_to_string(&before).unwrap(), "somebody's");
        }
    }
}
