//! Computations that are watched: progress while they run, the plan with what it took afterwards.

use super::DataFrame;
use crate::bar::Bar;
use crate::error::Result;
use crate::execute::{Executor, default_executor, execute_watched};
use crate::explain::Explanation;
use crate::metrics::Metrics;
use crate::progress::{Done, Progress};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

/// A computation that is about to run.
///
/// ```
/// use tharsis_dataframe::{Computation, DataFrame};
/// let frame = DataFrame::from_columns([("n", vec![1, 2, 3].into())]);
/// let computed = Computation::of(&frame.filter(&frame.col("n").gt(1))).bar("filter").run()?;
/// println!("{}", computed.explanation);
/// assert_eq!(computed.frame.len()?, 2);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[must_use = "nothing is computed until it is run"]
pub struct Computation<'a> {
    frame: &'a DataFrame,
    executor: Option<&'a dyn Executor>,
    watchers: Vec<Watcher<'a>>,
}

/// Callback that is told what a run has done.
type Watcher<'a> = Box<dyn FnMut(Done) + Send + 'a>;

/// Results of a computation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Computed {
    /// The frame, computed: its rows stay where they were made.
    pub frame: DataFrame,
    /// Time, rows and bytes of its run.
    pub metrics: Metrics,
    /// The plan, with what its run took.
    pub explanation: Explanation,
}

/// Interval at which watchers are called.
const WATCH_EVERY: Duration = Duration::from_millis(50);

impl<'a> Computation<'a> {
    /// A computation of all rows of a frame.
    pub fn of(frame: &'a DataFrame) -> Computation<'a> {
        Computation { frame, executor: None, watchers: Vec::new() }
    }

    /// Uses this executor instead of the default one.
    pub fn on(mut self, executor: &'a dyn Executor) -> Computation<'a> {
        self.executor = Some(executor);
        self
    }

    /// Calls `watch` on a separate thread, about twenty times a second and at the end, with what was done.
    ///
    /// ```
    /// use tharsis_dataframe::{Computation, DataFrame, Done};
    /// let frame = DataFrame::from_columns([("n", vec![1, 2, 3].into())]);
    /// let mut last = Done::default();
    /// Computation::of(&frame).watched(|done| last = done).run()?;
    /// assert_eq!((last.tasks, last.rows), (last.all, 3));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    pub fn watched(mut self, watch: impl FnMut(Done) + Send + 'a) -> Computation<'a> {
        self.watchers.push(Box::new(watch));
        self
    }

    /// Draws a progress bar on standard error if that is a terminal.
    pub fn bar(self, label: &str) -> Computation<'a> {
        match Bar::on_terminal(label) {
            Some(mut bar) => self.watched(move |done| bar.draw(done)),
            None => self,
        }
    }

    /// Runs it.
    ///
    /// # Errors
    /// The error that the frame carries, or one of its run.
    #[track_caller]
    pub fn run(self) -> Result<Computed> {
        let default;
        let executor = match self.executor {
            Some(executor) => executor,
            None => {
                default = default_executor();
                &*default as &dyn Executor
            }
        };
        let frame = self.frame.frame()?;
        let plan = frame.output()?;
        let progress = Progress::default();
        let ran = watch(self.watchers, &progress, || execute_watched(&plan, executor, &progress));
        let (rows, metrics, stages) = ran?;
        let explanation = Explanation::new(&stages).with_metrics(&metrics);
        Ok(Computed { frame: DataFrame::new(frame.computed(rows)), metrics, explanation })
    }
}

impl std::fmt::Debug for Computation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Computation({:?}, {} watchers)", self.frame, self.watchers.len())
    }
}

/// Runs `f` while a thread reports progress to the watchers.
fn watch<T>(mut watchers: Vec<Watcher<'_>>, progress: &Progress, f: impl FnOnce() -> T) -> T {
    if watchers.is_empty() {
        return f();
    }
    let (end, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let is_over = ended.recv_timeout(WATCH_EVERY) != Err(RecvTimeoutError::Timeout);
                watchers.iter_mut().for_each(|watch| watch(progress.done()));
                if is_over {
                    return;
                }
            }
        });
        // Also dropped by a panic, so that the watching thread ends.
        let _end = end;
        f()
    })
}
