//! Tests of paces, and of a crowd of members that comes back beside somebody hostile, in a time of its own.

use super::*;
use crate::port::UNPROVED_MAX;
use crate::proof::PROOF_WAIT;
use crate::unproved::Unproved;
use std::collections::{BTreeMap, VecDeque};

const EVERY: Duration = Duration::from_secs(1);

#[test]
fn turns_are_used_up_and_grow_again_with_time() {
    let (mut paces, now) = (Paces::new(3, EVERY), Instant::now());
    let mut taken = |who: u8, now: Instant| (0..10).filter(|_| paces.take(who, now).is_ok()).count();
    assert_eq!((taken(1, now), taken(1, now), taken(2, now)), (3, 0, 3));
    assert_eq!(taken(1, now + EVERY), 1);
    assert_eq!(taken(1, now + 100 * EVERY), 3, "no more than at the beginning");
    let later = now + 200 * EVERY;
    assert_eq!(taken(3, later), 3);
    assert_eq!(paces.take(3, later + EVERY / 4), Err(EVERY * 3 / 4), "the time until there is one");
    paces.give_back(3);
    assert_eq!((paces.take(3, later), paces.take(3, later)), (Ok(()), Err(EVERY)));
}

#[test]
fn whoever_comes_from_many_places_takes_no_memory() {
    let (mut paces, now) = (Paces::new(2, EVERY), Instant::now());
    for who in 0..10 * KNOWN_MAX {
        assert_eq!(paces.take(who, now), Ok(()));
        assert!(paces.due.len() <= KNOWN_MAX);
    }
    let mut handshakes = Handshakes::default();
    for at in 0..10 * KNOWN_MAX as u32 {
        let place = handshakes.enter(IpAddr::from(at.to_be_bytes()));
        let turn = handshakes.turn(place, now).unwrap();
        handshakes.leave(place);
        handshakes.met(turn, MachineId(at.into()), now);
        assert!(handshakes.met.len() <= KNOWN_MAX && handshakes.waiting.is_empty());
        assert!(handshakes.of_machine.len() <= handshakes.met.len());
        assert!(handshakes.met.contains_key(&turn.network), "the last one is known");
    }
}

/// A machine that has a /48 has 65 536 networks. Who has a connection does not come again.
#[test]
fn a_machine_with_many_addresses_takes_none_of_others() {
    let (mut handshakes, now) = (Handshakes::default(), Instant::now());
    let mut meet = |address: IpAddr, machine, at| {
        let place = handshakes.enter(address);
        let turn = handshakes.turn(place, at).unwrap();
        handshakes.leave(place);
        handshakes.met(turn, MachineId(machine), at);
        handshakes.met.len()
    };
    let others: Vec<IpAddr> = (1..=200).map(|last| IpAddr::from([10, 0, 0, last])).collect();
    for (number, address) in others.iter().enumerate() {
        meet(*address, number as u64, now);
    }
    let of = |number| IpAddr::from([0x2001, 0xdb8, 1, number, 0, 0, 0, 1]);
    for number in 0..=u16::MAX {
        let later = now + Duration::from_millis(number.into());
        assert!(meet(of(number), 7_000, later) <= others.len() + OF_MACHINE_MAX);
    }
    // One that comes from where another one is, before it or behind, does not take that away.
    meet(others[0], 7_000, now);
    let shared = IpAddr::from([10, 0, 1, 1]);
    meet(shared, 7_000, now);
    meet(shared, 8_000, now);
    for number in 0..=20 {
        meet(of(number), 7_000, now);
    }
    assert!(handshakes.met.contains_key(&shared));
    assert!(others.iter().all(|address| handshakes.met.contains_key(address)));
    assert!(handshakes.met.contains_key(&network(of(20))) && !handshakes.met.contains_key(&network(of(0))));
}

#[test]
fn addresses_that_one_machine_can_choose_count_together() {
    let of = |text: &str| network(text.parse().unwrap());
    assert_eq!(of("2001:db8:1:2::7"), of("2001:db8:1:2:ffff::9"));
    assert_ne!(of("2001:db8:1:2::7"), of("2001:db8:1:3::7"));
    assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
    assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
}

#[test]
fn an_address_of_members_has_a_stock_that_strangers_have_not_used_up() {
    let (mut handshakes, now) = (Handshakes::default(), Instant::now());
    let [members, strangers] = [1, 2].map(|last| IpAddr::from([10, 0, 0, last]));
    let all = |handshakes: &mut Handshakes, address, now| {
        let place = handshakes.enter(address);
        let mut taken = Vec::new();
        while let Ok(turn) = handshakes.turn(place, now) {
            taken.push(turn);
        }
        handshakes.leave(place);
        taken
    };
    let at_once = |count: u32| count as usize;
    let taken = all(&mut handshakes, members, now);
    assert_eq!(taken.len(), at_once(STRANGERS_AT_ONCE), "nobody is known yet");
    handshakes.met(taken[0], MachineId(1), now);
    let taken = all(&mut handshakes, members, now);
    assert_eq!(taken.len(), at_once(MEMBERS_AT_ONCE));
    assert!(taken.iter().all(|turn| turn.stock == Stock::Members));
    handshakes.met(taken[0], MachineId(1), now);
    assert_eq!(all(&mut handshakes, members, now).len(), 1, "a turn is given back to where it is from");
    assert_eq!(all(&mut handshakes, strangers, now).len(), at_once(STRANGERS_AT_ONCE));
    let later = now + MEMBER_FOR + EVERY;
    assert_eq!(all(&mut handshakes, members, later).len(), at_once(STRANGERS_AT_ONCE), "that is long ago");
}

#[test]
fn the_one_that_came_last_is_next_and_those_that_go_make_way() {
    let (mut handshakes, now) = (Handshakes::default(), Instant::now());
    let address = IpAddr::from([10, 0, 0, 1]);
    let gone = handshakes.enter(address);
    while handshakes.turn(gone, now).is_ok() {}
    handshakes.leave(gone);
    let [first, second, third] = [(); 3].map(|()| handshakes.enter(address));
    let later = now + STRANGER_EVERY;
    assert_eq!(handshakes.turn(first, later).unwrap_err(), STRANGER_EVERY * 2, "two are before it");
    assert_eq!(handshakes.turn(second, later).unwrap_err(), STRANGER_EVERY);
    assert!(handshakes.turn(third, later).is_ok());
    handshakes.leave(third);
    handshakes.leave(second);
    assert_eq!(handshakes.turn(first, later).unwrap_err(), STRANGER_EVERY);
    assert!(handshakes.turn(first, later + STRANGER_EVERY).is_ok());
}

#[tokio::test]
async fn requests_of_a_machine_are_answered_in_their_order_and_those_given_up_do_not_count() {
    let (crowds, machine) = (Crowds::default(), MachineId(1));
    let mut seats = Vec::new();
    for _ in 0..ASKING_MAX {
        seats.push(crowds.ask(machine).await.unwrap());
    }
    for _ in 0..2 * CERTIFICATES_AT_ONCE {
        assert!(futures::poll!(std::pin::pin!(crowds.ask(machine))).is_pending());
    }
    let (mut first, mut second) = (Box::pin(crowds.ask(machine)), Box::pin(crowds.ask(machine)));
    assert!(futures::poll!(&mut first).is_pending() && futures::poll!(&mut second).is_pending());
    assert!(crowds.ask(MachineId(2)).await.is_some(), "others have seats of their own");
    seats.pop();
    assert!(futures::poll!(&mut second).is_pending());
    assert!(first.await.is_some(), "its seat is free again");
    assert!(second.await.is_some());
}

const MEMBERS: usize = 1000;
/// Connections that a port accepts in a millisecond.
const ACCEPTED_MAX: usize = 50;

/// A crowd of members behind one address, all of which come back at once, and somebody who opens connections
/// and keeps silent.
struct Crowd {
    /// The time that the handshake of a member takes, in milliseconds.
    handshake: u64,
    /// Silent connections a second.
    silent: u64,
    /// Addresses from which they come; none if it is that of the members.
    from: u8,
}

/// A connection that was opened.
struct Open {
    network: IpAddr,
    is_member: bool,
    since: u64,
    place: Place,
    /// Its turn, and when its handshake is over.
    shaking: Option<(Turn, u64)>,
}

/// A port in a crowd.
#[derive(Default)]
struct Port {
    handshakes: Handshakes,
    unproved: Unproved<u64>,
    open: BTreeMap<u64, Open>,
    opened: u64,
    /// The times at which members come, again.
    coming: VecDeque<u64>,
    joined: usize,
    random: u64,
}

impl Port {
    fn open(&mut self, start: Instant, now: u64, network: IpAddr, is_member: bool) {
        let (place, id) = (self.handshakes.enter(network), self.opened);
        self.opened += 1;
        self.open.insert(id, Open { network, is_member, since: now, place, shaking: None });
        let at = start + Duration::from_millis(now);
        self.unproved.add(network, at, id);
        if UNPROVED_MAX < self.unproved.len() {
            let ended = self.unproved.take_one(at).unwrap();
            self.end(now, ended);
        }
    }

    /// A number of a generator by Lehmer, below a bound.
    fn random(&mut self, bound: u64) -> u64 {
        self.random = self.random * 48271 % 0x7fff_ffff;
        self.random % bound
    }

    /// Ends a connection; a member tries again half a second later, or somewhat earlier or later.
    fn end(&mut self, now: u64, id: u64) {
        let ended = self.open.remove(&id).unwrap();
        self.handshakes.leave(ended.place);
        if ended.is_member {
            let again = now + 250 + self.random(500);
            let at = self.coming.partition_point(|time| *time <= again);
            self.coming.insert(at, again);
        }
    }

    /// Lets those go on whose turn it is, and those whose handshake is over.
    fn go_on(&mut self, start: Instant, now: u64, handshake: u64) {
        let at = start + Duration::from_millis(now);
        let (mut over, mut blocked) = (Vec::new(), Vec::new());
        for (id, open) in self.open.iter_mut().rev() {
            match open.shaking {
                // The newest one of an address is next.
                None if blocked.contains(&open.network) => {}
                None => {
                    if let Ok(turn) = self.handshakes.turn(open.place, at) {
                        self.handshakes.leave(open.place);
                        open.shaking = Some((turn, now + handshake));
                    } else {
                        blocked.push(open.network);
                    }
                }
                Some((turn, end)) if end <= now && open.is_member => over.push((*id, turn)),
                Some(_) => {}
            }
        }
        for (id, turn) in over {
            self.handshakes.met(turn, MachineId(id), at);
            self.open.remove(&id);
            self.unproved.forget(|other| *other == id);
            self.joined += 1;
        }
        let late = |open: &Open| u64::try_from(PROOF_WAIT.as_millis()).unwrap() < now - open.since;
        let late: Vec<u64> = self.open.iter().filter(|(_, open)| late(open)).map(|(id, _)| *id).collect();
        for id in late {
            self.unproved.forget(|other| *other == id);
            self.end(now, id);
        }
    }
}

impl Crowd {
    /// The number of members that are in after so many milliseconds, or as soon as there are enough.
    fn joined_after(&self, limit: u64, enough: usize) -> usize {
        let start = Instant::now();
        let members = IpAddr::from([10, 0, 0, 1]);
        let mut port =
            Port { coming: std::iter::repeat_n(0, MEMBERS).collect(), random: 1, ..Port::default() };
        let mut silent = 0;
        for now in 0..limit {
            let due = self.silent * now / 1000;
            for _ in 0..ACCEPTED_MAX {
                // Nobody is always the first.
                let is_silent = port.random(2) == 0;
                if is_silent && silent < due {
                    silent += 1;
                    let from = silent.checked_rem(u64::from(self.from));
                    let from = from.map_or(members, |from| IpAddr::from([10, 0, 1, from as u8]));
                    port.open(start, now, from, false);
                }
                if !is_silent && port.coming.front().is_some_and(|time| *time <= now) {
                    port.coming.pop_front();
                    port.open(start, now, members, true);
                }
            }
            port.go_on(start, now, self.handshake);
            assert!(port.unproved.len() <= UNPROVED_MAX && port.unproved.len() == port.open.len());
            if enough <= port.joined {
                break;
            }
        }
        port.joined
    }
}

#[test]
fn a_thousand_members_behind_one_address_come_back_beside_a_hostile_one() {
    for handshake in [5, 400] {
        for (silent, from) in [(20, 1), (1000, 1)] {
            let crowd = Crowd { handshake, silent, from };
            assert_eq!(
                crowd.joined_after(12_000, MEMBERS),
                MEMBERS,
                "{silent}/s from {from}, {handshake} ms"
            );
        }
    }
    // From many addresses each of which has few.
    assert_eq!(Crowd { handshake: 5, silent: 1000, from: 64 }.joined_after(12_000, MEMBERS), MEMBERS);
}

#[test]
fn a_thousand_members_come_back_with_a_hostile_one_behind_their_address() {
    const MOST: usize = MEMBERS * 9 / 10;
    for (handshake, silent) in [(5, 1000), (50, 1000), (400, 300)] {
        let joined = Crowd { handshake, silent, from: 0 }.joined_after(12_000, MOST);
        assert!(MOST <= joined, "{silent}/s, {handshake} ms: {joined}");
    }
}
