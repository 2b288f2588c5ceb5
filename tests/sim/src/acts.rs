//! Steps of drivers and workers.

use crate::Sabotage;
use crate::client::{Argument, Client, Context, Current, Driver, Phase, RunRecord};
use crate::cluster::{ClientRecord, Cluster, Seen, SimEvent, US, class_of};
use crate::program::{self, Content, FATAL, FLAKY, Payload, Step};
use std::sync::Arc;
use tharsis_core::event::{OutputValue, TaskOutcome};
use tharsis_core::{Event, MS};
use tharsis_types::limits::PIPELINE_DEPTH_MAX;
use tharsis_types::task::Output;
use tharsis_types::{
    ClientId, Dependency, Extent, Failure, FailureKind, JobId, ObjectId, RefId, SmallBytes, TaskArgs,
};

/// Numbers of classes that are made for one call start here, above those of all others.
const ANOTHER_CLASSES: u32 = 1 << 20;

/// The rule that ids keep.
pub(crate) const ONE_ID: &str = "one id is one call, with its arguments, or one value put";

impl Cluster {
    /// A driver does its next operation.
    pub(crate) fn think(&mut self, host: usize, id: ClientId) {
        let Some(client) = self.client(host, id) else { return };
        if client.phase == Phase::Region {
            return;
        }
        let Some(driver) = client.driver.as_mut() else { return };
        if driver.ops_left == 0 {
            self.drain(host, id);
            return;
        }
        driver.ops_left -= 1;
        match self.rng.range(0, 100) {
            0..40 => self.submit_random(host, id, 1),
            40..45 => {
                let seed = self.rng.next();
                self.submit_graph(host, id, seed);
            }
            45..48 => self.submit_random(host, id, 40),
            48..57 => self.put_random(host, id),
            57..62 => self.put_or_read_row(host, id),
            62..80 => {
                if let Some(token) = self.random_local(host, id) {
                    self.want(host, id, token);
                }
            }
            80..93 => {
                if let Some(token) = self.random_local(host, id) {
                    self.release(host, id, token);
                }
            }
            93..95 if self.has_actors => self.open_stream(host, id),
            95..97 if self.has_names => self.find_named(host, id),
            _ => self.cancel_random(host, id),
        }
        let pause = if self.rng.chance(100) { 30 * MS } else { 500 * US };
        let when = self.now + self.rng.range(0, pause);
        self.at(when, SimEvent::Think { host, client: id });
    }

    /// A client gets a record from its node.
    pub(crate) fn told(&mut self, host: usize, id: ClientId, record: ClientRecord) {
        let Some(client) = self.client(host, id) else { return };
        match record {
            ClientRecord::Cancel(run) => self.cancel_told(host, id, run),
            ClientRecord::Region(region) => self.region_told(host, id, region.ok()),
            ClientRecord::Resumed => {
                if client.phase == Phase::Resuming {
                    client.phase = Phase::Working;
                    if let Some(cpu) = client.current.as_ref().map(|c| c.cpu) {
                        self.start_using(host, cpu, 0);
                    }
                    self.work(host, id);
                }
            }
            ClientRecord::Run(record) => {
                client.announced.pop_front();
                if client.has_left {
                    return;
                }
                if record.kind == program::BESIDE {
                    return self.side_told(host, id, record);
                }
                client.queue.push_back(record);
                if client.queue.len() > PIPELINE_DEPTH_MAX {
                    self.fail("what is sent ahead is bounded", format!("client {}", id.0));
                }
                self.start_next(host, id);
            }
            ClientRecord::StealBack { count, question } => {
                let keep = client.queue.len().saturating_sub(count as usize);
                let back = client.queue.split_off(keep).into_iter().chain(client.side_queue.drain(..));
                let returned = back.map(|record| record.run).collect();
                self.send(host, id, Event::GivenBack { client: id, question, returned });
            }
            ClientRecord::Stop => {
                let busy = client.has_runs();
                // Calls of nodes that are dead do not keep an actor.
                let is_excused = client.actor.is_some() && 0 < self.oracle.node_deaths();
                if busy && !is_excused {
                    self.fail("only idle workers are stopped", format!("client {}", id.0));
                }
                let failure = Arc::new(Failure::new(FailureKind::Shutdown, "stopped"));
                self.crash_client(host, id, failure);
            }
            ClientRecord::RetireRegions => self.retire_unused(host, id),
            ClientRecord::Unmap(token) => self.unmap_told(host, id, token),
            ClientRecord::Value { token, value } => self.value_told(host, id, token, &value),
        }
    }

    /// Work of a task ends (or its worker does).
    pub(crate) fn resume_work(&mut self, host: usize, id: ClientId, epoch: u64) {
        let Some(client) = self.client(host, id) else { return };
        if client.epoch != epoch || client.phase != Phase::Working {
            return;
        }
        if client.current.as_ref().is_some_and(|c| c.doomed) {
            let failure = Arc::new(Failure::new(FailureKind::WorkerCrashed, "killed while it worked"));
            self.crash_process(host, id, &failure);
            return;
        }
        self.work(host, id);
    }

    /// A client drops a reference.
    pub(crate) fn release(&mut self, host: usize, id: ClientId, token: u64) {
        let Some(client) = self.client(host, id) else { return };
        let Some(held) = client.refs.remove(&token) else { return };
        client.looks.remove(&token);
        client.context.locals.retain(|t| *t != token);
        client.context.found.retain(|t| *t != token);
        if let Some((extent, content)) = &held.mapped {
            self.still(host, *extent, content);
        }
        self.send(host, id, Event::Released { client: id, token, reference: held.reference });
    }

    /// A client gives back all its regions.
    pub(crate) fn retire_regions(&mut self, host: usize, id: ClientId) {
        let Some(client) = self.client(host, id) else { return };
        let regions = std::mem::take(&mut client.regions);
        for (region, _) in regions {
            self.send(host, id, Event::RegionRetired { client: id, region });
        }
    }

    /// A client gives its regions back, unless it has written to them what it has not told of.
    fn retire_unused(&mut self, host: usize, id: ClientId) {
        let Some(client) = self.client(host, id) else { return };
        if client.current.as_ref().is_none_or(|current| current.outputs.is_empty()) {
            self.retire_regions(host, id);
        }
    }

    fn client(&mut self, host: usize, id: ClientId) -> Option<&mut Client> {
        self.hosts[host].clients.get_mut(&id)
    }

    /// A client, if it is a driver.
    pub(crate) fn driver_of(&mut self, host: usize, id: ClientId) -> Option<&mut Driver> {
        self.client(host, id)?.driver.as_mut()
    }

    /// Bytes that are mapped never change.
    pub(crate) fn still(&mut self, host: usize, extent: Extent, content: &Content) {
        if self.read(host, extent) != Some(content) {
            let text = format!("{extent:?} on node {}", self.hosts[host].id);
            self.fail("mapped bytes never change", text);
        }
    }

    /// The last operations of a driver: get most of what is left, then drop everything.
    fn drain(&mut self, host: usize, id: ClientId) {
        self.close_streams(host, id);
        let Some(client) = self.client(host, id) else { return };
        let Some(driver) = client.driver.as_mut() else { return };
        driver.draining = true;
        driver.reading.extend(driver.row.drain(..));
        let in_row = driver.reading.clone();
        let tokens: Vec<_> = client.refs.keys().copied().filter(|token| !in_row.contains(token)).collect();
        self.read_on(host, id);
        for token in tokens {
            if self.rng.chance(800) { self.want(host, id, token) } else { self.release(host, id, token) }
        }
        self.drop_if_drained(host, id);
    }

    /// A driver that waits for nothing more drops everything, if that is all it has left to do.
    pub(crate) fn drop_if_drained(&mut self, host: usize, id: ClientId) {
        let Some(client) = self.client(host, id) else { return };
        if client.waits() || client.driver.as_ref().is_none_or(|d| !d.draining) {
            return;
        }
        let tokens: Vec<_> = client.refs.keys().copied().collect();
        tokens.into_iter().for_each(|token| self.release(host, id, token));
    }

    fn random_local(&mut self, host: usize, id: ClientId) -> Option<u64> {
        let choice = self.rng.next();
        let locals = &self.client(host, id)?.context.locals;
        (!locals.is_empty()).then(|| locals[(choice % locals.len() as u64) as usize])
    }

    fn submit_random(&mut self, host: usize, id: ClientId, count: u32) {
        let first = program::submit(&mut self.rng);
        for _ in 0..count {
            self.submit(host, id, &first);
        }
    }

    fn put_random(&mut self, host: usize, id: ClientId) {
        let nested = program::choices(&mut self.rng, 300);
        let stored = program::stored(&mut self.rng);
        let memory_bytes = self.store_bytes;
        let Some(client) = self.client(host, id) else { return };
        let extent = stored.and_then(|len| client.carve(len, memory_bytes));
        // Two threads of the client at once: who began to write first is done last.
        let overtaken = stored.filter(|_| self.rng.chance(300));
        let Some(client) = self.client(host, id) else { return };
        if let Some(extent) = overtaken.and_then(|len| client.carve(len, memory_bytes)) {
            self.put(host, id, Some(extent), &[]);
        }
        if let (Some(len), None) = (stored, extent) {
            // The next put finds the region; this one goes inline.
            let bytes = Client::region_bytes(len);
            self.retire_regions(host, id);
            self.send(host, id, Event::RegionWanted { client: id, request: 0, bytes });
        }
        self.put(host, id, extent, &nested);
    }

    /// Puts many values one after the other, or reads them in that order: what is spilled is read ahead then.
    fn put_or_read_row(&mut self, host: usize, id: ClientId) {
        let count = self.rng.range(6, 14);
        let lens: Vec<_> = (0..count).map(|_| self.rng.range(5_000, 20_000)).collect();
        let Some(client) = self.client(host, id) else { return };
        if let Some(driver) = client.driver.as_mut().filter(|driver| !driver.row.is_empty()) {
            driver.reading.extend(driver.row.drain(..));
            return self.read_on(host, id);
        }
        if let Some(driver) = client.driver.as_mut() {
            driver.planned = lens.clone();
        }
        let bytes = lens.iter().map(|len| len.next_multiple_of(4096)).sum();
        self.retire_regions(host, id);
        self.send(host, id, Event::RegionWanted { client: id, request: 0, bytes });
    }

    /// Puts the values of a row, as far as there is room for them.
    fn put_row(&mut self, host: usize, id: ClientId) {
        let memory_bytes = self.store_bytes;
        let Some(client) = self.client(host, id) else { return };
        let planned = client.driver.as_mut().map(|driver| std::mem::take(&mut driver.planned));
        let lens = planned.unwrap_or_default().into_iter();
        let mut extents: Vec<_> = lens.map_while(|len| client.carve(len, memory_bytes)).collect();
        // As threads of the client would: in any order.
        for at in (1..extents.len()).rev() {
            extents.swap(at, self.rng.index(at + 1));
        }
        for extent in extents {
            let token = self.put(host, id, Some(extent), &[]);
            if let Some(driver) = self.client(host, id).and_then(|c| c.driver.as_mut()) {
                driver.row.extend(token);
            }
        }
    }

    /// Asks for the next value of a row, when the one before is there.
    fn read_on(&mut self, host: usize, id: ClientId) {
        while let Some(client) = self.client(host, id) {
            let Some(driver) = client.driver.as_mut() else { return };
            let Some(token) = driver.reading.front().copied() else { return };
            match client.refs.get(&token) {
                Some(held) if held.pending => return,
                Some(held) if !held.ended && held.mapped.is_none() => return self.want(host, id, token),
                _ => drop(driver.reading.pop_front()),
            }
        }
    }

    fn cancel_random(&mut self, host: usize, id: ClientId) {
        let Some(token) = self.random_local(host, id) else { return };
        if !self.rng.chance(self.faults.cancel * 4) {
            return;
        }
        let force = self.rng.chance(500);
        let Some(reference) = self.client(host, id).and_then(|c| c.refs.get(&token)).map(|h| h.reference)
        else {
            return;
        };
        if self.oracle.tasks.contains_key(&reference.object.task) {
            self.oracle.cancelled(reference, force);
            self.send(host, id, Event::CancelRequested { reference, force, recursive: force });
        }
    }

    fn submit(&mut self, host: usize, id: ClientId, step: &Step) {
        let Step::Submit { class: kind, dependencies, nested } = step else { return };
        let call = self.kind_of_call(host, id, *kind, dependencies);
        self.submit_call(host, id, call, dependencies, nested);
    }

    /// A client calls a function of a kind: perhaps of an actor, or inside of a group. Returns its names for
    /// the outputs.
    pub(crate) fn submit_call(
        &mut self,
        host: usize,
        id: ClientId,
        (kind, target): (u32, Option<RefId>),
        dependencies: &[u64],
        nested: &[u64],
    ) -> Option<Vec<u64>> {
        let kind = &kind;
        let choice = dependencies.first().copied().unwrap_or(0);
        let (class, is_named) = self.class_for(host, id, (*kind, target), choice)?;
        let owner = self.hosts[host].id;
        let client = self.client(host, id)?;
        let parent = client.context.task;
        let depth = client.context.depth + 1;
        let mut dependencies = client.chosen(dependencies);
        let nested = client.chosen(nested);
        dependencies.retain(|reference| !self.oracle.is_place(reference.object));
        let mut nested = self.without_groups(nested);
        if target.is_some() {
            // A method waits for no reference: what it is might wait for the actor.
            nested.clear();
        }
        if *kind == program::INSIDE {
            // Its arguments might wait for what the group has reserved.
            dependencies.clear();
        }
        let client = self.client(host, id)?;
        let payload = Payload { depth, nested: nested.clone() }.encode();
        let number = client.context.children;
        client.context.children += 1;
        let task = match client.driver {
            Some(_) => parent.child(number),
            None => {
                let taken: Vec<_> = target.iter().chain(&dependencies).copied().collect();
                let content = program::call_content(*kind, &payload, &taken);
                parent.in_job(client.job).call(number, content)
            }
        };
        let objects: Vec<_> = dependencies.iter().map(|r| r.object).collect();
        let outputs =
            (0..program::returns(*kind)).map(|i| RefId { object: ObjectId::output(task, i), owner });
        let tokens: Vec<_> = outputs.map(|reference| client.hold(reference)).collect();
        client.context.locals.extend(&tokens);
        if let Err(text) = self.oracle.submitted(parent, task, *kind, depth, &objects) {
            self.fail(ONE_ID, text);
        }
        let name = program::call_name(task);
        self.oracle.tasks.entry(task).or_default().name.clone_from(&name);
        self.oracle.came_to(task, owner);
        let number = |(parameter, reference): (usize, &RefId)| Dependency {
            reference: *reference,
            parameter: parameter as u16,
        };
        let is_inside = *kind == program::INSIDE;
        let parameter = if is_inside { Dependency::GROUP } else { Dependency::ACTOR };
        let first = target.map(|reference| Dependency { reference, parameter });
        match target {
            Some(group) if is_inside => drop(self.oracle.inside.insert(task, group)),
            Some(actor) => self.note_call(host, id, (parent, task), actor),
            None => {}
        }
        let args = TaskArgs {
            payload: SmallBytes::from(&*payload),
            dependencies: first.into_iter().chain(dependencies.iter().enumerate().map(number)).collect(),
            nested: nested.into(),
            name,
        };
        let names = tokens.clone();
        self.send(
            host,
            id,
            Event::Submitted { client: id, run: None, class, task, tokens: tokens.into(), args },
        );
        let reference = RefId { object: ObjectId::output(task, 0), owner };
        if self.oracle.is_group(reference.object) {
            self.group_made(host, id, names[0], reference, *kind);
        }
        if is_named {
            self.named(reference);
        }
        Some(names)
    }

    /// The number of the class of a call, which the client names before, and whether what it makes has a
    /// name.
    fn class_for(
        &mut self,
        host: usize,
        id: ClientId,
        (kind, target): (u32, Option<RefId>),
        choice: u64,
    ) -> Option<(u32, bool)> {
        if let Some(group) = target.filter(|_| kind == program::INSIDE) {
            return Some((self.name_inside(host, id, group.object.task, choice)?, false));
        }
        let job = self.client(host, id)?.job;
        let is_place = kind == program::CONSTRUCTOR || (program::GROUP..program::INSIDE).contains(&kind);
        let is_named = is_place && self.is_to_be_named(host, id);
        let number = if is_named { kind | program::DETACHED } else { kind };
        if self.sabotage == Sabotage::ClassEach {
            return Some((self.name_another(host, id, job, number)?, is_named));
        }
        self.name_class(host, id, job, number);
        Some((number, is_named))
    }

    /// Names a class for calls of a client, if it has not.
    pub(crate) fn name_class(&mut self, host: usize, id: ClientId, job: JobId, kind: u32) {
        let definition = class_of(self, job, kind);
        if self.client(host, id).is_some_and(|client| client.classes.insert(kind)) {
            self.send(host, id, Event::ClassDefined { client: id, class: kind, definition: Ok(definition) });
        }
    }

    /// Names a class that is like that of a kind, under a number of its own.
    pub(crate) fn name_another(&mut self, host: usize, id: ClientId, job: JobId, kind: u32) -> Option<u32> {
        let mut definition = class_of(self, job, kind);
        let client = self.client(host, id)?;
        let class = ANOTHER_CLASSES + client.classes.len() as u32;
        client.classes.insert(class);
        Arc::make_mut(&mut definition).name = format!("f{class}");
        self.send(host, id, Event::ClassDefined { client: id, class, definition: Ok(definition) });
        Some(class)
    }

    fn put(&mut self, host: usize, id: ClientId, extent: Option<Extent>, nested: &[u64]) -> Option<u64> {
        let owner = self.hosts[host].id;
        let client = self.client(host, id)?;
        let nested = client.chosen(nested);
        let nested = self.without_groups(nested);
        let client = self.client(host, id)?;
        let number = client.context.puts;
        client.context.puts += 1;
        let hash = program::put_value(client.context.task, number, client.context.salt);
        let content = Content { hash, nested: nested.clone() };
        let object = client.put_id(number, extent, &content, owner);
        let token = client.hold(RefId { object, owner });
        client.context.locals.push(token);
        self.oracle.came_to(object.task, owner);
        let known = self.oracle.expected.insert(object, content.hash);
        if known.is_some_and(|known| known != content.hash) {
            self.fail(ONE_ID, format!("{object} was put with another value"));
        }
        let value = self.store(host, extent, content.clone());
        if let Some(held) = self.client(host, id).and_then(|c| c.refs.get_mut(&token)) {
            held.mapped = extent.map(|extent| (extent, content));
        }
        self.send(host, id, Event::Put { client: id, token, object, value, nested, site: "".into() });
        Some(token)
    }

    pub(crate) fn store(&mut self, host: usize, extent: Option<Extent>, content: Content) -> OutputValue {
        match extent {
            Some(extent) => {
                self.write(host, extent, content);
                OutputValue::Written(extent)
            }
            None => OutputValue::Inline(content.encode()),
        }
    }

    /// A client asks for a value, unless it has it.
    pub(crate) fn want(&mut self, host: usize, id: ClientId, token: u64) {
        let Some(object) = self.client(host, id).and_then(|c| c.refs.get(&token)).map(|h| h.reference.object)
        else {
            return;
        };
        if self.oracle.is_place(object) {
            // The place of an actor or of a group is no value for clients.
            return;
        }
        let Some(held) = self.client(host, id).and_then(|c| c.refs.get_mut(&token)) else { return };
        if held.ended || held.pending || held.mapped.is_some() {
            return;
        }
        held.pending = true;
        let reference = held.reference;
        self.summary.get_count += 1;
        self.send(host, id, Event::Fetch { client: id, token, reference });
    }

    fn value_told(&mut self, host: usize, id: ClientId, token: u64, value: &Seen) {
        if self.client(host, id).is_some_and(|client| client.looks.contains(&token)) {
            return self.look_answered(host, id, token, value);
        }
        let Some(object) = self.client(host, id).and_then(|c| c.refs.get(&token)).map(|h| h.reference.object)
        else {
            return;
        };
        let content = match value {
            Seen::Failed(failure) => {
                self.summary.failure_count += 1;
                if let Err(text) = self.oracle.excuse(object, failure) {
                    self.fail("a failure has a cause", text);
                }
                None
            }
            Seen::Inline(bytes) => Content::decode(bytes),
            Seen::Local(extent) => {
                let content = self.read(host, *extent).cloned();
                if content.is_none() {
                    self.fail("delivered bytes are there", format!("{object} at {extent:?}"));
                }
                content
            }
            Seen::Ready => return,
        };
        let expected = self.oracle.expected.get(&object).copied();
        if let Some(content) = &content
            && expected != Some(content.hash)
        {
            self.fail("a value is the expected one", format!("{object}"));
        }
        let Some(held) = self.client(host, id).and_then(|c| c.refs.get_mut(&token)) else { return };
        held.pending = false;
        held.ended = true;
        held.failed = content.is_none();
        if let (Seen::Local(extent), Some(content)) = (value, &content) {
            held.mapped = Some((*extent, content.clone()));
        }
        let inside = content.map(|c| c.nested).unwrap_or_default();
        self.find_inside(host, id, &inside);
        self.read_on(host, id);
        self.go_on_with_streams(host, id);
        self.drop_if_drained(host, id);
        self.unblock_if_ready(host, id);
    }

    /// A client makes handles of some of the references in a value.
    fn find_inside(&mut self, host: usize, id: ClientId, inside: &[RefId]) {
        for reference in inside {
            if !self.rng.chance(600) {
                continue;
            }
            let Some(client) = self.client(host, id) else { return };
            let token = client.hold(*reference);
            match &client.driver {
                Some(_) => client.context.locals.push(token),
                None => client.context.found.push(token),
            }
            let draining = client.driver.as_ref().is_some_and(|d| d.draining);
            self.send(host, id, Event::Held { client: id, token, reference: *reference });
            if draining || self.rng.chance(500) {
                self.want(host, id, token);
            }
        }
    }

    fn region_told(&mut self, host: usize, id: ClientId, region: Option<Extent>) {
        let Some(client) = self.client(host, id) else { return };
        client.regions.extend(region.map(|r| (r, 0)));
        if client.driver.is_some() {
            return self.put_row(host, id);
        }
        if client.phase == Phase::Region {
            client.phase = Phase::Working;
            if let Some(current) = client.current.as_mut() {
                current.refused = region.is_none();
            }
            self.work(host, id);
        }
    }

    fn cancel_told(&mut self, host: usize, id: ClientId, run: u32) {
        let heeds = self.rng.chance(700);
        if self.side_cancelled(host, id, run, heeds) {
            return;
        }
        let Some(client) = self.client(host, id) else { return };
        if let Some(current) = client.current.as_mut().filter(|c| c.record.run == run) {
            current.cancelled |= heeds;
        } else if let Some(at) = client.queue.iter().position(|r| r.run == run) {
            client.queue.remove(at);
            let outcome = failed("", FailureKind::Cancelled, "cancelled before it started");
            self.send(host, id, Event::Finished { client: id, run, run_ns: 1, outcome });
        }
    }

    fn start_next(&mut self, host: usize, id: ClientId) {
        let Some(client) = self.client(host, id) else { return };
        if client.current.is_some() {
            return;
        }
        let Some(record) = client.queue.pop_front() else { return };
        self.note_start(&record);
        self.check_call(host, id, &record);
        self.check_inside(host, &record);
        self.check_isolated(host, record.task.job());
        let payload = Payload::decode(&record.payload);
        let Some(payload) = payload else {
            self.fail("arguments arrive as they were sent", format!("payload of {}", record.task));
            return;
        };
        let (arguments, mapped) = self.read_arguments(host, &record);
        let Some(job) = self.client(host, id).map(|c| c.job) else { return };
        // Actors with names are found by other jobs.
        if job != record.job && !program::is_method(record.kind) {
            self.fail("a worker runs tasks of its job only", format!("{}", record.task));
        }
        let demand = class_of(self, job, record.kind).resources.clone();
        let (cpu, disk) = (demand.cpu, demand.custom.get("disk").copied().unwrap_or(0));
        self.start_using(host, cpu, disk);
        let doomed = self.rng.chance(self.faults.worker_crash / 3);
        let mut script = program::script(record.task, record.kind, payload.depth);
        let diverges = self.attempts_diverge && record.attempt > 0;
        if diverges {
            script.diverge(record.task, record.attempt);
            self.summary.divergence_count += 1;
        }
        let inside: Vec<_> = mapped.iter().flat_map(|(_, content)| content.nested.clone()).collect();
        let Some(client) = self.client(host, id) else { return };
        // Tasks inside of a group call leaves only: others wait for what the group has reserved.
        let depth = if record.kind == program::INSIDE { program::DEPTH_MAX } else { payload.depth };
        client.context = Context::new(record.task, depth);
        client.context.salt = if diverges { record.attempt } else { 0 };
        client.phase = Phase::Working;
        client.current = Some(Current {
            record,
            script,
            step: 0,
            arguments,
            mapped,
            outputs: Vec::new(),
            cancelled: false,
            doomed,
            refused: false,
            cpu,
            disk,
        });
        for reference in payload.nested {
            let Some(client) = self.client(host, id) else { return };
            let token = client.hold(reference);
            client.context.locals.push(token);
            self.send(host, id, Event::Held { client: id, token, reference });
        }
        self.find_inside(host, id, &inside);
        self.work(host, id);
    }

    /// A run starts: not more often than it may.
    pub(crate) fn note_start(&mut self, record: &RunRecord) {
        let job = record.task.job();
        let retries = class_of(self, job, record.kind).max_retries;
        let Some(facts) = self.oracle.tasks.get_mut(&record.task) else {
            self.fail("only submitted tasks run", format!("{}", record.task));
            return;
        };
        let starts = facts.started.entry(record.attempt).or_default();
        *starts += 1;
        let fresh = *starts <= facts.submissions;
        let count: u32 = facts.started.values().sum();
        let facts = &self.oracle.tasks[&record.task];
        if self.oracle.starts_max(facts, retries) < count {
            self.fail(
                "side effects happen at most as often as allowed",
                format!("{} ran {count} times", record.task),
            );
        }
        if !fresh {
            self.fail(
                "an attempt starts at most once",
                format!("attempt {} of {}", record.attempt, record.task),
            );
        }
    }

    /// The values of the arguments of a run that starts, and those of them that are mapped.
    pub(crate) fn read_arguments(
        &mut self,
        host: usize,
        record: &RunRecord,
    ) -> (Vec<u64>, Vec<(Extent, Content)>) {
        let (mut values, mut mapped) = (Vec::new(), Vec::new());
        let is_given = |parameter: u16| {
            !matches!(parameter, Dependency::ACTOR | Dependency::GROUP | Dependency::SNAPSHOT)
        };
        let arguments = record.arguments.iter().filter(|(parameter, ..)| is_given(*parameter));
        for (at, (parameter, reference, argument)) in arguments.enumerate() {
            let content = match argument {
                Argument::Inline(bytes) => Content::decode(bytes),
                Argument::Local(extent) => self.read(host, *extent).cloned(),
            };
            let expected = self.oracle.expected.get(&reference.object).copied();
            match content {
                Some(content) if Some(content.hash) == expected && *parameter as usize == at => {
                    values.push(content.hash);
                    if let Argument::Local(extent) = argument {
                        mapped.push((*extent, content));
                    }
                }
                _ => self.fail(
                    "arguments are the expected values",
                    format!("{} of {}", reference.object, record.task),
                ),
            }
        }
        mapped.extend(self.read_snapshot(host, record));
        (values, mapped)
    }

    /// Goes on with the task at hand until it must wait for something.
    fn work(&mut self, host: usize, id: ClientId) {
        loop {
            let Some(client) = self.client(host, id) else { return };
            let Some(current) = client.current.as_mut() else { return };
            if client.phase != Phase::Working {
                return;
            }
            if current.cancelled {
                self.end_task(host, id, failed("", FailureKind::Cancelled, "stopped at a check"));
                return;
            }
            let Some(step) = current.script.steps.get(current.step).cloned() else {
                if !self.make_output(host, id) {
                    return;
                }
                continue;
            };
            match step {
                Step::Work { us } => {
                    current.step += 1;
                    self.compute(host, id, us);
                    return;
                }
                Step::Submit { .. } => {
                    current.step += 1;
                    self.submit(host, id, &step);
                }
                Step::Graph { seed } => {
                    current.step += 1;
                    self.submit_graph(host, id, seed);
                }
                Step::Put { stored, nested } => {
                    let Ok(extent) = self.room(host, id, stored) else { return };
                    self.next_step(host, id);
                    self.put(host, id, extent, &nested);
                }
                Step::Wait => {
                    current.step += 1;
                    self.wait(host, id);
                }
            }
        }
    }

    fn next_step(&mut self, host: usize, id: ClientId) {
        if let Some(current) = self.client(host, id).and_then(|c| c.current.as_mut()) {
            current.step += 1;
            current.refused = false;
        }
    }

    fn compute(&mut self, host: usize, id: ClientId, us: u64) {
        let when = self.now + self.rng.range(US, us.max(2) * US);
        let Some(client) = self.client(host, id) else { return };
        client.epoch += 1;
        let epoch = client.epoch;
        self.at(when, SimEvent::Continue { host, client: id, epoch });
    }

    /// Room for a value; `Err` if the client has to wait for the answer.
    fn room(&mut self, host: usize, id: ClientId, stored: Option<u64>) -> Result<Option<Extent>, ()> {
        let memory_bytes = self.store_bytes;
        let (Some(len), Some(client)) = (stored, self.client(host, id)) else { return Ok(None) };
        if client.current.as_ref().is_some_and(|c| c.refused) {
            return Ok(None);
        }
        if let Some(extent) = client.carve(len, memory_bytes) {
            return Ok(Some(extent));
        }
        client.phase = Phase::Region;
        // Outputs made so far lie in regions until the end is reported.
        let unsealed = client.current.as_ref().is_some_and(|c| !c.outputs.is_empty());
        if !unsealed {
            self.retire_regions(host, id);
        }
        self.send(host, id, Event::RegionWanted { client: id, request: 1, bytes: Client::region_bytes(len) });
        Err(())
    }

    fn wait(&mut self, host: usize, id: ClientId) {
        let Some(client) = self.client(host, id) else { return };
        let tokens = client.context.locals.clone();
        tokens.into_iter().for_each(|token| self.want(host, id, token));
        let Some(client) = self.client(host, id) else { return };
        if !waits_for_locals(client) {
            return;
        }
        client.phase = Phase::Blocked;
        // Calls that were sent to an actor stay with it.
        let count = if client.actor.is_some() { 0 } else { client.queue.len() };
        let returned = client.queue.drain(..count).map(|r| r.run).collect();
        let cpu = client.current.as_ref().map_or(0, |c| c.cpu);
        self.summary.block_count += 1;
        self.stop_using(host, cpu, 0);
        self.send(host, id, Event::Blocked { client: id, returned });
    }

    fn unblock_if_ready(&mut self, host: usize, id: ClientId) {
        let Some(client) = self.client(host, id) else { return };
        if client.phase == Phase::Blocked && !waits_for_locals(client) {
            client.phase = Phase::Resuming;
            self.send(host, id, Event::Unblocked { client: id });
        }
    }

    /// Makes the next output, or ends the task; false if it waits or has ended.
    fn make_output(&mut self, host: usize, id: ClientId) -> bool {
        let Some(current) = self.client(host, id).and_then(|c| c.current.as_ref()) else { return false };
        let (task, index) = (current.record.task, current.outputs.len() as u32);
        if let Some(outcome) = self.raised(host, id) {
            self.end_task(host, id, outcome);
            return false;
        }
        let Some(client) = self.client(host, id) else { return false };
        let Some(current) = client.current.as_mut() else { return false };
        let Some(plan) = current.next_output().cloned() else {
            let outputs = std::mem::take(&mut current.outputs);
            self.end_task(host, id, TaskOutcome::Returned(outputs.into()));
            return false;
        };
        let hash = program::output_value(task, index, &current.arguments);
        let Ok(extent) = self.room(host, id, plan.stored) else { return false };
        let Some(client) = self.client(host, id) else { return false };
        let nested = client.chosen(&plan.nested);
        let nested = self.without_groups(nested);
        let value = self.store(host, extent, Content { hash, nested: nested.clone() });
        if let Some(current) = self.client(host, id).and_then(|c| c.current.as_mut()) {
            current.outputs.push(Output { value, nested });
            current.refused = false;
        }
        true
    }

    /// The error value that a task ends with, if it does.
    fn raised(&mut self, host: usize, id: ClientId) -> Option<TaskOutcome> {
        let current = self.client(host, id)?.current.as_ref()?;
        let (task, fatal, flaky) = (current.record.task, current.script.fatal, current.script.flaky_raises);
        let facts = self.oracle.tasks.get_mut(&task)?;
        let name = if fatal { FATAL } else { FLAKY };
        if !fatal && flaky <= facts.raises {
            return None;
        }
        facts.raises += 1;
        Some(failed(name, FailureKind::UserError, "raised"))
    }

    fn end_task(&mut self, host: usize, id: ClientId, outcome: TaskOutcome) {
        let Some(client) = self.client(host, id) else { return };
        let Some(current) = client.current.take() else { return };
        client.phase = Phase::Idle;
        let held = std::mem::replace(&mut client.context, Context::new(current.record.task, 0));
        for (extent, content) in &current.mapped {
            self.still(host, *extent, content);
        }
        self.stop_using(host, current.cpu, current.disk);
        let run_ns = 1000;
        if current.record.kind == program::CONSTRUCTOR && matches!(outcome, TaskOutcome::Returned(_)) {
            self.constructed(host, id, current.record.task);
        }
        if program::is_method(current.record.kind) && matches!(outcome, TaskOutcome::Returned(_)) {
            self.may_checkpoint(host, id);
        }
        self.send(host, id, Event::Finished { client: id, run: current.record.run, run_ns, outcome });
        for token in held.locals.into_iter().chain(held.found) {
            if self.rng.chance(800) {
                self.release(host, id, token);
            } else {
                let when = self.now + self.rng.range(0, 200 * MS);
                self.at(when, SimEvent::Drop { host, client: id, token });
            }
        }
        if self.rng.chance(100) {
            self.retire_regions(host, id);
        }
        if program::is_method(current.record.kind) {
            self.may_leave(host, id);
        }
        self.start_next(host, id);
    }
}

fn waits_for_locals(client: &Client) -> bool {
    client.context.locals.iter().filter_map(|token| client.refs.get(token)).any(|held| held.pending)
}

/// The outcome of a run that fails.
pub(crate) fn failed(error_type: &str, kind: FailureKind, text: &str) -> TaskOutcome {
    TaskOutcome::Failed { error_type: error_type.to_owned(), failure: Arc::new(Failure::new(kind, text)) }
}
