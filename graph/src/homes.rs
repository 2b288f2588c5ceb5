//! Homes: which sources should start on one node.
//!
//! Sources, batches that read nothing, have one home if what they make meets in one batch. Homes are given in the
//! order of the batches in which sources meet first, so that what is under way at a time is spread over many homes.

/// Homes while they are given.
pub(crate) struct Homes {
    homes: Vec<u32>,
    next: u32,
    /// So many sources have one home at most: where more meet, as in sums of everything, neighbours stay together.
    share: u32,
}

impl Homes {
    /// For so many batches.
    pub(crate) fn new(batches: usize) -> Homes {
        Homes { homes: Vec::with_capacity(batches), next: 0, share: (batches / HOMES_MIN).max(1) as u32 }
    }

    /// The next batch, and who makes what it reads.
    pub(crate) fn meet(&mut self, batch: usize, makers: impl Iterator<Item = usize>, is_source: bool) {
        let mut inside = 0;
        for maker in makers {
            if self.homes[maker] == HOMELESS {
                self.homes[maker] = self.next + inside / self.share;
                inside += 1;
            }
        }
        self.next += inside.div_ceil(self.share);
        debug_assert_eq!(self.homes.len(), batch);
        self.homes.push(if is_source { HOMELESS } else { ROAMING });
    }

    /// All homes; sources that met no other have one each.
    pub(crate) fn finish(mut self) -> Vec<u32> {
        for home in self.homes.iter_mut().filter(|home| **home == HOMELESS) {
            *home = self.next;
            self.next += 1;
        }
        self.homes
    }
}

/// So many homes there are at least, if there are as many sources: enough to even out over nodes.
const HOMES_MIN: usize = 64;
/// A source that has no home yet.
const HOMELESS: u32 = u32::MAX - 1;
/// A batch that goes where its chunks lie.
pub(crate) const ROAMING: u32 = u32::MAX;
