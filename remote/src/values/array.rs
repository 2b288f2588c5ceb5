//! Arrays of numbers.

use super::Blob;
use bytemuck::Pod;
use bytes::Bytes;
use ndarray::{ArrayView, Dimension, IxDyn};
use serde::de::{self, Deserializer};
use serde::{Deserialize, Serialize, Serializer};
use std::fmt;
use std::marker::PhantomData;
use tharsis_types::FailureKind;

/// An immutable array of numbers, contiguous in row-major order, that is mapped, not copied, when it is read
/// from the store.
///
/// Make one from an `ndarray::Array`, read it through [`Array::view`], take a writable copy with
/// [`Array::into_owned`]. Cloning is cheap.
#[derive(Clone)]
pub struct Array<T, D = IxDyn> {
    bytes: Bytes,
    shape: D,
    element: PhantomData<T>,
}

/// A type of numbers in arrays.
pub trait Element: Pod + PartialEq + Send + Sync + sealed::Sealed {
    /// Code of the type in the encoding.
    const DTYPE: u16;
    /// NumPy's name of the type.
    const NAME: &'static str;
}

mod sealed {
    pub trait Sealed {}
}

macro_rules! elements {
    ($($ty:ty = $code:literal $name:literal),* $(,)?) => {$(
        impl sealed::Sealed for $ty {}
        impl Element for $ty {
            const DTYPE: u16 = $code;
            const NAME: &'static str = $name;
        }
    )*
        fn dtype_name(code: u16) -> &'static str {
            match code {
                $($code => $name,)*
                _ => "an unknown dtype",
            }
        }
    };
}

elements! {
    i8 = 1 "int8",
    i16 = 2 "int16",
    i32 = 3 "int32",
    i64 = 4 "int64",
    u8 = 5 "uint8",
    u16 = 6 "uint16",
    u32 = 7 "uint32",
    u64 = 8 "uint64",
    f32 = 9 "float32",
    f64 = 10 "float64",
}

/// The memory of a vector, as bytes.
struct Owned<T>(Vec<T>);

impl<T: Element> AsRef<[u8]> for Owned<T> {
    fn as_ref(&self) -> &[u8] {
        bytemuck::cast_slice(&self.0)
    }
}

#[derive(Serialize, Deserialize)]
#[serde(rename = "Array")]
struct Written {
    dtype: u16,
    shape: Vec<u64>,
    data: Blob,
}

impl<T: Element, D: Dimension> Array<T, D> {
    /// The elements, without a copy.
    #[must_use]
    pub fn view(&self) -> ArrayView<'_, T, D> {
        // The shape and the length of the bytes were checked when this array was made, so neither the cast
        // nor the shape can fail; an empty view would show a defect here at once.
        let elements: &[T] = bytemuck::try_cast_slice(&self.bytes).unwrap_or_default();
        ArrayView::from_shape(self.shape.clone(), elements).unwrap_or_else(|_| {
            ArrayView::from_shape(D::zeros(self.shape.ndim()), &[]).unwrap_or_else(|_| unreachable!())
        })
    }

    /// Number of elements along each axis.
    #[must_use]
    pub fn shape(&self) -> &[usize] {
        self.shape.slice()
    }

    /// Number of elements, over all axes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.shape.size()
    }

    /// Whether there are no elements.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The elements in row-major order.
    #[must_use]
    pub fn as_slice(&self) -> &[T] {
        bytemuck::try_cast_slice(&self.bytes).unwrap_or_default()
    }

    /// A copy that can be written.
    #[must_use]
    pub fn into_owned(self) -> ndarray::Array<T, D> {
        self.view().to_owned()
    }

    /// An array over the bytes of its elements in row-major order, which are copied only if they are not
    /// aligned.
    ///
    /// # Errors
    /// `DataCorrupt` if the number of bytes does not match the shape.
    pub fn from_bytes(bytes: Bytes, shape: D) -> crate::Result<Self> {
        Self::checked(bytes, shape).map_err(|text| crate::Error::new(FailureKind::DataCorrupt, text))
    }

    /// The bytes of the elements, shared.
    #[must_use]
    pub fn into_bytes(self) -> Bytes {
        self.bytes
    }

    /// An array over shared bytes; copies them only if they are not aligned.
    fn checked(bytes: Bytes, shape: D) -> Result<Self, String> {
        let len = shape.size_checked().and_then(|n| n.checked_mul(size_of::<T>()));
        if len != Some(bytes.len()) || isize::try_from(bytes.len()).is_err() {
            return Err(format!("{} bytes are not {:?} elements of {}", bytes.len(), shape.slice(), T::NAME));
        }
        let is_aligned = bytes.as_ptr().addr().is_multiple_of(align_of::<T>());
        let bytes =
            if is_aligned { bytes } else { owned_bytes(bytemuck::pod_collect_to_vec::<u8, T>(&bytes)) };
        Ok(Self { bytes, shape, element: PhantomData })
    }
}

fn owned_bytes<T: Element>(elements: Vec<T>) -> Bytes {
    Bytes::from_owner(Owned(elements))
}

impl<T: Element, D: Dimension> From<ndarray::Array<T, D>> for Array<T, D> {
    fn from(array: ndarray::Array<T, D>) -> Self {
        let shape = array.raw_dim();
        let is_whole = array.is_standard_layout();
        let (elements, offset) =
            if is_whole { array.into_raw_vec_and_offset() } else { (array.iter().copied().collect(), None) };
        let start = offset.unwrap_or(0) * size_of::<T>();
        let bytes = owned_bytes(elements).slice(start..start + shape.size() * size_of::<T>());
        Self { bytes, shape, element: PhantomData }
    }
}

impl<T: Element, D: Dimension> From<Array<T, D>> for ndarray::Array<T, D> {
    fn from(array: Array<T, D>) -> Self {
        array.into_owned()
    }
}

impl<T: Element, D: Dimension> PartialEq for Array<T, D> {
    fn eq(&self, other: &Self) -> bool {
        self.shape == other.shape && self.as_slice() == other.as_slice()
    }
}

impl<T: Element, D: Dimension> fmt::Debug for Array<T, D> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Array({}, {:?})", T::NAME, self.shape())
    }
}

impl<T: Element, D: Dimension> Serialize for Array<T, D> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let shape = self.shape().iter().map(|n| *n as u64).collect();
        Written { dtype: T::DTYPE, shape, data: self.bytes.clone().into() }.serialize(serializer)
    }
}

impl<'de, T: Element, D: Dimension> Deserialize<'de> for Array<T, D> {
    fn deserialize<De: Deserializer<'de>>(deserializer: De) -> Result<Self, De::Error> {
        let written = Written::deserialize(deserializer)?;
        if written.dtype != T::DTYPE {
            let found = dtype_name(written.dtype);
            return Err(de::Error::custom(format_args!(
                "an array of {found} is not an array of {}",
                T::NAME
            )));
        }
        let found = written.shape.len();
        if D::NDIM.is_some_and(|wanted| wanted != found) {
            return Err(de::Error::custom(format_args!("an array of {found} axes, expected {:?}", D::NDIM)));
        }
        let mut shape = D::zeros(found);
        for (axis, len) in shape.slice_mut().iter_mut().zip(&written.shape) {
            *axis = usize::try_from(*len).map_err(de::Error::custom)?;
        }
        Self::checked(written.data.into_bytes(), shape).map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ndarray::{Ix1, Ix2, array};

    fn through_bytes<T: Element, D: Dimension>(array: &Array<T, D>) -> Array<T, D> {
        postcard::from_bytes(&postcard::to_allocvec(array).unwrap()).unwrap()
    }

    #[test]
    fn arrays_of_any_order_keep_their_elements() {
        let plain = array![[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]];
        let turned = plain.clone().reversed_axes();
        let mut inverted = plain.clone();
        inverted.invert_axis(ndarray::Axis(0));
        for array in [plain, turned, inverted] {
            let ours = Array::<f64, Ix2>::from(array.clone());
            assert_eq!(ours.view(), array);
            assert_eq!(through_bytes(&ours).into_owned(), array);
        }
    }

    #[test]
    fn another_dtype_or_shape_is_refused() {
        let bytes = postcard::to_allocvec(&Array::from(array![1_i32, 2, 3])).unwrap();
        assert!(postcard::from_bytes::<Array<i64, Ix1>>(&bytes).is_err());
        assert!(postcard::from_bytes::<Array<i32, Ix2>>(&bytes).is_err());
        let wrong = Written { dtype: i32::DTYPE, shape: vec![u64::MAX, 2], data: vec![0; 8].into() };
        assert!(postcard::from_bytes::<Array<i32>>(&postcard::to_allocvec(&wrong).unwrap()).is_err());
        let empty = Array::from(ndarray::Array2::<f32>::zeros((0, 3)));
        assert_eq!(through_bytes(&empty).shape(), [0, 3]);
    }

    #[test]
    fn bytes_that_are_not_aligned_are_copied() {
        let bytes = Bytes::from(vec![1; 25]);
        let start = usize::from(bytes.as_ptr().addr().is_multiple_of(8));
        let array = Array::<u64, Ix1>::checked(bytes.slice(start..start + 24), Ix1(3)).unwrap();
        assert_eq!(array.as_slice(), [0x0101_0101_0101_0101; 3]);
    }
}
