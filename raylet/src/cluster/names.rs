//! Names of actors and placement groups in the control store.
//!
//! A name belongs to the node that owns what has it, and is of no use when that has ended. So the node notes
//! the names that were claimed here, looks now and then which of their owners have ended, and removes these
//! names, all of them when it leaves. A name that another one has taken over meanwhile has another record and
//! stays. Names of a node that was killed are removed by the control store that wrote them.

use super::ClusterHandle;
use crate::claim::claim;
use crate::inbox::{Inbox, Input};
use crate::names::{COMPARED_MAX, nearest};
use crate::registry::lock;
use futures::StreamExt;
use prost::bytes::Bytes;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tharsis_gcs::ControlClient;
use tharsis_protos::CallError;
use tharsis_protos::control::{ACTORS_NAMESPACE, GROUPS_NAMESPACE, KeyPage};
use tharsis_protos::handshake::{
    NAMES_PAGE_BYTES, NAMES_PAGE_MAX, NameAct, NameKey, NameKind, NameQuestion, Named,
};
use tharsis_types::{Failure, FailureKind, JobId, ObjectId};
use tokio::sync::oneshot;
use tokio::time::{Instant, sleep};

/// Between two looks for names of what has ended.
const LOOK_EVERY: Duration = Duration::from_secs(10);
/// The time for which what has a name may be unknown: its constructor is submitted after the claim.
const SUBMIT_WAIT: Duration = Duration::from_secs(30);
/// Names that are removed at a time.
const REMOVALS_MAX: usize = 32;

/// The names that were claimed at this node.
#[derive(Default)]
pub(super) struct ClaimedNames(Mutex<Vec<ClaimedName>>);

struct ClaimedName {
    table: &'static str,
    key: Bytes,
    record: Bytes,
    object: ObjectId,
    at: Instant,
}

impl ClaimedNames {
    fn note(&self, name: ClaimedName) {
        lock(&self.0).push(name);
    }

    /// Removes names of what has ended, for ever.
    pub(super) async fn free_ended(&self, control: &ControlClient, inbox: &Inbox) {
        loop {
            sleep(LOOK_EVERY).await;
            self.free_older(SUBMIT_WAIT, control, inbox).await;
        }
    }

    async fn free_older(&self, age: Duration, control: &ControlClient, inbox: &Inbox) {
        let now = Instant::now();
        let claimed = std::mem::take(&mut *lock(&self.0));
        let (old, new): (Vec<_>, Vec<_>) =
            claimed.into_iter().partition(|name| age <= now.saturating_duration_since(name.at));
        lock(&self.0).extend(new);
        if old.is_empty() {
            return;
        }
        let (reply, answer) = oneshot::channel();
        inbox.put(Input::AreOver { objects: old.iter().map(|name| name.object).collect(), reply });
        // The loop has ended if it does not answer: the node leaves.
        let Ok(are_over) = answer.await else { return lock(&self.0).extend(old) };
        let (over, there): (Vec<_>, Vec<_>) =
            old.into_iter().zip(are_over).partition(|(_, is_over)| *is_over);
        lock(&self.0).extend(there.into_iter().map(|(name, _)| name));
        self.remove(control, over.into_iter().map(|(name, _)| name).collect()).await;
    }

    /// Removes all names: the node leaves, and what has them ends with it.
    pub(super) async fn remove_all(&self, control: &ControlClient) {
        let all = std::mem::take(&mut *lock(&self.0));
        self.remove(control, all).await;
    }

    async fn remove(&self, control: &ControlClient, names: Vec<ClaimedName>) {
        let removals = futures::stream::iter(names).map(|name| async move {
            let ClaimedName { table, key, record, .. } = &name;
            let removed = control.kv_remove(table, key.clone(), record.clone()).await;
            removed.err().map(|error| (name, error))
        });
        let mut removals = removals.buffer_unordered(REMOVALS_MAX);
        while let Some(left) = removals.next().await {
            if let Some((name, error)) = left {
                tracing::debug!(%error, "the name of what has ended is removed later");
                self.note(name);
            }
        }
    }
}

/// Jobs whose namespaces are remembered.
const NAMESPACES_MAX: usize = 1024;

/// Character between a namespace and a name in a key.
const SEPARATOR: char = '\0';

impl ClusterHandle {
    /// Finds or claims a name in the namespace of its job, or lists names. Blocks.
    ///
    /// # Errors
    /// `Disconnected` if the control store is away for long, `InvalidArgument` if it refuses.
    pub fn name(&self, question: NameQuestion) -> Result<Named, Failure> {
        let control = self.control.clone();
        let (names, namespaces) = (Arc::clone(&self.names), Arc::clone(&self.namespaces));
        let answer = self.tasks.ask(async move { answer(&control, &names, &namespaces, question).await })?;
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
    names: &ClaimedNames,
    namespaces: &Namespaces,
    question: NameQuestion,
) -> Result<Named, CallError> {
    let prefix = format!("{}{SEPARATOR}", namespaces.of(control, question.job).await?);
    let key = Bytes::from(format!("{prefix}{}", question.name).into_bytes());
    let table = match question.kind {
        NameKind::Actor => ACTORS_NAMESPACE,
        NameKind::Group => GROUPS_NAMESPACE,
    };
    let found = match question.act {
        NameAct::Find => control.kv_get(table, key).await?,
        NameAct::Claim { record, object, over } => {
            let (record, over) = (Bytes::from(record), over.map(Bytes::from));
            let claimed = claim_over(control, (table, &key), &record, over).await;
            // After an error the record may be there all the same.
            if !matches!(claimed, Ok(Some(_))) {
                names.note(ClaimedName { table, key, record, object, at: Instant::now() });
            }
            match claimed? {
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
            let from = Bytes::from(prefix.clone().into_bytes());
            let page = control.kv_list(table, from, Bytes::new(), COMPARED_MAX as u32);
            Ok(Named::Missing { nearest: nearest_of(&question.name, &prefix, &page.await?) })
        }
    }
}

/// Claims a name over the record that is known, or where there is none any more: the names of what has ended
/// are removed at any time, also between a look at one and the claim over it.
async fn claim_over(
    control: &ControlClient,
    at: (&str, &Bytes),
    record: &Bytes,
    over: Option<Bytes>,
) -> Result<Option<Bytes>, CallError> {
    let there = claim(control, at, record, over.clone()).await?;
    if there.is_some() && there == over {
        return claim(control, at, record, None).await;
    }
    Ok(there)
}

/// The names that follow one, in all namespaces whose keys have the prefix.
async fn page(
    control: &ControlClient,
    table: &str,
    prefix: String,
    after: Option<NameKey>,
) -> Result<Named, CallError> {
    let after = after.map(|after| format!("{}{SEPARATOR}{}", after.namespace, after.name));
    let (prefix, mut after) = (Bytes::from(prefix), Bytes::from(after.unwrap_or_default()));
    let (mut names, mut bytes) = (Vec::new(), 0);
    loop {
        let limit = NAMES_PAGE_MAX as u32;
        let KeyPage { keys, more } = control.kv_list(table, prefix.clone(), after.clone(), limit).await?;
        let last = keys.last().cloned();
        for key in keys {
            if NAMES_PAGE_BYTES <= bytes {
                return Ok(Named::Page { names, more: true });
            }
            let text = std::str::from_utf8(&key).ok().and_then(|key| key.split_once(SEPARATOR));
            let named = text.map(|(space, name)| NameKey { namespace: space.into(), name: name.into() });
            // It may have been removed since.
            if let (Some(named), Some(record)) = (named, control.kv_get(table, key).await?) {
                bytes += record.len();
                names.push((named, record.to_vec()));
            }
        }
        match last {
            // Whoever asks goes on after the last name of the page, so a page that is not the last has one.
            Some(last) if more && names.is_empty() => after = last,
            _ => return Ok(Named::Page { names, more }),
        }
    }
}

fn nearest_of(name: &str, prefix: &str, page: &KeyPage) -> Option<String> {
    let names = page.keys.iter().filter_map(|key| std::str::from_utf8(key).ok()?.strip_prefix(prefix));
    nearest(name, names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::claim::tests::{Store, serve};
    use tharsis_object_store::{BellBoard, Segment, bell::BELL_BOARD_BYTES};
    use tharsis_types::TaskId;

    #[tokio::test]
    async fn a_list_goes_on_behind_keys_that_are_no_names() {
        let (server, control) = serve(Store::default()).await;
        let put = async |key: String| {
            control.kv_put(ACTORS_NAMESPACE, Bytes::from(key), Bytes::from("record")).await.unwrap();
        };
        for number in 0..=NAMES_PAGE_MAX {
            put(format!("{number:04}")).await;
        }
        put(format!("z{SEPARATOR}name")).await;
        let listed = page(&control, ACTORS_NAMESPACE, String::new(), None).await.unwrap();
        let Named::Page { names, more } = listed else { panic!("no page") };
        let named: Vec<_> = names.into_iter().map(|(key, _)| key.name).collect();
        assert_eq!((named, more), (vec!["name".to_owned()], false));
        server.stop().await.unwrap();
    }

    #[tokio::test]
    async fn a_name_whose_known_record_was_removed_meanwhile_is_claimed() {
        let (server, control) = serve(Store::default()).await;
        let (key, [gone, mine, yours]) = (Bytes::from("a"), ["gone", "mine", "yours"].map(Bytes::from));
        let at = (ACTORS_NAMESPACE, &key);
        let other = claim_over(&control, at, &mine, Some(gone.clone())).await.unwrap();
        assert_eq!(other, None, "nothing is there");
        let other = claim_over(&control, at, &yours, Some(gone)).await.unwrap();
        assert_eq!(other.as_ref(), Some(&mine), "it is taken again");
        assert_eq!(claim_over(&control, at, &yours, Some(mine)).await.unwrap(), None, "over what is there");
        server.stop().await.unwrap();
    }

    #[tokio::test]
    async fn names_of_what_has_ended_are_removed_and_those_that_others_took_over_stay() {
        let (server, control) = serve(Store::default()).await;
        let (names, table) = (ClaimedNames::default(), ACTORS_NAMESPACE);
        let object = |number| ObjectId::output(TaskId::root(JobId(1)).child(number), 0);
        let claim = async |number: u64, record: &'static [u8]| {
            let (key, record) = (Bytes::from(number.to_le_bytes().to_vec()), Bytes::from_static(record));
            control.kv_put(table, key.clone(), record.clone()).await.unwrap();
            names.note(ClaimedName { table, key, record, object: object(number), at: Instant::now() });
        };
        for number in 1..=4 {
            claim(number, b"first").await;
        }
        let there = async || -> Vec<u8> {
            let page = control.kv_list(table, Bytes::new(), Bytes::new(), 0).await.unwrap();
            page.keys.iter().map(|key| key[0]).collect()
        };
        let taken_over = Bytes::from(2_u64.to_le_bytes().to_vec());
        control.kv_put(table, taken_over, Bytes::from_static(b"second")).await.unwrap();

        let segment = Arc::new(Segment::anonymous(BELL_BOARD_BYTES).unwrap());
        let inbox = Inbox::new(BellBoard::at(&segment, 0).unwrap());
        // The loop knows that 1 and 2 have ended.
        let free = async |age| {
            let answer = async {
                loop {
                    if let Some(Input::AreOver { objects, reply }) = inbox.take() {
                        let over = [object(1), object(2)];
                        reply.send(objects.iter().map(|object| over.contains(object)).collect()).unwrap();
                    }
                    tokio::task::yield_now().await;
                }
            };
            tokio::select! { () = names.free_older(age, &control, &inbox) => {}, () = answer => {} }
        };
        free(SUBMIT_WAIT).await;
        assert_eq!(there().await, [1, 2, 3, 4], "they may not be submitted yet");
        free(Duration::ZERO).await;
        assert_eq!(there().await, [2, 3, 4]);
        assert_eq!(lock(&names.0).len(), 2, "those that live are looked at again");
        names.remove_all(&control).await;
        assert_eq!(there().await, [2], "the node leaves");
        server.stop().await.unwrap();
    }
}
