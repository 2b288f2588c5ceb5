//! The messages of a node do not depend on the number of nodes.
//!
//! `cargo test --release -p tharsis-sim --test growth -- --ignored --nocapture` prints the table of
//! `docs/benchmarks.md`.

use prost::Message;
use tharsis_protos::peer::convert;
use tharsis_sim::growth::{Costs, Growth, Load, measure};
use tharsis_types::NodeId;
use tharsis_types::limits::SMALL_CLUSTER_MAX;
use tharsis_types::peer::Packet;

/// Tasks that a driver keeps under way: three quarters of the CPUs of four nodes, and twice as many as these.
const MOST: u64 = 6;
const TOO_MANY: u64 = 16;

fn packet_bytes(from: NodeId, to: NodeId, packet: &Packet) -> usize {
    convert::encode(from, to, packet).iter().map(Message::encoded_len).sum()
}

fn grown(nodes: usize, tasks_each: u64, stage_ms: u64) -> Growth {
    let load = Load { nodes, tasks_each, stage_ms, small_cluster_max: SMALL_CLUSTER_MAX };
    let growth = measure(load, packet_bytes);
    assert_eq!(growth.wrong, 0, "answers are wrong or missing with {nodes} nodes");
    growth
}

#[test]
fn a_node_of_a_thousand_sends_no_more_than_one_of_a_hundred() {
    for tasks_each in [MOST, TOO_MANY] {
        let (few, many) = (grown(100, tasks_each, 400), grown(1_000, tasks_each, 400));
        for growth in [few, many] {
            assert!(growth.idle.messages == 0.0, "an idle node has nothing to say: {:?}", growth.idle);
            assert!(growth.join_packets == 0.0, "a node that joins has nothing to say: {growth:?}");
        }
        let is_bounded = |of: fn(&Costs) -> f64| of(&many.busy) <= 2.0 * of(&few.busy);
        assert!(is_bounded(|costs| costs.messages), "{few:?}\n{many:?}");
        assert!(is_bounded(|costs| costs.bytes), "{few:?}\n{many:?}");
        assert!(many.tasks_per_s >= 8.0 * few.tasks_per_s, "{few:?}\n{many:?}");
    }
}

#[test]
#[ignore = "a table; say --ignored"]
#[allow(clippy::print_stdout, reason = "asked for on the command line")]
fn table() {
    println!(
        "| nodes | load | idle msg | busy msg | busy B | asked | denied % | links | most | tasks/s | decided/s |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    for nodes in [16, 100, 1_000, 10_000] {
        for (name, tasks_each) in [("75 %", MOST), ("200 %", TOO_MANY)] {
            let Growth { idle, busy, links_mean, links_max, tasks_per_s, decisions_per_s, .. } =
                grown(nodes, tasks_each, if nodes < 10_000 { 2_000 } else { 600 });
            println!(
                "| {nodes} | {name} | {:.1} | {:.0} | {:.0} | {:.1} | {:.0} | {links_mean:.1} | {links_max} | \
                 {tasks_per_s:.0} | {decisions_per_s:.0} |",
                idle.messages, busy.messages, busy.bytes, busy.requests, busy.denied_percent
            );
        }
    }
}
