//! The type of a remote function's name, and its builder of calls.
//!
//! A braced struct lives in the type namespace alone, so `struct f {}` and `fn f()` stand side by side, also
//! inside a function body, and `use module::f` brings both.

use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::{Ident, ItemFn, Visibility};

/// The differences between tasks and streams.
pub(crate) struct Face {
    /// Description of the type.
    pub(crate) doc: String,
    /// Functions of the type beside `options`.
    pub(crate) functions: TokenStream,
    /// Name of the macro that writes the setters of options.
    pub(crate) setters: TokenStream,
    /// Methods of the options beside the setters.
    pub(crate) methods: TokenStream,
}

impl Face {
    pub(crate) fn items(&self, function: &ItemFn) -> TokenStream {
        let Self { doc, functions, setters, methods } = self;
        let (name, vis) = (&function.sig.ident, &function.vis);
        let options_name = Ident::new(&format!("__{name}_options"), Span::call_site());
        let method = vis_of_method(vis);
        quote! {
            #[doc = #doc]
            #[allow(non_camel_case_types)]
            #vis struct #name {}
            #[doc(hidden)]
            #[allow(non_camel_case_types)]
            #[must_use = "options do nothing before `remote` is called"]
            #vis struct #options_name(::tharsis::Options);
            #[allow(dead_code, clippy::too_many_arguments)]
            impl #name {
                #functions
                /// Options for one call.
                #method fn options() -> #options_name {
                    #options_name((<#name as ::tharsis::generated::Remote>::DEFINITION.options)())
                }
            }
            #[allow(dead_code, clippy::too_many_arguments)]
            impl #options_name {
                ::tharsis::#setters!(#method);
                #methods
            }
        }
    }
}

/// Methods are as visible as the function; a private one is written out, because an empty visibility cannot
/// be passed on.
pub(crate) fn vis_of_method(vis: &Visibility) -> TokenStream {
    match vis {
        Visibility::Inherited => quote!(pub(self)),
        other => quote!(#other),
    }
}
