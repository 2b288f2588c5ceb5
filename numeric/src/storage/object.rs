//! Objects of stores: their URLs, the connections to their servers, and the threads on which those run.

use super::{Stored, corrupt, missing};
use futures::TryStreamExt;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path as Key;
use object_store::{
    BackoffConfig, ClientConfigKey, Error as StoreError, GetOptions, GetRange, GetResult, ObjectStore,
    RetryConfig,
};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;
use tharsis_graph::Error as GraphError;
use tokio::runtime::Runtime;

/// An object, or a folder of objects.
#[derive(Clone)]
pub(super) struct Object {
    pub(super) url: PathBuf,
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) key: Key,
}

/// A store that was opened.
#[derive(Clone)]
enum Opened {
    S3(Arc<AmazonS3>),
    Web(Arc<dyn ObjectStore>),
}

impl Object {
    pub(super) fn find(url: &Path) -> Stored<Object> {
        let (place, key) = parts(url)?;
        let store: Arc<dyn ObjectStore> = match opened(url, &place)? {
            Opened::S3(store) => store,
            Opened::Web(store) => store,
        };
        Ok(Object { url: url.to_owned(), store, key })
    }

    /// An object of a store that can be written to.
    pub(super) fn find_to_write(url: &Path) -> Stored<(Object, Arc<AmazonS3>)> {
        let (place, key) = parts(url)?;
        match opened(url, &place)? {
            Opened::S3(store) => {
                let object = Object { url: url.to_owned(), store: Arc::clone(&store) as _, key };
                match object.key.as_ref() {
                    "" => Err(object.refused("a bucket is no place for an array: name a key in it")),
                    _ => Ok((object, store)),
                }
            }
            Opened::Web(_) => Err(GraphError::NotImplemented(format!("writing to {place}"))),
        }
    }

    pub(super) async fn get(&self, range: GetRange) -> object_store::Result<GetResult> {
        self.store.get_opts(&self.key, GetOptions { range: Some(range), ..GetOptions::default() }).await
    }

    /// The bytes that a server sends, if there are not more than were asked for.
    pub(super) async fn body(&self, found: GetResult, bytes_max: u64) -> Stored<Vec<u8>> {
        let size = found.range.end - found.range.start;
        let mut bytes = Vec::with_capacity(size.min(bytes_max) as usize);
        let mut parts = found.into_stream();
        while let Some(part) = parts.try_next().await.map_err(|error| self.failed(&error))? {
            if bytes_max < (bytes.len() + part.len()) as u64 {
                return Err(corrupt(&self.url, format!("the server sends more than {bytes_max} bytes")));
            }
            bytes.extend_from_slice(&part);
        }
        Ok(bytes)
    }

    pub(super) fn failed(&self, error: &StoreError) -> GraphError {
        match error {
            StoreError::NotFound { .. } => missing(&self.url),
            error => self.refused(&short(&error.to_string())),
        }
    }

    pub(super) fn refused(&self, reason: &str) -> GraphError {
        GraphError::File { path: self.url.display().to_string(), reason: reason.to_owned() }
    }
}

/// The URL of the store and the key of an object in it.
fn parts(url: &Path) -> Stored<(String, Key)> {
    let refused = |reason: String| GraphError::File { path: url.display().to_string(), reason };
    let text = url.to_str().unwrap_or_default();
    let (scheme, rest) = text.split_once("://").ok_or_else(|| refused("this is no URL".to_owned()))?;
    let (host, key) = rest.split_once('/').unwrap_or((rest, ""));
    let key = match scheme {
        "s3" | "s3a" => Key::parse(key.trim_end_matches('/')),
        _ => Key::from_url_path(key),
    };
    Ok((format!("{scheme}://{host}/"), key.map_err(|error| refused(error.to_string()))?))
}

/// The store of a URL, opened once by this process.
fn opened(url: &Path, place: &str) -> Stored<Opened> {
    static OPENED: Mutex<Option<HashMap<String, Opened>>> = Mutex::new(None);
    let mut known = OPENED.lock().unwrap_or_else(PoisonError::into_inner);
    let known = known.get_or_insert_default();
    if let Some(opened) = known.get(place) {
        return Ok(opened.clone());
    }
    let opened = open(place, retries()?, setting(TIMEOUT)?).map_err(|error| GraphError::File {
        path: url.display().to_string(),
        reason: short(&error.to_string()),
    })?;
    known.insert(place.to_owned(), opened.clone());
    Ok(opened)
}

/// Opens a store with what the environment says: the credentials and the endpoint of S3 have the names that
/// its other clients have.
fn open(place: &str, retries: RetryConfig, timeout: Option<u64>) -> object_store::Result<Opened> {
    let timeout = timeout.map(|seconds| format!("{seconds} seconds"));
    if place.starts_with("s3") {
        let mut builder = AmazonS3Builder::from_env().with_url(place).with_retry(retries);
        if let Some(timeout) = timeout {
            builder = builder.with_config(AmazonS3ConfigKey::Client(ClientConfigKey::Timeout), timeout);
        }
        return Ok(Opened::S3(Arc::new(builder.build()?)));
    }
    let mut builder = HttpBuilder::new()
        .with_url(place)
        .with_config(ClientConfigKey::AllowHttp, "true")
        .with_retry(retries);
    if let Some(timeout) = timeout {
        builder = builder.with_config(ClientConfigKey::Timeout, timeout);
    }
    Ok(Opened::Web(Arc::new(builder.build()?)))
}

/// Attempts after the first one: a server may be busy for some seconds.
fn retries() -> Stored<RetryConfig> {
    let backoff = BackoffConfig {
        init_backoff: Duration::from_millis(100),
        max_backoff: Duration::from_secs(5),
        base: 2.0,
    };
    let max_retries = setting(RETRIES)?.unwrap_or(RETRIES_DEFAULT) as usize;
    Ok(RetryConfig { backoff, max_retries, retry_timeout: Duration::from_secs(180) })
}

/// A whole number that the environment sets.
fn setting(name: &str) -> Stored<Option<u64>> {
    match std::env::var(name) {
        Err(_) => Ok(None),
        Ok(text) => match text.parse() {
            Ok(number) => Ok(Some(number)),
            Err(_) => Err(GraphError::Value(format!("{name}: {text:?} is not a whole number"))),
        },
    }
}

/// Runs requests on threads of their own and waits for the answer. The calling thread may be one of another
/// runtime, which forbids to run them on it.
pub(super) fn wait<T: Send + 'static>(answer: impl Future<Output = Stored<T>> + Send + 'static) -> Stored<T> {
    let (give, take) = std::sync::mpsc::sync_channel(1);
    runtime()?.spawn(async move {
        // Nobody waits any more if this fails.
        let _left = give.send(answer.await);
    });
    let given_up = |_| Err(GraphError::Internal("a request to a store ended without an answer".to_owned()));
    take.recv().unwrap_or_else(given_up)
}

/// The threads of connections, which outlive the task that opened one.
fn runtime() -> Stored<&'static Runtime> {
    static RUNTIME: OnceLock<std::io::Result<Runtime>> = OnceLock::new();
    let build = || {
        tokio::runtime::Builder::new_multi_thread()
            .worker_threads(2)
            .thread_name("tharsis-storage")
            .enable_all()
            .build()
    };
    let runtime = RUNTIME.get_or_init(build);
    runtime.as_ref().map_err(|error| GraphError::Internal(format!("no threads for connections: {error}")))
}

/// A text without most of a page that a server may have sent.
fn short(text: &str) -> String {
    const SHOWN: usize = 400;
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{} ...", &text[..end]),
        None => text.to_owned(),
    }
}

/// Seconds that an answer may take; 30 by default. Frames have the same settings.
const TIMEOUT: &str = "THARSIS_STORAGE_TIMEOUT";
/// Attempts after the first one.
const RETRIES: &str = "THARSIS_STORAGE_RETRIES";
const RETRIES_DEFAULT: u64 = 6;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_have_a_store_and_a_key() {
        let of = |url: &str| parts(url.as_ref()).map(|(place, key)| (place, key.to_string()));
        assert_eq!(of("s3://b/x y/z.zarr/").unwrap(), ("s3://b/".to_owned(), "x y/z.zarr".to_owned()));
        assert_eq!(of("http://h:1/x%20y").unwrap(), ("http://h:1/".to_owned(), "x y".to_owned()));
        assert_eq!(of("s3://b/x//y").unwrap_err().class(), "OSError");
        assert_eq!(of("s3://b/../y").unwrap_err().class(), "OSError");
    }
}
