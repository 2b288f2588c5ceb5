//! Functions of the lines of a chunk along one axis, several lines at a time.
//!
//! The chunk may come in parts that follow each other along the axis, as other tasks have stored them: each
//! element is then read once, where it lies, and nothing is put together before.

use crate::chunk::{Buffer, Chunk};
use crate::element::Element;
use crate::error::KernelError;
use crate::layout::Layout;
use crate::stream::Stream;
use num_complex::Complex;
use std::borrow::Cow;
use std::ops::Range;

/// A function of the lines along an axis, each of which gives another line.
pub(crate) struct LinesAlong {
    pub axis: usize,
    /// Elements that the function takes of each line: longer lines are cut, shorter ones have zeros behind
    /// them.
    pub wanted: usize,
    /// Elements that it makes.
    pub made: usize,
    /// Factor of the result.
    pub scale: f64,
}

impl LinesAlong {
    /// Applies the function to each line of the parts, which have the same extents but for the axis. It may
    /// change the line that it is given.
    pub fn each<A: Element, B: Scaled>(
        &self,
        parts: &[Chunk],
        mut transform: impl FnMut(&mut [A], &mut [B]) -> Result<(), KernelError>,
    ) -> Result<Chunk, KernelError> {
        let Some(first) = parts.first() else {
            return Err(KernelError::Malformed("lines of no chunk".to_owned()));
        };
        let (wanted, made) = (self.wanted, self.made);
        let mut to = first.shape().to_vec();
        to[self.axis] = made;
        let (blocks, inner): (usize, usize) =
            (to[..self.axis].iter().product(), to[self.axis + 1..].iter().product());
        let parts = parts.iter().map(|part| Rows::of(part, self.axis)).collect::<Result<Vec<_>, _>>()?;
        let mut data = Buffer::for_overwrite(blocks * made * inner * size_of::<B>());
        let out = &mut data.elements_mut::<B>()[..blocks * made * inner];
        let mut stream = Stream::for_bytes(size_of_val(out));
        let together = lines_together(inner, wanted * size_of::<A>() + made * size_of::<B>());
        // Lines that begin a power of two apart would share few places of a cache.
        let (line, result) = (wanted + APART, made + APART);
        let (mut lines, mut results) =
            (vec![A::zeroed(); line * together], vec![B::zeroed(); result * together]);
        for block in 0..blocks {
            let out = &mut out[block * made * inner..(block + 1) * made * inner];
            for column in (0..inner).step_by(together) {
                let count = together.min(inner - column);
                let mut of_block = Lines { elements: &mut lines[..count * line], stride: line };
                gather(&parts, block, column..column + count, &mut of_block, wanted);
                let each = of_block.elements.chunks_exact_mut(line).zip(results.chunks_exact_mut(result));
                for (line, result) in each {
                    transform(&mut line[..wanted], &mut result[..made])?;
                }
                let results = &mut results[..count * result];
                if self.scale != 1.0 {
                    results.iter_mut().for_each(|x| *x = x.scaled(self.scale));
                }
                scatter(results, result, out, inner, column, &mut stream);
            }
        }
        Chunk::contiguous(B::DTYPE, &to, data)
    }
}

/// A result that is multiplied by a factor.
pub(crate) trait Scaled: Element {
    fn scaled(self, factor: f64) -> Self;
}

macro_rules! scaled {
    ($($t:ty),*) => {$(
        impl Scaled for $t {
            fn scaled(self, factor: f64) -> $t {
                if factor == 1.0 { self } else { self * factor as $t }
            }
        }
        impl Scaled for Complex<$t> {
            fn scaled(self, factor: f64) -> Complex<$t> {
                if factor == 1.0 { self } else { Complex::new(self.re.scaled(factor), self.im.scaled(factor)) }
            }
        }
    )*};
}
scaled!(f32, f64);

/// Lines that begin `stride` elements apart.
struct Lines<'a, A> {
    elements: &'a mut [A],
    stride: usize,
}

/// The elements of a part: blocks of rows, of which each lies side by side.
struct Rows<'a, A: Element> {
    elements: Cow<'a, [A]>,
    /// Elements from one block to the next.
    block: usize,
    /// Elements from one row to the next.
    row: usize,
    /// Rows of a block.
    rows: usize,
}

impl<'a, A: Element> Rows<'a, A> {
    /// Rows along an axis: those of the chunk where they lie side by side, else a copy.
    fn of(x: &'a Chunk, axis: usize) -> Result<Rows<'a, A>, KernelError> {
        let (shape, rows) = (x.shape(), x.shape()[axis]);
        let inner: usize = shape[axis + 1..].iter().product();
        match distances(shape, x.strides(), axis) {
            Some([block, row]) if x.dtype() == A::DTYPE && !x.is_empty() => {
                let elements = Cow::Borrowed(&x.buffer().elements::<A>()[x.offset()..]);
                Ok(Rows { elements, block, row, rows })
            }
            _ => Ok(Rows { elements: x.elements::<A>()?, block: rows * inner, row: inner.max(1), rows }),
        }
    }

    /// Puts columns of the first rows of a block into lines, at these places of each.
    fn put(&self, block: usize, columns: Range<usize>, lines: &mut Lines<'_, A>, places: Range<usize>) {
        let from = &self.elements[block * self.block + columns.start..];
        if self.row == 1 {
            let count = places.len();
            return lines.elements[places].copy_from_slice(&from[..count]);
        }
        let rows = from.chunks(self.row).take(places.len());
        match columns.len() {
            4 => spread::<A, 4>(rows, lines, places),
            8 => spread::<A, 8>(rows, lines, places),
            TOGETHER_MAX => spread::<A, TOGETHER_MAX>(rows, lines, places),
            columns => {
                for (place, row) in places.zip(rows) {
                    for (line, &x) in row[..columns].iter().enumerate() {
                        lines.elements[line * lines.stride + place] = x;
                    }
                }
            }
        }
    }
}

/// Elements from one block to the next and from one row to the next, if elements of a row lie side by side.
fn distances(shape: &[usize], strides: &[i64], axis: usize) -> Option<[usize; 2]> {
    let run = |axes: Range<usize>| Layout::new(&shape[axes.clone()], &strides[axes], 0).single_run();
    let (blocks, beside) = (run(0..axis)?, run(axis + 1..shape.len())?);
    let row = if shape[axis] <= 1 { beside.len as i64 } else { strides[axis] };
    let is_in_place = match beside.len {
        // A line is copied as a whole.
        1 => row == 1,
        len => beside.stride == 1 && len as i64 <= row,
    };
    (is_in_place && 0 <= blocks.stride).then_some([blocks.stride as usize, row as usize])
}

/// Puts columns of a block into lines, with zeros up to `wanted` elements.
fn gather<A: Element>(
    parts: &[Rows<'_, A>],
    block: usize,
    columns: Range<usize>,
    lines: &mut Lines<'_, A>,
    wanted: usize,
) {
    let mut known = 0;
    for part in parts {
        let end = wanted.min(known + part.rows);
        if known < end {
            part.put(block, columns.clone(), lines, known..end);
        }
        known = end;
    }
    let stride = lines.stride;
    lines.elements.chunks_exact_mut(stride).for_each(|line| line[known..wanted].fill(A::zeroed()));
}

/// Puts the first `N` elements of each row into as many lines, at these places of each.
fn spread<'a, A: Element, const N: usize>(
    rows: impl Iterator<Item = &'a [A]>,
    lines: &mut Lines<'_, A>,
    places: Range<usize>,
) {
    let mut each = lines.elements.chunks_exact_mut(lines.stride).map(|line| &mut line[places.clone()]);
    let mut lines: [&mut [A]; N] = std::array::from_fn(|_| each.next().unwrap_or_default());
    for (i, row) in rows.enumerate() {
        for (line, &x) in lines.iter_mut().zip(&row[..N]) {
            line[i] = x;
        }
    }
}

/// Puts lines that begin `stride` apart into columns from `column` on.
fn scatter<B: Element>(
    lines: &[B],
    stride: usize,
    out: &mut [B],
    inner: usize,
    column: usize,
    stream: &mut Option<Stream>,
) {
    if inner == 1 {
        let lines = &lines[..out.len()];
        return match stream {
            Some(stream) => stream.copy(bytemuck::cast_slice_mut(out), bytemuck::cast_slice(lines)),
            None => out.copy_from_slice(lines),
        };
    }
    let count = lines.len() / stride;
    let mut beside = [B::zeroed(); ROWS * TOGETHER_MAX];
    for (group, out) in out.chunks_mut(ROWS * inner).enumerate() {
        let rows = out.len() / inner;
        for (at, line) in lines.chunks_exact(stride).enumerate() {
            let elements = &line[group * ROWS..group * ROWS + rows];
            beside[at..].iter_mut().step_by(count).zip(elements).for_each(|(to, &x)| *to = x);
        }
        let (out, beside) = (&mut out[column..], &beside[..rows * count]);
        match stream {
            Some(stream) => {
                let [distance, width] = [inner, count].map(|elements| elements * size_of::<B>());
                let (out, beside) = (bytemuck::cast_slice_mut(out), bytemuck::cast_slice(beside));
                stream.copy_rows(out, distance, beside, width);
            }
            None => {
                let rows = out.chunks_mut(inner).zip(beside.chunks_exact(count));
                rows.for_each(|(to, row)| to[..count].copy_from_slice(row));
            }
        }
    }
}

/// Lines that are transformed together: as many as a cache holds, so that of the elements which lie beside
/// one another several are used at once.
fn lines_together(inner: usize, line_bytes: usize) -> usize {
    (TOGETHER_BYTES / line_bytes.max(1)).clamp(TOGETHER_MIN, TOGETHER_MAX).min(inner.max(1))
}

/// Bytes of lines and their results that stay in a second-level cache.
pub(crate) const TOGETHER_BYTES: usize = 1 << 20;
/// Four complex numbers are a cache line.
pub(crate) const TOGETHER_MIN: usize = 4;
const TOGETHER_MAX: usize = 16;
/// Elements between lines.
const APART: usize = 8;
/// Rows of a result that are put together before they are stored.
const ROWS: usize = 32;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::c_strides;

    /// Running sums along an axis, of lines of `wanted` elements.
    fn sums(axis: usize, wanted: usize, parts: &[Chunk]) -> Chunk {
        let along = LinesAlong { axis, wanted, made: wanted, scale: 2.0 };
        let running = |line: &mut [f64], out: &mut [f64]| {
            let mut sum = 0.0;
            line.iter().zip(out).for_each(|(x, to)| {
                sum += x;
                *to = sum;
            });
            Ok(())
        };
        along.each(parts, running).unwrap()
    }

    fn numbers(shape: &[usize]) -> Chunk {
        let count = shape.iter().product::<usize>();
        let elements: Vec<f64> = (0..count).map(|at| (at * 29 % 31) as f64).collect();
        Chunk::from_elements(shape, &elements).unwrap()
    }

    /// The rows `range` of a chunk along an axis, where they lie.
    fn part(x: &Chunk, axis: usize, range: Range<usize>) -> Chunk {
        let (mut shape, strides) = (x.shape().to_vec(), x.strides());
        shape[axis] = range.len();
        let offset = x.offset() + range.start * strides[axis] as usize;
        Chunk::strided(x.dtype(), &shape, strides, offset, x.buffer().clone()).unwrap()
    }

    #[test]
    fn parts_behind_each_other_are_as_the_whole() {
        for (shape, axis) in [([3, 40, 21], 1), ([1, 40, 4], 1), ([2, 3, 40], 2), ([40, 5, 8], 0)] {
            let x = numbers(&shape);
            let parts = [0..7, 7..8, 8..8, 8..40].map(|range| part(&x, axis, range));
            for wanted in [5, 40, 43] {
                let whole = sums(axis, wanted, std::slice::from_ref(&x));
                let made = sums(axis, wanted, &parts);
                assert_eq!(made.shape(), whole.shape());
                assert_eq!(made.to_vec::<f64>().unwrap(), whole.to_vec::<f64>().unwrap(), "{shape:?}");
            }
        }
    }

    #[test]
    fn elements_that_do_not_lie_side_by_side_are_copied_first() {
        let x = numbers(&[6, 40, 5]);
        let elements = x.to_vec::<f64>().unwrap();
        let data = || x.buffer().clone();
        // In reverse, transposed, repeated.
        let reverse = Chunk::strided(x.dtype(), &[6, 40, 5], &[200, -5, 1], 39 * 5, data()).unwrap();
        let across = Chunk::strided(x.dtype(), &[5, 40, 6], &[1, 5, 200], 0, data()).unwrap();
        let again = Chunk::strided(x.dtype(), &[2, 40, 5], &[0, 0, 1], 0, data()).unwrap();
        for view in [reverse, across, again] {
            let copy = Chunk::from_elements(view.shape(), &view.to_vec::<f64>().unwrap()).unwrap();
            let made = [&view, &copy].map(|x| sums(1, 40, std::slice::from_ref(x)).to_vec::<f64>().unwrap());
            assert_eq!(made[0], made[1], "{:?}", view.strides());
        }
        assert_eq!(x.strides(), c_strides(x.shape()));
        assert_eq!(sums(1, 1, &[x]).to_vec::<f64>().unwrap()[5], 2.0 * elements[200]);
    }

    #[test]
    fn large_results_are_stored_around_the_cache_in_any_width() {
        // 7 columns are no whole cache lines, 32 are.
        for inner in [7usize, 32] {
            let rows = crate::stream::STREAM_BYTES_MIN / 8 / inner + 1;
            let x = numbers(&[rows, inner]);
            let elements = x.to_vec::<f64>().unwrap();
            let made = sums(0, rows, &[x]).to_vec::<f64>().unwrap();
            let mut sum = vec![0.0; inner];
            for (row, made) in elements.chunks(inner).zip(made.chunks(inner)) {
                sum.iter_mut().zip(row).for_each(|(sum, x)| *sum += x);
                assert!(made.iter().zip(&sum).all(|(made, sum)| *made == 2.0 * sum));
            }
        }
    }
}
