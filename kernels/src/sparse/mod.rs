//! Sparse matrices in tiles: compressed rows, in three chunks of one axis each.
//!
//! A tile of r rows has `ends` (r + 1) of uint32: the elements of row i are those from `ends[i]` to
//! `ends[i + 1]`; their `columns` within the tile, uint32, ascending in each row and none twice; and their
//! values. So chunks of sparse matrices are chunks like others: they are stored, sent and measured by what
//! they hold, and element-wise functions of the values alone are those of dense tensors.
//!
//! Sizes depend on values. Each function can count what it would store without storing it, and a plan has
//! exact sizes.

mod arrange;
mod build;
mod product;

use crate::chunk::{Buffer, Chunk, as_words};
use crate::dtype::DType;
use crate::element::{Element, with_words};
use crate::error::KernelError;
use crate::random::Key;
use crate::site::Site;
use crate::with_element;
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::Range;

/// A function that makes a tile, or reads tiles. Tables have the pieces of its sparse arguments: `ends`,
/// `columns` and values of one, then those of the next.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum Sparse {
    /// The elements of a dense tile (r, c) that are not zero.
    FromDense,
    /// Keys, int64 ascending, and values: an element for each key, equal ones added up. A key is the place in
    /// the tile in C order, plus a multiple of `span`.
    Assemble {
        /// Columns of a tile in keys.
        width: i64,
        /// Elements of a tile in keys.
        span: i64,
    },
    /// Random places: each is stored with a chance, and has a number from 0 to 1.
    Random {
        /// The seed.
        key: Key,
        /// The chance.
        share: f64,
        /// Columns of the matrix.
        columns: usize,
    },
    /// The places that two tiles store, or that both do; and the values of each there, or zeros.
    Align {
        /// Whether both must store a place.
        both: bool,
    },
    /// Rows and columns exchanged.
    Transpose,
    /// Product of a row of tiles with a column of tiles.
    Product {
        /// The first column of each tile on the left.
        starts: Vec<usize>,
        /// The end of the rows of each tile on the right.
        ends: Vec<usize>,
    },
    /// The elements that are not zero.
    Prune,
    /// Rows of a tile from one on, as many as the result has.
    Rows {
        /// The first row, of the tile where the result begins; of others it is 0.
        first: usize,
    },
    /// A dense tile (r, c).
    ToDense,
    /// Product of a row of tiles with a dense part of a matrix (n, k): (r, k).
    DenseProduct {
        /// The first column of each tile on the left.
        starts: Vec<usize>,
    },
    /// The row and the column of each element in the matrix, int64.
    Coordinates,
}

/// Calls a function for the type of words as wide as the values of tiles, with tables whose values are such
/// words; gives what it made and the dtype of the values.
macro_rules! on_words {
    ($tables:expr, $of_values:expr, $alias:ident, $words:ident => $body:expr) => {{
        let dtype = dtype_of($tables, 2)?;
        let $words = values_as_words($tables, &$of_values, dtype)?;
        (with_words!(dtype, $alias => $body)?, dtype)
    }};
}

impl Sparse {
    /// Applies the function.
    ///
    /// # Errors
    /// `NoLoop` for products of float16; `Malformed` if a tile is none, or another number of elements is
    /// stored than was counted.
    pub fn run(
        &self,
        site: Site<'_>,
        args: &[Chunk],
        tables: &[Vec<Chunk>],
    ) -> Result<Vec<Chunk>, KernelError> {
        match self {
            Sparse::FromDense => {
                with_element!(args[0].dtype(), T => build::from_dense::<T>(site, &args[0]))
            }
            Sparse::Assemble { width, span } => build::assemble(site, tables, *width, *span),
            Sparse::Random { key, share, columns } => build::random(site, *key, *share, *columns),
            Sparse::Align { both } => {
                let (tile, dtype) =
                    on_words!(tables, [2, 5], T, words => arrange::align::<T>(site, &words, *both));
                values_of_words(tile, dtype)
            }
            Sparse::Transpose => {
                let (tile, dtype) = on_words!(tables, [2], T, words => arrange::transpose::<T>(site, &words));
                values_of_words(tile, dtype)
            }
            Sparse::Product { starts, ends } => product::sparse(site, tables, starts, ends),
            Sparse::Prune => with_element!(dtype_of(tables, 2)?, T => arrange::prune::<T>(site, tables)),
            Sparse::Rows { first } => {
                let (tile, dtype) =
                    on_words!(tables, [2], T, words => arrange::rows::<T>(site, &words, *first));
                values_of_words(tile, dtype)
            }
            Sparse::ToDense => {
                let (made, dtype) = on_words!(tables, [2], T, words => arrange::to_dense::<T>(site, &words));
                made.into_iter().map(|dense| dense.of_words(dtype)).collect()
            }
            Sparse::DenseProduct { starts } => product::dense(site, &args[0], tables, starts),
            Sparse::Coordinates => arrange::coordinates(site, tables),
        }
    }

    /// The number of elements that the result stores; (1,), int64. Of sparse arguments the values are left
    /// out where they make no difference.
    ///
    /// # Errors
    /// As [`Sparse::run`].
    pub fn count(&self, site: Site<'_>, args: &[Chunk], tables: &[Vec<Chunk>]) -> Result<Chunk, KernelError> {
        let count = match self {
            Sparse::FromDense => with_element!(args[0].dtype(), T => count_stored::<T>(&args[0]))?,
            Sparse::Assemble { .. } => build::distinct(tables)?,
            Sparse::Random { key, share, columns } => {
                let mut count = 0;
                build::each_place(site, *key, *share, *columns, |_, _| count += 1);
                count
            }
            Sparse::Align { both } => arrange::count_aligned(site, tables, *both)?,
            Sparse::Product { starts, ends } => product::count(site, tables, starts, ends)?,
            Sparse::Prune => {
                let values = piece(tables, 2, 0)?;
                with_element!(values.dtype(), T => count_stored::<T>(values))?
            }
            Sparse::Rows { first } => {
                let tile = Pattern::of(tables, 0, 0)?;
                tile.of_rows(arrange::local_rows(site, *first))?.len()
            }
            Sparse::Transpose | Sparse::ToDense | Sparse::DenseProduct { .. } | Sparse::Coordinates => {
                return Err(KernelError::Malformed(format!("{self:?} counts nothing")));
            }
        };
        Chunk::from_elements(&[1], &[count as i64])
    }

    /// Whether values make a difference to what is stored.
    pub fn counts_values(&self) -> bool {
        matches!(self, Sparse::Prune)
    }

    /// Bytes that a task needs beside its arguments and results, for a result of this many columns.
    pub fn scratch_bytes(&self, rows: usize, columns: usize) -> u64 {
        match self {
            // A value and a mark for each column.
            Sparse::Product { .. } => columns as u64 * 24,
            Sparse::Transpose => rows as u64 * 8,
            _ => 0,
        }
    }
}

/// The places that a tile stores.
pub(super) struct Pattern<'a> {
    ends: Cow<'a, [u32]>,
    columns: Cow<'a, [u32]>,
}

impl<'a> Pattern<'a> {
    /// Those of piece `index` of the argument whose tables begin at `first`.
    fn of(tables: &'a [Vec<Chunk>], first: usize, index: usize) -> Result<Pattern<'a>, KernelError> {
        let ends = piece(tables, first, index)?.elements::<u32>()?;
        let columns = piece(tables, first + 1, index)?.elements::<u32>()?;
        let is_whole = ends.last().is_some_and(|&end| end as usize == columns.len());
        if is_whole {
            Ok(Pattern { ends, columns })
        } else {
            Err(malformed("a tile whose rows do not end where its elements do"))
        }
    }

    /// Those of all pieces.
    fn all(tables: &'a [Vec<Chunk>], first: usize) -> Result<Vec<Pattern<'a>>, KernelError> {
        let count = tables.get(first).map_or(0, Vec::len);
        (0..count).map(|index| Pattern::of(tables, first, index)).collect()
    }

    fn rows(&self) -> usize {
        self.ends.len() - 1
    }

    /// The places of the elements of a row; none if ends do not ascend.
    fn of_row(&self, row: usize) -> Range<usize> {
        let (start, end) = (self.ends[row] as usize, self.ends[row + 1] as usize);
        start..end.min(self.columns.len()).max(start)
    }

    /// The places of the elements of each row.
    fn each_row(&self) -> impl Iterator<Item = Range<usize>> {
        (1..self.ends.len()).map(|end| self.of_row(end - 1))
    }

    /// The columns of as many elements, so far behind those of a row.
    fn ahead_of(&self, elements: &Range<usize>, distance: usize) -> &[u32] {
        let place = |at: usize| at.saturating_add(distance).min(self.columns.len());
        &self.columns[place(elements.start)..place(elements.end)]
    }

    /// The places of the elements of several rows.
    fn of_rows(&self, rows: Range<usize>) -> Result<Range<usize>, KernelError> {
        match (self.ends.get(rows.start), self.ends.get(rows.end)) {
            (Some(&start), Some(&end)) if start <= end && end as usize <= self.columns.len() => {
                Ok(start as usize..end as usize)
            }
            _ => Err(malformed("a tile with fewer rows than there are")),
        }
    }

    /// Columns of a row, ascending.
    fn columns_of(&self, row: usize) -> &[u32] {
        self.columns.get(self.of_row(row)).unwrap_or(&[])
    }
}

/// A tile that is filled row by row, in memory of the size that was counted.
pub(super) struct Filling {
    ends: Buffer,
    columns: Buffer,
    rows: usize,
    row: usize,
    at: usize,
    stored: usize,
}

impl Filling {
    fn new(site: Site<'_>) -> Filling {
        let (rows, stored) = (site.rows(), site.stored);
        let mut ends = Buffer::for_overwrite((rows + 1) * size_of::<u32>());
        ends.elements_mut::<u32>()[0] = 0;
        let columns = Buffer::for_overwrite(stored * size_of::<u32>());
        Filling { ends, columns, rows, row: 0, at: 0, stored }
    }

    /// Adds a row with elements in these columns.
    fn add_row(&mut self, columns: impl IntoIterator<Item = u32>) -> Result<(), KernelError> {
        let to = &mut self.columns.elements_mut::<u32>()[..self.stored];
        for column in columns {
            let place = to.get_mut(self.at).ok_or_else(other_count)?;
            *place = column;
            self.at += 1;
        }
        self.row += 1;
        self.ends.elements_mut::<u32>()[self.row] = self.at as u32;
        Ok(())
    }

    /// The chunks of rows and columns, and those of values.
    fn finish(self, values: Vec<Chunk>) -> Result<Vec<Chunk>, KernelError> {
        if self.row != self.rows || self.at != self.stored {
            return Err(other_count());
        }
        let ends = Chunk::contiguous(DType::U32, &[self.rows + 1], self.ends)?;
        let columns = Chunk::contiguous(DType::U32, &[self.stored], self.columns)?;
        Ok([vec![ends, columns], values].concat())
    }
}

/// Values that are filled in order.
pub(super) struct Values<T> {
    data: Buffer,
    at: usize,
    stored: usize,
    element: std::marker::PhantomData<T>,
}

impl<T: Element> Values<T> {
    fn new(site: Site<'_>) -> Values<T> {
        let data = Buffer::for_overwrite(site.stored * size_of::<T>());
        Values { data, at: 0, stored: site.stored, element: std::marker::PhantomData }
    }

    fn extend(&mut self, values: impl IntoIterator<Item = T>) -> Result<(), KernelError> {
        let to = &mut self.data.elements_mut::<T>()[..self.stored];
        for value in values {
            *to.get_mut(self.at).ok_or_else(other_count)? = value;
            self.at += 1;
        }
        Ok(())
    }

    fn finish(self) -> Result<Chunk, KernelError> {
        if self.at == self.stored {
            Chunk::contiguous(T::DTYPE, &[self.stored], self.data)
        } else {
            Err(other_count())
        }
    }
}

fn piece(tables: &[Vec<Chunk>], table: usize, index: usize) -> Result<&Chunk, KernelError> {
    let found = tables.get(table).and_then(|pieces| pieces.get(index));
    found.ok_or_else(|| malformed("a sparse function without its tiles"))
}

/// The number of elements that are not zero.
fn count_stored<T: Element>(x: &Chunk) -> Result<usize, KernelError> {
    Ok(x.elements::<T>()?.iter().filter(|x| **x != T::zeroed()).count())
}

fn dtype_of(tables: &[Vec<Chunk>], table: usize) -> Result<DType, KernelError> {
    Ok(piece(tables, table, 0)?.dtype())
}

/// Tables of which some have the values of tiles, and these as words.
///
/// # Errors
/// `WrongDType` for values of another dtype.
fn values_as_words(
    tables: &[Vec<Chunk>],
    of_values: &[usize],
    dtype: DType,
) -> Result<Vec<Vec<Chunk>>, KernelError> {
    let mut words = tables.to_vec();
    for (number, table) in words.iter_mut().enumerate() {
        if of_values.contains(&number) {
            *table = as_words(table, dtype)?;
        }
    }
    Ok(words)
}

/// A tile whose values, behind the ends of rows and the columns, were made as words.
fn values_of_words(mut tile: Vec<Chunk>, dtype: DType) -> Result<Vec<Chunk>, KernelError> {
    let values = tile.split_off(2.min(tile.len()));
    for values in values {
        tile.push(values.of_words(dtype)?);
    }
    Ok(tile)
}

fn malformed(text: &str) -> KernelError {
    KernelError::Malformed(text.to_owned())
}

fn other_count() -> KernelError {
    malformed("a tile stores another number of elements than was counted")
}

/// Calls a function for the type of numbers of a dtype.
macro_rules! with_number {
    ($function:literal, $dtype:expr, $alias:ident => $body:expr) => {
        with_number!(@ $function, $dtype, $alias, $body,
            Bool $crate::Bool, I8 i8, I16 i16, I32 i32, I64 i64, U8 u8, U16 u16, U32 u32, U64 u64,
            F32 f32, F64 f64, C64 num_complex::Complex<f32>, C128 num_complex::Complex<f64>)
    };
    (@ $function:literal, $dtype:expr, $alias:ident, $body:expr, $($name:ident $type:ty),*) => {
        match $dtype {
            $($crate::DType::$name => { type $alias = $type; $body })*
            dtype => Err($crate::KernelError::NoLoop { function: $function, dtypes: vec![dtype] }),
        }
    };
}
use with_number;

#[cfg(test)]
mod tests;
