//! Declares silent nodes dead.
//!
//! A node loses its lease if it is silent for the length of the lease, or if the store is: while an etcd is
//! paused, or without a quorum, every lease expires although all nodes are well. So the lease alone does not
//! decide. The judge queries the store at a steady pace. While answers come in time, a node without a lease
//! is dead at once. After a silence of the store, every node has the time of one lease to send a keep-alive,
//! which gives it a new lease. A store that is full answers and grants none, so before a node is declared
//! dead the judge has a lease granted itself.
//!
//! The jobs of a driver end with its node, however that left; the judge ends them too.
//!
//! Declaring a node dead means removing its record, in a transaction that requires that the node still has no
//! lease. All members see the removal, and a node without a record gets no lease any more. So all members
//! agree whether a node is alive, however many judges there are.

use super::{Shared, hang, unix_ms};
use crate::error::StoreError;
use crate::tables;
use std::sync::{Arc, Weak};
use std::time::Duration;
use tharsis_protos::control::JobEnd;
use tharsis_types::NodeId;
use tokio::time::{Instant, MissedTickBehavior, interval};

/// Queries of the store within the time of one lease.
const QUESTIONS_PER_LEASE: u32 = 8;

/// Timing of the store's answers, as seen by the judge.
#[derive(Debug)]
struct Pulse {
    lease_ttl: Duration,
    answered: Instant,
    /// Answers have come in time since then.
    steady_since: Instant,
}

impl Pulse {
    /// The time before `now` counts as silence, since keep-alives in it are unknown.
    fn new(lease_ttl: Duration, now: Instant) -> Pulse {
        Pulse { lease_ttl, answered: now, steady_since: now }
    }

    /// Notes an answer. Half of a lease's time without an answer is a silence.
    fn answered(&mut self, now: Instant) {
        if self.lease_ttl / 2 <= now.saturating_duration_since(self.answered) {
            self.steady_since = now;
        }
        self.answered = self.answered.max(now);
    }

    /// The store answers, and grants no leases: nobody can renew one that ran out.
    fn interrupted(&mut self, now: Instant) {
        self.steady_since = self.steady_since.max(now);
    }

    /// Whether a node that has no lease according to the last answer is dead.
    fn may_judge(&self) -> bool {
        self.lease_ttl <= self.answered.saturating_duration_since(self.steady_since)
    }
}

/// Judges until the control store stops or is dropped.
pub(super) async fn judge(shared: Weak<Shared>, lease_ttl: Duration) {
    let mut pulse = Pulse::new(lease_ttl, Instant::now());
    let mut ticks = interval(lease_ttl / QUESTIONS_PER_LEASE);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let Some(shared) = shared.upgrade().filter(|shared| !*shared.stopping.borrow()) else { return };
        match round(&shared, &mut pulse).await {
            Ok(()) => {}
            Err(StoreError::Closed) => return,
            Err(error @ StoreError::Io { .. }) => {
                tracing::error!(%error, "no dead node is declared dead while the store cannot be written");
            }
            Err(error) => tracing::debug!(%error, "nobody is declared dead while the store does not answer"),
        }
    }
}

/// Queries the store once, and removes nodes that are dead.
async fn round(shared: &Arc<Shared>, pulse: &mut Pulse) -> Result<(), StoreError> {
    // Before the members are: a node is one before it has names.
    let naming = shared.written.lock().naming_nodes();
    let answer = shared.backend.txn(tables::roll_call()).await?;
    pulse.answered(Instant::now());
    shared.note_stores(&answer);
    let called = tables::called(&answer);
    shared.knock_at_new(&called);
    hang::look_at_heads(shared, &tables::heads(&answer));
    shared.look_at_lineage().await?;
    for gone in naming.into_iter().filter(|node| !called.contains(node)) {
        shared.forget_names_of(gone).await?;
    }
    for (job, node) in tables::without_driver(&answer) {
        let message = format!("its driver's node {node} has left");
        let end = JobEnd { succeeded: false, message, ended_unix_ms: unix_ms() };
        match shared.end_job(job, end).await {
            Ok(_) => tracing::info!(%job, %node, "the job ends with its driver's node"),
            Err(error @ StoreError::OutOfSpace { .. }) => tracing::info!(%error, %job, "the job ends later"),
            Err(error) => return Err(error),
        }
    }
    let silent = tables::without_lease(&answer);
    if silent.is_empty() {
        // Nothing else may write for hours, and a file is opened again by the next write alone.
        return if shared.noted.fails() { shared.grants_leases().await } else { Ok(()) };
    }
    // Each time, so that all of them have the time of one lease from when leases are granted again.
    if let Err(error) = shared.grants_leases().await {
        pulse.interrupted(Instant::now());
        return Err(error);
    }
    if !pulse.may_judge() {
        return Ok(());
    }
    for (node, version) in silent {
        declare_dead(shared, node, version).await?;
    }
    Ok(())
}

async fn declare_dead(shared: &Shared, node: NodeId, version: u64) -> Result<(), StoreError> {
    if shared.backend.txn(tables::remove_dead(node, version)).await?.succeeded {
        tracing::warn!(%node, "the node was not heard of for the time of its lease: it is declared dead");
        shared.leases.lock().remove(&node);
        shared.silences.lock().forget(node);
        shared.forget_code_of(node).await?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(10);

    fn after(pulse: &mut Pulse, start: Instant, seconds: &[f64]) -> Vec<bool> {
        let answered = |s: &f64| {
            pulse.answered(start + Duration::from_secs_f64(*s));
            pulse.may_judge()
        };
        seconds.iter().map(answered).collect()
    }

    #[test]
    fn a_store_that_begins_waits_for_the_time_of_one_lease() {
        let start = Instant::now();
        let mut pulse = Pulse::new(TTL, start);
        assert!(!pulse.may_judge());
        assert_eq!(after(&mut pulse, start, &[0.1, 4.0, 8.0, 9.9, 10.0]), [false, false, false, false, true]);
    }

    #[test]
    fn after_a_silence_every_node_has_the_time_of_one_lease() {
        let start = Instant::now();
        let mut pulse = Pulse::new(TTL, start);
        let times = [4.0, 8.0, 12.0, 17.1, 20.0, 24.0, 27.0, 27.2];
        let expected = [false, false, true, false, false, false, false, true];
        assert_eq!(after(&mut pulse, start, &times), expected);
    }

    #[test]
    fn a_store_that_grants_no_leases_is_like_a_silent_one() {
        let start = Instant::now();
        let mut pulse = Pulse::new(TTL, start);
        assert_eq!(after(&mut pulse, start, &[4.0, 8.0, 12.0]), [false, false, true]);
        pulse.interrupted(start + TTL * 12 / 10);
        assert_eq!(after(&mut pulse, start, &[16.0, 20.0, 21.9, 22.1]), [false, false, false, true]);
    }
}
