//! The book of runs: what it remembers, for how long, and how it is read.

use super::*;
use tharsis_types::{FunctionId, JobId};

fn task(number: u64) -> TaskId {
    TaskId::root(JobId(1)).child(number)
}

fn class(name: &str) -> Arc<TaskClass> {
    Arc::new(TaskClass::new(JobId(1), FunctionId(1), name))
}

/// A run of a task, of worker 3.
fn item<'a>(number: u64, class: &'a Arc<TaskClass>, own_name: Option<&'a str>) -> RunItem<'a> {
    RunItem {
        task: task(number),
        attempt: 0,
        owner: NodeId(9),
        class: Some(class),
        own_name,
        client: ClientId(3),
        since: None,
    }
}

/// A book in which runs of `run_ns` ended at these times, numbered from 0, all of process 7.
fn book(ends: impl IntoIterator<Item = Now>, run_ns: u64) -> RunBook {
    let (mut book, class) = (RunBook::default(), class("f"));
    for (number, end) in (0..).zip(ends) {
        book.ended(end, &item(number, &class, None), 7, run_ns, RunOutcome::Returned);
    }
    book
}

/// The numbers of all runs that a reader gets, and of the pages.
fn read(book: &RunBook, query: &RunQuery, since: Now) -> (Vec<NotedRun>, usize) {
    let (mut all, mut place, mut pages) = (Vec::new(), None, 0);
    loop {
        let (runs, next) = book.page(query, since, place);
        assert!(runs.len() <= BATCH_RUNS_MAX);
        all.extend(runs);
        pages += 1;
        place = next;
        if place.is_none() {
            return (all, pages);
        }
    }
}

#[test]
fn the_last_runs_are_remembered() {
    let book = book((0..=RUNS_MAX as u64).map(|number| 100 + number), 30);
    assert_eq!(book.of(task(0)).count(), 0);
    let expected = Window { pid: 7, from: 0, to: Some(101), next: Some(72) };
    assert_eq!(book.of(task(1)).collect::<Vec<_>>(), [expected]);
    assert_eq!((book.runs.len(), book.forgotten()), (RUNS_MAX, (1, 100)));
}

#[test]
fn a_run_after_a_pause_may_have_begun_before_its_end_says() {
    let book = book([10 * LATE, 12 * LATE, 12 * LATE + 2, 13 * LATE + 3], 1);
    let from = |number| book.of(task(number)).next().expect("it is remembered").from;
    assert_eq!(from(0), 9 * LATE - 1);
    assert_eq!(from(1), 11 * LATE, "lines before may be those of the last run");
    assert_eq!(from(2), 12 * LATE + 1, "it follows the last one at once");
    assert_eq!(from(3), 13 * LATE + 2);
}

#[test]
fn texts_of_a_class_are_made_once_and_cut_between_characters() {
    let mut book = RunBook::default();
    let long = class(&format!("{}é", "x".repeat(RUN_TEXT_BYTES_MAX - 1)));
    let short = class("f");
    for number in 0..6 {
        let class = if number % 2 == 0 { &long } else { &short };
        book.ended(10, &item(number, class, None), 7, 1, RunOutcome::Returned);
    }
    assert_eq!(book.texts.known.len(), 2);
    assert!(Arc::ptr_eq(&book.runs[0].class, &book.runs[4].class));
    assert_eq!(book.runs[0].class.name.len(), RUN_TEXT_BYTES_MAX - 1);
    assert_eq!(book.runs.iter().filter(|run| 0 < run.text_bytes).count(), 2);
    // A class that is gone does not lend its texts to the next one that lies there.
    drop((long, short));
    let others: Vec<_> = (0..CLASSES_MAX).map(|number| class(&format!("g{number}"))).collect();
    for (number, class) in (10..).zip(&others) {
        book.ended(20, &item(number, class, None), 7, 1, RunOutcome::Returned);
        let last = book.runs.back().expect("it was noted");
        assert_eq!(*last.class.name, *class.name);
    }
    assert!(book.texts.known.len() <= CLASSES_MAX);
}

#[test]
fn names_of_calls_are_bounded_together() {
    let (mut book, class) = (RunBook::default(), class("f"));
    let name = "n".repeat(RUN_TEXT_BYTES_MAX);
    for number in 0..RUNS_MAX as u64 {
        book.ended(10, &item(number, &class, Some(&name)), 7, 1, RunOutcome::Returned);
    }
    assert!(book.text_bytes <= TEXTS_BYTES_MAX && TEXTS_BYTES_MAX / 2 < book.text_bytes);
    assert_eq!(book.forgotten().0 + book.runs.len() as u64, RUNS_MAX as u64);
    let sum: usize = book.runs.iter().map(|run| usize::from(run.text_bytes)).sum();
    assert_eq!(sum, book.text_bytes);
}

#[test]
fn a_reader_gets_all_that_had_ended_when_it_came_in_pages() {
    let count = 3 * LOOKS_MAX as u64;
    let mut book = book(1..=count, 1);
    let (all, pages) = read(&book, &RunQuery::default(), 0);
    assert_eq!((all.len() as u64, pages), (count, 3 * LOOKS_MAX / BATCH_RUNS_MAX));
    assert!(all.iter().zip(0..).all(|(run, number)| run.task == task(number)));
    let one = RunQuery { task: Some(task(5)), ..RunQuery::default() };
    let (found, pages) = read(&book, &one, 0);
    assert_eq!((found.len(), pages), (1, 3));
    assert_eq!(read(&book, &RunQuery { job: Some(JobId(2)), ..RunQuery::default() }, 0).0.len(), 0);
    assert_eq!(read(&book, &RunQuery { job: Some(JobId(1)), ..RunQuery::default() }, count - 9).0.len(), 10);
    // A run that ends between two pages is not in the next one.
    let (first, place) = book.page(&RunQuery::default(), 0, None);
    let class = class("f");
    book.ended(count + 1, &item(count, &class, None), 7, 1, RunOutcome::Crashed);
    assert_eq!(place, Some(RunPlace { next: first.len() as u64, until: count }));
    let (_, place) = book.page(&RunQuery::default(), 0, Some(RunPlace { next: count - 1, until: count }));
    assert_eq!(place, None);
}

#[test]
fn a_reader_goes_on_behind_runs_that_were_forgotten_between_its_pages() {
    let mut book = book(1..=RUNS_MAX as u64, 1);
    let (first, place) = book.page(&RunQuery::default(), 0, None);
    assert_eq!(first.len(), BATCH_RUNS_MAX);
    let class = class("f");
    for number in 0..2 * BATCH_RUNS_MAX as u64 {
        book.ended(10, &item(RUNS_MAX as u64 + number, &class, None), 7, 1, RunOutcome::Returned);
    }
    let (second, _) = book.page(&RunQuery::default(), 0, place);
    assert_eq!(second[0].task, task(2 * BATCH_RUNS_MAX as u64));
    // All of them were.
    let gone = RunPlace { next: 1, until: 5 };
    assert_eq!(book.page(&RunQuery::default(), 0, Some(gone)).1, None);
}

#[test]
fn a_run_that_goes_on_is_told_and_not_remembered() {
    let (mut book, class) = (RunBook::default(), class("f"));
    let waits = item(1, &class, None);
    assert!(book.going_on(50, &waits, 7).is_none());
    let told = book.going_on(50, &RunItem { since: Some(20), ..waits }, 7).expect("it has begun");
    assert_eq!((told.from, told.to, told.outcome), (20, 50, RunOutcome::Running));
    assert!(book.runs.is_empty() && book.of(task(1)).next().is_none());
}

#[test]
fn times_of_the_loop_are_moments_since_1970() {
    let moment = Moment { now: 5_000, unix_ns: 1_764_032_463_007_000_001 };
    assert_eq!(moment.unix_ns_of(4_000), 1_764_032_463_006_999_001);
    assert_eq!(moment.loop_time(1_764_032_463_006_999_001), 4_000);
    assert_eq!((moment.loop_time(0), moment.loop_time(u64::MAX)), (0, 5_000));
    // A clock that says 1970.
    assert_eq!(Moment { now: 5_000, unix_ns: 10 }.unix_ns_of(1), 0);
}
