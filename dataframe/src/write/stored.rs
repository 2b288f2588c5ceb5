//! From the files that tasks reported to the target, in an object store.
//!
//! A store has no folders and renames nothing, but an object is there whole or not at all. So a target that
//! is one file changes at once. The files of a folder are copied one after the other to names that no file
//! had before, and then the old ones are removed: in between, a reader sees both.

use super::encoder::join;
use super::options::FileSpec;
use super::report::Written;
use super::target::{ATTEMPTS, PART, is_made_by_writer, numbered, unique};
use crate::engine::block_on;
use crate::error::{Error, FileFault, Result};
use crate::scan::{from_store, store_at};
use futures::{StreamExt, TryStreamExt};
use object_store::buffered::BufWriter;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use tokio::fs::File;
use tokio::io::AsyncWriteExt;

/// The place in a store that a frame is written to, and that beside it in which tasks put their files. What
/// is left there goes with it.
pub(crate) struct StoredTarget {
    /// The path that the user gave.
    path: String,
    /// The URL of the store.
    url: String,
    store: Arc<dyn ObjectStore>,
    whole: Key,
    is_folder: bool,
    unfinished: Key,
}

impl StoredTarget {
    /// Opens the store, and checks that the place can be written to.
    pub(super) fn prepare(path: &str) -> Result<StoredTarget> {
        let refused = |reason| Error::file(path, FileFault::Exists, reason);
        let (scheme, rest) = path.split_once("://").ok_or_else(|| refused("this is no URL"))?;
        if !matches!(scheme, "s3" | "s3a") {
            return Err(Error::NotImplemented(format!("writing to {scheme}:// is not implemented")));
        }
        let (bucket, key) = rest.split_once('/').unwrap_or((rest, ""));
        let whole = key_of(key.trim_end_matches('/'))?;
        let name = whole.filename().ok_or_else(|| refused("a bucket cannot be replaced"))?;
        let parent = whole.parts().count() - 1;
        let parent: Key = whole.parts().take(parent).collect();
        let unfinished = parent.join(format!(".{name}.{}.unfinished", unique()));
        let url = format!("{scheme}://{bucket}/");
        let store = store_at(&url)?;
        let is_folder = path.ends_with('/');
        let target = StoredTarget { path: path.to_owned(), url, store, whole, is_folder, unfinished };
        if is_folder {
            block_on(target.old_files())?;
        }
        Ok(target)
    }

    /// Whether the target is a folder of files.
    pub(super) fn is_folder(&self) -> bool {
        self.is_folder
    }

    /// The URL of the store.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// The keys below which attempts put their files.
    pub(super) fn attempts(&self) -> String {
        self.unfinished.clone().join(ATTEMPTS).to_string()
    }

    /// Makes the reported files visible.
    pub(super) fn finish(self, written: &[Written], spec: &FileSpec) -> Result<()> {
        block_on(async {
            if self.is_folder {
                self.replace_folder(written, spec).await
            } else {
                self.replace_file(written, spec).await
            }
        })
    }

    /// All reported files as one.
    async fn replace_file(&self, written: &[Written], spec: &FileSpec) -> Result<()> {
        match written {
            [] => Err(Error::Internal("no task has written a file".to_owned())),
            [file] => self.copy(file, &self.whole).await,
            files => {
                let failed = |error: &std::io::Error| Error::io(&self.path, error);
                let folder = tempfile::tempdir().map_err(|error| failed(&error))?;
                let mut parts = Vec::new();
                for file in files {
                    parts.push(self.download(file, folder.path()).await?);
                }
                let made = folder.path().join("whole");
                join(spec, &parts, &made)
                    .map_err(|error| Error::file(&self.path, FileFault::Failed, error))?;
                upload(&self.store, &made, self.whole.clone()).await.map_err(|error| self.failed(error))
            }
        }
    }

    /// The reported files below the key of the folder, numbered in the order of their rows, in place of those
    /// that were there.
    async fn replace_folder(&self, written: &[Written], spec: &FileSpec) -> Result<()> {
        let old = self.old_files().await?;
        let attempt = unique();
        for (file, number) in numbered(written) {
            let name = format!("{PART}{number:05}-{attempt}.{}", spec.extension());
            let folder = if file.folder.is_empty() {
                self.whole.clone()
            } else {
                // The names of folders keep their escapes.
                key_of(&format!("{}/{}", self.whole, file.folder))?
            };
            self.copy(file, &folder.join(name)).await?;
        }
        self.delete(old).await.map_err(|error| self.failed(error))
    }

    /// The files of the folder. Refuses a folder with one that no writer of frames makes.
    async fn old_files(&self) -> Result<Vec<Key>> {
        let found: Vec<_> =
            self.store.list(Some(&self.whole)).try_collect().await.map_err(|error| self.failed(error))?;
        let mut old = Vec::new();
        for object in found {
            let inner: Vec<_> = object.location.prefix_match(&self.whole).into_iter().flatten().collect();
            let names: Vec<&str> = inner.iter().map(AsRef::as_ref).collect();
            if !is_made_by_writer(&names) {
                let reason = format!("the folder has {:?}, which writing would remove", names.join("/"));
                return Err(Error::file(&self.path, FileFault::Exists, reason));
            }
            old.push(object.location);
        }
        Ok(old)
    }

    async fn copy(&self, file: &Written, to: &Key) -> Result<()> {
        let from = self.attempt(file);
        let copied = if file.bytes <= COPIED_BYTES_MAX {
            self.store.copy(&from, to).await
        } else {
            relay(&self.store, &from, to.clone()).await
        };
        copied.map_err(|error| self.failed(error))
    }

    async fn download(&self, file: &Written, folder: &Path) -> Result<PathBuf> {
        let path = folder.join(&file.name);
        let failed = |error: &std::io::Error| Error::io(&self.path, error);
        let mut local = File::create(&path).await.map_err(|error| failed(&error))?;
        let found = self.store.get(&self.attempt(file)).await.map_err(|error| self.failed(error))?;
        let mut bytes = found.into_stream();
        while let Some(bytes) = bytes.try_next().await.map_err(|error| self.failed(error))? {
            local.write_all(&bytes).await.map_err(|error| failed(&error))?;
        }
        local.flush().await.map_err(|error| failed(&error))?;
        Ok(path)
    }

    async fn delete(&self, keys: Vec<Key>) -> object_store::Result<()> {
        let keys = futures::stream::iter(keys.into_iter().map(Ok)).boxed();
        self.store.delete_stream(keys).try_collect::<Vec<_>>().await.map(|_| ())
    }

    fn attempt(&self, file: &Written) -> Key {
        self.unfinished.clone().join(ATTEMPTS).join(file.name.as_str())
    }

    fn failed(&self, error: object_store::Error) -> Error {
        from_store(&self.path, &error)
    }
}

impl Drop for StoredTarget {
    fn drop(&mut self) {
        // Objects that cannot be removed stay: a part of their keys begins with a dot, so no reader takes
        // them for data.
        let _left = block_on(async {
            let left: object_store::Result<Vec<_>> =
                self.store.list(Some(&self.unfinished)).map_ok(|object| object.location).try_collect().await;
            let left = left.map_err(|error| self.failed(error))?;
            self.delete(left).await.map_err(|error| self.failed(error))
        });
    }
}

/// The key with exactly these characters.
pub(super) fn key_of(key: &str) -> Result<Key> {
    Key::parse(key).map_err(|error| Error::Value(error.to_string()))
}

/// Bytes of an object that a store copies with one request: S3 refuses more.
const COPIED_BYTES_MAX: u64 = 5 << 30;

/// Copies an object through this process, in parts. The copy is there when all of it is.
async fn relay(store: &Arc<dyn ObjectStore>, from: &Key, to: Key) -> object_store::Result<()> {
    let mut bytes = store.get(from).await?.into_stream();
    let mut object = BufWriter::new(Arc::clone(store), to);
    let copied = async {
        while let Some(bytes) = bytes.try_next().await? {
            object.put(bytes).await?;
        }
        Ok(())
    };
    let copied = copied.await;
    ended(object, copied.map_err(|error: object_store::Error| error.into())).await
}

/// Copies a local file to a store, in parts if it is large. The object is there when all of it is.
pub(super) async fn upload(store: &Arc<dyn ObjectStore>, from: &Path, to: Key) -> object_store::Result<()> {
    let mut object = BufWriter::new(Arc::clone(store), to);
    let copied = match File::open(from).await {
        Ok(mut file) => tokio::io::copy(&mut file, &mut object).await.map(|_| ()),
        Err(error) => Err(error),
    };
    ended(object, copied).await
}

/// Ends an object after a copy, or removes what was sent of it.
async fn ended(mut object: BufWriter, copied: std::io::Result<()>) -> object_store::Result<()> {
    let ended = match copied {
        // If this fails, it removes the parts that it has sent.
        Ok(()) => object.shutdown().await,
        Err(error) => {
            // Parts that stay in spite of this are for the rules of the bucket.
            let _left = object.abort().await;
            Err(error)
        }
    };
    let Err(error) = ended else { return Ok(()) };
    Err(match error.downcast::<object_store::Error>() {
        Ok(error) => error,
        Err(error) => object_store::Error::Generic { store: "write", source: Box::new(error) },
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use object_store::memory::InMemory;

    #[test]
    fn an_object_that_no_request_copies_is_copied_in_parts() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        // More than one part.
        let rows: Vec<u8> = (0..25_u32 << 20).map(|number| number as u8).collect();
        let (from, to) = (Key::from("from"), Key::from("to"));
        block_on(async {
            let failed = |error| from_store("memory", &error);
            store.put(&from, rows.clone().into()).await.map_err(failed)?;
            relay(&store, &from, to.clone()).await.map_err(failed)?;
            let copied = store.get(&to).await.map_err(failed)?.bytes().await.map_err(failed)?;
            assert!(copied == rows, "{} bytes of {}", copied.len(), rows.len());
            let missing = relay(&store, &Key::from("none"), to).await;
            assert!(matches!(missing, Err(object_store::Error::NotFound { .. })));
            Ok(())
        })
        .expect("a store in memory");
    }
}
