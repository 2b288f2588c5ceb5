//! Rows of tables of operations.

use crate::argument::Argument;
use crate::bind::{Bound, Callee, Given, bind};
use crate::look::Look;
use crate::param::{Param, signature};

/// An operation of programs, on values `V` in a context `C`.
pub struct Row<V: Argument, C: ?Sized> {
    /// Its name in programs, such as `sk.linear_model.Ridge`.
    pub name: &'static str,
    /// Its name in refusals.
    pub form: Form,
    /// Its parameters, in the order of positions.
    pub params: &'static [Param],
    /// Its effect, in a line.
    pub doc: &'static str,
    /// Its function.
    pub run: fn(&mut Bound<V>, &C) -> Result<V, V::Failure>,
}

/// Python's way to call an operation, which tells how it names itself in refusals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// A class, called to make an object: `Ridge.__init__()`, which counts the object as an argument.
    Constructor,
    /// A function: `accuracy_score()`.
    Function,
    /// A method of the first argument: `Ridge.fit()`.
    Method,
}

impl<V: Argument, C: ?Sized> Row<V, C> {
    /// The signature, made of the parameters that bind a call.
    #[must_use]
    pub fn signature(&self) -> String {
        signature(self.params)
    }

    /// Binds and checks the arguments, and runs the operation.
    ///
    /// # Errors
    /// Those of [`bind`] and of the operation.
    pub fn call(&self, given: Given<V>, context: &C) -> Result<V, V::Failure> {
        let callee = self.callee(&given);
        let mut bound = bind(&callee, self.params, given)?;
        (self.run)(&mut bound, context)
    }

    /// The names of this operation in refusals of a call.
    fn callee(&self, given: &Given<V>) -> Callee {
        let bare = self.name.rsplit('.').next().unwrap_or(self.name);
        match (self.form, given.positional.first().map(Argument::look)) {
            (Form::Constructor, _) => {
                Callee { name: format!("{bare}.__init__"), owner: bare.to_owned(), implicit: 1 }
            }
            (Form::Method, Some(Look::Object(class))) => Callee::function(format!("{class}.{bare}")),
            _ => Callee::function(bare.to_owned()),
        }
    }
}
