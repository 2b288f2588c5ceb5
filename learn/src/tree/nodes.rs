//! Trees as arrays of nodes, and the way of a row to its leaf.

/// A tree. The children of a node lie next to each other.
#[derive(Clone, Debug)]
pub(crate) struct Tree {
    pub(crate) nodes: Vec<Node>,
    /// The values of each node, `width` for each.
    pub(crate) values: Vec<f64>,
    pub(crate) width: usize,
    /// The column of predictions to which the values belong, the first one.
    pub(crate) column: usize,
}

/// A node: a leaf, or a question about a feature.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node {
    /// The feature that is asked about; [`LEAF`] for none.
    pub(crate) feature: u32,
    /// The child on the left; the one on the right comes next.
    pub(crate) left: u32,
    /// Values up to this one go to the left.
    pub(crate) threshold: f64,
    /// Bins up to this one go to the left.
    pub(crate) bin: u8,
    /// Whether missing values go to the left.
    pub(crate) missing_left: bool,
}

/// The feature of a leaf.
pub(crate) const LEAF: u32 = u32::MAX;

/// The bin of missing values.
pub(crate) const MISSING: u8 = u8::MAX;

impl Node {
    /// A node without children.
    pub(crate) fn leaf() -> Node {
        Node { feature: LEAF, left: 0, threshold: f64::NAN, bin: 0, missing_left: false }
    }
}

/// The leaf of a row of bins.
#[inline]
pub(crate) fn leaf_of_bins(nodes: &[Node], row: &[u8]) -> usize {
    let mut at = 0;
    loop {
        let node = &nodes[at];
        if node.feature == LEAF {
            return at;
        }
        let is_left = goes_left(node, row[node.feature as usize]);
        at = node.left as usize + usize::from(!is_left);
    }
}

/// Whether a value in a bin goes to the left of a node.
#[inline]
pub(crate) fn goes_left(node: &Node, bin: u8) -> bool {
    if bin == MISSING { node.missing_left } else { bin <= node.bin }
}

impl Tree {
    /// The leaf of a row of values.
    #[inline]
    pub(crate) fn leaf_of(&self, row: &[f64]) -> usize {
        let mut at = 0;
        loop {
            let node = &self.nodes[at];
            if node.feature == LEAF {
                return at;
            }
            let value = row[node.feature as usize];
            let is_left = if value.is_nan() { node.missing_left } else { value <= node.threshold };
            at = node.left as usize + usize::from(!is_left);
        }
    }

    /// The values of a node.
    #[inline]
    pub(crate) fn values_of(&self, node: usize) -> &[f64] {
        &self.values[node * self.width..(node + 1) * self.width]
    }

    /// Number of leaves.
    pub(crate) fn leaves(&self) -> usize {
        self.nodes.iter().filter(|node| node.feature == LEAF).count()
    }

    /// Number of questions on the longest way to a leaf.
    pub(crate) fn depth(&self) -> usize {
        // Children lie behind their parents.
        let mut depths = vec![0usize; self.nodes.len()];
        for (at, node) in self.nodes.iter().enumerate().filter(|(_, node)| node.feature != LEAF) {
            let left = node.left as usize;
            for child in [left, left + 1] {
                depths[child] = depths[at] + 1;
            }
        }
        depths.into_iter().max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_find_their_leaves_by_value_and_by_bin() {
        let root = Node { feature: 1, left: 1, threshold: 0.5, bin: 3, missing_left: true };
        let nodes = vec![root, Node::leaf(), Node::leaf()];
        for (bin, leaf) in [(0, 1), (3, 1), (4, 2), (MISSING, 1)] {
            assert_eq!(leaf_of_bins(&nodes, &[9, bin]), leaf);
        }
        let tree = Tree { nodes, values: vec![0.0, 1.0, 2.0], width: 1, column: 0 };
        for (value, leaf) in [(0.5, 1), (0.6, 2), (f64::NAN, 1), (f64::INFINITY, 2)] {
            assert_eq!(tree.leaf_of(&[9.0, value]), leaf);
        }
        assert_eq!((tree.leaves(), tree.depth(), tree.values_of(2)), (2, 1, &[2.0][..]));
    }
}
