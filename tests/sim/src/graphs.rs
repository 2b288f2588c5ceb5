//! Graphs of tasks that drivers and tasks submit: random steps, edges, priorities and results, in random
//! parts.

use crate::cluster::Cluster;
use crate::program::{self, CLASS_COUNT, Payload};
use crate::rng::{Rng, mix};
use tharsis_core::Event;
use tharsis_types::graph::step_task;
use tharsis_types::{
    ClientId, Dependency, GraphInput, GraphPart, GraphResult, GraphStep, JobId, ObjectId, RefId, TaskId,
};

/// A graph that is being made.
struct Plan {
    rng: Rng,
    graph: TaskId,
    parts: Vec<GraphPart>,
    /// Outputs of the steps so far: the step and the index.
    outputs: Vec<(u32, u32)>,
    /// References that it names, in the order of their numbers.
    references: Vec<RefId>,
}

impl Cluster {
    /// A client submits a graph that a seed decides: that of a task is the same at every attempt that has the
    /// same references.
    pub(crate) fn submit_graph(&mut self, host: usize, id: ClientId, seed: u64) {
        let Some(client) = self.hosts[host].clients.get_mut(&id) else { return };
        let (job, parent, depth) = (client.job, client.context.task, client.context.depth + 1);
        let number = client.context.children;
        client.context.children += 1;
        let locals: Vec<_> = client.context.locals.iter().filter_map(|t| client.refs.get(t)).collect();
        let locals: Vec<RefId> = locals.into_iter().map(|held| held.reference).collect();
        let known: Vec<_> = locals.into_iter().filter(|r| !self.oracle.is_place(r.object)).collect();
        let is_driver = self.hosts[host].clients.get(&id).is_some_and(|client| client.driver.is_some());
        let graph = if is_driver {
            parent.child(number)
        } else {
            parent.in_job(job).call(number, content(seed, &known))
        };
        let mut rng = Rng::new(seed);
        let count = rng.range(1, if is_driver { 30 } else { 6 });
        let parts = vec![GraphPart::default()];
        let mut plan = Plan { rng, graph, parts, outputs: Vec::new(), references: Vec::new() };
        for step in 0..count as u32 {
            self.add_step(host, id, &mut plan, (job, parent, depth), step, &known);
        }
        if let Some(part) = plan.parts.last_mut() {
            part.is_last = true;
        }
        for part in plan.parts {
            self.send(host, id, Event::GraphSubmitted { client: id, run: None, graph, part: Box::new(part) });
        }
    }

    fn add_step(
        &mut self,
        host: usize,
        id: ClientId,
        plan: &mut Plan,
        (job, parent, depth): (JobId, TaskId, u8),
        step: u32,
        known: &[RefId],
    ) {
        let kind = plan.rng.range(0, u64::from(CLASS_COUNT)) as u32;
        self.name_class(host, id, job, kind);
        if plan.rng.chance(200) && !plan.parts.last().is_some_and(|part| part.steps.is_empty()) {
            plan.parts.push(GraphPart { first: step, ..GraphPart::default() });
        }
        let mut inputs = Vec::new();
        let mut taken = Vec::new();
        for _ in 0..plan.rng.range(0, 4) {
            let Some((input, object)) = plan.input(inputs.len() as u16, known) else { continue };
            inputs.push(input);
            taken.push(object);
        }
        let nested: Vec<_> = known.iter().copied().filter(|_| plan.rng.chance(50)).collect();
        for reference in &nested {
            let source = plan.number(*reference) | GraphInput::REFERENCE;
            inputs.push(GraphInput { source, index: 0, parameter: Dependency::NESTED });
        }
        let payload = Payload { depth, nested }.encode();
        let (task, returns) = (step_task(plan.graph, step), program::returns(kind));
        if let Err(text) = self.oracle.submitted(parent, task, kind, depth, &taken) {
            self.fail(crate::acts::ONE_ID, text);
        }
        self.oracle.graphs.insert(task, plan.graph);
        let owner = self.hosts[host].id;
        self.oracle.came_to(task, owner);
        let row = GraphStep {
            class: kind,
            returns,
            payload_bytes: payload.len() as u32,
            input_count: inputs.len() as u32,
            priority: if plan.rng.chance(300) { plan.rng.range(0, 5) as i32 - 2 } else { 0 },
        };
        let kept: Vec<_> = (0..returns).filter(|_| plan.rng.chance(300)).collect();
        let Some(client) = self.hosts[host].clients.get_mut(&id) else { return };
        let Some(part) = plan.parts.last_mut() else { return };
        for index in kept {
            let token = client.hold(RefId { object: ObjectId::output(task, index), owner });
            client.context.locals.push(token);
            part.results.push(GraphResult { step, index, token });
        }
        part.steps.push(row);
        part.inputs.extend(inputs);
        part.payload.extend_from_slice(&payload);
        plan.outputs.extend((0..returns).map(|index| (step, index)));
    }
}

impl Plan {
    /// An argument: an output of an earlier step, or a reference.
    fn input(&mut self, parameter: u16, known: &[RefId]) -> Option<(GraphInput, ObjectId)> {
        if !self.outputs.is_empty() && self.rng.chance(800) {
            let (step, index) = self.outputs[self.rng.index(self.outputs.len())];
            let input = GraphInput { source: step, index: index as u16, parameter };
            return Some((input, ObjectId::output(step_task(self.graph, step), index)));
        }
        let reference = *known.get(self.rng.index(known.len().max(1)))?;
        let source = self.number(reference) | GraphInput::REFERENCE;
        Some((GraphInput { source, index: 0, parameter }, reference.object))
    }

    /// The number of a reference.
    fn number(&mut self, reference: RefId) -> u32 {
        let at = self.references.iter().position(|named| *named == reference);
        let at = at.unwrap_or_else(|| {
            self.references.push(reference);
            if let Some(part) = self.parts.last_mut() {
                part.references.push(reference);
            }
            self.references.len() - 1
        });
        at as u32
    }
}

/// Hash that distinguishes a graph from others of its task.
fn content(seed: u64, known: &[RefId]) -> u128 {
    let objects = known.iter().map(|reference| program::content_hash(&reference.object.to_bytes(), 0));
    objects.fold(seed, mix).into()
}
