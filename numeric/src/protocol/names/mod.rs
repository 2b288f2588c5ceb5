//! NumPy's names and those of the array API standard: which of them are operations here, and why the others
//! are not.
//!
//! The [`registry`](super::registry) tells the names that are done. These tables have the names, so that
//! nothing is left out, and the reasons. `docs/numpy-names.md` is made of both
//! (`numeric/tests/numeric/names.rs`).

mod array_api;
mod numpy;

pub use array_api::{ARRAY_API, Group, Way};
pub use numpy::NUMPY;

use super::registry::all;

/// Names of NumPy that belong together.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// Its heading.
    pub title: &'static str,
    /// All names, separated by spaces.
    pub names: &'static str,
    /// Why the names in the registry's absence are not there: names separated by spaces, and the reason.
    pub reasons: &'static [(&'static str, &'static str)],
    /// The reason for all others that are not there; `None` if there must be none.
    pub otherwise: Option<&'static str>,
}

impl Section {
    /// The reason for which a name of this section is not an operation, if one is given.
    ///
    /// ```
    /// use tharsis_numeric::protocol::names::NUMPY;
    /// assert!(NUMPY.iter().find_map(|section| section.reason("np.memmap")).is_some());
    /// ```
    pub fn reason(&self, name: &str) -> Option<&'static str> {
        let given = self.reasons.iter().find(|(names, _)| names.split(' ').any(|other| other == name));
        let listed = || self.names.split_whitespace().any(|other| other == name);
        given.map(|(_, reason)| *reason).or_else(|| self.otherwise.filter(|_| listed()))
    }
}

/// The message for a name that is not an operation: the reason, or the nearest name that is one.
///
/// ```
/// use tharsis_numeric::protocol::names::why_not;
/// assert_eq!(why_not("np.cumsun"), "np.cumsun is not implemented; the nearest name is np.cumsum");
/// assert!(why_not("np.memmap").starts_with("np.memmap is not implemented: "));
/// ```
pub fn why_not(name: &str) -> String {
    why_not_of(name, std::iter::empty())
}

/// As [`why_not`], where there are further operations of other crates.
pub(super) fn why_not_of<'a>(name: &str, further: impl Iterator<Item = &'a str>) -> String {
    if let Some(reason) = NUMPY.iter().find_map(|section| section.reason(name)) {
        return format!("{name} is not implemented: {reason}");
    }
    match nearest_of(name, further) {
        Some(near) => format!("{name} is not implemented; the nearest name is {near}"),
        None => format!("{name} is not implemented"),
    }
}

/// The operation whose name is most like this one, if one is like it at all.
///
/// ```
/// use tharsis_numeric::protocol::names::nearest;
/// assert_eq!(nearest("np.arrange").as_deref(), Some("np.arange"));
/// assert_eq!(nearest("np.entirely_different"), None);
/// ```
pub fn nearest(name: &str) -> Option<String> {
    nearest_of(name, std::iter::empty())
}

/// As [`nearest`], where there are further operations of other crates.
fn nearest_of<'a>(name: &str, further: impl Iterator<Item = &'a str>) -> Option<String> {
    let wanted = name.strip_prefix("nd.").map_or_else(|| name.to_owned(), |method| format!("np.{method}"));
    let names = all().into_iter().map(|operation| operation.name).chain(further.map(str::to_owned));
    let distances = names.map(|name| (edits(&wanted, &name), name));
    let (distance, near) = distances.min()?;
    (distance <= wanted.len() / LETTERS_PER_EDIT).then_some(near)
}

/// The least number of letters to insert, delete or replace that makes one text of the other.
fn edits(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, letter) in a.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], i + 1);
        for (j, other) in b.iter().enumerate() {
            let replaced = diagonal + usize::from(letter != *other);
            diagonal = row[j + 1];
            row[j + 1] = replaced.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

/// A name with more differences than one in this number of letters is another name.
const LETTERS_PER_EDIT: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_are_counted_as_by_hand() {
        let pairs = [("", "", 0), ("abc", "", 3), ("", "ab", 2), ("sort", "sort", 0), ("sart", "sort", 1)];
        for (a, b, expected) in pairs.into_iter().chain([("arrange", "arange", 1), ("kitten", "sitting", 3)])
        {
            assert_eq!(edits(a, b), expected, "{a} {b}");
            assert_eq!(edits(b, a), expected, "{b} {a}");
        }
    }
}
