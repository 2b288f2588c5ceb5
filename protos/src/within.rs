//! Time limits that a process does not use up while it stands still.

use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

/// Largest part of a limit that a pause of this process uses up.
const STEP: Duration = Duration::from_millis(500);

/// A limit was over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Over(pub(crate) Duration);

/// Waits for a future, for a time of which any pause of this process is one [`STEP`] at most: a process that
/// was stopped, or had no CPU, looks at what has come meanwhile before it gives the other side up.
///
/// # Errors
/// [`Over`].
pub(crate) async fn within<F: Future>(limit: Duration, future: F) -> Result<F::Output, Over> {
    let mut future = pin!(future);
    let mut left = limit;
    while !left.is_zero() {
        let step = left.min(STEP);
        if let Ok(done) = timeout(step, future.as_mut()).await {
            return Ok(done);
        }
        left -= step;
    }
    Err(Over(limit))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::sync::oneshot;
    use tokio::time::{Instant, advance};

    #[tokio::test(start_paused = true)]
    async fn a_limit_ends_what_takes_longer() {
        let begun = Instant::now();
        let ended = within(Duration::from_millis(1_700), std::future::pending::<()>()).await;
        assert_eq!(ended, Err(Over(Duration::from_millis(1_700))));
        assert!(Duration::from_millis(1_700) <= begun.elapsed());
        assert!(within(Duration::ZERO, std::future::pending::<()>()).await.is_err());
        assert_eq!(within(Duration::from_secs(1), std::future::ready(7)).await.unwrap(), 7);
    }

    #[tokio::test(start_paused = true)]
    async fn a_process_that_stood_still_gives_the_other_side_its_time() {
        let (answer, answered) = oneshot::channel();
        let waiting = tokio::spawn(within(Duration::from_secs(5), answered));
        for _ in 0..5 {
            // The clock goes on at once, as that of a process that was stopped does.
            tokio::task::yield_now().await;
            advance(Duration::from_secs(60)).await;
        }
        answer.send(7).unwrap();
        assert_eq!(waiting.await.unwrap().unwrap(), Ok(7));
    }
}
