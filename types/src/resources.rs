//! Amounts of what a node has and a task needs.
//!
//! CPU, GPU and custom amounts are fixed-point numbers of 1/10 000, so that sums never drift: four tasks of
//! 0.25 CPU fill one CPU exactly. Memory is in bytes and is an estimate for admission, not a reservation of
//! pages.

use crate::limits;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// A set of resource amounts: what a task needs, or what a node has in total or free.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Resources {
    /// CPUs in units of 1/10 000.
    pub cpu: u64,
    /// GPUs in units of 1/10 000.
    pub gpu: u64,
    /// Memory in bytes.
    pub memory: u64,
    /// Custom resources by name, in units of 1/10 000.
    pub custom: BTreeMap<String, u64>,
}

/// Why an amount or a name of a resource was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error, Serialize, Deserialize)]
pub enum BadResource {
    /// Negative, not a number, infinite, or too large.
    #[error("resource {name}: amount {amount} is not a number from 0 to {max}")]
    Amount {
        /// Name of the resource.
        name: String,
        /// The amount as it was given, in few digits.
        amount: String,
        /// The largest amount.
        max: u64,
    },
    /// Below the smallest amount that is counted, so that it would count as nothing.
    #[error("resource {name}: amount {amount} is less than 1/{unit}, the smallest one", unit = Resources::UNIT)]
    TooFine {
        /// Name of the resource.
        name: String,
        /// The amount as it was given, in few digits.
        amount: String,
    },
    /// Empty, too long, or with characters outside printable ASCII.
    #[error(
        "resource name {name:?} must be 1 to {max} printable ASCII characters",
        max = limits::RESOURCE_NAME_BYTES_MAX
    )]
    Name {
        /// The name, cut to a readable length.
        name: String,
    },
    /// A custom resource may not be called like a built-in one.
    #[error("resource name {name} is reserved: use the option of that name instead")]
    Reserved {
        /// The reserved name.
        name: String,
    },
    /// Too many names in one set.
    #[error("{count} custom resources in one request, the limit is {max}", max = limits::RESOURCE_NAMES_MAX)]
    TooMany {
        /// Number of resources given.
        count: usize,
    },
}

impl Resources {
    /// Units in one whole CPU, GPU or custom resource.
    pub const UNIT: u64 = 10_000;

    /// A set of `cpus` CPUs and nothing else.
    ///
    /// # Errors
    /// [`BadResource::Amount`] for an amount that is negative, not finite or too large,
    /// [`BadResource::TooFine`] for one that would count as nothing.
    pub fn cpus(cpus: f64) -> Result<Self, BadResource> {
        Ok(Self { cpu: cpu_units("CPU", cpus)?, ..Self::default() })
    }

    /// Sets a custom resource.
    ///
    /// # Errors
    /// [`BadResource`] for a reserved or malformed name, a bad amount or too many names.
    pub fn set_custom(&mut self, name: &str, amount: f64) -> Result<(), BadResource> {
        check_name(name)?;
        self.custom.insert(name.to_owned(), units(name, amount)?);
        if self.custom.len() > limits::RESOURCE_NAMES_MAX {
            return Err(BadResource::TooMany { count: self.custom.len() });
        }
        Ok(())
    }

    /// Checks a set that came from outside, as if its amounts were given by a user.
    ///
    /// # Errors
    /// [`BadResource`] for an amount above the limit, a reserved or malformed name, or too many names.
    pub fn check(&self) -> Result<(), BadResource> {
        let max = limits::RESOURCE_AMOUNT_MAX as u64;
        let built_in = [("CPU", self.cpu), ("GPU", self.gpu)];
        let custom = self.custom.iter().map(|(name, units)| (name.as_str(), *units));
        let too_much = built_in.into_iter().chain(custom).find(|(_, units)| max * Self::UNIT < *units);
        if let Some((name, units)) = too_much {
            let amount = format!("{:e}", whole(units));
            return Err(BadResource::Amount { name: cut(name), amount, max });
        }
        if limits::RESOURCE_MEMORY_MAX < self.memory {
            let (name, amount) = ("memory in bytes".to_owned(), self.memory.to_string());
            return Err(BadResource::Amount { name, amount, max: limits::RESOURCE_MEMORY_MAX });
        }
        if limits::RESOURCE_NAMES_MAX < self.custom.len() {
            return Err(BadResource::TooMany { count: self.custom.len() });
        }
        self.custom.keys().try_for_each(|name| check_name(name))
    }

    /// Whether `demand` can be taken out of this set.
    #[must_use]
    pub fn fits(&self, demand: &Self) -> bool {
        demand.cpu <= self.cpu
            && demand.gpu <= self.gpu
            && demand.memory <= self.memory
            && demand
                .custom
                .iter()
                .all(|(name, n)| *n == 0 || self.custom.get(name).is_some_and(|have| n <= have))
    }

    /// Takes `demand` out of this set; false and unchanged if it does not fit.
    #[must_use]
    pub fn take(&mut self, demand: &Self) -> bool {
        if !self.fits(demand) {
            return false;
        }
        self.cpu -= demand.cpu;
        self.gpu -= demand.gpu;
        self.memory -= demand.memory;
        for (name, n) in &demand.custom {
            if let Some(have) = self.custom.get_mut(name) {
                *have -= n;
            }
        }
        true
    }

    /// Puts back what [`Resources::take`] took.
    pub fn give(&mut self, demand: &Self) {
        self.cpu += demand.cpu;
        self.gpu += demand.gpu;
        self.memory += demand.memory;
        for (name, n) in &demand.custom {
            if *n > 0 {
                *self.custom.entry(name.clone()).or_default() += n;
            }
        }
    }

    /// The rest of this set when as much of `what` as there is has been taken out.
    #[must_use]
    pub fn without(&self, what: &Self) -> Self {
        let left = |name: &String, n: &u64| n.saturating_sub(what.custom.get(name).copied().unwrap_or(0));
        Self {
            cpu: self.cpu.saturating_sub(what.cpu),
            gpu: self.gpu.saturating_sub(what.gpu),
            memory: self.memory.saturating_sub(what.memory),
            custom: self.custom.iter().map(|(name, n)| (name.clone(), left(name, n))).collect(),
        }
    }

    /// Whether all amounts are zero.
    #[must_use]
    pub fn is_nothing(&self) -> bool {
        self.cpu == 0 && self.gpu == 0 && self.memory == 0 && self.custom.values().all(|n| *n == 0)
    }

    /// The first resource of `demand` that this set can never satisfy, with what is needed and what there is.
    #[must_use]
    pub fn lacking(&self, demand: &Self) -> Option<(String, u64, u64)> {
        let builtin = [
            ("CPU", demand.cpu, self.cpu),
            ("GPU", demand.gpu, self.gpu),
            ("memory", demand.memory, self.memory),
        ];
        builtin
            .into_iter()
            .find(|(_, need, have)| need > have)
            .map(|(name, need, have)| (name.to_owned(), need, have))
            .or_else(|| {
                demand.custom.iter().find_map(|(name, need)| {
                    let have = self.custom.get(name).copied().unwrap_or(0);
                    (*need > have).then(|| (name.clone(), *need, have))
                })
            })
    }

    /// Only the CPU part, which a blocked task lends to others.
    #[must_use]
    pub fn cpu_part(&self) -> Self {
        Self { cpu: self.cpu, ..Self::default() }
    }

    /// Use of a node's fullest resource, in 1/1000. `self` is the free part of `total`.
    #[must_use]
    pub fn used_permille(&self, total: &Self) -> u64 {
        let used = |free: u64, all: u64| ((all - free.min(all)) * 1000).checked_div(all).unwrap_or(0);
        let custom =
            total.custom.iter().map(|(name, all)| used(self.custom.get(name).copied().unwrap_or(0), *all));
        [used(self.cpu, total.cpu), used(self.gpu, total.gpu), used(self.memory, total.memory)]
            .into_iter()
            .chain(custom)
            .max()
            .unwrap_or(0)
    }
}

impl fmt::Display for Resources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if self.cpu > 0 {
            parts.push(format!("{} CPU", whole(self.cpu)));
        }
        if self.gpu > 0 {
            parts.push(format!("{} GPU", whole(self.gpu)));
        }
        if self.memory > 0 {
            parts.push(format!("{} MiB memory", self.memory >> 20));
        }
        parts.extend(self.custom.iter().map(|(name, n)| format!("{} {name}", whole(*n))));
        if parts.is_empty() { write!(f, "nothing") } else { write!(f, "{}", parts.join(", ")) }
    }
}

fn whole(units: u64) -> f64 {
    units as f64 / Resources::UNIT as f64
}

/// Fixed-point units of an amount.
///
/// # Errors
/// [`BadResource::Amount`] if it is negative, not finite or above the limit, [`BadResource::TooFine`] if it
/// is more than nothing and would count as nothing.
pub fn units(name: &str, amount: f64) -> Result<u64, BadResource> {
    units_up_to(limits::RESOURCE_AMOUNT_MAX, name, amount)
}

/// The same for CPUs of a node.
///
/// # Errors
/// [`BadResource::Amount`] if it is negative, not finite or more than any node has, [`BadResource::TooFine`]
/// as above.
pub fn cpu_units(name: &str, amount: f64) -> Result<u64, BadResource> {
    units_up_to(limits::CPU_COUNT_MAX, name, amount)
}

fn units_up_to(max: f64, name: &str, amount: f64) -> Result<u64, BadResource> {
    let units = (amount * Resources::UNIT as f64).round();
    let is_valid = amount.is_finite() && (0.0..=max).contains(&amount);
    if is_valid && (amount == 0.0 || 1.0 <= units) {
        return Ok(units as u64);
    }
    let plain = amount.to_string();
    let amount = if plain.len() <= AMOUNT_DIGITS_MAX { plain } else { format!("{amount:e}") };
    if is_valid {
        return Err(BadResource::TooFine { name: cut(name), amount });
    }
    Err(BadResource::Amount { name: cut(name), amount, max: max as u64 })
}

/// Checks the name of a custom resource.
///
/// # Errors
/// [`BadResource::Name`] or [`BadResource::Reserved`].
pub fn check_name(name: &str) -> Result<(), BadResource> {
    if ["CPU", "GPU", "MEMORY"].contains(&name.to_ascii_uppercase().as_str()) {
        return Err(BadResource::Reserved { name: name.to_owned() });
    }
    let sized = (1..=limits::RESOURCE_NAME_BYTES_MAX).contains(&name.len());
    if sized && name.bytes().all(|b| b.is_ascii_graphic()) {
        Ok(())
    } else {
        Err(BadResource::Name { name: cut(name) })
    }
}

/// Longer amounts are written with an exponent.
const AMOUNT_DIGITS_MAX: usize = 16;

fn cut(name: &str) -> String {
    name.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn four_quarters_fill_one_cpu_exactly() {
        let mut free = Resources::cpus(1.0).unwrap();
        let quarter = Resources::cpus(0.25).unwrap();
        for _ in 0..4 {
            assert!(free.take(&quarter));
        }
        assert!(!free.take(&quarter));
        assert_eq!(free, Resources::default());
        free.give(&quarter);
        assert!(free.fits(&quarter));
    }

    #[test]
    fn bad_amounts_and_names_are_refused() {
        for bad in [-1.0, f64::NAN, f64::INFINITY, 1e30] {
            assert!(matches!(Resources::cpus(bad), Err(BadResource::Amount { .. })));
        }
        for bad in [1e-5, 0.000_049, f64::MIN_POSITIVE] {
            assert!(matches!(Resources::cpus(bad), Err(BadResource::TooFine { .. })), "{bad}");
        }
        assert_eq!([0.0, 0.0001].map(|fine| Resources::cpus(fine).unwrap().cpu), [0, 1]);
        let mut set = Resources::default();
        assert!(matches!(set.set_custom("CPU", 1.0), Err(BadResource::Reserved { .. })));
        assert!(matches!(set.set_custom("a\nb", 1.0), Err(BadResource::Name { .. })));
        assert!(matches!(set.set_custom(&"x".repeat(10_240), 1.0), Err(BadResource::Name { .. })));
        assert!(matches!(set.set_custom("", 1.0), Err(BadResource::Name { .. })));
        for i in 0..limits::RESOURCE_NAMES_MAX {
            set.set_custom(&format!("r{i}"), 1.0).unwrap();
        }
        assert!(matches!(set.set_custom("one-more", 1.0), Err(BadResource::TooMany { count: 257 })));
    }

    #[test]
    fn every_amount_from_outside_has_a_bound() {
        let much = (limits::RESOURCE_AMOUNT_MAX as u64 + 1) * Resources::UNIT;
        let none = Resources::default;
        let amounts = [
            Resources { cpu: much, ..none() },
            Resources { gpu: much, ..none() },
            Resources { memory: limits::RESOURCE_MEMORY_MAX + 1, ..none() },
            Resources { memory: u64::MAX, ..none() },
            Resources { custom: [("tpu".to_owned(), much)].into(), ..none() },
        ];
        for amount in amounts {
            assert!(matches!(amount.check(), Err(BadResource::Amount { .. })), "{amount:?}");
        }
        Resources { memory: limits::RESOURCE_MEMORY_MAX, ..none() }.check().unwrap();
    }

    #[test]
    fn an_unknown_resource_is_named() {
        let mut need = Resources::cpus(1.0).unwrap();
        need.set_custom("tpu", 2.0).unwrap();
        let lacking = Resources::cpus(4.0).unwrap().lacking(&need);
        assert_eq!(lacking, Some(("tpu".to_owned(), 20_000, 0)));
    }
}
