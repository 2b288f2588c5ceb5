//! Programs of several operations against a plain evaluator: single operations can be right, and two in a row
//! wrong.
//!
//! `THARSIS_SEED=.. cargo test -p tharsis-numeric --test numeric programs` tries programs from a seed on,
//! which a failure prints. `THARSIS_PROGRAMS=100000` tries more of them.

mod compare;
mod generate;
mod plain;
mod program;

use crate::seeds::{quarters, seeds};
use compare::{is_equal, plain_of};
use plain::{Kind, Plain};
use program::{REDUCTIONS, Step};
use tharsis_numeric::select::UNKNOWN;
use tharsis_numeric::{Chunks, LocalExecutor, Tensor, execute};
use tharsis_trials::is_long;

/// Results of a program, or the reason for which it cannot run.
fn run(steps: &[Step], roots: &[usize], eager: bool) -> Result<Vec<Plain>, String> {
    let _eager = eager.then(tharsis_numeric::eager);
    let mut tensors: Vec<Tensor> = Vec::new();
    for step in steps {
        let tensor = step.tensor(&tensors);
        tensor.check().map_err(|error| format!("{step:?}: {error}"))?;
        tensors.push(tensor);
    }
    let executor = LocalExecutor::new(2, 1 << 30).unwrap();
    let wanted: Vec<&Tensor> = roots.iter().map(|&root| &tensors[root]).collect();
    let (results, metrics) = execute(&wanted, &executor).map_err(|error| error.to_string())?;
    assert!(metrics.peak_bytes <= metrics.bound_bytes, "over the bound: {metrics:?} by {steps:#?}");
    Ok(results.iter().map(|result| plain_of(&result.to_chunk(&executor).unwrap())).collect())
}

/// The steps that a value depends on, renumbered.
fn cone(steps: &[Step], root: usize) -> Vec<(usize, &Step)> {
    let mut needed = vec![false; steps.len()];
    needed[root] = true;
    for at in (0..=root).rev().filter(|&at| needed[at]).collect::<Vec<_>>() {
        let mut ahead = vec![at];
        while let Some(at) = ahead.pop() {
            needed[at] = true;
            ahead.extend(steps[at].args());
        }
    }
    steps.iter().enumerate().filter(|(at, _)| needed[*at]).collect()
}

/// Runs a program lazily and eagerly, and compares its last value and another one.
fn check(seed: u64, masks: bool) {
    let (steps, values) = generate::program(seed, masks);
    let last = steps.len() - 1;
    let roots = [last, generate::Dice::new(seed).below(steps.len())];
    for eager in [false, true] {
        let found = match run(&steps, &roots, eager) {
            Ok(found) => found,
            Err(error) => panic!("seed {seed}, eager {eager}: {error}\n{steps:#?}"),
        };
        for (root, found) in roots.into_iter().zip(found) {
            let expected = &values[root];
            assert!(
                is_equal(&found, expected),
                "seed {seed}, eager {eager}\nexpected {expected:?}\n   found {found:?}\n{:#?}",
                cone(&steps, root)
            );
        }
    }
}

quarters!(random_programs_give_what_the_plain_evaluator_gives, |part| {
    seeds(0, [2_000, 6_000], part).for_each(|seed| check(seed, false));
});

quarters!(random_programs_with_masks_give_what_the_plain_evaluator_gives, |part| {
    seeds(1_000_000, [1_000, 3_000], part).for_each(|seed| check(seed, true));
});

quarters!(two_reductions_in_a_row_give_what_the_plain_evaluator_gives, two_reductions_in_a_row);

/// Every pair of reductions one after the other, over every axis and in every chunking of small shapes. A
/// usual run takes a third of them by lot, the same ones each time: every pair with some axes, chunks and
/// shapes.
fn two_reductions_in_a_row([part, parts]: [u64; 2]) {
    let shapes: &[&[usize]] = &[&[2, 2, 2], &[4, 4, 4], &[3, 2, 2], &[2, 3, 4], &[5, 3, 2], &[2, 3, 2, 2]];
    let mut number = 0;
    for shape in shapes {
        let data = (0..plain::size(shape)).map(|i| (i * 7 % 5) as f64 - 1.0).collect();
        let input = Plain { kind: Kind::Int, shape: shape.to_vec(), data };
        for chunks in [None, Some(Chunks::Each(1)), Some(Chunks::Each(2))] {
            let input = Step::Input { plain: input.clone(), chunks };
            for (first, second) in REDUCTIONS.iter().flat_map(|a| REDUCTIONS.map(|b| (*a, b))) {
                for (axis, next) in (0..shape.len()).flat_map(|a| (0..shape.len() - 1).map(move |b| (a, b))) {
                    number += 1;
                    let is_tried = is_long() || generate::Dice::new(number).below(3) == 0;
                    if number % parts != part || !is_tried {
                        continue;
                    }
                    let one = Step::Reduce { with: first, of: 0, axes: vec![axis], keepdims: false };
                    let two = Step::Reduce { with: second, of: 1, axes: vec![next], keepdims: false };
                    check_pair(vec![input.clone(), one, two], second);
                }
            }
        }
    }
}

fn check_pair(steps: Vec<Step>, second: program::Reduction) {
    let mut values: Vec<Plain> = Vec::new();
    for step in &steps[..2] {
        values.push(step.plain(&values));
    }
    let is_vague = steps[1].rounds() && steps[2].needs_exact();
    if is_vague || !second.takes(values[1].kind, &values[1].shape, &[0]) {
        return;
    }
    values.push(steps[2].plain(&values));
    let found = run(&steps, &[2], false).unwrap();
    assert!(is_equal(&found[0], &values[2]), "expected {:?}, found {:?}\n{steps:#?}", values[2], found[0]);
}

#[test]
fn unknown_sizes_are_known_in_the_end() {
    let x = Tensor::from_elements(&[4], &[1.0, 2.0, 3.0, 4.0]).rechunk(Chunks::PerAxis(vec![1]));
    let chosen = x.filter(&x.greater(2.0));
    assert_eq!(chosen.shape().unwrap(), [UNKNOWN]);
    let executor = LocalExecutor::new(2, 1 << 30).unwrap();
    assert_eq!(plain_of(&chosen.add(1.0).to_chunk(&executor).unwrap()).data, [4.0, 5.0]);
}
