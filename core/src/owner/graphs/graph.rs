//! One graph: its steps, their inputs and outputs, in flat lists.

use super::{Member, Submitter};
use crate::owner::{Class, Object};
use crate::slab::Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;
use tharsis_types::graph::{
    GRAPH_INPUTS_MAX, GRAPH_PAYLOAD_BYTES_MAX, GRAPH_STEPS_MAX, GraphInput, GraphPart, GraphStep, step_task,
};
use tharsis_types::limits::RETURNS_MAX;
use tharsis_types::{ClientId, Failure, RefId, SmallBytes, TaskId};

/// Outputs of all steps of one graph.
const OUTPUTS_MAX: usize = 1 << 28;
/// No further item in a list of inputs.
const NONE: u32 = u32::MAX;

/// A submitted graph.
#[derive(Debug)]
pub struct Graph {
    id: TaskId,
    submitter: Submitter,
    is_open: bool,
    is_stopped: bool,
    /// Steps that have not ended.
    left: usize,
    steps: Vec<Step>,
    inputs: Vec<Input>,
    outputs: Vec<Output>,
    payload: Vec<u8>,
    references: Vec<(RefId, Output)>,
    /// Steps with results that are neither there nor cancelled.
    wanted: BTreeSet<u32>,
    /// Failures of steps, for those that take them and come later; empty once the graph is closed.
    failed: BTreeMap<u32, Arc<Failure>>,
    /// Results of a graph of a task: they stay until the graph is over, in case the task runs again.
    held: Vec<Slot<Object>>,
    /// Clients that submit the same graph again and have not sent all its parts.
    sharers: Vec<ClientId>,
}

#[derive(Clone, Copy, Debug)]
struct Step {
    class: Option<Slot<Class>>,
    payload_end: u32,
    inputs_end: u32,
    first_output: u32,
    priority: i32,
    /// The last input that was entered that takes an output of this step.
    last_consumer: u32,
    state: State,
}

/// The steps of a graph by state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepTally {
    /// Those that wait for results of others.
    pub waiting: usize,
    /// Those that are tasks: queued, sent or running.
    pub tasks: usize,
    /// Those that have returned.
    pub ended: usize,
    /// Those that have failed.
    pub failed: usize,
}

/// Stages of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// So many inputs have no value yet.
    Waits(u32),
    /// An input failed, and the step has no task that could fail.
    Doomed,
    /// It is a task.
    Task,
    Ended,
    Failed,
}

#[derive(Clone, Copy, Debug)]
struct Input {
    given: GraphInput,
    /// The step that takes it.
    consumer: u32,
    /// The input that was entered before it and takes an output of the same step.
    next: u32,
}

/// An output of a step, or a reference.
#[derive(Clone, Copy, Debug, Default)]
struct Output {
    /// Its entry, of which the graph has one use.
    slot: Option<Slot<Object>>,
    /// Inputs that take it and are of steps that are not tasks yet.
    left: u32,
}

/// An input that a step takes: its entry, if the graph still has it, and the reference.
#[derive(Clone, Copy, Debug)]
pub(in crate::owner) struct Consumed {
    pub(in crate::owner) object: Option<Slot<Object>>,
    /// The reference as it was submitted; none for the output of a step.
    pub(in crate::owner) reference: Option<RefId>,
    /// Whether the graph gives up its use.
    pub(in crate::owner) is_last: bool,
}

impl Graph {
    pub(super) fn new(id: TaskId, submitter: Submitter) -> Self {
        Self {
            id,
            submitter,
            is_open: true,
            is_stopped: false,
            left: 0,
            steps: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            payload: Vec::new(),
            references: Vec::new(),
            wanted: BTreeSet::new(),
            failed: BTreeMap::new(),
            held: Vec::new(),
            sharers: Vec::new(),
        }
    }

    pub(in crate::owner) fn id(&self) -> TaskId {
        self.id
    }

    pub(in crate::owner) fn submitter(&self) -> Submitter {
        self.submitter
    }

    /// Whether a client sends the parts of this graph: it is not another submission of the same.
    pub(in crate::owner) fn awaits_part_of(&self, client: ClientId) -> bool {
        self.is_open && self.submitter.client == client
    }

    pub(in crate::owner) fn is_stopped(&self) -> bool {
        self.is_stopped
    }

    /// The reason why the next part cannot be one of this graph.
    pub(in crate::owner) fn refuse(&self, part: &GraphPart) -> Result<(), &'static str> {
        part.check()?;
        if part.first as usize != self.steps.len() {
            return Err("a part of the graph is missing");
        }
        let returns: usize = part.steps.iter().map(|step| step.returns as usize).sum();
        let is_large = GRAPH_STEPS_MAX < self.steps.len() + part.steps.len()
            || GRAPH_INPUTS_MAX < self.inputs.len() + part.inputs.len()
            || GRAPH_INPUTS_MAX < self.references.len() + part.references.len()
            || GRAPH_PAYLOAD_BYTES_MAX < self.payload.len() + part.payload.len()
            || OUTPUTS_MAX < self.outputs.len() + returns;
        if is_large {
            return Err("the graph is too large");
        }
        if !part.steps.iter().all(|step| (1..=RETURNS_MAX).contains(&step.returns)) {
            return Err("a task of the graph has no result, or too many");
        }
        let returns_of = |step: u32| match step.checked_sub(part.first) {
            Some(at) => part.steps[at as usize].returns,
            None => self.outputs(step).len() as u32,
        };
        let reference_count = self.references.len() + part.references.len();
        let is_known = |input: &GraphInput| match input.reference() {
            Some(number) => (number as usize) < reference_count,
            None => u32::from(input.index) < returns_of(input.source) && input.is_argument(),
        };
        let are_known = part.inputs.iter().all(is_known)
            && part.results.iter().all(|result| result.index < returns_of(result.step));
        are_known.then_some(()).ok_or("the graph names an object that it does not have")
    }

    /// Makes room for a part, and takes its arguments.
    pub(in crate::owner) fn take_part(&mut self, part: &GraphPart, references: Vec<Option<Slot<Object>>>) {
        self.steps.reserve(part.steps.len());
        self.inputs.reserve(part.inputs.len());
        self.payload.extend_from_slice(&part.payload);
        let outputs = references.into_iter().map(|slot| Output { slot, left: 0 });
        self.references.extend(part.references.iter().copied().zip(outputs));
    }

    /// Enters the next step. Returns its number, the inputs that it waits for, and the first of them that has
    /// failed.
    pub(in crate::owner) fn add_step(
        &mut self,
        class: Option<Slot<Class>>,
        given: &GraphStep,
        inputs: &[GraphInput],
    ) -> (u32, u32, Option<(u16, Arc<Failure>)>) {
        let number = self.steps.len() as u32;
        let (mut missing, mut failed) = (0, None);
        for input in inputs {
            self.output_mut(input).left += 1;
            let mut next = NONE;
            if input.reference().is_none() {
                let at = self.inputs.len() as u32;
                let source = &mut self.steps[input.source as usize];
                match source.state {
                    State::Ended => {}
                    State::Failed => {
                        let failure = self.failed.get(&input.source).cloned();
                        failed = failed.or_else(|| failure.map(|failure| (input.parameter, failure)));
                    }
                    State::Waits(_) | State::Doomed | State::Task => {
                        next = std::mem::replace(&mut source.last_consumer, at);
                        missing += 1;
                    }
                }
            }
            self.inputs.push(Input { given: *input, consumer: number, next });
        }
        let before = self.steps.last().map_or(0, |step| step.payload_end);
        self.steps.push(Step {
            class,
            payload_end: before + given.payload_bytes,
            inputs_end: self.inputs.len() as u32,
            first_output: self.outputs.len() as u32,
            priority: given.priority,
            last_consumer: NONE,
            state: State::Waits(missing),
        });
        self.outputs.extend((0..given.returns).map(|_| Output::default()));
        self.left += 1;
        (number, missing, failed)
    }

    /// The last part has come. Returns the entries that no step takes, and that are not awaited.
    pub(in crate::owner) fn close(&mut self) -> Vec<Slot<Object>> {
        self.is_open = false;
        self.failed = BTreeMap::new();
        let mut unused = Vec::new();
        for (_, output) in &mut self.references {
            unused.extend(output.slot.take_if(|_| output.left == 0));
        }
        for step in 0..self.steps.len() as u32 {
            self.release_outputs(step, &mut unused);
        }
        unused
    }

    /// Takes the outputs of an ended step that no step takes any more.
    pub(in crate::owner) fn release_outputs(&mut self, step: u32, unused: &mut Vec<Slot<Object>>) {
        let is_over = matches!(self.steps[step as usize].state, State::Ended | State::Failed);
        if self.is_open || !is_over {
            return;
        }
        for at in self.outputs(step) {
            let output = &mut self.outputs[at];
            unused.extend(output.slot.take_if(|_| output.left == 0 || self.is_stopped));
        }
    }

    /// No step starts any more. Returns the number of steps that waited without a task, which have failed
    /// now, and the entries that are not used any more.
    pub(super) fn stop(&mut self) -> (usize, Vec<Slot<Object>>) {
        (self.is_stopped, self.is_open) = (true, false);
        self.failed = BTreeMap::new();
        self.sharers = Vec::new();
        let mut count = 0;
        for step in 0..self.steps.len() as u32 {
            if self.has_task(step) || !matches!(self.steps[step as usize].state, State::Waits(_)) {
                continue;
            }
            self.steps[step as usize].state = State::Failed;
            self.left -= 1;
            count += 1;
        }
        let mut unused: Vec<_> =
            self.references.iter_mut().filter_map(|(_, output)| output.slot.take()).collect();
        (0..self.steps.len() as u32).for_each(|step| self.release_outputs(step, &mut unused));
        (count, unused)
    }

    /// Whether all its steps have ended, and nobody sends further parts.
    pub(super) fn is_over(&self) -> bool {
        self.left == 0 && !self.is_open && self.sharers.is_empty()
    }

    /// The results that it has held for another run of its submitter.
    pub(super) fn into_held(self) -> Vec<Slot<Object>> {
        self.held
    }

    /// The clients that have parts of it still to send: its submitter, and those that submit it again.
    pub(super) fn senders(&self) -> impl Iterator<Item = ClientId> {
        let submitter = self.is_open.then_some(self.submitter.client);
        submitter.into_iter().chain(self.sharers.iter().copied())
    }

    /// Whether a client has parts of it still to send.
    pub(super) fn is_sent_by(&self, client: ClientId) -> bool {
        self.senders().any(|sender| sender == client)
    }

    /// A client submits the same graph again; with its last part it is done.
    pub(super) fn shared_with(&mut self, client: ClientId, is_last: bool) {
        self.sharers.retain(|known| *known != client);
        if !is_last {
            self.sharers.push(client);
        }
    }

    /// A client is gone. Whether that leaves the graph without parts that nobody else sends, or over.
    pub(super) fn forget_client(&mut self, client: ClientId) -> bool {
        let was_shared = self.sharers.contains(&client);
        self.sharers.retain(|known| *known != client);
        self.awaits_part_of(client) || (was_shared && self.is_over())
    }
}

/// For people.
impl Graph {
    /// Counts its steps by state; looks at each once.
    pub(in crate::owner) fn tally(&self) -> StepTally {
        let mut tally = StepTally::default();
        for step in &self.steps {
            let count = match step.state {
                State::Waits(_) | State::Doomed => &mut tally.waiting,
                State::Task => &mut tally.tasks,
                State::Ended => &mut tally.ended,
                State::Failed => &mut tally.failed,
            };
            *count += 1;
        }
        tally
    }

    /// Whether parts of it are still to come.
    pub(in crate::owner) fn is_open(&self) -> bool {
        self.is_open
    }
}

/// Steps.
impl Graph {
    /// The task of a step.
    pub(in crate::owner) fn task(&self, step: u32) -> TaskId {
        step_task(self.id, step)
    }

    /// The classes of its steps.
    pub(super) fn classes(&self) -> impl Iterator<Item = Slot<Class>> {
        self.steps.iter().filter_map(|step| step.class)
    }

    /// Number of its steps.
    pub(super) fn step_count(&self) -> usize {
        self.steps.len()
    }

    pub(in crate::owner) fn class(&self, step: u32) -> Option<Slot<Class>> {
        self.steps[step as usize].class
    }

    pub(in crate::owner) fn priority(&self, step: u32) -> i32 {
        self.steps[step as usize].priority
    }

    /// Its arguments by value.
    pub(in crate::owner) fn payload(&self, step: u32) -> SmallBytes {
        let start = self.before(step).map_or(0, |before| before.payload_end);
        let range = start as usize..self.steps[step as usize].payload_end as usize;
        self.payload[range].into()
    }

    /// Places of its inputs.
    pub(in crate::owner) fn inputs(&self, step: u32) -> Range<usize> {
        let start = self.before(step).map_or(0, |before| before.inputs_end);
        start as usize..self.steps[step as usize].inputs_end as usize
    }

    /// Number of its outputs.
    pub(in crate::owner) fn returns(&self, step: u32) -> u32 {
        self.outputs(step).len() as u32
    }

    /// The entry of its first output, if there is one yet.
    pub(in crate::owner) fn first_output(&self, step: u32) -> Option<Slot<Object>> {
        self.outputs[self.steps[step as usize].first_output as usize].slot
    }

    /// Whether it has entries of outputs: it is a task, or a result is kept.
    pub(in crate::owner) fn has_task(&self, step: u32) -> bool {
        self.first_output(step).is_some()
    }

    /// Notes the entries of its outputs, of each of which the graph has a use now.
    pub(in crate::owner) fn set_outputs(&mut self, step: u32, slots: &[Slot<Object>]) {
        let places = self.outputs(step);
        assert_eq!(places.len(), slots.len(), "step {step} of {} has other outputs", self.id);
        for (at, slot) in places.zip(slots) {
            let before = self.outputs[at].slot.replace(*slot);
            assert!(before.is_none(), "an output of step {step} of {} is entered twice", self.id);
        }
    }

    /// A result of a step is kept by the submitter.
    pub(in crate::owner) fn keeps(&mut self, step: u32) {
        self.wanted.insert(step);
    }

    /// Holds a result until the graph is over; the caller counts the use.
    pub(in crate::owner) fn hold(&mut self, slot: Slot<Object>) {
        self.held.push(slot);
    }

    /// A result was cancelled. Whether none is left that anybody waits for.
    pub(in crate::owner) fn cancelled(&mut self, step: u32) -> bool {
        self.wanted.remove(&step) && self.wanted.is_empty() && !self.is_open && !self.is_stopped
    }

    /// Whether a step waits for inputs.
    pub(in crate::owner) fn waits(&self, step: u32) -> bool {
        matches!(self.steps[step as usize].state, State::Waits(_))
    }

    /// An input of a step has its value; whether it was the last.
    pub(in crate::owner) fn arrived(&mut self, step: u32) -> bool {
        match &mut self.steps[step as usize].state {
            State::Waits(missing) => {
                assert!(0 < *missing, "step {step} of {} waits for nothing", self.id);
                *missing -= 1;
                *missing == 0
            }
            // Another input has failed before.
            _ => false,
        }
    }

    /// A step that waits without a task fails.
    pub(in crate::owner) fn doom(&mut self, step: u32) {
        assert!(self.waits(step) && !self.has_task(step), "step {step} of {} does not wait", self.id);
        self.steps[step as usize].state = State::Doomed;
    }

    /// A step is a task now.
    pub(in crate::owner) fn started(&mut self, step: u32) {
        assert!(self.waits(step), "step {step} of {} does not wait", self.id);
        self.steps[step as usize].state = State::Task;
    }

    /// A step has ended. Returns whether its inputs were not consumed.
    pub(in crate::owner) fn end(&mut self, step: u32, failure: Option<&Arc<Failure>>) -> bool {
        let state = &mut self.steps[step as usize].state;
        let before = *state;
        assert!(!matches!(before, State::Ended | State::Failed), "step {step} of {} ends twice", self.id);
        *state = if failure.is_some() { State::Failed } else { State::Ended };
        self.left -= 1;
        self.wanted.remove(&step);
        if let Some(failure) = failure.filter(|_| self.is_open) {
            self.failed.insert(step, failure.clone());
        }
        before != State::Task && !self.is_stopped
    }

    /// The inputs that take an output of a step, as places, in their order.
    pub(in crate::owner) fn consumers(&self, step: u32) -> smallvec::SmallVec<[u32; 8]> {
        let mut at = self.steps[step as usize].last_consumer;
        let mut all = smallvec::SmallVec::new();
        while at != NONE {
            all.push(at);
            at = self.inputs[at as usize].next;
        }
        all.reverse();
        all
    }

    /// The step that takes an input, and its parameter.
    pub(in crate::owner) fn consumer(&self, input: u32) -> (u32, u16) {
        let input = &self.inputs[input as usize];
        (input.consumer, input.given.parameter)
    }

    /// Parameter of an input.
    pub(in crate::owner) fn parameter(&self, input: usize) -> u16 {
        self.inputs[input].given.parameter
    }

    /// A step takes an input, or will never take it.
    pub(in crate::owner) fn consume(&mut self, input: usize) -> Consumed {
        let given = self.inputs[input].given;
        let (is_open, is_stopped) = (self.is_open, self.is_stopped);
        let is_there = match given.reference() {
            Some(_) => true,
            None => matches!(self.steps[given.source as usize].state, State::Ended | State::Failed),
        };
        let reference = given.reference().map(|number| self.references[number as usize].0);
        let output = self.output_mut(&given);
        assert!(0 < output.left, "an output is taken more often than it has takers");
        output.left -= 1;
        let is_last = output.left == 0 && !is_open && is_there && !is_stopped;
        let object = output.slot;
        if is_last {
            output.slot = None;
        }
        Consumed { object, reference, is_last }
    }

    fn before(&self, step: u32) -> Option<&Step> {
        self.steps.get((step as usize).checked_sub(1)?)
    }

    fn outputs(&self, step: u32) -> Range<usize> {
        let end =
            self.steps.get(step as usize + 1).map_or(self.outputs.len(), |next| next.first_output as usize);
        self.steps[step as usize].first_output as usize..end
    }

    fn output_mut(&mut self, input: &GraphInput) -> &mut Output {
        match input.reference() {
            Some(number) => &mut self.references[number as usize].1,
            None => {
                let first = self.steps[input.source as usize].first_output;
                &mut self.outputs[first as usize + usize::from(input.index)]
            }
        }
    }
}

/// Lists, and checks.
impl Graph {
    /// Tasks of steps that have not ended, by an entry of each: those that wait, and the others.
    pub(in crate::owner) fn unfinished(&self) -> impl Iterator<Item = (u32, Slot<Object>)> {
        let all = (0..self.steps.len() as u32).zip(&self.steps);
        let lives = all.filter(|(_, step)| matches!(step.state, State::Waits(_) | State::Task));
        lives.filter_map(|(number, _)| Some((number, self.first_output(number)?)))
    }

    pub(super) fn uses(&self) -> impl Iterator<Item = Slot<Object>> {
        let references = self.references.iter().map(|(_, output)| output);
        references.chain(&self.outputs).filter_map(|output| output.slot).chain(self.held.iter().copied())
    }

    /// Asserts that counts match the steps; returns the number of those that wait and have no task.
    pub(super) fn check(&self) -> usize {
        let states = || self.steps.iter().map(|step| step.state);
        let is_over = |state: &State| matches!(state, State::Ended | State::Failed);
        assert_eq!(
            states().filter(|s| !is_over(s)).count(),
            self.left,
            "steps of {} are miscounted",
            self.id
        );
        assert!(!self.is_over(), "graph {} is over and stays", self.id);
        assert!(states().all(|s| s != State::Doomed), "a step of {} is doomed and lives", self.id);
        let mut count = 0;
        for number in 0..self.steps.len() as u32 {
            match self.steps[number as usize].state {
                State::Waits(_) if self.has_task(number) => {}
                State::Waits(missing) => {
                    assert!(
                        0 < missing && !self.is_stopped,
                        "step {number} of {} waits for nothing",
                        self.id
                    );
                    count += 1;
                }
                State::Task => assert!(self.has_task(number), "step {number} of {} has no task", self.id),
                State::Doomed | State::Ended | State::Failed => {}
            }
        }
        count
    }

    /// Asserts that a task is that of a step that has one.
    pub(in crate::owner) fn check_member(&self, member: Member, task: TaskId) {
        assert_eq!(self.task(member.step), task, "a task names another step");
        let state = self.steps[member.step as usize].state;
        assert!(matches!(state, State::Waits(_) | State::Task), "{task} lives and its step has ended");
    }
}
