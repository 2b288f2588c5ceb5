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

use crate::cluster::{Cluster, SimEvent};
use crate::{Sabotage, Violation};
use std::fmt::{self, Write};
use std::sync::Arc;
use tharsis_core::{MS, Node};
use tharsis_types::{ClientId, Failure, FailureKind};

/// Operations of a driver in a round.
const OPS: u32 = 40;
/// Letters and digits that the nodes may keep of a round, in the mean: an entry has ten at least, and numbers
/// become longer.
const CHARS_PER_ROUND_MAX: f64 = 8.0;
/// Rounds that are compared with as many before them.
const COMPARED_MIN: usize = 4;

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
        if self.sabotage == Sabotage::ClassPerJob {
            self.keep_something();
        }
        Some((host, self.add_driver(host)))
    }

    /// A driver that stays names one more class.
    fn keep_something(&mut self) {
        let drivers = self.hosts.iter().enumerate().filter(|(_, host)| host.alive).flat_map(|(at, host)| {
            let stays = host.clients.values().filter(|client| client.driver.is_some());
            stays.map(move |client| (at, client.id, client.job))
        });
        let first = drivers.min();
        if let Some((host, client, job)) = first {
            self.name_another(host, client, job, 0);
        }
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

    fn look_at_growth(&mut self, rounds: &[Round]) {
        if grows(rounds) {
            let sizes: Vec<_> = rounds.iter().map(|round| (round.tasks, round.chars)).collect();
            self.fail(NO_GROWTH, format!("tasks, and characters of what is kept, by round: {sizes:?}"));
        }
    }
}

/// Whether the last third of the rounds keeps more than the one before, in the mean. Rounds differ in what is
/// left under way, such as workers that are idle: growth must be more than what one round differs from the
/// next by. Something that is kept of each makes all larger by the same amount, and no differences.
fn grows(rounds: &[Round]) -> bool {
    let third = rounds.len() / 3;
    if third < COMPARED_MIN || !rounds.len().is_multiple_of(3) {
        return false;
    }
    let (before, last) = (&rounds[third..2 * third], &rounds[2 * third..]);
    let mean = |part: &[Round]| part.iter().map(|round| round.chars as f64).sum::<f64>() / third as f64;
    let steps = before.windows(2).map(|pair| pair[1].chars as f64 - pair[0].chars as f64);
    let (least, most) =
        steps.fold((f64::MAX, f64::MIN), |(least, most), step| (least.min(step), most.max(step)));
    (most - least) + CHARS_PER_ROUND_MAX * (third as f64) < mean(last) - mean(before)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Letters that nodes kept after each of twelve rounds, with seeds 0, 1 and 2.
    const KEPT: [[usize; 12]; 3] = [
        [4171, 4661, 4855, 4862, 4863, 4867, 4868, 4871, 4872, 4872, 4872, 4872],
        [66848, 68009, 70573, 71411, 71778, 70884, 70978, 70755, 70813, 70808, 71744, 72040],
        [78798, 80527, 82734, 82777, 82564, 82575, 82513, 82756, 82909, 83164, 82627, 82411],
    ];

    /// Rounds with so many letters more after each, by the number of the round.
    fn rounds(kept: &[usize], more: impl Fn(usize) -> usize) -> Vec<Round> {
        let mut sum = 0;
        let round = |(number, chars): (usize, &usize)| {
            sum += more(number);
            Round { tasks: 0, chars: chars + sum }
        };
        kept.iter().enumerate().map(round).collect()
    }

    #[test]
    fn an_entry_of_each_job_is_found_in_the_quietest_cluster_and_one_of_each_task_in_all() {
        for kept in KEPT {
            assert!(!grows(&rounds(&kept, |_| 0)), "{kept:?}");
            // Between 200 and 400 tasks.
            assert!(grows(&rounds(&kept, |number| 10 * (200 + 61 * number % 200))), "{kept:?}");
        }
        assert!(grows(&rounds(&KEPT[0], |_| 10)));
        assert!(!grows(&rounds(&KEPT[0], |_| 1)), "numbers become longer");
    }
}
