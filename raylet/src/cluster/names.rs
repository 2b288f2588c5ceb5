//! Names of actors and placement groups in the control store.

use super::ClusterHandle;
use crate::claim::claim;
use crate::names::nearest;
use prost::bytes::Bytes;
use tharsis_gcs::ControlClient;
use tharsis_protos::CallError;
use tharsis_protos::control::{ACTORS_NAMESPACE, GROUPS_NAMESPACE, KeyPage};
use tharsis_protos::handshake::{
    NAMES_PAGE_BYTES, NAMES_PAGE_MAX, NameAct, NameKey, NameKind, NameQuestion, Named,
};
use tharsis_types::{Failure, FailureKind, JobId};

/// Character between a namespace and a name in a key.
const SEPARATOR: char = '\0';

impl ClusterHandle {
    /// Finds or claims a name in the namespace of its job, or lists names. Blocks.
    ///
    /// # Errors
    /// `Disconnected` if the control store is away for long, `InvalidArgument` if it refuses.
    pub fn name(&self, question: NameQuestion) -> Result<Named, Failure> {
        let control = self.control.clone();
        let answer = self.tasks.ask(async move { answer(&control, question).await })?;
        answer.map_err(|error| {
            let kind = match error.refusal_code() {
                Some(_) => FailureKind::InvalidArgument,
                None => FailureKind::Disconnected,
            };
            Failure::new(kind, format!("the control store, for a name: {error}"))
        })
    }
}

async fn answer(control: &ControlClient, question: NameQuestion) -> Result<Named, CallError> {
    let prefix = format!("{}{SEPARATOR}", namespace_of(control, question.job).await?);
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
        NameAct::List { is_of_all, after } => {
            let prefix = if is_of_all { String::new() } else { prefix };
            return page(control, table, prefix, after).await;
        }
    };
    match found {
        Some(record) => Ok(Named::Is(record.to_vec())),
        None => {
            let page = control.kv_list(table, Bytes::from(prefix.clone().into_bytes()), Bytes::new(), 0);
            Ok(Named::Missing { nearest: nearest_of(&question.name, &prefix, &page.await?) })
        }
    }
}

/// The names that follow one, in all namespaces whose keys have the prefix.
async fn page(
    control: &ControlClient,
    table: &str,
    prefix: String,
    after: Option<NameKey>,
) -> Result<Named, CallError> {
    let after = after.map(|after| format!("{}{SEPARATOR}{}", after.namespace, after.name));
    let (prefix, after) = (Bytes::from(prefix), Bytes::from(after.unwrap_or_default()));
    let KeyPage { keys, mut more } = control.kv_list(table, prefix, after, NAMES_PAGE_MAX as u32).await?;
    let (mut names, mut bytes) = (Vec::new(), 0);
    for key in keys {
        if NAMES_PAGE_BYTES <= bytes {
            more = true;
            break;
        }
        let text = std::str::from_utf8(&key).ok().and_then(|key| key.split_once(SEPARATOR));
        let named = text.map(|(namespace, name)| NameKey { namespace: namespace.into(), name: name.into() });
        // It may have been removed since.
        if let (Some(named), Some(record)) = (named, control.kv_get(table, key).await?) {
            bytes += record.len();
            names.push((named, record.to_vec()));
        }
    }
    Ok(Named::Page { names, more })
}

async fn namespace_of(control: &ControlClient, job: JobId) -> Result<String, CallError> {
    let page = control.list_jobs(JobId(job.0.saturating_sub(1)), 1).await?;
    let found = page.jobs.into_iter().find(|info| info.id == job);
    Ok(found.map(|info| info.namespace).unwrap_or_default())
}

fn nearest_of(name: &str, prefix: &str, page: &KeyPage) -> Option<String> {
    let names = page.keys.iter().filter_map(|key| std::str::from_utf8(key).ok()?.strip_prefix(prefix));
    nearest(name, names)
}
