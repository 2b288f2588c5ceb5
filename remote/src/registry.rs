//! The remote functions of this program.
//!
//! `#[remote]` adds a [`Definition`] to a table that the linker assembles, so that a program can run any of
//! its functions by id: the driver and its workers are the same program. A function's id is the hash of its
//! path. Two functions with one path (inside two functions of one module) are distinguished by their order in
//! the source. The signature is the hash of the argument and result types as they are written.

use crate::call::TaskCall;
use crate::options::Options;
use std::any::Any;
use std::collections::HashMap;
use std::sync::OnceLock;
use tharsis_protos::handshake::FunctionEntry;
use tharsis_types::hash::IdMap;
use tharsis_types::task::Role;
use tharsis_types::{Failure, FailureKind, FunctionId};
use twox_hash::XxHash3_64;

/// Properties of a function, from `#[remote]`.
pub struct Definition {
    /// Its module, which begins with the crate.
    pub module: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its argument and result types, as written.
    pub signature: &'static str,
    /// The place of its source code.
    pub file: &'static str,
    /// Line in the file.
    pub line: u32,
    /// Column in the line.
    pub column: u32,
    /// Number of objects a call returns unless the options say otherwise.
    pub returns: u32,
    /// The options in the attribute.
    pub options: fn() -> Options,
    /// Decodes the arguments, runs the function, encodes the result.
    pub run: fn(&mut TaskCall<'_>) -> Result<(), Failure>,
    /// Whether it is a function, or belongs to an actor.
    pub role: Role,
    /// For a method: the number of its group.
    pub group: u16,
    /// For an actor that runs several calls at the same time: how many of each group; else empty.
    pub groups: &'static [u32],
    /// The function itself, a `fn(A, B, ..) -> Result<T, Failure>`, for callers that know its types; a unit
    /// if there is none.
    pub plain: &'static (dyn Any + Send + Sync),
}

/// Maps the type that `#[remote]` makes to its definition.
pub trait Remote {
    /// The definition.
    const DEFINITION: &'static Definition;
}

/// Maps the functions of an actor, by their order in the source, to their definitions.
pub trait Method<const NUMBER: usize> {
    /// The definition.
    const DEFINITION: &'static Definition;
}

/// An entry of the linked table.
pub struct Registered(pub &'static Definition);

inventory::collect!(Registered);

/// A function that this program can run.
#[derive(Clone, Copy)]
pub(crate) struct Function {
    pub(crate) id: FunctionId,
    pub(crate) signature: u64,
    pub(crate) definition: &'static Definition,
}

struct Registry {
    by_id: IdMap<FunctionId, Function>,
    by_definition: HashMap<usize, Function>,
}

impl Definition {
    /// Module and name of the function, as `module::name`.
    #[must_use]
    pub fn path(&self) -> String {
        format!("{}::{}", self.module, self.name)
    }

    /// Id by which every process of this program finds it.
    #[must_use]
    pub fn id(&'static self) -> FunctionId {
        of(self).id
    }

    /// The definition with this id, if this program has it.
    #[must_use]
    pub fn find(id: FunctionId) -> Option<&'static Definition> {
        registry().by_id.get(&id).map(|function| function.definition)
    }

    fn address(&'static self) -> usize {
        std::ptr::from_ref(self).addr()
    }
}

/// The functions of this program, for the handshake.
#[must_use]
pub fn function_table() -> Vec<FunctionEntry> {
    let mut table: Vec<_> = registry()
        .by_id
        .values()
        .map(|function| FunctionEntry {
            id: function.id,
            signature: function.signature,
            name: function.definition.path(),
        })
        .collect();
    table.sort();
    table
}

/// Id and signature of a function of this program.
pub(crate) fn of(definition: &'static Definition) -> Function {
    let known = registry().by_definition.get(&definition.address());
    // A definition that the linker dropped can still be submitted: another program may have it.
    known.copied().unwrap_or_else(|| function(definition, 0))
}

/// The function that a task class names, if this program has it with these types.
pub(crate) fn find(id: FunctionId, signature: u64, name: &str) -> Result<Function, Failure> {
    let Some(function) = registry().by_id.get(&id) else {
        let text =
            format!("this program has no remote function {name} ({id}); it has {}", registry().by_id.len());
        return Err(Failure::new(FailureKind::FunctionNotFound, text));
    };
    if function.signature == signature {
        return Ok(*function);
    }
    let (ours, types) = (function.signature, function.definition.signature);
    let text = format!(
        "{name}: the caller's types hash to {signature:016x}, this program's to {ours:016x} ({types})"
    );
    Err(Failure::new(FailureKind::VersionMismatch, text))
}

fn registry() -> &'static Registry {
    static REGISTRY: OnceLock<Registry> = OnceLock::new();
    REGISTRY.get_or_init(|| {
        let mut definitions: Vec<_> =
            inventory::iter::<Registered>().map(|registered| registered.0).collect();
        definitions.sort_by_key(|d| (d.module, d.name, d.file, d.line, d.column));
        build(&definitions)
    })
}

/// Numbers the definitions of one path in the order given.
fn build(definitions: &[&'static Definition]) -> Registry {
    let mut registry = Registry { by_id: IdMap::default(), by_definition: HashMap::new() };
    let mut copies: HashMap<String, u32> = HashMap::new();
    for definition in definitions {
        let copy = copies.entry(definition.path()).or_default();
        let function = function(definition, *copy);
        *copy += 1;
        registry.by_id.insert(function.id, function);
        registry.by_definition.insert(definition.address(), function);
    }
    registry
}

fn function(definition: &'static Definition, copy: u32) -> Function {
    let mut path = definition.path();
    if copy > 0 {
        path = format!("{path}#{copy}");
    }
    let signature = XxHash3_64::oneshot(definition.signature.as_bytes());
    Function { id: FunctionId(XxHash3_64::oneshot(path.as_bytes())), signature, definition }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn definition(name: &'static str, line: u32) -> Definition {
        Definition {
            module: "demo",
            name,
            signature: "(i32) -> i32",
            file: "demo.rs",
            line,
            column: 1,
            returns: 1,
            options: Options::default,
            run: |_| Ok(()),
            role: Role::Task,
            group: 0,
            groups: &[],
            plain: &(),
        }
    }

    static FIRST: Definition = definition("twice", 1);
    static SECOND: Definition = definition("twice", 9);

    #[test]
    fn two_functions_of_one_path_have_two_ids() {
        let registry = build(&[&FIRST, &SECOND]);
        assert_eq!(registry.by_id.len(), 2);
        let (first, second) =
            (registry.by_definition[&FIRST.address()], registry.by_definition[&SECOND.address()]);
        assert_ne!(first.id, second.id);
        assert_eq!(first.id, FunctionId(XxHash3_64::oneshot(b"demo::twice")));
    }

    #[test]
    fn an_unknown_function_is_named() {
        let missing = find(FunctionId(7), 0, "demo::gone").map(|_| ()).unwrap_err();
        assert_eq!(missing.kind, FailureKind::FunctionNotFound);
        assert!(missing.message.contains("demo::gone") && missing.message.contains("0000000000000007"));
    }
}
