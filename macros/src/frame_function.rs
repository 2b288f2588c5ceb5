//! `#[function]`: a function over rows of frames, its definition in the linked table, and the type of the
//! same name, which binds its arguments.

use crate::callable::check;
use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{
    Error, FnArg, GenericArgument, Ident, ItemFn, PathArguments, Result, ReturnType, Type, Visibility,
};

pub(crate) fn expand(attribute: &TokenStream, item: TokenStream) -> Result<TokenStream> {
    if !attribute.is_empty() {
        return Err(Error::new_spanned(attribute, "`function` takes no options"));
    }
    let function: ItemFn = syn::parse2(item)?;
    check_frame_function(&function)?;
    let called = Called::of(&function)?;
    let definition = called.definition(&function);
    let face = called.face(&function);
    let (name, vis) = (&function.sig.ident, &function.vis);
    let doc = format!("Binds arguments of [`{name}()`] for frames: `{name}::with(..)`.");
    Ok(quote! {
        #function
        #[doc = #doc]
        #[allow(non_camel_case_types)]
        #vis struct #name {}
        const _: () = {
            #definition
            #face
        };
    })
}

/// Refuses what frames cannot call.
fn check_frame_function(function: &ItemFn) -> Result<()> {
    check(&function.sig, "a function of frames")?;
    match &function.sig.asyncness {
        Some(asyncness) => {
            Err(Error::new_spanned(asyncness, "a function of frames cannot be async: it computes"))
        }
        None => Ok(()),
    }
}

/// The arguments that a function is called with.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Chunk,
    Column,
    Pair,
    Row,
    Value,
}

impl Kind {
    /// By the types of the first parameters, and the number of these that take rows or values.
    fn of(types: &[Type]) -> (Kind, usize) {
        let is_chunk = |ty: Option<&Type>| {
            ty.and_then(name_of).is_some_and(|name| ["Table", "RecordBatch", "DataFrame"].contains(&&*name))
        };
        if is_chunk(types.first()) {
            return if is_chunk(types.get(1)) { (Kind::Pair, 2) } else { (Kind::Chunk, 1) };
        }
        match types.first().and_then(name_of).as_deref() {
            Some("Row") => (Kind::Row, 1),
            Some("Column") => (Kind::Column, 1),
            _ => (Kind::Value, 1),
        }
    }

    /// The type that marks it.
    fn mark(self) -> TokenStream {
        match self {
            Kind::Chunk => quote!(::tharsis::frame::OverChunk),
            Kind::Column => quote!(::tharsis::frame::OverColumn),
            Kind::Pair => quote!(::tharsis::frame::OverPair),
            Kind::Row => quote!(::tharsis::frame::OverRow),
            Kind::Value => quote!(::tharsis::frame::OverValue),
        }
    }
}

/// The last name of a path.
fn name_of(ty: &Type) -> Option<String> {
    let Type::Path(path) = ty else { return None };
    path.path.segments.last().map(|segment| segment.ident.to_string())
}

/// A function by what it is called with.
struct Called {
    kind: Kind,
    /// Types of the parameters that take rows or values.
    given: Vec<Type>,
    /// Types of the other ones, and their names in the code that is made.
    arguments: Vec<(Type, Ident)>,
    result: Type,
}

impl Called {
    fn of(function: &ItemFn) -> Result<Called> {
        let types = function.sig.inputs.iter().map(|input| match input {
            FnArg::Receiver(receiver) => Err(Error::new_spanned(
                receiver,
                "a function of frames cannot be a method: make it a free function",
            )),
            FnArg::Typed(typed) => match typed.ty.as_ref() {
                Type::ImplTrait(generic) => {
                    Err(Error::new_spanned(generic, "a function of frames cannot be generic: name the type"))
                }
                ty => Ok(ty.clone()),
            },
        });
        let mut types = types.collect::<Result<Vec<_>>>()?;
        if types.is_empty() {
            let text = "a function of frames takes a chunk, a row, a column or a value first";
            return Err(Error::new_spanned(&function.sig, text));
        }
        let result: Type = match &function.sig.output {
            ReturnType::Default => syn::parse_quote!(()),
            ReturnType::Type(_, ty) => ty.as_ref().clone(),
        };
        check_result(&result)?;
        let (kind, given) = Kind::of(&types);
        let rest = types.split_off(given).into_iter().enumerate();
        let arguments = rest.map(|(at, ty)| (ty, format_ident!("argument{at}"))).collect();
        Ok(Called { kind, given: types, arguments, result })
    }

    /// The entry of the linked table.
    fn definition(&self, function: &ItemFn) -> TokenStream {
        let name = &function.sig.ident;
        let text = name.to_string();
        let types = self.given.iter().chain(self.arguments.iter().map(|(ty, _)| ty));
        let output = &function.sig.output;
        let signature = quote!((#(#types),*) #output).to_string();
        let (given, result) = (&self.given, &self.result);
        let indexed = match self.kind {
            Kind::Chunk | Kind::Pair => {
                quote!(&[#(<#given as ::tharsis::frame::ChunkParameter>::INDEXED),*])
            }
            _ => quote!(&[]),
        };
        let returns = match self.kind {
            Kind::Row | Kind::Value => {
                quote!(::std::option::Option::Some(<#result as ::tharsis::frame::ValueResult>::dtype()))
            }
            _ => quote!(::std::option::Option::None),
        };
        let decoded = self.arguments.iter().map(|(ty, name)| {
            let owned = match ty {
                Type::Reference(reference) => {
                    let target = &reference.elem;
                    quote!(<#target as ::std::borrow::ToOwned>::Owned)
                }
                owned => quote!(#owned),
            };
            quote_spanned!(ty.span()=> let #name: #owned = arguments.next()?;)
        });
        let prepared = self.prepared(name);
        quote! {
            #[allow(clippy::needless_borrow, clippy::clone_on_copy, clippy::unit_arg)]
            fn prepare(
                arguments: &[u8],
            ) -> ::std::result::Result<::tharsis::frame::generated::Prepared, ::tharsis::frame::FunctionFault> {
                let mut arguments = ::tharsis::frame::generated::Arguments::new(arguments);
                #(#decoded)*
                arguments.finish()?;
                ::std::result::Result::Ok(#prepared)
            }
            fn returns() -> ::std::option::Option<::tharsis::frame::generated::DataType> {
                #returns
            }
            static DEFINITION: ::tharsis::frame::generated::Definition =
                ::tharsis::frame::generated::Definition {
                    module: ::std::module_path!(),
                    name: #text,
                    signature: #signature,
                    file: ::std::file!(),
                    line: ::std::line!(),
                    column: ::std::column!(),
                    indexed: #indexed,
                    returns,
                    prepare,
                };
            ::tharsis::frame::generated::inventory::submit! {
                ::tharsis::frame::generated::Registered(&DEFINITION)
            }
        }
    }

    /// The function with its arguments, which are decoded.
    fn prepared(&self, name: &Ident) -> TokenStream {
        let arguments = self.arguments.iter().map(|(ty, name)| match ty {
            Type::Reference(_) => quote!(&#name),
            _ => quote!(::std::clone::Clone::clone(&#name)),
        });
        let (given, result) = (&self.given, &self.result);
        match self.kind {
            Kind::Chunk | Kind::Pair => quote! {
                ::tharsis::frame::generated::Prepared::tables(move |tables| {
                    let mut tables = tables.into_iter();
                    ::tharsis::frame::generated::table(#name(
                        #(::tharsis::frame::generated::chunk::<#given>(&mut tables)?,)*
                        #(#arguments),*
                    ))
                })
            },
            Kind::Column => quote! {
                ::tharsis::frame::generated::Prepared::columns(move |columns| {
                    let column = ::tharsis::frame::generated::column(columns);
                    ::tharsis::frame::ColumnResult::into_array(#name(column, #(#arguments),*))
                })
            },
            Kind::Row => quote! {
                ::tharsis::frame::generated::Prepared::columns(move |columns| {
                    let mut made =
                        ::tharsis::frame::generated::MadeValues::<#result>::with_rows(columns.rows());
                    for at in 0..columns.rows() {
                        made.push(#name(columns.row(at), #(#arguments),*))?;
                    }
                    ::std::result::Result::Ok(made.finish())
                })
            },
            Kind::Value => quote! {
                ::tharsis::frame::generated::Prepared::columns(move |columns| {
                    let mut made =
                        ::tharsis::frame::generated::MadeValues::<#result>::with_rows(columns.rows());
                    let values = columns.first();
                    for at in 0..columns.rows() {
                        match ::tharsis::frame::generated::parameter::<#(#given)*>(&values, at)? {
                            ::std::option::Option::Some(value) => made.push(#name(value, #(#arguments),*))?,
                            ::std::option::Option::None => made.push_missing(),
                        }
                    }
                    ::std::result::Result::Ok(made.finish())
                })
            },
        }
    }

    /// The method that binds arguments.
    fn face(&self, function: &ItemFn) -> TokenStream {
        let name = &function.sig.ident;
        let method = match &function.vis {
            Visibility::Inherited => quote!(pub(self)),
            other => quote!(#other),
        };
        let mark = self.kind.mark();
        let declared = self.arguments.iter().map(|(ty, name)| quote_spanned!(ty.span()=> #name: #ty));
        let encoded = self.arguments.iter().map(|(ty, name)| {
            let borrowed = if matches!(ty, Type::Reference(_)) { quote!(#name) } else { quote!(&#name) };
            quote_spanned!(ty.span()=> ::tharsis::frame::generated::encode(bytes, #borrowed)?;)
        });
        quote! {
            #[allow(dead_code, clippy::too_many_arguments)]
            impl #name {
                /// The function with these arguments.
                #[track_caller]
                #[must_use]
                #method fn with(#(#declared),*) -> ::tharsis::frame::Function<#mark> {
                    ::tharsis::frame::Function::new(&DEFINITION, |bytes| {
                        #(#encoded)*
                        let _ = bytes;
                        ::std::result::Result::Ok(())
                    })
                }
            }
        }
    }
}

/// Refuses results that could not travel.
fn check_result(result: &Type) -> Result<()> {
    match result {
        Type::ImplTrait(generic) => {
            Err(Error::new_spanned(generic, "a function of frames cannot return `impl Trait`: name the type"))
        }
        Type::Reference(reference) => {
            Err(Error::new_spanned(reference, "a function of frames returns an owned value"))
        }
        Type::Path(path) => {
            let arguments = path.path.segments.iter().flat_map(|segment| match &segment.arguments {
                PathArguments::AngleBracketed(arguments) => arguments.args.iter().collect(),
                _ => Vec::new(),
            });
            let inner = arguments.filter_map(|argument| match argument {
                GenericArgument::Type(ty) => Some(ty),
                _ => None,
            });
            inner.take(1).try_for_each(check_result)
        }
        _ => Ok(()),
    }
}
