//! Expressions that cannot be built: the errors that they carry.

use tharsis_numeric::pad::Padding;
use tharsis_numeric::parts::lexsort;
use tharsis_numeric::quantile::Method;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::statistics::{Beyond, Covariance, Spacing};
use tharsis_numeric::{
    Computation, DType, Error, LocalExecutor, Tensor, arange, concatenate, eager, execute, index, ones,
    where_, zeros,
};

#[track_caller]
fn carried(tensor: &Tensor) -> Error {
    tensor.check().err().unwrap_or_else(|| panic!("{tensor:?} carries nothing"))
}

#[test]
fn the_error_names_the_line_that_built_it_and_both_operands() {
    let (a, b) = (ones(&[3, 2]), arange(3));
    let line = line!() + 1;
    let sum = &a + &b;
    let error = carried(&(sum.sqrt() * 2.0).sum(..));
    assert_eq!((error.location().file(), error.location().line()), (file!(), line));
    let operands: Vec<_> =
        error.operands().iter().map(|operand| (operand.shape.clone(), operand.dtype)).collect();
    assert_eq!(operands, [(vec![3, 2], DType::F64), (vec![3], DType::I64)]);
    let text = error.to_string();
    assert!(text.ends_with(&format!("carried.rs:{line}, of float64 (3,2) and int64 (3,))")), "{text}");
}

#[test]
fn methods_made_of_others_blame_the_line_of_the_program() {
    let (line, x) = (line!() + 1, zeros(&[2, 3]));
    let wrong = [
        x.matmul(&x),
        x.dot(&x),
        x.tensordot(&x, &[0], &[1]),
        x.isclose(arange(4), 0.0, 0.0),
        x.float_power(arange(4)),
        x.clip(0.0, arange(4)),
        x.divmod(arange(4)).1,
        x.transpose(&[0, 0]),
        x.moveaxis(0, 5),
        x.get(&index![2]),
        x.take(&[3], 1),
        x.sum(2),
        x.nanmean(2),
        x.argmax([0, 1]),
        x.reshape(&[4]),
        x.squeeze(Some(&[0])),
        x.broadcast_to(&[3, 3]),
        x.cumsum(2),
        x.filter(&x),
        x.compress(&x, None),
        x.sum(0).qr().0,
        x.inv(),
        x.sum(0).svd().2,
        x.sum(0).lu().1,
        x.solve_triangular(&x, true, false),
        x.lstsq(&arange(5), None).rank,
        x.sum(0).cond(),
        x.median(2),
        x.nanmedian(2),
        x.quantile(2.0, .., Method::Linear),
        x.nanquantile(0.5, 2, Method::Linear),
        x.average(&arange(5), 0).0,
        x.cov(Some(&arange(5)), &Covariance::default()),
        x.corrcoef(Some(&arange(5)), true),
        x.gradient(2, &Spacing::Even(1.0), 1),
        x.trapezoid(&Spacing::At(arange(7)), 1),
        x.digitize(&x, false),
        x.interp(&x, &arange(5), Beyond::default()),
        x.pad(&[[1, 1]; 3], &Padding::Edge),
        x.insert(&arange(5), 0.0, 2),
        x.partition(&[7], 0),
        x.argpartition(&[7], 0),
        lexsort(&[&x], 4),
        x.sum(0).eigh(false).1,
        x.invert(),
        x.astype_same_kind(DType::I8),
        x.map_chunk(|chunk: ndarray::ArrayD<f32>| chunk),
        where_(&x, &x, arange(4)),
        concatenate(&[&x, &arange(4)], 0),
        tharsis_numeric::stack(&[&x, &arange(4)], 0),
        tharsis_numeric::fromfunction(&[usize::MAX, 2], |at| at[0].clone()),
        tharsis_numeric::npy::load(std::path::Path::new("/no/such/file.npy")),
    ];
    let mut misplaced = Vec::new();
    for (i, tensor) in wrong.iter().enumerate() {
        let place = carried(tensor).location();
        if place.file() != file!() || !(line..line + 60).contains(&place.line()) {
            misplaced.push((i, place));
        }
    }
    assert!(misplaced.is_empty(), "{misplaced:#?}");
}

#[test]
fn the_first_error_wins() {
    let axis = || ones(&[2]).sum(7);
    let index = || ones(&[2]).get(&index![9]);
    // Operands before the operation, the left one before the right one.
    assert_eq!(carried(&(axis() + index())).class(), "AxisError");
    assert_eq!(carried(&(index() + axis())).class(), "IndexError");
    assert_eq!(carried(&index().reshape(&[77])).class(), "IndexError");
    assert_eq!(carried(&axis().invert().matmul(&index())).class(), "AxisError");
    assert_eq!(carried(&where_(&axis(), index(), 1.0)).class(), "AxisError");
    assert_eq!(carried(&concatenate(&[&ones(&[2]), &index(), &axis()], 0)).class(), "IndexError");
    assert_eq!(carried(&axis().filter(&index())).class(), "AxisError");
    assert_eq!(carried(&(2.0 * axis() - 1)).class(), "AxisError");
    assert_eq!(carried(&axis().clip(index(), 1.0)).class(), "AxisError");
    let (q, r) = index().qr();
    assert_eq!((carried(&q).class(), carried(&r).class()), ("IndexError", "IndexError"));
    assert_eq!(axis().nonzero().unwrap_err().class(), "AxisError");
}

#[test]
fn whatever_looks_at_an_erroneous_tensor_gets_its_error() {
    let wrong = ones(&[2]).sum(7);
    let class = "AxisError";
    assert_eq!(wrong.shape().unwrap_err().class(), class);
    assert_eq!(wrong.dtype().unwrap_err().class(), class);
    assert_eq!(wrong.is_known().unwrap_err().class(), class);
    assert_eq!(wrong.fetch::<f64>().unwrap_err().class(), class);
    assert_eq!(wrong.item().unwrap_err().class(), class);
    assert_eq!(wrong.execute().unwrap_err().class(), class);
    assert_eq!(wrong.explain().unwrap_err().class(), class);
    assert_eq!(wrong.compute_chunk_sizes().unwrap_err().class(), class);
    let local = LocalExecutor::sized(1, 1 << 20);
    assert_eq!(execute(&[&ones(&[2]), &wrong], &local).unwrap_err().class(), class);
    assert_eq!(Computation::of(&[&wrong]).run().unwrap_err().class(), class);
    let text = format!("{wrong:?}");
    assert!(text.starts_with("Tensor(AxisError: axis 7 is out of bounds"), "{text}");
    assert!(wrong.to_html().contains("<th>AxisError</th>"));
}

#[test]
fn errors_keep_class_place_and_operands_as_failures_of_the_engine() {
    use tharsis_types::{Failure, FailureKind};
    let failure = Failure::from(carried(&(ones(&[2]) + ones(&[3]))));
    assert_eq!(failure.kind, FailureKind::InvalidArgument);
    assert!(failure.message.starts_with("ValueError: add: operands could not be broadcast"), "{failure}");
    assert!(failure.message.ends_with("of float64 (2,) and float64 (3,))"), "{failure}");
    let small = LocalExecutor::sized(1, 1 << 10);
    let refused = execute(&[&ones(&[1000, 1000])], &small).unwrap_err();
    assert_eq!(Failure::from(refused).kind, FailureKind::ResourceExhausted);
}

#[test]
fn eager_tensors_carry_what_their_values_refuse() {
    let _eager = eager();
    let line = line!() + 1;
    let factor = (zeros(&[3, 3]) - 1.0).cholesky();
    let error = carried(&(factor.t() + 1.0));
    assert_eq!((error.class(), error.location().line()), ("LinAlgError", line));
}

#[test]
fn operators_take_values_references_and_numbers_on_either_side() {
    let x = || arange(3);
    let values = |tensor: Tensor| tensor.fetch::<i64>().unwrap().into_raw_vec_and_offset().0;
    assert_eq!(values(x() + x()), [0, 2, 4]);
    assert_eq!(values(&x() + x()), [0, 2, 4]);
    assert_eq!(values(x() + &x()), [0, 2, 4]);
    assert_eq!(values(1 - x()), [1, 0, -1]);
    assert_eq!(values(&x() * 2), [0, 2, 4]);
    assert_eq!(values(-x()), [0, -1, -2]);
    assert_eq!(values(!&x()), [-1, -2, -3]);
    assert_eq!(values(x() << 2), [0, 4, 8]);
    assert_eq!(values(&x() >> 1), [0, 0, 1]);
    let mut sum = default_rng(1).integers(0, 1, &[3]);
    sum += x();
    sum *= 3;
    assert_eq!(values(sum), [0, 3, 6]);
}
