//! Groups give the same results as their steps, to the bit, and the same warnings.

use super::*;
use crate::chunk::Chunk;
use crate::copies::{COUNT, block, compare_program};
use crate::dtype::DType;
use crate::evaluate::Place;
use crate::fold::Fold;
use crate::program::{IndexForm, IndexMap, Output, Program, Step, StepOp};
use crate::random::Key;
use crate::scalar::Scalar;
use crate::ufunc::{BinaryOp, UnaryOp};

const UNARY: [UnaryOp; 6] = [
    UnaryOp::Absolute,
    UnaryOp::Negative,
    UnaryOp::Reciprocal,
    UnaryOp::Sqrt,
    UnaryOp::Square,
    // Not part of a group: it stands between two.
    UnaryOp::Exp,
];
const BINARY: [BinaryOp; 7] = [
    BinaryOp::Add,
    BinaryOp::Subtract,
    BinaryOp::Subtract,
    BinaryOp::Multiply,
    BinaryOp::Divide,
    BinaryOp::Maximum,
    BinaryOp::Minimum,
];

struct Draw(Key, u64);

impl Draw {
    fn below(&mut self, n: usize) -> usize {
        self.1 += 1;
        (self.0.bits(self.1) % n as u64) as usize
    }

    fn of<T: Copy>(&mut self, all: &[T]) -> T {
        all[self.below(all.len())]
    }
}

/// Steps over two blocks of each dtype, random numbers, positions and constants.
fn program(draw: &mut Draw, shape: &[usize]) -> Program {
    let step = |op, dtype| Step { op, dtype, trailing: vec![] };
    // Rows of another matrix: with several of them, the index goes in several runs.
    let width = shape[1] as i64;
    let wide = if draw.below(3) == 0 { width + 3 } else { width };
    let form = || IndexForm { offset: 5, strides: vec![wide, 1] };
    let index = |map| step(StepOp::Index { index: form(), map }, DType::F64);
    let mut steps: Vec<Step> = (0..4)
        .map(|input| step(StepOp::Load { input }, if input < 2 { DType::F64 } else { DType::F32 }))
        .collect();
    steps.push(index(IndexMap::Uniform(Key::new(1, 0))));
    steps.push(index(IndexMap::Uniform(Key::new(2, 0))));
    steps.push(index(IndexMap::OpenUnit(Key::new(3, 0))));
    steps.push(index(IndexMap::Ramp { start: 0.5, step: -0.25 }));
    for x in [0.0, 3.0, 1e200] {
        steps.push(step(StepOp::Const(Scalar::Float(x)), DType::F64));
        steps.push(step(StepOp::Const(Scalar::Float(x.min(1e30))), DType::F32));
    }
    for _ in 0..draw.below(9) + 2 {
        let a = if draw.below(3) == 0 { draw.below(steps.len()) } else { steps.len() - 1 - draw.below(3) };
        let dtype = steps[a].dtype;
        let same: Vec<usize> = (0..steps.len()).filter(|&i| steps[i].dtype == dtype).collect();
        let b = draw.of(&same);
        let other = if dtype == DType::F32 { DType::F64 } else { DType::F32 };
        let new = match draw.below(7) {
            0 => step(StepOp::Cast(a), other),
            1 => step(StepOp::Unary(draw.of(&UNARY), a), dtype),
            2 => step(StepOp::Binary(draw.of(&BINARY), b, a), dtype),
            // Sums and products with constants are chains, whose source may be of the group itself.
            3 | 4 => {
                let (op, last) = (draw.of(&[BinaryOp::Add, BinaryOp::Multiply]), steps.len() - 1);
                let constant = draw.of(&constants(&steps, steps[last].dtype));
                step(StepOp::Binary(op, last, constant), steps[last].dtype)
            }
            _ => step(StepOp::Binary(draw.of(&BINARY), a, b), dtype),
        };
        steps.push(new);
    }
    let last = steps.len() - 1;
    let mut outputs = vec![match draw.below(5) {
        0 => Output::Store(last),
        1 if steps[last].dtype == DType::F64 => {
            Output::Fold { fold: Fold::Sum, args: vec![last], axes: vec![0, 1] }
        }
        2 => Output::Fold { fold: Fold::Max, args: vec![last], axes: vec![0] },
        3 => Output::Fold { fold: Fold::Min, args: vec![last], axes: vec![0, 1] },
        _ => Output::Fold { fold: Fold::Max, args: vec![last], axes: vec![0, 1] },
    }];
    if draw.below(4) == 0 {
        outputs.push(Output::Store(last - 1));
    }
    Program { steps, outputs }
}

/// The constants of a dtype.
fn constants(steps: &[Step], dtype: DType) -> Vec<usize> {
    let is_constant = |&i: &usize| steps[i].dtype == dtype && matches!(steps[i].op, StepOp::Const(_));
    (0..steps.len()).filter(is_constant).collect()
}

/// Random numbers, in some blocks with values that raise warnings.
fn input(draw: &mut Draw, dtype: DType, shape: &[usize]) -> Chunk {
    let odd = [f64::NAN, f64::INFINITY, -0.0, 0.0, -1e300, 1e300];
    let is_odd = draw.below(3) == 0;
    let elements: Vec<f64> =
        (0..shape.iter().product())
            .map(|i: usize| {
                if is_odd && i % 977 == 500 {
                    draw.of(&odd)
                } else {
                    (draw.below(2000) as f64 - 500.0) * 0.01
                }
            })
            .collect();
    match dtype {
        DType::F32 => Chunk::from_elements(shape, &elements.iter().map(|&x| x as f32).collect::<Vec<_>>()),
        _ => Chunk::from_elements(shape, &elements),
    }
    .expect("a chunk of its shape")
}

/// The bits of all values. All NaN count as equal: of two NaN, the processor chooses one.
fn bits(chunks: &[Chunk]) -> Vec<Vec<u64>> {
    let of = |x: f64| if x.is_nan() { f64::NAN.to_bits() } else { x.to_bits() };
    let all = |chunk: &Chunk| match chunk.dtype() {
        DType::F32 => chunk.to_vec::<f32>().map(|v| v.iter().map(|&x| of(x.into())).collect()),
        _ => chunk.to_vec::<f64>().map(|v| v.iter().map(|&x| of(x)).collect()),
    };
    chunks.iter().map(|chunk| all(chunk).expect("floats")).collect()
}

#[test]
fn groups_do_what_their_steps_do_and_warn_of_the_same() {
    let mut draw = Draw(Key::new(77, 0), 0);
    let (mut grouped, mut warned) = (0, 0);
    for round in 0..600 {
        let shape = draw.of(&[[1, 600], [3, 1000], [40, 64], [7, 333], [1, 4100]]);
        let program = program(&mut draw, &shape);
        let inputs: Vec<Chunk> = [DType::F64, DType::F64, DType::F32, DType::F32]
            .map(|dtype| input(&mut draw, dtype, &shape))
            .to_vec();
        let place = Place { origin: &[0, 0], extents: &shape };
        let compiled = Compiled::new(program).expect("a sound program");
        let alone = Compiled { groups: Vec::new(), ..compiled.clone() };
        let (mut first, mut second) = (Scratch::new(), Scratch::new());
        let found = compiled.run(place, &inputs, &mut first).expect("it runs");
        let expected = alone.run(place, &inputs, &mut second).expect("it runs");
        for (found, expected) in bits(&found).iter().zip(bits(&expected)) {
            let differs = found.iter().zip(&expected).position(|(a, b)| a != b);
            assert_eq!(differs, None, "round {round}: {:#?}", compiled.program);
        }
        let warnings = first.take_warnings();
        assert_eq!(warnings, second.take_warnings(), "round {round}: {:#?}", compiled.program);
        grouped += usize::from(!compiled.groups.is_empty());
        warned += usize::from(!warnings.is_empty());
    }
    assert!(300 < grouped && 50 < warned && warned < 500, "{grouped} with groups, {warned} with warnings");
}

#[test]
fn a_chain_reads_a_member_of_its_group() {
    let step = |op, dtype| Step { op, dtype, trailing: vec![] };
    let constant = |x| step(StepOp::Const(Scalar::Float(x)), DType::F64);
    let binary = |op, a, b| step(StepOp::Binary(op, a, b), DType::F64);
    let steps = vec![
        step(StepOp::Load { input: 0 }, DType::F64),
        step(StepOp::Load { input: 1 }, DType::F64),
        constant(0.1),
        constant(7.3),
        constant(5.0),
        binary(BinaryOp::Add, 0, 1),
        binary(BinaryOp::Multiply, 5, 2),
        binary(BinaryOp::Add, 6, 3),
        binary(BinaryOp::Subtract, 7, 4),
    ];
    let compiled =
        Compiled::new(Program { steps, outputs: vec![Output::Store(8)] }).expect("a sound program");
    assert!(compiled.program.steps.iter().any(|step| matches!(step.op, StepOp::Chain { .. })));
    let numbers: Vec<f64> = (0..2000).map(f64::from).collect();
    let inputs = [0, 1].map(|_| Chunk::from_elements(&[2000], &numbers).expect("a chunk"));
    let place = Place { origin: &[0], extents: &[2000] };
    let made = compiled.run(place, &inputs, &mut Scratch::new()).expect("it runs");
    let found = made[0].to_vec::<f64>().expect("floats");
    let expected: Vec<f64> = numbers.iter().map(|x| ((x + x) * 0.1 + 7.3) - 5.0).collect();
    assert_eq!(found, expected);
}

#[test]
#[ignore = "a measurement; say --ignored"]
fn copies_of_tiles() {
    use BinaryOp::{Add, Divide, Maximum, Minimum, Multiply, Subtract};
    let (binary, unary) = (StepOp::Binary, StepOp::Unary);
    let index = IndexForm { offset: 0, strides: vec![1] };
    let uniform = StepOp::Index { index, map: IndexMap::Uniform(Key::new(1, 0)) };
    // Steps 0 and 1 are the blocks, the first with the larger numbers.
    let products = vec![binary(Subtract, 0, 1), binary(Multiply, 2, 0), binary(Add, 3, 1)];
    let jobs = [
        ("tiles: products", DType::F64, Some(Fold::Sum), products.clone()),
        ("tiles: products, stored", DType::F64, None, products.clone()),
        ("tiles: products of float32", DType::F32, Some(Fold::Max), products),
        (
            "tiles: quotients and roots",
            DType::F64,
            Some(Fold::Sum),
            vec![binary(Subtract, 0, 1), unary(UnaryOp::Sqrt, 2), binary(Divide, 3, 0)],
        ),
        (
            "tiles: exponentials",
            DType::F64,
            Some(Fold::Sum),
            vec![binary(Subtract, 0, 1), unary(UnaryOp::Exp, 2), binary(Add, 3, 1)],
        ),
        (
            "tiles: extremes",
            DType::F64,
            Some(Fold::Min),
            vec![binary(Maximum, 0, 1), binary(Minimum, 2, 0), binary(Subtract, 3, 1)],
        ),
        ("tiles: random numbers", DType::F64, Some(Fold::Sum), vec![uniform, binary(Add, 0, 2)]),
    ];
    for (name, dtype, fold, ops) in jobs {
        let loads = [0, 1].map(|input| StepOp::Load { input });
        let steps = loads.into_iter().chain(ops).map(|op| Step { op, dtype, trailing: vec![] });
        let steps: Vec<Step> = steps.collect();
        let last = steps.len() - 1;
        let output =
            fold.map_or(Output::Store(last), |fold| Output::Fold { fold, args: vec![last], axes: vec![0] });
        let compiled = Compiled::new(Program { steps, outputs: vec![output] }).expect("a sound program");
        assert_eq!(compiled.groups.len(), 1, "{name}");
        let inputs = [block(dtype, 1.0, 2.0), block(dtype, 0.25, 0.75)];
        compare_program(name, &[COUNT], &inputs, &compiled);
    }
}
