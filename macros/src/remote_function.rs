//! `#[remote]`: the function, its definition in the linked table, and the type of the same name.
//!
//! A braced struct lives in the type namespace alone, so `struct f {}` and `fn f()` stand side by side, also
//! inside a function body, and `use module::f` brings both.

use crate::callable::{check, owned_type};
use crate::options::Attribute;
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Error, FnArg, GenericArgument, Ident, ItemFn, LitInt, PathArguments, Result, ReturnType, Type, Visibility,
};

pub(crate) fn expand(attribute: TokenStream, function: &ItemFn) -> Result<TokenStream> {
    let attribute = Attribute::of_function(attribute)?;
    check(&function.sig, "a remote function")?;
    let parameters = parameters(function)?;
    let results = Results::of(&function.sig.output, attribute.num_returns.as_ref())?;
    let definition = definition(function, &attribute, &parameters, &results);
    let face = face(function, &parameters, &results);
    Ok(quote! {
        #function
        #face
        const _: () = { #definition };
    })
}

/// Types of the parameters; names are given by number, since patterns need not be names.
pub(crate) fn parameters(function: &ItemFn) -> Result<Vec<Type>> {
    let types = function.sig.inputs.iter().map(|input| match input {
        FnArg::Receiver(receiver) => {
            Err(Error::new_spanned(receiver, "a remote function cannot be a method: make it a free function"))
        }
        FnArg::Typed(typed) => owned_type(&typed.ty, "a remote function"),
    });
    types.collect()
}

/// The results of a call.
pub(crate) struct Results {
    shape: Shape,
    /// Whether the function returns `Result`.
    pub(crate) is_fallible: bool,
}

enum Shape {
    /// `Returns<T>`: as many references as the options say.
    Many(Type),
    /// One reference.
    One(Type),
    /// A tuple of references.
    Several(Vec<Type>),
}

impl Results {
    pub(crate) fn of(output: &ReturnType, num_returns: Option<&LitInt>) -> Result<Self> {
        let whole = match output {
            ReturnType::Default => syn::parse_quote!(()),
            ReturnType::Type(_, ty) => ty.as_ref().clone(),
        };
        let (value, is_fallible) = match generic_of(&whole, "Result") {
            Some(value) => (value, true),
            None => (whole, false),
        };
        if let Type::ImplTrait(generic) = &value {
            return Err(Error::new_spanned(
                generic,
                "a remote function returns a value of a type that has a name, or `impl Iterator<Item = T>`",
            ));
        }
        if let Type::Reference(reference) = &value {
            return Err(Error::new_spanned(reference, "a remote function returns an owned value"));
        }
        let shape = match (generic_of(&value, "Returns"), num_returns) {
            (Some(each), _) => Shape::Many(each),
            (None, None) => Shape::One(value),
            (None, Some(count)) => match (&value, count.base10_parse::<usize>()?) {
                (_, 1) => Shape::One(value),
                (Type::Tuple(tuple), n) if tuple.elems.len() == n => {
                    Shape::Several(tuple.elems.iter().cloned().collect())
                }
                (_, n) => {
                    let text = format!("with `num_returns = {n}` the function returns a tuple of {n} values");
                    return Err(Error::new(value.span(), text));
                }
            },
        };
        Ok(Self { shape, is_fallible })
    }

    /// Number of objects that a call returns by default.
    pub(crate) fn count(&self) -> u32 {
        match &self.shape {
            Shape::Many(_) | Shape::One(_) => 1,
            Shape::Several(types) => types.len() as u32,
        }
    }

    /// The type that `remote` returns.
    pub(crate) fn reference_type(&self) -> TokenStream {
        match &self.shape {
            Shape::Many(each) => quote!(::std::vec::Vec<::tharsis::ObjectRef<#each>>),
            Shape::One(value) => quote!(::tharsis::ObjectRef<#value>),
            Shape::Several(types) => quote!((#(::tharsis::ObjectRef<#types>,)*)),
        }
    }

    /// Turns a `Call` named `call` into what `remote` returns.
    pub(crate) fn make_references(&self) -> TokenStream {
        match &self.shape {
            Shape::Many(_) => quote!(call.many()),
            Shape::One(_) => quote!(call.one()),
            Shape::Several(types) => {
                let names: Vec<Ident> = (0..types.len()).map(|i| format_ident!("output{i}")).collect();
                quote! {{
                    let [#(#names),*] = call.several();
                    (#(#names.typed(),)*)
                }}
            }
        }
    }

    /// The type that `add_to` returns.
    fn planned_type(&self) -> TokenStream {
        match &self.shape {
            Shape::Many(each) => quote!(::std::vec::Vec<::tharsis::Planned<#each>>),
            Shape::One(value) => quote!(::tharsis::Planned<#value>),
            Shape::Several(types) => quote!((#(::tharsis::Planned<#types>,)*)),
        }
    }

    /// Turns a `Call` named `call` into what `add_to` returns.
    fn add_to_graph(&self) -> TokenStream {
        match &self.shape {
            Shape::Many(_) => quote!(call.plan_many(graph)),
            Shape::One(_) => quote!(call.plan_one(graph)),
            Shape::Several(types) => {
                let names: Vec<Ident> = (0..types.len()).map(|i| format_ident!("output{i}")).collect();
                quote! {{
                    let [#(#names),*] = call.plan_several(graph);
                    (#(#names.typed(),)*)
                }}
            }
        }
    }

    /// Gives the value named `value` to the task named `call`.
    pub(crate) fn give(&self) -> TokenStream {
        match &self.shape {
            Shape::Many(_) => quote!(call.give_all(value)),
            Shape::One(_) => quote!(call.give(&value)),
            Shape::Several(types) => {
                let places = (0..types.len()).map(syn::Index::from);
                quote!({ #(call.give(&value.#places)?;)* ::std::result::Result::Ok(()) })
            }
        }
    }
}

/// The first type argument of a path that ends in `name`.
pub(crate) fn generic_of(ty: &Type, name: &str) -> Option<Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last().filter(|segment| segment.ident == name)?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
    arguments.args.iter().find_map(|argument| match argument {
        GenericArgument::Type(ty) => Some(ty.clone()),
        _ => None,
    })
}

/// The entry of the linked table, and the function that runs a task.
fn definition(
    function: &ItemFn,
    attribute: &Attribute,
    parameters: &[Type],
    results: &Results,
) -> TokenStream {
    let name = &function.sig.ident;
    let text = name.to_string();
    let output = &function.sig.output;
    let signature = quote!((#(#parameters),*) #output).to_string();
    let (count, options) = (results.count(), attribute.options());
    let names: Vec<Ident> = (0..parameters.len()).map(|i| format_ident!("argument{i}")).collect();
    let numbers = 0..parameters.len() as u16;
    let taken =
        names.iter().zip(parameters).zip(numbers).map(
            |((name, ty), number)| quote_spanned!(ty.span()=> let #name = call.argument::<#ty>(#number)?;),
        );
    let called = if function.sig.asyncness.is_some() {
        quote!(call.block_on(#name(#(#names),*))?)
    } else {
        quote!(#name(#(#names),*))
    };
    let checked = results.is_fallible.then(unwrapped);
    let give = results.give();
    let (plain, plain_static) = plain(function, parameters, results, checked.as_ref());
    quote! {
        #plain
        #[allow(clippy::needless_borrow)]
        fn run(
            call: &mut ::tharsis::generated::TaskCall<'_>,
        ) -> ::std::result::Result<(), ::tharsis::Failure> {
            #(#taken)*
            call.finish_arguments()?;
            #[allow(clippy::let_unit_value)]
            let value = #called;
            #checked
            #give
        }
        fn options() -> ::tharsis::Options {
            #options
        }
        static DEFINITION: ::tharsis::generated::Definition = ::tharsis::generated::Definition {
            module: ::std::module_path!(),
            name: #text,
            signature: #signature,
            file: ::std::file!(),
            line: ::std::line!(),
            column: ::std::column!(),
            returns: #count,
            options,
            run,
            role: ::tharsis::generated::Role::Task,
            group: 0,
            groups: &[],
            plain: #plain_static,
        };
        ::tharsis::generated::inventory::submit! { ::tharsis::generated::Registered(&DEFINITION) }
        impl ::tharsis::generated::Remote for #name {
            const DEFINITION: &'static ::tharsis::generated::Definition = &DEFINITION;
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

/// The function as it is, with its error turned into a failure: what runs it inside another task calls this.
/// Functions that are async or give many objects have none.
fn plain(
    function: &ItemFn,
    parameters: &[Type],
    results: &Results,
    checked: Option<&TokenStream>,
) -> (TokenStream, TokenStream) {
    let value = match &results.shape {
        Shape::One(value) => quote!(#value),
        Shape::Several(types) => quote!((#(#types,)*)),
        Shape::Many(_) => return (TokenStream::new(), quote!(&())),
    };
    if function.sig.asyncness.is_some() {
        return (TokenStream::new(), quote!(&()));
    }
    let name = &function.sig.ident;
    let names: Vec<Ident> = (0..parameters.len()).map(|i| format_ident!("argument{i}")).collect();
    let made = quote! {
        #[allow(clippy::needless_borrow, clippy::let_unit_value, clippy::too_many_arguments, clippy::unit_arg)]
        fn plain(#(#names: #parameters),*) -> ::std::result::Result<#value, ::tharsis::Failure> {
            let value = #name(#(#names),*);
            #checked
            ::std::result::Result::Ok(value)
        }
        #[allow(clippy::type_complexity)]
        static PLAIN: fn(#(#parameters),*) -> ::std::result::Result<#value, ::tharsis::Failure> = plain;
    };
    (made, quote!(&PLAIN))
}

/// The type of the function's name, and its builder of calls.
fn face(function: &ItemFn, parameters: &[Type], results: &Results) -> TokenStream {
    let name = &function.sig.ident;
    let vis = &function.vis;
    let options_name = Ident::new(&format!("__{name}_options"), Span::call_site());
    let names: Vec<Ident> = (0..parameters.len()).map(|i| format_ident!("argument{i}")).collect();
    let declared: Vec<TokenStream> = names
        .iter()
        .zip(parameters)
        .map(|(name, ty)| quote_spanned!(ty.span()=> #name: impl ::tharsis::IntoArg<#ty>))
        .collect();
    let method = vis_of_method(vis);
    let (reference_type, planned_type) = (results.reference_type(), results.planned_type());
    let call = call(name, parameters, &names);
    let (make, add) = (results.make_references(), results.add_to_graph());
    let num_returns = matches!(results.shape, Shape::Many(_)).then(|| {
        quote! {
            /// Sets the number of objects that the call returns.
            #[must_use]
            #method fn num_returns(self, count: u32) -> Self { Self(self.0.num_returns(count)) }
        }
    });
    let doc = format!("Calls [`{name}()`] as a task: `{name}::remote(..)`, `{name}::options().remote(..)`.");
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
            /// Calls the function as a task and returns at once.
            #[track_caller]
            #method fn remote(#(#declared),*) -> #reference_type {
                let options = ::std::option::Option::None;
                #call
                #make
            }
            /// Adds a call of the function to a graph of tasks; it runs when the graph was submitted.
            #[track_caller]
            #method fn add_to(graph: &mut ::tharsis::TaskGraph, #(#declared),*) -> #planned_type {
                let options = ::std::option::Option::None;
                #call
                #add
            }
            /// Options for one call.
            #method fn options() -> #options_name {
                #options_name((<#name as ::tharsis::generated::Remote>::DEFINITION.options)())
            }
        }
        #[allow(dead_code, clippy::too_many_arguments)]
        impl #options_name {
            ::tharsis::__option_setters!(#method);
            #num_returns
            /// Calls the function as a task, with these options, and returns at once.
            #[track_caller]
            #method fn remote(self, #(#declared),*) -> #reference_type {
                let options = ::std::option::Option::Some(self.0);
                #call
                #make
            }
            /// Adds a call of the function to a graph of tasks, with these options.
            #[track_caller]
            #method fn add_to(self, graph: &mut ::tharsis::TaskGraph, #(#declared),*) -> #planned_type {
                let options = ::std::option::Option::Some(self.0);
                #call
                #add
            }
        }
    }
}

/// Makes a `Call` named `call` of the arguments with these names and the `options`.
fn call(function: &Ident, parameters: &[Type], names: &[Ident]) -> TokenStream {
    let numbers = 0..parameters.len() as u16;
    quote! {
        // Each argument is taken once: a closure that may be called again needs it to be an option.
        #(let mut #names = ::std::option::Option::Some(#names);)*
        let call = ::tharsis::generated::Call {
            definition: <#function as ::tharsis::generated::Remote>::DEFINITION,
            options,
            site: ::std::panic::Location::caller(),
            arguments: &mut |arguments| {
                #(if let ::std::option::Option::Some(argument) = #names.take() {
                    arguments.push::<#parameters, _>(#numbers, argument)?;
                })*
                let _ = arguments;
                ::std::result::Result::Ok(())
            },
        };
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
