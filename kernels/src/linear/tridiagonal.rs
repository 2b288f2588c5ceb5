//! Reduction of a symmetric matrix to tridiagonal form by blocks of columns.
//!
//! A = Q T Q^T by Householder reflections, as in Golub & Van Loan, *Matrix Computations*, section 8.3, and by
//! panels as LAPACK's `dsytrd` does (Dongarra, Sorensen, Hammarling 1989). A step makes the reflection v of
//! a column and needs w = A v; the rest of the matrix then is A - v w^T - w v^T. Within a panel, A is left as
//! it is, and the pairs (v, w) are collected: products with A are corrected by them. A product reads the
//! lower triangle once and writes nothing; faer's reduction, which changes A in each step, also writes it.
//! After the panel, one product of matrices with all pairs changes the rest of A.
//!
//! Memory bounds the time of the products, so they go by several threads where the executor grants them. The
//! triangle is cut into [`PARTS`] parts, whose products are added in their order: the result does not depend
//! on the number of threads. A part has every eighth block of columns, so that parts stay equal in size while
//! columns are finished from the left.
//!
//! Within a panel, steps for threads follow each other under locks that nobody waits for: parts and stretches
//! of rows are written by one thread each, and the pairs by the leader between steps.

use super::real::Real;
use crate::cpu::{Kernel, Level, dispatch};
use crate::team::{Team, with_team};
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, ColMut, ColRef, Mat, MatMut, MatRef};
use std::sync::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// A tridiagonal matrix T, and what is needed beside the reflections to find Q.
pub(super) struct Tridiagonal<T> {
    /// The diagonal (n,).
    pub(super) diagonal: Vec<T>,
    /// The diagonal beside it (n - 1,).
    pub(super) beside: Vec<T>,
    /// Factor t of each reflection I - v v^T / t (n - 1,).
    pub(super) factors: Vec<T>,
}

impl<T: Real> Tridiagonal<T> {
    /// Makes elements zero that change no eigenvalue by more than a rounding error of the largest one.
    /// Reflections of a matrix of low rank leave some so small that their squares underflow, and faer's
    /// iteration does not end on them.
    fn without_negligible(mut self) -> Tridiagonal<T> {
        let larger = |most: T, x: &T| if most < x.magnitude() { x.magnitude() } else { most };
        let largest = self.diagonal.iter().chain(&self.beside).fold(T::zero_impl(), larger);
        let negligible = T::EPSILON * T::EPSILON * largest;
        let elements = self.diagonal.iter_mut().chain(&mut self.beside);
        for x in elements.filter(|x| x.magnitude() <= negligible) {
            *x = T::zero_impl();
        }
        self
    }
}

/// Reduces a matrix of which the lower triangle is given, the other one being finite. Below the diagonal it
/// leaves the reflections: v of column j is one in row j + 1, and stands in the rows from j + 2 on.
pub(super) fn reduce<T: Real>(matrix: MatMut<'_, T>, threads: usize) -> Tridiagonal<T> {
    let n = matrix.nrows();
    let threads = threads.min(n / ROWS_PER_THREAD);
    let reduction = Reduction::new(matrix);
    let work = |step: Step, item: usize| reduction.work(step, item);
    with_team(threads, work, |team| Leader::new(&reduction, team, n).run()).without_negligible()
}

/// Work on all parts or stretches of rows, which ends before the next step begins.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The product of A with the reflection of this column; products of the pairs with it.
    Multiply { column: usize },
    /// The product less what the pairs change of it, and the next column less what they change of that.
    Correct { column: usize },
    /// The columns behind a panel that begins here less the products of its pairs.
    Update { start: usize },
}

struct Reduction<'a, T> {
    n: usize,
    parts: Vec<RwLock<Part<'a, T>>>,
    panel: RwLock<Panel<T>>,
    rows: Vec<Mutex<Rows<T>>>,
}

/// Every eighth block of columns.
struct Part<'a, T> {
    blocks: Vec<Block<'a, T>>,
    /// Its part of the product (n,).
    product: Vec<T>,
}

/// Some columns of the matrix, with all rows.
struct Block<'a, T> {
    first: usize,
    columns: MatMut<'a, T>,
}

/// The pairs of a panel: v in even columns, w in odd ones (n, 2 b).
struct Panel<T> {
    pairs: Mat<T>,
    /// The coefficients of the pairs in a correction, one column for w and one for the next column (2 b, 2).
    coefficients: Mat<T>,
    /// As the pairs with v and w exchanged.
    exchanged: Mat<T>,
}

/// Results for a stretch of rows.
struct Rows<T> {
    /// Products of the pairs with the reflection (2 b,).
    products: Mat<T>,
    /// The corrected product and the next column (rows, 2).
    corrected: Mat<T>,
}

impl<'a, T: Real> Reduction<'a, T> {
    fn new(matrix: MatMut<'a, T>) -> Reduction<'a, T> {
        let n = matrix.nrows();
        let mut parts: Vec<Part<'a, T>> =
            (0..PARTS).map(|_| Part { blocks: Vec::new(), product: vec![T::zero_impl(); n] }).collect();
        let (mut rest, mut first) = (matrix, 0);
        while first < n {
            let (columns, behind) = rest.split_at_col_mut(BLOCK_COLUMNS.min(n - first));
            parts[first / BLOCK_COLUMNS % PARTS].blocks.push(Block { first, columns });
            (rest, first) = (behind, first + BLOCK_COLUMNS);
        }
        let panel = Panel {
            pairs: Mat::zeros(n, 2 * PANEL_COLUMNS),
            coefficients: Mat::zeros(2 * PANEL_COLUMNS, 2),
            exchanged: Mat::zeros(n, 2 * PANEL_COLUMNS),
        };
        let stretch = |first: usize| Rows {
            products: Mat::zeros(2 * PANEL_COLUMNS, 1),
            corrected: Mat::zeros(STRETCH_ROWS.min(n - first), 2),
        };
        Reduction {
            n,
            parts: parts.into_iter().map(RwLock::new).collect(),
            panel: RwLock::new(panel),
            rows: (0..n).step_by(STRETCH_ROWS).map(|first| Mutex::new(stretch(first))).collect(),
        }
    }

    fn work(&self, step: Step, item: usize) {
        match step {
            Step::Multiply { column } => match item.checked_sub(PARTS) {
                None if goes_back(column) => self.multiply(column, PARTS - 1 - item),
                None => self.multiply(column, item),
                Some(stretch) => self.multiply_pairs(column, stretch),
            },
            Step::Correct { column } => self.correct(column, item),
            Step::Update { start } => self.update(start, item),
        }
    }

    fn multiply(&self, column: usize, part: usize) {
        let panel = read(&self.panel);
        let Part { blocks, product } = &mut *write(&self.parts[part]);
        let v = column_of(panel.pairs.as_ref(), 2 * (column % PANEL_COLUMNS));
        dispatch(Multiply { blocks, goes_back: goes_back(column), from: column + 1, v, product });
    }

    /// The rows of a stretch from this one on: the first of them, and their number.
    fn rows_of(&self, stretch: usize, from: usize) -> (usize, usize) {
        let (first, end) = (stretch * STRETCH_ROWS, ((stretch + 1) * STRETCH_ROWS).min(self.n));
        let first = first.max(from).min(end);
        (first, end - first)
    }

    fn multiply_pairs(&self, column: usize, stretch: usize) {
        let (first, count) = self.rows_of(stretch, column + 1);
        let pairs = 2 * (column % PANEL_COLUMNS);
        let panel = read(&self.panel);
        let rows = panel.pairs.as_ref().subrows(first, count);
        let mut to = lock(&self.rows[stretch]);
        let to = to.products.as_mut().subrows_mut(0, pairs);
        let (left, v) = (rows.subcols(0, pairs).transpose(), rows.subcols(pairs, 1));
        T::multiply(to, Accum::Replace, left, v, T::one_impl());
    }

    fn correct(&self, column: usize, stretch: usize) {
        let (first, count) = self.rows_of(stretch, column + 1);
        let pairs = 2 * (column % PANEL_COLUMNS);
        let mut to = lock(&self.rows[stretch]);
        let mut to = to.corrected.as_mut().subrows_mut(0, count);
        let rows = first..first + count;
        {
            let product = slice_of(to.rb_mut().col_mut(0));
            product.fill(T::zero_impl());
            for part in &self.parts {
                let part = read(part);
                for (to, &from) in product.iter_mut().zip(&part.product[rows.clone()]) {
                    *to += from;
                }
            }
        }
        let next = column + 1;
        let block = read(&self.parts[next / BLOCK_COLUMNS % PARTS]);
        let Block { first: start, columns } = &block.blocks[next / (BLOCK_COLUMNS * PARTS)];
        to.rb_mut().col_mut(1).copy_from(columns.rb().col(next - start).subrows(first, count));
        if 0 < pairs {
            let panel = read(&self.panel);
            let left = panel.pairs.as_ref().submatrix(first, 0, count, pairs);
            let right = panel.coefficients.as_ref().subrows(0, pairs);
            T::multiply(to, Accum::Add, left, right, -T::one_impl());
        }
    }

    fn update(&self, start: usize, part: usize) {
        let end = start + PANEL_COLUMNS;
        let panel = read(&self.panel);
        for Block { first, columns } in &mut write(&self.parts[part]).blocks {
            let skipped = end.saturating_sub(*first);
            if columns.ncols() <= skipped {
                continue;
            }
            let (first, width) = (*first + skipped, columns.ncols() - skipped);
            let to = columns.rb_mut().submatrix_mut(first, skipped, self.n - first, width);
            let left = panel.pairs.as_ref().subrows(first, self.n - first);
            let right = panel.exchanged.as_ref().subrows(first, width).transpose();
            T::multiply(to, Accum::Add, left, right, -T::one_impl());
        }
    }
}

/// The thread that does between the steps what is too little for many.
struct Leader<'a, 'b, T> {
    reduction: &'a Reduction<'b, T>,
    team: &'a Team<'a, Step>,
    /// The column that is reduced next, as it is after all reflections so far (n,).
    column: Vec<T>,
    made: Tridiagonal<T>,
}

impl<'a, 'b, T: Real> Leader<'a, 'b, T> {
    fn new(reduction: &'a Reduction<'b, T>, team: &'a Team<'a, Step>, n: usize) -> Self {
        let made = Tridiagonal { diagonal: Vec::new(), beside: Vec::new(), factors: Vec::new() };
        Leader { reduction, team, column: vec![T::zero_impl(); n], made }
    }

    fn run(mut self) -> Tridiagonal<T> {
        let n = self.reduction.n;
        for j in 0..n {
            let in_panel = j % PANEL_COLUMNS;
            if in_panel == 0 {
                self.begin_panel(j);
            }
            self.made.diagonal.push(self.column[j]);
            if j + 1 == n {
                break;
            }
            let scale = self.reflect(j);
            self.team.run(Step::Multiply { column: j }, PARTS + self.stretches(j));
            self.set_coefficients(j);
            self.team.run(Step::Correct { column: j }, self.reduction.rows.len());
            self.finish(j, scale);
            if in_panel + 1 == PANEL_COLUMNS {
                self.exchange(j + 1);
                self.team.run(Step::Update { start: j - in_panel }, PARTS);
            }
        }
        self.made
    }

    /// Stretches whose pairs have products: none for the first column of a panel.
    fn stretches(&self, j: usize) -> usize {
        if j.is_multiple_of(PANEL_COLUMNS) { 0 } else { self.reduction.rows.len() }
    }

    fn begin_panel(&mut self, j: usize) {
        let part = read(&self.reduction.parts[j / BLOCK_COLUMNS % PARTS]);
        let Block { first, columns } = &part.blocks[j / (BLOCK_COLUMNS * PARTS)];
        self.column.copy_from_slice(column_of(columns.rb(), j - first));
    }

    /// Makes the reflection of the column, and stores it; the inverse of its factor.
    fn reflect(&mut self, j: usize) -> T {
        let (head, tail) = self.column[j + 1..].split_at_mut(1);
        let factor = T::reflect(&mut head[0], tail);
        self.made.beside.push(head[0]);
        self.made.factors.push(factor);
        head[0] = T::one_impl();
        let mut panel = write(&self.reduction.panel);
        let v = &self.column[j + 1..];
        slice_of(panel.pairs.as_mut().col_mut(2 * (j % PANEL_COLUMNS)))[j + 1..].copy_from_slice(v);
        let mut part = write(&self.reduction.parts[j / BLOCK_COLUMNS % PARTS]);
        let Block { first, columns } = &mut part.blocks[j / (BLOCK_COLUMNS * PARTS)];
        slice_of(columns.rb_mut().col_mut(j - *first))[j + 1..].copy_from_slice(v);
        T::recip_impl(&factor)
    }

    /// The coefficients of v are those of w in the products, and the other way around.
    fn set_coefficients(&self, j: usize) {
        let Panel { pairs, coefficients, .. } = &mut *write(&self.reduction.panel);
        let count = 2 * (j % PANEL_COLUMNS);
        for pair in 0..count {
            coefficients[(pair, 0)] = T::zero_impl();
            coefficients[(pair, 1)] = pairs[(j + 1, pair ^ 1)];
        }
        for rows in &self.reduction.rows {
            let rows = lock(rows);
            for pair in 0..count {
                coefficients[(pair, 0)] += rows.products[(pair ^ 1, 0)];
            }
        }
    }

    /// Makes w of the corrected product, and the next column of the corrected one.
    fn finish(&mut self, j: usize, scale: T) {
        let mut panel = write(&self.reduction.panel);
        let at = 2 * (j % PANEL_COLUMNS);
        let (v, w) = panel.pairs.as_mut().split_at_col_mut(at + 1);
        let (v, w) = (&slice_of(v.col_mut(at))[j + 1..], &mut slice_of(w.col_mut(0))[j + 1..]);
        for (stretch, rows) in self.reduction.rows.iter().enumerate() {
            let (first, count) = self.reduction.rows_of(stretch, j + 1);
            if count == 0 {
                continue;
            }
            let (rows, at) = (lock(rows), first - j - 1);
            w[at..at + count].copy_from_slice(&column_of(rows.corrected.as_ref(), 0)[..count]);
            self.column[first..first + count]
                .copy_from_slice(&column_of(rows.corrected.as_ref(), 1)[..count]);
        }
        dispatch(Finish { v, w, column: &mut self.column[j + 1..], scale });
    }

    /// Exchanges v and w of the pairs in the rows behind the panel.
    fn exchange(&self, from: usize) {
        let Panel { pairs, exchanged, .. } = &mut *write(&self.reduction.panel);
        for pair in 0..2 * PANEL_COLUMNS {
            let to = &mut slice_of(exchanged.as_mut().col_mut(pair))[from..];
            to.copy_from_slice(&column_of(pairs.as_ref(), pair ^ 1)[from..]);
        }
    }
}

/// Whether a product reads the matrix from its last column on. Products go forwards and backwards in turn:
/// so what the cache still has of the last one is read before it is replaced.
fn goes_back(column: usize) -> bool {
    !column.is_multiple_of(2)
}

/// The product of a part with v, which is zero before `from`.
struct Multiply<'a, 'b, T> {
    blocks: &'a [Block<'b, T>],
    goes_back: bool,
    from: usize,
    v: &'a [T],
    product: &'a mut [T],
}

impl<T: Real> Kernel for Multiply<'_, '_, T> {
    type Output = ();

    #[inline(always)]
    fn run(self) {
        let Multiply { blocks, goes_back, from, v, product } = self;
        product[from..].fill(T::zero_impl());
        for at in 0..blocks.len() {
            let Block { first, columns } = &blocks[if goes_back { blocks.len() - 1 - at } else { at }];
            let end = first + columns.ncols();
            let mut j = from.max(*first);
            while j + GROUP <= end {
                let group: [&[T]; GROUP] =
                    std::array::from_fn(|c| &column_of(columns.rb(), j + c - first)[j..]);
                multiply_columns(group, &v[j..], &mut product[j..]);
                j += GROUP;
            }
            for j in j..end {
                multiply_columns([&column_of(columns.rb(), j - first)[j..]], &v[j..], &mut product[j..]);
            }
        }
    }
}

/// Adds the product of `N` columns of a symmetric matrix with v: each element below the diagonal counts for
/// its own row and, by symmetry, for that of its column. All slices begin in the row of the first column.
#[inline(always)]
fn multiply_columns<T: Real, const N: usize>(columns: [&[T]; N], v: &[T], product: &mut [T]) {
    for c in 0..N {
        product[c] += columns[c][c] * v[c];
        for r in c + 1..N {
            product[r] += columns[c][r] * v[c];
            product[c] += columns[c][r] * v[r];
        }
    }
    let rows = product.len() - N;
    let (top, below) = product.split_at_mut(N);
    let factors: [T; N] = std::array::from_fn(|c| v[c]);
    let columns: [&[T]; N] = std::array::from_fn(|c| &columns[c][N..N + rows]);
    let v = &v[N..N + rows];
    let mut sums = [[T::zero_impl(); LANES]; N];
    let whole = columns.map(|column| column.as_chunks::<LANES>().0);
    let (product_lanes, product_rest) = below.as_chunks_mut::<LANES>();
    for (at, (to, x)) in product_lanes.iter_mut().zip(v.as_chunks::<LANES>().0).enumerate() {
        let mut y = *to;
        for c in 0..N {
            let a = &whole[c][at];
            for lane in 0..LANES {
                y[lane] += a[lane] * factors[c];
                sums[c][lane] += a[lane] * x[lane];
            }
        }
        *to = y;
    }
    let first = rows - product_rest.len();
    for c in 0..N {
        let mut sum = sums[c].iter().fold(T::zero_impl(), |sum, &lane| sum + lane);
        for (at, y) in product_rest.iter_mut().enumerate() {
            *y += columns[c][first + at] * factors[c];
            sum += columns[c][first + at] * v[first + at];
        }
        top[c] += sum;
    }
}

/// w = s p + a v, where p stands in `w`, s is `scale`, and a = -s/2 (s p)^T v; then the column less what
/// this pair changes of it.
struct Finish<'a, T> {
    v: &'a [T],
    w: &'a mut [T],
    column: &'a mut [T],
    scale: T,
}

impl<T: Real> Kernel for Finish<'_, T> {
    type Output = ();
    const LEVEL: Level = Level::Avx2;

    #[inline(always)]
    fn run(self) {
        let Finish { v, w, column, scale } = self;
        let mut sums = [T::zero_impl(); LANES];
        let ((v_lanes, v_rest), (w_lanes, w_rest)) = (v.as_chunks::<LANES>(), w.as_chunks::<LANES>());
        for (v, w) in v_lanes.iter().zip(w_lanes) {
            for lane in 0..LANES {
                sums[lane] += v[lane] * w[lane];
            }
        }
        let mut sum = sums.iter().fold(T::zero_impl(), |sum, &lane| sum + lane);
        for (&v, &w) in v_rest.iter().zip(w_rest) {
            sum += v * w;
        }
        let share = -T::of(0.5) * scale * (scale * sum);
        for (w, &v) in w.iter_mut().zip(v) {
            *w = scale * *w + share * v;
        }
        let (first_v, first_w) = (v[0], w[0]);
        for ((to, &v), &w) in column.iter_mut().zip(v).zip(&*w) {
            *to -= v * first_w + w * first_v;
        }
    }
}

/// The elements of a column, which lie behind each other.
#[inline(always)]
fn column_of<T>(matrix: MatRef<'_, T>, j: usize) -> &[T] {
    let column: ColRef<'_, T> = matrix.col(j);
    match column.try_as_col_major() {
        Some(column) => column.as_slice(),
        None => unreachable!("a matrix by rows"),
    }
}

#[inline(always)]
fn slice_of<T>(column: ColMut<'_, T>) -> &mut [T] {
    match column.try_as_col_major_mut() {
        Some(column) => column.as_slice_mut(),
        None => unreachable!("a matrix by rows"),
    }
}

fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn read<T>(of: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    of.read().unwrap_or_else(|poisoned| poisoned.into_inner())
}

fn write<T>(of: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    of.write().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// Parts whose products are added. Eight threads read faster than the memory of most machines gives.
const PARTS: usize = 8;
/// Rows for which another thread is worth its waiting for the others.
const ROWS_PER_THREAD: usize = 256;
/// Columns between two changes of the matrix.
const PANEL_COLUMNS: usize = 32;
/// A multiple of the columns of a panel.
const BLOCK_COLUMNS: usize = 64;
/// Rows of pairs that a thread multiplies at once.
const STRETCH_ROWS: usize = 512;
/// Columns that are multiplied together: each row of v and of the product is read once for all of them. Eight
/// read 15 GB/s from memory on one thread of an EPYC, four 11, sixteen 14.
const GROUP: usize = 8;
const LANES: usize = 8;
const _: () = assert!(BLOCK_COLUMNS.is_multiple_of(PANEL_COLUMNS));

#[cfg(test)]
mod tests {
    use super::*;
    use crate::copies::compare;

    #[test]
    #[ignore = "a measurement; say --ignored"]
    fn copies_of_a_reduction() {
        let n = 4 * BLOCK_COLUMNS;
        let mut matrix = Mat::from_fn(n, n, |i, j| 1.0 / (i + j + 1) as f64);
        let reduction = Reduction::new(matrix.as_mut());
        // The half of the matrix, of which each element counts twice; the reflection is of zeros.
        compare("eigenvalues: symmetric products", || {
            (0..PARTS).for_each(|part| reduction.multiply(0, part));
        });
        let (v, mut w, mut column) = (vec![0.0_f64; n], vec![0.5; n], vec![0.25; n]);
        compare("eigenvalues: ends of steps", || {
            dispatch(Finish { v: &v, w: &mut w, column: &mut column, scale: 1.0 });
        });
    }
}
