//! Panics of tasks: their message and place, and the end of their payload.

use crate::task;
use std::any::Any;
use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use tharsis_types::{Failure, FailureKind};

/// Drops the payload of a panic. It may be any value: if its own drop panics, that must not unwind through
/// the worker, which may be one thread of many.
pub(crate) fn drop_payload(payload: Box<dyn Any + Send>) {
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        // Its drop may panic as well, and so on.
        std::mem::forget(second);
    }
}

thread_local! {
    /// Message and location of the last panic of a task on this thread.
    static PANIC: RefCell<Option<String>> = const { RefCell::new(None) };
}

/// Installs a panic hook that notes the message and location of panics in tasks, then calls the previous
/// hook.
pub(crate) fn hook_panics() {
    static HOOK: std::sync::Once = std::sync::Once::new();
    HOOK.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if task::any_own_task().is_some() {
                let place = info.location().map(ToString::to_string).unwrap_or_default();
                let backtrace = std::backtrace::Backtrace::capture();
                let mut text = format!("{} at {place}", message_of(info.payload()));
                if backtrace.status() == std::backtrace::BacktraceStatus::Captured {
                    text = format!("{text}\n{backtrace}");
                }
                PANIC.set(Some(text));
            }
            before(info);
        }));
    });
}

/// The failure of a task that panicked.
pub(crate) fn panic_failure(payload: &(dyn Any + Send)) -> Failure {
    let text = PANIC.take().unwrap_or_else(|| message_of(payload).to_owned());
    Failure::new(FailureKind::Panicked, text)
}

fn message_of(payload: &(dyn Any + Send)) -> &str {
    let text = payload.downcast_ref::<&str>().copied();
    text.or_else(|| payload.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("a panic without a message")
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bomb(u32);

    impl Drop for Bomb {
        fn drop(&mut self) {
            if let Some(left) = self.0.checked_sub(1) {
                std::panic::panic_any(Self(left));
            }
        }
    }

    #[test]
    fn a_payload_whose_drop_panics_does_not_unwind_through_the_worker() {
        let panic = catch_unwind(|| std::panic::panic_any(Bomb(3))).unwrap_err();
        drop_payload(panic);
    }
}
