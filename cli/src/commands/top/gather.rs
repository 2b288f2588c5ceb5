//! Questions of `tharsis top`: status, jobs, queued tasks and runs of the node of this machine, and the runs
//! of the other nodes that it knows.

use super::sample::{Counted, Sample};
use crate::commands;
use crate::reach;
use crate::settings::Settings;
use anyhow::Result;
use futures::StreamExt;
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tharsis::observe;
use tharsis_protos::connection::Credentials;
use tharsis_protos::handshake::Question;
use tharsis_protos::listing::{Filter, Listing, Table};
use tharsis_protos::peer;
use tharsis_protos::runs::RunQuery;
use tharsis_types::NodeId;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The longest time that another node may take, and be silent.
const CALL_WAIT: Duration = Duration::from_secs(2);
/// Time for which credentials are used: those of the head's machine are good for an hour.
const CREDENTIALS_KEPT: Duration = Duration::from_secs(300);
/// Time after which credentials are looked for again that were not there.
const CREDENTIALS_AGAIN: Duration = Duration::from_secs(10);

/// Asks nodes, again and again.
pub struct Gatherer {
    settings: Settings,
    /// Time over which rates are measured.
    window: Duration,
    credentials: Option<(Instant, Result<Credentials, String>)>,
}

impl Gatherer {
    /// Asks the node that the settings name.
    pub fn new(settings: Settings, window: Duration) -> Self {
        Self { settings, window, credentials: None }
    }

    /// Asks all nodes at the same time, the one of this machine first.
    ///
    /// # Errors
    /// If that one does not answer.
    pub async fn sample(&mut self) -> Result<Sample> {
        let until = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let since = unix_ns(until.saturating_sub(self.window));
        let query = RunQuery { since_unix_ns: since, ..RunQuery::default() };
        let empty = Counted::new(since, unix_ns(until));
        let (socket, counted) = (self.settings.socket(), empty.clone());
        let own = tokio::task::spawn_blocking(move || ask_own(&socket, query, counted));
        let mut sample = own.await??;
        let own_node = sample.report.node;
        let others = sample.report.nodes.iter().filter(|row| row.node != own_node);
        let others: Vec<(u64, String)> = others.map(|row| (row.node, row.address.clone())).collect();
        if others.is_empty() {
            return Ok(sample);
        }
        let credentials = self.credentials(&sample.report.control);
        let mut asking = JoinSet::new();
        for (node, address) in others {
            let (own, counted) = (credentials.clone(), empty.clone());
            asking.spawn(async move { (node, ask_other(node, address, own, query, counted).await) });
        }
        while let Some(told) = asking.join_next().await {
            let (node, counted) = told?;
            sample.runs.insert(node, counted);
        }
        Ok(sample)
    }

    fn credentials(&mut self, control: &str) -> Result<Credentials, String> {
        if let Some((since, told)) = &self.credentials {
            let kept = if told.is_ok() { CREDENTIALS_KEPT } else { CREDENTIALS_AGAIN };
            if since.elapsed() < kept {
                return told.clone();
            }
        }
        let told = reach::operator(control, &self.settings).map_err(|error| format!("{error:#}"));
        self.credentials = Some((Instant::now(), told.clone()));
        told
    }
}

fn unix_ns(since_1970: Duration) -> u64 {
    u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX)
}

fn ask_own(socket: &Path, query: RunQuery, mut counted: Counted) -> Result<Sample> {
    let report = commands::ask(socket, Question::Status)?;
    let list = |listing| observe::list(socket, listing).map_err(commands::unanswered);
    let jobs = list(Listing::Jobs)?;
    let queued = if report.pending.is_empty() {
        Table::default()
    } else {
        let filter = Filter { column: "state".to_owned(), is_equal: true, value: "queued".to_owned() };
        list(Listing::Tasks(vec![filter]))?
    };
    let told = observe::runs(socket, query, |batch| counted.take(&batch));
    let counted = told.map(|()| counted).map_err(|error| error.failure().message.to_string());
    let runs = [(report.node, counted)].into();
    Ok(Sample { report, jobs, queued, runs })
}

async fn ask_other(
    node: u64,
    address: String,
    own: Result<Credentials, String>,
    query: RunQuery,
    mut counted: Counted,
) -> Result<Counted, String> {
    if address.is_empty() {
        return Err("its address is not known".to_owned());
    }
    let own = own?;
    let asked = peer::runs(address, NodeId(node), &own, query, CALL_WAIT).await;
    let mut batches = asked.map_err(|error| error.to_string())?;
    loop {
        match timeout(CALL_WAIT, batches.next()).await {
            Ok(Some(Ok(batch))) => {
                if !counted.take(&batch) {
                    return Ok(counted);
                }
            }
            Ok(Some(Err(error))) => return Err(error.to_string()),
            Ok(None) => return Err("the node ended".to_owned()),
            Err(_) => return Err(format!("it was silent for {} s", CALL_WAIT.as_secs())),
        }
    }
}
