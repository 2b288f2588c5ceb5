//! `tharsis gcs`: a control store of its own, in the foreground. Nodes join it as they join a head.

use super::token;
use crate::log::LogChoice;
use crate::refusal::Refusal;
use crate::settings::place::Place;
use crate::settings::{Error, Key, Settings, parse};
use crate::{output, reach};
use anyhow::{Context, Result};
use std::net::SocketAddr;
use std::path::PathBuf;
use tharsis::process::BackendChoice;
use tharsis_gcs::{Control, ControlOptions, EtcdAccess, serve};
use tharsis_raylet::cluster::{advertised_address, network_runtime};
use tharsis_raylet::{descriptors, readiness};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tonic::service::Routes;

/// Serves until it is told to stop.
///
/// # Errors
/// Why it cannot start, or how it failed.
pub fn run(settings: &Settings) -> Result<()> {
    LogChoice::of(settings).begin()?;
    descriptors::raise();
    let Place { listen, advertised } = settings.place(None)?;
    reach::check_free(listen)?;
    let backend = backend(settings)?;
    let security = settings.security_of_head()?;
    let (gate, renewal) = security.control_gate().map_err(tharsis::Error::from)?;
    let owner = if backend.is_shared() { security.owner().map_err(tharsis::Error::from)? } else { None };
    let options = ControlOptions { lease_ttl: settings.lease_ttl()?, cluster: None, owner };
    let runtime = network_runtime(settings.network_threads()?)?;
    runtime.block_on(async {
        let (mut interrupt, mut terminate) =
            (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
        let control = Control::start(backend.open().await?, options).await?;
        let listener = TcpListener::bind(listen).await.map_err(|cause| taken(listen, cause))?;
        let server = serve(control, listener, gate, Routes::default())?;
        let address = advertised_address(advertised.as_deref(), server.address());
        server.control().announce(address.clone(), None).await?;
        if let Some(renewal) = renewal {
            tokio::spawn(renewal.run());
        }
        output::line(&format!("Control store of cluster {} at {address}.", server.control().cluster()))?;
        // A journal is read by more people than may join.
        let token = if readiness::is_awaited() && settings.value(Key::Host).is_some() {
            " --token TOKEN, from tharsis token create".to_owned()
        } else {
            token::flag(settings)?
        };
        output::line(&format!("Join with a node:  tharsis start --address {address}{token}"))?;
        readiness::ready();
        tokio::select! {
            _told = interrupt.recv() => {}
            _told = terminate.recv() => {}
        }
        readiness::stopping();
        server.stop().await.context("the control store did not end well")
    })
}

/// The back end in which the control store keeps its tables.
///
/// # Errors
/// [`Error::BadValue`].
pub fn backend(settings: &Settings) -> Result<BackendChoice, Error> {
    if let Some(endpoints) = settings.get(Key::Etcd, parse::endpoints)? {
        let access = etcd_access(settings, &endpoints)?;
        let cluster = settings.text(Key::Cluster).to_owned();
        return Ok(BackendChoice::Etcd { endpoints, cluster, access });
    }
    Ok(match settings.value(Key::State) {
        Some(path) => BackendChoice::File(PathBuf::from(&path.text)),
        None => BackendChoice::Memory,
    })
}

/// Means by which the control store and its etcd know each other. Beyond loopback that takes TLS, unless it
/// is said that the network needs none.
fn etcd_access(settings: &Settings, endpoints: &[String]) -> Result<EtcdAccess, Error> {
    let path = |key| settings.value(key).map(|value| PathBuf::from(&value.text));
    let lacks = |key: Key, other: Key| {
        settings.bad(key, settings.text(key), format!("needs {} as well", other.flag()))
    };
    let ca = path(Key::EtcdCa);
    let identity = match (path(Key::EtcdCertificate), path(Key::EtcdKeyFile)) {
        (Some(certificate), Some(key)) => Some((certificate, key)),
        (Some(_), None) => return Err(lacks(Key::EtcdCertificate, Key::EtcdKeyFile)),
        (None, Some(_)) => return Err(lacks(Key::EtcdKeyFile, Key::EtcdCertificate)),
        (None, None) => None,
    };
    if identity.is_some() && ca.is_none() {
        return Err(lacks(Key::EtcdCertificate, Key::EtcdCa));
    }
    let user = match (settings.value(Key::EtcdUser), path(Key::EtcdPasswordFile)) {
        (Some(user), Some(file)) => Some((user.text.clone(), file)),
        (Some(_), None) => return Err(lacks(Key::EtcdUser, Key::EtcdPasswordFile)),
        (None, Some(_)) => return Err(lacks(Key::EtcdPasswordFile, Key::EtcdUser)),
        (None, None) => None,
    };
    let is_insecure_fine = settings.get(Key::EtcdInsecure, parse::switch)?.unwrap_or_default();
    for url in endpoints {
        let bad = |problem: &str| Err(settings.bad(Key::Etcd, settings.text(Key::Etcd), problem.to_owned()));
        if url.starts_with("https://") != ca.is_some() {
            return bad("servers with https:// need --etcd-ca, and --etcd-ca needs servers with https://");
        }
        if ca.is_none() && !is_insecure_fine && !parse::is_loopback_url(url) {
            return bad(
                "whoever reaches this etcd may change the tables: use https:// with --etcd-ca, or say \
                 --etcd-insecure if the network shuts others out",
            );
        }
    }
    Ok(EtcdAccess { ca, identity, user })
}

fn taken(listen: SocketAddr, cause: std::io::Error) -> anyhow::Error {
    if cause.kind() == std::io::ErrorKind::AddrInUse {
        return Refusal::AddressInUse { port: listen.port(), holder: reach::holder(listen.port()) }.into();
    }
    anyhow::Error::new(cause).context(format!("cannot listen at {listen}"))
}
