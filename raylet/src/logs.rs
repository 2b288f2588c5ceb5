//! Readers of the output of workers: they get the lines that are kept, and those that come.
//!
//! The log of the node ([`crate::logbook`]) has the lines of all workers. A `Cursor` goes through it and
//! picks those that were asked for. It is moved on a thread that may wait for the disk.

use crate::inbox::{Inbox, Input};
use crate::logbook::LogBook;
use crate::runs::RunTime;
use futures::StreamExt;
use futures::stream::BoxStream;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tharsis_protos::logs::{BATCH_BYTES_MAX, BATCH_LINES_MAX, LogLine, LogQuery, TAIL_LINES_MAX};
use tokio::sync::{Semaphore, mpsc, oneshot};

/// The beginning of a run is known from its end and its length: it may be this much too late.
const EARLY_MS: u64 = 1;
/// Output is read from a worker a little after it was written, and so may be noted after its task has ended.
/// It counts until the worker's next run begins.
const SLACK_MS: u64 = crate::runs::LATE / tharsis_core::MS;
/// A task that has ended may have lines that were not read yet, for this long.
const LATE_MS: u64 = 300;
/// A reader that waits looks again after this long.
const LOOK_AGAIN: Duration = Duration::from_millis(100);
/// Batches on their way to one reader.
const BATCHES_MAX: usize = 4;
/// Readers on other machines that may read from the disk at the same time: the threads for it resolve names
/// too.
const READING_MAX: usize = 2;

/// Output of the workers of a node.
#[derive(Clone)]
pub struct Logs {
    book: Arc<LogBook>,
    inbox: Arc<Inbox>,
    /// Readers on other machines that read from the disk at this moment.
    turns: Arc<Semaphore>,
}

impl Logs {
    /// The log of a node, whose loop knows when tasks ran.
    #[must_use]
    pub fn new(book: Arc<LogBook>, inbox: Arc<Inbox>) -> Self {
        Self { book, inbox, turns: Arc::new(Semaphore::new(READING_MAX)) }
    }

    /// The lines that are asked for, in batches. Ends with them, or never if those that come are wanted as
    /// well. Must be called on a runtime.
    #[must_use]
    pub fn lines(&self, query: LogQuery) -> BoxStream<'static, Vec<LogLine>> {
        let (sender, receiver) = mpsc::channel(BATCHES_MAX);
        let logs = self.clone();
        // Ends with its reader.
        tokio::spawn(async move { logs.send_lines(query, &sender).await });
        futures::stream::unfold(
            receiver,
            |mut receiver| async move { Some((receiver.recv().await?, receiver)) },
        )
        .boxed()
    }

    async fn send_lines(&self, query: LogQuery, to: &mpsc::Sender<Vec<LogLine>>) {
        let mut cursor = Cursor::new(query);
        let mut ends = self.book.ends();
        loop {
            if let Some(answer) = self.ask_when(query) {
                cursor.ran = answer.await.unwrap_or_default();
            }
            ends.mark_unchanged();
            let book = Arc::clone(&self.book);
            let Ok(turn) = self.turns.acquire().await else { return };
            let moved = tokio::task::spawn_blocking(move || {
                let step = cursor.step(&book, unix_ms());
                (cursor, step)
            });
            let Ok((moved, step)) = moved.await else { return };
            drop(turn);
            cursor = moved;
            match step {
                Step::Lines(lines) => {
                    if to.send(lines).await.is_err() {
                        return;
                    }
                }
                Step::Over => return,
                Step::Wait => tokio::select! {
                    _news = ends.changed() => {}
                    () = tokio::time::sleep(LOOK_AGAIN) => {}
                    () = to.closed() => return,
                },
            }
        }
    }

    /// As [`Logs::lines`], on a thread that may wait, until `take` wants no more.
    pub fn each(&self, query: LogQuery, mut take: impl FnMut(Vec<LogLine>) -> bool) {
        let mut cursor = Cursor::new(query);
        loop {
            if let Some(answer) = self.ask_when(query) {
                cursor.ran = answer.blocking_recv().unwrap_or_default();
            }
            match cursor.step(&self.book, unix_ms()) {
                Step::Lines(lines) => {
                    if !take(lines) {
                        return;
                    }
                }
                Step::Over => return,
                Step::Wait => {
                    std::thread::sleep(LOOK_AGAIN);
                    // Whoever does not read any more is noticed by that.
                    if !take(Vec::new()) {
                        return;
                    }
                }
            }
        }
    }

    /// Asks the loop when the task of a query ran, if it is about one.
    fn ask_when(&self, query: LogQuery) -> Option<oneshot::Receiver<Vec<RunTime>>> {
        let task = query.task?;
        let (reply, answer) = oneshot::channel();
        self.inbox.put(Input::RunTimes { task, reply });
        Some(answer)
    }
}

/// A way through the log.
struct Cursor {
    query: LogQuery,
    /// Position behind the lines that were looked at; none before the first step.
    at: Option<u64>,
    /// The end of the log at the first step: lines before it are wanted also without those that come.
    end: u64,
    /// Of the next lines that are wanted, those that are too old.
    skip: usize,
    /// Lines that are found and not told yet.
    found: VecDeque<LogLine>,
    /// When the task of the query ran here.
    ran: Vec<RunTime>,
}

/// The outcome of a step.
enum Step {
    /// Lines that were asked for.
    Lines(Vec<LogLine>),
    /// There are none now.
    Wait,
    /// There will be no more.
    Over,
}

impl Cursor {
    fn new(query: LogQuery) -> Self {
        Self { query, at: None, end: 0, skip: 0, found: VecDeque::new(), ran: Vec::new() }
    }

    fn step(&mut self, book: &LogBook, now_ms: u64) -> Step {
        let at = self.at.unwrap_or_else(|| self.look_back(book));
        if at < self.end || self.query.follow {
            self.look_on(book, at);
        }
        if !self.found.is_empty() {
            let mut bytes = 0;
            let fits = |line: &&LogLine| {
                bytes += line.text.len();
                bytes <= BATCH_BYTES_MAX
            };
            let count = self.found.iter().take(BATCH_LINES_MAX).take_while(fits).count();
            return Step::Lines(self.found.drain(..count.max(1)).collect());
        }
        if self.query.follow && !self.is_task_over(now_ms) { Step::Wait } else { Step::Over }
    }

    /// Finds where the last lines begin that are kept. They are read when they are told: a reader that waits
    /// holds no more than a page of them.
    fn look_back(&mut self, book: &LogBook) -> u64 {
        self.end = *book.ends().borrow();
        let tail = self.query.tail.min(TAIL_LINES_MAX) as usize;
        let (mut pages, mut count) = (VecDeque::new(), 0);
        let mut at = book.begin();
        while at < self.end {
            let page = book.read(at);
            let wanted = page.lines.iter().filter(|line| self.wants(line)).count();
            pages.push_back((at, wanted));
            count += wanted;
            while let Some((_, oldest)) = pages.front().copied().filter(|(_, oldest)| tail + oldest <= count)
            {
                count -= oldest;
                pages.pop_front();
            }
            at = page.next;
        }
        self.skip = count.saturating_sub(tail);
        let begin = pages.front().map_or(at, |(begin, _)| *begin);
        self.at = Some(begin);
        begin
    }

    /// Finds the next lines behind a position.
    fn look_on(&mut self, book: &LogBook, mut at: u64) {
        while self.found.is_empty() && (at < self.end || self.query.follow) {
            let page = book.read(at);
            let wanted: Vec<_> = page.lines.into_iter().filter(|line| self.wants(line)).collect();
            let old = self.skip.min(wanted.len());
            self.skip -= old;
            self.found.extend(wanted.into_iter().skip(old));
            if page.next == at {
                break;
            }
            at = page.next;
        }
        self.at = Some(at);
    }

    fn wants(&self, line: &LogLine) -> bool {
        let ran = |run: &RunTime| {
            let begins = |run_ms: u64| run_ms.saturating_sub(EARLY_MS);
            let until = run.to_ms.map_or(u64::MAX, |to| to.saturating_add(SLACK_MS));
            let until = run.next_ms.map_or(until, |next| until.min(begins(next)));
            run.pid == line.pid && (begins(run.from_ms)..until).contains(&line.unix_ms)
        };
        // The worker of an actor is of the actor's job, and runs calls of other jobs too.
        let is_of_job = |job| line.job == job || self.query.task.is_some_and(|task| task.job() == job);
        self.query.job.is_none_or(is_of_job) && (self.query.task.is_none() || self.ran.iter().any(ran))
    }

    /// Whether the task that is followed has ended here, and its last lines must have come.
    fn is_task_over(&self, now_ms: u64) -> bool {
        let is_old = |run: &RunTime| run.to_ms.is_some_and(|to| to + LATE_MS < now_ms);
        self.query.task.is_some() && !self.ran.is_empty() && self.ran.iter().all(is_old)
    }
}

/// The time for people, in ms since 1970.
#[must_use]
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::{JobId, TaskId};

    fn book() -> (LogBook, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let book = LogBook::open(folder.path().join("logs")).unwrap();
        for (at, job, pid, text) in [(10, 1, 7, "a"), (20, 2, 8, "b"), (30, 1, 7, "c"), (40, 1, 7, "d")] {
            book.write(at, JobId(job), pid, false, format!("{text}\n").as_bytes());
        }
        (book, folder)
    }

    fn texts(cursor: &mut Cursor, book: &LogBook, now_ms: u64) -> (String, bool) {
        let mut all = String::new();
        loop {
            match cursor.step(book, now_ms) {
                Step::Lines(lines) => all.extend(lines.into_iter().map(|line| line.text)),
                Step::Wait => return (all, false),
                Step::Over => return (all, true),
            }
        }
    }

    #[test]
    fn the_last_lines_of_a_job_come_and_then_those_that_follow() {
        let (book, _folder) = book();
        let query = LogQuery { job: Some(JobId(1)), tail: 2, ..LogQuery::default() };
        assert_eq!(texts(&mut Cursor::new(query), &book, 0), ("cd".to_owned(), true));
        let mut cursor = Cursor::new(LogQuery { follow: true, ..query });
        assert_eq!(texts(&mut cursor, &book, 0), ("cd".to_owned(), false));
        book.write(50, JobId(2), 8, false, b"e\n");
        book.write(51, JobId(1), 7, false, b"f\n");
        assert_eq!(texts(&mut cursor, &book, 0), ("f".to_owned(), false));
    }

    /// However many lines were asked for, one that is slow to read them holds a page.
    #[test]
    fn the_last_lines_of_a_long_log_are_read_page_by_page() {
        let (book, _folder) = book();
        let line = "x".repeat(1000);
        for number in 0..5_000 {
            book.write(100 + number, JobId(1), 7, false, format!("{number} {line}\n").as_bytes());
        }
        for (tail, follow) in [(1, false), (1234, false), (1234, true), (4_999, true)] {
            let query = LogQuery { job: Some(JobId(1)), tail, follow, ..LogQuery::default() };
            let (mut cursor, mut lines, mut held) = (Cursor::new(query), Vec::new(), 0);
            while let Step::Lines(some) = cursor.step(&book, 0) {
                lines.extend(some);
                held = held.max(cursor.found.len());
            }
            assert_eq!(lines.len(), tail as usize);
            let first = format!("{} ", 5_000 - tail);
            assert!(lines[0].text.starts_with(&first) && lines.last().unwrap().text.starts_with("4999 "));
            assert!(held < 1_200, "{held} lines were held");
        }
    }

    #[test]
    fn lines_of_a_call_of_an_actor_of_another_job_are_found() {
        let (book, _folder) = book();
        let call = TaskId::root(JobId(9)).child(3);
        let query = LogQuery { task: Some(call), tail: 100, ..LogQuery::default() };
        // The worker is of job 1, the call of job 9.
        for (job, found) in [(None, "c"), (Some(JobId(1)), "c"), (Some(JobId(9)), "c"), (Some(JobId(2)), "")]
        {
            let mut cursor = Cursor::new(LogQuery { job, ..query });
            cursor.ran = vec![RunTime { pid: 7, from_ms: 25, to_ms: Some(35), next_ms: Some(40) }];
            assert_eq!(texts(&mut cursor, &book, 1_000), (found.to_owned(), true), "{job:?}");
        }
    }

    #[test]
    fn lines_of_a_task_are_those_of_its_time_in_its_worker() {
        let (book, _folder) = book();
        let task = TaskId::root(JobId(1)).child(3);
        let query = LogQuery { task: Some(task), tail: 100, follow: true, ..LogQuery::default() };
        let mut cursor = Cursor::new(query);
        cursor.ran = vec![RunTime { pid: 7, from_ms: 30, to_ms: None, next_ms: None }];
        assert_eq!(texts(&mut cursor, &book, 1_000), ("cd".to_owned(), false));
        cursor.ran[0].to_ms = Some(45);
        book.write(46, JobId(1), 7, false, b"late\n");
        cursor.ran[0].next_ms = Some(50);
        book.write(50, JobId(1), 7, false, b"another task\n");
        assert_eq!(texts(&mut cursor, &book, 46), ("late".to_owned(), false), "more may come");
        assert_eq!(texts(&mut cursor, &book, 46 + LATE_MS), (String::new(), true));
    }
}
