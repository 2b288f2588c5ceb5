//! One block of a tensor: shape, strides and dtype over shared, aligned bytes.

use crate::dtype::DType;
use crate::element::{Element, with_words};
use crate::error::KernelError;
use crate::layout::{Layout, c_strides};
use crate::pages::{PAGES_BYTES_MIN, Pages};
use crate::poison;
use crate::scalar::Scalar;
use crate::with_element;
use bytemuck::Zeroable;
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Bytes aligned to 64, the size of a cache line and of the widest vector. They are owned by the buffer, lent
/// to it for writing, or shared and read-only.
pub struct Buffer {
    storage: Storage,
}

/// Read-only memory with another owner: an object of a store, a mapped file.
pub type SharedBytes = Arc<dyn AsRef<[u8]> + Send + Sync>;

/// Writable memory that another owner lends for a result: a place in a store.
pub trait LentBytes: AsRef<[u8]> + AsMut<[u8]> + Send + Sync {}

enum Storage {
    Lent(Box<dyn LentBytes>),
    Own(Vec<Line>),
    Pages(Pages),
    Shared(SharedBytes),
}

#[derive(Clone, Copy, Debug, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(64))]
struct Line([u8; LINE_BYTES]);

pub(crate) const LINE_BYTES: usize = 64;

impl Buffer {
    /// A buffer of at least `bytes` zero bytes.
    pub fn zeroed(bytes: usize) -> Buffer {
        Buffer { storage: Storage::Own(bytemuck::zeroed_vec(bytes.div_ceil(LINE_BYTES))) }
    }

    /// A buffer of at least `bytes` bytes with unspecified contents: each byte must be written before it is
    /// read. Debug builds poison them, so that tests see bytes that were never written.
    pub fn for_overwrite(bytes: usize) -> Buffer {
        let whole = bytes.next_multiple_of(LINE_BYTES);
        let mut buffer = match (PAGES_BYTES_MIN <= bytes).then(|| Pages::take(whole)).flatten() {
            Some(pages) => Buffer { storage: Storage::Pages(pages) },
            None => Buffer::zeroed(bytes),
        };
        buffer.poison();
        buffer
    }

    /// In debug builds, overwrites all bytes with a pattern. A read before the first write then gives a wrong
    /// value that tests see, and not the previous contents, which may happen to be right.
    pub(crate) fn poison(&mut self) {
        if cfg!(debug_assertions) {
            poison::fill(self.elements_mut::<u8>());
        }
    }

    /// A writable buffer over lent memory; `None` if it is not aligned to 64 bytes.
    pub fn lent(bytes: Box<dyn LentBytes>) -> Option<Buffer> {
        let is_aligned = (*bytes).as_ref().as_ptr().addr().is_multiple_of(LINE_BYTES);
        is_aligned.then(|| Buffer { storage: Storage::Lent(bytes) })
    }

    /// A buffer over shared memory; copies it only if it is not aligned to 64 bytes.
    pub fn shared(bytes: SharedBytes) -> Buffer {
        let memory = (*bytes).as_ref();
        if memory.as_ptr().addr().is_multiple_of(LINE_BYTES) {
            return Buffer { storage: Storage::Shared(bytes) };
        }
        let mut copy = Buffer::for_overwrite(memory.len());
        copy.elements_mut::<u8>()[..memory.len()].copy_from_slice(memory);
        copy
    }

    /// Number of bytes; a multiple of 64 unless the memory is lent or shared.
    pub fn len_bytes(&self) -> usize {
        self.bytes().len()
    }

    /// All elements as bytes, in their order.
    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match &self.storage {
            Storage::Lent(bytes) => (**bytes).as_ref(),
            Storage::Own(lines) => bytemuck::cast_slice(lines),
            Storage::Pages(pages) => pages.bytes(),
            Storage::Shared(bytes) => (**bytes).as_ref(),
        }
    }

    /// Grows the buffer to at least `bytes`; new bytes are zero.
    pub fn grow(&mut self, bytes: usize) {
        if bytes <= self.len_bytes() {
            return;
        }
        let mut lines = match std::mem::take(self).storage {
            Storage::Own(lines) => lines,
            other => own_lines(Buffer { storage: other }.bytes()),
        };
        lines.resize(bytes.div_ceil(LINE_BYTES), Line::zeroed());
        self.storage = Storage::Own(lines);
    }

    /// All bytes as elements of `T`; a rest at the end of lent or shared memory that is no whole element is
    /// left out.
    #[inline]
    pub fn elements<T: Element>(&self) -> &[T] {
        if let Storage::Own(lines) = &self.storage {
            return bytemuck::cast_slice(lines);
        }
        let bytes = self.bytes();
        bytemuck::cast_slice(&bytes[..bytes.len() - bytes.len() % std::mem::size_of::<T>()])
    }

    /// All bytes as elements of `T`, mutable; shared memory is copied first.
    #[inline]
    pub fn elements_mut<T: Element>(&mut self) -> &mut [T] {
        if let Storage::Shared(bytes) = &self.storage {
            self.storage = Storage::Own(own_lines((**bytes).as_ref()));
        }
        match &mut self.storage {
            Storage::Lent(bytes) => whole_elements((**bytes).as_mut()),
            Storage::Own(lines) => bytemuck::cast_slice_mut(lines),
            Storage::Pages(pages) => whole_elements(pages.bytes_mut()),
            Storage::Shared(_) => unreachable!("it was copied above"),
        }
    }
}

fn whole_elements<T: Element>(bytes: &mut [u8]) -> &mut [T] {
    let whole = bytes.len() - bytes.len() % std::mem::size_of::<T>();
    bytemuck::cast_slice_mut(&mut bytes[..whole])
}

/// A copy of these bytes.
fn own_lines(bytes: &[u8]) -> Vec<Line> {
    let mut lines: Vec<Line> = bytemuck::zeroed_vec(bytes.len().div_ceil(LINE_BYTES));
    bytemuck::cast_slice_mut::<Line, u8>(&mut lines)[..bytes.len()].copy_from_slice(bytes);
    lines
}

impl Clone for Buffer {
    fn clone(&self) -> Buffer {
        let storage = match &self.storage {
            Storage::Own(lines) => Storage::Own(lines.clone()),
            Storage::Shared(bytes) => Storage::Shared(bytes.clone()),
            Storage::Lent(_) | Storage::Pages(_) => {
                let mut copy = Buffer::for_overwrite(self.len_bytes());
                copy.elements_mut::<u8>()[..self.len_bytes()].copy_from_slice(self.bytes());
                return copy;
            }
        };
        Buffer { storage }
    }
}

impl Default for Buffer {
    fn default() -> Buffer {
        Buffer { storage: Storage::Own(Vec::new()) }
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buffer({} bytes)", self.len_bytes())
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
        let mut data = Buffer::for_overwrite(std::mem::size_of_val(elements));
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

    /// Offset of the first element in the buffer, in elements.
    pub fn offset(&self) -> usize {
        self.offset
    }

    /// The bytes under this chunk.
    pub fn buffer(&self) -> &Arc<Buffer> {
        &self.data
    }

    /// Number of elements of the chunk.
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

    /// The elements in C order if they are contiguous and `T` is their type.
    pub fn as_slice<T: Element>(&self) -> Option<&[T]> {
        if self.dtype != T::DTYPE || !self.is_contiguous() {
            return None;
        }
        if self.is_empty() {
            return Some(&[]);
        }
        self.data.elements::<T>().get(self.offset..self.offset + self.len())
    }

    /// Whether the elements are contiguous in C order.
    pub fn is_contiguous(&self) -> bool {
        self.is_empty() || self.layout().single_run().is_some_and(|run| run.stride == 1 || run.len == 1)
    }

    /// The elements in C order.
    ///
    /// # Errors
    /// `WrongDType` if `T` is not their type.
    pub fn to_vec<T: Element>(&self) -> Result<Vec<T>, KernelError> {
        self.expect_dtype(T::DTYPE)?;
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

    /// The elements in C order: those of the chunk itself if they lie so.
    ///
    /// # Errors
    /// As [`Chunk::to_vec`].
    pub fn elements<T: Element>(&self) -> Result<Cow<'_, [T]>, KernelError> {
        match self.as_slice::<T>() {
            Some(slice) => Ok(Cow::Borrowed(slice)),
            None => Ok(Cow::Owned(self.to_vec::<T>()?)),
        }
    }

    /// This chunk, or a C-ordered copy if it is not contiguous.
    ///
    /// # Errors
    /// None for a chunk that was made by this type's constructors.
    pub fn to_contiguous(&self) -> Result<Chunk, KernelError> {
        if self.is_contiguous() {
            let strides = c_strides(&self.shape);
            return Chunk::strided(self.dtype, &self.shape, &strides, self.offset, self.data.clone());
        }
        let words = self.as_words();
        let copy = with_words!(self.dtype, T => Chunk::from_elements(&self.shape, &words.to_vec::<T>()?))?;
        copy.of_words(self.dtype)
    }

    /// The elements as words of their width, whatever they mean; see [`DType::words`].
    pub(crate) fn as_words(&self) -> Chunk {
        Chunk { dtype: self.dtype.words(), ..self.clone() }
    }

    /// The words of a chunk as the elements that they are.
    ///
    /// # Errors
    /// `WrongDType` if these are not the words of elements of `dtype`.
    pub(crate) fn of_words(self, dtype: DType) -> Result<Chunk, KernelError> {
        if self.dtype != dtype.words() {
            return Err(KernelError::WrongDType { expected: dtype.words(), found: self.dtype });
        }
        Ok(Chunk { dtype, ..self })
    }

    /// Refuses elements of another dtype.
    ///
    /// # Errors
    /// `WrongDType` if the elements are not of `dtype`.
    pub(crate) fn expect_dtype(&self, dtype: DType) -> Result<(), KernelError> {
        if self.dtype != dtype {
            return Err(KernelError::WrongDType { expected: dtype, found: self.dtype });
        }
        Ok(())
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

    /// Strides of the elements, counted in elements of the buffer.
    pub fn layout(&self) -> Layout {
        Layout::new(&self.shape, &self.strides, self.offset as i64)
    }
}

/// Chunks of one dtype as words.
///
/// # Errors
/// `WrongDType` for elements of another dtype.
pub(crate) fn as_words(chunks: &[Chunk], dtype: DType) -> Result<Vec<Chunk>, KernelError> {
    chunks.iter().map(|chunk| chunk.expect_dtype(dtype).map(|()| chunk.as_words())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    /// Bytes at a chosen distance from a boundary.
    struct At(Buffer, usize);

    impl AsRef<[u8]> for At {
        fn as_ref(&self) -> &[u8] {
            &self.0.bytes()[self.1..]
        }
    }

    fn numbers() -> Buffer {
        let mut buffer = Buffer::zeroed(128);
        buffer.elements_mut::<u8>().iter_mut().zip(0..).for_each(|(byte, i)| *byte = i);
        buffer
    }

    #[test]
    fn memory_of_others_is_read_in_place_and_never_written() {
        let shared: SharedBytes = Arc::new(At(numbers(), 0));
        let mut buffer = Buffer::shared(shared.clone());
        assert_eq!(buffer.bytes().as_ptr(), (*shared).as_ref().as_ptr());
        buffer.elements_mut::<u8>()[0] = 99;
        assert_eq!((buffer.bytes()[0], (*shared).as_ref()[0]), (99, 0));
    }

    impl AsMut<[u8]> for At {
        fn as_mut(&mut self) -> &mut [u8] {
            &mut self.0.elements_mut::<u8>()[self.1..]
        }
    }

    impl LentBytes for At {}

    #[test]
    fn lent_memory_is_written_in_place_and_copies_are_apart() {
        let lent = Box::new(At(numbers(), 0));
        let place = lent.as_ref().as_ref().as_ptr();
        let mut buffer = Buffer::lent(lent).unwrap();
        buffer.elements_mut::<u8>()[3] = 77;
        let mut copy = buffer.clone();
        copy.elements_mut::<u8>()[3] = 78;
        assert_eq!((buffer.bytes().as_ptr(), buffer.bytes()[3], copy.bytes()[3]), (place, 77, 78));
        assert!(Buffer::lent(Box::new(At(numbers(), 3))).is_none());
    }

    #[test]
    fn large_buffers_behave_like_small_ones() {
        let mut buffer = Buffer::for_overwrite(PAGES_BYTES_MIN + 5);
        buffer.elements_mut::<f64>().fill(2.5);
        let mut copy = buffer.clone();
        copy.grow(2 * PAGES_BYTES_MIN);
        assert_eq!(copy.elements::<f64>()[..buffer.elements::<f64>().len()], *buffer.elements::<f64>());
        assert_eq!(copy.elements::<f64>().last(), Some(&0.0));
    }

    #[test]
    fn elements_of_any_dtype_are_moved_as_words() {
        for dtype in DType::ALL {
            let every_other = Chunk::strided(dtype, &[4], &[2], 1, Arc::new(numbers())).unwrap();
            let moved = every_other.to_contiguous().unwrap();
            assert_eq!((moved.dtype(), moved.strides()), (dtype, &[1][..]));
            let size = dtype.size_bytes();
            assert_eq!(dtype.words().size_bytes(), size);
            let expected: Vec<u8> =
                [1, 3, 5, 7].map(|at| at * size).iter().flat_map(|&at| at as u8..(at + size) as u8).collect();
            assert_eq!(moved.buffer().bytes()[..4 * size], expected, "{dtype:?}");
        }
        let words = Chunk::from_elements(&[1], &[1u64]).unwrap();
        assert!(words.clone().of_words(DType::F32).is_err() && words.of_words(DType::C64).is_ok());
    }

    #[test]
    fn memory_off_the_boundary_is_copied() {
        let shared: SharedBytes = Arc::new(At(numbers(), 3));
        let buffer = Buffer::shared(shared);
        assert!(buffer.bytes().as_ptr().addr().is_multiple_of(LINE_BYTES));
        assert_eq!(buffer.bytes()[..2], [3, 4]);
    }

    #[test]
    fn an_odd_length_holds_whole_elements_only() {
        let shared: SharedBytes = Arc::new(bytes_of_len(20));
        let buffer = Buffer::shared(shared);
        assert!(Chunk::contiguous(DType::F64, &[3], buffer.clone()).is_err());
        assert_eq!(Chunk::contiguous(DType::F64, &[2], buffer).unwrap().len(), 2);
    }

    /// Shared memory of `len` bytes, aligned to 64.
    fn bytes_of_len(len: usize) -> impl AsRef<[u8]> + Send + Sync {
        struct Cut(Buffer, usize);
        impl AsRef<[u8]> for Cut {
            fn as_ref(&self) -> &[u8] {
                &self.0.bytes()[..self.1]
            }
        }
        Cut(numbers(), len)
    }
}
