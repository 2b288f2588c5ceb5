//! A cluster goes from the former release to this one, by the steps of `docs/upgrade.md`, and nothing is
//! lost.
//!
//! The former release is the program that [`FORMER`] names. Without it a long run builds one: that of the
//! last tag before this commit, or else of the commit before. A short run has no time for that: it replaces
//! this program by itself, which tries the steps, and not the differences.

use crate::home::{Ended, Home, SMALL, await_that, root, without_settings};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

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
    let mut cargo = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    cargo.args(["build", "--quiet", "--locked", "--package", "tharsis-cli", "--bin", "tharsis"]);
    cargo.args(["--no-default-features", "--target-dir"]).arg(&target).current_dir(&source);
    for variable in ["RUSTC_WRAPPER", "RUSTC_WORKSPACE_WRAPPER", "CARGO_BUILD_TARGET_DIR"] {
        cargo.env_remove(variable);
    }
    assert!(cargo.status().unwrap().success(), "the release of commit {commit} cannot be built");
    target.join("debug/tharsis")
}
