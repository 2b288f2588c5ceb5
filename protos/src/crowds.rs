//! Crowds at a port that signs: how often strangers of one address, and nodes of one machine, may have the
//! head sign for them.
//!
//! A handshake of TLS costs a signature before anything is known of the caller, and a certificate costs some
//! more and the disk. So both are paced: a stock of turns for those that come at once, which grows again with
//! time. Strangers that come too often wait, and count among connections that have proved nothing meanwhile;
//! callers with a certificate give their turn back, unless their machine was shut out. Machines that ask for
//! certificates too often are told to ask again.

use crate::shares::{Part, Shares};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tharsis_identity::MachineId;
use tokio::time::{Instant, sleep, timeout};

/// Handshakes of strangers from one address that may begin at once.
pub const STRANGERS_AT_ONCE: u32 = 256;
/// And one more in this time.
pub const STRANGER_EVERY: Duration = Duration::from_millis(5);
/// Certificates that one machine may ask for at once.
pub const CERTIFICATES_AT_ONCE: u32 = 256;
/// And one more in this time.
pub const CERTIFICATE_EVERY: Duration = Duration::from_millis(50);
/// Requests of one machine that are answered at a time.
const ASKING_MAX: usize = 4;
/// The time for which another one waits, and between its looks.
const SEAT_WAIT: Duration = Duration::from_secs(20);
const SEAT_PAUSE: Duration = Duration::from_millis(10);
/// Addresses or machines that are remembered. Most have all their turns and are forgotten first.
const KNOWN_MAX: usize = 4096;

/// The crowds of one port. Clones share them.
#[derive(Clone, Debug)]
pub(crate) struct Crowds {
    strangers: Paces<IpAddr>,
    machines: Paces<MachineId>,
    asking: Shares,
}

/// Turns of each caller.
#[derive(Clone, Debug)]
struct Paces<K> {
    every: Duration,
    /// A caller may be so much before its time.
    ahead: Duration,
    /// The time of the next turn of each, if it took one after the other.
    due: Arc<Mutex<HashMap<K, Instant>>>,
}

impl Default for Crowds {
    fn default() -> Crowds {
        Crowds {
            strangers: Paces::new(STRANGERS_AT_ONCE, STRANGER_EVERY),
            machines: Paces::new(CERTIFICATES_AT_ONCE, CERTIFICATE_EVERY),
            asking: Shares::default(),
        }
    }
}

impl Crowds {
    /// Waits until a caller from this address may begin a handshake.
    pub(crate) async fn turn(&self, address: IpAddr) {
        while !self.strangers.take(network(address), Instant::now()) {
            sleep(self.strangers.every).await;
        }
    }

    /// A handshake is over: one with a certificate that is good here does not count.
    pub(crate) fn met(&self, address: IpAddr, is_known: bool) {
        if is_known {
            self.strangers.give_back(network(address));
        }
    }

    /// Lets a machine ask for a certificate, as soon as few others of its requests are under way; none if it
    /// asks too often.
    pub(crate) async fn ask(&self, machine: MachineId) -> Option<Part> {
        if !self.machines.take(machine, Instant::now()) {
            return None;
        }
        let seat = async {
            loop {
                match self.asking.enter(machine, ASKING_MAX) {
                    Some(part) => return part,
                    None => sleep(SEAT_PAUSE).await,
                }
            }
        };
        timeout(SEAT_WAIT, seat).await.ok()
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
        Paces { every, ahead: every * at_once.saturating_sub(1), due: Arc::default() }
    }

    /// Takes a turn, if there is one.
    fn take(&self, who: K, now: Instant) -> bool {
        let mut all = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if KNOWN_MAX <= all.len() {
            all.retain(|_, due| now < *due);
            // So many that come too often are a few more turns for each of them, and no more memory.
            if KNOWN_MAX / 2 < all.len() {
                all.clear();
            }
        }
        let due = all.get(&who).map_or(now, |due| now.max(*due));
        let is_free = due.duration_since(now) <= self.ahead;
        if is_free {
            all.insert(who, due + self.every);
        }
        is_free
    }

    fn give_back(&self, who: K) {
        let mut all = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(due) = all.get_mut(&who) {
            *due = due.checked_sub(self.every).unwrap_or(*due);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EVERY: Duration = Duration::from_secs(1);

    #[test]
    fn turns_are_used_up_and_grow_again_with_time() {
        let (paces, now) = (Paces::new(3, EVERY), Instant::now());
        let taken = |who: u8, now: Instant| (0..10).filter(|_| paces.take(who, now)).count();
        assert_eq!((taken(1, now), taken(1, now), taken(2, now)), (3, 0, 3));
        assert_eq!(taken(1, now + EVERY), 1);
        assert_eq!(taken(1, now + 100 * EVERY), 3, "no more than at the beginning");
        let later = now + 200 * EVERY;
        assert_eq!(taken(3, later), 3);
        paces.give_back(3);
        assert_eq!(taken(3, later), 1);
    }

    #[test]
    fn whoever_comes_from_many_places_takes_no_memory() {
        let (paces, now) = (Paces::new(2, EVERY), Instant::now());
        for who in 0..10 * KNOWN_MAX {
            assert!(paces.take(who, now));
            assert!(paces.due.lock().unwrap().len() <= KNOWN_MAX);
        }
    }

    #[test]
    fn addresses_that_one_machine_can_choose_count_together() {
        let of = |text: &str| network(text.parse().unwrap());
        assert_eq!(of("2001:db8:1:2::7"), of("2001:db8:1:2:ffff::9"));
        assert_ne!(of("2001:db8:1:2::7"), of("2001:db8:1:3::7"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
