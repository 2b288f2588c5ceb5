//! Shapes: broadcasting, axes, sizes.

use crate::error::Error;
pub use crate::extent::{UNKNOWN, agree, is_known};

/// The most axes an array may have, as in NumPy.
pub const RANK_MAX: usize = 64;
/// The most elements a tensor may have: positions are counted in signed 64-bit numbers.
pub const ELEMENTS_MAX: u64 = 1 << 62;

/// Refuses a shape with unknown extents, on behalf of `function`.
///
/// # Errors
/// `UnknownSize`.
pub fn require_known(function: &'static str, shape: &[usize]) -> Result<(), Error> {
    if is_known(shape) { Ok(()) } else { Err(Error::UnknownSize { function, shape: shape.to_vec() }) }
}

/// As [`check_shape`], of the extents that are known.
///
/// # Errors
/// As [`check_shape`].
pub fn check_known(shape: &[usize]) -> Result<(), Error> {
    let known = |&extent: &usize| if extent == UNKNOWN { 1 } else { extent };
    check_shape(&shape.iter().map(known).collect::<Vec<_>>())
}

/// Checks that a shape has an acceptable rank and number of elements.
///
/// # Errors
/// `Value` beyond 64 axes or 2^62 elements.
pub fn check_shape(shape: &[usize]) -> Result<(), Error> {
    if RANK_MAX < shape.len() {
        return Err(Error::Value(format!(
            "maximum supported dimension for an array is {RANK_MAX}, found {}",
            shape.len()
        )));
    }
    let mut nonzero = shape.iter().filter(|&&extent| extent != 0);
    let count = nonzero.try_fold(1u64, |count, &extent| count.checked_mul(extent as u64));
    match count {
        Some(count) if count <= ELEMENTS_MAX => Ok(()),
        _ => Err(Error::Value(format!("array of shape {shape:?} is too big: more than 2^62 elements"))),
    }
}

/// The shape that all of `shapes` broadcast to.
///
/// # Errors
/// `Broadcast` naming `function` and the shapes.
pub fn broadcast(function: &'static str, shapes: &[&[usize]]) -> Result<Vec<usize>, Error> {
    let rank = shapes.iter().map(|shape| shape.len()).max().unwrap_or(0);
    let mut out = vec![1; rank];
    for shape in shapes {
        for (back, &extent) in shape.iter().rev().enumerate() {
            let held = &mut out[rank - 1 - back];
            if *held == 1 || (*held == UNKNOWN && extent != 1) {
                *held = extent;
            } else if extent == UNKNOWN {
                // Two extents that are not 1 must be equal.
            } else if extent != 1 && *held != extent {
                let shapes = shapes.iter().map(|shape| shape.to_vec()).collect();
                return Err(Error::Broadcast { function, shapes, axis: back + 1 });
            }
        }
    }
    check_known(&out)?;
    assert!(shapes.iter().all(|shape| shape.len() <= out.len()), "a shape lost axes");
    Ok(out)
}

/// `axis` counted from the front.
///
/// # Errors
/// `Axis` if there is no such axis.
pub fn normalize_axis(axis: i64, rank: usize) -> Result<usize, Error> {
    let from_front = if axis < 0 { axis + rank as i64 } else { axis };
    if 0 <= from_front && from_front < rank as i64 {
        Ok(from_front as usize)
    } else {
        Err(Error::Axis { axis, rank })
    }
}

/// Axes counted from the front, ascending; all of them if none are given.
///
/// # Errors
/// `Axis` or `RepeatedAxis`.
pub fn normalize_axes(axes: Option<&[i64]>, rank: usize) -> Result<Vec<usize>, Error> {
    let Some(axes) = axes else { return Ok((0..rank).collect()) };
    let mut normal = Vec::with_capacity(axes.len());
    for &axis in axes {
        let at = normalize_axis(axis, rank)?;
        if normal.contains(&at) {
            return Err(Error::RepeatedAxis { axis });
        }
        normal.push(at);
    }
    normal.sort_unstable();
    assert!(normal.len() <= rank, "more axes than there are");
    Ok(normal)
}

/// Number of elements of a shape; saturates, so that an unknown extent gives the largest number.
pub fn element_count(shape: &[usize]) -> u64 {
    if shape.contains(&0) {
        return 0;
    }
    shape.iter().fold(1, |count: u64, &extent| count.saturating_mul(extent as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_broadcast_from_the_last_axis() {
        assert_eq!(broadcast("add", &[&[3, 1], &[4]]), Ok(vec![3, 4]));
        assert_eq!(broadcast("add", &[&[], &[0]]), Ok(vec![0]));
        assert_eq!(broadcast("add", &[&[1], &[0]]), Ok(vec![0]));
    }

    #[test]
    fn unknown_extents_fit_whatever_they_may_turn_out_to_be() {
        assert_eq!(broadcast("add", &[&[UNKNOWN], &[1]]), Ok(vec![UNKNOWN]));
        assert_eq!(broadcast("add", &[&[UNKNOWN], &[5]]), Ok(vec![5]));
        assert_eq!(broadcast("add", &[&[5, 1], &[UNKNOWN]]), Ok(vec![5, UNKNOWN]));
        assert_eq!(broadcast("add", &[&[1], &[UNKNOWN], &[7]]), Ok(vec![7]));
        assert!(broadcast("add", &[&[2], &[UNKNOWN], &[7]]).is_err());
        assert!(require_known("reshape", &[3, UNKNOWN]).unwrap_err().to_string().contains("(3,?)"));
    }

    #[test]
    fn clashing_shapes_are_named() {
        let error = broadcast("add", &[&[3, 2], &[3]]).unwrap_err();
        assert!(error.to_string().contains("(3,2) (3,)"), "{error}");
    }

    #[test]
    fn absurd_sizes_are_refused_before_any_work() {
        assert!(check_shape(&[usize::MAX, 2]).is_err());
        assert!(check_shape(&[1; 65]).is_err());
        assert!(check_shape(&[0, usize::MAX]).is_err());
    }

    #[test]
    fn axes_are_counted_from_either_end() {
        assert_eq!((normalize_axis(0, 3), normalize_axis(-1, 3)), (Ok(0), Ok(2)));
        for axis in [3, -4, i64::MIN, i64::MAX] {
            assert_eq!(normalize_axis(axis, 3), Err(Error::Axis { axis, rank: 3 }));
        }
        assert!(normalize_axis(0, 0).is_err());
    }

    #[test]
    fn axes_are_all_of_them_or_each_once() {
        assert_eq!(normalize_axes(None, 3), Ok(vec![0, 1, 2]));
        assert_eq!(normalize_axes(Some(&[-1, 0]), 3), Ok(vec![0, 2]));
        assert_eq!(normalize_axes(Some(&[2, -1]), 3), Err(Error::RepeatedAxis { axis: -1 }));
        assert_eq!(normalize_axes(Some(&[]), 3), Ok(vec![]));
    }

    #[test]
    fn no_extent_of_zero_leaves_an_element() {
        assert_eq!(element_count(&[]), 1);
        assert_eq!(element_count(&[2, 3]), 6);
        assert_eq!(element_count(&[usize::MAX, usize::MAX, 0]), 0);
        assert_eq!(element_count(&[usize::MAX, 2]), u64::MAX, "a count stops at the largest number");
    }

    #[test]
    fn more_axes_than_numpy_has_are_refused() {
        assert!(check_shape(&[1; RANK_MAX]).is_ok());
        let refused = check_shape(&[1; RANK_MAX + 1]).unwrap_err().to_string();
        assert!(refused.contains("64") && refused.contains("65"), "{refused}");
    }

    #[test]
    fn what_needs_a_size_names_itself() {
        assert!(require_known("sort", &[1, 2]).is_ok());
        let shape = vec![UNKNOWN, 2];
        assert_eq!(require_known("sort", &shape), Err(Error::UnknownSize { function: "sort", shape }));
    }

    #[test]
    fn extents_agree_where_both_are_known() {
        assert!(agree(3, 3) && agree(3, UNKNOWN) && agree(UNKNOWN, 3));
        assert!(!agree(3, 4));
    }

    #[test]
    fn broadcasting_is_the_same_in_any_order() {
        let shapes: [&[usize]; 4] = [&[5, 1, 3], &[4, 1], &[3], &[]];
        let expected = Ok(vec![5, 4, 3]);
        assert_eq!(broadcast("add", &shapes), expected);
        assert_eq!(broadcast("add", &[shapes[3], shapes[2], shapes[1], shapes[0]]), expected);
    }
}
