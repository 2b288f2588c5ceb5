//! Models as bytes and files.
//!
//! A file has a mark, the version of the format, the name of the model, its numbers in postcard, and a
//! checksum of all of that. Bytes from outside are checked before anything is made of them: the length and
//! the checksum first, then that shapes fit each other, so that a model which is read can be used like one
//! that was fitted. Nothing in a file is run, and a length that a file claims
//! takes no memory: lists grow as their elements are read.

use crate::{Error, Result};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize};
use std::cell::Cell;
use std::fs::{File, OpenOptions};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};
use tharsis_graph::Error as GraphError;
use tharsis_numeric::Tensor;
use twox_hash::XxHash3_64;

/// The first bytes of all files. The first of them is no text, so that a changed end of line is seen.
const MARK: &[u8; 8] = b"\x93tlearn\n";
/// The version of the format: another one for another layout of any model. A test compares the layouts of all
/// models with recorded ones.
const VERSION: u32 = 2;
/// Bytes of the checksum.
const SUM_BYTES: usize = 8;
/// Longest name of a model.
const NAME_BYTES_MAX: usize = 255;
/// Names of files that are taken before a save fails.
const PART_TRIES: usize = 64;

/// Models that can be saved: those of estimators, of pipelines and of searches. Models with names of features
/// have their [`model`](field@crate::FittedNamed::model) for that.
pub trait Save: Sized {
    /// The name of the type in files.
    const KIND: &'static str;

    /// The numbers of the model.
    ///
    /// # Errors
    /// Errors of a run, if a part of the model is an expression.
    fn body(&self) -> Result<Vec<u8>>;

    /// The model of these numbers; none if they do not fit each other.
    fn of_body(body: &[u8]) -> Option<Self>;

    /// The name of the type, and [`body`](Save::body).
    ///
    /// # Errors
    /// As [`body`](Save::body).
    #[track_caller]
    fn kind_and_body(&self) -> Result<(&'static str, Vec<u8>)> {
        Ok((Self::KIND, self.body()?))
    }

    /// The model of a name of a type and of its numbers, as [`kind_and_body`](Save::kind_and_body) tells
    /// them; none for another type, or if numbers do not fit each other.
    fn of_kind(kind: &str, body: &[u8]) -> Option<Self> {
        if kind == Self::KIND { Self::of_body(body) } else { None }
    }

    /// The layout of [`body`](Save::body): types, and names of fields, without numbers. Where it differs, so
    /// does the format of files. Lists tell what their elements are, and an empty one tells nothing.
    ///
    /// ```
    /// use tharsis_learn::Save;
    /// use tharsis_learn::preprocessing::Binarizer;
    /// assert_eq!(Binarizer::new().layout()?, "(threshold: f64)");
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`body`](Save::body).
    #[track_caller]
    fn layout(&self) -> Result<String> {
        crate::layouts::recorded(|| self.body())
    }

    /// The model as bytes.
    ///
    /// ```
    /// use tharsis_learn::Save;
    /// use tharsis_learn::preprocessing::{FittedMaxAbsScaler, MaxAbsScaler};
    /// use tharsis_numeric::array;
    /// let model = MaxAbsScaler::new().fit(&array([1.0, -4.0]).reshape(&[2, 1]), ..)?;
    /// let bytes = model.to_bytes()?;
    /// assert_eq!(FittedMaxAbsScaler::from_bytes(&bytes)?.max_abs, model.max_abs);
    /// let cut = FittedMaxAbsScaler::from_bytes(&bytes[..bytes.len() - 1]);
    /// assert_eq!(cut.err().map(|error| error.class()), Some("DataCorrupt"));
    /// # Ok::<(), tharsis_learn::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`body`](Save::body).
    #[track_caller]
    fn to_bytes(&self) -> Result<Vec<u8>> {
        Ok(framed(Self::KIND, &self.body()?))
    }

    /// The model of bytes that [`to_bytes`](Save::to_bytes) has made.
    ///
    /// # Errors
    /// `DataCorrupt` for other bytes, and for a pipeline with another type of last model; `ValueError` for
    /// another type of model, and for another version, which is read before the checksum.
    #[track_caller]
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        Self::of_body(body_of(Self::KIND, bytes)?).ok_or_else(|| corrupt("its numbers do not fit each other"))
    }

    /// Writes the model to a file, which is complete or as it was before.
    ///
    /// # Errors
    /// `OSError` if it cannot be written; as [`to_bytes`](Save::to_bytes).
    #[track_caller]
    fn save(&self, path: impl AsRef<Path>) -> Result<()> {
        write(path.as_ref(), &self.to_bytes()?)
    }

    /// Reads a model that [`save`](Save::save) has written.
    ///
    /// # Errors
    /// `OSError` if the file cannot be read; as [`from_bytes`](Save::from_bytes).
    #[track_caller]
    fn load(path: impl AsRef<Path>) -> Result<Self> {
        Self::from_bytes(&read(path.as_ref())?)
    }
}

/// [`Save`] of a model that serde knows, and what must hold of the shapes of one that is read.
macro_rules! saved {
    ($model:ty, $kind:expr, |$read:ident| $is_sound:expr) => {
        impl $crate::Save for $model {
            const KIND: &'static str = $kind;

            fn body(&self) -> $crate::Result<Vec<u8>> {
                $crate::saved::encoded(self)
            }

            fn of_body(body: &[u8]) -> Option<Self> {
                let $read: Self = $crate::saved::decoded(body)?;
                let is_sound: bool = $is_sound;
                is_sound.then_some($read)
            }
        }
    };
}
pub(crate) use saved;

/// Models that a saved model may hold one in the other. Bytes of somebody else must not end the stack.
pub(crate) const DEPTH_MAX: usize = 16;

thread_local! {
    /// Models around the one that is read.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Counts a model around others for as long as it is read.
pub(crate) struct Deeper;

impl Deeper {
    /// One model more around others; none if there are too many.
    pub(crate) fn one() -> Option<Deeper> {
        let depth = DEPTH.get();
        (depth < DEPTH_MAX).then(|| {
            DEPTH.set(depth + 1);
            Deeper
        })
    }
}

impl Drop for Deeper {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get().saturating_sub(1));
    }
}

/// A name of an estimator. Serde takes texts that it sees as such out of the file, which may end before.
pub(crate) type EstimatorName = &'static str;

/// A name that is one of these.
pub(crate) fn name_among<'de, D: Deserializer<'de>>(
    deserializer: D,
    names: &[&'static str],
) -> std::result::Result<&'static str, D::Error> {
    let found = String::deserialize(deserializer)?;
    names.iter().copied().find(|name| *name == found).ok_or_else(|| D::Error::custom("no such estimator"))
}

thread_local! {
    /// The error of a part of a value that cannot be encoded, whose class serde does not pass on.
    static OF_PART: Cell<Option<Error>> = const { Cell::new(None) };
}

/// A value in postcard.
///
/// # Errors
/// Those that parts have told by [`in_part`].
#[track_caller]
pub(crate) fn encoded<T: Serialize>(value: &T) -> Result<Vec<u8>> {
    crate::layouts::record(value);
    postcard::to_stdvec(value).map_err(|error| {
        OF_PART.take().unwrap_or_else(|| Error::here(GraphError::Internal(error.to_string())))
    })
}

/// The error of a part of a value, for serde, which [`encoded`] is to return as it is.
pub(crate) fn in_part<E: serde::ser::Error>(error: Error) -> E {
    let text = E::custom(&error);
    OF_PART.set(Some(error));
    text
}

/// The value of such bytes, of which none may be left.
pub(crate) fn decoded<T: DeserializeOwned>(bytes: &[u8]) -> Option<T> {
    let (value, left) = postcard::take_from_bytes(bytes).ok()?;
    left.is_empty().then_some(value)
}

/// A body between its name and the checksum.
fn framed(kind: &str, body: &[u8]) -> Vec<u8> {
    let mut bytes = MARK.to_vec();
    bytes.extend(VERSION.to_le_bytes());
    bytes.extend((kind.len() as u64).to_le_bytes());
    bytes.extend(kind.as_bytes());
    bytes.extend((body.len() as u64).to_le_bytes());
    bytes.extend(body);
    let sum = XxHash3_64::oneshot(&bytes);
    bytes.extend(sum.to_le_bytes());
    bytes
}

/// The body of a model of this kind.
#[track_caller]
fn body_of<'a>(kind: &str, bytes: &'a [u8]) -> Result<&'a [u8]> {
    let Some(rest) = bytes.strip_prefix(MARK) else { return Err(corrupt("it is no saved model")) };
    let cut = || corrupt("it ends too early");
    let (version, rest) = rest.split_first_chunk::<4>().ok_or_else(cut)?;
    let version = u32::from_le_bytes(*version);
    if version != VERSION {
        let feature = format!("version {version} of the format, of which this program reads {VERSION}");
        return Err(Error::here(GraphError::Unsupported { what: "a saved model".to_owned(), feature }));
    }
    let (found, rest) = part(rest).filter(|(found, _)| found.len() <= NAME_BYTES_MAX).ok_or_else(cut)?;
    let (body, sum) = part(rest).ok_or_else(cut)?;
    let sum: [u8; SUM_BYTES] = sum.try_into().map_err(|_| cut())?;
    let summed = bytes.len() - SUM_BYTES;
    if XxHash3_64::oneshot(&bytes[..summed]) != u64::from_le_bytes(sum) {
        return Err(corrupt("its checksum differs"));
    }
    if found != kind.as_bytes() {
        let found = String::from_utf8_lossy(found).escape_default().to_string();
        let text = format!("expected a saved model of {kind}, found one of {found}");
        return Err(crate::checks::refused(text));
    }
    Ok(body)
}

/// Bytes behind their number, and the rest.
fn part(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<8>()?;
    rest.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)
}

#[track_caller]
fn corrupt(reason: &str) -> Error {
    Error::here(GraphError::Corrupt { what: "a saved model".to_owned(), reason: reason.to_owned() })
}

#[track_caller]
fn failed(path: &Path, reason: &std::io::Error) -> Error {
    let path = path.display().to_string();
    Error::here(GraphError::File { path, reason: reason.to_string() })
}

/// The bytes of a file that begins with the mark.
#[track_caller]
fn read(path: &Path) -> Result<Vec<u8>> {
    let failed = |error: std::io::Error| failed(path, &error);
    let mut file = File::open(path).map_err(failed)?;
    let length = file.metadata().map_err(failed)?.len();
    let mut bytes = Vec::new();
    // The rest of a file that is something else, however large, is not read.
    (&mut file).take(MARK.len() as u64).read_to_end(&mut bytes).map_err(failed)?;
    if bytes != MARK {
        return Err(corrupt("it is no saved model"));
    }
    file.take(length.saturating_sub(MARK.len() as u64)).read_to_end(&mut bytes).map_err(failed)?;
    Ok(bytes)
}

/// Writes a file beside its place and moves it there.
#[track_caller]
fn write(path: &Path, bytes: &[u8]) -> Result<()> {
    let (mut file, beside) = part_file(path, random).map_err(|error| failed(path, &error))?;
    let written = file.write_all(bytes).and_then(|()| file.sync_all());
    if let Err(error) = written.and_then(|()| std::fs::rename(&beside, path)) {
        // The first error tells why the model is not there.
        let _ = std::fs::remove_file(&beside);
        return Err(failed(path, &error));
    }
    Ok(())
}

/// A new file in the folder of another. Its name has no part of the other one, which may be as long as names
/// can be. A number that is drawn is not that of a file which a killed process has left, as ids of processes
/// are: in containers all of them may be 1.
fn part_file(path: &Path, number: impl Fn() -> u64) -> std::io::Result<(File, PathBuf)> {
    let mut tries = 0;
    loop {
        let beside = path.with_file_name(format!(".{:016x}.part", number()));
        match OpenOptions::new().write(true).create_new(true).open(&beside) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists && tries < PART_TRIES => tries += 1,
            Err(error) => return Err(error),
            Ok(file) => return Ok((file, beside)),
        }
    }
}

/// A number that other processes do not draw: the keys of the standard hasher come from the system.
fn random() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// Tensors of float64 as a part of a model, with all their numbers. A model makes them small arrays of its
/// own before it is written, so that an error of a run is that of its class.
pub(crate) mod stored {
    use ndarray::ArrayD;
    use serde::{Deserialize, Deserializer, Serialize, Serializer, ser::Error as _};
    use tharsis_numeric::Tensor;

    pub(crate) fn serialize<S: Serializer>(tensor: &Tensor, serializer: S) -> Result<S::Ok, S::Error> {
        let numbers = tensor.astype(tharsis_numeric::DType::F64).fetch::<f64>();
        numbers.map_err(S::Error::custom)?.serialize(serializer)
    }

    pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Tensor, D::Error> {
        Ok(Tensor::from_array(&ArrayD::<f64>::deserialize(deserializer)?))
    }
}

/// The labels of a model that is read.
pub(crate) fn left_out() -> Tensor {
    let text = "a saved model has no labels of the samples of its fit: predict tells them again";
    Tensor::from(crate::checks::refused(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_change_of_a_byte_is_seen() {
        let bytes = framed("Ridge", b"numbers");
        assert_eq!(body_of("Ridge", &bytes).unwrap(), b"numbers");
        for at in 0..bytes.len() {
            for change in [1, 128, 255] {
                let mut changed = bytes.clone();
                changed[at] ^= change;
                assert!(body_of("Ridge", &changed).is_err(), "{at}");
            }
            assert!(body_of("Ridge", &bytes[..at]).is_err(), "{at}");
        }
        let mut longer = bytes.clone();
        longer.push(0);
        assert!(body_of("Ridge", &longer).is_err());
        let error = body_of("Lasso", &bytes).unwrap_err().to_string();
        assert!(error.starts_with("expected a saved model of Lasso, found one of Ridge"), "{error}");
    }

    #[test]
    fn a_part_file_that_a_killed_process_has_left_stops_no_save() {
        let folder = std::env::temp_dir().join(format!("learn-parts-{:016x}", random()));
        std::fs::create_dir(&folder).unwrap();
        let path = folder.join("model");
        let left = [5u64, 6].map(|number| folder.join(format!(".{number:016x}.part")));
        left.iter().for_each(|left| std::fs::write(left, b"left").unwrap());
        let next = std::cell::Cell::new(4);
        let (_, beside) = part_file(&path, || {
            next.set(next.get() + 1);
            next.get()
        })
        .unwrap();
        assert_eq!(beside, folder.join(".0000000000000007.part"));
        // Others' files stay; a folder in which no name is free is an error.
        assert_eq!(std::fs::read(&left[0]).unwrap(), b"left");
        assert_eq!(part_file(&path, || 5).unwrap_err().kind(), ErrorKind::AlreadyExists);
        // A name as long as names can be.
        let longest = folder.join("m".repeat(255));
        write(&longest, b"numbers").unwrap();
        assert_eq!(std::fs::read(longest).unwrap(), b"numbers");
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn hostile_lengths_allocate_nothing() {
        // The checksum is right, and a list claims to have 2^60 numbers.
        let mut body = vec![0x80; 8];
        body.push(0x10);
        assert!(decoded::<Vec<f64>>(&body).is_none());
        assert!(decoded::<ndarray::Array2<f64>>(&body).is_none());
        // A shape whose size is beyond all numbers.
        let shape = (1u8, (usize::MAX, usize::MAX), vec![0.0f64; 2]);
        let body = encoded(&shape).unwrap();
        assert!(decoded::<ndarray::Array2<f64>>(&body).is_none());
    }
}
