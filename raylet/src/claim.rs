//! Names in the control store that one of many gets, though answers may be lost.

use prost::bytes::Bytes;
use tharsis_gcs::ControlClient;
use tharsis_protos::CallError;

/// Attempts to claim a name whose answers are lost.
const CLAIMS_MAX: usize = 5;

/// Writes a record where there is none, or over the one that is known. Returns the one that is there instead.
///
/// # Errors
/// A refusal, or no answer to several attempts: then the record may be there, and be this one's.
pub async fn claim(
    control: &ControlClient,
    (table, key): (&str, &Bytes),
    record: &Bytes,
    over: Option<Bytes>,
) -> Result<Option<Bytes>, CallError> {
    let mut attempt = 0;
    loop {
        attempt += 1;
        let written = match &over {
            None => control.kv_put_if_absent(table, key.clone(), record.clone()).await,
            Some(old) => control.kv_replace(table, key.clone(), old.clone(), record.clone()).await,
        };
        match written {
            Ok(true) => return Ok(None),
            Ok(false) => {}
            Err(error) if error.refusal_code().is_some() || attempt == CLAIMS_MAX => return Err(error),
            // The answer was lost: whose record is there tells what happened.
            Err(_) => {}
        }
        match control.kv_get(table, key.clone()).await? {
            Some(there) if there == *record => return Ok(None),
            Some(there) if over.as_ref() != Some(&there) => return Ok(Some(there)),
            _ if attempt == CLAIMS_MAX => return Ok(over),
            _ => {}
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
    use std::time::Duration;
    use tharsis_gcs::{
        Answer, Backend, ClientOptions, Control, ControlOptions, Embedded, EmbeddedLimits, Op, Server,
        StoreLease, Txn, TxnResult, Watch, serve as serve_control,
    };
    use tharsis_protos::connection::{Credentials, Gate};
    use tharsis_protos::proof::Secret;
    use tonic::service::Routes;

    const TABLE: &str = "names";

    /// A store that does not answer so many of the next writes of values: it carries out some, and then loses
    /// others. It may hide all values.
    #[derive(Debug)]
    pub(crate) struct Store {
        inner: Embedded,
        carried_out: AtomicUsize,
        lost: AtomicUsize,
        hides: AtomicBool,
    }

    impl Default for Store {
        fn default() -> Self {
            let inner = Embedded::memory(EmbeddedLimits::default());
            let (carried_out, lost, hides) = Default::default();
            Self { inner, carried_out, lost, hides }
        }
    }

    impl Store {
        /// Leaves reads of values without an answer.
        pub(crate) fn hide_values(&self, hides: bool) {
            self.hides.store(hides, Ordering::SeqCst);
        }

        /// Leaves the next writes of values without an answer.
        pub(crate) fn fall_silent(&self, carried_out: usize, lost: usize) {
            self.carried_out.store(carried_out, Ordering::SeqCst);
            self.lost.store(lost, Ordering::SeqCst);
        }
    }

    fn takes_one(count: &AtomicUsize) -> bool {
        count.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1)).is_ok()
    }

    impl Backend for Store {
        fn txn(&self, txn: Txn) -> Answer<'_, TxnResult> {
            Box::pin(async move {
                let is_value = |key: &[u8]| key.starts_with(b"kv/");
                let writes = |op: &Op| matches!(op, Op::Put { key, .. } if is_value(key));
                let reads = |op: &Op| matches!(op, Op::Get(key) if is_value(key));
                let (writes, reads) = (txn.success.iter().any(writes), txn.success.iter().any(reads));
                if writes && takes_one(&self.carried_out) {
                    drop(self.inner.txn(txn).await);
                    return std::future::pending().await;
                }
                if writes && takes_one(&self.lost) || reads && self.hides.load(Ordering::SeqCst) {
                    return std::future::pending().await;
                }
                self.inner.txn(txn).await
            })
        }

        fn watch(&self, prefix: Vec<u8>, from_revision: u64) -> Answer<'_, Watch> {
            self.inner.watch(prefix, from_revision)
        }

        fn lease_grant(&self, ttl: Duration) -> Answer<'_, (StoreLease, Duration)> {
            self.inner.lease_grant(ttl)
        }

        fn lease_keep_alive(&self, lease: StoreLease) -> Answer<'_, ()> {
            self.inner.lease_keep_alive(lease)
        }

        fn lease_revoke(&self, lease: StoreLease) -> Answer<'_, ()> {
            self.inner.lease_revoke(lease)
        }

        fn close(&self) -> futures::future::BoxFuture<'_, ()> {
            self.inner.close()
        }

        fn place(&self) -> String {
            self.inner.place()
        }
    }

    /// A control store over a store, and a client that waits for no answer for long.
    pub(crate) async fn serve(store: impl Into<Arc<Store>>) -> (Server, ControlClient) {
        let own = Credentials::with_secret(Secret::from_bytes([1; 32]), None);
        let control = Control::start(store.into(), ControlOptions::default()).await.unwrap();
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let server =
            serve_control(control, listener, Gate::new(own.trust.clone()), Routes::default()).unwrap();
        let patience = Duration::from_secs(20);
        let options = ClientOptions { call_deadline: Duration::from_millis(400), patience };
        let address = server.address().to_string();
        let (client, _) = ControlClient::connect(&address, &own, options).await.unwrap();
        (server, client)
    }

    fn bytes(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    /// A name that was claimed is its claimer's, whichever answer was lost on the way.
    #[tokio::test]
    async fn a_claim_whose_answer_is_lost_is_known_by_its_record() {
        let store = Arc::new(Store::default());
        let (server, client) = serve(Arc::clone(&store)).await;
        for (key, carried_out, lost) in [("a", 0, 0), ("b", 1, 0), ("c", 0, 1), ("d", 2, 0), ("e", 0, 3)] {
            store.fall_silent(carried_out, lost);
            let (key, record) = (bytes(key), bytes("mine"));
            assert_eq!(claim(&client, (TABLE, &key), &record, None).await.unwrap(), None, "{key:?}");
            assert_eq!(client.kv_get(TABLE, key.clone()).await.unwrap(), Some(record.clone()));
            store.fall_silent(0, 0);
            let other = claim(&client, (TABLE, &key), &bytes("yours"), None).await.unwrap();
            assert_eq!(other, Some(record.clone()), "{key:?} is taken");
            // Over what is known, and not over anything else.
            store.fall_silent(carried_out, lost);
            let other = claim(&client, (TABLE, &key), &bytes("yours"), Some(bytes("else"))).await.unwrap();
            assert_eq!(other, Some(record.clone()), "{key:?} is another's");
            store.fall_silent(carried_out, lost);
            assert_eq!(claim(&client, (TABLE, &key), &bytes("yours"), Some(record)).await.unwrap(), None);
            assert_eq!(client.kv_get(TABLE, key).await.unwrap(), Some(bytes("yours")));
        }
        drop(server);
    }

    #[tokio::test]
    async fn of_two_that_claim_a_name_while_answers_are_lost_one_gets_it() {
        let store = Arc::new(Store::default());
        let (server, client) = serve(Arc::clone(&store)).await;
        for (key, carried_out, lost) in [("a", 1, 0), ("b", 2, 0), ("c", 1, 1), ("d", 0, 2)] {
            store.fall_silent(carried_out, lost);
            let (key, mine, yours) = (bytes(key), bytes("mine"), bytes("yours"));
            let (first, second) = tokio::join!(
                claim(&client, (TABLE, &key), &mine, None),
                claim(&client, (TABLE, &key), &yours, None),
            );
            match (first.unwrap(), second.unwrap()) {
                (None, Some(there)) => assert_eq!(there, mine),
                (Some(there), None) => assert_eq!(there, yours),
                other => panic!("{key:?}: {other:?}"),
            }
        }
        drop(server);
    }
}
