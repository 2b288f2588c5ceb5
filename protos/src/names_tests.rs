//! Tests of the threads that ask for names, with name servers that are silent.

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
    names.has_moved("head:7");
    assert!(!names.is_fresh("head:7") && names.is_of_former("head:7"));
    assert_eq!(names.last("head:7"), Some(found()), "it may be there still");
    assert_eq!(names.ask("head:7", Whose::Store, |_| Ok(found())).await.unwrap(), found());
    assert!(names.is_fresh("head:7") && !names.is_of_former("head:7"));
    // That may have been the answer of a cache.
    let known = held(&names.known)["head:7"].clone();
    let settled = known.moved.unwrap() + CACHED_FOR;
    let later = Duration::from_millis(1);
    assert!(known.is_fresh(settled) && !known.is_fresh(settled + later));
    let asked_again = Known { found: Some((found(), settled)), ..known };
    assert!(asked_again.is_fresh(settled + FRESH_FOR) && !asked_again.is_fresh(settled + FRESH_FOR + later));
    let asking = Arc::new(AtomicUsize::new(0));
    let (silent, asked) = ask_silent(names, "head:7".to_owned(), &asking);
    assert_eq!(asked.await.unwrap().unwrap(), found(), "it is asked for, and not waited for");
    drop(silent);
    while !held(&names.asked).is_empty() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let other: Found = vec!["10.0.0.2:7".parse().unwrap()];
    let moved = other.clone();
    assert_eq!(names.ask("head:7", Whose::Store, |_| Ok(moved)).await.unwrap(), other, "it has another one");
    assert!(names.ask("other:7", Whose::Store, refused).await.is_err());
}

/// Whoever joins may say that it has the name of another member.
#[tokio::test]
async fn a_name_that_another_one_says_it_has_keeps_its_address_while_nobody_answers() {
    let names: &'static Names = Box::leak(Box::new(Names::new(Duration::from_secs(3_600))));
    let limit = Duration::from_millis(1);
    let (end, answer) = channel::<()>();
    let silent = move |_: String| {
        let _over = answer.recv();
        Err(io::Error::other("late"))
    };
    let nobody = |_: String| -> io::Result<Found> { unreachable!("it is known") };
    names.note("worker:7", Some(&found()), false);
    assert_eq!(names.last_or_ask("worker:7", Whose::Member, limit, nobody).await.unwrap(), found());
    names.has_moved("worker:7");
    assert_eq!(names.last_or_ask("worker:7", Whose::Member, limit, silent).await.unwrap(), found());
    drop(end);
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

/// A member says that it is reached by the name of the head.
#[tokio::test]
async fn the_name_of_a_control_store_does_not_wait_for_that_of_a_member() {
    let (names, asking) = (names(), Arc::new(AtomicUsize::new(0)));
    let (silent, member) = ask_silent(names, "head.example:7".to_owned(), &asking);
    until(&asking, 1).await;
    assert!(is_answered(names, "head.example:7", Whose::Store).await);
    drop(silent);
    assert!(member.await.unwrap().is_err());
}

#[test]
fn the_names_that_were_asked_for_longest_ago_are_forgotten_first() {
    let names = names();
    names.note("head:7", Some(&found()), false);
    for at in 0..KEPT_MAX - 1 {
        names.note(&format!("x{at}.example:7"), None, true);
    }
    std::thread::sleep(Duration::from_millis(2));
    names.note("head:7", Some(&found()), false);
    names.note("last:7", Some(&found()), false);
    assert!(names.last("head:7").is_some() && names.last("last:7").is_some());
    assert!(held(&names.known).len() <= KEPT_MAX / 2 + 2);
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
    let key = ("x.slow.example:7".to_owned(), Whose::Member);
    while held(&names.asked)[&key].receiver_count() < 11 {
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
        held(&turns)
            .waiting
            .push_back((Place { zone: zone.to_owned(), is_slow, since: Instant::now() }, give));
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
    assert_eq!(known_or_asked("10.0.0.1:7", Whose::Member, Duration::ZERO).await.unwrap(), found());
    assert!(is_fresh("10.0.0.1:7") && !is_fresh("10.0.0.1"));
}
