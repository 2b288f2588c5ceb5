//! Growth of trees, many at once: a pass for each level, not for each leaf.
//!
//! With a limit on leaves a tree is grown best first, as in scikit-learn: the leaf that gains most is split
//! next. A pass looks at the children of all leaves that may yet be split, so it does so for many steps of
//! that at once; those that come out too late are dropped. The tree is the same.
//!
//! The sums of the nodes of a pass are at most so many bytes: more nodes take more passes, and no tree comes
//! out otherwise.
//!
//! Without a limit on leaves a tree has about as many nodes as samples. Nodes of so few rows that these fit
//! the memory of this process are left until there are no others. Then a pass fetches the rows of as many of
//! them as fit, and all that is below them is grown from an in-memory table.

use super::criterion::{Searched, Split};
use super::data::Binned;
use super::histogram::{Bootstrap, Column, Growing, Histograms, NOT_OPEN, Sums, new_number};
use super::partial::{Facts, Grown, Growth, PartialTree, Status};
use super::table::{Pieces, Table};
use super::threads::on_threads;
use crate::engine::check_cancelled;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use tharsis_graph::Error as GraphError;
use tharsis_kernels::Key;
use tharsis_kernels::random::below;
use tharsis_numeric::{Error, Result, Tensor};

/// Rows of all trees together from which threads make them: fewer are done before these have begun.
pub(super) const THREAD_ROWS_MIN: usize = 20_000;
/// Values of a node from which threads share its features.
const SHARED_MIN: usize = 1 << 18;
/// Rows of a node from which threads are worth beginning.
const SHARED_ROWS_MIN: usize = 1 << 13;

/// The samples of trees.
pub(crate) struct Samples<'a> {
    pub(crate) binned: &'a Binned,
    /// Targets; scores, if the sums are of slopes; weights, if there are any.
    pub(crate) inputs: Vec<&'a Tensor>,
    pub(crate) is_weighted: bool,
    pub(crate) sums: Sums,
    pub(crate) scores: usize,
    pub(crate) bootstrap: Option<Bootstrap>,
    /// The same samples in memory, if they are few.
    pub(crate) table: Option<Table<'a>>,
}

impl Samples<'_> {
    /// Bytes of a row in the memory of this process, with its place in the lists of rows of nodes.
    fn row_bytes(&self) -> u64 {
        let numbers = 3 + self.inputs.len() + 3 * self.scores;
        (self.binned.columns + numbers * size_of::<f64>()) as u64
    }
}

/// A node whose sums by bin are to be known.
struct Job {
    tree: usize,
    node: usize,
    /// The other child of the same parent, whose sums are what is left.
    sibling: Option<usize>,
    columns: Vec<Column>,
    /// Numbers of the state.
    len: usize,
    state: Vec<f64>,
}

/// Trees while they grow.
pub(super) struct Grower<'a> {
    pub(super) samples: &'a Samples<'a>,
    pub(super) growth: &'a Growth,
    /// Features that have more than one bin.
    usable: Vec<u32>,
    pub(super) trees: Vec<PartialTree>,
    /// Whether the sums of a node are kept until its children are known: those of one child are what is left
    /// when those of the other are taken off.
    subtracts: bool,
    /// Rows of a node that is grown in memory.
    pub(super) small_rows: f64,
    /// Threads that sum the rows of a table.
    threads: usize,
}

/// Grows trees with these numbers, whose draws follow from the seed and the number.
///
/// # Errors
/// Errors of the passes.
#[track_caller]
pub(crate) fn grow(
    samples: &Samples<'_>,
    growth: &Growth,
    seed: u64,
    numbers: &[usize],
) -> Result<Vec<Grown>> {
    let Some(table) = &samples.table else { return Grower::grow(samples, growth, (seed, 1), numbers) };
    let cost = table.targets.len() * numbers.len();
    let threads = if cost < THREAD_ROWS_MIN { 1 } else { samples.binned.threads };
    let grown = on_threads(numbers.to_vec(), threads, |number, threads| {
        Grower::grow(samples, growth, (seed, threads), &[number])
    })?;
    Ok(grown.into_iter().flatten().collect())
}

impl<'a> Grower<'a> {
    #[track_caller]
    fn grow(
        samples: &'a Samples<'a>,
        growth: &'a Growth,
        (seed, threads): (u64, usize),
        numbers: &[usize],
    ) -> Result<Vec<Grown>> {
        let trees = numbers.iter().map(|&number| PartialTree::new(number, seed)).collect();
        let mut grower = Grower::of(samples, growth, trees, threads);
        for tree in 0..grower.trees.len() {
            grower.take_rows(tree);
        }
        grower.grow_all()?;
        let columns = samples.binned.columns;
        Ok(grower.trees.iter().map(|tree| tree.grown(growth, columns)).collect())
    }

    pub(super) fn of(
        samples: &'a Samples<'a>,
        growth: &'a Growth,
        trees: Vec<PartialTree>,
        threads: usize,
    ) -> Grower<'a> {
        let binned = samples.binned;
        let features = binned.bins.features.iter().enumerate();
        let usable = features.filter(|(_, bins)| 1 < bins.count() || bins.has_missing);
        let mut usable: Vec<u32> = usable.map(|(feature, _)| feature as u32).collect();
        if usable.is_empty() {
            // The sums of the root are those of any feature.
            usable.push(0);
        }
        let mut grower =
            Grower { samples, growth, usable, trees, subtracts: false, small_rows: 0.0, threads };
        grower.subtracts = growth.subtracts && grower.kept_bytes() <= binned.kept_bytes_max as f64;
        if samples.table.is_none() && growth.max_leaf_nodes.is_none() && !grower.subtracts {
            grower.small_rows = (binned.table_bytes / samples.row_bytes()) as f64;
        }
        grower
    }

    /// Bytes of the sums of all nodes that may be kept at the same time: a function of samples and limits
    /// alone, since what is left of a sum has other roundings than a sum.
    fn kept_bytes(&self) -> f64 {
        let features = &self.samples.binned.bins.features;
        let bins: usize = self.usable.iter().map(|&feature| features[feature as usize].count() + 1).sum();
        let node = (bins * self.samples.sums.width() * size_of::<f64>()) as f64;
        let of_depth = self.growth.max_depth.map_or(f64::INFINITY, |depth| (depth as f64).exp2());
        let of_leaves = self.growth.max_leaf_nodes.map_or(f64::INFINITY, |leaves| leaves as f64);
        let of_rows = self.samples.binned.rows as f64 / self.growth.rules.samples_min.max(1.0);
        node * of_depth.min(of_leaves).min(of_rows).max(1.0) * self.samples.scores as f64
    }

    /// Splits nodes until none is left to split.
    #[track_caller]
    pub(super) fn grow_all(&mut self) -> Result<()> {
        loop {
            check_cancelled()?;
            let mut jobs = self.jobs()?;
            if jobs.is_empty() {
                let batch = self.small_nodes();
                if batch.is_empty() {
                    return Ok(());
                }
                self.grow_in_memory(batch)?;
                continue;
            }
            self.run(&mut jobs)?;
            for job in jobs {
                self.finish(job)?;
            }
        }
    }

    /// Gives a root its rows, if samples are in a table.
    fn take_rows(&mut self, tree: usize) {
        if let Some(table) = &self.samples.table {
            let partial = &mut self.trees[tree];
            let (rows, weights) = table.drawn(partial.draws());
            (partial.facts[0].rows, partial.weights) = (rows, Arc::new(weights));
        }
    }
}

impl Grower<'_> {
    /// The nodes of the next pass, as many as its state may have.
    ///
    /// # Errors
    /// `MemoryError` for sums of one node that do not fit.
    #[track_caller]
    fn jobs(&self) -> Result<Vec<Job>> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut bytes = 0u64;
        for (at, tree) in self.trees.iter().enumerate() {
            let mut seen = HashSet::new();
            for node in tree.wanted(self.growth.max_leaf_nodes) {
                let parent = tree.facts[node].parent.filter(|&parent| tree.facts[parent].kept.is_some());
                if let Some(parent) = parent
                    && !seen.insert(parent)
                {
                    continue;
                }
                let mut job = self.job(at, node, parent);
                let len = job.len;
                let (needed_bytes, limit_bytes) =
                    ((len as u64).saturating_mul(size_of::<f64>() as u64), self.samples.binned.node_bytes);
                if limit_bytes < needed_bytes {
                    return Err(Error::here(GraphError::Memory { needed_bytes, limit_bytes }));
                }
                bytes += needed_bytes;
                if !jobs.is_empty() && self.samples.binned.state_bytes < bytes {
                    return Ok(jobs);
                }
                job.state = vec![0.0; len];
                jobs.push(job);
            }
        }
        Ok(jobs)
    }

    fn job(&self, tree: usize, node: usize, kept_parent: Option<usize>) -> Job {
        let partial = &self.trees[tree];
        let (mut node, mut sibling) = (node, None);
        if let Some(parent) = kept_parent {
            let left = partial.nodes[parent].left as usize;
            let samples = |child: usize| partial.facts[child].sums[0];
            let (small, large) =
                if samples(left) < samples(left + 1) { (left, left + 1) } else { (left + 1, left) };
            (node, sibling) = (small, Some(large));
        }
        let mut columns = Vec::new();
        let mut start = 0;
        for feature in self.features_of(&partial.facts[node]) {
            let bins = self.samples.binned.bins.features[feature as usize].count();
            columns.push(Column { feature, bins: bins as u32, start });
            start += (bins + 1) * self.samples.sums.width();
        }
        Job { tree, node, sibling, columns, len: start, state: Vec::new() }
    }

    /// The features that are looked at for a node, ascending.
    fn features_of(&self, facts: &Facts) -> Vec<u32> {
        if self.usable.len() <= self.growth.features {
            return self.usable.clone();
        }
        let key = Key::for_purpose(facts.path, 0, "features");
        let mut order = self.usable.clone();
        let last = (facts.tried + self.growth.features).min(order.len());
        for at in 0..last {
            let left = (order.len() - at) as u64;
            order.swap(at, at + below(key.bits(at as u64), left) as usize);
        }
        let mut chosen = order[facts.tried..last].to_vec();
        chosen.sort_unstable();
        chosen
    }

    /// Sums the bins of all jobs from the rows of a table. Threads share the features of a node with many
    /// rows, so sums are added in the same order by any number of them.
    fn add_rows(&self, table: &Table<'_>, jobs: &mut [Job]) {
        let mut pieces = Vec::with_capacity(jobs.len());
        for Job { tree, node, columns, len, state, .. } in jobs {
            let partial = &self.trees[*tree];
            let rows = &partial.facts[*node].rows;
            let shares = if rows.len() * columns.len() < SHARED_MIN { 1 } else { self.threads };
            let mut rest = &mut state[..];
            let mut groups = columns.chunks(columns.len().div_ceil(shares).max(1)).peekable();
            while let Some(group) = groups.next() {
                let base = group[0].start;
                let end = groups.peek().map_or(*len, |next| next[0].start);
                let (own, others) = rest.split_at_mut(end - base);
                rest = others;
                let group: Vec<Column> =
                    group.iter().map(|column| Column { start: column.start - base, ..*column }).collect();
                pieces.push((partial, rows, group, own));
            }
        }
        let threads =
            if pieces.iter().all(|(_, rows, ..)| rows.len() < SHARED_ROWS_MIN) { 1 } else { self.threads };
        let left = Mutex::new(pieces.into_iter());
        let work = || {
            let mut pieces = Pieces::default();
            let next = || left.lock().unwrap_or_else(PoisonError::into_inner).next();
            while let Some((partial, rows, columns, state)) = next() {
                table.add((partial.number, &partial.weights), rows, &columns, (state, &mut pieces));
            }
        };
        std::thread::scope(|scope| {
            (1..threads).for_each(|_| drop(scope.spawn(work)));
            work();
        });
    }

    /// Sums the bins of all jobs, by one pass, or by several if a node has more than fits one.
    #[track_caller]
    fn run(&self, jobs: &mut [Job]) -> Result<()> {
        if let Some(table) = &self.samples.table {
            self.add_rows(table, jobs);
            return Ok(());
        }
        let limit = (self.samples.binned.state_bytes / size_of::<f64>() as u64) as usize;
        // Features of a job: the first one, and the one behind the last.
        let mut parts: Vec<(usize, usize, usize)> = Vec::new();
        let mut elements = 0;
        for job in 0..jobs.len() {
            let mut first = 0;
            for column in 0..jobs[job].columns.len() {
                let len = jobs[job].len_of(column, column + 1);
                if 0 < elements && limit < elements + len {
                    if first < column {
                        parts.push((job, first, column));
                    }
                    self.pass(jobs, &parts, elements)?;
                    parts.clear();
                    (elements, first) = (0, column);
                }
                elements += len;
            }
            parts.push((job, first, jobs[job].columns.len()));
        }
        self.pass(jobs, &parts, elements)
    }

    #[track_caller]
    fn pass(&self, jobs: &mut [Job], parts: &[(usize, usize, usize)], elements: usize) -> Result<()> {
        let mut open: Vec<(usize, Vec<(usize, u32)>)> = Vec::new();
        let mut columns = Vec::with_capacity(parts.len());
        let mut start = 0;
        for (part, &(job, first, last)) in parts.iter().enumerate() {
            let job = &jobs[job];
            if open.last().is_none_or(|&(tree, _)| tree != job.tree) {
                open.push((job.tree, Vec::new()));
            }
            if let Some((_, nodes)) = open.last_mut() {
                nodes.push((job.node, part as u32));
            }
            let shift = |column: &Column| Column {
                start: column.start - job.columns[first].start + start,
                ..*column
            };
            columns.push(job.columns[first..last].iter().map(shift).collect());
            start += job.len_of(first, last);
        }
        let trees = open.iter().map(|(tree, nodes)| self.growing(*tree, nodes)).collect();
        let Samples { binned, inputs, sums, bootstrap, .. } = self.samples;
        let function = Histograms {
            sums: sums.clone(),
            bootstrap: bootstrap.clone(),
            is_weighted: self.samples.is_weighted,
            trees,
            parts: columns,
            elements,
            columns: binned.columns,
            rows: binned.pass_rows,
            scores: self.samples.scores,
            number: new_number(),
        };
        let state = binned.state(Arc::new(function), inputs, elements)?;
        let mut start = 0;
        for &(job, first, last) in parts {
            let len = jobs[job].len_of(first, last);
            let to = jobs[job].columns[first].start;
            jobs[job].state[to..to + len].copy_from_slice(&state[start..start + len]);
            start += len;
        }
        Ok(())
    }

    /// The part of a tree that leads to some nodes, each with its part of the state.
    pub(super) fn growing(&self, tree: usize, open: &[(usize, u32)]) -> Growing {
        let partial = &self.trees[tree];
        let (nodes, places) = partial.way_to(open.iter().map(|&(node, _)| node));
        let mut parts = vec![NOT_OPEN; nodes.len()];
        for (node, part) in open {
            parts[places[node]] = *part;
        }
        Growing { tree: partial.number, draws: partial.draws(), nodes, parts }
    }

    /// Splits the nodes whose sums a job has.
    #[track_caller]
    fn finish(&mut self, job: Job) -> Result<()> {
        let Job { tree, node, sibling, columns, state, .. } = job;
        let kept =
            self.trees[tree].facts[node].parent.and_then(|parent| self.trees[tree].facts[parent].kept.take());
        if let (Some(sibling), Some(mut left)) = (sibling, kept) {
            take_off(&mut left, &state, self.samples.sums.width());
            self.search(tree, sibling, &columns, left)?;
        }
        self.search(tree, node, &columns, state)?;
        for child in sibling.into_iter().chain([node]) {
            if self.trees[tree].facts[child].status == Status::Leaf {
                self.trees[tree].facts[child].rows = Vec::new();
            }
        }
        Ok(())
    }

    #[track_caller]
    fn search(&mut self, tree: usize, node: usize, columns: &[Column], state: Vec<f64>) -> Result<()> {
        let partial = &mut self.trees[tree];
        if partial.facts[node].status != Status::New {
            return Ok(());
        }
        if node == 0 && partial.facts[0].sums.is_empty() {
            let width = self.samples.sums.width();
            let first = &state[..(columns[0].bins as usize + 1) * width];
            partial.facts[0].sums = (0..width).map(|at| first[at..].iter().step_by(width).sum()).collect();
            if partial.facts[0].sums[0] == 0.0 {
                partial.draw_again()?;
                self.take_rows(tree);
                return Ok(());
            }
            partial.root_weight = self.growth.rules.criterion.weight(&partial.facts[0].sums);
            if self.growth.is_leaf(0, &partial.facts[0].sums) {
                partial.end(0);
                return Ok(());
            }
        }
        let facts = &partial.facts[node];
        let key = Key::for_purpose(facts.path, 0, "thresholds");
        let is_root = facts.depth == 0;
        let searched = Searched { columns, state: &state, sums: &facts.sums, is_root, key };
        let found = self.growth.rules.best(&self.samples.binned.bins, &searched);
        let root_weight = partial.root_weight;
        let enough = |split: &Split| self.growth.decrease_min <= split.gain / root_weight + f64::EPSILON;
        match found {
            Some(split) if self.growth.decrease_min == 0.0 || enough(&split) => {
                partial.split(node, split, self.growth);
                self.after_split(tree, node, (state, columns.len()));
            }
            Some(_) => partial.end(node),
            None => {
                let facts = &mut partial.facts[node];
                facts.tried += columns.len();
                if self.usable.len() <= facts.tried {
                    partial.end(node);
                }
            }
        }
        Ok(())
    }

    /// Gives new children their rows, if samples are in a table, or leaves them until these are fetched, and
    /// keeps the sums of the node for them. A node of drawn features keeps none.
    fn after_split(&mut self, tree: usize, node: usize, (state, columns): (Vec<f64>, usize)) {
        let partial = &mut self.trees[tree];
        let left = partial.nodes[node].left as usize;
        let is_new = [left, left + 1].map(|child| partial.facts[child].status == Status::New);
        let is_kept = self.subtracts && self.usable.len() == columns && is_new != [false; 2];
        if let Some(table) = &self.samples.table {
            let rows = std::mem::take(&mut partial.facts[node].rows);
            for (child, rows) in table.part(&partial.nodes[node], rows).into_iter().enumerate() {
                // The sums of a leaf may be taken off for its sibling.
                if is_kept || is_new[child] {
                    partial.facts[left + child].rows = rows;
                }
            }
        }
        for child in [left, left + 1] {
            if partial.facts[child].sums[0] <= self.small_rows && partial.open.remove(&child) {
                partial.small.push(child);
            }
        }
        if is_kept {
            partial.facts[node].kept = Some(state);
        }
    }
}

impl Job {
    /// Numbers of the state of some columns.
    fn len_of(&self, first: usize, last: usize) -> usize {
        let start = |column: usize| self.columns.get(column).map_or(self.len, |column| column.start);
        start(last) - start(first)
    }
}

/// The sums of what is left of a node without one of its children. Bins without samples are empty to the bit.
fn take_off(sums: &mut [f64], child: &[f64], width: usize) {
    for (bin, child) in sums.chunks_exact_mut(width).zip(child.chunks_exact(width)) {
        bin.iter_mut().zip(child).for_each(|(sum, part)| *sum -= part);
        if bin[0] == 0.0 {
            bin.fill(0.0);
        }
    }
}
