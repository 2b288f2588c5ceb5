//! Addresses of names of machines, as connections need them.
//!
//! A name server that does not answer holds a thread for ten seconds and more for each question, and the
//! threads that may wait have other work: signatures, logs, files. So few of them ask for names at a time, a
//! question has a moment, and a name that had an address is taken to have it still when there is no answer.
//! Whoever answers at an address that is another's by now does not show the right certificate.

use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout};

/// Threads that ask for names at a time.
const ASKING_MAX: usize = 8;
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
        Names { asking: Semaphore::new(ASKING_MAX), moment, known: Mutex::default() }
    }

    async fn ask(
        &'static self,
        address: &str,
        look: impl FnOnce(String) -> io::Result<Vec<SocketAddr>> + Send + 'static,
    ) -> io::Result<Vec<SocketAddr>> {
        let last = self.last(address);
        let asking = async {
            let turn = self.asking.acquire().await.map_err(io::Error::other)?;
            let name = address.to_owned();
            // The thread has the turn, whoever has given up waiting for it.
            let asked = tokio::task::spawn_blocking(move || {
                let _turn = turn;
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
    async fn addresses_need_no_name_server() {
        let asked = addresses("10.0.0.1:7").await.unwrap();
        assert_eq!(asked, found());
        assert!(addresses("10.0.0.1").await.is_err());
    }
}
