//! The benches over tensors, by name.

use super::{Entry, elementwise, row, tensor_sort, tensors};

/// The benches, with targets as in [`super`].
pub const BENCHES: &[Entry] = &[
    row("pi", tensors::pi, "ratio >= 0.25", ">= 0.7").sized(1_000_000_000, 100_000_000),
    row("axpb", tensors::axpb, "ratio >= 0.7", ">= 0.95").sized(1_000_000_000, 100_000_000),
    row("sqrt", elementwise::sqrt, OFF_LIST_MUST, OFF_LIST_AIM).sized(300_000_000, 30_000_000),
    row("sqrt-f32", elementwise::sqrt_f32, OFF_LIST_MUST, OFF_LIST_AIM).sized(300_000_000, 30_000_000),
    row("max-abs", elementwise::max_abs, OFF_LIST_MUST, OFF_LIST_AIM).sized(300_000_000, 30_000_000),
    row("max-abs-f32", elementwise::max_abs_f32, OFF_LIST_MUST, OFF_LIST_AIM).sized(300_000_000, 30_000_000),
    row("exp", elementwise::exp, OFF_LIST_MUST, OFF_LIST_AIM).sized(300_000_000, 30_000_000),
    row("exp-f32", elementwise::exp_f32, OFF_LIST_MUST, OFF_LIST_AIM).sized(300_000_000, 30_000_000),
    row("axpb-store", tensors::axpb_store, "ratio >= 0.7", ">= 0.9").sized(500_000_000, 50_000_000).apart(),
    row("small-chunks", tensors::small_chunks, ">= 100 000", ">= 500 000").sized(100_000, 10_000),
    row("plan", tensors::plan, "<= 3, <= 500 B/chunk", "<= 1").sized(1_000_000, 100_000),
    row("gemm-std", tensors::gemm_std, "ratio >= 0.7", ">= 0.95").sized(10_000, 3_000).apart(),
    row("sort", tensor_sort::sort, "ratio >= 0.5", ">= 0.8")
        .sized(1_000_000_000, 100_000_000)
        .with_flags(&["--store"])
        .apart(),
    row("svd", tensors::svd, "ratio >= 0.4", ">= 0.8").sized(10_000_000, 1_000_000).apart(),
];

/// Target of element-wise programs without a kernel of their own.
const OFF_LIST_MUST: &str = "ratio >= 0.6";
const OFF_LIST_AIM: &str = ">= 0.9";
