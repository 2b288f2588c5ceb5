//! Chores of this workspace, in Rust so that they run wherever it builds.
//!
//! `cargo xtask protos` writes the generated code of `tharsis-protos` from its .proto files; with `--check`
//! it only says whether what is checked in is what it would write.

#![forbid(unsafe_code)]

mod protos;

use clap::{Parser, Subcommand};

#[derive(Parser)]
#[command(about = "Chores of this workspace")]
struct Arguments {
    #[command(subcommand)]
    chore: Chore,
}

#[derive(Subcommand)]
enum Chore {
    /// Generate the Rust code of the messages
    Protos {
        /// Write nothing; fail if the code that is checked in is stale
        #[arg(long)]
        check: bool,
    },
}

fn main() -> anyhow::Result<()> {
    match Arguments::parse().chore {
        Chore::Protos { check: true } => protos::check(),
        Chore::Protos { check: false } => protos::write(),
    }
}
