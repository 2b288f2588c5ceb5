//! `#[actor]`: the block as it is, its functions in the linked table, and the type of handles.
//!
//! Each function has a number, its place in the block, by which the code of the handle finds its definition:
//! `impl Method<NUMBER> for Counter`. The constructor is the function `new`.

use crate::arguments::Arguments;
use crate::callable::{check, owned_type};
use crate::definition::{Definition, unwrapped};
use crate::face::vis_of_method;
use crate::options::{Attribute, group_of_method};
use crate::remote_function::{Results, generic_of};
use proc_macro2::{Group, Ident, Span, TokenStream, TokenTree};
use quote::{ToTokens, format_ident, quote};
use syn::{
    Attribute as Attr, Error, FnArg, ImplItem, ImplItemFn, ItemImpl, LitInt, Result, ReturnType, Type,
};

const WHAT: &str = "a method of an actor";

pub(crate) fn expand(attribute: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let attribute = Attribute::of_actor(attribute)?;
    let options = attribute.options();
    let mut block: ItemImpl = syn::parse2(item)?;
    let name = name_of(&block)?;
    let groups = take_groups(&mut block, &attribute)?;
    let shared =
        Shared { limits: attribute.group_limits(), checkpoint_every: attribute.checkpoint_every.clone() };
    let block_type = block.self_ty.as_ref();
    let functions: Vec<&ImplItemFn> = block
        .items
        .iter()
        .filter_map(|item| match item {
            ImplItem::Fn(function) => Some(function),
            _ => None,
        })
        .collect();
    let mut constructor = None;
    let mut methods = Vec::new();
    for ((number, function), group) in functions.into_iter().enumerate().zip(groups) {
        let one = Function::of(function, block_type, &name, number, group)?;
        match one.receiver {
            Some(_) => methods.push(one),
            None => constructor = Some(one),
        }
    }
    let Some(constructor) = constructor else {
        return Err(Error::new_spanned(block_type, "an actor has a constructor: `fn new(..) -> Self`"));
    };
    let none = quote!(::tharsis::Options::default());
    let definitions = methods.iter().map(|method| method.definition(block_type, &none, &shared));
    let definitions: Vec<_> =
        std::iter::once(constructor.definition(block_type, &options, &shared)).chain(definitions).collect();
    let handle = format_ident!("{name}Handle", span = name.span());
    let creation = creation(&constructor, block_type, &name, &handle);
    let face = face(&constructor, &methods, block_type, &name, &handle);
    Ok(quote! {
        #block
        #creation
        #face
        #(const _: () = { #definitions };)*
    })
}

/// Takes `#[method(group = name)]` away from the functions of the block; returns the numbers of their groups.
fn take_groups(block: &mut ItemImpl, attribute: &Attribute) -> Result<Vec<u16>> {
    let functions = block.items.iter_mut().filter_map(|item| match item {
        ImplItem::Fn(function) => Some(function),
        _ => None,
    });
    let group = |function: &mut ImplItemFn| {
        let Some(at) = function.attrs.iter().position(|attr| attr.path().is_ident("method")) else {
            return Ok(0);
        };
        attribute.group(&function.attrs.remove(at).parse_args_with(group_of_method)?)
    };
    functions.map(group).collect()
}

/// The name of the type; what a worker could not find is refused.
fn name_of(block: &ItemImpl) -> Result<Ident> {
    if let Some((_, path, _)) = &block.trait_ {
        return Err(Error::new_spanned(
            path,
            "`#[actor]` stands before the `impl` of a type, not of a trait",
        ));
    }
    if let Some(parameter) = block.generics.params.first() {
        return Err(Error::new_spanned(parameter, "an actor cannot be generic: a worker finds it by name"));
    }
    let last = match block.self_ty.as_ref() {
        Type::Path(path) => path.path.segments.last(),
        _ => None,
    };
    last.map(|segment| segment.ident.clone()).ok_or_else(|| {
        Error::new_spanned(&block.self_ty, "`#[actor]` stands before the `impl` of a named type")
    })
}

/// Properties that all functions of the block share.
struct Shared {
    /// Numbers of calls of each group that run at the same time; none if the actor runs one after the other.
    limits: Vec<u32>,
    /// After how many calls that may change the actor a checkpoint is taken.
    checkpoint_every: Option<LitInt>,
}

/// A function of the block.
struct Function<'a> {
    item: &'a ImplItemFn,
    number: usize,
    /// The number of its group.
    group: u16,
    /// Its name with that of the type, for people and for its id.
    path: String,
    /// Whether it changes the actor; `None` for the constructor.
    receiver: Option<bool>,
    parameters: Vec<Type>,
    results: Results,
}

impl<'a> Function<'a> {
    fn of(item: &'a ImplItemFn, block_type: &Type, name: &Ident, number: usize, group: u16) -> Result<Self> {
        let signature = &item.sig;
        check(signature, WHAT)?;
        let receiver = match signature.inputs.first() {
            Some(FnArg::Receiver(receiver))
                if receiver.reference.is_some() && receiver.colon_token.is_none() =>
            {
                Some(receiver.mutability.is_some())
            }
            Some(FnArg::Receiver(receiver)) => {
                let text = "a method of an actor takes `&self` or `&mut self`: the actor stays in its worker";
                return Err(Error::new_spanned(receiver, text));
            }
            _ => None,
        };
        if receiver.is_none() && signature.ident != "new" {
            let text = "it is neither the constructor `new` nor a method with `&self` or `&mut self`: put it \
                        into another `impl` block, which has no `#[actor]`";
            return Err(Error::new_spanned(&signature.ident, text));
        }
        let typed = signature.inputs.iter().filter_map(|input| match input {
            FnArg::Receiver(_) => None,
            FnArg::Typed(typed) => Some(owned_type(&typed.ty, WHAT)),
        });
        let parameters = typed.collect::<Result<Vec<_>>>()?;
        let parameters =
            parameters.iter().map(|ty| syn::parse2(named(ty, block_type))).collect::<Result<Vec<_>>>()?;
        let output: ReturnType = syn::parse2(named(&signature.output, block_type))?;
        if receiver.is_none() {
            returns_the_actor(&output, block_type)?;
        }
        let results = Results::of(&output, None)?;
        if let ReturnType::Type(_, ty) = &output
            && (generic_of(ty, "Returns").is_some()
                || generic_of(ty, "Result").is_some_and(|ty| generic_of(&ty, "Returns").is_some()))
        {
            return Err(Error::new_spanned(ty, "a method of an actor returns one value"));
        }
        let path = format!("{name}::{}", signature.ident);
        Ok(Self { item, number, group, path, receiver, parameters, results })
    }

    fn arguments(&self) -> Arguments<'_> {
        Arguments(&self.parameters)
    }

    /// The entry of the linked table, and the function that runs a task.
    fn definition(&self, block_type: &Type, options: &TokenStream, shared: &Shared) -> TokenStream {
        let (number, parameters, output) = (self.number, &self.parameters, &self.item.sig.output);
        let taken = self.arguments().taken();
        let limits = &shared.limits;
        let (role, value, give) = self.part(block_type, shared);
        let checked = self.results.is_fallible.then(unwrapped);
        let definition = Definition {
            name: &self.path,
            signature: &quote!((#(#parameters),*) #output),
            returns: 1,
            role,
            group: self.group,
            groups: limits,
            options: options.clone(),
            run: quote! {
                #taken
                let value = #value;
                #checked
                #give
            },
            plain: quote!(&()),
            owner: quote!(::tharsis::generated::Method<#number> for #block_type),
        };
        definition.items()
    }

    /// The part that it plays, the expression that calls it, and what is done with its value.
    fn part(&self, block_type: &Type, shared: &Shared) -> (TokenStream, TokenStream, TokenStream) {
        let (called, is_shared) = (self.called(block_type), !shared.limits.is_empty());
        let Some(is_changed) = self.receiver else {
            let keep = if is_shared { quote!(construct_shared) } else { quote!(construct) };
            let give = quote! {
                let mut value = value;
                {
                    #[allow(unused_imports)]
                    use ::tharsis::generated::{BeginsAnew as _, Continues as _};
                    let continuing = ::tharsis::generated::Continuing::<#block_type>::default();
                    (&continuing).restore(call, &mut value)?;
                }
                call.#keep(value)
            };
            return (quote!(Constructor), called, give);
        };
        let actor = if is_changed { quote!(mut actor) } else { quote!(actor) };
        let borrow = match (is_shared, is_changed) {
            (false, _) => quote!(borrow),
            (true, false) => quote!(read),
            (true, true) => quote!(write),
        };
        let checkpoint = shared.checkpoint_every.as_ref().filter(|_| is_changed);
        let checkpoint = checkpoint.map(|every| quote!(call.checkpoint_if_due(&hosted, &*actor, #every)?;));
        let value = quote! {{
            let hosted = call.hosted();
            #[allow(unused_mut)]
            let #actor = hosted.#borrow::<#block_type>()?;
            let value = #called;
            #checkpoint
            value
        }};
        (quote!(Method), value, self.results.give())
    }

    /// The function, called with its arguments.
    fn called(&self, block_type: &Type) -> TokenStream {
        let (function, names) = (&self.item.sig.ident, self.arguments().names());
        let first = match self.receiver {
            None => None,
            Some(true) => Some(quote!(&mut *actor,)),
            Some(false) => Some(quote!(&*actor,)),
        };
        let called = quote!(<#block_type>::#function(#first #(#names),*));
        match self.item.sig.asyncness {
            Some(_) => quote!(call.block_on(#called)?),
            None => called,
        }
    }

    /// A call of it, as an expression; `begin` comes before the arguments.
    fn call(&self, block_type: &Type, options: &TokenStream, begin: Option<&TokenStream>) -> TokenStream {
        let number = self.number;
        let called = quote!(#block_type as ::tharsis::generated::Method<#number>);
        self.arguments().call(&called, options, begin)
    }

    fn docs(&self) -> impl Iterator<Item = &Attr> {
        self.item.attrs.iter().filter(|attr| attr.path().is_ident("doc") || attr.path().is_ident("cfg"))
    }
}

/// Refuses a constructor that returns something else.
fn returns_the_actor(output: &ReturnType, block_type: &Type) -> Result<()> {
    let returned = match output {
        ReturnType::Default => None,
        ReturnType::Type(_, ty) => Some(generic_of(ty, "Result").unwrap_or_else(|| ty.as_ref().clone())),
    };
    let is_actor = returned
        .as_ref()
        .is_some_and(|ty| ty.to_token_stream().to_string() == block_type.to_token_stream().to_string());
    if is_actor {
        return Ok(());
    }
    Err(Error::new_spanned(output, "the constructor of an actor returns `Self`, or a `Result` of it"))
}

/// The tokens with the type's name for `Self`.
fn named(tokens: &impl ToTokens, block_type: &Type) -> TokenStream {
    let replace = |token| match token {
        TokenTree::Ident(ident) if ident == "Self" => block_type.to_token_stream(),
        TokenTree::Group(group) => {
            let inside = named(&group.stream(), block_type);
            let mut replaced = Group::new(group.delimiter(), inside);
            replaced.set_span(group.span());
            TokenTree::Group(replaced).into()
        }
        other => other.into(),
    };
    tokens.to_token_stream().into_iter().flat_map::<TokenStream, _>(replace).collect()
}

/// `Counter::remote(..)` and `Counter::options()`.
fn creation(constructor: &Function<'_>, block_type: &Type, name: &Ident, handle: &Ident) -> TokenStream {
    let vis = &constructor.item.vis;
    let method = vis_of_method(vis);
    let options_name = Ident::new(&format!("__{name}Options"), Span::call_site());
    let declared = constructor.arguments().declared();
    let plain = constructor.call(block_type, &quote!(::std::option::Option::None), None);
    let with_options = constructor.call(block_type, &quote!(::std::option::Option::Some(self.0)), None);
    let named = naming(constructor, block_type, handle, &with_options);
    let number = constructor.number;
    quote! {
        #[doc(hidden)]
        #[must_use = "options do nothing before `remote` is called"]
        #vis struct #options_name(::tharsis::Options);
        #[allow(dead_code, clippy::too_many_arguments)]
        impl #block_type {
            /// Constructs an actor in a worker and returns a handle at once.
            #[track_caller]
            #method fn remote(#(#declared),*) -> #handle {
                #plain
                #handle(call.actor())
            }
            /// Options for one actor.
            #method fn options() -> #options_name {
                #options_name((<#block_type as ::tharsis::generated::Method<#number>>::DEFINITION.options)())
            }
        }
        #[allow(dead_code, clippy::too_many_arguments)]
        impl #options_name {
            ::tharsis::__actor_option_setters!(#method);
            /// Constructs an actor in a worker, with these options, and returns a handle at once.
            #[track_caller]
            #method fn remote(self, #(#declared),*) -> #handle {
                #with_options
                #handle(call.actor())
            }
            #named
        }
    }
}

/// Functions of options that deal with a name.
fn naming(constructor: &Function<'_>, block_type: &Type, handle: &Ident, call: &TokenStream) -> TokenStream {
    let (method, number) = (vis_of_method(&constructor.item.vis), constructor.number);
    let declared = constructor.arguments().declared();
    quote! {
        /// Constructs an actor with a name, by which `find` gets it.
        ///
        /// # Errors
        /// `NameTaken` if an actor that lives has the name, `InvalidArgument` for a bad name, the errors of
        /// the control store.
        #[track_caller]
        #method fn create(
            self,
            name: &str,
            #(#declared),*
        ) -> ::std::result::Result<#handle, ::tharsis::Error> {
            #call
            call.named(name, ::tharsis::generated::IfThere::Refuse).map(#handle)
        }
        /// The actor with this name, which is constructed unless it is there: by one of those who do this at
        /// the same time.
        ///
        /// # Errors
        /// `InvalidArgument` if the actor has another type, or for a bad name; the errors of the control
        /// store.
        #[track_caller]
        #method fn get_or_create(
            self,
            name: &str,
            #(#declared),*
        ) -> ::std::result::Result<#handle, ::tharsis::Error> {
            #call
            call.named(name, ::tharsis::generated::IfThere::Get).map(#handle)
        }
        /// The actor with this name.
        ///
        /// # Errors
        /// `ActorNotFound` if there is none that lives, `InvalidArgument` if it has another type; the
        /// errors of the control store.
        #method fn find(self, name: &str) -> ::std::result::Result<#handle, ::tharsis::Error> {
            let definition = <#block_type as ::tharsis::generated::Method<#number>>::DEFINITION;
            ::tharsis::generated::find(definition, name).map(#handle)
        }
    }
}

/// The type of handles, with the methods.
fn face(
    constructor: &Function<'_>,
    methods: &[Function<'_>],
    block_type: &Type,
    name: &Ident,
    handle: &Ident,
) -> TokenStream {
    let vis = &constructor.item.vis;
    let called = methods.iter().map(|method| {
        let (function, declared) = (&method.item.sig.ident, method.arguments().declared());
        let (vis, docs) = (vis_of_method(&method.item.vis), method.docs());
        let begin = quote!(self.0.begin(arguments)?;);
        let call = method.call(block_type, &quote!(self.0.method_options()), Some(&begin));
        let (reference, make) = (method.results.reference_type(), method.results.make_references());
        quote! {
            #(#docs)*
            #[track_caller]
            #vis fn #function(&self, #(#declared),*) -> #reference {
                #call
                #make
            }
        }
    });
    let doc = format!(
        "Handle of an actor [`{name}`]: its methods call the actor and return references at once. Clones refer \
         to the same actor, which ends when the last handle is dropped, on any machine, and its calls are done."
    );
    quote! {
        #[doc = #doc]
        #[derive(Clone, Debug)]
        #vis struct #handle(::tharsis::generated::ActorHandle);
        #[allow(dead_code, clippy::too_many_arguments)]
        impl #handle {
            #(#called)*
        }
        impl ::tharsis::Actor for #handle {
            fn handle(&self) -> &::tharsis::generated::ActorHandle { &self.0 }
        }
        impl ::tharsis::generated::serde::Serialize for #handle {
            fn serialize<S: ::tharsis::generated::serde::Serializer>(
                &self,
                serializer: S,
            ) -> ::std::result::Result<S::Ok, S::Error> {
                ::tharsis::generated::serde::Serialize::serialize(&self.0, serializer)
            }
        }
        impl<'de> ::tharsis::generated::serde::Deserialize<'de> for #handle {
            fn deserialize<D: ::tharsis::generated::serde::Deserializer<'de>>(
                deserializer: D,
            ) -> ::std::result::Result<Self, D::Error> {
                ::tharsis::generated::serde::Deserialize::deserialize(deserializer).map(Self)
            }
        }
    }
}
