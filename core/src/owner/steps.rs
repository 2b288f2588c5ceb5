//! Graphs of tasks: parts that are submitted, steps that become tasks, end, fail and are cancelled.
//!
//! [`super::graphs`] owns the steps; this file carries a change of one on to tasks, objects and queues. A
//! task of a graph names its step, so its end comes here ([`Owner::step_ended`]): the steps that took its
//! outputs and wait for nothing else become tasks, or fail with it.

use super::graphs::{Graph, Member, StepClass, Submitter};
use super::tasks::{Inputs, NewTask, OutputSlots};
use super::{Effect, Object, Owner, Task, dependency_failure, unknown_argument};
use crate::Now;
use crate::event::Value;
use crate::slab::Slot;
use std::sync::Arc;
use tharsis_types::graph::{GraphPart, GraphResult, step_task};
use tharsis_types::{ClientId, Dependency, Failure, FailureKind, ObjectId, RefId, TaskId};

/// A client that submits a graph.
#[derive(Clone, Copy, Debug, Default)]
pub struct GraphSubmitter {
    /// Whether it runs a task, which may run again and submit the same graph.
    pub is_task: bool,
    /// Depth of the tasks: the number of tasks of this node in which they are nested.
    pub depth: u16,
    /// When the time of the task that submits it is over.
    pub deadline: Option<Now>,
}

/// The outcome for the entries of a step.
enum Entered {
    /// They are those of a new task.
    Task(Slot<Task>),
    /// A task of that id is under way, and is taken for that of the step.
    Known,
    /// Another call has the id.
    Taken,
}

/// Parts of graphs.
impl Owner {
    /// Whether a client has begun to submit a graph and not ended.
    #[must_use]
    pub fn awaits_part(&self, client: ClientId, graph: TaskId) -> bool {
        self.graphs.find(graph).is_some_and(|slot| self.graphs[slot].awaits_part_of(client))
    }

    /// A client submits a part of a graph. Steps whose inputs are there start at once.
    pub fn submit_graph(
        &mut self,
        client: ClientId,
        id: TaskId,
        submitter: GraphSubmitter,
        part: &GraphPart,
        out: &mut Vec<Effect>,
    ) {
        let known = self.graphs.find(id);
        if let Some(graph) = known.filter(|graph| !self.graphs[*graph].awaits_part_of(client)) {
            return self.share_graph(graph, client, id, part, out);
        }
        if known.is_none() && self.is_graph_known(id, part) {
            return self.share_results(client, id, &part.results, out);
        }
        let graph = known.unwrap_or_else(|| {
            let GraphSubmitter { is_task, depth, deadline } = submitter;
            self.graphs.begin(id, Submitter { client, is_task, depth, deadline })
        });
        if let Err(problem) = self.graphs[graph].refuse(part) {
            return self.refuse_part(graph, client, part, problem, out);
        }
        self.enter_part(graph, part, out);
        if part.is_last {
            let unused = self.graphs.close(graph);
            unused.into_iter().for_each(|slot| self.unuse(slot, out));
            self.remove_graph_if_over(graph, out);
        }
    }

    /// A part that does not fit the graph: none of it runs, and its results fail.
    fn refuse_part(
        &mut self,
        graph: Slot<Graph>,
        client: ClientId,
        part: &GraphPart,
        problem: &str,
        out: &mut Vec<Effect>,
    ) {
        let id = self.graphs[graph].id();
        let failure = Arc::new(Failure::new(FailureKind::InvalidArgument, problem));
        for result in &part.results {
            let object = ObjectId::output(step_task(id, result.step), result.index);
            if self.references.find(&object).is_none() {
                let slot = self.references.insert_made(object, client, result.token);
                self.fill(slot, Value::Failed(failure.clone()), None, Vec::new(), out);
            }
        }
        self.end_graph(graph, &failure, out);
    }

    /// Whether all results of a graph are there or on their way, so that nothing of it has to run.
    fn is_graph_known(&self, id: TaskId, part: &GraphPart) -> bool {
        let is_live = |result: &GraphResult| {
            let object = ObjectId::output(step_task(id, result.step), result.index);
            self.references.by_id(&object).is_some_and(|entry| self.references.is_live(entry))
        };
        part.is_last && part.first == 0 && !part.results.is_empty() && part.results.iter().all(is_live)
    }

    /// The task that submitted a graph runs again, and submits it again.
    fn share_graph(
        &mut self,
        graph: Slot<Graph>,
        client: ClientId,
        id: TaskId,
        part: &GraphPart,
        out: &mut Vec<Effect>,
    ) {
        self.share_results(client, id, &part.results, out);
        self.graphs.shared_with(graph, client, part.is_last);
        self.remove_graph_if_over(graph, out);
    }

    fn share_results(
        &mut self,
        client: ClientId,
        id: TaskId,
        results: &[GraphResult],
        out: &mut Vec<Effect>,
    ) {
        for result in results {
            self.share_output(
                client,
                ObjectId::output(step_task(id, result.step), result.index),
                result.token,
                out,
            );
        }
    }

    fn enter_part(&mut self, graph: Slot<Graph>, part: &GraphPart, out: &mut Vec<Effect>) {
        let references = part.references.iter().map(|reference| self.references.adopt(*reference, None, out));
        let references = references.collect();
        self.graphs[graph].take_part(part, references);
        let (mut inputs, mut results) = (&part.inputs[..], &part.results[..]);
        let mut class = None;
        for step in &part.steps {
            let (own, rest) = inputs.split_at(step.input_count as usize);
            inputs = rest;
            // Most steps have the class of the one before.
            let known =
                class.take().filter(|(of, _): &((u32, u32), StepClass)| *of == (step.class, step.returns));
            let (_, known) = &*class.insert(known.unwrap_or_else(|| {
                let (client, job) = (self.graphs[graph].submitter().client, self.graphs[graph].id().job());
                let returns = step.returns as usize;
                let found = self.callable_class((client, step.class), job, returns);
                ((step.class, step.returns), found)
            }));
            let known = known.clone();
            self.totals.submitted += 1;
            let (number, missing, failed) =
                self.graphs[graph].add_step(known.as_ref().ok().copied(), step, own);
            let count = results.iter().take_while(|result| result.step == number).count();
            let (kept, rest) = results.split_at(count);
            results = rest;
            self.enter_step(Member { graph, step: number }, known, missing, failed, kept, out);
        }
    }

    /// A step was added: it starts, waits, or fails.
    fn enter_step(
        &mut self,
        member: Member,
        class: StepClass,
        missing: u32,
        failed: Option<(u16, Arc<Failure>)>,
        kept: &[GraphResult],
        out: &mut Vec<Effect>,
    ) {
        let id = self.graphs[member.graph].task(member.step);
        let class = match class {
            Ok(class) => class,
            Err(failure) => return self.refuse_step(member, &failure, kept, out),
        };
        if kept.is_empty() {
            self.graphs.waits(id.job());
            match failed {
                Some((parameter, cause)) => self.fail_step(member, parameter, &cause, out),
                None if missing == 0 => self.start_step(member, out),
                None => {}
            }
            return;
        }
        self.graphs[member.graph].keeps(member.step);
        match (self.make_task(member, class, kept, out), failed) {
            (Entered::Known, _) => {}
            (Entered::Taken, _) => self.fail_taken(member, out),
            (Entered::Task(task), Some((parameter, cause))) => {
                self.fail_dependent(task, parameter, &cause, out)
            }
            (Entered::Task(_), None) if missing == 0 => self.start_step(member, out),
            (Entered::Task(task), None) => self.tasks.awaits_step(task, missing),
        }
    }

    /// No call may use the class of a step.
    fn refuse_step(
        &mut self,
        member: Member,
        failure: &Arc<Failure>,
        kept: &[GraphResult],
        out: &mut Vec<Effect>,
    ) {
        self.totals.failed += 1;
        let (client, id) =
            (self.graphs[member.graph].submitter().client, self.graphs[member.graph].task(member.step));
        for result in kept {
            let object = ObjectId::output(id, result.index);
            match self.references.find(&object) {
                Some(_) => self.share_output(client, object, result.token, out),
                None => {
                    let slot = self.references.insert_made(object, client, result.token);
                    self.fill(slot, Value::Failed(failure.clone()), None, Vec::new(), out);
                }
            }
        }
        self.step_ended(member, Some(failure.clone()), out);
    }
}

/// Steps that become tasks.
impl Owner {
    /// Enters the task of a step and its outputs.
    fn make_task(
        &mut self,
        member: Member,
        class: Slot<super::Class>,
        kept: &[GraphResult],
        out: &mut Vec<Effect>,
    ) -> Entered {
        let graph = &self.graphs[member.graph];
        let (id, returns, submitter) =
            (graph.task(member.step), graph.returns(member.step), graph.submitter());
        let is_fresh = (0..returns).all(|index| self.references.find(&ObjectId::output(id, index)).is_none());
        if !is_fresh && let Some(other) = self.task_under_way(id, returns) {
            return self.adopt_task(member, other, kept, out);
        }
        let mut kept = kept.iter().peekable();
        let outputs: OutputSlots = (0..returns)
            .map(|index| {
                let object = ObjectId::output(id, index);
                let token = kept.next_if(|result| result.index == index).map(|result| result.token);
                self.step_output(object, submitter.client, token, is_fresh, out)
            })
            .collect();
        self.use_outputs(member, &outputs, submitter.is_task);
        let definition = &self.classes[class].definition;
        let retries = definition.max_retries;
        let graph = &self.graphs[member.graph];
        let new = NewTask {
            id,
            class,
            retries,
            depth: submitter.depth,
            priority: graph.priority(member.step),
            member: Some(member),
            payload: graph.payload(member.step),
            outputs: &outputs,
        };
        let slot = self.tasks.insert(new);
        outputs.iter().for_each(|output| self.references.set_producer(*output, slot));
        self.set_deadline(slot, submitter.deadline);
        Entered::Task(slot)
    }

    /// The graph uses the outputs of a step from now on.
    fn use_outputs(&mut self, member: Member, outputs: &[Slot<Object>], holds_results: bool) {
        let graph = &mut self.graphs[member.graph];
        graph.set_outputs(member.step, outputs);
        for output in outputs {
            self.references.add_use(*output);
            if holds_results {
                self.references.add_use(*output);
                graph.hold(*output);
            }
        }
    }

    /// The entry of an output: a new one, or that of an earlier run.
    fn step_output(
        &mut self,
        object: ObjectId,
        client: ClientId,
        token: Option<u64>,
        is_fresh: bool,
        out: &mut Vec<Effect>,
    ) -> Slot<Object> {
        let known = if is_fresh { None } else { self.references.find(&object) };
        match (known, token) {
            (None, Some(token)) => self.references.insert_made(object, client, token),
            (None, None) => self.references.insert_output(object),
            (Some(slot), token) => {
                self.references.take_over(slot, out);
                if let Some(token) = token {
                    self.references.held(client, RefId { object, owner: self.me }, out);
                    self.references.add_fetcher(slot, client, token);
                }
                slot
            }
        }
    }

    /// The task that makes an output of this id.
    fn task_under_way(&self, id: TaskId, returns: u32) -> Option<Slot<Task>> {
        let producer = |index| self.references.by_id(&ObjectId::output(id, index))?.producer();
        (0..returns).find_map(producer)
    }

    /// A task of an earlier submission of the graph, which was given up, is under way: it is taken for that
    /// of the step.
    fn adopt_task(
        &mut self,
        member: Member,
        task: Slot<Task>,
        kept: &[GraphResult],
        out: &mut Vec<Effect>,
    ) -> Entered {
        let graph = &self.graphs[member.graph];
        let (id, returns, submitter) =
            (graph.task(member.step), graph.returns(member.step), graph.submitter());
        let entry = &self.tasks[task];
        let outputs: OutputSlots = entry.output_slots().flatten().collect();
        let other = entry.member();
        let is_abandoned = other.is_none_or(|other| self.graphs[other.graph].is_stopped());
        if entry.id() != id || outputs.len() != returns as usize || !is_abandoned {
            return Entered::Taken;
        }
        self.tasks.set_member(task, Some(member));
        self.use_outputs(member, &outputs, submitter.is_task);
        self.consume_all(member, out);
        self.graphs[member.graph].started(member.step);
        self.share_results(submitter.client, self.graphs[member.graph].id(), kept, out);
        if let Some(other) = other {
            self.step_ended(other, None, out);
        }
        Entered::Known
    }

    /// A step whose id another call has taken.
    fn fail_taken(&mut self, member: Member, out: &mut Vec<Effect>) {
        self.totals.failed += 1;
        let failure =
            Failure::new(FailureKind::InvalidArgument, "another call has the id of a task of the graph");
        self.step_ended(member, Some(Arc::new(failure)), out);
    }

    /// All inputs of a step are there: it becomes a task, if it is none, and is queued.
    fn start_step(&mut self, member: Member, out: &mut Vec<Effect>) {
        let Member { graph: slot, step } = member;
        let graph = &self.graphs[slot];
        let task = match graph.first_output(step) {
            Some(output) => match self.references[output].producer() {
                Some(task) => task,
                // It has failed, which its graph is about to hear.
                None => return,
            },
            None => {
                let (job, class) = (graph.id().job(), graph.class(step));
                let Some(class) = class else { return };
                self.graphs.wait_no_more(job, 1);
                match self.make_task(member, class, &[], out) {
                    Entered::Task(task) => task,
                    Entered::Known => return,
                    Entered::Taken => return self.fail_taken(member, out),
                }
            }
        };
        self.graphs[slot].started(step);
        let places = self.graphs[slot].inputs(step);
        if places.is_empty() {
            return self.enqueue(task);
        }
        let held = self.wakes.hold();
        let missing = self.take_inputs(member, task, out);
        self.inputs_entered(task, missing, out);
        self.wake(held, out);
    }

    /// A task takes over the inputs of its step. Returns the number of those that it has to wait for, because
    /// they were lost or are references without a value, or its failure.
    fn take_inputs(
        &mut self,
        member: Member,
        task: Slot<Task>,
        out: &mut Vec<Effect>,
    ) -> Result<u32, Failure> {
        let places = self.graphs[member.graph].inputs(member.step);
        let mut inputs = Inputs { dependencies: Vec::with_capacity(places.len()), nested: Vec::new() };
        let (mut missing, mut failed) = (0, None);
        for at in places {
            let parameter = self.graphs[member.graph].parameter(at);
            let consumed = self.graphs[member.graph].consume(at);
            let Some(object) = consumed.object else {
                let job = self.tasks[task].id().job();
                let argument = consumed.reference.map(|reference| Dependency { reference, parameter });
                let unknown = argument.map(|argument| unknown_argument(job, argument));
                failed = failed.or(unknown.filter(|_| parameter != Dependency::NESTED));
                continue;
            };
            if !consumed.is_last {
                self.references.add_use(object);
            }
            if parameter == Dependency::NESTED {
                inputs.nested.push(object);
                continue;
            }
            let reference = self.references.reference(object);
            inputs.dependencies.push((Dependency { reference, parameter }, object));
            match self.enter_input(task, parameter, object, out) {
                Ok(count) => missing += count,
                Err(failure) => failed = Some(failure),
            }
        }
        self.tasks.set_inputs(task, inputs, missing);
        failed.map_or(Ok(missing), Err)
    }

    /// A step will not take its inputs.
    fn consume_all(&mut self, member: Member, out: &mut Vec<Effect>) {
        for at in self.graphs[member.graph].inputs(member.step) {
            let consumed = self.graphs[member.graph].consume(at);
            if let Some(object) = consumed.object.filter(|_| consumed.is_last) {
                self.unuse(object, out);
            }
        }
    }
}

/// Steps that end.
impl Owner {
    /// The task of a step has ended, or a step without one has failed.
    pub(super) fn step_ended(
        &mut self,
        member: Member,
        failure: Option<Arc<Failure>>,
        out: &mut Vec<Effect>,
    ) {
        if !self.graphs.tell(member, failure) {
            return;
        }
        while let Some((member, failure)) = self.graphs.next_news() {
            self.pass_on(member, failure.as_ref(), out);
        }
    }

    fn pass_on(&mut self, member: Member, failure: Option<&Arc<Failure>>, out: &mut Vec<Effect>) {
        let Member { graph: slot, step } = member;
        if self.graphs[slot].end(step, failure) {
            self.consume_all(member, out);
        }
        if !self.graphs[slot].is_stopped() {
            for input in self.graphs[slot].consumers(step) {
                let (consumer, parameter) = self.graphs[slot].consumer(input);
                let consumer = Member { graph: slot, step: consumer };
                match failure {
                    None if self.graphs[slot].arrived(consumer.step) => self.start_step(consumer, out),
                    None => {}
                    Some(cause) => self.fail_step(consumer, parameter, cause, out),
                }
            }
        }
        let mut unused = Vec::new();
        self.graphs[slot].release_outputs(step, &mut unused);
        unused.into_iter().for_each(|output| self.unuse(output, out));
        self.remove_graph_if_over(slot, out);
    }

    /// An input of a step has failed. The step may have ended, or be about to.
    fn fail_step(&mut self, member: Member, parameter: u16, cause: &Arc<Failure>, out: &mut Vec<Effect>) {
        let graph = &self.graphs[member.graph];
        if !graph.waits(member.step) {
            return;
        }
        if let Some(output) = graph.first_output(member.step) {
            if let Some(task) = self.references[output].producer() {
                self.fail_dependent(task, parameter, cause, out);
            }
            return;
        }
        let job = graph.id().job();
        self.graphs[member.graph].doom(member.step);
        self.graphs.wait_no_more(job, 1);
        self.totals.failed += 1;
        // The failures of all dependants are one: no copy for each of a million.
        let failure = match cause.kind {
            FailureKind::DependencyFailed => cause.clone(),
            _ => Arc::new(dependency_failure(parameter, cause)),
        };
        self.step_ended(member, Some(failure), out);
    }

    fn remove_graph_if_over(&mut self, graph: Slot<Graph>, out: &mut Vec<Effect>) {
        for held in self.graphs.remove_if_over(graph) {
            self.unuse(held, out);
        }
    }
}

/// Graphs that end early.
impl Owner {
    /// No step of a graph starts any more.
    pub(super) fn stop_graph(&mut self, graph: Slot<Graph>, out: &mut Vec<Effect>) {
        for unused in self.graphs.stop(graph) {
            self.unuse(unused, out);
        }
        self.remove_graph_if_over(graph, out);
    }

    /// Ends a graph: its waiting steps fail, those that are tasks go on.
    fn end_graph(&mut self, graph: Slot<Graph>, failure: &Failure, out: &mut Vec<Effect>) {
        let tasks: Vec<_> = self.graphs[graph].unfinished().collect();
        let waiting: Vec<_> = tasks.into_iter().filter(|(step, _)| self.graphs[graph].waits(*step)).collect();
        self.stop_graph(graph, out);
        for (_, output) in waiting {
            // The end of one may have freed another.
            if let Some(task) = self.references.get(output).and_then(Object::producer) {
                let failure = self.located_failure(task, failure, self.me);
                self.fail(task, &failure, out);
            }
        }
    }

    /// Cancels all of a graph that has not ended.
    pub(super) fn cancel_graph(
        &mut self,
        graph: Slot<Graph>,
        force: bool,
        recursive: bool,
        out: &mut Vec<Effect>,
    ) {
        let entries = self.graphs[graph].unfinished();
        let objects: Vec<_> = entries.map(|(_, output)| self.references[output].id()).collect();
        self.stop_graph(graph, out);
        for object in objects {
            self.cancel(object, force, recursive, out);
        }
    }

    /// The graphs of a job that has ended start nothing more; the caller ends their tasks.
    pub(super) fn stop_graphs_of(&mut self, job: tharsis_types::JobId, out: &mut Vec<Effect>) {
        if self.graphs.is_empty() {
            return;
        }
        for graph in self.graphs.of_job(job) {
            self.stop_graph(graph, out);
        }
    }

    /// A client is gone: the graphs of which it has not sent all parts end.
    pub(super) fn graphs_of_gone(&mut self, client: ClientId, out: &mut Vec<Effect>) {
        if self.graphs.is_empty() {
            return;
        }
        let failure = Failure::new(FailureKind::Cancelled, "its submitter went before it was complete");
        for graph in self.graphs.client_gone(client) {
            if self.graphs[graph].awaits_part_of(client) {
                self.end_graph(graph, &failure, out)
            } else {
                self.remove_graph_if_over(graph, out)
            }
        }
    }

    /// The graph of a task that a client cancels, if nothing else of the graph is wanted.
    pub(super) fn graph_unwanted(&mut self, task: Slot<Task>) -> Option<TaskId> {
        let member = self.tasks[task].member()?;
        let graph = &mut self.graphs[member.graph];
        graph.cancelled(member.step).then(|| graph.id())
    }
}
