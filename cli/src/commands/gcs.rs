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
use tharsis_gcs::{Control, ControlOptions, serve};
use tharsis_raylet::cluster::{advertised_address, network_runtime};
use tharsis_raylet::descriptors;
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
    let (gate, renewal) = settings.security_of_head()?.control_gate().map_err(tharsis::Error::from)?;
    let options = ControlOptions { lease_ttl: settings.lease_ttl()?, cluster: None };
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
        output::line(&format!(
            "Join with a node:  tharsis start --address {address}{}",
            token::flag(settings)?
        ))?;
        tokio::select! {
            _told = interrupt.recv() => {}
            _told = terminate.recv() => {}
        }
        server.stop().await.context("the control store did not end well")
    })
}

/// The back end in which the control store keeps its tables.
///
/// # Errors
/// [`Error::BadValue`].
pub fn backend(settings: &Settings) -> Result<BackendChoice, Error> {
    if let Some(endpoints) = settings.get(Key::Etcd, parse::endpoints)? {
        return Ok(BackendChoice::Etcd { endpoints, cluster: settings.text(Key::Cluster).to_owned() });
    }
    Ok(match settings.value(Key::State) {
        Some(path) => BackendChoice::File(PathBuf::from(&path.text)),
        None => BackendChoice::Memory,
    })
}

fn taken(listen: SocketAddr, cause: std::io::Error) -> anyhow::Error {
    if cause.kind() == std::io::ErrorKind::AddrInUse {
        return Refusal::AddressInUse { port: listen.port(), holder: reach::holder(listen.port()) }.into();
    }
    anyhow::Error::new(cause).context(format!("cannot listen at {listen}"))
}
