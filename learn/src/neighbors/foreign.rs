//! The functions of passes over neighbours, found by their names on other processes.

use super::block::{AddStates, Around, LeastLabel, LeastState, MergeNearest, Nearest};
use super::donors::{Donors, Filled, MergeDonors};
use super::means::Means;
use super::wire::{KIND, Parts};
use std::sync::Arc;
use tharsis_graph::{Foreign, ForeignName};

/// The function of this module that a plan names.
///
/// ```
/// use tharsis_graph::ForeignName;
/// let name = ForeignName { kind: "no such kind".to_owned(), name: "nearest".to_owned() };
/// assert!(tharsis_learn::neighbors::find_foreign(&name).is_none());
/// ```
pub fn find_foreign(name: &ForeignName) -> Option<Arc<dyn Foreign>> {
    if name.kind != KIND {
        return None;
    }
    let mut parts = Parts::of(&name.name);
    let found: Arc<dyn Foreign> = match parts.word()? {
        "add-states" => Arc::new(AddStates::read(&mut parts)?),
        "around" => Arc::new(Around::read(&mut parts)?),
        "donors" => Arc::new(Donors::read(&mut parts)?),
        "filled" => Arc::new(Filled::read(&mut parts)?),
        "least-label" => Arc::new(LeastLabel::read(&mut parts)?),
        "least-state" => Arc::new(LeastState),
        "merge-donors" => Arc::new(MergeDonors::read(&mut parts)?),
        "merge-nearest" => Arc::new(MergeNearest::read(&mut parts)?),
        "nearest" => Arc::new(Nearest::read(&mut parts)?),
        "means" => Arc::new(Means::read(&mut parts)?),
        _ => return None,
    };
    parts.is_at_end().then_some(found)
}

#[cfg(test)]
mod tests {
    use super::super::block::Summed;
    use super::super::metric::{Distance, Weights};
    use super::*;
    use tharsis_kernels::{Chunk, Place};

    /// The bytes that a function makes of these inputs, itself and found by its name.
    fn same(function: &dyn Foreign, args: &[Chunk]) {
        let name = function.name().unwrap();
        let found = find_foreign(&name).unwrap();
        let place = Place { origin: &[7, 8, 0], extents: &[2, 3, 1] };
        let [own, other] = [function, &*found].map(|function| function.run(place, args).unwrap());
        assert_eq!(own.shape(), other.shape());
        assert_eq!(own.buffer().bytes(), other.buffer().bytes());
        assert_eq!(function.scratch_bytes(), found.scratch_bytes());
        assert_eq!(found.name().unwrap(), name);
        // No part of a name, and nothing behind it, is a function; and no text is a panic.
        let parts: Vec<&str> = name.name.split(' ').collect();
        (1..parts.len()).for_each(|cut| {
            let name = parts[..cut].join(" ");
            assert!(find_foreign(&ForeignName { kind: KIND.to_owned(), name }).is_none());
        });
        for text in [format!("{} 1", name.name), format!("{} ", name.name), format!(" {}", name.name)] {
            assert!(find_foreign(&ForeignName { kind: KIND.to_owned(), name: text }).is_none());
        }
    }

    fn chunk(shape: &[usize], elements: &[f64]) -> Chunk {
        Chunk::from_elements(shape, elements).unwrap()
    }

    #[test]
    fn functions_are_found_by_their_names() {
        let rows = chunk(&[2, 1, 2], &[0.0, 1.0, 2.0, 3.0]);
        let others = chunk(&[1, 3, 2], &[0.0, 1.5, 2.0, 2.0, -1.0, 0.25]);
        let carried = chunk(&[1, 3, 1], &[0.0, 1.0, 0.0]);
        let pair = [rows.clone(), others.clone(), carried];
        let distances = [
            Distance::Cosine,
            Distance::Chebyshev,
            Distance::Euclidean,
            Distance::Manhattan,
            Distance::Power(0.1 + 0.2),
        ];
        let (columns, weights) = (2, Weights::Distance);
        for distance in distances {
            for radius in [None, Some(1.0 / 3.0), Some(1e300)] {
                let nearest = Nearest { distance, count: 2, radius, is_own: true, carried: 1, columns };
                same(&nearest, &pair);
            }
            for summed in [Summed::Columns(1), Summed::Classes(2)] {
                for is_own in [false, true] {
                    same(&Around { distance, radius: 2.5, weights, summed, is_own, columns }, &pair);
                }
            }
            same(&LeastLabel { distance, radius: 2.5, columns }, &pair);
            let states = chunk(&[1, 6], &[0.5, 1.0, 3.0, 4.0, 1.0, 0.0]);
            for classes in [None, Some(2)] {
                same(
                    &Means { distance, count: 2, weights, classes, carried: 1 },
                    std::slice::from_ref(&states),
                );
            }
        }
        let states = chunk(&[1, 2, 6], &[0.5, 1.0, 3.0, 4.0, 1.0, 0.0, 0.25, 1.0, 9.0, 10.0, 1.0, 1.0]);
        let merged = Nearest {
            distance: Distance::Euclidean,
            count: 2,
            radius: None,
            is_own: false,
            carried: 1,
            columns,
        };
        for function in [&*merged.pass().merging, &AddStates { width: 6 }, &LeastState] {
            same(function, std::slice::from_ref(&states));
        }
        let nan = f64::NAN;
        let rows = chunk(&[2, 1, 2], &[0.0, nan, nan, 3.0]);
        let donors = Donors { count: 2, columns };
        same(&donors, &[rows, others]);
        let states = chunk(&[1, 2, 8], &[0.5; 16]);
        same(&*donors.pass().merging, std::slice::from_ref(&states));
        let filled = Filled { count: 2, weights, columns };
        same(&filled, &[chunk(&[1, 2], &[nan, 1.0]), chunk(&[1, 8], &[0.5; 8])]);
    }
}
