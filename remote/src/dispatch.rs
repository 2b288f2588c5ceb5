//! What each record from the node does.

use crate::client::Core;
use std::io::{self, Write};
use tharsis_protos::records::{FromClient, ToClient};
use tharsis_types::text::Shown;
use tharsis_types::{Failure, FailureKind};

impl Core {
    /// Acts on one record. An error means that the node cannot be understood or that it ended the connection.
    pub(crate) fn dispatch(&self, record: &[u8]) -> Result<(), Failure> {
        let decoded = ToClient::decode(record)
            .map_err(|bad| Failure::new(FailureKind::DataCorrupt, format!("from the node: {bad}")))?;
        self.dispatching(|| self.act(decoded))
    }

    fn act(&self, record: ToClient<'_>) -> Result<(), Failure> {
        match record {
            ToClient::CancelRun { slot } => self.cancel_run(slot),
            ToClient::DefineClass { class, definition } => return self.desk.define(class, definition),
            ToClient::Locations { request, nodes } => {
                let _unwanted = self.locations.give(request, nodes.iter().collect());
                self.reception.wake_bystanders();
            }
            ToClient::Log { pid, stderr, text } => self.log(pid, stderr, text),
            ToClient::Region { request, region, failure } => {
                if let Some(unwanted) = self.regions.answer(request, region, failure) {
                    let _ = self.send(&FromClient::RegionRetired { region: unwanted });
                }
                self.reception.wake_bystanders();
            }
            ToClient::Resumed => {
                self.desk.resume();
                self.reception.wake_bystanders();
            }
            ToClient::RetireRegions => self.retire_unused(),
            ToClient::Run { slot, class, attempt, task, payload, arguments } => {
                self.desk.accept(slot, class, attempt, task, payload, arguments)?;
                if self.desk.is_lent() {
                    self.give_back(u32::MAX);
                }
                self.reception.wake_bystanders();
            }
            ToClient::Shutdown { reason } => return Err(Failure::new(FailureKind::Shutdown, reason)),
            ToClient::StealBack { count } => self.give_back(count),
            ToClient::Unmap { token } => {
                let handle = self.slab.lock().get(token);
                if let Some(handle) = handle {
                    handle.want_unmapped();
                }
            }
            ToClient::Value { token, value } => {
                // Unlocked before the handle is told: telling may drop the last clone, which locks again.
                let handle = self.slab.lock().get(token);
                if let Some(handle) = handle {
                    handle.deliver(value);
                }
            }
        }
        Ok(())
    }

    /// Passes on what a worker wrote. Escape sequences are shown, not obeyed.
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

/// The driver's own output is where the output of its workers belongs.
fn print_line(pid: u32, is_error: bool, line: &str) {
    let shown = Shown(line);
    // A closed output is no reason to fail: the lines are lost as the user wished.
    let _ = if is_error {
        writeln!(io::stderr().lock(), "(worker {pid}) {shown}")
    } else {
        writeln!(io::stdout().lock(), "(worker {pid}) {shown}")
    };
}
