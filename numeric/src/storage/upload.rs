//! Objects that tasks upload in parts, each wherever it runs. A store needs the tag of each part when the
//! object is put together, so a task leaves the tag of its part as a small object beside the place of the
//! whole.
//!
//! Readers do not see an upload that a dead process has begun; its parts are for the rules of the bucket. An
//! object of one part is uploaded so, too: a task that is left behind may write at any time, and the store
//! refuses parts of an upload that has ended, but no object.

use super::object::{Object, wait};
use super::{Parts, Stored, Unfinished, corrupt};
use futures::{StreamExt, TryStreamExt};
use object_store::multipart::{MultipartStore, PartId};
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use tharsis_graph::Error as GraphError;

/// Begins an upload.
pub(super) fn begin(path: &Path, bytes: u64) -> Stored<Unfinished> {
    let (object, store) = Object::find_to_write(path)?;
    let part_bytes = bytes.div_ceil(PARTS_MAX).next_multiple_of(ELEMENT_BYTES_MAX).max(PART_BYTES);
    let count = bytes.div_ceil(part_bytes).max(1) as usize;
    let id = wait(async move {
        let begun = store.create_multipart(&object.key).await;
        begun.map_err(|error| object.failed(&error))
    })?;
    Ok(Unfinished { path: path.to_owned(), parts: Some(Parts { count, bytes: part_bytes, id }) })
}

/// Uploads a part, and leaves its tag.
pub(super) fn write(path: &Path, parts: &Parts, number: usize, bytes: Vec<u8>) -> Stored<()> {
    let (object, store) = Object::find_to_write(path)?;
    let (id, tag) = (parts.id.clone(), tags(&object.key, parts).join(number.to_string()));
    wait(async move {
        let part = store.put_part(&object.key, &id, number, bytes.into()).await;
        let part = part.map_err(|error| object.failed(&error))?;
        let left = store.put(&tag, part.content_id.into_bytes().into()).await;
        left.map(drop).map_err(|error| object.failed(&error))
    })
}

/// Puts the object together.
pub(super) fn finish(path: &Path, parts: &Parts) -> Stored<()> {
    let (object, store) = Object::find_to_write(path)?;
    let (id, count, tags) = (parts.id.clone(), parts.count, tags(&object.key, parts));
    wait(async move {
        let tag = |number: usize| {
            let (object, key) = (&object, tags.clone().join(number.to_string()));
            async move {
                let found = object.store.get(&key).await.map_err(|error| object.failed(&error))?;
                let tag = String::from_utf8(object.body(found, TAG_BYTES_MAX).await?);
                let content_id = tag.map_err(|_| corrupt(&object.url, "the tag of a part is no text"))?;
                Ok::<PartId, GraphError>(PartId { content_id })
            }
        };
        let found = futures::stream::iter(0..count).map(tag).buffered(TAGS_AT_ONCE).try_collect().await?;
        let whole = store.complete_multipart(&object.key, &id, found).await;
        whole.map_err(|error| object.failed(&error))?;
        remove(&object, tags).await;
        Ok(())
    })
}

/// Ends an upload without an object.
pub(super) fn abandon(path: &Path, parts: &Parts) {
    let _left = Object::find_to_write(path).and_then(|(object, store)| {
        let (id, tags) = (parts.id.clone(), tags(&object.key, parts));
        wait(async move {
            remove(&object, tags).await;
            let ended = store.abort_multipart(&object.key, &id).await;
            ended.map_err(|error| object.failed(&error))
        })
    });
}

/// Removes tags. Those that stay are in a hidden folder, and are not read again.
async fn remove(object: &Object, tags: Key) {
    let found = object.store.list(Some(&tags)).map_ok(|meta| meta.location).boxed();
    let _left = object.store.delete_stream(found).try_collect::<Vec<_>>().await;
}

/// The folder of the tags of an upload.
fn tags(key: &Key, parts: &Parts) -> Key {
    let mut hasher = DefaultHasher::new();
    parts.id.hash(&mut hasher);
    let name = format!(".{}.{:016x}.parts", key.filename().unwrap_or_default(), hasher.finish());
    let folder = key.parts().count().saturating_sub(1);
    key.parts().take(folder).collect::<Key>().join(name)
}

/// Bytes of a part, if that is not too many parts. Stores refuse smaller ones, but for the last.
const PART_BYTES: u64 = 5 << 20;
/// The most parts of an object.
const PARTS_MAX: u64 = 10_000;
/// Bytes of the largest element.
const ELEMENT_BYTES_MAX: u64 = 16;
const TAG_BYTES_MAX: u64 = 4 << 10;
/// Tags that are asked for at a time.
const TAGS_AT_ONCE: usize = 16;
