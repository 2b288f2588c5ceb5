//! Queries of a node's state, and the request to stop.

use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use tharsis_object_store::local_socket::{check_peer, connect, recv_frame, send_frame};
use tharsis_protos::handshake::{
    Answer, HELLO_BYTES_MAX, HELLO_MAGIC, Hello, PROTOCOL_VERSION, Question, Role, Subject,
};
use tharsis_protos::inventory::Inventory;
use tharsis_protos::listing::{Listing, Table};
use tharsis_protos::logs::{LogLine, LogQuery};
use tharsis_protos::report::{DrainRow, Report, Story};
use tharsis_protos::runs::{RunBatch, RunQuery};
use tharsis_remote::{Error, FailureKind, Result};

/// The longest time that a node may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(5);

/// Asks the node that listens at `socket`.
///
/// # Errors
/// `Disconnected` if no node answers there, else the refusal of the node.
pub fn ask(socket: &Path, question: Question) -> Result<Report> {
    match answer(socket, question)? {
        Answer::Report(report) => Ok(*report),
        other => Err(unasked(other)),
    }
}

/// Asks the node that listens at `socket` for the contents of its store and the references to them.
///
/// # Errors
/// As [`ask`].
pub fn memory(socket: &Path) -> Result<Inventory> {
    match answer(socket, Question::Memory)? {
        Answer::Inventory(inventory) => Ok(*inventory),
        other => Err(unasked(other)),
    }
}

/// Asks the node that listens at `socket` for the reason why a task or an object waits, and its history.
///
/// # Errors
/// As [`ask`].
pub fn why(socket: &Path, subject: Subject) -> Result<Story> {
    match answer(socket, Question::Why(subject))? {
        Answer::Story(story) => Ok(*story),
        other => Err(unasked(other)),
    }
}

/// Asks the node that listens at `socket` for a list of its tasks, placement groups, workers or jobs.
///
/// # Errors
/// As [`ask`]; `InvalidArgument` for a filter of a column that does not exist.
pub fn list(socket: &Path, listing: Listing) -> Result<Table> {
    match answer(socket, Question::List(listing))? {
        Answer::Table(table) => Ok(*table),
        other => Err(unasked(other)),
    }
}

/// Has the node that listens at `socket` leave without loss `within` a time, and tells `told` how far that
/// is. Answers what was known last: the node has left.
///
/// # Errors
/// `Disconnected` if no node answers there, `InUse` if it drains already.
pub fn drain(socket: &Path, within: Duration, mut told: impl FnMut(&DrainRow)) -> Result<DrainRow> {
    let within_ms = u64::try_from(within.as_millis()).unwrap_or(u64::MAX);
    let (stream, mut answer) = converse(socket, Question::Drain { within_ms })?;
    loop {
        let row = match answer {
            Answer::Draining(row) => *row,
            other => return Err(unasked(other)),
        };
        told(&row);
        // The node may end before its last report is read.
        let Ok((frame, _)) = recv_frame(&stream, HELLO_BYTES_MAX) else { return Ok(row) };
        let corrupt = |cause| Error::new(FailureKind::DataCorrupt, format!("answer of the node: {cause}"));
        answer = postcard::from_bytes(&frame).map_err(corrupt)?;
    }
}

/// Asks the node that listens at `socket` for the output of its workers, batch after batch, until all that
/// was asked for has come or `take` wants no more. A batch may be empty.
///
/// # Errors
/// `Disconnected` if no node answers there, or if it ends.
pub fn logs(socket: &Path, query: LogQuery, mut take: impl FnMut(Vec<LogLine>) -> bool) -> Result<()> {
    let (stream, mut answer) = converse(socket, Question::Logs(query))?;
    loop {
        let lines = match answer {
            Answer::Lines(lines) => lines,
            Answer::LinesEnd => return Ok(()),
            other => return Err(unasked(other)),
        };
        if !take(lines) {
            return Ok(());
        }
        answer = next(&stream)?;
    }
}

/// Asks the node that listens at `socket` for the runs that it remembers, batch after batch, until all have
/// come or `take` wants no more.
///
/// # Errors
/// `Disconnected` if no node answers there, or if it ends.
pub fn runs(socket: &Path, query: RunQuery, mut take: impl FnMut(RunBatch) -> bool) -> Result<()> {
    let (stream, mut answer) = converse(socket, Question::Runs(query))?;
    loop {
        let batch = match answer {
            Answer::Runs(batch) => batch,
            other => return Err(unasked(other)),
        };
        let is_last = batch.is_last;
        if !take(batch) || is_last {
            return Ok(());
        }
        answer = next(&stream)?;
    }
}

/// The next answer to a question that has several.
fn next(stream: &UnixStream) -> Result<Answer> {
    let ended = |cause| Error::new(FailureKind::Disconnected, format!("the node ended: {cause}"));
    let (frame, _) = recv_frame(stream, HELLO_BYTES_MAX).map_err(ended)?;
    let corrupt = |cause| Error::new(FailureKind::DataCorrupt, format!("answer of the node: {cause}"));
    postcard::from_bytes(&frame).map_err(corrupt)
}

/// Error for an unexpected answer: the refusal of a node, or an answer that does not fit the question.
fn unasked(answer: Answer) -> Error {
    match answer {
        Answer::Refused(failure) => failure.into(),
        _ => Error::new(FailureKind::Internal, "the node answered something else"),
    }
}

fn answer(socket: &Path, question: Question) -> Result<Answer> {
    converse(socket, question).map(|(_, answer)| answer)
}

/// Asks a question; answers with the connection, on which more may come, and the first answer.
fn converse(socket: &Path, question: Question) -> Result<(UnixStream, Answer)> {
    let unreachable = |cause: &dyn std::fmt::Display| {
        let text = format!("no node answers at {}: {cause}", socket.display());
        Error::new(FailureKind::Disconnected, text)
    };
    let stream = connect(socket, ANSWER_WAIT).map_err(|cause| unreachable(&cause))?;
    check_peer(&stream).map_err(|cause| unreachable(&cause))?;
    stream.set_read_timeout(Some(ANSWER_WAIT)).map_err(|cause| unreachable(&cause))?;
    let hello = Hello {
        magic: HELLO_MAGIC,
        version: PROTOCOL_VERSION,
        pid: std::process::id(),
        role: Role::Observer(question),
        functions: Vec::new(),
    };
    let hello = postcard::to_stdvec(&hello).map_err(|cause| unreachable(&cause))?;
    send_frame(&stream, &hello, HELLO_BYTES_MAX, None).map_err(|cause| unreachable(&cause))?;
    let (answer, _descriptor) = recv_frame(&stream, HELLO_BYTES_MAX).map_err(|cause| unreachable(&cause))?;
    let answer = postcard::from_bytes(&answer).map_err(|cause| unreachable(&cause))?;
    Ok((stream, answer))
}
