//! The process of a submitted program: where its file is, its start, its end.

use crate::descriptors::{self, LIMIT_VARIABLE};
use crate::pressure::unprotect_program;
use crate::readiness;
use crate::registry::lock;
use rustix::io::Errno;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::ffi::{OsStr, OsString};
use std::io::{self, PipeReader};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Mutex;
use tharsis_protos::submission::{NAME_VARIABLE, NewSubmission, QUOTA_VARIABLE, SOCKET_VARIABLE, VARIABLES};
use tharsis_protos::{Refusal, RefusalCode};

/// Set for a process that is about to become a submitted program: the process of its node, a colon, and the
/// path of the program. It has the kernel kill it when the thread that started it ends, which no process can
/// do for another one.
pub const PROGRAM_VARIABLE: &str = "THARSIS_PROGRAM";

/// The process of the node and the path of the program that this process is to become, if it is one.
#[must_use]
pub fn told_program() -> Option<(u32, PathBuf)> {
    let told = std::env::var_os(PROGRAM_VARIABLE)?;
    let bytes = told.as_bytes();
    let colon = bytes.iter().position(|byte| *byte == b':')?;
    let node = std::str::from_utf8(&bytes[..colon]).ok()?.parse().ok()?;
    Some((node, PathBuf::from(OsStr::from_bytes(&bytes[colon + 1..]))))
}

/// The process of a program, if it runs.
#[derive(Default)]
pub struct Running {
    /// Taken when it was waited for: from then on its id may be another process's.
    child: Mutex<Option<Child>>,
}

/// The file of a program: relative to its folder, or in the node's PATH if it is a plain name.
///
/// # Errors
/// `NotFound` if the folder or the program is not there, `FailedPrecondition` if it is no program.
pub fn find(new: &NewSubmission) -> Result<PathBuf, Refusal> {
    let folder = Path::new(&new.folder);
    if !folder.is_dir() {
        let text = format!("FolderNotFound: there is no folder {:?} on the machine of the node", new.folder);
        return Err(Refusal::new(RefusalCode::NotFound, text));
    }
    let word = new.words.first().map_or("", String::as_str);
    let candidates: Vec<PathBuf> = if word.contains('/') {
        vec![folder.join(word)]
    } else {
        let path = new.variables.get("PATH").map(Into::into).or_else(|| std::env::var_os("PATH"));
        let folders = path.unwrap_or_default();
        std::env::split_paths(&folders).map(|place| folder.join(place).join(word)).collect()
    };
    let found: Vec<&PathBuf> = candidates.iter().filter(|path| path.is_file()).collect();
    let may_run = |path: &Path| path.metadata().is_ok_and(|data| data.permissions().mode() & 0o111 != 0);
    match found.iter().find(|path| may_run(path)) {
        Some(path) => Ok(path.to_path_buf()),
        None if found.is_empty() => {
            let text = format!("ProgramNotFound: there is no program {word:?} on the machine of the node");
            Err(Refusal::new(RefusalCode::NotFound, text))
        }
        None => {
            let text = format!("NotAProgram: the file {word:?} may not be run");
            Err(Refusal::new(RefusalCode::FailedPrecondition, text))
        }
    }
}

impl Running {
    /// Starts the program: the id of its process, and what it writes.
    ///
    /// # Errors
    /// `FailedPrecondition` with the reason of the system.
    pub fn start(
        &self,
        new: &NewSubmission,
        path: &Path,
        socket: &Path,
    ) -> Result<(u32, PipeReader), Refusal> {
        let failed = |cause: io::Error| {
            Refusal::new(
                RefusalCode::FailedPrecondition,
                format!("{} does not start: {cause}", path.display()),
            )
        };
        let (reader, writer) = io::pipe().map_err(failed)?;
        let (name, arguments) = new.words.split_first().map_or(("", &[][..]), |(name, rest)| (name, rest));
        let mut told = OsString::from(format!("{}:", std::process::id()));
        told.push(path);
        // This program, which becomes the submitted one.
        let mut command = Command::new("/proc/self/exe");
        for (variable, _) in std::env::vars_os() {
            if variable.to_str().is_some_and(|variable| variable.starts_with(VARIABLES)) {
                command.env_remove(variable);
            }
        }
        command
            .env_remove(readiness::SOCKET_VARIABLE)
            .arg0(name)
            .args(arguments)
            .envs(&new.variables)
            .env(PROGRAM_VARIABLE, told)
            .env(LIMIT_VARIABLE, descriptors::for_children())
            .env(NAME_VARIABLE, &new.name)
            .env(SOCKET_VARIABLE, socket)
            .envs(new.quota.as_ref().map(|quota| (QUOTA_VARIABLE, quota.to_string())))
            .current_dir(&new.folder)
            .stdin(Stdio::null())
            .stdout(writer.try_clone().map_err(failed)?)
            .stderr(writer)
            .process_group(0);
        let mut place = lock(&self.child);
        let child = command.spawn().map_err(failed)?;
        let pid = child.id();
        unprotect_program(pid);
        *place = Some(child);
        Ok((pid, reader))
    }

    /// Waits until it has ended, and kills what is left of its group.
    ///
    /// # Errors
    /// If the system does not tell, or it was never started.
    pub fn await_end(&self) -> io::Result<ExitStatus> {
        let never = || io::Error::from(io::ErrorKind::NotFound);
        let pid = lock(&self.child).as_ref().and_then(pid).ok_or_else(never)?;
        let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        while matches!(waitid(WaitId::Pid(pid), how), Err(Errno::INTR)) {}
        let mut place = lock(&self.child);
        // Its id is its own until it is waited for.
        let _gone = kill_process_group(pid, Signal::KILL);
        place.take().ok_or_else(never)?.wait()
    }

    /// Asks it and its children to end.
    pub fn tell_to_end(&self) {
        self.signal(Signal::TERM);
    }

    /// Ends it and its children.
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    fn signal(&self, signal: Signal) {
        if let Some(pid) = lock(&self.child).as_ref().and_then(pid) {
            // It may be about to be waited for.
            let _gone = kill_process_group(pid, signal);
        }
    }
}

fn pid(child: &Child) -> Option<Pid> {
    i32::try_from(child.id()).ok().and_then(Pid::from_raw)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn new(folder: &Path, word: &str, path: Option<&str>) -> NewSubmission {
        let variables = path.map(|path| ("PATH".to_owned(), path.to_owned()));
        NewSubmission {
            name: "it".to_owned(),
            words: vec![word.to_owned()],
            folder: folder.display().to_string(),
            variables: BTreeMap::from_iter(variables),
            quota: None,
        }
    }

    #[test]
    fn a_program_is_found_in_its_folder_or_in_the_path() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("tool");
        let code = |new: &NewSubmission| find(new).unwrap_err().code;
        assert_eq!(code(&new(folder.path(), "./tool", None)), RefusalCode::NotFound);
        std::fs::write(&file, "#!/bin/sh\n").unwrap();
        assert_eq!(code(&new(folder.path(), "./tool", None)), RefusalCode::FailedPrecondition);
        std::fs::set_permissions(&file, PermissionsExt::from_mode(0o700)).unwrap();
        assert_eq!(find(&new(folder.path(), "./tool", None)).unwrap(), folder.path().join("./tool"));
        let path = folder.path().display().to_string();
        assert_eq!(find(&new(Path::new("/"), "tool", Some(&path))).unwrap(), file);
        assert_eq!(code(&new(Path::new("/"), "tool", Some("/nowhere"))), RefusalCode::NotFound);
        assert_eq!(code(&new(&folder.path().join("gone"), "/bin/sh", None)), RefusalCode::NotFound);
    }
}
