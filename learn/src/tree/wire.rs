//! Functions of trees as names, by which the process that runs a pass finds them.
//!
//! A name is text, so bytes are written as pairs of hexadecimal digits. What comes from another process is
//! checked: a malformed name is no function.

use super::nodes::{LEAF, Node, Tree};
use tharsis_graph::ForeignName;

/// The kind of the names of all functions of trees.
pub(crate) const KIND: &str = "learn.trees";

/// The first number of a name tells the function.
pub(crate) const CODER: u64 = 1;
pub(crate) const HISTOGRAMS: u64 = 2;
pub(crate) const ADD_TREES: u64 = 3;
pub(crate) const SUM_LOSSES: u64 = 4;
pub(crate) const SUMMED: u64 = 5;
pub(crate) const OUT_OF_BAG: u64 = 6;
pub(crate) const MEMBERS: u64 = 8;

/// The name of a function, whose parts are written by `write`.
pub(crate) fn name_of(function: u64, write: impl FnOnce(&mut Writer)) -> ForeignName {
    let mut writer = Writer::default();
    writer.number(function);
    write(&mut writer);
    ForeignName { kind: KIND.to_owned(), name: writer.text() }
}

/// Bytes of a name while it is written.
#[derive(Default)]
pub(crate) struct Writer(Vec<u8>);

impl Writer {
    /// The name.
    pub(crate) fn text(self) -> String {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        let digit = |half: u8| char::from(DIGITS[usize::from(half)]);
        self.0.iter().flat_map(|&byte| [digit(byte >> 4), digit(byte & 15)]).collect()
    }

    /// A number, seven bits a byte.
    pub(crate) fn number(&mut self, number: u64) {
        let mut left = number;
        while 128 <= left {
            self.0.push(left as u8 | 128);
            left >>= 7;
        }
        self.0.push(left as u8);
    }

    pub(crate) fn size(&mut self, size: usize) {
        self.number(size as u64);
    }

    pub(crate) fn flag(&mut self, flag: bool) {
        self.number(u64::from(flag));
    }

    pub(crate) fn float(&mut self, float: f64) {
        self.0.extend(float.to_bits().to_le_bytes());
    }

    pub(crate) fn floats(&mut self, floats: &[f64]) {
        self.size(floats.len());
        floats.iter().for_each(|&float| self.float(float));
    }

    pub(crate) fn nodes(&mut self, nodes: &[Node]) {
        self.size(nodes.len());
        for node in nodes {
            self.number(u64::from(node.feature.wrapping_add(1)));
            if node.feature != LEAF {
                self.number(u64::from(node.left));
                self.float(node.threshold);
                self.number(u64::from(node.bin));
                self.flag(node.missing_left);
            }
        }
    }

    pub(crate) fn tree(&mut self, tree: &Tree) {
        self.nodes(&tree.nodes);
        self.floats(&tree.values);
        self.size(tree.width);
        self.size(tree.column);
    }
}

/// Bytes of a name while it is read.
pub(crate) struct Reader {
    bytes: Vec<u8>,
    at: usize,
}

impl Reader {
    /// The bytes of a name; `None` for other text.
    pub(crate) fn of(text: &str) -> Option<Reader> {
        let half = |digit: &u8| char::from(*digit).to_digit(16);
        let pairs = text.as_bytes().chunks(2);
        let byte = |pair: &[u8]| Some((half(pair.first()?)? << 4 | half(pair.get(1)?)?) as u8);
        Some(Reader { bytes: pairs.map(byte).collect::<Option<_>>()?, at: 0 })
    }

    /// Whether all has been read.
    pub(crate) fn is_at_end(&self) -> bool {
        self.at == self.bytes.len()
    }

    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at)?;
            self.at += 1;
            number |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(number);
            }
        }
        None
    }

    pub(crate) fn size(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok()
    }

    /// A number of things that follow, each at least a byte.
    pub(crate) fn count(&mut self) -> Option<usize> {
        let count = self.size()?;
        (count <= self.bytes.len() - self.at).then_some(count)
    }

    pub(crate) fn flag(&mut self) -> Option<bool> {
        match self.number()? {
            0 => Some(false),
            1 => Some(true),
            _ => None,
        }
    }

    pub(crate) fn float(&mut self) -> Option<f64> {
        let bytes = self.bytes.get(self.at..self.at + size_of::<f64>())?;
        self.at += size_of::<f64>();
        Some(f64::from_bits(u64::from_le_bytes(bytes.try_into().ok()?)))
    }

    pub(crate) fn floats(&mut self) -> Option<Vec<f64>> {
        let count = self.count()?;
        (0..count).map(|_| self.float()).collect()
    }

    /// Nodes of samples with so many features. Children come behind their parents, so each way ends.
    pub(crate) fn nodes(&mut self, features: usize) -> Option<Vec<Node>> {
        let count = self.count().filter(|&count| 0 < count)?;
        let mut nodes = Vec::with_capacity(count);
        for at in 0..count {
            let Some(feature) = self.number()?.checked_sub(1) else {
                nodes.push(Node::leaf());
                continue;
            };
            let (left, threshold) = (self.size()?, self.float()?);
            let (bin, missing_left) = (u8::try_from(self.number()?).ok()?, self.flag()?);
            if features as u64 <= feature || left <= at || count - 1 <= left {
                return None;
            }
            let (feature, left) = (u32::try_from(feature).ok()?, u32::try_from(left).ok()?);
            nodes.push(Node { feature, left, threshold, bin, missing_left });
        }
        Some(nodes)
    }

    pub(crate) fn tree(&mut self, features: usize) -> Option<Tree> {
        let (nodes, values) = (self.nodes(features)?, self.floats()?);
        let (width, column) = (self.size()?, self.size()?);
        (Some(values.len()) == nodes.len().checked_mul(width)).then_some(Tree {
            nodes,
            values,
            width,
            column,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_come_back() {
        let mut writer = Writer::default();
        let numbers = [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX];
        numbers.iter().for_each(|&number| writer.number(number));
        let floats = [0.0, -0.0, 5e-324, f64::INFINITY, 1.0 / 3.0];
        writer.floats(&floats);
        let mut reader = Reader::of(&writer.text()).unwrap();
        assert_eq!(numbers.map(|_| reader.number().unwrap()), numbers);
        let bits = |floats: &[f64]| -> Vec<u64> { floats.iter().map(|float| float.to_bits()).collect() };
        assert_eq!(bits(&reader.floats().unwrap()), bits(&floats));
        assert!(reader.is_at_end() && reader.number().is_none());
    }

    #[test]
    fn malformed_trees_are_refused() {
        let node = |left| Node { feature: 0, left, threshold: 0.5, bin: 1, missing_left: true };
        let read = |nodes: &[Node]| {
            let mut writer = Writer::default();
            writer.nodes(nodes);
            Reader::of(&writer.text()).unwrap().nodes(1)
        };
        assert_eq!(read(&[node(1), Node::leaf(), Node::leaf()]).unwrap().len(), 3);
        // A way without an end, a child that is not there, a feature that is not there.
        assert!(read(&[node(0), Node::leaf(), Node::leaf()]).is_none());
        assert!(read(&[node(2), Node::leaf(), Node::leaf()]).is_none());
        assert!(read(&[Node { feature: 1, ..node(1) }, Node::leaf(), Node::leaf()]).is_none());
        assert!(read(&[]).is_none());
        for text in ["0", "zz", "ff", "ffffffffffffffffffff01"] {
            assert!(Reader::of(text).and_then(|mut reader| reader.nodes(1)).is_none(), "{text}");
        }
    }
}
