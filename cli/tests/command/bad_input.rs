//! Wrong input, and obstacles to a start: the real program names the flag and the value and ends with the
//! right status, and starts, binds or writes nothing.

use crate::home::{self, Home, SMALL, await_that};
use std::io::{Read, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// Runs the command, which must end with status 2, print all parts, and leave nothing behind.
fn assert_wrong(words: &[&str], parts: &[&str]) {
    let home = Home::new();
    home.run(words).assert_refused(2, parts);
    assert!(home.processes().is_empty());
    assert_eq!(std::fs::read_dir(home.path("")).unwrap().count(), 0, "nothing is written");
}

#[test]
fn a_start_without_a_role_is_refused() {
    assert_wrong(&["start"], &["--head", "--address", "Usage"]);
}

#[test]
fn a_start_with_two_roles_is_refused() {
    assert_wrong(&["start", "--head", "--address", "127.0.0.1:1"], &["--head", "--address", "Usage"]);
}

#[test]
fn an_address_without_a_port_is_refused() {
    assert_wrong(&["start", "--address", "somewhere"], &["--address", "somewhere", "HOST:PORT", "--help"]);
    assert_wrong(&["start", "--address", "somewhere:0"], &["--address", "somewhere:0", "1 to 65535"]);
}

#[test]
fn gpus_that_are_not_there_are_refused_unless_fake_ones_are_allowed() {
    assert_wrong(
        &["start", "--head", "--num-gpus", "4000"],
        &["--num-gpus 4000", "this machine has", "--allow-fake"],
    );
    let home = Home::new();
    let words = ["start", "--head", "--num-gpus", "4000", "--allow-fake-resources"];
    let ended = home.run([&words, &SMALL[..]].concat());
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(home.run(["status"]).out.contains("4000 GPU"));
}

#[test]
fn a_size_with_an_unknown_suffix_lists_the_known_ones() {
    assert_wrong(&["start", "--head", "--store", "4x"], &["--store", "4x", "KiB", "MiB", "GB", "--help"]);
}

#[test]
fn a_store_below_the_smallest_names_the_smallest() {
    assert_wrong(&["start", "--head", "--store", "1KiB"], &["--store", "1KiB", "4194304"]);
}

#[test]
fn a_store_larger_than_the_memory_is_refused_with_what_there_is() {
    let home = Home::new();
    let ended = home.run(["start", "--head", "--store", "900TiB"]);
    ended.assert_refused(6, &["ResourceExhausted", "--store", "900TiB", "asked for 989560464998400 bytes"]);
    // The message names the memory and its free part.
    let memory = std::fs::read_to_string("/proc/meminfo").unwrap();
    assert!(memory.starts_with("MemTotal:") && ended.err.contains("bytes, of which"), "{}", ended.err);
    let free =
        ended.err.split("of which ").nth(1).unwrap().split(' ').next().unwrap().parse::<u64>().unwrap();
    assert!(1 << 20 < free && free < 1 << 50, "{free}");
    assert!(home.processes().is_empty());
    assert_eq!(std::fs::read_dir(home.path("")).unwrap().count(), 0, "nothing is written");
}

#[test]
fn memory_that_cannot_be_had_is_refused_with_both_numbers() {
    assert_wrong(&["start", "--head", "--memory-limit", "4x"], &["--memory-limit", "4x", "KiB", "--help"]);
    assert_wrong(&["start", "--head", "--memory-limit", "1KiB"], &["--memory-limit", "1KiB", "4194304"]);
    let parts = ["--memory-limit", "900TiB", "989560464998400", "more than the memory"];
    assert_wrong(&["start", "--head", "--memory-limit", "900TiB"], &parts);
    let words = ["start", "--head", "--store", "64MiB", "--memory-limit", "32MiB"];
    assert_wrong(&words, &["--store is 64MiB", "--memory-limit is 32MiB"]);
}

#[test]
fn spill_directories_that_cannot_be_are_refused() {
    let refused = |dirs: &str, parts: &[&str]| {
        assert_wrong(&["start", "--head", "--spill-dirs", dirs], &[parts, &["--spill-dirs"]].concat());
    };
    refused("/tmp:4x", &["KiB", "MiB", "GB"]);
    refused("/tmp:1KiB", &["smallest quota", "67108864"]);
    refused("/tmp:900PiB", &["suffixes"]);
    refused("/tmp:900000TiB", &["989560464998400000", "file system"]);
    refused("/proc/version", &["NotADirectory"]);
    refused("", &["PATH:QUOTA"]);
    refused("/tmp:64MiB,/tmp/:65MiB", &["named twice", "67108864", "68157440"]);
}

#[test]
fn a_spill_directory_that_is_not_there_is_not_made() {
    assert_wrong(
        &["start", "--head", "--spill-dirs", "/does/not/exist"],
        &["--spill-dirs", "NotFound", "/does/not/exist"],
    );
    assert!(!std::path::Path::new("/does").exists());
    let home = Home::new();
    let missing = home.text("missing");
    for words in
        [&["start", "--head", "--spill-dirs", &missing], &["node", "--head", "--spill-dirs", &missing]]
    {
        home.run(words).assert_refused(2, &["--spill-dirs", "NotFound", &missing]);
    }
    assert_eq!(std::fs::read_dir(home.path("")).unwrap().count(), 0, "nothing is made");
}

#[test]
fn a_spill_directory_that_is_named_twice_is_taken_once_with_a_warning() {
    let home = Home::new();
    std::fs::create_dir(home.path("spill")).unwrap();
    let dirs = format!("{0}:64MiB,{0}/", home.text("spill"));
    let ended = home.run([&["start", "--head", "--spill-dirs", &dirs], &SMALL[..]].concat());
    assert_eq!(ended.status, 0, "{}", ended.err);
    for part in ["warning: --spill-dirs", &home.text("spill"), "named twice, it is taken once"] {
        assert!(ended.err.contains(part), "{part}: {}", ended.err);
    }
    let folders = std::fs::read_dir(home.path("spill")).unwrap().flatten();
    let names = folders.map(|entry| entry.file_name().into_string().unwrap());
    assert_eq!(names.filter(|name| name.starts_with("tharsis-spill-")).count(), 1);
}

#[test]
fn a_spill_directory_that_others_may_write_to_is_refused() {
    let home = Home::new();
    let open = home.path("open");
    std::fs::create_dir(&open).unwrap();
    std::fs::set_permissions(&open, std::fs::Permissions::from_mode(0o777)).unwrap();
    let ended = home.run(["start", "--head", "--spill-dirs", &home.text("open")]);
    ended.assert_refused(2, &["InsecureDirectory", &home.text("open"), "--spill-dirs"]);
    assert!(home.processes().is_empty());
    assert_eq!(std::fs::read_dir(open).unwrap().count(), 0, "nothing is written");
}

#[test]
fn water_marks_in_the_wrong_order_are_refused() {
    let words = ["start", "--head", "--spill-high-water", "50%", "--spill-low-water", "60"];
    assert_wrong(&words, &["--spill-low-water is 60", "--spill-high-water is 50%"]);
    assert_wrong(&["start", "--head", "--spill-high-water", "101"], &["--spill-high-water", "1 to 100"]);
}

#[test]
fn a_reserved_resource_is_refused() {
    assert_wrong(&["start", "--head", "--resources", "{\"CPU\":2}"], &["--resources", "CPU", "reserved"]);
}

#[test]
fn bad_amounts_are_refused() {
    for bad in ["-1", "nan", "inf", "many", "1e300"] {
        assert_wrong(&["start", "--head", "--num-cpus", bad], &["--num-cpus", bad]);
    }
    for bad in ["1e308", "1000001"] {
        let ended = Home::new().run(["start", "--head", "--num-cpus", bad]);
        ended.assert_refused(2, &["--num-cpus", bad, "from 0 to 1000000"]);
        assert!(ended.err.len() < 300, "{}", ended.err);
    }
}

#[test]
fn a_label_without_a_value_is_refused() {
    assert_wrong(&["start", "--head", "--labels", "k"], &["--labels", "'k'", "key=value", "--help"]);
}

#[test]
fn an_unknown_log_level_lists_the_known_ones() {
    let parts = ["--log-level", "loud", "error, warn, info, debug", "--help"];
    assert_wrong(&["start", "--head", "--log-level", "loud"], &parts);
}

#[test]
fn an_unknown_flag_names_the_nearest_known() {
    assert_wrong(&["start", "--head", "--num-cpu", "1"], &["--num-cpu", "--num-cpus", "Usage"]);
    assert_wrong(&["statsu"], &["statsu", "status"]);
}

#[test]
fn settings_of_a_control_store_are_refused_for_a_member() {
    let words = ["start", "--address", "127.0.0.1:1", "--state", "f"];
    assert_wrong(&words, &["--state", "--address"]);
}

#[test]
fn a_very_long_argument_is_shown_in_part() {
    // The kernel accepts at most 128 KiB in one argument.
    let long = "x".repeat(120 << 10);
    for words in [
        vec!["start", "--head", "--store", &long],
        vec!["start", "--head", "--resources", &long],
        vec!["start", "--address", &long],
        vec![&long],
    ] {
        let ended = Home::new().run(words);
        ended.assert_refused(2, &[&"x".repeat(190)]);
        assert!(ended.err.len() < 1000, "{} bytes", ended.err.len());
    }
}

#[test]
fn bytes_that_are_no_text_are_escaped_and_the_flag_is_named() {
    use std::ffi::OsStr;
    use std::os::unix::ffi::OsStrExt;
    let bytes = OsStr::from_bytes(b"a\xffb\x1b[31m");
    let words = |words: &'static [&'static str]| -> Vec<&OsStr> {
        words.iter().map(OsStr::new).chain([bytes]).collect()
    };
    for (head, flag) in [
        (&["start", "--head", "--store"][..], "--store"),
        (&["start", "--head", "--labels"], "--labels"),
        (&["start", "--address"], "--address"),
        (&["bench", "spill", "--disk-limit"], "--disk-limit"),
    ] {
        let ended = Home::new().run(words(head));
        ended.assert_refused(2, &[flag, "is not UTF-8", "a\\xFFb\\u{1b}[31m"]);
        assert!(!ended.err.contains(['\u{fffd}', '\u{1b}']), "{:?}", ended.err);
    }
    for head in [&[][..], &["bench"], &["start", "--head", "--port", "0", "--unknown"]] {
        let ended = Home::new().run(words(head));
        ended.assert_refused(2, &[]);
        assert!(!ended.err.contains(['\u{fffd}', '\u{1b}']), "{head:?}: {:?}", ended.err);
    }
    let home = Home::new();
    let ended =
        home::Ended::of(home.command(["start", "--head"]).env("THARSIS_STORE", bytes).output().unwrap());
    ended.assert_refused(2, &["THARSIS_STORE", "is not UTF-8", "a\\xFFb"]);
}

#[test]
fn stopping_where_nothing_runs_is_no_error() {
    let home = Home::new();
    let ended = home.run(["stop"]);
    assert_eq!((ended.status, ended.err.as_str()), (0, ""));
    assert!(ended.out.contains("Nothing to stop"), "{}", ended.out);
    // The socket that a killed node leaves behind.
    let socket = home.path("node.sock");
    drop(std::os::unix::net::UnixListener::bind(&socket).unwrap());
    let ended = home.run(["stop", "--socket", &home.text("node.sock")]);
    assert!(ended.status == 0 && ended.out.contains("Nothing to stop"), "{}{}", ended.out, ended.err);
    // A path that is no socket of a node is left alone.
    std::fs::write(home.path("file"), "").unwrap();
    let ended = home.run(["stop", "--socket", &home.text("file")]);
    assert!(ended.status == 0 || ended.status == 4, "{}", ended.err);
    assert!(home.path("file").exists());
}

#[test]
fn a_bench_that_is_not_there_or_has_no_such_size_is_refused() {
    assert_wrong(&["bench", "NOSUCH"], &["NOSUCH", "there are: all, task-latency"]);
    assert_wrong(&["bench", "pi", "--size", "0"], &["--size: 0"]);
    assert_wrong(&["bench", "idle", "--size", "9"], &["--size", "idle has none"]);
    assert_wrong(&["bench", "pi", "--size", "-1"], &["-1"]);
}

#[test]
fn no_cpus_are_accepted_and_shown() {
    let home = Home::new();
    let ended = home.run([&["start", "--head", "--num-cpus", "0"], &SMALL[..]].concat());
    assert_eq!(ended.status, 0, "{}", ended.err);
    assert!(home.status(None)["nodes"][0]["total"].as_str().is_some_and(|total| !total.contains("CPU")));
    assert!(home.run(["status"]).out.contains("no CPUs"));
}

#[test]
fn a_taken_port_is_named_with_the_process_that_has_it() {
    let home = Home::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    let pid = std::process::id().to_string();
    for words in [vec!["start", "--head", "--port", &port], vec!["gcs", "--port", &port]] {
        home.run(&words).assert_refused(5, &["AddressInUse", &port, &format!("process {pid}")]);
    }
    assert!(home.processes().is_empty(), "no part of a cluster is left");
    assert_eq!(std::fs::read_dir(home.path("")).unwrap().count(), 0);
    drop(taken);
    // A process that another test is about to start may hold a copy of the socket for another moment.
    await_that("the port is free again", || {
        let ended = home.run([&["start", "--head", "--port", &port], &SMALL[..]].concat());
        assert!([0, 5].contains(&ended.status), "{}", ended.err);
        ended.status == 0
    });
    assert_eq!(home.status(None)["address"], format!("127.0.0.1:{port}"));
}

#[test]
fn a_second_start_with_the_same_socket_names_the_first_and_leaves_it_alone() {
    let home = Home::new();
    let start = || home.run([&["start", "--head"], &SMALL[..]].concat());
    assert_eq!(start().status, 0);
    let first = home.status(None);
    let pid = first["pid"].to_string();
    start().assert_refused(5, &["AlreadyRunning", &format!("process {pid}"), "node.sock"]);
    assert_eq!(home.status(None), first);
    assert_eq!(home.processes().len(), 1);
}

#[test]
fn an_address_where_nobody_listens_is_named_with_the_cause() {
    let home = Home::new();
    let [port] = tharsis_trials::free_ports();
    let address = format!("127.0.0.1:{port}");
    home.run(["start", "--address", &address]).assert_refused(4, &[&address, "refused", "--address"]);
    assert!(home.processes().is_empty());
}

/// Joins an address, which must end within five seconds.
fn join(address: &str) -> home::Ended {
    let home = Home::new();
    let begin = Instant::now();
    let ended = home.run(["start", "--address", address]);
    assert!(begin.elapsed() < Duration::from_secs(5), "{:?}", begin.elapsed());
    assert!(home.processes().is_empty());
    ended
}

#[test]
fn a_web_server_is_not_taken_for_a_head() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for mut stream in server.incoming().flatten() {
            let mut request = [0; 1024];
            let _read = stream.read(&mut request);
            let _written = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
        }
    });
    join(&address).assert_refused(4, &["ProtocolMismatch", &address]);
}

#[test]
fn a_server_that_says_nothing_is_not_waited_for() {
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = server.local_addr().unwrap().to_string();
    join(&address).assert_refused(4, &["ProtocolMismatch", &address]);
    drop(server);
}

#[test]
fn a_member_is_not_taken_for_a_head() {
    let home = Home::new();
    let head = home.run([&["start", "--head"], &SMALL[..]].concat());
    assert_eq!(home.paste(&format!("{} --store 16MiB", head.after("Join with another node:"))).status, 0);
    let address = home.status(None)["address"].as_str().unwrap().to_owned();
    let socket = home.text("member/node.sock");
    let words = ["start", "--address", &address, "--socket", &socket];
    assert_eq!(home.run([&words, &SMALL[..]].concat()).status, 0);
    let member = home.status(Some(&socket))["address"].as_str().unwrap().to_owned();
    let third = home.text("third/node.sock");
    let words = ["start", "--address", &member, "--socket", &third];
    home.run([&words, &SMALL[..]].concat()).assert_refused(4, &["ProtocolMismatch", &member]);
}

#[test]
fn a_reader_that_goes_away_ends_the_command_quietly() {
    let home = Home::new();
    for words in [&["config", "show"][..], &["--help"], &["version"]] {
        let mut child = home.command(words).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        drop(child.stdout.take());
        let ended = home::end_of(child);
        assert_eq!((ended.status, ended.err.as_str()), (0, ""), "{words:?}");
    }
}

#[test]
fn a_full_disk_behind_the_output_is_an_error_and_no_panic() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    // It ends what it started when it goes.
    let home = Home::new();
    let child = home.command(["version"]).stdout(full).stderr(Stdio::piped()).spawn().unwrap();
    home::end_of(child).assert_refused(1, &["No space left"]);
}

#[test]
fn an_etcd_that_cannot_be_used_ends_the_start_with_the_cause() {
    let home = Home::new();
    let [port] = tharsis_trials::free_ports();
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let dead = format!("http://127.0.0.1:{port}");
    let silent = format!("http://{}", mute.local_addr().unwrap());
    for (endpoint, cause) in [(&dead, "refused"), (&silent, "no answer")] {
        let begin = Instant::now();
        let ended = home.run([&["start", "--head", "--etcd", endpoint], &SMALL[..]].concat());
        ended.assert_refused(4, &[endpoint, cause]);
        home.run(["gcs", "--etcd", endpoint]).assert_refused(4, &[endpoint, cause]);
        assert!(begin.elapsed() < Duration::from_secs(20), "ten seconds each");
        assert!(home.processes().is_empty(), "it does not go on in memory");
    }
}

#[test]
fn an_etcd_with_another_scheme_is_refused() {
    let cases = [
        ("ftp://127.0.0.1:1", "http://"),
        ("127.0.0.1:2379", "http://"),
        (",", "URLs such as"),
        ("https://127.0.0.1:1", "--etcd-ca"),
    ];
    for (url, part) in cases {
        assert_wrong(&["start", "--head", "--etcd", url], &["--etcd", url, part]);
    }
}
