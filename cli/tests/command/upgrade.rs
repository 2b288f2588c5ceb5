//! A cluster goes from the former release to this one, by the steps of `docs/upgrade.md`, and nothing is
//! lost.
//!
//! The former release is the program that [`FORMER`] names. Without it a long run builds one: that of the
//! last tag before this commit, or else of the commit before. A short run has no time for that: it replaces
//! this program by itself, which tries the steps, and not the differences.

use crate::home::{Ended, Home, SMALL, SOON, await_that, end_of, kill, root, without_settings};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tharsis_protos::proof::{HELLO_BYTES, Purpose, Reason, VERSION};

/// Variable with the path of a former program.
const FORMER: &str = "THARSIS_FORMER";

/// A program of some release.
struct Release {
    program: PathBuf,
}

impl Release {
    fn this() -> Release {
        Release { program: env!("CARGO_BIN_EXE_tharsis").into() }
    }

    fn former() -> Release {
        let named = std::env::var_os(FORMER).map(PathBuf::from);
        let built = || tharsis_trials::is_long().then(|| build(&former_commit()));
        named.or_else(built).map_or_else(Release::this, |program| Release { program })
    }

    fn run(&self, home: &Home, words: &[&str]) -> Ended {
        let mut command = Command::new(&self.program);
        without_settings(&mut command).args(words).envs(home.folders()).stdin(Stdio::null());
        Ended::of(command.output().unwrap())
    }

    fn succeeds(&self, home: &Home, words: &[&str]) -> Ended {
        let ended = self.run(home, words);
        assert_eq!(ended.status, 0, "{} {words:?}: {}{}", self.program.display(), ended.out, ended.err);
        ended
    }

    fn shown(&self, home: &Home, words: &[&str]) -> Value {
        serde_json::from_str(&self.succeeds(home, words).out).unwrap()
    }

    fn versions(&self, home: &Home) -> Versions {
        let shown = self.shown(home, &["version", "--json"]);
        let major = |text: &str| text.split('.').next().map(str::to_owned);
        Versions {
            cluster: shown["cluster"].as_u64(),
            control: shown["control"].as_str().and_then(major),
            tables: shown["tables"].as_u64(),
        }
    }

    fn await_nodes(&self, home: &Home, socket: &[&str], count: usize) {
        let words = [&["status", "--json"], socket].concat();
        await_that(&format!("{count} nodes"), || {
            self.shown(home, &words)["nodes"].as_array().unwrap().len() == count
        });
    }

    fn await_state(&self, home: &Home, name: &str, state: &str) {
        let words = ["job", "status", name, "--json"];
        await_that(state, || self.shown(home, &words)["state"] == state);
    }
}

/// The versions that decide which releases may meet. A release that does not print them is older than the
/// rule.
#[derive(Debug, PartialEq)]
struct Versions {
    cluster: Option<u64>,
    control: Option<String>,
    tables: Option<u64>,
}

impl Versions {
    fn may_meet(&self, other: &Versions) -> bool {
        self.cluster.is_some() && (self.cluster, &self.control) == (other.cluster, &other.control)
    }
}

/// A head with a state file and a member, of the former release, with a program that has ended and one that
/// runs on the member until the gate is there.
struct Cluster {
    home: Home,
    former: Release,
    this: Release,
    address: String,
    member: String,
}

impl Cluster {
    fn begin() -> Cluster {
        let (home, former, this) = (Home::new(), Release::former(), Release::this());
        let head = head_words(&home, "0");
        former.succeeds(&home, &words(&head));
        let address = former.shown(&home, &["status", "--json"])["address"].as_str().unwrap().to_owned();
        let member = home.text("b/node.sock");
        former.succeeds(&home, &member_words(&address, &member));
        former.await_nodes(&home, &[], 2);
        former.succeeds(&home, &["job", "submit", "--name", "before", "--", "sh", "-c", "echo kept"]);
        former.await_state(&home, "before", "succeeded");
        let gate = home.text("gate");
        let line = format!("while [ ! -e {gate} ]; do sleep 0.02; done; echo over");
        let submit = ["job", "submit", "--socket", &member, "--name", "during", "--", "sh", "-c", &line];
        former.succeeds(&home, &submit);
        Cluster { home, former, this, address, member }
    }

    fn replace_head(&self) {
        let Cluster { home, former, this, address, .. } = self;
        former.succeeds(home, &["stop"]);
        std::fs::copy(home.path("state"), home.path("copy")).unwrap();
        let head = head_words(home, address.rsplit(':').next().unwrap());
        this.succeeds(home, &words(&head));
        assert_eq!(this.shown(home, &["job", "status", "before", "--json"])["state"], "succeeded");
        assert_eq!(this.succeeds(home, &["job", "logs", "before"]).out, "kept\n");
    }

    /// A member of the former release beside a head of this one.
    fn replace_member_beside_head(&self) {
        let Cluster { home, former, this, member, .. } = self;
        let socket = ["--socket", member];
        this.await_nodes(home, &[], 2);
        former.await_nodes(home, &socket, 2);
        let id = &former.shown(home, &["status", "--json", "--socket", member])["node"];
        // A number in the release before.
        let id = id.as_u64().map_or_else(|| id.as_str().unwrap().to_owned(), |id| format!("{id:016x}"));
        let across = ["job", "submit", "-f", "--name", "across", "--node", &id, "--", "echo", "across"];
        assert_eq!(this.succeeds(home, &across).out, "across\nacross\n");
        assert_eq!(this.shown(home, &["job", "status", "during", "--json"])["state"], "running");
        std::fs::write(home.path("gate"), "").unwrap();
        this.await_state(home, "during", "succeeded");
        former.succeeds(home, &["drain", "--socket", member]);
        this.await_nodes(home, &[], 1);
    }

    /// A member of the former release that a head of this one must refuse.
    fn replace_member_after_refusal(&self) {
        let Cluster { home, former, this, address, member } = self;
        let refused = former.run(home, &member_words(address, &home.text("c/node.sock")));
        assert_ne!(refused.status, 0, "{}", refused.out);
        assert!(refused.err.contains("version") || refused.err.contains("release"), "{}", refused.err);
        former.run(home, &["stop", "--socket", member]);
        this.await_nodes(home, &[], 1);
    }

    fn join_member(&self) {
        let Cluster { home, this, address, member, .. } = self;
        this.succeeds(home, &member_words(address, member));
        this.await_nodes(home, &[], 2);
        this.run(home, &["job", "submit", "--name", "before", "--", "true"])
            .assert_refused(5, &["NameTaken", "\"before\""]);
        this.succeeds(home, &["job", "submit", "--name", "after", "--", "true"]);
        this.await_state(home, "after", "succeeded");
    }

    /// With the tables as they are now, or not at all.
    fn go_back(&self, may_read: bool) {
        let Cluster { home, former, this, member, .. } = self;
        this.succeeds(home, &["stop", "--socket", member]);
        this.succeeds(home, &["stop"]);
        let (state, head) = (std::fs::read(home.path("state")).unwrap(), head_words(home, "0"));
        if may_read {
            former.succeeds(home, &words(&head));
            former.await_state(home, "after", "succeeded");
            former.succeeds(home, &["stop"]);
        } else {
            assert_ne!(former.run(home, &words(&head)).status, 0, "these tables are of a later release");
            assert!(state == std::fs::read(home.path("state")).unwrap(), "what is refused is not changed");
        }
    }
}

fn head_words(home: &Home, port: &str) -> Vec<String> {
    let state = home.text("state");
    let words = ["start", "--head", "--state", &state, "--port", port];
    words.into_iter().chain(SMALL).map(str::to_owned).collect()
}

fn member_words<'a>(address: &'a str, socket: &'a str) -> Vec<&'a str> {
    [&["start", "--address", address, "--socket", socket][..], &SMALL].concat()
}

fn words(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

#[test]
fn a_release_is_replaced_machine_by_machine_and_nothing_is_lost() {
    let cluster = Cluster::begin();
    let (former, this) = (cluster.former.versions(&cluster.home), cluster.this.versions(&cluster.home));
    println!("{}: {former:?}, this: {this:?}", cluster.former.program.display());
    cluster.replace_head();
    if former.may_meet(&this) {
        cluster.replace_member_beside_head();
    } else {
        cluster.replace_member_after_refusal();
    }
    cluster.join_member();
    cluster.go_back(former.tables == this.tables);
}

/// The folder of files that former releases wrote.
fn recorded(name: &str) -> PathBuf {
    root().join("gcs/testdata").join(name)
}

/// A state file that a release of this version of the tables wrote (`gcs/src/tables_tests.rs` has the form).
fn state_of(version: u64) -> Vec<u8> {
    let text = std::fs::read_to_string(recorded(&format!("state-{version}.txt"))).unwrap();
    let (length, rows) = text.split_once(" bytes\n").unwrap();
    let mut bytes = vec![0; length.parse().unwrap()];
    for row in rows.lines() {
        let (offset, digits) = row.split_once(' ').unwrap();
        let offset = usize::from_str_radix(offset, 16).unwrap();
        for index in 0..digits.len() / 2 {
            bytes[offset + index] = u8::from_str_radix(&digits[2 * index..2 * index + 2], 16).unwrap();
        }
    }
    bytes
}

#[test]
fn a_head_goes_on_with_the_state_file_of_each_version() {
    let home = Home::new();
    let this = Release::this();
    for version in 1..=this.versions(&home).tables.unwrap() {
        std::fs::write(home.path("state"), state_of(version)).unwrap();
        let head = head_words(&home, "0");
        this.succeeds(&home, &words(&head));
        let address = this.shown(&home, &["status", "--json"])["address"].as_str().unwrap().to_owned();
        let member = home.text("b/node.sock");
        this.succeeds(&home, &member_words(&address, &member));
        this.succeeds(&home, &["job", "submit", "--name", "after", "--", "true"]);
        this.await_state(&home, "after", "succeeded");
        this.succeeds(&home, &["stop", "--socket", &member]);
        this.succeeds(&home, &["stop"]);
        // It is the cluster that it was.
        let mut store = home.spawn(["gcs", "--state", &home.text("state")]);
        let mut line = String::new();
        BufReader::new(store.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        assert!(line.contains(&format!("Control store of cluster {}", "01".repeat(16))), "{line}");
        kill(store.id(), "TERM");
        assert_eq!(end_of(store).status, 0);
    }
}

/// A hello or its answer, of a release with this version of the proof.
fn frame(version: u32, second: u32) -> Vec<u8> {
    let node = 7_u64.to_le_bytes();
    [&b"THARSIS\x02"[..], &version.to_le_bytes(), &second.to_le_bytes(), &node, &[0x22; 32]].concat()
}

#[test]
fn a_head_tells_callers_of_other_releases_its_version() {
    let (home, this) = (Home::new(), Release::this());
    this.succeeds(&home, &words(&head_words(&home, "0")));
    let address = this.shown(&home, &["status", "--json"])["address"].as_str().unwrap().to_owned();
    for version in [0, VERSION - 1, VERSION + 1, u32::MAX] {
        let mut caller = TcpStream::connect(&address).unwrap();
        caller.set_read_timeout(Some(SOON)).unwrap();
        caller.write_all(&frame(version, Purpose::Calls as u32)).unwrap();
        let mut answer = [0; HELLO_BYTES];
        caller.read_exact(&mut answer).unwrap();
        assert_eq!(answer[8..12], VERSION.to_le_bytes(), "to version {version}");
        assert_eq!(answer[12..16], (Reason::Version as u32).to_le_bytes(), "to version {version}");
    }
    this.await_nodes(&home, &[], 1);
    this.succeeds(&home, &["stop"]);
}

/// The documented answer, whether the head of the other release looks at the version of its callers or not.
#[test]
fn a_start_at_a_head_of_another_release_names_both_versions() {
    let page = std::fs::read_to_string(root().join("docs/upgrade.md")).unwrap();
    for (version, status) in [VERSION - 1, VERSION + 1].into_iter().zip([Reason::Version as u32, 0]) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                let mut hello = [0; HELLO_BYTES];
                if stream.read_exact(&mut hello).is_ok() {
                    let _gone = stream.write_all(&frame(version, status));
                }
            }
        });
        let (home, this) = (Home::new(), Release::this());
        let refused = this.run(&home, &member_words(&address, &home.text("b/node.sock")));
        let words = format!(
            "what listens there speaks version {version} of the protocol between processes of a cluster, this release \
             speaks version {VERSION}"
        );
        refused.assert_refused(4, &["ProtocolMismatch", &address, &words]);
        assert!(version < VERSION || page.replace('\n', " ").contains(&words), "docs/upgrade.md: {words}");
        assert!(home.processes().is_empty());
    }
}

/// The commit of the last tag before this one, or else the one before.
fn former_commit() -> String {
    let tag = git(&["describe", "--tags", "--abbrev=0", "HEAD~"]);
    let commit =
        git(&["rev-parse", "--verify", &format!("{}^{{commit}}", tag.as_deref().unwrap_or("HEAD~"))]);
    commit.unwrap_or_else(|| panic!("the commit before this one is not here: name a program by {FORMER}"))
}

fn git(words: &[&str]) -> Option<String> {
    let output = Command::new("git").args(words).current_dir(root()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then(|| String::from_utf8(output.stdout).unwrap().trim().to_owned())
}

/// Builds the command of a commit in a folder of its own in the target folder, without frames, which nodes do
/// not need. What another run has built there is used again.
fn build(commit: &str) -> PathBuf {
    let program = Path::new(env!("CARGO_BIN_EXE_tharsis"));
    let folder = program.ancestors().nth(2).unwrap().join("former");
    std::fs::create_dir_all(&folder).unwrap();
    let (source, target) = (folder.join(commit), folder.join("target"));
    if !source.exists() {
        let made = tempfile::tempdir_in(&folder).unwrap();
        let line = format!("git archive {commit} | tar -x -C '{}'", made.path().display());
        let unpacked = Command::new("sh").args(["-c", &line]).current_dir(root()).status().unwrap();
        assert!(unpacked.success() && made.path().join("Cargo.toml").exists(), "{line}");
        // Another round of the tests may have been faster.
        if std::fs::rename(made.path(), &source).is_ok() {
            let _moved = made.keep();
        }
    }
    // Tests beside it have deadlines.
    let mut cargo = Command::new("nice");
    cargo.arg("-n10").arg(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--locked", "--package", "tharsis-cli", "--bin", "tharsis"]);
    cargo.args(["--no-default-features", "--target-dir"]).arg(&target).current_dir(&source);
    // A run of the tests allows this program unstable options, which change what build scripts choose.
    let variables = ["RUSTC_BOOTSTRAP", "RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_TARGET_DIR"];
    for variable in variables {
        cargo.env_remove(variable);
    }
    assert!(cargo.status().unwrap().success(), "the release of commit {commit} cannot be built");
    target.join("debug/tharsis")
}
