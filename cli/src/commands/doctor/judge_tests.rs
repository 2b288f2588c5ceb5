//! Tests of the judgement: a machine on which all is well, and one change of it for each row.

use super::*;
use crate::commands::doctor::row::State;
use std::path::PathBuf;

const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

/// A machine that lacks nothing.
fn good() -> Facts {
    Facts {
        memory: Memory {
            limit_bytes: 8 * GIB,
            free_bytes: 6 * GIB,
            machine_bytes: Some(8 * GIB),
            store_bytes: 2 * GIB,
            problem: None,
        },
        cpus: Cpus { usable: 4, online: Some(4), offered: 4.0 },
        vectors: Some(Vectors::Avx2),
        huge_pages: HugePages { is_shared: true, is_private: true },
        shared_memory: SharedMemory {
            space: Ok((64 * MIB, 60 * MIB)),
            is_memory: true,
            client_count: 5,
            needed_bytes: 10 * MIB,
            segment: Ok(()),
        },
        open_files: OpenFiles { current: Some(1024), maximum: Some(65_536) },
        spill: Spill::Folders(vec![folder()]),
        host: HostName {
            name: "a".to_owned(),
            is_told: false,
            addresses: Ok(vec![IpAddr::from([10, 0, 0, 1])]),
        },
        socket: Socket { path: PathBuf::from("/run/node.sock"), holder: None, problem: None },
        port: Ok(SocketAddr::from(([127, 0, 0, 1], 0))),
        etcd: Some(Etcd { servers: "http://e:1".to_owned(), problem: None }),
        heads: Some(Heads { addresses: "h:1".to_owned(), answer: Answer::Admitted }),
    }
}

fn folder() -> SpillFacts {
    SpillFacts {
        path: PathBuf::from("/spill"),
        quota_bytes: 80 * GIB,
        free_bytes: 100 * GIB,
        is_memory: false,
        written: Ok((32 * MIB, 0.1)),
    }
}

/// The only row of a name, after a change of a good machine.
fn judged(change: impl FnOnce(&mut Facts), name: &str) -> Row {
    let mut facts = good();
    change(&mut facts);
    let mut rows: Vec<Row> = rows(&facts).into_iter().filter(|row| row.name == name).collect();
    assert_eq!(rows.len(), 1, "{name}: {rows:?}");
    rows.remove(0)
}

#[test]
fn a_good_machine_has_a_row_for_each_subject_and_nothing_to_do() {
    let rows = rows(&good());
    let names: Vec<&str> = rows.iter().map(|row| row.name).collect();
    let wanted = [
        "memory",
        "cpus",
        "vectors",
        "huge pages",
        "shared memory",
        "open files",
        "spill",
        "host name",
        "socket",
        "port",
        "etcd",
        "head",
    ];
    assert_eq!(names, wanted);
    for row in rows {
        assert_eq!((row.state, row.advice.as_ref()), (State::Ok, None), "{row:?}");
        assert!(!row.found.is_empty(), "{row:?}");
    }
    let least = Facts { vectors: None, etcd: None, heads: None, ..good() };
    assert_eq!(super::rows(&least).len(), wanted.len() - 3, "what was not measured has no row");
}

/// A change of a good machine, the row that it is for, and what that says.
type Case = (fn(&mut Facts), &'static str, State, &'static str);

fn assert_judged(cases: &[Case]) {
    for (change, name, state, part) in cases {
        let row = judged(*change, name);
        assert_eq!(row.state, *state, "{part}: {row:?}");
        assert_eq!(row.advice.is_some(), *state != State::Ok, "{row:?}");
        let text = format!("{} {}", row.found, row.advice.clone().unwrap_or_default());
        assert!(text.contains(part), "{part} missing in: {text}");
    }
}

#[test]
fn limits_of_the_machine_are_judged() {
    use State::{Failed, Ok as Fine, Warning};
    assert_judged(&[
        (|facts| facts.memory.problem = Some("too large".to_owned()), "memory", Failed, "too large"),
        (|facts| facts.memory.free_bytes = 2 * GIB - 1, "memory", Warning, "smaller --store"),
        (|facts| facts.memory.free_bytes = 2 * GIB, "memory", Fine, "2.00 GiB free"),
        (|facts| facts.memory.machine_bytes = Some(9 * GIB), "memory", Fine, "of the machine's 9.00 GiB"),
        (|facts| facts.memory.machine_bytes = None, "memory", Fine, "8.00 GiB; 6.00 GiB free"),
        (|facts| facts.cpus.usable = 3, "cpus", Warning, "3 of the machine's 4 usable; --num-cpus is 4"),
        (|facts| facts.cpus.offered = 0.5, "cpus", Fine, "--num-cpus is 0.5"),
        (|facts| facts.cpus.online = None, "cpus", Fine, "4 usable"),
        (|facts| facts.vectors = Some(Vectors::Avx512), "vectors", Fine, "AVX-512"),
        (|facts| facts.vectors = Some(Vectors::X86), "vectors", Warning, "AVX2, FMA, BMI2 and F16C"),
        (|facts| facts.vectors = Some(Vectors::Other), "vectors", Fine, "every CPU of this kind"),
        (|facts| facts.huge_pages.is_shared = false, "huge pages", Warning, "shmem_enabled"),
        (|facts| facts.huge_pages.is_private = false, "huge pages", Warning, "madvise > /sys"),
        (
            |facts| facts.huge_pages = HugePages { is_shared: false, is_private: false },
            "huge pages",
            Warning,
            "neither",
        ),
        (
            |facts| facts.shared_memory.segment = Err("no space".to_owned()),
            "shared memory",
            Failed,
            "no space",
        ),
        (|facts| facts.shared_memory.space = Err("gone".to_owned()), "shared memory", Warning, "gone"),
        (|facts| facts.shared_memory.is_memory = false, "shared memory", Warning, "tmpfs"),
        (
            |facts| facts.shared_memory.needed_bytes = 60 * MIB,
            "shared memory",
            Fine,
            "5 clients take 60.0 MiB",
        ),
        (|facts| facts.shared_memory.needed_bytes = 60 * MIB + 1, "shared memory", Warning, "remount"),
        (|facts| facts.open_files.maximum = Some(1024), "open files", Warning, "LimitNOFILE"),
        (|facts| facts.open_files.maximum = Some(1025), "open files", Fine, "raises it to 1025"),
        (|facts| facts.open_files.maximum = None, "open files", Fine, "no limit"),
    ]);
}

/// Changes the folder for spilled objects.
fn with_folder(facts: &mut Facts, change: fn(&mut SpillFacts)) {
    let mut changed = folder();
    change(&mut changed);
    facts.spill = Spill::Folders(vec![changed]);
}

#[test]
fn folders_for_spilled_objects_are_judged() {
    use State::{Failed, Ok as Fine, Warning};
    assert_judged(&[
        (|facts| facts.spill = Spill::Refused("insecure".to_owned()), "spill", Failed, "insecure"),
        (|facts| facts.spill = Spill::Nowhere { is_told: false }, "spill", Warning, "--spill-dirs"),
        (|facts| facts.spill = Spill::Nowhere { is_told: true }, "spill", Fine, "nothing is spilled"),
        (
            |facts| with_folder(facts, |folder| folder.written = Err("read-only".to_owned())),
            "spill",
            Failed,
            "/spill: read-only",
        ),
        (|facts| with_folder(facts, |folder| folder.is_memory = true), "spill", Warning, "in memory"),
        (|facts| with_folder(facts, |folder| folder.free_bytes = 79 * GIB), "spill", Warning, "make room"),
        (|facts| with_folder(facts, |folder| folder.quota_bytes = MIB), "spill", Warning, "make room"),
        (|facts| with_folder(facts, |folder| folder.written = Ok((MIB, 1.0))), "spill", Warning, "faster"),
        (
            |facts| with_folder(facts, |folder| folder.written = Ok((50_000_000, 1.0))),
            "spill",
            Fine,
            "50 MB/s",
        ),
        (|facts| with_folder(facts, |folder| folder.written = Ok((MIB, 0.0))), "spill", Fine, "/spill"),
    ]);
    let mut facts = good();
    facts.spill = Spill::Folders(vec![folder(), folder()]);
    assert_eq!(rows(&facts).iter().filter(|row| row.name == "spill").count(), 2);
}

#[test]
fn names_and_servers_are_judged() {
    use State::{Failed, Ok as Fine, Warning};
    assert_judged(&[
        (|facts| facts.host.addresses = Ok(Vec::new()), "host name", Warning, "a has no address"),
        (|facts| facts.host.addresses = Err("slow".to_owned()), "host name", Warning, "slow"),
        (
            |facts| {
                facts.host.addresses = Err("unknown".to_owned());
                facts.host.is_told = true;
            },
            "host name",
            Failed,
            "unknown",
        ),
        // As Debian's installer writes it.
        (
            |facts| facts.host.addresses = Ok(vec![IpAddr::from([127, 0, 1, 1])]),
            "host name",
            Fine,
            "a is 127.0.1.1, here alone",
        ),
        (
            |facts| facts.host.addresses = Ok(vec![IpAddr::from([10, 0, 0, 1]); 5]),
            "host name",
            Fine,
            "10.0.0.1, 10.0.0.1, ..",
        ),
        (|facts| facts.socket.holder = Some(12), "socket", Warning, "process 12"),
        (|facts| facts.socket.problem = Some("open".to_owned()), "socket", Failed, "/run/node.sock: open"),
        (|facts| facts.port = Err("taken".to_owned()), "port", Failed, "taken"),
        (|facts| facts.port = Ok(SocketAddr::from(([127, 0, 0, 1], 7))), "port", Fine, "127.0.0.1:7 is free"),
        (
            |facts| facts.etcd = Some(Etcd { servers: "e".to_owned(), problem: Some("refused".to_owned()) }),
            "etcd",
            Failed,
            "refused",
        ),
        (
            |facts| {
                let answer = Answer::Listens("no identity".to_owned());
                facts.heads = Some(Heads { addresses: "h:1".to_owned(), answer });
            },
            "head",
            Warning,
            "h:1 listens; no identity",
        ),
        (
            |facts| {
                let answer = Answer::Problem("silent".to_owned());
                facts.heads = Some(Heads { addresses: "h:1".to_owned(), answer });
            },
            "head",
            Failed,
            "silent",
        ),
    ]);
}

#[test]
fn sizes_have_three_digits() {
    let sizes = [0, 1023, 1024, 10_229, 10_240, 1024 * 1023, MIB - 1, 1536 * MIB, u64::MAX];
    let wanted =
        ["0 B", "1023 B", "1.00 KiB", "9.99 KiB", "10.0 KiB", "1023 KiB", "1.00 MiB", "1.50 GiB", "16.0 EiB"];
    assert_eq!(sizes.map(size), wanted);
}
