//! Homes: groups of batches that should run on one node.
//!
//! Sources are batches that read nothing. Sources share a home if their outputs meet in one batch. A batch
//! whose inputs come from sources of one home alone belongs to that home too, so none of its inputs travel.
//! Homes are numbered in the order in which sources first meet, so the batches in flight at a time are spread
//! over many homes. Every other batch runs where its chunks are when it starts.

use std::collections::HashSet;

/// Homes while they are assigned.
pub(crate) struct Homes {
    /// By batch: the source whose home it shares, or itself if it is a source or has none.
    leaders: Vec<u32>,
    /// By batch: the home of a source, [`HOMELESS`] or [`ROAMING`].
    homes: Vec<u32>,
    next: u32,
    /// Upper bound on sources per home. Where more sources meet, as in a sum of everything, neighbours share
    /// one.
    share: u32,
}

impl Homes {
    /// Homes for a number of batches.
    pub(crate) fn new(batches: usize) -> Homes {
        let (leaders, homes) = (Vec::with_capacity(batches), Vec::with_capacity(batches));
        Homes { leaders, homes, next: 0, share: (batches / HOMES_MIN).max(1) as u32 }
    }

    /// Adds the next batch. `makers` are the batches that make its inputs; `reads_more` tells that it reads
    /// other chunks too.
    pub(crate) fn meet(&mut self, makers: impl Iterator<Item = usize>, reads_more: bool) {
        let batch = self.leaders.len() as u32;
        assert_eq!(self.leaders.len(), self.homes.len(), "a batch without a home, or two");
        let mut found: Vec<u32> = makers.map(|maker| self.leaders[maker]).collect();
        // Chunks of several tensors name their makers again.
        let mut seen = HashSet::new();
        found.retain(|leader| seen.insert(*leader));
        let home = match *found {
            [] if !reads_more => HOMELESS,
            [leader] if !reads_more => {
                self.leaders.push(leader);
                self.homes.push(ROAMING);
                return;
            }
            _ => ROAMING,
        };
        self.settle(&found);
        let meets_at_home = found.iter().all(|leader| self.home(*leader) == self.home(found[0]));
        let follows = !reads_more && meets_at_home;
        self.leaders.push(found.first().copied().filter(|_| follows).unwrap_or(batch));
        self.homes.push(home);
    }

    /// Assigns homes to those of these sources that have none.
    fn settle(&mut self, leaders: &[u32]) {
        let homeless: Vec<u32> =
            leaders.iter().copied().filter(|leader| self.home(*leader) == HOMELESS).collect();
        let share = self.share.max(if homeless.len() <= OPERANDS_MAX { OPERANDS_MAX as u32 } else { 1 });
        for (inside, &leader) in (0..).zip(&homeless) {
            self.homes[leader as usize] = self.next + inside / share;
        }
        self.next += (homeless.len() as u32).div_ceil(share);
        assert!(self.next < HOMELESS, "more homes than there are numbers");
    }

    fn home(&self, leader: u32) -> u32 {
        self.homes[leader as usize]
    }

    /// The home of each batch, [`ROAMING`] for one without; a source that met no other has its own.
    pub(crate) fn finish(mut self) -> Vec<u32> {
        for home in self.homes.iter_mut().filter(|home| **home == HOMELESS) {
            *home = self.next;
            self.next += 1;
        }
        assert!(!self.homes.contains(&HOMELESS), "a batch is left without a home");
        self.leaders.iter().map(|leader| self.home(*leader)).collect()
    }
}

/// Lower bound on the number of homes, if there are as many sources: enough to balance the load over nodes.
const HOMES_MIN: usize = 64;
/// Upper bound on operands per operation. Up to this number, sources that meet always share a home.
const OPERANDS_MAX: usize = 3;
/// A source that has no home yet.
const HOMELESS: u32 = u32::MAX - 1;
/// The home of a batch that runs where its chunks are.
pub(crate) const ROAMING: u32 = u32::MAX;

#[cfg(test)]
mod tests {
    use super::*;

    const NOTHING: &[usize] = &[];

    /// Homes of batches; `reads` has for each batch those that make its inputs.
    fn homes(reads: &[&[usize]]) -> Vec<u32> {
        let mut homes = Homes::new(reads.len());
        reads.iter().for_each(|makers| homes.meet(makers.iter().copied(), false));
        homes.finish()
    }

    #[test]
    fn what_meets_has_one_home_and_what_is_made_of_it_too() {
        // Two sources, one of them through another batch, then a batch that reads both, and its consumer.
        assert_eq!(homes(&[NOTHING, &[0], NOTHING, &[1, 2], &[3], NOTHING]), [0, 0, 0, 0, 0, 1]);
    }

    #[test]
    fn what_joins_two_homes_roams_and_so_does_what_is_made_of_it() {
        let reads: &[&[usize]] = &[NOTHING, NOTHING, &[0, 1], NOTHING, NOTHING, &[3, 4], &[2, 5], &[6]];
        assert_eq!(homes(reads), [0, 0, 0, 1, 1, 1, ROAMING, ROAMING]);
    }

    #[test]
    fn where_everything_meets_neighbours_stay_together() {
        let mut homes = Homes::new(257);
        (0..256).for_each(|_| homes.meet(std::iter::empty(), false));
        homes.meet(0..256, false);
        let homes = homes.finish();
        assert!((0..256).all(|source| homes[source] == source as u32 / 4), "{homes:?}");
        assert_eq!(homes[256], ROAMING);
    }

    #[test]
    fn what_reads_chunks_of_an_earlier_job_goes_where_they_are() {
        let mut homes = Homes::new(3);
        homes.meet(std::iter::empty(), true);
        homes.meet(std::iter::empty(), false);
        homes.meet([1].into_iter(), true);
        assert_eq!(homes.finish(), [ROAMING, 0, ROAMING]);
    }

    #[test]
    fn sources_of_several_tensors_are_one_source_each() {
        // A fold of two components reads the first of both sources, then the second of both.
        assert_eq!(homes(&[NOTHING, NOTHING, &[0, 1, 0, 1], NOTHING]), [0, 0, 0, 1]);
    }
}
