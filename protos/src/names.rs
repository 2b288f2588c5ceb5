//! Addresses of names of machines, as connections need them.
//!
//! A name server that does not answer holds a thread for ten seconds and more for each question, and the
//! threads that may wait have other work: signatures, logs, files. So few of them ask for names at a time, a
//! question has a moment, and a name that had an address is taken to have it still when there is no answer.
//! Whoever answers at an address that is another's by now does not show the right certificate.
//!
//! A member says itself by which name it is reached, and its name server may be slow on purpose. So of all
//! questions that are under way few are about names of one domain, and the others have the rest.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// Threads that ask for names at a time.
const ASKING_MAX: usize = 8;
/// Those among them that ask for names of one domain.
const OF_DOMAIN_MAX: usize = 2;
/// Domains that are remembered while nobody asks for them.
const DOMAINS_KEPT: usize = 256;
/// The time for which an answer is waited for if the last one is known.
const MOMENT: Duration = Duration::from_secs(2);
/// The time for which the last answer is good in place of another one.
const GOOD_FOR: Duration = Duration::from_secs(86_400);
/// Names whose answers are kept.
const KEPT_MAX: usize = 4096;

/// Names of this process.
static NAMES: LazyLock<Names> = LazyLock::new(|| Names::new(MOMENT));

/// Answers for names, and the threads that ask.
#[derive(Debug)]
struct Names {
    asking: Semaphore,
    domains: Mutex<HashMap<String, Arc<Semaphore>>>,
    moment: Duration,
    known: Mutex<HashMap<String, Answer>>,
}

#[derive(Clone, Debug)]
struct Answer {
    found: Vec<SocketAddr>,
    at: Instant,
}

/// The addresses that `host:port` has.
///
/// # Errors
/// The system's, if the name had no address lately either.
pub(crate) async fn addresses(address: &str) -> io::Result<Vec<SocketAddr>> {
    match address.parse() {
        Ok(address) => Ok(vec![address]),
        Err(_) => NAMES.ask(address, |address| address.to_socket_addrs().map(Iterator::collect)).await,
    }
}

impl Names {
    fn new(moment: Duration) -> Names {
        let asking = Semaphore::new(ASKING_MAX);
        Names { asking, domains: Mutex::default(), moment, known: Mutex::default() }
    }

    async fn ask(
        &'static self,
        address: &str,
        look: impl FnOnce(String) -> io::Result<Vec<SocketAddr>> + Send + 'static,
    ) -> io::Result<Vec<SocketAddr>> {
        let last = self.last(address);
        let asking = async {
            let of_domain = self.domain(address).acquire_owned().await.map_err(io::Error::other)?;
            let turn = self.asking.acquire().await.map_err(io::Error::other)?;
            let name = address.to_owned();
            // The thread has the turns, whoever has given up waiting for it.
            let asked = tokio::task::spawn_blocking(move || {
                let _turns = (of_domain, turn);
                look(name)
            });
            asked.await.map_err(io::Error::other)?
        };
        let asked = match &last {
            Some(_) => timeout(self.moment, asking).await.unwrap_or_else(|over| Err(io::Error::other(over))),
            // There is nothing else, and callers have limits of their own.
            None => asking.await,
        };
        match (asked, last) {
            (Ok(found), _) => {
                self.note(address, &found);
                Ok(found)
            }
            (Err(error), Some(last)) => {
                tracing::debug!(%error, address, "the name has the addresses that it had");
                Ok(last)
            }
            (Err(error), None) => Err(error),
        }
    }

    /// The turns of the domain of `host:port`.
    fn domain(&self, address: &str) -> Arc<Semaphore> {
        let mut domains = self.domains.lock().unwrap_or_else(PoisonError::into_inner);
        if DOMAINS_KEPT <= domains.len() {
            domains.retain(|_, turns| 1 < Arc::strong_count(turns));
        }
        let turns =
            domains.entry(domain_of(address)).or_insert_with(|| Arc::new(Semaphore::new(OF_DOMAIN_MAX)));
        Arc::clone(turns)
    }

    /// The last answer, if it is good still.
    fn last(&self, address: &str) -> Option<Vec<SocketAddr>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let answer = known.get(address).filter(|answer| answer.at.elapsed() <= GOOD_FOR)?;
        Some(answer.found.clone())
    }

    fn note(&self, address: &str, found: &[SocketAddr]) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if KEPT_MAX <= known.len() && !known.contains_key(address) {
            // So many are not the names of one cluster: each is asked for again.
            known.clear();
        }
        known.insert(address.to_owned(), Answer { found: found.to_vec(), at: Instant::now() });
    }
}

/// The last two parts of the name in `host:port`: whoever has a domain chooses those before them.
fn domain_of(address: &str) -> String {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.strip_suffix('.').unwrap_or(host);
    let begin = host.rmatch_indices('.').nth(1).map_or(0, |(dot, _)| dot + 1);
    host.get(begin..).unwrap_or(host).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::mpsc::channel;

    fn names() -> &'static Names {
        Box::leak(Box::new(Names::new(Duration::from_millis(20))))
    }

    fn found() -> Vec<SocketAddr> {
        vec!["10.0.0.1:7".parse().unwrap()]
    }

    #[tokio::test]
    async fn a_name_keeps_its_address_while_nobody_answers_for_it() {
        let names = names();
        let refused = |_: String| Err(io::Error::other("no name server"));
        assert!(names.ask("head:7", refused).await.is_err(), "it never had one");
        assert_eq!(names.ask("head:7", |_| Ok(found())).await.unwrap(), found());
        assert_eq!(names.ask("head:7", refused).await.unwrap(), found());
        let (silent, answer) = channel::<()>();
        let asked = names.ask("head:7", move |_| {
            let _over = answer.recv();
            Err(io::Error::other("late"))
        });
        assert_eq!(asked.await.unwrap(), found(), "it is asked for, and not waited for");
        drop(silent);
        let other: Vec<SocketAddr> = vec!["10.0.0.2:7".parse().unwrap()];
        let moved = other.clone();
        assert_eq!(names.ask("head:7", |_| Ok(moved)).await.unwrap(), other, "it has another one now");
        assert!(names.ask("other:7", refused).await.is_err());
    }

    /// All threads of a head that may wait would wait for names.
    #[test]
    fn a_name_server_that_is_silent_holds_few_threads() {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().max_blocking_threads(2 * ASKING_MAX).build().unwrap();
        let (names, asking) = (names(), Arc::new(AtomicUsize::new(0)));
        let mut silent = Vec::new();
        runtime.block_on(async {
            for at in 0..4 * ASKING_MAX {
                let ((end, answer), asking) = (channel::<()>(), Arc::clone(&asking));
                silent.push(end);
                tokio::spawn(async move {
                    let look = move |_: String| {
                        asking.fetch_add(1, Ordering::Relaxed);
                        let _over = answer.recv();
                        Ok(Vec::new())
                    };
                    names.ask(&format!("silent-{at}:7"), look).await
                });
            }
            while asking.load(Ordering::Relaxed) < ASKING_MAX {
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
            // Other work finds a thread, while all of them wait.
            tokio::task::spawn_blocking(|| ()).await.unwrap();
            assert_eq!(asking.load(Ordering::Relaxed), ASKING_MAX);
            silent.clear();
        });
    }

    #[tokio::test]
    async fn one_domain_whose_server_is_silent_holds_up_no_other() {
        let names = names();
        let mut silent = Vec::new();
        for at in 0..64 {
            let (end, answer) = channel::<()>();
            silent.push(end);
            let look = move |_: String| {
                let _over = answer.recv();
                Ok(Vec::new())
            };
            let mut asked = Box::pin(names.ask(format!("x{at}.slow.example:7").leak(), look));
            assert!(futures::poll!(&mut asked).is_pending());
            tokio::spawn(asked);
        }
        let asked = names.ask("pod-7.tharsis.svc.cluster.local:7", |_| Ok(found()));
        let asked = timeout(Duration::from_secs(20), asked).await;
        assert_eq!(asked.expect("it is not waited for the others").unwrap(), found());
        assert_eq!(names.domains.lock().unwrap().len(), 2);
        // Before the runtime waits for its threads.
        silent.clear();
    }

    #[test]
    fn a_domain_is_the_end_of_a_name() {
        let of = |address| domain_of(address);
        assert_eq!(of("x1.slow.Example:7"), "slow.example");
        assert_eq!(of("a.b.slow.example.:7"), "slow.example");
        assert_eq!((of("slow.example:7"), of("head:7")), ("slow.example".into(), "head".into()));
    }

    #[tokio::test]
    async fn addresses_need_no_name_server() {
        let asked = addresses("10.0.0.1:7").await.unwrap();
        assert_eq!(asked, found());
        assert!(addresses("10.0.0.1").await.is_err());
    }
}
