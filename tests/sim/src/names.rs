//! Names: some actors and groups of drivers have one, under which the drivers of other jobs find them.
//!
//! An actor or group with a name needs no handles and outlives its driver, until an operator kills it, a
//! driver that knows nothing but the name. The control store that knows the names is here; it answers at
//! once.

use crate::client::Driver;
use crate::cluster::{Cluster, SimEvent};
use tharsis_core::{Event, MS, Now};
use tharsis_types::{ClientId, JobId, RefId};

/// Of a thousand actors and groups that drivers make, so many have a name.
const NAMED_PERMILLE: u64 = 300;
/// The time for which something with a name lives at least; at most it is twice that.
const LIVES_FOR: Now = 150 * MS;

impl Cluster {
    /// Whether a call makes something with a name, as chance has it.
    pub(crate) fn is_to_be_named(&mut self, host: usize, id: ClientId) -> bool {
        let is_driver = self.hosts[host].clients.get(&id).is_some_and(|client| client.driver.is_some());
        is_driver && self.has_names && self.rng.chance(NAMED_PERMILLE)
    }

    /// Something has a name from now on, and ends some time.
    pub(crate) fn named(&mut self, reference: RefId) {
        self.summary.name_count += 1;
        self.names.push(reference);
        let when = self.now + self.rng.range(LIVES_FOR, 2 * LIVES_FOR);
        self.at(when, SimEvent::KillNamed { reference });
    }

    /// A driver finds something by its name, of whatever job.
    pub(crate) fn find_named(&mut self, host: usize, id: ClientId) {
        if self.names.is_empty() {
            return;
        }
        let reference = self.names[self.rng.index(self.names.len())];
        let Some(client) = self.hosts[host].clients.get_mut(&id) else { return };
        let token = client.hold(reference);
        client.context.locals.push(token);
        self.summary.find_count += 1;
        self.send(host, id, Event::Held { client: id, token, reference });
        if self.oracle.is_group(reference.object) {
            self.drop_group_later(host, id, token);
        }
    }

    /// The operator kills what has a name.
    pub(crate) fn kill_named(&mut self, reference: RefId) {
        let Some((host, id)) = self.operator() else { return };
        self.names.retain(|named| *named != reference);
        let Some(client) = self.hosts[host].clients.get_mut(&id) else { return };
        let token = client.hold(reference);
        self.send(host, id, Event::Held { client: id, token, reference });
        self.oracle.cancelled(reference, true);
        self.send(host, id, Event::CancelRequested { reference, force: true, recursive: false });
        self.release(host, id, token);
    }

    /// The operator, at some node that lives.
    fn operator(&mut self) -> Option<(usize, ClientId)> {
        let serves = |(host, id): &(usize, ClientId)| {
            self.hosts[*host].alive && self.hosts[*host].clients.contains_key(id)
        };
        if let Some(operator) = self.operator.filter(serves) {
            return Some(operator);
        }
        let host = self.hosts.iter().position(|host| host.alive)?;
        let job = self.new_job();
        let id = self.new_client(host, job, Some(Driver::default()));
        self.hosts[host].driven.push(job);
        self.feed(host, Event::DriverJoined { client: id, job, weight: 100, quota: None });
        self.operator = Some((host, id));
        self.operator
    }

    /// The number of the next job.
    pub(crate) fn new_job(&mut self) -> JobId {
        let job = JobId(self.next_job);
        self.next_job += 1;
        job
    }
}
