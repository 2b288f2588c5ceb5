//! Pieces of files in errors, which may be of any length: a value, a label, or all of a file on one line; and
//! paths of files without what is secret in them.

/// The text, without its middle if it is long.
pub(crate) fn brief(text: String) -> String {
    let letters = text.chars().count();
    if letters <= BEGIN_LETTERS + END_LETTERS {
        return text;
    }
    let begin: String = text.chars().take(BEGIN_LETTERS).collect();
    let end: String = text.chars().skip(letters - END_LETTERS).collect();
    format!("{begin} .. {end}")
}

/// A text whose URLs have no user, no password and no query, which may be a signature.
pub(crate) fn without_secrets(text: &str) -> String {
    const SCHEME_END: &str = "://";
    let (mut shown, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(at) = rest.find(SCHEME_END) {
        let (before, after) = rest.split_at(at + SCHEME_END.len());
        shown.push_str(before);
        let is_end = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '<' | '>' | ')');
        let (url, after) = after.split_at(after.find(is_end).unwrap_or(after.len()));
        let host_end = url.find(['/', '?']).unwrap_or(url.len());
        let url = url[..host_end].rfind('@').map_or(url, |user| &url[user + 1..]);
        // Servers take a scheme in any letters.
        let scheme = before.to_ascii_lowercase();
        let is_web = scheme.ends_with("http://") || scheme.ends_with("https://");
        match url.find('?').filter(|_| is_web) {
            Some(query) => shown.extend([&url[..query], "?.."]),
            None => shown.push_str(url),
        }
        rest = after;
    }
    shown.push_str(rest);
    shown
}

/// Letters that stay of a long text. The begin has the place, the end the reason and what to do.
const BEGIN_LETTERS: usize = 200;
const END_LETTERS: usize = 120;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_lose_their_middle() {
        let short = "ü".repeat(BEGIN_LETTERS + END_LETTERS);
        assert_eq!(brief(short.clone()), short);
        let long = brief(format!("begin{}end", "ü".repeat(1_000_000)));
        assert!(long.starts_with("beginü") && long.ends_with("üend"), "{long}");
        assert_eq!(long.chars().count(), BEGIN_LETTERS + END_LETTERS + 4);
    }
}
