//! Generated code of the messages: .proto files in, Rust out, without a protoc.
//!
//! `cargo xtask protos` runs it; with `--check` it only says whether what is checked in is what it would
//! write.
//!
//! The code is checked in, so that users of our crates need no generator; [`check`] keeps it honest and
//! runs as a test. Refused: a build script in `tharsis-protos`, which would put the generator into the build
//! of every user; and the generator in `xtask`, whose checks would then wait for a hundred crates.

#![forbid(unsafe_code)]

use anyhow::{Context, bail};
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

const SOURCES: [&str; 2] = ["control.proto", "peer.proto"];
const HEADER: &str = "// Written by `cargo xtask protos`; edit the .proto file instead.\n";

fn main() -> anyhow::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        [] => write(),
        ["--check"] => check(),
        _ => bail!("usage: cargo xtask protos [--check]"),
    }
}

/// Writes the generated code.
fn write() -> anyhow::Result<()> {
    let folder = protos()?.join("src/generated");
    for (name, text) in generate()? {
        let path = folder.join(&name);
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(())
}

/// Fails if the generated code that is checked in is not what [`write`] would write.
fn check() -> anyhow::Result<()> {
    let found = read(&protos()?.join("src/generated"))?;
    let wanted = generate()?;
    let stale: Vec<&String> =
        found.keys().chain(wanted.keys()).filter(|name| found.get(*name) != wanted.get(*name)).collect();
    if stale.is_empty() {
        return Ok(());
    }
    bail!("generated code is stale: {stale:?}; run `cargo xtask protos`")
}

fn generate() -> anyhow::Result<BTreeMap<String, String>> {
    let sources = protos()?.join("proto");
    let mut compiler = protox::Compiler::new([&sources])?;
    compiler.include_imports(true).include_source_info(true);
    for source in SOURCES {
        compiler.open_file(sources.join(source))?;
    }
    let scratch = tempfile::tempdir()?;
    tonic_prost_build::configure()
        .bytes(".")
        .btree_map(".")
        .out_dir(scratch.path())
        .compile_fds(compiler.file_descriptor_set())?;
    let files = read(scratch.path())?;
    Ok(files.into_iter().map(|(name, text)| (name, format!("{HEADER}{text}"))).collect())
}

fn read(folder: &Path) -> anyhow::Result<BTreeMap<String, String>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let text = fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        files.insert(name, text);
    }
    Ok(files)
}

/// The crate `protos` of the tree that cargo runs this for, whichever tree it was compiled in.
fn protos() -> anyhow::Result<PathBuf> {
    let own = std::env::var_os("CARGO_MANIFEST_DIR").context("run it as `cargo xtask protos`")?;
    Ok(Path::new(&own).join(".."))
}

#[cfg(test)]
mod tests {
    #[test]
    fn generated_code_is_current() {
        super::check().unwrap();
    }
}
