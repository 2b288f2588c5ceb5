//! Products and factorizations of matrices.

use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::lu::partial_pivoting::factor::{lu_in_place, lu_in_place_scratch};
use faer::linalg::matmul::matmul;
use faer::linalg::matmul::triangular::{self, BlockStructure};
use faer::linalg::qr::no_pivoting::factor::{qr_in_place, qr_in_place_scratch};
use faer::linalg::solvers::{Eigen, Qr, SelfAdjointEigen, Svd};
use faer::linalg::triangular_solve as triangle;
use faer::traits::ComplexField;
use faer::{Accum, Mat, MatMut, MatRef, Par, Side, Spec};
use num_complex::Complex;

/// float32, float64, and complex numbers of them.
pub trait DenseField: ComplexField<Real: Copy> + Copy {
    /// Replaces `to` by `factor` times the product of (m, k) and (k, n), or adds that.
    fn multiply(
        to: MatMut<'_, Self>,
        accum: Accum,
        left: MatRef<'_, Self>,
        right: MatRef<'_, Self>,
        factor: Self,
    );

    /// As [`DenseField::multiply`] with the factor one, of the lower triangle of a square result alone.
    fn multiply_lower(to: MatMut<'_, Self>, accum: Accum, left: MatRef<'_, Self>, right: MatRef<'_, Self>);

    /// The lower Cholesky factor of what the lower triangle says; none if a pivot is not positive.
    fn cholesky(lower: MatRef<'_, Self>) -> Option<Mat<Self>>;

    /// Replaces a matrix by its triangular factors with its rows exchanged, the ones on the diagonal of the
    /// lower one left out. Returns which row of the matrix is where in their product.
    fn lu(a: MatMut<'_, Self>) -> Vec<usize>;

    /// Replaces right sides by the solutions for a triangle, with ones on its diagonal if it is `unit`.
    fn solve_triangle(triangle: MatRef<'_, Self>, sides: MatMut<'_, Self>, lower: bool, unit: bool);

    /// An orthonormal matrix and an upper triangle.
    fn qr(a: MatRef<'_, Self>) -> Qr<Self>;

    /// The orthonormal factor (m, m).
    fn whole_q(qr: &Qr<Self>) -> Mat<Self>;

    /// The orthonormal factor (m, min(m, n)).
    fn thin_q(qr: &Qr<Self>) -> Mat<Self>;

    /// Replaces a matrix (m, n) by the upper triangle and, below it, reflections, whose factors go to
    /// `factors` (1, min(m, n)).
    fn reflections(a: MatMut<'_, Self>, factors: MatMut<'_, Self>);

    /// Singular values and vectors, all of them if `full`; none if they were not found.
    fn svd(a: MatRef<'_, Self>, full: bool) -> Option<Svd<Self>>;

    /// Singular values in descending order; none if they were not found.
    fn singular_values(a: MatRef<'_, Self>) -> Option<Vec<Self::Real>>;

    /// Eigenvalues and right eigenvectors; none if they were not found.
    fn eigen(a: MatRef<'_, Self>) -> Option<Eigen<Self::Real>>;

    /// Eigenvalues and eigenvectors of the Hermitian matrix of a lower triangle; none if they were not found.
    fn hermitian_eigen(lower: MatRef<'_, Self>) -> Option<SelfAdjointEigen<Self>>;

    /// As [`DenseField::hermitian_eigen`], without eigenvectors.
    fn hermitian_eigenvalues(lower: MatRef<'_, Self>) -> Option<Vec<Self::Real>>;

    /// The largest absolute value.
    fn norm_max(a: MatRef<'_, Self>) -> Self::Real;
}

macro_rules! fields {
    ($($t:ty: $eigen:expr),*) => {$(
        impl DenseField for $t {
            fn multiply(
                to: MatMut<'_, $t>,
                accum: Accum,
                left: MatRef<'_, $t>,
                right: MatRef<'_, $t>,
                factor: $t,
            ) {
                matmul(to, accum, left, right, factor, Par::Seq);
            }

            fn multiply_lower(to: MatMut<'_, $t>, accum: Accum, left: MatRef<'_, $t>, right: MatRef<'_, $t>) {
                let (whole, lower) = (BlockStructure::Rectangular, BlockStructure::TriangularLower);
                let one = <$t as ComplexField>::one_impl();
                triangular::matmul(to, lower, accum, left, whole, right, whole, one, Par::Seq);
            }

            fn cholesky(lower: MatRef<'_, $t>) -> Option<Mat<$t>> {
                Some(lower.llt(Side::Lower).ok()?.L().to_owned())
            }

            fn lu(a: MatMut<'_, $t>) -> Vec<usize> {
                let (m, n) = (a.nrows(), a.ncols());
                let scratch = lu_in_place_scratch::<usize, $t>(m, n, Par::Seq, Spec::default());
                let mut memory = MemBuffer::new(scratch);
                let (mut order, mut places) = (vec![0usize; m], vec![0usize; m]);
                let stack = MemStack::new(&mut memory);
                lu_in_place(a, &mut order, &mut places, Par::Seq, stack, Spec::default());
                order
            }

            fn solve_triangle(a: MatRef<'_, $t>, sides: MatMut<'_, $t>, lower: bool, unit: bool) {
                match (lower, unit) {
                    (true, false) => triangle::solve_lower_triangular_in_place(a, sides, Par::Seq),
                    (true, true) => triangle::solve_unit_lower_triangular_in_place(a, sides, Par::Seq),
                    (false, false) => triangle::solve_upper_triangular_in_place(a, sides, Par::Seq),
                    (false, true) => triangle::solve_unit_upper_triangular_in_place(a, sides, Par::Seq),
                }
            }

            fn qr(a: MatRef<'_, $t>) -> Qr<$t> {
                Qr::new(a)
            }

            fn whole_q(qr: &Qr<$t>) -> Mat<$t> {
                qr.compute_Q()
            }

            fn thin_q(qr: &Qr<$t>) -> Mat<$t> {
                qr.compute_thin_Q()
            }

            fn reflections(a: MatMut<'_, $t>, factors: MatMut<'_, $t>) {
                let scratch = qr_in_place_scratch::<$t>(a.nrows(), a.ncols(), 1, Par::Seq, Spec::default());
                let mut memory = MemBuffer::new(scratch);
                qr_in_place(a, factors, Par::Seq, MemStack::new(&mut memory), Spec::default());
            }

            fn svd(a: MatRef<'_, $t>, full: bool) -> Option<Svd<$t>> {
                if full { Svd::new(a).ok() } else { Svd::new_thin(a).ok() }
            }

            fn singular_values(a: MatRef<'_, $t>) -> Option<Vec<<$t as ComplexField>::Real>> {
                a.singular_values().ok()
            }

            fn eigen(a: MatRef<'_, $t>) -> Option<Eigen<<$t as ComplexField>::Real>> {
                $eigen(a).ok()
            }

            fn hermitian_eigen(lower: MatRef<'_, $t>) -> Option<SelfAdjointEigen<$t>> {
                SelfAdjointEigen::new(lower, Side::Lower).ok()
            }

            fn hermitian_eigenvalues(lower: MatRef<'_, $t>) -> Option<Vec<<$t as ComplexField>::Real>> {
                lower.self_adjoint_eigenvalues(Side::Lower).ok()
            }

            fn norm_max(a: MatRef<'_, $t>) -> <$t as ComplexField>::Real {
                a.norm_max()
            }
        }
    )*};
}
fields!(
    f32: Eigen::new_from_real,
    f64: Eigen::new_from_real,
    Complex<f32>: Eigen::new,
    Complex<f64>: Eigen::new
);
