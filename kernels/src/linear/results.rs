//! Results of a function of a stack of matrices.

use crate::chunk::{Buffer, Chunk};
use crate::dtype::DType;
use crate::element::Element;
use crate::error::KernelError;

/// Results for each matrix of a stack, filled one by one.
pub(crate) struct Results {
    lead: Vec<usize>,
    parts: Vec<(Vec<usize>, DType, Buffer)>,
}

impl Results {
    pub(super) fn new(lead: &[usize], parts: Vec<(Vec<usize>, DType)>) -> Results {
        let count: usize = lead.iter().product();
        let with_memory = |(shape, dtype): (Vec<usize>, DType)| {
            let bytes = count * shape.iter().product::<usize>() * dtype.size_bytes();
            (shape, dtype, Buffer::for_overwrite(bytes))
        };
        Results { lead: lead.to_vec(), parts: parts.into_iter().map(with_memory).collect() }
    }

    /// The elements of one part of the results for one matrix.
    pub(crate) fn of<T: Element>(&mut self, part: usize, index: usize) -> &mut [T] {
        let (shape, dtype, data) = &mut self.parts[part];
        assert_eq!(*dtype, T::DTYPE, "a result of another dtype");
        let len = shape.iter().product::<usize>();
        &mut data.elements_mut::<T>()[index * len..(index + 1) * len]
    }

    pub(super) fn finish(self) -> Result<Vec<Chunk>, KernelError> {
        let Results { lead, parts } = self;
        let chunk = |(shape, dtype, data): (Vec<usize>, DType, Buffer)| {
            Chunk::contiguous(dtype, &[lead.as_slice(), &shape].concat(), data)
        };
        parts.into_iter().map(chunk).collect()
    }
}

/// The error of a matrix for which there is no result.
pub(super) fn singular(text: &str) -> KernelError {
    KernelError::Singular(text.to_owned())
}
