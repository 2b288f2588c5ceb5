//! The packages that a program is made of, as cargo lists them.
//!
//! Cargo's metadata are of the whole workspace, with the features that any member asks for. `cargo tree`
//! lists one selection with its own features. The lock file alone has the checksums.

use anyhow::{Context, Result, bail};
use std::collections::{BTreeMap, BTreeSet};

/// The format of a line of `cargo tree`, behind its depth.
pub(super) const FORMAT: &str = "\t{p}\t{l}";

/// A package of one version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Id {
    /// Its name.
    pub name: String,
    /// Its version.
    pub version: String,
}

/// A package whose code is in a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// Expression of SPDX.
    pub license: Option<String>,
    /// Whether it is a member of the workspace.
    pub is_ours: bool,
    /// The parts that it uses.
    pub needs: BTreeSet<Id>,
}

/// A program with its parts.
#[derive(Clone, Debug)]
pub struct Contents {
    /// The package of the program, which is one of the parts.
    pub program: Id,
    /// All parts.
    pub parts: BTreeMap<Id, Part>,
    /// Checksums of the packages of the registry.
    pub sums: BTreeMap<Id, String>,
    /// The name of the form.
    pub form: String,
    /// The target that it is built for.
    pub target: String,
}

/// The package of the first line of `cargo tree`, and all packages with what each uses.
///
/// # Errors
/// If a line is not of the format.
pub fn parts(tree: &str) -> Result<(Id, BTreeMap<Id, Part>)> {
    let mut parts: BTreeMap<Id, Part> = BTreeMap::new();
    let mut path: Vec<Id> = Vec::new();
    for line in tree.lines() {
        let (depth, id, part) = part(line).with_context(|| format!("cargo tree wrote: {line}"))?;
        let is_second = depth == 0 && !path.is_empty();
        if is_second || path.len() < depth {
            bail!("cargo tree wrote in no place: {line}");
        }
        path.truncate(depth);
        if let Some(user) = path.last().and_then(|user| parts.get_mut(user)) {
            user.needs.insert(id.clone());
        }
        parts.entry(id.clone()).or_insert(part);
        path.push(id);
    }
    let program = path.into_iter().next().context("cargo tree wrote nothing")?;
    Ok((program, parts))
}

/// The checksums of a lock file.
pub fn checksums(lock: &str) -> BTreeMap<Id, String> {
    let of_package = |package: &str| {
        let field = |name: &str| {
            let value = |line: &str| {
                Some(line.strip_prefix(name)?.strip_prefix(" = \"")?.strip_suffix('"')?.to_owned())
            };
            package.lines().find_map(value)
        };
        Some((Id { name: field("name")?, version: field("version")? }, field("checksum")?))
    };
    lock.split("[[package]]").skip(1).filter_map(of_package).collect()
}

/// The depth, the package and what is known of it, from a line of `cargo tree`.
fn part(line: &str) -> Option<(usize, Id, Part)> {
    let (depth, rest) = line.split_once('\t')?;
    let (package, license) = rest.split_once('\t')?;
    let mut words = package.splitn(3, ' ');
    let (name, version) = (words.next()?.to_owned(), words.next()?.strip_prefix('v')?.to_owned());
    // Members have their folder behind the version.
    let is_ours = words.next().is_some_and(|source| source.contains("(/"));
    // Packages that were listed before have a mark.
    let license = expression(license.strip_suffix(" (*)").unwrap_or(license));
    Some((depth.parse().ok()?, Id { name, version }, Part { license, is_ours, needs: BTreeSet::new() }))
}

/// A licence as SPDX writes it: cargo's older form of `OR` is a slash.
fn expression(license: &str) -> Option<String> {
    let parts: Vec<&str> = license.split('/').map(str::trim).collect();
    (!license.trim().is_empty()).then(|| parts.join(" OR "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str, version: &str) -> Id {
        Id { name: name.to_owned(), version: version.to_owned() }
    }

    #[test]
    fn a_tree_is_read_with_what_each_package_uses() {
        let tree = "0\ttharsis-cli v0.1.0 (/w/cli)\tApache-2.0\n\
                    1\ta v1.0.0\tMIT/Apache-2.0\n\
                    2\tc v2.0.0+x.1\tMIT OR Apache-2.0\n\
                    1\tb v1.0.0 (/w/b)\tApache-2.0\n\
                    2\ta v1.0.0\tMIT/Apache-2.0 (*)\n\
                    2\td v3.0.0\t\n";
        let (program, parts) = parts(tree).unwrap();
        assert_eq!(program, id("tharsis-cli", "0.1.0"));
        let needs = |name: &str| parts[&id(name, "1.0.0")].needs.iter().cloned().collect::<Vec<_>>();
        assert_eq!(needs("a"), [id("c", "2.0.0+x.1")]);
        assert_eq!(needs("b"), [id("a", "1.0.0"), id("d", "3.0.0")]);
        assert_eq!(parts[&program].needs.len(), 2);
        assert_eq!(parts[&id("a", "1.0.0")].license.as_deref(), Some("MIT OR Apache-2.0"));
        assert_eq!(parts[&id("d", "3.0.0")].license, None);
        let ours: Vec<&str> =
            parts.iter().filter(|(_, part)| part.is_ours).map(|(id, _)| &*id.name).collect();
        assert_eq!(ours, ["b", "tharsis-cli"]);
    }

    #[test]
    fn a_tree_of_another_form_is_refused() {
        for wrong in [
            "",
            "0\ta\tMIT\n",
            "a v1.0.0\n",
            "x\ta v1.0.0\tMIT\n",
            "1\ta v1.0.0\tMIT\n",
            "0\ta v1.0.0\tMIT\n2\tb v1.0.0\tMIT\n",
            "0\ta v1.0.0\tMIT\n\n0\tb v1.0.0\tMIT\n",
            "0\ta v1.0.0\tMIT\n0\tb v1.0.0\tMIT\n",
        ] {
            assert!(parts(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn checksums_are_those_of_packages_that_have_one() {
        let lock = "version = 4\n\n[[package]]\nname = \"a\"\nversion = \"1.0.0\"\nsource = \"registry+x\"\n\
                    checksum = \"00ff\"\ndependencies = [\n \"b\",\n]\n\n[[package]]\nname = \"b\"\nversion = \"0.1.0\"\n";
        assert_eq!(checksums(lock), BTreeMap::from([(id("a", "1.0.0"), "00ff".to_owned())]));
    }
}
