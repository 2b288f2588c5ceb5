//! Public items of `dataframe`, as its sources declare them: types, functions, methods, variants, and
//! operators of types.
//!
//! Many methods are made by macros. A macro's definition says for which types, each of its calls lists the
//! names: the first word of each entry. That is all that is read here, so it is a convention there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Names like `DataFrame::abs`, `concat`, `Series` and `Add for Series`.
pub struct Surface(BTreeSet<String>);

impl Surface {
    /// The items of the sources below a folder, which must have a `lib.rs`.
    pub fn of_folder(folder: &Path) -> Surface {
        let mut texts = Vec::new();
        read(folder, &mut texts);
        let library = std::fs::read_to_string(folder.join("lib.rs")).unwrap();
        Surface::of(&texts, &library)
    }

    pub fn of(texts: &[String], library: &str) -> Surface {
        let exported = exported(&tokens(library));
        let mut files = Vec::new();
        let mut shared = BTreeMap::new();
        for text in texts {
            let tokens = tokens(text);
            let mut found = Found::default();
            found.read(&tokens, None);
            shared.extend(found.shared_macros(&tokens));
            files.push(found);
        }
        let mut names = exported.clone();
        for mut found in files {
            // Macros of two files may have one name, and a file's own come first.
            for (name, body) in &shared {
                found.macros.entry(name.clone()).or_insert_with(|| body.clone());
            }
            names.extend(found.names(&exported));
        }
        Surface(names)
    }

    pub fn has(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

fn read(folder: &Path, texts: &mut Vec<String>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.path() {
            path if path.is_dir() => read(&path, texts),
            path if path.extension().is_some_and(|end| end == "rs") => {
                texts.push(std::fs::read_to_string(path).unwrap());
            }
            _ => {}
        }
    }
}

/// The variable for the type around the call of a macro.
const AROUND: &str = "$around";

/// Words and signs of a text, without comments and without what is inside quotes.
fn tokens(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let after = &rest[c.len_utf8()..];
        rest = match c {
            '/' if after.starts_with('/') => after.split_once('\n').map_or("", |(_, rest)| rest),
            '"' => quoted(after),
            // A character in quotes, not a lifetime.
            '\'' if after.starts_with('\\') => after[2..].split_once('\'').map_or("", |(_, rest)| rest),
            '\'' if after.chars().nth(1) == Some('\'') => &after[after.find('\'').unwrap_or(0) + 1..],
            c if c.is_alphanumeric() || c == '_' => {
                let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(rest.len());
                found.push(rest[..end].to_owned());
                &rest[end..]
            }
            c if c.is_whitespace() => after,
            c => {
                found.push(c.to_string());
                after
            }
        };
    }
    found
}

/// The rest of a text behind a closing quote.
fn quoted(text: &str) -> &str {
    let mut chars = text.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => drop(chars.next()),
            '"' => return &text[at + 1..],
            _ => {}
        }
    }
    ""
}

fn is_word(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// The place behind the bracket that closes the one at a place.
fn closing(tokens: &[String], open: usize) -> usize {
    let mut depth = 0_i32;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        depth += match token.as_str() {
            "(" | "[" | "{" => 1,
            ")" | "]" | "}" => -1,
            _ => 0,
        };
        if depth == 0 {
            return at + 1;
        }
    }
    tokens.len()
}

/// Names that a library uses publicly.
fn exported(tokens: &[String]) -> BTreeSet<String> {
    let (mut names, end) = (BTreeSet::new(), ";".to_owned());
    for at in 0..tokens.len().saturating_sub(1) {
        if tokens[at] == "pub" && tokens[at + 1] == "use" {
            let path = tokens[at + 2..].iter().take_while(|token| *token != ";").chain([&end]);
            let path: Vec<&String> = path.collect();
            let last = |pair: &&[&String]| is_word(pair[0]) && pair[1] != ":";
            names.extend(path.windows(2).filter(last).map(|pair| pair[0].clone()));
        }
    }
    names
}

/// The header of an implementation: a trait if there is one, and a type; either may be a variable of a macro.
fn header(tokens: &[String]) -> (Option<String>, String) {
    let mut plain: Vec<&str> = Vec::new();
    let mut depth = 0_i32;
    for token in tokens.iter().take_while(|token| *token != "where") {
        match token.as_str() {
            "<" => depth += 1,
            ">" => depth -= 1,
            token if depth == 0 => plain.push(token),
            _ => {}
        }
    }
    let name = |part: &[&str]| -> String {
        let last = part.iter().rposition(|token| is_word(token)).unwrap_or(0);
        let variable = last > 0 && part[last - 1] == "$";
        format!("{}{}", if variable { "$" } else { "" }, part.get(last).unwrap_or(&""))
    };
    match plain.iter().position(|token| *token == "for") {
        Some(at) => (Some(name(&plain[..at])), name(&plain[at + 1..])),
        None => (None, name(&plain)),
    }
}

#[derive(Default)]
struct Found {
    /// Type and method.
    methods: BTreeSet<(String, String)>,
    /// Trait and type.
    traits: BTreeSet<(String, String)>,
    /// Bodies of macros.
    macros: BTreeMap<String, Vec<String>>,
    /// Macro, arguments, and the type that the call stands in the implementation of.
    calls: Vec<(String, Vec<String>, Option<String>)>,
}

impl Found {
    /// Reads items, which belong to a type or to none.
    fn read(&mut self, tokens: &[String], owner: Option<&str>) {
        let mut at = 0;
        while at < tokens.len() {
            let next = |ahead: usize| tokens.get(at + ahead).map_or("", String::as_str);
            at = match (tokens[at].as_str(), next(1)) {
                ("macro_rules", "!") => {
                    let end = closing(tokens, at + 3);
                    self.macros.insert(next(2).to_owned(), tokens[at + 3..end].to_vec());
                    self.calls_within(&tokens[at + 3..end]);
                    end
                }
                ("impl", _) => self.implementation(tokens, at),
                ("mod", _) if next(2) == "{" => {
                    let end = closing(tokens, at + 2);
                    self.read(&tokens[at + 3..end - 1], None);
                    end
                }
                ("pub", "enum") => self.variants(tokens, at + 2),
                ("pub", "fn") => {
                    let name = if next(2) == "$" { format!("${}", next(3)) } else { next(2).to_owned() };
                    self.methods.extend(owner.map(|owner| (owner.to_owned(), name)));
                    at + 3
                }
                (name, "!") if is_word(name) && ["(", "{", "["].contains(&next(2)) => {
                    let end = closing(tokens, at + 2);
                    let arguments = tokens[at + 3..end - 1].to_vec();
                    self.calls.push((name.to_owned(), arguments, owner.map(str::to_owned)));
                    end
                }
                ("{", _) => closing(tokens, at),
                _ => at + 1,
            };
        }
    }

    fn implementation(&mut self, tokens: &[String], at: usize) -> usize {
        let open = (at..tokens.len()).find(|at| tokens[*at] == "{").unwrap_or(tokens.len());
        let end = closing(tokens, open);
        match header(&tokens[at + 1..open]) {
            (Some(of), owner) => drop(self.traits.insert((of, owner))),
            (None, owner) if open + 1 < end => self.read(&tokens[open + 1..end - 1], Some(&owner)),
            _ => {}
        }
        end
    }

    /// The macros that this file gives to others, as `pub(crate) use name;` does.
    fn shared_macros(&self, tokens: &[String]) -> Vec<(String, Vec<String>)> {
        let gives = |name: &String| {
            tokens.windows(4).any(|w| w[0] == ")" && w[1] == "use" && w[2] == *name && w[3] == ";")
        };
        let shared = self.macros.iter().filter(|(name, _)| gives(name));
        shared.map(|(name, body)| (name.clone(), body.clone())).collect()
    }

    /// Calls that a macro makes of itself.
    fn calls_within(&mut self, tokens: &[String]) {
        for at in 0..tokens.len().saturating_sub(2) {
            if is_word(&tokens[at]) && tokens[at + 1] == "!" && tokens[at + 2] == "(" {
                let end = closing(tokens, at + 2);
                self.calls.push((tokens[at].clone(), tokens[at + 3..end - 1].to_vec(), None));
            }
        }
    }

    fn variants(&mut self, tokens: &[String], at: usize) -> usize {
        let open = (at..tokens.len()).find(|at| tokens[*at] == "{").unwrap_or(tokens.len());
        let end = closing(tokens, open);
        for entry in entries(&tokens[open + 1..end - 1]) {
            self.methods.insert((tokens[at].clone(), entry));
        }
        end
    }

    fn names(&mut self, exported: &BTreeSet<String>) -> BTreeSet<String> {
        for (name, body) in self.macros.clone() {
            self.expand(&name, &body, exported);
        }
        let known = |owner: &String| exported.contains(owner);
        let methods = self.methods.iter().filter(|(owner, _)| known(owner));
        let traits = self.traits.iter().filter(|(_, owner)| known(owner));
        let mut names: BTreeSet<String> =
            methods.map(|(owner, method)| format!("{owner}::{method}")).collect();
        names.extend(traits.map(|(of, owner)| format!("{of} for {owner}")));
        names
    }

    /// The methods and operators that the calls of a macro make.
    fn expand(&mut self, name: &str, body: &[String], exported: &BTreeSet<String>) {
        let mut inside = Found::default();
        for rule in rules(body) {
            inside.read(rule, Some(AROUND));
        }
        let calls: Vec<_> = self.calls.iter().filter(|(called, ..)| called == name).cloned().collect();
        let entries: Vec<String> = calls.iter().flat_map(|(_, arguments, _)| entries(arguments)).collect();
        // A type that stands at the beginning of a call, or around it.
        let given = calls.iter().filter_map(|(_, arguments, _)| {
            arguments.iter().take_while(|token| *token != ";").find(|token| exported.contains(*token))
        });
        let given: Vec<String> = given.cloned().collect();
        let around: Vec<String> = calls.iter().filter_map(|(.., owner)| owner.clone()).collect();
        let owners = |of: &str| {
            if of.starts_with('$') {
                if of == AROUND { around.clone() } else { given.clone() }
            } else {
                vec![of.to_owned()]
            }
        };
        let items = |item: &str| if item.starts_with('$') { entries.clone() } else { vec![item.to_owned()] };
        for (of, method) in &inside.methods {
            for owner in owners(of) {
                self.methods.extend(items(method).into_iter().map(|method| (owner.clone(), method)));
            }
        }
        for (of, to) in &inside.traits {
            for owner in owners(to) {
                self.traits.extend(items(of).into_iter().map(|of| (of, owner.clone())));
            }
        }
    }
}

/// The bodies of a macro's rules, without the signs of repetition around their items.
fn rules(body: &[String]) -> Vec<&[String]> {
    let mut found = Vec::new();
    for at in 0..body.len().saturating_sub(2) {
        if body[at] == "=" && body[at + 1] == ">" && body[at + 2] == "{" {
            found.push(&body[at + 3..closing(body, at + 2) - 1]);
        }
    }
    found
}

/// The first word of each entry of a list.
fn entries(tokens: &[String]) -> Vec<String> {
    let mut found = Vec::new();
    let (mut at, mut fresh) = (0, true);
    while at < tokens.len() {
        match tokens[at].as_str() {
            "," | ";" => fresh = true,
            // An attribute.
            "#" => {
                at = closing(tokens, at + 1);
                continue;
            }
            "(" | "[" | "{" => {
                at = closing(tokens, at);
                fresh = false;
                continue;
            }
            token if fresh => {
                if is_word(token) {
                    found.push(token.to_owned());
                }
                fresh = false;
            }
            _ => {}
        }
        at += 1;
    }
    found
}
