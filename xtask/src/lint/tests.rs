//! Tests of how the compiler is called.

use super::*;

/// The words with which a crate is read.
fn of(words: &str, features: &'static [&'static str], crates: &'static [&'static str]) -> String {
    let words = words.split(' ').map(OsString::from).collect();
    let found = reading(words, &Reading { features, crates }, Path::new("/s"));
    found.iter().map(|word| word.to_str().unwrap()).collect::<Vec<_>>().join(" ")
}

#[test]
fn what_is_left_out_is_gone_with_its_option() {
    let words = "rustc a.rs --cfg feature=\"x\" --cfg feature=\"xy\" --cfg=feature=\"x\" --cfg unix";
    assert_eq!(of(words, &["x"], &[]), "rustc a.rs --cfg feature=\"xy\" --cfg unix");
    let words = "rustc --extern x=/x.rlib --extern priv:x=/x.rlib --extern x_y=/x.rlib --extern proc_macro";
    assert_eq!(of(words, &[], &["x"]), "rustc --extern x_y=/x.rlib --extern proc_macro");
}

#[test]
fn everything_else_stays_as_it_is() {
    let words = "rustc --crate-name x --edition=2024 a.rs --error-format=json --crate-type lib -C opt-level=2 \
                 -Cpanic=abort --check-cfg cfg(feature,values(\"x\")) --cfg feature=\"x\" -C metadata=1 -L \
                 dependency=/d --extern x=/x.rlib --test --cap-lints warn";
    let found = of(words, &[], &[]);
    assert_eq!(found, words.replace("-Cpanic=abort", "-C panic=abort"));
}

#[test]
fn nothing_of_a_reading_reaches_cargo() {
    let words = "rustc --emit=dep-info,metadata,link --json=diagnostic-rendered-ansi,artifacts,future-incompat \
                 --out-dir /target/debug/deps -C incremental=/target/debug/incremental -Cincremental=/i a.rs";
    let wanted = "rustc --emit=metadata --json=diagnostic-rendered-ansi,future-incompat --out-dir /s a.rs";
    assert_eq!(of(words, &[], &[]), wanted);
    assert_eq!(
        of("rustc --out-dir=/t --emit link a.rs", &[], &[]),
        "rustc --out-dir /s --emit=metadata a.rs"
    );
}

#[test]
fn words_may_stand_in_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("words");
    fs::write(&file, "--cfg\nfeature=\"x\"\na b.rs\n").unwrap();
    let words = ["rustc".into(), OsString::from(format!("@{}", file.display()))];
    assert_eq!(expanded(&words).unwrap(), ["rustc", "--cfg", "feature=\"x\"", "a b.rs"]);
    assert!(expanded(&["@/nowhere/at/all".into()]).is_err());
}

#[test]
fn only_programs_are_linked() {
    let of = |words: &str| is_program(&words.split(' ').map(OsString::from).collect::<Vec<_>>());
    assert!(of("rustc --crate-name x a.rs --crate-type bin --emit=link"));
    assert!(of("rustc --crate-name x a.rs --test"), "tests of a library");
    assert!(!of("rustc --crate-name bin a.rs --crate-type lib"));
}

#[test]
fn examples_are_known_by_their_folder() {
    let of = |words: &str| is_example(&words.split(' ').map(OsString::from).collect::<Vec<_>>());
    assert!(of("rustc a.rs --out-dir /t/debug/examples -L dependency=/t/debug/deps"));
    assert!(of("rustc a.rs --out-dir=/t/debug/examples"));
    assert!(!of("rustc a.rs --out-dir /t/debug/deps -L /t/debug/examples"));
    assert!(!of("rustc --crate-name examples a.rs") && !of("rustc a.rs --out-dir"));
}

#[test]
fn programs_that_travel_and_those_that_nobody_looks_into_have_no_symbols() {
    let of = |package, name, words: &str| {
        is_stripped(package, name, &words.split(' ').map(OsString::from).collect::<Vec<_>>())
    };
    assert!(of("tharsis-cluster-tests", "cluster", "rustc a.rs --crate-type bin --cfg test"));
    assert!(of("tharsis-sqllogic", "sqllogic", "rustc a.rs --crate-type bin"));
    assert!(of("tharsis-examples", "pi", "rustc a.rs --crate-type bin --out-dir /t/debug/examples"));
    assert!(
        !of("tharsis-sqllogic", "sqllogic", "rustc a.rs --test")
            && !of("tharsis-cli", "tharsis", "rustc a.rs")
    );
}

#[test]
fn one_program_of_several_processes_lies_elsewhere_in_each() {
    assert!(!is_placed("tharsis-cluster-tests", "cluster") && is_placed("tharsis-cli", "driver"));
}

#[test]
fn a_crate_is_read_in_each_form_and_as_it_is_if_clippy_does_not_compile_it() {
    let count = |package, name, is_test| readings(package, name, is_test).len();
    assert_eq!([count("tharsis", "tharsis", false), count("tharsis", "tharsis", true)], [2, 1]);
    assert_eq!(count("tharsis", "misuse", true), 0);
    assert_eq!(count("tharsis-cli", "tharsis_cli", false), 2, "without frames, and as it is");
    assert_eq!(count("tharsis-kernels", "tharsis_kernels", true), 2);
    assert_eq!(count("tharsis-object-store", "tharsis_object_store", true), 1);
    assert_eq!(count("tharsis-object-store-models", "tharsis_object_store_models", true), 0);
    assert_eq!(count("", "", false), 0, "cargo asks for the version");
}

#[test]
fn another_rule_is_another_compiler_and_the_old_one_goes() {
    let (root, target) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let write = |file: &str, text: &str| {
        let path = root.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    };
    let install = || install(root.path(), target.path(), &["core", "tests/sim"]).unwrap();
    write("Cargo.toml", "[workspace]\n[workspace.lints.rust]\na = 1\n[profile.dev]\nb = 1\n");
    let mut last = install();
    assert_eq!(install(), last);
    write("Cargo.toml", "[workspace]\n[workspace.lints.rust]\n# Of c.\na = 1\n\n[profile.dev]\nb = 2\n");
    assert_eq!(install(), last, "no rule has changed");
    fs::create_dir_all(target.path().join(SCRATCH).join("1")).unwrap();
    let changes = [
        ("Cargo.toml", "[workspace]\n[workspace.lints.rust]\na = 2\n"),
        ("clippy.toml", "a = 1"),
        ("core/clippy.toml", "a = 1"),
        ("core/clippy.toml", "a = 2"),
        ("tests/clippy.toml", "a = 1"),
        ("gcs/src/no_journal.rs", "fn a() {}"),
        ("gcs/src/no_journal.rs", "fn b() {}"),
    ];
    for (file, text) in changes {
        write(file, text);
        let next = install();
        assert_ne!(next, last, "{file}: {text}");
        let left: Vec<_> = fs::read_dir(target.path()).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert_eq!(left, std::slice::from_ref(&next), "older ones and what they left are gone");
        last = next;
    }
}
