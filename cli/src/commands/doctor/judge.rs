//! Judgement of the facts about a machine: a row for each subject. It reads nothing.

use super::facts::{
    Answer, Cpus, Etcd, Facts, Heads, HostName, HugePages, Memory, OpenFiles, SharedMemory, Socket, Spill,
    SpillFacts, Vectors,
};
use super::row::Row;
use std::net::{IpAddr, SocketAddr};
use tharsis::spill_dirs::QUOTA_BYTES_MIN;

/// The limit that shells give. A node with some hundred workers or members needs more.
const OPEN_FILES_USUAL: u64 = 1024;
/// Bytes per second below which a disk makes work wait that spills.
const WRITE_SPEED_MIN: f64 = 50e6;
/// The most addresses of a name that are shown.
const ADDRESSES_SHOWN_MAX: usize = 4;

/// The rows, always in the same order.
pub fn rows(facts: &Facts) -> Vec<Row> {
    let mut rows = vec![memory(&facts.memory), cpus(facts.cpus)];
    rows.extend(facts.vectors.map(vectors));
    rows.extend([huge_pages(facts.huge_pages), shared_memory(&facts.shared_memory)]);
    rows.push(open_files(facts.open_files));
    rows.extend(spill(&facts.spill));
    rows.extend([host(&facts.host), socket(&facts.socket), port(&facts.port)]);
    rows.extend(facts.etcd.as_ref().map(etcd));
    rows.extend(facts.heads.as_ref().map(heads));
    rows
}

fn memory(facts: &Memory) -> Row {
    const NAME: &str = "memory";
    if let Some(problem) = &facts.problem {
        return Row::failed(NAME, problem.clone(), "say a smaller --store or --memory-limit");
    }
    let outer = facts.machine_bytes.filter(|all| facts.limit_bytes < *all);
    let outer = outer.map_or_else(String::new, |all| format!(" of the machine's {}, by a limit", size(all)));
    let (all, free, store) = (size(facts.limit_bytes), size(facts.free_bytes), size(facts.store_bytes));
    let found = format!("{all}{outer}; {free} free; the store has {store}");
    if facts.free_bytes < facts.store_bytes {
        let advice = "end other programs, or say a smaller --store: less is free than a full store takes";
        return Row::warning(NAME, found, advice);
    }
    Row::ok(NAME, found)
}

fn cpus(facts: Cpus) -> Row {
    const NAME: &str = "cpus";
    let online = facts.online.map_or_else(String::new, |online| format!(" of the machine's {online}"));
    let found = format!("{}{online} usable; --num-cpus is {}", facts.usable, facts.offered);
    if (facts.usable as f64) < facts.offered {
        let advice = "say a smaller --num-cpus, or lift the limit: tasks that compute wait for each other";
        return Row::warning(NAME, found, advice);
    }
    Row::ok(NAME, found)
}

fn vectors(facts: Vectors) -> Row {
    const NAME: &str = "vectors";
    let found = |which: &str| format!("loops over tensors take {which}");
    match facts {
        Vectors::Avx512 => Row::ok(NAME, found("AVX-512")),
        Vectors::Avx2 => Row::ok(NAME, found("AVX2")),
        Vectors::X86 => Row::warning(
            NAME,
            found("the instructions of every x86-64"),
            "have the hypervisor pass on AVX2, FMA, BMI2 and F16C, if the CPU has them",
        ),
        Vectors::Other => Row::ok(NAME, found("the instructions of every CPU of this kind")),
    }
}

fn huge_pages(facts: HugePages) -> Row {
    const NAME: &str = "huge pages";
    let shared = "as root: echo advise > /sys/kernel/mm/transparent_hugepage/shmem_enabled";
    let private = "as root: echo madvise > /sys/kernel/mm/transparent_hugepage/enabled";
    match (facts.is_shared, facts.is_private) {
        (true, true) => Row::ok(NAME, "for the store and for chunks".to_owned()),
        (false, true) => Row::warning(NAME, "none for the store, which is slower so".to_owned(), shared),
        (true, false) => Row::warning(NAME, "none for chunks, which are slower so".to_owned(), private),
        (false, false) => {
            let found = "none, neither for the store nor for chunks".to_owned();
            Row::warning(NAME, found, &format!("{shared}; and: echo madvise > .../enabled"))
        }
    }
}

fn shared_memory(facts: &SharedMemory) -> Row {
    const NAME: &str = "shared memory";
    if let Err(problem) = &facts.segment {
        let advice = "mount a tmpfs at /dev/shm that this user may write to; in containers --shm-size 64m";
        return Row::failed(NAME, problem.clone(), advice);
    }
    let (total, free) = match &facts.space {
        Ok(space) => *space,
        Err(problem) => return Row::warning(NAME, format!("/dev/shm: {problem}"), "look how it is mounted"),
    };
    let (needed, clients) = (size(facts.needed_bytes), facts.client_count);
    let found = format!("{} of /dev/shm's {} free; {clients} clients take {needed}", size(free), size(total));
    if !facts.is_memory {
        let advice = "mount a tmpfs at /dev/shm: every message between processes would be written to a disk";
        return Row::warning(NAME, found, advice);
    }
    if free < facts.needed_bytes {
        let advice = "make it larger: mount -o remount,size=.. /dev/shm; in containers --shm-size";
        return Row::warning(NAME, found, advice);
    }
    Row::ok(NAME, found)
}

fn open_files(facts: OpenFiles) -> Row {
    const NAME: &str = "open files";
    let limit = |limit: Option<u64>| limit.map_or_else(|| "no limit".to_owned(), |limit| limit.to_string());
    let found = format!("{}; a node raises it to {}", limit(facts.current), limit(facts.maximum));
    if facts.maximum.is_some_and(|maximum| maximum <= OPEN_FILES_USUAL) {
        let advice =
            "raise the hard limit, for hundreds of workers or members: LimitNOFILE= of systemd, limits.conf";
        return Row::warning(NAME, found, advice);
    }
    Row::ok(NAME, found)
}

fn spill(facts: &Spill) -> Vec<Row> {
    const NAME: &str = "spill";
    match facts {
        Spill::Folders(folders) => folders.iter().map(|folder| spill_folder(NAME, folder)).collect(),
        Spill::Nowhere { is_told: true } => vec![Row::ok(NAME, "nothing is spilled, as was said".to_owned())],
        Spill::Nowhere { is_told: false } => {
            let found = "nothing is spilled: the user's own folder is on no disk with room".to_owned();
            vec![Row::warning(NAME, found, "name a folder on a disk with --spill-dirs")]
        }
        Spill::Refused(problem) => {
            vec![Row::failed(NAME, problem.clone(), "name folders of this user with --spill-dirs")]
        }
    }
}

fn spill_folder(name: &'static str, facts: &SpillFacts) -> Row {
    let path = facts.path.display();
    let (bytes, seconds) = match &facts.written {
        Ok(written) => *written,
        Err(problem) => {
            let advice = "let this user write there, make room, or name another folder with --spill-dirs";
            return Row::failed(name, format!("{path}: {problem}"), advice);
        }
    };
    // The clock may show no time for few bytes.
    let speed = bytes as f64 / seconds.max(1e-9);
    let (quota, free) = (size(facts.quota_bytes), size(facts.free_bytes));
    let found = format!("{path}: up to {quota} of {free} free; {:.0} MB/s written", speed / 1e6);
    if facts.is_memory {
        let advice =
            "name a folder on a disk with --spill-dirs: this one is in memory, and spilling frees none";
        return Row::warning(name, found, advice);
    }
    if facts.free_bytes < facts.quota_bytes || facts.quota_bytes < QUOTA_BYTES_MIN {
        return Row::warning(name, found, "make room, or name another folder with --spill-dirs");
    }
    if speed < WRITE_SPEED_MIN {
        return Row::warning(name, found, "name a folder on a faster disk with --spill-dirs");
    }
    Row::ok(name, found)
}

fn host(facts: &HostName) -> Row {
    const NAME: &str = "host name";
    let name = &facts.name;
    let (found, addresses) = match &facts.addresses {
        Ok(addresses) if addresses.is_empty() => (format!("{name} has no address"), None),
        Ok(addresses) => (format!("{name} is {}", listed(addresses)), Some(addresses)),
        Err(problem) => (format!("{name} has no address: {problem}"), None),
    };
    match addresses {
        None if facts.is_told => {
            Row::failed(NAME, found, "enter it in DNS or /etc/hosts, or say an address with --host")
        }
        None => {
            let advice = "for a cluster of several machines, enter it in DNS or say an address with --host";
            Row::warning(NAME, found, advice)
        }
        Some(addresses) if addresses.iter().all(IpAddr::is_loopback) => {
            Row::ok(NAME, format!("{found}, here alone; others need another address of it"))
        }
        Some(_) => Row::ok(NAME, found),
    }
}

fn listed(addresses: &[IpAddr]) -> String {
    let shown: Vec<String> = addresses.iter().take(ADDRESSES_SHOWN_MAX).map(IpAddr::to_string).collect();
    let more = if ADDRESSES_SHOWN_MAX < addresses.len() { ", .." } else { "" };
    format!("{}{more}", shown.join(", "))
}

fn socket(facts: &Socket) -> Row {
    const NAME: &str = "socket";
    let path = facts.path.display();
    match (facts.holder, &facts.problem) {
        (Some(process), _) => Row::warning(
            NAME,
            format!("{path}: process {process} listens there, a node of this user"),
            "stop it with `tharsis stop`, or say another --socket for one more node",
        ),
        (None, Some(problem)) => Row::failed(
            NAME,
            format!("{path}: {problem}"),
            "say another --socket, in a folder that is this user's alone (mode 0700) or is yet to be made",
        ),
        (None, None) => Row::ok(NAME, format!("{path} is free")),
    }
}

fn port(facts: &Result<SocketAddr, String>) -> Row {
    const NAME: &str = "port";
    match facts {
        Ok(listen) if listen.port() == 0 => Row::ok(NAME, format!("a free one at {}", listen.ip())),
        Ok(listen) => Row::ok(NAME, format!("{listen} is free")),
        Err(problem) => Row::failed(NAME, problem.clone(), "correct --port, --bind or --host"),
    }
}

fn etcd(facts: &Etcd) -> Row {
    const NAME: &str = "etcd";
    match &facts.problem {
        None => Row::ok(NAME, format!("{} answers", facts.servers)),
        Some(problem) => {
            Row::failed(NAME, problem.clone(), "check that it runs, --etcd, and its certificates")
        }
    }
}

fn heads(facts: &Heads) -> Row {
    const NAME: &str = "head";
    let addresses = &facts.addresses;
    match &facts.answer {
        Answer::Admitted => Row::ok(NAME, format!("{addresses} admits this machine")),
        Answer::Listens(why) => Row::warning(
            NAME,
            format!("{addresses} listens; {why}"),
            "start the node with --token, from `tharsis token create` on the head, or as the head's user",
        ),
        Answer::Problem(why) => Row::failed(NAME, why.clone(), "check --address, and that the head runs"),
    }
}

/// Bytes as people read them, to three digits.
fn size(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1 << 10 {
        return format!("{bytes} B");
    }
    let (mut value, mut unit) = (bytes as f64 / 1024.0, 0);
    while 1023.5 <= value && unit + 1 < UNITS.len() {
        (value, unit) = (value / 1024.0, unit + 1);
    }
    let digits = if value < 9.995 { 2 } else { usize::from(value < 99.95) };
    format!("{value:.digits$} {}", UNITS[unit])
}

#[cfg(test)]
#[path = "judge_tests.rs"]
mod tests;
