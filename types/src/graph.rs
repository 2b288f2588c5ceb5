//! Graphs: tasks that are submitted together, as one list of steps.
//!
//! A step names its class, the bytes of its arguments and its inputs: outputs of earlier steps, or references
//! of the graph. So a graph costs a few bytes a task, and every graph that can be written down is free of
//! circles. A graph is sent in parts, each with the next of its steps.

use crate::{Dependency, RefId, TaskId};

/// Steps of one graph.
pub const GRAPH_STEPS_MAX: usize = 8_000_000;
/// Inputs of all steps of one graph.
pub const GRAPH_INPUTS_MAX: usize = 1 << 30;
/// Bytes of the arguments by value of all steps of one graph.
pub const GRAPH_PAYLOAD_BYTES_MAX: usize = 1 << 30;

/// A part of a graph: the next of its steps.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GraphPart {
    /// Number of the first step.
    pub first: u32,
    /// Whether no part follows.
    pub is_last: bool,
    /// References that steps from here on may name by number, behind those of earlier parts.
    pub references: Vec<RefId>,
    /// The steps.
    pub steps: Vec<GraphStep>,
    /// The inputs of all steps, in the order of the steps.
    pub inputs: Vec<GraphInput>,
    /// The arguments by value of all steps, one after the other.
    pub payload: Vec<u8>,
    /// The outputs that the submitter keeps, in the order of the steps.
    pub results: Vec<GraphResult>,
}

/// One task of a graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphStep {
    /// The submitter's number of the class.
    pub class: u32,
    /// Number of its outputs.
    pub returns: u32,
    /// Bytes of its arguments by value.
    pub payload_bytes: u32,
    /// Number of its inputs.
    pub input_count: u32,
    /// Of the steps that are ready, those with a higher priority start first.
    pub priority: i32,
}

/// An argument of a step that is the output of another one, or a reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphInput {
    /// Number of the step, or of the reference with [`GraphInput::REFERENCE`].
    pub source: u32,
    /// Index of the output; 0 for a reference.
    pub index: u16,
    /// Index of the parameter, or one of the marks of [`Dependency`].
    pub parameter: u16,
}

/// An output that the submitter keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GraphResult {
    /// Number of the step.
    pub step: u32,
    /// Index of the output.
    pub index: u32,
    /// The submitter's name for it.
    pub token: u64,
}

impl GraphInput {
    /// Bit of [`GraphInput::source`] that marks a reference.
    pub const REFERENCE: u32 = 1 << 31;

    /// The number of the reference, if it is one.
    #[must_use]
    pub const fn reference(&self) -> Option<u32> {
        if self.source & Self::REFERENCE != 0 { Some(self.source & !Self::REFERENCE) } else { None }
    }

    /// Whether its value is an argument: not if it stands inside another one.
    #[must_use]
    pub const fn is_argument(&self) -> bool {
        self.parameter != Dependency::NESTED
    }
}

const _: () = assert!(GRAPH_STEPS_MAX < GraphInput::REFERENCE as usize);

impl GraphPart {
    /// Whether the lists fit each other, and every input of a step is of an earlier one.
    ///
    /// # Errors
    /// A text about the first fault.
    pub fn check(&self) -> Result<(), &'static str> {
        let (mut inputs, mut payload) = (self.inputs.iter(), 0_usize);
        for (number, step) in (self.first..).zip(&self.steps) {
            payload += step.payload_bytes as usize;
            for _ in 0..step.input_count {
                let input = inputs.next().ok_or("a graph has fewer inputs than its steps take")?;
                if input.reference().is_none() && number <= input.source {
                    return Err("a step of a graph takes the result of a step that is not before it");
                }
            }
        }
        if inputs.next().is_some() || payload != self.payload.len() {
            return Err("a graph has more arguments than its steps take");
        }
        let last = u64::from(self.first) + self.steps.len() as u64;
        let is_here = |r: &GraphResult| self.first <= r.step && u64::from(r.step) < last;
        let in_order = self.results.is_sorted_by(|a, b| (a.step, a.index) < (b.step, b.index));
        if in_order && self.results.iter().all(is_here) {
            Ok(())
        } else {
            Err("the results of a graph are not of its steps")
        }
    }
}

/// The id of a step's task: a child of the graph's id.
#[must_use]
pub fn step_task(graph: TaskId, number: u32) -> TaskId {
    graph.child(u64::from(number))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(input_count: u32, payload_bytes: u32) -> GraphStep {
        GraphStep { class: 0, returns: 1, payload_bytes, input_count, priority: 0 }
    }

    fn part() -> GraphPart {
        GraphPart {
            first: 5,
            steps: vec![step(1, 2), step(2, 1)],
            inputs: [4, 5, GraphInput::REFERENCE | 9]
                .map(|source| GraphInput { source, index: 0, parameter: 0 })
                .into(),
            payload: vec![0; 3],
            results: vec![GraphResult { step: 6, index: 0, token: 1 }],
            ..GraphPart::default()
        }
    }

    /// A damage, and words of what is said of it.
    type Damage = (fn(&mut GraphPart), &'static str);

    #[test]
    fn a_part_is_sound_or_says_what_is_wrong() {
        assert_eq!(part().check(), Ok(()));
        let damages: [Damage; 7] = [
            (|p| p.inputs[1].source = 6, "not before it"),
            (|p| p.inputs[1].source = 7, "not before it"),
            (|p| p.inputs.truncate(2), "fewer inputs"),
            (|p| p.inputs.push(GraphInput { source: 0, index: 0, parameter: 0 }), "more arguments"),
            (|p| p.payload.push(0), "more arguments"),
            (|p| p.results[0].step = 7, "results"),
            (|p| p.results.push(p.results[0]), "results"),
        ];
        for (damage, text) in damages {
            let mut part = part();
            damage(&mut part);
            let problem = part.check().unwrap_err();
            assert!(problem.contains(text), "{problem}");
        }
    }
}
