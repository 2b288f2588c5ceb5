//! A real etcd process on free ports, with its data in a folder that goes with it.

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long etcd may take to answer after it was started.
const START_DEADLINE: Duration = Duration::from_secs(20);

/// A running etcd; dropping it kills it.
#[derive(Debug)]
pub struct EtcdProcess {
    child: Child,
    endpoint: String,
    _data: TempDir,
}

impl EtcdProcess {
    /// Starts an etcd and waits until it answers.
    pub async fn start() -> Self {
        let data = tempfile::tempdir().expect("a folder for etcd");
        let [client, peer] = free_ports();
        let endpoint = format!("http://127.0.0.1:{client}");
        let peers = format!("http://127.0.0.1:{peer}");
        let log = std::fs::File::create(data.path().join("log")).expect("a log for etcd");
        let child = Command::new("etcd")
            .args(["--name", "test", "--data-dir"])
            .arg(data.path().join("data"))
            .args(["--listen-client-urls", &endpoint, "--advertise-client-urls", &endpoint])
            .args(["--listen-peer-urls", &peers, "--initial-advertise-peer-urls", &peers])
            .args(["--initial-cluster", &format!("test={peers}")])
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap_or_else(|error| {
                panic!("etcd cannot be started ({error}); install it, on Debian with: apt-get install etcd-server")
            });
        let process = Self { child, endpoint, _data: data };
        process.wait().await;
        process
    }

    /// Where it answers.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.endpoint
    }

    async fn wait(&self) {
        let end = Instant::now() + START_DEADLINE;
        loop {
            let asked = tokio::time::timeout(Duration::from_secs(2), async {
                etcd_client::Client::connect([&self.endpoint], None).await?.status().await
            });
            match asked.await {
                Ok(Ok(_)) => return,
                other => {
                    assert!(Instant::now() < end, "etcd does not answer at {}: {other:?}", self.endpoint)
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}

impl Drop for EtcdProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ports that nobody listens on now.
#[must_use]
pub fn free_ports<const N: usize>() -> [u16; N] {
    // All at once, so that they differ.
    let listeners: Vec<TcpListener> =
        (0..N).map(|_| TcpListener::bind("127.0.0.1:0").expect("a port")).collect();
    std::array::from_fn(|i| listeners[i].local_addr().expect("an address").port())
}
