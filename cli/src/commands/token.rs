//! `tharsis token` and `tharsis node revoke`: who may join the cluster of the head on this machine.

use crate::args::TokenCommand;
use crate::refusal::Refusal;
use crate::settings::{Key, Settings};
use crate::{output, reach};
use anyhow::Result;
use std::time::{Duration, SystemTime};
use tharsis::{observe, process};
use tharsis_gcs::{ClientOptions, ControlClient};
use tharsis_identity::{Authority, MachineId, Role, Tls};
use tharsis_protos::connection::{Credentials, Trust};
use tharsis_protos::handshake::Question;

/// Lifetime of the token that a head prints when it starts.
const FIRST_TOKEN_LIFETIME: Duration = Duration::from_secs(24 * 3600);
/// Lifetime of the certificate with which the command asks the control store.
const OPERATOR_LIFETIME: Duration = Duration::from_secs(60);

/// Creates, lists or revokes.
///
/// # Errors
/// `NoAuthority`, `NotIssued`.
pub fn run(asked: TokenCommand) -> Result<()> {
    match asked {
        TokenCommand::Create { role, expires, settings } => {
            let settings = Settings::read(&settings)?;
            let token = authority(&settings)?.make_token(role, expires)?;
            if let Ok(head) = observe::ask(&settings.socket(), Question::Status)
                && head.is_head
                && !reach::admits_by_authority(&head.control, &settings)
            {
                output::warn(
                    "the head that runs here admits by a secret, and no tokens: start it with --host for this authority",
                );
            }
            output::line(&token.to_string())
        }
        TokenCommand::List { json, settings } => list(&authority(&Settings::read(&settings)?)?, json),
        TokenCommand::Revoke { number, settings } => {
            if !authority(&Settings::read(&settings)?)?.revoke_token(number)? {
                return Err(Refusal::NotIssued { what: "token", id: number }.into());
            }
            output::line(&format!("Token {number:016x} admits nobody any more."))
        }
    }
}

/// The flag with a new token for the line that a head prints; empty if it admits by secret.
///
/// # Errors
/// `NoAuthority`.
pub fn flag(settings: &Settings) -> Result<String> {
    if settings.value(Key::Host).is_none() {
        return Ok(String::new());
    }
    let token = authority(settings)?.make_token(Role::Node, FIRST_TOKEN_LIFETIME)?;
    Ok(format!(" --token {token}"))
}

/// Shuts a machine out, named by itself or by one of its nodes, and removes its nodes from the cluster. The
/// token with which it joined admits nobody any more either, unless it is to be kept.
///
/// # Errors
/// `NoAuthority`, `NotIssued`, `OwnMachine`.
pub fn revoke_machine(settings: &Settings, id: u64, keep_token: bool) -> Result<()> {
    let authority = authority(settings)?;
    let machine = authority.machine_of(id)?.unwrap_or(MachineId(id));
    let nodes = authority.nodes_of(machine)?;
    let token = authority.token_of(machine)?;
    // Before: the control stores remove its nodes as soon as they hear of it.
    let members = ask(settings, &authority, async |control: &ControlClient| {
        let members = control.list_nodes().await?.nodes;
        Ok(members.into_iter().map(|node| node.id).filter(|id| nodes.contains(&id.0)).collect::<Vec<_>>())
    });
    if !authority.revoke_machine(machine)? {
        return Err(Refusal::NotIssued { what: "machine or node", id }.into());
    }
    output::line(&format!("Machine {machine} gets no certificate any more, and its calls are refused."))?;
    if let Some(number) = token {
        if keep_token {
            output::line(&format!("Token {number:016x}, with which it joined, is good still."))?;
        } else {
            authority.revoke_token(number)?;
            output::line(&format!("Token {number:016x}, with which it joined, admits nobody any more."))?;
        }
    }
    let removed = members.and_then(|members| {
        ask(settings, &authority, async |control: &ControlClient| {
            for node in &members {
                control.unregister_node(*node, "its machine was revoked").await?;
            }
            Ok(members.len())
        })
    });
    match removed {
        Ok(removed) => output::line(&format!("Removed {removed} of its nodes from the cluster.")),
        Err(error) => output::line(&format!(
            "Its nodes stay members until a control store has heard of it: none was asked ({error:#})."
        )),
    }
}

/// Asks the control store of the head on this machine, as an operator.
fn ask<T>(
    settings: &Settings,
    authority: &Authority,
    asked: impl AsyncFnOnce(&ControlClient) -> Result<T>,
) -> Result<T> {
    let head = observe::ask(&settings.socket(), Question::Status)?.address;
    let own = authority.own(Role::Operator, None, false, OPERATOR_LIFETIME)?;
    let own = Credentials { trust: Trust::Identity(Tls::new(&own)?), node: None };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let (control, _) = ControlClient::connect(&head, &own, ClientOptions::default()).await?;
        asked(&control).await
    })
}

fn authority(settings: &Settings) -> Result<Authority> {
    Ok(Authority::load(&process::authority_folder(&settings.identity_dir()))?)
}

fn list(authority: &Authority, json: bool) -> Result<()> {
    let (tokens, machines) = (authority.tokens()?, authority.machines()?);
    let left = |until: SystemTime| until.duration_since(SystemTime::now()).unwrap_or_default().as_secs();
    let past = |since: SystemTime| since.elapsed().unwrap_or_default().as_secs();
    if json {
        let tokens: Vec<_> = tokens
            .iter()
            .map(|token| {
                let number = format!("{:016x}", token.number);
                serde_json::json!({"token": number, "role": token.role.name(), "expires_in_s": left(token.expires)})
            })
            .collect();
        let machines: Vec<_> = machines
            .iter()
            .map(|found| {
                serde_json::json!({
                    "machine": found.machine.to_string(),
                    "role": found.role.name(),
                    "host": found.host,
                    "joined_s_ago": past(found.joined),
                    "is_revoked": found.is_revoked,
                })
            })
            .collect();
        return output::line(&serde_json::json!({"tokens": tokens, "machines": machines}).to_string());
    }
    output::line("token             role      expires in")?;
    for token in tokens {
        let (number, role) = (token.number, token.role.name());
        output::line(&format!("{number:016x}  {role:<8}  {} s", left(token.expires)))?;
    }
    output::line("machine           role      state    joined      host")?;
    for found in machines {
        let state = if found.is_revoked { "revoked" } else { "good" };
        let (machine, role, host) = (found.machine, found.role.name(), &found.host);
        output::line(&format!("{machine}  {role:<8}  {state:<7}  {} s ago  {host}", past(found.joined)))?;
    }
    Ok(())
}
