//! The steps of factorizations by tiles.

use super::Tile;
use crate::chunk::{Buffer, Chunk};
use crate::error::KernelError;
use crate::linear::field::{Field, columns_of, num_real::Number, write_rows};
use crate::linear::lu::Lu;
use crate::linear::size_dtype;
use crate::linear::whole::{determinant_of, solve_triangular};
use crate::product::Matrix;
use faer::{Accum, MatMut};

/// Does a step on matrices of one type.
pub(super) fn run<T: Field>(step: Tile, args: &[Chunk]) -> Result<Vec<Chunk>, KernelError> {
    match step {
        Tile::SolveRight => solve_right::<T>(&args[0], &args[1]),
        Tile::Panel { start } => panel::<T>(&args[0], start),
        Tile::Update { start } => update::<T>(args, start),
        Tile::Lower { rows } => lower::<T>(args, rows),
        Tile::Determinant => determinant::<T>(args),
        Tile::Order { rows } => order_chunk(&args[0], rows),
    }
}

fn solve_right<T: Field>(a: &Chunk, lower: &Chunk) -> Result<Vec<Chunk>, KernelError> {
    let (a, lower) = (columns_of::<T>(a, 0)?, columns_of::<T>(lower, 0)?);
    // l conj(x^T) = conj(a^T): the rows of `a` are the right sides.
    let mut x = a.adjoint().to_owned();
    solve_triangular(lower.as_ref(), x.as_mut(), true, false)?;
    Ok(vec![chunk_of::<T>(&[a.nrows(), a.ncols()], |to| write_rows(to, x.adjoint()))?])
}

/// A chunk of this shape that `fill` writes row by row.
fn chunk_of<T: Field>(shape: &[usize], fill: impl FnOnce(&mut [T])) -> Result<Chunk, KernelError> {
    let len: usize = shape.iter().product();
    let mut memory = Buffer::for_overwrite(len * size_of::<T>());
    fill(&mut memory.elements_mut::<T>()[..len]);
    Chunk::contiguous(T::DTYPE, shape, memory)
}

fn panel<T: Field>(block: &Chunk, start: usize) -> Result<Vec<Chunk>, KernelError> {
    let a = columns_of::<T>(block, 0)?;
    let (m, b) = (a.nrows(), a.ncols());
    let lu = Lu::of(a);
    let swaps: Vec<i64> = swaps_of(&lu.order, b).iter().map(|&row| (start + row) as i64).collect();
    let packed = chunk_of::<T>(&[m, b], |to| write_rows::<T, T>(to, lu.packed.as_ref()))?;
    let triangle = chunk_of::<T>(&[b, b], |to| {
        (0..b).for_each(|i| (0..b).for_each(|j| to[i * b + j] = lu.upper(i, j)));
    })?;
    Ok(vec![
        packed,
        Chunk::from_elements(&[b, 1], &swaps)?,
        triangle,
        Chunk::from_elements(&[b, 1], &lu.pivots())?,
    ])
}

/// The exchanges, row `i` with row `swaps[i]` one after the other, that put the rows `order[..count]` first.
fn swaps_of(order: &[usize], count: usize) -> Vec<usize> {
    let mut row_at: Vec<usize> = (0..order.len()).collect();
    let mut place_of = row_at.clone();
    let mut swaps = Vec::with_capacity(count);
    for (i, &wanted) in order.iter().enumerate().take(count) {
        let (place, here) = (place_of[wanted], row_at[i]);
        row_at.swap(i, place);
        (place_of[wanted], place_of[here]) = (i, place);
        swaps.push(place);
    }
    swaps
}

/// The rows `start..start + rows` in the order that exchanges of rows `first..` make, counted from `start`.
fn order_of(swaps: &Chunk, rows: usize, start: usize, first: usize) -> Result<Vec<usize>, KernelError> {
    let mut order: Vec<usize> = (0..rows).collect();
    for (i, swap) in swaps.to_vec::<i64>()?.into_iter().enumerate() {
        let row = usize::try_from(swap).ok().and_then(|row| row.checked_sub(start));
        match row {
            Some(row) if row < rows && first + i < rows => order.swap(first + i, row),
            _ => return Err(KernelError::Malformed(format!("an exchange with row {swap} of {rows}"))),
        }
    }
    Ok(order)
}

pub(super) fn order_chunk(swaps: &Chunk, rows: usize) -> Result<Vec<Chunk>, KernelError> {
    let order: Vec<i64> = order_of(swaps, rows, 0, 0)?.into_iter().map(|row| row as i64).collect();
    Ok(vec![Chunk::from_elements(&[rows], &order)?])
}

fn update<T: Field>(args: &[Chunk], start: usize) -> Result<Vec<Chunk>, KernelError> {
    let [block, factored, swaps] = args else {
        return Err(KernelError::Malformed(format!("{} arguments of an update", args.len())));
    };
    let (m, w, b) = (block.shape()[0], block.shape()[1], factored.shape()[1]);
    if factored.shape()[0] != m || m < b {
        return Err(KernelError::Malformed(format!("columns of {m} rows beside {:?}", factored.shape())));
    }
    let order = order_of(swaps, m, start, 0)?;
    let block = block.to_contiguous()?;
    let rows = &block.buffer().elements::<T>()[block.offset()..block.offset() + m * w];
    let ordered = |to: &mut [T], order: &[usize]| {
        for (to, &row) in to.chunks_exact_mut(w.max(1)).zip(order) {
            to.copy_from_slice(&rows[row * w..(row + 1) * w]);
        }
    };
    let factored = Matrix::<T>::new(factored, 0)?;
    let factored = factored.as_faer();
    let mut top = Buffer::for_overwrite(b * w * size_of::<T>());
    let above = &mut top.elements_mut::<T>()[..b * w];
    ordered(above, &order[..b]);
    let mut above = MatMut::from_row_major_slice_mut(above, b, w);
    T::solve_triangle(factored.get(..b, ..), above.as_mut(), true, true);
    let rest = chunk_of::<T>(&[m - b, w], |to| {
        ordered(to, &order[b..]);
        let minus = -T::one_impl();
        if b < m && w != 0 {
            let below = MatMut::from_row_major_slice_mut(to, m - b, w);
            T::multiply(below, Accum::Add, factored.get(b.., ..), above.as_ref(), minus);
        }
    })?;
    Ok(vec![Chunk::contiguous(T::DTYPE, &[b, w], top)?, rest])
}

fn lower<T: Field>(args: &[Chunk], rows: usize) -> Result<Vec<Chunk>, KernelError> {
    let (m, b) = (args[0].shape()[0], args[0].shape()[1]);
    let Some(above) = rows.checked_sub(m) else {
        return Err(KernelError::Malformed(format!("{m} rows of {rows}")));
    };
    let order = match args.get(1) {
        Some(swaps) => order_of(swaps, m, above, b)?,
        None => (0..m).collect(),
    };
    let packed = args[0].to_vec::<T>()?;
    let column = chunk_of::<T>(&[rows, b], |to| {
        to.fill(T::zero_impl());
        for (i, &row) in order.iter().enumerate() {
            let known = i.min(b);
            let at = (above + i) * b;
            to[at..at + known].copy_from_slice(&packed[row * b..row * b + known]);
            if i < b {
                to[at + i] = T::one_impl();
            }
        }
    })?;
    Ok(vec![column])
}

fn determinant<T: Field>(args: &[Chunk]) -> Result<Vec<Chunk>, KernelError> {
    let (pivots, swaps) = (args[0].to_vec::<T>()?, args[1].to_vec::<i64>()?);
    let is_odd = swaps.iter().enumerate().filter(|&(i, &row)| row != i as i64).count() % 2 == 1;
    let (product, sign, log) = determinant_of(&pivots, is_odd);
    let size: T::Size = Number::of_float(log);
    debug_assert_eq!(size_dtype(T::DTYPE), <T::Size as crate::element::Element>::DTYPE);
    Ok(vec![
        Chunk::from_elements(&[], &[product])?,
        Chunk::from_elements(&[], &[sign])?,
        Chunk::from_elements(&[], &[size])?,
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exchanges_put_the_rows_in_the_order_they_were_made_of() {
        let order = [3, 0, 4, 1, 2];
        let swaps: Vec<i64> = swaps_of(&order, 5).iter().map(|&row| row as i64).collect();
        let swaps = Chunk::from_elements(&[5, 1], &swaps).unwrap();
        assert_eq!(order_of(&swaps, 5, 0, 0).unwrap(), order);
        let beyond = Chunk::from_elements(&[1, 1], &[5i64]).unwrap();
        assert!(matches!(order_of(&beyond, 5, 0, 0), Err(KernelError::Malformed(_))));
    }

    #[test]
    fn a_block_of_columns_and_the_one_beside_it_multiply_back() {
        // The block (3, 2) and the column beside it are those of one matrix.
        let block = Chunk::from_elements(&[3, 2], &[1.0, 2.0, 4.0, 3.0, 2.0, 8.0]).unwrap();
        let beside = Chunk::from_elements(&[3, 1], &[5.0, 6.0, 7.0]).unwrap();
        let made = Tile::Panel { start: 0 }.run(&[block]).unwrap();
        let updated = Tile::Update { start: 0 }.run(&[beside, made[0].clone(), made[1].clone()]).unwrap();
        let order = Tile::Order { rows: 3 }.run(&[made[1].clone()]).unwrap()[0].to_vec::<i64>().unwrap();
        let lower = Tile::Lower { rows: 3 }.run(&made[..1]).unwrap()[0].to_vec::<f64>().unwrap();
        assert_eq!((order[0], lower[0], lower[1], lower[3]), (1, 1.0, 0.0, 1.0));
        let (upper, top) = (made[2].to_vec::<f64>().unwrap(), updated[0].to_vec::<f64>().unwrap());
        let rest = updated[1].to_vec::<f64>().unwrap();
        let rows = [[1.0, 2.0, 5.0], [4.0, 3.0, 6.0], [2.0, 8.0, 7.0]];
        for (i, &row) in order.iter().enumerate() {
            let [l0, l1] = [lower[i * 2], lower[i * 2 + 1]];
            let left = if i == 2 { rest[0] } else { 0.0 };
            let found = [l0 * upper[0], l0 * upper[1] + l1 * upper[3], l0 * top[0] + l1 * top[1] + left];
            let near = found.iter().zip(rows[row as usize]).all(|(a, b)| (a - b).abs() < 1e-14);
            assert!(near, "row {i}: {found:?}");
        }
        let parts = Tile::Determinant.run(&[made[3].clone(), made[1].clone()]).unwrap();
        assert_eq!(parts[0].to_vec::<f64>().unwrap()[0].abs(), (upper[0] * upper[3]).abs());
    }

    #[test]
    fn a_tile_right_of_a_lower_triangle_is_solved() {
        let lower = Chunk::from_elements(&[2, 2], &[2.0, 0.0, 1.0, 4.0]).unwrap();
        let a = Chunk::from_elements(&[1, 2], &[2.0, 9.0]).unwrap();
        let x = Tile::SolveRight.run(&[a, lower]).unwrap();
        assert_eq!(x[0].to_vec::<f64>().unwrap(), [1.0, 2.0]);
    }
}
