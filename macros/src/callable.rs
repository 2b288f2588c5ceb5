//! The rules for functions that another process of the program finds and calls.

use syn::{Error, Result, Signature, Type};

/// Refuses what another process could not find or call; `what` begins the messages.
pub(crate) fn check(signature: &Signature, what: &str) -> Result<()> {
    if let Some(parameter) = signature.generics.params.first() {
        let text = format!("{what} cannot be generic: a worker finds it by name, so there must be one of it");
        return Err(Error::new_spanned(parameter, text));
    }
    if let Some(unsafety) = &signature.unsafety {
        return Err(Error::new_spanned(unsafety, format!("{what} cannot be unsafe")));
    }
    if let Some(abi) = &signature.abi {
        return Err(Error::new_spanned(abi, format!("{what} has the Rust ABI")));
    }
    if let Some(variadic) = &signature.variadic {
        return Err(Error::new_spanned(variadic, format!("{what} has a fixed number of parameters")));
    }
    if signature.inputs.len() >= usize::from(u16::MAX) - 1 {
        return Err(Error::new_spanned(&signature.inputs, "too many parameters"));
    }
    Ok(())
}

/// The type of a parameter, which must be owned.
pub(crate) fn owned_type(ty: &Type, what: &str) -> Result<Type> {
    match ty {
        Type::Reference(reference) => {
            let text = format!(
                "{what} takes its parameters by value: the caller's memory is not there. Use an owned type, or \
                 `ObjectRef<T>` for a reference to a value in the store"
            );
            Err(Error::new_spanned(reference, text))
        }
        Type::ImplTrait(generic) => {
            Err(Error::new_spanned(generic, format!("{what} cannot be generic: name the type")))
        }
        owned => Ok(owned.clone()),
    }
}
