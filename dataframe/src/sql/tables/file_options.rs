//! The arguments of `read_csv(..)` and others in FROM: paths, and options with names and types.

use crate::error::Error;
use crate::sql::faults::near::near_text;
use datafusion::common::{DataFusionError, Diagnostic, Span};
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, Expr, FunctionArg, FunctionArgExpr, Ident, Spanned, TableFunctionArgs, UnaryOperator,
    Value,
};
use datafusion::logical_expr::sqlparser::tokenizer::Span as SqlSpan;

/// A mistake in a call, and its place.
pub(in crate::sql) struct Mistake {
    error: Error,
    span: SqlSpan,
}

impl Mistake {
    pub(in crate::sql) fn new(error: Error, span: SqlSpan) -> Mistake {
        Mistake { error, span }
    }
}

/// The outcome of a step that may find a mistake in a call.
pub(in crate::sql) type Checked<T> = Result<T, Mistake>;

impl From<Mistake> for DataFusionError {
    fn from(Mistake { error, span }: Mistake) -> DataFusionError {
        let said = Diagnostic::new_error(error.to_string(), Span::try_from_sqlparser_span(span));
        DataFusionError::from(error).with_diagnostic(said)
    }
}

/// The value of an argument.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::sql) enum Given {
    Number(i64),
    /// Names and texts: `{'a': 'BIGINT'}`.
    Pairs(Vec<(String, String)>),
    Text(String),
    Texts(Vec<String>),
    Truth(bool),
}

/// Names of options. Those of one group mean the same.
pub(in crate::sql) type Groups = [&'static [&'static str]];

/// An option of a call.
pub(in crate::sql) struct Choice {
    /// The first name of its group.
    name: &'static str,
    written: String,
    value: Given,
    span: SqlSpan,
}

/// A call of a function in FROM.
pub(in crate::sql) struct Call {
    pub(in crate::sql) function: &'static str,
    pub(in crate::sql) paths: Vec<String>,
    /// The place of the paths.
    pub(in crate::sql) span: SqlSpan,
    pub(in crate::sql) options: Vec<Choice>,
}

impl Call {
    /// The arguments of a function that takes these options.
    pub(in crate::sql) fn of(
        function: &'static str,
        args: &TableFunctionArgs,
        name: SqlSpan,
        known: &Groups,
    ) -> Checked<Call> {
        let mut args = args.args.iter();
        let usage = || {
            Error::Type(format!(
                "{function}: the first argument is a path in single quotes, or a list of them"
            ))
        };
        let first = match args.next() {
            Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))) => expr,
            _ => return Err(Mistake::new(usage(), name)),
        };
        // Nothing in brackets has no place of its own.
        let span = if first.span() == SqlSpan::empty() { name } else { first.span() };
        let paths = match given(first) {
            Some(Given::Text(path)) => vec![path],
            Some(Given::Texts(paths)) if !paths.is_empty() => paths,
            _ => return Err(Mistake::new(usage(), span)),
        };
        let mut options: Vec<Choice> = Vec::new();
        for arg in args {
            let choice = choice(function, arg, known)?;
            if let Some(other) = options.iter().find(|other| other.name == choice.name) {
                let (first, second) = (&other.written, &choice.written);
                let text = if first == second {
                    format!("{function}: the option {second} is given twice")
                } else {
                    format!("{function}: the options {first} and {second} mean the same")
                };
                return Err(Mistake::new(Error::Value(text), choice.span));
            }
            options.push(choice);
        }
        Ok(Call { function, paths, span, options })
    }
}

fn choice(function: &str, arg: &FunctionArg, known: &Groups) -> Checked<Choice> {
    let (name, value) = match arg {
        FunctionArg::Named { name, arg: FunctionArgExpr::Expr(value), .. } => (name.clone(), value),
        // The dialect reads `header = true` as a comparison.
        FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::BinaryOp {
            left,
            op: BinaryOperator::Eq,
            right,
        })) => match &**left {
            Expr::Identifier(name) => (name.clone(), &**right),
            // The word is a value elsewhere.
            Expr::Value(word) if word.value == Value::Null => (Ident::with_span(word.span, "null"), &**right),
            other => return Err(Mistake::new(no_option(function), other.span())),
        },
        other => return Err(Mistake::new(no_option(function), other.span())),
    };
    let (lower, span) = (name.value.to_lowercase(), name.span);
    let Some(group) = known.iter().find(|group| group.contains(&lower.as_str())) else {
        let all: Vec<&str> = known.iter().flat_map(|group| group.iter().copied()).collect();
        let near = near_text(&lower, all.iter().copied());
        let there = if all.is_empty() { "none".to_owned() } else { all.join(", ") };
        let text = format!("{function}: no option {lower:?}; there are {there}{near}");
        return Err(Mistake::new(Error::Value(text), span));
    };
    match given(value) {
        Some(value) => Ok(Choice { name: group[0], written: lower, value, span }),
        None => {
            let text = format!(
                "{function}: {lower} takes a text, a number, true, false or a list of texts, and no expression"
            );
            Err(Mistake::new(Error::Type(text), value.span()))
        }
    }
}

fn no_option(function: &str) -> Error {
    Error::Type(format!("{function}: behind the path there are options, such as header = true"))
}

/// The value of a literal.
fn given(expr: &Expr) -> Option<Given> {
    Some(match expr {
        Expr::Value(value) => match &value.value {
            Value::SingleQuotedString(text) | Value::EscapedStringLiteral(text) => Given::Text(text.clone()),
            Value::Number(digits, _) => Given::Number(digits.parse().ok()?),
            Value::Boolean(truth) => Given::Truth(*truth),
            _ => return None,
        },
        Expr::UnaryOp { op: UnaryOperator::Minus, expr } => match given(expr)? {
            Given::Number(number) => Given::Number(number.checked_neg()?),
            _ => return None,
        },
        Expr::Nested(expr) => given(expr)?,
        Expr::Array(list) => Given::Texts(list.elem.iter().map(text).collect::<Option<_>>()?),
        Expr::Dictionary(fields) => {
            let pairs = fields.iter().map(|field| Some((field.key.value.clone(), text(&field.value)?)));
            Given::Pairs(pairs.collect::<Option<_>>()?)
        }
        _ => return None,
    })
}

fn text(expr: &Expr) -> Option<String> {
    match given(expr)? {
        Given::Text(text) => Some(text),
        _ => None,
    }
}

impl Choice {
    pub(in crate::sql) fn name(&self) -> &'static str {
        self.name
    }

    /// The mistake of a value that the option does not take.
    pub(in crate::sql) fn refused(&self, function: &str, wanted: &str) -> Mistake {
        let text = format!("{function}: {} takes {wanted}", self.written);
        Mistake::new(Error::Type(text), self.span)
    }

    pub(in crate::sql) fn mistake(&self, error: Error) -> Mistake {
        Mistake::new(error, self.span)
    }

    /// A character of one byte; a tab may be written as in other languages.
    pub(in crate::sql) fn character(&self) -> Result<u8, &'static str> {
        match &self.value {
            Given::Text(text) if text == "\\t" => Ok(b'\t'),
            Given::Text(text) if text.len() == 1 => Ok(text.as_bytes()[0]),
            _ => Err("one ASCII character"),
        }
    }

    /// A character, or nothing.
    pub(in crate::sql) fn optional_character(&self) -> Result<Option<u8>, &'static str> {
        match &self.value {
            Given::Text(text) if text.is_empty() => Ok(None),
            _ => self.character().map(Some),
        }
    }

    pub(in crate::sql) fn truth(&self) -> Result<bool, &'static str> {
        match self.value {
            Given::Truth(truth) => Ok(truth),
            Given::Number(number @ (0 | 1)) => Ok(number == 1),
            _ => Err("true or false"),
        }
    }

    pub(in crate::sql) fn count(&self) -> Result<usize, &'static str> {
        match self.value {
            Given::Number(number) => usize::try_from(number).map_err(|_| "a number of at least 0"),
            _ => Err("a number"),
        }
    }

    pub(in crate::sql) fn text(&self) -> Result<&str, &'static str> {
        if let Given::Text(text) = &self.value { Ok(text) } else { Err("a text in single quotes") }
    }

    /// One text or several.
    pub(in crate::sql) fn texts(&self) -> Result<Vec<&str>, &'static str> {
        match &self.value {
            Given::Text(text) => Ok(vec![text.as_str()]),
            Given::Texts(texts) => Ok(texts.iter().map(String::as_str).collect()),
            _ => Err("a text, or a list of texts such as ['a', 'b']"),
        }
    }

    /// Names with a text each, or nothing for a value of another form.
    pub(in crate::sql) fn pairs(&self) -> Option<&[(String, String)]> {
        if let Given::Pairs(pairs) = &self.value { Some(pairs) } else { None }
    }
}
