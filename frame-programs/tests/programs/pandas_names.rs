//! The page of pandas' names says of each name what stands for it here, or why nothing does. It is made of
//! the table `pandas-names.txt`, and the table is held to the sources and to the operations of programs.

use crate::folder;
use crate::surface::Surface;
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;
use tharsis_frame_programs::registry;

/// Writes the page anew if it is set.
const UPDATE: &str = "UPDATE_PAGE";

/// The beginning of items that the crate `tharsis` has, which knows frames and tensors.
const BETWEEN: &str = "tharsis::frame::";

/// The head of the page, with places for the numbers of names.
const HEAD: &str = "# pandas' names

For each public name of pandas' frames, series, indices, groups, windows and accessors: what has its place
here, or why nothing does. Most methods have pandas' name; a dictionary of labels is pairs, an option with a
default is a method of its own or of an options value, and what changes a frame in place gives a new one.

The last column says whether [programs as data](programs-over-frames.md) may use the name. `UPDATE_PAGE=1
cargo test -p tharsis-frame-programs --test programs pandas_names` writes this page from
`dataframe/pandas-names.txt`; the same test holds each Rust form to the sources.
";

/// The counterpart of a name.
#[derive(Debug)]
enum State {
    /// Public items, and a remark.
    Made(Vec<String>, String),
    /// A reason why there is nothing.
    Never(String),
    /// Nothing so far, with a remark.
    Missing(String),
}

#[derive(Debug)]
struct Entry {
    section: String,
    name: String,
    state: State,
}

impl Entry {
    /// The name as pandas' users write it.
    fn full(&self) -> String {
        match self.section.as_str() {
            "groupby.agg" => format!("groupby.agg(\"{}\")", self.name),
            "programs" => self.name.clone(),
            section => format!("{section}.{}", self.name),
        }
    }

    /// Names of operations of programs that are this one.
    fn operations(&self) -> Vec<String> {
        let name = &self.name;
        match self.section.as_str() {
            "programs" => vec![name.clone()],
            "pd" | "np" => vec![format!("{}.{name}", self.section)],
            "DataFrameGroupBy" | "SeriesGroupBy" => vec![format!("pd.GroupBy.{name}")],
            // `__add__` is `add` there.
            section => vec![format!("pd.{section}.{}", name.trim_matches('_'))],
        }
    }
}

/// The table: `# section` lines, then `name = items; remark`, `name - reason` or `name ? remark`.
fn entries() -> Vec<Entry> {
    let text = std::fs::read_to_string(folder().join("../dataframe/pandas-names.txt")).unwrap();
    let mut section = String::new();
    let mut found = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty()) {
        if let Some(title) = line.strip_prefix("# ") {
            section = title.to_owned();
            continue;
        }
        let mut parts = line.splitn(3, ' ');
        let (name, sign) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
        let rest = parts.next().unwrap_or("").trim().to_owned();
        let state = match sign {
            "=" => {
                let (items, remark) = rest.split_once(';').unwrap_or((&rest, ""));
                let items = items.split(',').map(|item| item.trim().to_owned()).collect();
                State::Made(items, remark.trim().to_owned())
            }
            "-" if !rest.is_empty() => State::Never(rest),
            "?" => State::Missing(rest),
            _ => panic!("{line:?}: expected `name = items`, `name - reason` or `name ?`"),
        };
        found.push(Entry { section: section.clone(), name: name.to_owned(), state });
    }
    found
}

fn page() -> String {
    let entries = entries();
    let count = |fits: fn(&State) -> bool| entries.iter().filter(|entry| fits(&entry.state)).count();
    let mut page = HEAD.to_owned();
    writeln!(
        page,
        "\n{} names: {} are made, {} have no place here, {} are not made yet.",
        entries.len(),
        count(|state| matches!(state, State::Made(..))),
        count(|state| matches!(state, State::Never(_))),
        count(|state| matches!(state, State::Missing(_))),
    )
    .unwrap();
    let mut section = "";
    for entry in &entries {
        if section != entry.section {
            section = &entry.section;
            writeln!(page, "\n## {section}\n\n| pandas | here | programs |\n|---|---|---|").unwrap();
        }
        let here = match &entry.state {
            State::Made(items, remark) => {
                let items: Vec<String> = items.iter().map(|item| format!("`{item}`")).collect();
                let remark = if remark.is_empty() { String::new() } else { format!("; {remark}") };
                format!("{}{remark}", items.join(", "))
            }
            State::Never(reason) => format!("no: {reason}"),
            State::Missing(remark) if remark.is_empty() => "not yet".to_owned(),
            State::Missing(remark) => format!("not yet: {remark}"),
        };
        let known = entry.operations().iter().any(|name| registry::find(name).is_some());
        let programs = if known { "yes" } else { "" };
        writeln!(page, "| `{}` | {here} | {programs} |", entry.full()).unwrap();
    }
    page
}

#[test]
fn the_page_is_made_of_the_table() {
    let path = folder().parent().unwrap().join("docs/pandas-names.md");
    let page = page();
    if std::env::var_os(UPDATE).is_some() {
        std::fs::write(&path, page).unwrap();
        return;
    }
    let found = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(found == page, "{} differs from the table; {UPDATE}=1 writes it anew", path.display());
}

#[test]
fn each_name_stands_once() {
    let mut seen = BTreeSet::new();
    for entry in entries() {
        assert!(seen.insert(entry.full()), "{} stands twice", entry.full());
    }
}

#[test]
fn each_rust_form_is_a_public_item() {
    let surface = Surface::of_folder(&folder().join("../dataframe/src"));
    let between = texts_of(&folder().join("../tharsis/src/between"));
    let is_made = |item: &str| match item.strip_prefix(BETWEEN) {
        Some(method) => declares(&between, method),
        None => surface.has(item),
    };
    let mut wrong = Vec::new();
    for entry in entries() {
        let State::Made(items, _) = &entry.state else { continue };
        wrong.extend(items.iter().filter(|item| !is_made(item)).map(|item| (entry.full(), item.clone())));
    }
    assert!(wrong.is_empty(), "no public items: {wrong:#?}");
}

/// Whether one of the texts declares a method of a public trait, such as `ToTensor::to_tensor`.
fn declares(texts: &[String], method: &str) -> bool {
    let Some((of, method)) = method.split_once("::") else { return false };
    let has = |text: &String| {
        text.split_once(&format!("pub trait {of} {{")).is_some_and(|(_, methods)| {
            ["(", "<"].iter().any(|end| methods.contains(&format!("fn {method}{end}")))
        })
    };
    texts.iter().any(has)
}

/// The files of a folder.
fn texts_of(folder: &Path) -> Vec<String> {
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.map(|file| std::fs::read_to_string(file).unwrap()).collect()
}

#[test]
fn methods_between_crates_are_read_from_traits() {
    let texts = ["pub trait ToTensor {\n fn to_tensor(&self);\n fn part<'a>(&self);\n}".to_owned()];
    assert!(declares(&texts, "ToTensor::to_tensor") && declares(&texts, "ToTensor::part"));
    for other in ["ToTensor::to_frame", "ToFrame::to_tensor", "to_tensor"] {
        assert!(!declares(&texts, other), "{other}");
    }
}

#[test]
fn each_operation_of_programs_is_in_the_table() {
    let known: BTreeSet<String> = entries().iter().flat_map(Entry::operations).collect();
    let operations = registry::all().map(|operation| operation.name);
    let lacking: Vec<&str> = operations.filter(|name| !known.contains(*name)).collect();
    assert!(lacking.is_empty(), "operations that the table lacks: {lacking:?}");
}

#[test]
fn items_are_read_from_sources() {
    let text = r#"
        macro_rules! made { ($($name:ident $way:expr),*) => {
            impl Frame { $(pub fn $name(&self) -> Frame { self.fold($way, "}") })* pub fn fixed(&self) {} }
        }; }
        made!(
            /// The sum.
            sum 'a', mean Way::Mean(1, 2));
        macro_rules! for_each { ($from:ident) => { impl Window<$from> { pub fn of(&self) {} }
            impl $from { pub fn window(&self) {} } }; }
        for_each!(Frame);
        impl<T: Into<Frame>> ops::Add<T> for &Frame { fn add(self, other: T) -> Frame { hidden!(pub fn no) } }
        impl Frame { fn private(&self) {} pub fn plain<'a>(&'a self) -> &'a str { "pub fn text" } }
        impl Inner { pub fn inside(&self) {} }
        pub enum Way { /// One.
            Mean(u8, u8), #[default] Sum }
    "#;
    let library = "mod a; pub use a::{Frame, Window}; pub use b::Way; use a::Inner;".to_owned();
    let shared = "macro_rules! with { ($type:ident; $($of:ident),*) => { $(impl ops::$of for $type {})* } }
        pub(crate) use with;";
    let texts = [text, shared, "with!(Frame; Mul, Div);"].map(str::to_owned);
    let surface = Surface::of(&texts, &library);
    let items = ["Frame", "Frame::sum", "Frame::mean", "Frame::fixed", "Frame::plain", "Frame::window"];
    for item in items.iter().chain(&["Window::of", "Add for Frame", "Div for Frame", "Way::Mean", "Way::Sum"])
    {
        assert!(surface.has(item), "{item}");
    }
    let others = ["Inner", "Inner::inside", "Frame::private", "Frame::of", "Window::window", "Frame::text"];
    for item in others.iter().chain(&["Window::sum", "Frame::no", "a", "Way::u8", "Way::Mean(u8"]) {
        assert!(!surface.has(item), "{item}");
    }
}
