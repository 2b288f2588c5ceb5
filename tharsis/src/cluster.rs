//! Several nodes on one machine, each a process of this program: for tests, benchmarks and trying things out.

use crate::part::{Restartable, restartable};
use crate::process::{
    BackendChoice, ClusterRole, ClusterSpec, NodeOptions, NodeProcess, NodeSpec, Security, authority_folder,
    fresh_folder, join_with_token,
};
use crate::{machine, observe, spill_dirs};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::{Duration, Instant};
use tharsis_identity::{Authority, Role};
use tharsis_protos::handshake::Question;
use tharsis_protos::report::Report;
use tharsis_raylet::SpillChoice;
use tharsis_remote::{Error, FailureKind, NodeId, Result};
use tharsis_types::Resources;
use tharsis_types::limits::{QUEUED_TASKS_MAX, SMALL_CLUSTER_MAX};

/// A node that is not heard of for this long is declared dead.
const LEASE_TTL_MS: u64 = 10_000;
/// A token of a local cluster is used at once.
const TOKEN_LIFETIME: Duration = Duration::from_secs(60);
/// The longest time that nodes may take to see each other.
const MEET_WAIT: Duration = Duration::from_secs(10);
/// Processes of nodes that start at a time, when many are added together.
const STARTING_MAX: usize = 8;

/// A cluster whose nodes are processes on this machine. Its `main` must carry `#[tharsis::main]`. Dropping it
/// ends all of them.
pub struct LocalCluster {
    lease_ttl_ms: u64,
    store: BackendChoice,
    small_cluster_max: usize,
    /// Folder of the identities of its machines, and lifetime of the certificates of nodes; none with the
    /// user's secret.
    identities: Option<(PathBuf, Duration)>,
    /// The nodes and what they are; none where one was killed or paused.
    nodes: Vec<Option<NodeProcess>>,
    /// Nodes that were paused: they end with the cluster.
    paused: Vec<NodeProcess>,
    /// Addresses of the nodes with control stores.
    heads: Vec<String>,
    reports: Vec<Report>,
}

/// One node of a [`LocalCluster`] to be.
#[derive(Clone, Debug)]
pub struct LocalNode {
    /// Its resources.
    pub resources: Resources,
    /// Its labels.
    pub labels: Vec<(String, String)>,
    /// Bytes of its store.
    pub store_bytes: u64,
    /// The spill directories of it.
    pub spill: SpillChoice,
}

impl LocalCluster {
    /// Starts `node_count` nodes; the first one begins the cluster, the others join it.
    ///
    /// # Errors
    /// Why one of them does not start.
    pub fn start(node_count: usize, cpus_each: f64, store_bytes: u64) -> Result<Self> {
        let resources = Resources::cpus(cpus_each);
        let resources = resources.map_err(|bad| Error::new(FailureKind::InvalidArgument, bad.to_string()))?;
        let node =
            LocalNode { resources, labels: Vec::new(), store_bytes, spill: spill_dirs::default_choice() };
        Self::start_nodes(vec![node; node_count])
    }

    /// Starts nodes of different kinds; the first one begins the cluster.
    ///
    /// # Errors
    /// Why one of them does not start.
    pub fn start_nodes(nodes: Vec<LocalNode>) -> Result<Self> {
        let mut cluster = Self::empty();
        cluster.add_all(nodes)?;
        Ok(cluster)
    }

    /// No nodes yet: settings come first, then [`LocalCluster::add`].
    #[must_use]
    pub fn empty() -> Self {
        Self {
            lease_ttl_ms: LEASE_TTL_MS,
            store: BackendChoice::Memory,
            small_cluster_max: SMALL_CLUSTER_MAX,
            identities: None,
            nodes: Vec::new(),
            paused: Vec::new(),
            heads: Vec::new(),
            reports: Vec::new(),
        }
    }

    /// A node that is not heard of for this long is declared dead; 10 s if nothing is said. Only before the
    /// first node.
    #[must_use]
    pub fn lease_ttl(mut self, ttl: Duration) -> Self {
        self.lease_ttl_ms = u64::try_from(ttl.as_millis()).unwrap_or(u64::MAX);
        self
    }

    /// Maximum number of nodes of a cluster in which every node deals with every other one; 16 if nothing is
    /// said. With 0 even two nodes behave as in a large cluster. Only before the first node.
    #[must_use]
    pub fn small_cluster_max(mut self, nodes: usize) -> Self {
        self.small_cluster_max = nodes;
        self
    }

    /// Folder or address of the control store's tables; in memory if nothing is said. Only before the first
    /// node.
    #[must_use]
    pub fn store(mut self, store: BackendChoice) -> Self {
        self.store = store;
        self
    }

    /// Has the nodes know each other by certificates, as if each were a machine of its own: the first one
    /// makes the cluster's authority, the others join with a token. Certificates of nodes last for `lifetime`
    /// and are replaced at half of it. Only before the first node.
    #[must_use]
    pub fn identities(mut self, folder: &Path, lifetime: Duration) -> Self {
        self.identities = Some((folder.to_owned(), lifetime));
        self
    }

    /// Security of the node of a number.
    fn security(&self, number: usize) -> Result<Security> {
        let Some((folder, lifetime)) = &self.identities else {
            return Ok(Security::Secret(machine::default_secret_file()));
        };
        let machine = folder.join(format!("machine-{number}"));
        if let Some(head) = self.reports.first() {
            let refused = |error: String| Error::new(FailureKind::InvalidArgument, error);
            let first = authority_folder(&folder.join("machine-0"));
            let authority = Authority::load(&first).map_err(|e| refused(e.to_string()))?;
            let token =
                authority.make_token(Role::Node, TOKEN_LIFETIME).map_err(|e| refused(e.to_string()))?;
            join_with_token(&machine, &head.address, &token).map_err(|e| refused(e.to_string()))?;
        }
        let lifetime_ms = u64::try_from(lifetime.as_millis()).unwrap_or(u64::MAX);
        Ok(Security::Identity { folder: machine, lifetime_ms })
    }

    /// Adds a node and waits until all others see it. Answers its number.
    ///
    /// # Errors
    /// Why it does not start.
    pub fn add(&mut self, node: LocalNode) -> Result<usize> {
        if self.heads.is_empty() { self.add_head(node) } else { self.add_as(node, self.member()) }
    }

    /// Adds nodes, several at a time, and waits until all see all.
    ///
    /// # Errors
    /// Why one of them does not start.
    pub fn add_all(&mut self, nodes: Vec<LocalNode>) -> Result<()> {
        let mut nodes = nodes.into_iter();
        if self.nodes.is_empty()
            && let Some(head) = nodes.next()
        {
            self.add(head)?;
        }
        let first = self.nodes.len();
        let specs = nodes.enumerate().map(|(index, node)| self.spec(node, self.member(), first + index));
        let specs = specs.collect::<Result<Vec<_>>>()?;
        for together in specs.chunks(STARTING_MAX) {
            let restartable = restartable()?;
            let started: Vec<_> = std::thread::scope(|scope| {
                let starting = together.iter().map(|spec| scope.spawn(move || start(spec, restartable)));
                let starting: Vec<_> = starting.collect();
                starting.into_iter().map(|thread| thread.join().unwrap_or_else(|_| Err(died()))).collect()
            });
            for node in started {
                let (process, report) = node?;
                self.reports.push(report);
                self.nodes.push(Some(process));
            }
        }
        self.await_count(self.running_count(), MEET_WAIT)
    }

    fn member(&self) -> ClusterRole {
        ClusterRole::Member { heads: self.heads.clone() }
    }

    /// Adds a node with a control store of its own over the same tables, and waits until all others see it.
    /// Answers its number. Only where several can share the tables: in etcd.
    ///
    /// # Errors
    /// Why it does not start.
    pub fn add_head(&mut self, node: LocalNode) -> Result<usize> {
        let role = ClusterRole::Head { store: self.store.clone(), lease_ttl_ms: self.lease_ttl_ms };
        let index = self.add_as(node, role)?;
        self.heads.extend(self.address(index).map(str::to_owned));
        Ok(index)
    }

    fn add_as(&mut self, node: LocalNode, role: ClusterRole) -> Result<usize> {
        let restartable = restartable()?;
        let spec = self.spec(node, role, self.reports.len())?;
        let (process, report) = start(&spec, restartable)?;
        self.reports.push(report);
        self.nodes.push(Some(process));
        self.await_count(self.running_count(), MEET_WAIT)?;
        Ok(self.nodes.len() - 1)
    }

    /// Settings of the process of a node.
    fn spec(&self, node: LocalNode, role: ClusterRole, number: usize) -> Result<NodeSpec> {
        machine::check_store_bytes(node.store_bytes, machine::memory_bytes())?;
        let options = NodeOptions {
            resources: node.resources,
            labels: node.labels,
            store_bytes: node.store_bytes,
            spill: node.spill.clone(),
            // All of them share one machine, and none knows of the others.
            memory_limit_bytes: 0,
            memory_soft_limit_bytes: 0,
            min_free_bytes: 0,
            lineage_bytes: machine::LINEAGE_BYTES,
            queued_tasks_max: QUEUED_TASKS_MAX,
            small_cluster_max: self.small_cluster_max,
            worker_start_timeout: machine::WORKER_START_TIMEOUT,
        };
        Ok(NodeSpec {
            socket: fresh_folder(None).join("node.sock"),
            options,
            ends_with_stdin: true,
            cluster: Some(ClusterSpec {
                listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
                advertised: None,
                network_threads: 1,
                security: self.security(number)?,
                role,
            }),
            drain_within: machine::DRAIN_WITHIN,
        })
    }

    /// Number of nodes that were neither killed nor paused.
    #[must_use]
    pub fn running_count(&self) -> usize {
        self.nodes.iter().flatten().count()
    }

    /// The socket of a node, for `init().address(..)`; none if it was killed.
    #[must_use]
    pub fn socket(&self, index: usize) -> Option<&Path> {
        self.nodes.get(index)?.as_ref().map(NodeProcess::socket)
    }

    /// The process of a node; none if it was killed.
    #[must_use]
    pub fn pid(&self, index: usize) -> Option<u32> {
        self.nodes.get(index)?.as_ref().map(NodeProcess::pid)
    }

    /// Address at which other nodes reach a node.
    #[must_use]
    pub fn address(&self, index: usize) -> Option<&str> {
        self.reports.get(index).map(|report| report.address.as_str())
    }

    /// The id of a node.
    #[must_use]
    pub fn node(&self, index: usize) -> Option<NodeId> {
        self.reports.get(index).map(|report| NodeId(report.node))
    }

    /// State of a node now.
    ///
    /// # Errors
    /// `Disconnected` if it does not answer.
    pub fn report(&self, index: usize) -> Result<Report> {
        observe::ask(self.socket(index).ok_or_else(|| not_running(index))?, Question::Status)
    }

    /// Kills a node as a crash would; its workers die with it.
    pub fn kill(&mut self, index: usize) {
        if let Some(mut node) = self.nodes.get_mut(index).and_then(Option::take) {
            node.kill();
        }
    }

    /// Stops the process of a node, as if its machine hung. The node is not asked for anything any more; it
    /// ends with the cluster.
    ///
    /// # Errors
    /// `Disconnected` if it does not run.
    pub fn pause(&mut self, index: usize) -> Result<()> {
        let node = self.nodes.get_mut(index).and_then(Option::take);
        let node = node.ok_or_else(|| not_running(index))?;
        let paused = node.pause();
        self.paused.push(node);
        paused
    }

    /// Waits until the process of a node has ended by itself, and forgets the node. Answers its exit status.
    ///
    /// # Errors
    /// `Disconnected` if it does not end in time, or does not run.
    pub fn await_end(&mut self, index: usize, within: Duration) -> Result<ExitStatus> {
        let slow = || Error::new(FailureKind::Disconnected, format!("node {index} did not end"));
        let node = self.nodes.get_mut(index).ok_or_else(slow)?;
        let status = node.as_mut().and_then(|node| node.end_within(within)).ok_or_else(slow)?;
        // Its folder goes with it.
        drop(node.take());
        Ok(status)
    }

    /// Waits until every node sees as many nodes as run.
    ///
    /// # Errors
    /// `Disconnected` if they do not in time.
    pub fn await_count(&self, count: usize, within: Duration) -> Result<()> {
        let until = Instant::now() + within;
        for (index, _) in self.nodes.iter().enumerate().filter(|(_, node)| node.is_some()) {
            loop {
                let seen = self.report(index)?.nodes.len();
                if seen == count {
                    break;
                }
                if until < Instant::now() {
                    let text = format!("node {index} sees {seen} nodes instead of {count}");
                    return Err(Error::new(FailureKind::Disconnected, text));
                }
                std::thread::sleep(Duration::from_millis(2));
            }
        }
        Ok(())
    }

    /// Stops all nodes, the head last; the same as dropping it.
    pub fn stop(self) {}
}

fn not_running(index: usize) -> Error {
    Error::new(FailureKind::Disconnected, format!("node {index} does not run"))
}

/// Starts the process of a node; returns what the node says of itself.
fn start(spec: &NodeSpec, restartable: Restartable) -> Result<(NodeProcess, Report)> {
    let process = NodeProcess::start_as(spec, restartable)?;
    let report = observe::ask(process.socket(), Question::Status)?;
    Ok((process, report))
}

fn died() -> Error {
    Error::new(FailureKind::Internal, "the thread that starts a node has ended")
}

impl Drop for LocalCluster {
    fn drop(&mut self) {
        // A paused process cannot stop by itself.
        self.paused.drain(..).for_each(|mut node| node.kill());
        self.nodes.iter_mut().skip(1).flatten().for_each(NodeProcess::tell_to_stop);
        while let Some(node) = self.nodes.pop() {
            drop(node);
        }
    }
}
