//! Names of actors and placement groups in the control store.

use super::ClusterHandle;
use crate::claim::claim;
use crate::names::{COMPARED_MAX, nearest};
use crate::registry::lock;
use prost::bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tharsis_gcs::ControlClient;
use tharsis_protos::CallError;
use tharsis_protos::control::{ACTORS_NAMESPACE, GROUPS_NAMESPACE, KeyPage};
use tharsis_protos::handshake::{NameAct, NameKind, NameQuestion, Named};
use tharsis_types::{Failure, FailureKind, JobId};

/// Jobs whose namespaces are remembered.
const NAMESPACES_MAX: usize = 1024;

impl ClusterHandle {
    /// Finds or claims a name in the namespace of its job. Blocks.
    ///
    /// # Errors
    /// `Disconnected` if the control store is away for long, `InvalidArgument` if it refuses.
    pub fn name(&self, question: NameQuestion) -> Result<Named, Failure> {
        let (control, namespaces) = (self.control.clone(), Arc::clone(&self.namespaces));
        let answer = self.tasks.ask(async move { answer(&control, &namespaces, question).await })?;
        answer.map_err(|error| {
            let kind = match error.refusal_code() {
                Some(_) => FailureKind::InvalidArgument,
                None => FailureKind::Disconnected,
            };
            Failure::new(kind, format!("the control store, for a name: {error}"))
        })
    }
}

/// Namespaces of jobs that have asked for names. A job has the same one for its life.
#[derive(Debug, Default)]
pub(super) struct Namespaces(Mutex<HashMap<JobId, String>>);

impl Namespaces {
    async fn of(&self, control: &ControlClient, job: JobId) -> Result<String, CallError> {
        if let Some(known) = lock(&self.0).get(&job) {
            return Ok(known.clone());
        }
        let page = control.list_jobs(JobId(job.0.saturating_sub(1)), 1).await?;
        let Some(found) = page.jobs.into_iter().find(|info| info.id == job) else { return Ok(String::new()) };
        let mut known = lock(&self.0);
        if NAMESPACES_MAX <= known.len() {
            known.clear();
        }
        known.insert(job, found.namespace.clone());
        Ok(found.namespace)
    }
}

async fn answer(
    control: &ControlClient,
    namespaces: &Namespaces,
    question: NameQuestion,
) -> Result<Named, CallError> {
    let prefix = format!("{}\0", namespaces.of(control, question.job).await?);
    let key = Bytes::from(format!("{prefix}{}", question.name).into_bytes());
    let table = match question.kind {
        NameKind::Actor => ACTORS_NAMESPACE,
        NameKind::Group => GROUPS_NAMESPACE,
    };
    let found = match question.act {
        NameAct::Find => control.kv_get(table, key).await?,
        NameAct::Claim { record, over } => {
            let (record, over) = (Bytes::from(record), over.map(Bytes::from));
            match claim(control, (table, &key), &record, over).await? {
                None => return Ok(Named::Claimed),
                there => there,
            }
        }
    };
    match found {
        Some(record) => Ok(Named::Is(record.to_vec())),
        None => {
            let from = Bytes::from(prefix.clone().into_bytes());
            let page = control.kv_list(table, from, Bytes::new(), COMPARED_MAX as u32);
            Ok(Named::Missing { nearest: nearest_of(&question.name, &prefix, &page.await?) })
        }
    }
}

fn nearest_of(name: &str, prefix: &str, page: &KeyPage) -> Option<String> {
    let names = page.keys.iter().filter_map(|key| std::str::from_utf8(key).ok()?.strip_prefix(prefix));
    nearest(name, names)
}
