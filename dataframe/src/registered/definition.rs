//! The table of this program's functions.
//!
//! A function's name is its path. Two functions with one path (inside two functions of one module) are told
//! apart by their order in the source.

use super::prepared::Prepared;
use crate::error::FunctionFault;
use arrow::datatypes::DataType;
use std::collections::HashMap;
use std::sync::OnceLock;
use twox_hash::XxHash3_64;

pub use inventory;

/// Properties of a function, from the attribute.
#[derive(Debug)]
pub struct Definition {
    /// Its module, which begins with the crate.
    pub module: &'static str,
    /// Its name.
    pub name: &'static str,
    /// Its parameter and result types, as written.
    pub signature: &'static str,
    /// The place of its source code.
    pub file: &'static str,
    /// Line in the file.
    pub line: u32,
    /// Column in the line.
    pub column: u32,
    /// For each parameter that takes a chunk, whether it takes the levels of an index.
    pub indexed: &'static [bool],
    /// The type of the values that it gives, if its result type alone says so.
    pub returns: fn() -> Option<DataType>,
    /// Decodes the arguments; gives the function, ready to be called.
    pub prepare: fn(&[u8]) -> Result<Prepared, FunctionFault>,
}

/// An entry of the linked table.
#[derive(Debug)]
pub struct Registered(pub &'static Definition);

inventory::collect!(Registered);

#[derive(Debug, Default)]
struct Registry {
    by_name: HashMap<String, &'static Definition>,
    by_definition: HashMap<usize, String>,
}

impl Definition {
    /// The name by which every process of this program finds it.
    pub(super) fn known_as(&'static self) -> String {
        let known = registry().by_definition.get(&address(self));
        // A definition that the linker dropped can still be called: another process may have it.
        known.cloned().unwrap_or_else(|| self.path())
    }

    /// The hash of its types.
    pub(super) fn types(&self) -> u64 {
        XxHash3_64::oneshot(self.signature.as_bytes())
    }

    /// The function with this name and these types, if this program has it.
    pub(super) fn find(name: &str, types: u64) -> Result<&'static Definition, FunctionFault> {
        let found = registry().by_name.get(name).copied().ok_or(FunctionFault::Unknown)?;
        if found.types() == types {
            Ok(found)
        } else {
            Err(FunctionFault::Version(found.signature.to_owned()))
        }
    }

    fn path(&self) -> String {
        format!("{}::{}", self.module, self.name)
    }
}

fn address(definition: &'static Definition) -> usize {
    std::ptr::from_ref(definition).addr()
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

/// Names the definitions of one path in the order given.
fn build(definitions: &[&'static Definition]) -> Registry {
    let mut registry = Registry::default();
    let mut copies: HashMap<String, u32> = HashMap::new();
    for definition in definitions {
        let copy = copies.entry(definition.path()).or_default();
        let name = match *copy {
            0 => definition.path(),
            copy => format!("{}#{copy}", definition.path()),
        };
        *copy += 1;
        registry.by_name.insert(name.clone(), definition);
        registry.by_definition.insert(address(definition), name);
    }
    registry
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn definition(line: u32) -> Definition {
        Definition {
            module: "demo",
            name: "twice",
            signature: "(i64) -> i64",
            file: "demo.rs",
            line,
            column: 1,
            indexed: &[],
            returns: || Some(DataType::Int64),
            prepare: |_| Err(FunctionFault::Unknown),
        }
    }

    static FIRST: Definition = definition(1);
    static SECOND: Definition = definition(9);

    #[test]
    fn two_functions_of_one_path_have_two_names() {
        let registry = build(&[&FIRST, &SECOND]);
        assert_eq!(registry.by_definition[&address(&FIRST)], "demo::twice");
        assert_eq!(registry.by_definition[&address(&SECOND)], "demo::twice#1");
        assert_eq!(registry.by_name.len(), 2);
    }

    #[test]
    fn an_unknown_function_is_a_fault() {
        assert_eq!(Definition::find("demo::gone", 7).unwrap_err(), FunctionFault::Unknown);
    }
}
