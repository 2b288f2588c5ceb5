//! Programs of operators that feed each other, against the same steps done by plain loops: over chunks of
//! one, two and three elements, of uneven lengths, of whole rows and over one chunk, with inputs that are
//! stored and inputs that are computed on the way.

use std::sync::Arc;
use tharsis_graph::lower::View;
use tharsis_graph::ops::{
    ArgExtreme, Binary, Cast, Concatenate, Cumulative, Full, Indexed, MatMul, Moment, Rechunk, Reduce,
    Reshape, Select, Selection, Unary, Viewed, Where,
};
use tharsis_graph::plan::AxisMap;
use tharsis_graph::{Chunks, LocalExecutor, Node, NodeRef, Operator, Resident, ResidentChunk, run};
use tharsis_kernels::chunkwise::Scan;
use tharsis_kernels::program::IndexMap;
use tharsis_kernels::{BinaryOp, Chunk, DType, Fold, Scalar, UnaryOp};

/// An array in C order.
#[derive(Clone, Debug, PartialEq)]
struct Plain {
    shape: Vec<usize>,
    elements: Vec<f64>,
}

impl Plain {
    /// The element at each index.
    fn new(shape: &[usize], element: impl Fn(&[usize]) -> f64) -> Plain {
        let index = |flat: usize| {
            let mut index = vec![0; shape.len()];
            let mut left = flat;
            for axis in (0..shape.len()).rev() {
                index[axis] = left % shape[axis];
                left /= shape[axis];
            }
            index
        };
        let elements = (0..shape.iter().product()).map(|flat| element(&index(flat))).collect();
        Plain { shape: shape.to_vec(), elements }
    }

    /// Whole numbers from -5 to 5, whose sums are exact in any order.
    fn numbers(shape: &[usize]) -> Plain {
        let flat = |index: &[usize]| index.iter().zip(shape).fold(0, |flat, (at, extent)| flat * extent + at);
        Plain::new(shape, |index| (flat(index) * 37 % 11) as f64 - 5.0)
    }

    fn at(&self, index: &[usize]) -> f64 {
        let flat = index.iter().zip(&self.shape).fold(0, |flat, (at, extent)| flat * extent + at);
        self.elements[flat]
    }

    /// All elements along an axis, for each index without it, put together by a function.
    fn fold(&self, axis: usize, f: impl Fn(&[f64]) -> f64) -> Plain {
        let mut shape = self.shape.clone();
        let extent = shape.remove(axis);
        Plain::new(&shape, |index| {
            let at = |k: usize| self.at(&[&index[..axis], &[k], &index[axis..]].concat());
            f(&(0..extent).map(at).collect::<Vec<f64>>())
        })
    }
}

fn sum(of: &[f64]) -> f64 {
    of.iter().sum()
}

fn largest(of: &[f64]) -> f64 {
    of.iter().copied().fold(f64::MIN, f64::max)
}

fn apply(op: impl Operator + 'static, inputs: &[&NodeRef]) -> NodeRef {
    Node::new(op, inputs.iter().map(|&input| input.clone()).collect()).unwrap()
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

fn reshape(shape: &[usize], x: &NodeRef) -> NodeRef {
    apply(Reshape { shape: shape.to_vec() }, &[x])
}

fn transposed(x: &NodeRef) -> NodeRef {
    apply(Viewed { name: "transpose", view: View::permute(&x.meta().shape, &[1, 0]) }, &[x])
}

/// For each axis the first element, the step and the number of elements.
fn slice(x: &NodeRef, axes: &[(usize, i64, usize)]) -> NodeRef {
    let map = |(axis, &(start, step, _))| AxisMap { start, step, axis: Some(axis) };
    let view = View {
        shape: axes.iter().map(|&(_, _, count)| count).collect(),
        axes: axes.iter().enumerate().map(map).collect(),
    };
    apply(Viewed { name: "slice", view }, &[x])
}

fn choose(x: &NodeRef, mask: &NodeRef) -> NodeRef {
    apply(Select::new(Selection::Compress), &[x, mask])
}

fn above(x: &NodeRef, bound: f64) -> NodeRef {
    binary(BinaryOp::Greater, x, &number(bound))
}

/// Pieces of one element, two, three and so on, and what is left.
fn growing(len: usize) -> Vec<usize> {
    let (mut pieces, mut left) = (Vec::new(), len);
    while left != 0 {
        pieces.push(left.min(pieces.len() + 1));
        left -= pieces[pieces.len() - 1];
    }
    if pieces.is_empty() { vec![0] } else { pieces }
}

fn chunkings(shape: &[usize]) -> [Chunks; 6] {
    let uneven = Chunks::Lengths(shape.iter().map(|&len| growing(len)).collect());
    let rows = Chunks::PerAxis((0..shape.len()).map(|axis| if axis == 0 { 2 } else { 1000 }).collect());
    [Chunks::Each(1), Chunks::Each(2), Chunks::Each(3), uneven, rows, Chunks::Each(1000)]
}

/// [`Plain::numbers`] in chunks that exist.
fn stored(shape: &[usize], chunks: &Chunks) -> NodeRef {
    let numbers = Plain::numbers(shape);
    let tiling = chunks.tiling(shape).unwrap().unwrap();
    let (mut origin, mut extents) = (Vec::new(), Vec::new());
    let mut parts = Vec::new();
    for index in 0..tiling.count() {
        tiling.chunk(index, &mut origin, &mut extents);
        let part = Plain::new(&extents, |at| {
            numbers.at(&at.iter().zip(&origin).map(|(at, first)| at + first).collect::<Vec<usize>>())
        });
        let chunk = Chunk::from_elements(&extents, &part.elements).unwrap();
        parts.push(ResidentChunk::Here(Arc::new(chunk)));
    }
    apply(Resident { dtype: DType::F64, tiling, chunks: Arc::new(parts) }, &[])
}

/// [`Plain::numbers`] as steps of a program.
fn computed(shape: &[usize], chunks: &Chunks) -> NodeRef {
    let ramp = IndexMap::Ramp { start: 0.0, step: 37.0 };
    let source = apply(Indexed { shape: shape.to_vec(), map: ramp }, &[]);
    let rest = binary(BinaryOp::Remainder, &source, &number(11.0));
    apply(Rechunk(chunks.clone()), &[&binary(BinaryOp::Subtract, &rest, &number(5.0))])
}

fn compute(root: &NodeRef) -> Plain {
    let root = apply(Cast(DType::F64), &[root]);
    let outcome = run(&[root], &LocalExecutor::sized(2, 64 << 20)).unwrap();
    let result = &outcome.results[0];
    let mut found = Plain::new(&result.tiling.shape(), |_| f64::NAN);
    let (mut origin, mut extents) = (Vec::new(), Vec::new());
    for (index, chunk) in result.chunks.iter().enumerate() {
        result.tiling.chunk(index, &mut origin, &mut extents);
        let chunk = Plain { shape: extents.clone(), elements: chunk.fetch().unwrap().to_vec().unwrap() };
        let inside = |index: &[usize]| {
            let bounds = index.iter().zip(origin.iter().zip(&extents));
            bounds.into_iter().all(|(&at, (&first, &extent))| first <= at && at < first + extent)
        };
        found = Plain::new(&found.shape.clone(), |index| {
            if inside(index) {
                chunk.at(&index.iter().zip(&origin).map(|(at, first)| at - first).collect::<Vec<usize>>())
            } else {
                found.at(index)
            }
        });
    }
    found
}

/// Runs a program of [`Plain::numbers`] over all chunkings.
fn each(shape: &[usize], program: impl Fn(&NodeRef) -> NodeRef, mut found: impl FnMut(Plain, &str)) {
    for chunks in chunkings(shape) {
        found(compute(&program(&stored(shape, &chunks))), &format!("stored, {chunks:?}"));
        found(compute(&program(&computed(shape, &chunks))), &format!("computed, {chunks:?}"));
    }
}

fn check(shape: &[usize], expected: &Plain, program: impl Fn(&NodeRef) -> NodeRef) {
    each(shape, program, |found, chunks| assert_eq!(found, *expected, "{chunks}"));
}

#[test]
fn sums_of_sums_are_the_sum_of_all_in_either_order() {
    let all = Plain { shape: vec![], elements: vec![sum(&Plain::numbers(&[7, 5, 3]).elements)] };
    let sums = |axes: [usize; 3]| {
        move |x: &NodeRef| axes.iter().fold(x.clone(), |x, &axis| reduce(Fold::Sum, &[axis], &x))
    };
    check(&[7, 5, 3], &all, sums([0, 0, 0]));
    check(&[7, 5, 3], &all, sums([2, 1, 0]));
    check(&[7, 5, 3], &all, sums([1, 0, 0]));
}

#[test]
fn an_extreme_of_sums_differs_from_a_sum_of_extremes() {
    let x = Plain::numbers(&[7, 5]);
    let of_sums = x.fold(1, sum).fold(0, largest);
    let of_extremes = x.fold(1, largest).fold(0, sum);
    assert_ne!(of_sums, of_extremes);
    check(&[7, 5], &of_sums, |x| reduce(Fold::Max, &[0], &reduce(Fold::Sum, &[1], x)));
    check(&[7, 5], &of_extremes, |x| reduce(Fold::Sum, &[0], &reduce(Fold::Max, &[1], x)));
}

#[test]
fn a_sum_over_outer_axes_keeps_the_inner_one() {
    let x = Plain::numbers(&[3, 5, 7]);
    let around = x.fold(2, sum).fold(0, sum);
    check(&[3, 5, 7], &around, |x| reduce(Fold::Sum, &[0, 2], x));
    let inner = x.fold(0, sum).fold(0, sum);
    check(&[3, 5, 7], &inner, |x| reduce(Fold::Sum, &[0, 1], x));
}

#[test]
fn a_strided_slice_is_reshaped_and_summed() {
    let x = Plain::numbers(&[7, 5]);
    // Rows 1, 3, 5 and columns 4, 2, as an array of two rows.
    let taken = Plain::new(&[3, 2], |at| x.at(&[1 + 2 * at[0], 4 - 2 * at[1]]));
    let expected = Plain { shape: vec![2, 3], ..taken }.fold(0, sum);
    check(&[7, 5], &expected, |x| {
        reduce(Fold::Sum, &[0], &reshape(&[2, 3], &slice(x, &[(1, 2, 3), (4, -2, 2)])))
    });
}

#[test]
fn a_slice_of_a_slice_counts_from_the_start_of_the_first() {
    let x = Plain::numbers(&[13]);
    // x[2:12][::-1][1::3]
    let expected = Plain::new(&[3], |at| x.at(&[11 - (1 + 3 * at[0])]));
    check(&[13], &expected, |x| {
        let part = slice(x, &[(2, 1, 10)]);
        slice(&slice(&part, &[(9, -1, 10)]), &[(1, 3, 3)])
    });
}

#[test]
fn reshapes_of_a_matrix_and_its_transpose_keep_their_c_order() {
    let x = Plain::numbers(&[5, 7]);
    let turned = Plain::new(&[7, 5], |at| x.at(&[at[1], at[0]]));
    let expected = Plain { shape: vec![35], ..turned };
    check(&[5, 7], &expected, |x| reshape(&[35], &transposed(x)));
    let other_rows = Plain { shape: vec![7, 5], ..x.clone() };
    check(&[5, 7], &other_rows, |x| reshape(&[7, 5], x));
    // The same elements again once everything is undone.
    check(&[5, 7], &x, |x| {
        let flat = reshape(&[35], &transposed(x));
        transposed(&reshape(&[7, 5], &flat))
    });
}

#[test]
fn columns_less_their_mean_add_up_to_nothing() {
    let x = Plain::numbers(&[7, 5]);
    let totals = x.fold(0, sum);
    // Times the number of rows, so that all numbers stay whole.
    let centred = Plain::new(&[7, 5], |at| 7.0 * x.at(at) - totals.at(&at[1..]));
    let centre = |x: &NodeRef| {
        let total = apply(Reduce { fold: Fold::Sum, axes: vec![0], keepdims: true }, &[x]);
        binary(BinaryOp::Subtract, &binary(BinaryOp::Multiply, x, &number(7.0)), &total)
    };
    check(&[7, 5], &centred, centre);
    check(&[7, 5], &Plain::new(&[5], |_| 0.0), |x| reduce(Fold::Sum, &[0], &centre(x)));
}

#[test]
fn a_column_times_a_row_is_the_table_of_their_products() {
    let x = Plain::numbers(&[7, 5]);
    let (rows, columns) = (x.fold(1, largest), x.fold(0, sum));
    let expected = Plain::new(&[7, 5], |at| rows.at(&at[..1]) * columns.at(&at[1..]));
    check(&[7, 5], &expected, |x| {
        let column = reshape(&[7, 1], &reduce(Fold::Max, &[1], x));
        binary(BinaryOp::Multiply, &column, &reduce(Fold::Sum, &[0], x))
    });
}

#[test]
fn an_array_of_no_axes_is_added_reduced_reshaped_and_repeated() {
    // The only element is -5.
    check(&[], &Plain::new(&[], |_| -10.0), |x| reduce(Fold::Sum, &[], &binary(BinaryOp::Add, x, x)));
    check(&[], &Plain::new(&[1, 1], |_| -5.0), |x| reduce(Fold::Max, &[0], &reshape(&[1, 1, 1], x)));
    let repeated = Plain::new(&[2, 3], |_| 30.0);
    check(&[], &repeated, |x| {
        let view = View::broadcast(&[], &[2, 3]);
        let wide = apply(Viewed { name: "broadcast", view }, &[x]);
        binary(BinaryOp::Multiply, &wide, &binary(BinaryOp::Subtract, x, &number(1.0)))
    });
}

#[test]
fn folds_of_no_elements_are_what_changes_nothing() {
    check(&[0, 5], &Plain::new(&[5], |_| 0.0), |x| reduce(Fold::Sum, &[0], x));
    check(&[0, 5], &Plain::new(&[5], |_| 1.0), |x| reduce(Fold::Prod, &[0], x));
    check(&[0, 5], &Plain::new(&[5], |_| 1.0), |x| reduce(Fold::All, &[0], &above(x, 0.0)));
    check(&[0, 5], &Plain::new(&[5], |_| 0.0), |x| reduce(Fold::Any, &[0], &above(x, 0.0)));
    check(&[0, 5], &Plain::new(&[], |_| 0.0), |x| reduce(Fold::CountTrue, &[0, 1], &above(x, 0.0)));
    check(&[0, 5], &Plain::new(&[0], |_| 0.0), |x| reduce(Fold::Max, &[1], x));
}

#[test]
fn programs_over_no_elements_keep_their_shapes() {
    let nothing = |shape: &[usize]| Plain::new(shape, |_| 0.0);
    check(&[0, 5], &nothing(&[5, 0]), transposed);
    check(&[0, 5], &nothing(&[3, 0, 7]), |x| reshape(&[3, 0, 7], x));
    check(&[0, 5], &nothing(&[0, 5]), |x| apply(Cumulative { scan: Scan::Sum, axis: 0 }, &[x]));
    check(&[0, 5], &nothing(&[0, 10]), |x| apply(Concatenate { axis: 1 }, &[x, x]));
    check(&[0, 5], &nothing(&[0, 5]), |x| binary(BinaryOp::Add, x, &reduce(Fold::Sum, &[0], x)));
    // A sum of no products is 0 in every cell.
    check(&[0, 5], &nothing(&[5, 5]), |x| apply(MatMul, &[&transposed(x), x]));
    check(&[0, 5], &nothing(&[0, 0]), |x| apply(MatMul, &[x, &transposed(x)]));
}

#[test]
fn products_of_products_are_those_of_loops() {
    let x = Plain::numbers(&[7, 5]);
    let gram = Plain::new(&[5, 5], |at| (0..7).map(|k| x.at(&[k, at[0]]) * x.at(&[k, at[1]])).sum());
    let last = Plain::new(&[7, 5], |at| (0..5).map(|k| x.at(&[at[0], k]) * gram.at(&[k, at[1]])).sum());
    check(&[7, 5], &gram, |x| apply(MatMul, &[&transposed(x), x]));
    check(&[7, 5], &last, |x| apply(MatMul, &[x, &apply(MatMul, &[&transposed(x), x])]));
    // In the other order of multiplication the products are equal.
    check(&[7, 5], &last, |x| apply(MatMul, &[&apply(MatMul, &[x, &transposed(x)]), x]));
}

#[test]
fn a_product_of_stacks_multiplies_matrix_by_matrix() {
    let x = Plain::numbers(&[3, 2, 5]);
    // Each of the stack times the transpose of the first.
    let expected =
        Plain::new(&[3, 2, 2], |at| (0..5).map(|k| x.at(&[at[0], at[1], k]) * x.at(&[0, at[2], k])).sum());
    check(&[3, 2, 5], &expected, |x| {
        let first = reshape(&[2, 5], &slice(x, &[(0, 1, 1), (0, 1, 2), (0, 1, 5)]));
        apply(MatMul, &[x, &transposed(&first)])
    });
}

#[test]
fn running_sums_along_both_axes_are_sums_of_boxes() {
    let x = Plain::numbers(&[7, 5]);
    let sum_of_box = |at: &[usize]| -> f64 {
        (0..=at[0]).flat_map(|i| (0..=at[1]).map(move |j| [i, j])).map(|at| x.at(&at)).sum()
    };
    let expected = Plain::new(&[7, 5], sum_of_box);
    let scan = |axis: usize, x: &NodeRef| apply(Cumulative { scan: Scan::Sum, axis }, &[x]);
    check(&[7, 5], &expected, |x| scan(1, &scan(0, x)));
    check(&[7, 5], &expected, |x| scan(0, &scan(1, x)));
}

#[test]
fn parts_behind_one_another_are_the_whole_rolled() {
    let x = Plain::numbers(&[7, 5]);
    let expected = Plain::new(&[7, 5], |at| x.at(&[(at[0] + 3) % 7, at[1]]));
    check(&[7, 5], &expected, |x| {
        let (head, tail) = (slice(x, &[(0, 1, 3), (0, 1, 5)]), slice(x, &[(3, 1, 4), (0, 1, 5)]));
        apply(Concatenate { axis: 0 }, &[&tail, &head])
    });
    // Parts without elements add nothing.
    check(&[7, 5], &x, |x| {
        let nothing = slice(x, &[(0, 1, 7), (0, 1, 0)]);
        apply(Concatenate { axis: 1 }, &[&nothing, x, &nothing])
    });
}

#[test]
fn other_chunks_midway_change_no_element() {
    let x = Plain::numbers(&[7, 5]);
    let expected = Plain::new(&[5], |at| 4.0 * x.fold(0, sum).at(at));
    check(&[7, 5], &expected, |x| {
        let doubled = binary(BinaryOp::Add, x, x);
        let cut = apply(Rechunk(Chunks::Lengths(vec![vec![5, 2], vec![1, 4]])), &[&doubled]);
        let again = apply(Rechunk(Chunks::PerAxis(vec![3, 5])), &[&binary(BinaryOp::Add, &cut, &doubled)]);
        reduce(Fold::Sum, &[0], &again)
    });
}

#[test]
fn the_place_of_an_extreme_is_its_first_on_either_side_of_a_chunk() {
    let x = Plain::numbers(&[11, 3]);
    let places = x.fold(0, |of| of.iter().position(|&x| x == largest(of)).unwrap() as f64);
    let place = |fold, axis| ArgExtreme { fold, axis, keepdims: false };
    check(&[11, 3], &places, |x| apply(place(Fold::ArgMax, Some(0)), &[x]));
    // All row sums of equal rows are equal, so that the first row wins.
    check(&[11, 3], &Plain::new(&[], |_| 0.0), |x| {
        let equal = binary(BinaryOp::Multiply, x, &number(0.0));
        apply(place(Fold::ArgMin, None), &[&reduce(Fold::Sum, &[1], &equal)])
    });
}

#[test]
fn variances_of_sums_are_those_of_two_passes() {
    let sums = Plain::numbers(&[13, 3]).fold(1, sum).elements;
    let mean = sum(&sums) / 13.0;
    let expected = sums.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / 12.0;
    let op = Moment { axes: vec![0], keepdims: false, ddof: 1.0, root: false };
    let program = |x: &NodeRef| apply(op.clone(), &[&reduce(Fold::Sum, &[1], x)]);
    each(&[13, 3], program, |found, chunks| {
        assert_eq!(found.shape, [0; 0]);
        let found = found.elements[0];
        assert!((found - expected).abs() <= 1e-12 * expected, "{found} {expected}, {chunks}");
    });
}

#[test]
fn elements_above_their_row_sum_are_replaced_and_counted() {
    let x = Plain::numbers(&[7, 5]);
    let sums = x.fold(1, sum);
    let replaced = Plain::new(&[7, 5], |at| x.at(at).min(sums.at(&at[..1])));
    let is_above = |x: &NodeRef| {
        let sums = apply(Reduce { fold: Fold::Sum, axes: vec![1], keepdims: true }, &[x]);
        (binary(BinaryOp::Greater, x, &sums), sums)
    };
    check(&[7, 5], &replaced, |x| {
        let (greater, sums) = is_above(x);
        apply(Where, &[&greater, &sums, x])
    });
    let count = x.elements.iter().zip(&replaced.elements).filter(|(x, replaced)| x != replaced).count();
    assert!(0 < count && count < 35);
    check(&[7, 5], &Plain::new(&[], |_| count as f64), |x| reduce(Fold::CountTrue, &[0, 1], &is_above(x).0));
}

#[test]
fn the_trace_of_a_product_with_its_transpose_is_the_sum_of_squares() {
    let squares = Plain::numbers(&[7, 5]).elements.iter().map(|x| x * x).sum::<f64>();
    let expected = Plain::new(&[], |_| squares);
    check(&[7, 5], &expected, |x| {
        let gram = apply(MatMul, &[x, &transposed(x)]);
        // Both axes follow the only one of the view.
        let view = View { shape: vec![7], axes: vec![AxisMap::identity(0); 2] };
        reduce(Fold::Sum, &[0], &apply(Viewed { name: "diagonal", view }, &[&gram]))
    });
    check(&[7, 5], &expected, |x| reduce(Fold::Sum, &[0, 1], &apply(Unary(UnaryOp::Square), &[x])));
}

#[test]
fn chosen_rows_are_multiplied_with_their_transpose() {
    let x = Plain::numbers(&[11, 3]);
    let sums = x.fold(1, sum);
    let rows: Vec<usize> = (0..11).filter(|&row| 0.0 < sums.at(&[row])).collect();
    assert!(1 < rows.len() && rows.len() < 10);
    let cell = |at: &[usize]| -> f64 { rows.iter().map(|&k| x.at(&[k, at[0]]) * x.at(&[k, at[1]])).sum() };
    let expected = Plain::new(&[3, 3], cell);
    check(&[11, 3], &expected, |x| {
        let chosen = choose(x, &above(&reduce(Fold::Sum, &[1], x), 0.0));
        apply(MatMul, &[&transposed(&chosen), &chosen])
    });
}

#[test]
fn masks_that_choose_nothing_or_all_are_masks_like_others() {
    let x = Plain::numbers(&[13]);
    check(&[13], &Plain::new(&[0], |_| 0.0), |x| choose(x, &above(x, 5.0)));
    check(&[13], &x, |x| choose(x, &above(x, -6.0)));
    check(&[13], &Plain::new(&[], |_| 0.0), |x| reduce(Fold::Sum, &[0], &choose(x, &above(x, 5.0))));
    // Chosen elements behind none, and in front of all.
    let chosen: Vec<f64> = x.elements.iter().copied().filter(|&x| 1.0 < x).collect();
    let elements = [chosen, x.elements.clone()].concat();
    check(&[13], &Plain { shape: vec![elements.len()], elements }, |x| {
        let (none, some) = (choose(x, &above(x, 5.0)), choose(x, &above(x, 1.0)));
        apply(Concatenate { axis: 0 }, &[&none, &some, x])
    });
}

#[test]
fn choices_by_one_mask_stay_side_by_side() {
    let x = Plain::numbers(&[13]);
    let chosen = x.elements.iter().enumerate().filter(|(_, x)| 0.0 < **x);
    let mut total = 0.0;
    let elements: Vec<f64> = chosen
        .map(|(at, x)| {
            total += at as f64 * x;
            total
        })
        .collect();
    check(&[13], &Plain { shape: vec![elements.len()], elements }, |x| {
        let ramp = apply(Indexed { shape: vec![13], map: IndexMap::Ramp { start: 0.0, step: 1.0 } }, &[]);
        let mask = above(x, 0.0);
        let product = binary(BinaryOp::Multiply, &choose(&ramp, &mask), &choose(x, &mask));
        apply(Cumulative { scan: Scan::Sum, axis: 0 }, &[&product])
    });
}
