//! Elements of a tensor in C order, for a task whose domain has another shape.

use super::Chunks;
use super::region::Region;
use crate::error::Error;
use crate::plan::{ChunkId, Plan, Stage, TensorId};
use crate::tiling::Tiling;
use std::collections::HashMap;
use tharsis_kernels::layout::{Layout, c_strides};
use tharsis_kernels::{Buffer, Chunk, Element, with_element};

/// Calls `enter` with each chunk that a region reads; a chunk may come more than once.
pub(super) fn touched(
    plan: &Plan,
    tensor: TensorId,
    stage: &Stage,
    region: &Region,
    enter: &mut impl FnMut(ChunkId),
) {
    for_each_segment(&plan.tensors[tensor].tiling, &stage.grid, region, |segment| {
        enter(ChunkId { tensor: tensor as u32, index: segment.chunk as u32 });
    });
}

/// The elements of a region as a chunk.
pub(super) fn gather(
    plan: &Plan,
    tensor: TensorId,
    stage: &Stage,
    region: &Region,
    chunks: Chunks<'_>,
) -> Result<Chunk, Error> {
    let spec = &plan.tensors[tensor];
    let mut sources: HashMap<usize, Chunk> = HashMap::new();
    for (id, chunk) in chunks {
        sources.insert(id.index as usize, chunk.to_contiguous()?);
    }
    let count: usize = region.extents.iter().product();
    let mut data = Buffer::for_overwrite(count * spec.dtype.size_bytes());
    with_element!(spec.dtype, T => copy::<T>(&spec.tiling, &stage.grid, region, &sources, &mut data));
    Ok(Chunk::contiguous(spec.dtype, &region.extents, data)?)
}

fn copy<T: Element>(
    from: &Tiling,
    grid: &Tiling,
    region: &Region,
    sources: &HashMap<usize, Chunk>,
    data: &mut Buffer,
) {
    let to = data.elements_mut::<T>();
    let mut at = 0;
    for_each_segment(from, grid, region, |segment| {
        if let Some(source) = sources.get(&segment.chunk).and_then(|chunk| chunk.as_slice::<T>()) {
            to[at..at + segment.len].copy_from_slice(&source[segment.start..segment.start + segment.len]);
        }
        at += segment.len;
    });
    assert_eq!(at, region.extents.iter().product(), "elements of a region are left out");
}

/// Elements that are contiguous both in the region and in one chunk of the source.
struct Segment {
    chunk: usize,
    /// Position of the first element in the chunk.
    start: usize,
    len: usize,
}

fn for_each_segment(from: &Tiling, grid: &Tiling, region: &Region, mut visit: impl FnMut(Segment)) {
    let shape = from.shape();
    let strides = c_strides(&grid.shape());
    let base = region.origin.iter().zip(&strides).map(|(&at, &stride)| at as i64 * stride).sum();
    let count: usize = region.extents.iter().product();
    // The axes behind the last one that is cut are contiguous within a chunk.
    let cut = from.axes.iter().rposition(|axis| axis.count() != 1).unwrap_or(0);
    let inner: usize = shape.iter().skip(cut + 1).product();
    Layout::new(&region.extents, &strides, base).for_each_run(0, count, |run| {
        let (mut flat, mut left) = (run.offset as usize, run.len);
        while left != 0 {
            let segment = segment_at(from, &shape, cut, inner, flat, left);
            assert!(0 < segment.len && segment.len <= left, "a segment of {} elements", segment.len);
            flat += segment.len;
            left -= segment.len;
            visit(segment);
        }
    });
}

fn segment_at(from: &Tiling, shape: &[usize], cut: usize, inner: usize, flat: usize, left: usize) -> Segment {
    if shape.is_empty() {
        return Segment { chunk: 0, start: 0, len: 1 };
    }
    let (mut row, within) = (flat / inner, flat % inner);
    let mut coordinates = vec![0; shape.len()];
    let (mut start, mut stride, mut available) = (0, inner, 0);
    for axis in (0..=cut).rev() {
        let at = row % shape[axis];
        row /= shape[axis];
        let piece = from.axes[axis].find(at);
        let (first, len) = from.axes[axis].piece(piece);
        coordinates[axis] = piece;
        if axis == cut {
            available = (first + len - at) * inner - within;
        }
        start += (at - first) * stride;
        stride *= len;
    }
    Segment { chunk: from.number(&coordinates), start: start + within, len: available.min(left) }
}

#[cfg(test)]
mod tests {
    use super::*;

    use crate::tiling::AxisTiling;

    #[test]
    fn segments_are_the_elements_of_a_region_in_order() {
        let from = Tiling {
            axes: vec![AxisTiling::from_lengths(&[2, 1, 3]), AxisTiling::Even { len: 4, chunk: 3 }],
        };
        let grid = Tiling {
            axes: vec![AxisTiling::Even { len: 3, chunk: 2 }, AxisTiling::Even { len: 8, chunk: 5 }],
        };
        for task in 0..grid.count() {
            let region = Region::of(&grid, task);
            let mut found = Vec::new();
            for_each_segment(&from, &grid, &region, |segment| {
                found.extend((segment.start..segment.start + segment.len).map(|at| (segment.chunk, at)));
            });
            let mut expected = Vec::new();
            for row in region.origin[0]..region.origin[0] + region.extents[0] {
                for column in region.origin[1]..region.origin[1] + region.extents[1] {
                    let flat = row * 8 + column;
                    let at = [flat / 4, flat % 4];
                    let pieces = [from.axes[0].find(at[0]), from.axes[1].find(at[1])];
                    let (top, left) = (from.axes[0].piece(pieces[0]).0, from.axes[1].piece(pieces[1]));
                    expected.push((from.number(&pieces), (at[0] - top) * left.1 + at[1] - left.0));
                }
            }
            assert_eq!(found, expected, "task {task}");
        }
    }

    #[test]
    fn the_only_element_of_a_scalar_is_a_segment() {
        let mut found = Vec::new();
        let region = Region { origin: vec![0], extents: vec![1] };
        for_each_segment(&Tiling::whole(&[]), &Tiling::whole(&[1]), &region, |segment| {
            found.push((segment.chunk, segment.start, segment.len));
        });
        assert_eq!(found, [(0, 0, 1)]);
    }
}
