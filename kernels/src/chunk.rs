//! One block of a tensor: shape, strides and dtype over shared, aligned bytes.

use crate::dtype::DType;
use crate::element::Element;
use crate::error::KernelError;
use crate::layout::{Layout, c_strides};
use crate::scalar::Scalar;
use crate::with_element;
use bytemuck::Zeroable;
use std::sync::Arc;

/// Bytes on a boundary of 64, which is that of a cache line and of the widest vector.
#[derive(Clone, Debug, Default)]
pub struct Buffer {
    lines: Vec<Line>,
}

#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; LINE_BYTES]);

const LINE_BYTES: usize = 64;

impl Buffer {
    /// A buffer of at least `bytes` zero bytes.
    pub fn zeroed(bytes: usize) -> Buffer {
        Buffer { lines: bytemuck::zeroed_vec(bytes.div_ceil(LINE_BYTES)) }
    }

    /// How many bytes there are; a multiple of 64.
    pub fn len_bytes(&self) -> usize {
        self.lines.len() * LINE_BYTES
    }

    /// Makes room for at least `bytes`; what is new is zero.
    pub fn grow(&mut self, bytes: usize) {
        let lines = bytes.div_ceil(LINE_BYTES);
        if self.lines.len() < lines {
            self.lines.resize(lines, Line::zeroed());
        }
    }

    /// All bytes as elements of `T`.
    #[inline]
    pub fn elements<T: Element>(&self) -> &[T] {
        bytemuck::cast_slice(&self.lines)
    }

    /// All bytes as elements of `T`, to write.
    #[inline]
    pub fn elements_mut<T: Element>(&mut self) -> &mut [T] {
        bytemuck::cast_slice_mut(&mut self.lines)
    }
}

/// One block of a tensor. Cloning shares the bytes.
#[derive(Clone, Debug)]
pub struct Chunk {
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<i64>,
    offset: usize,
    data: Arc<Buffer>,
}

impl Chunk {
    /// A C-ordered chunk over the first elements of `data`.
    ///
    /// # Errors
    /// `OutOfBounds` if `data` is too short for `shape`.
    pub fn contiguous(dtype: DType, shape: &[usize], data: Buffer) -> Result<Chunk, KernelError> {
        Chunk::strided(dtype, shape, &c_strides(shape), 0, Arc::new(data))
    }

    /// A chunk of any layout over shared bytes; strides and offset count elements.
    ///
    /// # Errors
    /// `OutOfBounds` if an element would lie outside `data`.
    pub fn strided(
        dtype: DType,
        shape: &[usize],
        strides: &[i64],
        offset: usize,
        data: Arc<Buffer>,
    ) -> Result<Chunk, KernelError> {
        let capacity = (data.len_bytes() / dtype.size_bytes()) as i64;
        let (mut low, mut high) = (offset as i64, offset as i64);
        for (&extent, &stride) in shape.iter().zip(strides) {
            let reach = stride * (extent.max(1) as i64 - 1);
            low += reach.min(0);
            high += reach.max(0);
        }
        let empty = shape.contains(&0);
        if shape.len() != strides.len() || (!empty && (low < 0 || capacity <= high)) {
            return Err(KernelError::OutOfBounds { shape: shape.to_vec(), capacity: capacity as usize });
        }
        Ok(Chunk { dtype, shape: shape.to_vec(), strides: strides.to_vec(), offset, data })
    }

    /// A C-ordered chunk holding a copy of `elements`.
    ///
    /// # Errors
    /// `OutOfBounds` if there are fewer elements than `shape` asks for.
    pub fn from_elements<T: Element>(shape: &[usize], elements: &[T]) -> Result<Chunk, KernelError> {
        let mut data = Buffer::zeroed(std::mem::size_of_val(elements));
        data.elements_mut::<T>()[..elements.len()].copy_from_slice(elements);
        let count = shape.iter().product::<usize>();
        if elements.len() < count {
            return Err(KernelError::OutOfBounds { shape: shape.to_vec(), capacity: elements.len() });
        }
        Chunk::contiguous(T::DTYPE, shape, data)
    }

    /// The type of the elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Extent of each axis.
    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Distance between neighbours along each axis, in elements.
    pub fn strides(&self) -> &[i64] {
        &self.strides
    }

    /// Where the first element lies in the buffer, in elements.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The bytes under this chunk.
    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.data
    }

    /// How many elements there are.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether there are no elements.
    pub fn is_empty(&self) -> bool {
        self.shape.contains(&0)
    }

    /// Bytes of the elements, not of the buffer.
    pub fn len_bytes(&self) -> usize {
        self.len() * self.dtype.size_bytes()
    }

    /// The elements in C order if they lie so, and `T` is their type.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        if self.dtype != T::DTYPE || !self.is_contiguous() {
            return None;
        }
        if self.is_empty() {
            return Some(&[]);
        }
        self.data.elements::<T>().get(self.offset..self.offset + self.len())
    }

    /// Whether the elements lie in C order without gaps.
    pub fn is_contiguous(&self) -> bool {
        self.is_empty() || self.layout().single_run().is_some_and(|run| run.stride == 1 || run.len == 1)
    }

    /// The elements in C order.
    ///
    /// # Errors
    /// `WrongDType` if `T` is not their type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, KernelError> {
        if self.dtype != T::DTYPE {
            return Err(KernelError::WrongDType { expected: T::DTYPE, found: self.dtype });
        }
        if let Some(slice) = self.as_slice::<T>() {
            return Ok(slice.to_vec());
        }
        let mut out = Vec::with_capacity(self.len());
        let all = self.data.elements::<T>();
        self.layout().for_each_run(0, self.len(), |run| {
            out.extend((0..run.len as i64).map(|i| all[(run.offset + i * run.stride) as usize]));
        });
        Ok(out)
    }

    /// This chunk, or a C-ordered copy if it lies otherwise.
    ///
    /// # Errors
    /// None for a chunk that was made by this type's constructors.
    pub fn to_contiguous(&self) -> Result<Chunk, KernelError> {
        if self.is_contiguous() {
            let strides = c_strides(&self.shape);
            return Chunk::strided(self.dtype, &self.shape, &strides, self.offset, self.data.clone());
        }
        with_element!(self.dtype, T => Chunk::from_elements(&self.shape, &self.to_vec::<T>()?))
    }

    /// The last two axes exchanged, without a copy.
    ///
    /// # Errors
    /// None for a chunk of at least two axes.
    pub fn transposed(&self) -> Result<Chunk, KernelError> {
        let (mut shape, mut strides) = (self.shape.clone(), self.strides.clone());
        if let [.., _, _] = shape[..] {
            let last = shape.len() - 1;
            shape.swap(last - 1, last);
            strides.swap(last - 1, last);
        }
        Chunk::strided(self.dtype, &shape, &strides, self.offset, self.data.clone())
    }

    /// The one element of a chunk with one element.
    pub fn scalar(&self) -> Option<Scalar> {
        if self.len() != 1 {
            return None;
        }
        with_element!(self.dtype, T => self.data.elements::<T>().get(self.offset).map(|x| x.to_scalar()))
    }

    /// How the elements lie, counted in elements of the buffer.
    pub fn layout(&self) -> Layout {
        Layout::new(&self.shape, &self.strides, self.offset as i64)
    }
}
