//! Addresses of names of machines, as connections need them.
//!
//! A name server that does not answer holds a thread for ten seconds and more for each question, and the
//! threads that may wait have other work: signatures, logs, files. So few of them ask for names at a time,
//! one for each name, a question has a moment, and a name that had an address is taken to have it still when
//! there is no answer. Whoever answers at an address that is another's by now does not show the right
//! certificate.
//!
//! A member says itself by which name it is reached, and its name server may be slow on purpose. So the names
//! of control stores, which no member chooses, have turns of their own. Of the others that one is next whose
//! zone has the fewest questions under way; names of one zone leave half of the turns to other zones, and so
//! do all names that were slow lately. A zone is what a name ends with: all names of a cluster may be of one.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, timeout};

/// Threads that ask for names of members at a time.
const ASKING_MAX: usize = 8;
/// Those among them that ask for names of one zone, and for names that were slow lately.
const OF_ZONE_MAX: usize = 4;
const SLOW_MAX: usize = 4;
/// Threads that ask for names of control stores at a time.
const OF_STORES_MAX: usize = 2;
/// The time for which an answer is waited for if the last one is known.
const MOMENT: Duration = Duration::from_secs(2);
/// The time for which an answer is waited for at all. A thread may be kept for longer.
const LONGEST: Duration = Duration::from_secs(60);
/// The time for which the last answer is good in place of another one, and a name counts as slow.
const GOOD_FOR: Duration = Duration::from_secs(86_400);
const SLOW_FOR: Duration = Duration::from_secs(3_600);
/// The time after which whoever needs an answer before it is needed asks again.
const FRESH_FOR: Duration = Duration::from_secs(600);
/// The time for which name servers may go on answering with the addresses of the one that had a name before.
const CACHED_FOR: Duration = Duration::from_secs(60);
/// The time after which one that was slow waits no longer behind others.
const PATIENCE: Duration = Duration::from_secs(10);
/// Names whose answers are kept.
const KEPT_MAX: usize = 4096;

/// Names of this process.
static NAMES: LazyLock<Names> = LazyLock::new(|| Names::new(MOMENT));

/// The owner of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Whose {
    /// A member, which has chosen it.
    Member,
    /// A control store, as the user or another control store says.
    Store,
}

type Found = Vec<SocketAddr>;
/// The answer that all who ask for a name wait for; none before it is there.
type Answer = Option<Result<Found, Arc<io::Error>>>;
/// A name, and those who ask for it.
type Question = (String, Whose);

/// Answers for names, and the threads that ask.
#[derive(Debug)]
struct Names {
    moment: Duration,
    members: Arc<Mutex<Turns>>,
    stores: Arc<Mutex<Turns>>,
    /// Names that are asked for. One of a control store may be a member's as well: that question waits for
    /// the turns of members, and this one does not.
    asked: Mutex<HashMap<Question, Arc<watch::Sender<Answer>>>>,
    known: Mutex<HashMap<String, Known>>,
}

/// The last that was learned of a name.
#[derive(Clone, Debug, Default)]
struct Known {
    found: Option<(Found, Instant)>,
    slow: Option<Instant>,
    /// When it was asked for last.
    at: Option<Instant>,
    /// Whether another one has the name since the addresses were found.
    is_of_former: bool,
    /// When another one last got the name.
    moved: Option<Instant>,
}

/// Threads that ask, and questions that wait for one.
#[derive(Debug)]
struct Turns {
    bounds: Bounds,
    asking: usize,
    slow: usize,
    /// Of each zone, the questions under way.
    zones: HashMap<String, usize>,
    waiting: VecDeque<(Place, oneshot::Sender<Turn>)>,
}

/// Maximum numbers of questions under way.
#[derive(Clone, Copy, Debug)]
struct Bounds {
    all: usize,
    of_zone: usize,
    slow: usize,
}

/// The standing of a question among others.
#[derive(Clone, Debug)]
struct Place {
    zone: String,
    is_slow: bool,
    since: Instant,
}

/// A thread may ask, for as long as this lives.
#[derive(Debug)]
struct Turn {
    /// None if nobody took it.
    turns: Option<Arc<Mutex<Turns>>>,
    place: Place,
}

/// The entry of a name that is asked for, which goes with the question, however that ends.
struct Entry {
    names: &'static Names,
    key: (String, Whose),
    question: Arc<watch::Sender<Answer>>,
}

/// The addresses that `host:port` has.
///
/// # Errors
/// The system's, if the name had no address lately either.
pub async fn addresses(address: &str, whose: Whose) -> io::Result<Vec<SocketAddr>> {
    match address.parse() {
        Ok(address) => Ok(vec![address]),
        Err(_) => NAMES.ask(address, whose, |address| address.to_socket_addrs().map(Iterator::collect)).await,
    }
}

/// The addresses that `host:port` had when it was asked for last, if that was lately: then nobody is asked.
/// If another one has the name since, it is asked for, for as long as `limit`.
///
/// # Errors
/// The system's, or that the time is over, if the name had no address lately either.
pub async fn known_or_asked(address: &str, whose: Whose, limit: Duration) -> io::Result<Vec<SocketAddr>> {
    match address.parse() {
        Ok(address) => Ok(vec![address]),
        Err(_) => {
            let look = |address: String| address.to_socket_addrs().map(Iterator::collect);
            NAMES.last_or_ask(address, whose, limit, look).await
        }
    }
}

/// The addresses of `host:port` may be those of the one that had the name before: another one has it now.
/// Whoever connects there asks as always, and the last answer is good only while there is no other.
pub fn has_moved(address: &str) {
    NAMES.has_moved(address);
}

/// Whether the addresses of `host:port` are known and need not be asked for again so far.
#[must_use]
pub fn is_fresh(address: &str) -> bool {
    address.parse::<SocketAddr>().is_ok() || NAMES.is_fresh(address)
}

impl Names {
    fn new(moment: Duration) -> Names {
        Names {
            moment,
            members: Turns::new(Bounds { all: ASKING_MAX, of_zone: OF_ZONE_MAX, slow: SLOW_MAX }),
            stores: Turns::new(Bounds { all: OF_STORES_MAX, of_zone: OF_STORES_MAX, slow: OF_STORES_MAX }),
            asked: Mutex::default(),
            known: Mutex::default(),
        }
    }

    async fn ask(
        &'static self,
        address: &str,
        whose: Whose,
        look: impl FnOnce(String) -> io::Result<Found> + Send + 'static,
    ) -> io::Result<Found> {
        let last = self.last(address);
        let mut answer = self.question(address, whose, look);
        // Callers have limits of their own; this one is for those that have none.
        let limit = if last.is_some() { self.moment } else { LONGEST };
        let asked = async {
            let answer = answer.wait_for(Option::is_some).await.map_err(io::Error::other)?.clone();
            let ended = || io::Error::other("the name is not asked for any more");
            answer.ok_or_else(ended)?.map_err(|cause| io::Error::new(cause.kind(), cause))
        };
        let asked = timeout(limit, asked).await.unwrap_or_else(|over| Err(io::Error::other(over)));
        match (asked, last) {
            (Ok(found), _) => Ok(found),
            (Err(error), Some(last)) => {
                tracing::debug!(%error, address, "the name has the addresses that it had");
                Ok(last)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// The last answer if the name has not moved since, or another one that comes in time, or the last one.
    async fn last_or_ask(
        &'static self,
        address: &str,
        whose: Whose,
        limit: Duration,
        look: impl FnOnce(String) -> io::Result<Found> + Send + 'static,
    ) -> io::Result<Found> {
        let last = self.last(address);
        if let Some(last) = last.as_ref().filter(|_| !self.is_of_former(address)) {
            return Ok(last.clone());
        }
        match timeout(limit, self.ask(address, whose, look)).await {
            Ok(answer) => answer,
            Err(over) => last.ok_or_else(|| io::Error::other(over)),
        }
    }

    /// The answer to the question for a name that is under way, or to a new one.
    fn question(
        &'static self,
        address: &str,
        whose: Whose,
        look: impl FnOnce(String) -> io::Result<Found> + Send + 'static,
    ) -> watch::Receiver<Answer> {
        let mut asked = held(&self.asked);
        let key = (address.to_owned(), whose);
        if let Some(question) = asked.get(&key) {
            return question.subscribe();
        }
        let (question, answer) = watch::channel(None);
        let question = Arc::new(question);
        asked.insert(key.clone(), Arc::clone(&question));
        let entry = Entry { names: self, key, question };
        let turn = self.turn(address, whose);
        tokio::spawn(async move {
            let Ok(turn) = turn.await else { return };
            if entry.is_given_up() {
                return;
            }
            let name = entry.key.0.clone();
            let begun = Instant::now();
            // The thread has the turn, whoever has given up waiting for it.
            let found = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                look(name)
            });
            let found = found.await.unwrap_or_else(|ended| Err(io::Error::other(ended)));
            let addresses = found.as_ref().ok().map(Vec::as_slice);
            self.note(&entry.key.0, addresses, self.moment < begun.elapsed());
            entry.leave();
            entry.question.send_replace(Some(found.map_err(Arc::new)));
        });
        answer
    }

    /// A turn to ask for `host:port`, at once or later.
    fn turn(&self, address: &str, whose: Whose) -> oneshot::Receiver<Turn> {
        let slow_since = held(&self.known).get(address).and_then(|known| known.slow);
        let is_slow = slow_since.is_some_and(|at| at.elapsed() <= SLOW_FOR);
        let turns = if whose == Whose::Store { &self.stores } else { &self.members };
        let (give, turn) = oneshot::channel();
        held(turns)
            .waiting
            .push_back((Place { zone: zone_of(address), is_slow, since: Instant::now() }, give));
        Turns::go_on(turns);
        turn
    }

    /// The last answer, if it is good still.
    fn last(&self, address: &str) -> Option<Found> {
        let known = held(&self.known);
        let (found, at) = known.get(address)?.found.as_ref()?;
        (at.elapsed() <= GOOD_FOR).then(|| found.clone())
    }

    fn is_fresh(&self, address: &str) -> bool {
        held(&self.known).get(address).is_some_and(|known| known.is_fresh(Instant::now()))
    }

    fn has_moved(&self, address: &str) {
        if let Some(known) = held(&self.known).get_mut(address) {
            (known.is_of_former, known.moved) = (true, Some(Instant::now()));
        }
    }

    fn is_of_former(&self, address: &str) -> bool {
        held(&self.known).get(address).is_some_and(|known| known.is_of_former)
    }

    /// Notes the addresses that were found, if any were, and whether that took long.
    fn note(&self, address: &str, found: Option<&[SocketAddr]>, is_slow: bool) {
        let mut known = held(&self.known);
        if KEPT_MAX <= known.len() && !known.contains_key(address) {
            // So many are not the names of one cluster.
            forget_older_half(&mut known);
        }
        let (name, now) = (known.entry(address.to_owned()).or_default(), Instant::now());
        name.at = Some(now);
        if let Some(found) = found {
            (name.found, name.is_of_former) = (Some((found.to_vec(), now)), false);
        }
        if is_slow {
            name.slow = Some(now);
        }
    }
}

impl Known {
    /// Whether the addresses need not be asked for again so far. What came soon after the name had moved may
    /// have been the answer of a cache.
    fn is_fresh(&self, now: Instant) -> bool {
        let Some((_, at)) = self.found.as_ref().filter(|_| !self.is_of_former) else { return false };
        let is_before = |moved: &Instant| *at < *moved + CACHED_FOR;
        let good_until = match self.moved.filter(is_before) {
            Some(moved) => moved + CACHED_FOR,
            None => *at + FRESH_FOR,
        };
        now <= good_until
    }
}

impl Entry {
    /// Whether nobody waits for the answer; then nobody will.
    fn is_given_up(&self) -> bool {
        let mut asked = held(&self.names.asked);
        let is_given_up = self.question.receiver_count() == 0;
        if is_given_up {
            asked.remove(&self.key);
        }
        is_given_up
    }

    /// Whoever asks from now on asks anew.
    fn leave(&self) {
        let mut asked = held(&self.names.asked);
        if asked.get(&self.key).is_some_and(|question| Arc::ptr_eq(question, &self.question)) {
            asked.remove(&self.key);
        }
    }
}

impl Drop for Entry {
    fn drop(&mut self) {
        self.leave();
    }
}

impl Turns {
    fn new(bounds: Bounds) -> Arc<Mutex<Turns>> {
        let (zones, waiting) = (HashMap::new(), VecDeque::new());
        Arc::new(Mutex::new(Turns { bounds, asking: 0, slow: 0, zones, waiting }))
    }

    /// Gives the turns that are free to those who wait.
    fn go_on(turns: &Arc<Mutex<Turns>>) {
        let mut own = held(turns);
        while let Some((place, give)) = own.next() {
            own.count(&place, true);
            if let Err(mut turn) = give.send(Turn { turns: Some(Arc::clone(turns)), place }) {
                // Whoever wanted it is gone.
                turn.turns = None;
                own.count(&turn.place, false);
            }
        }
    }

    /// The question that is next, if there is a turn for it.
    fn next(&mut self) -> Option<(Place, oneshot::Sender<Turn>)> {
        let bounds = self.bounds;
        if bounds.all <= self.asking {
            return None;
        }
        let of_zone = |place: &Place| self.zones.get(&place.zone).copied().unwrap_or(0);
        let is_free =
            |place: &Place| of_zone(place) < bounds.of_zone && (!place.is_slow || self.slow < bounds.slow);
        let waiting = self.waiting.iter().enumerate().filter(|(_, (place, _))| is_free(place));
        // One that was slow has its turn in the end, whatever comes meanwhile.
        let is_last = |place: &Place| place.is_slow && place.since.elapsed() < PATIENCE;
        let (next, _) = waiting.min_by_key(|(_, (place, _))| (is_last(place), of_zone(place)))?;
        self.waiting.remove(next)
    }

    fn count(&mut self, place: &Place, begins: bool) {
        let step = |count: &mut usize| *count = if begins { *count + 1 } else { count.saturating_sub(1) };
        step(&mut self.asking);
        if place.is_slow {
            step(&mut self.slow);
        }
        let of_zone = self.zones.entry(place.zone.clone()).or_default();
        step(of_zone);
        if *of_zone == 0 {
            self.zones.remove(&place.zone);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if let Some(turns) = self.turns.take() {
            held(&turns).count(&self.place, false);
            Turns::go_on(&turns);
        }
    }
}

/// Forgets half of the names, those that were asked for longest ago.
fn forget_older_half(known: &mut HashMap<String, Known>) {
    let mut times: Vec<Option<Instant>> = known.values().map(|name| name.at).collect();
    let half = times.len() / 2;
    let middle = *times.select_nth_unstable(half).1;
    known.retain(|_, name| middle < name.at);
}

fn held<T>(table: &Mutex<T>) -> MutexGuard<'_, T> {
    table.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The name in `host:port` without its first part; all of it if it has no other.
fn zone_of(address: &str) -> String {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.strip_suffix('.').unwrap_or(host);
    host.split_once('.').map_or(host, |(_, zone)| zone).to_ascii_lowercase()
}

#[cfg(test)]
#[path = "names_tests.rs"]
mod tests;
