//! One request: its inputs, its steps, its results.

use super::args::{Args, Names};
use super::context::{Context, object};
use super::value::{self, Value};
use super::{Failure, Places, input, registry, reply};
use serde_json::{Map, Value as Json, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use tharsis_dataframe::for_programs::bind;
use tharsis_programs::{check_keys, check_known};

/// The step that failed, and its operation; `None` if the request itself failed.
pub(super) type Step = Option<(usize, String)>;

/// The reply to a request, without its id.
pub(super) fn evaluate(
    request: &Json,
    folder: &Path,
    places: &dyn Places,
) -> Result<Map<String, Json>, (Failure, Step)> {
    let started = Instant::now();
    let outside = |failure: Failure| (failure, None);
    let (context, mut names) = prepare(request, folder, places).map_err(outside)?;
    // Steps that need rows at once, as the labels of a pivot, run where the request says, too.
    let _bound = bind(Arc::clone(&context.executor));
    for (index, step) in list(request, "prog").map_err(outside)?.iter().enumerate() {
        let operation = step.get(1).and_then(Json::as_str).unwrap_or("").to_owned();
        let made = run_step(step, &operation, &names, &context);
        let (name, made) = made.map_err(|failure| (failure, Some((index, operation))))?;
        names.insert(name, made);
    }
    finish(request, &names, &context, started).map_err(outside)
}

fn prepare(request: &Json, folder: &Path, places: &dyn Places) -> Result<(Context, Names), Failure> {
    let Some(keys) = request.as_object() else {
        return Err(Failure::value(format!("expected a request, found {request}")));
    };
    check_keys(keys.keys().map(String::as_str))?;
    if request.get("v").is_some_and(|v| v != 1) {
        return Err(Failure::value("only version 1 is understood"));
    }
    let context = Context::of(request, folder, places)?;
    let mut names = Names::new();
    for (name, given) in object(request, "in")?.as_object().into_iter().flatten() {
        let what = format!("the input {name:?}");
        for given in [Some(given), given.get("tbl")] {
            let keys = given.and_then(Json::as_object).into_iter().flat_map(|given| given.keys());
            check_known(&what, keys.map(String::as_str), &input::KEYS)?;
        }
        names.insert(name.clone(), Value::Frame(input::input(given, &context)?));
    }
    Ok((context, names))
}

/// The list under a key, or an empty one.
fn list<'a>(request: &'a Json, key: &str) -> Result<&'a [Json], Failure> {
    match request.get(key) {
        None | Some(Json::Null) => Ok(&[]),
        Some(Json::Array(found)) => Ok(found),
        Some(other) => Err(Failure::value(format!("{key}: expected a list, found {other}"))),
    }
}

fn run_step(
    step: &Json,
    operation: &str,
    names: &Names,
    context: &Context,
) -> Result<(String, Value), Failure> {
    let (name, positional, keywords) = match step.as_array().map(Vec::as_slice) {
        Some([Json::String(name), Json::String(_), Json::Array(positional), Json::Object(keywords)]) => {
            (name, positional.as_slice(), Some(keywords))
        }
        Some([Json::String(name), Json::String(_), Json::Array(positional)]) => {
            (name, positional.as_slice(), None)
        }
        Some([Json::String(name), Json::String(_)]) => (name, &[][..], None),
        _ => return Err(Failure::value(format!("a step is [name, operation, [..], {{..}}], found {step}"))),
    };
    context.check_time()?;
    let found = registry::find(operation).ok_or_else(|| registry::unknown(operation))?;
    let positional = positional.iter().map(|arg| value::decode(arg, names)).collect::<Result<Vec<_>, _>>()?;
    let keywords = keywords.into_iter().flatten();
    let keywords = keywords.map(|(name, arg)| Ok((name.clone(), value::decode(arg, names)?)));
    let mut args = Args::new(positional, keywords.collect::<Result<_, Failure>>()?, context);
    let bare = found.name.rsplit('.').next().unwrap_or(found.name);
    let made = (found.run)(bare, &mut args)?;
    args.finish(found.name, found.signature)?;
    checked(&made)?;
    let made = match made {
        Value::Frame(frame) if context.eager => Value::Frame(frame.execute_on(&*context.executor)?),
        made => made,
    };
    Ok((name.clone(), made))
}

/// The first error on the way to a value.
fn checked(made: &Value) -> Result<(), Failure> {
    match made {
        Value::Frame(frame) => frame.check()?,
        Value::Series(series) => series.check()?,
        _ => {}
    }
    Ok(())
}

fn finish(
    request: &Json,
    names: &Names,
    context: &Context,
    started: Instant,
) -> Result<Map<String, Json>, Failure> {
    let mut encoder = reply::Encoder::new(context);
    let mut out = Map::new();
    for name in list(request, "out")? {
        let name =
            name.as_str().ok_or_else(|| Failure::value(format!("out: expected text, found {name}")))?;
        let found = names.get(name);
        let found = found.ok_or_else(|| Failure::new("KeyError", format!("no value named {name:?}")))?;
        context.check_time()?;
        out.insert(name.to_owned(), encoder.encode(name, found)?);
    }
    let mut reply = Map::new();
    if context.plan {
        reply.insert("plan".to_owned(), json!({"tasks": encoder.tasks, "stages": encoder.stages}));
    }
    if context.values {
        reply.insert("out".to_owned(), Json::Object(out));
    }
    if context.metrics {
        let wall_us = started.elapsed().as_micros() as u64;
        let metrics = json!({"wall_us": wall_us, "peak_bytes": encoder.bytes, "spilled": 0, "retries": encoder.retries});
        reply.insert("metrics".to_owned(), metrics);
    }
    Ok(reply)
}
