//! Programs over frames as data: one JSON object as request, one as reply.
//!
//! A request names inputs (files, or values in the request), steps (each an operation under its pandas name
//! with arguments) and the values wanted. Operations are rows of the tables in [`registry`]; the reply for
//! others is `NotImplemented`, with the name most like it. A failing program never ends its reader.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod args;
mod axes;
mod choose;
mod context;
mod elementwise;
mod files;
mod frames;
mod group_more;
mod groups;
mod index_steps;
mod indices;
mod input;
mod joins;
mod matrices;
mod more;
mod places;
mod program;
pub mod registry;
mod reply;
mod row;
mod rows;
mod series;
mod sources;
mod spans;
mod steps;
mod summaries;
mod texts;
mod times;
mod value;
mod whole;
mod windows;

pub use context::{Here, PlaceRequest, Places};
pub use reply::INLINE_ROWS_MAX;

use serde_json::{Value as Json, json};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use tharsis_dataframe::Error;
use tharsis_programs::Refusal;

/// Reason why a request fails: the exception a pandas user would see, and a message.
#[derive(Clone, Debug)]
pub struct Failure {
    /// The name of the exception's class.
    pub class: String,
    /// The text of the exception.
    pub message: String,
}

impl Failure {
    /// A failure of a class with a message.
    pub fn new(class: &str, message: impl Into<String>) -> Failure {
        Failure { class: class.to_owned(), message: message.into() }
    }

    fn value(message: impl Into<String>) -> Failure {
        Failure::new("ValueError", message)
    }

    fn kind(message: impl Into<String>) -> Failure {
        Failure::new("TypeError", message)
    }

    fn missing(message: impl Into<String>) -> Failure {
        Failure::new("NotImplemented", message)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Failure {
        Failure::new(refusal.class, refusal.message)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::new(error.class(), error.root().to_string())
    }
}

/// Whether there is an operation of this name.
///
/// ```
/// use tharsis_frame_programs::knows;
/// assert!(knows("pd.DataFrame.merge") && !knows("np.linalg.svd"));
/// ```
#[must_use]
pub fn knows(operation: &str) -> bool {
    registry::find(operation).is_some()
}

/// Whether a request is about frames: a step has a pandas name or is SQL, or an input is a table.
///
/// ```
/// use serde_json::json;
/// use tharsis_frame_programs::is_about_frames;
/// assert!(is_about_frames(&json!({"in": {"t": {"csv": "t.csv"}}})));
/// assert!(!is_about_frames(&json!({"prog": [["x", "np.arange", [3]]]})));
/// ```
#[must_use]
pub fn is_about_frames(request: &Json) -> bool {
    let names = request.get("prog").and_then(Json::as_array).into_iter().flatten();
    let mut names = names.filter_map(|step| step.get(1).and_then(Json::as_str));
    let mut inputs =
        request.get("in").and_then(Json::as_object).into_iter().flat_map(|inputs| inputs.values());
    names.any(|name| name.starts_with("pd.") || name == "sql") || inputs.any(input::is_table)
}

/// The reply to one request. File names in it are relative to `folder`; `places` has the executors for
/// requests that ask for workers. `left_tasks` is the number of tasks of this process that still run although
/// the time of their requests is over, if there are some.
///
/// ```
/// use serde_json::json;
/// use tharsis_frame_programs::{Here, run};
/// let request = json!({
///     "in": {"t": {"lit": {"k": ["a", "b", "a"], "v": [1, 2, 4]}}},
///     "prog": [["g", "pd.DataFrame.groupby", [{"$": "t"}, "k"]], ["r", "pd.GroupBy.sum", [{"$": "g"}]]],
///     "out": ["r"]
/// });
/// let reply = run(&request, ".".as_ref(), &Here);
/// assert_eq!(reply["out"]["r"]["tbl"]["lit"], json!([["a", "b"], [5, 2]]));
/// ```
pub fn run(request: &Json, folder: &Path, places: &dyn Places) -> Json {
    let id = request.get("id").cloned().unwrap_or(Json::Null);
    // A defect in one program must not take its reader down with it.
    let outcome = catch_unwind(AssertUnwindSafe(|| program::evaluate(request, folder, places)));
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
    let left = tharsis_dataframe::tasks_left_behind();
    if 0 < left {
        reply["left_tasks"] = json!(left);
    }
    reply
}

/// Writes one line per operation: name, signature and description.
///
/// ```
/// let mut lines = Vec::new();
/// tharsis_frame_programs::list(&mut lines).expect("memory takes it");
/// assert!(String::from_utf8_lossy(&lines).contains("pd.DataFrame.groupby"));
/// ```
///
/// # Errors
/// Those of the stream.
pub fn list(mut replies: impl std::io::Write) -> std::io::Result<()> {
    for operation in registry::all() {
        let line = json!({"name": operation.name, "signature": operation.signature, "doc": operation.doc});
        serde_json::to_writer(&mut replies, &line)?;
        replies.write_all(b"\n")?;
    }
    Ok(())
}
