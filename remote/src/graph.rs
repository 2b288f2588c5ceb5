//! Graphs of tasks: built here, task by task, and submitted at once.
//!
//! A graph that is being built is a few flat lists: a row for each task, the bytes of its arguments, and the
//! numbers of the tasks whose results it takes. What the calls of one function with the same options share is
//! a class that the node has already. So a graph of a million tasks is some tens of megabytes, which are sent
//! in parts, and no message of its own for each task.

use crate::call::Arguments;
use crate::classes::ClassUse;
use crate::client::Client;
use crate::codec::Gift;
use crate::current;
use crate::error::{Error, Result};
use crate::handles::{Handle, check_session};
use crate::planned::{Planned, PlannedArgument, PlannedResult};
use crate::reference::ObjectRef;
use crate::registry::{self, Definition};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tharsis_protos::records::{FromClient, PackedGraph};
use tharsis_types::graph::{
    GRAPH_INPUTS_MAX, GRAPH_PAYLOAD_BYTES_MAX, GRAPH_STEPS_MAX, GraphInput, GraphResult, GraphStep, step_task,
};
use tharsis_types::hash::IdMap;
use tharsis_types::limits::RECORD_BYTES_MAX;
use tharsis_types::{Dependency, ObjectId, RefId, TaskId};
use twox_hash::XxHash3_128;

/// Bytes of a part from which on it is sent: the node starts tasks of one part while the next is packed.
const PART_BYTES: usize = RECORD_BYTES_MAX / 2;

/// Tasks that are to be submitted together.
///
/// `f::add_to(&mut graph, ..)` adds a call of the remote function `f`, `f::options()..add_to(..)` one with
/// options. It returns the future result, which can be given to calls that are added later. Nothing runs
/// before [`TaskGraph::submit`], which keeps the results that it is told to keep; every other value is freed
/// when the last task that takes it has ended.
///
/// Of the tasks that are ready, those with a higher [`priority`](crate::Options::priority) start first; brief
/// ones may start a little before more urgent ones that need other resources.
#[derive(Default)]
pub struct TaskGraph {
    /// Tells its results from those of other graphs.
    serial: Serial,
    client: Option<Client>,
    steps: Vec<GraphStep>,
    inputs: Vec<GraphInput>,
    payload: Vec<u8>,
    references: Vec<RefId>,
    numbers: IdMap<ObjectId, u32>,
    /// Keeps the references until the graph is submitted.
    keep: Vec<Arc<Handle>>,
    /// Things inside arguments that have one owner: its tasks, once it is submitted. Until then, and if it
    /// never is, they belong to whoever gave them.
    given: Vec<Gift>,
    /// The classes of its tasks, whose numbers are sent when it is submitted.
    classes: BTreeMap<u32, ClassUse>,
    /// The function of each class, for the id of a graph of a task.
    functions: BTreeMap<u32, [u8; 16]>,
    /// The last function that was added without options, and its priority.
    last: Option<(usize, i32)>,
    /// The first thing that is wrong.
    problem: Option<Error>,
}

struct Serial(u64);

impl Default for Serial {
    fn default() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

impl fmt::Debug for TaskGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TaskGraph({} tasks, {} inputs)", self.steps.len(), self.inputs.len())
    }
}

impl TaskGraph {
    /// A graph without tasks.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Number of tasks that were added.
    #[must_use]
    pub fn len(&self) -> usize {
        self.steps.len()
    }

    /// Whether it has no tasks.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.steps.is_empty()
    }

    /// Submits all tasks, in one call. `results` are those to keep: a [`Planned`], an array, a slice, a `Vec`
    /// or a tuple of them, or `()`. Returns a reference for each, in the same form.
    ///
    /// The references are like those of ordinary calls. When every result was cancelled or is there already,
    /// the tasks of the graph that have not ended are cancelled with the last one.
    ///
    /// # Errors
    /// Nothing was submitted, and nothing stays behind: `InvalidArgument` for a graph without tasks, for one
    /// that is too large, for a result of another graph, and for options or arguments that are not valid;
    /// `InvalidReference` for an argument of another session; `Shutdown` or `Disconnected` without a node.
    /// The first error of the calls that added tasks comes here.
    pub fn submit<K: Keep>(self, results: K) -> Result<K::References> {
        let mut wanted = Vec::new();
        results.list(&mut wanted);
        let mut kept = Kept { handles: self.send(&wanted)?.into_iter() };
        results.take(&mut kept)
    }

    /// Submits it; the handles of results, in the given order.
    fn send(mut self, wanted: &[PlannedResult]) -> Result<Vec<Arc<Handle>>> {
        if let Some(problem) = self.problem.take() {
            return Err(problem);
        }
        let client = self.client.clone().ok_or_else(|| Error::argument("the graph has no tasks"))?;
        if let Some(foreign) = wanted.iter().find(|result| result.graph != self.serial.0) {
            return Err(other_graph(foreign));
        }
        let mut results: Vec<_> = wanted.iter().map(|result| (result.step, result.index)).collect();
        results.sort_unstable();
        results.dedup();
        let id = current::next_child(&client, || self.content());
        let owner = client.node();
        let output = |(step, index): &(u32, u32)| ObjectId::output(step_task(id, *step), *index);
        let references = results.iter().map(|result| RefId { object: output(result), owner });
        let handles: Vec<Arc<Handle>> = client.connection().pending(references);
        let token = |(at, (step, index)): (usize, &(u32, u32))| GraphResult {
            step: *step,
            index: *index,
            token: handles[at].token(),
        };
        self.send_parts(&client, id, results.iter().enumerate().map(token))?;
        Gift::send_all(&mut self.given);
        let at = |result: &PlannedResult| results.binary_search(&(result.step, result.index));
        let found = wanted.iter().filter_map(|result| at(result).ok());
        Ok(found.map(|at| Arc::clone(&handles[at])).collect())
    }

    fn send_parts(
        &self,
        client: &Client,
        graph: TaskId,
        results: impl Iterator<Item = GraphResult>,
    ) -> Result<()> {
        let run = current::run_beside_others(client);
        let (mut packed, mut results) = (PackedGraph::default(), results.peekable());
        let (mut first, mut references) = (0, self.references.iter().enumerate().peekable());
        let (mut inputs, mut payload) = (&self.inputs[..], &self.payload[..]);
        for (number, step) in (0..).zip(&self.steps) {
            let (own, rest) = inputs.split_at(step.input_count as usize);
            let (bytes, others) = payload.split_at(step.payload_bytes as usize);
            (inputs, payload) = (rest, others);
            // Those that no earlier step has named.
            let highest = own.iter().filter_map(GraphInput::reference).max();
            while let Some((_, reference)) =
                references.next_if(|(at, _)| highest.is_some_and(|max| *at <= max as usize))
            {
                packed.reference(reference);
            }
            packed.step(step, own, bytes);
            while let Some(result) = results.next_if(|result| result.step == number) {
                packed.result(&result);
            }
            let is_last = number as usize + 1 == self.steps.len();
            if is_last || PART_BYTES <= packed.len() {
                let (link, count) = (client.link(), u64::from(number + 1 - first));
                link.count_calls(count)?;
                link.send(&FromClient::Graph { run, graph, part: packed.view(first, is_last) })
                    .inspect_err(|_| link.uncount_calls(count))?;
                packed.clear();
                first = number + 1;
            }
        }
        Ok(())
    }

    /// Hash that distinguishes a graph from others of the same task.
    fn content(&self) -> u128 {
        let mut hash = XxHash3_128::new();
        for reference in &self.references {
            // Owners are left out: an object has another owner if its task ran again elsewhere.
            hash.write(&reference.object.to_bytes());
        }
        for step in &self.steps {
            hash.write(self.functions.get(&step.class).map_or(&[], |function| &function[..]));
            let numbers = [step.returns, step.payload_bytes, step.input_count, step.priority.cast_unsigned()];
            numbers.into_iter().for_each(|number| hash.write(&number.to_le_bytes()));
        }
        for GraphInput { source, index, parameter } in &self.inputs {
            hash.write(&source.to_le_bytes());
            hash.write(&(u32::from(*index) << 16 | u32::from(*parameter)).to_le_bytes());
        }
        hash.write(&self.payload);
        hash.finish_128()
    }
}

/// Building.
impl TaskGraph {
    /// The client that runs the graph: the one of the first task.
    pub(crate) fn client(&mut self) -> Result<Client> {
        match &self.client {
            Some(client) => Ok(client.clone()),
            None => Ok(self.client.insert(current::current()?).clone()),
        }
    }

    /// The priority of a function's calls without options.
    pub(crate) fn priority_of(&mut self, definition: &'static Definition) -> i32 {
        let address = std::ptr::from_ref(definition).addr();
        match self.last {
            Some((last, priority)) if last == address => priority,
            _ => self.last.insert((address, (definition.options)().priority)).1,
        }
    }

    /// A result of the task that is added next.
    pub(crate) fn next_result(&self, index: u32) -> PlannedResult {
        PlannedResult { graph: self.serial.0, step: self.steps.len() as u32, index }
    }

    /// Notes what is wrong with a task; the first thing counts.
    pub(crate) fn fail(&mut self, problem: Error) {
        self.problem.get_or_insert(problem);
    }

    /// Adds a task, whose arguments by value are in `frame`.
    pub(crate) fn add(
        &mut self,
        client: &Client,
        definition: &'static Definition,
        (step, class): (GraphStep, ClassUse),
        arguments: &mut Arguments,
        frame: &[u8],
    ) -> Result<()> {
        check_session(client.connection(), &arguments.keep)?;
        check_session(client.connection(), &arguments.encoded.keep)?;
        if let Some(foreign) = arguments.planned.iter().find(|planned| planned.result.graph != self.serial.0)
        {
            return Err(other_graph(&foreign.result));
        }
        let is_large = GRAPH_STEPS_MAX <= self.steps.len()
            || GRAPH_INPUTS_MAX <= self.inputs.len()
            || GRAPH_PAYLOAD_BYTES_MAX <= self.payload.len();
        if is_large {
            let text = format!(
                "the graph is too large: it may have {GRAPH_STEPS_MAX} tasks and {GRAPH_PAYLOAD_BYTES_MAX} bytes \
                 of arguments"
            );
            return Err(Error::argument(text));
        }
        let before = self.inputs.len();
        for dependency in &arguments.dependencies {
            let source = self.number(dependency.reference) | GraphInput::REFERENCE;
            self.inputs.push(GraphInput { source, index: 0, parameter: dependency.parameter });
        }
        for PlannedArgument { result, parameter } in arguments.planned.drain(..) {
            self.inputs.push(GraphInput { source: result.step, index: result.index as u16, parameter });
        }
        for reference in &arguments.encoded.nested {
            let source = self.number(*reference) | GraphInput::REFERENCE;
            self.inputs.push(GraphInput { source, index: 0, parameter: Dependency::NESTED });
        }
        self.keep.append(&mut arguments.keep);
        self.keep.append(&mut arguments.encoded.keep);
        self.given.append(&mut arguments.encoded.given);
        self.payload.extend_from_slice(frame);
        let input_count = (self.inputs.len() - before) as u32;
        self.steps.push(GraphStep { input_count, payload_bytes: frame.len() as u32, ..step });
        self.classes.entry(step.class).or_insert(class);
        self.functions.entry(step.class).or_insert_with(|| {
            let function = registry::of(definition);
            let mut bytes = [0; 16];
            bytes[..8].copy_from_slice(&function.id.0.to_le_bytes());
            bytes[8..].copy_from_slice(&function.signature.to_le_bytes());
            bytes
        });
        Ok(())
    }

    /// The number of a reference in the graph.
    fn number(&mut self, reference: RefId) -> u32 {
        let next = self.references.len() as u32;
        let number = *self.numbers.entry(reference.object).or_insert(next);
        if number == next {
            self.references.push(reference);
        }
        number
    }
}

fn other_graph(result: &PlannedResult) -> Error {
    Error::argument(format!("the result of task {} is of another graph", result.step))
}

/// The refusal of a result of a graph as the argument of an ordinary call.
pub(crate) fn not_submitted() -> Error {
    Error::argument(
        "the result of a task of a graph is an argument of tasks of that graph only: submit the graph",
    )
}

/// Results of a graph to keep.
pub trait Keep {
    /// References to them.
    type References;

    #[doc(hidden)]
    fn list(&self, wanted: &mut Vec<PlannedResult>);

    #[doc(hidden)]
    fn take(&self, kept: &mut Kept) -> Result<Self::References>;
}

/// The handles of the results of a submitted graph.
#[doc(hidden)]
pub struct Kept {
    handles: std::vec::IntoIter<Arc<Handle>>,
}

impl Kept {
    fn next<T>(&mut self) -> Result<ObjectRef<T>> {
        let handle = self.handles.next();
        handle.map(ObjectRef::new).ok_or_else(|| Error::internal("a result of a graph has no reference"))
    }
}

impl Keep for () {
    type References = ();

    fn list(&self, _: &mut Vec<PlannedResult>) {}

    fn take(&self, _: &mut Kept) -> Result<()> {
        Ok(())
    }
}

impl<T> Keep for Planned<T> {
    type References = ObjectRef<T>;

    fn list(&self, wanted: &mut Vec<PlannedResult>) {
        wanted.push(self.result);
    }

    fn take(&self, kept: &mut Kept) -> Result<ObjectRef<T>> {
        kept.next()
    }
}

impl<T> Keep for &[Planned<T>] {
    type References = Vec<ObjectRef<T>>;

    fn list(&self, wanted: &mut Vec<PlannedResult>) {
        wanted.extend(self.iter().map(|planned| planned.result));
    }

    fn take(&self, kept: &mut Kept) -> Result<Vec<ObjectRef<T>>> {
        self.iter().map(|_| kept.next()).collect()
    }
}

impl<T> Keep for Vec<Planned<T>> {
    type References = Vec<ObjectRef<T>>;

    fn list(&self, wanted: &mut Vec<PlannedResult>) {
        self.as_slice().list(wanted);
    }

    fn take(&self, kept: &mut Kept) -> Result<Vec<ObjectRef<T>>> {
        self.as_slice().take(kept)
    }
}

impl<T> Keep for &Vec<Planned<T>> {
    type References = Vec<ObjectRef<T>>;

    fn list(&self, wanted: &mut Vec<PlannedResult>) {
        self.as_slice().list(wanted);
    }

    fn take(&self, kept: &mut Kept) -> Result<Vec<ObjectRef<T>>> {
        self.as_slice().take(kept)
    }
}

impl<T, const N: usize> Keep for [Planned<T>; N] {
    type References = [ObjectRef<T>; N];

    fn list(&self, wanted: &mut Vec<PlannedResult>) {
        self.as_slice().list(wanted);
    }

    fn take(&self, kept: &mut Kept) -> Result<[ObjectRef<T>; N]> {
        let all = self.as_slice().take(kept)?;
        all.try_into().map_err(|_| Error::internal("a graph has other results than were kept"))
    }
}

macro_rules! keep_tuple {
    ($($name:ident: $at:tt),+) => {
        impl<$($name: Keep),+> Keep for ($($name,)+) {
            type References = ($($name::References,)+);

            fn list(&self, wanted: &mut Vec<PlannedResult>) {
                $(self.$at.list(wanted);)+
            }

            fn take(&self, kept: &mut Kept) -> Result<Self::References> {
                Ok(($(self.$at.take(kept)?,)+))
            }
        }
    };
}

keep_tuple!(A: 0);
keep_tuple!(A: 0, B: 1);
keep_tuple!(A: 0, B: 1, C: 2);
keep_tuple!(A: 0, B: 1, C: 2, D: 3);
