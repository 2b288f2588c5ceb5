//! Binds the arguments of a call to parameters, in the order in which CPython does, so that of several
//! mistakes the same one is told.

use crate::argument::Argument;
use crate::look::Look;
use crate::param::{Param, Place};
use crate::refusal::Refusal;

/// Arguments as a call gives them.
#[derive(Clone, Debug)]
pub struct Given<V> {
    /// Those by position.
    pub positional: Vec<V>,
    /// Those by name. A name that stands here twice is refused.
    pub keywords: Vec<(String, V)>,
}

impl<V> Given<V> {
    /// Arguments by position alone.
    pub fn positional(positional: Vec<V>) -> Given<V> {
        Given { positional, keywords: Vec::new() }
    }
}

/// The names of an operation in refusals.
#[derive(Clone, Debug)]
pub struct Callee {
    /// Its name where arguments do not bind: `Ridge.__init__`.
    pub name: String,
    /// Its name where a parameter does not take a value: `Ridge`.
    pub owner: String,
    /// Arguments that Python counts beside the given ones: 1 for the object that a constructor makes.
    pub implicit: usize,
}

impl Callee {
    /// A function of this name.
    #[must_use]
    pub fn function(name: String) -> Callee {
        Callee { owner: name.clone(), name, implicit: 0 }
    }
}

/// Arguments of a call, by parameter. Those that the call does not give have their defaults.
#[derive(Clone, Debug)]
pub struct Bound<V> {
    owner: String,
    arguments: Vec<Argued<V>>,
    rest: Vec<V>,
}

#[derive(Clone, Debug)]
struct Argued<V> {
    name: &'static str,
    value: V,
    is_given: bool,
}

/// Binds the arguments of a call to parameters, and checks them.
///
/// # Errors
/// `TypeError` for names that are no parameters, parameters that are given twice or not at all, and too many
/// positions; `ValueError` for values of other kinds; `NotImplemented` for values that exist in Python alone.
pub fn bind<V: Argument>(
    callee: &Callee,
    params: &'static [Param],
    given: Given<V>,
) -> Result<Bound<V>, Refusal> {
    let Given { positional, keywords } = given;
    let count = positional.len();
    let mut slots: Vec<Option<V>> = params.iter().map(|_| None).collect();
    let mut positions = params.iter().zip(&mut slots).filter(|(param, _)| param.place == Place::Anywhere);
    let mut rest = Vec::new();
    for value in positional {
        match positions.next() {
            Some((_, slot)) => *slot = Some(value),
            None => rest.push(value),
        }
    }
    for (name, value) in keywords {
        let at = params.iter().position(|param| param.name == name && param.place != Place::Rest);
        let Some(at) = at else {
            let text = format!("{}() got an unexpected keyword argument '{name}'", callee.name);
            return Err(Refusal::binding(text));
        };
        if slots[at].is_some() {
            return Err(Refusal::binding(format!(
                "{}() got multiple values for argument '{name}'",
                callee.name
            )));
        }
        slots[at] = Some(value);
    }
    let has_rest = params.iter().any(|param| param.place == Place::Rest);
    if !rest.is_empty() && !has_rest {
        let named = params.iter().zip(&slots);
        let named = named.filter(|(param, slot)| param.place == Place::Keyword && slot.is_some()).count();
        return Err(Refusal::binding(too_many(callee, params, count, named)));
    }
    for (place, word) in [(Place::Anywhere, "positional"), (Place::Keyword, "keyword-only")] {
        let missing = params
            .iter()
            .zip(&slots)
            .filter(|(param, slot)| param.place == place && slot.is_none() && param.default.look().is_none());
        let missing: Vec<&str> = missing.map(|(param, _)| param.name).collect();
        if !missing.is_empty() {
            return Err(Refusal::binding(missing_text(&callee.name, word, &missing)));
        }
    }
    checked(callee, params, slots, rest)
}

/// The bound arguments, if each is of the kind of its parameter and exists here.
fn checked<V: Argument>(
    callee: &Callee,
    params: &'static [Param],
    slots: Vec<Option<V>>,
    rest: Vec<V>,
) -> Result<Bound<V>, Refusal> {
    let mut arguments = Vec::with_capacity(params.len());
    for (param, slot) in params.iter().zip(slots) {
        if param.place == Place::Rest {
            rest.iter().try_for_each(|value| check(callee, param, value))?;
            continue;
        }
        let is_given = slot.is_some();
        if let Some(value) = &slot {
            check(callee, param, value)?;
        }
        let value = slot.unwrap_or_else(|| V::preset(&param.default));
        arguments.push(Argued { name: param.name, value, is_given });
    }
    Ok(Bound { owner: callee.owner.clone(), arguments, rest })
}

fn check<V: Argument>(callee: &Callee, param: &Param, value: &V) -> Result<(), Refusal> {
    let (look, name, owner) = (value.look(), param.name, &callee.owner);
    if !param.kind.admits(&look) {
        let (kind, found) = (param.kind, look.shown());
        let text = format!("The '{name}' parameter of {owner} must be {kind}. Got {found} instead.");
        return Err(Refusal::value(text));
    }
    if param.has(&look) {
        return Ok(());
    }
    let found = look.shown();
    Err(Refusal::missing(format!(
        "the value {found} of the parameter '{name}' of {owner} is not implemented"
    )))
}

/// CPython's text for more positional arguments than there are positions.
fn too_many(callee: &Callee, params: &[Param], given: usize, named: usize) -> String {
    let positions = || params.iter().filter(|param| param.place == Place::Anywhere);
    let most = positions().count() + callee.implicit;
    let least = positions().filter(|param| param.default.look().is_none()).count() + callee.implicit;
    let given = given + callee.implicit;
    let takes = if least < most { format!("from {least} to {most}") } else { most.to_string() };
    let several = |count: usize| if count == 1 { "" } else { "s" };
    let plural = if least < most { "s" } else { several(most) };
    let beside = match named {
        0 => String::new(),
        named => format!(
            " positional argument{} (and {named} keyword-only argument{})",
            several(given),
            several(named)
        ),
    };
    let verb = if given == 1 && named == 0 { "was" } else { "were" };
    format!("{}() takes {takes} positional argument{plural} but {given}{beside} {verb} given", callee.name)
}

/// CPython's text for arguments that a call does not give.
fn missing_text(callee: &str, word: &str, names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("'{name}'")).collect();
    let listed = match &quoted[..] {
        [one, other] => format!("{one} and {other}"),
        [before @ .., last] if !before.is_empty() => format!("{}, and {last}", before.join(", ")),
        _ => quoted.concat(),
    };
    let plural = if names.len() == 1 { "" } else { "s" };
    format!("{callee}() missing {} required {word} argument{plural}: {listed}", names.len())
}

impl<V: Argument> Bound<V> {
    /// The name of the operation's owner: `Ridge` for its constructor.
    #[must_use]
    pub fn owner(&self) -> &str {
        &self.owner
    }

    /// All arguments by name, in the order of the parameters.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &V)> {
        self.arguments.iter().map(|argument| (argument.name, &argument.value))
    }

    /// The refusal of a call without an argument that this operation needs here, though not always.
    #[must_use]
    pub fn without(&self, name: &str) -> Refusal {
        Refusal::binding(missing_text(&self.owner, "positional", &[name]))
    }

    /// Takes the arguments of all further positions.
    pub fn take_rest(&mut self) -> Vec<V> {
        std::mem::take(&mut self.rest)
    }

    /// Whether the call gives an argument.
    #[must_use]
    pub fn is_given(&self, name: &str) -> bool {
        self.arguments.iter().any(|argument| argument.name == name && argument.is_given)
    }

    /// An argument, or its default.
    ///
    /// # Errors
    /// `Internal` if the operation has no such parameter.
    pub fn value(&self, name: &str) -> Result<&V, Refusal> {
        let found = self.arguments.iter().find(|argument| argument.name == name);
        let defect = || Refusal::defect(format!("{} has no parameter '{name}'", self.owner));
        Ok(&found.ok_or_else(defect)?.value)
    }

    /// An argument other than `None`.
    ///
    /// # Errors
    /// As [`Bound::value`].
    pub fn some(&self, name: &str) -> Result<Option<&V>, Refusal> {
        Ok(Some(self.value(name)?).filter(|value| value.look() != Look::None))
    }

    /// A boolean.
    ///
    /// # Errors
    /// As [`Bound::value`]; `Internal` if the parameter is of another kind.
    pub fn boolean(&self, name: &str) -> Result<bool, Refusal> {
        match self.value(name)?.look() {
            Look::Boolean(is_true) => Ok(is_true),
            _ => Err(self.of_other_kind(name)),
        }
    }

    /// A whole number.
    ///
    /// # Errors
    /// `OverflowError` beyond 64 bits; as [`Bound::boolean`].
    pub fn integer(&self, name: &str) -> Result<i64, Refusal> {
        let whole = match self.value(name)?.look() {
            Look::Boolean(is_true) => return Ok(is_true.into()),
            Look::Integer(whole) => whole,
            _ => return Err(self.of_other_kind(name)),
        };
        let message = "Python int too large to convert to C long".to_owned();
        i64::try_from(whole).map_err(|_| Refusal { class: "OverflowError", message })
    }

    /// A number.
    ///
    /// # Errors
    /// As [`Bound::boolean`].
    pub fn real(&self, name: &str) -> Result<f64, Refusal> {
        self.value(name)?.look().number().ok_or_else(|| self.of_other_kind(name))
    }

    /// A text.
    ///
    /// # Errors
    /// As [`Bound::boolean`].
    pub fn text(&self, name: &str) -> Result<&str, Refusal> {
        match self.value(name)?.look() {
            Look::Text(text) => Ok(text),
            _ => Err(self.of_other_kind(name)),
        }
    }

    fn of_other_kind(&self, name: &str) -> Refusal {
        Refusal::defect(format!("the parameter '{name}' of {} is read as of another kind", self.owner))
    }
}

#[cfg(test)]
mod tests;
