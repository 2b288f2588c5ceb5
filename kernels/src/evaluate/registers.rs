//! Assignment of values to registers, and the length of a block.

use super::group::Group;
use super::tiles::Tiles;
use crate::chunk::Buffer;
use crate::program::{Program, StepOp};
use crate::raised::{Function, Warnings, watched};

/// A thread's memory for its tasks: registers, reused from task to task, memory offered for results, and
/// warnings; and the number of threads that a task may use.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    registers: Vec<Buffer>,
    places: Vec<Buffer>,
    /// Allocated when a program first needs them.
    pub(super) tiles: Option<Box<Tiles>>,
    pub(super) warnings: Warnings,
    /// Zero means one.
    threads: usize,
    shares_pieces: bool,
}

impl Scratch {
    /// Scratch without registers; they grow as programs need them.
    pub fn new() -> Scratch {
        Scratch::default()
    }

    /// Offers memory for a result of exactly its size. Debug builds poison it, as they do fresh memory.
    pub fn offer(&mut self, mut place: Buffer) {
        place.poison();
        self.places.push(place);
    }

    /// Takes back the offered memory that no result has used.
    pub fn take_offers(&mut self) -> Vec<Buffer> {
        std::mem::take(&mut self.places)
    }

    /// Whether there is offered memory.
    pub fn has_offers(&self) -> bool {
        !self.places.is_empty()
    }

    /// Memory for a result, with unspecified contents: the first offered memory of that size, else a new
    /// buffer.
    pub fn result(&mut self, bytes: usize) -> Buffer {
        match self.places.iter().position(|place| place.len_bytes() == bytes) {
            Some(found) => self.places.remove(found),
            None => Buffer::for_overwrite(bytes),
        }
    }

    /// Lets the pieces that a task makes share memory, which is free only after the last of them: for results
    /// that are copied before the next task.
    pub fn share_pieces(&mut self) {
        self.shares_pieces = true;
    }

    /// Whether the pieces that a task makes may share memory.
    pub fn shares_pieces(&self) -> bool {
        self.shares_pieces
    }

    /// Lets the next tasks use this many threads, their own being one of them.
    pub fn grant_threads(&mut self, threads: usize) {
        self.threads = threads;
    }

    /// Threads that a task may use: one unless more were granted.
    pub fn threads(&self) -> usize {
        self.threads.max(1)
    }

    /// Runs a scan and notes the warnings that NumPy would give.
    pub fn watch_scan<R>(&mut self, run: impl FnOnce() -> R) -> R {
        watched(Function::Accumulate, &mut self.warnings, run)
    }

    /// Takes the warnings of the tasks since the last call.
    pub fn take_warnings(&mut self) -> Warnings {
        std::mem::take(&mut self.warnings)
    }

    pub(super) fn reserve(&mut self, bytes: &[usize]) {
        if self.registers.len() < bytes.len() {
            self.registers.resize(bytes.len(), Buffer::default());
        }
        self.registers.iter_mut().zip(bytes).for_each(|(register, &bytes)| register.grow(bytes));
    }

    pub(super) fn register(&self, index: usize) -> &Buffer {
        &self.registers[index]
    }

    /// Takes a register out, to write it while others are read. Its previous value is dead.
    pub(super) fn take(&mut self, index: usize) -> Buffer {
        let mut register = std::mem::take(&mut self.registers[index]);
        register.poison();
        register
    }

    pub(super) fn put_back(&mut self, index: usize, register: Buffer) {
        self.registers[index] = register;
    }
}

#[derive(Clone, Debug)]
pub(super) struct Allocation {
    /// Register of each value.
    pub(super) register: Vec<usize>,
    pub(super) register_bytes: Vec<usize>,
    /// Whether a value is an output of the task: then it must be a block even if constant.
    pub(super) is_output: Vec<bool>,
    /// Elements of the domain per block.
    pub(super) block_rows: usize,
}

/// Part of the first-level cache that all registers together may take.
const REGISTERS_BYTES: usize = 24 << 10;
const BLOCK_ELEMENTS_MIN: usize = 256;
const BLOCK_ELEMENTS_MAX: usize = 2048;

/// Gives each value a register that no live value has; a step's result never shares a register with its
/// arguments. Values that members of a group read live until the group runs. The length of a block does not
/// depend on groups, since the rounding of float sums depends on it.
pub(super) fn allocate(program: &Program, groups: &[Group]) -> Allocation {
    let bytes_per_row = assign(program, &[]).1;
    let per_row: usize = bytes_per_row.iter().sum::<usize>().max(1);
    let width = program.steps.iter().map(|step| step.width()).max().unwrap_or(1).max(1);
    let elements = (REGISTERS_BYTES * width / per_row).clamp(BLOCK_ELEMENTS_MIN, BLOCK_ELEMENTS_MAX);
    let block_rows = (elements / width).max(1);
    let (register, bytes_per_row) = assign(program, groups);
    let register_bytes = bytes_per_row.iter().map(|bytes| bytes * block_rows).collect();
    Allocation { register, register_bytes, is_output: is_output(program), block_rows }
}

fn is_output(program: &Program) -> Vec<bool> {
    let mut is_output = vec![false; program.steps.len()];
    program.outputs.iter().flat_map(|output| output.args()).for_each(|&value| is_output[value] = true);
    is_output
}

/// The values that die at each step: the step, or a group with this root, is their last reader.
fn deaths(program: &Program, groups: &[Group]) -> Vec<Vec<usize>> {
    let count = program.steps.len();
    let mut runs_at: Vec<usize> = (0..count).collect();
    for group in groups {
        group.members.iter().for_each(|&member| runs_at[member] = group.root);
    }
    let mut last_use: Vec<usize> = (0..count).collect();
    for (i, step) in program.steps.iter().enumerate() {
        step.args().into_iter().for_each(|arg| last_use[arg] = runs_at[i].max(last_use[arg]));
    }
    let mut deaths = vec![Vec::new(); count];
    let is_output = is_output(program);
    let in_register = |v: usize| !is_output[v] && !matches!(program.steps[v].op, StepOp::Const(_));
    (0..count).filter(|&v| in_register(v)).for_each(|v| deaths[last_use[v]].push(v));
    deaths
}

/// The register of each value, and the bytes of each register per row.
fn assign(program: &Program, groups: &[Group]) -> (Vec<usize>, Vec<usize>) {
    let (is_output, deaths) = (is_output(program), deaths(program, groups));
    let row_bytes = |i: usize| program.steps[i].width() * program.steps[i].dtype.size_bytes();
    let (mut register, mut free, mut bytes_per_row) =
        (vec![0; program.steps.len()], Vec::<usize>::new(), Vec::<usize>::new());
    for i in 0..program.steps.len() {
        if matches!(program.steps[i].op, StepOp::Const(_)) && !is_output[i] {
            continue;
        }
        // The register that fits best, so that wide values do not enlarge many of them.
        let best = (0..free.len()).min_by_key(|&f| bytes_per_row[free[f]].abs_diff(row_bytes(i)));
        register[i] = match best {
            Some(position) => free.swap_remove(position),
            None => {
                bytes_per_row.push(0);
                bytes_per_row.len() - 1
            }
        };
        let held = &mut bytes_per_row[register[i]];
        *held = (*held).max(row_bytes(i));
        free.extend(deaths[i].iter().map(|&v| register[v]));
    }
    (register, bytes_per_row)
}
