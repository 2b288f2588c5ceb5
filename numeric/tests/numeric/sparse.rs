//! Random programs over sparse matrices against a plain evaluator of dense ones, in tiles of all sizes.
//! `THARSIS_PROGRAMS=100000 cargo test -p tharsis-numeric --test numeric sparse` tries more programs.

use crate::seeds::{quarters, seeds};
use serde_json::{Value, json};
use std::path::Path;
use tharsis_numeric::protocol::answer;
use tharsis_numeric::sparse::Sparse;
use tharsis_numeric::{Chunks, DType, LocalExecutor, Tensor, execute};

/// A sequence of numbers from a seed (SplitMix64).
struct Dice(u64);

impl Dice {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) % n as u64) as usize
    }
}

/// The plain evaluator: all elements in a list.
#[derive(Clone, Debug, PartialEq)]
struct Dense {
    shape: [usize; 2],
    elements: Vec<f64>,
}

impl Dense {
    fn of(shape: [usize; 2], element: impl Fn(usize, usize) -> f64) -> Dense {
        let places = (0..shape[0]).flat_map(|i| (0..shape[1]).map(move |k| (i, k)));
        Dense { shape, elements: places.map(|(i, k)| element(i, k)).collect() }
    }

    fn at(&self, i: usize, k: usize) -> f64 {
        self.elements[i * self.shape[1] + k]
    }

    fn product(&self, other: &Dense) -> Dense {
        let depth = self.shape[1];
        Dense::of([self.shape[0], other.shape[1]], |i, k| {
            (0..depth).map(|at| self.at(i, at) * other.at(at, k)).sum()
        })
    }

    fn transposed(&self) -> Dense {
        Dense::of([self.shape[1], self.shape[0]], |i, k| self.at(k, i))
    }

    fn tensor(&self) -> Tensor {
        Tensor::from_elements(&self.shape, &self.elements)
    }
}

const EXTENTS: [usize; 8] = [0, 1, 2, 3, 5, 7, 11, 13];

/// Tiles of one to three elements, uneven ones, or one for all.
fn chunks(dice: &mut Dice, shape: [usize; 2]) -> Chunks {
    let uneven = |extent: usize| if extent < 2 { vec![extent] } else { vec![1, extent - 1] };
    match dice.below(5) {
        0 => Chunks::Auto,
        1 => Chunks::Lengths(shape.iter().map(|&extent| uneven(extent)).collect()),
        each => Chunks::Each(each - 1),
    }
}

/// Small whole numbers, most of them zero: sums and products are exact.
fn matrix(dice: &mut Dice, shape: [usize; 2]) -> Dense {
    let elements = (0..shape[0] * shape[1]).map(|_| match dice.below(4) {
        0 => dice.below(7) as f64 - 3.0,
        _ => 0.0,
    });
    Dense { shape, elements: elements.collect() }
}

/// A sparse matrix, made in one of several ways.
fn sparse(dice: &mut Dice, dense: &Dense) -> Sparse {
    let chunks = chunks(dice, dense.shape);
    if dice.below(2) == 0 {
        return dense.tensor().rechunk(Chunks::Each(1 + dice.below(4))).to_sparse(chunks).unwrap();
    }
    let [_, n] = dense.shape;
    let mut triplets: Vec<(i64, i64, f64)> = Vec::new();
    for (at, &x) in dense.elements.iter().enumerate().filter(|(_, x)| **x != 0.0) {
        let place = ((at / n) as i64, (at % n) as i64);
        // One of two parts of it, which are added up.
        triplets.extend([(place.0, place.1, x + 1.0), (place.0, place.1, -1.0)]);
    }
    let len = triplets.len();
    (1..len).for_each(|at| triplets.swap(at, dice.below(at + 1)));
    let places = |of: fn(&(i64, i64, f64)) -> i64| {
        Tensor::from_elements(&[len], &triplets.iter().map(of).collect::<Vec<_>>())
    };
    let values = Tensor::from_elements(&[len], &triplets.iter().map(|x| x.2).collect::<Vec<_>>());
    Sparse::from_coo(dense.shape, &places(|x| x.0), &places(|x| x.1), &values, chunks).unwrap()
}

/// One step of a program on both sides.
fn step(dice: &mut Dice, a: &Sparse, dense: &Dense) -> (Sparse, Dense) {
    let [m, n] = dense.shape;
    let with = |dice: &mut Dice, f: fn(f64, f64) -> f64, shape: [usize; 2]| {
        let other = matrix(dice, shape);
        let b = sparse(dice, &other);
        (b, Dense::of([m, n], |i, k| f(dense.at(i, k), if shape == [m, n] { other.at(i, k) } else { 0.0 })))
    };
    match dice.below(10) {
        0 => (a.transpose(), dense.transposed()),
        1 => {
            let start = dice.below(m + 1);
            let end = start + dice.below(m + 1 - start);
            (a.rows(start..end), Dense::of([end - start, n], |i, k| dense.at(start + i, k)))
        }
        2 => {
            let extent = EXTENTS[dice.below(EXTENTS.len())];
            let other = matrix(dice, [n, extent]);
            (a.matmul(&sparse(dice, &other)).unwrap(), dense.product(&other))
        }
        3 => (a.scale(2.0).unwrap(), Dense::of([m, n], |i, k| 2.0 * dense.at(i, k))),
        4 => (a.map(|x| x.abs()).unwrap(), Dense::of([m, n], |i, k| dense.at(i, k).abs())),
        5 => {
            let (b, made) = with(dice, |x, y| x + y, [m, n]);
            (a.add(&b).unwrap(), made)
        }
        6 => {
            let (b, made) = with(dice, |x, y| x - y, [m, n]);
            (a.subtract(&b).unwrap().prune(), made)
        }
        7 => {
            let (b, made) = with(dice, |x, y| x * y, [m, n]);
            (a.multiply(&b).unwrap(), made)
        }
        8 => {
            let (b, made) = with(dice, f64::max, [m, n]);
            (a.maximum(&b).unwrap(), made)
        }
        _ => (a.rechunk(chunks(dice, [m, n])).unwrap(), dense.clone()),
    }
}

fn check(seed: u64) {
    let dice = &mut Dice(seed);
    let shape = [EXTENTS[dice.below(EXTENTS.len())], EXTENTS[dice.below(EXTENTS.len())]];
    let mut dense = matrix(dice, shape);
    let mut a = sparse(dice, &dense);
    for _ in 0..dice.below(4) {
        (a, dense) = step(dice, &a, &dense);
    }
    let [m, n] = dense.shape;
    assert_eq!(a.shape(), dense.shape, "seed {seed}");
    let found = |x: &Tensor| x.to_vec::<f64>().unwrap();
    assert_eq!(found(&a.to_dense()), dense.elements, "seed {seed}");
    let is_stored = |x: &&f64| **x != 0.0;
    assert_eq!(
        a.prune().nnz().unwrap(),
        dense.elements.iter().filter(is_stored).count() as u64,
        "seed {seed}"
    );
    let sum = |of: &mut dyn Iterator<Item = f64>| of.sum::<f64>();
    let rows: Vec<f64> = (0..m).map(|i| sum(&mut (0..n).map(|k| dense.at(i, k)))).collect();
    let columns: Vec<f64> = (0..n).map(|k| sum(&mut (0..m).map(|i| dense.at(i, k)))).collect();
    assert_eq!(found(&a.sum(Some(1))), rows, "seed {seed}");
    assert_eq!(found(&a.sum(Some(0))), columns, "seed {seed}");
    assert_eq!(found(&a.sum(None)), [rows.iter().sum::<f64>()], "seed {seed}");
    let right = matrix(dice, [n, 3]);
    let x = right.tensor().rechunk(Chunks::Each(2));
    assert_eq!(found(&a.dot(&x)), dense.product(&right).elements, "seed {seed}");
    let left = matrix(dice, [2, m]);
    assert_eq!(found(&a.dot_left(&left.tensor())), left.product(&dense).elements, "seed {seed}");
    if m * n != 0 {
        let largest = dense.elements.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        assert_eq!(found(&a.max().unwrap()), [largest], "seed {seed}");
    }
}

quarters!(random_programs_are_those_of_dense_matrices_in_all_tiles, |part| {
    seeds(0, [60, 150], part).for_each(check);
});

#[test]
fn every_dtype_is_stored_multiplied_and_given_back() {
    let dense = Dense { shape: [2, 3], elements: vec![0.0, 2.0, 1.0, 3.0, 0.0, 0.0] };
    for dtype in DType::ALL {
        let x = dense.tensor().astype(dtype);
        let a = x.to_sparse(Chunks::Each(2)).unwrap();
        assert_eq!(a.dtype().unwrap(), dtype);
        let same = |a: &Tensor, b: &Tensor| {
            assert_eq!(a.dtype().unwrap(), b.dtype().unwrap());
            assert!(a.array_equal(b, false).item().unwrap().is_true(), "{dtype}");
        };
        same(&a.to_dense(), &x);
        same(&a.matmul(&a.transpose()).unwrap().to_dense(), &x.matmul(&x.t()));
        same(&a.dot(&x.t()), &x.matmul(&x.t()));
        same(&a.add(&a).unwrap().to_dense(), &x.add(&x));
        same(&a.sum(Some(0)), &x.sum(0));
    }
}

#[test]
fn memory_is_in_proportion_to_what_is_stored() {
    // 200 GB as a dense matrix; some 500 000 elements of 12 bytes.
    let size = 160_000;
    let a = Sparse::random([size, size], 2e-5, 11, Chunks::Auto).unwrap();
    let x = tharsis_numeric::ones(&[size]);
    let product = a.matmul(&a).unwrap();
    let sums = [&a.dot(&a.dot(&x)), &product.dot(&x)];
    let executor = LocalExecutor::new(2, 256 << 20).unwrap();
    let (made, metrics) = execute(&sums, &executor).unwrap();
    assert!(metrics.bound_bytes <= 256 << 20, "{}", metrics.bound_bytes);
    assert!(metrics.peak_bytes < 128 << 20, "{}", metrics.peak_bytes);
    assert!(made[0].allclose(&made[1], 1e-9, 1e-9, false).item().unwrap().is_true());
    let stored = a.nnz().unwrap() as f64;
    assert!((stored / (2e-5 * (size * size) as f64) - 1.0).abs() < 0.01, "{stored}");
}

/// A step of a program over sparse matrices, and the same over arrays: operations and arguments behind the
/// matrix so far, which `b` may be a part of.
fn programs(dice: &mut Dice) -> [Value; 2] {
    let (m, n) = (1 + dice.below(4), 1 + dice.below(4));
    let lit = |dice: &mut Dice, m: usize, n: usize| {
        let elements = matrix(dice, [m, n]).elements;
        json!({"lit": elements.chunks(n).collect::<Vec<_>>(), "dtype": "float64"})
    };
    let inputs = json!({"a": lit(dice, m, n), "b": lit(dice, m, n), "square": lit(dice, n, n)});
    let (mut sparse, mut dense) = (vec![json!(["x0", "scipy.sparse.csr_array", [{"$": "a"}]])], Vec::new());
    dense.push(json!(["x0", "np.asarray", [{"$": "a"}]]));
    let count = 1 + dice.below(4);
    for step in 0..count {
        let (x, y) = (json!({"$": format!("x{step}")}), format!("x{}", step + 1));
        let other = |name: &str| json!({"$": name});
        let (of_sparse, of_dense, rest) = match dice.below(9) {
            0 => ("scipy.sparse.add", "np.add", vec![other("b")]),
            1 => ("scipy.sparse.subtract", "np.subtract", vec![other("x0")]),
            2 => ("scipy.sparse.multiply", "np.multiply", vec![other("b")]),
            3 => ("scipy.sparse.multiply", "np.multiply", vec![json!(3)]),
            4 => ("scipy.sparse.maximum", "np.maximum", vec![other("b")]),
            5 => ("scipy.sparse.abs", "np.abs", vec![]),
            6 => ("scipy.sparse.matmul", "np.matmul", vec![other("s")]),
            7 => ("scipy.sparse.power", "np.power", vec![json!(2)]),
            _ => ("scipy.sparse.negative", "np.negative", vec![]),
        };
        let args = |rest: &[Value]| [vec![x.clone()], rest.to_vec()].concat();
        sparse.push(json!([y, of_sparse, args(&rest)]));
        dense.push(json!([y, of_dense, args(&rest)]));
    }
    let last = json!({"$": format!("x{count}")});
    let end = |steps: &mut Vec<Value>, prefix: &str, whole: &str| {
        let kept = if prefix == "scipy.sparse" { "scipy.sparse.csc_array" } else { "np.asarray" };
        steps.insert(0, json!(["s", kept, [{"$": "square"}]]));
        steps.push(json!(["all", whole, [last]]));
        steps.push(json!(["rows", format!("{prefix}.sum"), [last], {"axis": 1}]));
        steps.push(json!(["across", format!("{prefix}.matmul"), [{"$": "a_t"}, last]]));
        steps.push(json!(["nonzero", format!("{prefix}.count_nonzero"), [last]]));
        steps.insert(0, json!(["a_t", "np.transpose", [{"$": "a"}]]));
    };
    end(&mut sparse, "scipy.sparse", "scipy.sparse.toarray");
    end(&mut dense, "np", "np.asarray");
    [sparse, dense]
        .map(|prog| json!({"in": inputs, "prog": prog, "out": ["all", "rows", "across", "nonzero"]}))
}

quarters!(programs_over_sparse_matrices_are_those_over_arrays_in_every_mode, are_those_over_arrays);

fn are_those_over_arrays(part: [u64; 2]) {
    for seed in seeds(0, [40, 100], part) {
        let [sparse, dense] = programs(&mut Dice(seed));
        let wanted = answer(&dense, Path::new("."));
        assert_eq!(wanted["ok"], true, "seed {seed}: {wanted}");
        for (mode, chunks) in
            [("lazy", json!("auto")), ("lazy", json!(1)), ("eager", json!([2, 3])), ("eager", json!("auto"))]
        {
            let mut request = sparse.clone();
            request["ctx"] = json!({"mode": mode, "chunks": chunks});
            let found = answer(&request, Path::new("."));
            assert_eq!(found["out"], wanted["out"], "seed {seed}, {mode}, {chunks}\n{request}\n{found}");
        }
    }
}

#[test]
fn a_sparse_result_is_its_shape_and_its_triplets_in_order() {
    let triplets = r#"{"t": [[3, 1, 2], {"t": [[1, 0, 1], [2, 1, 0]]}]}"#;
    let program = format!(r#"{{"prog": [["a", "scipy.sparse.coo_array", [{triplets}]]], "out": ["a"]}}"#);
    for chunks in [json!("auto"), json!(1), json!(2)] {
        let mut request: Value = serde_json::from_str(&program).unwrap();
        request["ctx"] = json!({"chunks": chunks});
        let reply = answer(&request, Path::new("."));
        let coo = &reply["out"]["a"]["coo"];
        let lit = |part: &str| coo[part]["arr"]["lit"].clone();
        assert_eq!(coo["shape"], json!([2, 3]), "{reply}");
        assert_eq!(
            [lit("row"), lit("col"), lit("data")],
            [json!([0, 1, 1]), json!([1, 0, 2]), json!([1, 2, 3])]
        );
    }
}

#[test]
fn what_is_no_sparse_matrix_is_refused_with_the_class_of_scipy() {
    let class = |step: Value| {
        let request = json!({"in": {"x": {"lit": [1, 0]}}, "prog": [step], "out": ["y"]});
        answer(&request, Path::new("."))["err"]["class"].clone()
    };
    assert_eq!(class(json!(["y", "scipy.sparse.csr_array", [{"$": "x"}]])), "ValueError");
    assert_eq!(class(json!(["y", "scipy.sparse.csr_array", [{"t": [1, {"t": [2]}]}]])), "ValueError");
    assert_eq!(
        class(json!(["y", "scipy.sparse.coo_array", [{"t": [[1], {"t": [[5], [0]]}]}, [2, 2]]])),
        "ValueError"
    );
    assert_eq!(
        class(json!(["y", "scipy.sparse.coo_array", [{"t": [[1], {"t": [[0.5], [0]]}]}, [2, 2]]])),
        "TypeError"
    );
    assert_eq!(class(json!(["y", "scipy.sparse.random_array", [[2, 2], 1.5]])), "ValueError");
    assert_eq!(class(json!(["y", "scipy.sparse.vstack", [[]]])), "NotImplemented");
    let made = json!(["y", "scipy.sparse.eye_array", [2]]);
    let request = json!({"prog": [made, ["z", "np.add", [{"$": "y"}, 1]]], "out": ["z"]});
    assert_eq!(answer(&request, Path::new("."))["err"]["class"], "TypeError");
}
