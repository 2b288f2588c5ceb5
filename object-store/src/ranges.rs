//! A set of bytes, stored as the fewest possible ranges.

use std::collections::BTreeMap;

/// Disjoint, non-adjacent ranges, by start.
#[derive(Debug, Default)]
pub(crate) struct RangeSet {
    end_by_start: BTreeMap<u64, u64>,
}

impl RangeSet {
    /// Adds a range, which may overlap the set.
    pub(crate) fn insert(&mut self, mut start: u64, mut end: u64) {
        assert!(start <= end, "range {start}..{end} is reversed");
        if start == end {
            return;
        }
        while let Some((&s, &e)) = self.end_by_start.range(..=end).next_back() {
            if e < start {
                break;
            }
            self.end_by_start.remove(&s);
            start = start.min(s);
            end = end.max(e);
        }
        let before = self.end_by_start.insert(start, end);
        assert!(before.is_none(), "two ranges begin at {start}");
    }

    /// Removes a range, which may have bytes outside the set.
    pub(crate) fn remove(&mut self, start: u64, end: u64) {
        if end <= start {
            return;
        }
        while let Some((&s, &e)) = self.end_by_start.range(..end).next_back() {
            if e <= start {
                break;
            }
            assert!(s < e, "an empty range is kept at {s}");
            self.end_by_start.remove(&s);
            if end < e {
                self.end_by_start.insert(end, e);
            }
            if s < start {
                self.end_by_start.insert(s, start);
            }
        }
    }

    /// Whether all of a range is in.
    pub(crate) fn contains(&self, start: u64, end: u64) -> bool {
        end <= start || self.end_by_start.range(..=start).next_back().is_some_and(|(_, &e)| end <= e)
    }

    /// Number of bytes of the given range that are in the set.
    pub(crate) fn bytes_within(&self, start: u64, end: u64) -> u64 {
        if end <= start {
            return 0;
        }
        let before = self.end_by_start.range(..=start).next_back();
        let reaching_in = before.map_or(0, |(_, &e)| e.min(end).saturating_sub(start));
        let inside = self.end_by_start.range(start + 1..end).map(|(&s, &e)| e.min(end) - s);
        let bytes = reaching_in + inside.sum::<u64>();
        assert!(bytes <= end - start, "ranges overlap within {start}..{end}");
        bytes
    }

    /// Its ranges in order; they do not touch.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, u64)> {
        self.end_by_start.iter().map(|(start, end)| (*start, *end))
    }

    /// Whether any of a range is in.
    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        start < end && self.end_by_start.range(..end).next_back().is_some_and(|(_, &e)| start < e)
    }
}

#[cfg(not(models))]
#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn behaves_as_a_set_of_bytes(
            steps in prop::collection::vec((any::<bool>(), 0..64_u64, 0..24_u64), 0..60),
            probe in (0..64_u64, 0..24_u64),
        ) {
            let mut ranges = RangeSet::default();
            let mut model = [false; 96];
            for (insert, start, len) in steps {
                if insert {
                    ranges.insert(start, start + len);
                } else {
                    ranges.remove(start, start + len);
                }
                model[start as usize..(start + len) as usize].fill(insert);
                let (start, end) = (probe.0, probe.0 + probe.1);
                let inside = &model[start as usize..end as usize];
                prop_assert_eq!(ranges.contains(start, end), inside.iter().all(|b| *b));
                prop_assert_eq!(ranges.overlaps(start, end), inside.iter().any(|b| *b));
                let count = inside.iter().filter(|b| **b).count();
                prop_assert_eq!(ranges.bytes_within(start, end), count as u64);
            }
            let count = model.windows(2).filter(|w| !w[0] && w[1]).count() + usize::from(model[0]);
            prop_assert_eq!(ranges.end_by_start.len(), count);
        }
    }
}
