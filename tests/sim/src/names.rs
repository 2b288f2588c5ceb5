//! Names: some actors and groups of drivers have one, under which the drivers of other jobs find them.
//!
//! An actor or group with a name needs no handles and outlives its driver, until an operator kills it, a
//! driver that knows nothing but the name. The control store that knows the names is here; it answers at
//! once. It keeps the names of what has ended: whoever finds one looks whether it lives, as programs do, and
//! uses it only then.

use crate::client::Driver;
use crate::cluster::{Cluster, Seen, SimEvent};
use tharsis_core::{Event, MS, Now};
use tharsis_types::{ClientId, FailureKind, JobId, ObjectId, RefId};

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

    /// A driver finds something by its name, of whatever job, and looks whether it lives.
    pub(crate) fn find_named(&mut self, host: usize, id: ClientId) {
        if self.names.is_empty() {
            return;
        }
        let reference = self.names[self.rng.index(self.names.len())];
        let Some(client) = self.hosts[host].clients.get_mut(&id) else { return };
        let token = client.hold(reference);
        client.looks.insert(token);
        if let Some(held) = client.refs.get_mut(&token) {
            held.pending = true;
        }
        self.doubt(host, reference.object);
        self.send(host, id, Event::Held { client: id, token, reference });
        self.send(host, id, Event::Fetch { client: id, token, reference });
    }

    /// A driver is told whether what it has found lives: then it uses it from now on.
    pub(crate) fn look_answered(&mut self, host: usize, id: ClientId, token: u64, value: &Seen) {
        let Some(client) = self.hosts[host].clients.get_mut(&id) else { return };
        client.looks.remove(&token);
        let Some(held) = client.refs.get_mut(&token) else { return };
        held.pending = false;
        let object = held.reference.object;
        match value {
            Seen::Failed(failure) => {
                // Its owner has forgotten it since it ended.
                let is_forgotten = failure.root().kind == FailureKind::ObjectFreed;
                if let Err(text) = self.oracle.excuse(object, failure)
                    && !is_forgotten
                {
                    self.fail("a failure has a cause", text);
                }
                self.doubt(host, object);
                self.release(host, id, token);
            }
            Seen::Inline(_) => {
                client.context.locals.push(token);
                self.summary.find_count += 1;
                let node = self.hosts[host].id;
                self.doubted.remove(&(node, object));
                if self.oracle.is_group(object) {
                    self.drop_group_later(host, id, token);
                }
            }
            Seen::Local(_) | Seen::Ready => self.fail("a value is the expected one", format!("{object}")),
        }
        self.drop_if_drained(host, id);
    }

    /// A node may refer to something that its owner does not know any more: somebody there knows its name.
    fn doubt(&mut self, host: usize, object: ObjectId) {
        let node = self.hosts[host].id;
        self.doubted.insert((node, object));
    }

    /// A node is gone, perhaps with what the operator asked there last: the operator asks again elsewhere.
    pub(crate) fn kill_again(&mut self, host: usize) {
        let again: Vec<_> = self.kills.extract_if(.., |(at, _)| *at == host).collect();
        for (_, reference) in again {
            let when = self.now + self.rng.range(0, LIVES_FOR);
            self.at(when, SimEvent::KillNamed { reference });
        }
    }

    /// The operator kills what has a name.
    pub(crate) fn kill_named(&mut self, reference: RefId) {
        let Some((host, id)) = self.operator() else { return };
        self.names.retain(|named| *named != reference);
        self.kills.push((host, reference));
        let Some(client) = self.hosts[host].clients.get_mut(&id) else { return };
        let token = client.hold(reference);
        self.send(host, id, Event::Held { client: id, token, reference });
        self.doubt(host, reference.object);
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
