//! Frames of tensors.

use super::convert::{Form, arrow_type_of};
use super::errors::to_frames;
use crate::frame::kept::ChunkInStore;
use crate::tensor::kept::InStore;
use std::sync::Arc;
use tharsis_dataframe::arrow::datatypes::{Field, Schema};
use tharsis_dataframe::{DataFrame, Error, KeptPart, LocalPart, Resident as Rows, Result, Series};
use tharsis_graph::ops::{Resident, ResidentChunk};
use tharsis_graph::tiling::Chunks;
use tharsis_numeric::Tensor;

/// Frames and series of tensors.
pub trait ToFrame {
    /// A frame of a tensor's values: of a matrix, a column for each of its columns, under these labels; of a
    /// tensor with one axis, one column. A number that is none is missing.
    ///
    /// Computes the tensor, whose chunks stay where tasks made them. Tasks of the frame read them there,
    /// without a copy if there is one column.
    ///
    /// # Errors
    /// `ValueError` for other numbers of axes, and for more or fewer labels than columns; `TypeError` for
    /// dtypes that frames do not have; the error that the tensor carries, or one of its run.
    #[track_caller]
    fn to_frame<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> Result<DataFrame>;

    /// A series of the values of a tensor with one axis, as [`ToFrame::to_frame`].
    ///
    /// # Errors
    /// As [`ToFrame::to_frame`].
    #[track_caller]
    fn to_series(&self, name: &str) -> Result<Series>;
}

impl ToFrame for Tensor {
    #[track_caller]
    fn to_frame<'a>(&self, labels: impl IntoIterator<Item = &'a str>) -> Result<DataFrame> {
        let labels: Vec<String> = labels.into_iter().map(str::to_owned).collect();
        let width = match *self.shape().map_err(of_tensor)? {
            [_] => 1,
            [_, width] => width,
            ref other => {
                let text =
                    format!("a frame is made of a tensor with one or two axes, not of {}", other.len());
                return Err(Error::Value(text));
            }
        };
        if labels.len() != width {
            return Err(Error::Value(format!("{} labels for {width} columns", labels.len())));
        }
        frame_of(&in_rows(self)?, labels)
    }

    #[track_caller]
    fn to_series(&self, name: &str) -> Result<Series> {
        match self.ndim().map_err(of_tensor)? {
            1 => Ok(self.to_frame([name])?.col(name)),
            axes => Err(Error::Value(format!("a series is made of a tensor with one axis, not of {axes}"))),
        }
    }
}

/// Bytes of a chunk of rows.
const CHUNK_BYTES: usize = 4 << 20;

/// The chunks of a tensor, each with whole rows.
#[track_caller]
fn in_rows(tensor: &Tensor) -> Result<Resident> {
    let shape = tensor.shape().map_err(of_tensor)?;
    let computed = match *shape {
        [rows, width] => {
            let bytes = width.max(1) * tensor.dtype().map_err(of_tensor)?.size_bytes();
            let chunk = (CHUNK_BYTES / bytes).clamp(1, rows.max(1));
            tensor.rechunk(Chunks::PerAxis(vec![chunk, width.max(1)])).execute()
        }
        _ => tensor.execute(),
    };
    let computed = computed.map_err(of_tensor)?;
    let resident = computed.node().map_err(of_tensor)?.op().resident().cloned();
    let resident = resident.ok_or_else(|| Error::Internal("a computed tensor without chunks".to_owned()))?;
    if resident.tiling.axes.get(1).is_none_or(|axis| axis.count() == 1) {
        Ok(resident)
    } else {
        Err(Error::Internal("rows of a tensor are cut".to_owned()))
    }
}

fn frame_of(tensor: &Resident, labels: Vec<String>) -> Result<DataFrame> {
    let dtype = arrow_type_of(tensor.dtype)?;
    let fields = labels.iter().map(|label| Field::new(label, dtype.clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let width = labels.len();
    let form = Form { labels };
    let rows = &tensor.tiling.axes[0];
    let parts = tensor.chunks.iter().enumerate().map(|(at, chunk)| {
        let rows = rows.piece(at).1;
        part_of(chunk, &form, rows, rows * width * tensor.dtype.size_bytes())
    });
    Ok(DataFrame::from_parts(Rows { schema, parts: parts.collect::<Result<_>>()? }))
}

/// A chunk as a part, which is read where it lies.
fn part_of(chunk: &ResidentChunk, form: &Form, rows: usize, bytes: usize) -> Result<Arc<dyn KeptPart>> {
    if let Some(stored) = chunk.kept::<InStore>() {
        let (object, client) = stored.source();
        let form = form.clone();
        return Ok(Arc::new(ChunkInStore { object, client, form, rows, bytes }));
    }
    let chunk = chunk.fetch().map_err(|error| to_frames(&error, error.to_string()))?;
    Ok(Arc::new(LocalPart(vec![form.rows(&chunk)?])))
}

/// The error of frames for one of tensors.
fn of_tensor(error: tharsis_numeric::Error) -> Error {
    to_frames(error.cause(), error.to_string())
}
