//! The lists of the compiler that lints are what the tree says: crates with unsafe code, and forms without
//! features.

use crate::{packages, root, sources};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use xtask::lint::{FORM_FILES, FORMS, Form, UNSAFE};
use xtask::scan::{Kind, Piece, pieces, tokens};

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

/// The tokens of a text's code, with its literals, without comments.
fn words(text: &str) -> Vec<&str> {
    let code = pieces(text).into_iter().filter(|piece| matches!(piece.kind, Kind::Code | Kind::Literal));
    let of_piece = |piece: Piece| {
        let part = &text[piece.range];
        if piece.kind == Kind::Code { tokens(part) } else { vec![part] }
    };
    code.flat_map(of_piece).collect()
}

/// The place behind the group that the bracket at the beginning opens.
fn after_group(words: &[&str]) -> usize {
    let mut depth = 0_usize;
    for (at, word) in words.iter().enumerate() {
        match *word {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return at + 1;
        }
    }
    words.len()
}

/// The literals after `name =`, without their quotes.
fn named<'a>(words: &[&'a str], name: &str) -> Vec<&'a str> {
    let found = words.windows(3).filter(|three| three[0] == name && three[1] == "=");
    found.map(|three| three[2].trim_matches('"')).collect()
}

/// The features of which a condition says `not`, at any depth.
fn negated<'a>(words: &[&'a str]) -> BTreeSet<&'a str> {
    let of_group = |at: usize| {
        let is_not = words[at] == "not" && words.get(at + 1) == Some(&"(");
        let group = &words[at + 1..];
        is_not.then(|| named(&group[..after_group(group)], "feature"))
    };
    (0..words.len()).filter_map(of_group).flatten().collect()
}

/// The files of modules that a text names, and whether the crate has each only without a feature. The text's
/// own file is among them if that is so of all of it.
fn modules(path: &Path, text: &str, exists: impl Fn(&Path) -> bool) -> Vec<(PathBuf, bool)> {
    let stem = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let folder = path.parent().unwrap_or(Path::new(""));
    let of_modules =
        if matches!(stem, "lib" | "main" | "mod") { folder.to_owned() } else { folder.join(stem) };
    // Of each block that is open: the folder of its modules if it is a module, and whether it is of a form.
    let mut blocks = vec![(of_modules, false)];
    let (words, mut found) = (words(text), Vec::new());
    let (mut at, mut is_of_form, mut file) = (0, false, None);
    while at < words.len() {
        let (inner, around) = &blocks[blocks.len() - 1];
        let is_only = is_of_form || *around;
        let is_inner = words[at..].starts_with(&["#", "!", "["]);
        match words[at..] {
            ["#", "[", ..] | ["#", "!", "[", ..] => {
                let group = &words[at + 1 + usize::from(is_inner)..];
                let attribute = &group[..after_group(group)];
                at += 1 + usize::from(is_inner) + attribute.len();
                let is_without = !negated(attribute).is_empty();
                let paths = named(attribute, "path");
                let is_cfg = attribute.get(1) == Some(&"cfg");
                if is_inner && is_cfg && is_without {
                    found.push((path.to_owned(), true));
                    continue;
                }
                // A path with a feature leaves the usual one to the form.
                let is_choice = attribute.get(1) == Some(&"cfg_attr") && !paths.is_empty();
                let is_with = is_choice && !is_without && !named(attribute, "feature").is_empty();
                is_of_form |= is_cfg && is_without || is_choice && (is_without || is_with);
                let base = if blocks.len() == 1 { folder } else { inner };
                file = paths.first().filter(|_| !is_with).map(|name| base.join(name)).or(file);
                continue;
            }
            ["mod", name, ";", ..] => {
                // A test or a program of one file has its modules beside it.
                let folders = [Some(&**inner), (blocks.len() == 1).then_some(folder)].into_iter().flatten();
                let mut files = folders
                    .flat_map(|folder| [folder.join(format!("{name}.rs")), folder.join(name).join("mod.rs")]);
                let file = file.take().or_else(|| files.find(|file| exists(file)));
                found.extend(file.map(|file| (file, is_only)));
                (at, is_of_form) = (at + 3, false);
                continue;
            }
            ["mod", name, "{", ..] => {
                blocks.push((inner.join(name), is_only));
                (at, is_of_form, file) = (at + 3, false, None);
                continue;
            }
            ["{", ..] => blocks.push((inner.clone(), is_only)),
            ["}", ..] if 1 < blocks.len() => drop(blocks.pop()),
            _ => {}
        }
        if matches!(words[at], "{" | "}" | ";") {
            (is_of_form, file) = (false, None);
        }
        at += 1;
    }
    found
}

/// The files that a crate has only without a feature, of all these files.
fn of_forms(sources: &BTreeMap<PathBuf, String>) -> BTreeSet<PathBuf> {
    let is_there = |file: &Path| sources.contains_key(file);
    let all: BTreeMap<&PathBuf, _> =
        sources.iter().map(|(path, text)| (path, modules(path, text, is_there))).collect();
    let only = all.values().flatten().filter(|(_, is_of_form)| *is_of_form);
    let mut left: Vec<&PathBuf> = only.map(|(file, _)| file).collect();
    let mut found = BTreeSet::new();
    while let Some(file) = left.pop() {
        if found.insert(file.to_owned()) {
            left.extend(all.get(file).into_iter().flatten().map(|(inside, _)| inside));
        }
    }
    found
}

#[test]
fn files_that_only_a_form_has_are_listed_exactly() {
    let product: BTreeMap<_, _> =
        sources().into_iter().filter(|(path, _)| !path.starts_with(root().join("xtask"))).collect();
    let found = of_forms(&product).into_iter();
    let found: BTreeSet<_> =
        found.map(|file| file.strip_prefix(root()).unwrap().display().to_string()).collect();
    let listed: BTreeSet<_> = FORM_FILES.iter().map(|file| (*file).to_owned()).collect();
    assert_eq!(found, listed, "found, and listed in xtask/src/lint.rs");
}

#[test]
fn files_of_forms_are_found_in_every_shape() {
    let without = "#[cfg(not(feature = \"a\"))]";
    let cases = [
        (format!("{without}\nmod x;"), "x.rs"),
        (format!("{without} pub(crate) mod x;"), "x.rs"),
        (format!("{without}\n/// Docs.\n// A comment; with signs {{\n/* and more */\nmod x;"), "x.rs"),
        (format!("{without}\n#[allow(dead_code)]\nmod x;"), "x.rs"),
        ("#[cfg(not(any(feature = \"a\", test)))] mod x;".to_owned(), "x.rs"),
        ("#[cfg(any(test, not(all(unix, feature = \"a\"))))] mod x;".to_owned(), "x.rs"),
        ("#[cfg(\n    not(\n        feature = \"a\"\n    )\n)]\nmod x;".to_owned(), "x.rs"),
        ("#[cfg(not( feature=\"a\" ))] mod x ;".to_owned(), "x.rs"),
        (format!("{without}\n#[path = \"other.rs\"]\nmod x;"), "other.rs"),
        ("#[cfg_attr(not(feature = \"a\"), path = \"other.rs\")] mod x;".to_owned(), "other.rs"),
        ("#[cfg_attr(feature = \"a\", path = \"other.rs\")] mod x;".to_owned(), "x.rs"),
        (format!("{without} mod m {{ fn f() {{ g({{}}) }} mod y; }} mod x;"), "m/y.rs"),
        (format!("mod m {{ {without} mod y; }}"), "m/y.rs"),
        ("#![cfg(not(feature = \"a\"))]\nmod m { fn f() {} }".to_owned(), "lib.rs"),
        (format!("{without} mod tree;"), "tree/mod.rs tree/leaf.rs"),
        (format!("{without} use a::b;\nmod x;"), ""),
        (format!("{without} fn f() {{ g() }}\nmod x;"), ""),
        (format!("const TEXT: &str = \"\n{}\nmod x;\";", without.replace('"', "\\\"")), ""),
        ("#[cfg_attr(not(feature = \"a\"), expect(dead_code, reason = \"r\"))] mod x;".to_owned(), ""),
        ("#[cfg(feature = \"a\")] mod x;\n#[cfg(not(unix))] mod other;".to_owned(), ""),
        ("#[test]\nfn f() {}\nmod x;".to_owned(), ""),
    ];
    for (text, expected) in cases {
        let other =
            ["x.rs", "other.rs", "m/y.rs", "tree/leaf.rs", "beside.rs"].map(|name| (name, String::new()));
        let program = ("program.rs", "#[cfg(not(feature = \"a\"))] mod beside;".to_owned());
        let tree = [("tree/mod.rs", "mod leaf;".to_owned()), ("lib.rs", text.clone()), program];
        let sources = other.into_iter().chain(tree).map(|(name, text)| (PathBuf::from(name), text));
        let found = of_forms(&sources.collect());
        let expected = expected.split_whitespace().chain(["beside.rs"]).map(PathBuf::from).collect();
        assert_eq!(found, expected, "{text}");
    }
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
        for feature in own.flat_map(|(_, text)| negated(&words(text))) {
            let is_read = FORMS.iter().any(|form| form.package == name && form.features.contains(&feature));
            let is_built = BY_COMMANDS.contains(&(name, feature));
            assert!(is_read || is_built, "nothing compiles {name} without its feature {feature}");
        }
    }
    let planted = "#[cfg(not(feature = \"a\"))]\n// not(feature = \"b\")\nmod c;\n\
                   fn f() { cfg!(any(feature = \"d\", not(all(feature = \"e\", unix)))) }";
    assert_eq!(negated(&words(planted)), BTreeSet::from(["a", "e"]));
}

#[test]
fn the_engine_is_read_as_cargo_add_gives_it() {
    let features = Features::of("tharsis");
    let forms = FORMS.iter().filter(|form| form.package == "tharsis");
    let forms: Vec<_> = forms.filter_map(|form| kept(form, &features).ok()).collect();
    assert!(forms.contains(&features.with("default")), "{forms:?}");
}
