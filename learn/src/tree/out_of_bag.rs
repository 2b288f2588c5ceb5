//! Scores of forests by the samples that their trees have not seen.

use super::histogram::{Bootstrap, key_of, new_number};
use super::nodes::{Tree, leaf_of_bins};
use super::wire::{OUT_OF_BAG, Reader, name_of};
use std::fmt;
use tharsis_graph::{Error, Foreign, ForeignName};
use tharsis_kernels::{Chunk, Key, Place};

/// The function of rows that adds the values of the trees that do not have a row, and behind them their
/// number.
pub(crate) struct OutOfBag {
    /// The trees, with the seed and the stream of their draws.
    pub(crate) trees: Vec<(Tree, [u64; 2])>,
    pub(crate) bootstrap: Bootstrap,
    /// Values of a tree.
    pub(crate) width: usize,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) number: u64,
}

impl fmt::Debug for OutOfBag {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of bag {}", self.number)
    }
}

impl OutOfBag {
    /// The function that a name tells.
    pub(crate) fn read(reader: &mut Reader) -> Option<OutOfBag> {
        let (width, columns, rows) = (reader.size()?, reader.size()?, reader.size()?);
        let bootstrap = Bootstrap::read(reader)?;
        let mut trees = Vec::new();
        for _ in 0..reader.count()? {
            let tree = reader.tree(columns).filter(|tree| tree.width == width)?;
            trees.push((tree, [reader.number()?, reader.number()?]));
        }
        (0 < columns).then(|| OutOfBag { trees, bootstrap, width, columns, rows, number: new_number() })
    }
}

impl Foreign for OutOfBag {
    fn name(&self) -> Option<ForeignName> {
        Some(name_of(OUT_OF_BAG, |writer| {
            [self.width, self.columns, self.rows].into_iter().for_each(|size| writer.size(size));
            self.bootstrap.write(writer);
            writer.size(self.trees.len());
            for (tree, draws) in &self.trees {
                writer.tree(tree);
                draws.iter().for_each(|&word| writer.number(word));
            }
        }))
    }

    fn describe(&self) -> String {
        "out of bag".to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        (self.rows * (2 * self.columns + (self.width + 1) * size_of::<f64>())) as u64
    }

    fn run(&self, place: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let codes = args[0].elements::<u8>()?;
        let (rows, width) = (codes.len() / self.columns, self.width + 1);
        let mut sums = vec![0.0; rows * width];
        for (tree, draws) in &self.trees {
            let key: Key = key_of(*draws);
            for (row, codes) in codes.chunks_exact(self.columns).enumerate() {
                if self.bootstrap.times(key, place.origin[0] + row) != 0.0 {
                    continue;
                }
                let sums = &mut sums[row * width..(row + 1) * width];
                let values = tree.values_of(leaf_of_bins(&tree.nodes, codes));
                sums.iter_mut().zip(values).for_each(|(sum, value)| *sum += value);
                sums[self.width] += 1.0;
            }
        }
        Ok(Chunk::from_elements(&[rows, width], &sums)?)
    }
}
