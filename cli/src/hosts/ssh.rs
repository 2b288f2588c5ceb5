//! Commands on other hosts, over the system's ssh.

use super::file::Host;
use std::io;
use std::process::Stdio;
use std::time::Duration;
use tharsis::process::NODE_START_WAIT;
use tharsis_raylet::cluster::TOKEN_TIME_MAX;
use tokio::io::AsyncWriteExt;
use tokio::process::Command;
use tokio::time::timeout;

/// Time in which a connection must be made.
const CONNECT_WAIT_S: u32 = 10;
/// A host that does not answer for three times as long is given up.
const ALIVE_INTERVAL_S: u32 = 5;
/// Longest time for one command: more than a node may take to join and to start, or to stop.
const COMMAND_WAIT: Duration =
    NODE_START_WAIT.saturating_add(TOKEN_TIME_MAX).saturating_add(Duration::from_secs(45));
/// The status of ssh itself, if it fails.
const SSH_FAILED: i32 = 255;
/// The status of a shell that does not find a program.
const NO_PROGRAM: i32 = 127;
/// Lines of an error that are shown.
const SHOWN_LINES: usize = 3;

/// The result of a command that ran on a host.
#[derive(Clone, Debug)]
pub struct Ran {
    /// Its status.
    pub status: i32,
    /// Its output.
    pub out: String,
    /// Its output on standard error.
    pub err: String,
}

/// Why a command did not run.
#[derive(Debug, thiserror::Error)]
pub enum NotRun {
    /// The host was not reached, or did not admit us.
    #[error("ssh: {0}")]
    Ssh(String),
    /// The program is not there.
    #[error("{0}; name its path with `program`")]
    NoProgram(String),
    /// It said nothing for too long.
    #[error("the command did not end within {} s", COMMAND_WAIT.as_secs())]
    Timeout,
    /// This machine has no ssh, or cannot start it.
    #[error("cannot run ssh: {0}")]
    NoSsh(#[source] io::Error),
}

impl Host {
    /// Runs the program on the host. `token` goes through standard input: other users can see arguments.
    ///
    /// # Errors
    /// [`NotRun`]; a program that ran and failed is none.
    pub async fn run(&self, words: &[String], token: Option<&str>) -> Result<Ran, NotRun> {
        let line = remote_line(&self.program, words, token.is_some());
        let mut ssh = Command::new("ssh");
        ssh.args(self.ssh_arguments()).arg("--").arg(&self.host).arg(line);
        ssh.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
        let mut child = ssh.spawn().map_err(NotRun::NoSsh)?;
        if let (Some(mut input), Some(token)) = (child.stdin.take(), token) {
            // The status of ssh says why, if it has ended.
            let _ended = input.write_all(format!("{token}\n").as_bytes()).await;
        }
        let output = timeout(COMMAND_WAIT, child.wait_with_output()).await;
        let output = output.map_err(|_| NotRun::Timeout)?.map_err(NotRun::NoSsh)?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        match output.status.code() {
            Some(SSH_FAILED) | None => Err(NotRun::Ssh(last_lines(&err))),
            Some(NO_PROGRAM) => Err(NotRun::NoProgram(last_lines(&err))),
            Some(status) => Ok(Ran { status, out, err }),
        }
    }

    fn ssh_arguments(&self) -> Vec<String> {
        let ssh = &self.ssh;
        let mut words = Vec::new();
        let path = |path: &std::path::PathBuf| path.display().to_string();
        if let Some(file) = &ssh.config_file {
            words.extend(["-F".to_owned(), path(file)]);
        }
        if let Some(file) = &ssh.identity_file {
            words.extend(["-i".to_owned(), path(file)]);
        }
        words.extend(ssh.port.iter().flat_map(|port| ["-p".to_owned(), port.to_string()]));
        words.extend(ssh.user.iter().flat_map(|user| ["-l".to_owned(), user.clone()]));
        // Of an option that is given twice ssh takes the first.
        let ours = [
            "BatchMode=yes".to_owned(),
            format!("ConnectTimeout={CONNECT_WAIT_S}"),
            format!("ServerAliveInterval={ALIVE_INTERVAL_S}"),
        ];
        words.extend(ssh.options.iter().cloned().chain(ours).flat_map(|option| ["-o".to_owned(), option]));
        words
    }
}

impl Ran {
    /// The last lines that say why it failed.
    pub fn reason(&self) -> String {
        last_lines(if self.err.trim().is_empty() { &self.out } else { &self.err })
    }
}

/// The line for the shell of the host.
fn remote_line(program: &str, words: &[String], reads_token: bool) -> String {
    let words: Vec<String> =
        std::iter::once(program).chain(words.iter().map(String::as_str)).map(quoted).collect();
    let command = words.join(" ");
    if reads_token {
        let variable = tharsis::join::TOKEN_VARIABLE;
        return format!("read -r {variable} && export {variable} && exec {command}");
    }
    format!("exec {command}")
}

/// A word as the shell takes it literally.
fn quoted(word: &str) -> String {
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn last_lines(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("; ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_every_word_literally() {
        let words = ["it's $HOME", "a;b", ""].map(str::to_owned);
        let line = remote_line(
            "printf",
            &["%s\n".to_owned()].into_iter().chain(words.clone()).collect::<Vec<_>>(),
            false,
        );
        let output = std::process::Command::new("sh").args(["-c", &line]).output().unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap().lines().collect::<Vec<_>>(), words);
    }

    #[test]
    fn errors_are_told_by_their_last_lines() {
        assert_eq!(last_lines("a\n\nb\nc\n d \n"), "b; c; d");
        assert_eq!(last_lines(""), "");
    }
}
