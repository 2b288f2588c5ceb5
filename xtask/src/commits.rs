//! `cargo xtask commits`: the rules of commit messages, and `cargo xtask hooks`, which has git ask for them.
//!
//! A subject is `area: act`, such as `core: split lease requests`, with several areas as `core, raylet: ..`.
//! An area is a folder of the root or one of `OTHER_AREAS`; it has one spelling, so that `git log --grep`
//! finds all of it.

use anyhow::{Context, bail};
use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

/// Most characters of a subject, so that `git log --oneline` fits a terminal.
const SUBJECT_CHARS_MAX: usize = 72;

/// Most characters of a line of the body.
const BODY_CHARS_MAX: usize = 100;

/// Areas that are no folder: benchmarks wherever they lie, manifests and settings of tools, and what runs on
/// each push.
const OTHER_AREAS: &[&str] = &["bench", "build", "ci"];

/// Folders that are no area: `bench` is the one for it.
const NO_AREAS: &[&str] = &["benches", "target"];

/// First words that tell a thing or a result, where an act is asked for.
const NO_ACTS: &[&str] = &[
    "a", "all", "an", "and", "any", "each", "every", "from", "how", "in", "it", "its", "more", "new", "no",
    "of", "on", "one", "our", "some", "that", "the", "there", "these", "this", "those", "three", "two",
    "what", "when", "where", "which", "who", "whose", "why", "with",
];

/// Acts that end like a past, a present or a plural.
const ACTS: &[&str] = &["bring", "embed", "exceed", "feed", "focus", "need", "ping", "seed", "shed", "speed"];

/// Beginning of the hook's second line, by which a hook of ours is known.
const HOOK_SIGN: &str = "# Written by `cargo xtask hooks`";

/// The range that is checked when nobody names one begins after the commit that added this file.
const RULE: &str = "xtask/src/commits.rs";

/// Areas of the tree at `root`.
pub fn areas(root: &Path) -> anyhow::Result<BTreeSet<String>> {
    let mut areas: BTreeSet<String> = OTHER_AREAS.iter().map(|area| (*area).to_owned()).collect();
    for entry in fs::read_dir(root).with_context(|| format!("cannot read {}", root.display()))? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let is_area = entry.path().is_dir() && !entry.path().join(crate::CACHE_TAG).exists();
        if is_area && !name.starts_with('.') && !NO_AREAS.contains(&name.as_str()) {
            areas.insert(name);
        }
    }
    Ok(areas)
}

/// The rules that a commit's message breaks. Messages of reverts, which git writes itself, are right.
pub fn complaints(message: &str, areas: &BTreeSet<String>) -> Vec<String> {
    let mut wrong = Vec::new();
    let mut lines = message.lines();
    let subject = lines.next().unwrap_or("");
    if subject.starts_with("Revert \"") {
        return wrong;
    }
    let length = subject.chars().count();
    if SUBJECT_CHARS_MAX < length {
        wrong.push(format!("the subject has {length} characters, {SUBJECT_CHARS_MAX} are allowed"));
    }
    match subject.split_once(": ") {
        None => wrong.push("the subject has no area: `core: split lease requests`".to_owned()),
        Some((named, act)) => {
            let unknown: Vec<&str> = named.split(", ").filter(|area| !areas.contains(*area)).collect();
            if !unknown.is_empty() {
                let known: Vec<&str> = areas.iter().map(String::as_str).collect();
                wrong.push(format!("no area: {}; the areas are {}", unknown.join(", "), known.join(" ")));
            }
            wrong.extend(act_complaint(act));
        }
    }
    if lines.next().is_some_and(|second| !second.is_empty()) {
        wrong.push("the second line is not empty".to_owned());
    }
    // Tables, output and addresses cannot be broken.
    let prose = lines.filter(|line| !line.starts_with(['|', '\t']) && !line.starts_with("    "));
    for line in prose.filter(|line| line.trim().contains(' ')) {
        let length = line.chars().count();
        if BODY_CHARS_MAX < length {
            wrong.push(format!("a line has {length} characters, {BODY_CHARS_MAX} are allowed: {line}"));
        }
    }
    wrong
}

/// The reason why a subject after its area is no act. Endings give away most of those that are none.
fn act_complaint(act: &str) -> Option<String> {
    let word = act.split_whitespace().next().unwrap_or("");
    let has_ending = ["ed", "ing", "s"].iter().any(|ending| word.ends_with(ending)) && !word.ends_with("ss");
    let is_act = word.starts_with(|c: char| c.is_ascii_lowercase())
        && !NO_ACTS.contains(&word)
        && (!has_ending || ACTS.contains(&word));
    if !is_act {
        return Some(format!("`{word}` is no act: begin with a verb, as in `split lease requests`"));
    }
    act.ends_with('.').then(|| "the subject ends with a full stop".to_owned())
}

/// The commits that are checked.
#[derive(Clone, Copy, Debug)]
pub enum Range<'a> {
    /// Those of a range, as for `git log`.
    Named(&'a str),
    /// Those that came after the rules and that the upstream branch does not have. None where git tells of
    /// none: there is no repository, or it has no history.
    New,
    /// All that came after the rules. After a push the upstream branch has what was pushed.
    All,
}

/// Fails if a commit of the range breaks a rule, or if git cannot tell which commits those are that must be
/// checked.
pub fn check(root: &Path, range: Range<'_>) -> anyhow::Result<()> {
    let revisions = match range {
        Range::Named(range) => vec![range.to_owned()],
        Range::New => match since_the_rules(root) {
            Some(first) => {
                let upstream = git(root, &["rev-parse", "--verify", "--quiet", "@{upstream}"]);
                let known = upstream.map(|upstream| format!("^{}", upstream.trim()));
                ["HEAD".to_owned(), format!("^{first}")].into_iter().chain(known).collect()
            }
            None => return Ok(()),
        },
        Range::All => {
            let first = since_the_rules(root).context("git does not tell which commit added the rules")?;
            // The oldest commit of a history that was cut off behind the rules seems to add them.
            let is_cut_off = git(root, &["rev-parse", "--is-shallow-repository"])
                .is_some_and(|told| told.trim() == "true");
            let parents = git(root, &["rev-list", "--parents", "--max-count=1", &first]).unwrap_or_default();
            let is_oldest = parents.split_whitespace().count() == 1;
            let before = (!(is_cut_off && is_oldest)).then(|| format!("^{first}"));
            std::iter::once("HEAD".to_owned()).chain(before).collect()
        }
    };
    let mut arguments = vec!["log", "-z", "--no-merges", "--format=%h%n%B"];
    arguments.extend(revisions.iter().map(String::as_str));
    arguments.push("--");
    let Some(log) = git(root, &arguments) else { bail!("git knows no range {}", revisions.join(" ")) };
    let mut areas = areas(root)?;
    areas.extend(left_areas(root, &revisions));
    let mut wrong = Vec::new();
    for commit in log.split('\0').filter(|commit| !commit.is_empty()) {
        let (id, message) = commit.split_once('\n').unwrap_or((commit, ""));
        let subject = message.lines().next().unwrap_or("");
        let complaints = complaints(message.trim_end(), &areas);
        wrong.extend(complaints.iter().map(|complaint| format!("{id} {subject}\n  {complaint}")));
    }
    if !wrong.is_empty() {
        bail!("messages of commits (CONTRIBUTING.md, Commits):\n{}", wrong.join("\n"));
    }
    Ok(())
}

/// Folders of the root that commits of a range have moved or removed: they were areas before.
fn left_areas(root: &Path, revisions: &[String]) -> BTreeSet<String> {
    let mut arguments = vec!["log", "--no-renames", "--diff-filter=D", "--name-only", "--format="];
    arguments.extend(revisions.iter().map(String::as_str));
    arguments.push("--");
    let removed = git(root, &arguments).unwrap_or_default();
    let folders = removed.lines().filter_map(|file| Some(file.split_once('/')?.0.to_owned()));
    folders.filter(|name| !name.starts_with('.') && !NO_AREAS.contains(&name.as_str())).collect()
}

/// The commit that added the rules, if git tells of it.
fn since_the_rules(root: &Path) -> Option<String> {
    let added = git(root, &["log", "--diff-filter=A", "--format=%H", "--", RULE])?;
    added.lines().next_back().map(str::to_owned)
}

/// Fails if the message in a file breaks a rule. Git calls it before it makes a commit: also for merges, and
/// for commits that are squashed before anybody else has them.
pub fn check_message(root: &Path, file: &Path) -> anyhow::Result<()> {
    let text = fs::read_to_string(file).with_context(|| format!("cannot read {}", file.display()))?;
    let message = without_comments(&text);
    if ["Merge ", "fixup! ", "squash! "].iter().any(|of_git| message.starts_with(of_git)) {
        return Ok(());
    }
    let wrong = complaints(&message, &areas(root)?);
    if !wrong.is_empty() {
        bail!("message of the commit (CONTRIBUTING.md, Commits):\n  {}", wrong.join("\n  "));
    }
    Ok(())
}

/// A message as git takes it out of its file.
fn without_comments(text: &str) -> String {
    let written = text.split("# ------------------------ >8 ").next().unwrap_or("");
    let lines: Vec<&str> = written.lines().filter(|line| !line.starts_with('#')).map(str::trim_end).collect();
    lines.join("\n").trim().to_owned()
}

/// Installs the hook that checks messages, unless there is one of somebody else.
pub fn install_hook(root: &Path) -> anyhow::Result<()> {
    let folder = git(root, &["rev-parse", "--git-path", "hooks"]).context("no git repository")?;
    let folder = root.join(folder.trim());
    let own = git(root, &["rev-parse", "--git-common-dir"]).context("no git repository")?;
    if !folder.starts_with(root.join(own.trim())) {
        bail!("{} has the hooks of other repositories, too (core.hooksPath)", folder.display());
    }
    let path = folder.join("commit-msg");
    if fs::read_to_string(&path).is_ok_and(|hook| !hook.contains(HOOK_SIGN)) {
        bail!("{} is another hook; let it call `cargo xtask commits --message \"$1\"`", path.display());
    }
    let hook = format!("#!/bin/sh\n{HOOK_SIGN}.\nexec cargo xtask commits --message \"$1\"\n");
    fs::create_dir_all(&folder).with_context(|| format!("cannot make {}", folder.display()))?;
    fs::write(&path, hook).with_context(|| format!("cannot write {}", path.display()))?;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).context("cannot make the hook a program")
}

/// The output of git; nothing if it fails or is not there.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let mut git = Command::new("git");
    // The user may see signatures in each log.
    let output =
        git.current_dir(root).args(["-c", "log.showSignature=false"]).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use tempfile::TempDir;

    fn of(message: &str) -> Vec<String> {
        complaints(message, &["core", "raylet", "docs"].map(str::to_owned).into())
    }

    #[test]
    fn good_messages_pass() {
        assert!(of("core: split lease requests").is_empty());
        assert!(of("core, raylet: pass the leases of a node on\n\nA body that says why.\n").is_empty());
        assert!(of("docs: embed a figure").is_empty());
        assert!(of("core: address what is missing").is_empty());
        assert!(of("Revert \"core: split lease requests\"\n\nThis reverts commit 12.").is_empty());
        let long = "x".repeat(120);
        assert!(of(&format!("core: a{}", "b".repeat(65))).is_empty(), "72 characters");
        assert!(
            of(&format!("core: split\n\n{long}\n    {long} {long}\n| {long} |\nhttps://{long}")).is_empty()
        );
    }

    #[test]
    fn each_rule_is_held() {
        let cases = [
            ("split lease requests", "has no area"),
            ("Merge the loops of leases", "has no area"),
            ("fixup! core: split", "no area: fixup! core;"),
            ("cores: split lease requests", "no area: cores;"),
            ("core/owner: split", "no area: core/owner;"),
            ("core, : split", "no area: ;"),
            ("core: two runs of 10^8 rows", "`two` is no act"),
            ("core: the label of an extreme", "`the` is no act"),
            ("core: Split lease requests", "`Split` is no act"),
            ("core: fixes a leak", "`fixes` is no act"),
            ("core: fixed a leak", "`fixed` is no act"),
            ("core: fixing a leak", "`fixing` is no act"),
            ("core: ", "`` is no act"),
            ("core: split lease requests.", "full stop"),
            ("core: split\nlease requests", "the second line is not empty"),
        ];
        for (message, complaint) in cases {
            let found = of(message);
            assert!(found.len() == 1 && found[0].contains(complaint), "{message:?}: {found:?}");
        }
        let wide = of(&format!("core: a{}\n\n{} b", "b".repeat(66), "c".repeat(99)));
        assert!(wide.len() == 2 && wide[0].contains("has 73 characters"), "{wide:?}");
        assert!(wide[1].contains("has 101 characters"), "{wide:?}");
    }

    #[test]
    fn comments_of_git_are_no_part_of_a_message() {
        let file = "\ncore: split  \n\nBody\n# a comment\n# ------------------------ >8 ---\n+ code\n";
        assert_eq!(without_comments(file), "core: split\n\nBody");
    }

    /// A repository in a folder that goes with it.
    struct Repository(TempDir);

    impl Repository {
        fn new() -> Self {
            let folder = tempfile::tempdir().unwrap();
            fs::create_dir_all(folder.path().join("xtask/src")).unwrap();
            Self(folder)
        }

        fn root(&self) -> &Path {
            self.0.path()
        }

        fn git(&self, arguments: &[&str]) {
            git(self.root(), arguments).unwrap_or_else(|| panic!("git {arguments:?} failed"));
        }

        /// Makes it a repository with settings of its own, whatever the user's are.
        fn init(&self) {
            self.git(&["init", "--quiet", "--initial-branch=main", "--template="]);
            for (name, value) in [
                ("user.name", "a"),
                ("user.email", "a@example.org"),
                ("commit.gpgSign", "false"),
                ("core.abbrev", "7"),
                ("core.hooksPath", ".git/hooks"),
            ] {
                self.git(&["config", name, value]);
            }
        }

        fn commit(&self, message: &str) {
            self.git(&["commit", "--quiet", "--allow-empty", "--no-verify", "-m", message]);
        }

        fn refused(&self, range: Range<'_>) -> Vec<String> {
            let error = check(self.root(), range).err().map(|error| error.to_string()).unwrap_or_default();
            error
                .lines()
                .skip(1)
                .filter(|line| !line.starts_with(' '))
                .map(|line| line[8..].to_owned())
                .collect()
        }
    }

    #[test]
    fn commits_after_the_rule_are_checked_that_upstream_does_not_have() {
        let at = Repository::new();
        assert!(check(at.root(), Range::New).is_ok(), "no repository, or one outside without the rule");
        assert!(check(at.root(), Range::All).is_err(), "asked for all, it must see them");
        at.init();
        assert!(check(at.root(), Range::New).is_ok(), "no commit");
        at.commit("Older than the rule");
        assert!(check(at.root(), Range::New).is_ok(), "no rule");
        fs::write(at.root().join(RULE), "").unwrap();
        at.git(&["add", RULE]);
        at.commit("Add the rule");
        assert_eq!(at.refused(Range::New), Vec::<String>::new());
        at.commit("xtask: split");
        at.commit("No area");
        assert_eq!(at.refused(Range::New), ["No area"]);
        assert_eq!(at.refused(Range::Named("HEAD")), ["No area", "Add the rule", "Older than the rule"]);
        assert!(check(at.root(), Range::Named("nobody..HEAD")).is_err());
        at.git(&["checkout", "--quiet", "-b", "work", "--track"]);
        assert_eq!(at.refused(Range::New), Vec::<String>::new());
        at.commit("No area either");
        assert_eq!(at.refused(Range::New), ["No area either"]);
        assert_eq!(at.refused(Range::All), ["No area either", "No area"], "upstream has one of them");
    }

    #[test]
    fn what_is_left_of_a_history_that_is_cut_off_is_checked() {
        let at = Repository::new();
        at.init();
        fs::write(at.root().join(RULE), "").unwrap();
        at.git(&["add", RULE]);
        at.commit("xtask: add the rule");
        at.commit("No area");
        let cut = tempfile::tempdir().unwrap();
        let from = format!("file://{}", at.root().display());
        at.git(&["clone", "--quiet", "--depth", "1", &from, cut.path().to_str().unwrap()]);
        let error = check(cut.path(), Range::All).unwrap_err().to_string();
        assert!(error.contains("No area"), "{error}");
    }

    #[test]
    fn a_folder_that_is_gone_was_an_area() {
        let at = Repository::new();
        at.init();
        fs::write(at.root().join(RULE), "").unwrap();
        fs::create_dir_all(at.root().join("old")).unwrap();
        fs::write(at.root().join("old/file"), "").unwrap();
        at.git(&["add", RULE, "old"]);
        at.commit("Add the rule");
        at.commit("old: split");
        at.git(&["mv", "old", "renamed"]);
        at.commit("renamed: move what was old");
        at.commit("other: split");
        assert_eq!(at.refused(Range::All), ["other: split"]);
    }

    #[test]
    fn the_hook_refuses_a_message_and_stays_off_others() {
        let at = Repository::new();
        at.init();
        install_hook(at.root()).unwrap();
        install_hook(at.root()).unwrap();
        let path = at.root().join(".git/hooks/commit-msg");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        fs::write(&path, "#!/bin/sh\n").unwrap();
        assert!(install_hook(at.root()).unwrap_err().to_string().contains("is another hook"));
        let shared = tempfile::tempdir().unwrap();
        at.git(&["config", "core.hooksPath", shared.path().to_str().unwrap()]);
        assert!(install_hook(at.root()).unwrap_err().to_string().contains("of other repositories"));
        let message = at.root().join("message");
        fs::write(&message, "xtask: split\n# Please enter the message\n").unwrap();
        check_message(at.root(), &message).unwrap();
        for of_git in ["Merge branch 'a'\n", "fixup! xtask: split\n"] {
            fs::write(&message, of_git).unwrap();
            check_message(at.root(), &message).unwrap();
        }
        fs::write(&message, "split\n").unwrap();
        assert!(check_message(at.root(), &message).unwrap_err().to_string().contains("no area"));
    }
}
