//! Computations that are watched: progress while they run, metrics and plan afterwards.

use crate::bar::Bar;
use crate::error::{Blame, Result};
use crate::errstate;
use crate::run::{at_hand, default_executor, nodes_of};
use crate::tensor::Tensor;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;
use tharsis_graph::{Executor, Explanation, Metrics, Progress};

/// A computation that is about to run.
///
/// ```
/// use tharsis_numeric::{Computation, random::default_rng};
///
/// let total = default_rng(1).random(&[1000, 1000]).sum(..);
/// let computed = Computation::of(&[&total]).bar("total").run()?;
/// println!("{}", computed.explanation);
/// assert!((computed.tensors[0].item()?.to_f64() - 5e5).abs() < 1e4);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
#[must_use = "nothing is computed until it is run"]
pub struct Computation<'a> {
    tensors: &'a [&'a Tensor],
    executor: Option<&'a dyn Executor>,
    watchers: Vec<Watcher<'a>>,
}

/// Callback that is told the number of finished tasks and the number of all tasks.
type Watcher<'a> = Box<dyn FnMut(u64, u64) + Send + 'a>;

/// Results of a computation.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Computed {
    /// The results, in the order asked for; their values are computed.
    pub tensors: Vec<Tensor>,
    /// Time and memory that it took.
    pub metrics: Metrics,
    /// The plan, with the metrics of its run.
    pub explanation: Explanation,
}

/// Interval at which watchers are called.
const WATCH_EVERY: Duration = Duration::from_millis(50);

impl<'a> Computation<'a> {
    /// A computation of several tensors, which share work.
    ///
    /// ```
    /// use tharsis_numeric::{Computation, arange};
    /// let x = arange(10);
    /// let (sum, max) = (x.sum(..), x.max(..));
    /// let computed = Computation::of(&[&sum, &max]).run()?;
    /// assert_eq!(computed.tensors[1].item()?.to_f64(), 9.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn of(tensors: &'a [&'a Tensor]) -> Computation<'a> {
        Computation { tensors, executor: None, watchers: Vec::new() }
    }

    /// Uses this executor instead of the default one.
    ///
    /// ```
    /// use tharsis_numeric::{Computation, LocalExecutor, arange};
    /// let local = LocalExecutor::sized(2, 1 << 20);
    /// let total = arange(10).sum(..);
    /// let computed = Computation::of(&[&total]).on(&local).run()?;
    /// assert_eq!(computed.tensors[0].item()?.to_f64(), 45.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn on(mut self, executor: &'a dyn Executor) -> Computation<'a> {
        self.executor = Some(executor);
        self
    }

    /// Calls `watch` on a separate thread, about twenty times a second and at the end, with the number of
    /// finished tasks and the number of all tasks.
    ///
    /// ```
    /// use tharsis_numeric::{Computation, arange};
    /// let mut last = (0, 1);
    /// let total = arange(1000).sum(..);
    /// let tensors = [&total];
    /// Computation::of(&tensors).watched(|done, all| last = (done, all)).run()?;
    /// assert_eq!(last.0, last.1);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn watched(mut self, watch: impl FnMut(u64, u64) + Send + 'a) -> Computation<'a> {
        self.watchers.push(Box::new(watch));
        self
    }

    /// Draws a progress bar on standard error if that is a terminal.
    ///
    /// ```
    /// use tharsis_numeric::{Computation, arange};
    /// let total = arange(10).sum(..);
    /// let computed = Computation::of(&[&total]).bar("total").run()?;
    /// assert_eq!(computed.tensors[0].item()?.to_f64(), 45.0);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    pub fn bar(self, label: &str) -> Computation<'a> {
        match Bar::on_terminal(label) {
            Some(mut bar) => self.watched(move |done, total| bar.draw(done, total)),
            None => self,
        }
    }

    /// Runs it.
    ///
    /// ```
    /// use tharsis_numeric::{Computation, arange};
    /// let total = arange(10).sum(..);
    /// let computed = Computation::of(&[&total]).run()?;
    /// assert_eq!(computed.metrics.tasks, computed.explanation.tasks);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`execute`](crate::execute).
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
        let nodes = nodes_of(self.tensors)?;
        let (nodes, spent) = tharsis_graph::phases::settle(&nodes, executor).blame()?;
        let job = tharsis_graph::plan(&nodes, executor.limits()).blame()?;
        let explanation = Explanation::new(&nodes, &job, executor).blame()?;
        let (progress, total) = (job.progress.clone(), explanation.tasks);
        let outcome = watch(self.watchers, progress, total, || executor.execute(job)).blame()?;
        let metrics = match &spent {
            Some(spent) => outcome.metrics.after(spent),
            None => outcome.metrics,
        };
        errstate::tell(&metrics.warnings)?;
        let explanation = explanation.with_metrics(&metrics);
        Ok(Computed { tensors: at_hand(outcome.results), metrics, explanation })
    }
}

impl std::fmt::Debug for Computation<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Computation({:?}, {} watchers)", self.tensors, self.watchers.len())
    }
}

/// Runs `f` while a thread reports its progress to the watchers.
fn watch<T>(mut watchers: Vec<Watcher<'_>>, progress: Progress, total: u64, f: impl FnOnce() -> T) -> T {
    if watchers.is_empty() {
        return f();
    }
    let (end, ended) = channel::<()>();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            loop {
                let is_over = ended.recv_timeout(WATCH_EVERY) != Err(RecvTimeoutError::Timeout);
                watchers.iter_mut().for_each(|watch| watch(progress.done(), total));
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

impl Tensor {
    /// This tensor with its values computed: expressions built on it do not compute it again. The same as
    /// [`Tensor::execute`].
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// let x = arange(3).persist()?;
    /// assert_eq!((x + 1).to_vec::<i64>()?, [1, 2, 3]);
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`execute`](crate::execute).
    #[track_caller]
    pub fn persist(&self) -> Result<Tensor> {
        self.execute()
    }

    /// Plan for computing this tensor on the default executor. Nothing runs.
    ///
    /// ```
    /// use tharsis_numeric::arange;
    /// assert!(arange(3).sum(..).explain()?.to_string().contains("fold sum"));
    /// # Ok::<(), tharsis_numeric::Error>(())
    /// ```
    ///
    /// # Errors
    /// `MemoryError` if no plan fits.
    #[track_caller]
    pub fn explain(&self) -> Result<Explanation> {
        let executor: Arc<dyn Executor> = default_executor();
        crate::run::explain(&[self], &*executor)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::default_rng;
    use crate::{Chunks, LocalExecutor};
    use std::sync::Mutex;

    #[test]
    fn watchers_see_the_end_and_the_explanation_tells_what_happened() {
        let x = default_rng(1).random(&[100, 100]).rechunk(Chunks::Each(10));
        let total = x.sum(..);
        let seen = Mutex::new(Vec::new());
        let executor = LocalExecutor::sized(2, 1 << 30);
        let computed = Computation::of(&[&total])
            .on(&executor)
            .watched(|done, total| seen.lock().unwrap().push((done, total)))
            .run()
            .unwrap();
        let tasks = computed.explanation.tasks;
        assert_eq!(seen.into_inner().unwrap().last(), Some(&(tasks, tasks)));
        assert_eq!(computed.metrics.tasks, tasks);
        assert!(computed.explanation.elapsed_seconds.is_some());
        assert!(computed.explanation.stages.iter().all(|stage| stage.busy_seconds.is_some()));
    }
}
