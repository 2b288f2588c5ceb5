//! Eigenvalues and eigenvectors of a symmetric tridiagonal matrix, by dividing it.
//!
//! The matrix is cut into two, but for a matrix of rank one (Cuppen 1981; Golub & Van Loan, section 8.4).
//! Those of the halves are found, and in their basis the whole is a diagonal matrix and one of rank one:
//! [`super::secular`]. Eigenvectors that this leaves as they are need no product: where z is as good as zero,
//! and, after a rotation, where two eigenvalues are as good as equal. As LAPACK's `dlaed2`, the others go in
//! front by the half that their rows are in, so that no product has zeros.
//!
//! faer divides too, and does the small ones here; it has one thread unless its results may depend on how
//! many there are. Here, roots, weights and blocks of columns are items for any number of threads.

use super::real::Real;
use super::secular::{Root, Secular, roots, weights};
use crate::team::each;
use faer::prelude::{Reborrow, ReborrowMut};
use faer::{Accum, Mat, MatMut, MatRef};
use std::sync::atomic::{AtomicBool, Ordering};

/// Replaces the diagonal by the eigenvalues, ascending, and `vectors` by the eigenvectors, one a column;
/// `None` if they were not found. `beside` is the diagonal beside it.
pub(super) fn divide<T: Real>(
    diagonal: &mut [T],
    beside: &[T],
    vectors: MatMut<'_, T>,
    threads: usize,
) -> Option<()> {
    divide_down_to(LEAF_MAX, diagonal, beside, vectors, threads)
}

fn divide_down_to<T: Real>(
    leaf_max: usize,
    diagonal: &mut [T],
    beside: &[T],
    mut vectors: MatMut<'_, T>,
    threads: usize,
) -> Option<()> {
    let mut sizes = vec![diagonal.len()];
    while sizes.iter().any(|&size| leaf_max < size) {
        sizes = sizes.iter().flat_map(|&size| [size / 2, size - size / 2]).collect();
    }
    let mut at = 0;
    for size in &sizes[..sizes.len() - 1] {
        at += size;
        diagonal[at - 1] -= beside[at - 1].magnitude();
        diagonal[at] -= beside[at - 1].magnitude();
    }
    leaves(diagonal, beside, vectors.rb_mut(), &sizes, threads)?;
    while 1 < sizes.len() {
        let mut first = 0;
        for pair in sizes.chunks(2) {
            let (size, middle) = (pair[0] + pair[1], first + pair[0]);
            let block = vectors.rb_mut().submatrix_mut(first, first, size, size);
            merge(&mut diagonal[first..first + size], block, pair[0], beside[middle - 1], threads);
            first += size;
        }
        sizes = sizes.chunks(2).map(|pair| pair[0] + pair[1]).collect();
    }
    Some(())
}

/// Solves the smallest parts, in the blocks on the diagonal of `vectors`.
fn leaves<T: Real>(
    diagonal: &mut [T],
    beside: &[T],
    vectors: MatMut<'_, T>,
    sizes: &[usize],
    threads: usize,
) -> Option<()> {
    let mut items = Vec::with_capacity(sizes.len());
    let (mut rest, mut values, mut first) = (vectors, diagonal, 0);
    for &size in sizes {
        let (columns, behind) = rest.split_at_col_mut(size);
        let (own, others) = values.split_at_mut(size);
        items.push((own, &beside[first..first + size - 1], columns.subrows_mut(first, size)));
        (rest, values, first) = (behind, others, first + size);
    }
    let is_failed = AtomicBool::new(false);
    each(threads, items, |(diagonal, beside, vectors)| {
        if leaf(diagonal, beside, vectors).is_none() {
            is_failed.store(true, Ordering::Relaxed);
        }
    });
    (!is_failed.into_inner()).then_some(())
}

fn leaf<T: Real>(diagonal: &mut [T], beside: &[T], vectors: MatMut<'_, T>) -> Option<()> {
    let own = diagonal.to_vec();
    let beside: Vec<T> = beside.iter().copied().chain([T::zero_impl()]).collect();
    T::tridiagonal_eigen(&own, &beside, diagonal, Some(vectors))
}

/// Two halves of which eigenvectors that do not change are set aside.
struct Deflated<T> {
    /// Columns that change, by eigenvalue.
    kept: Vec<usize>,
    /// Columns that do not.
    aside: Vec<usize>,
    /// Whether a column has rows in the half that it does not belong to.
    is_mixed: Vec<bool>,
    /// z, as rotations have changed it.
    z: Vec<T>,
}

/// Makes one of two halves, of which the first has `middle` rows: `vectors` has theirs in its two blocks.
fn merge<T: Real>(values: &mut [T], mut vectors: MatMut<'_, T>, middle: usize, beside: T, threads: usize) {
    let n = values.len();
    vectors.rb_mut().submatrix_mut(0, middle, middle, n - middle).fill(T::zero_impl());
    vectors.rb_mut().submatrix_mut(middle, 0, n - middle, middle).fill(T::zero_impl());
    let half = T::of(0.5).root();
    let sign = if beside < T::zero_impl() { -half } else { half };
    let z_of =
        |j: usize| if j < middle { half * vectors[(middle - 1, j)] } else { sign * vectors[(middle, j)] };
    let z = (0..n).map(z_of).collect();
    let r = T::of(2.0) * beside.magnitude();
    let Deflated { kept, aside, is_mixed, z } = deflate(values, vectors.rb_mut(), middle, z, r);
    let poles: Vec<T> = kept.iter().map(|&j| values[j]).collect();
    let z: Vec<T> = kept.iter().map(|&j| z[j]).collect();
    let secular = Secular { poles: &poles, z: &z, r };
    let roots = roots(&secular, threads);
    let weights = weights(&secular, &roots, threads);

    // The rows of the small eigenvectors, by the half that they multiply.
    let group = |row: &usize| match (is_mixed[kept[*row]], kept[*row] < middle) {
        (false, true) => 0,
        (true, _) => 1,
        (false, false) => 2,
    };
    let mut rows: Vec<usize> = (0..kept.len()).collect();
    rows.sort_by_key(group);
    let count = |wanted: usize| rows.iter().filter(|row| group(row) == wanted).count();
    let (top, bottom) = (count(0) + count(1), count(1) + count(2));
    let old = vectors.rb();
    let packed = |first: usize, height: usize, rows: &[usize]| {
        let mut to = Mat::zeros(height, rows.len());
        for (j, &row) in rows.iter().enumerate() {
            to.as_mut().col_mut(j).copy_from(old.col(kept[row]).subrows(first, height));
        }
        to
    };
    let halves = [packed(0, middle, &rows[..top]), packed(middle, n - middle, &rows[rows.len() - bottom..])];
    let mut set_aside = Mat::zeros(n, aside.len());
    for (j, &column) in aside.iter().enumerate() {
        set_aside.as_mut().col_mut(j).copy_from(old.col(column));
    }
    let aside: Vec<T> = aside.iter().map(|&j| values[j]).collect();
    let sources = order(&poles, &roots, &aside, values);
    let product = Product { poles: &poles, roots: &roots, weights: &weights, rows: &rows, halves, set_aside };
    product.write(vectors, &sources, threads);
}

/// Sets aside what does not change: eigenvalues as good as equal after a rotation of their eigenvectors,
/// which leaves one of the two without a share in z, and those without a share in it.
fn deflate<T: Real>(
    values: &mut [T],
    mut vectors: MatMut<'_, T>,
    middle: usize,
    mut z: Vec<T>,
    r: T,
) -> Deflated<T> {
    let n = values.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| values[a].partial_cmp(&values[b]).unwrap_or(std::cmp::Ordering::Equal));
    let largest = |of: &[T]| {
        of.iter().fold(T::zero_impl(), |most, x| if most < x.magnitude() { x.magnitude() } else { most })
    };
    let (largest_value, largest_z) = (largest(values), largest(&z));
    let scale = if largest_value < largest_z { largest_z } else { largest_value };
    let small = T::of(8.0) * T::EPSILON * scale;
    let mut made = Deflated { kept: Vec::new(), aside: Vec::new(), is_mixed: vec![false; n], z: Vec::new() };
    let mut before: Option<usize> = None;
    for i in order {
        if r * z[i].magnitude() <= small {
            made.aside.push(i);
            continue;
        }
        if let Some(p) = before.replace(i) {
            let length = (z[p] * z[p] + z[i] * z[i]).root();
            let (c, s) = (z[i] / length, -z[p] / length);
            if small < ((values[i] - values[p]) * c * s).magnitude() {
                made.kept.push(p);
                continue;
            }
            (z[i], z[p]) = (length, T::zero_impl());
            rotate(vectors.rb_mut(), [p, i], c, s);
            let own = values[p] * c * c + values[i] * s * s;
            values[i] = values[p] * s * s + values[i] * c * c;
            values[p] = own;
            if (p < middle) != (i < middle) || made.is_mixed[p] {
                made.is_mixed[i] = true;
            }
            made.aside.push(p);
        }
    }
    made.kept.extend(before);
    made.z = z;
    made
}

/// Columns p and i become c p + s i and c i - s p.
fn rotate<T: Real>(mut vectors: MatMut<'_, T>, [p, i]: [usize; 2], c: T, s: T) {
    for row in 0..vectors.nrows() {
        let (a, b) = (vectors[(row, p)], vectors[(row, i)]);
        vectors[(row, p)] = c * a + s * b;
        vectors[(row, i)] = c * b - s * a;
    }
}

/// The origin of an eigenvector: a root, or a column that was set aside.
#[derive(Clone, Copy, Debug)]
enum Source {
    Root(usize),
    Aside(usize),
}

/// Writes all eigenvalues in ascending order, and tells where each comes from.
fn order<T: Real>(poles: &[T], roots: &[Root<T>], aside: &[T], values: &mut [T]) -> Vec<Source> {
    let of_roots =
        roots.iter().enumerate().map(|(j, root)| (poles[root.pole] + root.beyond, Source::Root(j)));
    let of_aside = aside.iter().enumerate().map(|(j, &value)| (value, Source::Aside(j)));
    let mut all: Vec<(T, Source)> = of_roots.chain(of_aside).collect();
    // A stable order: roots that are equal when rounded keep theirs.
    all.sort_by(|a, b| a.0.partial_cmp(&b.0).unwrap_or(std::cmp::Ordering::Equal));
    values.iter_mut().zip(&all).for_each(|(to, &(value, _))| *to = value);
    all.into_iter().map(|(_, source)| source).collect()
}

/// The product of the old eigenvectors with those of D + r z z^T.
struct Product<'a, T> {
    poles: &'a [T],
    roots: &'a [Root<T>],
    weights: &'a [T],
    /// The number of the pole for each row of a small eigenvector.
    rows: &'a [usize],
    /// Old eigenvectors that have rows in the first half, in the order of the first rows, and those of the
    /// second one, in the order of the last rows.
    halves: [Mat<T>; 2],
    set_aside: Mat<T>,
}

impl<T: Real> Product<'_, T> {
    fn write(&self, vectors: MatMut<'_, T>, sources: &[Source], threads: usize) {
        let width = (sources.len() / COLUMN_SHARE).clamp(COLUMNS_MIN, COLUMNS_MAX);
        let mut items = Vec::with_capacity(sources.len().div_ceil(width));
        let mut rest = vectors;
        for sources in sources.chunks(width) {
            let (columns, behind) = rest.split_at_col_mut(sources.len());
            items.push((columns, sources));
            rest = behind;
        }
        each(threads, items, |(columns, sources)| self.write_columns(columns, sources));
    }

    fn write_columns(&self, mut to: MatMut<'_, T>, sources: &[Source]) {
        let is_root = |source: &&Source| matches!(source, Source::Root(_));
        let count = sources.iter().filter(is_root).count();
        let mut small = Mat::zeros(self.rows.len(), count);
        let mut next = 0;
        for source in sources {
            if let &Source::Root(root) = source {
                self.small_vector(root, small.as_mut().subcols_mut(next, 1));
                next += 1;
            }
        }
        let (k, middle) = (self.rows.len(), self.halves[0].nrows());
        let [top, bottom] = self.halves.each_ref().map(Mat::as_ref);
        let small = small.as_ref();
        let multiply = |to: MatMut<'_, T>, left: MatRef<'_, T>, right: MatRef<'_, T>| {
            T::multiply(to, Accum::Replace, left, right, T::one_impl());
        };
        let (above, below) =
            (small.subrows(0, top.ncols()), small.subrows(k - bottom.ncols(), bottom.ncols()));
        if count == sources.len() {
            let (to_top, to_bottom) = to.split_at_row_mut(middle);
            multiply(to_top, top, above);
            multiply(to_bottom, bottom, below);
            return;
        }
        let mut made = Mat::zeros(to.nrows(), count);
        let (to_top, to_bottom) = made.as_mut().split_at_row_mut(middle);
        multiply(to_top, top, above);
        multiply(to_bottom, bottom, below);
        let mut next = 0;
        for (j, source) in sources.iter().enumerate() {
            let from = match *source {
                Source::Aside(column) => self.set_aside.as_ref().col(column),
                Source::Root(_) => {
                    next += 1;
                    made.as_ref().col(next - 1)
                }
            };
            to.rb_mut().col_mut(j).copy_from(from);
        }
    }

    /// The eigenvector of D + r z z^T for a root: z_i / (d_i - x), of length one.
    fn small_vector(&self, root: usize, mut to: MatMut<'_, T>) {
        let Root { pole, beyond } = self.roots[root];
        let origin = self.poles[pole];
        let mut squares = T::zero_impl();
        for (at, &row) in self.rows.iter().enumerate() {
            let element = self.weights[row] / ((self.poles[row] - origin) - beyond);
            to[(at, 0)] = element;
            squares += element * element;
        }
        let scale = T::one_impl() / squares.root();
        for at in 0..self.rows.len() {
            to[(at, 0)] *= scale;
        }
    }
}

/// Rows of a matrix that is not divided here.
const LEAF_MAX: usize = 512;
/// Columns that a thread multiplies at once: a part of all, between two bounds.
const COLUMN_SHARE: usize = 16;
const COLUMNS_MIN: usize = 64;
const COLUMNS_MAX: usize = 256;

#[cfg(test)]
mod tests {
    use super::super::tests_of_eigen::{errors, numbers};
    use super::*;

    /// Divides a matrix down to a few rows, and checks the eigenvectors by the tridiagonal matrix.
    fn check(what: &str, diagonal: &[f64], beside: &[f64]) {
        let n = diagonal.len();
        let matrix = Mat::from_fn(n, n, |i, j| match i.abs_diff(j) {
            0 => diagonal[i],
            1 => beside[i.min(j)],
            _ => 0.0,
        });
        let of_threads = |threads: usize| {
            let mut values = diagonal.to_vec();
            let mut vectors = Mat::full(n, n, f64::NAN);
            divide_down_to(8, &mut values, beside, vectors.as_mut(), threads).unwrap();
            (values, vectors)
        };
        let (values, vectors) = of_threads(1);
        let [residual, orthogonality] = errors(matrix.as_ref(), &values, vectors.as_ref());
        assert!(residual < 8.0 && orthogonality < 8.0, "{what} {n}: {residual} {orthogonality}");
        assert!(values.is_sorted(), "{what} {n}");
        assert!([2, 3].iter().all(|&threads| of_threads(threads) == (values.clone(), vectors.clone())));
    }

    #[test]
    fn tridiagonal_matrices_are_divided() {
        for n in [9, 16, 33, 100, 257] {
            let ones = vec![1.0; n];
            let zeros = vec![0.0; n];
            let random = numbers(n as u64, 2 * n);
            let ramp: Vec<f64> = (0..n).map(|i| (i as f64 - n as f64 / 2.0).abs()).collect();
            let powers: Vec<f64> = (0..n).map(|i| 0.5f64.powi(i as i32)).collect();
            let mut cut = ones.clone();
            (0..n).step_by(5).for_each(|i| cut[i] = 0.0);
            let tiny: Vec<f64> = random.iter().map(|x| x * 1e-14).collect();
            check("random", &random[..n], &random[n..2 * n - 1]);
            check("second differences", &zeros, &ones[1..]);
            check("Wilkinson", &ramp, &ones[1..]);
            check("zeros", &zeros, &zeros[1..]);
            check("the identity", &ones, &zeros[1..]);
            check("graded", &powers, &powers[1..]);
            check("in blocks", &ones, &cut[1..]);
            check("nearly diagonal", &ones, &tiny[1..n]);
            check("negative beside", &random[..n], &ones.iter().map(|x| -x).collect::<Vec<_>>()[1..]);
        }
    }
}
