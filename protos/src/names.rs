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
/// Names whose answers are kept.
const KEPT_MAX: usize = 4096;

/// Names of this process.
static NAMES: LazyLock<Names> = LazyLock::new(|| Names::new(MOMENT));

/// The owner of a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Whose {
    /// A member, which has chosen it.
    Member,
    /// A control store, as the user or another control store says.
    Store,
}

type Found = Vec<SocketAddr>;
/// The answer that all who ask for a name wait for; none before it is there.
type Answer = Option<Result<Found, Arc<io::Error>>>;

/// Answers for names, and the threads that ask.
#[derive(Debug)]
struct Names {
    moment: Duration,
    members: Arc<Mutex<Turns>>,
    stores: Arc<Mutex<Turns>>,
    /// Names that are asked for.
    asked: Mutex<HashMap<String, Arc<watch::Sender<Answer>>>>,
    known: Mutex<HashMap<String, Known>>,
}

/// The last that was learned of a name.
#[derive(Clone, Debug, Default)]
struct Known {
    found: Option<(Found, Instant)>,
    slow: Option<Instant>,
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
    address: String,
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

/// The addresses that `host:port` had when it was asked for last, if that was lately; nobody is asked.
#[must_use]
pub fn known(address: &str) -> Option<Vec<SocketAddr>> {
    address.parse().map_or_else(|_| NAMES.last(address), |address| Some(vec![address]))
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

    /// The answer to the question for a name that is under way, or to a new one.
    fn question(
        &'static self,
        address: &str,
        whose: Whose,
        look: impl FnOnce(String) -> io::Result<Found> + Send + 'static,
    ) -> watch::Receiver<Answer> {
        let mut asked = held(&self.asked);
        if let Some(question) = asked.get(address) {
            return question.subscribe();
        }
        let (question, answer) = watch::channel(None);
        let question = Arc::new(question);
        asked.insert(address.to_owned(), Arc::clone(&question));
        let entry = Entry { names: self, address: address.to_owned(), question };
        let turn = self.turn(address, whose);
        tokio::spawn(async move {
            let Ok(turn) = turn.await else { return };
            if entry.is_given_up() {
                return;
            }
            let name = entry.address.clone();
            let begun = Instant::now();
            // The thread has the turn, whoever has given up waiting for it.
            let found = tokio::task::spawn_blocking(move || {
                let _turn = turn;
                look(name)
            });
            let found = found.await.unwrap_or_else(|ended| Err(io::Error::other(ended)));
            let addresses = found.as_ref().ok().map(Vec::as_slice);
            self.note(&entry.address, addresses, self.moment < begun.elapsed());
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
        held(turns).waiting.push_back((Place { zone: zone_of(address), is_slow }, give));
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
        let known = held(&self.known);
        let last = known.get(address).and_then(|known| known.found.as_ref());
        last.is_some_and(|(_, at)| at.elapsed() <= FRESH_FOR)
    }

    /// Notes the addresses that were found, if any were, and whether that took long.
    fn note(&self, address: &str, found: Option<&[SocketAddr]>, is_slow: bool) {
        let mut known = held(&self.known);
        if KEPT_MAX <= known.len() && !known.contains_key(address) {
            // So many are not the names of one cluster: each is asked for again.
            known.clear();
        }
        let (name, now) = (known.entry(address.to_owned()).or_default(), Instant::now());
        if let Some(found) = found {
            name.found = Some((found.to_vec(), now));
        }
        if is_slow {
            name.slow = Some(now);
        }
    }
}

impl Entry {
    /// Whether nobody waits for the answer; then nobody will.
    fn is_given_up(&self) -> bool {
        let mut asked = held(&self.names.asked);
        let is_given_up = self.question.receiver_count() == 0;
        if is_given_up {
            asked.remove(&self.address);
        }
        is_given_up
    }

    /// Whoever asks from now on asks anew.
    fn leave(&self) {
        let mut asked = held(&self.names.asked);
        if asked.get(&self.address).is_some_and(|question| Arc::ptr_eq(question, &self.question)) {
            asked.remove(&self.address);
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
        let (next, _) = waiting.min_by_key(|(_, (place, _))| (place.is_slow, of_zone(place)))?;
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
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::{Sender, channel};
    use tokio::task::JoinHandle;

    fn names() -> &'static Names {
        Box::leak(Box::new(Names::new(Duration::from_millis(20))))
    }

    fn found() -> Found {
        vec!["10.0.0.1:7".parse().unwrap()]
    }

    /// Asks for a name whose server is silent until the end is dropped.
    fn ask_silent(
        names: &'static Names,
        address: String,
        asking: &Arc<AtomicUsize>,
    ) -> (Sender<()>, JoinHandle<io::Result<Found>>) {
        let ((end, answer), asking) = (channel::<()>(), Arc::clone(asking));
        let look = move |_: String| {
            asking.fetch_add(1, Ordering::Relaxed);
            let _over = answer.recv();
            Err(io::Error::other("late"))
        };
        (end, tokio::spawn(async move { names.ask(&address, Whose::Member, look).await }))
    }

    /// Waits until so many questions hold threads.
    async fn until(asking: &AtomicUsize, count: usize) {
        while asking.load(Ordering::Relaxed) < count {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    /// Whether a name that nobody has asked for is answered while others are silent.
    async fn is_answered(names: &'static Names, address: &str, whose: Whose) -> bool {
        let asked = names.ask(address, whose, |_| Ok(found()));
        timeout(Duration::from_secs(20), asked).await.is_ok_and(|asked| asked.unwrap() == found())
    }

    #[tokio::test]
    async fn a_name_keeps_its_address_while_nobody_answers_for_it() {
        let names = names();
        let refused = |_: String| Err(io::Error::other("no name server"));
        assert!(names.ask("head:7", Whose::Store, refused).await.is_err(), "it never had one");
        assert_eq!(names.ask("head:7", Whose::Store, |_| Ok(found())).await.unwrap(), found());
        assert_eq!(names.ask("head:7", Whose::Store, refused).await.unwrap(), found());
        assert_eq!((names.last("head:7"), names.last("other:7")), (Some(found()), None));
        assert!(names.is_fresh("head:7") && !names.is_fresh("other:7"));
        let asking = Arc::new(AtomicUsize::new(0));
        let (silent, asked) = ask_silent(names, "head:7".to_owned(), &asking);
        assert_eq!(asked.await.unwrap().unwrap(), found(), "it is asked for, and not waited for");
        drop(silent);
        while !held(&names.asked).is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let other: Found = vec!["10.0.0.2:7".parse().unwrap()];
        let moved = other.clone();
        assert_eq!(
            names.ask("head:7", Whose::Store, |_| Ok(moved)).await.unwrap(),
            other,
            "it has another one"
        );
        assert!(names.ask("other:7", Whose::Store, refused).await.is_err());
    }

    /// All threads of a head that may wait would wait for names.
    #[test]
    fn a_name_server_that_is_silent_holds_few_threads() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().max_blocking_threads(2 * ASKING_MAX).build().unwrap();
        let (names, asking) = (names(), Arc::new(AtomicUsize::new(0)));
        runtime.block_on(async {
            let ask = |at| ask_silent(names, format!("silent-{at}:7"), &asking);
            let silent: Vec<_> = (0..4 * ASKING_MAX).map(ask).collect();
            until(&asking, ASKING_MAX).await;
            // Other work finds a thread, while all of them wait.
            tokio::task::spawn_blocking(|| ()).await.unwrap();
            assert_eq!(asking.load(Ordering::Relaxed), ASKING_MAX);
            assert!(is_answered(names, "head:7", Whose::Store).await, "members have no say in it");
            drop(silent);
        });
    }

    #[tokio::test]
    async fn one_zone_whose_server_is_silent_holds_up_no_other() {
        let (names, asking) = (names(), Arc::new(AtomicUsize::new(0)));
        let ask = |at| ask_silent(names, format!("x{at}.slow.example:7"), &asking);
        let silent: Vec<_> = (0..64).map(ask).collect();
        until(&asking, OF_ZONE_MAX).await;
        for good in ["pod-7.tharsis.svc.cluster.local:7", "pod-7.good.example:7", "slow.example:7"] {
            assert!(is_answered(names, good, Whose::Member).await, "{good}");
        }
        assert_eq!(asking.load(Ordering::Relaxed), OF_ZONE_MAX);
        drop(silent);
    }

    #[tokio::test]
    async fn names_that_were_slow_hold_up_no_others_in_however_many_zones() {
        let (names, asking) = (names(), Arc::new(AtomicUsize::new(0)));
        (0..64).for_each(|at| names.note(&format!("x.slow{at}.example:7"), None, true));
        let ask = |at| ask_silent(names, format!("x.slow{at}.example:7"), &asking);
        let silent: Vec<_> = (0..64).map(ask).collect();
        until(&asking, SLOW_MAX).await;
        assert!(is_answered(names, "pod-7.good.example:7", Whose::Member).await);
        assert_eq!(asking.load(Ordering::Relaxed), SLOW_MAX);
        drop(silent);
    }

    /// Looks at members follow each other while the first question is still under way.
    #[tokio::test]
    async fn a_name_is_asked_for_once_at_a_time() {
        let (names, asking) = (names(), Arc::new(AtomicUsize::new(0)));
        let ask = || ask_silent(names, "x.slow.example:7".to_owned(), &asking);
        let (silent, first) = ask();
        until(&asking, 1).await;
        let others: Vec<_> = (0..10).map(|_| ask().1).collect();
        while held(&names.asked)["x.slow.example:7"].receiver_count() < 11 {
            tokio::task::yield_now().await;
        }
        drop(silent);
        assert!(first.await.unwrap().is_err());
        for other in others {
            assert!(other.await.unwrap().is_err(), "the answer is for all");
        }
        assert_eq!(asking.load(Ordering::Relaxed), 1);
        assert!(is_answered(names, "x.slow.example:7", Whose::Member).await, "it is asked for anew");
    }

    /// Whoever dials a member gives up long before a question for its name has its turn.
    #[tokio::test]
    async fn a_name_that_nobody_waits_for_is_not_asked_for() {
        let (names, asking) = (names(), Arc::new(AtomicUsize::new(0)));
        let ask = |name: &str| ask_silent(names, format!("{name}.slow.example:7"), &asking);
        let silent: Vec<_> = (0..OF_ZONE_MAX).map(|at| ask(&at.to_string())).collect();
        until(&asking, OF_ZONE_MAX).await;
        let (_end, given_up) = ask("late");
        while held(&names.asked).len() == OF_ZONE_MAX {
            tokio::task::yield_now().await;
        }
        given_up.abort();
        assert!(given_up.await.unwrap_err().is_cancelled());
        drop(silent);
        while !held(&names.asked).is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        assert_eq!(asking.load(Ordering::Relaxed), OF_ZONE_MAX);
        let turns = held(&names.members);
        assert_eq!((turns.asking, turns.slow, turns.zones.len(), turns.waiting.len()), (0, 0, 0, 0));
    }

    #[test]
    fn the_zone_with_the_fewest_questions_is_next() {
        let turns = Turns::new(Bounds { all: 3, of_zone: 2, slow: 1 });
        let wait = |zone: &str, is_slow| {
            let (give, turn) = oneshot::channel();
            held(&turns).waiting.push_back((Place { zone: zone.to_owned(), is_slow }, give));
            Turns::go_on(&turns);
            turn
        };
        let (mut a1, mut a2, mut a3) = (wait("a", false), wait("a", false), wait("a", false));
        let (mut slow, mut other) = (wait("s", true), wait("t", true));
        let mut b1 = wait("b", false);
        let first = a1.try_recv().unwrap();
        let _second = a2.try_recv().unwrap();
        // The third turn was not for a third of the zone.
        let of_slow = slow.try_recv().unwrap();
        assert!(a3.try_recv().is_err() && other.try_recv().is_err() && b1.try_recv().is_err());
        drop(first);
        let _of_b = b1.try_recv().unwrap();
        assert!(a3.try_recv().is_err(), "it was there before, and is of a zone with one under way");
        drop(of_slow);
        let _third = a3.try_recv().unwrap();
        assert!(other.try_recv().is_err(), "slow ones are last");
    }

    #[test]
    fn a_zone_is_a_name_without_its_first_part() {
        assert_eq!(zone_of("x1.Slow.Example:7"), "slow.example");
        assert_eq!(zone_of("a.b.slow.example.:7"), "b.slow.example");
        assert_eq!((zone_of("head:7"), zone_of("head")), ("head".into(), "head".into()));
    }

    #[tokio::test]
    async fn addresses_need_no_name_server() {
        let asked = addresses("10.0.0.1:7", Whose::Member).await.unwrap();
        assert_eq!(asked, found());
        assert!(addresses("10.0.0.1", Whose::Member).await.is_err());
        assert_eq!((known("10.0.0.1:7"), known("10.0.0.1")), (Some(found()), None));
    }
}
