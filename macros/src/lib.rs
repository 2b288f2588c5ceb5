//! The attributes `remote`, `actor`, `main` and `function`; users reach them through the crate `tharsis`.
//!
//! They expand to a thin layer: everything that can be an ordinary function is one, in `tharsis::generated`.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

mod actor_block;
mod arguments;
mod callable;
mod definition;
mod face;
mod frame_function;
mod main_function;
mod options;
mod remote_function;
mod stream_function;

use proc_macro::TokenStream;

/// Makes a function callable on any node.
///
/// The function stays what it is: `f(x)` calls it here. Beside it stands a type of the same name with
/// `f::remote(x)`, which calls it somewhere and returns an `ObjectRef` at once, and `f::options()`, which
/// takes options for one call: `f::options().num_cpus(0.5).remote(x)`.
///
/// Each parameter takes a value of its type or a reference to one; the task runs when all referenced values
/// are there. A parameter of type `ObjectRef<T>` takes a reference as it is. A function that returns
/// `Result<T, E>` gives an `ObjectRef<T>`; its error is what `get` fails with, and keeps its type if `E` can
/// be encoded.
///
/// Options in the attribute are defaults for all calls: `num_cpus`, `num_gpus`, `memory_bytes`,
/// `resources(name = amount)`, `priority`, `timeout` (seconds), `max_retries`, `retry_on(Type, ..)`, `name`,
/// `num_returns`, `max_calls`, `pure`. With `num_returns = N` a function that returns a tuple of `N` values
/// gives a tuple of `N` references; a function that returns `Returns<T>` gives as many as `num_returns` says.
///
/// A function that returns `impl Iterator<Item = T>`, or a `Result` of it, gives an `ObjectRefStream<T>`. Its
/// options are `num_cpus` (0 by default), `num_gpus`, `memory_bytes`, `resources`, `name`, `max_retries` and
/// `unconsumed_max`.
#[proc_macro_attribute]
pub fn remote(attribute: TokenStream, item: TokenStream) -> TokenStream {
    let function = syn::parse_macro_input!(item as syn::ItemFn);
    let expanded = match stream_function::Items::of(&function.sig.output) {
        Some(items) => stream_function::expand(attribute.into(), &function, &items),
        None => remote_function::expand(attribute.into(), &function),
    };
    expanded.unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Makes a type an actor: a value that lives in a worker, and whose methods are called from anywhere.
///
/// It stands before an `impl` block with a constructor `fn new(..) -> Self` (or a `Result` of it) and methods
/// that take `&self` or `&mut self`. The block stays what it is. For a type `Counter`, `Counter::remote(..)`
/// constructs an actor somewhere and returns a `CounterHandle` at once, which has the same methods: each
/// returns an `ObjectRef` of what the method returns. The calls of one caller run in the order in which it
/// made them, one at a time. A handle can be cloned, given to tasks and stored in values. The actor ends when
/// the last handle is dropped and its calls are done.
///
/// Parameters are those of `#[remote]`: each takes a value of its type or a reference to one. A method that
/// is `async` runs to its end before the next one starts. Functions that are not to be called from elsewhere
/// stand in another `impl` block.
///
/// With `max_concurrency = N` up to N calls run at the same time, on threads, if the type is `Send` and
/// `Sync`: methods with `&self` beside each other, one with `&mut self` alone. `groups(io = 2)` gives methods
/// with `#[method(group = io)]` a limit and a queue of their own.
///
/// If the type implements `Checkpoint`, an actor that is started again continues from its last checkpoint.
/// With `checkpoint_every = N` every N-th call of a method with `&mut self` takes one.
///
/// Options in the attribute are defaults for all actors of the type: `num_cpus` (0 by default), `num_gpus`,
/// `memory_bytes`, `resources(name = amount)`, `name`, `max_restarts`, `max_task_retries`, `retry_on(A, B)`
/// or `retry_on = true` (the errors of methods that are retried), `max_pending_calls`, `allow_out_of_order`;
/// `Counter::options()` takes them for one actor, and its place.
#[proc_macro_attribute]
pub fn actor(attribute: TokenStream, item: TokenStream) -> TokenStream {
    actor_block::expand(attribute.into(), item.into()).unwrap_or_else(syn::Error::into_compile_error).into()
}

/// Lets plans of frames call a function, in every process of the program.
///
/// The function stays what it is: `f(x)` calls it here. Beside it stands a type of the same name with
/// `f::with(..)`, which binds its arguments for the methods of frames. The types of its first parameters say
/// what frames call it with:
///
/// | first parameters | called with | taken by |
/// |---|---|---|
/// | `Table`, `RecordBatch`, `DataFrame` | a chunk, or the rows of a group | `map_chunk`, `groupby(..).apply`, `Reduction` |
/// | two of these | a chunk of each of two frames | `cartesian_chunk` |
/// | `Row<'_>` | a row | `apply` |
/// | `Column` | the values of a column | `transform` |
/// | any other type, or an `Option` of it | a value | `Series::map` |
///
/// All other parameters are arguments of `with`: values of any types that serde can encode and that can be
/// cloned, or references to them. A function may return a `Result`; its error, or its panic, becomes that of
/// the frame, with the name of the function and the line that called it.
///
/// It must return the same for the same input: it may be called again, on another thread or node.
#[proc_macro_attribute]
pub fn function(attribute: TokenStream, item: TokenStream) -> TokenStream {
    frame_function::expand(&attribute.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Makes `main` the driver of the program, and lets the same program be a worker.
///
/// A process that a node started as worker enters the worker loop instead of the user's `main`. `main` may be
/// async and may return whatever a `main` may return.
#[proc_macro_attribute]
pub fn main(attribute: TokenStream, item: TokenStream) -> TokenStream {
    main_function::expand(&attribute.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
