//! Paths of users: files, folders, patterns, URLs; and the files that they name.

use crate::error::{Error, FileFault, Result};
use crate::scan::{Listings, from_store, shown};
use datafusion::execution::object_store::ObjectStoreUrl;
use object_store::path::Path;
use object_store::{ObjectMeta, ObjectStore, ObjectStoreExt};
use std::borrow::Cow;

/// The place that a path names, or several paths.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The path as the user wrote it.
    pub(super) text: String,
    pub(super) store: ObjectStoreUrl,
    /// The file or the folder; with a pattern, the last folder before it.
    base: Path,
    /// The parts of the pattern after the base.
    pattern: Vec<String>,
    /// Whether the path says that it is a folder.
    is_folder: bool,
    /// The places of the paths behind this one, in the same store.
    others: Vec<Place>,
}

/// A file, and the values that its folders give to its rows.
#[derive(Clone, Debug)]
pub(super) struct Found {
    pub(super) meta: ObjectMeta,
    /// Label and value of each folder `label=value` below the base; the value that Hive writes for a missing
    /// one is `None`.
    pub(super) values: Vec<(String, Option<String>)>,
}

impl Place {
    /// Understands a path, or several that are [`joined`]; they need not exist.
    pub(super) fn parse(text: &str) -> Result<Place> {
        if text.contains(BETWEEN) {
            return Place::of_list(text.split(BETWEEN));
        }
        let invalid = |reason: &str| Error::file(text, FileFault::Missing, reason);
        if text.is_empty() {
            return Err(invalid("the path is empty"));
        }
        let (store, path) = match text.split_once("://") {
            Some(("file", path)) => ("file://".to_owned(), local(&in_url(path))?),
            Some((scheme @ ("s3" | "s3a" | "http" | "https"), rest)) => {
                let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
                (format!("{scheme}://{host}"), path.to_owned())
            }
            Some((scheme, _)) => {
                let reason = format!("{scheme}:// is no place for files; there are s3, http and https");
                return Err(Error::file(text, FileFault::Unsupported, reason));
            }
            None => ("file://".to_owned(), local(text)?),
        };
        let is_web = store.starts_with("http");
        if is_web && path.contains(['*', '?', '[']) {
            let reason = "a web server has no list of files: name one, without a query";
            return Err(Error::file(text, FileFault::Unsupported, reason));
        }
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let is_local = store.starts_with("file");
        let plain = if is_web || (is_local && std::fs::exists(&path).unwrap_or(false)) {
            parts.len()
        } else {
            parts.iter().position(|part| is_pattern(part)).unwrap_or(parts.len())
        };
        let base = if is_web {
            Path::from_url_path(&path).map_err(|error| invalid(&error.to_string()))?
        } else {
            Path::parse(parts[..plain].join("/")).map_err(|error| invalid(&error.to_string()))?
        };
        Ok(Place {
            text: text.to_owned(),
            store: ObjectStoreUrl::parse(store).map_err(|error| invalid(&error.strip_backtrace()))?,
            base,
            pattern: parts[plain..].iter().map(|part| (*part).to_owned()).collect(),
            is_folder: path.ends_with('/'),
            others: Vec::new(),
        })
    }

    /// The place of several paths, whose files are read one after the other.
    fn of_list<'a>(mut paths: impl Iterator<Item = &'a str>) -> Result<Place> {
        let mut place = Place::parse(paths.next().unwrap_or_default())?;
        for path in paths {
            let other = Place::parse(path)?;
            if other.store != place.store {
                let reason = "the files of a list are in one store: put them together by UNION ALL";
                return Err(Error::file(&other.text, FileFault::Unsupported, reason));
            }
            place.others.push(other);
        }
        Ok(place)
    }

    /// Whether there are several paths.
    pub(super) fn is_list(&self) -> bool {
        !self.others.is_empty()
    }

    /// The path of a file as users write it.
    pub(super) fn shown(&self, location: &Path) -> String {
        shown(self.store.as_str(), location)
    }

    /// The files of each path in turn, in the order of their own paths: those that an earlier scan of the
    /// same plan has found, if there is one. There is at least one of each.
    pub(super) async fn files(
        &self,
        store: &dyn ObjectStore,
        listings: Option<&Listings>,
    ) -> Result<Vec<Found>> {
        let mut files = self.own_files(store, listings).await?;
        for place in &self.others {
            files.extend(place.own_files(store, listings).await?);
        }
        Ok(files)
    }

    async fn own_files(&self, store: &dyn ObjectStore, listings: Option<&Listings>) -> Result<Vec<Found>> {
        let name = format!("{} {}", self.store.as_str(), self.text);
        let metas = match (listings.and_then(|listings| listings.known(&name)), listings) {
            (Some(metas), _) => metas,
            (None, Some(listings)) => listings.add(&name, self.listed(store).await?),
            (None, None) => self.listed(store).await?,
        };
        Ok(metas.into_iter().map(|meta| Found { values: self.values(&meta.location), meta }).collect())
    }

    async fn listed(&self, store: &dyn ObjectStore) -> Result<Vec<ObjectMeta>> {
        self.check_regular(&self.base)?;
        let mut metas =
            if self.pattern.is_empty() { self.of_path(store).await? } else { self.of_pattern(store).await? };
        for meta in metas.iter().filter(|meta| meta.size == 0) {
            self.check_regular(&meta.location)?;
        }
        if metas.is_empty() {
            let reason = if self.pattern.is_empty() {
                "no such file or folder, or no file in the folder"
            } else {
                "no file matches the pattern"
            };
            return Err(Error::file(&self.text, FileFault::Missing, reason));
        }
        metas.sort_unstable_by(|a, b| a.location.as_ref().cmp(b.location.as_ref()));
        Ok(metas)
    }

    /// Refuses a pipe and what else is no file, before anything waits for what comes out of it.
    fn check_regular(&self, location: &Path) -> Result<()> {
        let path = self.shown(location);
        let is_other = |about: std::fs::Metadata| !about.is_file() && !about.is_dir();
        if self.store.as_str().starts_with("file") && std::fs::metadata(&path).is_ok_and(is_other) {
            let path = if *location == self.base { &self.text } else { &path };
            return Err(Error::file(path, FileFault::Unsupported, NO_FILE));
        }
        Ok(())
    }

    async fn of_path(&self, store: &dyn ObjectStore) -> Result<Vec<ObjectMeta>> {
        if !self.is_folder {
            match store.head(&self.base).await {
                Ok(meta) => return Ok(vec![meta]),
                Err(object_store::Error::NotFound { .. }) if !self.store.as_str().starts_with("http") => {}
                Err(error) => return Err(from_store(&self.text, &error)),
            }
        }
        self.below(store, self.base.clone()).await
    }

    /// The visible files of a folder and of the folders in it.
    async fn below(&self, store: &dyn ObjectStore, folder: Path) -> Result<Vec<ObjectMeta>> {
        let mut files = Vec::new();
        let mut folders = vec![folder];
        while let Some(folder) = folders.pop() {
            let found = store.list_with_delimiter(Some(&folder)).await;
            let found = match found {
                Ok(found) => found,
                Err(object_store::Error::NotFound { .. }) => continue,
                Err(error) => return Err(from_store(&self.text, &error)),
            };
            files.extend(found.objects.into_iter().filter(|meta| is_visible(&meta.location)));
            folders.extend(found.common_prefixes.into_iter().filter(is_visible));
        }
        Ok(files)
    }

    /// The files that match the pattern, and those of folders that do.
    async fn of_pattern(&self, store: &dyn ObjectStore) -> Result<Vec<ObjectMeta>> {
        let mut files = Vec::new();
        let mut open = vec![(self.base.clone(), 0)];
        while let Some((folder, at)) = open.pop() {
            let Some(part) = self.pattern.get(at) else {
                files.extend(self.below(store, folder).await?);
                continue;
            };
            let is_last = at + 1 == self.pattern.len();
            let found = store.list_with_delimiter(Some(&folder)).await;
            let found = found.map_err(|error| from_store(&self.text, &error))?;
            let matches = |path: &Path| {
                let name = path.filename().unwrap_or_default();
                // Hidden files only match a pattern that begins as they do.
                (is_visible(path) || part.starts_with(['.', '_'])) && is_match(part, name)
            };
            if part == "**" {
                open.extend(
                    found
                        .common_prefixes
                        .iter()
                        .filter(|path| is_visible(path))
                        .map(|path| (path.clone(), at)),
                );
                open.push((folder, at + 1));
                continue;
            }
            if is_last {
                files.extend(found.objects.into_iter().filter(|meta| matches(&meta.location)));
            }
            open.extend(found.common_prefixes.into_iter().filter(matches).map(|path| (path, at + 1)));
        }
        files.sort_unstable_by(|a, b| a.location.as_ref().cmp(b.location.as_ref()));
        files.dedup_by(|a, b| a.location == b.location);
        Ok(files)
    }

    /// The values that the folders between the base and a file give.
    fn values(&self, location: &Path) -> Vec<(String, Option<String>)> {
        let below = location.as_ref().strip_prefix(self.base.as_ref()).unwrap_or_default();
        let folders = below.rsplit_once('/').map_or("", |(folders, _)| folders);
        let pairs = folders.split('/').filter_map(|folder| folder.split_once('='));
        let value = |value: &str| (value != crate::write::NULL_FOLDER).then(|| unescaped(value));
        pairs.map(|(label, text)| (unescaped(label), value(text))).collect()
    }
}

/// The path on this machine that readers read for a user's path.
///
/// It is `None` for a path of another place. Escapes in a URL stand for what they mean, unless there is a
/// path of the name as it is written.
///
/// ```
/// use tharsis_dataframe::local_path;
/// assert_eq!(local_path("a b.csv").as_deref(), Some("a b.csv"));
/// assert_eq!(local_path("file:///no/a%20b.csv").as_deref(), Some("/no/a b.csv"));
/// assert_eq!(local_path("s3://bucket/a.csv"), None);
/// ```
pub fn local_path(path: &str) -> Option<Cow<'_, str>> {
    match path.split_once("://") {
        None => Some(Cow::Borrowed(path)),
        Some(("file", path)) => Some(in_url(path)),
        Some(_) => None,
    }
}

fn in_url(path: &str) -> Cow<'_, str> {
    let parts = path.split_inclusive('/').take_while(|part| !is_pattern(part));
    if !path.contains('%') || std::fs::exists(parts.collect::<String>()).unwrap_or(false) {
        Cow::Borrowed(path)
    } else {
        Cow::Owned(unescaped(path))
    }
}

/// Several paths as one, which readers take for a list of files.
pub(crate) fn joined(paths: &[String]) -> String {
    paths.join(&BETWEEN.to_string())
}

/// The reason for which nothing is read from a pipe.
const NO_FILE: &str = "this is no file: what comes out of a pipe is read once, and files are looked at several times; \
                       write it to a file first";

/// The sign between paths of a list, which no path has.
const BETWEEN: char = '\0';

/// The absolute path of a local one.
fn local(path: &str) -> Result<String> {
    let failed = |error: std::io::Error| Error::io(path, &error);
    let whole = std::path::absolute(path).map_err(failed)?.to_string_lossy().into_owned();
    let mut parts: Vec<&str> = whole.split('/').collect();
    let last_dots = parts.iter().rposition(|part| *part == "..");
    let mut whole = match last_dots {
        None => whole,
        // Only the file system knows what is above a folder.
        Some(at) => {
            let rest = parts.split_off(at + 1);
            let folder = std::fs::canonicalize(parts.join("/")).map_err(failed)?;
            format!("{}/{}", folder.to_string_lossy(), rest.join("/"))
        }
    };
    if path.ends_with('/') && !whole.ends_with('/') {
        whole.push('/');
    }
    Ok(whole)
}

fn is_pattern(part: &str) -> bool {
    part.contains(['*', '?', '['])
}

fn is_visible(path: &Path) -> bool {
    !path.filename().unwrap_or_default().starts_with(['.', '_'])
}

/// Whether a name matches a part of a pattern: `*` is any text, `?` any character, `[a-c]` one of some.
fn is_match(pattern: &str, name: &str) -> bool {
    let pattern: Vec<char> = pattern.chars().collect();
    let name: Vec<char> = name.chars().collect();
    // The places in the pattern and the name to go back to, at the last star.
    let mut star = None;
    let (mut at, mut read) = (0, 0);
    while read < name.len() {
        let one = match pattern.get(at) {
            Some('*') => {
                star = Some((at + 1, read));
                at += 1;
                continue;
            }
            Some('?') => Some(1),
            Some('[') => class(&pattern[at..], name[read]),
            Some(&plain) => (plain == name[read]).then_some(1),
            None => None,
        };
        match (one, star) {
            (Some(length), _) => (at, read) = (at + length, read + 1),
            (None, Some((after, from))) => {
                star = Some((after, from + 1));
                (at, read) = (after, from + 1);
            }
            (None, None) => return false,
        }
    }
    pattern[at..].iter().all(|part| *part == '*')
}

/// The length of the class at the begin of a pattern, if it has the character. Without an end it is a plain
/// bracket.
fn class(pattern: &[char], name: char) -> Option<usize> {
    let Some(end) = pattern.iter().skip(2).position(|part| *part == ']').map(|end| end + 2) else {
        return (name == '[').then_some(1);
    };
    let inner = &pattern[1..end];
    let (inner, negated) = match inner.first() {
        Some('!' | '^') => (&inner[1..], true),
        _ => (inner, false),
    };
    let mut found = false;
    let mut at = 0;
    while at < inner.len() {
        match (inner.get(at + 1), inner.get(at + 2)) {
            (Some('-'), Some(&last)) => {
                found |= (inner[at]..=last).contains(&name);
                at += 3;
            }
            _ => {
                found |= inner[at] == name;
                at += 1;
            }
        }
    }
    (found != negated).then_some(end + 1)
}

/// A part of the name of a folder, or a path, with `%2F` as the byte that it stands for.
fn unescaped(text: &str) -> String {
    let digit = |byte: Option<&u8>| byte.and_then(|&byte| char::from(byte).to_digit(16));
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        match (bytes[at], digit(bytes.get(at + 1)), digit(bytes.get(at + 2))) {
            (b'%', Some(high), Some(low)) => {
                plain.push((high * 16 + low) as u8);
                at += 3;
            }
            (byte, ..) => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8(plain).unwrap_or_else(|_| text.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_those_of_a_shell() {
        for (pattern, name, expected) in [
            ("*.csv", "a.csv", true),
            ("*.csv", "a.csv.gz", false),
            ("a*b*c", "aXbYbZc", true),
            ("a*b*c", "aXbY", false),
            ("part-?", "part-7", true),
            ("part-?", "part-77", false),
            ("[a-c]x", "bx", true),
            ("[!a-c]x", "bx", false),
            ("[]]x", "]x", true),
            ("[x", "[x", true),
            ("*", "", true),
        ] {
            assert_eq!(is_match(pattern, name), expected, "{pattern} {name}");
        }
    }

    #[test]
    fn folders_give_values() {
        let place = Place::parse("/data/*/x").unwrap();
        let values =
            place.values(&Path::parse("data/k=a%2Fb/plain/j=__HIVE_DEFAULT_PARTITION__/f.csv").unwrap());
        assert_eq!(values, [("k".to_owned(), Some("a/b".to_owned())), ("j".to_owned(), None)]);
    }

    #[test]
    fn urls_of_files_have_escapes() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a b", "k=a%2Fb"] {
            std::fs::create_dir(folder.path().join(name)).unwrap();
        }
        let root = folder.path().display();
        for (url, path) in [
            ("a%20b/", "a b"),
            ("a%20b/c.csv", "a b/c.csv"),
            ("a%20b/*.csv", "a b"),
            ("a b/c.csv", "a b/c.csv"),
            ("k=a%2Fb/*.csv", "k=a%2Fb"),
            ("100%/c.csv", "100%/c.csv"),
        ] {
            let place = Place::parse(&format!("file://{root}/{url}")).unwrap();
            assert_eq!(format!("/{}", place.base), format!("{root}/{path}"), "{url}");
        }
    }

    #[test]
    fn a_web_address_is_one_file() {
        let place = Place::parse("https://host:1/a%20b/c.csv").unwrap();
        assert_eq!((place.store.as_str(), place.base.as_ref()), ("https://host:1/", "a b/c.csv"));
        assert_eq!(Place::parse("http://host/*.csv").unwrap_err().class(), "NotImplemented");
        assert_eq!(Place::parse("ftp://host/a.csv").unwrap_err().class(), "NotImplemented");
    }
}
