//! Tensors on several nodes: the same source, the same bits, whatever node a chunk is on.

use std::time::{Duration, Instant};
use tharsis::prelude::{Array, remote};
use tharsis::tensor::random::default_rng;
use tharsis::tensor::sparse::Sparse;
use tharsis::tensor::{
    Chunks, Executor, LocalExecutor, MapRemote, RemoteExecutor, Tensor, execute, explain, zarr,
};
use tharsis::{Cancel, LocalCluster, LocalNode, Options};
use tharsis_cluster_tests::{Scenario, await_that, cluster_of, driver, scenarios, small_node};

const STORE_BYTES: u64 = 256 << 20;
const MEMORY_BYTES: u64 = 64 << 20;

pub const ALL: &[Scenario] = scenarios![
    results_of_two_nodes_are_those_of_threads_to_the_bit,
    sparse_matrices_and_zarr_arrays_of_two_nodes_are_those_of_threads,
    a_cancelled_job_ends_on_both_nodes,
    all_cpus_of_the_cluster_are_counted;
    alone:
        what_meets_starts_on_one_node,
        results_stay_on_the_nodes_that_made_them,
];

fn two_nodes() -> LocalCluster {
    cluster_of(vec![LocalNode { store_bytes: STORE_BYTES, ..small_node(1.0) }; 2])
}

fn bits(tensor: &Tensor, executor: &dyn Executor) -> Vec<u64> {
    let (results, metrics) = execute(&[tensor], executor).unwrap();
    assert!(metrics.peak_bytes <= metrics.bound_bytes, "{metrics:?}");
    let chunk = results[0].to_chunk(&LocalExecutor::sized(1, 1 << 30)).unwrap();
    chunk.to_vec::<f64>().unwrap().into_iter().map(f64::to_bits).collect()
}

/// Tasks are spread, so that chunks have to travel whatever the load is.
fn results_of_two_nodes_are_those_of_threads_to_the_bit() {
    let cluster = two_nodes();
    let runtime = driver(&cluster, 0);
    let remote = RemoteExecutor::new(&runtime)
        .memory_bytes(MEMORY_BYTES)
        .options(Options::default().spread())
        .batch_tasks(3);
    for chunk in [[50, 400], [130, 170]] {
        let x = default_rng(5).random(&[400, 400]);
        let x = x.rechunk(Chunks::PerAxis(chunk.to_vec()));
        for program in
            [x.matmul(&x.t()).sin(), (&x - &x.mean(1).expand_dims(1)).std(0), x.t().reshape(&[-1]).cumsum(0)]
        {
            let expected = bits(&program, &LocalExecutor::within(remote.limits()));
            assert!(expected == bits(&program, &remote), "chunks {chunk:?}");
        }
    }
    for index in 0..2 {
        await_that("nothing is left", || cluster.report(index).unwrap().store.object_count == 0);
    }
}

#[remote]
fn slowly(x: Array<f64>) -> Array<f64> {
    std::thread::sleep(Duration::from_secs(1));
    x
}

fn a_cancelled_job_ends_on_both_nodes() {
    let cluster = two_nodes();
    let runtime = driver(&cluster, 0);
    let remote = RemoteExecutor::new(&runtime)
        .memory_bytes(MEMORY_BYTES)
        .options(Options::default().spread())
        .batch_tasks(1);
    let x = default_rng(5).random(&[80, 10]);
    let x = x.rechunk(Chunks::PerAxis(vec![5, 10]));
    let soon = Instant::now() + Duration::from_millis(500);
    let cancel = Cancel::when(move || soon <= Instant::now());
    let error = cancel.run(|| execute(&[&x.map_remote::<slowly>()], &remote)).unwrap_err();
    assert_eq!(error.class(), "Cancelled", "{error}");
    let sums = x.sum(0);
    assert!(bits(&sums, &LocalExecutor::within(remote.limits())) == bits(&sums, &remote), "the next job");
    for index in 0..2 {
        await_that("nothing is left", || cluster.report(index).unwrap().store.object_count == 0);
    }
}

/// Both nodes find the folder, as nodes with a shared disk do.
fn sparse_matrices_and_zarr_arrays_of_two_nodes_are_those_of_threads() {
    let cluster = two_nodes();
    let runtime = driver(&cluster, 0);
    let remote = RemoteExecutor::new(&runtime)
        .memory_bytes(MEMORY_BYTES)
        .options(Options::default().spread())
        .batch_tasks(2);
    let local = LocalExecutor::within(remote.limits());
    let a = Sparse::random([400, 400], 0.02, 9, Chunks::Each(90)).unwrap();
    let product = a.matmul(&a).unwrap().add(&a.transpose()).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("product.zarr");
    let options = zarr::Options { chunks: Some(vec![64, 400]), ..zarr::Options::default() };
    zarr::save(&path, &product.to_dense(), &options, &remote).unwrap();
    let written = zarr::load(&path);
    for program in [product.sum(Some(1)), product.values().clone(), written.sum(1), &written * 2.0] {
        assert!(bits(&program, &local) == bits(&program, &remote), "{program:?}");
    }
    assert!(bits(&written, &local) == bits(&product.to_dense(), &local), "other elements were written");
}

/// Two tensors that are stored chunk by chunk and then added: where their chunks have one home, none has to
/// travel for it.
fn what_meets_starts_on_one_node() {
    let cluster = two_nodes();
    let runtime = driver(&cluster, 0);
    let remote = RemoteExecutor::new(&runtime).memory_bytes(MEMORY_BYTES).batch_tasks(1);
    let scanned = |seed| {
        let x = default_rng(seed).random(&[128, 1 << 14]);
        x.rechunk(Chunks::PerAxis(vec![1, 1 << 14])).cumsum(1)
    };
    let program = (scanned(1) + scanned(2)).max(1);
    let text = explain(&[&program], &remote).unwrap().to_string();
    assert!(text.contains("homes on 2 CPUs of several nodes") && text.contains("held back"), "{text}");
    let sent = || (0..2).map(|index| cluster.report(index).unwrap().sent_bytes).sum::<u64>();
    let before = sent();
    let found = bits(&program, &remote);
    // Both tensors have 16 MiB each.
    let travelled = sent() - before;
    assert!(travelled < 2 << 20, "{travelled} bytes travelled");
    assert_eq!(found, bits(&program, &LocalExecutor::within(remote.limits())));
    // If a job itself chooses the nodes of its tasks, sources have no homes.
    let before = sent();
    assert_eq!(found, bits(&program, &remote.options(Options::default().spread())));
    let without = sent() - before;
    println!("{travelled} bytes travelled, without homes {without}");
    assert!(2 << 20 < without, "{without} bytes travelled without homes");
}

/// A kept result moves to the driver when the driver reads it; another job reads it in place.
fn results_stay_on_the_nodes_that_made_them() {
    let cluster = two_nodes();
    let runtime = driver(&cluster, 0);
    let remote = RemoteExecutor::new(&runtime).memory_bytes(MEMORY_BYTES);
    // So large that each is a batch of its own.
    let x = default_rng(3).random(&[8, 1 << 18]);
    let x = x.rechunk(Chunks::PerAxis(vec![1, 1 << 18]));
    let sent = || (0..2).map(|index| cluster.report(index).unwrap().sent_bytes).sum::<u64>();
    let before = sent();
    let (kept, _) = execute(&[&x], &remote).unwrap();
    let stored = (0..2).map(|index| cluster.report(index).unwrap().store.used_bytes).collect::<Vec<_>>();
    assert!(stored.iter().all(|bytes| 4 << 20 <= *bytes), "{stored:?}");
    let sums = bits(&kept[0].sum(1), &remote);
    let (travelled, all) = (sent() - before, 16 << 20);
    // Two of the eight chunks may move to a node that falls idle first.
    assert!(travelled < 3 * all / 8, "{travelled} bytes travelled");
    let local = LocalExecutor::within(remote.limits());
    let (expected, _) = execute(&[&x], &local).unwrap();
    assert_eq!(sums, bits(&expected[0].sum(1), &local));
    assert!(bits(&kept[0], &remote) == bits(&expected[0], &local));
    assert!(all / 4 < sent() - before, "only a look brings them here");
}

fn all_cpus_of_the_cluster_are_counted() {
    let cluster = two_nodes();
    let runtime = driver(&cluster, 1);
    let limits = RemoteExecutor::new(&runtime).limits();
    assert_eq!((limits.threads, limits.memory_bytes), (2, STORE_BYTES / 2));
}
