//! Printed form of tensors: shape, chunks, dtype, bytes and state, as text and as HTML.

use crate::error::Result;
use crate::tensor::Tensor;
use std::fmt;
use tharsis_graph::error::shape_text;
use tharsis_graph::explain::bytes_text;
use tharsis_graph::tiling::Tiling;

/// Printed form of a tensor.
struct Facts {
    shape: String,
    dtype: &'static str,
    bytes: String,
    chunks: String,
    state: String,
}

impl Facts {
    fn of(tensor: &Tensor) -> Result<Facts> {
        let op = tensor.node()?.op();
        let resident = op.resident();
        Ok(Facts {
            shape: shape_text(tensor.shape()?),
            dtype: tensor.dtype()?.name(),
            bytes: if tensor.is_known()? { bytes_text(tensor.nbytes()?) } else { "not known yet".to_owned() },
            chunks: resident
                .map_or("chosen when it is computed".to_owned(), |made| chunks_text(&made.tiling)),
            state: resident.map_or(format!("to be computed by {}", op.name()), |_| "at hand".to_owned()),
        })
    }
}

/// `12 chunks (3,4) of up to (100,20)`.
fn chunks_text(tiling: &Tiling) -> String {
    let longest: Vec<usize> = tiling.axes.iter().map(|axis| axis.longest()).collect();
    let (count, plural) = (tiling.count(), if tiling.count() == 1 { "" } else { "s" });
    format!("{count} chunk{plural} {} of up to {}", shape_text(&tiling.grid()), shape_text(&longest))
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match Facts::of(self) {
            Ok(Facts { shape, dtype, bytes, chunks, state }) => {
                write!(
                    f,
                    "Tensor(shape={shape}, dtype={dtype}, bytes={bytes}, chunks={chunks}, state={state})"
                )
            }
            Err(error) => write!(f, "Tensor({}: {error})", error.class()),
        }
    }
}

impl Tensor {
    /// A table for notebooks and pages: shape, chunks, dtype, bytes and state. Nothing is computed.
    ///
    /// ```
    /// let table = tharsis_numeric::ones(&[20, 30]).to_html();
    /// assert!(table.contains("<th>shape</th><td>(20,30)</td>"));
    /// ```
    #[must_use]
    pub fn to_html(&self) -> String {
        let row = |name: &str, value: &str| format!("<tr><th>{name}</th><td>{value}</td></tr>\n");
        let rows = match Facts::of(self) {
            Ok(Facts { shape, dtype, bytes, chunks, state }) => vec![
                row("shape", &shape),
                row("chunks", &chunks),
                row("dtype", dtype),
                row("bytes", &bytes),
                row("state", &state),
            ],
            Err(error) => vec![row(error.class(), &escaped(&error.to_string()))],
        };
        format!("<table>\n<caption>Tensor</caption>\n{}</table>\n", rows.concat())
    }
}

/// Escapes text for HTML: messages contain names of functions and types of the program.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use crate::{Chunks, arange};

    #[test]
    fn text_and_table_tell_shape_chunks_dtype_bytes_and_state() {
        let x = arange(1000).reshape(&[50, 20]);
        let text = format!("{x:?}");
        assert_eq!(
            text,
            "Tensor(shape=(50,20), dtype=int64, bytes=7.8 KiB, chunks=chosen when it is computed, \
             state=to be computed by reshape)"
        );
        let cut = x.rechunk(Chunks::PerAxis(vec![20, 20])).execute().unwrap();
        let text = format!("{cut:?}");
        assert!(text.ends_with("chunks=3 chunks (3,1) of up to (20,20), state=at hand)"), "{text}");
        let table = cut.to_html();
        for part in ["(50,20)", "3 chunks (3,1)", "int64", "7.8 KiB", "at hand"] {
            assert!(table.contains(&format!("<td>{part}")), "{table}");
        }
    }

    #[test]
    fn what_is_not_known_is_said_not_to_be() {
        let x = arange(10);
        let chosen = x.filter(&x.greater(3i64));
        let text = format!("{chosen:?}");
        assert!(text.contains("shape=(?,)") && text.contains("bytes=not known yet"), "{text}");
    }
}
