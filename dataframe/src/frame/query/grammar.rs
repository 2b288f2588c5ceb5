//! The grammar of expressions: Python's, without anything that runs code of its own.

use super::token::{Kind, Token, tokens, wrong};
use crate::error::Result;
use crate::frame::series::Operator;
use crate::planning::OPERATORS_MAX;
use crate::value::Value;

/// A part of an expression, with its place in characters.
#[derive(Clone, Debug)]
pub(super) struct Node {
    pub(super) at: usize,
    pub(super) form: Form,
}

#[derive(Clone, Debug)]
pub(super) enum Form {
    /// Operators of one strength, from the left to the right: `a - b + c`. A list, as a tree would be as deep
    /// as the text is long.
    Chain(Box<Node>, Vec<(Operator, Node)>),
    /// Operators between operands, each of which holds: `a < b <= c`.
    Comparison(Box<Node>, Vec<(Compare, Node)>),
    Call(Box<Node>, Vec<Node>),
    Given(String),
    List(Vec<Node>),
    Member(Box<Node>, String),
    Minus(Box<Node>),
    Name(String),
    Not(Box<Node>),
    Value(Value),
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Compare {
    By(Operator),
    In,
    NotIn,
}

/// One line of a text: an expression, and the label that it is assigned to.
#[derive(Debug)]
pub(super) struct Statement {
    pub(super) target: Option<String>,
    pub(super) value: Node,
}

/// Nesting beyond which a text is refused, since each level takes some of the stack.
const DEPTH_MAX: usize = 100;

/// Parses a single expression or assignment.
pub(super) fn statement(text: &str) -> Result<Statement> {
    let mut parser = Parser { tokens: tokens(text)?, next: 0, depth: 0, operators: 0 };
    let target = match (&parser.tokens[0].kind, parser.tokens.get(1).map(|token| &token.kind)) {
        (Kind::Word(name) | Kind::Quoted(name), Some(Kind::Sign("="))) => Some(name.clone()),
        _ => None,
    };
    if target.is_some() {
        parser.next = 2;
    }
    let value = parser.either()?;
    match parser.kind() {
        Kind::End => Ok(Statement { target, value }),
        _ => parser.unexpected("an operator or the end"),
    }
}

struct Parser {
    tokens: Vec<Token>,
    next: usize,
    depth: usize,
    operators: usize,
}

impl Parser {
    fn kind(&self) -> &Kind {
        &self.tokens[self.next].kind
    }

    fn at(&self) -> usize {
        self.tokens[self.next].at
    }

    fn unexpected<T>(&self, expected: &str) -> Result<T> {
        let found = match self.kind() {
            Kind::End => "the text ends".to_owned(),
            Kind::Sign(sign) => format!("found {sign:?}"),
            Kind::Word(word) => format!("found {word:?}"),
            Kind::Given(name) => format!("found @{name}"),
            Kind::Quoted(name) => format!("found `{name}`"),
            Kind::Text(text) => format!("found the text {text:?}"),
            Kind::Whole(number) => format!("found {number}"),
            Kind::Float(number) => format!("found {number}"),
        };
        wrong(self.at(), format!("expected {expected}, but {found}"))
    }

    fn sign(&mut self, sign: &str) -> bool {
        let found = matches!(self.kind(), Kind::Sign(found) if *found == sign);
        self.next += usize::from(found);
        found
    }

    fn word(&mut self, word: &str) -> bool {
        let found = matches!(self.kind(), Kind::Word(found) if found == word);
        self.next += usize::from(found);
        found
    }

    fn need(&mut self, sign: &'static str) -> Result<()> {
        if self.sign(sign) { Ok(()) } else { self.unexpected(sign) }
    }

    /// Goes a level deeper, if the text is not nested too much.
    fn deeper(&mut self, step: fn(&mut Parser) -> Result<Node>) -> Result<Node> {
        if self.depth == DEPTH_MAX {
            return wrong(self.at(), format!("nested more than {DEPTH_MAX} times"));
        }
        self.depth += 1;
        let made = step(self);
        self.depth -= 1;
        made
    }

    /// Operators of one strength, from the left to the right.
    fn chain(
        &mut self,
        operand: fn(&mut Parser) -> Result<Node>,
        operator: fn(&mut Parser) -> Option<Operator>,
    ) -> Result<Node> {
        let first = operand(self)?;
        let (at, mut others) = (self.at(), Vec::new());
        while let Some(operator) = operator(self) {
            self.counted()?;
            others.push((operator, operand(self)?));
        }
        Ok(if others.is_empty() { first } else { Node { at, form: Form::Chain(Box::new(first), others) } })
    }

    /// Counts an operator, if there are not too many.
    fn counted(&mut self) -> Result<()> {
        self.operators += 1;
        if self.operators > OPERATORS_MAX {
            let text = "split the text, or use `in` with a list";
            return wrong(self.at(), format!("more than {OPERATORS_MAX} operators; {text}"));
        }
        Ok(())
    }

    fn either(&mut self) -> Result<Node> {
        self.chain(Parser::both, |parser| (parser.word("or") || parser.sign("|")).then_some(Operator::Or))
    }

    fn both(&mut self) -> Result<Node> {
        self.chain(Parser::opposite, |parser| {
            (parser.word("and") || parser.sign("&")).then_some(Operator::And)
        })
    }

    fn opposite(&mut self) -> Result<Node> {
        let at = self.at();
        if self.word("not") {
            let inner = self.deeper(Parser::opposite)?;
            Ok(Node { at, form: Form::Not(Box::new(inner)) })
        } else {
            self.comparison()
        }
    }

    fn compare(&mut self) -> Option<Compare> {
        const SIGNS: [(&str, Operator); 6] = [
            ("<", Operator::Lt),
            ("<=", Operator::Le),
            (">", Operator::Gt),
            (">=", Operator::Ge),
            ("==", Operator::Eq),
            ("!=", Operator::Ne),
        ];
        if let Some((_, operator)) = SIGNS.iter().find(|(sign, _)| self.sign(sign)) {
            return Some(Compare::By(*operator));
        }
        if self.word("in") {
            return Some(Compare::In);
        }
        let before = self.next;
        if self.word("not") && self.word("in") {
            return Some(Compare::NotIn);
        }
        self.next = before;
        None
    }

    fn comparison(&mut self) -> Result<Node> {
        let at = self.at();
        let first = self.sum()?;
        let mut others = Vec::new();
        while let Some(compare) = self.compare() {
            self.counted()?;
            others.push((compare, self.sum()?));
        }
        Ok(if others.is_empty() {
            first
        } else {
            Node { at, form: Form::Comparison(Box::new(first), others) }
        })
    }

    fn sum(&mut self) -> Result<Node> {
        self.chain(Parser::product, |parser| match parser.kind() {
            _ if parser.sign("+") => Some(Operator::Add),
            _ if parser.sign("-") => Some(Operator::Sub),
            _ => None,
        })
    }

    fn product(&mut self) -> Result<Node> {
        self.chain(Parser::signed, |parser| match parser.kind() {
            _ if parser.sign("*") => Some(Operator::Mul),
            _ if parser.sign("//") => Some(Operator::FloorDiv),
            _ if parser.sign("/") => Some(Operator::Div),
            _ if parser.sign("%") => Some(Operator::Rem),
            _ => None,
        })
    }

    fn signed(&mut self) -> Result<Node> {
        let at = self.at();
        if self.sign("-") {
            let inner = self.deeper(Parser::signed)?;
            return Ok(Node { at, form: Form::Minus(Box::new(inner)) });
        }
        if self.sign("~") {
            let inner = self.deeper(Parser::signed)?;
            return Ok(Node { at, form: Form::Not(Box::new(inner)) });
        }
        if self.sign("+") {
            return self.deeper(Parser::signed);
        }
        self.power()
    }

    fn power(&mut self) -> Result<Node> {
        let base = self.members()?;
        let at = self.at();
        if !self.sign("**") {
            return Ok(base);
        }
        self.counted()?;
        let exponent = self.deeper(Parser::signed)?;
        Ok(Node { at, form: Form::Chain(Box::new(base), vec![(Operator::Pow, exponent)]) })
    }

    fn members(&mut self) -> Result<Node> {
        let mut node = self.atom()?;
        loop {
            let at = self.at();
            if matches!(self.kind(), Kind::Sign("." | "(")) {
                self.counted()?;
            }
            if self.sign(".") {
                let Kind::Word(name) = self.kind().clone() else { return self.unexpected("a name") };
                self.next += 1;
                node = Node { at, form: Form::Member(Box::new(node), name) };
            } else if self.sign("(") {
                let arguments = self.list(")")?;
                node = Node { at, form: Form::Call(Box::new(node), arguments) };
            } else {
                return Ok(node);
            }
        }
    }

    /// Expressions up to a closing sign.
    fn list(&mut self, end: &'static str) -> Result<Vec<Node>> {
        let mut parts = Vec::new();
        while !self.sign(end) {
            if !parts.is_empty() {
                self.need(",")?;
                if self.sign(end) {
                    break;
                }
            }
            parts.push(self.deeper(Parser::either)?);
        }
        Ok(parts)
    }

    fn atom(&mut self) -> Result<Node> {
        let at = self.at();
        let kind = self.kind().clone();
        self.next += usize::from(kind != Kind::End);
        let form = match kind {
            Kind::Whole(number) => Form::Value(Value::from(number)),
            Kind::Float(number) => Form::Value(Value::from(number)),
            Kind::Text(text) => Form::Value(Value::from(text)),
            Kind::Given(name) => Form::Given(name),
            Kind::Quoted(name) => Form::Name(name),
            Kind::Word(word) => match word.as_str() {
                "True" | "true" => Form::Value(Value::from(true)),
                "False" | "false" => Form::Value(Value::from(false)),
                "None" => Form::Value(Value::missing()),
                "and" | "or" | "not" | "in" | "is" | "lambda" | "if" | "else" | "for" | "import" | "def" => {
                    self.next -= 1;
                    return self.unexpected("a value");
                }
                _ => Form::Name(word),
            },
            Kind::Sign("(") => {
                let first = self.deeper(Parser::either)?;
                if self.sign(",") {
                    let mut parts = vec![first];
                    parts.extend(self.list(")")?);
                    Form::List(parts)
                } else {
                    self.need(")")?;
                    return Ok(first);
                }
            }
            Kind::Sign("[") => Form::List(self.list("]")?),
            _ => {
                self.next -= usize::from(kind != Kind::End);
                return self.unexpected("a value");
            }
        };
        Ok(Node { at, form })
    }
}
