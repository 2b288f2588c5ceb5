//! `#[remote]`: the function, its definition in the linked table, and the type of the same name.

use crate::arguments::Arguments;
use crate::callable::{check, owned_type};
use crate::definition::{Definition, unwrapped};
use crate::face::{Face, vis_of_method};
use crate::options::Attribute;
use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::spanned::Spanned;
use syn::{Error, FnArg, GenericArgument, Ident, ItemFn, LitInt, PathArguments, Result, ReturnType, Type};

pub(crate) fn expand(attribute: TokenStream, function: &ItemFn) -> Result<TokenStream> {
    let attribute = Attribute::of_function(attribute)?;
    check(&function.sig, "a remote function")?;
    let parameters = parameters(function)?;
    let results = Results::of(&function.sig.output, attribute.num_returns.as_ref())?;
    let definition = definition(function, &attribute, &Arguments(&parameters), &results);
    let face = face(&function.sig.ident, &vis_of_method(&function.vis), &Arguments(&parameters), &results);
    let face = face.items(function);
    Ok(quote! {
        #function
        #face
        const _: () = { #definition };
    })
}

/// Types of the parameters.
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
    arguments: &Arguments<'_>,
    results: &Results,
) -> TokenStream {
    let (name, output) = (&function.sig.ident, &function.sig.output);
    let (names, parameters, taken) = (arguments.names(), arguments.0, arguments.taken());
    let called = if function.sig.asyncness.is_some() {
        quote!(call.block_on(#name(#(#names),*))?)
    } else {
        quote!(#name(#(#names),*))
    };
    let checked = results.is_fallible.then(unwrapped);
    let give = results.give();
    let (plain, plain_static) = plain(function, arguments, results, checked.as_ref());
    let definition = Definition {
        name: &name.to_string(),
        signature: &quote!((#(#parameters),*) #output),
        returns: results.count(),
        role: quote!(Task),
        group: 0,
        groups: &[],
        options: attribute.options(),
        run: quote! {
            #taken
            let value = #called;
            #checked
            #give
        },
        plain: plain_static,
        owner: quote!(::tharsis::generated::Remote for #name),
    };
    let entry = definition.items();
    quote! {
        #plain
        #entry
    }
}

/// The function as it is, with its error turned into a failure: what runs it inside another task calls this.
/// Functions that are async or give many objects have none.
fn plain(
    function: &ItemFn,
    arguments: &Arguments<'_>,
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
    let (name, names, parameters) = (&function.sig.ident, arguments.names(), arguments.0);
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
fn face(name: &Ident, method: &TokenStream, arguments: &Arguments<'_>, results: &Results) -> Face {
    let declared = arguments.declared();
    let (reference_type, planned_type) = (results.reference_type(), results.planned_type());
    let (make, add) = (results.make_references(), results.add_to_graph());
    let call = |options| arguments.call(&quote!(#name as ::tharsis::generated::Remote), &options, None);
    let plain = call(quote!(::std::option::Option::None));
    let with_options = call(quote!(::std::option::Option::Some(self.0)));
    let num_returns = matches!(results.shape, Shape::Many(_)).then(|| {
        quote! {
            /// Sets the number of objects that the call returns.
            #[must_use]
            #method fn num_returns(self, count: u32) -> Self { Self(self.0.num_returns(count)) }
        }
    });
    Face {
        doc: format!("Calls [`{name}()`] as a task: `{name}::remote(..)`, `{name}::options().remote(..)`."),
        functions: quote! {
            /// Calls the function as a task and returns at once.
            #[track_caller]
            #method fn remote(#(#declared),*) -> #reference_type {
                #plain
                #make
            }
            /// Adds a call of the function to a graph of tasks; it runs when the graph was submitted.
            #[track_caller]
            #method fn add_to(graph: &mut ::tharsis::TaskGraph, #(#declared),*) -> #planned_type {
                #plain
                #add
            }
        },
        setters: quote!(__option_setters),
        methods: quote! {
            #num_returns
            /// Calls the function as a task, with these options, and returns at once.
            #[track_caller]
            #method fn remote(self, #(#declared),*) -> #reference_type {
                #with_options
                #make
            }
            /// Adds a call of the function to a graph of tasks, with these options.
            #[track_caller]
            #method fn add_to(self, graph: &mut ::tharsis::TaskGraph, #(#declared),*) -> #planned_type {
                #with_options
                #add
            }
        },
    }
}
