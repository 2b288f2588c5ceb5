//! Traces and counters of a node over OTLP, when an endpoint is set.
//!
//! The endpoint comes from the standard variable `OTEL_EXPORTER_OTLP_ENDPOINT`; without it nothing is
//! collected. The loop of the node hands spans to a thread through a bounded queue and never waits: spans
//! that do not fit are dropped and counted.

use opentelemetry::metrics::{Counter, MeterProvider};
use opentelemetry::trace::{SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue};
use opentelemetry_otlp::{MetricExporter, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::{PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanExporter as _, SpanLinks};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread::JoinHandle;
use std::time::Duration;
use tharsis_raylet::observe::{Collector, Stage, TaskSpan};
use tharsis_types::TaskId;

/// Set to the address of an OTLP collector (gRPC), such as `http://127.0.0.1:4317`.
pub const ENDPOINT_VARIABLE: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";

/// Most spans that wait to be sent.
const QUEUE_SPANS: usize = 1 << 16;
/// Most spans of one message.
const BATCH_SPANS: usize = 512;
/// Time after which a partly filled batch is sent.
const BATCH_WAIT: Duration = Duration::from_millis(200);

/// Spans on their way to the exporter.
pub struct Exporter {
    queue: Option<SyncSender<TaskSpan>>,
    thread: Option<JoinHandle<()>>,
    finished: Counter<u64>,
    failed: Counter<u64>,
    dropped: Counter<u64>,
}

/// A collector, if an endpoint is set.
///
/// # Errors
/// If the endpoint is invalid.
pub fn collector() -> anyhow::Result<Option<Box<dyn Collector>>> {
    if std::env::var_os(ENDPOINT_VARIABLE).is_none() {
        return Ok(None);
    }
    let (ready, started) = sync_channel(1);
    let (queue, spans) = sync_channel(QUEUE_SPANS);
    let thread =
        std::thread::Builder::new().name("telemetry".into()).spawn(move || export(&spans, &ready))?;
    let meters: SdkMeterProvider = started.recv()??;
    let meter = meters.meter("tharsis");
    Ok(Some(Box::new(Exporter {
        queue: Some(queue),
        thread: Some(thread),
        finished: meter.u64_counter("tharsis.tasks.finished").build(),
        failed: meter.u64_counter("tharsis.tasks.failed").build(),
        dropped: meter.u64_counter("tharsis.spans.dropped").build(),
    })))
}

impl Collector for Exporter {
    fn collect(&mut self, span: TaskSpan) {
        if span.stage == Stage::Task {
            self.finished.add(1, &[]);
            self.failed.add(u64::from(span.is_failed), &[]);
        }
        if self.queue.as_ref().is_some_and(|queue| queue.try_send(span).is_err()) {
            self.dropped.add(1, &[]);
        }
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        drop(self.queue.take());
        if let Some(thread) = self.thread.take() {
            let _joined = thread.join();
        }
    }
}

/// Runs the exporters on one thread with its own runtime, so that the node needs none.
fn export(spans: &Receiver<TaskSpan>, ready: &SyncSender<anyhow::Result<SdkMeterProvider>>) {
    let made = (|| {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let entered = runtime.enter();
        let exporter = SpanExporter::builder().with_tonic().build()?;
        let metrics = MetricExporter::builder().with_tonic().build()?;
        drop(entered);
        anyhow::Ok((runtime, exporter, metrics))
    })();
    let (runtime, mut exporter, metrics) = match made {
        Ok(made) => made,
        Err(error) => {
            let _gone = ready.send(Err(error));
            return;
        }
    };
    let resource = Resource::builder().with_service_name("tharsis").build();
    exporter.set_resource(&resource);
    let _entered = runtime.enter();
    let reader = PeriodicReader::builder(metrics).with_interval(Duration::from_secs(1)).build();
    let meters = SdkMeterProvider::builder().with_reader(reader).with_resource(resource).build();
    let _gone = ready.send(Ok(meters.clone()));
    let scope = InstrumentationScope::builder("tharsis").build();
    while let Some(batch) = next_batch(spans, &scope) {
        if batch.is_empty() {
            continue;
        }
        if let Err(error) = runtime.block_on(exporter.export(batch)) {
            tracing::warn!(%error, "spans are not exported");
        }
    }
    for outcome in [meters.shutdown(), exporter.shutdown()] {
        if let Err(error) = outcome {
            tracing::warn!(%error, "telemetry ended out of order");
        }
    }
}

/// Up to a batch of spans; `None` when no more will come.
fn next_batch(spans: &Receiver<TaskSpan>, scope: &InstrumentationScope) -> Option<Vec<SpanData>> {
    let mut batch = match spans.recv_timeout(BATCH_WAIT) {
        Ok(span) => vec![span_data(span, scope)],
        Err(RecvTimeoutError::Timeout) => return Some(Vec::new()),
        Err(RecvTimeoutError::Disconnected) => return None,
    };
    while batch.len() < BATCH_SPANS {
        match spans.try_recv() {
            Ok(span) => batch.push(span_data(span, scope)),
            Err(_) => break,
        }
    }
    Some(batch)
}

fn span_data(span: TaskSpan, scope: &InstrumentationScope) -> SpanData {
    let trace = trace_id(span.task);
    let (id, parent) = match span.stage {
        Stage::Task => (task_span(span.task), span.parent.map_or(SpanId::INVALID, run_span)),
        Stage::Run => (run_span(span.task), task_span(span.task)),
    };
    let kind = if span.stage == Stage::Task { SpanKind::Producer } else { SpanKind::Consumer };
    let verb = if span.stage == Stage::Task { "task" } else { "run" };
    SpanData {
        span_context: SpanContext::new(trace, id, TraceFlags::SAMPLED, false, TraceState::NONE),
        parent_span_id: parent,
        parent_span_is_remote: true,
        span_kind: kind,
        name: format!("{verb} {}", span.name).into(),
        start_time: span.began,
        end_time: span.ended,
        attributes: vec![
            KeyValue::new("tharsis.task", span.task.to_string()),
            KeyValue::new("tharsis.node", span.node.to_string()),
            KeyValue::new("tharsis.attempt", i64::from(span.attempt)),
        ],
        dropped_attributes_count: 0,
        events: SpanEvents::default(),
        links: SpanLinks::default(),
        status: if span.is_failed { Status::error("failed") } else { Status::Ok },
        instrumentation_scope: scope.clone(),
    }
}

/// One trace per job: its id is the id of the job's root task.
fn trace_id(task: TaskId) -> TraceId {
    TraceId::from_bytes(TaskId::root(task.job()).to_bytes())
}

fn task_span(task: TaskId) -> SpanId {
    SpanId::from_bytes(task.mixed().to_be_bytes())
}

fn run_span(task: TaskId) -> SpanId {
    SpanId::from_bytes(task.child(u64::MAX).mixed().to_be_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tharsis_types::JobId;

    #[test]
    fn every_process_derives_the_same_trace_and_spans() {
        let task = TaskId::root(JobId(7)).child(1);
        let nested = task.child(3);
        assert_eq!(trace_id(task), trace_id(nested));
        assert_ne!(trace_id(task), trace_id(TaskId::root(JobId(8)).child(1)));
        assert_ne!(task_span(task), run_span(task));
        assert_ne!(task_span(task), task_span(nested));
    }
}
