//! The arguments of a call, where it is made and where it runs.

use proc_macro2::{Ident, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::Type;
use syn::spanned::Spanned;

/// The types of the parameters. Generated code names them by number, since patterns need not be names.
pub(crate) struct Arguments<'a>(pub(crate) &'a [Type]);

impl Arguments<'_> {
    pub(crate) fn names(&self) -> Vec<Ident> {
        (0..self.0.len()).map(|i| format_ident!("argument{i}")).collect()
    }

    /// Parameters of the function that makes the call.
    pub(crate) fn declared(&self) -> Vec<TokenStream> {
        let declared = self.names().into_iter().zip(self.0);
        declared.map(|(name, ty)| quote_spanned!(ty.span()=> #name: impl ::tharsis::IntoArg<#ty>)).collect()
    }

    /// Takes the arguments out of the task named `call`, into variables of their names.
    pub(crate) fn taken(&self) -> TokenStream {
        let taken = self.names().into_iter().zip(self.0).zip(0_u16..).map(
            |((name, ty), number)| quote_spanned!(ty.span()=> let #name = call.argument::<#ty>(#number)?;),
        );
        quote! {
            #(#taken)*
            call.finish_arguments()?;
        }
    }

    /// Makes a `Call` named `call` of the definition of `called`, which is a type and the trait that has it;
    /// `begin` comes before the arguments.
    pub(crate) fn call(
        &self,
        called: &TokenStream,
        options: &TokenStream,
        begin: Option<&TokenStream>,
    ) -> TokenStream {
        let (names, parameters, numbers) = (self.names(), self.0, 0..self.0.len() as u16);
        quote! {
            // Each argument is taken once: a closure that may be called again needs it to be an option.
            #(let mut #names = ::std::option::Option::Some(#names);)*
            let call = ::tharsis::generated::Call {
                definition: <#called>::DEFINITION,
                options: #options,
                site: ::std::panic::Location::caller(),
                arguments: &mut |arguments| {
                    #begin
                    #(if let ::std::option::Option::Some(argument) = #names.take() {
                        arguments.push::<#parameters, _>(#numbers, argument)?;
                    })*
                    let _ = arguments;
                    ::std::result::Result::Ok(())
                },
            };
        }
    }
}
