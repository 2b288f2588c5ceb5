//! A partial tree, one that grows: its nodes, as many as are looked at, and those of them that are needed.

use super::criterion::{Rules, Split};
use super::histogram::key_of;
use super::nodes::{Node, Tree};
use crate::states::lost;
use std::collections::{BinaryHeap, VecDeque};
use tharsis_kernels::Key;
use tharsis_numeric::Result;

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

/// A grown tree.
pub(crate) struct Grown {
    pub(crate) nodes: Vec<Node>,
    /// The sums of each node.
    pub(crate) sums: Vec<Vec<f64>>,
    /// The gain of all splits by each feature.
    pub(crate) gains: Vec<f64>,
    /// The seed and the stream of the draws of its samples.
    pub(crate) draws: [u64; 2],
}

impl Grown {
    /// The tree with values that a function makes from the sums of each node.
    pub(crate) fn tree(&self, column: usize, width: usize, values: impl Fn(&[f64]) -> Vec<f64>) -> Tree {
        let values = self.sums.iter().flat_map(|sums| values(sums)).collect();
        Tree { nodes: self.nodes.clone(), values, width, column }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Status {
    /// Its sums by bin are not known.
    New,
    /// It can be split, and its children exist.
    Split,
    /// It cannot be split.
    Leaf,
}

pub(super) struct Facts {
    pub(super) status: Status,
    pub(super) depth: usize,
    /// The place of the node in its tree, as bits for draws.
    pub(super) path: u64,
    pub(super) parent: Option<usize>,
    pub(super) sums: Vec<f64>,
    pub(super) gain: f64,
    /// Features that were looked at in vain.
    pub(super) tried: usize,
    /// The sums by bin, until those of the children are known.
    pub(super) kept: Option<Vec<f64>>,
    /// The rows of the node, if samples are in a table, until it is split.
    pub(super) rows: Vec<u32>,
}

pub(super) struct PartialTree {
    pub(super) number: usize,
    pub(super) seed: u64,
    pub(super) draw: u64,
    pub(super) nodes: Vec<Node>,
    pub(super) facts: Vec<Facts>,
    /// The weight of each row of the table.
    pub(super) weights: Vec<f64>,
}

impl PartialTree {
    pub(super) fn new(number: usize, seed: u64) -> PartialTree {
        let mut tree =
            PartialTree { number, seed, draw: 0, nodes: Vec::new(), facts: Vec::new(), weights: Vec::new() };
        tree.restart();
        tree
    }

    /// The seed and the stream of the draws of samples.
    pub(super) fn draws(&self) -> [u64; 2] {
        [self.seed, self.number as u64 | self.draw << 32]
    }

    /// Starts anew with a root, with samples of the draw of this number.
    fn restart(&mut self) {
        let path = key_of(self.draws()).bits(u64::MAX);
        self.nodes = vec![Node::leaf()];
        self.facts = vec![Facts::new(None, 0, path, Vec::new(), Status::New)];
    }

    /// The nodes whose sums are wanted next, and whether each node is split in the end, as far as known.
    pub(super) fn simulate(&self, max_leaf_nodes: Option<usize>) -> (Vec<usize>, Vec<bool>) {
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
    pub(super) fn grown(&self, growth: &Growth, columns: usize) -> Grown {
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
        Grown { nodes, sums, gains, draws: self.draws() }
    }
}

impl Facts {
    fn new(parent: Option<usize>, depth: usize, path: u64, sums: Vec<f64>, status: Status) -> Facts {
        Facts { status, depth, path, parent, sums, gain: 0.0, tried: 0, kept: None, rows: Vec::new() }
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

impl PartialTree {
    /// Other samples for a tree that has none.
    #[track_caller]
    pub(super) fn draw_again(&mut self) -> Result<()> {
        self.draw += 1;
        if self.draw == DRAWS_MAX {
            return Err(lost());
        }
        self.restart();
        Ok(())
    }

    /// Gives a node its children.
    pub(super) fn split(&mut self, node: usize, split: Split, growth: &Growth) {
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
    pub(super) fn is_leaf(&self, depth: usize, sums: &[f64]) -> bool {
        self.max_depth.is_some_and(|max| max <= depth)
            || sums[0] < self.samples_split_min.max(2.0 * self.rules.samples_min)
            || self.rules.criterion.is_pure(sums)
    }
}
