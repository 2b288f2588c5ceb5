//! Predictions of trees for rows of values.

use super::histogram::new_number;
use super::nodes::Tree;
use super::wire::{Reader, SUMMED, name_of};
use crate::checks::unchecked_for;
use serde::{Deserialize, Deserializer, Serialize, Serializer, de, ser};
use std::fmt;
use std::sync::Arc;
use tharsis_graph::{Error, Foreign, ForeignName};
use tharsis_kernels::{Chunk, Place};
use tharsis_numeric::{DType, Result, Tensor};

/// The trees of a model, whose values are added up.
#[derive(Clone)]
pub(crate) struct Trees {
    all: Arc<Summed>,
}

/// Values of samples that a model takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Values {
    /// All; NaN is missing.
    Any,
    /// All but infinite ones; NaN is missing.
    NotInfinite,
}

pub(crate) struct Summed {
    trees: Vec<Tree>,
    /// Features of a sample.
    features: usize,
    /// Numbers from which the sums begin.
    base: Vec<f64>,
    /// The factor of the sums.
    scale: f64,
    values: Values,
    number: u64,
}

impl Trees {
    /// Trees of samples with so many features. Each row of predictions is the base and the values of a leaf
    /// of each tree, times the scale.
    pub(crate) fn new(
        trees: Vec<Tree>,
        features: usize,
        (base, scale): (Vec<f64>, f64),
        values: Values,
    ) -> Trees {
        Trees { all: Arc::new(Summed { trees, features, base, scale, values, number: new_number() }) }
    }

    /// The function of rows that gives the sums.
    pub(crate) fn function(&self) -> Arc<dyn Foreign> {
        self.all.clone()
    }

    /// The trees.
    pub(crate) fn list(&self) -> &[Tree] {
        &self.all.trees
    }

    /// Numbers of a prediction.
    pub(crate) fn width(&self) -> usize {
        self.all.base.len()
    }

    /// Features of a sample.
    pub(crate) fn features(&self) -> usize {
        self.all.features
    }

    /// The sums for samples (n, d), as an expression; (n, numbers of the base), float64.
    #[track_caller]
    pub(crate) fn sums(&self, model: &str, x: &Tensor) -> Result<Tensor> {
        let x = unchecked_for(model, x, self.all.features)?;
        Ok(x.map_foreign(&[None, Some(self.all.base.len())], self.function(), DType::F64))
    }
}

/// All kinds of values, by their numbers in names.
const VALUES: [Values; 2] = [Values::Any, Values::NotInfinite];

impl Summed {
    /// The function that a name tells.
    pub(crate) fn read(reader: &mut Reader) -> Option<Summed> {
        let (features, base, scale) = (reader.size()?, reader.floats()?, reader.float()?);
        let values = *VALUES.get(reader.size()?)?;
        let count = reader.count()?;
        let trees: Vec<Tree> = (0..count).map(|_| reader.tree(features)).collect::<Option<_>>()?;
        let is_sound = trees.iter().all(|tree| tree.column <= base.len());
        let number = new_number();
        is_sound.then_some(Summed { trees, features, base, scale, values, number })
    }
}

impl Serialize for Trees {
    /// The name by which other processes find the trees has all their numbers.
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        let name = self.all.name().ok_or_else(|| ser::Error::custom("the trees have no name"))?;
        serializer.serialize_str(&name.name)
    }
}

impl<'de> Deserialize<'de> for Trees {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<Trees, D::Error> {
        let name = String::deserialize(deserializer)?;
        let summed = Reader::of(&name).and_then(|mut reader| {
            let function = reader.number()?;
            let summed = Summed::read(&mut reader)?;
            (function == SUMMED && reader.is_at_end()).then_some(summed)
        });
        let is_sound = |summed: &Summed| 0 < summed.features && !summed.base.is_empty();
        match summed.filter(is_sound) {
            Some(summed) => Ok(Trees { all: Arc::new(summed) }),
            None => Err(de::Error::custom("malformed trees")),
        }
    }
}

impl fmt::Debug for Trees {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} trees", self.all.trees.len())
    }
}

impl fmt::Debug for Summed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "trees {}", self.number)
    }
}

impl Foreign for Summed {
    fn name(&self) -> Option<ForeignName> {
        Some(name_of(SUMMED, |writer| {
            writer.size(self.features);
            writer.floats(&self.base);
            writer.float(self.scale);
            writer.size(VALUES.iter().position(|&values| values == self.values).unwrap_or(VALUES.len()));
            writer.size(self.trees.len());
            self.trees.iter().for_each(|tree| writer.tree(tree));
        }))
    }

    fn describe(&self) -> String {
        "trees".to_owned()
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> std::result::Result<Chunk, Error> {
        let values = args[0].elements::<f64>()?;
        let &[rows, columns] = args[0].shape() else {
            return Err(Error::Internal("a sample has one axis".to_owned()));
        };
        if columns != self.features {
            return Err(Error::Internal(format!("trees of {} features got {columns}", self.features)));
        }
        if self.values != Values::Any && values.iter().any(|value| value.is_infinite()) {
            let text = "Input X contains infinity or a value too large for dtype('float64').";
            return Err(Error::Value(text.to_owned()));
        }
        let width = self.base.len();
        let mut sums = self.base.repeat(rows);
        // All rows of a block by one tree after the other: the nodes of a tree stay near.
        let blocks = values.chunks(BLOCK_ROWS * columns).zip(sums.chunks_mut(BLOCK_ROWS * width));
        for (values, sums) in blocks {
            for tree in &self.trees {
                for (row, sums) in values.chunks_exact(columns).zip(sums.chunks_exact_mut(width)) {
                    let leaf = tree.values_of(tree.leaf_of(row));
                    sums[tree.column..].iter_mut().zip(leaf).for_each(|(sum, value)| *sum += value);
                }
            }
        }
        if self.scale != 1.0 {
            sums.iter_mut().for_each(|sum| *sum *= self.scale);
        }
        Ok(Chunk::from_elements(&[rows, width], &sums)?)
    }
}

/// Rows that go through one tree before the next.
const BLOCK_ROWS: usize = 256;
