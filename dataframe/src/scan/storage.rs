//! The places that files are in: the local disk, object stores, web servers. Each process opens them by
//! itself, with what its environment says about credentials.

use crate::error::{Error, FileFault, Result};
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::execution::runtime_env::RuntimeEnv;
use object_store::aws::AmazonS3Builder;
use object_store::client::{HttpError, HttpErrorKind, SpawnedReqwestConnector};
use object_store::http::HttpBuilder;
use object_store::{BackoffConfig, ClientConfigKey, ObjectStore, RetryConfig};
use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tokio::runtime::Runtime;

/// The store of a place, which the environment knows from then on.
pub(crate) fn store(runtime: &RuntimeEnv, url: &ObjectStoreUrl) -> Result<Arc<dyn ObjectStore>> {
    if !is_remote(url.as_str())
        && let Ok(store) = runtime.object_store(url)
    {
        return Ok(store);
    }
    // The environment of the process may give other credentials now.
    let store = store_at(url.as_str())?;
    runtime.register_object_store(url.as_ref(), Arc::clone(&store));
    Ok(store)
}

/// Whether the files of a place are on the disks of machines, each of which has its own or mounts it.
pub(crate) fn is_on_disk(url: &ObjectStoreUrl) -> bool {
    url.as_str().starts_with("file")
}

/// Whether a place is not on the local disk.
fn is_remote(url: &str) -> bool {
    ["s3://", "s3a://", "http://", "https://"].iter().any(|scheme| url.starts_with(scheme))
}

/// The store of a place, opened once by this process for the same settings.
pub(crate) fn store_at(url: &str) -> Result<Arc<dyn ObjectStore>> {
    static OPENED: Mutex<Option<HashMap<String, Opened>>> = Mutex::new(None);
    let mut opened = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    opened_at(url, settings(std::env::vars_os()), opened.get_or_insert_default(), open)
}

/// The store that was opened for a place with these settings, or a new one in its place.
fn opened_at(
    url: &str,
    settings: Settings,
    known: &mut HashMap<String, Opened>,
    open: impl FnOnce(&str) -> Result<Arc<dyn ObjectStore>>,
) -> Result<Arc<dyn ObjectStore>> {
    if let Some(opened) = known.get(url).filter(|opened| opened.settings == settings) {
        return Ok(Arc::clone(&opened.store));
    }
    let store = open(url)?;
    known.insert(url.to_owned(), Opened { store: Arc::clone(&store), settings });
    Ok(store)
}

/// A store, and what the environment said when it was opened.
struct Opened {
    store: Arc<dyn ObjectStore>,
    settings: Settings,
}

/// Names and values of variables, by their names.
type Settings = BTreeMap<OsString, OsString>;

/// The variables that a store is opened by.
fn settings(variables: impl Iterator<Item = (OsString, OsString)>) -> Settings {
    let is_setting = |name: &OsString| {
        let name = name.to_string_lossy();
        name.starts_with("AWS_") || STORAGE_VARIABLES.contains(&&*name)
    };
    variables.filter(|(name, _)| is_setting(name)).collect()
}

fn open(url: &str) -> Result<Arc<dyn ObjectStore>> {
    let failed = |error| from_store(url, &error);
    let connector = SpawnedReqwestConnector::new(runtime()?.handle().clone());
    match url.split_once("://").map(|(scheme, _)| scheme) {
        Some("s3" | "s3a") => {
            let mut builder = AmazonS3Builder::from_env().with_url(url).with_retry(retries()?);
            if let Some(timeout) = setting(TIMEOUT)? {
                let timeout = format!("{timeout} seconds");
                builder = builder.with_config(
                    object_store::aws::AmazonS3ConfigKey::Client(ClientConfigKey::Timeout),
                    timeout,
                );
            }
            Ok(Arc::new(builder.with_http_connector(connector).build().map_err(failed)?))
        }
        Some("http" | "https") => {
            let mut builder = HttpBuilder::new()
                .with_url(url)
                .with_config(ClientConfigKey::AllowHttp, "true")
                .with_retry(retries()?);
            if let Some(timeout) = setting(TIMEOUT)? {
                builder = builder.with_config(ClientConfigKey::Timeout, format!("{timeout} seconds"));
            }
            Ok(Arc::new(builder.with_http_connector(connector).build().map_err(failed)?))
        }
        _ => Err(Error::file(url, FileFault::Unsupported, "there are s3://, http:// and https://")),
    }
}

/// The threads of connections. A task's own runtime ends with the task, a connection does not.
fn runtime() -> Result<&'static Runtime> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    let build = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("tharsis-storage")
            .enable_all()
            .build()
    };
    let runtime = RUNTIME.get_or_init(build);
    runtime.as_ref().map_err(|error| Error::Internal(format!("no threads for connections: {error}")))
}

/// Attempts after the first one: a server may be busy for some seconds.
fn retries() -> Result<RetryConfig> {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(5),
        base: 2.0,
    };
    let max_retries = setting(RETRIES)?.unwrap_or(RETRIES_DEFAULT) as usize;
    Ok(RetryConfig { backoff, max_retries, retry_timeout: Duration::from_secs(180) })
}

/// A whole number that the environment sets.
fn setting(name: &str) -> Result<Option<u64>> {
    match std::env::var(name) {
        Err(_) => Ok(None),
        Ok(text) => match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(Error::Value(format!("{name}: {text:?} is not a whole number"))),
        },
    }
}

/// The error for one of a store.
pub(crate) fn from_store(path: &str, error: &object_store::Error) -> Error {
    use object_store::Error as Store;
    let fault = match error {
        Store::NotFound { .. } => FileFault::Missing,
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => FileFault::Denied,
        Store::NotSupported { .. } | Store::NotImplemented { .. } => FileFault::Unsupported,
        other => cause(other).unwrap_or(FileFault::Failed),
    };
    Error::file(path, fault, short(&error.to_string()))
}

/// The kind of the failure that an error is due to.
pub(super) fn cause(error: &(dyn std::error::Error + 'static)) -> Option<FileFault> {
    let mut at = Some(error);
    while let Some(error) = at {
        if let Some(store) = error.downcast_ref::<object_store::Error>() {
            use object_store::Error as Store;
            match store {
                Store::NotFound { .. } => return Some(FileFault::Missing),
                Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => {
                    return Some(FileFault::Denied);
                }
                _ => {}
            }
        }
        if let Some(http) = error.downcast_ref::<HttpError>() {
            return Some(match http.kind() {
                HttpErrorKind::Timeout => FileFault::TimedOut,
                _ => FileFault::Unavailable,
            });
        }
        if let Some(io) = error.downcast_ref::<std::io::Error>() {
            return Some(FileFault::of_io(io));
        }
        // The kind of a failed request is private to the library; its text is not.
        let text = error.to_string();
        if text.starts_with("Server returned") {
            return Some(FileFault::Unavailable);
        }
        at = error.source();
    }
    None
}

/// A text without most of a page that a server may have sent.
fn short(text: &str) -> String {
    const SHOWN: usize = 400;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Seconds that an answer may take; 30 by default.
const TIMEOUT: &str = "THARSIS_STORAGE_TIMEOUT";
/// Attempts after the first one.
const RETRIES: &str = "THARSIS_STORAGE_RETRIES";
const RETRIES_DEFAULT: u64 = 6;
/// The environment variables that set how object stores are asked.
pub const STORAGE_VARIABLES: [&str; 2] = [TIMEOUT, RETRIES];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_is_opened_by_credentials_and_limits_alone() {
        let of = |variables: &[(&str, &str)]| {
            settings(variables.iter().map(|(name, value)| ((*name).into(), (*value).into())))
        };
        let old = of(&[("HOME", "/root"), ("AWS_SESSION_TOKEN", "old"), (TIMEOUT, "3")]);
        assert_eq!(old, of(&[(TIMEOUT, "3"), ("AWS_SESSION_TOKEN", "old"), ("PATH", "/bin")]));
        assert_ne!(old, of(&[("AWS_SESSION_TOKEN", "new"), (TIMEOUT, "3")]));
        assert_ne!(old, of(&[("AWS_SESSION_TOKEN", "old")]));
    }

    #[test]
    fn a_store_is_opened_again_for_other_credentials() {
        let mut known = HashMap::new();
        let mut store = |token: &str| {
            let settings = settings([("AWS_SESSION_TOKEN".into(), token.into())].into_iter());
            let open = |_: &str| Ok(Arc::new(object_store::memory::InMemory::new()) as Arc<dyn ObjectStore>);
            opened_at("s3://b", settings, &mut known, open).unwrap()
        };
        let (old, same, new, back) = (store("old"), store("old"), store("new"), store("old"));
        assert!(Arc::ptr_eq(&old, &same));
        assert!(!Arc::ptr_eq(&old, &new) && !Arc::ptr_eq(&new, &back));
    }

    #[test]
    fn places_on_the_disk_are_not_remote() {
        assert!(is_remote("s3://bucket/") && is_remote("https://host/"));
        assert!(!is_remote("file:///"));
    }
}
