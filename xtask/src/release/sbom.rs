//! A program's parts in JSON, as CycloneDX 1.5 has them.
//!
//! No time and no random number is in it, and no path of the machine: the same contents give the same text.

use super::contents::{Contents, Id, Part};
use anyhow::{Context, Result, bail};
use serde_json::{Value, json};

/// The licence of Rust's own library.
const LICENSE_OF_RUST: &str = "MIT OR Apache-2.0";

/// The list of what is in a program that a release of Rust compiled: its packages, with Rust's own library.
///
/// # Errors
/// If a package has no licence, or one of the registry has no checksum.
pub fn document(contents: &Contents, rust: &str) -> Result<Value> {
    let library = format!("pkg:generic/rust-std@{rust}");
    let mut components = Vec::new();
    let mut dependencies = Vec::new();
    for (id, part) in &contents.parts {
        let mut needs: Vec<String> = part.needs.iter().map(address).collect();
        if *id == contents.program {
            needs.push(library.clone());
        } else {
            components.push(component(contents, id, part)?);
        }
        dependencies.push(json!({"ref": address(id), "dependsOn": needs}));
    }
    components.push(json!({
        "type": "library",
        "bom-ref": library,
        "name": "rust-std",
        "version": rust,
        "licenses": [{"expression": LICENSE_OF_RUST}],
    }));
    let part = contents.parts.get(&contents.program).context("the program is no part of itself")?;
    let mut program = component(contents, &contents.program, part)?;
    program["type"] = json!("application");
    Ok(json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": program,
            "properties": [
                {"name": "tharsis:form", "value": contents.form},
                {"name": "tharsis:target", "value": contents.target},
            ],
        },
        "components": components,
        "dependencies": dependencies,
    }))
}

/// A document as the text of a file.
///
/// # Errors
/// If it cannot be written as JSON.
pub(super) fn text(document: &Value) -> Result<String> {
    let text = serde_json::to_string_pretty(document).context("the list of parts is no JSON")?;
    Ok(text + "\n")
}

fn component(contents: &Contents, id: &Id, part: &Part) -> Result<Value> {
    let Id { name, version } = id;
    let license = part.license.as_ref().with_context(|| format!("{name} {version} has no licence"))?;
    let mut component = json!({
        "type": "library",
        "bom-ref": address(id),
        "purl": address(id),
        "name": name,
        "version": version,
        "licenses": [{"expression": license}],
    });
    match contents.sums.get(id) {
        Some(sum) => component["hashes"] = json!([{"alg": "SHA-256", "content": sum}]),
        None if part.is_ours => {}
        None => bail!("{name} {version} has no checksum in the lock file"),
    }
    Ok(component)
}

/// The address of a package, in which a plus means a space.
fn address(id: &Id) -> String {
    format!("pkg:cargo/{}@{}", id.name, id.version.replace('+', "%2B"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::{BTreeMap, BTreeSet};

    fn id(name: &str, version: &str) -> Id {
        Id { name: name.to_owned(), version: version.to_owned() }
    }

    fn contents() -> Contents {
        let part =
            |is_ours: bool, needs: BTreeSet<Id>| Part { license: Some("MIT".to_owned()), is_ours, needs };
        let (program, low) = (id("tharsis-cli", "0.1.0"), id("low", "2.0.0+x"));
        Contents {
            parts: BTreeMap::from([
                (program.clone(), part(true, BTreeSet::from([low.clone()]))),
                (low.clone(), part(false, BTreeSet::new())),
            ]),
            sums: BTreeMap::from([(low, "00ff".to_owned())]),
            form: "tharsis".to_owned(),
            target: "x86_64-unknown-linux-gnu".to_owned(),
            program,
        }
    }

    #[test]
    fn parts_have_licences_and_checksums_and_say_what_they_use() {
        let all = document(&contents(), "1.95.0").unwrap();
        assert_eq!(all["metadata"]["component"]["type"], "application");
        assert_eq!(all["metadata"]["component"]["name"], "tharsis-cli");
        let low = json!({
            "type": "library", "bom-ref": "pkg:cargo/low@2.0.0%2Bx", "purl": "pkg:cargo/low@2.0.0%2Bx",
            "name": "low", "version": "2.0.0+x", "licenses": [{"expression": "MIT"}],
            "hashes": [{"alg": "SHA-256", "content": "00ff"}],
        });
        assert_eq!(all["components"][0], low);
        assert_eq!(all["components"][1]["bom-ref"], "pkg:generic/rust-std@1.95.0");
        let needs = json!(["pkg:cargo/low@2.0.0%2Bx", "pkg:generic/rust-std@1.95.0"]);
        assert_eq!(all["dependencies"][1], json!({"ref": "pkg:cargo/tharsis-cli@0.1.0", "dependsOn": needs}));
        assert!(text(&all).unwrap().ends_with("}\n"));
    }

    #[test]
    fn a_part_without_a_licence_or_a_checksum_is_an_error() {
        let mut without = contents();
        without.sums.clear();
        assert!(
            document(&without, "1.95.0").unwrap_err().to_string().contains("low 2.0.0+x has no checksum")
        );
        let mut without = contents();
        without.parts.values_mut().for_each(|part| part.license = None);
        assert!(document(&without, "1.95.0").unwrap_err().to_string().contains("has no licence"));
    }
}
