//! Statements that are watched while they run.

use super::session::SqlSession;
use crate::error::Result;
use crate::execute::execute_in;
use crate::metrics::Metrics;
use crate::progress::Progress;
use crate::stage::Resident;
use datafusion::logical_expr::LogicalPlan;

impl SqlSession {
    /// Notes in these counts what statements do. A plan that takes several attempts begins them anew, and so
    /// does each query of a statement.
    ///
    /// ```
    /// use tharsis_dataframe::{Progress, SqlSession};
    /// let progress = Progress::default();
    /// let mut session = SqlSession::default().progress(&progress);
    /// session.run("select value from generate_series(1, 5)")?;
    /// let done = progress.done();
    /// assert_eq!((done.tasks, done.rows), (done.all, 5));
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[must_use]
    pub fn progress(mut self, progress: &Progress) -> SqlSession {
        self.progress = Some(progress.clone());
        self
    }

    /// Forgets what the statement before this one has done.
    pub(super) fn begin_progress(&self) {
        if let Some(progress) = &self.progress {
            progress.begin(0);
        }
    }

    pub(super) fn measured(&self, plan: &LogicalPlan) -> Result<(Resident, Metrics)> {
        execute_in(&self.context.state(), plan, &*self.executor(), self.progress.as_ref())
    }
}
