//! The lists of the compiler that lints are what the tree says: crates with unsafe code, and forms without
//! features.

use crate::{packages, root, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use xtask::lint::{FORM_FILES, FORMS, Form, UNSAFE};
use xtask::scan::tokens;

/// A crate of the workspace, and the file that it begins with.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Target {
    package: String,
    name: String,
    root: PathBuf,
}

/// The crates of all packages. A library and a program may have one name.
fn targets() -> Vec<Target> {
    let mut found = Vec::new();
    for package in packages() {
        for target in package["targets"].as_array().expect("targets") {
            found.push(Target {
                package: package["name"].as_str().expect("a name").to_owned(),
                name: target["name"].as_str().expect("a name").replace('-', "_"),
                root: Path::new(target["src_path"].as_str().expect("a path")).canonicalize().unwrap(),
            });
        }
    }
    found
}

/// Whether a file may belong to a crate: it is its first one, or lies in the folder of that and begins no
/// other.
fn may_have(target: &Target, file: &Path, roots: &BTreeSet<&Path>) -> bool {
    if roots.contains(file) {
        return target.root == file;
    }
    let is_of_folder =
        matches!(target.root.file_stem().and_then(|stem| stem.to_str()), Some("lib" | "main" | "mod"));
    is_of_folder && target.root.parent().is_some_and(|folder| file.starts_with(folder))
}

fn has_unsafe(text: &str) -> bool {
    tokens(text).contains(&"unsafe")
}

#[test]
fn crates_with_unsafe_code_are_listed_exactly() {
    let targets = targets();
    let roots: BTreeSet<&Path> = targets.iter().map(|target| &*target.root).collect();
    let mut found = BTreeSet::new();
    for (path, text) in sources() {
        if path.starts_with(root().join("fuzz")) || !has_unsafe(&text) {
            continue;
        }
        let owners: Vec<&Target> = targets.iter().filter(|target| may_have(target, &path, &roots)).collect();
        assert!(!owners.is_empty(), "{} has unsafe code and belongs to no crate", path.display());
        found.extend(owners.into_iter().map(|owner| (owner.package.clone(), owner.name.clone())));
    }
    let listed: BTreeSet<_> =
        UNSAFE.iter().map(|(package, name)| ((*package).to_owned(), (*name).to_owned())).collect();
    assert_eq!(found, listed, "found, and listed in xtask/src/lint.rs");
}

/// The files of modules that a crate has only without a feature.
fn of_forms(path: &Path, text: &str) -> Vec<PathBuf> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new(""));
    let inner = if matches!(stem, "lib" | "main" | "mod") { folder.to_owned() } else { folder.join(stem) };
    let (mut found, mut is_of_form, mut named) = (Vec::new(), false, None);
    for line in text.lines().map(str::trim) {
        if line.starts_with("#[") {
            is_of_form |= line.contains("not(feature");
            let path = line.split_once("path = \"").and_then(|(_, rest)| rest.split_once('"'));
            named = path.map(|(file, _)| folder.join(file)).or(named);
            continue;
        }
        let module = line.strip_suffix(';').and_then(|line| line.rsplit_once("mod ")).map(|(_, name)| name);
        if let Some(module) = module.filter(|_| is_of_form) {
            let files = [inner.join(format!("{module}.rs")), inner.join(module).join("mod.rs")];
            found.extend(named.take().or_else(|| files.into_iter().find(|file| file.exists())));
        }
        (is_of_form, named) = (false, None);
    }
    found
}

#[test]
fn files_that_only_a_form_has_are_listed_exactly() {
    let sources = sources();
    let product = sources.iter().filter(|(path, _)| !path.starts_with(root().join("xtask")));
    let found = product.flat_map(|(path, text)| of_forms(path, text));
    let found: BTreeSet<_> =
        found.map(|file| file.strip_prefix(root()).unwrap().display().to_string()).collect();
    let listed: BTreeSet<_> = FORM_FILES.iter().map(|file| (*file).to_owned()).collect();
    assert_eq!(found, listed, "found, and listed in xtask/src/lint.rs");
}

#[test]
fn unsafe_in_a_text_or_a_comment_is_none() {
    assert!(has_unsafe("fn a() { unsafe { b() } }") && has_unsafe("unsafe impl A for B {}"));
    assert!(!has_unsafe("#![forbid(unsafe_code)]\n// unsafe\nfn a() { say(\"unsafe\") }"));
}

/// The features of a package, each with all that it enables.
struct Features(BTreeMap<String, Vec<String>>);

impl Features {
    fn of(package: &str) -> Self {
        let target = targets().into_iter().find(|target| target.package == package).expect("a package");
        let folder = target.root.ancestors().find(|folder| folder.join("Cargo.toml").exists()).unwrap();
        let manifest: toml::Table =
            std::fs::read_to_string(folder.join("Cargo.toml")).unwrap().parse().unwrap();
        let enabled = |list: &toml::Value| {
            let list = list.as_array().expect("a list").iter();
            list.map(|one| one.as_str().expect("a text").to_owned()).collect()
        };
        let table = manifest["features"].as_table().expect("features");
        Self(table.iter().map(|(name, list)| (name.clone(), enabled(list))).collect())
    }

    /// A feature and all features of the package that it enables.
    fn with(&self, name: &str) -> BTreeSet<String> {
        let mut found = BTreeSet::from([name.to_owned()]);
        for enabled in self.0[name].iter().filter(|enabled| self.0.contains_key(*enabled)) {
            found.extend(self.with(enabled));
        }
        found
    }

    /// The optional dependencies of some features, as crates.
    fn crates<'a>(&self, features: impl Iterator<Item = &'a String>) -> BTreeSet<String> {
        let enabled = features.flat_map(|name| &self.0[name]);
        enabled.filter_map(|enabled| Some(enabled.strip_prefix("dep:")?.replace('-', "_"))).collect()
    }
}

/// The features that a form has, and an answer for what is wrong with it.
fn kept(form: &Form, features: &Features) -> Result<BTreeSet<String>, String> {
    let left_out: BTreeSet<String> = form.features.iter().map(|name| (*name).to_owned()).collect();
    if let Some(unknown) = left_out.iter().find(|name| !features.0.contains_key(*name)) {
        return Err(format!("{} has no feature {unknown}", form.package));
    }
    let kept: BTreeSet<String> =
        features.0.keys().filter(|name| !left_out.contains(*name)).cloned().collect();
    if let Some(name) = kept.iter().find(|name| !features.with(name).is_disjoint(&left_out)) {
        return Err(format!("{}: {name} enables a feature that is left out", form.package));
    }
    let crates: BTreeSet<_> =
        features.crates(left_out.iter()).difference(&features.crates(kept.iter())).cloned().collect();
    let listed: BTreeSet<String> = form.crates.iter().map(|name| (*name).to_owned()).collect();
    if crates != listed {
        return Err(format!("{}: without {left_out:?} go {crates:?}, not {listed:?}", form.package));
    }
    Ok(kept)
}

#[test]
fn forms_lack_the_crates_of_the_features_that_they_lack() {
    let targets = targets();
    for form in FORMS {
        let is_there =
            targets.iter().any(|target| target.package == form.package && target.name == form.name);
        assert!(is_there, "{} has no crate {}", form.package, form.name);
        if let Err(wrong) = kept(form, &Features::of(form.package)) {
            panic!("{wrong}");
        }
    }
}

/// Features without which a command of the run compiles a package, beside the forms.
const BY_COMMANDS: &[(&str, &str)] = &[("tharsis-numeric", "dense")];

/// The features without which a text has other code.
fn negated(text: &str) -> BTreeSet<String> {
    let code = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let after = code.flat_map(|line| line.split("not(feature = \"").skip(1));
    after.filter_map(|rest| Some(rest.split_once('"')?.0.to_owned())).collect()
}

#[test]
fn code_that_only_a_form_has_is_read() {
    for package in packages() {
        let name = package["name"].as_str().expect("a name");
        let manifest = Path::new(package["manifest_path"].as_str().expect("a path"));
        let folder = manifest.parent().unwrap().strip_prefix(root().canonicalize().unwrap()).unwrap();
        let folder = root().join(folder);
        let is_own =
            |file: &Path| file.ancestors().skip(1).find(|up| up.join("Cargo.toml").exists()) == Some(&folder);
        let sources = sources();
        let own = sources.iter().filter(|(path, _)| is_own(path));
        for feature in own.flat_map(|(_, text)| negated(text)) {
            let is_read = FORMS.iter().any(|form| form.package == name && form.features.contains(&&*feature));
            let is_built = BY_COMMANDS.contains(&(name, &*feature));
            assert!(is_read || is_built, "nothing compiles {name} without its feature {feature}");
        }
    }
    let planted = "#[cfg(not(feature = \"a\"))]\n// not(feature = \"b\")\nmod c;";
    assert_eq!(negated(planted), BTreeSet::from(["a".to_owned()]));
}

#[test]
fn the_engine_is_read_as_cargo_add_gives_it() {
    let features = Features::of("tharsis");
    let forms = FORMS.iter().filter(|form| form.package == "tharsis");
    let forms: Vec<_> = forms.filter_map(|form| kept(form, &features).ok()).collect();
    assert!(forms.contains(&features.with("default")), "{forms:?}");
}
