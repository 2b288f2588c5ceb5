//! Runs that an interrupt of the user ends, and not the whole command.

use anyhow::{Context, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;
use tharsis::frame::{Error, Executor, Limits, Outcome, Parts, Stages};

/// Time between looks at what the user wants.
const LOOK: Duration = Duration::from_millis(20);

/// An executor whose runs end when the user interrupts them: no task of theirs starts after that.
pub struct Interruptible {
    inner: Arc<dyn Executor>,
    asked: Arc<AtomicBool>,
}

impl Interruptible {
    /// Runs on another executor. From now on interrupts of the user do not end the process.
    ///
    /// # Errors
    /// If signals cannot be heard.
    pub fn over(inner: Arc<dyn Executor>) -> Result<Self> {
        let asked = Arc::new(AtomicBool::new(false));
        let heard = Arc::clone(&asked);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build()?;
        let (ready, is_ready) = sync_channel(1);
        let listen = async move {
            let signals = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::interrupt());
            let (mut signals, answer) = match signals {
                Ok(signals) => (Some(signals), Ok(())),
                Err(error) => (None, Err(error)),
            };
            let _nobody_waits = ready.send(answer);
            while let Some(signals) = &mut signals
                && signals.recv().await.is_some()
            {
                heard.store(true, Ordering::Relaxed);
            }
        };
        std::thread::Builder::new().name("interrupts".to_owned()).spawn(move || runtime.block_on(listen))?;
        is_ready.recv().context("the thread for signals has ended")??;
        Ok(Interruptible { inner, asked })
    }

    fn is_asked(&self) -> bool {
        self.asked.swap(false, Ordering::Relaxed)
    }
}

impl Executor for Interruptible {
    fn limits(&self) -> Limits {
        self.inner.limits()
    }

    fn execute(&self, stages: &Stages) -> tharsis::frame::Result<Outcome> {
        // An interrupt of what ran before is over.
        self.is_asked();
        let (inner, stages) = (Arc::clone(&self.inner), stages.clone());
        let (send, parts) = sync_channel(0);
        let run = move || {
            let started: tharsis::frame::Result<Parts> = inner.start(&stages);
            match started {
                // When nobody takes the parts any more, they are dropped, and no other task starts.
                Ok(mut parts) => while parts.next().is_some_and(|part| send.send(part).is_ok()) {},
                Err(error) => drop(send.send(Err(error))),
            }
        };
        std::thread::Builder::new()
            .name("query".to_owned())
            .spawn(run)
            .map_err(|error| Error::Value(format!("no thread for the query: {error}")))?;
        let mut found = Vec::new();
        loop {
            match parts.recv_timeout(LOOK) {
                Ok(part) => found.push(part?),
                Err(RecvTimeoutError::Disconnected) => break,
                Err(RecvTimeoutError::Timeout) => {}
            }
            if self.is_asked() {
                return Err(Error::Task { class: "KeyboardInterrupt", text: "interrupted".to_owned() });
            }
        }
        Ok(Outcome { parts: found, metrics: Default::default() })
    }
}
