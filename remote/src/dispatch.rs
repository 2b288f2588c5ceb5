//! Dispatch of records from the node.

use crate::error::{Result as Outcome, decode_failure};
use crate::handles::Table;
use crate::link::{LentSlot, Link, Receiver};
use crate::regions::Regions;
use crate::task::TaskState;
use crate::work::Work;
use std::io::{self, Write};
use std::sync::Arc;
use tharsis_protos::records::{FromClient, ToClient};
use tharsis_types::text::Shown;
use tharsis_types::{Failure, FailureKind};

/// Receives complete lines of a worker: its process id, whether they came from stderr, the text.
pub type LogSink = Box<dyn Fn(u32, bool, &str) + Send + Sync>;

/// Passes records on to the handles, regions and work that they refer to.
pub(crate) struct Dispatcher {
    pub(crate) table: Arc<Table>,
    pub(crate) regions: Arc<Regions>,
    pub(crate) work: Arc<Work>,
    pub(crate) log_sink: Option<LogSink>,
}

impl Receiver for Dispatcher {
    fn receive(&self, link: &Link, record: ToClient<'_>) -> Result<(), Failure> {
        match record {
            ToClient::CancelRun { slot } => self.work.cancel_run(link, slot),
            ToClient::CheckpointEnded { request, failure } => {
                let refusal = (!failure.is_empty()).then(|| decode_failure(failure));
                let _unwanted = self.table.checkpoints.give(request, refusal);
                link.inbound.wake_bystanders();
            }
            ToClient::DefineClass { class, definition } => return self.work.define(class, definition),
            ToClient::Grant { calls } => link.grant_calls(calls),
            ToClient::Locations { request, nodes } => {
                let _unwanted = self.table.locations.give(request, nodes.iter().collect());
                link.inbound.wake_bystanders();
            }
            ToClient::Log { pid, stderr, text } => self.log(pid, stderr, text),
            ToClient::Region { request, region, failure } => {
                if let Some(unwanted) = self.regions.answer(request, region, failure) {
                    let _ = link.send(&FromClient::RegionRetired { region: unwanted });
                }
                link.inbound.wake_bystanders();
            }
            ToClient::Resumed => {
                self.work.resume();
                link.inbound.wake_bystanders();
            }
            ToClient::RetireRegions => self.regions.retire_unused(link),
            ToClient::Run { slot, class, attempt, task, payload, arguments, name } => {
                self.work.accept(slot, class, attempt, (task, name), payload, arguments)?;
                self.work.give_back_arrived(link);
                link.inbound.wake_bystanders();
            }
            ToClient::Shutdown { reason } => return Err(Failure::new(FailureKind::Shutdown, reason)),
            ToClient::StealBack { count, question } => self.work.give_back(link, count, question),
            ToClient::Unmap { token } => {
                if let Some(handle) = self.table.get(token) {
                    handle.want_unmapped();
                }
            }
            ToClient::Value { token, value } => {
                if let Some(handle) = self.table.get(token) {
                    handle.deliver(value);
                }
            }
        }
        Ok(())
    }

    fn lost(&self, failure: &Arc<Failure>) {
        self.table.all().iter().for_each(|handle| handle.fail(failure));
        self.regions.leave_current();
    }

    fn ends_loss(&self) -> bool {
        self.work.has_idle_actor()
    }

    fn task(&self, link: &Link) -> Option<Arc<TaskState>> {
        self.work.task_of_thread(link)
    }

    fn lend_slot(&self, link: &Link) -> Outcome<LentSlot> {
        self.work.lend_slot(link)
    }

    fn reclaim_slot(&self, link: &Link, lent: LentSlot) -> Outcome<()> {
        self.work.reclaim_slot(link, lent)
    }
}

impl Dispatcher {
    /// Passes on the output of a worker. Escape sequences are printed in escaped form.
    fn log(&self, pid: u32, is_error: bool, text: &[u8]) {
        let text = String::from_utf8_lossy(text);
        if let Some(sink) = &self.log_sink {
            sink(pid, is_error, &text);
            return;
        }
        for line in text.lines() {
            print_line(pid, is_error, line);
        }
    }
}

/// Prints a line of a worker on the driver's own output.
fn print_line(pid: u32, is_error: bool, line: &str) {
    let shown = Shown(line);
    // A closed output is no reason to fail: the user does not want the lines.
    let _ = if is_error {
        writeln!(io::stderr().lock(), "(worker {pid}) {shown}")
    } else {
        writeln!(io::stdout().lock(), "(worker {pid}) {shown}")
    };
}
