//! GPUs by number: the devices that a lease has.
//!
//! A lease with GPUs has its devices from the moment in which it is placed until its resources are free
//! again, so two leases never share a whole one. A demand takes as many whole devices as it names, and the
//! rest of one that others may share. So two halves of different devices are no room for a whole one: the
//! free GPUs of a node are told as the largest demand that can be placed, and not as their sum.
//!
//! A bundle has devices of its own, of which the leases inside take.

use std::collections::BTreeMap;
use tharsis_types::Resources;

/// GPUs of a node that have numbers. One that offers more has fake ones, which are only counted.
const NUMBERED_MAX: u64 = 1024;

/// A part of a device: its number, and units of 1/10 000.
pub(super) type Part = (u32, u64);
/// Parts of several devices.
pub(super) type Parts = Vec<Part>;

/// Devices of a node or of a bundle, and the free part of each.
#[derive(Debug, Default)]
pub(super) struct Devices(BTreeMap<u32, u64>);

/// Numbers of the devices of which a lease has parts.
pub(super) fn numbers(parts: &[Part]) -> Vec<u32> {
    parts.iter().map(|(device, _)| *device).collect()
}

impl Devices {
    /// The devices of a node that offers so many GPUs; the last one may be a part.
    pub(super) fn of_node(units: u64) -> Self {
        if NUMBERED_MAX * Resources::UNIT < units {
            return Self::default();
        }
        let (whole, rest) = (units / Resources::UNIT, units % Resources::UNIT);
        let all = std::iter::repeat_n(Resources::UNIT, whole as usize).chain((0 < rest).then_some(rest));
        Self((0..).zip(all).collect())
    }

    /// The devices of a bundle that has these parts.
    pub(super) fn of_bundle(parts: &[Part]) -> Self {
        Self(parts.iter().copied().collect())
    }

    /// Whether GPUs are only counted here, or there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The largest demand that can be placed: all whole devices, and the largest part of another one.
    pub(super) fn largest(&self) -> u64 {
        let whole = self.0.values().filter(|free| **free == Resources::UNIT).count() as u64;
        let part = self.0.values().filter(|free| **free != Resources::UNIT).max();
        whole * Resources::UNIT + part.copied().unwrap_or(0)
    }

    /// All free parts together.
    pub(super) fn sum(&self) -> u64 {
        self.0.values().sum()
    }

    /// Takes devices for a demand; `None` and unchanged if there is no room. The rest of a device goes where
    /// least is left, so that whole ones stay whole.
    pub(super) fn take(&mut self, units: u64) -> Option<Parts> {
        if self.largest() < units {
            return None;
        }
        let is_whole = |free: u64| free == Resources::UNIT;
        let whole = self.0.iter().filter(|(_, free)| is_whole(**free)).map(|(device, _)| *device);
        let count = (units / Resources::UNIT) as usize;
        let mut parts: Parts = whole.take(count).map(|device| (device, Resources::UNIT)).collect();
        let rest = units % Resources::UNIT;
        if 0 < rest {
            let taken = |device: &u32| parts.iter().any(|(of, _)| of == device);
            let fits = self.0.iter().filter(|(device, free)| rest <= **free && !taken(device));
            let device = fits.min_by_key(|(device, free)| (**free, **device)).map(|(device, _)| *device)?;
            parts.push((device, rest));
        }
        for (device, part) in &parts {
            if let Some(free) = self.0.get_mut(device) {
                *free -= part;
            }
        }
        Some(parts)
    }

    /// Takes parts that somebody holds.
    pub(super) fn hold(&mut self, parts: &[Part]) {
        for (device, part) in parts {
            if let Some(free) = self.0.get_mut(device) {
                *free = free.saturating_sub(*part);
            }
        }
    }

    /// Takes back what [`Devices::take`] gave.
    pub(super) fn give(&mut self, parts: &[Part]) {
        for (device, part) in parts {
            let free = self.0.get_mut(device);
            assert!(free.is_some(), "GPU {device} comes back and is not from here");
            if let Some(free) = free {
                *free += part;
                assert!(*free <= Resources::UNIT, "more of GPU {device} comes back than was taken");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ONE: u64 = Resources::UNIT;

    #[test]
    fn fractions_share_a_device_and_whole_ones_are_never_shared() {
        let mut devices = Devices::of_node(3 * ONE);
        assert_eq!(devices.take(ONE / 2), Some(vec![(0, ONE / 2)]));
        assert_eq!(devices.take(ONE / 4), Some(vec![(0, ONE / 4)]), "beside the other");
        assert_eq!(devices.take(ONE), Some(vec![(1, ONE)]));
        assert_eq!(devices.take(3 * ONE / 2), None, "no device has half of it free");
        assert_eq!(devices.take(ONE + ONE / 4), Some(vec![(2, ONE), (0, ONE / 4)]));
        assert_eq!((devices.largest(), devices.take(1)), (0, None));
        devices.give(&[(0, ONE / 2)]);
        devices.give(&[(1, ONE)]);
        assert_eq!((devices.largest(), devices.sum()), (ONE + ONE / 2, ONE + ONE / 2));
    }

    #[test]
    fn halves_of_two_devices_are_no_room_for_a_whole_one() {
        let mut devices = Devices::of_node(2 * ONE);
        let large = [devices.take(3 * ONE / 5), devices.take(3 * ONE / 5)];
        assert_eq!(large, [Some(vec![(0, 3 * ONE / 5)]), Some(vec![(1, 3 * ONE / 5)])]);
        assert_eq!((devices.sum(), devices.largest()), (4 * ONE / 5, 2 * ONE / 5));
        assert_eq!(devices.take(ONE / 2), None);
    }

    #[test]
    fn a_part_of_a_device_and_very_many_are_offered_too() {
        let mut part = Devices::of_node(ONE + ONE / 2);
        assert_eq!(part.take(ONE + ONE / 2), Some(vec![(0, ONE), (1, ONE / 2)]));
        assert!(Devices::of_node(u64::MAX).is_empty(), "they are counted only");
    }

    proptest! {
        /// However leases come and go: the largest demand is exactly the largest one that finds room.
        #[test]
        fn the_largest_demand_is_the_largest_one_that_fits(demands in prop::collection::vec((1..25_000_u64, 0..4_usize), 1..40)) {
            let mut devices = Devices::of_node(4 * ONE + 3_000);
            let mut held: Vec<Parts> = Vec::new();
            for (units, leave) in demands {
                let largest = devices.largest();
                let taken = devices.take(units);
                prop_assert_eq!(taken.is_some(), units <= largest);
                if let Some(parts) = taken {
                    prop_assert_eq!(parts.iter().map(|(_, part)| part).sum::<u64>(), units);
                    held.push(parts);
                }
                if leave == 0 && !held.is_empty() {
                    devices.give(&held.swap_remove(units as usize % held.len()));
                }
                for device in 0..4 {
                    let of: Vec<_> = held.iter().flatten().filter(|(n, _)| *n == device).collect();
                    prop_assert!(of.len() < 2 || of.iter().all(|(_, part)| *part < ONE), "a whole device is shared");
                }
            }
            held.iter().for_each(|parts| devices.give(parts));
            prop_assert_eq!(devices.sum(), 4 * ONE + 3_000);
        }
    }
}
