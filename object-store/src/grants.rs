//! The ranges that a client may write to.
//!
//! Grants of one client may overlap. An object that was stored in an older region can be freed, and its bytes
//! granted anew, while the client has not retired that region: the older grant must not take the newer one
//! with it when it ends.

use crate::ranges::RangeSet;

/// Grants that have not ended.
#[derive(Debug, Default)]
pub(crate) struct Grants {
    /// Each of them, from start to end; few.
    living: Vec<(u64, u64)>,
    /// The bytes of all of them.
    writable: RangeSet,
}

impl Grants {
    /// Adds a grant.
    pub(crate) fn insert(&mut self, start: u64, end: u64) {
        self.living.push((start, end));
        self.writable.insert(start, end);
    }

    /// Whether all of a range may be written.
    pub(crate) fn contains(&self, start: u64, end: u64) -> bool {
        self.writable.contains(start, end)
    }

    /// The bytes that are not writable any more once the grant of a range, or a part of one, has ended.
    pub(crate) fn lost(&self, start: u64, end: u64) -> RangeSet {
        let ends = self.holder(start, end);
        let mut lost = RangeSet::default();
        lost.insert(start, end);
        for (_, other) in self.living.iter().enumerate().filter(|(at, _)| Some(*at) != ends) {
            lost.remove(other.0.max(start), other.1.min(end));
        }
        lost
    }

    /// Ends the grant of a range, or a part of one.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        for (from, to) in self.lost(start, end).iter() {
            self.writable.remove(from, to);
        }
        if let Some(at) = self.holder(start, end) {
            let (from, to) = self.living.remove(at);
            let rest = [(from, start), (end, to)];
            self.living.extend(rest.into_iter().filter(|(from, to)| from < to));
        }
    }

    /// The oldest grant of exactly this range, or else of one that has it inside.
    fn holder(&self, start: u64, end: u64) -> Option<usize> {
        let same = self.living.iter().position(|grant| *grant == (start, end));
        same.or_else(|| self.living.iter().position(|(from, to)| *from <= start && end <= *to))
    }
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_byte_is_writable_while_a_grant_has_it(
            steps in prop::collection::vec((any::<bool>(), 0..32_u64, 1..16_u64), 0..40),
        ) {
            let mut grants = Grants::default();
            let mut living: Vec<(u64, u64)> = Vec::new();
            for (insert, start, len) in steps {
                if insert || living.is_empty() {
                    grants.insert(start, start + len);
                    living.push((start, start + len));
                } else {
                    let (from, to) = living.remove(start as usize % living.len());
                    grants.remove(from, to);
                }
                for byte in 0..48 {
                    let is_granted = living.iter().any(|(from, to)| (*from..*to).contains(&byte));
                    prop_assert_eq!(grants.contains(byte, byte + 1), is_granted, "byte {}", byte);
                }
            }
        }
    }

    #[test]
    fn a_part_of_a_grant_can_end() {
        let mut grants = Grants::default();
        grants.insert(0, 10);
        grants.remove(4, 6);
        assert!(grants.contains(0, 4) && grants.contains(6, 10) && !grants.contains(4, 5));
        grants.remove(6, 10);
        grants.remove(0, 4);
        assert!(grants.living.is_empty() && !grants.writable.overlaps(0, 10));
    }
}
