//! The parts of which eigenvalues of real symmetric matrices are made.

use super::DenseField;
use faer::diag::{DiagMut, DiagRef};
use faer::dyn_stack::{MemBuffer, MemStack};
use faer::linalg::evd::{ComputeEigenvectors, self_adjoint_evd_scratch, tridiagonal_self_adjoint_evd};
use faer::linalg::householder::{
    apply_block_householder_sequence_on_the_left_in_place_scratch as apply_scratch,
    apply_block_householder_sequence_on_the_left_in_place_with_conj as apply_in_place,
    make_householder_in_place, upgrade_householder_factor,
};
use faer::traits::RealField;
use faer::{ColMut, Conj, MatMut, MatRef, Par, Spec};

/// float32 or float64.
pub trait DenseReal: RealField + DenseField {
    /// Writes the eigenvalues of a tridiagonal matrix (n, n), and its eigenvectors if there is a place for
    /// them; none if they were not found. `beside` is the diagonal beside the diagonal, and a number that is
    /// not read (n,).
    fn tridiagonal_eigen(
        diagonal: &[Self],
        beside: &[Self],
        values: &mut [Self],
        vectors: Option<MatMut<'_, Self>>,
    ) -> Option<()>;

    /// Replaces a column by its reflection, whose first element is one, and that by what remains of the
    /// column; the factor of the reflection.
    fn reflect(first: &mut Self, rest: &mut [Self]) -> Self;

    /// Completes the triangular factor of a block of reflections (n, width), whose diagonal is there.
    fn complete_block(factor: MatMut<'_, Self>, reflections: MatRef<'_, Self>);

    /// Applies reflections (n, k), whose triangular factors stand beside each other (b, k), to columns.
    fn apply_blocks(reflections: MatRef<'_, Self>, factors: MatRef<'_, Self>, columns: MatMut<'_, Self>);
}

macro_rules! reals {
    ($($t:ty),*) => {$(
        impl DenseReal for $t {
            fn tridiagonal_eigen(
                diagonal: &[$t],
                beside: &[$t],
                values: &mut [$t],
                vectors: Option<MatMut<'_, $t>>,
            ) -> Option<()> {
                let wanted =
                    if vectors.is_some() { ComputeEigenvectors::Yes } else { ComputeEigenvectors::No };
                // More than is needed for a tridiagonal matrix, of which faer does not tell it.
                let scratch =
                    self_adjoint_evd_scratch::<$t>(diagonal.len(), wanted, Par::Seq, Spec::default());
                let mut memory = MemBuffer::new(scratch);
                tridiagonal_self_adjoint_evd(
                    DiagRef::from_slice(diagonal),
                    DiagRef::from_slice(beside),
                    DiagMut::from_slice_mut(values),
                    vectors,
                    Par::Seq,
                    MemStack::new(&mut memory),
                    Spec::default(),
                )
                .ok()
            }

            fn reflect(first: &mut $t, rest: &mut [$t]) -> $t {
                make_householder_in_place(first, ColMut::from_slice_mut(rest)).tau
            }

            fn complete_block(factor: MatMut<'_, $t>, reflections: MatRef<'_, $t>) {
                let width = reflections.ncols();
                upgrade_householder_factor(factor, reflections, width, 1, Par::Seq);
            }

            fn apply_blocks(reflections: MatRef<'_, $t>, factors: MatRef<'_, $t>, columns: MatMut<'_, $t>) {
                let scratch = apply_scratch::<$t>(reflections.nrows(), factors.nrows(), columns.ncols());
                let mut memory = MemBuffer::new(scratch);
                let stack = MemStack::new(&mut memory);
                apply_in_place(reflections, factors, Conj::No, columns, Par::Seq, stack);
            }
        }
    )*};
}
reals!(f32, f64);
