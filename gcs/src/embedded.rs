//! The store inside the process: in memory, or in memory with every change written to a file first.
//!
//! Writers take turns under the `writer` lock: plan against the key space, commit to the file, apply, wake
//! the watchers. The key space has its own lock, which is held only to read or to apply, so that watchers and
//! keep-alives never wait for a disk. Lock order: `writer` before `space`.
//!
//! A write to the file that fails (a full disk) is answered with the error, and nothing is applied. The
//! database takes no more writes then until it is opened again, so that is what the next writes do, once a
//! second at most. Reads, renewals of leases and watches go on from memory meanwhile.
//!
//! Watchers pull from the history at their own revision and wait for a higher one. There is no queue per
//! watcher, so there is none to overflow.
//!
//! A store with a file has a thread for it. The pool of the runtime is no place for commits: names are
//! resolved there, and a name server that does not answer would hold them up. A defect that makes a change
//! panic ends neither the thread nor the store: that change is refused, and the file is opened again, as
//! after a write that failed. If the panic came while the change was applied to memory, what is there may be
//! half of it, and the file is not made like it: all later writes are refused until the process is started
//! again.
//!
//! One task ends expired leases; [`Backend::close`] joins it, and dropping the store ends it.

use crate::backend::{Answer, Backend, StoreLease, Txn, TxnResult, Watch, WatchItem};
use crate::error::StoreError;
use crate::journal::Journal;
use crate::keyspace::{Commit, EmbeddedLimits, KeySpace, LOOK_EVERY, Next};
use futures::StreamExt;
use futures::future::BoxFuture;
use parking_lot::Mutex;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Pause after a failure to end leases (a full disk), before the next try.
const EXPIRY_RETRY: Duration = Duration::from_secs(1);
/// Pause after a write that failed, before the file is opened again.
const REOPEN_PAUSE: Duration = Duration::from_secs(1);

/// A store inside the process.
#[derive(Debug)]
pub struct Embedded {
    inner: Arc<Inner>,
    reaper: Mutex<Option<JoinHandle<()>>>,
}

#[derive(Debug)]
struct Inner {
    writer: Mutex<Writer>,
    space: Mutex<KeySpace>,
    news: watch::Sender<News>,
    path: Option<PathBuf>,
    limits: EmbeddedLimits,
    /// None for a store in memory.
    disk: Option<Disk>,
}

/// The thread that writes the file. It ends with the store.
#[derive(Debug)]
struct Disk(mpsc::Sender<Box<dyn FnOnce() + Send>>);

#[derive(Debug)]
enum Writer {
    /// A change is being applied to memory, or one was not to its end.
    Applying,
    Closed,
    /// The last write failed.
    Failed(FailedFile),
    File(Journal),
    Memory,
}

#[derive(Debug)]
struct FailedFile {
    /// Keeps other processes from the file, until it is opened again.
    journal: Option<Journal>,
    cause: String,
    /// It failed for want of room.
    is_full: bool,
    again_at: Instant,
}

/// The state that watchers and the reaper wait for.
#[derive(Clone, Copy, Debug)]
struct News {
    revision: u64,
    leases: u64,
    closed: bool,
}

impl Embedded {
    /// A store in memory. Must be called within a tokio runtime, which runs its reaper.
    #[must_use]
    pub fn memory(limits: EmbeddedLimits) -> Self {
        Self::start(Writer::Memory, KeySpace::empty(limits, Instant::now()), None, limits, None)
    }

    /// A store in the file at `path`, which is made if it is missing. Its leases restart with their full
    /// length.
    ///
    /// # Errors
    /// [`StoreError::InUse`], [`StoreError::Format`], [`StoreError::Corrupt`] or [`StoreError::Io`].
    pub async fn open(path: impl AsRef<Path>, limits: EmbeddedLimits) -> Result<Self, StoreError> {
        let path = path.as_ref().to_owned();
        let opened = {
            let path = path.clone();
            tokio::task::spawn_blocking(move || Journal::open(&path, limits)).await
        };
        let io = |cause: String| StoreError::Io { path: path.clone(), is_full: false, cause };
        let (journal, space) = opened.map_err(|cause| io(cause.to_string()))??;
        let disk = Disk::start().map_err(|cause| io(format!("no thread: {cause}")))?;
        Ok(Self::start(Writer::File(journal), space, Some(path), limits, Some(disk)))
    }

    /// Drops the changes up to and including a revision from the history, as its limits also do.
    pub fn compact(&self, at: u64) {
        self.inner.space.lock().compact(at);
    }

    fn start(
        writer: Writer,
        space: KeySpace,
        path: Option<PathBuf>,
        limits: EmbeddedLimits,
        disk: Option<Disk>,
    ) -> Self {
        let (news, _) = watch::channel(News { revision: space.revision(), leases: 0, closed: false });
        let (writer, space) = (Mutex::new(writer), Mutex::new(space));
        let inner = Arc::new(Inner { writer, space, news, path, limits, disk });
        let reaper = tokio::spawn(reap(inner.clone(), inner.news.subscribe()));
        Self { inner, reaper: Mutex::new(Some(reaper)) }
    }

    fn write<T: Send + 'static>(
        &self,
        plan: impl FnOnce(&KeySpace) -> Result<(Commit, T), StoreError> + Send + 'static,
    ) -> Answer<'static, T> {
        Box::pin(write(self.inner.clone(), plan))
    }
}

impl Drop for Embedded {
    fn drop(&mut self) {
        self.inner.announce_end();
    }
}

impl Backend for Embedded {
    fn txn(&self, txn: Txn) -> Answer<'_, TxnResult> {
        if !txn.is_read_only() {
            return self.write(move |space| space.plan(&txn));
        }
        Box::pin(async move {
            self.inner.check_open()?;
            self.inner.space.lock().plan(&txn).map(|(_, result)| result)
        })
    }

    fn watch(&self, prefix: Vec<u8>, from_revision: u64) -> Answer<'_, Watch> {
        let watcher = Watcher {
            news: self.inner.news.subscribe(),
            inner: self.inner.clone(),
            prefix,
            from: from_revision.max(1),
            done: false,
        };
        Box::pin(async move {
            watcher.inner.check_open()?;
            Ok(futures::stream::unfold(watcher, Watcher::next).boxed())
        })
    }

    fn lease_grant(&self, ttl: Duration) -> Answer<'_, (StoreLease, Duration)> {
        self.write(move |space| {
            let (commit, lease) = space.plan_grant(ttl)?;
            Ok((commit, (lease, ttl)))
        })
    }

    fn lease_keep_alive(&self, lease: StoreLease) -> Answer<'_, ()> {
        Box::pin(async move {
            self.inner.check_open()?;
            self.inner.space.lock().keep_alive(lease, Instant::now())
        })
    }

    fn lease_revoke(&self, lease: StoreLease) -> Answer<'_, ()> {
        self.write(move |space| Ok((space.plan_revoke(lease)?, ())))
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            self.inner.announce_end();
            let reaper = self.reaper.lock().take();
            if let Some(reaper) = reaper
                && let Err(error) = reaper.await
            {
                tracing::error!(%error, "the task that ends leases failed");
            }
            // Waits for the commits before it and closes the file.
            if on_disk(self.inner.clone(), |inner| *inner.writer.lock() = Writer::Closed).await.is_err() {
                tracing::error!("closing the store failed");
            }
        })
    }

    fn place(&self) -> String {
        self.inner.path.as_ref().map_or_else(|| "memory".to_owned(), |path| path.display().to_string())
    }
}

impl Inner {
    fn announce_end(&self) {
        self.news.send_modify(|news| news.closed = true);
    }

    fn check_open(&self) -> Result<(), StoreError> {
        if self.news.borrow().closed { Err(StoreError::Closed) } else { Ok(()) }
    }

    /// Makes one change: plan, commit, apply, wake watchers. Blocks for the disk if there is a file.
    fn write_now<T>(
        &self,
        plan: impl FnOnce(&KeySpace) -> Result<(Commit, T), StoreError>,
    ) -> Result<T, StoreError> {
        let mut writer = self.writer.lock();
        match &mut *writer {
            Writer::Applying => return Err(self.io("a write has failed by a defect: start again")),
            Writer::Closed => return Err(StoreError::Closed),
            Writer::Failed(failed) => *writer = Writer::File(self.reopen(failed)?),
            Writer::File(_) | Writer::Memory => {}
        }
        let (commit, answer) = plan(&self.space.lock())?;
        if commit.is_empty() {
            return Ok(answer);
        }
        if let Writer::File(journal) = &*writer
            && let Err(error) = journal.commit(&commit)
        {
            tracing::error!(%error, "the control store cannot write its file: nothing changes until it can");
            writer.failed(&error.to_string(), error.is_full_disk());
            return Err(error);
        }
        let changed_leases = !commit.leases.is_empty();
        let revision = commit.revision;
        let open = std::mem::replace(&mut *writer, Writer::Applying);
        self.space.lock().apply(commit, Instant::now());
        *writer = open;
        drop(writer);
        self.news.send_modify(|news| {
            news.revision = news.revision.max(revision);
            news.leases += u64::from(changed_leases);
        });
        Ok(answer)
    }
}

impl Writer {
    /// The last write failed.
    fn failed(&mut self, cause: &str, is_full: bool) {
        match std::mem::replace(self, Writer::Applying) {
            Writer::File(journal) => {
                let again_at = Instant::now() + REOPEN_PAUSE;
                let (journal, cause) = (Some(journal), cause.to_owned());
                *self = Writer::Failed(FailedFile { journal, cause, is_full, again_at });
            }
            other => *self = other,
        }
    }
}

impl Inner {
    fn io(&self, cause: &str) -> StoreError {
        let path = self.path.clone().unwrap_or_default();
        StoreError::Io { path, is_full: false, cause: cause.to_owned() }
    }

    /// A change has panicked. Whether it is on disk is unknown.
    fn panicked(&self, panic: &(dyn Any + Send)) -> StoreError {
        let text = panic.downcast_ref::<&str>().copied();
        let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
        let cause = format!("a change panicked: {}", text.unwrap_or("no text"));
        tracing::error!(cause, "the control store has a defect: what was to be written is not");
        self.writer.lock().failed(&cause, false);
        self.io(&cause)
    }

    /// Opens the file again, if it is time to.
    fn reopen(&self, failed: &mut FailedFile) -> Result<Journal, StoreError> {
        let path = self.path.clone().unwrap_or_default();
        if Instant::now() < failed.again_at {
            let cause = format!("the write before failed: {}", failed.cause);
            return Err(StoreError::Io { path, is_full: failed.is_full, cause });
        }
        // It must be closed before it can be opened.
        failed.journal = None;
        match self.open_again(&path) {
            Ok(journal) => {
                tracing::warn!(path = %path.display(), "the control store can write its file again");
                Ok(journal)
            }
            Err(error) => {
                tracing::info!(%error, "the control store still cannot write its file");
                (failed.again_at, failed.cause) = (Instant::now() + REOPEN_PAUSE, error.to_string());
                failed.is_full = error.is_full_disk();
                Err(error)
            }
        }
    }

    /// Opens the file and makes it hold what is in memory: whether the change that failed is on disk is
    /// unknown, and nobody was told that it is.
    fn open_again(&self, path: &Path) -> Result<Journal, StoreError> {
        let (journal, found) = Journal::open(path, self.limits)?;
        let missing = self.space.lock().difference(&found).ok_or_else(|| StoreError::Corrupt {
            what: path.display().to_string(),
            problem: "another process has written it".to_owned(),
        })?;
        journal.commit(&missing)?;
        Ok(journal)
    }
}

async fn write<T: Send + 'static>(
    inner: Arc<Inner>,
    plan: impl FnOnce(&KeySpace) -> Result<(Commit, T), StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    inner.check_open()?;
    on_disk(inner, |inner| inner.write_now(plan)).await?
}

/// Does what may wait for a disk, and waits for it.
async fn on_disk<T: Send + 'static>(
    inner: Arc<Inner>,
    work: impl FnOnce(&Inner) -> T + Send + 'static,
) -> Result<T, StoreError> {
    let Some(disk) = &inner.disk else { return Ok(work(&inner)) };
    let (reply, answer) = oneshot::channel();
    let own = inner.clone();
    let sent = disk.0.send(Box::new(move || {
        // The state that a panic leaves is known: see `panicked`.
        let done = catch_unwind(AssertUnwindSafe(|| work(&own)));
        // Whoever asked may be gone.
        let _told = reply.send(done.map_err(|panic| own.panicked(&*panic)));
    }));
    match (sent, answer.await) {
        (Ok(()), Ok(done)) => done,
        _ => {
            tracing::error!("the thread that writes the tables has ended: nothing changes any more");
            Err(inner.io("the thread that writes it has ended"))
        }
    }
}

impl Disk {
    fn start() -> std::io::Result<Self> {
        let (sender, work) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let thread = std::thread::Builder::new().name("store".into());
        thread.spawn(move || work.into_iter().for_each(|work| work()))?;
        Ok(Self(sender))
    }
}

/// Ends leases when they expire, until the store is closed.
async fn reap(inner: Arc<Inner>, mut news: watch::Receiver<News>) {
    loop {
        let state = *news.borrow_and_update();
        if state.closed {
            return;
        }
        let now = Instant::now();
        let due = {
            let mut space = inner.space.lock();
            space.look_at_clock(now);
            space.next_expiry()
        };
        if due.is_some_and(|due| due <= now) {
            end_leases(&inner, now).await;
            continue;
        }
        // A renewed lease is noticed at its old expiry; new leases and the close wake this task.
        let next_look = now + LOOK_EVERY;
        let wait = tokio::time::sleep_until(due.map_or(next_look, |due| due.min(next_look)));
        let other_news =
            async { news.wait_for(|now| now.closed || now.leases != state.leases).await.is_ok() };
        tokio::select! {
            () = wait => {}
            _ = other_news => {}
        }
    }
}

/// Ends expired leases; if writing that fails, pauses before the next try.
async fn end_leases(inner: &Arc<Inner>, now: Instant) {
    let ended = write(inner.clone(), move |space| Ok((space.plan_expiry(now), ()))).await;
    match ended {
        Ok(()) | Err(StoreError::Closed) => {}
        Err(error) => {
            tracing::error!(%error, "leases that ran out cannot be ended now");
            tokio::time::sleep(EXPIRY_RETRY).await;
        }
    }
}

struct Watcher {
    inner: Arc<Inner>,
    news: watch::Receiver<News>,
    prefix: Vec<u8>,
    from: u64,
    done: bool,
}

impl Watcher {
    async fn next(mut self) -> Option<(Result<WatchItem, StoreError>, Self)> {
        while !self.done {
            let next = self.inner.space.lock().next_change(&self.prefix, self.from);
            match next {
                Next::Changed(revision, events) => {
                    self.from = revision + 1;
                    return Some((Ok(WatchItem::Changed { revision, events }), self));
                }
                Next::Compacted(at) => {
                    self.done = true;
                    return Some((Ok(WatchItem::Compacted { at }), self));
                }
                Next::Wait(from) => self.from = from,
            }
            let from = self.from;
            let open = self.news.wait_for(|news| news.closed || from <= news.revision).await;
            if !open.is_ok_and(|news| !news.closed) {
                return None;
            }
        }
        None
    }
}

#[cfg(feature = "file")]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::Op;
    use crate::tables;

    async fn open(folder: &Path) -> Embedded {
        Embedded::open(folder.join("state"), EmbeddedLimits::default()).await.unwrap()
    }

    async fn put(store: &Embedded, key: &str) -> Result<TxnResult, StoreError> {
        store.txn(Txn::always(vec![Op::put(key, "value")])).await
    }

    async fn is_there(store: &Embedded, key: &str) -> bool {
        tables::found(&store.txn(tables::get(key.into())).await.unwrap(), 0).is_some()
    }

    #[tokio::test]
    async fn a_change_that_panics_is_refused_and_the_next_ones_are_written() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        put(&store, "before").await.unwrap();
        let failed = store.write::<()>(|_| panic!("a bad plan")).await.unwrap_err().to_string();
        assert!(failed.contains("a bad plan"), "{failed}");
        // Until the file is opened again, which may have happened already.
        while let Err(refused) = put(&store, "after").await {
            assert!(refused.to_string().contains("a bad plan"), "{refused}");
            tokio::time::sleep(REOPEN_PAUSE / 10).await;
        }
        store.close().await;
        let store = open(folder.path()).await;
        assert!(is_there(&store, "before").await && is_there(&store, "after").await);
    }

    /// The file must not be made like what is in memory then.
    #[tokio::test]
    async fn after_a_panic_while_a_change_was_applied_nothing_is_written_any_more() {
        let folder = tempfile::tempdir().unwrap();
        let store = open(folder.path()).await;
        put(&store, "before").await.unwrap();
        let spoilt = store.write(|space| {
            let (mut commit, _) = space.plan(&Txn::always(vec![Op::put("spoilt", "value")]))?;
            commit.revision += 5;
            Ok((commit, ()))
        });
        // The key space asserts that revisions follow each other.
        assert!(spoilt.await.unwrap_err().to_string().contains("panicked"));
        for _ in 0..2 {
            let refused = put(&store, "after").await.unwrap_err().to_string();
            assert!(refused.contains("start again"), "{refused}");
        }
        assert!(is_there(&store, "before").await, "reads go on");
    }
}
