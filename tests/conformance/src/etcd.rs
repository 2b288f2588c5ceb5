//! Real etcd processes on free ports, with their data in a folder that goes with them.

use crate::certificates::TestAuthority;
use etcd_client::{
    AlarmAction, AlarmOptions, AlarmType, Certificate, Client, CompactionOptions, ConnectOptions,
    DeleteOptions, Identity, Permission, TlsOptions,
};
use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tharsis_gcs::{EtcdTls, EtcdUser};
use tharsis_trials::free_ports;

/// Time that etcd may take to answer after it was started.
const START_DEADLINE: Duration = Duration::from_secs(30);
/// Password of the operator of an etcd that asks for users.
const OPERATORS_PASSWORD: &str = "of the operator";
/// Upper bound on the values that a small etcd takes.
const FILLINGS_MAX: u32 = 10_000;

/// One etcd; dropping it kills it.
#[derive(Debug)]
pub struct EtcdProcess {
    member: Member,
    /// Access of its operator.
    operator: Option<ConnectOptions>,
    _data: TempDir,
}

/// Things that an etcd asks of the one user that it lets in beside its operator.
#[derive(Debug)]
pub struct EtcdGuard {
    /// Certificates.
    pub tls: EtcdTls,
    /// Name and password.
    pub user: EtcdUser,
}

/// An etcd of three processes, which works as long as two of them do; dropping it kills all.
#[derive(Debug)]
pub struct EtcdTrio {
    members: [Member; 3],
    _data: TempDir,
}

#[derive(Debug)]
struct Member {
    name: String,
    folder: PathBuf,
    endpoint: String,
    peer: String,
    /// All members with their peers, as etcd is told.
    cluster: String,
    /// Further words of its command line.
    words: Vec<String>,
    child: Option<Child>,
}

impl EtcdProcess {
    /// Starts an etcd and waits until it answers.
    pub async fn start() -> Self {
        Self::start_with(Vec::new()).await
    }

    /// Starts an etcd that takes no more than `bytes`, and waits until it answers.
    pub async fn start_small(bytes: u64) -> Self {
        Self::start_with(vec!["--quota-backend-bytes".to_owned(), bytes.to_string()]).await
    }

    async fn start_with(words: Vec<String>) -> Self {
        let data = tempfile::tempdir().expect("a folder for etcd");
        let [mut member] = members(&data, free_ports::<2>());
        member.words = words;
        member.start();
        await_answer(&[member.endpoint.clone()], None).await;
        Self { member, operator: None, _data: data }
    }

    /// Starts an etcd that speaks TLS, asks for certificates, and has a user who may use the keys of clusters
    /// alone; waits until it answers.
    pub async fn start_guarded() -> (Self, EtcdGuard) {
        let data = tempfile::tempdir().expect("a folder for etcd");
        let [mut member] = members(&data, free_ports::<2>());
        let authority = TestAuthority::make();
        let (certificate, key) = authority.sign("etcd");
        for (flag, name, text) in [
            ("--cert-file", "certificate", &certificate),
            ("--key-file", "key", &key),
            ("--trusted-ca-file", "authority", &authority.certificate),
        ] {
            let path = data.path().join(name);
            std::fs::write(&path, text).expect("a file of etcd");
            member.words.extend([flag.to_owned(), path.display().to_string()]);
        }
        member.words.push("--client-cert-auth".to_owned());
        member.endpoint = member.endpoint.replace("http://", "https://");
        member.start();
        let (certificate, key) = authority.sign("a control store");
        let tls = TlsOptions::new()
            .ca_certificate(Certificate::from_pem(&authority.certificate))
            .identity(Identity::from_pem(&certificate, &key));
        let anybody = ConnectOptions::new().with_tls(tls);
        await_answer(&[member.endpoint.clone()], Some(&anybody)).await;
        let user = EtcdUser { name: "tharsis".to_owned(), password: "of the control store".to_owned() };
        let client = Client::connect([&member.endpoint], Some(anybody.clone())).await;
        add_users(&mut client.expect("a client of etcd"), &user).await;
        let operator = Some(anybody.with_user("root", OPERATORS_PASSWORD));
        let tls = EtcdTls { ca: authority.certificate, identity: Some((certificate, key)) };
        let guard = EtcdGuard { tls, user };
        (Self { member, operator, _data: data }, guard)
    }

    /// Kills it, starts it again over the same data, and waits until it answers.
    pub async fn restart(&mut self) {
        self.member.kill();
        self.member.start();
        await_answer(std::slice::from_ref(&self.member.endpoint), self.operator.as_ref()).await;
    }

    /// Gives the role of the one user another permission: tokens that were given before know nothing of it.
    pub async fn change_users(&self) {
        let mut client = self.client().await;
        client
            .role_grant_permission("tharsis", Permission::read_write("/other/").with_prefix())
            .await
            .expect("a permission");
    }

    /// Address at which it answers.
    #[must_use]
    pub fn endpoint(&self) -> &str {
        &self.member.endpoint
    }

    /// Makes it hang until [`EtcdProcess::resume`]: its connections stay, and nobody answers.
    pub fn hang(&self) {
        self.member.signal("-STOP");
    }

    /// Lets it go on.
    pub fn resume(&self) {
        self.member.signal("-CONT");
    }

    /// Makes it forget its history up to now.
    pub async fn compact(&self) {
        let mut client = self.client().await;
        let revision = client.get("any", None).await.expect("a read").header().expect("a header").revision();
        let physical = CompactionOptions::new().with_physical();
        client.compact(revision, Some(physical)).await.expect("a compaction");
    }

    /// Writes values that are not ours until it raises the alarm that it is out of space.
    pub async fn fill(&self) {
        let mut client = self.client().await;
        for number in 0..FILLINGS_MAX {
            // Large ones first; the last ones leave no room for a record.
            for len in [64 << 10, 1 << 10, 16] {
                match client.put(format!("filling/{number}/{len}"), vec![7_u8; len], None).await {
                    Ok(_) => break,
                    Err(error) => assert!(error.to_string().contains("space exceeded"), "{error}"),
                }
            }
            if !alarms(&mut client).await.is_empty() {
                return;
            }
        }
        panic!("an etcd with a quota takes {FILLINGS_MAX} values");
    }

    /// Makes room in it as an operator does: removes what fills it, compacts, defragments, disarms the alarm.
    pub async fn make_room(&self) {
        let mut client = self.client().await;
        client.delete("filling/", Some(DeleteOptions::new().with_prefix())).await.expect("a deletion");
        self.compact().await;
        client.defragment().await.expect("a defragmentation");
        for member in alarms(&mut client).await {
            let mut options = AlarmOptions::new();
            options.with_member(member);
            client
                .alarm(AlarmAction::Deactivate, AlarmType::Nospace, Some(options))
                .await
                .expect("a disarmament");
        }
    }

    /// A client with the rights of its operator.
    pub async fn client(&self) -> Client {
        Client::connect([self.endpoint()], self.operator.clone()).await.expect("a client of etcd")
    }
}

impl EtcdTrio {
    /// Starts three that are one, and waits until they answer.
    pub async fn start() -> Self {
        let data = tempfile::tempdir().expect("a folder for etcd");
        let mut members = members(&data, free_ports::<6>());
        members.iter_mut().for_each(Member::start);
        let trio = Self { members, _data: data };
        trio.await_quorum().await;
        trio
    }

    /// Addresses at which they answer.
    #[must_use]
    pub fn endpoints(&self) -> Vec<String> {
        self.members.iter().map(|member| member.endpoint.clone()).collect()
    }

    /// Kills one of them; its data stay.
    pub fn kill(&mut self, index: usize) {
        self.members[index].kill();
    }

    /// Makes one of them hang: its connections stay, and nobody answers. It can only be killed then.
    ///
    /// # Panics
    /// If it does not run.
    pub fn hang(&self, index: usize) {
        self.members[index].signal("-STOP");
    }

    /// Starts one again that was killed.
    pub fn start_again(&mut self, index: usize) {
        self.members[index].start();
    }

    /// Waits until reads that need a quorum are answered.
    pub async fn await_quorum(&self) {
        await_answer(&self.endpoints(), None).await;
    }
}

/// Members with their ports: for clients first, then for each other.
fn members<const N: usize, const PORTS: usize>(data: &TempDir, ports: [u16; PORTS]) -> [Member; N] {
    assert_eq!(PORTS, 2 * N);
    let url = |port: u16| format!("http://127.0.0.1:{port}");
    let named: Vec<_> = (0..N).map(|n| format!("m{n}={}", url(ports[N + n]))).collect();
    std::array::from_fn(|n| Member {
        name: format!("m{n}"),
        folder: data.path().join(n.to_string()),
        endpoint: url(ports[n]),
        peer: url(ports[N + n]),
        cluster: named.join(","),
        words: Vec::new(),
        child: None,
    })
}

impl Member {
    fn start(&mut self) {
        std::fs::create_dir_all(&self.folder).expect("a folder for etcd");
        let log = File::options().create(true).append(true).open(self.folder.join("log"));
        let child = Command::new("etcd")
            .args(["--name", &self.name, "--data-dir"])
            .arg(self.folder.join("data"))
            .args(["--listen-client-urls", &self.endpoint, "--advertise-client-urls", &self.endpoint])
            .args(["--listen-peer-urls", &self.peer, "--initial-advertise-peer-urls", &self.peer])
            .args(["--initial-cluster", &self.cluster])
            .args(&self.words)
            .stdout(Stdio::null())
            .stderr(log.expect("a log for etcd"))
            .spawn()
            .unwrap_or_else(|error| {
                panic!("etcd cannot be started ({error}); install it, on Debian with: apt-get install etcd-server")
            });
        self.child = Some(child);
    }

    fn signal(&self, signal: &str) {
        let child = self.child.as_ref().expect("it runs");
        let sent = Command::new("kill").args([signal, &child.id().to_string()]).status();
        assert!(sent.is_ok_and(|status| status.success()), "{signal} cannot be sent");
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Drop for Member {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Has an etcd ask for users: its operator, and one who may use what is below `/tharsis/`.
async fn add_users(client: &mut Client, user: &EtcdUser) {
    let added = async {
        client.user_add("root", OPERATORS_PASSWORD, None).await?;
        client.role_add("root").await?;
        client.user_grant_role("root", "root").await?;
        client.role_add("tharsis").await?;
        let below = Permission::read_write("/tharsis/").with_prefix();
        client.role_grant_permission("tharsis", below).await?;
        client.user_add(&*user.name, &*user.password, None).await?;
        client.user_grant_role(&*user.name, "tharsis").await?;
        client.auth_enable().await
    };
    added.await.expect("users of etcd");
}

/// The members that are out of space.
async fn alarms(client: &mut Client) -> Vec<u64> {
    let found = client.alarm(AlarmAction::Get, AlarmType::Nospace, None).await.expect("the alarms");
    found.alarms().iter().map(etcd_client::AlarmMember::member_id).collect()
}

/// Waits until a read is answered that needs a quorum.
async fn await_answer(endpoints: &[String], options: Option<&ConnectOptions>) {
    let end = Instant::now() + START_DEADLINE;
    loop {
        let asked = tokio::time::timeout(Duration::from_secs(2), async {
            Client::connect(endpoints, options.cloned()).await?.get("any", None).await
        });
        match asked.await {
            Ok(Ok(_)) => return,
            other => assert!(Instant::now() < end, "etcd does not answer at {endpoints:?}: {other:?}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}
