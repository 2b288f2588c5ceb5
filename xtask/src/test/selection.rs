//! The packages and tests that a pattern on the command line selects.

use super::workspace::Package;
use anyhow::{Result, bail};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// A package that depends on all others, with all features, and has no tests. Selected beside another one, it
/// makes cargo build that as the whole workspace does, and nothing of a run of all tests is compiled again.
pub const UNIFIED: &str = "tharsis-unified";

/// The packages whose tests run, and the tests of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    /// All packages if it is none.
    package: Option<Package>,
    /// A part of the names of tests.
    filter: Option<String>,
    /// No tests of the one build, but the commands for other forms of it.
    is_forms: bool,
}

impl Selection {
    /// Reads a pattern: nothing; a package or its folder, then perhaps a part of names; or only a part of
    /// names.
    ///
    /// # Errors
    ///
    /// If the first of two words is no package.
    pub fn find(packages: &[Package], pattern: &[String]) -> Result<Self> {
        match pattern {
            [] => Ok(Self::everything()),
            words if words.iter().any(String::is_empty) => {
                bail!("an empty pattern: give none to run all tests")
            }
            [first, rest @ ..] => Self::among(packages, first, rest.first()),
        }
    }

    /// All tests of all packages.
    pub fn everything() -> Self {
        Self { package: None, filter: None, is_forms: false }
    }

    /// The commands of a long run for the forms that users build, and nothing else.
    pub fn forms() -> Self {
        Self { is_forms: true, ..Self::everything() }
    }

    /// Fails if a part of names stands in none of the files that give names, which most likely is a package
    /// or a test with a slip: all test programs would be compiled before that is seen.
    pub fn check_in(
        &self,
        packages: &[Package],
        files: impl FnOnce() -> Result<BTreeMap<PathBuf, String>>,
    ) -> Result<()> {
        let (None, Some(filter)) = (&self.package, &self.filter) else { return Ok(()) };
        // The name of a documentation test is that of its file and item, and its line.
        let item = filter.split(" (line").next().unwrap_or(filter);
        let mut words = item.split(|letter: char| !letter.is_alphanumeric() && letter != '_');
        let last = words.rfind(|word| !word.is_empty()).unwrap_or(filter);
        let is_there = |path: &Path, text: &str| {
            text.contains(last) || path.file_stem().is_some_and(|stem| stem.to_string_lossy().contains(last))
        };
        if files()?.iter().any(|(path, text)| is_there(path, text)) {
            return Ok(());
        }
        let names = packages.iter().flat_map(|package| [&package.name, &package.folder]);
        let near = names.map(|name| (strsim::osa_distance(name, filter), name)).min();
        let near =
            near.filter(|(distance, _)| *distance <= 2).map(|(_, name)| format!("; did you mean {name}?"));
        bail!(
            "{filter} is no package and no folder of one, and no test can have it in its name{}",
            near.unwrap_or_default()
        )
    }

    fn among(packages: &[Package], first: &str, second: Option<&String>) -> Result<Self> {
        let folder = first.trim_end_matches('/');
        let is_meant =
            |p: &&Package| p.folder == folder || p.name == folder || p.name == format!("tharsis-{folder}");
        let package = packages.iter().find(is_meant).cloned();
        match (package, second) {
            (Some(package), filter) => {
                Ok(Self { package: Some(package), filter: filter.cloned(), ..Self::everything() })
            }
            (None, None) => Ok(Self { filter: Some(first.to_owned()), ..Self::everything() }),
            (None, Some(_)) => bail!("{first} is no package and no folder of one"),
        }
    }

    /// Whether nothing is left out.
    pub fn is_everything(&self) -> bool {
        self.package.is_none() && self.filter.is_none() && !self.is_forms
    }

    /// Whether the commands for the forms that users build are all that runs.
    pub fn is_forms(&self) -> bool {
        self.is_forms
    }

    /// Whether all tests of a package run, or all of all packages.
    pub fn is_whole(&self) -> bool {
        self.filter.is_none()
    }

    /// A part of the names of the tests that run, if not all do.
    pub fn filter(&self) -> Option<&str> {
        self.filter.as_deref()
    }

    /// Whether tests of the package in a folder may be among them.
    pub fn may_be_in(&self, folder: &str) -> bool {
        !self.is_forms && self.package.as_ref().is_none_or(|package| package.folder == folder)
    }

    /// The libraries whose examples in the documentation are among the tests.
    pub fn documented(&self, packages: &[Package]) -> BTreeSet<String> {
        let is_meant = |package: &&Package| self.may_be_in(&package.folder);
        packages.iter().filter(is_meant).filter_map(|package| package.documented.clone()).collect()
    }

    /// Cargo's words for the packages.
    pub fn packages(&self) -> Vec<String> {
        match &self.package {
            None => vec!["--workspace".to_owned()],
            Some(package) => [&package.name, UNIFIED].map(|name| format!("--package={name}")).into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Selection;
    use crate::test::workspace::Package;
    use std::collections::{BTreeMap, BTreeSet};
    use std::path::PathBuf;

    fn packages() -> [Package; 2] {
        [("tharsis-core", "core"), ("tharsis-cluster-tests", "tests/cluster")].map(|(name, folder)| Package {
            name: name.to_owned(),
            folder: folder.to_owned(),
            programs: BTreeSet::new(),
            tests: BTreeSet::new(),
            documented: (folder == "core").then(|| "tharsis_core".to_owned()),
        })
    }

    fn select(first: &str, second: Option<&str>) -> anyhow::Result<Selection> {
        Selection::among(&packages(), first, second.map(str::to_owned).as_ref())
    }

    #[test]
    fn packages_are_found_by_folder_and_by_name() {
        for first in ["tests/cluster", "tests/cluster/", "tharsis-cluster-tests", "cluster-tests"] {
            let selection = select(first, Some("drain")).unwrap();
            let words = ["--package=tharsis-cluster-tests", "--package=tharsis-unified"];
            assert_eq!(selection.packages(), words, "{first}");
            assert_eq!(selection.filter(), Some("drain"));
        }
    }

    #[test]
    fn a_word_that_stands_nowhere_is_refused_before_the_build() {
        let text = "#[test]\nfn a_node_drains() {}".to_owned();
        let sources = BTreeMap::from([(PathBuf::from("/w/tests/cluster/tests/windows.rs"), text)]);
        let check = |selection: anyhow::Result<Selection>| {
            selection.unwrap().check_in(&packages(), || Ok(sources.clone()))
        };
        let of_docs = "tests/cluster/tests/windows.rs - windows::a_node_drains (line 12)";
        for word in ["node_dr", "windows", "windows::", "windows::a_node", of_docs] {
            assert!(check(select(word, None)).is_ok(), "{word}");
        }
        let refused = check(select("tests/clutser", None)).unwrap_err().to_string();
        assert!(refused.starts_with("tests/clutser is no package"), "{refused}");
        assert!(refused.ends_with("did you mean tests/cluster?"), "{refused}");
        let refused = check(select("something_else", None)).unwrap_err().to_string();
        assert!(refused.ends_with("in its name"), "{refused}");
        assert!(check(select("core", Some("clutser"))).is_ok(), "of a package");
        assert!(check(Ok(Selection::everything())).is_ok() && check(Ok(Selection::forms())).is_ok());
    }

    /// Trials have the names of files, of programs that must not compile and of data.
    #[test]
    fn every_case_in_a_file_of_its_own_passes_for_a_test() {
        let root = crate::root();
        let files = crate::files_of_names(&root).unwrap();
        for (folder, ending) in [("tharsis/tests/misuse", "stderr"), ("tests/sqllogic/cases", "slt")] {
            let is_case = |path: &&PathBuf| {
                path.starts_with(root.join(folder)) && path.extension().is_some_and(|of| of == ending)
            };
            let cases: Vec<_> = files.keys().filter(is_case).collect();
            assert!(1 < cases.len(), "{folder}");
            for case in cases {
                let name = case.file_stem().unwrap().to_str().unwrap();
                let selection = select(name, None).unwrap();
                assert!(selection.check_in(&packages(), || Ok(files.clone())).is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn documentation_is_that_of_the_selected_packages() {
        let documented = |selection: Selection| selection.documented(&packages());
        let core = BTreeSet::from(["tharsis_core".to_owned()]);
        assert_eq!(documented(Selection::everything()), core);
        assert_eq!(documented(select("core", Some("drain")).unwrap()), core);
        assert_eq!(documented(select("drain", None).unwrap()), core);
        assert!(documented(select("tests/cluster", None).unwrap()).is_empty());
        assert!(documented(Selection::forms()).is_empty());
    }

    #[test]
    fn anything_else_is_a_part_of_names() {
        let selection = select("a_node_drains", None).unwrap();
        assert!(selection.packages().contains(&"--workspace".to_owned()) && !selection.is_everything());
        assert_eq!(selection.filter(), Some("a_node_drains"));
    }

    #[test]
    fn a_second_word_needs_a_package_before_it() {
        assert!(select("kore", Some("drain")).is_err());
        assert!(Selection::find(&[], &[String::new()]).is_err(), "an empty word is no pattern");
    }
}
