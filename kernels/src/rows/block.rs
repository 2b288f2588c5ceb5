//! The innermost loop: four rows of sums in registers.
//!
//! A loop over the four would be vectorised across them, by gathers, so they are written out.

/// Numbers of one row of sums in registers: two vectors of 512 bits.
pub(super) const WIDE: usize = 16;
/// As [`WIDE`], for vectors of 256 bits, of which there are half as many.
pub(super) const NARROW: usize = 8;
/// Rows of a block.
pub(super) const FOUR: usize = 4;
/// Whether the portable copy of a loop has fused multiply-add in one instruction.
pub(super) const PORTABLE_FUSED: bool = cfg!(target_arch = "aarch64");

/// Adds a factor times a row to a row of sums.
#[inline(always)]
fn add<const FUSED: bool, const L: usize>(factor: f64, row: &[f64; L], sums: &mut [f64; L]) {
    for at in 0..L {
        sums[at] = if FUSED { factor.mul_add(row[at], sums[at]) } else { factor * row[at] + sums[at] };
    }
}

/// Adds the squares of the distances of a number to those of a row to a row of sums.
#[inline(always)]
fn add_squares<const FUSED: bool, const L: usize>(number: f64, row: &[f64; L], sums: &mut [f64; L]) {
    for at in 0..L {
        let rest = number - row[at];
        sums[at] = if FUSED { rest.mul_add(rest, sums[at]) } else { rest * rest + sums[at] };
    }
}

/// Adds to each of four rows of sums the products of four factors of each step with the row of that step.
#[inline(always)]
pub(super) fn add_products<'a, const FUSED: bool, const L: usize>(
    steps: impl Iterator<Item = (&'a [f64; FOUR], &'a [f64; L])>,
    sums: &mut [[f64; L]; FOUR],
) {
    let [mut first, mut second, mut third, mut fourth] = *sums;
    for (factors, row) in steps {
        add::<FUSED, L>(factors[0], row, &mut first);
        add::<FUSED, L>(factors[1], row, &mut second);
        add::<FUSED, L>(factors[2], row, &mut third);
        add::<FUSED, L>(factors[3], row, &mut fourth);
    }
    *sums = [first, second, third, fourth];
}

/// Adds to four rows of sums the products, or squared distances, of the numbers of four rows with the row of
/// `panel` that each number belongs to.
#[inline(always)]
pub(super) fn add_rows<const FUSED: bool, const SQUARES: bool, const L: usize>(
    rows: [&[f64]; FOUR],
    panel: &[f64],
    sums: &mut [[f64; L]; FOUR],
) {
    let [mut first, mut second, mut third, mut fourth] = *sums;
    let [a, b, c, d] = rows;
    for ((((row, a), b), c), d) in panel.chunks_exact(L).zip(a).zip(b).zip(c).zip(d) {
        let Some((row, _)) = row.split_first_chunk::<L>() else { return };
        if SQUARES {
            add_squares::<FUSED, L>(*a, row, &mut first);
            add_squares::<FUSED, L>(*b, row, &mut second);
            add_squares::<FUSED, L>(*c, row, &mut third);
            add_squares::<FUSED, L>(*d, row, &mut fourth);
        } else {
            add::<FUSED, L>(*a, row, &mut first);
            add::<FUSED, L>(*b, row, &mut second);
            add::<FUSED, L>(*c, row, &mut third);
            add::<FUSED, L>(*d, row, &mut fourth);
        }
    }
    *sums = [first, second, third, fourth];
}

/// Runs a loop, generic over fused multiply-add and the numbers of a row in registers, for this CPU.
macro_rules! for_this_cpu {
    ($kernel:ident { $($field:ident: $value:expr),* $(,)? }) => {
        match $crate::cpu::level() {
            $crate::cpu::Level::Avx512 => $crate::cpu::dispatch($kernel::<true, { $crate::rows::block::WIDE }> {
                $($field: $value),*
            }),
            $crate::cpu::Level::Avx2 => $crate::cpu::dispatch($kernel::<true, { $crate::rows::block::NARROW }> {
                $($field: $value),*
            }),
            $crate::cpu::Level::Portable => $crate::cpu::Kernel::run(
                $kernel::<{ $crate::rows::block::PORTABLE_FUSED }, { $crate::rows::block::NARROW }> {
                    $($field: $value),*
                },
            ),
        }
    };
}
pub(super) use for_this_cpu;
