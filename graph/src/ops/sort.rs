//! Sorting of a tensor of one axis that lies in many chunks, by samples.
//!
//! Some elements of each chunk are drawn, and of these places are chosen that cut all elements into buckets
//! of about the same size: as many as there are chunks, or more where a sort of a chunk would take too much
//! memory. The elements of each bucket in each chunk are counted. Then the elements of each chunk are dealt
//! to the buckets, and a task for each bucket sorts it. No task has more than a chunk of elements or a
//! bucket, whatever the values: equal elements are cut by their positions.

use crate::error::Error;
use crate::lower::{ExchangeStage, ExprId, Lowering};
use crate::node::{Meta, Operator};
use crate::ops::Resident;
use crate::plan::{Kernel, StageOutput, TensorId, TensorSpec};
use crate::shape::UNKNOWN;
use crate::tiling::{AxisTiling, Tiling};
use std::sync::Arc;
use tharsis_kernels::DType;
use tharsis_kernels::chunkwise::ChunkFunction;
use tharsis_kernels::exchange::{Exchange, Measure, SAMPLE_WORDS, SortMap, Splitter};
use tharsis_kernels::lines::Lines;
use tharsis_kernels::order::{Direction, Wide};

/// Result of a sort.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sorted {
    /// The elements.
    Values,
    /// The positions of the elements, int64.
    Positions,
}

/// The elements of a tensor (n,) in order, or their positions; equal elements keep their order.
#[derive(Clone, Debug)]
pub struct Sort {
    direction: Direction,
    what: Sorted,
    known: Known,
}

/// Facts that measures have told.
#[derive(Clone, Debug)]
pub(super) enum Known {
    Nothing,
    Places(Arc<Places>),
    Counts(Arc<Places>, Arc<Vec<usize>>),
}

/// The cut into chunks, and the places between buckets.
#[derive(Clone, Debug)]
pub(super) struct Places {
    pub lengths: Vec<usize>,
    pub splitters: Vec<Splitter>,
}

impl Sort {
    /// A sort whose buckets are not known yet.
    pub fn new(direction: Direction, what: Sorted) -> Sort {
        Sort { direction, what, known: Known::Nothing }
    }

    fn map(&self, places: &Places) -> SortMap {
        SortMap { with_positions: self.what == Sorted::Positions, ..places.map(self.direction) }
    }
}

impl Operator for Sort {
    fn name(&self) -> &'static str {
        match self.what {
            Sorted::Values => "sort",
            Sorted::Positions => "argsort",
        }
    }

    fn infer(&self, inputs: &[&Meta]) -> Result<Meta, Error> {
        let Meta { shape, dtype } = inputs[0];
        if shape.len() != 1 {
            return Err(Error::Internal("sorting by samples of other than one axis".to_owned()));
        }
        let dtype = if self.what == Sorted::Positions { DType::I64 } else { *dtype };
        Ok(Meta { shape: shape.clone(), dtype })
    }

    fn measure(&self) -> Option<Arc<dyn Operator>> {
        match &self.known {
            Known::Nothing => Some(Arc::new(Samples { with_positions: self.what == Sorted::Positions })),
            Known::Places(places) if places.splitters.is_empty() => None,
            Known::Places(places) => Some(Arc::new(CountDealt { map: places.map(self.direction) })),
            Known::Counts(..) => None,
        }
    }

    fn measured(&self, measures: &Resident) -> Result<Arc<dyn Operator>, Error> {
        let known = match &self.known {
            Known::Places(places) => Known::Counts(places.clone(), Arc::new(counts(measures)?)),
            _ => Known::Places(Arc::new(Places::new(self.direction, measures, |wanted| wanted)?)),
        };
        Ok(Arc::new(Sort { known, ..self.clone() }))
    }

    fn is_heavy(&self) -> bool {
        true
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let tensor = match &self.known {
            Known::Nothing => return Err(Error::Internal("the buckets of a sort are not known".to_owned())),
            Known::Places(_) => {
                let grid = Tiling::whole(&lowering.expr(inputs[0]).shape);
                let lines = match self.what {
                    Sorted::Values => Lines::Sort { axis: 0, direction: self.direction },
                    Sorted::Positions => Lines::Order { axis: 0, direction: self.direction },
                };
                let operands = vec![lowering.operand(inputs[0])?];
                lowering.add_stage_tensor(
                    Kernel::Whole(ChunkFunction::Lines(lines)),
                    grid,
                    operands,
                    out.dtype,
                )
            }
            Known::Counts(places, counts) => self.exchange(lowering, inputs[0], places, counts)?,
        };
        Ok(lowering.load(tensor))
    }
}

impl Sort {
    /// The elements of all chunks dealt to buckets, and a sort of each bucket.
    fn exchange(
        &self,
        lowering: &mut Lowering<'_>,
        x: ExprId,
        places: &Places,
        counts: &[usize],
    ) -> Result<TensorId, Error> {
        let dtype = lowering.expr(x).dtype;
        let with_positions = self.what == Sorted::Positions;
        let grid = Tiling { axes: vec![AxisTiling::from_lengths(&places.lengths)] };
        let map = self.map(places);
        let operands = vec![lowering.operand(x)?, lowering.operand_chunk_number(&grid)?];
        let mut tables = vec![lowering.add_table(dtype, counts, &[])];
        if with_positions {
            tables.push(lowering.add_table(DType::I64, counts, &[]));
        }
        lowering.add_exchange(ExchangeStage {
            function: Exchange::Deal(map.clone()),
            grid,
            operands,
            reads: Vec::new(),
            outputs: tables.clone(),
            splits: true,
        });
        let grid = Tiling { axes: vec![AxisTiling::from_lengths(&places.sizes(counts))] };
        let mut add = |dtype| lowering.add_tensor(TensorSpec { dtype, tiling: grid.clone() });
        let mut outputs = vec![add(dtype)];
        if with_positions {
            outputs.push(add(DType::I64));
        }
        let wanted = outputs[outputs.len() - 1];
        let reads = lowering.columns(&tables, &grid);
        lowering.add_exchange(ExchangeStage {
            function: Exchange::Sort(map),
            grid,
            operands: Vec::new(),
            reads,
            outputs,
            splits: false,
        });
        Ok(wanted)
    }
}

impl Places {
    /// The number of elements of each bucket, from the counts of each chunk in turn.
    pub(super) fn sizes(&self, counts: &[usize]) -> Vec<usize> {
        let buckets = self.splitters.len() + 1;
        (0..buckets).map(|bucket| counts.iter().skip(bucket).step_by(buckets).sum()).collect()
    }

    /// The cut into chunks, and places that cut all elements into this number of buckets, or fewer, of the
    /// number that the plan wants; from samples of each chunk.
    pub(super) fn new(
        direction: Direction,
        samples: &Resident,
        buckets: impl FnOnce(usize) -> usize,
    ) -> Result<Places, Error> {
        let (mut lengths, mut found, mut start, mut wanted) = (Vec::new(), Vec::new(), 0u64, 0);
        for chunk in samples.chunks.iter() {
            let words = chunk.fetch()?.to_vec::<u64>()?;
            let mut rows = words.chunks_exact(SAMPLE_WORDS);
            let length = rows.next().map_or(0, |row| {
                wanted = row[1];
                row[0]
            });
            found.extend(rows.map(|row| (Wide { high: row[0], low: row[1] }, start + row[2])));
            lengths.push(length as usize);
            start += length;
        }
        found.sort_unstable_by(|a, b| direction.compare(&a.0, &b.0).then(a.1.cmp(&b.1)));
        let buckets = buckets(wanted as usize).min(found.len()).max(1);
        let place = |bucket: usize| {
            let (key, position) = found[bucket * found.len() / buckets];
            Splitter { key, position }
        };
        Ok(Places { lengths, splitters: (1..buckets).map(place).collect() })
    }

    /// The buckets for kernels, without positions.
    pub(super) fn map(&self, direction: Direction) -> SortMap {
        let starts = self.lengths.iter().scan(0u64, |start, &length| {
            let first = *start;
            *start += length as u64;
            Some(first)
        });
        let (starts, splitters) = (starts.collect(), self.splitters.clone());
        SortMap { direction, with_positions: false, starts, splitters }
    }
}

/// The elements of each chunk in each bucket, as [`CountDealt`] tells them.
pub(super) fn counts(measures: &Resident) -> Result<Vec<usize>, Error> {
    let mut counts = Vec::new();
    for chunk in measures.chunks.iter() {
        let row = chunk.fetch()?.to_vec::<i64>()?;
        counts.extend(row.iter().skip(1).map(|&count| count as usize));
    }
    Ok(counts)
}

/// Samples of each chunk, for a sort of the elements, perhaps with their positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Samples {
    pub with_positions: bool,
}

impl Operator for Samples {
    fn name(&self) -> &'static str {
        "samples of sort"
    }

    fn infer(&self, _: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: vec![UNKNOWN, SAMPLE_WORDS], dtype: DType::U64 })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, _: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let row_bytes = lowering.expr(inputs[0]).dtype.size_bytes() as u64;
        let position_bytes = if self.with_positions { DType::I64.size_bytes() as u64 } else { 0 };
        let moved_bytes = row_bytes + position_bytes;
        // To deal an element: as it is given, a copy if it does not lie in order, its share of pieces, and
        // the number of its bucket; registers are small beside that.
        let dealt_bytes = (2 * row_bytes + moved_bytes + 2) * 9 / 8;
        let rows = lowering.exchange_rows(inputs[0], row_bytes, dealt_bytes);
        // To sort it: read, made, and what the task needs beside. A bucket may be larger than the mean.
        let copies = 2 + SortMap::scratch_share(self.with_positions);
        let bucket_rows = lowering.task_rows_max(moved_bytes * copies * 5 / 4);
        let buckets = (rows.len() as u64).div_ceil(bucket_rows).max(rows.count() as u64) as usize;
        let samples = SAMPLES_PER_BUCKET * buckets.div_ceil(rows.count().max(1));
        let lengths: Vec<usize> =
            (0..rows.count()).map(|piece| 1 + rows.piece(piece).1.min(samples)).collect();
        let tiling =
            Tiling { axes: vec![AxisTiling::from_lengths(&lengths), AxisTiling::whole(SAMPLE_WORDS)] };
        let function = ChunkFunction::Measure(Measure::Sample { count: samples, buckets });
        measure(lowering, inputs[0], function, rows, TensorSpec { dtype: DType::U64, tiling })
    }
}

/// Elements of each chunk, and those of it for each bucket.
#[derive(Clone, Debug)]
pub(super) struct CountDealt {
    pub map: SortMap,
}

impl Operator for CountDealt {
    fn name(&self) -> &'static str {
        "count of sort"
    }

    fn infer(&self, _: &[&Meta]) -> Result<Meta, Error> {
        Ok(Meta { shape: vec![self.map.starts.len(), 2 + self.map.splitters.len()], dtype: DType::I64 })
    }

    fn lower(&self, lowering: &mut Lowering<'_>, out: &Meta, inputs: &[ExprId]) -> Result<ExprId, Error> {
        let len = lowering.expr(inputs[0]).shape[0];
        let ends = self.map.starts.iter().skip(1).map(|&start| start as usize).chain([len]);
        let rows = AxisTiling::Bounds(std::iter::once(0).chain(ends).collect());
        let tiling = Tiling {
            axes: vec![AxisTiling::Even { len: out.shape[0], chunk: 1 }, AxisTiling::whole(out.shape[1])],
        };
        let function = ChunkFunction::Measure(Measure::CountDealt(self.map.clone()));
        measure(lowering, inputs[0], function, rows, TensorSpec { dtype: DType::I64, tiling })
    }
}

/// A stage that measures each chunk of a tensor (n,).
fn measure(
    lowering: &mut Lowering<'_>,
    x: ExprId,
    function: ChunkFunction,
    rows: AxisTiling,
    spec: TensorSpec,
) -> Result<ExprId, Error> {
    let grid = Tiling { axes: vec![rows] };
    let operands = vec![lowering.operand(x)?, lowering.operand_chunk_number(&grid)?];
    let tensor = lowering.add_tensor(spec);
    lowering.add_kernel(
        Kernel::Whole(function),
        grid,
        operands,
        vec![StageOutput { tensor, offset: vec![0] }],
    );
    Ok(lowering.load(tensor))
}

/// Samples for each bucket: the sizes of buckets deviate by a twentieth, and the largest of many by a fifth.
const SAMPLES_PER_BUCKET: usize = 512;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::{Limits, lower};
    use crate::node::Node;
    use crate::ops::Indexed;
    use tharsis_kernels::program::IndexMap;

    #[test]
    fn there_are_more_buckets_than_chunks_where_sorting_takes_more_memory_than_dealing() {
        const LEN: usize = 10_000_000;
        let x = Indexed { shape: vec![LEN], map: IndexMap::Ramp { start: 0.0, step: 1.0 } };
        let samples = Node::new(Samples { with_positions: false }, vec![Node::new(x, vec![]).unwrap()]);
        let samples = samples.unwrap();
        let planned = |memory_bytes: u64| {
            let limits = Limits { stored_bytes: 1 << 40, ..Limits::new(2, memory_bytes) };
            let plan = lower(std::slice::from_ref(&samples), &limits).unwrap().plan;
            let found = plan.stages.iter().find_map(|stage| match &stage.kernel {
                Kernel::Whole(ChunkFunction::Measure(Measure::Sample { buckets, .. })) => {
                    Some((stage.grid.count(), stage.grid.largest(), *buckets))
                }
                _ => None,
            });
            found.unwrap()
        };
        let (chunks, longest, buckets) = planned(8 << 20);
        assert!(chunks < buckets, "{buckets} buckets of {chunks} chunks");
        // Four tasks that deal, and as many that sort, take no more memory than there is.
        assert!(4 * longest * (3 * 8 + 2) < 8 << 20, "chunks of {longest}");
        let of_bucket = LEN.div_ceil(buckets) as u64 * 8;
        assert!(
            4 * of_bucket * (2 + SortMap::scratch_share(false)) < 8 << 20,
            "buckets of {of_bucket} bytes"
        );
        let (chunks, _, buckets) = planned(8 << 30);
        assert_eq!(chunks, buckets, "with enough memory a bucket is as large as a chunk");
    }
}
