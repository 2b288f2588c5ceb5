//! Parameters of operations: their names, kinds and defaults.

use crate::look::Look;
use std::fmt;

/// A parameter of an operation.
#[derive(Clone, Copy, Debug)]
pub struct Param {
    /// Its name in Python.
    pub name: &'static str,
    /// Values that it takes.
    pub kind: Kind,
    /// Its value in calls that do not give one.
    pub default: Preset,
    /// Ways in which a call gives it.
    pub place: Place,
    /// Values that exist here, of those that it takes in Python.
    pub made: Made,
}

/// Ways in which a call gives an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// By position or by name.
    Anywhere,
    /// By name alone.
    Keyword,
    /// All further positions: Python's `*args`.
    Rest,
}

/// Values of a parameter that exist here. Others of its kind are `NotImplemented`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Made {
    /// All of them.
    All,
    /// The default alone: the parameter is fixed.
    Default,
    /// Those of this kind.
    Only(Kind),
}

/// A kind of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Any value.
    Anything,
    /// An array, or nested lists.
    Array,
    /// `True` or `False`.
    Boolean,
    /// One of these words.
    Choice(&'static [&'static str]),
    /// A whole number.
    Integer,
    /// `None`.
    None,
    /// An object that steps before have made, such as an estimator.
    Object,
    /// Any of these kinds.
    OneOf(&'static [Kind]),
    /// A number.
    Real,
    /// A list or a tuple.
    Sequence,
    /// Any text.
    Text,
    /// A tuple.
    Tuple,
}

/// The value of a parameter that a call does not give.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Preset {
    /// There is none: each call must give it.
    Needed,
    /// `None`.
    None,
    /// `True` or `False`.
    Boolean(bool),
    /// A whole number.
    Integer(i64),
    /// A float.
    Real(f64),
    /// A text.
    Text(&'static str),
    /// A tuple.
    Tuple(&'static [Preset]),
}

impl Param {
    /// A parameter with a default, which calls give by position or by name.
    #[must_use]
    pub const fn new(name: &'static str, kind: Kind, default: Preset) -> Param {
        Param { name, kind, default, place: Place::Anywhere, made: Made::All }
    }

    /// A parameter that each call must give.
    #[must_use]
    pub const fn needed(name: &'static str, kind: Kind) -> Param {
        Param::new(name, kind, Preset::Needed)
    }

    /// All further positional arguments.
    #[must_use]
    pub const fn rest(name: &'static str, kind: Kind) -> Param {
        Param { name, kind, default: Preset::Needed, place: Place::Rest, made: Made::All }
    }

    /// This parameter, by name alone.
    #[must_use]
    pub const fn keyword(self) -> Param {
        let Param { name, kind, default, made, .. } = self;
        Param { name, kind, default, place: Place::Keyword, made }
    }

    /// This parameter at its default: other values are not implemented.
    #[must_use]
    pub const fn fixed(self) -> Param {
        let Param { name, kind, default, place, .. } = self;
        Param { name, kind, default, place, made: Made::Default }
    }

    /// This parameter with values of this kind: others of its own kind are not implemented.
    #[must_use]
    pub const fn only(self, made: Kind) -> Param {
        let Param { name, kind, default, place, .. } = self;
        Param { name, kind, default, place, made: Made::Only(made) }
    }

    /// Whether a value of the parameter's kind exists here.
    #[must_use]
    pub fn has(&self, look: &Look<'_>) -> bool {
        match self.made {
            Made::All => true,
            Made::Default => self.default.look().is_some_and(|default| default.equals(look)),
            Made::Only(kind) => kind.admits(look),
        }
    }
}

impl Kind {
    /// Whether a value is of this kind. As in Python, booleans are whole numbers, and those are numbers.
    ///
    /// ```
    /// use tharsis_programs::{Kind, Look};
    /// assert!(Kind::Real.admits(&Look::Integer(1)));
    /// assert!(!Kind::Integer.admits(&Look::Real(1.0)));
    /// ```
    #[must_use]
    pub fn admits(&self, look: &Look<'_>) -> bool {
        match (self, look) {
            (Kind::Anything, _)
            | (Kind::Array, Look::Array | Look::List(_) | Look::Tuple(_))
            | (Kind::Boolean, Look::Boolean(_))
            | (Kind::Integer, Look::Boolean(_) | Look::Integer(_))
            | (Kind::None, Look::None)
            | (Kind::Object, Look::Object(_))
            | (Kind::Real, Look::Boolean(_) | Look::Integer(_) | Look::Real(_))
            | (Kind::Sequence, Look::List(_) | Look::Tuple(_))
            | (Kind::Text, Look::Text(_))
            | (Kind::Tuple, Look::Tuple(_)) => true,
            (Kind::Choice(words), Look::Text(text)) => words.contains(text),
            (Kind::OneOf(kinds), look) => kinds.iter().any(|kind| kind.admits(look)),
            _ => false,
        }
    }
}

/// The words of scikit-learn for what a parameter must be.
impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Anything => f.write_str("anything"),
            Kind::Array => f.write_str("an array-like"),
            Kind::Boolean => f.write_str("an instance of 'bool'"),
            Kind::Choice(words) => {
                let words: Vec<String> = words.iter().map(|word| Look::Text(word).to_string()).collect();
                write!(f, "a str among {{{}}}", words.join(", "))
            }
            Kind::Integer => f.write_str("an int"),
            Kind::None => f.write_str("None"),
            Kind::Object => f.write_str("an estimator"),
            Kind::OneOf(kinds) => {
                let texts: Vec<String> = kinds.iter().map(Kind::to_string).collect();
                match texts.split_last() {
                    Some((last, before)) if !before.is_empty() => {
                        write!(f, "{} or {last}", before.join(", "))
                    }
                    _ => f.write_str(&texts.concat()),
                }
            }
            Kind::Real => f.write_str("a float"),
            Kind::Sequence => f.write_str("an instance of 'list' or an instance of 'tuple'"),
            Kind::Text => f.write_str("an instance of 'str'"),
            Kind::Tuple => f.write_str("an instance of 'tuple'"),
        }
    }
}

impl Preset {
    /// This value as the binder sees it; none if there is none.
    #[must_use]
    pub fn look(&self) -> Option<Look<'static>> {
        Some(match self {
            Preset::Needed => return None,
            Preset::None => Look::None,
            Preset::Boolean(is_true) => Look::Boolean(*is_true),
            Preset::Integer(whole) => Look::Integer((*whole).into()),
            Preset::Real(number) => Look::Real(*number),
            Preset::Text(text) => Look::Text(text),
            Preset::Tuple(parts) => Look::Tuple(parts.iter().filter_map(Preset::look).collect()),
        })
    }
}

/// The signature of a function with these parameters, as Python prints it.
///
/// ```
/// use tharsis_programs::{Kind, Param, Preset, signature};
/// let alpha = Param::new("alpha", Kind::Real, Preset::Real(1.0));
/// let copy = Param::new("copy", Kind::Boolean, Preset::Boolean(true)).keyword();
/// assert_eq!(signature(&[alpha, copy]), "(alpha=1.0, *, copy=True)");
/// ```
#[must_use]
pub fn signature(params: &[Param]) -> String {
    let mut parts = Vec::new();
    let mut names_follow = false;
    for param in params {
        if param.place == Place::Keyword && !names_follow {
            parts.push("*".to_owned());
        }
        names_follow |= param.place != Place::Anywhere;
        let star = if param.place == Place::Rest { "*" } else { "" };
        parts.push(match param.default.look() {
            Some(default) => format!("{star}{}={default}", param.name),
            None => format!("{star}{}", param.name),
        });
    }
    format!("({})", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_are_those_of_python() {
        let a = Param::needed("a", Kind::Array);
        let b = Param::new("b", Kind::Sequence, Preset::Tuple(&[Preset::Integer(0), Preset::Integer(1)]));
        let c = Param::new("c", Kind::Text, Preset::Text("x")).keyword();
        let d = Param::needed("d", Kind::Real).keyword();
        let rest = Param::rest("arrays", Kind::Array);
        assert_eq!(signature(&[]), "()");
        assert_eq!(signature(&[a, b, c, d]), "(a, b=(0, 1), *, c='x', d)");
        assert_eq!(signature(&[c]), "(*, c='x')");
        assert_eq!(signature(&[rest, c, d]), "(*arrays, c='x', d)");
    }

    #[test]
    fn each_kind_takes_its_values_and_no_others() {
        let looks = [
            Look::None,
            Look::Boolean(true),
            Look::Integer(3),
            Look::Real(0.5),
            Look::Text("lu"),
            Look::List(vec![]),
            Look::Tuple(vec![]),
            Look::Array,
            Look::Object("Ridge"),
            Look::Other("slice"),
        ];
        let taken = |kind: Kind| -> String {
            looks.iter().map(|look| if kind.admits(look) { '1' } else { '0' }).collect()
        };
        assert_eq!(taken(Kind::Anything), "1111111111");
        assert_eq!(taken(Kind::None), "1000000000");
        assert_eq!(taken(Kind::Boolean), "0100000000");
        assert_eq!(taken(Kind::Integer), "0110000000");
        assert_eq!(taken(Kind::Real), "0111000000");
        assert_eq!(taken(Kind::Text), "0000100000");
        assert_eq!(taken(Kind::Choice(&["qr", "lu"])), "0000100000");
        assert_eq!(taken(Kind::Choice(&["qr"])), "0000000000");
        assert_eq!(taken(Kind::Sequence), "0000011000");
        assert_eq!(taken(Kind::Tuple), "0000001000");
        assert_eq!(taken(Kind::Array), "0000011100");
        assert_eq!(taken(Kind::Object), "0000000010");
        assert_eq!(taken(Kind::OneOf(&[Kind::None, Kind::Integer])), "1110000000");
        assert_eq!(taken(Kind::OneOf(&[])), "0000000000");
    }

    #[test]
    fn kinds_are_told_in_the_words_of_scikit_learn() {
        let several = Kind::OneOf(&[Kind::Real, Kind::Choice(&["a", "b"]), Kind::None]);
        assert_eq!(several.to_string(), "a float, a str among {'a', 'b'} or None");
        assert_eq!(Kind::OneOf(&[Kind::Array]).to_string(), "an array-like");
    }
}
