//! The last runs of tasks: what they were, and when they were in which worker.
//!
//! By the times the output of a worker is that of a task: a worker does not mark its output, because a mark
//! for each task would cost a system call. A timeline shows all of it. The loop notes the end of each run
//! with the time that it took, which costs a copy of 80 bytes and no allocation: the texts of a class are
//! shared by its runs. A run whose worker is gone is noted when the loop hears of that.

use std::collections::VecDeque;
use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};
use tharsis_core::Now;
use tharsis_core::node::RunItem;
use tharsis_protos::runs::{BATCH_RUNS_MAX, RUN_TEXT_BYTES_MAX, RunOutcome, RunQuery};
use tharsis_types::hash::IdMap;
use tharsis_types::{Attempt, ClientId, NodeId, TaskClass, TaskId};

/// Runs that are remembered: 5 MiB.
const RUNS_MAX: usize = 1 << 16;
/// Bytes of texts that are remembered with them, about: the oldest runs go first.
const TEXTS_BYTES_MAX: usize = 8 << 20;
/// Classes whose texts are found again without a copy.
const CLASSES_MAX: usize = 1 << 12;
/// Runs that are looked at for one page: the loop is at it for less than 100 us.
const LOOKS_MAX: usize = 1 << 12;

/// A loaded machine tells the end of a run late by up to this time, and so its beginning too. The last lines
/// of a run may come this late as well.
pub const LATE: Now = 100 * tharsis_core::MS;

/// The time in which a worker ran a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// The worker's process.
    pub pid: u32,
    /// When it began.
    pub from: Now,
    /// When it ended; none if it still runs.
    pub to: Option<Now>,
    /// When the worker began its next run, if that is known.
    pub next: Option<Now>,
}

/// The time in which a worker ran a task, in ms since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunTime {
    /// The worker's process.
    pub pid: u32,
    /// When it began.
    pub from_ms: u64,
    /// When it ended; none if it still runs.
    pub to_ms: Option<u64>,
    /// When the worker began its next run.
    pub next_ms: Option<u64>,
}

/// A run, as it is remembered.
#[derive(Clone, Debug)]
pub struct NotedRun {
    /// Its task.
    pub task: TaskId,
    /// When it began.
    pub from: Now,
    /// When it ended, or was asked about.
    pub to: Now,
    /// The node that owns the task.
    pub owner: NodeId,
    /// The texts of its class.
    pub class: Arc<ClassTexts>,
    /// The name of the call, if it has one of its own.
    pub own_name: Option<Arc<str>>,
    /// The worker's process.
    pub pid: u32,
    /// The worker.
    pub client: ClientId,
    /// The attempt of the task.
    pub attempt: Attempt,
    /// Bytes of texts that were made for it.
    text_bytes: u16,
    /// Its outcome.
    pub outcome: RunOutcome,
}

const _: () = assert!(size_of::<NotedRun>() <= 80, "every task pays the copy");

/// The texts of a class, cut.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct ClassTexts {
    /// Its name.
    pub name: Box<str>,
    /// `file:line` of the call.
    pub call_site: Box<str>,
    /// Whether its actor runs several calls at the same time.
    pub is_concurrent: bool,
}

/// The way of a reader through the runs that had ended when it came, by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunPlace {
    /// The next one.
    pub next: u64,
    /// The first one that ended later.
    pub until: u64,
}

/// A moment by both clocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// By the clock of the loop.
    pub now: Now,
    /// In ns since 1970.
    pub unix_ns: u64,
}

/// Some of the runs that a reader asks for.
#[derive(Debug)]
pub struct RunPage {
    /// The runs; those that go on are in the first page.
    pub runs: Vec<NotedRun>,
    /// The way on; none if that were all.
    pub place: Option<RunPlace>,
    /// The moment of this page.
    pub moment: Moment,
    /// Runs that are forgotten.
    pub forgotten: u64,
    /// All that ended since then is remembered.
    pub remembers_since: Now,
}

/// The last runs of a node.
#[derive(Default)]
pub struct RunBook {
    runs: VecDeque<NotedRun>,
    /// Runs that are not remembered any more: the number of the oldest that is.
    forgotten: u64,
    /// When the last of those ended.
    forgot_at: Now,
    text_bytes: usize,
    texts: Texts,
}

impl Moment {
    /// This moment, which is `now` by the clock of the loop.
    #[must_use]
    pub fn at(now: Now) -> Self {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { now, unix_ns: u64::try_from(since.as_nanos()).unwrap_or(u64::MAX) }
    }

    /// An earlier time of the loop, in ns since 1970.
    #[must_use]
    pub fn unix_ns_of(self, at: Now) -> u64 {
        self.unix_ns.saturating_sub(self.now.saturating_sub(at))
    }

    /// The time of the loop that is so many ns after 1970; the earliest there is if that is before it.
    #[must_use]
    pub fn loop_time(self, unix_ns: u64) -> Now {
        self.now.saturating_sub(self.unix_ns.saturating_sub(unix_ns))
    }
}

impl RunBook {
    /// A run has ended.
    pub fn ended(&mut self, now: Now, run: &RunItem<'_>, pid: u32, run_ns: u64, outcome: RunOutcome) {
        if self.runs.len() == RUNS_MAX {
            self.forget_oldest();
        }
        let noted = self.noted(run, pid, (now.saturating_sub(run_ns), now), outcome);
        self.text_bytes += usize::from(noted.text_bytes);
        self.runs.push_back(noted);
        while TEXTS_BYTES_MAX < self.text_bytes {
            self.forget_oldest();
        }
    }

    /// A run that goes on, if it has begun; it is not remembered.
    pub fn going_on(&mut self, now: Now, run: &RunItem<'_>, pid: u32) -> Option<NotedRun> {
        Some(self.noted(run, pid, (run.since?, now), RunOutcome::Running))
    }

    /// The runs of a task that have ended, as far as they are remembered.
    pub fn of(&self, task: TaskId) -> impl Iterator<Item = Window> {
        let found = self.runs.iter().enumerate().filter(move |(_, run)| run.task == task);
        found.map(|(at, run)| {
            let mut later = self.runs.iter().skip(at + 1);
            let next = later.find(|later| later.pid == run.pid).map(|later| later.from);
            let mut before = self.runs.iter().take(at).rev();
            let last_lines = before.find(|before| before.pid == run.pid).map_or(0, |before| before.to + LATE);
            let from = run.from.min(last_lines.max(run.from.saturating_sub(LATE)));
            Window { pid: run.pid, from, to: Some(run.to), next }
        })
    }

    /// The next runs that a reader asks for, which ended at `since` or later, and the way on.
    pub fn page(
        &self,
        query: &RunQuery,
        since: Now,
        place: Option<RunPlace>,
    ) -> (Vec<NotedRun>, Option<RunPlace>) {
        let end = self.forgotten + self.runs.len() as u64;
        let RunPlace { next, until } = place.unwrap_or(RunPlace { next: 0, until: end });
        // Some may have been forgotten since the last page.
        let (mut next, until) = (next.max(self.forgotten), until.min(end));
        let mut found = Vec::new();
        let first = usize::try_from(next - self.forgotten).unwrap_or(usize::MAX);
        for run in self.runs.iter().skip(first).take(LOOKS_MAX) {
            if until <= next || found.len() == BATCH_RUNS_MAX {
                break;
            }
            next += 1;
            if since <= run.to && is_wanted(run, query) {
                found.push(run.clone());
            }
        }
        (found, (next < until).then_some(RunPlace { next, until }))
    }

    /// Runs that are forgotten, and the time since which all are remembered.
    #[must_use]
    pub fn forgotten(&self) -> (u64, Now) {
        (self.forgotten, self.forgot_at)
    }

    fn forget_oldest(&mut self) {
        let Some(oldest) = self.runs.pop_front() else { return };
        self.text_bytes -= usize::from(oldest.text_bytes);
        self.forgotten += 1;
        self.forgot_at = oldest.to;
    }

    fn noted(
        &mut self,
        run: &RunItem<'_>,
        pid: u32,
        (from, to): (Now, Now),
        outcome: RunOutcome,
    ) -> NotedRun {
        let RunItem { task, attempt, owner, class, own_name, client, since: _ } = *run;
        let (class, class_bytes) = self.texts.of(class);
        let own_name: Option<Arc<str>> = own_name.map(|name| cut(name).into());
        let text_bytes =
            class_bytes + own_name.as_ref().map_or(0, |name| name.len() + 2 * size_of::<usize>());
        let text_bytes = u16::try_from(text_bytes).unwrap_or(u16::MAX);
        NotedRun { task, from, to, owner, class, own_name, pid, client, attempt, text_bytes, outcome }
    }
}

/// Whether a reader asks for a run, whenever it ended.
pub fn is_wanted(run: &NotedRun, query: &RunQuery) -> bool {
    query.job.is_none_or(|job| run.task.job() == job) && query.task.is_none_or(|task| run.task == task)
}

/// The texts of classes, by the place of the class in memory.
#[derive(Default)]
struct Texts {
    /// The references keep the places: no other class comes to lie there.
    known: IdMap<usize, (Weak<TaskClass>, Arc<ClassTexts>)>,
    /// One of these, that of the last run.
    last: Option<(usize, Arc<ClassTexts>)>,
    /// Those of runs whose class is not known.
    unknown: Arc<ClassTexts>,
}

impl Texts {
    /// The texts of a class, and their bytes if they were made for this call.
    fn of(&mut self, class: Option<&Arc<TaskClass>>) -> (Arc<ClassTexts>, usize) {
        let Some(class) = class else { return (Arc::clone(&self.unknown), 0) };
        let place = Arc::as_ptr(class).addr();
        if let Some((last, texts)) = &self.last
            && *last == place
        {
            return (Arc::clone(texts), 0);
        }
        if let Some((_, texts)) = self.known.get(&place) {
            self.last = Some((place, Arc::clone(texts)));
            return (Arc::clone(texts), 0);
        }
        if self.known.len() == CLASSES_MAX {
            self.known.clear();
        }
        let texts = Arc::new(ClassTexts {
            name: cut(&class.name).into(),
            call_site: cut(&class.call_site).into(),
            is_concurrent: class.calls.concurrent,
        });
        let bytes = size_of::<ClassTexts>() + texts.name.len() + texts.call_site.len();
        self.known.insert(place, (Arc::downgrade(class), Arc::clone(&texts)));
        self.last = Some((place, Arc::clone(&texts)));
        (texts, bytes)
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(RUN_TEXT_BYTES_MAX)]
}

#[cfg(test)]
#[path = "runs_tests.rs"]
mod tests;
