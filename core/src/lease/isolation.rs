//! The restriction to jobs of this node's drivers while it reaches nobody.

use super::{Effect, LeaseKey, Leases, State};
use std::collections::BTreeSet;
use tharsis_types::JobId;

impl Leases {
    /// Places only requests of these jobs from now on, and asks all leases of other jobs back. Returns those
    /// that have workers.
    pub fn serve_only(&mut self, jobs: BTreeSet<JobId>, out: &mut Vec<Effect>) -> Vec<LeaseKey> {
        let others = self.leases.iter().filter(|(_, lease)| !jobs.contains(&lease.class.job));
        let active: Vec<_> = others
            .filter(|(_, l)| matches!(l.state, State::Active(_)))
            .map(|(k, l)| (*k, l.recalled))
            .collect();
        let placed = self.placed.iter().filter(|key| !jobs.contains(&self.leases[*key].class.job));
        for key in placed.copied().collect::<Vec<_>>() {
            self.unplace(key);
        }
        self.served = Some(jobs);
        for (key, _) in active.iter().filter(|(_, is_recalled)| !is_recalled) {
            self.ask_back(*key, out);
        }
        active.into_iter().map(|(key, _)| key).collect()
    }

    /// Serves one more job, if only some are served.
    pub fn serve_also(&mut self, job: JobId) {
        if let Some(served) = &mut self.served {
            served.insert(job);
            self.waiting.all_groups_changed();
        }
    }

    /// Ends the restriction of [`Leases::serve_only`].
    pub fn serve_all(&mut self, out: &mut Vec<Effect>) {
        self.served = None;
        self.waiting.all_groups_changed();
        self.place_waiting(out);
    }

    /// Whether the requests of all jobs are placed.
    #[must_use]
    pub fn serves_all(&self) -> bool {
        self.served.is_none()
    }

    /// Whether requests of a job are placed now, and its runs begin.
    #[must_use]
    pub fn serves(&self, job: JobId) -> bool {
        self.served.as_ref().is_none_or(|served| served.contains(&job))
    }
}
