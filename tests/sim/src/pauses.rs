//! Nodes whose process stands still for a while, and clocks that stand still with it or run ahead.
//!
//! A process that is stopped finds afterwards, all at once and in order, what has come meanwhile: records of
//! its clients in their rings, packets in the buffers of its sockets, ends of transfers. Its clients go on.
//! If the machine was suspended, its clock has stood still as well. The clocks of two machines never agree.

use crate::cluster::{Cluster, SimEvent};
use tharsis_core::{Event, MS, Now};

impl Cluster {
    /// The time by the clock of a host.
    pub(crate) fn clock(&self, host: usize) -> Now {
        self.now + self.hosts[host].ahead - self.hosts[host].behind
    }

    /// The moment at which it is some time by the clock of a host.
    pub(crate) fn by_clock(&self, host: usize, time: Now) -> Now {
        (time + self.hosts[host].behind).saturating_sub(self.hosts[host].ahead)
    }

    /// The process of a node stands still for a while, perhaps with its clock.
    pub(crate) fn pause(&mut self, host: usize) {
        let length = self.rng.range(10 * MS, 1_500 * MS);
        let is_suspended = self.rng.chance(400);
        if !self.hosts[host].alive || self.now < self.hosts[host].paused_until {
            return;
        }
        self.summary.pause_count += 1;
        self.hosts[host].paused_until = self.now + length;
        self.upset(host, self.now + length);
        if is_suspended {
            self.at(self.now + length, SimEvent::Woken { host, slept: length });
        }
    }

    /// A clock has stood still: to its machine no time has passed.
    pub(crate) fn woken(&mut self, host: usize, slept: Now) {
        self.hosts[host].behind += slept;
        self.tick_anew(host);
    }

    /// A clock runs ahead at once, as that of a process which was not looked at for long.
    pub(crate) fn jump(&mut self, host: usize) {
        let by = self.rng.range(MS, 5_000 * MS);
        self.summary.jump_count += u32::from(self.hosts[host].alive);
        self.hosts[host].ahead += by;
        self.upset(host, self.now);
        self.tick_anew(host);
    }

    /// Looks at a clock that has changed.
    fn tick_anew(&mut self, host: usize) {
        self.hosts[host].tick_at = None;
        self.feed(host, Event::Tick);
    }

    /// Until when something that is due now has to wait, because a process that it needs stands still.
    pub(crate) fn waits_for_process(&self, happening: &SimEvent) -> Option<Now> {
        let host = match happening {
            SimEvent::BlocksFreed { host, .. }
            | SimEvent::Drain { host, .. }
            | SimEvent::DriverFound { host, .. }
            | SimEvent::Gone { host, .. }
            | SimEvent::IsolationChanged { host, .. }
            | SimEvent::LastSteps { host, .. }
            | SimEvent::MemoryEnds { host }
            | SimEvent::PullEnds { host, .. }
            | SimEvent::Record { host, .. }
            | SimEvent::RestoreEnds { host, .. }
            | SimEvent::Settle { host }
            | SimEvent::SpillEnds { host, .. }
            | SimEvent::Tick { host }
            | SimEvent::ToldEnded { host, .. }
            | SimEvent::ToldJoined { host, .. }
            | SimEvent::ToldLeft { host, .. }
            | SimEvent::WorkerStarts { host, .. } => *host,
            SimEvent::Packet { to, .. } => *to,
            SimEvent::Continue { .. }
            | SimEvent::Crash { .. }
            | SimEvent::CrashClient { .. }
            | SimEvent::Cut { .. }
            | SimEvent::Drop { .. }
            | SimEvent::Isolate { .. }
            | SimEvent::Join
            | SimEvent::Jump { .. }
            | SimEvent::KillNamed { .. }
            | SimEvent::Partition
            | SimEvent::Pause { .. }
            | SimEvent::SideEnds { .. }
            | SimEvent::Think { .. }
            | SimEvent::ToClient { .. }
            | SimEvent::Unmap { .. }
            | SimEvent::Woken { .. } => return None,
        };
        let until = self.hosts[host].paused_until;
        (self.now < until).then_some(until)
    }
}
