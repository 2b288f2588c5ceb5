//! The rules for functions that another process of the program finds and calls.

use syn::{Error, ItemFn, Result};

/// Refuses what another process could not find or call; `what` begins the messages.
pub(crate) fn check(function: &ItemFn, what: &str) -> Result<()> {
    let signature = &function.sig;
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
    Ok(())
}
