//! The plans that this process has compiled, by the objects that hold them.

use super::fault::Fault;
use super::mapping;
use std::sync::{Arc, Mutex, PoisonError};
use tharsis_graph::{Foreign, ForeignName, Plan, Runnable};
use tharsis_remote::{Blob, RefId};

/// The plans used last, the latest at the end. A worker serves one or two programs at a time.
static KNOWN: Mutex<Vec<(RefId, Arc<Runnable>)>> = Mutex::new(Vec::new());
const KNOWN_MAX: usize = 8;

/// The compiled plan of an object; its bytes are read only the first time.
pub(super) fn find_or_compile(object: RefId, bytes: &Blob) -> Result<Arc<Runnable>, Fault> {
    if let Some(known) = find(object) {
        return Ok(known);
    }
    let plan: Plan = postcard::from_bytes(bytes)
        .map_err(|error| Fault::Corrupt { what: "a plan".to_owned(), reason: error.to_string() })?;
    let foreign = plan.foreign.iter().map(|name| find_foreign(name.as_ref())).collect::<Result<_, _>>()?;
    let runnable = Arc::new(Runnable::new(Arc::new(plan), foreign)?);
    remember(object, runnable.clone());
    Ok(runnable)
}

/// The function that a plan names.
fn find_foreign(name: Option<&ForeignName>) -> Result<Arc<dyn Foreign>, Fault> {
    let name = name.ok_or_else(|| Fault::Internal("a closure has no name".to_owned()))?;
    let found = match name.kind.as_str() {
        mapping::KIND => mapping::find(&name.name),
        _ => tharsis_numeric::foreign::find_foreign(name),
    };
    #[cfg(feature = "learn")]
    let found = found.or_else(|| tharsis_learn::foreign::find_foreign(name));
    // A name may carry a model: megabytes.
    let unknown = || format!("this program has no function of the kind {:?} with this name", name.kind);
    found.ok_or_else(|| Fault::Internal(unknown()))
}

/// Keeps a compiled plan.
pub(super) fn remember(object: RefId, runnable: Arc<Runnable>) {
    let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.retain(|(of, _)| *of != object);
    if known.len() == KNOWN_MAX {
        known.remove(0);
    }
    known.push((object, runnable));
}

/// Drops a compiled plan that is not needed any more.
pub(super) fn forget(object: RefId) {
    KNOWN.lock().unwrap_or_else(PoisonError::into_inner).retain(|(of, _)| *of != object);
}

fn find(object: RefId) -> Option<Arc<Runnable>> {
    let known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
    known.iter().rev().find(|(of, _)| *of == object).map(|(_, runnable)| runnable.clone())
}
