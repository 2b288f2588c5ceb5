//! Crowds at a port that signs: how often strangers of one address, and nodes of one machine, may have the
//! head sign for them.
//!
//! A handshake of TLS costs a signature before anything is known of the caller, and a certificate costs some
//! more and the disk. So both are paced: a stock of turns for those that come at once, which grows again with
//! time. Strangers that come too often wait, and count among connections that have proved nothing meanwhile;
//! callers with a certificate give their turn back, unless their machine was shut out. Machines that ask for
//! certificates too often are told to ask again.
//!
//! Before its handshake a member cannot be told from a stranger at its address: another user of its machine,
//! or a machine behind the same translation of addresses. So an address from which a good certificate came
//! lately has a larger stock of its own. A machine may have many addresses, of which its last ones count. Of
//! those that wait there the last one is next: the first ones are the first to be ended when there are too
//! many (`unproved.rs`), and a turn that comes too late is lost.

use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tharsis_identity::MachineId;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, timeout};

/// Handshakes from one address that may begin at once.
pub const STRANGERS_AT_ONCE: u32 = 256;
/// And one more in this time.
pub const STRANGER_EVERY: Duration = Duration::from_millis(5);
/// Handshakes that may begin at once from an address from which a member came lately.
pub const MEMBERS_AT_ONCE: u32 = 1024;
/// And one more in this time.
pub const MEMBER_EVERY: Duration = Duration::from_millis(1);
/// An address is one of members for this long after a good certificate came from there. Connections of
/// members last, and all of them come again when a head was away.
const MEMBER_FOR: Duration = Duration::from_secs(86_400);
/// Machines whose addresses are remembered: more than a cluster admits, which may be behind one address.
const KNOWN_MACHINES_MAX: usize = 32_768;
/// Addresses of one machine that count as those of members.
const OF_MACHINE_MAX: usize = 16;
/// The longest pause between two looks of one that waits for its turn: those before it may go.
const TURN_PAUSE_MAX: Duration = Duration::from_millis(50);
/// Certificates that one machine may ask for at once.
pub const CERTIFICATES_AT_ONCE: u32 = 256;
/// And one more in this time.
pub const CERTIFICATE_EVERY: Duration = Duration::from_millis(50);
/// Requests of one machine that are answered at a time.
const ASKING_MAX: usize = 4;
/// The time for which another one waits.
const SEAT_WAIT: Duration = Duration::from_secs(20);
/// Addresses or machines that are remembered. Most have all their turns and are forgotten first.
const KNOWN_MAX: usize = 4096;

/// The crowds of one port. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Crowds {
    handshakes: Arc<Mutex<Handshakes>>,
    machines: Arc<Mutex<Paces<MachineId>>>,
    /// The seats of each machine, for its requests that are answered at a time.
    seats: Arc<Mutex<HashMap<MachineId, Arc<Semaphore>>>>,
}

/// Handshakes by address.
#[derive(Debug)]
struct Handshakes {
    strangers: Paces<IpAddr>,
    members: Paces<IpAddr>,
    /// Addresses from which a good certificate came.
    met: HashMap<IpAddr, Met>,
    /// Those of each machine, the newest last.
    of_machine: HashMap<MachineId, Vec<IpAddr>>,
    /// The places of those that wait for their turn at an address, the newest last.
    waiting: HashMap<IpAddr, Vec<u64>>,
    /// The place of the next one.
    next: u64,
}

/// An address of members.
#[derive(Clone, Copy, Debug)]
struct Met {
    /// When a good certificate last came from there.
    at: Instant,
    /// Number of machines among whose addresses it is.
    machines: usize,
}

/// A place among those that wait at an address.
#[derive(Clone, Copy, Debug)]
struct Place {
    network: IpAddr,
    number: u64,
}

/// The stock from which a turn was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stock {
    Members,
    Strangers,
}

/// A turn that was taken for a handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Turn {
    network: IpAddr,
    stock: Stock,
}

/// A place that is given up when this is dropped: with its turn, or with its connection.
struct Waiting<'a>(&'a Crowds, Place);

/// Turns of each caller.
#[derive(Debug)]
struct Paces<K> {
    every: Duration,
    /// A caller may be so much before its time.
    ahead: Duration,
    /// The time of the next turn of each, if it took one after the other.
    due: HashMap<K, Instant>,
}

impl Default for Crowds {
    fn default() -> Crowds {
        let machines = Paces::new(CERTIFICATES_AT_ONCE, CERTIFICATE_EVERY);
        Crowds { handshakes: Arc::default(), machines: Arc::new(Mutex::new(machines)), seats: Arc::default() }
    }
}

impl Crowds {
    /// Waits until a caller from this address may begin a handshake.
    pub(crate) async fn turn(&self, address: IpAddr) -> Turn {
        let place = self.handshakes().enter(address);
        let waiting = Waiting(self, place);
        loop {
            let taken = self.handshakes().turn(waiting.1, Instant::now());
            match taken {
                Ok(turn) => return turn,
                Err(pause) => sleep(pause).await,
            }
        }
    }

    /// A handshake is over: one with a certificate that is good here, of this machine, does not count.
    pub(crate) fn met(&self, turn: Turn, known: Option<MachineId>) {
        if let Some(machine) = known {
            self.handshakes().met(turn, machine, Instant::now());
        }
    }

    /// Lets a machine ask for a certificate, as soon as few of its earlier requests are under way; none if it
    /// asks too often. A request that was given up meanwhile does not count.
    pub(crate) async fn ask(&self, machine: MachineId) -> Option<OwnedSemaphorePermit> {
        let seat = timeout(SEAT_WAIT, self.seats_of(machine).acquire_owned()).await.ok()?.ok()?;
        let mut machines = self.machines.lock().unwrap_or_else(PoisonError::into_inner);
        machines.take(machine, Instant::now()).ok().map(|()| seat)
    }

    fn seats_of(&self, machine: MachineId) -> Arc<Semaphore> {
        let mut seats = self.seats.lock().unwrap_or_else(PoisonError::into_inner);
        if KNOWN_MAX <= seats.len() {
            // Those of whom nobody asks now.
            seats.retain(|_, of_one| 1 < Arc::strong_count(of_one));
        }
        Arc::clone(seats.entry(machine).or_insert_with(|| Arc::new(Semaphore::new(ASKING_MAX))))
    }

    fn handshakes(&self) -> MutexGuard<'_, Handshakes> {
        self.handshakes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.handshakes().leave(self.1);
    }
}

impl Default for Handshakes {
    fn default() -> Handshakes {
        Handshakes {
            strangers: Paces::new(STRANGERS_AT_ONCE, STRANGER_EVERY),
            members: Paces::new(MEMBERS_AT_ONCE, MEMBER_EVERY),
            met: HashMap::new(),
            of_machine: HashMap::new(),
            waiting: HashMap::new(),
            next: 0,
        }
    }
}

impl Handshakes {
    /// The place of a caller from this address.
    fn enter(&mut self, address: IpAddr) -> Place {
        let place = Place { network: network(address), number: self.next };
        self.next += 1;
        self.waiting.entry(place.network).or_default().push(place.number);
        place
    }

    fn leave(&mut self, place: Place) {
        if let Some(waiting) = self.waiting.get_mut(&place.network) {
            waiting.retain(|number| *number != place.number);
            if waiting.is_empty() {
                self.waiting.remove(&place.network);
            }
        }
    }

    /// Takes a turn for the one at a place.
    ///
    /// # Errors
    /// The time until it looks again.
    fn turn(&mut self, place: Place, now: Instant) -> Result<Turn, Duration> {
        let network = place.network;
        let met = self.met.get(&network);
        let is_of_members = met.is_some_and(|met| now.saturating_duration_since(met.at) <= MEMBER_FOR);
        let (stock, paces) = if is_of_members {
            (Stock::Members, &mut self.members)
        } else {
            (Stock::Strangers, &mut self.strangers)
        };
        let waiting = self.waiting.get(&network).map_or(&[][..], Vec::as_slice);
        let newer = waiting.iter().rev().take_while(|number| **number != place.number).count();
        let pause = match newer {
            0 => match paces.take(network, now) {
                Ok(()) => return Ok(Turn { network, stock }),
                Err(pause) => pause,
            },
            newer => paces.every * u32::try_from(newer).unwrap_or(u32::MAX),
        };
        // Never nothing: a timer may be early by a part of a millisecond.
        Err(pause.clamp(Duration::from_millis(1), TURN_PAUSE_MAX))
    }

    /// A handshake ended with a good certificate of a machine.
    fn met(&mut self, turn: Turn, machine: MachineId, now: Instant) {
        match turn.stock {
            Stock::Members => self.members.give_back(turn.network),
            Stock::Strangers => self.strangers.give_back(turn.network),
        }
        if KNOWN_MAX <= self.met.len() && !self.met.contains_key(&turn.network) {
            self.forget_older_half();
        }
        if KNOWN_MACHINES_MAX <= self.of_machine.len() && !self.of_machine.contains_key(&machine) {
            self.met.clear();
            self.of_machine.clear();
        }
        let met = self.met.entry(turn.network).or_insert(Met { at: now, machines: 0 });
        met.at = now;
        let own = self.of_machine.entry(machine).or_default();
        if own.contains(&turn.network) {
            return;
        }
        met.machines += 1;
        own.push(turn.network);
        if OF_MACHINE_MAX < own.len() {
            let oldest = own.remove(0);
            self.forget_of_one(oldest);
        }
    }

    /// An address is not among those of a machine any more, and maybe of no other.
    fn forget_of_one(&mut self, network: IpAddr) {
        if let Some(met) = self.met.get_mut(&network) {
            met.machines = met.machines.saturating_sub(1);
            if met.machines == 0 {
                self.met.remove(&network);
            }
        }
    }

    /// So many addresses are not those of one cluster: those that were met last count.
    fn forget_older_half(&mut self) {
        let mut times: Vec<Instant> = self.met.values().map(|met| met.at).collect();
        let half = times.len() / 2;
        let middle = *times.select_nth_unstable(half).1;
        self.met.retain(|_, met| middle < met.at);
        let met = &self.met;
        self.of_machine.retain(|_, own| {
            own.retain(|network| met.contains_key(network));
            !own.is_empty()
        });
    }
}

/// The part of an address that its machine cannot choose by itself.
pub(crate) fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0).into()
        }
        address => address,
    }
}

impl<K: Copy + Eq + Hash> Paces<K> {
    fn new(at_once: u32, every: Duration) -> Paces<K> {
        Paces { every, ahead: every * at_once.saturating_sub(1), due: HashMap::new() }
    }

    /// Takes a turn.
    ///
    /// # Errors
    /// The time until there is one.
    fn take(&mut self, who: K, now: Instant) -> Result<(), Duration> {
        if KNOWN_MAX <= self.due.len() {
            self.due.retain(|_, due| now < *due);
            // So many that come too often are a few more turns for each of them, and no more memory.
            if KNOWN_MAX / 2 < self.due.len() {
                self.due.clear();
            }
        }
        let due = self.due.get(&who).map_or(now, |due| now.max(*due));
        let before = due.saturating_duration_since(now);
        if self.ahead < before {
            return Err(before - self.ahead);
        }
        self.due.insert(who, due + self.every);
        Ok(())
    }

    fn give_back(&mut self, who: K) {
        if let Some(due) = self.due.get_mut(&who) {
            *due = due.checked_sub(self.every).unwrap_or(*due);
        }
    }
}

#[cfg(test)]
#[path = "crowds_tests.rs"]
mod tests;
