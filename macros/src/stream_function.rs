//! `#[remote]` on a function that returns an iterator: two entries in the linked table and the type of the
//! function's name.
//!
//! The first entry makes the iterator and keeps it in its worker, the second gives one of its items.

use crate::callable::check;
use crate::options::Attribute;
use crate::remote_function::{generic_of, parameters, unwrapped, vis_of_method};
use proc_macro2::{Span, TokenStream};
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Error, GenericArgument, Ident, ItemFn, PathArguments, Result, ReturnType, Type, TypeImplTrait,
    TypeParamBound,
};

/// The items of a function that returns an iterator.
pub(crate) struct Items {
    /// Type of an item, as the iterator gives it.
    item: Type,
    /// Type of the value of an item: without a `Result` around it.
    value: Type,
    /// Whether an item is a `Result`.
    is_fallible: bool,
    /// Whether the function returns a `Result` of the iterator.
    is_refusable: bool,
}

impl Items {
    /// The items, if the function returns `impl Iterator<Item = T>`, or a `Result` of it.
    pub(crate) fn of(output: &ReturnType) -> Option<Self> {
        let ReturnType::Type(_, whole) = output else { return None };
        let (iterator, is_refusable) = match generic_of(whole, "Result") {
            Some(value) => (value, true),
            None => (whole.as_ref().clone(), false),
        };
        let Type::ImplTrait(bounds) = &iterator else { return None };
        let item = item_of(bounds)?;
        let inside = generic_of(&item, "Result");
        let is_fallible = inside.is_some();
        Some(Self { value: inside.unwrap_or_else(|| item.clone()), item, is_fallible, is_refusable })
    }
}

/// `T` of `impl Iterator<Item = T>`.
fn item_of(bounds: &TypeImplTrait) -> Option<Type> {
    bounds.bounds.iter().find_map(|bound| {
        let TypeParamBound::Trait(bound) = bound else { return None };
        let last = bound.path.segments.last().filter(|segment| segment.ident == "Iterator")?;
        let PathArguments::AngleBracketed(arguments) = &last.arguments else { return None };
        arguments.args.iter().find_map(|argument| match argument {
            GenericArgument::AssocType(item) if item.ident == "Item" => Some(item.ty.clone()),
            _ => None,
        })
    })
}

pub(crate) fn expand(attribute: TokenStream, function: &ItemFn, items: &Items) -> Result<TokenStream> {
    let attribute = Attribute::of_stream(attribute)?;
    check(&function.sig, "a remote function")?;
    if let Some(asyncness) = &function.sig.asyncness {
        let text = "a remote function that returns an iterator is not `async`: its items are made one by one";
        return Err(Error::new_spanned(asyncness, text));
    }
    let parameters = parameters(function)?;
    let made = iterator_definition(function, &attribute, &parameters, items);
    let given = item_definition(function, items);
    let face = face(function, &parameters, items);
    Ok(quote! {
        #function
        #face
        const _: () = { #made };
        const _: () = { #given };
    })
}

fn names(parameters: &[Type]) -> Vec<Ident> {
    (0..parameters.len()).map(|i| format_ident!("argument{i}")).collect()
}

/// The entry that makes the iterator.
fn iterator_definition(
    function: &ItemFn,
    attribute: &Attribute,
    parameters: &[Type],
    items: &Items,
) -> TokenStream {
    let (name, output) = (&function.sig.ident, &function.sig.output);
    let signature = quote!((#(#parameters),*) #output).to_string();
    let (names, numbers) = (names(parameters), 0..parameters.len() as u16);
    let taken =
        names.iter().zip(parameters).zip(numbers).map(
            |((name, ty), number)| quote_spanned!(ty.span()=> let #name = call.argument::<#ty>(#number)?;),
        );
    let checked = items.is_refusable.then(unwrapped);
    let item = &items.item;
    let is_last = match items.is_fallible {
        true => quote!(|item| item.is_err()),
        false => quote!(|_| false),
    };
    let run = quote! {
        #(#taken)*
        call.finish_arguments()?;
        let value = #name(#(#names),*);
        #checked
        call.construct(::tharsis::generated::Producer::<#item>::new(value, #is_last))
    };
    let options = attribute.options_of_stream();
    let (text, role) = (name.to_string(), quote!(Constructor));
    let definition = definition(&text, &signature, &role, &options, &run);
    quote! {
        #definition
        impl ::tharsis::generated::Remote for #name {
            const DEFINITION: &'static ::tharsis::generated::Definition = &DEFINITION;
        }
    }
}

/// The entry that gives an item: its parameters are its position, and the number of items that were taken.
fn item_definition(function: &ItemFn, items: &Items) -> TokenStream {
    let (name, item) = (&function.sig.ident, &items.item);
    let checked = items.is_fallible.then(unwrapped);
    let run = quote! {
        let position = call.argument::<u64>(0)?;
        let taken = call.argument::<u64>(1)?;
        call.finish_arguments()?;
        let hosted = call.hosted();
        let item = hosted.borrow::<::tharsis::generated::Producer<#item>>()?.take(position, taken)?;
        let ::std::option::Option::Some(value) = item else {
            return ::std::result::Result::Err(::tharsis::generated::end_of_stream());
        };
        #checked
        call.give(&value)
    };
    let signature = quote!((u64, u64) -> #item).to_string();
    let options =
        quote!(::tharsis::Options::default().max_retries(::tharsis::generated::MAX_RETRIES_DEFAULT));
    let (text, role) = (format!("{name}::item"), quote!(Method));
    let definition = definition(&text, &signature, &role, &options, &run);
    quote! {
        #definition
        impl ::tharsis::generated::Method<0> for #name {
            const DEFINITION: &'static ::tharsis::generated::Definition = &DEFINITION;
        }
    }
}

fn definition(
    text: &str,
    signature: &str,
    role: &TokenStream,
    options: &TokenStream,
    run: &TokenStream,
) -> TokenStream {
    quote! {
        #[allow(clippy::needless_borrow, clippy::let_unit_value)]
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
            name: #text,
            signature: #signature,
            file: ::std::file!(),
            line: ::std::line!(),
            column: ::std::column!(),
            returns: 1,
            options,
            run,
            role: ::tharsis::generated::Role::#role,
            group: 0,
            groups: &[],
            plain: &(),
        };
        ::tharsis::generated::inventory::submit! { ::tharsis::generated::Registered(&DEFINITION) }
    }
}

/// The type of the function's name, and its builder of calls.
fn face(function: &ItemFn, parameters: &[Type], items: &Items) -> TokenStream {
    let (name, vis) = (&function.sig.ident, &function.vis);
    let options_name = Ident::new(&format!("__{name}_options"), Span::call_site());
    let (names, numbers) = (names(parameters), 0..parameters.len() as u16);
    let declared: Vec<TokenStream> = names
        .iter()
        .zip(parameters)
        .map(|(name, ty)| quote_spanned!(ty.span()=> #name: impl ::tharsis::IntoArg<#ty>))
        .collect();
    let (method, value) = (vis_of_method(vis), &items.value);
    let make = quote! {{
        // Each argument is taken once: a closure that may be called again needs it to be an option.
        #(let mut #names = ::std::option::Option::Some(#names);)*
        let call = ::tharsis::generated::Call {
            definition: <#name as ::tharsis::generated::Remote>::DEFINITION,
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
        call.stream(<#name as ::tharsis::generated::Method<0>>::DEFINITION)
    }};
    let doc =
        format!("Calls [`{name}()`] as a stream: `{name}::remote(..)`, `{name}::options().remote(..)`.");
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
            /// Starts the function in a worker and returns at once.
            #[track_caller]
            #method fn remote(#(#declared),*) -> ::tharsis::ObjectRefStream<#value> {
                let options = ::std::option::Option::None;
                #make
            }
            /// Options for one call.
            #method fn options() -> #options_name {
                #options_name((<#name as ::tharsis::generated::Remote>::DEFINITION.options)())
            }
        }
        #[allow(dead_code, clippy::too_many_arguments)]
        impl #options_name {
            ::tharsis::__stream_option_setters!(#method);
            /// Starts the function in a worker, with these options, and returns at once.
            #[track_caller]
            #method fn remote(self, #(#declared),*) -> ::tharsis::ObjectRefStream<#value> {
                let options = ::std::option::Option::Some(self.0);
                #make
            }
        }
    }
}
