//! Choice of the cut of a stage's domain into chunks.

use super::{ExprId, ExprKind, Lowering};
use crate::shape::element_count;
use crate::tiling::{AxisTiling, Tiling};

/// Limits of a plan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Tasks that run at the same time.
    pub threads: usize,
    /// Bytes of memory for chunks and registers of running tasks.
    pub memory_bytes: u64,
    /// Bytes that all chunks and registers may take. More than `memory_bytes` if chunks that no task uses may
    /// lie on a disk.
    pub stored_bytes: u64,
    /// Divisor of the chunk sizes chosen here; raised when a plan does not fit.
    pub shrink: u64,
    /// Upper bound on the bytes of a stored chunk, where the user asks for no other size.
    pub chunk_bytes_max: u64,
    /// Whether tasks read chunks where they lie, however many, as threads of one process do.
    pub reads_in_place: bool,
}

impl Limits {
    /// For this number of threads and bytes, all of them memory, with chunks as large as suits threads of one
    /// process.
    pub fn new(threads: usize, memory_bytes: u64) -> Limits {
        Limits {
            threads,
            memory_bytes,
            stored_bytes: memory_bytes,
            shrink: 1,
            chunk_bytes_max: CHUNK_BYTES_MAX,
            reads_in_place: true,
        }
    }

    /// With this number of bytes, all of them memory.
    #[must_use]
    pub fn within(self, memory_bytes: u64) -> Limits {
        Limits { memory_bytes, stored_bytes: memory_bytes, ..self }
    }
}

impl Lowering<'_> {
    /// The grid for a stage over the domain of `roots`; `stores` tells whether whole chunks of them are
    /// stored.
    pub fn tile(&self, roots: &[ExprId], stores: bool) -> Tiling {
        let shape = self.exprs[roots[0]].shape.clone();
        let mut axes = self.preferences(roots, shape.len());
        if axes.iter().all(Option::is_none) {
            axes = self.tilings_of_loads(roots, &shape);
        }
        self.fill(axes, &shape, self.elements_per_task(roots, stores))
    }

    /// The cut of each axis that a user asked for.
    pub(crate) fn preferred(&self, expr: ExprId) -> Vec<Option<AxisTiling>> {
        self.preferences(&[expr], self.exprs[expr].shape.len())
    }

    /// Cuts the axes without a preference so that chunks have at most `elements` elements, the first axes
    /// first.
    fn fill(&self, preferences: Vec<Option<AxisTiling>>, shape: &[usize], elements: u64) -> Tiling {
        assert_eq!(preferences.len(), shape.len(), "preferences for other axes than those of {shape:?}");
        let preferred: u64 = preferences.iter().flatten().map(|axis| axis.longest().max(1) as u64).product();
        let free: Vec<usize> = (0..shape.len()).filter(|&axis| preferences[axis].is_none()).collect();
        let free_shape: Vec<usize> = free.iter().map(|&axis| shape[axis]).collect();
        // Preferences bind: the other axes are cut only if the chunks would be far too large otherwise.
        let keep_whole = preferences.iter().any(Option::is_some)
            && preferred * element_count(&free_shape) <= elements.max(PREFERRED_ELEMENTS);
        let rest = if keep_whole {
            Tiling::whole(&free_shape)
        } else {
            Tiling::rows(&free_shape, elements / preferred.max(1))
        };
        assert_eq!(rest.axes.len(), free.len(), "an axis is cut that has its preference");
        let mut rest = rest.axes.into_iter();
        let whole = |axis: usize| AxisTiling::whole(shape[axis]);
        let axes = preferences.into_iter().enumerate();
        Tiling {
            axes: axes
                .map(|(axis, preference)| {
                    preference.unwrap_or_else(|| rest.next().unwrap_or_else(|| whole(axis)))
                })
                .collect(),
        }
    }

    /// Preferences of users; the one nearest to the result wins.
    fn preferences(&self, roots: &[ExprId], rank: usize) -> Vec<Option<AxisTiling>> {
        let mut axes = vec![None; rank];
        for id in self.reachable(roots).into_iter().rev() {
            if let ExprKind::Tiled(_, preferences) = &self.exprs[id].kind {
                for (axis, preference) in axes.iter_mut().zip(preferences) {
                    *axis = axis.take().or_else(|| preference.clone());
                }
            }
        }
        axes
    }

    /// The cuts of the largest stored tensors, for axes that are read whole and in order.
    fn tilings_of_loads(&self, roots: &[ExprId], shape: &[usize]) -> Vec<Option<AxisTiling>> {
        let mut loads: Vec<(u64, ExprId)> = Vec::new();
        for id in self.reachable(roots) {
            if let ExprKind::Load { tensor, .. } = &self.exprs[id].kind
                && 1 < self.plan.tensors[*tensor].tiling.count()
            {
                loads.push((self.plan.tensors[*tensor].bytes(), id));
            }
        }
        loads.sort_by_key(|&(bytes, id)| (std::cmp::Reverse(bytes), id));
        let mut axes = vec![None; shape.len()];
        for (_, id) in loads {
            let ExprKind::Load { tensor, axes: maps } = &self.exprs[id].kind else { continue };
            for (map, tiling) in maps.iter().zip(&self.plan.tensors[*tensor].tiling.axes) {
                if let Some(axis) = map.axis
                    && axis < shape.len()
                    && axes[axis].is_none()
                    && map.step == 1
                    && map.start == 0
                    && tiling.len() == shape[axis]
                {
                    axes[axis] = Some(tiling.clone());
                }
            }
        }
        axes
    }

    /// Elements per task: bounded by its duration, by the bytes of its chunks, and by its share of the
    /// domain.
    fn elements_per_task(&self, roots: &[ExprId], stores: bool) -> u64 {
        let shape = &self.exprs[roots[0]].shape;
        let rank = shape.len();
        let reachable = self.reachable(roots);
        let cost: f64 = roots.iter().map(|&root| self.cost(root)).sum::<f64>().max(1.0);
        let by_time = (TASK_COST / cost) as u64;
        let loads = reachable.iter().filter(|&&id| matches!(self.exprs[id].kind, ExprKind::Load { .. }));
        let kept = loads.chain(if stores { roots } else { &[] });
        let element_bytes = |&id: &ExprId| {
            let width: usize = self.exprs[id].shape[rank.min(self.exprs[id].shape.len())..].iter().product();
            (self.exprs[id].dtype.size_bytes() * width) as u64
        };
        let bytes_per_element: u64 = kept.map(element_bytes).sum();
        let share = self.limits.memory_bytes / (MEMORY_SHARES * self.limits.threads as u64);
        let bytes = share.min(self.limits.chunk_bytes_max);
        let by_memory = bytes.checked_div(bytes_per_element * self.limits.shrink).unwrap_or(u64::MAX);
        let by_share =
            element_count(shape).div_ceil(TASKS_PER_THREAD * self.limits.threads as u64).max(ELEMENTS_MIN);
        by_time.min(by_memory).min(by_share).max(1)
    }
}

/// Cost that a task should have, in the unit of `Step::cost`: some 20 ms.
const TASK_COST: f64 = 1e8;
/// A chunk may take this part of a thread's share of the memory.
const MEMORY_SHARES: u64 = 16;
const CHUNK_BYTES_MAX: u64 = 32 << 20;
/// Tasks per thread: enough that the threads finish at about the same time.
const TASKS_PER_THREAD: u64 = 8;
/// A smaller task is hardly worth starting.
const ELEMENTS_MIN: u64 = 1 << 15;
/// Up to this size, axes without a preference stay whole beside axes with one.
const PREFERRED_ELEMENTS: u64 = 1 << 22;
