//! Quotas of jobs: every second job has one, and never holds more.

use crate::cluster::Cluster;
use crate::program::quota_of;
use tharsis_types::Resources;

impl Cluster {
    /// No job holds more than its quota, on all nodes that the node of its driver knows.
    pub(crate) fn check_quotas(&mut self) {
        let homes = self.hosts.iter().filter(|host| host.alive);
        let jobs: Vec<_> = homes.flat_map(|host| host.driven.iter().map(|job| (host.id, *job))).collect();
        for (home, job) in jobs {
            let Some(quota) = quota_of(job) else { continue };
            let Some(at) = self.hosts.iter().find(|host| host.id == home) else { continue };
            let members: Vec<_> = at.node.members().map(|(member, _)| member.node).collect();
            let mut held = Resources::default();
            for host in self.hosts.iter().filter(|host| host.alive && members.contains(&host.id)) {
                host.node.held_of_quota(job).into_iter().for_each(|part| held.give(part));
            }
            if !quota.all().fits(&held) {
                self.fail(
                    "no job holds more than its quota",
                    format!("{job} holds {held}, allowed: {quota}"),
                );
            }
        }
    }
}
