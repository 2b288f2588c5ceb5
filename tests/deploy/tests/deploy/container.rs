//! The files of images: no shell in the image, a user that is not root, the release that the workspace needs,
//! and one image, whether of the sources or of a release.

use crate::root;

/// The instructions of the file that builds the program.
fn instructions() -> Vec<(String, String)> {
    instructions_of("Containerfile")
}

/// The instructions of a file, with their lines joined.
fn instructions_of(file: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join("deploy/container").join(file)).unwrap();
    let joined = text.replace("\\\n", " ");
    let lines = joined.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines
        .map(|line| line.split_once(' ').unwrap())
        .map(|(a, b)| (a.to_owned(), b.trim().to_owned()))
        .collect()
}

/// The arguments of an instruction in the last stage.
fn last_stage(name: &str) -> Vec<String> {
    let all = instructions();
    let begin = all.iter().rposition(|(instruction, _)| instruction == "FROM").unwrap();
    all[begin..].iter().filter(|(instruction, _)| instruction == name).map(|(_, text)| text.clone()).collect()
}

#[test]
fn the_image_has_no_shell_and_runs_as_a_user_with_a_number() {
    assert!(last_stage("FROM")[0].contains("distroless/cc-debian12:nonroot"));
    assert!(last_stage("RUN").is_empty(), "there is no shell to run it");
    let [user] = &last_stage("USER")[..] else { panic!("one user") };
    // Kubernetes checks `runAsNonRoot` by the number.
    let (user, group) = user.split_once(':').unwrap();
    assert!(0 < user.parse::<u32>().unwrap() && 0 < group.parse::<u32>().unwrap());
    assert_eq!(last_stage("ENTRYPOINT"), ["[\"/usr/local/bin/tharsis\"]"]);
}

#[test]
fn the_user_of_the_image_is_that_of_the_manifests() {
    let user = last_stage("USER")[0].split(':').next().unwrap().to_owned();
    for manifest in ["head.yaml", "workers.yaml"] {
        let text = std::fs::read_to_string(root().join("deploy/kubernetes").join(manifest)).unwrap();
        assert!(text.contains(&format!("runAsUser: {user}\n")), "{manifest}");
    }
}

#[test]
fn the_program_is_built_with_the_release_that_the_workspace_needs() {
    let manifest = std::fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let needed =
        manifest.lines().find_map(|line| line.strip_prefix("rust-version = ")).unwrap().trim_matches('"');
    let (_, argument) = instructions().into_iter().find(|(name, _)| name == "ARG").unwrap();
    assert!(argument.starts_with(&format!("RUST={needed}.")), "{argument}, and {needed} is needed");
    let build = instructions().into_iter().find(|(name, text)| name == "RUN" && text.contains("cargo build"));
    let (_, build) = build.unwrap();
    assert!(build.contains("--locked") && build.contains("--package tharsis-cli --bin tharsis"), "{build}");
}

#[test]
fn the_image_of_a_release_is_that_of_the_sources() {
    // The place of a file in the image, whatever stage it comes from.
    let last_stage = |file: &str| {
        let all = instructions_of(file);
        let begin = all.iter().rposition(|(name, _)| name == "FROM").unwrap();
        let place = |(name, text): &(String, String)| {
            let words: Vec<&str> = text.split_whitespace().collect();
            let of_copy = words.iter().filter(|word| word.starts_with("--chown=")).chain(words.last());
            let text = of_copy.copied().collect::<Vec<_>>().join(" ");
            (name.clone(), if name == "COPY" { text } else { words.join(" ") })
        };
        all[begin..].iter().map(place).collect::<Vec<_>>()
    };
    let mut released = last_stage("Containerfile.release");
    let notices = ("COPY".to_owned(), "/usr/share/doc/tharsis".to_owned());
    let at = released.iter().position(|one| *one == notices).expect("the notices of what is in the program");
    released.remove(at);
    assert_eq!(released, last_stage("Containerfile"));
}
