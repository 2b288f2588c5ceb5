//! Tests of the records of submitted programs.

use super::*;
use crate::claim::tests::{Store, serve as serve_store};
use tharsis_gcs::{ClientOptions, Control, ControlOptions, Embedded, EmbeddedLimits, serve};
use tharsis_object_store::bell::BELL_BOARD_BYTES;
use tharsis_object_store::{BellBoard, Segment};
use tharsis_protos::connection::{Credentials, Gate};
use tharsis_protos::proof::Secret;
use tharsis_types::Resources;
use tonic::service::Routes;

fn record(node: u64, state: State) -> Submission {
    Submission {
        name: "nightly".to_owned(),
        words: Vec::new(),
        folder: String::new(),
        node: NodeId(node).to_string(),
        host: String::new(),
        socket: String::new(),
        state,
        pid: None,
        submitted_unix_ms: 0,
        ended_unix_ms: None,
        status: None,
        signal: None,
    }
}

/// Node 1 was declared dead while it was starting its program, and node 2 took the name over.
#[tokio::test]
async fn a_record_is_changed_and_removed_only_by_the_one_who_wrote_it() {
    let own = Credentials::with_secret(Secret::from_bytes([1; 32]), None);
    let tables = Arc::new(Embedded::memory(EmbeddedLimits::default()));
    let control = Control::start(tables, ControlOptions::default()).await.unwrap();
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let server = serve(control, listener, Gate::new(own.trust.clone()), Routes::default()).unwrap();
    let address = server.address().to_string();
    let (client, _) = ControlClient::connect(&address, &own, ClientOptions::default()).await.unwrap();
    let there = async |claimed: &Claimed| client.kv_get(NAMESPACE, claimed.key.clone()).await.unwrap();
    let running = |node| json(&record(node, State::Running)).unwrap();
    let [first, second] = [1, 2].map(|node| Claimed::new(&record(node, State::Starting)).unwrap());

    assert!(claim_name(&client, &first.key, &first.stored).await.unwrap());
    assert!(claim_name(&client, &second.key, &second.stored).await.unwrap(), "node 1 is no member");
    let name = (NAMESPACE, &first.key);
    let other = claim(&client, name, &running(1), Some(first.stored.clone())).await.unwrap();
    assert_eq!(other.as_ref(), Some(&second.stored), "node 1 hears that the name is not its own");
    first.remove(&client).await.unwrap();
    assert_eq!(there(&second).await.as_ref(), Some(&second.stored));

    assert_eq!(claim(&client, name, &running(2), Some(second.stored.clone())).await.unwrap(), None);
    second.remove(&client).await.unwrap();
    assert_eq!(there(&second).await, Some(running(2)), "it runs");
    client.kv_put(NAMESPACE, second.key.clone(), second.stored.clone()).await.unwrap();
    second.remove(&client).await.unwrap();
    assert_eq!(there(&second).await, None);
    // A removal that was broken off goes on.
    client.kv_put(NAMESPACE, second.key.clone(), second.withdrawn.clone()).await.unwrap();
    second.remove(&client).await.unwrap();
    assert_eq!(there(&second).await, None);
    server.stop().await.unwrap();
}

/// Nobody is told of a claim, and it was carried out: the name is not lost for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_name_is_free_again_after_a_claim_that_nobody_answered() {
    let store = Arc::new(Store::default());
    let (server, client) = serve_store(Arc::clone(&store)).await;
    let folder = tempfile::tempdir().unwrap();
    let segment = Arc::new(Segment::anonymous(BELL_BOARD_BYTES).unwrap());
    let inbox = Arc::new(Inbox::new(BellBoard::at(&segment, 0).unwrap()));
    let place = Place { node: NodeId(1), host: "h".to_owned(), socket: folder.path().join("node.sock") };
    let client = client.with_patience(Duration::from_secs(1));
    let programs = Submissions::new(place, folder.path().into(), client, Tasks::current(), inbox);
    let new = || NewSubmission {
        name: "nightly".to_owned(),
        words: vec!["true".to_owned()],
        folder: folder.path().display().to_string(),
        variables: BTreeMap::new(),
        quota: None,
    };
    // The first attempt reaches the tables, and the others do not.
    store.fall_silent(1, usize::MAX);
    store.hide_values(true);
    let refused = programs.submit(new()).await.unwrap_err();
    assert_eq!(refused.code, RefusalCode::Unavailable, "{refused:?}");
    store.hide_values(false);
    store.fall_silent(0, 0);
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        match programs.submit(new()).await {
            Ok(_) => break,
            Err(refused) => assert_eq!(refused.code, RefusalCode::AlreadyExists, "{refused:?}"),
        }
        assert!(Instant::now() < until, "the name is lost");
        tokio::time::sleep(LOOK_AGAIN).await;
    }
    tokio::task::spawn_blocking(move || programs.stop_all()).await.unwrap();
    drop(server);
}

#[test]
fn a_name_is_free_again_if_its_node_died_before_the_start() {
    let member = |id| NodeInfo {
        id: NodeId(id),
        listen: String::new(),
        host: String::new(),
        local_socket: String::new(),
        resources: Resources::default(),
        labels: BTreeMap::new(),
    };
    let members = [member(1), member(2)];
    assert!(never_runs(&record(3, State::Starting), &members));
    assert!(!never_runs(&record(2, State::Starting), &members), "it is about to");
    for state in [State::Running, State::Failed, State::Stopped, State::Succeeded] {
        assert!(!never_runs(&record(3, state), &members), "it ran: its name tells what became of it");
    }
}
