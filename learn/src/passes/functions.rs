//! The functions of passes over samples, found by their names on other processes.
//!
//! Each makes a state of some rows, or a number for each row, by a kernel that reads them once
//! ([`tharsis_kernels::rows`]).

use crate::passes::coordinates::{solved_rows, steps_of_rows};
use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use tharsis_graph::{Error, Foreign, ForeignName};
use tharsis_kernels::rows::{Around, Centers, Scored, column_ends, column_sums, logistic_loss, products};
use tharsis_kernels::{Chunk, KernelError, Place};

/// A function of rows (n, d), of what stands beside them in other inputs of as many rows, and of inputs that
/// are not cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The sum of states, added one to the other. A row is a state.
    Add,
    /// The least of each number of states.
    Least,
    /// The sums of columns less a point: of their weights or numbers, of them, and of their squares, without
    /// NaN. Inputs: the rows; the weights; the point.
    ColumnSums { weighted: bool },
    /// The least number of each column, and the negatives of the largest; infinite without any. Inputs: the
    /// rows.
    ColumnEnds,
    /// The sums of products of columns around a point ([`tharsis_kernels::rows::Products`]): Gram matrix,
    /// sums, products with others, their sums and squares. Inputs: the rows; others; the weights; the point;
    /// that of the others.
    Products { others: bool, weighted: bool },
    /// The sums of the rows nearest to each centre, less a point, and of their weights. Inputs: the rows; the
    /// weights; the point; the centres.
    Clusters { weighted: bool, by_products: bool },
    /// The squared distance of each row to its nearest centre, times its weight. Inputs: as of `Clusters`.
    Distances { weighted: bool, by_products: bool },
    /// The sum of these distances.
    Inertia { weighted: bool, by_products: bool },
    /// The loss of logistic regression, its slope by the intercept, and those by the coefficients. Inputs:
    /// the rows; targets; the weights; the coefficients; the intercept.
    Logistic { weighted: bool },
    /// Weights that are not negative, from zero on until they rest. Inputs: products of samples and parts;
    /// products of parts; the part of the first slope at which steps end, and their most.
    NonNegative,
    /// Such weights after a step, and the slope before it. Inputs: products of samples and parts; the
    /// weights; products of parts.
    NonNegativeStep,
}

/// A function of rows, with the memory that it takes.
pub(crate) struct RowFunction {
    pub(crate) of: Of,
    /// Numbers that it holds beside its inputs, and those of copies of its inputs.
    pub(crate) held: usize,
}

/// The kind of the names of these functions.
const KIND: &str = "learn.rows";

impl RowFunction {
    /// The function that adds states.
    pub(crate) const ADD: RowFunction = RowFunction { of: Of::Add, held: 0 };
    /// The function that takes the least numbers of states.
    pub(crate) const LEAST: RowFunction = RowFunction { of: Of::Least, held: 0 };
}

/// The function of samples that a plan names.
pub(crate) fn find_foreign(name: &ForeignName) -> Option<Arc<dyn Foreign>> {
    if name.kind != KIND {
        return None;
    }
    let of = all().into_iter().find(|of| format!("{of:?}") == name.name)?;
    Some(Arc::new(RowFunction { of, held: 0 }))
}

/// All functions.
fn all() -> Vec<Of> {
    let mut all = vec![Of::Add, Of::Least, Of::ColumnEnds, Of::NonNegative, Of::NonNegativeStep];
    for weighted in [false, true] {
        all.push(Of::ColumnSums { weighted });
        all.push(Of::Logistic { weighted });
        for flag in [false, true] {
            all.push(Of::Products { others: flag, weighted });
            all.push(Of::Clusters { weighted, by_products: flag });
            all.push(Of::Distances { weighted, by_products: flag });
            all.push(Of::Inertia { weighted, by_products: flag });
        }
    }
    all
}

impl fmt::Debug for RowFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.of)
    }
}

impl Foreign for RowFunction {
    fn name(&self) -> Option<ForeignName> {
        Some(ForeignName { kind: KIND.to_owned(), name: format!("{:?}", self.of) })
    }

    fn describe(&self) -> String {
        match self.of {
            Of::Add => "sums of states",
            Of::Least => "least of states",
            Of::ColumnSums { .. } => "sums of columns",
            Of::ColumnEnds => "ends of columns",
            Of::Products { .. } => "products of columns",
            Of::Clusters { .. } => "clusters",
            Of::Distances { .. } => "distances",
            Of::Inertia { .. } => "inertia",
            Of::Logistic { .. } => "logistic loss",
            Of::NonNegative | Of::NonNegativeStep => "weights that are not negative",
        }
        .to_owned()
    }

    fn scratch_bytes(&self) -> u64 {
        (self.held * size_of::<f64>()) as u64
    }

    fn run(&self, _: Place<'_>, args: &[Chunk]) -> Result<Chunk, Error> {
        let mut inputs = Inputs(args.iter());
        let made = match self.of {
            Of::Add => inputs.folded(|sum, number| *sum += number)?,
            Of::Least => {
                inputs.folded(|least, number| *least = if number < *least { number } else { *least })?
            }
            Of::ColumnSums { weighted } => {
                let (rows, weights) = (inputs.next()?, inputs.next_if(weighted)?);
                let point = inputs.next()?;
                let sums = column_sums(Around::new(&rows, &point)?, weights.as_deref())?;
                [sums.count, sums.sum, sums.squares].concat()
            }
            Of::ColumnEnds => {
                let columns = inputs.columns();
                let ends = column_ends(&inputs.next()?, columns)?;
                ends.least.into_iter().chain(ends.largest.iter().map(|largest| -largest)).collect()
            }
            Of::Products { others, weighted } => {
                let (rows, other) = (inputs.next()?, inputs.next_if(others)?.unwrap_or_default());
                let (weights, point) = (inputs.next_if(weighted)?, inputs.next()?);
                let other_point = inputs.next_if(others)?.unwrap_or_default();
                let (rows, other) = (Around::new(&rows, &point)?, Around::new(&other, &other_point)?);
                let made = products(rows, other, weights.as_deref())?;
                [made.gram, made.sum, made.cross, made.other_sum, made.other_squares].concat()
            }
            Of::Clusters { weighted, by_products } => {
                let found = inputs.near(weighted, by_products, |centers, rows, weights| {
                    let found = centers.clusters(rows, weights)?;
                    Ok([found.sums, found.weights].concat())
                });
                found?
            }
            Of::Distances { weighted, by_products } => {
                let distances = inputs
                    .near(weighted, by_products, |near, rows, weights| near.distances(rows, weights))?;
                return Ok(Chunk::from_elements(&[distances.len(), 1], &distances)?);
            }
            Of::Inertia { weighted, by_products } => {
                let distances = inputs
                    .near(weighted, by_products, |near, rows, weights| near.distances(rows, weights))?;
                vec![distances.iter().sum()]
            }
            Of::Logistic { weighted } => {
                let (rows, targets) = (inputs.next()?, inputs.next()?);
                let (weights, coef) = (inputs.next_if(weighted)?, inputs.next()?);
                let intercept = inputs.next()?.iter().sum();
                let weights = weights.as_deref();
                let of = Scored { rows: &rows, targets: &targets, weights, coef: &coef, intercept };
                let loss = logistic_loss(of)?;
                [vec![loss.sum, loss.intercept], loss.coef].concat()
            }
            Of::NonNegative | Of::NonNegativeStep => {
                let count = inputs.columns();
                let (products, second, third) = (inputs.next()?, inputs.next()?, inputs.next()?);
                let is_solved = self.of == Of::NonNegative;
                let gram = if is_solved { &second } else { &third };
                if count == 0 || gram.len() != count * count {
                    return Err(Error::Internal("weights of other parts".to_owned()));
                }
                let (made, columns) = if is_solved {
                    (solved_rows(&products, &second, &third, count), count)
                } else {
                    (steps_of_rows(&products, &second, &third, count), count + 1)
                };
                return Ok(Chunk::from_elements(&[made.len() / columns, columns], &made)?);
            }
        };
        Ok(Chunk::from_elements(&[1, made.len()], &made)?)
    }
}

/// The inputs of a call, one after the other.
struct Inputs<'a>(std::slice::Iter<'a, Chunk>);

impl<'a> Inputs<'a> {
    /// The numbers of the next input.
    fn next(&mut self) -> Result<Cow<'a, [f64]>, Error> {
        let input = self.0.next().ok_or_else(|| Error::Internal("rows without an input".to_owned()))?;
        Ok(input.elements::<f64>()?)
    }

    /// The numbers of the next input if it is there.
    fn next_if(&mut self, is_there: bool) -> Result<Option<Cow<'a, [f64]>>, Error> {
        if is_there { self.next().map(Some) } else { Ok(None) }
    }

    /// The columns of the next input.
    fn columns(&self) -> usize {
        self.0.as_slice().first().and_then(|input| input.shape().last().copied()).unwrap_or(0)
    }

    /// The rows of the next input, folded one into the other.
    fn folded(&mut self, fold: impl Fn(&mut f64, f64)) -> Result<Vec<f64>, Error> {
        let elements = self.columns();
        let states = self.next()?;
        let mut states = states.chunks_exact(elements.max(1));
        let mut folded = states.next().unwrap_or_default().to_vec();
        for state in states {
            folded.iter_mut().zip(state).for_each(|(to, number)| fold(to, *number));
        }
        folded.resize(elements, 0.0);
        Ok(folded)
    }

    /// The result of a function of centres, rows and their weights.
    fn near<T>(
        &mut self,
        weighted: bool,
        by_products: bool,
        make: impl FnOnce(&Centers<'_>, Around<'_>, Option<&[f64]>) -> Result<T, KernelError>,
    ) -> Result<T, Error> {
        let (rows, weights) = (self.next()?, self.next_if(weighted)?);
        let (point, centers) = (self.next()?, self.next()?);
        let centers = Centers::new(&centers, point.len(), by_products)?;
        Ok(make(&centers, Around::new(&rows, &point)?, weights.as_deref())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_their_names() {
        let chunk = |shape: &[usize], elements: &[f64]| Chunk::from_elements(shape, elements).unwrap();
        let rows = chunk(&[3, 2], &[1.0, 2.0, 0.5, -1.0, 4.0, 1.0]);
        let (beside, point) = (chunk(&[3, 1], &[1.0, 2.0, 0.25]), chunk(&[1, 2], &[0.5, 0.25]));
        let centers = chunk(&[2, 2], &[0.0, 0.0, 3.0, 1.0]);
        for of in all() {
            let function = RowFunction { of, held: 9 };
            let name = function.name().unwrap();
            let mut args = vec![rows.clone()];
            match of {
                Of::Add | Of::Least | Of::ColumnEnds => {}
                Of::ColumnSums { weighted } => {
                    args.extend(weighted.then(|| beside.clone()));
                    args.push(point.clone());
                }
                Of::Products { others, weighted } => {
                    args.extend(
                        std::iter::repeat_n(&beside, usize::from(others) + usize::from(weighted)).cloned(),
                    );
                    args.push(point.clone());
                    args.extend(others.then(|| chunk(&[1, 1], &[0.5])));
                }
                Of::NonNegative => args.extend([centers.clone(), chunk(&[1, 2], &[1e-6, 20.0])]),
                Of::NonNegativeStep => args.extend([rows.clone(), centers.clone()]),
                Of::Logistic { weighted } => {
                    args.extend(std::iter::repeat_n(&beside, 1 + usize::from(weighted)).cloned());
                    args.extend([point.clone(), chunk(&[1, 1], &[0.5])]);
                }
                Of::Clusters { weighted, .. }
                | Of::Distances { weighted, .. }
                | Of::Inertia { weighted, .. } => {
                    args.extend(weighted.then(|| beside.clone()));
                    args.extend([point.clone(), centers.clone()]);
                }
            }
            let place = Place { origin: &[0, 0], extents: &[3, 1] };
            let found = find_foreign(&name).unwrap();
            let [own, other] = [&function as &dyn Foreign, &*found].map(|function| {
                let made = function.run(place, &args).unwrap();
                (made.shape().to_vec(), made.to_vec::<f64>().unwrap())
            });
            assert_eq!(own, other, "{of:?}");
            assert!(find_foreign(&ForeignName { kind: "learn.trees".to_owned(), ..name }).is_none());
        }
        assert!(find_foreign(&ForeignName { kind: KIND.to_owned(), name: "Nothing".to_owned() }).is_none());
    }

    #[test]
    fn states_are_added_in_their_order() {
        let states = Chunk::from_elements(&[3, 2], &[1e16, 1.0, 1.0, 5.0, -1e16, -7.0]).unwrap();
        let place = Place { origin: &[0, 0], extents: &[3, 1] };
        let of = |function: RowFunction| function.run(place, std::slice::from_ref(&states)).unwrap();
        assert_eq!(of(RowFunction::ADD).to_vec::<f64>().unwrap(), [0.0, -1.0]);
        assert_eq!(of(RowFunction::LEAST).to_vec::<f64>().unwrap(), [-1e16, -7.0]);
    }
}
