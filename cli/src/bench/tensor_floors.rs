//! The same work by hand: plain loops over vectors of generators, in registers, on the same threads.

use tharsis_kernels::cpu::{Kernel, dispatch};
use tharsis_kernels::factor::Factor;
use tharsis_kernels::product::Accumulator;
use tharsis_kernels::stream::{LINE_NUMBERS, Line, Stream};
use tharsis_kernels::{Buffer, Chunk};

const LANES: usize = 8;

/// xoshiro256+ in eight lanes.
#[derive(Clone)]
struct Xoshiro([[u64; LANES]; 4]);

impl Xoshiro {
    fn new(seed: u64) -> Xoshiro {
        let mut z = seed.wrapping_mul(0x9E37_79B9_7F4A_7C15);
        let mut state = [[0; LANES]; 4];
        for word in state.iter_mut().flatten() {
            z = z.wrapping_add(0x9E37_79B9_7F4A_7C15);
            let mixed = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
            *word = mixed ^ (mixed >> 27);
        }
        Xoshiro(state)
    }

    #[inline(always)]
    fn next(&mut self) -> [f64; LANES] {
        let mut out = [0.0; LANES];
        let [a, b, c, d] = &mut self.0;
        for i in 0..LANES {
            // 53 bits, like the numbers of the job.
            out[i] = (a[i].wrapping_add(d[i]) >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0);
            let t = b[i] << 17;
            c[i] ^= a[i];
            d[i] ^= b[i];
            b[i] ^= c[i];
            a[i] ^= d[i];
            c[i] ^= t;
            d[i] = d[i].rotate_left(45);
        }
        out
    }
}

struct CountInside(Xoshiro, u64);

impl Kernel for CountInside {
    type Output = u64;

    #[inline(always)]
    fn run(self) -> u64 {
        let CountInside(mut generator, points) = self;
        let mut inside = [0u64; LANES];
        for _ in 0..points / LANES as u64 {
            let (x, y) = (generator.next(), generator.next());
            for i in 0..LANES {
                inside[i] += u64::from(x[i] * x[i] + y[i] * y[i] < 1.0);
            }
        }
        inside.iter().sum()
    }
}

struct SumScaled(Xoshiro, u64);

impl Kernel for SumScaled {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let SumScaled(mut generator, n) = self;
        let mut sums = [0.0; LANES];
        for _ in 0..n / LANES as u64 {
            let x = generator.next();
            for i in 0..LANES {
                sums[i] += (x[i] + 1.0) * 2.0;
            }
        }
        sums.iter().sum()
    }
}

struct SumRamp(u64, u64);

impl Kernel for SumRamp {
    type Output = f64;

    #[inline(always)]
    fn run(self) -> f64 {
        let mut sums = [0.0; 32];
        let mut at = self.0 as i64;
        for _ in 0..self.1 / 32 {
            for (i, sum) in sums.iter_mut().enumerate() {
                *sum += ((at + i as i64) as f64 + 1.0) * 2.0;
            }
            at += 32;
        }
        sums.iter().sum()
    }
}

/// Runs `f(thread)` on each thread, and returns all results.
pub fn on_threads(threads: usize, f: impl Fn(u64) -> f64 + Sync) -> Vec<f64> {
    std::thread::scope(|scope| {
        let f = &f;
        let running: Vec<_> = (0..threads as u64).map(|thread| scope.spawn(move || f(thread))).collect();
        running.into_iter().map(|thread| thread.join().unwrap_or(f64::NAN)).collect()
    })
}

fn sum_on_threads(threads: usize, f: impl Fn(u64) -> f64 + Sync) -> f64 {
    on_threads(threads, f).iter().sum()
}

/// Points inside the circle.
pub fn pi(points: u64, threads: usize) -> f64 {
    sum_on_threads(threads, |thread| {
        dispatch(CountInside(Xoshiro::new(thread), points / threads as u64)) as f64
    })
}

/// The sum of `(x + 1) * 2` over random numbers.
pub fn axpb(n: u64, threads: usize) -> f64 {
    sum_on_threads(threads, |thread| dispatch(SumScaled(Xoshiro::new(thread), n / threads as u64)))
}

/// The sum of `(x + 1) * 2` over `0..n`.
pub fn axpb_arange(n: u64, threads: usize) -> f64 {
    let share = n / threads as u64;
    sum_on_threads(threads, |thread| dispatch(SumRamp(thread * share, share)))
}

/// Numbers that a floor computes before it stores them: few enough that the next ones are computed while the
/// stores are in flight.
const STORE_BLOCK: usize = 256;

/// Computes the numbers to store, block after block. `make` must be `#[inline(always)]`.
trait Make {
    fn make(&mut self, block: &mut [f64]);
}

struct Scaled(Xoshiro);

impl Make for Scaled {
    #[inline(always)]
    fn make(&mut self, block: &mut [f64]) {
        let mut generator = self.0.clone();
        for group in block.chunks_exact_mut(LANES) {
            let x = generator.next();
            group.iter_mut().zip(x).for_each(|(out, x)| *out = (x + 1.0) * 2.0);
        }
        self.0 = generator;
    }
}

struct Ramp(i64);

impl Make for Ramp {
    #[inline(always)]
    fn make(&mut self, block: &mut [f64]) {
        for (i, out) in block.iter_mut().enumerate() {
            *out = ((self.0 + i as i64) as f64 + 1.0) * 2.0;
        }
        self.0 += block.len() as i64;
    }
}

struct Same;

impl Make for Same {
    #[inline(always)]
    fn make(&mut self, _: &mut [f64]) {}
}

/// Stores the numbers of field 0, with stores that bypass the cache where possible.
struct Store<'a, M>(M, &'a mut [f64]);

impl<M: Make> Kernel for Store<'_, M> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Store(mut maker, out) = self;
        let mut stream = Stream::for_bytes(size_of_val(out));
        let mut block = [1.5; STORE_BLOCK];
        for part in out.chunks_mut(STORE_BLOCK) {
            let block = &mut block[..part.len()];
            maker.make(block);
            match &mut stream {
                Some(stream) => stream.copy(bytemuck::cast_slice_mut(part), bytemuck::cast_slice(block)),
                None => part.copy_from_slice(block),
            }
        }
    }
}

/// Values that a floor stores.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stored {
    /// `(x + 1) * 2` of random numbers.
    Random,
    /// `(x + 1) * 2` of `0..n`.
    Range,
    /// One number everywhere: the speed of memory.
    Constant,
}

/// Seconds to store a number of values in memory that was written before.
pub fn store(what: Stored, n: usize, threads: usize) -> f64 {
    // The first round may use fresh pages.
    store_once(what, n, threads);
    let mut seconds: Vec<f64> = (0..WARM_ROUNDS).map(|_| store_once(what, n, threads)).collect();
    super::statistics::median(&mut seconds)
}

const WARM_ROUNDS: usize = 3;

/// Reads numbers in memory and stores `(x + 1) * 2` of them, with stores that bypass the cache where
/// possible.
struct StoreScaled<'a>(&'a [f64], &'a mut [f64]);

impl Kernel for StoreScaled<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let StoreScaled(x, out) = self;
        let Some(mut stream) = Stream::for_bytes(size_of_val(out)) else {
            return out.iter_mut().zip(x).for_each(|(out, x)| *out = (x + 1.0) * 2.0);
        };
        // Both begin at a cache line, like all buffers.
        let (head, lines, tail) = bytemuck::pod_align_to_mut::<f64, Line>(out);
        let (x_lines, x_tail) = x[head.len()..].as_chunks::<LINE_NUMBERS>();
        lines.iter_mut().zip(x_lines).for_each(|(line, x)| stream.line(line, x.map(|x| (x + 1.0) * 2.0)));
        head.iter_mut().zip(x).for_each(|(out, x)| *out = (x + 1.0) * 2.0);
        tail.iter_mut().zip(x_tail).for_each(|(out, x)| *out = (x + 1.0) * 2.0);
    }
}

/// Seconds to read a number of values and to store `(x + 1) * 2` of them, all in memory that was written
/// before.
pub fn scale_stored(n: usize, threads: usize) -> f64 {
    let mut memory =
        [Buffer::for_overwrite(n * size_of::<f64>()), Buffer::for_overwrite(n * size_of::<f64>())];
    memory.iter_mut().for_each(|buffer| buffer.elements_mut::<f64>().fill(0.5));
    let [x, out] = &mut memory;
    let (x, out) = (&x.elements::<f64>()[..n], &mut out.elements_mut::<f64>()[..n]);
    let share = n.div_ceil(threads).next_multiple_of(LINE_NUMBERS).max(LINE_NUMBERS);
    let once = |_| {
        let started = std::time::Instant::now();
        std::thread::scope(|scope| {
            for (x, out) in x.chunks(share).zip(out.chunks_mut(share)) {
                scope.spawn(move || dispatch(StoreScaled(x, out)));
            }
        });
        started.elapsed().as_secs_f64()
    };
    let mut seconds: Vec<f64> = (0..WARM_ROUNDS).map(once).collect();
    super::statistics::median(&mut seconds)
}

/// The memory comes from the same pool as that of chunks: it is fresh unless some was used a moment ago.
fn store_once(what: Stored, n: usize, threads: usize) -> f64 {
    let started = std::time::Instant::now();
    let mut memory = Buffer::for_overwrite(n * size_of::<f64>());
    let share = n.div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        for (thread, part) in memory.elements_mut::<f64>()[..n].chunks_mut(share).enumerate() {
            scope.spawn(move || match what {
                Stored::Random => dispatch(Store(Scaled(Xoshiro::new(thread as u64)), part)),
                Stored::Range => dispatch(Store(Ramp((thread * share) as i64), part)),
                Stored::Constant => dispatch(Store(Same, part)),
            });
        }
    });
    std::hint::black_box(&memory);
    started.elapsed().as_secs_f64()
}

/// GFLOP/s of products of n x n matrices, one per thread at a time, and seconds for one.
pub fn gemm(n: usize, threads: usize) -> (f64, f64) {
    let elements: Vec<f64> = (0..n * n).map(|i| (i % 17) as f64).collect();
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let started = std::time::Instant::now();
        on_threads(threads, |_| multiply(&elements, n).unwrap_or(f64::NAN));
        best = best.min(started.elapsed().as_secs_f64());
    }
    (threads as f64 * 2.0 * (n as f64).powi(3) / best / 1e9, best)
}

fn multiply(elements: &[f64], n: usize) -> Option<f64> {
    let a = Chunk::from_elements(&[n, n], elements).ok()?;
    let mut product = Accumulator::new(a.dtype(), &[n, n]).ok()?;
    product.add(&a, &a).ok()?;
    product.finish().ok()?.as_slice::<f64>()?.last().copied()
}

const COLUMNS: usize = 32;
const BLOCK_ROWS: usize = 4096;

struct FillRows<'a>(Xoshiro, &'a mut [f64]);

impl Kernel for FillRows<'_> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let FillRows(mut generator, out) = self;
        out.chunks_exact_mut(LANES).for_each(|group| group.copy_from_slice(&generator.next()));
    }
}

/// Rows of random numbers: the same ones for the same block.
fn block(index: usize) -> Option<Chunk> {
    let mut rows = vec![0.0; BLOCK_ROWS * COLUMNS];
    dispatch(FillRows(Xoshiro::new(index as u64), &mut rows));
    Chunk::from_elements(&[BLOCK_ROWS, COLUMNS], &rows).ok()
}

fn product(a: &Chunk, b: &Chunk) -> Option<Chunk> {
    let mut sum = Accumulator::new(a.dtype(), &[a.shape()[0], b.shape()[1]]).ok()?;
    sum.add(a, b).ok()?;
    sum.finish().ok()
}

/// Gram matrix of all rows, each block multiplied by `factor` first.
fn gram(blocks: usize, threads: usize, factor: Option<&Chunk>) -> Option<Chunk> {
    let of_thread = |thread: usize| {
        let mut sum = Accumulator::new(tharsis_kernels::DType::F64, &[COLUMNS, COLUMNS]).ok()?;
        for index in (thread..blocks).step_by(threads) {
            let x = block(index)?;
            let basis = factor.map_or(Some(x.clone()), |factor| product(&x, factor))?;
            sum.add(&basis.transposed().ok()?, &basis).ok()?;
        }
        sum.finish().ok()?.to_vec::<f64>().ok()
    };
    let parts: Vec<Option<Vec<f64>>> = std::thread::scope(|scope| {
        let of_thread = &of_thread;
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || of_thread(thread))).collect();
        running.into_iter().map(|thread| thread.join().ok().flatten()).collect()
    });
    let mut total = vec![0.0; COLUMNS * COLUMNS];
    for part in parts {
        total.iter_mut().zip(part?).for_each(|(sum, x)| *sum += x);
    }
    Chunk::from_elements(&[COLUMNS, COLUMNS], &total).ok()
}

/// The job `svd` by CholeskyQR2 over blocks of rows.
pub fn svd(rows: usize, threads: usize) -> Option<f64> {
    let blocks = rows.div_ceil(BLOCK_ROWS);
    let upper = |gram: &Chunk| Factor::Cholesky.run(gram).ok()?.transposed().ok();
    let first = upper(&gram(blocks, threads, None)?)?;
    let inverse = inverse_upper(&first)?;
    let second = upper(&gram(blocks, threads, Some(&inverse))?)?;
    let r = product(&second, &first)?;
    let (u, s, vt) = (Factor::SvdU.run(&r).ok()?, Factor::SvdS.run(&r).ok()?, Factor::SvdVt.run(&r).ok()?);
    let left = product(&product(&inverse, &inverse_upper(&second)?)?, &u)?;
    let scaled = Chunk::from_elements(&[COLUMNS, COLUMNS], &diagonal(&s)?).ok()?;
    let right = product(&scaled, &vt)?;
    let of_thread = |thread: usize| {
        let mut worst = 0.0f64;
        for index in (thread..blocks).step_by(threads) {
            let x = block(index)?;
            let back = product(&product(&x, &left)?, &right)?;
            let pairs = x.as_slice::<f64>()?.iter().zip(back.as_slice::<f64>()?);
            worst = pairs.fold(worst, |worst, (x, y)| worst.max((x - y).abs()));
        }
        Some(worst)
    };
    std::thread::scope(|scope| {
        let of_thread = &of_thread;
        let running: Vec<_> = (0..threads).map(|thread| scope.spawn(move || of_thread(thread))).collect();
        running
            .into_iter()
            .map(|thread| thread.join().ok().flatten())
            .try_fold(0.0, |a, b| Some(f64::max(a, b?)))
    })
}

fn inverse_upper(upper: &Chunk) -> Option<Chunk> {
    let (upper, n) = (upper.to_vec::<f64>().ok()?, COLUMNS);
    let mut inverse = vec![0.0; n * n];
    for column in 0..n {
        for row in (0..=column).rev() {
            let known: f64 = (row + 1..=column).map(|k| upper[row * n + k] * inverse[k * n + column]).sum();
            let wanted = if row == column { 1.0 } else { 0.0 };
            inverse[row * n + column] = (wanted - known) / upper[row * n + row];
        }
    }
    Chunk::from_elements(&[n, n], &inverse).ok()
}

fn diagonal(values: &Chunk) -> Option<Vec<f64>> {
    let values = values.to_vec::<f64>().ok()?;
    let mut matrix = vec![0.0; COLUMNS * COLUMNS];
    values.iter().enumerate().for_each(|(i, x)| matrix[i * (COLUMNS + 1)] = *x);
    Some(matrix)
}
