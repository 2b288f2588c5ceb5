//! The course of a run: numbers of its actions for the hash over all of them, and lines for a person.

use crate::rng::mix;
use tharsis_core::{Action, Operation, Record};

/// Actions that are not told of by what follows from them.
#[allow(clippy::print_stdout, reason = "asked for on the command line")]
pub(crate) fn tell_person_of(host: usize, action: &Action) {
    let is_told = matches!(
        action,
        Action::Do(Operation::Send { .. } | Operation::MemoryFreed)
            | Action::Tell { record: Record::Run { .. } | Record::Locations { .. }, .. }
    );
    if !is_told {
        println!("{:>22} node {host}: {action:?}", "");
    }
}

/// The number of an action, which tells it from most others.
pub(crate) fn action_number(action: &Action) -> u64 {
    match action {
        Action::Do(operation) => operation_number(operation),
        Action::Tell { client, record } => mix(record_number(record), u64::from(client.0)),
    }
}

fn operation_number(operation: &Operation) -> u64 {
    match operation {
        Operation::ConfirmEnd { job, from } => mix(15, mix(u64::from(job.0), from.0)),
        Operation::Discard(object) => mix(1, object.task.mixed()),
        Operation::FindDriver { job, from } => mix(16, mix(u64::from(job.0), from.0)),
        Operation::FindMember(node) => mix(14, node.0),
        Operation::ForgetJob { job } => mix(2, u64::from(job.0)),
        Operation::FreeBlocks(extent) => mix(3, extent.offset),
        Operation::KillWorker { client, .. } => mix(4, u64::from(client.0)),
        Operation::Leave => 13,
        Operation::MemoryFreed => 5,
        Operation::Pull { object, into, .. } => mix(6, mix(object.task.mixed(), into.offset)),
        Operation::ReadMemory { within_ms } => mix(7, *within_ms),
        Operation::Reclaim(extent) => mix(8, extent.offset),
        Operation::Restore { into, .. } => mix(9, into.offset),
        Operation::Send { packet, .. } => mix(10, mix(packet.first, packet.messages.len() as u64)),
        Operation::Spill { extent, .. } => mix(11, extent.offset),
        Operation::StartWorker { start, .. } => mix(12, *start),
    }
}

fn record_number(record: &Record) -> u64 {
    match record {
        Record::CancelRun { run } => mix(21, u64::from(*run)),
        Record::Locations { request, .. } => mix(22, u64::from(*request)),
        Record::CheckpointEnded { .. } | Record::Region { .. } => 23,
        Record::Resumed => 24,
        Record::RetireRegions => 25,
        Record::Run { run } => mix(26, u64::from(*run)),
        Record::StealBack { .. } => 27,
        Record::Stop => 28,
        Record::Unmap { token } => mix(29, *token),
        Record::Value { token, .. } => mix(30, *token),
    }
}
