//! `tharsis memory` at a real node with a real driver: it shows every byte and the references that keep it.

use crate::Behaviour;
use crate::home::Home;
use serde_json::Value;
use tharsis::{Blob, init, put};

pub const ALL: &[Behaviour] = behaviours![
    an_empty_store_is_free,
    what_a_driver_put_is_listed_with_its_process_and_adds_up,
    where_no_node_is_it_ends_with_status_4,
];

/// A home with a node, and the node's socket.
fn started() -> (Home, String) {
    let home = Home::new();
    let socket = home.text("node/node.sock");
    let ended = home.run(["start", "--head", "--store", "16MiB", "--socket", &socket]);
    assert_eq!(ended.status, 0, "{}", ended.err);
    (home, socket)
}

fn sum(inventory: &Value, list: &str, field: &str) -> u64 {
    inventory[list].as_array().unwrap().iter().map(|row| row[field].as_u64().unwrap()).sum()
}

fn what_a_driver_put_is_listed_with_its_process_and_adds_up() {
    let (home, socket) = started();
    let runtime = init().address(socket.as_str()).start_local().unwrap();
    let entered = runtime.enter();
    let values: Vec<_> =
        [3_000_000, 1_000_000, 5_000].map(|len| put(&Blob::from(vec![7; len])).unwrap()).into();
    let json = home.run(["memory", "--json", "--socket", &socket]);
    assert_eq!(json.status, 0, "{}", json.err);
    let told: Value = serde_json::from_str(&json.out).unwrap();
    let used = sum(&told, "objects", "arena_bytes") + sum(&told, "clients", "granted_bytes");
    assert_eq!(used, told["store"]["used_bytes"].as_u64().unwrap(), "{told:#}");
    assert_eq!(used + told["free_bytes"].as_u64().unwrap(), 16 << 20);
    let ids: Vec<_> =
        told["objects"].as_array().unwrap().iter().map(|row| row["object"].as_str().unwrap()).collect();
    assert_eq!(ids, values.iter().map(|value| value.id().object.to_string()).collect::<Vec<_>>());
    let text = home.run(["memory", "--socket", &socket]);
    let me = format!("(process {})", std::process::id());
    for part in ["in 3 objects, 3 of them mapped", "16 777 216  in all", "by job", "by call site", "put", &me]
    {
        assert!(text.out.contains(part), "{part} missing in: {}", text.out);
    }
    drop((values, entered));
    drop(runtime);
    home.run(["stop", "--socket", &socket]);
}

fn an_empty_store_is_free() {
    let (home, socket) = started();
    let text = home.run(["memory", "--socket", &socket]);
    assert_eq!(text.status, 0, "{}", text.err);
    for part in ["0  in 0 objects", "16 777 216  free"] {
        assert!(text.out.contains(part), "{part} missing in: {}", text.out);
    }
    home.run(["stop", "--socket", &socket]);
}

fn where_no_node_is_it_ends_with_status_4() {
    let home = Home::new();
    let ended = home.run(["memory", "--socket", &home.text("nobody")]);
    assert_eq!(ended.status, 4, "{}", ended.err);
}
