//! Names that nobody knows: keys of requests, and options of operations.

use crate::refusal::Refusal;

/// Keys of a request, and of its context.
const KEYS: [&str; 8] = ["v", "id", "ctx", "in", "prog", "out", "dir", "want"];
const CONTEXT_KEYS: [&str; 9] =
    ["mode", "nodes", "workers", "memory", "chunks", "seed", "timeout_s", "inline", "errstate"];

/// Refuses a request with a key that none has: its steps, or its results, would be left out without a word.
///
/// ```
/// use tharsis_programs::check_keys;
/// assert!(check_keys(["in", "prog", "out"]).is_ok());
/// let refusal = check_keys(["prog", "otu"]).expect_err("no such key");
/// assert!(refusal.message.ends_with("did you mean \"out\"?"), "{refusal}");
/// ```
///
/// # Errors
/// `ValueError` with the key that is most like it.
pub fn check_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Result<(), Refusal> {
    check("a request", keys, &KEYS)
}

/// Refuses a key that the context of a request does not have.
///
/// ```
/// let refusal = tharsis_programs::check_context(["chunk"]).expect_err("no such key");
/// assert!(refusal.message.ends_with("did you mean \"chunks\"?"), "{refusal}");
/// ```
///
/// # Errors
/// As [`check_keys`].
pub fn check_context<'a>(keys: impl IntoIterator<Item = &'a str>) -> Result<(), Refusal> {
    check("ctx", keys, &CONTEXT_KEYS)
}

/// Refuses a key that a thing of a request does not have, such as an input.
///
/// ```
/// let refusal = tharsis_programs::check_known("the input x", ["dtpye"], &["lit", "dtype"]);
/// assert!(refusal.expect_err("no such key").message.ends_with("did you mean \"dtype\"?"));
/// ```
///
/// # Errors
/// As [`check_keys`].
pub fn check_known<'a>(
    of: &str,
    keys: impl IntoIterator<Item = &'a str>,
    known: &[&str],
) -> Result<(), Refusal> {
    check(of, keys, known)
}

fn check<'a>(of: &str, keys: impl IntoIterator<Item = &'a str>, known: &[&str]) -> Result<(), Refusal> {
    let Some(unknown) = keys.into_iter().find(|key| !known.contains(key)) else { return Ok(()) };
    // The longer names of these.
    let begins = known.iter().find(|key| 2 < key.len() && unknown.starts_with(**key));
    let near = begins.copied().or_else(|| near(unknown, known.iter().copied()));
    let near = near.map(|near| format!("; did you mean \"{near}\"?")).unwrap_or_default();
    Err(Refusal::value(format!("{of} has no key {unknown:?}; it has {}{near}", known.join(", "))))
}

/// The refusal of an option that an operation has not taken: `TypeError` if it is probably misspelt,
/// `NotImplemented` for one that may be Python's.
///
/// ```
/// use tharsis_programs::unknown_option;
/// let refusal = unknown_option("np.sum", "(a, axis=None, keepdims=False)", "axs");
/// assert_eq!(refusal.class, "TypeError");
/// assert!(refusal.message.contains("did you mean 'axis'?"), "{refusal}");
/// assert_eq!(unknown_option("np.sum", "(a, axis=None)", "where").class, "NotImplemented");
/// ```
#[must_use]
pub fn unknown_option(operation: &str, signature: &str, option: &str) -> Refusal {
    match near(option, parameters(signature).into_iter()) {
        Some(near) => Refusal::binding(format!(
            "{operation}() got an unexpected keyword argument '{option}'; did you mean '{near}'? It takes {signature}"
        )),
        None => {
            Refusal::missing(format!("the option {option} is not implemented; {operation} takes {signature}"))
        }
    }
}

/// The names of the parameters of a signature.
fn parameters(signature: &str) -> Vec<&str> {
    let signature = signature.trim().trim_start_matches('(').trim_end_matches(')');
    let (mut depth, mut is_text, mut begin, mut names) = (0_usize, false, 0, Vec::new());
    for (at, character) in signature.char_indices().chain([(signature.len(), ',')]) {
        match character {
            // A default such as `sep=','`.
            '\'' => is_text = !is_text,
            _ if is_text => {}
            '(' | '[' | '{' => depth += 1,
            ')' | ']' | '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                let name = signature[begin..at].split('=').next().unwrap_or_default();
                names.push(name.trim().trim_start_matches('*'));
                begin = at + 1;
            }
            _ => {}
        }
    }
    names.retain(|name| 1 < name.len());
    names
}

/// The name of which another one is probably a misspelling: one letter is another, too much or missing, or
/// two are exchanged; in long names, twice.
fn near<'a>(name: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let most = if name.len() <= 5 { 1 } else { 2 };
    let distances = known.map(|known| (distance(name, known), known));
    distances
        .filter(|(distance, _)| *distance <= most)
        .min_by_key(|(distance, _)| *distance)
        .map(|found| found.1)
}

/// Letters that are changed, added, left out or exchanged with the next one between two names.
fn distance(left: &str, right: &str) -> usize {
    let (left, right): (Vec<char>, Vec<char>) = (left.chars().collect(), right.chars().collect());
    let mut rows = vec![(0..=right.len()).collect::<Vec<usize>>()];
    for (at, letter) in left.iter().enumerate() {
        let mut row = vec![at + 1];
        for (to, other) in right.iter().enumerate() {
            let change = rows[at][to] + usize::from(letter != other);
            let mut least = change.min(rows[at][to + 1] + 1).min(row[to] + 1);
            if 0 < at && 0 < to && left[at - 1] == *other && right[to - 1] == *letter {
                least = least.min(rows[at - 1][to - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[left.len()][right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn misspelt_names_are_told_with_the_nearest() {
        for (unknown, near) in [
            ("otu", "out"),
            ("program", "prog"),
            ("inn", "in"),
            ("outs", "out"),
            ("output", "out"),
            ("wants", "want"),
        ] {
            let refusal = check_keys(["in", unknown]).expect_err("no such key");
            let text = format!(
                "no key {unknown:?}; it has v, id, ctx, in, prog, out, dir, want; did you mean \"{near}\"?"
            );
            assert_eq!(refusal.to_string(), format!("ValueError: a request has {text}"));
        }
        let refusal = check_keys(["packages"]).expect_err("no such key");
        assert!(refusal.message.ends_with("want"), "{refusal}");
    }

    #[test]
    fn names_of_a_signature_are_those_before_defaults() {
        let signature = "(path_or_buf=None, sep=',', dtype=(int, float), **kwargs)";
        assert_eq!(parameters(signature), ["path_or_buf", "sep", "dtype", "kwargs"]);
        assert_eq!(parameters("()"), [""; 0]);
    }

    #[test]
    fn options_of_python_that_are_like_others_are_not_misspelt() {
        for (known, other) in
            [("na_values", "na_filter"), ("skiprows", "skipfooter"), ("axis", "out"), ("sep", "delimiter")]
        {
            let refusal = unknown_option("pd.read_csv", &format!("(path, {known}=None)"), other);
            assert_eq!(refusal.class, "NotImplemented", "{other}");
        }
        for (known, other) in
            [("ascending", "acsending"), ("axis", "axs"), ("sep", "sepp"), ("keepdims", "keepdim")]
        {
            let refusal = unknown_option("f", &format!("(x, {known}=None)"), other);
            assert_eq!(refusal.class, "TypeError", "{other}");
        }
    }
}
