//! Calls of remote functions, and puts of values.
//!
//! The common part of all calls from one place with the same options is a *class*, sent once and named by a
//! number. The number is found by the addresses of the definition and of the call site in a small table of
//! the thread; only a call with its own options, or the first of a kind, takes a lock.
//!
//! A call itself never fails: its references return the errors of options, arguments and the connection.

use crate::actor::ActorHandle;
use crate::call::Arguments;
use crate::classes::{ClassKey, ClassUse};
use crate::client::Client;
use crate::codec::{Encoded, Gift};
use crate::current;
use crate::error::{Error, Result};
use crate::graph::{self, TaskGraph};
use crate::handles::{Connection, Handle, State, check_session};
use crate::options::{MAX_RETRIES_DEFAULT, Options};
use crate::planned::{Planned, PlannedResult};
use crate::reference::ObjectRef;
use crate::regions::Place;
use crate::registry::{self, Definition};
use serde::Serialize;
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::panic::Location;
use std::sync::Arc;
use tharsis_protos::records::{DependenciesView, FromClient, RefsView, TokensView, ValueView, pack};
use tharsis_types::limits::{DEPENDENCIES_MAX, INLINE_ARGS_BYTES_MAX, INLINE_BYTES_MAX, NAME_BYTES_MAX};
use tharsis_types::task::{CallRules, Role};
use tharsis_types::{Dependency, GraphStep, ObjectId, RefId, RetryOn, TaskClass};
use twox_hash::XxHash3_128;

/// A cached class of a call without its own options.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Remembered {
    client: u32,
    definition: usize,
    site: usize,
    class: u32,
}

/// Ids of values that tasks put contain a hash of the value up to this size.
const HASHED_BYTES_MAX: usize = 64 << 10;

const REMEMBERED_COUNT: usize = 64;
const NOTHING: Remembered = Remembered { client: 0, definition: 0, site: 0, class: 0 };

/// Most calls have one output: no allocation for it.
type Handles = SmallVec<[Arc<Handle>; 2]>;

thread_local! {
    static REMEMBERED: [Cell<Remembered>; REMEMBERED_COUNT] = const { [const { Cell::new(NOTHING) }; REMEMBERED_COUNT] };
    /// Taken while in use; a `Serialize` implementation that submits gets a new one.
    static ARGUMENTS: RefCell<Arguments> = RefCell::default();
    static FRAME: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) };
}

/// Claims a name for the first result of a call that is about to be sent.
type Claim<'a> = &'a mut dyn FnMut(RefId) -> Result<()>;

/// One call, made by generated code.
pub struct Call<'a> {
    /// The function.
    pub definition: &'static Definition,
    /// Options of this call; `None` takes those of the function.
    pub options: Option<Options>,
    /// The call site.
    pub site: &'static Location<'static>,
    /// Adds the arguments.
    pub arguments: &'a mut dyn FnMut(&mut Arguments) -> Result<()>,
}

impl Call<'_> {
    /// Calls a function that returns one value.
    #[must_use]
    pub fn one<T>(mut self) -> ObjectRef<T> {
        match self.submit(1) {
            Ok(handles) => {
                handles.into_iter().next().map_or_else(|| ObjectRef::failed(no_handle()), ObjectRef::new)
            }
            Err(error) => ObjectRef::failed(error),
        }
    }

    /// Calls the constructor of an actor.
    #[must_use]
    pub fn actor(self) -> ActorHandle {
        let options = self.options.clone().unwrap_or_else(|| (self.definition.options)());
        ActorHandle::new(self.one(), &options)
    }

    /// Calls a function that returns `N` values of any types.
    #[must_use]
    pub fn several<const N: usize>(mut self) -> [Output; N] {
        let mut handles = match self.submit(N as u32) {
            Ok(handles) => handles.into_iter(),
            Err(error) => return std::array::from_fn(|_| Output(Handle::failed(error.clone()))),
        };
        std::array::from_fn(|_| Output(handles.next().unwrap_or_else(|| Handle::failed(no_handle()))))
    }

    /// Calls a function that returns a number of values of one type, given in the options.
    #[must_use]
    pub fn many<T>(mut self) -> Vec<ObjectRef<T>> {
        let count = self.count();
        match self.submit(count) {
            Ok(handles) => handles.into_iter().map(ObjectRef::new).collect(),
            Err(error) => (0..count.max(1)).map(|_| ObjectRef::failed(error.clone())).collect(),
        }
    }

    /// Number of values of a function that returns as many as the options say.
    fn count(&self) -> u32 {
        let own = self.options.as_ref().and_then(|options| options.num_returns);
        own.or_else(|| (self.definition.options)().num_returns).unwrap_or(self.definition.returns)
    }

    /// As [`Call::one`], for an object whose name `claim` claims before the call is sent. Nothing is sent if
    /// that fails.
    pub(crate) fn one_claimed(mut self, claim: Claim<'_>) -> Result<ObjectRef<()>> {
        let handles = self.submit_claimed(1, Some(claim))?;
        handles.into_iter().next().map(ObjectRef::new).ok_or_else(no_handle)
    }

    /// Makes a call that returns one value; the handle of that value.
    ///
    /// # Errors
    /// Those of options and of the connection.
    pub(crate) fn made(mut self) -> Result<Arc<Handle>> {
        self.submit(1)?.into_iter().next().ok_or_else(no_handle)
    }

    fn submit(&mut self, returns: u32) -> Result<Handles> {
        self.submit_claimed(returns, None)
    }

    fn submit_claimed(&mut self, returns: u32, claim: Option<Claim<'_>>) -> Result<Handles> {
        let client = current::current()?;
        let role = self.definition.role;
        let group = self.options.as_mut().map(|options| options.take_group(role)).transpose()?.flatten();
        // It travels with the call: calls with names of their own are of one class.
        let name = self.options.as_mut().and_then(|options| options.name.take());
        let mut arguments = ARGUMENTS.take();
        arguments.clear();
        let begun = group.map_or(Ok(()), |group| arguments.push_group(&group));
        let outcome = begun.and_then(|()| (self.arguments)(&mut arguments)).and_then(|()| {
            let class = class_of(&client, self, returns)?;
            let name = name.as_deref().unwrap_or_default();
            let (definition, site) = (self.definition, self.site);
            let call = NamedCall { definition, class: class.number(), returns, site, name };
            send_call(&client, &call, &mut arguments, claim)
        });
        arguments.clear();
        ARGUMENTS.with_borrow_mut(|kept| *kept = arguments);
        outcome
    }
}

/// Calls that are added to graphs. What is wrong with one is the error of the graph.
impl Call<'_> {
    /// Adds a call of a function that returns one value.
    pub fn plan_one<T>(self, graph: &mut TaskGraph) -> Planned<T> {
        let [result] = self.plan_several(graph);
        result.typed()
    }

    /// Adds a call of a function that returns `N` values of any types.
    pub fn plan_several<const N: usize>(mut self, graph: &mut TaskGraph) -> [PlannedResult; N] {
        let results = std::array::from_fn(|index| graph.next_result(index as u32));
        self.plan(graph, N as u32);
        results
    }

    /// Adds a call of a function that returns a number of values of one type, given in the options.
    pub fn plan_many<T>(mut self, graph: &mut TaskGraph) -> Vec<Planned<T>> {
        let count = self.count();
        let results = (0..count).map(|index| graph.next_result(index).typed()).collect();
        self.plan(graph, count);
        results
    }

    fn plan(&mut self, graph: &mut TaskGraph, returns: u32) {
        let mut arguments = ARGUMENTS.take();
        arguments.clear();
        if let Err(problem) = self.try_plan(graph, returns, &mut arguments) {
            graph.fail(problem);
        }
        arguments.clear();
        ARGUMENTS.with_borrow_mut(|kept| *kept = arguments);
    }

    fn try_plan(&mut self, graph: &mut TaskGraph, returns: u32, arguments: &mut Arguments) -> Result<()> {
        let (client, definition) = (graph.client()?, self.definition);
        let priority = match &mut self.options {
            // It ranks the task within the graph, and is none of its class.
            Some(options) => std::mem::take(&mut options.priority),
            None => graph.priority_of(definition),
        };
        if self.options.is_none() && priority != 0 {
            self.options = Some((definition.options)().priority(0));
        }
        let group = self.options.as_mut().map(|options| options.take_group(definition.role)).transpose()?;
        group.flatten().map_or(Ok(()), |group| arguments.push_group(&group))?;
        (self.arguments)(arguments)?;
        let class = class_of(&client, self, returns)?;
        let mut frame = FRAME.take();
        let outcome = frame_arguments(&client, self.site, arguments, &mut frame).and_then(|whole| {
            if let Some(handle) = whole {
                arguments.encoded.nested.clear();
                arguments.keep.push(handle);
            }
            let number = class.number();
            let step = GraphStep { class: number, returns, payload_bytes: 0, input_count: 0, priority };
            graph.add(&client, definition, (step, class), arguments, &frame)
        });
        FRAME.with_borrow_mut(|kept| *kept = frame);
        outcome
    }
}

/// One of several results, before it has its type.
pub struct Output(Arc<Handle>);

impl Output {
    /// Gives it its type.
    #[must_use]
    pub fn typed<T>(self) -> ObjectRef<T> {
        ObjectRef::new(self.0)
    }
}

fn no_handle() -> Error {
    Error::internal("a call made no reference")
}

/// A call whose class the node knows.
struct NamedCall<'a> {
    definition: &'static Definition,
    class: u32,
    returns: u32,
    site: &'a Location<'a>,
    /// Its own name, or nothing.
    name: &'a str,
}

fn send_call(
    client: &Client,
    call: &NamedCall<'_>,
    arguments: &mut Arguments,
    claim: Option<Claim<'_>>,
) -> Result<Handles> {
    let NamedCall { definition, class, returns, site, name } = *call;
    check_session(client.connection(), &arguments.keep)?;
    check_session(client.connection(), &arguments.encoded.keep)?;
    if !arguments.planned.is_empty() {
        return Err(graph::not_submitted());
    }
    let mut frame = FRAME.take();
    let whole = frame_arguments(client, site, arguments, &mut frame)?;
    let task = current::next_child(client, || content_of_call(definition, returns, &mut frame, arguments));
    // Before the claim: what has the name is to be known soon after.
    client.link().count_calls(1)?;
    if let Some(claim) = claim {
        let object = RefId { object: ObjectId::output(task, 0), owner: client.node() };
        claim(object).inspect_err(|_| client.link().uncount_calls(1))?;
    }
    let handles = new_handles(client, task, returns);
    let tokens: SmallVec<[u8; 64]> = handles.iter().flat_map(|h| h.token().to_le_bytes()).collect();
    let dependencies = pack::dependencies(&arguments.dependencies);
    let nested = match whole {
        None => pack::references(&arguments.encoded.nested),
        Some(_) => Vec::new(),
    };
    let record = FromClient::Submit {
        run: current::run_beside_others(client),
        class,
        task,
        tokens: TokensView::new(&tokens).map_err(malformed)?,
        payload: &frame,
        dependencies: DependenciesView::new(&dependencies).map_err(malformed)?,
        nested: RefsView::new(&nested).map_err(malformed)?,
        name,
    };
    let sent = client.link().send(&record);
    FRAME.with_borrow_mut(|kept| *kept = frame);
    match sent {
        Ok(()) => Gift::send_all(&mut arguments.encoded.given),
        Err(error) => {
            client.link().uncount_calls(1);
            let failure = error.into_shared();
            handles.iter().for_each(|handle| handle.fail(&failure));
        }
    }
    Ok(handles)
}

/// Writes the arguments by value. Those too large for a record become one object, which is returned; it lives
/// as long as the task needs it.
fn frame_arguments(
    client: &Client,
    site: &Location<'_>,
    arguments: &mut Arguments,
    frame: &mut Vec<u8>,
) -> Result<Option<Arc<Handle>>> {
    let layout = arguments.encoded.layout()?;
    frame.clear();
    let mut whole = None;
    if layout.total_len() <= INLINE_ARGS_BYTES_MAX {
        layout.push_frame(&arguments.encoded.in_band, &arguments.encoded.buffers, frame);
    } else {
        let handle = put_encoded(client, arguments, site)?;
        arguments
            .dependencies
            .push(Dependency { reference: handle.reference(), parameter: Dependency::WHOLE });
        whole = Some(handle);
    }
    let count = arguments.dependencies.len() + arguments.planned.len();
    if DEPENDENCIES_MAX < count {
        let text = format!("{count} references as arguments, the limit is {DEPENDENCIES_MAX}");
        return Err(Error::argument(text));
    }
    Ok(whole)
}

fn malformed(bad: tharsis_protos::records::BadRecord) -> Error {
    Error::internal(bad.to_string())
}

fn new_handles(client: &Client, task: tharsis_types::TaskId, returns: u32) -> Handles {
    let owner = client.node();
    let references = (0..returns).map(|index| RefId { object: ObjectId::output(task, index), owner });
    client.connection().pending(references)
}

/// Puts a value into the store.
///
/// # Errors
/// `InvalidArgument` if it cannot be encoded, `InvalidReference` for a reference of another session inside
/// it, `StoreFull` or `ObjectTooLarge` if the store has no room for it, `Shutdown` without a runtime.
#[track_caller]
pub fn put<T: Serialize>(value: &T) -> Result<ObjectRef<T>> {
    let site = Location::caller();
    let client = current::current()?;
    let mut arguments = ARGUMENTS.take();
    arguments.clear();
    let outcome = arguments.encoded.push(value).and_then(|()| put_encoded(&client, &arguments, site));
    if outcome.is_ok() {
        Gift::send_all(&mut arguments.encoded.given);
    }
    arguments.clear();
    ARGUMENTS.with_borrow_mut(|kept| *kept = arguments);
    outcome.map(ObjectRef::new)
}

/// Hash that distinguishes a call of a task from its other calls: function, number of results, arguments.
/// `frame` is unchanged afterwards.
fn content_of_call(
    definition: &'static Definition,
    returns: u32,
    frame: &mut Vec<u8>,
    arguments: &Arguments,
) -> u128 {
    let payload_len = frame.len();
    let function = registry::of(definition);
    frame.extend_from_slice(&function.id.0.to_le_bytes());
    frame.extend_from_slice(&function.signature.to_le_bytes());
    frame.extend_from_slice(&returns.to_le_bytes());
    // Owners are left out: an object has another owner if its task ran again elsewhere.
    for dependency in &arguments.dependencies {
        frame.extend_from_slice(&dependency.parameter.to_le_bytes());
        frame.extend_from_slice(&dependency.reference.object.to_bytes());
    }
    frame.extend_from_slice(&(payload_len as u64).to_le_bytes());
    let content = XxHash3_128::oneshot(frame);
    frame.truncate(payload_len);
    content
}

/// Hash that distinguishes a value from others; `None` for a large one, for which hashing costs more than it
/// saves.
fn content_of_value(encoded: &Encoded, len: usize) -> Option<u128> {
    if HASHED_BYTES_MAX < len {
        return None;
    }
    let parts = std::iter::once(&encoded.in_band[..]).chain(encoded.buffers.iter().map(|b| &b[..]));
    let hashes: SmallVec<[u8; 64]> =
        parts.flat_map(|part| XxHash3_128::oneshot(part).to_le_bytes()).collect();
    Some(XxHash3_128::oneshot(&hashes))
}

/// Writes an encoded value to the store, or sends it in the record if it is small.
fn put_encoded(client: &Client, arguments: &Arguments, site: &Location<'_>) -> Result<Arc<Handle>> {
    let encoded = &arguments.encoded;
    check_session(client.connection(), &encoded.keep)?;
    let layout = encoded.layout()?;
    let object = current::next_put(client, || content_of_value(encoded, layout.total_len()));
    let reference = RefId { object, owner: client.node() };
    let nested = pack::references(&encoded.nested);
    let nested = RefsView::new(&nested).map_err(malformed)?;
    if layout.total_len() <= INLINE_BYTES_MAX {
        let mut frame = Vec::with_capacity(layout.total_len());
        layout.push_frame(&encoded.in_band, &encoded.buffers, &mut frame);
        let frame = frame.into_boxed_slice();
        let handle = client.connection().handle(reference, State::Inline(frame.clone()));
        let value = ValueView::Inline(&frame);
        client.link().send(&FromClient::Put { token: handle.token(), object, value, nested, site: "" })?;
        return Ok(handle);
    }
    let Connection { link, regions, .. } = &**client.connection();
    let written = regions.write_frame(link, &encoded.in_band, &encoded.buffers, &layout)?;
    let handle = client.connection().handle(reference, State::local(written.extent));
    let value = ValueView::Local(written.extent);
    let site = format!("{}:{}", site.file(), site.line());
    client.link().send(&FromClient::Put { token: handle.token(), object, value, nested, site: &site })?;
    Ok(handle)
}

/// The class of a call, which is defined if it is new.
fn class_of(client: &Client, call: &mut Call<'_>, returns: u32) -> Result<ClassUse> {
    let definition = std::ptr::from_ref(call.definition).addr();
    let site = std::ptr::from_ref(call.site).addr();
    let client_serial = client.link().serial;
    if call.options.is_none() {
        let known = REMEMBERED.with(|table| table[place_of(definition, site)].get());
        if (known.client, known.definition, known.site) == (client_serial, definition, site) {
            return Ok(ClassUse::plain(known.class));
        }
    }
    let options = call.options.take();
    let is_plain = options.is_none();
    let key = ClassKey { definition, site, options };
    let class = client.classes().class(key, |key, number| define(client, key, number, call, returns))?;
    if is_plain {
        let known = Remembered { client: client_serial, definition, site, class: class.number() };
        REMEMBERED.with(|table| table[place_of(definition, site)].set(known));
    }
    Ok(class)
}

fn place_of(definition: usize, site: usize) -> usize {
    // Both are addresses of aligned statics: fold the bits that differ.
    ((definition >> 4) ^ (site >> 3) ^ (site >> 9)) % REMEMBERED_COUNT
}

/// Tells the node of a class.
fn define(client: &Client, key: &ClassKey, number: u32, call: &Call<'_>, returns: u32) -> Result<()> {
    let defaults;
    let options = match &key.options {
        Some(options) => options,
        None => {
            defaults = (call.definition.options)();
            &defaults
        }
    };
    if let Some(problem) = &options.problem {
        return Err(Error::argument(format!("{}: {problem}", call.definition.path())));
    }
    if options.detached && client.link().is_worker {
        let text = "a detached actor or placement group is created by a driver: others end with their job";
        return Err(Error::argument(format!("{}: {text}", call.definition.path())));
    }
    let class = task_class(client, options, call, returns);
    class.check().map_err(|bad| Error::argument(format!("{}: {bad}", class.function_name)))?;
    let encoded = postcard::to_allocvec(&class).map_err(|error| Error::internal(error.to_string()))?;
    client.link().send(&FromClient::DefineClass { class: number, definition: &encoded })
}

fn task_class(client: &Client, options: &Options, call: &Call<'_>, returns: u32) -> TaskClass {
    let function = registry::of(call.definition);
    let path = call.definition.path();
    let role = call.definition.role;
    let max_retries = match role {
        Role::Task => MAX_RETRIES_DEFAULT,
        Role::Constructor | Role::Method => 0,
    };
    TaskClass {
        job: client.job(),
        function: function.id,
        signature: function.signature,
        name: options.name.as_ref().map_or_else(|| cut_to_name(&path), String::clone),
        function_name: path,
        call_site: format!("{}:{}", call.site.file(), call.site.line()),
        resources: options.resources(role),
        priority: options.priority,
        returns,
        max_retries: options.max_retries.unwrap_or(max_retries),
        retry_on: match role {
            // The errors of an actor are those of its methods.
            Role::Constructor => RetryOn::Nothing,
            Role::Task | Role::Method => options.retry_on.clone(),
        },
        timeout_ms: options.timeout_ms,
        max_calls: options.max_calls,
        pure: options.pure,
        placement: options.placement.clone(),
        role,
        calls: call_rules(options, call),
        detached: options.detached,
        shared_process: options.shared_process,
    }
}

/// A path as a name, for a call without one.
fn cut_to_name(path: &str) -> String {
    path[..path.floor_char_boundary(NAME_BYTES_MAX)].to_owned()
}

/// Rules by which the calls of a class stand in line.
fn call_rules(options: &Options, call: &Call<'_>) -> CallRules {
    match call.definition.role {
        Role::Task | Role::Constructor => CallRules::default(),
        Role::Method => CallRules {
            group: call.definition.group,
            concurrent: !call.definition.groups.is_empty(),
            limit: call.definition.groups.get(usize::from(call.definition.group)).copied().unwrap_or(0),
            out_of_order: options.out_of_order,
            max_pending: options.max_pending_calls,
        },
    }
}

impl Place {
    /// Takes a place for a number of bytes from the current client; its contents are unspecified.
    ///
    /// # Errors
    /// `Shutdown` without a client, `StoreFull` or `ObjectTooLarge` from the node.
    pub fn take(bytes: usize) -> Result<Place> {
        let client = current::current()?;
        let Connection { link, regions, .. } = &**client.connection();
        regions.take_place(link, bytes)
    }
}
