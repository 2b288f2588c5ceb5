//! `#[remote]` on a function that returns an iterator: two entries in the linked table and the type of the
//! function's name.
//!
//! The first entry makes the iterator and keeps it in its worker, the second gives one of its items.

use crate::arguments::Arguments;
use crate::callable::check;
use crate::definition::{Definition, unwrapped};
use crate::face::{Face, vis_of_method};
use crate::options::Attribute;
use crate::remote_function::{generic_of, parameters};
use proc_macro2::TokenStream;
use quote::quote;
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
    let arguments = Arguments(&parameters);
    let made = iterator_definition(function, &attribute, &arguments, items);
    let given = item_definition(&function.sig.ident, items);
    let face = face(&function.sig.ident, &vis_of_method(&function.vis), &arguments, items).items(function);
    Ok(quote! {
        #function
        #face
        const _: () = { #made };
        const _: () = { #given };
    })
}

/// The entry that makes the iterator.
fn iterator_definition(
    function: &ItemFn,
    attribute: &Attribute,
    arguments: &Arguments<'_>,
    items: &Items,
) -> TokenStream {
    let (name, output, item) = (&function.sig.ident, &function.sig.output, &items.item);
    let (names, parameters, taken) = (arguments.names(), arguments.0, arguments.taken());
    let checked = items.is_refusable.then(unwrapped);
    let is_last = if items.is_fallible { quote!(|item| item.is_err()) } else { quote!(|_| false) };
    let run = quote! {
        #taken
        let value = #name(#(#names),*);
        #checked
        call.construct(::tharsis::generated::Producer::<#item>::new(value, #is_last))
    };
    let definition = Definition {
        name: &name.to_string(),
        signature: &quote!((#(#parameters),*) #output),
        returns: 1,
        role: quote!(Constructor),
        group: 0,
        groups: &[],
        options: attribute.options_of_stream(),
        run,
        plain: quote!(&()),
        owner: quote!(::tharsis::generated::Remote for #name),
    };
    definition.items()
}

/// The entry that gives an item: its parameters are its position, and the number of items that were taken.
fn item_definition(name: &Ident, items: &Items) -> TokenStream {
    let item = &items.item;
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
    let definition = Definition {
        name: &format!("{name}::item"),
        signature: &quote!((u64, u64) -> #item),
        returns: 1,
        role: quote!(Method),
        group: 0,
        groups: &[],
        options: quote!(::tharsis::Options::default().max_retries(::tharsis::generated::MAX_RETRIES_DEFAULT)),
        run,
        plain: quote!(&()),
        owner: quote!(::tharsis::generated::Method<0> for #name),
    };
    definition.items()
}

/// The type of the function's name, and its builder of calls.
fn face(name: &Ident, method: &TokenStream, arguments: &Arguments<'_>, items: &Items) -> Face {
    let (declared, value) = (arguments.declared(), &items.value);
    let call = |options| arguments.call(&quote!(#name as ::tharsis::generated::Remote), &options, None);
    let plain = call(quote!(::std::option::Option::None));
    let with_options = call(quote!(::std::option::Option::Some(self.0)));
    let make = quote!(call.stream(<#name as ::tharsis::generated::Method<0>>::DEFINITION));
    Face {
        doc: format!("Calls [`{name}()`] as a stream: `{name}::remote(..)`, `{name}::options().remote(..)`."),
        functions: quote! {
            /// Starts the function in a worker and returns at once.
            #[track_caller]
            #method fn remote(#(#declared),*) -> ::tharsis::ObjectRefStream<#value> {
                #plain
                #make
            }
        },
        setters: quote!(__stream_option_setters),
        methods: quote! {
            /// Starts the function in a worker, with these options, and returns at once.
            #[track_caller]
            #method fn remote(self, #(#declared),*) -> ::tharsis::ObjectRefStream<#value> {
                #with_options
                #make
            }
        },
    }
}
