//! The commands, one module each.

mod authority;
mod config;
mod doctor;
mod drain;
#[cfg(feature = "tensors")]
mod eval;
#[cfg(not(feature = "tensors"))]
#[path = "eval_absent.rs"]
mod eval;
#[cfg(feature = "tensors")]
mod eval_places;
mod gcs;
mod job;
mod join;
mod list;
mod logs;
mod memory;
mod node;
mod pages;
#[cfg(test)]
mod samples_tests;
mod start;
mod status;
mod stop;
mod targets;
mod timeline;
mod token;
mod top;
mod why;

#[cfg(feature = "frames")]
pub use eval_places::Size;
#[cfg(feature = "tensors")]
pub use eval_places::Started;

use crate::args::{Args, BenchArgs, Command, ConfigCommand, NodeCommand};
use crate::refusal::Refusal;
use crate::settings::Settings;
use crate::{bench, frames, hosts, output};
use anyhow::Result;
use list::Kind;
use std::path::Path;
use tharsis::{Error, FailureKind, observe};
use tharsis_protos::handshake::Question;
use tharsis_protos::report::Report;

/// Runs a command.
///
/// # Errors
/// The error of the command; see [`crate::refusal::status_of`].
pub fn run(args: Args) -> Result<()> {
    match args.command {
        Command::Authority(asked) => authority::run(asked),
        Command::Bench(asked) => run_bench(asked),
        Command::BenchFirst { mode } => bench::first_result(&mode),
        Command::BenchPeer { kind, argument } => bench::serve_floor(&kind, &argument),
        Command::Completions { shell } => pages::completions(shell),
        Command::Config(ConfigCommand::Show { json, settings }) => {
            config::show(&Settings::read(&settings)?, json)
        }
        Command::Doctor { address, json, settings } => doctor::run(address.as_deref(), &settings, json),
        Command::Down(asked) => hosts::down(&asked.file),
        Command::Drain { node, deadline, address, settings } => {
            drain::run(node, deadline, address.as_deref(), &Settings::read(&settings)?)
        }
        Command::Eval { list: true, .. } => eval::list(),
        Command::Eval { sql: true, .. } => frames::statements(),
        Command::Eval { folder, .. } => eval::run(folder.as_deref()),
        Command::Gcs { settings } => gcs::run(&Settings::read(&settings)?),
        Command::Graphs(asked) => list::run(Kind::Graphs, &asked),
        Command::Actors(asked) => list::run(Kind::Actors, &asked),
        Command::Groups(asked) => list::run(Kind::Groups, &asked),
        Command::Join { address, token, settings } => {
            join::run(&address, &token, &Settings::read(&settings)?)
        }
        Command::Job(asked) => job::run(asked),
        Command::Jobs(asked) => list::run(Kind::Jobs, &asked),
        Command::Logs(asked) => logs::run(&asked),
        Command::Man { folder } => pages::manual(&folder),
        Command::Memory { json, settings } => memory::run(&Settings::read(&settings)?.socket(), json),
        Command::Node { command: Some(NodeCommand::Revoke { id, keep_token, settings }), .. } => {
            token::revoke_machine(&Settings::read(&settings)?, id, keep_token)
        }
        Command::Node { command: None, part, settings } => node::run(&part, &settings),
        Command::Nodes(asked) => list::run_nodes(&asked),
        Command::Objects(asked) => list::run(Kind::Objects, &asked),
        Command::Sql(asked) => frames::query(&asked),
        Command::Start { part, settings } => start::run(&part, &settings),
        Command::Status { file: Some(file), json, .. } => hosts::states(&file, json),
        Command::Status { file: None, json, settings } => {
            status::run(&Settings::read(&settings)?.socket(), json)
        }
        Command::Stop { drain: Some(within), settings } => drain::stop(within, &Settings::read(&settings)?),
        Command::Stop { drain: None, settings } => stop::run(&Settings::read(&settings)?.socket()),
        Command::Tasks(asked) => list::run(Kind::Tasks, &asked),
        Command::Timeline(asked) => timeline::run(&asked),
        Command::Token(asked) => token::run(asked),
        Command::Top(asked) => top::run(&asked),
        Command::Up(asked) => hosts::up(&asked.file),
        Command::Version { json } => version(json),
        Command::Workers(asked) => list::run(Kind::Workers, &asked),
        Command::Why { id, json, settings } => why::run(&Settings::read(&settings)?.socket(), id, json),
    }
}

fn run_bench(asked: BenchArgs) -> Result<()> {
    let BenchArgs { name, json, embedded, quick, on, size, nodes, .. } = asked;
    let BenchArgs { random, compressible, disk_limit, tls, store, memory, rounds, data, .. } = asked;
    let name = if store == Some(None) { format!("{name}-store") } else { name };
    let name = if tls { format!("{name}-tls") } else { name };
    let store = store.flatten();
    let flags = bench::Options { random, compressible, disk_limit, store, nodes, ..Default::default() };
    let options = bench::Options { embedded, quick, on, memory, rounds, data, ..flags };
    bench::run(&name, options, size, json)
}

/// Asks the node at a socket.
fn ask(socket: &Path, question: Question) -> Result<Report> {
    observe::ask(socket, question).map_err(unanswered)
}

/// The error of a node that did not answer.
fn unanswered(error: Error) -> anyhow::Error {
    match error.kind() {
        FailureKind::Disconnected => Refusal::NoNode { cause: error.failure().message.to_string() }.into(),
        _ => error.into(),
    }
}

fn version(json: bool) -> Result<()> {
    let (version, protocol) = (env!("CARGO_PKG_VERSION"), tharsis_protos::handshake::PROTOCOL_VERSION);
    let (cluster, control) = (tharsis_protos::proof::VERSION, tharsis_protos::control::PROTOCOL.to_string());
    let tables = tharsis_gcs::tables::FORMAT;
    if json {
        let versions = serde_json::json!({
            "version": version, "protocol": protocol, "cluster": cluster, "control": control, "tables": tables,
        });
        return output::line(&versions.to_string());
    }
    output::line(&format!(
        "tharsis {version}, protocol {protocol}, cluster {cluster}, control {control}, tables {tables}"
    ))
}
