//! `#[tharsis::main]`.

use proc_macro2::TokenStream;
use quote::quote;
use syn::{Error, ItemFn, Result};

pub(crate) fn expand(attribute: &TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !attribute.is_empty() {
        return Err(Error::new_spanned(attribute, "`main` takes no options: give them to `tharsis::init()`"));
    }
    let function: ItemFn = syn::parse2(item)?;
    let signature = &function.sig;
    if signature.ident != "main" {
        return Err(Error::new_spanned(&signature.ident, "this attribute belongs on `main`"));
    }
    if let Some(argument) = signature.inputs.first() {
        return Err(Error::new_spanned(argument, "`main` takes no arguments"));
    }
    if !signature.generics.params.is_empty() {
        return Err(Error::new_spanned(&signature.generics, "`main` cannot be generic"));
    }
    let ItemFn { attrs, vis, sig, block } = &function;
    let output = &sig.output;
    let body = if sig.asyncness.is_some() {
        quote!(::tharsis::generated::block_on(async move #block))
    } else {
        quote!(#block)
    };
    // An inner function keeps `return` and `?` of the user's body inside it.
    Ok(quote! {
        #(#attrs)*
        #vis fn main() -> ::std::process::ExitCode {
            fn user_main() #output { #body }
            ::tharsis::generated::enter(user_main)
        }
    })
}
