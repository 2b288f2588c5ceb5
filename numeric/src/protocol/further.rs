//! Operations of other crates: tables of rows, which the caller of the evaluator hands in.

use super::Failure;
use super::value::Value;
use crate::index::Index;
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;
use tharsis_graph::Executor;
use tharsis_kernels::Scalar;
use tharsis_programs::{Argument, Look, Preset, Refusal, Row};

/// Tables of operations of other crates.
pub type Tables = &'static [&'static [Row<Value, Scope>]];

/// The request that an operation is part of, as the operation sees it.
pub struct Scope {
    executor: Arc<dyn Executor>,
    warnings: RefCell<Vec<String>>,
}

impl Scope {
    pub(super) fn new(executor: Arc<dyn Executor>) -> Scope {
        Scope { executor, warnings: RefCell::default() }
    }

    /// The executor of the request, with its memory and its deadline. While steps run it is the default
    /// executor as well.
    pub fn executor(&self) -> &Arc<dyn Executor> {
        &self.executor
    }

    /// Adds a line to the warnings of the reply.
    pub fn warn(&self, warning: String) {
        self.warnings.borrow_mut().push(warning);
    }

    pub(super) fn warnings(&self) -> Vec<String> {
        self.warnings.borrow().clone()
    }
}

impl fmt::Debug for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scope").field("limits", &self.executor.limits()).finish_non_exhaustive()
    }
}

impl From<Refusal> for Failure {
    fn from(Refusal { class, message }: Refusal) -> Failure {
        Failure::new(class, message)
    }
}

impl Argument for Value {
    type Failure = Failure;

    fn look(&self) -> Look<'_> {
        match self {
            Value::List(parts) => Look::List(parts.iter().map(Value::look_alone).collect()),
            Value::Tuple(parts) | Value::Fields(_, parts) => {
                Look::Tuple(parts.iter().map(Value::look_alone).collect())
            }
            one => one.look_alone(),
        }
    }

    fn preset(preset: &Preset) -> Value {
        match preset {
            Preset::Needed | Preset::None => Value::None,
            Preset::Boolean(is_true) => Value::Number(Scalar::Bool(*is_true)),
            Preset::Integer(whole) => Value::Number(Scalar::Int(*whole)),
            Preset::Real(number) => Value::Number(Scalar::Float(*number)),
            Preset::Text(text) => Value::Text((*text).to_owned()),
            Preset::Tuple(parts) => Value::Tuple(parts.iter().map(Value::preset).collect()),
        }
    }
}

impl Value {
    /// This value as the binder sees it inside a list: lists in lists are arrays, whose parts nobody reads.
    fn look_alone(&self) -> Look<'_> {
        match self {
            Value::None => Look::None,
            Value::Number(Scalar::Bool(is_true)) => Look::Boolean(*is_true),
            Value::Number(Scalar::Int(whole)) => Look::Integer((*whole).into()),
            Value::Number(Scalar::Unsigned(whole)) => Look::Integer((*whole).into()),
            Value::Number(Scalar::Float(number)) => Look::Real(*number),
            Value::Number(Scalar::Complex(..)) => Look::Other("complex"),
            Value::Large(large) => {
                large.to_string().parse().map_or(Look::Other("int beyond 128 bits"), Look::Integer)
            }
            Value::Text(text) => Look::Text(text),
            Value::DType(_) => Look::Other("dtype"),
            Value::Index(Index::Ellipsis) => Look::Other("ellipsis"),
            Value::Index(_) => Look::Other("slice"),
            Value::Generator(_) => Look::Other("generator"),
            Value::Dictionary(_) => Look::Other("dict"),
            Value::Object(object) => Look::Object(object.class()),
            Value::Tensor(_) | Value::Sparse(_) | Value::List(_) | Value::Tuple(_) | Value::Fields(..) => {
                Look::Array
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_look_like_themselves() {
        let parts: &[Preset] = &[Preset::Integer(0), Preset::Real(0.5)];
        for preset in [
            Preset::None,
            Preset::Boolean(true),
            Preset::Integer(-3),
            Preset::Real(1e-9),
            Preset::Text("lbfgs"),
            Preset::Tuple(parts),
        ] {
            assert_eq!(Some(Value::preset(&preset).look()), preset.look());
        }
    }
}
