//! Generated code of the messages, made by the package `protos/codegen`, which is compiled only when it is
//! asked for.

use crate::cargo;
use anyhow::{Context, bail};

/// Writes the generated code of `tharsis-protos`, or with `check` only fails if what is checked in is stale.
pub fn run(check: bool) -> anyhow::Result<()> {
    let mut command = cargo();
    command.args(["run", "--quiet", "--package", "tharsis-protos-codegen", "--"]);
    if check {
        command.arg("--check");
    }
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("the generator of the messages failed");
    }
    Ok(())
}
