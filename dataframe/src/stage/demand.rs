//! The tasks of a plan that have to run, each after those that it reads.
//!
//! Most stages run whole. Of a stage whose reader wants some rows only, the first tasks run, then twice as
//! many, until their rows are enough; the others are skipped, with all that only they would read. A task with
//! far more rows than others is done by several calls, once the sizes of its inputs are known.

use super::cut::{Stage, Stages};
use super::piece::{Needs, Piece, PieceSource};
use super::skew::{Sizes, calls};
use std::collections::VecDeque;

/// Says which task runs next. An executor tells it of tasks that have ended.
#[derive(Debug)]
pub struct Demand {
    stages: Stages,
    tasks: Vec<Vec<State>>,
    /// Of stages that need not run whole, the number of first tasks that are wanted.
    wanted: Vec<usize>,
    /// Whether it is known which tasks of a stage run.
    settled: Vec<bool>,
    /// Of each stage whose sizes somebody waits for, these.
    sizes: Vec<Option<Sizes>>,
    /// Of each stage, the number of tasks that are wanted and have not ended.
    unended: Vec<usize>,
    /// Of each stage, those that its tasks read.
    read: Vec<Vec<usize>>,
    /// Tasks that are wanted and have not been taken, after those that they read.
    queue: VecDeque<(usize, usize)>,
    /// Of each stage, the number of its tasks in the queue.
    queued: Vec<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// Nobody has asked for it.
    Unwanted,
    /// It is in the queue, or was taken.
    Wanted,
    /// It has made this many rows.
    Ended(usize),
    /// Its rows are not needed.
    Skipped,
}

impl Demand {
    /// The tasks that make all rows of a plan.
    #[must_use]
    pub fn new(stages: &Stages) -> Demand {
        let tasks: Vec<Vec<State>> =
            stages.stages.iter().map(|stage| vec![State::Unwanted; stage.tasks]).collect();
        let settled = stages.stages.iter().map(|stage| stage.enough.is_none()).collect();
        let mut sizes = vec![None; tasks.len()];
        for input in stages.stages.iter().flat_map(|stage| &stage.splittable) {
            sizes[input.source] = Some(Sizes::new(tasks[input.source].len()));
        }
        let mut demand = Demand {
            stages: stages.clone(),
            wanted: vec![0; tasks.len()],
            read: vec![Vec::new(); tasks.len()],
            queued: vec![0; tasks.len()],
            unended: vec![0; tasks.len()],
            tasks,
            settled,
            sizes,
            queue: VecDeque::new(),
        };
        if let Some(last) = demand.tasks.len().checked_sub(1) {
            (0..demand.tasks[last].len()).for_each(|task| demand.want(last, task));
        }
        demand
    }

    fn want(&mut self, stage: usize, task: usize) {
        if self.tasks[stage][task] != State::Unwanted {
            return;
        }
        self.tasks[stage][task] = State::Wanted;
        self.unended[stage] += 1;
        for (read, task) in self.reads(stage, task) {
            if !self.read[stage].contains(&read) {
                self.read[stage].push(read);
            }
            match self.stages.stages[read].enough {
                None => self.want(read, task),
                Some(_) if self.wanted[read] == 0 => self.want_first(read, 1),
                Some(_) => {}
            }
        }
        self.queue.push_back((stage, task));
        self.queued[stage] += 1;
    }

    /// The tasks that a task reads, or whose rows it counts.
    fn reads(&self, stage: usize, task: usize) -> Vec<(usize, usize)> {
        let needs = self.stages.needs(stage, task);
        let pieces = needs.pieces.iter().filter_map(|piece| match piece.source {
            PieceSource::Stage(stage) => Some((stage, piece.task)),
            PieceSource::Given(_) => None,
        });
        let counted =
            needs.counts.iter().flat_map(|&(stage, tasks)| (0..tasks).map(move |task| (stage, task)));
        pieces.chain(counted).collect()
    }

    /// Wants the first tasks of a stage that need not run whole.
    fn want_first(&mut self, stage: usize, tasks: usize) {
        let all = self.tasks[stage].len();
        self.wanted[stage] = tasks.min(all);
        (0..self.wanted[stage]).for_each(|task| self.want(stage, task));
        self.settled[stage] = self.wanted[stage] == all;
    }

    /// The next task to run, with what each of its calls reads; `None` if none is left, or if tasks have to
    /// end first.
    pub fn take(&mut self) -> Option<(usize, usize, Vec<Needs>)> {
        let ready = |&(stage, _): &(usize, usize)| self.is_ready(stage);
        let at = self.queue.iter().position(ready)?;
        let (stage, task) = self.queue.remove(at)?;
        self.queued[stage] -= 1;
        let mut needs = self.stages.needs(stage, task);
        let is_made = |piece: &Piece| match piece.source {
            PieceSource::Stage(stage) => self.tasks[stage][piece.task] != State::Skipped,
            PieceSource::Given(_) => true,
        };
        let (pieces, skipped) = std::mem::take(&mut needs.pieces).into_iter().partition(is_made);
        let needs = Needs { pieces, skipped, ..needs };
        let sizes = |source: usize| self.sizes[source].as_ref();
        let Stage { splittable, tasks, .. } = &self.stages.stages[stage];
        Some((stage, task, calls(splittable, *tasks, task, needs, sizes)))
    }

    /// Whether it is known which tasks the tasks of a stage read, and how large their inputs are if this
    /// decides on their calls. Whoever takes a task has taken those that it reads.
    fn is_ready(&self, stage: usize) -> bool {
        let is_measured =
            |read: usize| self.stages.stages[stage].splittable.iter().any(|input| input.source == read);
        self.read[stage].iter().all(|&read| {
            self.settled[read] && self.queued[read] == 0 && (self.unended[read] == 0 || !is_measured(read))
        })
    }

    /// Whether all tasks that have to run were taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// The first task that has to end before it is known which others run.
    #[must_use]
    pub fn awaited(&self) -> Option<(usize, usize)> {
        let stages =
            (0..self.tasks.len()).filter(|&stage| !self.settled[stage] || self.sizes[stage].is_some());
        let mut awaited = stages.filter_map(|stage| {
            let task = self.tasks[stage].iter().position(|task| *task == State::Wanted)?;
            Some((stage, task))
        });
        awaited.next()
    }

    /// Notes the rows and bytes of each output of a task; gives the tasks that need not run.
    pub fn ended(&mut self, stage: usize, task: usize, outputs: &[(usize, usize)]) -> Vec<(usize, usize)> {
        self.tasks[stage][task] = State::Ended(outputs.iter().map(|(rows, _)| rows).sum());
        self.unended[stage] -= 1;
        if let Some(sizes) = &mut self.sizes[stage] {
            sizes.note(task, outputs);
        }
        let Some(enough) = self.stages.stages[stage].enough.filter(|_| !self.settled[stage]) else {
            return Vec::new();
        };
        let (mut first, mut made) = (0, 0);
        while let Some(State::Ended(rows)) = self.tasks[stage].get(first) {
            first += 1;
            made += rows;
        }
        if enough <= made {
            return self.skip_rest(stage);
        }
        if first == self.wanted[stage] {
            self.want_first(stage, 2 * first);
        }
        Vec::new()
    }

    /// Leaves out the tasks of a stage that nobody has asked for.
    fn skip_rest(&mut self, stage: usize) -> Vec<(usize, usize)> {
        self.settled[stage] = true;
        let tasks = self.tasks[stage].iter_mut().enumerate();
        let skipped = tasks.filter(|(_, state)| **state == State::Unwanted).map(|(task, state)| {
            *state = State::Skipped;
            (stage, task)
        });
        skipped.collect()
    }
}
