//! GPUs as programs name them.
//!
//! The machine numbers the GPUs that a node offers; CUDA has names for them. A worker process sees the
//! devices of its lease and no others: they stand in its environment before it begins, since libraries read
//! it once. A node that was itself given some devices only hands on those. Where a node offers no GPUs,
//! nobody deals them out, and workers see what the node sees.

use tharsis_types::{Failure, FailureKind, Resources};

/// The variable that names the devices that a process may use.
pub const GPUS_VARIABLE: &str = "CUDA_VISIBLE_DEVICES";

/// Names of the GPUs of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GpuNames {
    /// The devices that the node was given; none if it may use all.
    given: Vec<String>,
    is_offering: bool,
}

impl GpuNames {
    /// The names of the GPUs that a node offers, which runs in this process.
    ///
    /// # Errors
    /// `InvalidArgument` if it offers more than its own environment names.
    pub fn of_node(resources: &Resources) -> Result<Self, Failure> {
        let given = std::env::var(GPUS_VARIABLE).unwrap_or_default();
        Self::new(&given, resources.gpu)
    }

    fn new(given: &str, units: u64) -> Result<Self, Failure> {
        // CUDA reads up to the first name that is none.
        let names = given.split(',').map(str::trim).take_while(|name| !name.is_empty() && *name != "-1");
        let given: Vec<_> = names.map(str::to_owned).collect();
        let offered = units.div_ceil(Resources::UNIT);
        if !given.is_empty() && (given.len() as u64) < offered {
            let text = format!("{offered} GPUs are offered, and {GPUS_VARIABLE} names {}", given.len());
            return Err(Failure::new(FailureKind::InvalidArgument, text));
        }
        Ok(Self { given, is_offering: 0 < units })
    }

    /// The names of some of the devices.
    #[must_use]
    pub fn names(&self, gpus: &[u32]) -> Vec<String> {
        let name = |gpu: &u32| self.given.get(*gpu as usize).cloned().unwrap_or_else(|| gpu.to_string());
        gpus.iter().map(name).collect()
    }

    /// The variable of a process that may use these devices; none if it is left as it is.
    #[must_use]
    pub fn visible(&self, gpus: &[u32]) -> Option<String> {
        self.is_offering.then(|| self.names(gpus).join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TWO: u64 = 2 * Resources::UNIT;

    #[test]
    fn a_process_sees_the_devices_of_its_lease_and_none_without_a_lease_of_some() {
        let names = GpuNames::new("", TWO).unwrap();
        assert_eq!(names.visible(&[1]).as_deref(), Some("1"));
        assert_eq!(names.visible(&[0, 1]).as_deref(), Some("0,1"));
        assert_eq!(names.visible(&[]).as_deref(), Some(""), "a task without GPUs sees none");
        assert_eq!(
            GpuNames::new("3", 0).unwrap().visible(&[]),
            None,
            "a node that offers none deals none out"
        );
    }

    #[test]
    fn a_node_hands_on_the_devices_that_it_was_given() {
        let names = GpuNames::new("4, GPU-5f,7", TWO).unwrap();
        assert_eq!(names.names(&[0, 1]), ["4", "GPU-5f"]);
        let refused = GpuNames::new("4,-1,7", TWO).unwrap_err();
        assert_eq!(refused.kind, FailureKind::InvalidArgument);
        assert!(refused.message.contains("names 1"), "{refused}");
        assert_eq!(GpuNames::new("-1", TWO).unwrap().names(&[1]), ["1"], "they are not there, so fake ones");
        assert!(GpuNames::new("4,5", TWO - 1).is_ok(), "a part of a device is one");
    }
}
