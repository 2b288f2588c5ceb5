//! A partial tree, one that grows: its nodes, as many as are looked at, and those of them that are needed.

use super::criterion::{Rules, Split};
use super::histogram::key_of;
use super::nodes::{Node, Tree};
use crate::states::lost;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::sync::Arc;
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
    /// Whether the sums of a node may be kept for its children. That costs digits.
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

#[derive(Clone)]
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

/// A tree, or what is below a node of it.
pub(super) struct PartialTree {
    pub(super) number: usize,
    pub(super) seed: u64,
    pub(super) draw: u64,
    pub(super) nodes: Vec<Node>,
    pub(super) facts: Vec<Facts>,
    /// The new nodes. With a limit on leaves the order of splits tells which ones are looked at.
    pub(super) open: BTreeSet<usize>,
    /// New nodes whose rows are to be grown in memory.
    pub(super) small: Vec<usize>,
    /// The weight of the root, once it is known.
    pub(super) root_weight: f64,
    /// The weight of each row of the table.
    pub(super) weights: Arc<Vec<f64>>,
}

impl PartialTree {
    pub(super) fn new(number: usize, seed: u64) -> PartialTree {
        let mut tree = PartialTree {
            number,
            seed,
            draw: 0,
            nodes: Vec::new(),
            facts: Vec::new(),
            open: BTreeSet::new(),
            small: Vec::new(),
            root_weight: 0.0,
            weights: Arc::default(),
        };
        tree.restart();
        tree
    }

    /// A tree of all that is below a node, whose rows are these ones of a table.
    pub(super) fn below(&self, node: usize, rows: Vec<u32>, weights: Arc<Vec<f64>>) -> PartialTree {
        let root = Facts { parent: None, rows, ..self.facts[node].clone() };
        PartialTree {
            nodes: vec![Node::leaf()],
            facts: vec![root],
            open: BTreeSet::from([0]),
            small: Vec::new(),
            weights,
            ..*self
        }
    }

    /// Adds what has grown below a node.
    pub(super) fn graft(&mut self, node: usize, grown: PartialTree) {
        let shift = self.nodes.len() - 1;
        let place = |at: usize| if at == 0 { node } else { at + shift };
        for (at, (own, facts)) in grown.nodes.into_iter().zip(grown.facts).enumerate() {
            let own = Node { left: own.left + shift as u32, ..own };
            if at == 0 {
                self.nodes[node] = own;
                self.facts[node] = Facts { parent: self.facts[node].parent, ..facts };
            } else {
                self.nodes.push(own);
                self.facts.push(Facts { parent: facts.parent.map(place), ..facts });
            }
        }
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
        self.open = BTreeSet::from([0]);
    }

    /// The nodes whose sums are wanted next.
    pub(super) fn wanted(&self, max_leaf_nodes: Option<usize>) -> Box<dyn Iterator<Item = usize> + '_> {
        match max_leaf_nodes {
            None => Box::new(self.open.iter().copied()),
            Some(leaves_max) => Box::new(self.simulate(leaves_max).0.into_iter()),
        }
    }

    /// Whether each node is split in the end, as far as known.
    fn split_nodes(&self, max_leaf_nodes: Option<usize>) -> Vec<bool> {
        match max_leaf_nodes {
            None => self.facts.iter().map(|facts| facts.status == Status::Split).collect(),
            Some(leaves_max) => self.simulate(leaves_max).1,
        }
    }

    /// The nodes whose sums are wanted next, and whether each node is split in the end, as far as known.
    fn simulate(&self, leaves_max: usize) -> (Vec<usize>, Vec<bool>) {
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

    /// The part of the tree that leads to some nodes, and the place of each of these in it.
    pub(super) fn way_to(&self, wanted: impl Iterator<Item = usize>) -> (Vec<Node>, BTreeMap<usize, usize>) {
        let mut ancestors = BTreeSet::new();
        for node in wanted {
            let mut at = node;
            while let Some(parent) = self.facts[at].parent.filter(|&parent| ancestors.insert(parent)) {
                at = parent;
            }
        }
        let mut nodes = vec![Node::leaf()];
        let mut places = BTreeMap::from([(0, 0)]);
        // Parents come before their children.
        for ancestor in ancestors {
            let (left, place) = (nodes.len(), places[&ancestor]);
            let node = self.nodes[ancestor];
            nodes[place] = Node { left: left as u32, ..node };
            for child in 0..2 {
                places.insert(node.left as usize + child, left + child);
                nodes.push(Node::leaf());
            }
        }
        (nodes, places)
    }

    /// The tree without the nodes that are not needed.
    pub(super) fn grown(&self, growth: &Growth, columns: usize) -> Grown {
        let is_split = self.split_nodes(growth.max_leaf_nodes);
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
        self.open.remove(&node);
        self.facts[node].status = Status::Split;
        self.facts[node].gain = gain;
        let (depth, key) = (self.facts[node].depth + 1, Key::of_bits(self.facts[node].path));
        for (side, sums) in [split.left, split.right].into_iter().enumerate() {
            let status = if growth.is_leaf(depth, &sums) { Status::Leaf } else { Status::New };
            self.nodes.push(Node::leaf());
            if status == Status::New {
                self.open.insert(self.facts.len());
            }
            self.facts.push(Facts::new(Some(node), depth, key.bits(side as u64), sums, status));
        }
    }

    /// Makes a node a leaf.
    pub(super) fn end(&mut self, node: usize) {
        self.open.remove(&node);
        self.facts[node].status = Status::Leaf;
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

#[cfg(test)]
mod tests {
    use super::super::criterion::Criterion;
    use super::*;

    fn growth() -> Growth {
        let criterion = Criterion::SquaredError;
        let rules = Rules { criterion, samples_min: 1.0, is_random: false, is_within_node: true };
        Growth {
            rules,
            max_leaf_nodes: None,
            max_depth: None,
            samples_split_min: 2.0,
            decrease_min: 0.0,
            features: 1,
            subtracts: false,
        }
    }

    fn split(left: f64, right: f64) -> Split {
        let sums = |samples: f64| vec![samples, samples, 0.0, samples];
        let (left, right) = (sums(left), sums(right));
        Split { feature: 0, bin: 3, threshold: 0.5, missing_left: false, gain: 1.0, left, right }
    }

    #[test]
    fn what_grows_below_a_node_is_as_if_it_grew_there() {
        let growth = growth();
        let (mut one, mut parts) = (PartialTree::new(3, 7), PartialTree::new(3, 7));
        [&mut one, &mut parts].into_iter().for_each(|tree| tree.split(0, split(40.0, 60.0), &growth));
        let mut below = parts.below(2, vec![1, 2], Arc::default());
        one.split(2, split(20.0, 30.0), &growth);
        one.split(1, split(10.0, 1.0), &growth);
        one.split(3, split(5.0, 5.0), &growth);
        parts.split(1, split(10.0, 1.0), &growth);
        below.split(0, split(20.0, 30.0), &growth);
        below.split(1, split(5.0, 5.0), &growth);
        parts.graft(2, below);
        let ([one, parts], place) =
            ([one, parts].map(|tree| tree.grown(&growth, 1)), |node: &Node| node.left);
        assert_eq!((one.sums, one.gains), (parts.sums, parts.gains));
        assert_eq!(one.nodes.iter().map(place).collect::<Vec<_>>(), [1, 3, 5, 0, 0, 7, 0, 0, 0]);
        assert_eq!(
            parts.nodes.iter().map(place).collect::<Vec<_>>(),
            one.nodes.iter().map(place).collect::<Vec<_>>()
        );
    }

    #[test]
    fn a_pass_gets_the_nodes_that_lead_to_its_own() {
        let growth = growth();
        let mut tree = PartialTree::new(0, 0);
        // A comb: each right child is split.
        for at in 0..500 {
            tree.split(2 * at, split(10.0, 1e6), &growth);
        }
        let (nodes, places) = tree.way_to([5, 2].into_iter());
        assert_eq!(nodes.len(), 7);
        let ways: Vec<u32> = nodes.iter().map(|node| node.left).collect();
        assert_eq!((ways, places[&5], places[&2]), (vec![1, 0, 3, 0, 5, 0, 0], 5, 2));
        assert!(nodes[places[&5]].feature == super::super::nodes::LEAF);
        assert_eq!(tree.way_to([0].into_iter()).0.len(), 1);
    }
}
