//! When a test program may start: after the commands and examples of its package, which it may start itself.
//!
//! Cargo links them in any order. In a folder with an older build, a test that began first would start the
//! older command, and would test a mixture of two states of the sources.

use super::program::Program;
use super::workspace::Package;
use std::collections::{BTreeMap, BTreeSet};

/// The test programs of a build that wait for others.
#[derive(Debug, Default)]
pub struct Order {
    /// Commands and examples that are not there yet, by the folder of their package.
    missing: BTreeMap<String, BTreeSet<String>>,
    waiting: Vec<Program>,
}

impl Order {
    /// The order of a build of these packages.
    pub fn of(packages: &[Package]) -> Self {
        let programs = packages.iter().map(|package| (package.folder.clone(), package.programs.clone()));
        Self { missing: programs.collect(), waiting: Vec::new() }
    }

    /// A test program was linked.
    pub fn add(&mut self, program: Program) {
        self.waiting.push(program);
    }

    /// A command or an example of a package was linked.
    pub fn has(&mut self, folder: &str, name: &str) {
        if let Some(missing) = self.missing.get_mut(folder) {
            missing.remove(name);
        }
    }

    /// Takes the test programs that have all that they may start.
    pub fn ready(&mut self) -> Vec<Program> {
        let is_ready = |program: &mut Program| {
            program.is_unit_tests() || self.missing.get(&program.package).is_none_or(BTreeSet::is_empty)
        };
        self.waiting.extract_if(.., is_ready).collect()
    }

    /// The rest, when the build is done: what they wait for needs features that this build has not.
    pub fn rest(self) -> Vec<Program> {
        self.waiting
    }
}

#[cfg(test)]
mod tests {
    use super::Order;
    use crate::test::program::Program;
    use crate::test::workspace::Package;
    use std::collections::BTreeSet;
    use std::path::PathBuf;

    fn order() -> Order {
        let programs = ["tharsis", "with-a-feature"].map(str::to_owned).into();
        let (name, folder) = ("tharsis-cli".to_owned(), "cli".to_owned());
        Order::of(&[Package { name, folder, programs, tests: BTreeSet::new(), documented: None }])
    }

    fn program(package: &str, target: &str) -> Program {
        Program {
            package: package.to_owned(),
            target: target.to_owned(),
            file: PathBuf::from("f"),
            manifest: PathBuf::from("m"),
        }
    }

    fn names(programs: &[Program]) -> Vec<String> {
        programs.iter().map(Program::name).collect()
    }

    #[test]
    fn a_test_waits_for_the_commands_of_its_package() {
        let mut order = order();
        order.add(program("cli", "driver"));
        order.has("cli", "tharsis");
        order.has("examples", "with-a-feature");
        assert!(order.ready().is_empty(), "a program of another package is not what it waits for");
        order.has("cli", "with-a-feature");
        assert_eq!(names(&order.ready()), ["cli/driver"]);
        assert!(order.ready().is_empty() && order.rest().is_empty(), "each starts once");
    }

    #[test]
    fn unit_tests_and_other_packages_wait_for_nothing() {
        let mut order = order();
        ["lib", "bin"].into_iter().for_each(|target| order.add(program("cli", target)));
        order.add(program("core", "scripts"));
        assert_eq!(names(&order.ready()), ["cli/lib", "cli/bin", "core/scripts"]);
    }

    #[test]
    fn what_waits_for_a_program_that_is_not_built_starts_in_the_end() {
        let mut order = order();
        order.add(program("cli", "driver"));
        order.has("cli", "tharsis");
        assert!(order.ready().is_empty());
        assert_eq!(names(&order.rest()), ["cli/driver"]);
    }
}
