//! The store in an etcd cluster, which several control stores can share and which survives the loss of a
//! machine.
//!
//! All keys are under `/tharsis/<cluster>/`. Revisions are etcd's own, so they also count changes of other
//! users of the cluster. Leases are in whole seconds, rounded up; etcd has a lower bound of its own.
//!
//! A request that certainly had no effect is retried within its deadline (`etcd/attempts.rs`).
//!
//! An etcd that asks for a user gives a token for the password, which it forgets when it is started again,
//! or was not asked for minutes, or when its users change. Then a new one is fetched.
//!
//! Nothing here falls back to another store: an etcd that cannot be used is an error with its cause.
//!
//! A watch starts one revision earlier than requested, and that revision is filtered out. The reason:
//! compaction at revision R may drop a deletion made by R itself. A watch from R would miss it silently; a
//! watch from R - 1 is told that the history is gone.

mod attempts;

use crate::backend::{
    Answer, Backend, Compare, KeyValue, Op, Range, Response, StoreLease, Txn, TxnResult, Watch, WatchEvent,
    WatchItem, check_ttl,
};
use crate::error::{StoreError, chain};
use attempts::{Repeat, attempt, store_error};
use etcd_client as etcd;
use futures::StreamExt;
use futures::future::BoxFuture;
use std::collections::VecDeque;
use std::fmt;
use std::future::Future;
use std::time::Duration;
use tharsis_types::limits::MESSAGE_BYTES_MAX;
use tokio::sync::watch;
use tonic::transport::{Certificate, ClientTlsConfig, Endpoint, Identity};

/// The longest that a start may take, all servers together.
const CONNECT_DEADLINE: Duration = Duration::from_secs(8);
/// The longest that one server may take to accept a connection at the start.
const PROBE_DEADLINE: Duration = Duration::from_secs(3);
/// The longest that one operation may take.
const OPERATION_DEADLINE: Duration = Duration::from_secs(5);
/// A silent connection is probed at this interval, and closed if a probe is not answered within it.
const PROBE_INTERVAL: Duration = Duration::from_secs(5);

/// The etcd cluster, and the part of its keys that belongs to us.
#[derive(Clone, Debug)]
pub struct EtcdOptions {
    /// URLs of its servers: `http://host:port`, or `https://host:port` with [`EtcdOptions::tls`].
    pub endpoints: Vec<String>,
    /// Name of the cluster: letters, digits, dashes, dots and underscores.
    pub cluster: String,
    /// Name and password, if the cluster requires them.
    pub user: Option<EtcdUser>,
    /// Certificates, if it speaks TLS.
    pub tls: Option<EtcdTls>,
}

/// Name and password for an etcd that requires them.
#[derive(Clone)]
pub struct EtcdUser {
    /// The name.
    pub name: String,
    /// The password; appears in no log.
    pub password: String,
}

/// Certificates, each as PEM text.
#[derive(Clone)]
pub struct EtcdTls {
    /// Certificate of the authority that signed the servers' certificates.
    pub ca: String,
    /// Our own certificate and key, if the servers ask for one.
    pub identity: Option<(String, String)>,
}

/// A key space in an etcd cluster.
pub struct Etcd {
    client: etcd::Client,
    endpoints: Vec<String>,
    prefix: Vec<u8>,
    closed: watch::Sender<bool>,
}

impl Etcd {
    /// Connects to an etcd cluster and reads from it once.
    ///
    /// # Errors
    /// [`StoreError::Connect`] within ten seconds, with the cause per server.
    pub async fn connect(options: EtcdOptions) -> Result<Self, StoreError> {
        let failed = |cause: String| StoreError::Connect { endpoints: options.endpoints.clone(), cause };
        check_name(&options.cluster).map_err(failed)?;
        check_schemes(&options).map_err(failed)?;
        let opened = tokio::time::timeout(CONNECT_DEADLINE, open(&options)).await;
        let client = match opened {
            Ok(opened) => opened.map_err(failed)?,
            Err(_) => return Err(failed(format!("no answer within {} ms", CONNECT_DEADLINE.as_millis()))),
        };
        let prefix = format!("/tharsis/{}/", options.cluster).into_bytes();
        Ok(Self { client, endpoints: options.endpoints, prefix, closed: watch::Sender::new(false) })
    }

    async fn within<T, F>(
        &self,
        what: &'static str,
        repeat: Repeat,
        ask: impl Fn() -> F,
    ) -> Result<T, StoreError>
    where
        F: Future<Output = Result<T, etcd::Error>>,
    {
        if *self.closed.borrow() {
            return Err(StoreError::Closed);
        }
        let ask = || async {
            match ask().await {
                // Nothing was carried out. The client itself fetches a token only for one that is unknown.
                Err(error) if attempts::is_outdated_token(&error) => {
                    self.client.refresh_token().await?;
                    ask().await
                }
                other => other,
            }
        };
        attempt(what, OPERATION_DEADLINE, repeat, ask).await
    }

    fn outer(&self, key: &[u8]) -> Vec<u8> {
        [&self.prefix, key].concat()
    }

    fn compare(&self, compare: &Compare) -> etcd::Compare {
        let key = self.outer(compare.key());
        match compare {
            Compare::Absent(_) => etcd::Compare::version(key, etcd::CompareOp::Equal, 0),
            Compare::Value(_, value) => etcd::Compare::value(key, etcd::CompareOp::Equal, value.clone()),
            Compare::Version(_, version) => {
                etcd::Compare::version(key, etcd::CompareOp::Equal, signed(*version))
            }
        }
    }

    fn op(&self, op: &Op) -> etcd::TxnOp {
        match op {
            Op::Delete(key) => etcd::TxnOp::delete(self.outer(key), None),
            Op::Get(key) => etcd::TxnOp::get(self.outer(key), None),
            Op::Put { key, value, lease } => {
                let under = lease.map(|lease| etcd::PutOptions::new().with_lease(signed(lease.0)));
                etcd::TxnOp::put(self.outer(key), value.clone(), under)
            }
            Op::Range(range) => self.range(range),
        }
    }

    fn range(&self, range: &Range) -> etcd::TxnOp {
        let prefix = self.outer(&range.prefix);
        let end = after_prefix(&prefix);
        let start = match &range.after {
            // The first key after `after` is `after` with a zero byte.
            Some(after) if range.prefix <= *after => [self.outer(after), vec![0]].concat(),
            _ => prefix,
        };
        let limit = i64::try_from(range.limit).unwrap_or(i64::MAX);
        let mut options = etcd::GetOptions::new().with_range(end).with_limit(limit);
        if range.keys_only {
            options = options.with_keys_only();
        }
        etcd::TxnOp::get(start, Some(options))
    }

    fn entry(&self, kv: &etcd::KeyValue) -> KeyValue {
        KeyValue {
            key: kv.key().strip_prefix(self.prefix.as_slice()).unwrap_or(kv.key()).to_vec(),
            value: kv.value().to_vec(),
            version: unsigned(kv.version()),
            revision: unsigned(kv.mod_revision()),
            lease: (kv.lease() != 0).then(|| StoreLease(unsigned(kv.lease()))),
        }
    }

    fn response(&self, op: &Op, response: &etcd::TxnOpResponse) -> Response {
        match response {
            etcd::TxnOpResponse::Delete(deleted) => Response::Deleted { existed: 0 < deleted.deleted() },
            etcd::TxnOpResponse::Get(got) => {
                let mut entries = got.kvs().iter().map(|kv| self.entry(kv));
                match op {
                    Op::Range(_) => Response::Range { entries: entries.collect(), more: got.more() },
                    _ => Response::Found(entries.next()),
                }
            }
            etcd::TxnOpResponse::Put(_) | etcd::TxnOpResponse::Txn(_) => Response::Put,
        }
    }

    async fn run(&self, txn: Txn) -> Result<TxnResult, StoreError> {
        txn.check()?;
        let mut request = etcd::Txn::new()
            .when(txn.compare.iter().map(|compare| self.compare(compare)).collect::<Vec<_>>())
            .and_then(txn.success.iter().map(|op| self.op(op)).collect::<Vec<_>>());
        if !txn.failure.is_empty() {
            request = request.or_else(txn.failure.iter().map(|op| self.op(op)).collect::<Vec<_>>());
        }
        let only_reads = txn.success.iter().chain(&txn.failure).all(Op::is_read);
        let repeat = if only_reads { Repeat::Always } else { Repeat::Unsent };
        let ask = || {
            let mut kv = self.client.kv_client().max_decoding_message_size(4 * MESSAGE_BYTES_MAX);
            let request = request.clone();
            async move { kv.txn(request).await }
        };
        let done = match self.within("transaction", repeat, ask).await {
            Err(StoreError::LeaseNotFound { .. }) => {
                let lease =
                    txn.success.iter().chain(&txn.failure).find_map(Op::lease).map_or(0, |lease| lease.0);
                return Err(StoreError::LeaseNotFound { lease });
            }
            other => other?,
        };
        let ops = if done.succeeded() { &txn.success } else { &txn.failure };
        let responses =
            ops.iter().zip(done.op_responses()).map(|(op, found)| self.response(op, &found)).collect();
        let revision = done.header().map_or(0, |header| unsigned(header.revision()));
        Ok(TxnResult { succeeded: done.succeeded(), revision, responses })
    }

    async fn begin_watch(&self, prefix: Vec<u8>, from: u64) -> Result<Watch, StoreError> {
        let from = from.max(1);
        let start = signed((from - 1).max(1));
        let options = etcd::WatchOptions::new().with_prefix().with_start_revision(start);
        let ask = || {
            let (mut client, key, options) =
                (self.client.watch_client(), self.outer(&prefix), options.clone());
            async move { client.watch(key, Some(options)).await }
        };
        let stream = self.within("watch", Repeat::Always, ask).await?;
        let watcher = Watcher {
            stream,
            prefix_bytes: self.prefix.len(),
            from,
            queue: VecDeque::new(),
            closed: self.closed.subscribe(),
            done: false,
        };
        Ok(futures::stream::unfold(watcher, Watcher::next).boxed())
    }
}

impl Backend for Etcd {
    fn txn(&self, txn: Txn) -> Answer<'_, TxnResult> {
        Box::pin(self.run(txn))
    }

    fn watch(&self, prefix: Vec<u8>, from_revision: u64) -> Answer<'_, Watch> {
        Box::pin(self.begin_watch(prefix, from_revision))
    }

    fn lease_grant(&self, ttl: Duration) -> Answer<'_, (StoreLease, Duration)> {
        Box::pin(async move {
            check_ttl(ttl)?;
            let seconds = i64::try_from(ttl.as_millis().div_ceil(1000)).unwrap_or(i64::MAX);
            let ask = || {
                let mut client = self.client.lease_client();
                async move { client.grant(seconds, None).await }
            };
            let granted = self.within("grant of a lease", Repeat::Unsent, ask).await?;
            Ok((StoreLease(unsigned(granted.id())), Duration::from_secs(unsigned(granted.ttl()))))
        })
    }

    fn lease_keep_alive(&self, lease: StoreLease) -> Answer<'_, ()> {
        Box::pin(async move {
            let ask = || {
                let mut client = self.client.lease_client();
                async move { client.keep_alive(signed(lease.0)).await }
            };
            match self.within("renewal of a lease", Repeat::Always, ask).await {
                Err(StoreError::LeaseNotFound { .. }) => Err(StoreError::LeaseNotFound { lease: lease.0 }),
                other => other.map(drop),
            }
        })
    }

    fn lease_revoke(&self, lease: StoreLease) -> Answer<'_, ()> {
        Box::pin(async move {
            let ask = || {
                let mut client = self.client.lease_client();
                async move { client.revoke(signed(lease.0)).await }
            };
            match self.within("end of a lease", Repeat::Unsent, ask).await {
                Err(StoreError::LeaseNotFound { .. }) => Err(StoreError::LeaseNotFound { lease: lease.0 }),
                other => other.map(drop),
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        self.closed.send_replace(true);
        Box::pin(std::future::ready(()))
    }

    fn place(&self) -> String {
        format!("{}{}", self.endpoints.join(","), String::from_utf8_lossy(&self.prefix))
    }
}

impl fmt::Debug for Etcd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Etcd").field("place", &self.place()).finish_non_exhaustive()
    }
}

impl fmt::Debug for EtcdUser {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdUser").field("name", &self.name).finish_non_exhaustive()
    }
}

impl fmt::Debug for EtcdTls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EtcdTls").field("identity", &self.identity.is_some()).finish_non_exhaustive()
    }
}

struct Watcher {
    stream: etcd::WatchStream,
    prefix_bytes: usize,
    from: u64,
    queue: VecDeque<WatchItem>,
    closed: watch::Receiver<bool>,
    done: bool,
}

impl Watcher {
    async fn next(mut self) -> Option<(Result<WatchItem, StoreError>, Self)> {
        loop {
            if let Some(item) = self.queue.pop_front() {
                return Some((Ok(item), self));
            }
            if self.done {
                return None;
            }
            let message = tokio::select! {
                biased;
                _ = self.closed.wait_for(|closed| *closed) => return None,
                message = self.stream.message() => message,
            };
            match message {
                Ok(Some(message)) => {
                    if let Err(error) = self.take(&message) {
                        self.done = true;
                        return Some((Err(error), self));
                    }
                }
                Ok(None) => return None,
                Err(error) => {
                    self.done = true;
                    return Some((Err(store_error("watch", &error)), self));
                }
            }
        }
    }

    /// Queues the items of a message of etcd: changes of whole revisions, or the end.
    fn take(&mut self, message: &etcd::WatchResponse) -> Result<(), StoreError> {
        if 0 < message.compact_revision() {
            self.done = true;
            self.queue.push_back(WatchItem::Compacted { at: unsigned(message.compact_revision()) });
            return Ok(());
        }
        if message.canceled() {
            let cause = format!("etcd ended the watch: {}", message.cancel_reason());
            return Err(StoreError::Unavailable { what: "watch", cause });
        }
        for event in message.events() {
            let Some(kv) = event.kv() else { continue };
            let revision = unsigned(kv.mod_revision());
            if revision < self.from {
                continue;
            }
            let change = self.change(event.event_type(), kv);
            match self.queue.back_mut() {
                Some(WatchItem::Changed { revision: last, events }) if *last == revision => {
                    events.push(change)
                }
                _ => self.queue.push_back(WatchItem::Changed { revision, events: vec![change] }),
            }
        }
        Ok(())
    }

    fn change(&self, kind: etcd::EventType, kv: &etcd::KeyValue) -> WatchEvent {
        let key = kv.key().get(self.prefix_bytes..).unwrap_or_default().to_vec();
        match kind {
            etcd::EventType::Delete => WatchEvent::Deleted(key),
            etcd::EventType::Put => WatchEvent::Put(KeyValue {
                key,
                value: kv.value().to_vec(),
                version: unsigned(kv.version()),
                revision: unsigned(kv.mod_revision()),
                lease: (kv.lease() != 0).then(|| StoreLease(unsigned(kv.lease()))),
            }),
        }
    }
}

/// Finds a server that accepts connections, then opens the client. The client alone would wait for dead
/// servers without an error that tells the cause.
async fn open(options: &EtcdOptions) -> Result<etcd::Client, String> {
    let probes = options.endpoints.iter().map(|endpoint| probe(endpoint, options.tls.as_ref()));
    let outcomes = futures::future::join_all(probes).await;
    if outcomes.iter().all(Result::is_err) {
        let causes: Vec<String> = outcomes.into_iter().filter_map(Result::err).collect();
        return Err(if causes.is_empty() { "no endpoint was given".to_owned() } else { causes.join("; ") });
    }
    let mut settings = etcd::ConnectOptions::new()
        .with_connect_timeout(PROBE_DEADLINE)
        .with_keep_alive(PROBE_INTERVAL, PROBE_INTERVAL)
        .with_keep_alive_while_idle(true)
        .with_require_leader(true)
        .with_auto_token_refresh(true);
    if let Some(user) = &options.user {
        settings = settings.with_user(&user.name, &user.password);
    }
    if let Some(tls) = &options.tls {
        settings = settings.with_tls(certificates(tls));
    }
    let ask = async || {
        let client = etcd::Client::connect(&options.endpoints, Some(settings.clone())).await?;
        client.kv_client().get(format!("/tharsis/{}/", options.cluster), None).await?;
        Ok(client)
    };
    attempt("first read", OPERATION_DEADLINE, Repeat::Always, ask).await.map_err(|error| error.to_string())
}

/// Connects to one server and disconnects; the error has its name and the cause.
async fn probe(url: &str, tls: Option<&EtcdTls>) -> Result<(), String> {
    let failed = |error: tonic::transport::Error| format!("{url}: {}", chain(&error));
    let mut endpoint = Endpoint::from_shared(url.to_owned()).map_err(failed)?.connect_timeout(PROBE_DEADLINE);
    if let Some(tls) = tls {
        endpoint = endpoint.tls_config(certificates(tls)).map_err(failed)?;
    }
    match tokio::time::timeout(PROBE_DEADLINE, endpoint.connect()).await {
        Ok(connected) => connected.map(drop).map_err(failed),
        Err(_) => Err(format!("{url}: no connection within {} ms", PROBE_DEADLINE.as_millis())),
    }
}

fn certificates(tls: &EtcdTls) -> ClientTlsConfig {
    let config = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(&tls.ca));
    match &tls.identity {
        Some((certificate, key)) => config.identity(Identity::from_pem(certificate, key)),
        None => config,
    }
}

fn check_name(cluster: &str) -> Result<(), String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    if (1..=64).contains(&cluster.len()) && cluster.bytes().all(plain) {
        return Ok(());
    }
    Err(format!("cluster name {cluster:?} must be 1 to 64 letters, digits, dashes, dots and underscores"))
}

fn check_schemes(options: &EtcdOptions) -> Result<(), String> {
    let wanted = if options.tls.is_some() { "https://" } else { "http://" };
    let wrong = options.endpoints.iter().find(|endpoint| !endpoint.starts_with(wanted));
    wrong.map_or(Ok(()), |endpoint| {
        let reason = if options.tls.is_some() { "with certificates" } else { "without certificates" };
        Err(format!("{endpoint}: {reason}, the endpoint must begin with {wanted}"))
    })
}

/// The first key after all keys that begin with `prefix`.
fn after_prefix(prefix: &[u8]) -> Vec<u8> {
    let mut end = prefix.to_vec();
    while let Some(last) = end.pop() {
        if last < u8::MAX {
            end.push(last + 1);
            return end;
        }
    }
    // All bytes are 0xff: etcd's notation for "to the end".
    vec![0]
}

/// etcd counts with signed numbers that are never negative, except that leases may use all bits.
fn signed(number: u64) -> i64 {
    number.cast_signed()
}

fn unsigned(number: i64) -> u64 {
    number.cast_unsigned()
}
