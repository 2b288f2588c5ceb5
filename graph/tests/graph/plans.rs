//! Plans as text: an expression in, the stages that compute it out, one file of `testdata/plans` each.
//!
//! A file has the operators, the stages with their grids and the steps of their programs, the order, the
//! memory bound, and the batches that small tasks are put into. `UPDATE_PLANS=1 cargo test -p tharsis-graph
//! --test graph plans` writes the files anew; read the difference before you keep it.

use std::path::Path;
use tharsis_graph::lower::View;
use tharsis_graph::ops::{
    ArgExtreme, Binary, Cast, Concatenate, Cumulative, Factorize, Full, Indexed, MatMul, Moment, Rechunk,
    Reduce, Reshape, Select, Selection, Unary, Viewed, Where,
};
use tharsis_graph::phases::Phase;
use tharsis_graph::{
    BatchLimits, Batches, Chunks, Explanation, LocalExecutor, Node, NodeRef, Operator, plan,
};
use tharsis_kernels::chunkwise::Scan;
use tharsis_kernels::factor::Factor;
use tharsis_kernels::program::IndexMap;
use tharsis_kernels::{BinaryOp, DType, Fold, Key, Scalar, UnaryOp};

const MEMORY_BYTES: u64 = 64 << 20;
const LIMITS: BatchLimits = BatchLimits { cost: 2e6, tasks: 100, bytes: 4 << 20 };

/// Compares the plan of an expression with the file of this name.
fn check(name: &str, roots: &[NodeRef]) {
    let executor = LocalExecutor::sized(2, MEMORY_BYTES);
    let job = plan(roots, tharsis_graph::Executor::limits(&executor)).unwrap();
    let batches = Batches::new(&job.runnable, &job.schedule, LIMITS).unwrap();
    let mut text = Explanation::new(roots, &job, &executor).unwrap().to_string();
    let sizes: Vec<String> =
        (0..batches.len()).take(8).map(|batch| batches.tasks(batch).len().to_string()).collect();
    let (sources, homes) = batches.source_count();
    text.push_str(&format!(
        "\nbatches: {} ({}{}), {sources} of them sources with {homes} homes, {} B live, {} B in the largest\n",
        batches.len(),
        sizes.join(" "),
        if 8 < batches.len() { " .." } else { "" },
        batches.live_bytes,
        batches.largest_bytes
    ));
    let folder = std::env::var_os("CARGO_MANIFEST_DIR").expect("cargo test sets CARGO_MANIFEST_DIR");
    let path = Path::new(&folder).join("testdata/plans").join(format!("{name}.txt"));
    if std::env::var_os("UPDATE_PLANS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    let expected = std::fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(text, expected, "{name}: the plan is another one; see the header of this test");
}

fn apply(op: impl Operator + 'static, inputs: &[&NodeRef]) -> NodeRef {
    Node::new(op, inputs.iter().map(|&node| node.clone()).collect()).unwrap()
}

fn random(seed: u64, shape: &[usize]) -> NodeRef {
    apply(Indexed { shape: shape.to_vec(), map: IndexMap::Uniform(Key::new(seed, 0)) }, &[])
}

fn number(x: f64) -> NodeRef {
    apply(Full { shape: vec![], value: Scalar::Float(x), dtype: DType::F64 }, &[])
}

fn binary(op: BinaryOp, a: &NodeRef, b: &NodeRef) -> NodeRef {
    apply(Binary(op), &[a, b])
}

fn reduce(fold: Fold, axes: &[usize], x: &NodeRef) -> NodeRef {
    apply(Reduce { fold, axes: axes.to_vec(), keepdims: false }, &[x])
}

fn transposed(x: &NodeRef) -> NodeRef {
    let view = View::permute(&x.meta().shape, &[1, 0]);
    apply(Viewed { name: "transpose", view }, &[x])
}

#[test]
fn elementwise_steps_become_one_program() {
    let x = random(1, &[1_000_000]);
    let scaled = binary(BinaryOp::Multiply, &binary(BinaryOp::Add, &x, &number(1.0)), &number(2.0));
    check("elementwise", &[scaled]);
}

#[test]
fn a_sum_is_a_stage_of_partial_sums_and_a_tree() {
    check("sum", &[reduce(Fold::Sum, &[0], &random(1, &[50_000_000]))]);
}

#[test]
fn sums_of_short_rows_stay_in_the_program() {
    let x = random(1, &[1_000_000, 2]);
    let length =
        apply(Unary(UnaryOp::Sqrt), &[&reduce(Fold::Sum, &[1], &binary(BinaryOp::Multiply, &x, &x))]);
    let inside = binary(BinaryOp::Less, &length, &number(1.0));
    check("short-rows", &[reduce(Fold::CountTrue, &[0], &inside)]);
}

#[test]
fn sums_of_narrow_floats_are_made_wide_and_narrowed() {
    let x = apply(Cast(DType::F32), &[&random(1, &[1_000_000])]);
    check("narrow-sum", &[reduce(Fold::Sum, &[0], &x)]);
}

#[test]
fn a_fold_of_one_axis_keeps_the_other() {
    check("column-max", &[reduce(Fold::Max, &[0], &random(1, &[20_000, 300]))]);
}

#[test]
fn equal_expressions_are_computed_once() {
    let x = random(1, &[100_000]);
    let (a, b) = (apply(Unary(UnaryOp::Exp), &[&x]), apply(Unary(UnaryOp::Exp), &[&random(1, &[100_000])]));
    check("equal", &[reduce(Fold::Sum, &[0], &binary(BinaryOp::Add, &a, &b))]);
}

#[test]
fn what_costs_much_and_is_used_twice_is_stored() {
    let x = apply(Unary(UnaryOp::Exp), &[&random(1, &[500_000])]);
    let spread = apply(Moment { axes: vec![0], keepdims: true, ddof: 0.0, root: true }, &[&x]);
    check("used-twice", &[binary(BinaryOp::Divide, &x, &spread)]);
}

#[test]
fn what_costs_little_and_is_used_twice_is_computed_again() {
    let x = random(1, &[4000, 100]);
    let mean = apply(Reduce { fold: Fold::Sum, axes: vec![1], keepdims: true }, &[&x]);
    check("computed-again", &[reduce(Fold::Sum, &[0, 1], &binary(BinaryOp::Subtract, &x, &mean))]);
}

#[test]
fn views_rewrite_the_index_and_cost_no_stage() {
    let x = random(1, &[600, 400]);
    check("transpose", &[binary(BinaryOp::Add, &transposed(&x), &random(2, &[400, 600]))]);
}

#[test]
fn a_small_operand_is_repeated_in_the_program() {
    check("broadcast", &[binary(BinaryOp::Multiply, &random(1, &[3000, 200]), &random(2, &[200]))]);
}

#[test]
fn a_product_sums_over_blocks_of_its_depth() {
    check("product", &[apply(MatMul, &[&random(1, &[700, 900]), &random(2, &[900, 500])])]);
}

#[test]
fn a_product_with_its_own_transpose_is_a_gram_matrix() {
    let x = random(1, &[20_000, 50]);
    check("gram", &[apply(MatMul, &[&transposed(&x), &x])]);
}

#[test]
fn rows_behind_one_another_fill_one_tensor() {
    let (a, b) = (random(1, &[1000, 10]), random(2, &[300, 10]));
    check("concatenate", &[apply(Concatenate { axis: 0 }, &[&a, &b])]);
}

#[test]
fn functions_of_the_position_are_reshaped_without_a_copy() {
    check("reshape-source", &[apply(Reshape { shape: vec![2000, 50] }, &[&random(1, &[100, 1000])])]);
}

#[test]
fn other_elements_are_stored_before_they_are_reshaped() {
    let sum = reduce(Fold::Sum, &[1], &random(1, &[3000, 4000]));
    check("reshape-stored", &[apply(Reshape { shape: vec![30, 100] }, &[&sum])]);
}

#[test]
fn chunks_that_were_asked_for_are_kept() {
    let x = apply(Rechunk(Chunks::Each(16)), &[&random(1, &[4000])]);
    let y = apply(Rechunk(Chunks::Each(16)), &[&random(2, &[4000])]);
    check("small-chunks", &[reduce(Fold::Sum, &[0], &binary(BinaryOp::Add, &x, &y))]);
}

#[test]
fn running_sums_go_through_the_chunks() {
    check("cumulative", &[apply(Cumulative { scan: Scan::Sum, axis: 0 }, &[&random(1, &[3_000_000])])]);
}

#[test]
fn the_place_of_the_largest_is_folded_with_it() {
    let place = ArgExtreme { fold: Fold::ArgMax, axis: None, keepdims: false };
    check("argmax", &[apply(place, &[&random(1, &[3_000_000])])]);
}

#[test]
fn choices_are_steps_of_the_program() {
    let x = random(1, &[300_000]);
    let chosen = apply(Where, &[&binary(BinaryOp::Less, &x, &number(0.5)), &x, &number(0.0)]);
    check("where", &[reduce(Fold::Sum, &[0], &chosen)]);
}

#[test]
fn several_results_share_what_they_have_in_common() {
    let x = apply(Unary(UnaryOp::Log), &[&random(1, &[400_000])]);
    check("two-results", &[reduce(Fold::Max, &[0], &x), reduce(Fold::Min, &[0], &x)]);
}

#[test]
fn factors_of_stacks_are_multiplied_matrix_by_matrix() {
    check("stacked-product", &[apply(MatMul, &[&random(1, &[5, 300, 40]), &random(2, &[40, 70])])]);
}

#[test]
fn a_factorization_takes_the_whole_matrix_in_one_task() {
    let x = random(1, &[500, 30]);
    check("factor", &[apply(Factorize(Factor::QrR), &[&x])]);
}

#[test]
fn a_mask_is_counted_before_what_it_chooses_is_planned() {
    let x = random(1, &[1_000_000]);
    let mask = binary(BinaryOp::Greater, &x, &number(0.9));
    let chosen = apply(Select::new(Selection::Compress), &[&x, &mask]);
    let limits = tharsis_graph::Executor::limits(&LocalExecutor::sized(2, MEMORY_BYTES));
    let phase = Phase::next(&[reduce(Fold::Sum, &[0], &chosen)], limits).unwrap();
    check("mask-count", &phase.roots().unwrap());
}

#[test]
fn variances_of_columns_merge_three_components() {
    let op = Moment { axes: vec![0], keepdims: false, ddof: 1.0, root: false };
    check("column-variance", &[apply(op, &[&random(1, &[20_000, 300])])]);
}

#[test]
fn a_plan_over_the_memory_says_how_much_would_do() {
    let executor = LocalExecutor::sized(2, 1 << 20);
    let limits = tharsis_graph::Executor::limits(&executor);
    let refused = plan(&[random(1, &[1_000_000])], limits).unwrap_err().to_string();
    assert!(refused.contains("memory"), "{refused}");
}
