//! Each operator against a plain loop, over chunks that do not divide the shape, and its refusals.

use std::slice::from_ref;
use std::sync::Arc;
use tharsis_graph::lower::View;
use tharsis_graph::ops::{
    ArgExtreme, Binary, Cast, Concatenate, CountReduced, Cumulative, Factorize, Full, Indexed, MapChunk,
    MatMul, Moment, Rechunk, Reduce, Reshape, Select, Selection, Sink, Source, Unary, Viewed, Where,
};
use tharsis_graph::{
    Chunks, Error, Executor, Foreign, ForeignName, LocalExecutor, Node, NodeRef, Operator, Resident, plan,
    run,
};
use tharsis_kernels::chunkwise::Scan;
use tharsis_kernels::factor::Factor;
use tharsis_kernels::program::IndexMap;
use tharsis_kernels::{
    BinaryOp, Bool, Buffer, Chunk, DType, Element, Fold, KernelError, Place, Scalar, UnaryOp,
};

const ROWS: usize = 7;
const COLUMNS: usize = 5;

fn node(op: impl Operator + 'static, inputs: &[&NodeRef]) -> Result<NodeRef, Error> {
    Node::new(op, inputs.iter().map(|&input| input.clone()).collect())
}

fn apply(op: impl Operator + 'static, inputs: &[&NodeRef]) -> NodeRef {
    node(op, inputs).unwrap()
}

fn number(x: f64) -> NodeRef {
    apply(Full { shape: vec![], value: Scalar::Float(x), dtype: DType::F64 }, &[])
}

/// Element `i` is `values(i)`, in chunks of at most 3 along every axis.
fn matrix(rows: usize, columns: usize) -> NodeRef {
    let ramp = IndexMap::Ramp { start: 0.0, step: 37.0 };
    let source = apply(Indexed { shape: vec![rows, columns], map: ramp }, &[]);
    let rest = apply(Binary(BinaryOp::Remainder), &[&source, &number(11.0)]);
    let shifted = apply(Binary(BinaryOp::Subtract), &[&rest, &number(5.0)]);
    apply(Rechunk(Chunks::Each(3)), &[&shifted])
}

fn value(i: usize) -> f64 {
    (i * 37 % 11) as f64 - 5.0
}

fn values() -> Vec<f64> {
    (0..ROWS * COLUMNS).map(value).collect()
}

fn vector(len: usize) -> NodeRef {
    apply(Reshape { shape: vec![len] }, &[&matrix(len, 1)])
}

/// The elements of a result in C order.
fn elements<T: Element>(result: &Resident) -> Vec<T> {
    let shape = result.tiling.shape();
    let mut found = vec![T::from_scalar(Scalar::Int(0)); shape.iter().product()];
    let (mut origin, mut extents) = (Vec::new(), Vec::new());
    for (index, chunk) in result.chunks.iter().enumerate() {
        result.tiling.chunk(index, &mut origin, &mut extents);
        let chunk = chunk.fetch().unwrap().to_contiguous().unwrap();
        for (at, element) in chunk.as_slice::<T>().unwrap().iter().enumerate() {
            let (mut left, mut place, mut stride) = (at, 0, 1);
            for axis in (0..shape.len()).rev() {
                place += (origin[axis] + left % extents[axis]) * stride;
                left /= extents[axis];
                stride *= shape[axis];
            }
            found[place] = *element;
        }
    }
    found
}

fn compute<T: Element>(root: &NodeRef) -> Vec<T> {
    let outcome = run(from_ref(root), &LocalExecutor::sized(2, 64 << 20)).unwrap();
    elements(&outcome.results[0])
}

fn reduce(fold: Fold, axes: &[usize], x: &NodeRef) -> NodeRef {
    apply(Reduce { fold, axes: axes.to_vec(), keepdims: false }, &[x])
}

/// The result of a plain loop for each column.
fn by_column(f: impl Fn(&[f64]) -> f64) -> Vec<f64> {
    let column = |j: usize| (0..ROWS).map(|i| value(i * COLUMNS + j)).collect::<Vec<f64>>();
    (0..COLUMNS).map(|j| f(&column(j))).collect()
}

#[test]
fn unary_operators_are_applied_to_each_element() {
    let found = compute::<f64>(&apply(Unary(UnaryOp::Absolute), &[&matrix(ROWS, COLUMNS)]));
    assert_eq!(found, values().iter().map(|x| x.abs()).collect::<Vec<f64>>());
}

#[test]
fn binary_operators_repeat_a_row() {
    let row = matrix(1, COLUMNS);
    let found = compute::<f64>(&apply(Binary(BinaryOp::Subtract), &[&matrix(ROWS, COLUMNS), &row]));
    let expected: Vec<f64> = (0..ROWS * COLUMNS).map(|i| value(i) - value(i % COLUMNS)).collect();
    assert_eq!(found, expected);
}

#[test]
fn binary_operators_repeat_a_column() {
    let column = matrix(ROWS, 1);
    let found = compute::<f64>(&apply(Binary(BinaryOp::Multiply), &[&matrix(ROWS, COLUMNS), &column]));
    let expected: Vec<f64> = (0..ROWS * COLUMNS).map(|i| value(i) * value(i / COLUMNS)).collect();
    assert_eq!(found, expected);
}

#[test]
fn shapes_that_do_not_broadcast_are_refused_with_both() {
    let refused = node(Binary(BinaryOp::Add), &[&matrix(4, 3), &matrix(4, 2)]).unwrap_err();
    let shapes = vec![vec![4, 3], vec![4, 2]];
    assert_eq!(refused, Error::Broadcast { function: "add", shapes, axis: 1 });
}

#[test]
fn a_cast_truncates_towards_zero() {
    let halves = apply(Binary(BinaryOp::Divide), &[&matrix(ROWS, COLUMNS), &number(2.0)]);
    let found = compute::<i64>(&apply(Cast(DType::I64), &[&halves]));
    assert_eq!(found, values().iter().map(|x| (x / 2.0).trunc() as i64).collect::<Vec<i64>>());
}

#[test]
fn where_takes_each_element_from_one_side() {
    let x = matrix(ROWS, COLUMNS);
    let negative = apply(Binary(BinaryOp::Less), &[&x, &number(0.0)]);
    let found = compute::<f64>(&apply(Where, &[&negative, &number(9.0), &x]));
    assert_eq!(found, values().iter().map(|&x| if x < 0.0 { 9.0 } else { x }).collect::<Vec<f64>>());
}

#[test]
fn sums_of_all_elements_and_of_columns() {
    let x = matrix(ROWS, COLUMNS);
    assert_eq!(compute::<f64>(&reduce(Fold::Sum, &[0, 1], &x)), [values().iter().sum::<f64>()]);
    assert_eq!(compute::<f64>(&reduce(Fold::Sum, &[0], &x)), by_column(|c| c.iter().sum()));
}

#[test]
fn extremes_of_columns() {
    let x = matrix(ROWS, COLUMNS);
    let largest = by_column(|c| c.iter().copied().fold(f64::MIN, f64::max));
    let smallest = by_column(|c| c.iter().copied().fold(f64::MAX, f64::min));
    assert_eq!(compute::<f64>(&reduce(Fold::Max, &[0], &x)), largest);
    assert_eq!(compute::<f64>(&reduce(Fold::Min, &[0], &x)), smallest);
}

#[test]
fn products_and_truth_of_columns() {
    let x = matrix(ROWS, COLUMNS);
    assert_eq!(compute::<f64>(&reduce(Fold::Prod, &[0], &x)), by_column(|c| c.iter().product()));
    let positive = apply(Binary(BinaryOp::Greater), &[&x, &number(4.5)]);
    let any: Vec<Bool> = by_column(|c| f64::from(c.contains(&5.0)))
        .iter()
        .map(|&x| Bool::from_scalar(Scalar::Float(x)))
        .collect();
    assert_eq!(compute::<Bool>(&reduce(Fold::Any, &[0], &positive)), any);
}

#[test]
fn kept_axes_have_length_one() {
    let kept = apply(Reduce { fold: Fold::Sum, axes: vec![0], keepdims: true }, &[&matrix(ROWS, COLUMNS)]);
    assert_eq!(kept.meta().shape, [1, COLUMNS]);
}

#[test]
fn the_largest_of_nothing_is_refused() {
    let nothing = apply(Full { shape: vec![0, 3], value: Scalar::Float(0.0), dtype: DType::F64 }, &[]);
    let refused = node(Reduce { fold: Fold::Max, axes: vec![0], keepdims: false }, &[&nothing]).unwrap_err();
    assert!(matches!(refused, Error::Value(_)), "{refused:?}");
    let place = ArgExtreme { fold: Fold::ArgMin, axis: Some(0), keepdims: false };
    assert!(matches!(node(place, &[&nothing]).unwrap_err(), Error::Value(_)));
    assert_eq!(compute::<f64>(&reduce(Fold::Sum, &[0], &nothing)), [0.0; 3]);
}

#[test]
fn moments_are_those_of_two_passes() {
    let op = Moment { axes: vec![0], keepdims: false, ddof: 1.0, root: false };
    let found = compute::<f64>(&apply(op, &[&matrix(ROWS, COLUMNS)]));
    let expected = by_column(|c| {
        let mean = c.iter().sum::<f64>() / c.len() as f64;
        c.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / (c.len() - 1) as f64
    });
    for (found, expected) in found.iter().zip(&expected) {
        assert!((found - expected).abs() < 1e-12, "{found} {expected}");
    }
}

#[test]
fn the_first_of_equal_extremes_is_found() {
    let x = vector(30);
    let place = ArgExtreme { fold: Fold::ArgMax, axis: None, keepdims: false };
    let first = (0..30).find(|&i| value(i) == 5.0).unwrap() as i64;
    assert_eq!(compute::<i64>(&apply(place, &[&x])), [first]);
}

#[test]
fn the_number_of_reduced_elements_is_known() {
    let op = CountReduced { axes: vec![0], keepdims: false };
    assert_eq!(compute::<f64>(&apply(op, &[&matrix(ROWS, COLUMNS)])), [ROWS as f64; COLUMNS]);
}

#[test]
fn running_products_and_sums_cross_chunks() {
    let x = vector(20);
    let mut sum = 0.0;
    let sums: Vec<f64> = (0..20)
        .map(|i| {
            sum += value(i);
            sum
        })
        .collect();
    assert_eq!(compute::<f64>(&apply(Cumulative { scan: Scan::Sum, axis: 0 }, &[&x])), sums);
    let ones =
        apply(Binary(BinaryOp::Divide), &[&apply(Binary(BinaryOp::Add), &[&x, &number(6.0)]), &number(4.0)]);
    let mut product = 1.0;
    let products: Vec<f64> = (0..20)
        .map(|i| {
            product *= (value(i) + 6.0) / 4.0;
            product
        })
        .collect();
    for (found, expected) in
        compute::<f64>(&apply(Cumulative { scan: Scan::Prod, axis: 0 }, &[&ones])).iter().zip(products)
    {
        assert!((found - expected).abs() <= 1e-12 * expected.abs(), "{found} {expected}");
    }
}

#[test]
fn a_product_of_matrices_is_that_of_three_loops() {
    let found = compute::<f64>(&apply(MatMul, &[&matrix(ROWS, COLUMNS), &matrix(COLUMNS, 4)]));
    let cell =
        |i: usize, j: usize| (0..COLUMNS).map(|k| value(i * COLUMNS + k) * value(k * 4 + j)).sum::<f64>();
    let expected: Vec<f64> = (0..ROWS * 4).map(|at| cell(at / 4, at % 4)).collect();
    assert_eq!(found, expected);
}

#[test]
fn matrices_that_do_not_fit_are_refused_with_both_shapes() {
    let refused = node(MatMul, &[&matrix(3, 4), &matrix(3, 4)]).unwrap_err().to_string();
    assert!(refused.contains("(3,4) (3,4)"), "{refused}");
    assert!(matches!(node(MatMul, &[&number(1.0), &matrix(3, 4)]).unwrap_err(), Error::Shape { .. }));
}

#[test]
fn concatenated_columns_stand_side_by_side() {
    let both = apply(Concatenate { axis: 1 }, &[&matrix(ROWS, COLUMNS), &matrix(ROWS, 2)]);
    let cell =
        |i: usize, j: usize| if j < COLUMNS { value(i * COLUMNS + j) } else { value(i * 2 + j - COLUMNS) };
    let width = COLUMNS + 2;
    let expected: Vec<f64> = (0..ROWS * width).map(|at| cell(at / width, at % width)).collect();
    assert_eq!(compute::<f64>(&both), expected);
}

#[test]
fn parts_of_other_widths_cannot_stand_behind_one_another() {
    let refused = node(Concatenate { axis: 0 }, &[&matrix(2, 3), &matrix(2, 4)]).unwrap_err();
    assert!(matches!(refused, Error::Shape { function: "concatenate", .. }), "{refused:?}");
}

#[test]
fn a_reshape_keeps_c_order() {
    let stored = apply(Unary(UnaryOp::Negative), &[&matrix(ROWS, COLUMNS)]);
    let found = apply(Reshape { shape: vec![COLUMNS, ROWS] }, &[&stored]);
    assert_eq!(compute::<f64>(&found), values().iter().map(|x| -x).collect::<Vec<f64>>());
    let refused = node(Reshape { shape: vec![2, 3] }, &[&stored]).unwrap_err();
    assert!(matches!(refused, Error::Value(_)), "{refused:?}");
}

#[test]
fn a_view_may_reverse_and_transpose() {
    let mut view = View::permute(&[ROWS, COLUMNS], &[1, 0]);
    view.axes[0].start = ROWS - 1;
    view.axes[0].step = -1;
    let found = compute::<f64>(&apply(Viewed { name: "flip", view }, &[&matrix(ROWS, COLUMNS)]));
    let cell = |j: usize, i: usize| value((ROWS - 1 - i) * COLUMNS + j);
    assert_eq!(found, (0..ROWS * COLUMNS).map(|at| cell(at / ROWS, at % ROWS)).collect::<Vec<f64>>());
}

#[test]
fn chunks_that_do_not_add_up_are_refused() {
    let x = matrix(ROWS, COLUMNS);
    for wrong in [
        Chunks::Each(0),
        Chunks::PerAxis(vec![2]),
        Chunks::Lengths(vec![vec![3, 3], vec![5]]),
        Chunks::Lengths(vec![vec![7]]),
    ] {
        assert!(matches!(node(Rechunk(wrong.clone()), &[&x]).unwrap_err(), Error::Value(_)), "{wrong:?}");
    }
}

#[test]
fn a_mask_chooses_rows_in_order() {
    let x = vector(40);
    let mask = apply(Binary(BinaryOp::Greater), &[&x, &number(1.0)]);
    let chosen = apply(Select::new(Selection::Compress), &[&x, &mask]);
    let expected: Vec<f64> = (0..40).map(value).filter(|&x| 1.0 < x).collect();
    assert_eq!(compute::<f64>(&chosen), expected);
    let doubled = apply(Binary(BinaryOp::Add), &[&chosen, &chosen]);
    assert_eq!(compute::<f64>(&doubled), expected.iter().map(|x| x * 2.0).collect::<Vec<f64>>());
}

#[test]
fn choices_of_choices_take_a_phase_each() {
    let x = vector(40);
    let above = |x: &NodeRef, bound: f64| {
        let mask = apply(Binary(BinaryOp::Greater), &[x, &number(bound)]);
        apply(Select::new(Selection::Compress), &[x, &mask])
    };
    let twice = above(&above(&x, -2.0), 1.0);
    assert_eq!(compute::<f64>(&twice), (0..40).map(value).filter(|&x| 1.0 < x).collect::<Vec<f64>>());
}

#[test]
fn a_mask_of_another_length_is_refused() {
    let mask = apply(Binary(BinaryOp::Greater), &[&vector(6), &number(0.0)]);
    let refused = node(Select::new(Selection::Compress), &[&vector(5), &mask]).unwrap_err();
    assert_eq!(refused, Error::Mask { shape: vec![5], mask: vec![6] });
}

#[test]
fn distinct_elements_ascend() {
    let parts = apply(Select::new(Selection::DistinctOfChunks), &[&vector(40)]);
    let found = compute::<f64>(&apply(Select::new(Selection::Distinct), &[&parts]));
    let mut expected: Vec<f64> = (0..40).map(value).collect();
    expected.sort_by(f64::total_cmp);
    expected.dedup();
    assert_eq!(found, expected);
}

#[test]
fn a_cholesky_factor_multiplies_back() {
    let x = matrix(4, 4);
    let transposed = apply(Viewed { name: "transpose", view: View::permute(&[4, 4], &[1, 0]) }, &[&x]);
    let gram = apply(MatMul, &[&transposed, &x]);
    let identity = |at: usize| f64::from(u8::from(at / 4 == at % 4));
    let eye =
        apply(Binary(BinaryOp::Add), &[&gram, &apply(Reshape { shape: vec![4, 4] }, &[&ones_on_diagonal()])]);
    let factor = compute::<f64>(&apply(Factorize(Factor::Cholesky), &[&eye]));
    for at in 0..16 {
        let (i, j) = (at / 4, at % 4);
        let back: f64 = (0..4).map(|k| factor[i * 4 + k] * factor[j * 4 + k]).sum();
        let expected: f64 = (0..4).map(|k| value(k * 4 + i) * value(k * 4 + j)).sum::<f64>() + identity(at);
        assert!((back - expected).abs() < 1e-9, "{at}: {back} {expected}");
    }
}

/// A vector of 16 elements: the 4 by 4 identity matrix, flattened.
fn ones_on_diagonal() -> NodeRef {
    let position = apply(Indexed { shape: vec![16], map: IndexMap::Ramp { start: 0.0, step: 1.0 } }, &[]);
    let rest = apply(Binary(BinaryOp::Remainder), &[&position, &number(5.0)]);
    apply(Cast(DType::F64), &[&apply(Binary(BinaryOp::Equal), &[&rest, &number(0.0)])])
}

#[test]
fn factors_of_wide_matrices_and_vectors_are_refused() {
    let refused = node(Factorize(Factor::Cholesky), &[&matrix(3, 4)]).unwrap_err();
    assert!(matches!(refused, Error::Kernel(KernelError::Singular(_))), "{refused:?}");
    assert!(matches!(node(Factorize(Factor::QrR), &[&vector(4)]).unwrap_err(), Error::Shape { .. }));
}

fn chunk_of(elements: &[f64], shape: &[usize]) -> Result<Chunk, Error> {
    let mut buffer = Buffer::zeroed(size_of_val(elements));
    buffer.elements_mut::<f64>()[..elements.len()].copy_from_slice(elements);
    Ok(Chunk::contiguous(DType::F64, shape, buffer)?)
}

/// Doubles the elements of each chunk, or fails, or returns too few elements.
#[derive(Debug)]
enum OfChunks {
    Doubles,
    Fails,
    GivesOneElement,
}

impl Foreign for OfChunks {
    fn name(&self) -> Option<ForeignName> {
        None
    }

    fn describe(&self) -> String {
        format!("{self:?}")
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let chunk = args[0].to_contiguous()?;
        let of = chunk.as_slice::<f64>().unwrap();
        match self {
            OfChunks::Doubles => {
                let doubled: Vec<f64> = of.iter().map(|x| x * 2.0).collect();
                chunk_of(&doubled, chunk.shape())
            }
            OfChunks::Fails => Err(Error::Function { function: "f".to_owned(), reason: "odd".to_owned() }),
            OfChunks::GivesOneElement => chunk_of(&[1.0], &[1, 1]),
        }
    }
}

fn mapped(function: OfChunks, extents: Vec<Option<usize>>) -> Result<NodeRef, Error> {
    let op = MapChunk { function: Arc::new(function), dtype: DType::F64, extents };
    node(op, &[&matrix(ROWS, COLUMNS)])
}

#[test]
fn a_function_of_chunks_sees_every_chunk() {
    let found = compute::<f64>(&mapped(OfChunks::Doubles, vec![None, None]).unwrap());
    assert_eq!(found, values().iter().map(|x| x * 2.0).collect::<Vec<f64>>());
}

#[test]
fn a_function_that_fails_or_breaks_its_word_is_named() {
    let outcome = |function| {
        let root = mapped(function, vec![None, None]).unwrap();
        run(&[root], &LocalExecutor::sized(2, 64 << 20)).unwrap_err()
    };
    assert!(matches!(outcome(OfChunks::Fails), Error::Function { .. }));
    assert!(matches!(outcome(OfChunks::GivesOneElement), Error::Declared { .. }));
    assert!(matches!(mapped(OfChunks::Doubles, vec![None]).unwrap_err(), Error::Value(_)));
}

/// Gives each element its position in C order, or a chunk of another shape.
#[derive(Debug)]
enum OfPlaces {
    Positions { columns: usize },
    GivesOneElement,
}

impl Foreign for OfPlaces {
    fn name(&self) -> Option<ForeignName> {
        None
    }

    fn describe(&self) -> String {
        "positions".to_owned()
    }

    fn run(&self, place: Place<'_>, _: &[Chunk]) -> Result<Chunk, Error> {
        match self {
            OfPlaces::Positions { columns } => {
                let (rows, width) = (place.extents[0], place.extents[1]);
                let position = |i: usize, j: usize| (place.origin[0] + i) * columns + place.origin[1] + j;
                let positions: Vec<f64> =
                    (0..rows * width).map(|at| position(at / width, at % width) as f64).collect();
                chunk_of(&positions, place.extents)
            }
            OfPlaces::GivesOneElement => chunk_of(&[1.0], &[1, 1]),
        }
    }
}

fn source(function: OfPlaces, shape: &[usize]) -> NodeRef {
    let source = Source { function: Arc::new(function), shape: shape.to_vec(), dtype: DType::F64, cut: None };
    apply(source, &[])
}

#[test]
fn a_source_is_asked_for_each_place_once() {
    let positions = source(OfPlaces::Positions { columns: 300 }, &[200, 300]);
    let summed = reduce(Fold::Sum, &[1], &positions);
    let expected: Vec<f64> = (0..200).map(|i| (0..300).map(|j| (i * 300 + j) as f64).sum()).collect();
    assert_eq!(compute::<f64>(&summed), expected);
    let job = plan(&[positions], LocalExecutor::sized(2, 64 << 20).limits()).unwrap();
    assert!(1 < job.schedule.order.len(), "one chunk shows nothing about places");
}

#[test]
fn a_source_that_gives_another_shape_is_refused_with_both() {
    let root = source(OfPlaces::GivesOneElement, &[2, 3]);
    let refused = run(&[root], &LocalExecutor::sized(2, 64 << 20)).unwrap_err();
    let expected = Error::Declared {
        function: "positions".to_owned(),
        declared: vec![2, 3],
        dtype: DType::F64,
        found: vec![1, 1],
        found_dtype: DType::F64,
    };
    assert_eq!(refused, expected);
}

/// Gives the number of elements of each chunk.
#[derive(Debug)]
struct Counts {
    rank: usize,
}

impl Foreign for Counts {
    fn name(&self) -> Option<ForeignName> {
        None
    }

    fn describe(&self) -> String {
        "count".to_owned()
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        Ok(Chunk::from_elements(&vec![1; self.rank], &[args[0].len() as i64])?)
    }
}

#[test]
fn a_sink_takes_every_element_once_and_gives_one_number() {
    let sink = |x: &NodeRef, rank| apply(Sink { function: Arc::new(Counts { rank }) }, &[x]);
    assert_eq!(compute::<i64>(&sink(&matrix(ROWS, COLUMNS), 2)), [35]);
    assert_eq!(compute::<i64>(&sink(&vector(101), 1)), [101]);
    assert_eq!(compute::<i64>(&sink(&number(1.0), 0)), [1]);
}

/// The sum of each row of a chunk.
#[derive(Debug)]
struct RowSums;

impl Foreign for RowSums {
    fn name(&self) -> Option<ForeignName> {
        None
    }

    fn describe(&self) -> String {
        "row sums".to_owned()
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let &[rows, columns] = args[0].shape() else { panic!("a chunk of {:?}", args[0].shape()) };
        let elements = args[0].to_vec::<f64>()?;
        let sums: Vec<f64> = elements.chunks(columns).map(|row| row.iter().sum()).collect();
        chunk_of(&sums, &[rows, 1])
    }
}

#[test]
fn a_function_of_whole_rows_is_given_rows_that_are_not_cut() {
    let op = MapChunk { function: Arc::new(RowSums), dtype: DType::F64, extents: vec![None, Some(1)] };
    let sums = apply(op, &[&matrix(ROWS, COLUMNS)]);
    assert_eq!(sums.meta().shape, [ROWS, 1]);
    let expected: Vec<f64> = values().chunks(COLUMNS).map(|row| row.iter().sum()).collect();
    assert_eq!(compute::<f64>(&sums), expected);
}

#[test]
fn sums_have_the_dtype_that_numpy_gives_them() {
    for (from, sum, mean) in [
        (DType::Bool, DType::I64, DType::F64),
        (DType::I8, DType::I64, DType::F64),
        (DType::U8, DType::U64, DType::F64),
        (DType::I64, DType::I64, DType::F64),
        (DType::F16, DType::F16, DType::F16),
        (DType::F32, DType::F32, DType::F32),
        (DType::C64, DType::C64, DType::F32),
        (DType::C128, DType::C128, DType::F64),
    ] {
        let x = apply(Full { shape: vec![3], value: Scalar::Int(1), dtype: from }, &[]);
        assert_eq!(reduce(Fold::Sum, &[0], &x).meta().dtype, sum, "sum of {from}");
        assert_eq!(reduce(Fold::Max, &[0], &x).meta().dtype, from, "maximum of {from}");
        let moment = Moment { axes: vec![0], keepdims: false, ddof: 0.0, root: false };
        assert_eq!(apply(moment, &[&x]).meta().dtype, mean, "variance of {from}");
    }
}

#[test]
fn sums_of_bytes_are_not_bytes() {
    let many = apply(Full { shape: vec![3, 1000], value: Scalar::Int(200), dtype: DType::U8 }, &[]);
    let cut = apply(Rechunk(Chunks::Each(7)), &[&many]);
    assert_eq!(compute::<u64>(&reduce(Fold::Sum, &[1], &cut)), [200_000; 3]);
    let wrapped = apply(Binary(BinaryOp::Add), &[&cut, &cut]);
    assert_eq!(compute::<u64>(&reduce(Fold::Sum, &[1], &wrapped)), [144_000; 3], "400 is 144 as a byte");
}

#[test]
fn an_axis_that_is_not_there_or_a_count_that_is_wrong_is_a_defect() {
    let view = View::permute(&[3, 4], &[1, 0]);
    let refused = node(Viewed { name: "transpose", view }, &[&vector(3)]).unwrap_err();
    assert!(matches!(refused, Error::Internal(_)), "{refused:?}");
    let outcome = run(&[vector(7)], &LocalExecutor::sized(1, 64 << 20)).unwrap();
    let mut torn = outcome.results[0].clone();
    torn.chunks = Arc::new([&torn.chunks[..], &torn.chunks[..1]].concat());
    let refused = node(torn, &[]).unwrap_err();
    assert!(matches!(refused, Error::Internal(_)), "{refused:?}");
}

#[test]
fn orthonormal_and_triangular_factors_multiply_back() {
    let x = matrix(ROWS, COLUMNS);
    let factor = |factor| compute::<f64>(&apply(Factorize(factor), &[&x]));
    let (q, r) = (factor(Factor::QrQ), factor(Factor::QrR));
    assert_eq!((q.len(), r.len()), (ROWS * COLUMNS, COLUMNS * COLUMNS));
    for (at, expected) in values().iter().enumerate() {
        let (i, j) = (at / COLUMNS, at % COLUMNS);
        let back: f64 = (0..COLUMNS).map(|k| q[i * COLUMNS + k] * r[k * COLUMNS + j]).sum();
        assert!((back - expected).abs() < 1e-9, "{at}: {back} {expected}");
    }
    assert!((0..COLUMNS).all(|i| (0..i).all(|j| r[i * COLUMNS + j] == 0.0)), "{r:?}");
}

#[test]
fn programs_are_the_same_however_little_memory_they_have() {
    let x = matrix(60, 50);
    let root = reduce(Fold::Sum, &[0], &apply(Unary(UnaryOp::Square), &[&x]));
    let expected = compute::<f64>(&root);
    for memory in [1 << 20, 4 << 20] {
        let executor = LocalExecutor::sized(1, memory);
        let outcome = executor.execute(plan(from_ref(&root), executor.limits()).unwrap()).unwrap();
        assert_eq!(elements::<f64>(&outcome.results[0]), expected);
        assert!(outcome.metrics.peak_bytes <= memory);
    }
}
