//! Pieces that a task makes for the tasks of a later stage.

use crate::chunk::{Buffer, Chunk};
use crate::element::Element;
use crate::error::KernelError;
use std::marker::PhantomData;

/// Pieces of rows that are filled beside one another.
pub(super) struct Pieces<T> {
    buffers: Vec<Buffer>,
    lengths: Vec<usize>,
    element: PhantomData<T>,
}

impl<T: Element> Pieces<T> {
    /// Pieces of these numbers of rows, each of `width` elements, all of which must be written.
    pub(super) fn new(counts: &[usize], width: usize) -> Pieces<T> {
        let lengths: Vec<usize> = counts.iter().map(|count| count * width).collect();
        let buffers = lengths.iter().map(|length| Buffer::for_overwrite(length * size_of::<T>())).collect();
        Pieces { buffers, lengths, element: PhantomData }
    }

    /// The places of each piece, in order.
    pub(super) fn ends(&mut self) -> Vec<std::slice::IterMut<'_, T>> {
        let places = self.buffers.iter_mut().zip(&self.lengths);
        places.map(|(buffer, &length)| buffer.elements_mut::<T>()[..length].iter_mut()).collect()
    }

    /// The places of each part of each piece, in order: piece after piece, as `parts` tells their numbers of
    /// elements.
    pub(super) fn part_ends(&mut self, parts: &[&[usize]]) -> Vec<std::slice::IterMut<'_, T>> {
        let mut ends = Vec::new();
        for ((buffer, &length), parts) in self.buffers.iter_mut().zip(&self.lengths).zip(parts) {
            let mut rest = &mut buffer.elements_mut::<T>()[..length];
            for &part in *parts {
                let (places, behind) = rest.split_at_mut(part);
                ends.push(places.iter_mut());
                rest = behind;
            }
        }
        ends
    }

    /// The pieces, of rows with the extents `rest`.
    pub(super) fn finish(self, counts: &[usize], rest: &[usize]) -> Result<Vec<Chunk>, KernelError> {
        let made = counts.iter().zip(self.buffers);
        made.map(|(&count, data)| Chunk::contiguous(T::DTYPE, &[&[count], rest].concat(), data)).collect()
    }
}
