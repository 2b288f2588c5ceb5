//! Answers at the borders of ranges: zeros, infinities, numbers whose squares or sums leave the range, and
//! parameters without sense. What is expected is what NumPy and SciPy answer, or what follows from the
//! definition.

use tharsis_numeric::einsum::einsum;
use tharsis_numeric::histogram::{Bins, Histogram, histogramdd};
use tharsis_numeric::random::{Generator, default_rng};
use tharsis_numeric::statistics::{Beyond, Spacing};
use tharsis_numeric::{Chunks, DType, Tensor, array, coordinates, full, zeros};

const INF: f64 = f64::INFINITY;

fn floats(x: &Tensor) -> Vec<f64> {
    x.astype(DType::F64).ravel().to_vec::<f64>().unwrap()
}

fn number(x: &Tensor) -> f64 {
    x.item().unwrap().to_f64()
}

/// Refused with this exception, in these words.
#[track_caller]
fn assert_refused(x: &Tensor, class: &str, words: &str) {
    let error = x.execute().unwrap_err();
    assert_eq!(error.class(), class, "{error}");
    assert!(error.to_string().contains(words), "{error}");
}

fn matrix(rows: usize, elements: &[f64]) -> Tensor {
    Tensor::from_elements(&[rows, elements.len() / rows], elements)
}

#[test]
fn singular_matrices_have_triangular_factors() {
    let zero_column = matrix(2, &[0.0, 1.0, 0.0, 2.0]);
    let wide = matrix(3, &[1.0, 2.0, 3.0, 2.0, 4.0, 6.0, 0.0, 0.0, 5.0]);
    for x in [&zero_column, &wide, &zeros(&[4, 4])] {
        for chunk in [100, 1] {
            let (order, l, u) = x.rechunk(Chunks::Each(chunk)).lu();
            assert_eq!(floats(&l.matmul(&u)), floats(&x.take_at(&order, 0)));
        }
    }
    let (_, l, u) = zero_column.lu();
    assert_eq!((floats(&l), floats(&u)), (vec![1.0, 0.0, 0.0, 1.0], vec![0.0, 1.0, 0.0, 2.0]));
}

#[test]
fn determinants_below_the_normal_numbers_have_a_sign() {
    let of = |x: Tensor| {
        let (sign, log) = x.slogdet();
        (number(&sign), number(&log))
    };
    let (sign, log) = of(matrix(1, &[1e-310]));
    assert!(sign == 1.0 && (log + 713.801).abs() < 0.01, "{sign} {log}");
    let (sign, log) = of(matrix(1, &[-1e-40]).astype(DType::F32));
    assert!(sign == -1.0 && (log + 92.103).abs() < 0.01, "{sign} {log}");
    assert_eq!(of(matrix(1, &[INF])), (1.0, INF));
    let tiny = matrix(2, &[1e-310, 1.0, 1e-310, 2.0]);
    assert!((number(&tiny.det()) / 1e-310 - 1.0).abs() < 1e-9, "{}", number(&tiny.det()));
}

#[test]
fn singular_matrices_have_an_infinite_condition() {
    for x in [zeros(&[2, 2]), matrix(2, &[1.0, 0.0, 0.0, 0.0])] {
        assert_eq!(number(&x.cond()), INF);
    }
    assert_eq!(zeros(&[2, 2]).astype(DType::F32).cond().dtype().unwrap(), DType::F32);
    assert_eq!(number(&matrix(2, &[4.0, 0.0, 0.0, 2.0]).cond()), 2.0);
}

#[test]
fn variances_of_huge_numbers_are_numbers() {
    let x = full(&[4], 1e160, DType::F64);
    assert_eq!((number(&x.var(..)), number(&x.std(..))), (0.0, 0.0));
    let rows = full(&[50, 40], 1e200, DType::F64).rechunk(Chunks::Each(7));
    assert!(floats(&rows.var(0)).iter().chain(&floats(&rows.var_ddof(1, 1.0))).all(|&x| x == 0.0));
    assert!(number(&array([1.0, INF]).var(..)).is_nan());
}

#[test]
fn products_of_halves_are_summed_in_float32() {
    let (a, b) = (array([300.0, 300.0]).astype(DType::F16), array([300.0, -300.0]).astype(DType::F16));
    let found = [a.dot(&b), a.matmul(&b), a.vecdot(&b, -1), einsum("i,i", &[&a, &b])];
    for x in &found {
        assert_eq!((x.dtype().unwrap(), number(x)), (DType::F16, 0.0));
    }
    // The square of 1 + 20 / 1024 is 1 + 40.39 / 1024: 1420 of it are 1476.01, of the nearest half 1475.47.
    let near = full(&[1420], 1.0 + 20.0 / 1024.0, DType::F16);
    assert_eq!(number(&near.dot(&near)), 1476.0);
}

#[test]
fn halves_are_rounded_once() {
    let x = array([1.0 + 2f64.powi(-11) + 2f64.powi(-40), 1.0 + 2f64.powi(-11)]);
    assert_eq!(floats(&x.astype(DType::F16)), [1.0 + 2f64.powi(-10), 1.0]);
}

#[test]
fn numbers_beyond_complex_points_are_real() {
    let unit = array([-1.0]).astype(DType::C128).sqrt();
    let values = array([1.0, 2.0]) + array([1.0, 2.0]) * unit;
    let beyond = Beyond { left: Some(5.0), right: Some(7.0), ..Beyond::default() };
    let found = array([-1.0, 0.5, 9.0, f64::NAN]).interp(&array([0.0, 1.0]), &values, beyond);
    let real = floats(&found.real());
    assert_eq!(real[..3], [5.0, 1.5, 7.0]);
    assert!(real[3].is_nan());
    assert_eq!(floats(&found.imag()), [0.0, 1.5, 0.0, 0.0]);
}

#[test]
fn slopes_of_even_points_leave_the_middle_out() {
    let x = array([1.0, INF, 3.0, 4.0]);
    let found = floats(&x.gradient(0, &Spacing::At(array([0.0, 1.0, 2.0, 3.0])), 1));
    assert_eq!(found, [INF, 1.0, -INF, 1.0]);
    let uneven = array([0.0, 1.0, 4.0, 9.0]).gradient(0, &Spacing::At(array([0.0, 1.0, 3.0, 4.0])), 1);
    // (h1^2 f(x + h2) + (h2^2 - h1^2) f(x) - h2^2 f(x - h1)) / (h1 h2 (h1 + h2)), as NumPy has it.
    let expected = [1.0, 7.0 / 6.0, 23.0 / 6.0, 5.0];
    assert!(floats(&uneven).iter().zip(expected).all(|(a, b)| (a - b).abs() < 1e-14), "{uneven:?}");
}

#[test]
fn bins_narrower_than_the_distance_of_floats_count_as_numpy_does() {
    let column = array([1e16, 1e16, 1e16 + 2.0]);
    let range = Some([1e16, 1e16 + 2.0]);
    let (counts, _) = histogramdd(&[column], &[Bins::Count(10)], &[range], &Histogram::default());
    assert_eq!(floats(&counts), [0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 0.0, 0.0, 0.0, 1.0]);
}

#[test]
fn what_numpy_refuses_is_refused() {
    let largest = array([i64::MAX]);
    assert_refused(&largest.bincount(None, 0), "ValueError", "'list' argument");
    let none = zeros(&[0]);
    let x = array([1.0, 2.0]);
    assert_refused(
        &x.place(&array([true, false]), &none),
        "ValueError",
        "Cannot insert from an empty array!",
    );
    assert_eq!(floats(&x.place(&array([false, false]), &none)), [1.0, 2.0]);
    // Also where it is known only later that there are none, and for a mask that does not fit.
    let none = x.filter(&x.greater(5.0));
    assert_refused(&x.place(&array([true, false]), &none), "ValueError", "Cannot insert from an empty");
    assert_eq!(floats(&x.place(&array([false, false]), &none)), [1.0, 2.0]);
    assert_refused(&x.place(&array([false]), &none), "ValueError", "must be the same size");
    assert_eq!(floats(&x.putmask(&array([true, false]), &none)), [1.0, 2.0]);
    let at = array([0i64]);
    let wide = coordinates::ravel_multi_index(&[&at, &at], &[1 << 40, 1 << 40]);
    assert_refused(&wide, "ValueError", "invalid dims");
    let g = default_rng(7);
    assert_refused(&g.uniform(3.0, 1.0, &[4]), "ValueError", "high - low < 0");
    assert_refused(&g.multinomial(10, &[0.9, 0.9, 0.1], &[2]), "ValueError", "sum(pvals[:-1]) > 1.0");
    let colors = [4_000_000_000_000_000_000; 2];
    let many = g.multivariate_hypergeometric(&colors, 1000, &[8]);
    assert_refused(&many, "ValueError", "sum(colors) must be less than 1000000000.");
    let chances = [0.1; 10];
    assert_eq!(number(&g.multinomial(10, &chances, &[1]).sum(..)), 10.0, "rounding is not refused");
}

#[test]
fn limits_of_distributions_are_reached() {
    /// Draws of a shape.
    type Draw = fn(&Generator, &[usize]) -> Tensor;

    let g = default_rng(7);
    let draws: [(&str, Draw, f64); 8] = [
        ("gamma", |g, n| g.gamma(INF, 1.0, n), INF),
        ("standard_gamma", |g, n| g.standard_gamma(INF, n), INF),
        ("chisquare", |g, n| g.chisquare(INF, n), INF),
        ("noncentral_chisquare", |g, n| g.noncentral_chisquare(INF, 1.0, n), INF),
        ("negative_binomial", |g, n| g.negative_binomial(INF, 1.0, n), 0.0),
        ("weibull", |g, n| g.weibull(0.0, n), 0.0),
        ("dirichlet", |g, n| g.dirichlet(&[0.0, 0.0], n), 0.0),
        ("uniform", |g, n| g.uniform(2.0, 2.0, n), 2.0),
    ];
    for (name, draw, expected) in draws {
        assert!(floats(&draw(&g, &[5])).iter().all(|&x| x == expected), "{name}");
    }
    for x in [g.standard_t(INF, &[5]), g.beta(INF, 1.0, &[5]), g.f(INF, 1.0, &[5])] {
        assert!(floats(&x).iter().all(|x| x.is_nan()));
    }
}

#[test]
fn narrow_ranges_step_by_the_difference_of_their_first_elements() {
    let program = serde_json::json!([
        ["r", "np.arange", [0, 1000, 0.1], {"dtype": "float32"}],
        ["t", "np.take", [{"$": "r"}, [1, 9]], {}],
        ["s", "np.astype", [{"$": "t"}, "float64"], {}],
    ]);
    let request = serde_json::json!({"prog": program, "out": ["s"]});
    let reply = tharsis_numeric::protocol::answer(&request, std::path::Path::new("."));
    // Nine times the float32 next to 0.1, in float32, is not the one next to 0.9.
    let expected = [f64::from(0.1f32), f64::from(9.0 * 0.1f32)];
    assert_ne!(expected[1], f64::from(0.9f32));
    assert_eq!(reply["out"]["s"]["arr"]["lit"], serde_json::json!(expected), "{reply}");
}

#[test]
fn weights_that_sum_to_zero_are_a_division_by_zero() {
    let (mean, sum) = array([1.0, 2.0]).average(&array([1.0, -1.0]), ..);
    for x in [mean, sum] {
        assert_refused(&x, "ZeroDivisionError", "Weights sum to zero, can't be normalized");
    }
}

#[test]
fn integers_of_a_wide_range_are_equally_likely() {
    // Of 3 * 2^62 numbers.
    let x = default_rng(7).integers(i64::MIN, 1 << 62, &[30_000]);
    let rest = floats(&x.remainder(3));
    for value in [0.0, 1.0, 2.0] {
        let count = rest.iter().filter(|&&x| x == value).count() as f64;
        assert!((count - 10_000.0).abs() < 5.0 * 81.7, "{value}: {count}");
    }
}

#[test]
fn tiny_chances_are_chosen_before_impossible_ones() {
    let p = array([0.0, 1.0, 1e-310]);
    for seed in 0..20 {
        let chosen = default_rng(seed).choice_weighted(&p, &[2], false).sort(0);
        assert_eq!(floats(&chosen), [1.0, 2.0]);
    }
}
