//! Growth of trees, many at once: a pass for each level, not for each leaf.
//!
//! With a limit on leaves a tree is grown best first, as in scikit-learn: the leaf that gains most is split
//! next. A pass looks at the children of all leaves that may yet be split, so it does so for many steps of
//! that at once; those that come out too late are dropped. The tree is the same.
//!
//! The sums of the nodes of a pass are at most so many bytes: more nodes take more passes, and no tree comes
//! out otherwise.

use super::criterion::{Criterion, Rules, Searched, Split};
use super::data::Binned;
use super::histogram::{Bootstrap, Column, Growing, Histograms, NOT_OPEN, Sums, key_of, new_number};
use super::nodes::{Node, Tree};
use crate::states::lost;
use std::collections::{BinaryHeap, HashSet, VecDeque};
use std::sync::Arc;
use tharsis_kernels::Key;
use tharsis_kernels::random::below;
use tharsis_numeric::{Result, Tensor};

/// Bytes of sums of nodes that are kept until their children are known: those of one child are what is left
/// when those of the other are taken off. Nodes beyond it are summed for both.
const KEPT_BYTES_MAX: usize = 512 << 20;
/// Draws of the samples of a tree, until there is at least one.
const DRAWS_MAX: u64 = 64;

/// Limits of trees.
#[derive(Clone, Debug)]
pub(crate) struct Growth {
    pub(crate) rules: Rules,
    pub(crate) max_leaf_nodes: Option<usize>,
    pub(crate) max_depth: Option<usize>,
    /// Samples of a node that is split, at least.
    pub(crate) samples_split_min: f64,
    /// The least gain of a split, as a part of the weight of the root.
    pub(crate) decrease_min: f64,
    /// Features that are looked at for a node.
    pub(crate) features: usize,
    /// Whether the sums of a node are kept for its children. That costs digits.
    pub(crate) subtracts: bool,
}

/// The samples of trees.
pub(crate) struct Samples<'a> {
    pub(crate) binned: &'a Binned,
    /// Targets; scores, if the sums are of slopes; weights, if there are any.
    pub(crate) inputs: Vec<&'a Tensor>,
    pub(crate) is_weighted: bool,
    pub(crate) sums: Sums,
    pub(crate) scores: usize,
    pub(crate) bootstrap: Option<Bootstrap>,
}

/// A grown tree.
pub(crate) struct Grown {
    pub(crate) nodes: Vec<Node>,
    /// The sums of each node.
    pub(crate) sums: Vec<Vec<f64>>,
    /// The gain of all splits by each feature.
    pub(crate) gains: Vec<f64>,
}

impl Grown {
    /// The tree with values that a function makes from the sums of each node.
    pub(crate) fn tree(&self, column: usize, width: usize, values: impl Fn(&[f64]) -> Vec<f64>) -> Tree {
        let values = self.sums.iter().flat_map(|sums| values(sums)).collect();
        Tree { nodes: self.nodes.clone(), values, width, column }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Status {
    /// Its sums by bin are not known.
    New,
    /// It can be split, and its children exist.
    Split,
    /// It cannot be split.
    Leaf,
}

struct Facts {
    status: Status,
    depth: usize,
    /// The place of the node in its tree, as bits for draws.
    path: u64,
    parent: Option<usize>,
    sums: Vec<f64>,
    gain: f64,
    /// Features that were looked at in vain.
    tried: usize,
    /// The sums by bin, until those of the children are known.
    kept: Option<Vec<f64>>,
}

struct Sapling {
    number: usize,
    seed: u64,
    draw: u64,
    nodes: Vec<Node>,
    facts: Vec<Facts>,
}

/// A node whose sums by bin are to be known.
struct Job {
    tree: usize,
    node: usize,
    /// The other child of the same parent, whose sums are what is left.
    sibling: Option<usize>,
    columns: Vec<Column>,
    state: Vec<f64>,
}

/// Trees while they grow.
struct Grower<'a> {
    samples: &'a Samples<'a>,
    growth: &'a Growth,
    /// Features that have more than one bin.
    usable: Vec<u32>,
    trees: Vec<Sapling>,
    kept_bytes: usize,
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
    let features = samples.binned.bins.features.iter().enumerate();
    let usable = features.filter(|(_, bins)| 1 < bins.count() || bins.has_missing);
    let mut usable: Vec<u32> = usable.map(|(feature, _)| feature as u32).collect();
    if usable.is_empty() {
        // The sums of the root are those of any feature.
        usable.push(0);
    }
    let trees = numbers.iter().map(|&number| Sapling::new(number, seed)).collect();
    let mut grower = Grower { samples, growth, usable, trees, kept_bytes: 0 };
    loop {
        let mut jobs = grower.jobs();
        if jobs.is_empty() {
            break;
        }
        grower.run(&mut jobs)?;
        for job in jobs {
            grower.finish(job)?;
        }
    }
    let columns = samples.binned.columns;
    Ok(grower.trees.iter().map(|tree| tree.grown(growth, columns)).collect())
}

impl Sapling {
    fn new(number: usize, seed: u64) -> Sapling {
        let mut tree = Sapling { number, seed, draw: 0, nodes: Vec::new(), facts: Vec::new() };
        tree.plant();
        tree
    }

    /// The seed and the stream of the draws of samples.
    fn draws(&self) -> [u64; 2] {
        [self.seed, self.number as u64 | self.draw << 32]
    }

    /// Begins with a root, with samples of the draw of this number.
    fn plant(&mut self) {
        let path = key_of(self.draws()).bits(u64::MAX);
        self.nodes = vec![Node::leaf()];
        self.facts = vec![Facts::new(None, 0, path, Vec::new(), Status::New)];
    }

    /// The nodes whose sums are wanted next, and whether each node is split in the end, as far as known.
    fn simulate(&self, max_leaf_nodes: Option<usize>) -> (Vec<usize>, Vec<bool>) {
        let Some(leaves_max) = max_leaf_nodes else {
            let is_split = self.facts.iter().map(|facts| facts.status == Status::Split).collect();
            let wanted = (0..self.facts.len()).filter(|&node| self.facts[node].status == Status::New);
            return (wanted.collect(), is_split);
        };
        let mut is_split = vec![false; self.nodes.len()];
        let mut new = Vec::new();
        let mut heap = BinaryHeap::new();
        let mut leaves = 1;
        self.stand_in_line(0, &mut heap, &mut new);
        while leaves < leaves_max && new.is_empty() {
            let Some(Candidate { node, .. }) = heap.pop() else { return (Vec::new(), is_split) };
            is_split[node] = true;
            leaves += 1;
            let left = self.nodes[node].left as usize;
            self.stand_in_line(left, &mut heap, &mut new);
            self.stand_in_line(left + 1, &mut heap, &mut new);
        }
        if leaves == leaves_max {
            return (Vec::new(), is_split);
        }
        // The last split needs no children, and no leaf behind so many better ones is split.
        for _ in 1..leaves_max - leaves {
            let Some(Candidate { node, .. }) = heap.pop() else { break };
            let left = self.nodes[node].left as usize;
            new.extend([left, left + 1].into_iter().filter(|&child| self.facts[child].status == Status::New));
        }
        (new, is_split)
    }

    /// A leaf of the simulated tree is a candidate for a split, or new, or stays a leaf.
    fn stand_in_line(&self, node: usize, heap: &mut BinaryHeap<Candidate>, new: &mut Vec<usize>) {
        let Facts { status, gain, path, .. } = self.facts[node];
        match status {
            Status::Split => heap.push(Candidate { gain, path, node }),
            Status::New => new.push(node),
            Status::Leaf => {}
        }
    }

    /// The tree without the nodes that are not needed.
    fn grown(&self, growth: &Growth, columns: usize) -> Grown {
        let (_, is_split) = self.simulate(growth.max_leaf_nodes);
        let mut gains = vec![0.0; columns];
        let (mut nodes, mut sums) = (vec![Node::leaf()], vec![self.facts[0].sums.clone()]);
        let mut queue = VecDeque::from([(0, 0)]);
        while let Some((old, new)) = queue.pop_front() {
            if !is_split[old] {
                continue;
            }
            let (split, left) = (self.nodes[old], nodes.len());
            gains[split.feature as usize] += self.facts[old].gain;
            nodes[new] = Node { left: left as u32, ..split };
            for child in 0..2 {
                nodes.push(Node::leaf());
                sums.push(self.facts[split.left as usize + child].sums.clone());
                queue.push_back((split.left as usize + child, left + child));
            }
        }
        Grown { nodes, sums, gains }
    }
}

impl Facts {
    fn new(parent: Option<usize>, depth: usize, path: u64, sums: Vec<f64>, status: Status) -> Facts {
        Facts { status, depth, path, parent, sums, gain: 0.0, tried: 0, kept: None }
    }
}

/// A leaf that can be split: that with the largest gain comes first, and of equal ones always the same.
struct Candidate {
    gain: f64,
    path: u64,
    node: usize,
}

impl Ord for Candidate {
    fn cmp(&self, other: &Candidate) -> std::cmp::Ordering {
        self.gain.total_cmp(&other.gain).then(self.path.cmp(&other.path))
    }
}

impl PartialOrd for Candidate {
    fn partial_cmp(&self, other: &Candidate) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Candidate {
    fn eq(&self, other: &Candidate) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Candidate {}

impl Grower<'_> {
    /// The nodes of the next pass, as many as its state may have.
    fn jobs(&self) -> Vec<Job> {
        let mut jobs: Vec<Job> = Vec::new();
        let mut bytes = 0;
        for (at, tree) in self.trees.iter().enumerate() {
            let (wanted, _) = tree.simulate(self.growth.max_leaf_nodes);
            let mut seen = HashSet::new();
            for node in wanted {
                let parent = tree.facts[node].parent.filter(|&parent| tree.facts[parent].kept.is_some());
                if let Some(parent) = parent
                    && !seen.insert(parent)
                {
                    continue;
                }
                let job = self.job(at, node, parent);
                bytes += job.state.len() * size_of::<f64>();
                if !jobs.is_empty() && self.samples.binned.state_bytes < bytes as u64 {
                    return jobs;
                }
                jobs.push(job);
            }
        }
        jobs
    }

    fn job(&self, tree: usize, node: usize, kept_parent: Option<usize>) -> Job {
        let sapling = &self.trees[tree];
        let (mut node, mut sibling) = (node, None);
        if let Some(parent) = kept_parent {
            let left = sapling.nodes[parent].left as usize;
            let samples = |child: usize| sapling.facts[child].sums[0];
            let (small, large) =
                if samples(left) < samples(left + 1) { (left, left + 1) } else { (left + 1, left) };
            (node, sibling) = (small, Some(large));
        }
        let mut columns = Vec::new();
        let mut start = 0;
        for feature in self.features_of(&sapling.facts[node]) {
            let bins = self.samples.binned.bins.features[feature as usize].count();
            columns.push(Column { feature, bins: bins as u32, start });
            start += (bins + 1) * self.samples.sums.width();
        }
        Job { tree, node, sibling, columns, state: vec![0.0; start] }
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

    /// Sums the bins of all jobs, by one pass, or by several if a node has more than fits one.
    #[track_caller]
    fn run(&self, jobs: &mut [Job]) -> Result<()> {
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
        let mut trees: Vec<Growing> = Vec::new();
        let mut columns = Vec::with_capacity(parts.len());
        let mut start = 0;
        for (part, &(job, first, last)) in parts.iter().enumerate() {
            let job = &jobs[job];
            let sapling = &self.trees[job.tree];
            if trees.last().is_none_or(|tree| tree.tree != sapling.number) {
                trees.push(Growing {
                    tree: sapling.number,
                    draws: sapling.draws(),
                    nodes: sapling.nodes.clone(),
                    parts: vec![NOT_OPEN; sapling.nodes.len()],
                });
            }
            if let Some(growing) = trees.last_mut() {
                growing.parts[job.node] = part as u32;
            }
            let shift = |column: &Column| Column {
                start: column.start - job.columns[first].start + start,
                ..*column
            };
            columns.push(job.columns[first..last].iter().map(shift).collect());
            start += job.len_of(first, last);
        }
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

    /// Splits the nodes whose sums a job has.
    #[track_caller]
    fn finish(&mut self, job: Job) -> Result<()> {
        let Job { tree, node, sibling, columns, state } = job;
        let kept =
            self.trees[tree].facts[node].parent.and_then(|parent| self.trees[tree].facts[parent].kept.take());
        if let (Some(sibling), Some(mut left)) = (sibling, kept) {
            self.kept_bytes -= left.len() * size_of::<f64>();
            take_off(&mut left, &state, self.samples.sums.width());
            self.search(tree, sibling, &columns, left)?;
        }
        self.search(tree, node, &columns, state)
    }

    #[track_caller]
    fn search(&mut self, tree: usize, node: usize, columns: &[Column], state: Vec<f64>) -> Result<()> {
        let sapling = &mut self.trees[tree];
        if sapling.facts[node].status != Status::New {
            return Ok(());
        }
        if node == 0 && sapling.facts[0].sums.is_empty() {
            let width = self.samples.sums.width();
            let first = &state[..(columns[0].bins as usize + 1) * width];
            sapling.facts[0].sums = (0..width).map(|at| first[at..].iter().step_by(width).sum()).collect();
            if sapling.facts[0].sums[0] == 0.0 {
                return sapling.draw_again();
            }
            if self.growth.is_leaf(0, &sapling.facts[0].sums) {
                sapling.facts[0].status = Status::Leaf;
                return Ok(());
            }
        }
        let facts = &sapling.facts[node];
        let key = Key::for_purpose(facts.path, 0, "thresholds");
        let searched = Searched { columns, state: &state, sums: &facts.sums, is_root: node == 0, key };
        let found = self.growth.rules.best(&self.samples.binned.bins, &searched);
        let root_weight = self.growth.rules.criterion.weight(&sapling.facts[0].sums);
        let enough = |split: &Split| self.growth.decrease_min <= split.gain / root_weight + f64::EPSILON;
        match found {
            Some(split) if self.growth.decrease_min == 0.0 || enough(&split) => {
                sapling.split(node, split, self.growth);
                let bytes = state.len() * size_of::<f64>();
                let is_all = self.usable.len() == columns.len();
                if self.growth.subtracts && is_all && self.kept_bytes + bytes <= KEPT_BYTES_MAX {
                    self.kept_bytes += bytes;
                    sapling.facts[node].kept = Some(state);
                }
            }
            Some(_) => sapling.facts[node].status = Status::Leaf,
            None => {
                let facts = &mut sapling.facts[node];
                facts.tried += columns.len();
                if self.usable.len() <= facts.tried {
                    facts.status = Status::Leaf;
                }
            }
        }
        Ok(())
    }
}

impl Job {
    /// Numbers of the state of some columns.
    fn len_of(&self, first: usize, last: usize) -> usize {
        let start = |column: usize| self.columns.get(column).map_or(self.state.len(), |column| column.start);
        start(last) - start(first)
    }
}

impl Sapling {
    /// Other samples for a tree that has none.
    #[track_caller]
    fn draw_again(&mut self) -> Result<()> {
        self.draw += 1;
        if self.draw == DRAWS_MAX {
            return Err(lost());
        }
        self.plant();
        Ok(())
    }

    /// Gives a node its children.
    fn split(&mut self, node: usize, split: Split, growth: &Growth) {
        let left = self.nodes.len();
        let Split { feature, bin, threshold, missing_left, gain, .. } = split;
        self.nodes[node] = Node { feature, left: left as u32, threshold, bin, missing_left };
        self.facts[node].status = Status::Split;
        self.facts[node].gain = gain;
        let (depth, key) = (self.facts[node].depth + 1, Key::of_bits(self.facts[node].path));
        for (side, sums) in [split.left, split.right].into_iter().enumerate() {
            let status = if growth.is_leaf(depth, &sums) { Status::Leaf } else { Status::New };
            self.nodes.push(Node::leaf());
            self.facts.push(Facts::new(Some(node), depth, key.bits(side as u64), sums, status));
        }
    }
}

impl Growth {
    /// Whether a node of these sums is not split, whatever its bins are.
    fn is_leaf(&self, depth: usize, sums: &[f64]) -> bool {
        let criterion = self.rules.criterion;
        let is_newton = matches!(criterion, Criterion::Newton { .. });
        self.max_depth.is_some_and(|max| max <= depth)
            || sums[0] < self.samples_split_min.max(2.0 * self.rules.samples_min)
            || !is_newton && criterion.impurity(sums) <= f64::EPSILON * criterion.weight(sums)
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
