//! The regular grids of an array: which of their blocks a place touches, and which bytes they share.

use std::ops::Range;
use tharsis_kernels::Place;

/// A grid over an array: that of the files, or that of the chunks in them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Grid<'a> {
    /// Extents of a block.
    pub(super) extents: &'a [usize],
    /// Bytes of an element.
    pub(super) size: usize,
}

impl Grid<'_> {
    /// Coordinates of the blocks at a place, in C order.
    pub(super) fn touched(&self, place: Place<'_>) -> Vec<Vec<usize>> {
        let mut found = vec![Vec::new()];
        for (axis, &extent) in self.extents.iter().enumerate() {
            let (start, len) = (place.origin[axis], place.extents[axis]);
            let range = if len == 0 { 0..0 } else { start / extent..(start + len - 1) / extent + 1 };
            found = found
                .into_iter()
                .flat_map(|lead: Vec<usize>| range.clone().map(move |at| [lead.as_slice(), &[at]].concat()))
                .collect();
        }
        found
    }

    /// The part in common of a block and a place that touches it: its origin in the array and its extents.
    pub(super) fn common(&self, place: Place<'_>, coordinates: &[usize]) -> (Vec<usize>, Vec<usize>) {
        let part = |axis: usize| {
            let start = coordinates[axis] * self.extents[axis];
            let end = (start + self.extents[axis]).min(place.origin[axis] + place.extents[axis]);
            let start = start.max(place.origin[axis]);
            (start, end - start)
        };
        (0..self.extents.len()).map(part).unzip()
    }

    /// Visits the lines along the last axis that a block and a place have in common: the range of bytes of
    /// each in the block and in the place.
    pub(super) fn each_line(
        &self,
        place: Place<'_>,
        coordinates: &[usize],
        mut visit: impl FnMut(Range<usize>, Range<usize>),
    ) {
        let (origin, extents) = self.common(place, coordinates);
        let (Some((&first, _)), Some((&len, lead))) = (origin.split_last(), extents.split_last()) else {
            return visit(0..self.size, 0..self.size);
        };
        let rows: usize = lead.iter().product();
        for row in 0..rows {
            let (mut left, mut index) = (row, vec![0; lead.len()]);
            for (axis, extent) in lead.iter().enumerate().rev() {
                index[axis] = origin[axis] + left % extent;
                left /= extent;
            }
            index.push(first);
            let of_block =
                |axis: usize| (index[axis] - coordinates[axis] * self.extents[axis], self.extents[axis]);
            let of_place = |axis: usize| (index[axis] - place.origin[axis], place.extents[axis]);
            let offset = |of: &dyn Fn(usize) -> (usize, usize)| {
                (0..index.len()).map(of).fold(0, |offset, (at, extent)| offset * extent + at) * self.size
            };
            let (from, to, len) = (offset(&of_block), offset(&of_place), len * self.size);
            visit(from..from + len, to..to + len);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_shares_lines_with_each_block_that_it_touches() {
        let grid = Grid { extents: &[2, 3], size: 1 };
        let place = Place { origin: &[1, 2], extents: &[2, 3] };
        assert_eq!(grid.touched(place), [[0, 0], [0, 1], [1, 0], [1, 1]]);
        let lines = |coordinates: &[usize]| {
            let mut found = Vec::new();
            grid.each_line(place, coordinates, |of_block, of_place| found.push((of_block, of_place)));
            found
        };
        assert_eq!(lines(&[0, 0]), [(5..6, 0..1)]);
        assert_eq!(lines(&[0, 1]), [(3..5, 1..3)]);
        assert_eq!(lines(&[1, 1]), [(0..2, 4..6)]);
        assert_eq!(grid.common(place, &[1, 1]), (vec![2, 3], vec![1, 2]));
        assert!(grid.touched(Place { origin: &[0, 0], extents: &[0, 3] }).is_empty());
    }

    #[test]
    fn an_array_without_axes_is_one_block() {
        let (grid, place) = (Grid { extents: &[], size: 8 }, Place { origin: &[], extents: &[] });
        assert_eq!(grid.touched(place), [[0; 0]]);
        let mut count = 0;
        grid.each_line(place, &[], |of_block, of_place| {
            assert_eq!((of_block, of_place), (0..8, 0..8));
            count += 1;
        });
        assert_eq!(count, 1);
    }
}
