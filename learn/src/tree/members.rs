//! The pass that finds the rows of some nodes, which are then grown in memory.

use super::histogram::{Bootstrap, Growing, NOT_OPEN, key_of, new_number};
use super::wire::{MEMBERS, Reader, name_of};
use std::fmt;
use tharsis_graph::{Error, Foreign, ForeignName};
use tharsis_kernels::{Chunk, Key, Place};

/// The function of rows that gives 1 for those that belong to an open node of a tree, and 0 for others.
pub(crate) struct Members {
    pub(crate) trees: Vec<Growing>,
    pub(crate) bootstrap: Option<Bootstrap>,
    /// Whether there are weights behind the targets and scores.
    pub(crate) is_weighted: bool,
    pub(crate) columns: usize,
    pub(crate) rows: usize,
    pub(crate) number: u64,
}

impl fmt::Debug for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "members {}", self.number)
    }
}

impl Members {
    /// The function that a name tells.
    pub(crate) fn read(reader: &mut Reader) -> Option<Members> {
        let (columns, rows, is_weighted) = (reader.size()?, reader.size()?, reader.flag()?);
        let bootstrap = if reader.flag()? { Some(Bootstrap::read(reader)?) } else { None };
        let count = reader.count()?;
        let trees = (0..count).map(|_| Growing::read(reader, columns)).collect::<Option<_>>()?;
        let number = new_number();
        (0 < columns).then_some(Members { trees, bootstrap, is_weighted, columns, rows, number })
    }

    fn has(&self, (growing, key): (&Growing, Key), codes: &[u8], row: usize) -> bool {
        let is_drawn = |bootstrap: &Bootstrap| bootstrap.times(key, row) != 0.0;
        growing.part(codes) != NOT_OPEN && self.bootstrap.as_ref().is_none_or(is_drawn)
    }
}

impl Foreign for Members {
    fn name(&self) -> Option<ForeignName> {
        Some(name_of(MEMBERS, |writer| {
            [self.columns, self.rows].into_iter().for_each(|size| writer.size(size));
            writer.flag(self.is_weighted);
            writer.flag(self.bootstrap.is_some());
            self.bootstrap.iter().for_each(|bootstrap| bootstrap.write(writer));
            writer.size(self.trees.len());
            self.trees.iter().for_each(|growing| growing.write(writer));
        }))
    }

    fn describe(&self) -> String {
        "members of nodes".to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        (self.rows * (2 * self.columns + size_of::<f64>())) as u64
    }

    fn run(&self, place: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let codes = args[0].elements::<u8>()?;
        let weights = if self.is_weighted { Some(args[args.len() - 1].elements::<f64>()?) } else { None };
        let trees: Vec<(&Growing, Key)> = self.trees.iter().map(|tree| (tree, key_of(tree.draws))).collect();
        let is_member = |(row, codes): (usize, &[u8])| {
            let is_weightless = weights.as_ref().is_some_and(|weights| weights[row] <= 0.0);
            let number = place.origin[0] + row;
            !is_weightless && trees.iter().any(|&tree| self.has(tree, codes, number))
        };
        let rows = codes.chunks_exact(self.columns).enumerate();
        let members: Vec<u8> = rows.map(|row| u8::from(is_member(row))).collect();
        Ok(Chunk::from_elements(&[members.len(), 1], &members)?)
    }
}
