//! Time until a node joins after the control store that all members used has failed.

use super::statistics::{median, quantile};
use super::{Measurement, Options};
use anyhow::{Context, Result, ensure};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tharsis::process::BackendChoice;
use tharsis::{LocalCluster, LocalNode, Resources, SpillChoice};

/// Number of control stores that are killed in a run.
const KILLS: usize = 15;
/// Number of control stores that are paused in a run.
const PAUSES: usize = 3;
const STORE_BYTES: u64 = 64 << 20;
/// Time limit of the start of etcd, and of everybody's knowing who is there.
const START_WAIT: Duration = Duration::from_secs(30);

/// An etcd with its data in a folder; dropping it ends both.
struct Etcd {
    process: Child,
    endpoint: String,
    _data: TempDir,
}

impl Etcd {
    fn start() -> Result<Self> {
        let data = tempfile::tempdir()?;
        let [clients, peers] = free_ports()?;
        let (endpoint, peer) = (format!("http://127.0.0.1:{clients}"), format!("http://127.0.0.1:{peers}"));
        let process = Command::new("etcd")
            .arg("--data-dir")
            .arg(data.path())
            .args(["--listen-client-urls", &endpoint, "--advertise-client-urls", &endpoint])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--name", "bench", "--initial-cluster", &format!("bench={peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .context("etcd cannot be started; on Debian, install it with: apt-get install etcd-server")?;
        let etcd = Self { process, endpoint, _data: data };
        let until = Instant::now() + START_WAIT;
        while TcpStream::connect((Ipv4Addr::LOCALHOST, clients)).is_err() {
            ensure!(Instant::now() < until, "etcd does not listen within {START_WAIT:?}");
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(etcd)
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        let _ended = self.process.kill();
        let _reaped = self.process.wait();
    }
}

/// Seconds from the failure of the control store that all members used until the next node has joined and is
/// seen by all, as the median of many kills; beside a join without a failure. The tables are in etcd, and a
/// second control store runs.
pub fn failover(options: &Options) -> Result<Measurement> {
    let (kills, pauses) = if options.quick { (KILLS / 3, 1) } else { (KILLS, PAUSES) };
    let etcd = Etcd::start()?;
    let store = BackendChoice::Etcd {
        endpoints: vec![etcd.endpoint.clone()],
        cluster: "bench-failover".to_owned(),
        access: tharsis_gcs::EtcdAccess::default(),
    };
    let mut cluster = LocalCluster::empty().store(store);
    let mut first = cluster.add_head(node()?)?;
    cluster.add(node()?)?;
    let (mut undisturbed, mut killed, mut paused) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..kills + pauses {
        undisturbed.push(join_s(&mut cluster)?);
        let second = cluster.add_head(node()?)?;
        if round < kills {
            cluster.kill(first);
            killed.push(join_s(&mut cluster)?);
        } else {
            cluster.pause(first)?;
            paused.push(join_s(&mut cluster)?);
        }
        first = second;
    }
    let value = median(&mut killed);
    Ok(Measurement::new("failover", value, "s", median(&mut undisturbed))
        .with("worst_s", quantile(&killed, 1.0))
        .with("paused_s", median(&mut paused))
        .with("kills", kills as f64))
}

/// Seconds until a new node is seen by all. It leaves again.
fn join_s(cluster: &mut LocalCluster) -> Result<f64> {
    let started = Instant::now();
    let index = cluster.add(node()?)?;
    let elapsed = started.elapsed().as_secs_f64();
    cluster.kill(index);
    cluster.await_count(cluster.running_count(), START_WAIT)?;
    Ok(elapsed)
}

fn node() -> Result<LocalNode> {
    Ok(LocalNode {
        resources: Resources::cpus(1.0)?,
        labels: Vec::new(),
        store_bytes: STORE_BYTES,
        spill: SpillChoice::default(),
    })
}

/// Ports that nobody listens on now.
fn free_ports() -> Result<[u16; 2]> {
    // Both at once, so that they differ.
    let listeners =
        [TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?, TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?];
    let [clients, peers] = &listeners;
    Ok([clients.local_addr()?.port(), peers.local_addr()?.port()])
}
