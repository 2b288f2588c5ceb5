//! The order of the values of a window that moves over values which are all known.

use super::quantile::between;
use arrow::array::PrimitiveArray;
use arrow::datatypes::Float64Type;

/// The values inside, counted by their places among all values: a tree of sums, in which a step takes the
/// logarithm of their number.
pub(super) struct Ranks {
    /// The different values, from small to large.
    values: Vec<f64>,
    /// The place of each row's value among them.
    places: Vec<usize>,
    counts: Vec<usize>,
    /// Sums of counts: that at `i` is of the places from `i - (i & -i)` to `i`, counted from 1.
    sums: Vec<usize>,
    count: usize,
    distinct: usize,
}

impl Ranks {
    pub(super) fn new(column: &PrimitiveArray<Float64Type>) -> Ranks {
        let mut values: Vec<f64> = column.iter().flatten().collect();
        values.sort_unstable_by(f64::total_cmp);
        values.dedup_by(|one, other| one.to_bits() == other.to_bits());
        let place = |value: f64| values.partition_point(|other| other.total_cmp(&value).is_lt());
        let places = column.iter().map(|value| value.map_or(0, place)).collect();
        let (counts, sums) = (vec![0; values.len()], vec![0; values.len() + 1]);
        Ranks { values, places, counts, sums, count: 0, distinct: 0 }
    }

    /// Takes in the value of a row, which has one.
    pub(super) fn push(&mut self, row: usize) {
        let place = self.places[row];
        self.count += 1;
        self.distinct += usize::from(self.counts[place] == 0);
        self.counts[place] += 1;
        self.at_sums(place, |sum| *sum += 1);
    }

    /// Takes it out again.
    pub(super) fn pop(&mut self, row: usize) {
        let place = self.places[row];
        self.count -= 1;
        self.counts[place] -= 1;
        self.distinct -= usize::from(self.counts[place] == 0);
        self.at_sums(place, |sum| *sum -= 1);
    }

    fn at_sums(&mut self, place: usize, change: impl Fn(&mut usize)) {
        let mut at = place + 1;
        while at < self.sums.len() {
            change(&mut self.sums[at]);
            at += at & at.wrapping_neg();
        }
    }

    /// The number of different values.
    pub(super) fn distinct(&self) -> usize {
        self.distinct
    }

    /// The value below which a part of the others lies.
    pub(super) fn quantile(&self, part: f64, interpolation: i64) -> Option<f64> {
        let place = part * self.count.checked_sub(1)? as f64;
        let low = self.nth(place as usize)?;
        let high = self.nth(place as usize + 1).unwrap_or(low);
        Some(between(low, high, place, interpolation))
    }

    /// The value with so many before it.
    fn nth(&self, before: usize) -> Option<f64> {
        if self.count <= before {
            return None;
        }
        let (mut at, mut rest) = (0, before + 1);
        let mut step = self.sums.len().next_power_of_two();
        while 0 < step {
            if let Some(sum) = self.sums.get(at + step).filter(|sum| **sum < rest) {
                rest -= sum;
                at += step;
            }
            step /= 2;
        }
        self.values.get(at).copied()
    }
}
