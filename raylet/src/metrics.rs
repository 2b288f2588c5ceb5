//! Counts of a node for monitors, in Prometheus' text format (version 0.0.4).
//!
//! A scrape asks the loop once for numbers that it has at hand. The text is made on the thread of the
//! cluster, so a scrape costs the loop a microsecond, however much the node has to do.

use crate::descriptors;
use crate::inbox::{Counts, Inbox, Input};
use std::fmt::{Display, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tharsis_core::node::Gauges;
use tharsis_gcs::Control;
use tharsis_protos::rights::PortCounts;
use tharsis_types::{NodeId, Resources};
use tokio::sync::{Mutex, oneshot};
use tokio::time::timeout;

/// The longest time that the loop may take to answer.
const ANSWER_WAIT: Duration = Duration::from_secs(4);

/// The facts that a monitor is told of a node.
pub struct Scraped {
    node: NodeId,
    inbox: Arc<Inbox>,
    port: Arc<PortCounts>,
    /// The control store of a head.
    control: Option<Control>,
    scrapes: AtomicU64,
    /// One scrape at a time asks the loop.
    turn: Mutex<()>,
}

/// Kind of a metric.
#[derive(Clone, Copy)]
enum Kind {
    Counter,
    Gauge,
}

/// Metrics in the text format.
#[derive(Default)]
struct Text(String);

impl Scraped {
    /// The counts of a node whose loop answers through `inbox`.
    #[must_use]
    pub fn new(node: NodeId, inbox: Arc<Inbox>, port: Arc<PortCounts>, control: Option<Control>) -> Self {
        Self { node, inbox, port, control, scrapes: AtomicU64::new(0), turn: Mutex::new(()) }
    }

    /// The metrics now; none if the node does not answer.
    pub async fn text(&self) -> Option<String> {
        let _turn = self.turn.lock().await;
        let (reply, answer) = oneshot::channel();
        self.inbox.put(Input::Metrics { reply });
        let counts = timeout(ANSWER_WAIT, answer).await.ok()?.ok()?;
        let scrapes = self.scrapes.fetch_add(1, Ordering::Relaxed) + 1;
        let mut text = Text::default();
        text.node(self.node, &counts);
        text.port(&self.port, scrapes);
        self.control.iter().for_each(|control| text.tables(control));
        text.process();
        Some(text.0)
    }
}

impl Text {
    /// Begins a metric.
    fn head(&mut self, name: &str, kind: Kind, help: &str) {
        let kind = match kind {
            Kind::Counter => "counter",
            Kind::Gauge => "gauge",
        };
        // Writing to a string does not fail.
        let _written = writeln!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}");
    }

    /// A sample of the metric that was begun last; `labels` as they stand between braces.
    fn sample(&mut self, name: &str, labels: &str, value: impl Display) {
        let labels = if labels.is_empty() { String::new() } else { format!("{{{labels}}}") };
        let _written = writeln!(self.0, "{name}{labels} {value}");
    }

    fn counter(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, Kind::Counter, help);
        self.sample(name, "", value);
    }

    fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, Kind::Gauge, help);
        self.sample(name, "", value);
    }

    fn node(&mut self, node: NodeId, counts: &Counts) {
        let name = "tharsis_build_info";
        self.head(name, Kind::Gauge, "Version of the program and id of the node.");
        let version = env!("CARGO_PKG_VERSION");
        self.sample(name, &format!("version=\"{version}\",node=\"{node}\""), 1);
        let gauges = &counts.gauges;
        self.tasks(gauges);
        self.resources(&gauges.total, &gauges.free);
        self.store(gauges);
        let help = "Bytes of objects sent to other nodes.";
        self.counter("tharsis_transfer_sent_bytes_total", help, counts.sent_bytes);
        let help = "Bytes of objects read from other nodes.";
        self.counter("tharsis_transfer_received_bytes_total", help, counts.received_bytes);
        let help = "Objects that are being read from other nodes or from disk, or are next.";
        self.gauge("tharsis_transfers_pending", help, gauges.pull_count);
        self.gauge("tharsis_peers", "Other nodes of the cluster.", gauges.peer_count);
        let help = "Messages to other nodes that are not acknowledged.";
        self.gauge("tharsis_messages_unacknowledged", help, gauges.unacknowledged_count);
        let help = "1 while the node drains: it takes no new work.";
        self.gauge("tharsis_draining", help, u8::from(gauges.is_draining));
    }

    fn tasks(&mut self, gauges: &Gauges) {
        let totals = gauges.totals;
        let help = "Tasks submitted by drivers and workers of this node.";
        self.counter("tharsis_tasks_submitted_total", help, totals.submitted);
        let help = "Tasks of this node that returned; runs for lost values count again.";
        self.counter("tharsis_tasks_finished_total", help, totals.returned);
        self.counter("tharsis_tasks_failed_total", "Tasks of this node that failed.", totals.failed);
        let help = "Tasks submitted here that have not ended.";
        self.gauge("tharsis_tasks_unfinished", help, gauges.task_count);
        self.gauge(
            "tharsis_tasks_queued",
            "Tasks submitted here that wait for a worker.",
            gauges.queued_count,
        );
        let help = "Tasks of any node that were sent to workers of this node.";
        self.gauge("tharsis_tasks_running", help, gauges.running_count);
        self.gauge("tharsis_objects", "Objects that this node owns or refers to.", gauges.object_count);
        self.gauge("tharsis_workers", "Workers of this node.", gauges.worker_count);
        self.gauge("tharsis_drivers", "Drivers connected to this node.", gauges.driver_count);
        let granted = gauges.lease_count.saturating_sub(gauges.waiting_count);
        self.gauge("tharsis_leases_granted", "Leases of workers of this node.", granted);
        let help = "Requests for leases that wait for resources of this node.";
        self.gauge("tharsis_leases_waiting", help, gauges.waiting_count);
        let help = "Leases that this node has or asked for, of any node.";
        self.gauge("tharsis_leases_held", help, gauges.leased_count);
    }

    fn resources(&mut self, total: &Resources, free: &Resources) {
        let in_cpus = |resources: &Resources| resources.cpu as f64 / Resources::UNIT as f64;
        self.gauge("tharsis_cpus", "CPUs that this node offers.", in_cpus(total));
        self.gauge("tharsis_cpus_free", "CPUs of this node that no lease takes.", in_cpus(free));
    }

    fn store(&mut self, gauges: &Gauges) {
        let store = &gauges.store;
        self.gauge("tharsis_store_used_bytes", "Bytes of the object store in use.", store.used_bytes);
        self.gauge("tharsis_store_capacity_bytes", "Bytes of the object store.", store.capacity_bytes);
        self.gauge("tharsis_store_objects", "Objects in the object store.", store.object_count);
        self.gauge("tharsis_store_spilled_bytes", "Bytes of objects on disk.", store.spilled_bytes);
        self.gauge("tharsis_store_spilled_objects", "Objects on disk.", store.spilled_count);
        let help = "Bytes in use of the file for values larger than the store.";
        self.gauge("tharsis_store_annex_used_bytes", help, store.annex_used_bytes);
    }

    fn port(&mut self, port: &PortCounts, scrapes: u64) {
        let help = "Connections to the port that did not prove that they are of the cluster.";
        let refused = port.connections_refused.load(Ordering::Relaxed);
        self.counter("tharsis_connections_refused_total", help, refused);
        let help = "Calls that were refused because they are not for the role of their caller.";
        self.counter("tharsis_calls_refused_total", help, port.calls_refused.load(Ordering::Relaxed));
        self.counter("tharsis_scrapes_total", "Scrapes, this one included.", scrapes);
    }

    fn tables(&mut self, control: &Control) {
        let help = "1 while the tables of the cluster can be written; 0: no node joins and no job begins.";
        self.gauge("tharsis_store_writable", help, u8::from(control.is_writable()));
    }

    /// Metrics of the process, by the names that Prometheus' own libraries use.
    fn process(&mut self) {
        if let Some(stat) = ProcessStat::read() {
            let help = "Time that the process spent on CPUs, in seconds.";
            self.counter("process_cpu_seconds_total", help, stat.cpu_seconds);
            let help = "Memory of the process that is in RAM, in bytes.";
            self.gauge("process_resident_memory_bytes", help, stat.resident_bytes);
            self.gauge("process_threads", "Threads of the process.", stat.threads);
        }
        if let Ok(files) = std::fs::read_dir("/proc/self/fd") {
            self.gauge("process_open_fds", "Files that the process has open.", files.count());
        }
        if let Some(max) = descriptors::max() {
            self.gauge("process_max_fds", "Files that the process may have open.", max);
        }
    }
}

/// Numbers of this process as the kernel has them.
struct ProcessStat {
    cpu_seconds: f64,
    resident_bytes: u64,
    threads: u64,
}

impl ProcessStat {
    fn read() -> Option<Self> {
        let text = std::fs::read_to_string("/proc/self/stat").ok()?;
        // The name in parentheses may hold anything. The state comes after it, which is field 3.
        let (_, rest) = text.rsplit_once(')')?;
        let fields: Vec<&str> = rest.split_whitespace().collect();
        let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
        let ticks = (field(14)? + field(15)?) as f64;
        Some(Self {
            cpu_seconds: ticks / rustix::param::clock_ticks_per_second() as f64,
            resident_bytes: field(24)? * rustix::param::page_size() as u64,
            threads: field(20)?,
        })
    }
}
