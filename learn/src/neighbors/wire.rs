//! Functions of neighbours as names, by which the process that runs a pass finds them: words and numbers
//! between spaces.

use tharsis_graph::ForeignName;

/// The kind of the names of all functions of neighbours.
pub(super) const KIND: &str = "learn.neighbors";

/// The name of a function.
pub(super) fn name_of(function: &str, parts: &[String]) -> ForeignName {
    let mut name = function.to_owned();
    for part in parts {
        name.push(' ');
        name += part;
    }
    ForeignName { kind: KIND.to_owned(), name }
}

/// The parts of a name while it is read.
pub(super) struct Parts<'a>(std::str::Split<'a, char>);

impl<'a> Parts<'a> {
    pub(super) fn of(name: &'a str) -> Parts<'a> {
        Parts(name.split(' '))
    }

    pub(super) fn word(&mut self) -> Option<&'a str> {
        self.0.next()
    }

    /// A number of things, small enough to be counted in elements of tensors.
    pub(super) fn size(&mut self) -> Option<usize> {
        let size: usize = self.word()?.parse().ok()?;
        (size <= u32::MAX as usize).then_some(size)
    }

    pub(super) fn float(&mut self) -> Option<f64> {
        self.word()?.parse().ok()
    }

    pub(super) fn flag(&mut self) -> Option<bool> {
        self.word()?.parse().ok()
    }

    /// Whether all has been read.
    pub(super) fn is_at_end(&self) -> bool {
        self.0.clone().next().is_none()
    }
}
