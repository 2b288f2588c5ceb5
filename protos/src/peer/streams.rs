//! Streams of answers that callers have open at a node: output, logs, runs, the progress of a drain. Each
//! holds a thread or pages of lines there until its caller has read them, so each machine has a share, and
//! all together have a limit.

use crate::caller::Who;
use crate::{Refusal, RefusalCode};
use futures::StreamExt;
use futures::stream::BoxStream;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use tharsis_identity::MachineId;

/// Streams of one call that one machine has open.
const PER_MACHINE_MAX: usize = 16;
/// Streams of one call that all machines have open.
const ALL_MAX: usize = 64;

/// Calls that are answered by streams, each with its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Call {
    Drain,
    JobOutput,
    Logs,
    Runs,
}

/// The machine of a caller; none without certificates.
type Machine = Option<MachineId>;

/// The streams that are open. Clones share them.
#[derive(Clone, Debug, Default)]
pub(super) struct Streams(Arc<Mutex<HashMap<(Call, Machine), usize>>>);

/// The place of one stream; it is given back when this is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    streams: Streams,
    call: Call,
    machine: Machine,
}

impl Streams {
    /// Takes a stream in.
    ///
    /// # Errors
    /// `ResourceExhausted` with the limit that it would pass.
    pub(super) fn enter(&self, call: Call, who: Who) -> Result<Seat, Refusal> {
        let machine = who.machine();
        let mut open = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let all: usize = open.iter().filter(|((of, _), _)| *of == call).map(|(_, count)| count).sum();
        let own = open.get(&(call, machine)).copied().unwrap_or_default();
        let refused = |text: String| Err(Refusal::new(RefusalCode::ResourceExhausted, text));
        if machine.is_some() && PER_MACHINE_MAX <= own {
            return refused(format!(
                "this machine has {own} streams of {call:?} open at the node, the limit"
            ));
        }
        if ALL_MAX <= all {
            return refused(format!("{all} streams of {call:?} are open at the node, the limit"));
        }
        open.insert((call, machine), own + 1);
        Ok(Seat { streams: self.clone(), call, machine })
    }
}

impl Seat {
    /// Keeps the place for as long as a stream lasts.
    pub(super) fn of<T: Send + 'static>(self, stream: BoxStream<'static, T>) -> BoxStream<'static, T> {
        stream
            .map(move |item| {
                let _held = &self;
                item
            })
            .boxed()
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut open = self.streams.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = open.get_mut(&(self.call, self.machine)) {
            *count -= 1;
            if *count == 0 {
                open.remove(&(self.call, self.machine));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_identity::{Role, Subject};

    fn of(machine: u64) -> Who {
        let machine = MachineId(machine);
        Who::Certified(Subject { machine, role: Role::Observer, node: None, is_control: false })
    }

    #[test]
    fn a_machine_has_its_share_of_each_call_and_gives_it_back() {
        let streams = Streams::default();
        let seats: Vec<Seat> =
            (0..PER_MACHINE_MAX).map(|_| streams.enter(Call::Logs, of(1)).unwrap()).collect();
        let refused = streams.enter(Call::Logs, of(1)).unwrap_err();
        assert_eq!(refused.code, RefusalCode::ResourceExhausted);
        streams.enter(Call::JobOutput, of(1)).unwrap();
        streams.enter(Call::Logs, of(2)).unwrap();
        drop(seats);
        assert!(streams.0.lock().unwrap().is_empty());
    }

    #[test]
    fn all_machines_together_have_a_limit() {
        let streams = Streams::default();
        let trusted = Who::Trusted { says: None };
        let mut seats: Vec<Seat> =
            (0..ALL_MAX).map(|_| streams.enter(Call::Logs, trusted).unwrap()).collect();
        assert!(streams.enter(Call::Logs, trusted).is_err() && streams.enter(Call::Logs, of(1)).is_err());
        // The place is held by the stream, and goes with it.
        let stream = seats.pop().unwrap().of(futures::stream::pending::<()>().boxed());
        assert!(streams.enter(Call::Logs, of(1)).is_err());
        drop(stream);
        streams.enter(Call::Logs, of(1)).unwrap();
    }
}
