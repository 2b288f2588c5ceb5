//! The task of a thread, the numbers of its calls and puts, and those who wait in it.

use parking_lot::Mutex;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::Waker;
use std::thread::Thread;
use tharsis_types::task::Role;
use tharsis_types::{Attempt, JobId, ObjectId, TaskClass, TaskId};

/// A running task, or the root task of a driver's threads.
pub(crate) struct TaskState {
    pub(crate) task: TaskId,
    pub(crate) attempt: Attempt,
    /// Number of the start; `None` for a root.
    pub(crate) slot: Option<u32>,
    pub(crate) class: Option<Arc<TaskClass>>,
    pub(crate) is_cancelled: AtomicBool,
    has_ended: AtomicBool,
    children: AtomicU64,
    puts: AtomicU64,
    sleepers: Mutex<Sleepers>,
}

/// Threads and futures that wait in a task, by numbers.
#[derive(Default)]
struct Sleepers {
    next: u64,
    all: BTreeMap<u64, Sleeper>,
}

/// A thread that waits while another one reads, or a future.
pub(crate) enum Sleeper {
    Future(Waker),
    Thread(Thread),
}

/// The wait of a thread or a future in a task, whose cancellation wakes it, until this is dropped.
pub(crate) struct Sleep {
    task: Arc<TaskState>,
    number: u64,
}

impl Sleep {
    /// As [`TaskState::sleep`], for a future that is polled again, maybe in another task.
    pub(crate) fn renew(sleep: &mut Option<Sleep>, task: &Arc<TaskState>, waker: &Waker) {
        let sleeper = Sleeper::Future(waker.clone());
        match sleep {
            Some(known) if Arc::ptr_eq(&known.task, task) => {
                let _former = task.sleepers.lock().all.insert(known.number, sleeper);
            }
            _ => *sleep = Some(task.sleep(sleeper)),
        }
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        // Dropped when the table is unlocked: a waker may end what waits.
        let _sleeper = self.task.sleepers.lock().all.remove(&self.number);
    }
}

impl TaskState {
    pub(crate) fn root(task: TaskId) -> Self {
        Self::new(task, 0, None, None)
    }

    pub(crate) fn new(
        task: TaskId,
        attempt: Attempt,
        slot: Option<u32>,
        class: Option<Arc<TaskClass>>,
    ) -> Self {
        let is_cancelled = AtomicBool::new(false);
        Self {
            task,
            attempt,
            slot,
            class,
            is_cancelled,
            has_ended: AtomicBool::new(false),
            children: AtomicU64::new(0),
            puts: AtomicU64::new(0),
            sleepers: Mutex::default(),
        }
    }

    /// Notes who waits in the task. Whoever looks at [`TaskState::is_cancelled`] afterwards misses no
    /// cancellation.
    pub(crate) fn sleep(self: &Arc<Self>, sleeper: Sleeper) -> Sleep {
        let mut sleepers = self.sleepers.lock();
        let number = sleepers.next;
        sleepers.next += 1;
        sleepers.all.insert(number, sleeper);
        Sleep { task: Arc::clone(self), number }
    }

    /// Wakes all who wait in the task, which was cancelled.
    pub(crate) fn wake_sleepers(&self) {
        let sleepers = std::mem::take(&mut self.sleepers.lock().all);
        for sleeper in sleepers.into_values() {
            match sleeper {
                Sleeper::Future(waker) => waker.wake(),
                Sleeper::Thread(thread) => thread.unpark(),
            }
        }
    }

    /// The task has ended: threads that have entered it do nothing for it any more.
    pub(crate) fn set_ended(&self) {
        self.has_ended.store(true, Ordering::Release);
    }

    /// Whether it is a call of an actor.
    pub(crate) fn is_call(&self) -> bool {
        self.class.as_ref().is_some_and(|class| class.role == Role::Method)
    }

    /// Whether the task was cancelled: it should stop, and waits for nothing any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.is_cancelled.load(Ordering::Relaxed)
    }

    /// Whether the task has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.has_ended.load(Ordering::Acquire)
    }

    /// The number of the next call of this task.
    pub(crate) fn next_child_number(&self) -> u64 {
        self.children.fetch_add(1, Ordering::Relaxed)
    }

    /// The id of the next call of this task by a client of `job`, whose function and arguments hash to
    /// `content`. A method may run for a call of another job than that of its actor, and nodes take from a
    /// client only what belongs to its own job.
    pub(crate) fn next_call(&self, job: JobId, content: u128) -> TaskId {
        self.task.in_job(job).call(self.next_child_number(), content)
    }

    /// As [`TaskState::next_call`], for a value that this task puts and that hashes to `content`.
    pub(crate) fn next_hashed_put(&self, job: JobId, content: u128) -> ObjectId {
        let number = self.puts.fetch_add(1, Ordering::Relaxed);
        ObjectId::put(self.task.in_job(job).call(number, content), put_index(number))
    }

    /// The id of the next value that this task puts, whatever it is.
    pub(crate) fn next_put(&self) -> ObjectId {
        let number = self.puts.fetch_add(1, Ordering::Relaxed);
        // An id has room for so many puts of one task. Later ones are those of tasks that never run.
        match number / u64::from(ObjectId::PUT_BASE) {
            0 => ObjectId::put(self.task, put_index(number)),
            round => ObjectId::put(self.task.call(round, LATER_PUTS), put_index(number)),
        }
    }
}

/// The index of a put in the id of its object.
fn put_index(number: u64) -> u32 {
    (number % u64::from(ObjectId::PUT_BASE)) as u32
}

/// Stands for the content of calls that are none: they name the puts of a task after the first 2^31.
const LATER_PUTS: u128 = u128::from_le_bytes(*b"puts of a driver");

thread_local! {
    /// The task that runs on this thread, and the serial number of its link.
    static TASK: RefCell<Option<(u32, Arc<TaskState>)>> = const { RefCell::new(None) };
}

/// Whether this thread runs a task.
#[must_use]
pub fn is_in_task() -> bool {
    TASK.with_borrow(Option::is_some)
}

/// The task that runs on this thread for the link with this serial number.
pub(crate) fn own_task(serial: u32) -> Option<Arc<TaskState>> {
    TASK.with_borrow(|task| task.as_ref().filter(|(of, _)| *of == serial).map(|(_, state)| Arc::clone(state)))
}

/// The task that runs on this thread, for any client.
pub(crate) fn any_own_task() -> Option<Arc<TaskState>> {
    TASK.with_borrow(|task| task.as_ref().map(|(_, state)| Arc::clone(state)))
}

/// Whether this thread has entered a task that has ended.
pub(crate) fn own_task_has_ended() -> bool {
    TASK.with_borrow(|task| task.as_ref().is_some_and(|(_, state)| state.has_ended()))
}

/// Sets the task of this thread and returns the previous one.
pub(crate) fn replace_task(task: Option<(u32, Arc<TaskState>)>) -> Option<(u32, Arc<TaskState>)> {
    TASK.with_borrow_mut(|slot| std::mem::replace(slot, task))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// An actor may run ten thousand methods at the same time.
    #[test]
    fn a_cancellation_wakes_those_alone_who_wait_in_its_task() {
        let tasks: Vec<_> =
            (0..100).map(|n| Arc::new(TaskState::root(TaskId::root(JobId(3)).child(n)))).collect();
        let counts: Vec<_> = tasks.iter().map(|_| Arc::new(Count::default())).collect();
        let mut sleeps = Vec::new();
        for (task, count) in tasks.iter().zip(&counts) {
            let waker = Waker::from(Arc::clone(count));
            sleeps.extend((0..10).map(|_| task.sleep(Sleeper::Future(waker.clone()))));
        }
        let woken = || counts.iter().map(|count| count.0.load(Ordering::Relaxed)).collect::<Vec<_>>();
        let expected: Vec<_> = (0..100).map(|at| if at == 7 { 10 } else { 0 }).collect();
        tasks[7].wake_sleepers();
        assert_eq!(woken(), expected);
        tasks[7].wake_sleepers();
        assert_eq!(woken(), expected, "each once");
        drop(sleeps);
        assert!(tasks.iter().all(|task| task.sleepers.lock().all.is_empty()), "nobody waits any more");
    }

    #[test]
    fn a_future_that_is_polled_again_waits_once_and_where_it_was_polled_last() {
        let [one, other] = [1, 2].map(|n| Arc::new(TaskState::root(TaskId::root(JobId(3)).child(n))));
        let counts = [Arc::new(Count::default()), Arc::new(Count::default())];
        let wakers = counts.clone().map(Waker::from);
        let mut sleep = None;
        Sleep::renew(&mut sleep, &one, &wakers[0]);
        Sleep::renew(&mut sleep, &one, &wakers[1]);
        one.wake_sleepers();
        let woken = || counts.each_ref().map(|count| count.0.load(Ordering::Relaxed));
        assert_eq!(woken(), [0, 1], "it has another waker now");
        Sleep::renew(&mut sleep, &one, &wakers[0]);
        Sleep::renew(&mut sleep, &other, &wakers[0]);
        one.wake_sleepers();
        assert_eq!(woken(), [0, 1]);
        other.wake_sleepers();
        assert_eq!(woken(), [1, 1]);
    }

    /// A node ends a client that names anything of another job.
    #[test]
    fn an_actor_that_another_job_calls_makes_calls_and_values_of_its_own_job() {
        let (own, other) = (JobId(3), JobId(4));
        let method = TaskState::root(TaskId::root(other).child(5));
        let calls = [method.next_call(own, 1), method.next_call(own, 1)];
        let puts = [method.next_hashed_put(own, 1), method.next_hashed_put(own, 1)];
        assert_eq!([calls[0].job(), puts[0].task.job()], [own, own]);
        assert!(calls[0] != calls[1] && puts[0] != puts[1]);
        let again = TaskState::root(TaskId::root(other).child(5));
        assert_eq!((again.next_call(own, 1), again.next_hashed_put(own, 1)), (calls[0], puts[0]));
        let of_another = TaskState::root(TaskId::root(other).child(6));
        assert_ne!(of_another.next_call(own, 1), calls[0]);
        let at_home = TaskState::root(TaskId::root(own).child(5));
        assert_eq!(
            at_home.next_call(own, 1),
            at_home.task.call(0, 1),
            "ids within one job stay as they were"
        );
    }

    /// A driver that puts for weeks comes to this bound.
    #[test]
    fn a_task_puts_more_values_than_the_ids_of_one_task_number() {
        let state = TaskState::root(TaskId::root(JobId(3)));
        let bound = u64::from(ObjectId::PUT_BASE);
        let mut seen = std::collections::BTreeSet::new();
        for from in [0, bound - 2, 2 * bound - 2, u64::from(u32::MAX) * bound] {
            state.puts.store(from, Ordering::Relaxed);
            for _ in 0..4 {
                let id = state.next_put();
                assert!(id.is_put() && id.task.job() == JobId(3));
                assert!(seen.insert(id), "{id} is given twice");
            }
        }
        state.puts.store(0, Ordering::Relaxed);
        assert_eq!(state.next_put(), ObjectId::put(state.task, 0));
    }
}
