//! The first thing that is built of a clean clone is an example: what that takes stays small.

use std::collections::BTreeSet;
use std::process::Command;

/// Most packages that an example is made of, ours included.
///
/// 16 of them are TLS and certificates: the same program joins a cluster of other machines. 4 are zstd, by
/// which most Zarr arrays are compressed.
const PACKAGE_COUNT: usize = 158;
/// Packages of other parts of the workspace: tests, the control store's other back ends, Arrow, linear
/// algebra; and a parser of certificates, which nothing needs.
const OF_OTHERS: [&str; 9] = [
    "arrow-array",
    "faer",
    "clap",
    "etcd-client",
    "libtest-mimic",
    "prost-build",
    "redb",
    "tempfile",
    "x509-parser",
];

#[test]
fn an_example_is_built_of_few_packages() {
    // `cargo run --example` selects the default member, whose features are its own.
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    let words = ["tree", "--locked", "--offline", "--edges", "normal,build", "--prefix", "none"];
    let tree = Command::new(env!("CARGO")).args(words).current_dir(folder).output().unwrap();
    let said = String::from_utf8(tree.stdout).unwrap();
    assert!(tree.status.success(), "{}", String::from_utf8_lossy(&tree.stderr));
    let packages: BTreeSet<(&str, &str)> = said
        .lines()
        .filter_map(|line| {
            let mut words = line.split_whitespace();
            Some((words.next()?, words.next()?))
        })
        .collect();
    assert!(packages.iter().any(|(name, _)| *name == "tharsis-raylet"), "{said}");
    for other in OF_OTHERS {
        assert!(packages.iter().all(|(name, _)| *name != other), "an example needs no {other}");
    }
    assert_eq!(packages.len(), PACKAGE_COUNT, "{packages:#?}");
}
