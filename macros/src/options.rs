//! The options in `#[remote(..)]`: parsed here, so that a mistake is reported where it stands.

use proc_macro2::TokenStream;
use quote::{ToTokens, quote};
use syn::parse::{Parse, ParseStream, Parser};
use syn::punctuated::Punctuated;
use syn::{Error, Expr, Ident, LitInt, Path, Result, Token, Type, parenthesized};

const OF_FUNCTIONS: &[&str] = &[
    "num_cpus",
    "num_gpus",
    "memory_bytes",
    "resources",
    "priority",
    "timeout",
    "max_retries",
    "retry_on",
    "retry_exceptions",
    "name",
    "num_returns",
    "max_calls",
    "pure",
];
const OF_ACTORS: &[&str] = &[
    "num_cpus",
    "num_gpus",
    "memory_bytes",
    "resources",
    "name",
    "max_restarts",
    "max_task_retries",
    "retry_on",
    "retry_exceptions",
    "max_pending_calls",
    "allow_out_of_order",
    "shared_process",
    "max_concurrency",
    "groups",
    "checkpoint_every",
];
/// Threads of one actor at most.
const CONCURRENCY_MAX: u32 = 10_000;

const OF_STREAMS: &[&str] =
    &["num_cpus", "num_gpus", "memory_bytes", "resources", "name", "max_retries", "unconsumed_max"];

/// Options in the order given, as calls on `Options`.
#[derive(Default)]
pub(crate) struct Attribute {
    setters: Vec<TokenStream>,
    /// `num_returns`, which decides the type of the result.
    pub(crate) num_returns: Option<LitInt>,
    /// `max_concurrency`: how many calls of the default group run at the same time.
    max_concurrency: Option<u32>,
    /// `groups`, and how many calls of each run at the same time.
    groups: Vec<(Ident, u32)>,
    /// `checkpoint_every`: after how many calls that may change the actor a checkpoint is taken.
    pub(crate) checkpoint_every: Option<LitInt>,
}

impl Attribute {
    /// An expression for the options.
    pub(crate) fn options(&self) -> TokenStream {
        let setters = &self.setters;
        quote!(::tharsis::Options::default() #(#setters)*)
    }

    /// Numbers of calls of each group that run at the same time, the default one first; none if it runs one
    /// call after the other.
    pub(crate) fn group_limits(&self) -> Vec<u32> {
        if self.max_concurrency.is_none() && self.groups.is_empty() {
            return Vec::new();
        }
        let default = self.max_concurrency.unwrap_or(1);
        std::iter::once(default).chain(self.groups.iter().map(|(_, limit)| *limit)).collect()
    }

    /// The number of a group.
    pub(crate) fn group(&self, name: &Ident) -> Result<u16> {
        let at = self.groups.iter().position(|(group, _)| group == name);
        at.and_then(|at| u16::try_from(at + 1).ok()).ok_or_else(|| {
            let known: Vec<_> = self.groups.iter().map(|(group, _)| group.to_string()).collect();
            let text = if known.is_empty() {
                format!("no group `{name}`: the actor has none, as in `#[actor(groups({name} = 2))]`")
            } else {
                format!("no group `{name}`; there are: {}", known.join(", "))
            };
            Error::new(name.span(), text)
        })
    }

    /// An expression for the options of a stream: unless it says otherwise, it is retried like a task.
    pub(crate) fn options_of_stream(&self) -> TokenStream {
        let setters = &self.setters;
        quote! {
            ::tharsis::Options::default().max_retries(::tharsis::generated::MAX_RETRIES_DEFAULT) #(#setters)*
        }
    }
}

impl Attribute {
    /// The options of a remote function.
    pub(crate) fn of_function(tokens: TokenStream) -> Result<Self> {
        (|input: ParseStream<'_>| Self::parse(input, OF_FUNCTIONS)).parse2(tokens)
    }

    /// The options of an actor.
    pub(crate) fn of_actor(tokens: TokenStream) -> Result<Self> {
        (|input: ParseStream<'_>| Self::parse(input, OF_ACTORS)).parse2(tokens)
    }

    /// The options of a remote function that returns an iterator.
    pub(crate) fn of_stream(tokens: TokenStream) -> Result<Self> {
        (|input: ParseStream<'_>| Self::parse(input, OF_STREAMS)).parse2(tokens)
    }

    fn parse(input: ParseStream<'_>, known: &[&str]) -> Result<Self> {
        let mut attribute = Self::default();
        let mut seen: Vec<Ident> = Vec::new();
        while !input.is_empty() {
            let name: Ident = input.parse()?;
            if seen.contains(&name) {
                return Err(Error::new(name.span(), format!("`{name}` is given twice")));
            }
            if !known.iter().any(|known| name == known) {
                let text = format!("unknown option `{name}`; known are: {}", known.join(", "));
                return Err(Error::new(name.span(), text));
            }
            attribute.parse_one(&name, input)?;
            seen.push(name);
            if input.is_empty() {
                break;
            }
            input.parse::<Token![,]>()?;
        }
        Ok(attribute)
    }

    fn parse_one(&mut self, name: &Ident, input: ParseStream<'_>) -> Result<()> {
        match name.to_string().as_str() {
            "num_cpus" | "num_gpus" => {
                let amount = value(input)?;
                self.setters.push(quote!(.#name((#amount) as f64)));
            }
            "memory_bytes" | "priority" | "max_retries" | "max_calls" | "name" | "pure" | "max_restarts"
            | "max_task_retries" | "max_pending_calls" | "allow_out_of_order" | "shared_process"
            | "unconsumed_max" => {
                let value = value(input)?;
                self.setters.push(quote!(.#name(#value)));
            }
            "timeout" => {
                let seconds = value(input)?;
                self.setters.push(quote!(.timeout(::std::time::Duration::from_secs_f64((#seconds) as f64))));
            }
            "num_returns" => {
                input.parse::<Token![=]>()?;
                let count: LitInt = input.parse()?;
                if count.base10_parse::<u32>()? == 0 {
                    return Err(Error::new(count.span(), "`num_returns` must be at least 1"));
                }
                self.setters.push(quote!(.num_returns(#count)));
                self.num_returns = Some(count);
            }
            "max_concurrency" => {
                input.parse::<Token![=]>()?;
                self.max_concurrency = Some(limit(input)?);
            }
            "checkpoint_every" => {
                input.parse::<Token![=]>()?;
                let every: LitInt = input.parse()?;
                if every.base10_parse::<u32>()? == 0 {
                    return Err(Error::new(every.span(), "`checkpoint_every` must be at least 1"));
                }
                self.checkpoint_every = Some(every);
            }
            "groups" => self.parse_groups(input)?,
            "resources" => self.parse_resources(input)?,
            "retry_on" | "retry_exceptions" => self.parse_retry_on(input)?,
            _ => return Err(Error::new(name.span(), format!("option `{name}` has no meaning here"))),
        }
        Ok(())
    }

    /// `resources(tpu = 1, "disk-fast" = 0.5)`.
    fn parse_resources(&mut self, input: ParseStream<'_>) -> Result<()> {
        let content;
        parenthesized!(content in input);
        for Resource { name, amount } in Punctuated::<Resource, Token![,]>::parse_terminated(&content)? {
            self.setters.push(quote!(.resource(#name, (#amount) as f64)));
        }
        Ok(())
    }

    /// `groups(io = 2, compute = 4)`.
    fn parse_groups(&mut self, input: ParseStream<'_>) -> Result<()> {
        let content;
        parenthesized!(content in input);
        while !content.is_empty() {
            let name: Ident = content.parse()?;
            if self.groups.iter().any(|(group, _)| *group == name) {
                return Err(Error::new(name.span(), format!("group `{name}` is given twice")));
            }
            content.parse::<Token![=]>()?;
            let limit = limit(&content)?;
            self.groups.push((name, limit));
            if content.is_empty() {
                break;
            }
            content.parse::<Token![,]>()?;
        }
        Ok(())
    }

    /// `retry_on(TypeA, TypeB)`, or `retry_on = true` for every error.
    fn parse_retry_on(&mut self, input: ParseStream<'_>) -> Result<()> {
        if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            let all: syn::LitBool = input.parse()?;
            if all.value {
                self.setters.push(quote!(.retry_on_any()));
            }
            return Ok(());
        }
        let content;
        parenthesized!(content in input);
        for error in Punctuated::<Type, Token![,]>::parse_terminated(&content)? {
            self.setters.push(quote!(.retry_on::<#error>()));
        }
        Ok(())
    }
}

struct Resource {
    name: String,
    amount: Expr,
}

impl Parse for Resource {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name = if input.peek(syn::LitStr) {
            input.parse::<syn::LitStr>()?.value()
        } else {
            input.parse::<Path>()?.to_token_stream().to_string()
        };
        input.parse::<Token![=]>()?;
        Ok(Self { name, amount: input.parse()? })
    }
}

/// Number of calls that may run at the same time.
fn limit(input: ParseStream<'_>) -> Result<u32> {
    let count: LitInt = input.parse()?;
    match count.base10_parse::<u32>()? {
        limit if (1..=CONCURRENCY_MAX).contains(&limit) => Ok(limit),
        limit => {
            Err(Error::new(count.span(), format!("{limit} calls at the same time: 1 to {CONCURRENCY_MAX}")))
        }
    }
}

/// The group in `#[method(group = io)]`.
pub(crate) fn group_of_method(input: ParseStream<'_>) -> Result<Ident> {
    let name: Ident = input.parse()?;
    if name != "group" {
        return Err(Error::new(name.span(), format!("unknown option `{name}`; known are: group")));
    }
    input.parse::<Token![=]>()?;
    input.parse()
}

fn value(input: ParseStream<'_>) -> Result<Expr> {
    input.parse::<Token![=]>()?;
    input.parse()
}
