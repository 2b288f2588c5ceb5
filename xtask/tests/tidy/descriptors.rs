//! The answers that `tools/protoc` keeps are for the version of the etcd client that is locked: with another
//! one each cold build would make the compiler again, and nobody would see why.

use crate::dependencies::cargo;
use crate::root;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The files that the build script of the etcd client hands to a protoc.
const ASKED: [&str; 5] = [
    "proto/etcd/api/authpb/auth.proto",
    "proto/etcd/api/etcdserverpb/rpc.proto",
    "proto/etcd/api/mvccpb/kv.proto",
    "proto/etcd/server/etcdserver/api/v3election/v3electionpb/v3election.proto",
    "proto/etcd/server/etcdserver/api/v3lock/v3lockpb/v3lock.proto",
];

/// The folder of the etcd client's sources.
fn client() -> PathBuf {
    let all: Value = serde_json::from_str(&cargo(&["metadata", "--format-version", "1"])).unwrap();
    let mut packages = all["packages"].as_array().expect("packages").iter();
    let client = packages.find(|package| package["name"] == "etcd-client").expect("the etcd client");
    Path::new(client["manifest_path"].as_str().expect("a path")).parent().unwrap().to_owned()
}

/// Options of the question.
const OPTIONS: [&str; 2] = ["--include_imports", "--include_source_info"];

/// Asks for the descriptors of files; the stand-in is built by `cargo`.
fn ask(options: &[&str], files: &[&str], answer: &Path, cargo: &str) -> bool {
    let mut command = Command::new(root().join("tools/protoc"));
    command.args(options).arg("-o").arg(answer);
    command.args(["-I", "proto"]).args(files).current_dir(client());
    command.env("PATH", "/usr/bin:/bin").env("CARGO", cargo).env_remove("KEEP_ANSWER");
    command.output().unwrap().status.success()
}

#[test]
fn the_question_of_the_etcd_client_is_answered_without_a_compiler() {
    let folder = tempfile::tempdir().unwrap();
    let answer = folder.path().join("answer");
    assert!(ask(&OPTIONS, &ASKED, &answer, "false"), "see KEEP_ANSWER in tools/protoc");
    let answered = std::fs::read(&answer).unwrap();
    for name in ASKED.map(|file| file.trim_start_matches("proto/")) {
        assert!(
            answered.windows(name.len()).any(|part| part == name.as_bytes()),
            "{name} is not in the answer"
        );
    }
    // The path of the answer is not part of the question.
    let other = folder.path().join("other");
    assert!(ask(&OPTIONS, &ASKED, &other, "false") && std::fs::read(other).unwrap() == answered);
    // Another question has no such answer, but on a machine with a protoc of its own.
    let is_there = ["/usr/bin/protoc", "/bin/protoc"].iter().any(|path| Path::new(path).exists());
    assert_eq!(ask(&OPTIONS, &ASKED[1..], &answer, "false"), is_there);
    // Nor has one about the same files.
    for options in [&OPTIONS[..1], &OPTIONS[1..], &["-I", "."]] {
        assert_eq!(ask(options, &ASKED, &answer, "false"), is_there, "{options:?}");
    }
}
