//! The entry of a function in the linked table, by which a worker finds it.

use proc_macro2::TokenStream;
use quote::quote;

/// The entry of a function in the table.
pub(crate) struct Definition<'a> {
    /// Its name for people, from which its id is made too.
    pub(crate) name: &'a str,
    pub(crate) signature: &'a TokenStream,
    /// Number of objects that a call returns by default.
    pub(crate) returns: u32,
    /// Variant of `Role`.
    pub(crate) role: TokenStream,
    /// Number of its concurrency group, and the limits of all groups of the actor.
    pub(crate) group: u16,
    pub(crate) groups: &'a [u32],
    /// Expression of its default options.
    pub(crate) options: TokenStream,
    /// Body of the function that runs a task named `call`.
    pub(crate) run: TokenStream,
    /// Expression of the function as it is, for tasks that run it inside others.
    pub(crate) plain: TokenStream,
    /// The trait and the type through which calls find this entry, as in `impl`.
    pub(crate) owner: TokenStream,
}

impl Definition<'_> {
    /// The items of the entry, for a block of their own.
    pub(crate) fn items(&self) -> TokenStream {
        let Self { name, returns, role, group, groups, options, run, plain, owner, .. } = self;
        let signature = self.signature.to_string();
        quote! {
            #[allow(clippy::needless_borrow, clippy::let_unit_value, clippy::let_and_return)]
            fn run(
                call: &mut ::tharsis::generated::TaskCall<'_>,
            ) -> ::std::result::Result<(), ::tharsis::Failure> {
                #run
            }
            fn options() -> ::tharsis::Options {
                #options
            }
            static DEFINITION: ::tharsis::generated::Definition = ::tharsis::generated::Definition {
                module: ::std::module_path!(),
                name: #name,
                signature: #signature,
                file: ::std::file!(),
                line: ::std::line!(),
                column: ::std::column!(),
                returns: #returns,
                options,
                run,
                role: ::tharsis::generated::Role::#role,
                group: #group,
                groups: &[#(#groups),*],
                plain: #plain,
            };
            ::tharsis::generated::inventory::submit! { ::tharsis::generated::Registered(&DEFINITION) }
            impl #owner {
                const DEFINITION: &'static ::tharsis::generated::Definition = &DEFINITION;
            }
        }
    }
}

/// Takes the value out of the `Result` named `value`, or returns its error as a failure.
pub(crate) fn unwrapped() -> TokenStream {
    quote! {
        let value = match value {
            ::std::result::Result::Ok(value) => value,
            ::std::result::Result::Err(error) => {
                use ::tharsis::generated::{PlainError as _, TypedError as _};
                return ::std::result::Result::Err((&::tharsis::generated::Probe(&error)).to_failure());
            }
        };
    }
}
