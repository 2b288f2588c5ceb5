//! Programs as data: one JSON object per line as request, one per line as reply, in the same order.
//!
//! A request names inputs, steps (each an operation under its NumPy name with arguments) and the values
//! wanted. Operations are found in the [`registry`], or in tables of other crates that the caller hands in;
//! the reply for others is `NotImplemented`. A failing program never ends the evaluator.

mod args;
mod arranged;
mod borders;
mod bounds;
mod composed;
mod context;
mod contractions;
mod coordinates;
mod creation;
mod distributions;
mod draws;
mod dtypes;
mod fourier;
mod further;
mod histograms;
mod indexing;
mod matrices;
pub mod names;
mod object;
mod places;
mod program;
mod reductions;
pub mod registry;
mod reply;
mod row;
mod selections;
mod sets;
mod sparse;
mod statistics;
mod value;

pub use further::{Scope, Tables};
pub use object::Object;
pub use places::{Here, PlaceRequest, Places};
pub use reply::INLINE_BYTES_MAX;
pub use value::Value;

use crate::error::Error;
use crate::errstate::{ErrState, Reaction, errstate};
use serde_json::{Value as Json, json};
use std::io::{BufRead, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use tharsis_graph::Error as GraphError;
use tharsis_programs::{Made, Param};

/// The longest request that is read, in bytes of its line.
pub const LINE_BYTES_MAX: u64 = 256 << 20;

/// The way out for a document of several lines.
const ONE_LINE: &str = "a request is one line (jq -c . makes one of a document), but for files of a folder";

/// Why a request fails: the exception a NumPy user would see, and a message.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Failure {
    pub class: String,
    pub message: String,
}

impl Failure {
    fn new(class: &str, message: impl Into<String>) -> Failure {
        Failure { class: class.to_owned(), message: message.into() }
    }

    /// A value for which NumPy raises `ValueError`.
    ///
    /// ```
    /// use tharsis_numeric::protocol::Failure;
    /// assert_eq!(Failure::value("no").class, "ValueError");
    /// ```
    pub fn value(message: impl Into<String>) -> Failure {
        Failure::new("ValueError", message)
    }

    /// A type for which NumPy raises `TypeError`.
    ///
    /// ```
    /// use tharsis_numeric::protocol::Failure;
    /// assert_eq!(Failure::kind("no").class, "TypeError");
    /// ```
    pub fn kind(message: impl Into<String>) -> Failure {
        Failure::new("TypeError", message)
    }

    /// Features that do not exist yet.
    ///
    /// ```
    /// use tharsis_numeric::protocol::Failure;
    /// assert_eq!(Failure::missing("no").class, "NotImplemented");
    /// ```
    pub fn missing(message: impl Into<String>) -> Failure {
        Failure::new("NotImplemented", message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(error.class(), error.cause().to_string())
    }
}

impl From<GraphError> for Failure {
    fn from(error: GraphError) -> Failure {
        Failure::new(error.class(), error.to_string())
    }
}

/// Answers requests until the stream ends. File names in requests are relative to `folder`; `places` has the
/// executors for requests that ask for workers.
///
/// ```
/// use tharsis_numeric::protocol::{Here, eval};
/// let request = br#"{"prog": [["y", "np.arange", [2]]], "out": ["y"]}"#;
/// let mut reply = Vec::new();
/// eval(&request[..], &mut reply, ".".as_ref(), &Here).expect("memory takes it");
/// assert!(String::from_utf8_lossy(&reply).contains("[0,1]"));
/// ```
///
/// # Errors
/// Only those of the streams themselves.
pub fn eval(
    requests: impl BufRead,
    replies: impl Write,
    folder: &Path,
    places: &dyn Places,
) -> std::io::Result<()> {
    eval_by(requests, replies, |request| answer_on(request, folder, places, &[]))
}

/// Answers requests until the stream ends, by a function that gives the reply to one.
///
/// ```
/// use serde_json::json;
/// use tharsis_numeric::protocol::eval_by;
/// let mut reply = Vec::new();
/// eval_by(&b"{\"id\": 7}"[..], &mut reply, |request| json!({"of": request["id"]}))
///     .expect("memory takes it");
/// assert_eq!(String::from_utf8_lossy(&reply).trim_end(), r#"{"of":7}"#);
/// ```
///
/// # Errors
/// Only those of the streams themselves.
pub fn eval_by(
    mut requests: impl BufRead,
    mut replies: impl Write,
    mut answer: impl FnMut(&Json) -> Json,
) -> std::io::Result<()> {
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = requests.by_ref().take(LINE_BYTES_MAX).read_until(b'\n', &mut line)? as u64;
        if read == 0 {
            return Ok(());
        }
        let reply = if read == LINE_BYTES_MAX && line.last() != Some(&b'\n') {
            requests.skip_until(b'\n')?;
            refused(format!("a request of more than {LINE_BYTES_MAX} bytes"))
        } else if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        } else {
            match serde_json::from_slice::<Json>(&line) {
                Ok(request) => answer(&request),
                Err(error) if error.is_eof() => refused(format!("{error}; {ONE_LINE}")),
                Err(error) => refused(error),
            }
        };
        write_line(&mut replies, &reply)?;
    }
}

/// Answers the requests of a text, which may span lines. Nothing is read after a request that is not JSON.
///
/// ```
/// use tharsis_numeric::protocol::{Here, eval_text};
/// let request = b"{\"prog\": [[\"y\", \"np.arange\", [2]]],\n \"out\": [\"y\"]}";
/// let mut reply = Vec::new();
/// eval_text(request, &mut reply, ".".as_ref(), &Here).expect("memory takes it");
/// assert!(String::from_utf8_lossy(&reply).contains("[0,1]"));
/// ```
///
/// # Errors
/// Only those of the stream of replies.
pub fn eval_text(
    text: &[u8],
    replies: impl Write,
    folder: &Path,
    places: &dyn Places,
) -> std::io::Result<()> {
    eval_text_by(text, replies, |request| answer_on(request, folder, places, &[]))
}

/// Answers the requests of a text as [`eval_text`] does, by a function that gives the reply to one.
///
/// ```
/// use serde_json::json;
/// use tharsis_numeric::protocol::eval_text_by;
/// let mut reply = Vec::new();
/// eval_text_by(b"{\"id\":\n 7}", &mut reply, |request| json!({"of": request["id"]}))
///     .expect("memory takes it");
/// assert_eq!(String::from_utf8_lossy(&reply).trim_end(), r#"{"of":7}"#);
/// ```
///
/// # Errors
/// Only those of the stream of replies.
pub fn eval_text_by(
    text: &[u8],
    mut replies: impl Write,
    mut answer: impl FnMut(&Json) -> Json,
) -> std::io::Result<()> {
    for request in serde_json::Deserializer::from_slice(text).into_iter::<Json>() {
        let reply = match request {
            Ok(request) => answer(&request),
            Err(error) => refused(error),
        };
        write_line(&mut replies, &reply)?;
    }
    Ok(())
}

/// The reply to malformed input.
fn refused(why: impl ToString) -> Json {
    json!({"id": null, "ok": false, "err": {"class": "ValueError", "msg": why.to_string()}})
}

fn write_line(replies: &mut impl Write, reply: &Json) -> std::io::Result<()> {
    serde_json::to_writer(&mut *replies, reply)?;
    replies.write_all(b"\n")?;
    replies.flush()
}

/// Writes one line per operation: name, signature and description.
///
/// ```
/// let mut lines = Vec::new();
/// tharsis_numeric::protocol::list(&mut lines).expect("memory takes it");
/// assert!(String::from_utf8_lossy(&lines).contains("np.cumsum"));
/// ```
///
/// # Errors
/// Those of the stream.
pub fn list(mut replies: impl Write) -> std::io::Result<()> {
    for operation in registry::all() {
        let also = operation.alias_of.map(|target| format!("; another name of {target}"));
        let doc = format!("{}{}", operation.doc, also.unwrap_or_default());
        let line = json!({"name": operation.name, "signature": operation.signature, "doc": doc});
        serde_json::to_writer(&mut replies, &line)?;
        replies.write_all(b"\n")?;
    }
    Ok(())
}

/// Writes one line per operation of other crates: name, signature, description, and of each parameter the
/// kind and, where it has one, the default. Parameters that are fixed at their defaults say so.
///
/// ```
/// let mut lines = Vec::new();
/// tharsis_numeric::protocol::list_further(&mut lines, &[]).expect("memory takes it");
/// assert!(lines.is_empty());
/// ```
///
/// # Errors
/// Those of the stream.
pub fn list_further(mut replies: impl Write, further: Tables) -> std::io::Result<()> {
    for row in further.iter().copied().flatten() {
        let params: Vec<Json> = row.params.iter().map(param_line).collect();
        let signature = row.signature();
        let line = json!({"name": row.name, "signature": signature, "doc": row.doc, "params": params});
        serde_json::to_writer(&mut replies, &line)?;
        replies.write_all(b"\n")?;
    }
    Ok(())
}

fn param_line(param: &Param) -> Json {
    let mut line = json!({"name": param.name, "kind": param.kind.to_string()});
    if let Some(default) = param.default.look() {
        line["default"] = json!(default.to_string());
    }
    match param.made {
        Made::All => {}
        Made::Default => line["fixed"] = json!(true),
        Made::Only(kind) => line["only"] = json!(kind.to_string()),
    }
    line
}

/// The reply to one request, which runs on threads of this process.
///
/// ```
/// use serde_json::json;
/// use tharsis_numeric::protocol::answer;
/// let step = json!(["y", "np.square", [{"$": "x"}]]);
/// let request = json!({"in": {"x": {"lit": [1, 2]}}, "prog": [step], "out": ["y"]});
/// let reply = answer(&request, ".".as_ref());
/// assert_eq!(reply["out"]["y"]["arr"]["lit"], json!([1, 4]));
/// ```
pub fn answer(request: &Json, folder: &Path) -> Json {
    answer_on(request, folder, &Here, &[])
}

/// The reply to one request; `places` has the executors for requests that ask for workers, `further`
/// operations beside those of tensors. `left_tasks` is the number of tasks of this process that still run
/// although the time of their requests is over, if there are some.
///
/// ```
/// use serde_json::json;
/// use tharsis_numeric::protocol::{Here, answer_on};
/// let request = json!({"prog": [["y", "np.arange", [2]]], "out": ["y"]});
/// assert_eq!(answer_on(&request, ".".as_ref(), &Here, &[])["ok"], true);
/// ```
pub fn answer_on(request: &Json, folder: &Path, places: &dyn Places, further: Tables) -> Json {
    let id = request.get("id").cloned().unwrap_or(Json::Null);
    // Warnings go into the reply instead.
    let _warnings = errstate(ErrState::all(Reaction::Ignore));
    // A defect in one program must not take the evaluator down with it.
    let outcome = catch_unwind(AssertUnwindSafe(|| program::evaluate(request, folder, places, further)));
    let crash = |_| Err((Failure::new("Crash", "the evaluator panicked; this is a defect"), None));
    let mut reply = match outcome.unwrap_or_else(crash) {
        Ok(mut reply) => {
            reply.insert("id".to_owned(), id);
            reply.insert("ok".to_owned(), Json::Bool(true));
            Json::Object(reply)
        }
        Err((failure, step)) => {
            let mut err = json!({"class": failure.class, "msg": failure.message});
            if let Some((index, operation)) = step {
                err["step"] = json!(index);
                err["op"] = json!(operation);
            }
            json!({"id": id, "ok": false, "err": err})
        }
    };
    // They take a thread each, and memory, from this request and all that follow.
    let left = tharsis_graph::tasks_left_behind();
    if 0 < left {
        reply["left_tasks"] = json!(left);
    }
    reply
}

#[cfg(test)]
mod tests;
