//! The parts of tensors that tasks read, and how they are read.

use super::Chunks;
use crate::error::Error;
use crate::plan::{Along, AxisMap, ChunkId, Input, Operand, Plan};
use crate::tiling::{AxisTiling, Tiling};
use std::sync::Arc;
use tharsis_kernels::layout::{Layout, Run, c_strides};
use tharsis_kernels::{Buffer, Chunk, Element, with_element};

/// A box of a stage's domain.
#[derive(Clone, Debug, Default)]
pub(super) struct Region {
    pub(super) origin: Vec<usize>,
    pub(super) extents: Vec<usize>,
}

impl Region {
    /// The part of the domain that task `index` does.
    pub(super) fn of(grid: &Tiling, index: usize) -> Region {
        let mut region = Region::default();
        grid.chunk(index, &mut region.origin, &mut region.extents);
        region
    }

    /// The domain of an operand of a task that does this region.
    pub(super) fn of_operand(&self, grid: &Tiling, operand: &Operand) -> Region {
        let mut region = self.clone();
        for &(axis, along) in &operand.along {
            assert!(axis < region.origin.len(), "an operand has no axis {axis}");
            (region.origin[axis], region.extents[axis]) = match along {
                Along::Chunk => (grid.axes[axis].find(self.origin[axis]), 1),
                Along::Whole(len) => (0, len),
                Along::Halo { before, after, len } => {
                    let start = self.origin[axis].saturating_sub(before);
                    let end = (self.origin[axis] + self.extents[axis] + after).min(len);
                    (start, end - start)
                }
            };
        }
        region
    }
}

/// Upper bound on the elements of an operand's domain in a task.
pub(super) fn elements_max(grid: &Tiling, operand: &Operand) -> u64 {
    (0..grid.axes.len()).map(|axis| longest(grid, operand, axis)).product()
}

/// Upper bound on the elements of an operand's domain along an axis.
fn longest(grid: &Tiling, operand: &Operand, axis: usize) -> u64 {
    let own = grid.axes[axis].longest();
    let along = operand.along.iter().find(|(other, _)| *other == axis).map(|(_, along)| *along);
    let elements = match along {
        None => own,
        Some(Along::Chunk) => 1,
        Some(Along::Whole(len)) => len,
        Some(Along::Halo { before, after, len }) => (before + own + after).min(len),
    };
    elements as u64
}

/// Calls `enter` with each chunk that an operand reads over a region; a chunk may come more than once.
pub(super) fn touched(plan: &Plan, operand: &Operand, region: &Region, enter: &mut impl FnMut(ChunkId)) {
    for input in &operand.inputs {
        let spans = spans(input, region);
        for_each_chunk(&plan.tensors[input.tensor].tiling, &spans, |index, _| {
            enter(ChunkId { tensor: input.tensor as u32, index: index as u32 });
        });
    }
}

/// Upper bound on the bytes that a task copies because an input lies in several chunks.
pub(super) fn copied_bytes_max(plan: &Plan, grid: &Tiling, operand: &Operand) -> u64 {
    operand.inputs.iter().map(|input| copied_bytes(plan, grid, operand, input)).sum()
}

fn copied_bytes(plan: &Plan, grid: &Tiling, operand: &Operand, input: &Input) -> u64 {
    let spec = &plan.tensors[input.tensor];
    let aligned = |(map, tiling): (&AxisMap, &AxisTiling)| match map.axis {
        None => true,
        Some(_) if tiling.count() == 1 => true,
        Some(axis) => {
            let has_halo = operand
                .along
                .iter()
                .any(|(other, along)| *other == axis && matches!(along, Along::Halo { .. }));
            !has_halo && map.start == 0 && map.step == 1 && grid.axes.get(axis) == Some(tiling)
        }
    };
    if input.axes.iter().zip(&spec.tiling.axes).all(aligned) {
        return 0;
    }
    let count = |map: &AxisMap| match map.axis {
        None => 1,
        Some(axis) if axis < grid.axes.len() => longest(grid, operand, axis),
        Some(axis) => input.trailing[axis - grid.axes.len()] as u64,
    };
    input.axes.iter().map(count).product::<u64>() * spec.dtype.size_bytes() as u64
}

/// The part of a tensor that `input` names, shaped as the task's domain: a view if it lies in one chunk, else
/// a copy.
pub(super) fn read(plan: &Plan, input: &Input, region: &Region, chunks: Chunks<'_>) -> Result<Chunk, Error> {
    let tiling = &plan.tensors[input.tensor].tiling;
    let spans = spans(input, region);
    let shape = [region.extents.as_slice(), &input.trailing].concat();
    let find = |index: usize| {
        let id = ChunkId { tensor: input.tensor as u32, index: index as u32 };
        let found = chunks.iter().find(|(key, _)| *key == id).map(|(_, chunk)| chunk);
        found.ok_or_else(|| Error::Internal(format!("chunk {index} of tensor {} is missing", input.tensor)))
    };
    let mut touched = Vec::new();
    for_each_chunk(tiling, &spans, |index, coordinates| touched.push((index, coordinates.to_vec())));
    match touched.as_slice() {
        [] => Ok(Chunk::contiguous(plan.tensors[input.tensor].dtype, &shape, Buffer::zeroed(0))?),
        [(index, coordinates)] => {
            let chunk = find(*index)?;
            let starts = coordinates.iter().zip(&tiling.axes).map(|(&at, axis)| axis.piece(at).0 as i64);
            let offset = spans.iter().zip(starts).zip(chunk.strides());
            let offset = offset.fold(chunk.offset() as i64, |sum, ((span, start), &stride)| {
                sum + (span.first - start) * stride
            });
            assert!(0 <= offset, "a region begins before its chunk");
            let strides = domain_strides(input, shape.len(), chunk.strides(), |map_step| map_step);
            Ok(Chunk::strided(chunk.dtype(), &shape, &strides, offset as usize, chunk.buffer().clone())?)
        }
        several => {
            let parts = several.iter().map(|(index, at)| Ok((at.as_slice(), find(*index)?)));
            let parts = parts.collect::<Result<Vec<_>, Error>>()?;
            let dtype = plan.tensors[input.tensor].dtype;
            let data = with_element!(dtype, T => assemble::<T>(tiling, &spans, &parts));
            let counts: Vec<usize> = spans.iter().map(|span| span.count).collect();
            let strides = domain_strides(input, shape.len(), &c_strides(&counts), |_| 1);
            Ok(Chunk::strided(dtype, &shape, &strides, 0, data.into())?)
        }
    }
}

/// The part of a tensor that `input` names, cut along an axis of the domain where a chunk ends: views of
/// chunks; `None` if it has other cuts, or nothing in it.
pub(super) fn parts_along(
    plan: &Plan,
    input: &Input,
    region: &Region,
    axis: usize,
    chunks: Chunks<'_>,
) -> Result<Option<Vec<Chunk>>, Error> {
    let Some(along) = input.axes.iter().position(|map| map.axis == Some(axis) && map.step == 1) else {
        return Ok(None);
    };
    let (tiling, shift) = (&plan.tensors[input.tensor].tiling.axes[along], input.axes[along].start);
    let (mut at, end) = (region.origin[axis], region.origin[axis] + region.extents[axis]);
    let mut parts = Vec::new();
    while at < end {
        let (start, len) = tiling.piece(tiling.find(shift + at));
        let stop = (start + len - shift).min(end);
        assert!(at < stop, "a piece ends where it begins");
        let mut part = region.clone();
        (part.origin[axis], part.extents[axis]) = (at, stop - at);
        if !is_one_chunk(plan, input, &part) {
            return Ok(None);
        }
        parts.push(read(plan, input, &part, chunks)?);
        at = stop;
    }
    Ok((!parts.is_empty()).then_some(parts))
}

/// Whether the part of a tensor that `input` names lies in one chunk, so that [`read`] copies nothing.
pub(super) fn is_one_chunk(plan: &Plan, input: &Input, region: &Region) -> bool {
    let mut count = 0;
    for_each_chunk(&plan.tensors[input.tensor].tiling, &spans(input, region), |_, _| count += 1);
    count == 1
}

/// Whether a chunk is all that its buffer has.
pub(super) fn fills(chunk: &Chunk) -> bool {
    chunk.buffer().len_bytes().saturating_sub(chunk.len_bytes()) < CHUNK_ROUNDING_BYTES
}

/// A chunk that keeps no more memory than its elements take.
pub(super) fn in_own_memory(chunk: Chunk) -> Result<Chunk, Error> {
    if fills(&chunk) {
        return Ok(chunk);
    }
    with_element!(chunk.dtype(), T => Ok(Chunk::from_elements(chunk.shape(), &chunk.to_vec::<T>()?)?))
}

/// Buffers are rounded up to less than this.
const CHUNK_ROUNDING_BYTES: usize = 64;

/// Coordinates along one axis of a tensor: `count` of them, the first at `first`, `step` apart.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: i64,
    step: i64,
    count: usize,
}

impl Span {
    /// Coordinates that lie in `start..start + len`: the first of them, and their number.
    fn within(&self, start: usize, len: usize) -> (usize, usize) {
        let (low, high) = (start as i64, (start + len) as i64);
        let below = |bound: i64| -> i64 {
            // Number of leading coordinates before the bound, in the direction of the step.
            let count = self.count as i64;
            match self.step {
                0 => {
                    if self.first < bound {
                        count
                    } else {
                        0
                    }
                }
                step if step > 0 => ((bound - self.first + step - 1).div_euclid(step)).clamp(0, count),
                step => ((self.first - bound).div_euclid(-step) + 1).clamp(0, count),
            }
        };
        if self.step < 0 {
            // The step is negative: coordinates at or above a bound come first.
            let (above_high, above_low) = (below(high), below(low));
            assert!(above_high <= above_low, "a piece ends before it begins");
            (above_high as usize, (above_low - above_high) as usize)
        } else {
            let (before_low, before_high) = (below(low), below(high));
            assert!(before_low <= before_high, "a piece ends before it begins");
            (before_low as usize, (before_high - before_low) as usize)
        }
    }
}

fn spans(input: &Input, region: &Region) -> Vec<Span> {
    let rank = region.origin.len();
    let span = |map: &AxisMap| match map.axis {
        None => Span { first: map.start as i64, step: 0, count: 1 },
        Some(axis) if axis < rank => Span {
            first: map.start as i64 + map.step * region.origin[axis] as i64,
            step: map.step,
            count: region.extents[axis],
        },
        Some(axis) => Span { first: map.start as i64, step: map.step, count: input.trailing[axis - rank] },
    };
    input.axes.iter().map(span).collect()
}

/// Calls `visit` with the number and grid coordinates of each chunk that holds a selected element.
fn for_each_chunk(tiling: &Tiling, spans: &[Span], mut visit: impl FnMut(usize, &[usize])) {
    if spans.iter().any(|span| span.count == 0) {
        return;
    }
    let piece_range = |(span, axis): (&Span, &AxisTiling)| {
        let last = span.first + span.step * (span.count as i64 - 1);
        (axis.find(span.first.min(last) as usize), axis.find(span.first.max(last) as usize))
    };
    let ranges: Vec<(usize, usize)> = spans.iter().zip(&tiling.axes).map(piece_range).collect();
    let mut at: Vec<usize> = ranges.iter().map(|range| range.0).collect();
    loop {
        let selected = |axis: usize| {
            let (start, len) = tiling.axes[axis].piece(at[axis]);
            ranges[axis].0 == ranges[axis].1 || spans[axis].within(start, len).1 != 0
        };
        if (0..at.len()).all(selected) {
            visit(tiling.number(&at), &at);
        }
        let Some(axis) = (0..at.len()).rev().find(|&axis| at[axis] < ranges[axis].1) else { return };
        at[axis] += 1;
        for later in axis + 1..at.len() {
            at[later] = ranges[later].0;
        }
    }
}

/// Strides of the view over the domain, from strides over the tensor's axes.
fn domain_strides(input: &Input, rank: usize, strides: &[i64], step: impl Fn(i64) -> i64) -> Vec<i64> {
    let mut out = vec![0; rank];
    assert_eq!(input.axes.len(), strides.len(), "an input of another rank than its tensor");
    for (map, stride) in input.axes.iter().zip(strides) {
        if let Some(axis) = map.axis {
            out[axis] += step(map.step) * stride;
        }
    }
    out
}

/// Copies the selected elements of several chunks into one array in C order of the tensor's axes.
fn assemble<T: Element>(tiling: &Tiling, spans: &[Span], parts: &[(&[usize], &Arc<Chunk>)]) -> Buffer {
    let counts: Vec<usize> = spans.iter().map(|span| span.count).collect();
    let total: usize = counts.iter().product();
    let mut data = Buffer::for_overwrite(total * std::mem::size_of::<T>());
    let to_strides = c_strides(&counts);
    let to = data.elements_mut::<T>();
    for (at, chunk) in parts {
        let (mut extents, mut from_strides) = (Vec::new(), Vec::new());
        let (mut from_base, mut to_base) = (chunk.offset() as i64, 0i64);
        for (axis, span) in spans.iter().enumerate() {
            let (start, len) = tiling.axes[axis].piece(at[axis]);
            let (first, count) = span.within(start, len);
            assert!(first + count <= span.count, "a chunk holds more of a span than there is");
            extents.push(count);
            from_strides.push(span.step * chunk.strides()[axis]);
            from_base += (span.first + span.step * first as i64 - start as i64) * chunk.strides()[axis];
            to_base += first as i64 * to_strides[axis];
        }
        copy_box(
            chunk.buffer().elements::<T>(),
            (&from_strides, from_base),
            to,
            (&to_strides, to_base),
            &extents,
        );
    }
    data
}

/// Copies a box of elements between two strided arrays.
fn copy_box<T: Element>(
    from: &[T],
    (from_strides, from_base): (&[i64], i64),
    to: &mut [T],
    (to_strides, to_base): (&[i64], i64),
    extents: &[usize],
) {
    let mut rank = extents.len();
    // Numbers in a column follow one another in the target, and are one row.
    while 2 <= rank && extents[rank - 1] == 1 && to_strides[rank - 2] == 1 {
        rank -= 1;
    }
    let (extents, from_strides, to_strides) = (&extents[..rank], &from_strides[..rank], &to_strides[..rank]);
    let rows: usize = extents.iter().rev().skip(1).product();
    let (Some(&len), Some(&stride)) = (extents.last(), from_strides.last()) else {
        to[to_base as usize] = from[from_base as usize];
        return;
    };
    // Rows are visited one by one in both arrays, so that the two walks stay in step.
    let outer = &extents[..extents.len() - 1];
    let walk = |strides: &[i64], base: i64| Layout::new(outer, &strides[..outer.len()], base);
    let (from_rows, to_rows) = (walk(from_strides, from_base), walk(to_strides, to_base));
    let mut from_offsets = Vec::with_capacity(rows);
    let each = |run: Run, offsets: &mut Vec<i64>| {
        offsets.extend((0..run.len as i64).map(|i| run.offset + i * run.stride))
    };
    from_rows.for_each_run(0, rows, |run| each(run, &mut from_offsets));
    let mut row = 0;
    to_rows.for_each_run(0, rows, |run| {
        for i in 0..run.len as i64 {
            let start = (run.offset + i * run.stride) as usize;
            let target = &mut to[start..start + len];
            let source = from_offsets[row];
            row += 1;
            if stride == 1 {
                target.copy_from_slice(&from[source as usize..source as usize + len]);
            } else {
                target
                    .iter_mut()
                    .enumerate()
                    .for_each(|(j, x)| *x = from[(source + j as i64 * stride) as usize]);
            }
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Positions of the coordinates of a span within a piece, one after the other.
    fn within_by_loop(span: &Span, start: usize, len: usize) -> Vec<usize> {
        let inside = |&at: &usize| {
            let coordinate = span.first + span.step * at as i64;
            start as i64 <= coordinate && coordinate < (start + len) as i64
        };
        (0..span.count).filter(inside).collect()
    }

    #[test]
    fn a_span_of_any_step_is_cut_as_by_a_loop() {
        for step in [-7, -3, -1, 0, 1, 2, 5] {
            for count in 0..7_usize {
                let first = if step < 0 { 45 } else { 4 };
                let span = Span { first, step, count };
                for start in 0..50 {
                    for len in [0, 1, 4, 60] {
                        let expected = within_by_loop(&span, start, len);
                        let (at, found) = span.within(start, len);
                        assert_eq!(found, expected.len(), "{span:?} in {start}+{len}");
                        assert!(found == 0 || at == expected[0], "{span:?} in {start}+{len}");
                    }
                }
            }
        }
    }

    /// The chunks in which any of the coordinates lies.
    fn chunks_by_loop(tiling: &Tiling, spans: &[Span]) -> Vec<usize> {
        let mut chunks = vec![vec![]];
        for (span, axis) in spans.iter().zip(&tiling.axes) {
            let mut pieces: Vec<usize> =
                (0..span.count).map(|at| axis.find((span.first + span.step * at as i64) as usize)).collect();
            pieces.sort_unstable();
            pieces.dedup();
            let grown = |chunk: &Vec<usize>| {
                let chunk = chunk.clone();
                pieces.iter().map(move |&piece| [chunk.clone(), vec![piece]].concat()).collect::<Vec<_>>()
            };
            chunks = chunks.iter().flat_map(grown).collect();
        }
        chunks.iter().map(|chunk| tiling.number(chunk)).collect()
    }

    #[test]
    fn the_chunks_that_a_region_touches_are_those_of_its_elements() {
        let tiling = Tiling {
            axes: vec![AxisTiling::Even { len: 20, chunk: 3 }, AxisTiling::from_lengths(&[2, 9, 1])],
        };
        for step in [-4, -1, 0, 1, 3] {
            for count in [0, 1, 2, 4] {
                let rows = Span { first: if step < 0 { 19 } else { 1 }, step, count };
                for columns in
                    [Span { first: 0, step: 1, count: 12 }, Span { first: 11, step: -11, count: 2 }]
                {
                    let mut touched = Vec::new();
                    for_each_chunk(&tiling, &[rows, columns], |index, _| touched.push(index));
                    assert_eq!(touched, chunks_by_loop(&tiling, &[rows, columns]), "{rows:?} {columns:?}");
                }
            }
        }
    }

    #[test]
    fn a_part_of_a_chunk_is_moved_into_memory_of_its_own_and_a_whole_one_stays() {
        let whole = Chunk::from_elements(&[100], &[1.5; 100]).unwrap();
        let part = Chunk::strided(whole.dtype(), &[20], &[1], 30, whole.buffer().clone()).unwrap();
        assert!(fills(&whole) && !fills(&part));
        let moved = in_own_memory(part).unwrap();
        assert!(fills(&moved));
        assert_eq!((moved.shape(), moved.to_vec::<f64>().unwrap()), (&[20][..], vec![1.5; 20]));
        assert!(Arc::ptr_eq(in_own_memory(whole.clone()).unwrap().buffer(), whole.buffer()));
    }

    #[test]
    fn a_scalar_touches_its_only_chunk() {
        let mut touched = Vec::new();
        for_each_chunk(&Tiling::whole(&[]), &[], |index, at| touched.push((index, at.to_vec())));
        assert_eq!(touched, [(0, vec![])]);
    }

    #[test]
    fn an_operand_of_one_element_for_each_chunk_is_read_at_the_chunk() {
        let grid = Tiling { axes: vec![AxisTiling::Even { len: 10, chunk: 4 }] };
        let operand = |along| Operand { program: Default::default(), inputs: Vec::new(), along };
        let region = Region::of(&grid, 2);
        assert_eq!((region.origin[0], region.extents[0]), (8, 2));
        let of_chunk = region.of_operand(&grid, &operand(vec![(0, Along::Chunk)]));
        assert_eq!((of_chunk.origin[0], of_chunk.extents[0]), (2, 1));
        let whole = region.of_operand(&grid, &operand(vec![(0, Along::Whole(7))]));
        assert_eq!((whole.origin[0], whole.extents[0]), (0, 7));
        assert_eq!(region.of_operand(&grid, &operand(vec![])).origin, region.origin);
        let halo = |len| operand(vec![(0, Along::Halo { before: 3, after: 1, len })]);
        let bounds = |index, len| {
            let found = Region::of(&grid, index).of_operand(&grid, &halo(len));
            (found.origin[0], found.extents[0])
        };
        assert_eq!([0, 1, 2].map(|index| bounds(index, 10)), [(0, 5), (1, 8), (5, 5)]);
        assert_eq!((bounds(2, 11), elements_max(&grid, &halo(10))), ((5, 6), 8));
    }

    #[test]
    fn a_box_is_copied_element_by_element() {
        let from: Vec<f64> = (0..24).map(f64::from).collect();
        for (strides, base) in [([6, 1], 0), ([1, 4], 2), ([-6, -1], 23)] {
            let mut to = vec![0.0; 6];
            copy_box(&from, (&strides, base), &mut to, (&[3, 1], 0), &[2, 3]);
            let expected = [0, 1]
                .map(|row| [0, 1, 2].map(|column| (base + row * strides[0] + column * strides[1]) as f64));
            assert_eq!(to, expected.as_flattened());
        }
        let mut one = [0.0];
        copy_box(&from, (&[], 7), &mut one, (&[], 0), &[]);
        assert_eq!(one, [7.0]);
    }

    #[test]
    fn a_box_is_copied_as_by_a_loop_also_where_it_is_a_column() {
        let from: Vec<i32> = (0..200).collect();
        let bounds = [1, 2, 3];
        let of = |at: usize, strides: [i64; 3], base: i64| {
            let place = [at / 9, at / 3 % 3, at % 3];
            (0..3).map(|axis| place[axis] as i64 * strides[axis]).sum::<i64>() + base
        };
        for case in 0..27 * 27 {
            let pick = |at: usize| bounds[case / 3usize.pow(at as u32) % 3];
            let (extents, more) = ([pick(0), pick(1), pick(2)], [pick(3), pick(4), pick(5)]);
            let counts = [0, 1, 2].map(|axis| extents[axis] + more[axis] - 1);
            let strides = c_strides(&counts);
            let strides = [strides[0], strides[1], strides[2]];
            for from_strides in [strides, [30, 5, 1], [-20, 7, 2], [1, 0, -1]] {
                let mut found = vec![-1; counts.iter().product()];
                let mut expected = found.clone();
                copy_box(&from, (&from_strides, 90), &mut found, (&strides, 0), &extents);
                for at in 0..27 {
                    if [at / 9, at / 3 % 3, at % 3].iter().zip(&extents).all(|(at, extent)| at < extent) {
                        expected[of(at, strides, 0) as usize] = from[of(at, from_strides, 90) as usize];
                    }
                }
                assert_eq!(found, expected, "{extents:?} in {counts:?} from {from_strides:?}");
            }
        }
    }
}
