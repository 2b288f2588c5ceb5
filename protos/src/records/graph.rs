//! A part of a graph inside its record: lists of numbers of fixed width.

use super::bytes::{Reader, put_bytes, put_u32};
use super::lists::packed;
use super::{BadRecord, RefsView};
use tharsis_types::graph::{GraphInput, GraphPart, GraphResult, GraphStep};

const STEP_BYTES: usize = 20;
const INPUT_BYTES: usize = 8;
const RESULT_BYTES: usize = 16;

/// A packed part of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphView<'a> {
    first: u32,
    is_last: bool,
    references: RefsView<'a>,
    steps: &'a [u8],
    inputs: &'a [u8],
    results: &'a [u8],
    payload: &'a [u8],
}

/// The lists of a part that is to be sent; the memory is used for one part after the other.
#[derive(Debug, Default)]
pub struct PackedGraph {
    references: Vec<u8>,
    steps: Vec<u8>,
    inputs: Vec<u8>,
    results: Vec<u8>,
    payload: Vec<u8>,
}

impl PackedGraph {
    /// Removes everything, but keeps the memory.
    pub fn clear(&mut self) {
        [&mut self.references, &mut self.steps, &mut self.inputs, &mut self.results, &mut self.payload]
            .into_iter()
            .for_each(Vec::clear);
    }

    /// Bytes of all lists.
    #[must_use]
    pub fn len(&self) -> usize {
        let lists = [&self.references, &self.steps, &self.inputs, &self.results, &self.payload];
        lists.into_iter().map(Vec::len).sum()
    }

    /// Whether there is nothing in it.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends a reference that steps from here on may name.
    pub fn reference(&mut self, reference: &tharsis_types::RefId) {
        super::pack::reference(&mut self.references, reference);
    }

    /// Appends a step with its inputs and its arguments by value.
    pub fn step(&mut self, step: &GraphStep, inputs: &[GraphInput], payload: &[u8]) {
        let GraphStep { class, returns, payload_bytes, input_count, priority } = *step;
        let numbers = [class, returns, payload_bytes, input_count, priority.cast_unsigned()];
        self.steps.extend(numbers.into_iter().flat_map(u32::to_le_bytes));
        for input in inputs {
            self.inputs.extend_from_slice(&input.source.to_le_bytes());
            self.inputs.extend_from_slice(&input.index.to_le_bytes());
            self.inputs.extend_from_slice(&input.parameter.to_le_bytes());
        }
        self.payload.extend_from_slice(payload);
    }

    /// Appends an output that is kept.
    pub fn result(&mut self, result: &GraphResult) {
        put_u32(&mut self.results, result.step);
        put_u32(&mut self.results, result.index);
        self.results.extend_from_slice(&result.token.to_le_bytes());
    }

    /// The part whose first step has this number.
    #[must_use]
    pub fn view(&self, first: u32, is_last: bool) -> GraphView<'_> {
        GraphView {
            first,
            is_last,
            // Packed by this type, so the list is whole.
            references: RefsView::new(&self.references).unwrap_or_default(),
            steps: &self.steps,
            inputs: &self.inputs,
            results: &self.results,
            payload: &self.payload,
        }
    }
}

impl<'a> GraphView<'a> {
    /// Number of steps in the part.
    #[must_use]
    pub fn step_count(&self) -> usize {
        self.steps.len() / STEP_BYTES
    }

    /// The part itself. It is not checked: see [`GraphPart::check`].
    #[must_use]
    pub fn part(&self) -> GraphPart {
        GraphPart {
            first: self.first,
            is_last: self.is_last,
            references: self.references.iter().collect(),
            steps: rows::<STEP_BYTES>(self.steps).map(step).collect(),
            inputs: rows::<INPUT_BYTES>(self.inputs).map(input).collect(),
            payload: self.payload.to_vec(),
            results: rows::<RESULT_BYTES>(self.results).map(result).collect(),
        }
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        put_u32(out, self.first);
        out.push(u8::from(self.is_last));
        for list in [self.references.0, self.steps, self.inputs, self.results, self.payload] {
            put_bytes(out, list);
        }
    }

    pub(super) fn decode(r: &mut Reader<'a>) -> Result<Self, BadRecord> {
        let first = r.u32()?;
        let is_last = match r.u8()? {
            0 => false,
            1 => true,
            _ => return Err(r.bad("a mark is neither yes nor no")),
        };
        Ok(Self {
            first,
            is_last,
            references: RefsView::new(r.bytes()?)?,
            steps: packed(r.bytes()?, STEP_BYTES)?,
            inputs: packed(r.bytes()?, INPUT_BYTES)?,
            results: packed(r.bytes()?, RESULT_BYTES)?,
            payload: r.bytes()?,
        })
    }
}

fn rows<const N: usize>(bytes: &[u8]) -> impl Iterator<Item = &[u8; N]> {
    bytes.as_chunks::<N>().0.iter()
}

/// The number at a place of a row, in words of four bytes.
fn word<const N: usize>(row: &[u8; N], at: usize) -> u32 {
    let mut word = [0; 4];
    word.copy_from_slice(&row[4 * at..4 * at + 4]);
    u32::from_le_bytes(word)
}

fn step(row: &[u8; STEP_BYTES]) -> GraphStep {
    GraphStep {
        class: word(row, 0),
        returns: word(row, 1),
        payload_bytes: word(row, 2),
        input_count: word(row, 3),
        priority: word(row, 4).cast_signed(),
    }
}

fn input(row: &[u8; INPUT_BYTES]) -> GraphInput {
    let low = word(row, 1);
    GraphInput { source: word(row, 0), index: low as u16, parameter: (low >> 16) as u16 }
}

fn result(row: &[u8; RESULT_BYTES]) -> GraphResult {
    let token = u64::from(word(row, 2)) | u64::from(word(row, 3)) << 32;
    GraphResult { step: word(row, 0), index: word(row, 1), token }
}
