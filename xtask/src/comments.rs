//! Width of comments: `rustfmt` leaves comments as wide as they are, so the paragraphs with a line that is
//! too wide are broken anew here.
//!
//! All other text stays as it was written: paragraphs that fit, tables, code, headings, definitions of links,
//! drawings, and comments after code on the same line.

use crate::scan::{self, Kind};

/// Most characters of a line of a comment: as many as of a line of code.
pub const WIDTH: usize = 110;

/// A Rust text with the comments broken anew that are wider than `width`.
pub fn rewrap(text: &str, width: usize) -> String {
    let mut out = String::new();
    let mut copied = 0;
    for block in blocks(text) {
        let lines: Vec<&str> = block.lines.iter().map(|line| &text[line.clone()]).collect();
        if lines.iter().all(|line| block.indent + line.chars().count() <= width) {
            continue;
        }
        let (Some(first), Some(last)) = (block.lines.first(), block.lines.last()) else { continue };
        let contents: Vec<&str> = lines.iter().map(|line| &line[block.prefix.len()..]).collect();
        // A line of content has one blank before it.
        let room = width.saturating_sub(block.indent + block.prefix.len());
        let between = format!("\n{}{}", &text[first.start - block.indent..first.start], block.prefix);
        out.push_str(&text[copied..first.start]);
        out.push_str(block.prefix);
        out.push_str(&rewrap_block(&contents, room).join(&between));
        copied = last.end;
    }
    out.push_str(&text[copied..]);
    out
}

/// Comments of one kind on lines of their own, one below the other.
struct Block<'a> {
    prefix: &'a str,
    /// Bytes before each, all white space.
    indent: usize,
    /// The bytes of each in the text, with the prefix.
    lines: Vec<std::ops::Range<usize>>,
}

fn blocks(text: &str) -> Vec<Block<'_>> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let comments = scan::pieces(text).into_iter().filter(|piece| piece.kind == Kind::LineComment);
    for range in comments.map(|piece| piece.range) {
        let line = text[..range.start].rfind('\n').map_or(0, |end| end + 1);
        if !text[line..range.start].trim().is_empty() {
            continue;
        }
        let (indent, comment) = (range.start - line, &text[range.clone()]);
        let slashes = comment.len() - comment.trim_start_matches('/').len();
        let prefix = match comment.as_bytes().get(2) {
            Some(b'!') => &comment[..3],
            _ => &comment[..slashes],
        };
        let continues = blocks.last().is_some_and(|block| {
            let end = block.lines.last().map_or(0, |line| line.end);
            block.prefix == prefix && block.indent == indent && text[end..line].trim_end_matches('\r') == "\n"
        });
        match blocks.last_mut() {
            Some(block) if continues => block.lines.push(range),
            _ => blocks.push(Block { prefix, indent, lines: vec![range] }),
        }
    }
    blocks.retain(|block| block.prefix.len() <= 3);
    blocks
}

/// The contents of a block's lines after their prefix, each with its blank before it.
fn rewrap_block(contents: &[&str], room: usize) -> Vec<String> {
    let mut out = Vec::new();
    let mut is_code = false;
    let mut at = 0;
    while at < contents.len() {
        let is_fence = is_fence(contents[at]);
        is_code ^= is_fence;
        if is_code || is_fence || !is_prose(contents[at]) {
            out.push(contents[at].to_owned());
            at += 1;
            continue;
        }
        let more = contents[at + 1..].iter().take_while(|line| is_prose(line) && marker(line) == 0).count();
        let paragraph = &contents[at..=at + more];
        at += 1 + more;
        let is_wide = paragraph.iter().any(|line| room < line.chars().count());
        match hanging(paragraph).filter(|_| is_wide) {
            Some(hanging) => out.extend(fill(paragraph, hanging, room)),
            None => out.extend(paragraph.iter().map(|line| (*line).to_owned())),
        }
    }
    out
}

fn is_fence(line: &str) -> bool {
    line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~")
}

/// Whether a line may be broken elsewhere. The first line of an item of a list is prose too.
fn is_prose(line: &str) -> bool {
    let content = line.trim_start();
    let is_definition = content.starts_with('[') && content.contains("]: ");
    line.starts_with(' ')
        && !content.is_empty()
        && !is_fence(line)
        && !content.starts_with(['|', '#', '>', '<'])
        && !is_definition
}

/// The length of the sign that begins an item of a list, with the blank after it; 0 for other lines.
fn marker(line: &str) -> usize {
    let content = line.trim_start();
    let digits = content.len() - content.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let sign = if digits == 0 { ["-", "*", "+"].as_slice() } else { [".", ")"].as_slice() };
    let is_item =
        sign.iter().any(|sign| content[digits..].strip_prefix(sign).is_some_and(|r| r.starts_with(' ')));
    if is_item { digits + 2 } else { 0 }
}

/// The blanks before the second and later lines of a paragraph; nothing for a drawing, whose lines begin
/// further to the right than they should.
fn hanging(paragraph: &[&str]) -> Option<usize> {
    let blanks = |line: &str| line.len() - line.trim_start().len();
    let (first, marker) = (blanks(paragraph[0]), marker(paragraph[0]));
    let second = paragraph.get(1).map_or(first + marker, |line| blanks(line));
    let is_text = |indent: usize| indent <= first + marker;
    // Four blanks more than a comment has are code, unless an item of a list stands above.
    let is_code = marker == 0 && 5 <= first;
    (!is_code && is_text(second) && paragraph[1..].iter().all(|line| is_text(blanks(line)))).then_some(second)
}

fn fill(paragraph: &[&str], hanging: usize, room: usize) -> Vec<String> {
    let first = paragraph[0].len() - paragraph[0].trim_start().len();
    let mut lines = vec![" ".repeat(first)];
    let mut is_begun = false;
    for unit in units(paragraph) {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if is_begun && room < line + 1 + unit.chars().count() {
            lines.push(" ".repeat(hanging));
            is_begun = false;
        }
        if let Some(line) = lines.last_mut() {
            line.push_str(if is_begun { " " } else { "" });
            line.push_str(&unit);
        }
        is_begun = true;
    }
    lines
}

/// Words of a paragraph. A word that would be markup at the beginning of a line stays with the one before it,
/// and the sign of an item with the one after it.
fn units(paragraph: &[&str]) -> Vec<String> {
    let is_sign = |word: &str| !word.contains(' ') && marker(&format!(" {word} ")) != 0;
    let mut units: Vec<String> = Vec::new();
    for word in paragraph.iter().flat_map(|line| line.split_whitespace()) {
        let is_markup = is_sign(word) || !is_prose(&format!(" {word}"));
        match units.last_mut() {
            Some(before) if is_markup || is_sign(before) => {
                before.push(' ');
                before.push_str(word);
            }
            _ => units.push(word.to_owned()),
        }
    }
    units
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Both texts without their margin, broken at 40 characters; and nothing changes a second time.
    fn check(text: &str, wanted: &str) {
        let found = rewrap(text, 40);
        assert_eq!(found, wanted);
        assert_eq!(rewrap(&found, 40), wanted, "the second time");
    }

    fn unchanged(text: &str) {
        check(text, text);
    }

    #[test]
    fn a_wide_paragraph_is_broken_anew() {
        check(
            "//! One two three four five six seven eight nine ten\n//! eleven.\n//!\n//! Short\n//! as written.\nfn a() {}\n",
            "//! One two three four five six seven\n//! eight nine ten eleven.\n//!\n//! Short\n//! as written.\nfn a() {}\n",
        );
        check(
            "    /// One two three four five six seven eight.\n    fn a() {}",
            "    /// One two three four five six\n    /// seven eight.\n    fn a() {}",
        );
    }

    #[test]
    fn each_kind_of_comment_is_a_block_of_its_own() {
        check(
            "/// One two three four five six seven eig\n// ht nine.\n",
            "/// One two three four five six seven\n/// eig\n// ht nine.\n",
        );
        check(
            "// One two three four five six seven eig\n\n// ht nine.",
            "// One two three four five six seven eig\n\n// ht nine.",
        );
    }

    #[test]
    fn items_of_lists_hang() {
        check(
            "/// - one two three four five six seven eight nine\n/// - ten\n/// 10. one two three four five six seven eight nine\n",
            "/// - one two three four five six seven\n///   eight nine\n/// - ten\n/// 10. one two three four five six\n///     seven eight nine\n",
        );
        check(
            "/// - one two three\n///   four five six seven eight nine ten eleven\n///   twelve\n",
            "/// - one two three four five six seven\n///   eight nine ten eleven twelve\n",
        );
    }

    #[test]
    fn other_text_stays() {
        unchanged("// | a table | with a wide row | that cannot be broken |\n");
        unchanged("/// ```\n/// let a_long_line_of_code = of(an, example);\n/// ```\n");
        unchanged("/// # A heading that is wider than a line may be here\n");
        unchanged("/// [a]: https://example.org/a/definition/of/a/link\n");
        unchanged("//     a drawing, or code, that is wider than it may be\n");
        unchanged("// a     b     c     d     e     f     g     h\n//    \\-----/     \\-----------/\n");
        unchanged("let a = 1; // a comment after code that is too wide to fit\n");
        unchanged("//a_line_of_code(that, is, not, in, use, today);\n");
        unchanged("//// a line of slashes is not for this program at all\n");
        unchanged("let a = \"\n// a text that looks like a comment and is too wide\n\";");
        unchanged("/// <p>Markup of another kind, which has its own rules.</p>\n");
    }

    #[test]
    fn a_word_that_is_too_long_stands_alone() {
        check(
            "// See https://example.org/a/very/long/address/of/a/page for more.\n",
            "// See\n// https://example.org/a/very/long/address/of/a/page\n// for more.\n",
        );
    }

    #[test]
    fn no_line_begins_with_what_would_be_markup() {
        check(
            "// One two three four five six seven ei - nine # ten.\n",
            "// One two three four five six seven\n// ei - nine # ten.\n",
        );
        check(
            "// One two three four five six in year 2. Nine.\n",
            "// One two three four five six in\n// year 2. Nine.\n",
        );
    }
}
