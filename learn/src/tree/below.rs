//! Growth of what is below nodes of few rows, which a pass fetches into the memory of this process.

use super::data::Rows;
use super::grow::{Grower, Samples, THREAD_ROWS_MIN};
use super::histogram::{Growing, NOT_OPEN, Sums, new_number};
use super::members::Members;
use super::partial::PartialTree;
use super::table::Table;
use super::threads::on_threads;
use crate::states::lost;
use std::sync::Arc;
use tharsis_numeric::Result;

impl Grower<'_> {
    /// Nodes of some trees, as many as have rows that fit the memory of this process.
    pub(super) fn small_nodes(&mut self) -> Vec<(usize, Vec<usize>)> {
        let mut left = self.small_rows;
        let mut batch = Vec::new();
        for (at, tree) in self.trees.iter_mut().enumerate() {
            let mut nodes = Vec::new();
            while let Some(&node) = tree.small.last().filter(|&&node| tree.facts[node].sums[0] <= left) {
                left -= tree.facts[node].sums[0];
                nodes.push(node);
                tree.small.pop();
            }
            if !nodes.is_empty() {
                batch.push((at, nodes));
            }
            if !tree.small.is_empty() {
                break;
            }
        }
        batch
    }

    /// Grows all that is below some nodes from their rows.
    #[track_caller]
    pub(super) fn grow_in_memory(&mut self, batch: Vec<(usize, Vec<usize>)>) -> Result<()> {
        let open = |nodes: &[usize]| -> Vec<(usize, u32)> { nodes.iter().copied().zip(0..).collect() };
        let ways: Vec<Growing> =
            batch.iter().map(|(tree, nodes)| self.growing(*tree, &open(nodes))).collect();
        let samples = self.samples;
        let binned = samples.binned;
        let function = Members {
            trees: ways.clone(),
            bootstrap: samples.bootstrap.clone(),
            is_weighted: samples.is_weighted,
            columns: binned.columns,
            rows: binned.pass_rows,
            number: new_number(),
        };
        let Rows { numbers, codes, inputs } = binned.rows_of(Arc::new(function), &samples.inputs)?;
        let [targets, others @ ..] = &inputs[..] else { return Err(lost()) };
        let weights = others.last().filter(|_| samples.is_weighted).map(Vec::as_slice);
        let slopes = match (&samples.sums, others.first()) {
            (Sums::Slopes(loss), Some(scores)) => loss.all_slopes(targets, scores, samples.scores),
            _ => Vec::new(),
        };
        let table = Table {
            codes: &codes,
            columns: binned.columns,
            targets,
            weights,
            sums: samples.sums.clone(),
            slopes,
            scores: samples.scores,
            bootstrap: samples.bootstrap.clone(),
            numbers: Some(numbers),
            pass_rows: binned.pass_rows,
        };
        let fetched = Samples {
            binned,
            inputs: Vec::new(),
            is_weighted: samples.is_weighted,
            sums: samples.sums.clone(),
            scores: samples.scores,
            bootstrap: samples.bootstrap.clone(),
            table: Some(table),
        };
        batch
            .iter()
            .zip(&ways)
            .try_for_each(|((tree, nodes), way)| self.grow_below(*tree, nodes, way, &fetched))
    }

    /// Grows all that is below some nodes of a tree from a table that has their rows.
    fn grow_below(
        &mut self,
        tree: usize,
        nodes: &[usize],
        way: &Growing,
        fetched: &Samples<'_>,
    ) -> Result<()> {
        let partial = &mut self.trees[tree];
        let Some(table) = &fetched.table else { return Err(lost()) };
        let (rows, weights) = table.drawn(partial.draws());
        let weights = Arc::new(weights);
        let threads = if rows.len() < THREAD_ROWS_MIN { 1 } else { self.samples.binned.threads };
        let growth = self.growth;
        let mut rows_of = vec![Vec::new(); nodes.len()];
        for row in rows {
            let part = way.part(table.row(row));
            if part != NOT_OPEN {
                rows_of[part as usize].push(row);
            }
        }
        let roots = nodes.iter().zip(rows_of);
        let roots: Vec<PartialTree> =
            roots.map(|(&node, rows)| partial.below(node, rows, weights.clone())).collect();
        let grown = on_threads(roots, threads, |root, threads| {
            let mut grower = Grower::of(fetched, growth, vec![root], threads);
            grower.grow_all()?;
            grower.trees.pop().ok_or_else(lost)
        })?;
        nodes.iter().zip(grown).for_each(|(&node, grown)| partial.graft(node, grown));
        Ok(())
    }
}
