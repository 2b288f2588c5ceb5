//! Traces of a node reach an OTLP collector: submit to result and run are spans of one trace.

use opentelemetry_proto::tonic::collector::metrics::v1::metrics_service_server::{
    MetricsService, MetricsServiceServer,
};
use opentelemetry_proto::tonic::collector::metrics::v1::{
    ExportMetricsServiceRequest, ExportMetricsServiceResponse,
};
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{
    TraceService, TraceServiceServer,
};
use opentelemetry_proto::tonic::collector::trace::v1::{
    ExportTraceServiceRequest, ExportTraceServiceResponse,
};
use opentelemetry_proto::tonic::trace::v1::Span;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

/// A collector that keeps received spans and metrics.
#[derive(Clone, Default)]
struct Received {
    spans: Arc<Mutex<Vec<Span>>>,
    metrics: Arc<Mutex<Vec<String>>>,
}

#[tonic::async_trait]
impl TraceService for Received {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        let scopes = request.into_inner().resource_spans.into_iter().flat_map(|r| r.scope_spans);
        self.spans.lock().unwrap().extend(scopes.flat_map(|s| s.spans));
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

#[tonic::async_trait]
impl MetricsService for Received {
    async fn export(
        &self,
        request: Request<ExportMetricsServiceRequest>,
    ) -> Result<Response<ExportMetricsServiceResponse>, Status> {
        let scopes = request.into_inner().resource_metrics.into_iter().flat_map(|r| r.scope_metrics);
        self.metrics.lock().unwrap().extend(scopes.flat_map(|s| s.metrics).map(|m| m.name));
        Ok(Response::new(ExportMetricsServiceResponse::default()))
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_task_and_its_run_are_spans_of_one_trace() {
    let received = Received::default();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let server = tonic::transport::Server::builder()
        .add_service(TraceServiceServer::new(received.clone()))
        .add_service(MetricsServiceServer::new(received.clone()))
        .serve_with_incoming(TcpListenerStream::new(listener));
    let server = tokio::spawn(server);
    let mut program = tokio::process::Command::new(env!("CARGO_BIN_EXE_tharsis"));
    crate::home::without_settings(program.as_std_mut());
    program.args(["bench-first", "processes"]).env("OTEL_EXPORTER_OTLP_ENDPOINT", &endpoint);
    let status = tokio::time::timeout(Duration::from_secs(60), program.status()).await.unwrap().unwrap();
    assert!(status.success());
    server.abort();

    let spans = received.spans.lock().unwrap();
    let find = |verb: &str| {
        spans.iter().find(|s| s.name.starts_with(verb)).unwrap_or_else(|| panic!("no {verb}: {spans:?}"))
    };
    let (task, run) = (find("task "), find("run "));
    assert!(task.name.ends_with("answer"), "{}", task.name);
    assert_eq!(task.trace_id, run.trace_id);
    assert_eq!(run.parent_span_id, task.span_id);
    assert!(task.start_time_unix_nano <= run.start_time_unix_nano);
    assert!(run.end_time_unix_nano <= task.end_time_unix_nano);
    assert!(received.metrics.lock().unwrap().iter().any(|name| name == "tharsis.tasks.finished"));
}
