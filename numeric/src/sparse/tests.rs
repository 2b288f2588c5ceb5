//! Sparse matrices that are refused, and places that are stored twice.

use super::*;
use crate::{array, ones};

fn coo(rows: &[i64], columns: &[i64], values: &[f64], chunks: Chunks) -> Result<Sparse> {
    let part = |x: &[i64]| Tensor::from_elements(&[x.len()], x);
    let values = Tensor::from_elements(&[values.len()], values);
    Sparse::from_coo([3, 4], &part(rows), &part(columns), &values, chunks)
}

#[test]
fn places_out_of_range_and_triplets_that_do_not_fit_are_refused() {
    let class = |made: Result<Sparse>| made.unwrap_err().class();
    assert_eq!(class(coo(&[3], &[0], &[1.0], Chunks::Auto)), "ValueError");
    assert_eq!(class(coo(&[0], &[4], &[1.0], Chunks::Auto)), "ValueError");
    assert_eq!(class(coo(&[-1], &[0], &[1.0], Chunks::Auto)), "ValueError");
    assert_eq!(class(coo(&[0, 1], &[0], &[1.0], Chunks::Auto)), "ValueError");
    assert_eq!(class(coo(&[], &[], &[], Chunks::Each(0))), "ValueError");
    let floats = array([0.0]);
    assert_eq!(class(Sparse::from_coo([3, 4], &floats, &floats, &floats, Chunks::Auto)), "TypeError");
    assert_eq!(class(ones(&[3]).to_sparse(Chunks::Auto)), "ValueError");
    assert_eq!(class(Sparse::random([2, 2], 1.5, 0, Chunks::Auto)), "ValueError");
}

#[test]
fn shapes_that_do_not_fit_are_refused_with_both() {
    let a = coo(&[0], &[1], &[1.0], Chunks::Auto).unwrap();
    assert!(a.matmul(&a).unwrap_err().to_string().contains("(3,4) (3,4)"));
    assert_eq!(a.add(&a.transpose()).unwrap_err().class(), "ValueError");
    assert_eq!(a.dot(&ones(&[3])).check().unwrap_err().class(), "ValueError");
    assert_eq!(a.scale(f64::INFINITY).unwrap_err().class(), "ValueError");
    assert_eq!(a.sum(Some(2)).check().unwrap_err().class(), "AxisError");
}

#[test]
fn triplets_at_equal_places_are_added_up_in_any_cut() {
    for chunks in [Chunks::Auto, Chunks::Each(1), Chunks::Each(2), Chunks::PerAxis(vec![3, 1])] {
        let a = coo(&[2, 0, 2, 2], &[1, 3, 1, 0], &[1.0, 2.0, 3.0, 4.0], chunks).unwrap();
        assert_eq!(a.nnz().unwrap(), 3);
        let dense = a.to_dense().to_vec::<f64>().unwrap();
        assert_eq!(dense, [0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 0.0, 4.0, 4.0, 0.0, 0.0]);
        let [ends, columns, values] = a.to_csr().unwrap();
        assert_eq!(ends.to_vec::<i64>().unwrap(), [0, 1, 1, 3]);
        assert_eq!(columns.to_vec::<i64>().unwrap(), [3, 0, 1]);
        assert_eq!(values.to_vec::<f64>().unwrap(), [2.0, 4.0, 4.0]);
        let [ends, rows, _] = a.to_csc().unwrap();
        assert_eq!(ends.to_vec::<i64>().unwrap(), [0, 1, 2, 2, 3]);
        assert_eq!(rows.to_vec::<i64>().unwrap(), [2, 2, 0]);
    }
}
