//! Disks: copies that nodes spill and read back, and clients that let go of mapped values.

use crate::cluster::{Cluster, SimEvent, US};
use crate::program::Content;
use std::sync::Arc;
use tharsis_core::{Event, MS, Now};
use tharsis_types::{ClientId, Extent, Failure, FailureKind, ObjectId};

/// Time for which a client may go on reading a value that its node wants back.
const LOOK_MAX: Now = 20 * MS;

impl Cluster {
    /// A node writes a copy to its disk, which takes a while and may be refused.
    pub(crate) fn start_spill(&mut self, host: usize, object: ObjectId, extent: Extent) {
        self.summary.spill_count += 1;
        let Some(content) = self.read(host, extent).cloned() else {
            self.fail("what is spilled is there", format!("{object} at {extent:?}"));
            return;
        };
        let when = self.now + self.rng.range(50 * US, 5 * MS);
        self.at(when, SimEvent::SpillEnds { host, object, extent, content });
    }

    pub(crate) fn spill_ends(&mut self, host: usize, object: ObjectId, extent: Extent, content: Content) {
        if !self.hosts[host].alive {
            return;
        }
        if self.read(host, extent) != Some(&content) {
            self.fail("what is being spilled does not change", format!("{object} at {extent:?}"));
        }
        let refusal = self.rng.chance(self.faults.spill_refusal).then(|| "the disk is full".to_owned());
        if refusal.is_none() {
            self.hosts[host].disk.insert(object, content);
        }
        let write_ns = self.rng.range(50 * US, 5 * MS);
        self.feed(host, Event::Spilled { object, refusal, write_ns });
    }

    /// A node gives blocks of its annex back, which takes a while.
    pub(crate) fn free_blocks(&mut self, host: usize, extent: Extent) {
        let when = self.now + self.rng.range(50 * US, 5 * MS);
        self.at(when, SimEvent::BlocksFreed { host, extent });
    }

    /// A region in the annex gets its blocks, or is given back because the disk has none left.
    pub(crate) fn make_blocks(
        &mut self,
        host: usize,
        client: ClientId,
        region: Extent,
    ) -> Result<Extent, Arc<Failure>> {
        if region.offset < self.store_bytes || !self.rng.chance(self.faults.spill_refusal) {
            return Ok(region);
        }
        self.at(self.now, SimEvent::Record { host, event: Event::RegionRetired { client, region } });
        Err(Arc::new(Failure::new(FailureKind::OutOfDisk, "the disk is full")))
    }

    /// The blocks of a range are the disk's again: what stood there is gone.
    pub(crate) fn blocks_freed(&mut self, host: usize, extent: Extent) {
        if self.hosts[host].alive {
            let end = extent.offset + extent.len;
            self.hosts[host].arena.retain(|offset, _| !(extent.offset..end).contains(offset));
            self.feed(host, Event::BlocksFreed(extent));
        }
    }

    /// A node reads a copy back, which takes a while and may find that the disk has lost it.
    pub(crate) fn start_restore(&mut self, host: usize, object: ObjectId, into: Extent) {
        self.summary.restore_count += 1;
        self.summary.ahead_count += u64::from(self.hosts[host].node.is_only_ahead(object));
        let when = self.now + self.rng.range(50 * US, 5 * MS);
        self.at(when, SimEvent::RestoreEnds { host, object, into });
    }

    pub(crate) fn restore_ends(&mut self, host: usize, object: ObjectId, into: Extent) {
        if !self.hosts[host].alive {
            return;
        }
        if self.rng.chance(self.faults.no_pages) {
            self.oracle.lacks_pages = true;
            self.feed(host, Event::PullRefused { object, cause: "no pages".into() });
            return;
        }
        let content = self.hosts[host].disk.get(&object).cloned();
        if self.rng.chance(self.faults.disk_loss) {
            *self.oracle.disk_losses.entry(object).or_default() += 1;
            let from = self.hosts[host].id;
            self.feed(host, Event::PullFailed { object, from, done_bytes: 0, cause: "bad bytes".into() });
            return;
        }
        match content {
            Some(content) => {
                self.write(host, into, content);
                self.feed(host, Event::PullDone { object });
            }
            None => {
                // It was freed while it was being read.
                let from = self.hosts[host].id;
                self.feed(host, Event::PullFailed { object, from, done_bytes: 0, cause: "not there".into() });
            }
        }
    }

    /// A copy on disk is not needed any more.
    pub(crate) fn discard(&mut self, host: usize, object: ObjectId) {
        self.hosts[host].disk.remove(&object);
    }

    /// A client is asked to let go of a value: at once, or when it has looked long enough.
    pub(crate) fn unmap_told(&mut self, host: usize, id: ClientId, token: u64) {
        if self.rng.chance(400) {
            let when = self.now + self.rng.range(0, LOOK_MAX);
            self.at(when, SimEvent::Unmap { host, client: id, token });
        } else {
            self.unmap(host, id, token);
        }
    }

    pub(crate) fn unmap(&mut self, host: usize, id: ClientId, token: u64) {
        let held = self.hosts[host].clients.get_mut(&id).and_then(|c| c.refs.get_mut(&token));
        let Some((held, (extent, content))) = held.and_then(|h| h.mapped.take().map(|mapped| (h, mapped)))
        else {
            return;
        };
        let object = held.reference.object;
        // It may be wanted again later.
        held.ended = false;
        self.still(host, extent, &content);
        self.send(host, id, Event::Unmapped { client: id, token, object });
    }
}
