//! Memory that nodes of this user offer on one machine: all that is there, and no part of it twice.
//!
//! A node that starts leaves out what others offer. Those that are members are in the control store. Those
//! that are about to be members have claims: files in a folder of the user, each locked while its start is
//! under way. Claims are read and made under one lock, so of several nodes that start at once each one knows
//! those before it: a claim is to all memory at first, and to what is left of it when the members were asked.
//! The claim of a start that takes too long does not count any more, and nobody waits for the lock without
//! end: then two nodes may offer the same memory, as they would without claims.

use crate::reach::{self, ANSWER_WAIT};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, File, TryLockError, read_dir, remove_file};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, FileExt, FileTypeExt, MetadataExt};
use std::path::{Component, Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};
use tempfile::NamedTempFile;
use tharsis::process::NODE_START_WAIT;
use tharsis::{machine, observe};
use tharsis_gcs::{ClientOptions, ControlClient};
use tharsis_protos::connection::Credentials;
use tharsis_protos::control::NodeInfo;
use tharsis_protos::handshake::Question;
use tharsis_types::FailureKind;

/// The time for which a claim counts.
const CLAIM_TIME_MAX: Duration = NODE_START_WAIT;
/// The time for which others that make claims are waited for, and between two looks.
const LOCK_WAIT: Duration = Duration::from_secs(5);
const LOCK_PAUSE: Duration = Duration::from_millis(5);
/// The memory for the stack of a thread that asks a member.
const STACK_BYTES: usize = 256 << 10;
/// The host of a head in its own claim: its members may name it in some way, and name its port.
const SOME_HOST: &str = "*";
/// The time between two looks whether a node is up.
const UP_PAUSE: Duration = Duration::from_millis(100);

/// The claim of a start that is under way. It is given up when this is dropped.
#[derive(Debug)]
pub struct Claim {
    path: PathBuf,
    /// It stays the same file for as long as it is locked: whoever has opened it sees the lock.
    locked: File,
}

/// A node and the memory that it offers.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Offer {
    socket: PathBuf,
    memory: u64,
}

impl Drop for Claim {
    fn drop(&mut self) {
        // One that counts no more may be gone.
        let _gone = remove_file(&self.path);
    }
}

/// The part of `wanted` bytes of memory that a node at `socket` can offer beside others of this user, in the
/// same system or container, and the claim to it. Nothing is known of members if the control store does not
/// say.
pub fn claim(address: &str, own: &Credentials, socket: &Path, wanted: u64) -> (u64, Option<Claim>) {
    let folder = machine::default_secret_file().with_file_name("claims");
    claim_in(&folder, address, socket, wanted, || members_here(address, own))
}

/// The claim of a head, which is about to be a member of its own cluster, and listens at a port.
pub fn claim_of_head(port: u16, socket: &Path, memory: u64) -> Option<Claim> {
    let folder = machine::default_secret_file().with_file_name("claims");
    read_and_claim(&folder, &format!("{SOME_HOST}:{port}"), socket, memory).1
}

fn claim_in(
    folder: &Path,
    heads: &str,
    socket: &Path,
    wanted: u64,
    members: impl FnOnce() -> Vec<Offer>,
) -> (u64, Option<Claim>) {
    // Claims are read before the members are asked: a start that is over in between is among both.
    let (claimed, claim) = read_and_claim(folder, heads, socket, wanted);
    let offered = wanted.saturating_sub(taken(&members(), &claimed, socket));
    if let Some(claim) = &claim {
        let _alone = lock(folder);
        // If that fails, the claim is to more than is offered: others offer less.
        let _kept = claim.amend(offered);
    }
    (offered, claim)
}

/// The claims of others, and one to `wanted` bytes.
fn read_and_claim(folder: &Path, heads: &str, socket: &Path, wanted: u64) -> (Vec<Offer>, Option<Claim>) {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(folder);
    if made.is_err() || !is_of_user(folder) {
        return (Vec::new(), None);
    }
    let _alone = lock(folder);
    (claims(folder, heads), Claim::make(folder, heads, socket, wanted).ok())
}

/// The memory that others take; those that are members and have a claim take it once.
fn taken(members: &[Offer], claimed: &[Offer], own: &Path) -> u64 {
    let starting = claimed.iter().filter(|claim| members.iter().all(|member| member.socket != claim.socket));
    let others = members.iter().chain(starting).filter(|other| other.socket != own);
    others.fold(0, |sum, other| sum.saturating_add(other.memory))
}

fn is_of_user(folder: &Path) -> bool {
    let user = rustix::process::geteuid().as_raw();
    folder.symlink_metadata().is_ok_and(|found| found.is_dir() && found.uid() == user)
}

/// Keeps other starts from making claims; none if one of them does not end.
fn lock(folder: &Path) -> Option<File> {
    let (file, until) = (File::open(folder).ok()?, Instant::now() + LOCK_WAIT);
    loop {
        match file.try_lock() {
            Ok(()) => return Some(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(LOCK_PAUSE),
            Err(_) => return None,
        }
    }
}

/// The claims of starts that are under way, of nodes that join at one of these heads. Others are removed.
fn claims(folder: &Path, heads: &str) -> Vec<Offer> {
    let files = read_dir(folder).into_iter().flatten().flatten().map(|file| file.path());
    let is_claim = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "claim");
    let (claims, others): (Vec<PathBuf>, Vec<PathBuf>) = files.partition(is_claim);
    // Of starts that were killed before their claims had names.
    others.iter().filter(|path| age_of(path).is_some_and(|age| CLAIM_TIME_MAX < age)).for_each(|path| {
        let _gone = remove_file(path);
    });
    claims.iter().filter_map(|path| read_claim(path, heads)).collect()
}

/// The time since a file was written.
fn age_of(path: &Path) -> Option<Duration> {
    Some(path.symlink_metadata().ok()?.modified().ok()?.elapsed().unwrap_or_default())
}

fn read_claim(path: &Path, heads: &str) -> Option<Offer> {
    let mut file = File::open(path).ok()?;
    let age = age_of(path)?;
    let is_held = matches!(file.try_lock(), Err(TryLockError::WouldBlock));
    if !is_held || CLAIM_TIME_MAX < age {
        // Its start is over, or was killed.
        let _gone = remove_file(path);
        return None;
    }
    let mut text = String::new();
    file.read_to_string(&mut text).ok()?;
    let mut lines = text.splitn(3, '\n');
    let (memory, their, socket) = (lines.next()?.parse().ok()?, lines.next()?, lines.next()?);
    let is_of_cluster =
        their.split(',').any(|their| heads.split(',').any(|own| is_same(their.trim(), own.trim())));
    is_of_cluster.then(|| Offer { socket: PathBuf::from(socket), memory })
}

/// Whether a head of a claim is the one that a node names.
fn is_same(claimed: &str, named: &str) -> bool {
    // With the colon, so that the whole port is compared.
    claimed.strip_prefix(SOME_HOST).map_or(claimed == named, |port| named.ends_with(port))
}

impl Claim {
    /// Gives the claim up as soon as a node answers at its socket: it is among the members of its own cluster
    /// then, and takes no memory of other clusters.
    pub fn until_up(self, socket: PathBuf) {
        let until = Instant::now() + CLAIM_TIME_MAX;
        let thread = std::thread::Builder::new().name("claim".into());
        // Without a thread it is given up at once.
        let _waiting = thread.spawn(move || {
            while Instant::now() < until && observe::ask(&socket, Question::Status).is_err() {
                std::thread::sleep(UP_PAUSE);
            }
            drop(self);
        });
    }

    fn make(folder: &Path, heads: &str, socket: &Path, memory: u64) -> io::Result<Claim> {
        let file = Claim::write(folder, heads, socket, memory)?;
        let path = file.path().with_extension("claim");
        // It has its name when it is whole and locked.
        let locked = file.persist(&path).map_err(|refused| refused.error)?;
        Ok(Claim { path, locked })
    }

    /// The same claim to other memory.
    fn amend(&self, memory: u64) -> io::Result<()> {
        self.locked.write_all_at(digits_of(memory).as_bytes(), 0)
    }

    /// A file with a claim, locked and without its name.
    fn write(folder: &Path, heads: &str, socket: &Path, memory: u64) -> io::Result<NamedTempFile> {
        let mut file = NamedTempFile::new_in(folder)?;
        write!(file, "{}\n{heads}\n{}", digits_of(memory), socket.display())?;
        file.as_file().lock()?;
        Ok(file)
    }
}

/// An amount of memory in as many digits as the largest one has, so that another one can be written over it.
fn digits_of(memory: u64) -> String {
    format!("{memory:020}")
}

/// Members that run beside this process, and the memory that they offer.
fn members_here(address: &str, own: &Credentials) -> Vec<Offer> {
    let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_all().build() else {
        return Vec::new();
    };
    let listed = runtime.block_on(async {
        let options = ClientOptions { call_deadline: ANSWER_WAIT, patience: Duration::ZERO };
        let (store, _) = ControlClient::connect(address, own, options).await.ok()?;
        store.list_nodes().await.ok()
    });
    let machine = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let here = listed.into_iter().flat_map(|listed| listed.nodes);
    let here = here.filter(|node| node.host == machine.trim());
    shown(nearest_first(here, &machine::default_secret_file()).into_iter(), is_named_like_this)
}

/// Nodes whose sockets lie in the folder of this file, and the others behind them. A process has so many
/// threads: paths to disks that do not answer, which members name, keep no node in that folder from being
/// asked.
fn nearest_first(nodes: impl Iterator<Item = NodeInfo>, beside: &Path) -> Vec<NodeInfo> {
    let folder = beside.parent().unwrap_or(beside);
    let is_near = |node: &NodeInfo| {
        let socket = Path::new(&node.local_socket);
        socket.starts_with(folder) && !socket.components().any(|part| part == Component::ParentDir)
    };
    let (mut near, far): (Vec<NodeInfo>, Vec<NodeInfo>) = nodes.partition(is_near);
    near.extend(far);
    near
}

/// The offers of nodes that show themselves. A member says itself at which machine and socket it is: only a
/// socket of this user counts, at which that very node answers, or a process that `is_node` says nothing: a
/// node that hangs has its memory. (Another member could name the socket of that process as its own; then
/// less is offered here as long as it hangs.) Each is asked on a thread of its own: a path may lead to a disk
/// or a process that does not answer.
fn shown(nodes: impl Iterator<Item = NodeInfo>, is_node: fn(u32) -> bool) -> Vec<Offer> {
    let (answers, heard) = channel();
    for (number, node) in nodes.enumerate() {
        let answers = answers.clone();
        // A node that is not asked is not known.
        let thread = std::thread::Builder::new().name("offers".into()).stack_size(STACK_BYTES);
        let _asked = thread.spawn(move || ask(&node, is_node, |offer| drop(answers.send((number, offer)))));
    }
    drop(answers);
    let until = Instant::now() + ANSWER_WAIT;
    let next = || heard.recv_timeout(until.saturating_duration_since(Instant::now())).ok();
    let mut offers = BTreeMap::new();
    for (number, offer) in std::iter::from_fn(next) {
        match offer {
            Some(offer) => drop(offers.insert(number, offer)),
            None => drop(offers.remove(&number)),
        }
    }
    // A socket is that of one node.
    let mut at_sockets = BTreeMap::<PathBuf, u64>::new();
    for Offer { socket, memory } in offers.into_values() {
        let most = at_sockets.entry(socket).or_default();
        *most = memory.max(*most);
    }
    at_sockets.into_iter().map(|(socket, memory)| Offer { socket, memory }).collect()
}

/// Asks a node, and tells what it offers, as far as is known. Containers of one machine have memory of their
/// own, and sockets that the others do not reach.
fn ask(node: &NodeInfo, is_node: fn(u32) -> bool, tell: impl Fn(Option<Offer>)) {
    let socket = PathBuf::from(&node.local_socket);
    let user = rustix::process::geteuid().as_raw();
    let found = socket.symlink_metadata();
    if !found.is_ok_and(|found| found.file_type().is_socket() && found.uid() == user) {
        return;
    }
    let offer = || Offer {
        socket: PathBuf::from(&node.local_socket),
        memory: node.resources.memory.min(machine::memory_bytes()),
    };
    if reach::listener(&socket).is_some_and(is_node) {
        tell(Some(offer()));
    }
    match observe::ask(&socket, Question::Status) {
        Ok(report) if report.node == node.id.0 => tell(Some(offer())),
        Ok(_) => tell(None),
        Err(error) if error.kind() == FailureKind::Disconnected => tell(None),
        // A node of another release.
        Err(_) => {}
    }
}

/// Whether a process has the name of this one, as nodes that the command starts have.
fn is_named_like_this(process: u32) -> bool {
    let name = |process: &str| std::fs::read_to_string(format!("/proc/{process}/comm")).ok();
    name(&process.to_string()).is_some_and(|its| name("self") == Some(its))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;
    use std::sync::Barrier;
    use tharsis_types::{NodeId, Resources};

    const ALL: u64 = 1 << 30;

    fn nobody() -> Vec<Offer> {
        Vec::new()
    }

    fn claim_at(root: &tempfile::TempDir, socket: &str, members: Vec<Offer>) -> (u64, Option<Claim>) {
        claim_in(&root.path().join("claims"), "head:1,head:2", Path::new(socket), ALL, || members)
    }

    #[test]
    fn nodes_that_start_at_once_offer_the_memory_once() {
        let root = tempfile::tempdir().unwrap();
        let start = Barrier::new(8);
        let claimed: Vec<_> = std::thread::scope(|scope| {
            let claim = |at: usize| {
                start.wait();
                claim_at(&root, &format!("/run/{at}"), nobody())
            };
            let threads: Vec<_> = (0..8).map(|at| scope.spawn(move || claim(at))).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(claimed.iter().all(|(_, claim)| claim.is_some()));
        assert_eq!(claimed.iter().map(|(memory, _)| memory).sum::<u64>(), ALL);
        // One of them is a member now, and its start is not over yet: it counts once.
        let first = claimed.iter().position(|(memory, _)| *memory == ALL).unwrap();
        let member = Offer { socket: format!("/run/{first}").into(), memory: ALL / 4 };
        assert_eq!(claim_at(&root, "/run/8", vec![member.clone()]).0, ALL - ALL / 4);
        assert_eq!(claim_at(&root, "/run/8", nobody()).0, 0);
        drop(claimed);
        assert_eq!(claim_at(&root, "/run/8", nobody()).0, ALL, "they did not start");
        assert_eq!(claim_at(&root, "/run/8", vec![member]).0, ALL - ALL / 4);
    }

    #[test]
    fn claims_of_its_own_socket_of_other_clusters_and_of_the_past_do_not_count() {
        let root = tempfile::tempdir().unwrap();
        let (memory, first) = claim_at(&root, "/run/1", nobody());
        let first = first.unwrap();
        assert_eq!((memory, claim_at(&root, "/run/1", nobody()).0), (ALL, ALL));
        let folder = root.path().join("claims");
        let beside = |heads| claim_in(&folder, heads, Path::new("/run/2"), ALL, nobody).0;
        assert_eq!((beside("head:2"), beside("other:1")), (0, ALL));
        let age = |path: &Path, age| {
            let file = File::options().write(true).open(path).unwrap();
            file.set_modified(std::time::SystemTime::now() - age).unwrap();
        };
        let over = CLAIM_TIME_MAX + Duration::from_secs(60);
        age(&first.path, CLAIM_TIME_MAX / 2);
        assert_eq!(beside("head:1"), 0);
        age(&first.path, over);
        assert_eq!(beside("head:1"), ALL, "it takes too long");
        // A start that was killed leaves its file, and no lock.
        std::fs::write(folder.join("killed.claim"), format!("{ALL}\nhead:1\n/run/3")).unwrap();
        assert_eq!(beside("head:1"), ALL);
        assert!(!folder.join("killed.claim").exists());
        let unnamed = folder.join(".tmp1");
        std::fs::write(&unnamed, "").unwrap();
        assert!(beside("head:1") == ALL && unnamed.exists(), "its start may be under way");
        age(&unnamed, over);
        assert!(beside("head:1") == ALL && !unnamed.exists());
    }

    /// Another start has opened the claim and not looked at it when it is amended.
    #[test]
    fn a_claim_that_is_amended_is_locked_all_the_time() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("claims");
        for memory in [0, 1, u64::MAX] {
            let (_, claim) = read_and_claim(&folder, "head:1", Path::new("/run/1"), ALL);
            let claim = claim.unwrap();
            let mut opened = File::open(&claim.path).unwrap();
            claim.amend(memory).unwrap();
            assert!(matches!(opened.try_lock(), Err(TryLockError::WouldBlock)));
            let mut text = String::new();
            opened.read_to_string(&mut text).unwrap();
            assert_eq!(text, format!("{}\nhead:1\n/run/1", digits_of(memory)));
            let read = Offer { socket: "/run/1".into(), memory };
            assert_eq!(read_claim(&claim.path, "head:1"), Some(read));
        }
        assert_eq!(claims(&folder, "head:1"), [], "each is given up");
    }

    #[test]
    fn the_claim_of_a_head_counts_for_those_that_name_its_port() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("claims");
        let (_, head) = read_and_claim(&folder, &format!("{SOME_HOST}:76"), Path::new("/run/head"), ALL / 2);
        let beside = |heads| claim_in(&folder, heads, Path::new("/run/2"), ALL, nobody).0;
        // Its members may name it in some way.
        for named in ["head:76", "127.0.0.1:76", "other:1, head:76"] {
            assert_eq!(beside(named), ALL / 2, "{named}");
        }
        for other in ["head:1", "head:7", "head:176", "other:760"] {
            assert_eq!(beside(other), ALL, "{other}");
        }
        drop(head);
        assert_eq!(beside("head:76"), ALL);
    }

    /// A member names a socket, here one of a program that is no node, and takes all memory for itself.
    #[test]
    fn a_member_that_does_not_answer_at_its_socket_takes_no_memory() {
        let root = tempfile::tempdir().unwrap();
        let (silent, ended) = (root.path().join("silent"), root.path().join("ended"));
        let _listener = UnixListener::bind(&silent).unwrap();
        drop(UnixListener::bind(&ended).unwrap());
        let file = root.path().join("file");
        std::fs::write(&file, "").unwrap();
        let node = |socket: &Path| NodeInfo {
            id: NodeId(1),
            listen: "127.0.0.1:1".to_owned(),
            host: String::new(),
            local_socket: socket.display().to_string(),
            resources: Resources { memory: u64::MAX, ..Resources::default() },
            labels: BTreeMap::new(),
        };
        let begun = Instant::now();
        let sockets = [silent.as_path(), &ended, &file, Path::new("")];
        let none = [Path::new("/no/such/socket"); 100];
        let taken = shown(sockets.into_iter().chain(none).map(node), |_| false);
        assert!(taken.is_empty(), "{taken:?}");
        assert!(begun.elapsed() < 2 * ANSWER_WAIT, "nobody is waited for");
        // A node that hangs is a process that says nothing. Named twice, it takes its memory once.
        let hangs = |process| process == std::process::id();
        let all = machine::memory_bytes();
        let twice = [silent.as_path(), &silent, &ended, &file];
        let taken = shown(twice.into_iter().map(node), hangs);
        assert_eq!(taken, [Offer { socket: silent.clone(), memory: all }]);
        // However many others there are that show nothing.
        let outside = root.path().join("../slow/node.sock");
        let behind = none.into_iter().chain([outside.as_path(), &silent]);
        let taken = shown(behind.clone().map(node), hangs);
        assert_eq!(taken, [Offer { socket: silent.clone(), memory: all }]);
        let first = nearest_first(behind.map(node), &root.path().join("cluster.secret"));
        assert_eq!((Path::new(&first[0].local_socket), first.len()), (silent.as_path(), 102));
        assert!(is_named_like_this(std::process::id()) && !is_named_like_this(1));
    }

    #[test]
    fn a_folder_of_somebody_else_is_not_used() {
        let root = tempfile::tempdir().unwrap();
        std::os::unix::fs::symlink("/", root.path().join("claims")).unwrap();
        let (memory, claim) = claim_at(&root, "/run/1", vec![Offer { socket: "/run/2".into(), memory: 1 }]);
        assert_eq!((memory, claim.is_none()), (ALL - 1, true));
    }
}
