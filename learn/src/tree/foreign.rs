//! The functions of passes over trees, found by their names on other processes.

use super::bins::Coder;
use super::histogram::{AddTrees, Histograms, SumLosses};
use super::members::Members;
use super::out_of_bag::OutOfBag;
use super::predict::Summed;
use super::wire::{ADD_TREES, CODER, HISTOGRAMS, KIND, MEMBERS, OUT_OF_BAG, Reader, SUM_LOSSES, SUMMED};
use std::sync::Arc;
use tharsis_graph::{Foreign, ForeignName};

/// The function of this crate that a plan names.
pub(crate) fn find_foreign(name: &ForeignName) -> Option<Arc<dyn Foreign>> {
    if name.kind != KIND {
        return None;
    }
    let mut reader = Reader::of(&name.name)?;
    let found: Arc<dyn Foreign> = match reader.number()? {
        CODER => Arc::new(Coder::read(&mut reader)?),
        HISTOGRAMS => Arc::new(Histograms::read(&mut reader)?),
        ADD_TREES => Arc::new(AddTrees::read(&mut reader)?),
        MEMBERS => Arc::new(Members::read(&mut reader)?),
        SUM_LOSSES => Arc::new(SumLosses::read(&mut reader)?),
        SUMMED => Arc::new(Summed::read(&mut reader)?),
        OUT_OF_BAG => Arc::new(OutOfBag::read(&mut reader)?),
        _ => return None,
    };
    reader.is_at_end().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::super::bins::{Bins, FeatureBins};
    use super::super::histogram::{Bootstrap, Column, Growing, NOT_OPEN, Sums};
    use super::super::loss::{LOSSES, Loss};
    use super::super::nodes::{Node, Tree};
    use super::super::predict::{Trees, Values};
    use super::*;
    use tharsis_kernels::{Chunk, Place};

    /// The bytes that a function makes of these inputs, itself and found by its name.
    fn same(function: &dyn Foreign, args: &[Chunk]) {
        let found = find_foreign(&function.name().unwrap()).unwrap();
        let place = Place { origin: &[7, 0], extents: &[4, 1] };
        let [own, other] = [function, &*found].map(|function| function.run(place, args).unwrap());
        assert_eq!(own.shape(), other.shape());
        assert_eq!(own.buffer().bytes(), other.buffer().bytes());
        assert_eq!(function.scratch_bytes(), found.scratch_bytes());
        // Another text is no function, and no text is a panic.
        let name = function.name().unwrap();
        for cut in 0..name.name.len() {
            let short = ForeignName { name: name.name[..cut].to_owned(), ..name.clone() };
            assert!(find_foreign(&short).is_none(), "{cut}");
        }
    }

    fn chunk<T: tharsis_kernels::Element>(elements: &[T]) -> Chunk {
        Chunk::from_elements(&[4, elements.len() / 4], elements).unwrap()
    }

    fn stump() -> Vec<Node> {
        let root = Node { feature: 1, left: 1, threshold: 0.5, bin: 0, missing_left: true };
        vec![root, Node::leaf(), Node::leaf()]
    }

    #[test]
    fn functions_are_found_by_their_names() {
        let feature = |values: &[f64]| FeatureBins::of(values, None, 255);
        let bins = Arc::new(Bins { features: vec![feature(&[1.0, 2.0]), feature(&[0.0, 1.0, 5.0])] });
        let values = chunk(&[1.0, 0.0, 2.0, 1.0, f64::NAN, 5.0, 1.0, f64::NAN]);
        same(&Coder { bins, rows: 4 }, std::slice::from_ref(&values));
        let codes = chunk(&[0u8, 0, 1, 1, 255, 2, 0, 255]);
        let (y, weight) = (chunk(&[0.0, 1.0, 1.0, 2.0]), chunk(&[1.0, -2.0, 0.5, 0.0]));
        let scores = chunk(&[0.1, 0.2, 0.3, -0.5, 1.0, 2.0, 0.0, 0.0, 0.7, 0.1, 0.1, 9.0]);
        for loss in LOSSES {
            let function = SumLosses { loss, scores: 3, is_weighted: true, rows: 4 };
            same(&function, &[codes.clone(), y.clone(), scores.clone(), weight.clone()]);
        }
        let trees = vec![(stump(), vec![0.0, 1.0, 2.0]); 3];
        same(&AddTrees { trees, columns: 2, rows: 4, number: 0 }, &[codes.clone(), scores.clone()]);
        for (sums, width) in [(Sums::Classes(3), 4), (Sums::Squares, 4), (Sums::Slopes(Loss::Softmax), 3)] {
            let column = |feature, bins, start| Column { feature, bins, start };
            let parts = vec![vec![column(0, 2, 0), column(1, 3, 3 * width)], vec![column(1, 3, 7 * width)]];
            let growing = |tree| Growing {
                tree,
                draws: [3, tree as u64],
                nodes: stump(),
                parts: vec![NOT_OPEN, tree as u32 % 2, 1],
            };
            let function = Histograms {
                sums,
                bootstrap: Some(Bootstrap::of(0.8)),
                is_weighted: true,
                trees: vec![growing(0), growing(2)],
                parts,
                elements: 11 * width,
                columns: 2,
                rows: 4,
                scores: 3,
                number: 0,
            };
            same(&function, &[codes.clone(), y.clone(), scores.clone(), weight.clone()]);
        }
        for bootstrap in [None, Some(Bootstrap::of(0.8))] {
            let trees =
                vec![Growing { tree: 0, draws: [3, 1], nodes: stump(), parts: vec![NOT_OPEN, 0, NOT_OPEN] }];
            let function = Members { trees, bootstrap, is_weighted: true, columns: 2, rows: 4, number: 0 };
            same(&function, &[codes.clone(), y.clone(), weight.clone()]);
        }
        let tree = Tree { nodes: stump(), values: vec![0.0, 1.0, 2.0], width: 1, column: 1 };
        let (bootstrap, number) = (Bootstrap::of(1.0), 0);
        let trees = (0..9).map(|stream| (tree.clone(), [3, stream])).collect();
        same(&OutOfBag { trees, bootstrap, width: 1, columns: 2, rows: 4, number }, &[codes]);
        let base = (vec![0.5, 0.25], 0.5);
        let trees = Trees::new(vec![tree], 2, base, Values::NotInfinite);
        same(&*trees.function(), std::slice::from_ref(&values));
    }
}
