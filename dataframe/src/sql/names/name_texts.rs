//! Texts of expressions as the names that the library makes of them: two ways to write one expression are
//! one name.

use datafusion::logical_expr::sqlparser::dialect::GenericDialect;
use datafusion::logical_expr::sqlparser::tokenizer::{Token, Tokenizer};

/// Texts, of which those that may stand for one expression are together.
#[derive(Default)]
pub(in crate::sql) struct Texts(Vec<Vec<Words>>);

/// The words of a text, each behind the name of its table, if the text says it.
type Words = Vec<(String, String)>;

impl Texts {
    /// The number of the expressions.
    pub(in crate::sql) fn len(&self) -> usize {
        self.0.len()
    }

    pub(in crate::sql) fn add(&mut self, text: &str) {
        let words = words(text);
        match self.0.iter_mut().find(|known| known.iter().all(|known| may_be_same(known, &words))) {
            Some(known) => known.push(words),
            None => self.0.push(vec![words]),
        }
    }

    /// The number of an expression, if it is among them.
    pub(in crate::sql) fn number(&self, text: &str) -> Option<usize> {
        let words = words(text);
        self.0.iter().position(|known| known.contains(&words))
    }
}

/// A text without names of tables, and with small letters where the library makes them small.
pub(in crate::sql) fn plain(text: &str) -> String {
    words(text).into_iter().map(|(_, word)| word).collect::<Vec<_>>().join(" ")
}

fn words(text: &str) -> Words {
    let Ok(tokens) = Tokenizer::new(&GenericDialect {}, text).tokenize() else {
        return vec![(String::new(), text.to_owned())];
    };
    let (mut words, mut table): (Words, String) = (Vec::new(), String::new());
    for token in tokens {
        let word = match token {
            Token::Whitespace(_) => continue,
            Token::Period => {
                let (around, name) = words.pop().unwrap_or_default();
                table = if around.is_empty() { name } else { format!("{around}.{name}") };
                continue;
            }
            Token::Word(word) if word.quote_style.is_none() => word.value.to_lowercase(),
            Token::Word(word) => word.value,
            other => other.to_string(),
        };
        words.push((std::mem::take(&mut table), word));
    }
    words
}

fn may_be_same(left: &Words, right: &Words) -> bool {
    let is_same = |(left, right): (&(String, String), &(String, String))| {
        left.1 == right.1 && (left.0 == right.0 || left.0.is_empty() || right.0.is_empty())
    };
    left.len() == right.len() && left.iter().zip(right).all(is_same)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_to_write_an_expression_are_one() {
        let mut texts = Texts::default();
        for text in
            ["A in (select x)", "v.a in (select x)", "t.a IN (SELECT x)", "\"A\" in (select x)", "a in ('X')"]
        {
            texts.add(text);
        }
        let number = |text: &str| texts.number(text);
        assert_eq!(texts.len(), 4);
        assert_eq!([number("v.a in (select x)"), number("a IN (select x)")], [Some(0); 2]);
        assert_eq!(number("t.a in (select x)"), Some(1));
        assert_eq!(number("\"A\" in (select x)"), Some(2));
        assert_eq!([number("a in ('X')"), number("a in ('x')")], [Some(3), None]);
        assert_eq!(plain("count( T.a ) + 1.5"), plain("COUNT(a) + 1.5"));
    }
}
