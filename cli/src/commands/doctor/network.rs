//! Measures the places of a node: its name, its socket and port, and the servers that it needs.

use super::facts::{Answer, Etcd, Heads, HostName, Socket};
use crate::commands::{gcs, node};
use crate::reach;
use crate::settings::parse::{self, Host};
use crate::settings::{Error, Key, Settings};
use anyhow::{Result, bail};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::sync::mpsc::channel;
use std::time::Duration;
use tharsis::join;
use tharsis::process::Security;
use tharsis_protos::connection::Credentials;
use tharsis_raylet::local;

/// Time that a name server may take.
const RESOLVE_WAIT: Duration = Duration::from_secs(5);

/// The name that others are told, or that of the system.
///
/// # Errors
/// [`Error::BadValue`].
pub fn host(settings: &Settings) -> Result<HostName, Error> {
    let told = match settings.get(Key::Host, parse::host)? {
        Some((Host::Name(name), _)) => Some(name),
        _ => None,
    };
    let is_told = told.is_some();
    let own = || rustix::system::uname().nodename().to_string_lossy().into_owned();
    let name = told.unwrap_or_else(own);
    let addresses = resolve(&name);
    Ok(HostName { name, is_told, addresses })
}

/// The addresses of a name. Its thread may wait for a name server for longer, and ends with the process.
fn resolve(name: &str) -> Result<Vec<IpAddr>, String> {
    let (answers, heard) = channel::<Result<Vec<IpAddr>, String>>();
    let asked = name.to_owned();
    let ask = move || {
        let found = (asked.as_str(), 0).to_socket_addrs();
        let found = found.map(|all| all.map(|address| address.ip()).collect());
        let _nobody_waits = answers.send(found.map_err(|cause| cause.to_string()));
    };
    let thread = std::thread::Builder::new().name("resolve".into()).spawn(ask);
    let _asking = thread.map_err(|cause| cause.to_string())?;
    heard
        .recv_timeout(RESOLVE_WAIT)
        .unwrap_or_else(|_| Err(format!("no answer within {} s", RESOLVE_WAIT.as_secs())))
}

/// The socket of the node.
pub fn socket(settings: &Settings) -> Socket {
    let path = settings.socket();
    let problem = local::check_place(&path).err().map(|problem| problem.to_string());
    Socket { holder: reach::listener(&path), problem, path }
}

/// The address on which the node would listen, if it is free.
pub fn port(address: Option<&str>, settings: &Settings) -> Result<SocketAddr, String> {
    let seen = address.and_then(|address| seen(address, settings));
    let place = settings.place(seen).map_err(|error| error.to_string())?;
    reach::check_free(place.listen).map_err(|error| format!("{error:#}"))?;
    Ok(place.listen)
}

/// The address of this machine from which it reaches the heads; none if they are on this machine.
fn seen(address: &str, settings: &Settings) -> Option<IpAddr> {
    let heads = join::heads(address);
    match node::member_security(address, settings) {
        Ok(Security::Secret(_)) => None,
        // It has an identity, or is about to get one.
        _ => join::address_towards(&heads).ok(),
    }
}

/// The etcd of a control store, which is opened as a control store opens it; a member has none.
///
/// # Errors
/// [`Error::BadValue`].
pub fn etcd(address: Option<&str>, settings: &Settings) -> Result<Option<Etcd>> {
    if address.is_some() || settings.value(Key::Etcd).is_none() {
        return Ok(None);
    }
    let backend = gcs::backend(settings)?;
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let opened = runtime.block_on(async { backend.open().await.map(drop) });
    let problem = opened.err().map(|error| error.to_string());
    Ok(Some(Etcd { servers: settings.text(Key::Etcd).to_owned(), problem }))
}

/// Asks the heads as a node does that joins them.
pub fn heads(address: &str, settings: &Settings) -> Heads {
    let problem = |error: anyhow::Error| Answer::Problem(format!("{error:#}"));
    let answer = match credentials(address, settings) {
        Ok(own) => reach::check_head(address, &own).map_or_else(problem, |()| Answer::Admitted),
        Err(unknown) => {
            reach::check_listens(address).map_or_else(problem, |()| Answer::Listens(format!("{unknown:#}")))
        }
    };
    Heads { addresses: address.to_owned(), answer }
}

/// The means by which a member shows that it is one. A secret is not made for that.
fn credentials(address: &str, settings: &Settings) -> Result<Credentials> {
    let security = node::member_security(address, settings)?;
    if let Security::Secret(file) = &security
        && !file.exists()
    {
        bail!("this machine has no secret of its cluster: {} is not there", file.display());
    }
    Ok(security.credentials(&join::heads(address)).map_err(tharsis::Error::from)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_resolved_or_the_reason_is_told() {
        let local = resolve("localhost").unwrap();
        assert!(!local.is_empty() && local.iter().all(IpAddr::is_loopback), "{local:?}");
        assert!(!resolve("head.tharsis.invalid").unwrap_err().is_empty());
    }
}
