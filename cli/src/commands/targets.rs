//! The nodes that a command asks, and how each is reached.
//!
//! The node of this machine is asked by its socket, the others by calls on their ports, whose addresses the
//! control store knows.

use crate::reach::{self, operator};
use crate::refusal::Refusal;
use crate::settings::Settings;
use anyhow::Result;
use std::path::PathBuf;
use std::time::Duration;
use tharsis_gcs::{ClientOptions, ControlClient};
use tharsis_protos::connection::Credentials;
use tharsis_protos::handshake::Question;

/// The longest time that a call may take until it is answered.
pub const CALL_WAIT: Duration = Duration::from_secs(5);

/// Nodes to ask, and the way to learn of others.
pub struct Targets {
    /// The nodes, that of this machine first.
    pub nodes: Vec<Target>,
    /// The control store, and the credentials for nodes that are asked by their ports.
    pub cluster: Option<(ControlClient, Credentials)>,
}

/// A node to ask, and how.
pub enum Target {
    /// By its socket.
    Own(u64, PathBuf),
    /// By its port.
    Other(u64, String),
}

impl Target {
    /// The number of the node.
    pub fn node(&self) -> u64 {
        match self {
            Target::Own(node, _) | Target::Other(node, _) => *node,
        }
    }
}

/// The nodes that are there, or the one with this id: those of the control stores at `address`, else those
/// that the node of this machine knows.
///
/// # Errors
/// `UnknownNode`, or why nobody is reached who knows the nodes.
pub async fn targets(node: Option<u64>, address: Option<&str>, settings: &Settings) -> Result<Targets> {
    let own = match address {
        None => Some(super::ask(&settings.socket(), Question::Status)?),
        Some(_) => None,
    };
    let is_wanted = |found: u64| node.is_none_or(|wanted| wanted == found);
    let unknown = || Refusal::UnknownNode { node: node.unwrap_or_default() };
    let here = own.as_ref().map(|own| Target::Own(own.node, settings.socket()));
    let control = address.map(str::to_owned).or_else(|| own.as_ref().map(|own| own.control.clone()));
    let own_node = own.map(|own| own.node);
    let is_own = node.is_some() && node == own_node;
    let Some(control) = control.filter(|control| !control.is_empty() && !is_own) else {
        let here: Vec<_> = here.into_iter().filter(|_| own_node.is_some_and(is_wanted)).collect();
        return if here.is_empty() {
            Err(unknown().into())
        } else {
            Ok(Targets { nodes: here, cluster: None })
        };
    };
    let credentials = operator(&control, settings)?;
    let options = ClientOptions { call_deadline: CALL_WAIT, patience: Duration::ZERO };
    let store = ControlClient::connect(&control, &credentials, options).await;
    let (store, _) = store.map_err(|error| reach::refused(&control, &error))?;
    let members = store.list_nodes().await?.nodes.into_iter();
    let mut nodes: Vec<_> = members
        .filter(|member| is_wanted(member.id.0))
        .map(|member| {
            if own_node == Some(member.id.0) {
                Target::Own(member.id.0, settings.socket())
            } else {
                Target::Other(member.id.0, member.listen)
            }
        })
        .collect();
    nodes.sort_by_key(|target| matches!(target, Target::Other(..)));
    if nodes.is_empty() {
        return Err(unknown().into());
    }
    Ok(Targets { nodes, cluster: Some((store, credentials)) })
}
