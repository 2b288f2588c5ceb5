//! Objects in stores that speak S3, and files of web servers, which are only read.
//!
//! A store has no folders and renames nothing, but an object is there whole or not at all. So a folder is
//! written where it will be: it must have no object before, and the object by which readers know it comes
//! last. Until then there is an object in it that says who writes it, which only one of several can make:
//! nobody else writes there, so that who fails may remove what has the names of its own objects, and does so
//! only while that object is its own. It stays where tasks may still write: they would write into the array
//! of who comes next.

use super::object::{Object, wait};
use super::{Begun, Border, Parts, Storage, Stored, Stretch, Unfinished};
use super::{shortened, too_long, unique, upload};
use futures::future::try_join_all;
use futures::{StreamExt, TryStreamExt};
use object_store::path::Path as Key;
use object_store::{Error as StoreError, GetRange, ObjectStore, ObjectStoreExt, PutMode};
use std::ops::Range;
use std::path::{Path, PathBuf};
use tharsis_graph::Error as GraphError;

/// All stores and web servers.
pub(super) struct Remote;

impl Storage for Remote {
    fn read(&self, path: &Path, bytes_max: u64) -> Stored<Option<Vec<u8>>> {
        wait(whole(Object::find(path)?, bytes_max))
    }

    fn read_several(&self, paths: &[PathBuf], bytes_max: u64) -> Stored<Vec<Option<Vec<u8>>>> {
        let objects = paths.iter().map(|path| Object::find(path)).collect::<Stored<Vec<_>>>()?;
        wait(try_join_all(objects.into_iter().map(move |object| whole(object, bytes_max))))
    }

    fn read_border(&self, path: &Path, border: Border, bytes: u64) -> Stored<Option<(Vec<u8>, u64)>> {
        let object = Object::find(path)?;
        let range = match border {
            Border::First => GetRange::Bounded(0..bytes),
            Border::Last => GetRange::Suffix(bytes),
        };
        wait(async move {
            match object.get(range).await {
                Ok(found) => {
                    let size = found.meta.size;
                    Ok(Some((object.body(found, bytes).await?, size)))
                }
                Err(StoreError::NotFound { .. }) => Ok(None),
                // An object without bytes has no range of them.
                Err(error) => match object.store.head(&object.key).await {
                    Ok(meta) if meta.size == 0 => Ok(Some((Vec::new(), 0))),
                    _ => Err(object.failed(&error)),
                },
            }
        })
    }

    fn read_stretches(&self, path: &Path, stretches: &[Stretch], to: &mut [u8]) -> Stored<()> {
        let object = Object::find(path)?;
        let requests = requests(stretches);
        let mut rest = requests.as_slice();
        while !rest.is_empty() {
            let (batch, later) = rest.split_at(at_once(rest));
            let answers = batch.iter().map(|request| fetch(object.clone(), request.range.clone()));
            let found = wait(try_join_all(answers.collect::<Vec<_>>()))?;
            for (request, found) in batch.iter().zip(found) {
                for (at, range) in &request.stretches {
                    let at = (at - request.range.start) as usize;
                    to[range.clone()].copy_from_slice(&found[at..at + range.len()]);
                }
            }
            rest = later;
        }
        Ok(())
    }

    fn write(&self, path: &Path, bytes: Vec<u8>) -> Stored<()> {
        let object = Object::find_to_write(path)?.0;
        wait(async move {
            let put = object.store.put(&object.key, bytes.into()).await;
            put.map(drop).map_err(|error| object.failed(&error))
        })
    }

    fn begin_file(&self, path: &Path, _: &[u8], bytes: u64) -> Stored<Unfinished> {
        upload::begin(path, bytes)
    }

    fn write_stretches(&self, path: &Path, _: &[Stretch], _: &[u8]) -> Stored<()> {
        Err(GraphError::Internal(format!("{} is in a store, which takes parts only", path.display())))
    }

    fn write_part(&self, path: &Path, parts: &Parts, number: usize, bytes: Vec<u8>) -> Stored<()> {
        upload::write(path, parts, number, bytes)
    }

    fn finish_file(&self, begun: &Unfinished, _: &Path) -> Stored<()> {
        match &begun.parts {
            None => Ok(()),
            Some(parts) => upload::finish(&begun.path, parts),
        }
    }

    fn abandon_file(&self, begun: &Unfinished) {
        if let Some(parts) = &begun.parts {
            upload::abandon(&begun.path, parts);
        }
    }

    fn begin_folder(&self, path: &Path) -> Stored<Begun> {
        let object = Object::find_to_write(path)?.0;
        let folder = object.url.clone();
        let claim = unique().map_err(|error| object.refused(&format!("no random name: {error}")))?;
        let begun = Begun { folder, claim: claim.clone() };
        wait(async move {
            let marker = object.key.clone().join(CLAIM);
            if !create(&object, &marker, claim.clone().into_bytes()).await? {
                let reason = "another program writes it, or was stopped while it did: remove the folder then";
                return Err(object.refused(reason));
            }
            // Behind the claim, so that nothing of one who finished before it is overlooked.
            match first_other(&object, &marker).await {
                Ok(None) => Ok(begun),
                found => {
                    // It is our own, and would keep others away.
                    let _left = object.store.delete(&marker).await;
                    let first = found?.unwrap_or_default();
                    Err(object.refused(&format!("there are objects already, as {first}")))
                }
            }
        })
    }

    fn finish_folder(&self, begun: &Begun, _: &Path, last: &str, bytes: Vec<u8>) -> Stored<()> {
        let (object, claim) = (Object::find(&begun.folder)?, begun.claim.clone());
        let last = object.key.clone().join(last);
        wait(async move {
            let marker = object.key.clone().join(CLAIM);
            let refused = || object.refused("another program has written it meanwhile");
            if !is_claimed(&object, &marker, &claim).await? {
                return Err(refused());
            }
            let is_ours = create(&object, &last, bytes).await?;
            // Readers do not look at what may be left of the claim. And if there is an array of another
            // program, who does not know claims, nothing of it is removed without one.
            let _left = object.store.delete(&marker).await;
            if is_ours { Ok(()) } else { Err(refused()) }
        })
    }

    fn abandon_folder(&self, begun: &Begun, names: &[&str], are_over: bool) {
        let claim = begun.claim.clone();
        let names: Vec<String> = names.iter().map(|&name| name.to_owned()).collect();
        let _left = Object::find(&begun.folder).and_then(|object| {
            wait(async move {
                let marker = object.key.clone().join(CLAIM);
                if !is_claimed(&object, &marker, &claim).await? {
                    return Ok(());
                }
                let folder = object.key.clone();
                let is_ours = move |key: &Key| {
                    let first = key.prefix_match(&folder).and_then(|mut parts| parts.next());
                    first.is_some_and(|first| names.iter().any(|name| name.as_str() == first.as_ref()))
                };
                let found = object.store.list(Some(&object.key)).map_ok(|meta| meta.location);
                let found = found.try_filter(move |key| std::future::ready(is_ours(key))).boxed();
                let failed = |error| object.failed(&error);
                object.store.delete_stream(found).try_collect::<Vec<_>>().await.map_err(failed)?;
                if !are_over {
                    return Ok(());
                }
                object.store.delete(&marker).await.map_err(failed)
            })
        });
    }
}

/// Makes an object that is not there; false if there is another one. One with the same bytes is our own: the
/// answer to an attempt may be lost.
async fn create(object: &Object, key: &Key, bytes: Vec<u8>) -> Stored<bool> {
    match object.store.put_opts(key, bytes.clone().into(), PutMode::Create.into()).await {
        Ok(_) => Ok(true),
        Err(StoreError::AlreadyExists { .. }) => match object.store.get(key).await {
            Ok(found) => Ok(object.body(found, METADATA_BYTES_MAX).await? == bytes),
            Err(StoreError::NotFound { .. }) => Ok(false),
            Err(error) => Err(object.failed(&error)),
        },
        Err(error) => Err(object.failed(&error)),
    }
}

/// Whether a folder is written by who has this claim.
async fn is_claimed(object: &Object, marker: &Key, claim: &str) -> Stored<bool> {
    match object.store.get(marker).await {
        Ok(found) => Ok(object.body(found, METADATA_BYTES_MAX).await? == claim.as_bytes()),
        Err(StoreError::NotFound { .. }) => Ok(false),
        Err(error) => Err(object.failed(&error)),
    }
}

/// An object of a folder that is not the claim.
async fn first_other(object: &Object, marker: &Key) -> Stored<Option<String>> {
    let mut found = object.store.list(Some(&object.key));
    while let Some(meta) = found.try_next().await.map_err(|error| object.failed(&error))? {
        if meta.location != *marker {
            return Ok(Some(meta.location.to_string()));
        }
    }
    Ok(None)
}

/// One request for stretches that are near each other.
struct Request {
    range: Range<u64>,
    stretches: Vec<Stretch>,
}

/// All bytes of an object.
async fn whole(object: Object, bytes_max: u64) -> Stored<Option<Vec<u8>>> {
    match object.store.get(&object.key).await {
        Ok(found) if bytes_max < found.meta.size => Err(too_long(&object.url, bytes_max)),
        Ok(found) => object.body(found, bytes_max).await.map(Some),
        Err(StoreError::NotFound { .. }) => Ok(None),
        Err(error) => Err(object.failed(&error)),
    }
}

/// A range of an object that is there.
async fn fetch(object: Object, range: Range<u64>) -> Stored<Vec<u8>> {
    let found = object.get(GetRange::Bounded(range.clone())).await;
    let found = found.map_err(|error| object.failed(&error))?;
    let bytes = object.body(found, range.end - range.start).await?;
    if bytes.len() as u64 == range.end - range.start { Ok(bytes) } else { Err(shortened(&object.url)) }
}

/// The number of requests to make at once: with the bytes of the largest one in sum.
fn at_once(requests: &[Request]) -> usize {
    let mut bytes = 0;
    let fits = |request: &&Request| {
        bytes += request.range.end - request.range.start;
        bytes <= REQUEST_BYTES
    };
    requests.iter().take(REQUESTS_AT_ONCE).take_while(fits).count().max(1)
}

/// The requests that read stretches: one for those that are near each other, several for a long one.
fn requests(stretches: &[Stretch]) -> Vec<Request> {
    let mut made: Vec<Request> = Vec::new();
    for (at, range) in stretches {
        let (mut at, mut range) = (*at, range.clone());
        while !range.is_empty() {
            let len = range.len().min(REQUEST_BYTES as usize);
            let piece = range.start..range.start + len;
            let end = at + len as u64;
            match made.last_mut() {
                Some(last) if last.takes(at, end) => {
                    last.range.end = end;
                    last.stretches.push((at, piece));
                }
                _ => made.push(Request { range: at..end, stretches: vec![(at, piece)] }),
            }
            at = end;
            range.start += len;
        }
    }
    made
}

impl Request {
    /// Whether it is better to have these bytes too than to ask for them again.
    fn takes(&self, at: u64, end: u64) -> bool {
        let gap_bytes = at.checked_sub(self.range.end);
        gap_bytes.is_some_and(|gap| gap <= GAP_BYTES) && end - self.range.start <= REQUEST_BYTES
    }
}

/// The object that says who writes a folder.
const CLAIM: &str = "tharsis-writes-this";
/// The most bytes of claims and metadata.
const METADATA_BYTES_MAX: u64 = 1 << 20;
/// The most bytes of one request.
const REQUEST_BYTES: u64 = 4 << 20;
/// The most requests of a task at a time.
const REQUESTS_AT_ONCE: usize = 16;
/// Bytes that are read and dropped rather than asked for in a request of their own.
const GAP_BYTES: u64 = 64 << 10;
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stretches_that_are_near_are_read_in_one_request() {
        let far = 1 << 30;
        let stretches = [(10, 0..5), (20, 5..9), (far, 9..10), (far + (4 << 20), 10..20)];
        let made = requests(&stretches);
        let ranges: Vec<_> = made.iter().map(|request| request.range.clone()).collect();
        assert_eq!(ranges, [10..24, far..far + 1, far + (4 << 20)..far + (4 << 20) + 10]);
        assert_eq!(made[0].stretches, [(10, 0..5), (20, 5..9)]);
        let long = requests(&[(7, 0..9 << 20)]);
        let bytes: Vec<_> = long.iter().map(|request| request.range.end - request.range.start).collect();
        assert_eq!(bytes, [4 << 20, 4 << 20, 1 << 20]);
        assert_eq!((at_once(&made), at_once(&long)), (3, 1), "in sum they are not longer than one may be");
        assert!(requests(&[(7, 3..3)]).is_empty());
    }
}
