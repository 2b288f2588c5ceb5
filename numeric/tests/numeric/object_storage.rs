//! Arrays in object stores and on web servers: written and read by blocks, with what the environment says.
//! The server is a real one; a program that needs an environment of its own is this one, started again.

#[path = "../../../dataframe/tests/dataframe/server.rs"]
mod server;

use server::Server;
use std::path::Path;
use std::process::Command;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tharsis_numeric::zarr::{Compression, Options};
use tharsis_numeric::{DType, LocalExecutor, Tensor, arange, execute, index, npy, zarr, zeros};

/// The address of the server, in the environment of a program.
const SERVER: &str = "THARSIS_TEST_SERVER";

/// Runs the test of this name again as a program with the keys of a bucket, or the program if this is it.
fn as_program(test: &str, server: &Server, program: impl FnOnce()) {
    if std::env::var(SERVER).is_ok() {
        return program();
    }
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("object_storage::{test}"), "--nocapture"])
        .env(SERVER, &server.address)
        .env("AWS_ENDPOINT", format!("http://{}", server.address))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", "a-key")
        .env("AWS_SECRET_ACCESS_KEY", "a-secret")
        .env("AWS_REGION", "eu-central-1")
        .env("THARSIS_STORAGE_RETRIES", "1")
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

/// Whether this is the program that was started again.
fn is_program() -> bool {
    std::env::var(SERVER).is_ok()
}

fn roomy() -> LocalExecutor {
    LocalExecutor::sized(2, 1 << 28)
}

fn is_equal(a: &Tensor, b: &Tensor) -> bool {
    a.dtype().unwrap() == b.dtype().unwrap() && a.array_equal(b, true).item().unwrap().is_true()
}

/// Puts all files of a folder on a server.
fn publish(server: &Server, folder: &Path, url: &str) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let url = format!("{url}/{}", path.file_name().unwrap().to_str().unwrap());
        if path.is_dir() {
            publish(server, &path, &url)
        } else {
            server.add(&url, std::fs::read(&path).unwrap())
        }
    }
}

/// An array of Zarr on a server, made with these options.
fn published(server: &Server, tensor: &Tensor, options: &Options) -> String {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.zarr");
    zarr::save(&path, tensor, options, &roomy()).unwrap();
    publish(server, &path, "/x.zarr");
    format!("http://{}/x.zarr", server.address)
}

#[test]
fn arrays_larger_than_the_memory_are_written_to_a_bucket_and_read() {
    let server = Server::start();
    as_program("arrays_larger_than_the_memory_are_written_to_a_bucket_and_read", &server, || {
        // 64 MB in a memory of 60 MiB, which is less.
        let limited = LocalExecutor::sized(2, 60 << 20);
        let x = arange(8_000_000);
        let chunked = Options { chunks: Some(vec![100_000]), ..Options::default() };
        let compression = Compression::Zstd { level: 1 };
        let sharded = Options { shards: Some(vec![200_000]), compression, ..chunked.clone() };
        let read = |tensor: &Tensor| {
            let (found, metrics) = execute(&[&tensor.equal(&x).all(..)], &limited).unwrap();
            assert!(found[0].item().unwrap().is_true());
            assert!(metrics.peak_bytes <= metrics.bound_bytes && metrics.bound_bytes <= 60 << 20);
        };
        for (name, options) in [("chunked", chunked), ("sharded", sharded)] {
            let url = format!("s3://bucket/data/{name}.zarr");
            zarr::save(&url, &x, &options, &limited).unwrap();
            read(&zarr::load(&url));
            let again = zarr::save(&url, &x, &options, &limited).unwrap_err();
            assert_eq!(again.class(), "OSError", "an array is not replaced");
        }
        npy::save("s3://bucket/data/x.npy", &x, &limited).unwrap();
        read(&npy::load("s3://bucket/data/x.npy"));
    });
    if is_program() {
        return;
    }
    let (files, has_parts) = server.files();
    let of =
        |name: &str| files.iter().filter(|path| path.starts_with(&format!("/bucket/data/{name}"))).count();
    assert_eq!((of("chunked.zarr/"), of("sharded.zarr/"), of("x.npy")), (81, 41, 1), "{files:?}");
    assert_eq!((files.len(), has_parts), (123, false), "nothing else is left");
    let requests = server.requests();
    assert!(requests.iter().all(|(.., key)| key == "a-key"));
    let written: Vec<_> =
        requests.iter().filter(|(method, ..)| method == "PUT").map(|(_, path, _)| path).collect();
    let metadata = written.iter().position(|path| path.ends_with("chunked.zarr/zarr.json")).unwrap();
    assert_eq!(metadata, 81, "the metadata come behind the claim and all chunks");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("x.npy");
    std::fs::write(&file, server.remove("/bucket/data/x.npy").unwrap()).unwrap();
    assert!(is_equal(&npy::load(&file), &arange(8_000_000)), "it is a file as others");
}

#[test]
fn every_form_of_an_array_comes_back_from_a_bucket() {
    let server = Server::start();
    as_program("every_form_of_an_array_comes_back_from_a_bucket", &server, || {
        let forms = [
            arange(35).reshape(&[5, 7]).astype(DType::C64),
            Tensor::number(7.5),
            zeros(&[3, 0, 2]),
            arange(12).reshape(&[3, 4]).t().greater(4),
        ];
        for (at, x) in forms.iter().enumerate() {
            let (zarr, npy) = (format!("s3://bucket/{at}.zarr"), format!("s3a://bucket/{at}.npy"));
            zarr::save(&zarr, x, &Options::default(), &roomy()).unwrap();
            npy::save(&npy, x, &roomy()).unwrap();
            assert!(is_equal(&zarr::load(&zarr), x) && is_equal(&npy::load(&npy), x), "{at}");
        }
        npy::save("s3://bucket/0.npy", &arange(3), &roomy()).unwrap();
        assert!(is_equal(&npy::load("s3://bucket/0.npy"), &arange(3)), "a file is replaced");
    });
}

#[test]
fn nothing_is_left_of_what_could_not_be_written() {
    let server = Server::start();
    as_program("nothing_is_left_of_what_could_not_be_written", &server, || {
        let wrong = arange(4_000_000).rechunk(tharsis_numeric::Chunks::Each(1_000_000)).map_chunk(
            |chunk: ndarray::ArrayD<i64>| match chunk.first() {
                Some(3_000_000) => Err("no"),
                _ => Ok(chunk),
            },
        );
        let one = LocalExecutor::sized(1, 1 << 28);
        let options = Options { chunks: Some(vec![500_000]), ..Options::default() };
        let failed = zarr::save("s3://bucket/x.zarr", &wrong, &options, &one).unwrap_err();
        assert_eq!(failed.class(), "RuntimeError");
        assert_eq!(npy::save("s3://bucket/x.npy", &wrong, &one).unwrap_err().class(), "RuntimeError");
        let denied = npy::save("s3://bucket/denied.npy", &arange(3), &one).unwrap_err();
        assert_eq!(denied.class(), "OSError");
        assert_eq!(npy::save("s3://bucket", &arange(3), &one).unwrap_err().class(), "OSError");
    });
    if !is_program() {
        assert_eq!(server.files(), (Vec::new(), false));
        let sent = server.requests().iter().filter(|(method, ..)| method == "PUT").count();
        assert!(2 < sent, "some was written before: {sent}");
    }
}

#[test]
fn of_two_who_save_one_array_the_loser_removes_nothing() {
    let server = Server::start();
    as_program("of_two_who_save_one_array_the_loser_removes_nothing", &server, || {
        let url = "s3://bucket/x.zarr";
        let options = Options { chunks: Some(vec![100]), ..Options::default() };
        let (x, one) = (arange(300) + 1, LocalExecutor::sized(1, 1 << 28));
        // The second one begins while the first one writes, and finds that it does.
        let during = x.map_chunk(move |chunk: ndarray::ArrayD<i64>| {
            let options = Options { chunks: Some(vec![100]), ..Options::default() };
            let again = zarr::save(url, &arange(300), &options, &roomy()).map_err(|error| error.class());
            if again == Err("OSError") { Ok(chunk) } else { Err("both write") }
        });
        zarr::save(url, &during, &options, &one).unwrap();
        assert!(is_equal(&zarr::load(url), &x), "the loser left it as it was");
        assert_eq!(zarr::save(url, &arange(300), &options, &one).unwrap_err().class(), "OSError");
        assert!(is_equal(&zarr::load(url), &x), "so does who comes later");
    });
    if !is_program() {
        let (files, _) = server.files();
        let of = |at: &str| format!("/bucket/x.zarr/{at}");
        assert_eq!(files, ["c/0", "c/1", "c/2", "zarr.json"].map(of), "no claim is left");
    }
}

#[test]
fn who_has_lost_the_claim_of_an_array_removes_nothing() {
    let server = Server::start();
    as_program("who_has_lost_the_claim_of_an_array_removes_nothing", &server, || {
        let address = std::env::var(SERVER).unwrap();
        let options = Options { chunks: Some(vec![100]), ..Options::default() };
        let lost = arange(300).map_chunk(move |_: ndarray::ArrayD<i64>| {
            Server::tell_to_replace(&address, "/bucket/x.zarr/tharsis-writes-this");
            Err::<ndarray::ArrayD<i64>, _>("it fails behind that")
        });
        let one = LocalExecutor::sized(1, 1 << 28);
        let failed = zarr::save("s3://bucket/x.zarr", &lost, &options, &one).unwrap_err();
        assert_eq!(failed.class(), "RuntimeError");
    });
    if !is_program() {
        assert_eq!(server.files().0, ["/bucket/x.zarr/tharsis-writes-this"], "it is another one's");
    }
}

#[test]
fn a_task_that_is_left_behind_writes_into_no_other_array() {
    let server = Server::start();
    as_program("a_task_that_is_left_behind_writes_into_no_other_array", &server, || {
        let url = "s3://bucket/x.zarr";
        let options = Options { chunks: Some(vec![100]), ..Options::default() };
        let gate = Arc::new(Mutex::new(()));
        let held = gate.lock().unwrap();
        let late = Arc::clone(&gate);
        let waits = (arange(300) + 1).map_chunk(move |chunk: ndarray::ArrayD<i64>| {
            let _held = late.lock();
            Ok::<_, &str>(chunk)
        });
        let soon = Instant::now() + Duration::from_millis(200);
        let failed = zarr::save(url, &waits, &options, &roomy().until(soon)).unwrap_err();
        assert_eq!(failed.class(), "Timeout");
        // Chunks that the task may still write would be data of an array whose own ones of zeros are left
        // out.
        let again = zarr::save(url, &zeros(&[300]), &options, &roomy()).unwrap_err();
        assert_eq!(again.class(), "OSError");
        assert!(again.to_string().contains("remove the folder"), "{again}");
        drop(held);
    });
    if !is_program() {
        let (files, _) = server.files();
        assert!(files.contains(&"/bucket/x.zarr/tharsis-writes-this".to_owned()), "{files:?}");
        assert!(!files.contains(&"/bucket/x.zarr/zarr.json".to_owned()), "{files:?}");
    }
}

#[test]
fn a_task_that_is_left_behind_replaces_no_file() {
    let server = Server::start();
    // The first one's object arrives behind that of the second one.
    server.delay("/bucket/x.npy", Duration::from_secs(2));
    as_program("a_task_that_is_left_behind_replaces_no_file", &server, || {
        let url = "s3://bucket/x.npy";
        let soon = Instant::now() + Duration::from_millis(500);
        assert_eq!(npy::save(url, &arange(300), &roomy().until(soon)).unwrap_err().class(), "Timeout");
        npy::save(url, &arange(3), &roomy()).unwrap();
        for _ in 0..30 {
            std::thread::sleep(Duration::from_millis(100));
            assert_eq!(npy::load(url).to_vec::<i64>().unwrap(), [0, 1, 2]);
        }
    });
    if !is_program() {
        assert_eq!(server.files(), (vec!["/bucket/x.npy".to_owned()], false));
    }
}

#[test]
fn who_fails_removes_nothing_that_another_one_wrote() {
    let server = Server::start();
    as_program("who_fails_removes_nothing_that_another_one_wrote", &server, || {
        let options = Options { chunks: Some(vec![100]), ..Options::default() };
        let one = LocalExecutor::sized(1, 1 << 28);
        let during = |path: &'static str, outcome: std::result::Result<(), &'static str>| {
            let address = std::env::var(SERVER).unwrap();
            (arange(300) + 1).map_chunk(move |chunk: ndarray::ArrayD<i64>| {
                Server::tell_to_replace(&address, path);
                outcome.map(|()| chunk)
            })
        };
        // Of a program that asks for no claim, in this folder and in one below it.
        let late = during("/bucket/x.zarr/zarr.json", Ok(()));
        let failed = zarr::save("s3://bucket/x.zarr", &late, &options, &one).unwrap_err();
        assert_eq!(failed.class(), "OSError");
        let wrong = during("/bucket/y.zarr/below/c/0", Err("it fails behind that"));
        let failed = zarr::save("s3://bucket/y.zarr", &wrong, &options, &one).unwrap_err();
        assert_eq!(failed.class(), "RuntimeError");
    });
    if !is_program() {
        let (files, _) = server.files();
        assert!(files.contains(&"/bucket/x.zarr/zarr.json".to_owned()), "{files:?}");
        assert!(files.contains(&"/bucket/y.zarr/below/c/0".to_owned()), "{files:?}");
        assert!(files.iter().all(|path| !path.ends_with("writes-this")), "no claim is left: {files:?}");
    }
}

#[test]
fn arrays_on_web_servers_are_read() {
    let server = Server::start();
    let golden = crate::folder().join("tests/golden/zarr");
    publish(&server, &golden, "/golden");
    let url = |name: &str| format!("http://{}/golden/{name}", server.address);
    let x = arange(35).reshape(&[5, 7]).astype(DType::F64) / 4.0;
    assert!(is_equal(&zarr::load(url("zstd")), &x));
    assert!(is_equal(&zarr::load(url("sharded_zstd")), &x));
    // Missing chunks have the fill value, in shards and beside them.
    assert_eq!(zarr::load(url("partial_v2_keys")).isnan().sum(..).item().unwrap().to_f64(), 4.0);
    assert_eq!(zarr::load(url("sharded_start")).isnan().sum(..).item().unwrap().to_f64(), 7.0);
    let missing = zarr::open(url("none")).unwrap_err();
    assert_eq!(missing.class(), "OSError");
    assert!(missing.to_string().contains("no such file"), "{missing}");
    assert_eq!(npy::open(url("none.npy")).unwrap_err().class(), "OSError");
    let written = zarr::save(url("new"), &x, &Options::default(), &roomy()).unwrap_err();
    assert_eq!(written.class(), "NotImplemented");
    assert_eq!(npy::save(url("new.npy"), &x, &roomy()).unwrap_err().class(), "NotImplemented");
    server.add("/golden/empty.npy", Vec::new());
    assert_eq!(npy::open(url("empty.npy")).unwrap_err().class(), "DataCorrupt");
}

#[test]
fn programs_as_data_reach_no_servers() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    npy::save(folder.path().join("x.npy"), &arange(3), &roomy()).unwrap();
    publish(&server, folder.path(), "/data");
    let url = format!("http://{}/data/x.npy", server.address);
    assert_eq!(npy::open(&url).unwrap().shape(), [3]);
    let before = server.requests().len();
    let request = serde_json::json!({"in": {"x": {"npy": url}}, "out": ["x"]});
    for folder in [folder.path(), Path::new("")] {
        let reply = tharsis_numeric::protocol::answer(&request, folder);
        assert!(reply.to_string().contains("no such file"), "{reply}");
    }
    assert_eq!(server.requests().len(), before);
}

#[cfg(feature = "hdf5")]
#[test]
fn datasets_of_hdf5_on_web_servers_are_read() {
    let server = Server::start();
    let golden = crate::folder().join("tests/golden/hdf5");
    publish(&server, &golden, "/golden");
    let x = arange(35).reshape(&[5, 7]).astype(DType::F32) / 4.0;
    for name in ["earliest.h5", "latest.h5"] {
        let url = format!("http://{}/golden/{name}", server.address);
        server.fail(&format!("/golden/{name}"), 1);
        assert!(is_equal(&tharsis_numeric::hdf5::load(&url, "group/chunked"), &x));
        let missing = tharsis_numeric::hdf5::open(format!("{url}.gz"), "x").unwrap_err();
        assert_eq!(missing.class(), "OSError");
    }
}

#[test]
fn no_more_is_read_than_the_tasks_need() {
    let server = Server::start();
    let folder = tempfile::tempdir().unwrap();
    let x = arange(4_000_000).reshape(&[4_000, 1_000]);
    let file = folder.path().join("x.npy");
    npy::save(&file, &x, &roomy()).unwrap();
    server.add("/x.npy", std::fs::read(&file).unwrap());
    let options =
        Options { chunks: Some(vec![100, 100]), shards: Some(vec![2_000, 1_000]), ..Options::default() };
    let zarr = zarr::load(published(&server, &x, &options));
    let npy = npy::load(format!("http://{}/x.npy", server.address));
    for tensor in [npy, zarr] {
        server.take_sent();
        let some = tensor.get(&index![1_200..1_250]);
        assert!(is_equal(&some, &x.get(&index![1_200..1_250])));
        let sent = server.take_sent();
        assert!(sent < 10 << 20, "{sent} bytes of 32 MB");
        assert!(is_equal(&tensor, &x));
        let sent = server.take_sent();
        assert!(sent < 33 << 20, "{sent} bytes of 32 MB");
    }
}

#[test]
fn answers_that_fail_or_end_early_are_asked_for_again() {
    let server = Server::start();
    let x = arange(300_000);
    let options = Options { chunks: Some(vec![100_000]), ..Options::default() };
    let url = published(&server, &x, &options);
    server.fail("/x.zarr/zarr.json", 1);
    server.fail("/x.zarr/c/0", 2);
    server.cut("/x.zarr/c/2", 1);
    assert!(is_equal(&zarr::load(&url), &x));
    let options = Options { shards: Some(vec![300_000]), ..options };
    let url = published(&server, &x, &options);
    server.fail("/x.zarr/c/0", 1);
    server.cut("/x.zarr/c/0", 2);
    assert!(is_equal(&zarr::load(&url), &x));
}

#[test]
fn what_cannot_be_read_fails_the_program() {
    let server = Server::start();
    as_program("what_cannot_be_read_fails_the_program", &server, || {
        let address = std::env::var(SERVER).unwrap();
        let url = "s3://bucket/x.zarr";
        let options = Options { chunks: Some(vec![100]), ..Options::default() };
        zarr::save(url, &(arange(300) + 1), &options, &roomy()).unwrap();
        let sum = zarr::load(url).sum(..);
        assert_eq!(sum.item().unwrap().to_f64(), 45_150.0);
        Server::tell_to_fail(&address, "/bucket/x.zarr/c/1");
        assert_eq!(zarr::load(url).sum(..).item().unwrap_err().class(), "OSError");
        assert_eq!(zarr::open("s3://bucket/denied").unwrap_err().class(), "OSError");
    });
}

#[test]
fn objects_of_a_wrong_length_are_corrupt() {
    let server = Server::start();
    let options = Options { chunks: Some(vec![100]), ..Options::default() };
    let x = arange(300) + 1;
    let url = published(&server, &x, &options);
    let class = |path: &str, bytes: Vec<u8>| {
        let before = server.remove(path).unwrap();
        server.add(path, bytes);
        let class = zarr::load(&url).sum(..).item().unwrap_err().class();
        server.add(path, before);
        class
    };
    assert_eq!(class("/x.zarr/c/1", vec![1; 799]), "DataCorrupt");
    assert_eq!(class("/x.zarr/c/1", Vec::new()), "DataCorrupt");
    assert_eq!(class("/x.zarr/c/1", vec![1; 64 << 20]), "DataCorrupt");
    assert_eq!(class("/x.zarr/zarr.json", vec![b' '; 2 << 20]), "DataCorrupt");
    let shards = Options { shards: Some(vec![300]), ..options };
    published(&server, &x, &shards);
    let shard = server.remove("/x.zarr/c/0").unwrap();
    server.add("/x.zarr/c/0", shard.clone());
    assert_eq!(class("/x.zarr/c/0", shard[..shard.len() - 5].to_vec()), "DataCorrupt");
    assert_eq!(class("/x.zarr/c/0", Vec::new()), "DataCorrupt");
    assert_eq!(class("/x.zarr/c/0", shard[900..].to_vec()), "DataCorrupt");
    assert_eq!(class("/x.zarr/c/0", shard[..10].to_vec()), "DataCorrupt", "shorter than its index");
    // A file that becomes shorter after its header was read.
    let mut file = b"\x93NUMPY\x01\x00\x46\x00".to_vec();
    let header = "{'descr': '<i8', 'fortran_order': False, 'shape': (1000,), }";
    file.extend(format!("{header:<69}\n").bytes());
    let start = file.len();
    file.resize(start + 8_000, 0);
    server.add("/x.npy", file.clone());
    let loaded = npy::load(format!("http://{}/x.npy", server.address));
    server.add("/x.npy", file[..start + 4_000].to_vec());
    assert_eq!(loaded.sum(..).item().unwrap_err().class(), "DataCorrupt");
}

#[test]
fn arrays_are_read_on_the_threads_of_a_runtime() {
    let server = Server::start();
    let x = arange(1_000);
    let url = published(&server, &x, &Options::default());
    let sum = move |url: &str| zarr::load(url).sum(..).item().unwrap().to_f64();
    let one = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    assert_eq!(one.block_on(async { sum(&url) }), 499_500.0);
    let many = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let found = many.block_on(async move { tokio::spawn(async move { sum(&url) }).await.unwrap() });
    assert_eq!(found, 499_500.0);
}
