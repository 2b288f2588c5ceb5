//! Free resources of the node or of a bundle, and the devices among them.

use super::gpus::{Devices, Part, Parts};
use tharsis_types::Resources;

/// Free resources.
#[derive(Debug)]
pub(super) struct Stock {
    /// Its GPUs are the largest demand that can be placed.
    free: Resources,
    devices: Devices,
}

impl Stock {
    /// The resources of a node, all free.
    pub(super) fn of_node(total: Resources) -> Self {
        Self { devices: Devices::of_node(total.gpu), free: total }
    }

    /// The resources of a bundle with these devices, all free.
    pub(super) fn of_bundle(total: Resources, gpus: &[Part]) -> Self {
        Self { devices: Devices::of_bundle(gpus), free: total }
    }

    /// The resources that one demand could take.
    pub(super) fn free(&self) -> &Resources {
        &self.free
    }

    /// All that is free; of its GPUs more than one demand could take.
    pub(super) fn sum(&self) -> Resources {
        let gpu = if self.devices.is_empty() { self.free.gpu } else { self.devices.sum() };
        Resources { gpu, ..self.free.clone() }
    }

    /// Takes resources; returns the devices among them. `None` and unchanged if there are not enough.
    pub(super) fn take(&mut self, demand: &Resources) -> Option<Parts> {
        if !self.free.take(demand) {
            return None;
        }
        if self.devices.is_empty() || demand.gpu == 0 {
            return Some(Parts::new());
        }
        let taken = self.devices.take(demand.gpu);
        assert!(taken.is_some(), "the largest demand for GPUs finds no room");
        self.free.gpu = self.devices.largest();
        taken
    }

    /// Takes back what [`Stock::take`] gave.
    pub(super) fn give(&mut self, taken: &Resources, gpus: &[Part]) {
        self.free.give(taken);
        if !gpus.is_empty() {
            self.devices.give(gpus);
            self.free.gpu = self.devices.largest();
        }
    }
}
