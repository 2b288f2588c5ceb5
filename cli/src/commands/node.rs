//! `tharsis node`, and what it has in common with `tharsis start`: from settings to what a node is told, and
//! what must be so before it starts.

use super::gcs;
use crate::args::Part;
use crate::log::LogChoice;
use crate::offers::{self, Claim};
use crate::refusal::Refusal;
use crate::settings::{Error, Flags, Key, Settings, parse, spill};
use crate::{output, reach};
use anyhow::{Context, Result};
use std::ffi::OsString;
use std::net::IpAddr;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::time::Instant;
use tharsis::join::TOKEN_VARIABLE;
use tharsis::process::{ClusterRole, ClusterSpec, NodeOptions, NodeSpec, Security, run_node};
use tharsis::{FailureKind, SpillChoice, SpillFolder, join, machine, spill_dirs};
use tharsis_identity::Token;
use tharsis_types::Resources;
use tharsis_types::limits::{QUEUED_TASKS_MAX, SMALL_CLUSTER_MAX};

/// Room for the tables of a cluster, twice the most that they have: a file grows by copies of its pages.
const TABLES_ROOM_BYTES: u64 = 1 << 30;

/// Runs a node in the foreground until it is told to stop.
///
/// # Errors
/// Why it cannot start, or why it ended.
pub fn run(part: &Part, flags: &Flags) -> Result<()> {
    if part.token.is_some() {
        return run_without_token(part, flags);
    }
    let Prepared { spec, settings, claim, .. } = prepare(part, flags)?;
    LogChoice::of(&settings).begin()?;
    if let Some(claim) = claim {
        claim.until_up(spec.socket.clone());
    }
    Ok(run_node(spec, crate::PROGRAM)?)
}

/// Joins, and becomes this program again without the token in its environment and its arguments: the node has
/// no use for it, its workers would have the one, and other users of the machine could read the others.
fn run_without_token(part: &Part, flags: &Flags) -> Result<()> {
    join_once(part, &Settings::read(flags)?)?;
    let mut program = Program::new(std::env::current_exe()?);
    program.args(without_token(std::env::args_os().skip(1))).env_remove(TOKEN_VARIABLE);
    Err(anyhow::Error::new(program.exec()).context("the program does not start again"))
}

/// Arguments but for the token among them.
fn without_token(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut is_value = false;
    let is_left = |argument: &OsString| {
        let is_token = is_value || argument.as_encoded_bytes().starts_with(b"--token=");
        is_value = !is_value && argument == "--token";
        !is_token && !is_value
    };
    arguments.filter(is_left).collect()
}

/// A node that can start.
pub struct Prepared {
    /// Its specification.
    pub spec: NodeSpec,
    /// The settings.
    pub settings: Settings,
    /// Its claim to the memory that it offers, until it is a member.
    pub claim: Option<Claim>,
    /// When its start began: the checks and the join have one bound.
    pub begun: Instant,
}

/// Makes the specification of the node, after checks that it can start: the socket is free, the port is free,
/// the head is a control store of this release.
///
/// # Errors
/// The obstacle that was found.
pub fn prepare(part: &Part, flags: &Flags) -> Result<Prepared> {
    check_flags(part.entry.address.as_deref(), flags)?;
    let settings = Settings::read(flags)?;
    join_once(part, &settings)?;
    let begun = Instant::now();
    if let Some(work) = work_of_head(part, &settings) {
        output::warn(work.words());
    }
    let (mut spec, mut claim) = (spec(part, &settings)?, None);
    reach::check_none_runs(&spec.socket)?;
    if let Some(cluster) = &spec.cluster {
        reach::check_free(cluster.listen)?;
    }
    if let Some(address) = &part.entry.address {
        let security = member_security(address, &settings)?;
        let own = security.credentials(&join::heads(address)).map_err(tharsis::Error::from)?;
        reach::check_head(address, &own)?;
        if settings.is_default(Key::MemoryLimit) {
            // Of the memory that is there, and nodes do not offer it twice.
            let memory = &mut spec.options.resources.memory;
            (*memory, claim) = offers::claim(address, &own, &spec.socket, *memory);
        }
    } else if let Some(cluster) = spec.cluster.as_ref().filter(|_| part.entry.head) {
        // A member that joins it in the same moment leaves that out.
        let port = cluster.listen.port();
        claim = offers::claim_of_head(port, &spec.socket, spec.options.resources.memory);
    }
    Ok(Prepared { spec, settings, claim, begun })
}

/// Refuses flags of heads and control stores where a node joins at an address.
///
/// # Errors
/// `NotForMembers`.
pub fn check_flags(address: Option<&str>, flags: &Flags) -> Result<(), Refusal> {
    let mut for_heads = Key::ALL.into_iter().filter(|key| key.is_of_head() && address.is_some());
    for_heads
        .find(|key| flags.has(*key))
        .map_or(Ok(()), |key| Err(Refusal::NotForMembers { flag: key.flag() }))
}

/// Joins the cluster with a token, if there is one. The node's process never sees it. A token in the
/// environment or in a file may be older than what it was for, as with a service that starts again: a machine
/// that has joined uses it only if it joined with another one.
fn join_once(part: &Part, settings: &Settings) -> Result<()> {
    let read = |file: &PathBuf| {
        let text = std::fs::read_to_string(file).with_context(|| format!("--token-file {}", file.display()));
        text.map(|text| text.trim().to_owned())
    };
    let token = match (&part.token, &part.token_file) {
        (Some(token), _) => token.clone(),
        (None, Some(file)) => read(file)?,
        (None, None) => return Ok(()),
    };
    let address = part.entry.address.as_ref().ok_or(Refusal::TokenAlone)?;
    let token: Token = token.parse()?;
    let folder = settings.identity_dir();
    let is_typed = part.token_file.is_none() && std::env::var(TOKEN_VARIABLE).is_err();
    let heads = join::heads(address);
    if is_typed || !join::is_known(&heads, &folder)? {
        return reach::join(&folder, address, &token);
    }
    if join::is_new_token(&heads, &folder, &token)?
        && let Err(error) = reach::join(&folder, address, &token)
    {
        // The identity that is there may be good, and the token over.
        output::warn(&format!("the token is not used, this machine has joined before: {error:#}"));
    }
    Ok(())
}

fn spec(part: &Part, settings: &Settings) -> Result<NodeSpec> {
    let memory = machine::memory_bytes();
    let store_bytes = settings.memory(Key::Store)?;
    machine::check_store_bytes(store_bytes, memory).map_err(|bad| match bad.kind() {
        FailureKind::ResourceExhausted => {
            Refusal::ResourceExhausted { cause: wrong(settings, Key::Store, &bad).to_string() }.into()
        }
        _ => anyhow::Error::from(wrong(settings, Key::Store, &bad)),
    })?;
    let memory_limit_bytes = settings.memory(Key::MemoryLimit)?;
    machine::check_memory_limit(memory_limit_bytes, store_bytes, memory)
        .map_err(|bad| wrong(settings, Key::MemoryLimit, &bad))?;
    let options = NodeOptions {
        resources: if work_of_head(part, settings) == Some(Work::None) {
            Resources::default()
        } else {
            resources(settings, memory_limit_bytes - store_bytes)?
        },
        labels: settings.get(Key::Labels, parse::labels)?.unwrap_or_default(),
        store_bytes,
        spill: spill_choice(settings)?,
        memory_limit_bytes,
        memory_soft_limit_bytes: settings.memory(Key::MemorySoftLimit)?,
        min_free_bytes: settings.memory(Key::MinFreeMemory)?,
        queued_tasks_max: QUEUED_TASKS_MAX,
        small_cluster_max: SMALL_CLUSTER_MAX,
        lineage_bytes: settings.get(Key::Lineage, parse::size)?.unwrap_or_default() as usize,
        worker_start_timeout: settings
            .get(Key::WorkerStartTimeout, parse::positive_duration)?
            .unwrap_or_default(),
    };
    let cluster = cluster(part, settings)?;
    let drain_within = settings.get(Key::DrainTimeout, parse::positive_duration)?.unwrap_or_default();
    Ok(NodeSpec { socket: settings.socket(), options, ends_with_stdin: false, cluster, drain_within })
}

/// The work that a head with an authority takes: programs run as its user, who may read the authority's key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Work {
    /// None: nobody said that it should.
    None,
    /// It was told what it offers.
    AsTold,
}

impl Work {
    fn words(self) -> &'static str {
        match self {
            Work::None => {
                "this head runs no programs: it holds the key of the cluster's authority, which they could read. Join \
                 machines to it that do, or say --num-cpus N"
            }
            Work::AsTold => {
                "this head holds the key of the cluster's authority and runs programs as the same user: whoever may \
                 submit work can read the key and admit machines of every role"
            }
        }
    }
}

/// The work of a head that admits machines by certificates; none for other nodes.
fn work_of_head(part: &Part, settings: &Settings) -> Option<Work> {
    let offers = [Key::NumCpus, Key::NumGpus, Key::Resources];
    let is_told = offers.into_iter().any(|key| !settings.is_default(key));
    let has_authority = part.entry.head && settings.value(Key::Host).is_some();
    has_authority.then_some(if is_told { Work::AsTold } else { Work::None })
}

/// The error of a value that does not suit the machine.
fn wrong(settings: &Settings, key: Key, bad: &tharsis::Error) -> Error {
    settings.bad(key, settings.text(key), bad.failure().message.clone())
}

/// The folders to which the node spills, and the thresholds.
///
/// # Errors
/// [`Error::BadValue`] for a folder or a quota that cannot be used.
pub fn spill_choice(settings: &Settings) -> Result<SpillChoice, Error> {
    let dirs = settings.get(Key::SpillDirs, spill::dirs)?.unwrap_or_default();
    let (dirs, again) = spill::once(dirs)
        .map_err(|problem| settings.bad(Key::SpillDirs, settings.text(Key::SpillDirs), problem))?;
    for path in again {
        output::warn(&format!(
            "{}: {} is named twice, it is taken once",
            Key::SpillDirs.flag(),
            path.display()
        ));
    }
    let folders = if settings.is_default(Key::SpillDirs) {
        Ok(spill_dirs::default_choice().folders)
    } else {
        dirs.iter().map(|dir| spill_dirs::folder(&dir.path, dir.quota_bytes)).collect()
    };
    let percent = |key| Ok::<_, Error>(settings.get(key, parse::percent)?.unwrap_or_default());
    let folders = folders.map_err(|bad| wrong(settings, Key::SpillDirs, &bad))?;
    Ok(SpillChoice {
        folders: match settings.value(Key::State) {
            Some(state) => {
                beside_tables(folders, Path::new(&state.text), !settings.is_default(Key::SpillDirs))
            }
            None => folders,
        },
        high_water_percent: percent(Key::SpillHighWater)?,
        low_water_percent: percent(Key::SpillLowWater)?,
        ..SpillChoice::default()
    })
}

/// Leaves room for the tables of the cluster where values are spilled to the same file system: a head that
/// cannot write them admits no node, begins no job, and declares nobody dead.
fn beside_tables(folders: Vec<SpillFolder>, state: &Path, is_said: bool) -> Vec<SpillFolder> {
    let left = spill_dirs::leave_room(folders.clone(), state, TABLES_ROOM_BYTES);
    for folder in folders.iter().filter(|folder| !left.contains(folder)) {
        let cut = left.iter().find(|other| other.path == folder.path).map_or(0, |cut| cut.quota_bytes);
        // A smaller quota that nobody named is none that is missed.
        if !is_said && 0 < cut {
            continue;
        }
        output::warn(&format!(
            "{}: {} GiB of this file system are left for the tables ({}): at most {cut} bytes are spilled here",
            folder.path.display(),
            TABLES_ROOM_BYTES >> 30,
            Key::State.flag()
        ));
    }
    left
}

/// The resources that the node offers, with so many bytes of memory.
///
/// # Errors
/// `FakeGpus`, or the error of a value.
pub fn resources(settings: &Settings, memory: u64) -> Result<Resources> {
    let mut resources = Resources::cpus(settings.get(Key::NumCpus, parse::cpus)?.unwrap_or_default())?;
    resources.memory = memory;
    let gpus = settings.get(Key::NumGpus, parse::amount)?.unwrap_or_default();
    let devices = gpu_devices();
    let is_fake_fine = settings.get(Key::AllowFakeResources, parse::switch)?.unwrap_or_default();
    if gpus > devices.len() as f64 && !is_fake_fine {
        let found = if devices.is_empty() { "no GPUs".to_owned() } else { devices.join(", ") };
        return Err(Refusal::FakeGpus { asked: gpus, found }.into());
    }
    resources.gpu = tharsis_types::resources::units("GPU", gpus)?;
    for (name, amount) in settings.get(Key::Resources, parse::resources)?.unwrap_or_default() {
        resources.set_custom(&name, amount)?;
    }
    Ok(resources)
}

/// A node's part in a cluster: it begins one, joins one, or is alone.
fn cluster(part: &Part, settings: &Settings) -> Result<Option<ClusterSpec>> {
    let (role, security, place) = match &part.entry.address {
        Some(head) => {
            let (security, heads) = (member_security(head, settings)?, join::heads(head));
            let seen = match &security {
                Security::Secret(_) => None,
                Security::Identity { .. } => seen_address(settings, head, &heads)?,
            };
            (ClusterRole::Member { heads }, security, settings.place(seen)?)
        }
        None if part.entry.head => {
            let lease_ttl_ms = u64::try_from(settings.lease_ttl()?.as_millis()).unwrap_or(u64::MAX);
            let role = ClusterRole::Head { store: gcs::backend(settings)?, lease_ttl_ms };
            (role, settings.security_of_head()?, settings.place(None)?)
        }
        None => return Ok(None),
    };
    // By a secret, members are reached at loopback addresses, which need no name.
    let advertised = place.advertised.filter(|_| matches!(security, Security::Identity { .. }));
    let (listen, network_threads) = (place.listen, settings.network_threads()?);
    Ok(Some(ClusterSpec { listen, advertised, network_threads, security, role }))
}

/// The address of this machine from which it reaches the heads; none if its own is set.
fn seen_address(settings: &Settings, head: &str, heads: &[String]) -> Result<Option<IpAddr>> {
    if settings.value(Key::Host).is_some() {
        return Ok(None);
    }
    let seen = join::address_towards(heads);
    Ok(Some(
        seen.map_err(|cause| Refusal::NothingAnswers { address: head.to_owned(), cause: cause.to_string() })?,
    ))
}

/// The security of a member of the cluster at these addresses.
///
/// # Errors
/// `NoIdentity`: this machine never joined there.
pub fn member_security(addresses: &str, settings: &Settings) -> Result<Security> {
    let heads = join::heads(addresses);
    Ok(join::security_towards(&heads, &settings.identity_dir(), settings.secret_file())?)
}

/// GPUs whose device files are there.
fn gpu_devices() -> Vec<String> {
    let files = std::fs::read_dir("/dev").into_iter().flatten().flatten();
    let is_gpu = |name: &String| name.strip_prefix("nvidia").is_some_and(|n| n.parse::<u32>().is_ok());
    files.filter_map(|file| file.file_name().into_string().ok()).filter(is_gpu).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_taken_out_of_the_arguments() {
        let left = |words: &[&str]| without_token(words.iter().map(OsString::from));
        let others = ["node", "--address", "a:1", "--token-file", "f"];
        assert_eq!(left(&others), others);
        for with in
            [&["node", "--token", "th1.a", "--port", "1"][..], &["node", "--token=th1.a", "--port", "1"]]
        {
            assert_eq!(left(with), ["node", "--port", "1"]);
        }
    }
}
