//! Growth while it runs: a cluster that does the same amount of work again and again keeps no more in the
//! end.
//!
//! After each round all drivers drop what they hold, and nothing is under way. A driver that is there for one
//! round alone comes with each, so that jobs begin and end too. What a node keeps is measured from outside,
//! by the text in which it describes itself: that has each entry of each table, whether
//! `Node::leftovers` counts it or not. Journals are rings, and say only how long they are.
//!
//! Without placement groups: each has classes of its own for what runs inside, which its job keeps until it
//! ends.

use crate::Violation;
use crate::cluster::{Cluster, SimEvent};
use std::fmt::{self, Write};
use std::sync::Arc;
use tharsis_core::{MS, Node};
use tharsis_types::{ClientId, Failure, FailureKind};

/// Operations of a driver in a round.
const OPS: u32 = 40;
/// Letters and digits that the nodes may keep of a task, in the mean: an entry has ten at least, and numbers
/// become longer.
const CHARS_PER_TASK_MAX: usize = 1;

/// The rule.
const NO_GROWTH: &str = "nodes keep nothing of work that is over";

/// The state of a cluster between two rounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Round {
    /// Tasks so far.
    pub tasks: usize,
    /// Letters and digits of the nodes' descriptions of themselves.
    pub chars: usize,
}

impl Cluster {
    /// Runs through rounds of work.
    ///
    /// # Errors
    /// The first violation.
    pub(crate) fn run_rounds(&mut self, count: usize) -> Result<Vec<Round>, Violation> {
        self.has_groups = false;
        let mut rounds = Vec::new();
        for _ in 0..count {
            let guest = self.add_guest();
            self.run_dry()?;
            self.check_quiet("a round of work is done");
            self.retire_all();
            self.run_dry()?;
            self.check_empty("the references of a round are dropped");
            if let Some((host, client)) = guest {
                let failure = Arc::new(Failure::new(FailureKind::Shutdown, "the driver ended"));
                self.crash_client(host, client, failure);
            }
            self.run_dry()?;
            self.check_empty("a driver is gone");
            rounds.push(self.round());
            self.look_at_growth(&rounds);
            self.finish_step()?;
            self.begin_round();
        }
        Ok(rounds)
    }

    /// A driver that is there for one round.
    fn add_guest(&mut self) -> Option<(usize, ClientId)> {
        let host = self.hosts.iter().position(|host| host.alive && !host.node.is_draining())?;
        Some((host, self.add_driver(host)))
    }

    /// All drivers go on.
    fn begin_round(&mut self) {
        self.begin_stage();
        let operator = self.operator;
        let mut drivers = Vec::new();
        for (host, at) in self.hosts.iter_mut().enumerate().filter(|(_, at)| at.alive) {
            for client in at.clients.values_mut().filter(|client| operator != Some((host, client.id))) {
                if let Some(driver) = &mut client.driver {
                    (driver.draining, driver.ops_left) = (false, OPS);
                    drivers.push((host, client.id));
                }
            }
        }
        for (host, client) in drivers {
            let when = self.now + self.rng.range(0, 5 * MS);
            self.at(when, SimEvent::Think { host, client });
        }
    }

    fn round(&self) -> Round {
        let living = self.hosts.iter().filter(|host| host.alive);
        Round { tasks: self.oracle.tasks.len(), chars: living.map(|host| described(&host.node)).sum() }
    }

    /// Compares the last third of the rounds with the one before.
    fn look_at_growth(&mut self, rounds: &[Round]) {
        let third = rounds.len() / 3;
        if third < 3 {
            return;
        }
        let (before, last) = (&rounds[third..2 * third], &rounds[2 * third..]);
        let most = before.iter().map(|round| round.chars).max().unwrap_or_default();
        let least = last.iter().map(|round| round.chars).min().unwrap_or_default();
        let tasks = last[last.len() - 1].tasks - before[before.len() - 1].tasks;
        if most + tasks * CHARS_PER_TASK_MAX < least {
            let sizes: Vec<_> = rounds.iter().map(|round| (round.tasks, round.chars)).collect();
            self.fail(NO_GROWTH, format!("tasks, and characters of what is kept, by round: {sizes:?}"));
        }
    }
}

/// The letters and digits of the text in which a node describes itself. Without empty places: a driver of
/// the simulator uses no number of a value again, as those of users do, and its node keeps a place for each.
fn described(node: &Node) -> usize {
    struct Length(usize);

    impl Write for Length {
        fn write_str(&mut self, text: &str) -> fmt::Result {
            if text != "None" {
                self.0 += text.bytes().filter(u8::is_ascii_alphanumeric).count();
            }
            Ok(())
        }
    }

    let mut length = Length(0);
    // A length takes any text.
    let _written = write!(length, "{node:?}");
    length.0
}
