//! Hosts that reach nobody for a while, and what they may start meanwhile; what the control store knows of
//! hosts.

use crate::client::Client;
use crate::cluster::{Cluster, Host, SimEvent};
use crate::program::quota_of;
use crate::remembered::Cut;
use tharsis_core::{Event, MS, Now};
use tharsis_types::{JobId, JobTerms, NodeId};

/// Workers are told within this time to give back what they have not started.
const TOLD_WITHIN: Now = 50 * MS;

impl Cluster {
    /// Cuts a host off from all others for a while. Its node learns of both, a little late.
    pub(crate) fn isolate(&mut self, host: usize) {
        let until = self.now + self.rng.range(100 * MS, 1_500 * MS);
        let others = (0..self.hosts.len()).filter(|other| *other != host);
        let cut = |other| Cut { hosts: (host, other), until, is_of_transfers: false };
        self.cuts.extend(others.map(cut));
        self.upset(host, until);
        let noticed = self.now + self.rng.range(0, 50 * MS);
        let over = until + self.rng.range(0, 50 * MS);
        self.at(noticed, SimEvent::IsolationChanged { host, until: Some(until) });
        self.at(over, SimEvent::IsolationChanged { host, until: None });
    }

    /// The control store answers whether a node is a member.
    pub(crate) fn find_member(&mut self, host: usize, node: NodeId) {
        let about = self.hosts.iter().position(|of| of.id == node);
        if let Some(about) = about.filter(|about| !self.hosts[*about].alive) {
            let when = self.now + self.rng.range(MS, 20 * MS);
            self.at(when, SimEvent::ToldLeft { host, about, jobs: Vec::new() });
        }
    }

    /// A node asks whether a job has ended, as another one says.
    pub(crate) fn confirm_end(&mut self, host: usize, job: JobId) {
        let drives = |client: &Client| client.driver.is_some() && client.job == job;
        let runs = |host: &Host| host.alive && host.clients.values().any(drives);
        if !self.hosts.iter().any(runs) {
            let when = self.now + self.rng.range(MS, 20 * MS);
            self.at(when, SimEvent::ToldEnded { host, job });
        }
    }

    /// The control store tells a node where the driver of a job is.
    pub(crate) fn driver_found(&mut self, host: usize, job: JobId) {
        let found = self.hosts.iter().find(|host| host.driven.contains(&job)).map(|host| {
            // The job of the operator has none.
            let quota = quota_of(job).filter(|_| host.node.held_of_quota(job).is_some());
            (host.id, JobTerms { weight: 100, quota })
        });
        let (driver, terms) = found.unzip();
        self.feed(host, Event::DriverFound { job, driver, terms });
    }

    /// A node notices that it reaches nobody, until some time, or that this is over.
    pub(crate) fn isolation_changed(&mut self, host: usize, until: Option<Now>) {
        self.hosts[host].isolated = until.map(|until| (self.now, until));
        self.feed(host, Event::IsolationChanged { is_isolated: until.is_some() });
    }

    /// An isolated node starts no work of jobs whose drivers are elsewhere.
    pub(crate) fn check_isolated(&mut self, host: usize, job: JobId) {
        let at = &self.hosts[host];
        let is_late =
            at.isolated.is_some_and(|(since, until)| since + TOLD_WITHIN < self.now && self.now < until);
        let is_own = at.driven.contains(&job);
        if is_late && !is_own {
            self.fail("an isolated node starts no work of others", format!("{job} on node {}", at.id));
        }
    }
}
