//! Quotas: bounds on what a job holds at once, in the whole cluster.

use crate::resources::{BadResource, check_name, cpu_units, units};
use crate::{NodeId, Resources, limits};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// The most that a job may hold at once. Resources that it does not name have no bound.
///
/// As a text it is a list: `cpus=4,memory=2GB,licences=1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Quota {
    /// CPUs in units of 1/10 000.
    pub cpu: Option<u64>,
    /// GPUs in units of 1/10 000.
    pub gpu: Option<u64>,
    /// Memory in bytes.
    pub memory: Option<u64>,
    /// Custom resources by name, in units of 1/10 000.
    pub custom: BTreeMap<String, u64>,
}

/// The quota of a job, and the node that keeps its books.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobQuota {
    /// The node of the job's driver.
    pub home: NodeId,
    /// The quota.
    pub quota: Quota,
}

/// The share and the bounds of a job, as its driver gave them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobTerms {
    /// Share of a node that the job gets beside others.
    pub weight: u32,
    /// The most that it may hold at once, if that is bounded.
    pub quota: Option<Quota>,
}

/// Why a text is no quota.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadQuota {
    /// An amount is none.
    #[error("quota: {0}")]
    Amount(#[from] BadResource),
    /// Nothing is bounded.
    #[error("quota: nothing is named; expected such as cpus=4,memory=2GB")]
    Empty,
    /// A part is not of the form `name=amount`.
    #[error("quota: {part:?} is not of the form name=amount")]
    Form {
        /// The part.
        part: String,
    },
    /// A size is none.
    #[error("quota: {size:?} is no size such as 512MiB or 2GB")]
    Size {
        /// The size as it was given.
        size: String,
    },
    /// A resource is named twice.
    #[error("quota: {name} is named twice")]
    Twice {
        /// The resource.
        name: String,
    },
    /// The text is too long for the record of a job.
    #[error("quota: a text of {bytes} bytes, the limit is {max}", max = limits::QUOTA_BYTES_MAX)]
    TooLong {
        /// Bytes of the quota as a text.
        bytes: usize,
    },
    /// Too many custom resources.
    #[error("quota: {count} custom resources, the limit is {max}", max = limits::RESOURCE_NAMES_MAX)]
    TooMany {
        /// Number of resources given.
        count: usize,
    },
}

impl Quota {
    /// The part of a set of resources that this quota bounds.
    #[must_use]
    pub fn part(&self, of: &Resources) -> Resources {
        let bounded = |bound: Option<u64>, amount: u64| if bound.is_some() { amount } else { 0 };
        let custom = of.custom.iter().filter(|(name, _)| self.custom.contains_key(*name));
        Resources {
            cpu: bounded(self.cpu, of.cpu),
            gpu: bounded(self.gpu, of.gpu),
            memory: bounded(self.memory, of.memory),
            custom: custom.map(|(name, amount)| (name.clone(), *amount)).collect(),
        }
    }

    /// All that it allows.
    #[must_use]
    pub fn all(&self) -> Resources {
        Resources {
            cpu: self.cpu.unwrap_or(0),
            gpu: self.gpu.unwrap_or(0),
            memory: self.memory.unwrap_or(0),
            custom: self.custom.clone(),
        }
    }

    /// Why a demand can never be met, if it is more than the quota allows.
    #[must_use]
    pub fn refuses(&self, demand: &Resources) -> Option<String> {
        let part = self.part(demand);
        (!self.all().fits(&part)).then(|| format!("the quota of the job is {self}, and {part} is needed"))
    }

    /// The bounds of both quotas together.
    #[must_use]
    pub fn and(&self, other: &Self) -> Self {
        let least = |a: Option<u64>, b: Option<u64>| a.into_iter().chain(b).min();
        let mut custom = self.custom.clone();
        for (name, amount) in &other.custom {
            let bound = custom.entry(name.clone()).or_insert(*amount);
            *bound = (*bound).min(*amount);
        }
        Self {
            cpu: least(self.cpu, other.cpu),
            gpu: least(self.gpu, other.gpu),
            memory: least(self.memory, other.memory),
            custom,
        }
    }

    /// Checks the number of its custom resources, their names, and its length as a text.
    ///
    /// # Errors
    /// [`BadQuota`] says what is wrong.
    pub fn check(&self) -> Result<(), BadQuota> {
        if limits::RESOURCE_NAMES_MAX < self.custom.len() {
            return Err(BadQuota::TooMany { count: self.custom.len() });
        }
        self.all().check()?;
        let bytes = self.to_string().len();
        if limits::QUOTA_BYTES_MAX < bytes { Err(BadQuota::TooLong { bytes }) } else { Ok(()) }
    }

    fn set(&mut self, name: &str, amount: &str) -> Result<(), BadQuota> {
        let number = || {
            let shown = || BadQuota::Form { part: format!("{name}={amount}") };
            amount.parse::<f64>().map_err(|_| shown())
        };
        let before = match name {
            "cpus" => self.cpu.replace(cpu_units("CPU", number()?)?),
            "gpus" => self.gpu.replace(units("GPU", number()?)?),
            "memory" => {
                let size = || BadQuota::Size { size: amount.to_owned() };
                self.memory.replace(bytes(amount).ok_or_else(size)?)
            }
            _ => {
                check_name(name)?;
                self.custom.insert(name.to_owned(), units(name, number()?)?)
            }
        };
        match before {
            None => Ok(()),
            Some(_) => Err(BadQuota::Twice { name: name.to_owned() }),
        }
    }
}

impl FromStr for Quota {
    type Err = BadQuota;

    fn from_str(text: &str) -> Result<Self, BadQuota> {
        let mut quota = Self::default();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            let (name, amount) =
                part.split_once('=').ok_or_else(|| BadQuota::Form { part: part.to_owned() })?;
            quota.set(name.trim(), amount.trim())?;
        }
        if quota == Self::default() {
            return Err(BadQuota::Empty);
        }
        quota.check().map(|()| quota)
    }
}

/// As [`Quota::from_str`] reads it.
impl fmt::Display for Quota {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whole = |units: u64| (units as f64 / Resources::UNIT as f64).to_string();
        let builtin = [
            ("cpus", self.cpu.map(whole)),
            ("gpus", self.gpu.map(whole)),
            ("memory", self.memory.map(|bytes| bytes.to_string())),
        ];
        let builtin = builtin.into_iter().filter_map(|(name, amount)| Some((name.to_owned(), amount?)));
        let custom = self.custom.iter().map(|(name, amount)| (name.clone(), whole(*amount)));
        let parts: Vec<_> = builtin.chain(custom).map(|(name, amount)| format!("{name}={amount}")).collect();
        f.write_str(&parts.join(","))
    }
}

/// Bytes of a size such as `512MiB`.
fn bytes(text: &str) -> Option<u64> {
    let end = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let unit = match suffix {
        "" | "B" => 1,
        "KB" => 1_000,
        "MB" => 1_000_000,
        "GB" => 1_000_000_000,
        "TB" => 1_000_000_000_000,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        "TiB" => 1 << 40,
        _ => return None,
    };
    number.parse::<u64>().ok()?.checked_mul(unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quota(text: &str) -> Quota {
        text.parse().unwrap()
    }

    #[test]
    fn a_quota_is_read_as_it_is_written() {
        let all = quota("cpus=1.5, gpus=2, memory=2GB, licences=3");
        assert_eq!((all.cpu, all.gpu, all.memory), (Some(15_000), Some(20_000), Some(2_000_000_000)));
        assert_eq!(all.to_string(), "cpus=1.5,gpus=2,memory=2000000000,licences=3");
        assert_eq!(quota(&all.to_string()), all);
        for (bad, says) in [
            ("", "nothing is named"),
            ("cpus", "name=amount"),
            ("cpus=many", "name=amount"),
            ("cpus=-1", "from 0 to"),
            ("cpus=1,cpus=2", "twice"),
            ("memory=2.5GB", "no size"),
            ("CPU=1", "reserved"),
            ("a b=1", "printable"),
        ] {
            let error = bad.parse::<Quota>().unwrap_err().to_string();
            assert!(error.contains(says), "{bad}: {error}");
        }
    }

    #[test]
    fn a_quota_fits_the_record_of_a_job() {
        // Each part has 16 bytes, with its comma.
        let parts = |count: usize| (0..count).map(|n| format!("licence_{n:04}=17,")).collect::<String>();
        assert_eq!(parts(1).len(), 16);
        let longest = quota(&parts(256));
        assert_eq!(longest.to_string().len(), limits::QUOTA_BYTES_MAX - 1);
        let longer = Quota { cpu: Some(0), ..longest };
        assert_eq!(longer.check(), Err(BadQuota::TooLong { bytes: limits::QUOTA_BYTES_MAX + 6 }));
        assert!(longer.to_string().parse::<Quota>().unwrap_err().to_string().contains("the limit is 4096"));
    }

    #[test]
    fn only_what_is_named_is_bounded() {
        let two = quota("cpus=2,licences=1");
        let mut demand = Resources { memory: 1 << 40, ..Resources::cpus(2.0).unwrap() };
        assert_eq!(two.refuses(&demand), None);
        assert_eq!(two.part(&demand), Resources::cpus(2.0).unwrap());
        demand.set_custom("licences", 2.0).unwrap();
        assert!(two.refuses(&demand).unwrap().contains("cpus=2,licences=1"));
        let none = quota("gpus=0");
        assert!(none.refuses(&Resources { gpu: 1, ..Resources::default() }).is_some());
    }

    #[test]
    fn of_two_quotas_the_smaller_bounds_hold() {
        let both = quota("cpus=4,memory=1GB").and(&quota("cpus=2,licences=1"));
        assert_eq!(both, quota("cpus=2,memory=1GB,licences=1"));
    }
}
