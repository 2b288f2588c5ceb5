//! Sorting, distinct elements and positions where a line is longer than one task has, and so goes by samples
//! and exchanges: against the standard library's sort.

use tharsis_graph::{Executor, Limits};
use tharsis_numeric::quantile::Method;
use tharsis_numeric::random::default_rng;
use tharsis_numeric::{Chunks, DType, LocalExecutor, Tensor, array, selectors, where_};

/// More than the 2^20 elements that one task sorts.
const COUNT: usize = (1 << 20) + 12_345;

fn executor() -> LocalExecutor {
    LocalExecutor::new(2, 1 << 30).unwrap()
}

fn numbers<T: tharsis_kernels::Element>(x: &Tensor) -> Vec<T> {
    numbers_on(x, &executor())
}

fn numbers_on<T: tharsis_kernels::Element>(x: &Tensor, executor: &LocalExecutor) -> Vec<T> {
    let (made, _) = tharsis_numeric::execute(&[x], executor).unwrap();
    made[0].to_chunk(executor).unwrap().to_vec::<T>().unwrap()
}

/// Numbers with many equal ones, in uneven chunks.
fn few(distinct: i64) -> Tensor {
    default_rng(3).integers(-distinct, distinct, &[COUNT]).rechunk(Chunks::Each(99_991))
}

#[test]
fn a_line_in_many_chunks_is_sorted_and_equal_elements_keep_their_order() {
    for x in [few(3), few(1 << 40), few(1).multiply(0)] {
        let elements = numbers::<i64>(&x);
        let mut order: Vec<i64> = (0..COUNT as i64).collect();
        order.sort_by_key(|&at| elements[at as usize]);
        let sorted: Vec<i64> = order.iter().map(|&at| elements[at as usize]).collect();
        assert!(numbers::<i64>(&x.sort(0)) == sorted, "sorted otherwise");
        assert!(numbers::<i64>(&x.argsort(0)) == order, "positions in another order");
        let mut down: Vec<i64> = (0..COUNT as i64).collect();
        down.sort_by_key(|&at| std::cmp::Reverse(elements[at as usize]));
        assert!(numbers::<i64>(&x.argsort_descending(0)) == down, "descending positions in another order");
    }
}

#[test]
fn floats_of_many_chunks_are_sorted_with_nan_last_and_zeros_in_their_order() {
    let draws = default_rng(4).integers(-40, 40, &[COUNT]).rechunk(Chunks::Each(99_991));
    // Zero draws are negative zeros.
    let x = where_(&draws.equal(5), 0.0, &(draws.astype(DType::F64) * -0.5));
    let x = where_(&draws.equal(9), f64::NAN, &x);
    let mut expected = numbers::<f64>(&x);
    expected.sort_by(|a, b| a.partial_cmp(b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan())));
    let bits = |x: &[f64]| x.iter().map(|x| x.to_bits()).collect::<Vec<_>>();
    assert!(bits(&numbers::<f64>(&x.sort(0))) == bits(&expected), "sorted otherwise");
    let distinct = numbers::<f64>(&x.unique());
    expected.dedup_by(|b, a| a == b || a.is_nan() && b.is_nan());
    assert!(bits(&distinct) == bits(&expected), "{} distinct", distinct.len());
}

#[test]
fn quantiles_of_many_chunks_are_those_of_the_sorted_line() {
    let shares = [0.0, 0.001, 0.25, 0.5, 0.5000001, 0.999, 1.0];
    for x in [few(3), few(1 << 40), few(1).multiply(0), few(1 << 20).reshape(&[1, -1]).ravel()] {
        let mut elements = numbers::<i64>(&x);
        elements.sort_unstable();
        let at = |share: f64| elements[((COUNT - 1) as f64 * share).floor() as usize];
        let lower = numbers::<i64>(&x.quantile(shares, .., Method::Lower));
        assert_eq!(lower, shares.map(at));
        assert_eq!(numbers::<f64>(&x.median(..)), [elements[COUNT / 2] as f64]);
        let without_one = x.get(&[(..COUNT as i64 - 1).into()]);
        let mut rest = numbers::<i64>(&without_one);
        rest.sort_unstable();
        let middle = [rest[COUNT / 2 - 1], rest[COUNT / 2]];
        let expected = (middle[0] as f64 + middle[1] as f64) / 2.0;
        assert_eq!(numbers::<f64>(&without_one.median(..)), [expected]);
    }
    // A NaN anywhere is the quantile, and one that does not count is not.
    let x = few(1 << 40).astype(DType::F64);
    let spoiled = where_(&tharsis_numeric::arange(COUNT).equal(77_777), f64::NAN, &x);
    assert!(numbers::<f64>(&spoiled.quantile(0.25, .., Method::Linear))[0].is_nan());
    assert!(numbers::<f64>(&spoiled.nanmedian(..))[0].is_finite());
    assert!(numbers::<f64>(&x.quantile(0.25, .., Method::Linear))[0].is_finite());
}

#[test]
fn distinct_elements_of_many_chunks_come_with_places_and_counts() {
    let x = few(50);
    let elements = numbers::<i64>(&x);
    let found = x.unique_all(false);
    let values = numbers::<i64>(&found.values);
    assert_eq!(values, (-50..50).collect::<Vec<_>>());
    assert_eq!(numbers::<i64>(&x.unique()), values);
    let (first, counts) = (numbers::<i64>(&found.indices), numbers::<i64>(&found.counts));
    for (at, value) in values.iter().enumerate() {
        assert_eq!(elements.iter().position(|x| x == value), Some(first[at] as usize));
        assert_eq!(elements.iter().filter(|x| *x == value).count(), counts[at] as usize);
    }
    let inverse = numbers::<i64>(&found.inverse_indices);
    assert!(inverse.iter().zip(&elements).all(|(&at, x)| values[at as usize] == *x));
}

#[test]
fn rows_of_many_chunks_are_taken_and_put_by_position() {
    let x = few(1 << 40);
    let elements = numbers::<i64>(&x);
    let positions =
        default_rng(4).integers(-(COUNT as i64), COUNT as i64, &[30_011]).rechunk(Chunks::Each(7_001));
    let places: Vec<usize> =
        numbers::<i64>(&positions).iter().map(|at| at.rem_euclid(COUNT as i64) as usize).collect();
    // With tasks that see all chunks, and with rows that travel.
    let apart = LocalExecutor::within(Limits { reads_in_place: false, ..executor().limits() });
    let on_both = |x: Tensor| {
        let made = numbers::<i64>(&x);
        assert!(numbers_on::<i64>(&x, &apart) == made, "rows that travel are others");
        made
    };
    let taken = on_both(x.take_at(&positions, 0));
    assert!(taken.iter().zip(&places).all(|(x, &at)| *x == elements[at]));
    let values = default_rng(5).integers(0, 1000, &[30_011]);
    let mut expected = elements.clone();
    for (&at, value) in places.iter().zip(numbers::<i64>(&values)) {
        expected[at] = value;
    }
    assert!(numbers::<i64>(&x.set(&selectors![&positions], &values)) == expected, "others were put");
    let rows = x.reshape(&[-1, 1]).broadcast_to(&[COUNT, 2]);
    let pairs = on_both(rows.take_at(&positions, 0));
    assert!(pairs.chunks(2).zip(&places).all(|(pair, &at)| pair == [elements[at], elements[at]]));
    // A row lies in chunks of its own: the tensor that is taken from exists, in columns.
    let kept = rows.rechunk(Chunks::Lengths(vec![vec![COUNT], vec![1, 1]])).execute().unwrap();
    assert!(on_both(kept.take_at(&positions, 0)) == pairs);
}

#[test]
fn positions_out_of_range_are_refused_when_they_are_found() {
    let x = few(10);
    let class = |x: Tensor| x.to_chunk(&executor()).unwrap_err().class();
    assert_eq!(class(x.take_at(&array([COUNT as i64]), 0)), "IndexError");
    assert_eq!(class(tharsis_numeric::arange(5).take_at(&array([-6i64]), 0)), "IndexError");
    assert_eq!(class(tharsis_numeric::arange(5).set(&selectors![array([5i64])], 1)), "IndexError");
}
