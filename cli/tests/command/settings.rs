//! Settings files and variables, as the real program reads them. An error names file, line and key, and ends
//! the command with status 2 before anything is started.

use crate::home::{self, Ended, Home};
use serde_json::Value;

/// Shows the settings with this file, which must fail; `start` must refuse it with the same message.
fn assert_wrong(file: &str, parts: &[&str]) {
    let home = Home::new();
    std::fs::write(home.path("t.toml"), file).unwrap();
    let path = home.text("t.toml");
    for words in [["config", "show", "--config", &path].as_slice(), &["start", "--head", "--config", &path]] {
        home.run(words).assert_refused(2, parts);
    }
    assert!(home.processes().is_empty());
}

fn show(home: &Home, words: &[&str], variables: &[(&str, &str)]) -> Ended {
    let mut command = home.command([&["config", "show", "--json"], words].concat());
    Ended::of(command.envs(variables.iter().copied()).output().unwrap())
}

fn shown(ended: &Ended, key: &str) -> (String, String) {
    assert_eq!(ended.status, 0, "{}", ended.err);
    let all: Value = serde_json::from_str(&ended.out).unwrap();
    let part = |part: &str| all[key][part].as_str().unwrap().to_owned();
    (part("value"), part("source"))
}

#[test]
fn an_empty_file_leaves_all_defaults() {
    let home = Home::new();
    std::fs::write(home.path("t.toml"), "").unwrap();
    let ended = show(&home, &["--config", &home.text("t.toml")], &[]);
    assert_eq!(ended.out, show(&home, &[], &[]).out);
    assert_eq!(shown(&ended, "lease_ttl"), ("10s".to_owned(), "default".to_owned()));
}

#[test]
fn a_folder_is_refused() {
    let home = Home::new();
    let ended = show(&home, &["--config", &home.text("")], &[]);
    ended.assert_refused(2, &["IsADirectory", &home.text("")]);
}

#[test]
fn a_file_that_is_not_there_is_refused() {
    let home = Home::new();
    let path = home.text("none.toml");
    show(&home, &["--config", &path], &[]).assert_refused(2, &[&path, "No such file"]);
    show(&home, &[], &[("THARSIS_CONFIG", &path)]).assert_refused(2, &[&path, "No such file"]);
}

#[test]
fn an_unknown_key_names_the_nearest_known() {
    assert_wrong("\nnum_cpu = 1\n", &["t.toml, line 2", "unknown key num_cpu", "num_cpus"]);
    assert_wrong("include = \"t.toml\"", &["unknown key include"]);
}

#[test]
fn a_duplicate_key_names_both_lines() {
    assert_wrong("port = 1\n\nport = 2\n", &["port", "lines 1 and 3"]);
}

#[test]
fn an_integer_of_65_bits_is_out_of_range() {
    assert_wrong("store = 18446744073709551616", &["line 1: store", "18446744073709551616", "out of range"]);
    assert_wrong("num_cpus = 18446744073709551616", &["line 1: num_cpus", "18446744073709551616"]);
}

#[test]
fn a_duration_without_a_unit_shows_one_with() {
    assert_wrong("lease_ttl = 10", &["line 1: lease_ttl", "such as 10s"]);
    assert_wrong("lease_ttl = \"10\"", &["line 1: lease_ttl", "such as 10s"]);
}

#[test]
fn a_lease_that_would_make_every_node_dead_is_refused() {
    assert_wrong("lease_ttl = \"0s\"", &["line 1: lease_ttl", "0 ms", "it must be"]);
}

#[test]
fn limits_in_the_wrong_order_name_both_values_and_lines() {
    let parts = ["line 1: store is 67108864", "line 2: memory_limit is 32MiB"];
    assert_wrong("store = 67108864\nmemory_limit = \"32MiB\"", &parts);
    let parts = ["line 1: spill_low_water is 80", "line 2: spill_high_water is 60"];
    assert_wrong("spill_low_water = 80\nspill_high_water = 60", &parts);
    assert_wrong("spill_dirs = [\"/tmp:1x\"]", &["line 1: spill_dirs", "KiB"]);
}

#[test]
fn limits_of_the_memory_are_sizes_or_percentages_in_order() {
    assert_wrong("memory_limit = \"101%\"", &["line 1: memory_limit", "1 to 100"]);
    assert_wrong("memory_limit = \"1KiB\"", &["line 1: memory_limit", "smallest"]);
    assert_wrong("min_free_memory = \"4x\"", &["line 1: min_free_memory", "MiB"]);
    let parts = ["line 1: memory_soft_limit is 60%", "line 2: memory_limit is 50%"];
    assert_wrong("memory_soft_limit = \"60%\"\nmemory_limit = \"50%\"", &parts);
    assert_wrong("store = \"64MiB\"\nmin_free_memory = \"100%\"", &["line 2: min_free_memory", "67108864"]);
}

#[test]
fn options_of_the_log_and_the_network_say_what_they_expect() {
    assert_wrong("log_format = \"xml\"", &["line 1: log_format", "text, json"]);
    assert_wrong("log_file_size = \"1KiB\"", &["line 1: log_file_size", "4096"]);
    assert_wrong("log_files = 0", &["line 1: log_files", "1 to 1000"]);
    assert_wrong("network_threads = 65", &["line 1: network_threads", "1 to 64"]);
    assert_wrong("bind = \"localhost\"", &["line 1: bind", "0.0.0.0"]);
    assert_wrong("host = \"0.0.0.0\"", &["line 1: host", "--bind"]);
    assert_wrong("host = \"127.1\"", &["line 1: host", "its name"]);
    let home = Home::new();
    let start = |words: &[&str]| home.run([&["start", "--head"], words].concat());
    start(&["--bind", "0.0.0.0"]).assert_refused(2, &["--bind needs --host"]);
    start(&["--host", "no.such.host.invalid"]).assert_refused(2, &["--host", "no.such.host.invalid"]);
    start(&["--log-file", &home.text("none/node.log")]).assert_refused(2, &["--log-file", "No such file"]);
    assert!(home.processes().is_empty());
}

#[test]
fn memory_and_spilling_are_shown_with_what_follows_from_each_other() {
    let home = Home::new();
    let path = home.text("t.toml");
    std::fs::write(&path, "memory_limit = \"96MiB\"\nspill_dirs = [\"/tmp:64MiB\", \"/var/tmp\"]\n").unwrap();
    let ended =
        show(&home, &["--config", &path, "--spill-low-water", "5%"], &[("THARSIS_SPILL_HIGH_WATER", "6")]);
    for (key, value, source) in [
        ("store", (32 << 20).to_string(), "default"),
        ("memory_limit", "96MiB".to_owned(), "t.toml, line 1"),
        ("spill_dirs", "/tmp:64MiB,/var/tmp".to_owned(), "t.toml, line 2"),
        ("spill_high_water", "6".to_owned(), "environment"),
        ("spill_low_water", "5%".to_owned(), "flag"),
    ] {
        let (shown_value, shown_source) = shown(&ended, key);
        assert_eq!(shown_value, value, "{key}");
        assert!(shown_source.contains(source), "{key}: {shown_source}");
    }
}

#[test]
fn two_places_for_the_tables_are_named_both() {
    let parts = ["line 1: state", "line 2: etcd", "one place"];
    assert_wrong("state = \"f\"\netcd = [\"http://127.0.0.1:1\"]", &parts);
}

#[test]
fn a_file_that_is_no_settings_file_is_refused_by_its_size() {
    let home = Home::new();
    let path = home.text("t.toml");
    std::fs::File::create(&path).unwrap().set_len(100 << 20).unwrap();
    show(&home, &["--config", &path], &[]).assert_refused(2, &[&path, "1048576"]);
    // The largest accepted file.
    std::fs::write(&path, "#".repeat(1 << 20)).unwrap();
    assert_eq!(show(&home, &["--config", &path], &[]).status, 0);
    show(&home, &["--config", "/dev/zero"], &[]).assert_refused(2, &["/dev/zero", "1048576"]);
}

#[test]
fn text_that_is_not_toml_names_line_and_column() {
    assert_wrong("port = 1\nstore = = 2\n", &["t.toml, line 2, column 9"]);
    assert_wrong("labels = { zone = \"ä\" \"b\" }\n", &["t.toml, line 1, column 23"]);
}

#[test]
fn a_variable_that_is_no_setting_is_warned_about() {
    let home = Home::new();
    let ended = show(
        &home,
        &[],
        &[
            ("THARSIS_NUM_CPU", "1"),
            ("THARSIS_FOO", "1"),
            ("THARSIS_PORT", "7"),
            ("THARSIS_STORAGE_RETRIES", "1"),
        ],
    );
    assert_eq!(shown(&ended, "port").0, "7");
    let warnings: Vec<_> = ended.err.lines().collect();
    assert_eq!(warnings.len(), 2, "{}", ended.err);
    assert!(warnings.iter().all(|line| line.starts_with("tharsis: warning: THARSIS_")), "{}", ended.err);
    assert!(ended.err.contains("THARSIS_FOO") && ended.err.contains("did you mean THARSIS_NUM_CPUS?"));
}

#[test]
fn bytes_that_are_no_text_are_refused() {
    let home = Home::new();
    let path = home.text("t.toml");
    std::fs::write(&path, b"port = 1\n\xff\xfe").unwrap();
    show(&home, &["--config", &path], &[]).assert_refused(2, &["line 2, column 1", "UTF-8"]);
}

#[test]
fn a_flag_wins_over_a_variable_over_a_file_and_the_source_is_shown() {
    let home = Home::new();
    let path = home.text("t.toml");
    std::fs::write(&path, "num_cpus = 3\nport = 7\nlog_level = \"info\"\n").unwrap();
    let variables = [("THARSIS_NUM_CPUS", "2"), ("THARSIS_PORT", "6"), ("THARSIS_CONFIG", path.as_str())];
    let ended = show(&home, &["--num-cpus", "1"], &variables);
    assert_eq!(shown(&ended, "num_cpus"), ("1".to_owned(), "flag".to_owned()));
    assert_eq!(shown(&ended, "port"), ("6".to_owned(), "environment".to_owned()));
    assert_eq!(shown(&ended, "log_level"), ("info".to_owned(), format!("file {path}, line 3")));
    assert_eq!(shown(&ended, "lease_ttl"), ("10s".to_owned(), "default".to_owned()));
    let text = home.run(["config", "show", "--config", &path]);
    assert!(
        text.out.lines().any(|line| line.starts_with("port") && line.ends_with("line 2")),
        "{}",
        text.out
    );
}

#[test]
fn a_node_spills_where_its_settings_say_and_leaves_nothing_there() {
    let home = Home::new();
    let (spill, socket) = (home.path("spill"), home.text("s/node.sock"));
    std::fs::create_dir(&spill).unwrap();
    let dirs = format!("{}:64MiB", spill.display());
    let words = ["start", "--head", "--store", "16MiB", "--socket", &socket, "--spill-dirs", &dirs];
    let started = home.run(words);
    assert_eq!(started.status, 0, "{}", started.err);
    let names = || std::fs::read_dir(&spill).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap());
    assert!(names().any(|name| name.starts_with("tharsis-spill-")), "{:?}", names().collect::<Vec<_>>());
    assert_eq!(home.run(["stop", "--socket", &socket]).status, 0);
    home::await_that("the folder is empty", || names().count() == 0);
}

#[test]
fn a_bad_variable_is_named() {
    let home = Home::new();
    show(&home, &[], &[("THARSIS_STORE", "4x")]).assert_refused(2, &["THARSIS_STORE", "4x", "MiB"]);
    let long = "9".repeat(100_000);
    let ended = show(&home, &[], &[("THARSIS_STORE", &long)]);
    ended.assert_refused(2, &["THARSIS_STORE", &"9".repeat(190)]);
    assert!(ended.err.len() < 1000, "{} bytes", ended.err.len());
}

#[test]
fn a_node_is_what_its_file_says() {
    let home = Home::new();
    let path = home.text("t.toml");
    let file = format!(
        "socket = {:?}\nnum_cpus = 0.5\nstore = \"16MiB\"\nlabels = {{ zone = \"a\" }}\n[resources]\ntpu = 2\n",
        home.text("s/node.sock")
    );
    std::fs::write(&path, file).unwrap();
    let started = home.run(["start", "--head", "--config", &path]);
    assert_eq!(started.status, 0, "{}", started.err);
    let report = home.status(Some(&home.text("s/node.sock")));
    let total = report["nodes"][0]["total"].as_str().unwrap();
    assert!(total.contains("0.5 CPU") && total.contains("2 tpu"), "{total}");
    assert_eq!(report["nodes"][0]["labels"][0][0], "zone");
    assert_eq!(home.run(["stop", "--config", &path]).status, 0);
}
