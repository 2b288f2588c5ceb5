//! Names that a file takes from others: `use` items, and paths written where they are used.
//!
//! A scan of tokens, not a parser. It does not see methods (`frame.sum()` needs the file that has `sum`), and
//! takes a name for the file that the path to it leads to, through any number of `pub use`.

use std::collections::{BTreeMap, BTreeSet};
use xtask::scan::tokens;

/// A module, by the names on the way to it from the root of its crate.
pub type Module = Vec<String>;

/// The modules that each module needs, each with a path that says so.
pub type Imports = BTreeMap<Module, BTreeMap<Module, String>>;

/// Words with which an item begins whose name follows.
const ITEMS: &[&str] = &["fn", "struct", "enum", "trait", "type", "const", "static", "union", "mod"];

/// Words with which an item begins that ends with its braces.
const BLOCKS: &[&str] =
    &["fn", "struct", "enum", "trait", "mod", "impl", "unsafe", "async", "extern", "macro_rules"];

/// The part of a file that is looked at.
#[derive(Default)]
pub struct File {
    /// Items of the file itself.
    defined: BTreeSet<String>,
    /// `use` items outside functions, by the name that they bring.
    names: BTreeMap<String, Module>,
    /// All `use` items.
    uses: Vec<Use>,
    /// Paths that begin with `crate`, `self` or `super`, from the root of the crate.
    paths: BTreeSet<Module>,
    /// Paths that begin with another name.
    relative: BTreeSet<Module>,
    /// Every word of the code.
    words: BTreeSet<String>,
}

struct Use {
    /// From the root of the crate, or relative to the file.
    path: Module,
    is_relative: bool,
    name: String,
    is_glob: bool,
    is_public: bool,
}

/// The files of one crate.
pub struct Crate(BTreeMap<Module, File>);

impl Crate {
    pub fn read(files: &BTreeMap<Module, String>) -> Self {
        let is_of_tests = |name: &String| name == "tests" || name.ends_with("_tests");
        let product = files.iter().filter(|(module, _)| !module.iter().any(is_of_tests));
        Self(product.map(|(module, text)| (module.clone(), File::read(module, text))).collect())
            .with_relative_uses()
    }

    /// Makes the paths of `use` items absolute that begin with a module or an item of the same file, and
    /// forgets those of other crates.
    fn with_relative_uses(mut self) -> Self {
        let modules: BTreeSet<Module> = self.0.keys().cloned().collect();
        for (module, file) in &mut self.0 {
            for used in file.uses.iter_mut().filter(|used| used.is_relative) {
                let first: Vec<String> = module.iter().chain(&used.path[..1]).cloned().collect();
                if modules.contains(&first) || file.defined.contains(&used.path[0]) {
                    used.path = module.iter().chain(&used.path).cloned().collect();
                    used.is_relative = false;
                }
            }
            file.uses.retain(|used| !used.is_relative);
            let named = file.uses.iter().filter(|used| !used.is_glob);
            file.names = named.map(|used| (used.name.clone(), used.path.clone())).collect();
        }
        self
    }

    /// The modules whose items each module names, each with a path that does. A module that only hands on
    /// what lies below it does not need that, and one that names what its ancestors define is a part of them.
    pub fn imports(&self) -> Imports {
        self.0.iter().map(|(module, file)| (module.clone(), self.needs(module, file))).collect()
    }

    fn needs(&self, module: &Module, file: &File) -> BTreeMap<Module, String> {
        let below = |name: &[String], rest: &[String]| -> Module { [name, rest].concat() };
        let mut paths: Vec<Module> = file.paths.iter().cloned().collect();
        for used in file.uses.iter().filter(|used| !(used.is_public && used.path.starts_with(module))) {
            if used.is_glob {
                let named = file.words.iter().filter(|word| self.has(&used.path, word));
                paths.extend(named.map(|word| below(&used.path, std::slice::from_ref(word))));
            } else if !self.0.contains_key(&used.path) {
                paths.push(used.path.clone());
            }
        }
        for path in &file.relative {
            let child = below(module, path);
            if let Some(imported) = file.names.get(&path[0]) {
                paths.push(below(imported, &path[1..]));
            } else if self.0.contains_key(&child[..=module.len()]) {
                paths.push(child);
            }
        }
        let definers = paths.iter().filter_map(|path| Some((self.definer(path)?, path.join("::"))));
        definers.filter(|(definer, _)| !module.starts_with(definer)).collect()
    }

    /// Whether a module has an item or brings it.
    fn has(&self, module: &Module, name: &str) -> bool {
        self.0.get(module).is_some_and(|file| file.defined.contains(name) || file.names.contains_key(name))
    }

    /// The module in which the thing is defined that a path from the root leads to.
    fn definer(&self, path: &[String]) -> Option<Module> {
        let mut path = path.to_vec();
        // Longer than any chain of `pub use`.
        for _ in 0..16 {
            let length = (0..=path.len()).rev().find(|length| self.0.contains_key(&path[..*length]))?;
            let (module, rest) = (path[..length].to_vec(), path[length..].to_vec());
            let file = &self.0[&module];
            let Some(name) = rest.first().filter(|name| !file.defined.contains(*name)) else {
                return Some(module);
            };
            let globs = file.uses.iter().filter(|used| used.is_glob && self.has(&used.path, name));
            let through = globs.map(|used| used.path.iter().cloned().chain([name.clone()]).collect());
            match file.names.get(name).cloned().or(through.into_iter().next()) {
                Some(further) if further != path => path = [further, rest[1..].to_vec()].concat(),
                _ => return Some(module),
            }
        }
        None
    }
}

impl File {
    fn read(module: &Module, text: &str) -> Self {
        let mut reader = Reader { tokens: product(&tokens(text)), module, file: Self::default() };
        reader.read();
        reader.file
    }
}

/// Tokens without those of items that are compiled for tests only.
fn product<'a>(tokens: &[&'a str]) -> Vec<&'a str> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        if tokens[at..].starts_with(&["#", "["]) {
            let end = at + 1 + group(&tokens[at + 1..]);
            let attribute = &tokens[at + 2..end - 1];
            let is_test = attribute.first() == Some(&"test")
                || (attribute.first() == Some(&"cfg")
                    && attribute.contains(&"test")
                    && !attribute.contains(&"not"));
            at = if is_test { end + item(&tokens[end..]) } else { end };
        } else {
            found.push(tokens[at]);
            at += 1;
        }
    }
    found
}

/// The number of tokens of the group that begins here, with its brackets.
fn group(tokens: &[&str]) -> usize {
    let mut depth = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match *token {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 {
            return index + 1;
        }
    }
    tokens.len()
}

/// The number of tokens of the item, field or statement that begins here.
fn item(tokens: &[&str]) -> usize {
    let mut at = 0;
    while tokens[at..].starts_with(&["#", "["]) {
        at += 1 + group(&tokens[at + 1..]);
    }
    if tokens.get(at) == Some(&"pub") {
        at += 1;
        if tokens.get(at) == Some(&"(") {
            at += group(&tokens[at..]);
        }
    }
    let is_block = tokens.get(at).is_some_and(|word| BLOCKS.contains(word));
    while let Some(token) = tokens.get(at) {
        match *token {
            ";" => return at + 1,
            "," if !is_block => return at + 1,
            "}" | ")" | "]" => return at,
            "{" if is_block => return at + group(&tokens[at..]),
            "{" | "(" | "[" => at += group(&tokens[at..]),
            _ => at += 1,
        }
    }
    at
}

struct Reader<'a> {
    tokens: Vec<&'a str>,
    module: &'a Module,
    file: File,
}

impl Reader<'_> {
    fn read(&mut self) {
        let mut depth = 0_usize;
        // Modules with their text in the same file, and the depth at which each begins.
        let mut inline: Vec<(String, usize)> = Vec::new();
        let mut at = 0;
        while at < self.tokens.len() {
            let (token, next) = (self.tokens[at], self.tokens.get(at + 1).copied().unwrap_or(""));
            match token {
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    inline.retain(|(_, begin)| *begin < depth);
                }
                "mod" if self.tokens.get(at + 2) == Some(&"{") => inline.push((next.to_owned(), depth)),
                _ => {}
            }
            if depth == 0 && ITEMS.contains(&token) {
                self.file.defined.insert(next.to_owned());
            } else if depth == 0 && token == "macro_rules" {
                self.file.defined.insert(self.tokens.get(at + 2).copied().unwrap_or("").to_owned());
            }
            let here =
                self.module.iter().cloned().chain(inline.iter().map(|(name, _)| name.clone())).collect();
            if token == "use" && next != "<" {
                let is_public = 0 < at && ["pub", ")"].contains(&self.tokens[at - 1]);
                let end = at + self.tokens[at..].iter().position(|t| *t == ";").unwrap_or(0);
                self.tree(&here, Module::new(), &mut (at + 1), end, is_public);
                at = end.max(at + 1);
                continue;
            }
            at = self.path(&inline, at);
        }
    }

    /// The module that the code lies in which is being read.
    fn here(&self, inline: &[(String, usize)]) -> Module {
        self.module.iter().chain(inline.iter().map(|(name, _)| name)).cloned().collect()
    }

    /// Reads a path, if one begins here, and answers where to go on.
    fn path(&mut self, inline: &[(String, usize)], at: usize) -> usize {
        let is_name = |token: &&str| token.starts_with(|c: char| c.is_alphabetic() || c == '_');
        let before = if at == 0 { "" } else { self.tokens[at - 1] };
        if !is_name(&self.tokens[at]) {
            return at + 1;
        }
        let mut names = vec![self.tokens[at].to_owned()];
        let mut end = at + 1;
        while self.tokens.get(end) == Some(&"::")
            && let Some(name) = self.tokens.get(end + 1).filter(|token| is_name(token))
        {
            names.push((*name).to_owned());
            end += 2;
        }
        for name in &names {
            if !self.file.words.contains(name) {
                self.file.words.insert(name.clone());
            }
        }
        // A macro's `$crate::..` is text of the files that use it.
        if 1 < names.len() && !["::", ".", "$"].contains(&before) {
            match absolute(&self.here(inline), &names) {
                Some(path) => self.file.paths.insert(path),
                None => self.file.relative.insert(names),
            };
        }
        end
    }

    /// Reads what lies between `at` and `end`: the rest of a `use` item, or of one of its branches.
    fn tree(&mut self, here: &Module, mut path: Module, at: &mut usize, end: usize, is_public: bool) {
        let mut name = None;
        let mut is_glob = false;
        while *at < end {
            let token = self.tokens[*at];
            *at += 1;
            match token {
                "::" => {}
                "{" => {
                    while *at < end && self.tokens[*at] != "}" {
                        self.tree(here, path.clone(), at, end, is_public);
                        *at += usize::from(self.tokens[*at] == ",");
                    }
                    *at += 1;
                    return;
                }
                "," | "}" => {
                    *at -= 1;
                    break;
                }
                "as" => {
                    name = self.tokens.get(*at).map(|name| (*name).to_owned());
                    *at += 1;
                }
                "*" => is_glob = true,
                _ => path.push(token.to_owned()),
            }
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        let Some(last) = path.last().cloned() else { return };
        let absolute = absolute(here, &path);
        self.file.uses.push(Use {
            is_relative: absolute.is_none(),
            path: absolute.unwrap_or(path),
            name: name.unwrap_or(last),
            is_glob,
            is_public,
        });
    }
}

/// A path from the root of the crate, if it says where it begins.
fn absolute(here: &Module, names: &[String]) -> Option<Module> {
    let mut path = if names[0] == "crate" { Module::new() } else { here.clone() };
    let mut rest = names;
    while let Some((first, others)) = rest.split_first()
        && ["crate", "self", "super"].contains(&first.as_str())
    {
        if first == "super" {
            path.pop();
        }
        rest = others;
    }
    (rest.len() < names.len()).then(|| path.into_iter().chain(rest.iter().cloned()).collect())
}
