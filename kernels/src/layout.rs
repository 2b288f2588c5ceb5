//! Iteration over a strided array in C order, run by run.

/// Extents and strides of a strided array; neighbouring axes are merged where they are contiguous.
///
/// The unit of strides is the caller's: elements of a buffer, or steps of an index-valued source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    extents: Vec<usize>,
    strides: Vec<i64>,
    base: i64,
}

/// One stretch of a [`Layout`]: `len` elements, the first at `offset`, `stride` apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct Run {
    pub offset: i64,
    pub stride: i64,
    pub len: usize,
}

impl Layout {
    /// The layout of `extents` with `strides`, whose first element is at `base`.
    pub fn new(extents: &[usize], strides: &[i64], base: i64) -> Layout {
        let mut merged = Layout { extents: Vec::new(), strides: Vec::new(), base };
        for (&extent, &stride) in extents.iter().zip(strides) {
            if extent == 1 {
                continue;
            }
            match (merged.extents.last_mut(), merged.strides.last_mut()) {
                (Some(outer), Some(outer_stride)) if *outer_stride == stride * extent as i64 => {
                    *outer *= extent;
                    *outer_stride = stride;
                }
                _ => {
                    merged.extents.push(extent);
                    merged.strides.push(stride);
                }
            }
        }
        if merged.extents.is_empty() {
            merged.extents.push(1);
            merged.strides.push(1);
        }
        merged
    }

    /// The whole layout as one run, if it is one.
    pub fn single_run(&self) -> Option<Run> {
        match (self.extents.as_slice(), self.strides.as_slice()) {
            (&[len], &[stride]) => Some(Run { offset: self.base, stride, len }),
            _ => None,
        }
    }

    /// Calls `visit` with each run of the elements `start..end`, counted in C order.
    #[inline]
    pub fn for_each_run(&self, start: usize, end: usize, mut visit: impl FnMut(Run)) {
        let last = self.extents.len() - 1;
        let (inner, stride) = (self.extents[last], self.strides[last]);
        let mut at = start;
        while at < end {
            let column = at % inner;
            let len = (inner - column).min(end - at);
            let offset = self.row_offset(at / inner) + column as i64 * stride;
            visit(Run { offset, stride, len });
            at += len;
        }
    }

    fn row_offset(&self, mut row: usize) -> i64 {
        let mut offset = self.base;
        for axis in (0..self.extents.len() - 1).rev() {
            offset += (row % self.extents[axis]) as i64 * self.strides[axis];
            row /= self.extents[axis];
        }
        offset
    }
}

/// Strides of a C-ordered array of this shape, in elements.
pub fn c_strides(shape: &[usize]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for axis in (1..shape.len()).rev() {
        strides[axis - 1] = strides[axis] * shape[axis] as i64;
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offsets(layout: &Layout, start: usize, end: usize) -> Vec<i64> {
        let mut all = Vec::new();
        layout.for_each_run(start, end, |run| {
            all.extend((0..run.len as i64).map(|i| run.offset + i * run.stride))
        });
        all
    }

    #[test]
    fn contiguous_axes_merge_into_one_run() {
        let layout = Layout::new(&[4, 5, 6], &c_strides(&[4, 5, 6]), 7);
        assert_eq!(layout.single_run(), Some(Run { offset: 7, stride: 1, len: 120 }));
    }

    #[test]
    fn a_transposed_range_visits_elements_in_c_order() {
        let layout = Layout::new(&[3, 2], &[1, 3], 0);
        assert_eq!(offsets(&layout, 0, 6), [0, 3, 1, 4, 2, 5]);
        assert_eq!(offsets(&layout, 1, 4), [3, 1, 4]);
    }

    #[test]
    fn broadcast_axes_repeat() {
        let layout = Layout::new(&[2, 3], &[0, 1], 0);
        assert_eq!(offsets(&layout, 0, 6), [0, 1, 2, 0, 1, 2]);
    }
}
