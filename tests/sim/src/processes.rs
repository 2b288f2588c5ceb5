//! Processes that several actors share: an accident ends all who live there.

use crate::cluster::Cluster;
use std::sync::Arc;
use tharsis_types::{ClientId, Failure, FailureKind};

impl Cluster {
    /// An accident ends the process of a client, with all others that share it.
    pub(crate) fn crash_process(&mut self, host: usize, client: ClientId, failure: &Arc<Failure>) {
        let others = self.beside(host, client);
        self.crash_client(host, client, failure.clone());
        self.summary.shared_crash_count += u32::from(!others.is_empty());
        for other in others {
            self.crash_client(host, other, Arc::new(Failure::clone(failure)));
        }
    }

    /// A node kills a worker: of those who share its process, only the one, unless the process has to end for
    /// its memory.
    pub(crate) fn kill_worker(&mut self, host: usize, client: ClientId, reason: Arc<Failure>) {
        let others = self.beside(host, client);
        let is_for_memory = reason.kind == FailureKind::OutOfMemory;
        self.crash_client(host, client, reason.clone());
        for other in others.into_iter().filter(|_| is_for_memory) {
            let text = "the process that it shared with another worker was killed";
            let crash = Failure::new(FailureKind::WorkerCrashed, text).because(Failure::clone(&reason));
            self.crash_client(host, other, Arc::new(crash));
        }
    }

    /// The others in the process of a client.
    fn beside(&self, host: usize, client: ClientId) -> Vec<ClientId> {
        let clients = &self.hosts[host].clients;
        let Some(process) = clients.get(&client).and_then(|client| client.process) else { return Vec::new() };
        let sharing = clients.values().filter(|other| other.process == Some(process) && other.id != client);
        sharing.map(|other| other.id).collect()
    }
}
