//! Sums of products by Einstein's convention, and chains of matrix products.
//!
//! An expression is contracted two operands at a time. Of all pairs the one is taken that leaves the smallest
//! intermediate result beside what it replaces (greedily: the best order of many operands is hard to find).
//! A contraction is a matrix product, or a product of elements and a fused sum where one side has no axis of
//! its own. Everything is cut into chunks as these are.

use crate::error::{Blame, Result};
use crate::joined::all_known;
use crate::late::late;
use crate::linear::products_to_sum;
use crate::operand::cast;
use crate::tensor::{Tensor, carry};
use std::collections::BTreeMap;
use tharsis_graph::shape::UNKNOWN;
use tharsis_graph::{Error as GraphError, Meta};
use tharsis_kernels::{DType, KernelError, promote, promote_all};

/// An axis of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    /// An axis of an ellipsis, by its place from the last one.
    Dots(usize),
    /// A letter.
    Letter(u8),
}

/// A tensor with a label for each of its axes.
#[derive(Clone)]
struct Term {
    x: Tensor,
    labels: Vec<Label>,
}

/// The labels of the operands and those of the result.
struct Expression {
    operands: Vec<Vec<Label>>,
    result: Vec<Label>,
}

type Checked<T> = std::result::Result<T, GraphError>;

fn refusal<T>(text: impl Into<String>) -> Checked<T> {
    Err(GraphError::Value(text.into()))
}

/// NumPy's `einsum`: the sum over all indices that are not in the result of the products of the operands'
/// elements; the common dtype, in which it is summed too. Traces, diagonals, ellipses and results that are
/// not given are understood.
///
/// ```
/// use tharsis_numeric::{arange, einsum::einsum};
/// let x = arange(4).reshape(&[2, 2]);
/// assert_eq!(einsum("ij,jk", &[&x, &x]).to_vec::<i64>()?, [2, 3, 6, 11]);
/// assert_eq!(einsum("ii", &[&x]).item()?.to_f64(), 3.0);
/// assert_eq!(einsum("...i->...", &[&x]).to_vec::<i64>()?, [1, 5]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for an expression that is not one, or that does not fit the operands.
///
/// # Distributed
/// As [`Tensor::matmul`], in the order that the module describes.
#[track_caller]
pub fn einsum(subscripts: &str, operands: &[&Tensor]) -> Tensor {
    let mut ranks = Vec::with_capacity(operands.len());
    let mut dtypes = Vec::with_capacity(operands.len());
    for operand in operands {
        let meta = carry!(operand.meta());
        ranks.push(meta.shape.len());
        dtypes.push(meta.dtype);
    }
    let expression = match parse(subscripts, &ranks) {
        Ok(expression) => expression,
        Err(error) => return Tensor::refused(error, operands),
    };
    let dtype = promote_all(dtypes);
    let extents = match extents_of(&expression, operands) {
        Ok(extents) => extents,
        Err(error) => return Tensor::refused(error, operands),
    };
    if !all_known(operands) {
        let shape = expression.result.iter().map(|label| extents[label]).collect();
        let text = subscripts.to_owned();
        return late("einsum", subscripts, Meta { shape, dtype }, operands, move |x| {
            einsum(&text, &x.iter().collect::<Vec<_>>())
        });
    }
    let labelled = expression.operands.iter().zip(operands);
    let mut terms: Vec<Term> = labelled
        .map(|(labels, x)| Term { x: cast(x, dtype), labels: labels.clone() }.without_repeats())
        .map(|term| term.without_broadcasts(&extents))
        .collect();
    while 1 < terms.len() {
        sum_what_stands_alone(&mut terms, &expression.result);
        let [a, b] = cheapest_pair(&terms, &expression.result, &extents);
        // The second one stands behind the first, which is not moved by its removal.
        let right = terms.remove(b);
        let left = terms.remove(a);
        let keep: Vec<Label> =
            terms.iter().flat_map(|term| &term.labels).chain(&expression.result).copied().collect();
        terms.push(contracted(&left, &right, &keep));
    }
    sum_what_stands_alone(&mut terms, &expression.result);
    match terms.pop() {
        Some(term) => term.arranged(&expression.result, &extents),
        None => Tensor::refused(GraphError::Value(NO_OPERAND.to_owned()), operands),
    }
}

const NO_OPERAND: &str = "must specify the einstein sum subscripts string and at least one operand";

/// Reads an expression for operands of these ranks.
fn parse(subscripts: &str, ranks: &[usize]) -> Checked<Expression> {
    if ranks.is_empty() {
        return refusal(NO_OPERAND);
    }
    let text: String = subscripts.chars().filter(|letter| !letter.is_whitespace()).collect();
    let (inputs, result) = match text.split_once("->") {
        Some((inputs, result)) => (inputs, Some(result)),
        None => (text.as_str(), None),
    };
    let parts: Vec<&str> = inputs.split(',').collect();
    if parts.len() < ranks.len() {
        return refusal(
            "fewer operands provided to einstein sum function than specified in the subscripts string",
        );
    }
    if ranks.len() < parts.len() {
        return refusal(
            "more operands provided to einstein sum function than specified in the subscripts string",
        );
    }
    let mut operands = Vec::with_capacity(parts.len());
    let mut dots = 0;
    for (at, (part, &rank)) in parts.iter().zip(ranks).enumerate() {
        let (before, behind) = letters_of(part, &format!("operand {at}"))?;
        let named = before.len() + behind.as_ref().map_or(0, Vec::len);
        if rank < named {
            let text =
                format!("einstein sum subscripts string contains too many subscripts for operand {at}");
            return refusal(text);
        }
        let more = rank - named;
        if behind.is_none() && more != 0 {
            return refusal(NO_ELLIPSIS.replace("{}", "operand"));
        }
        dots = dots.max(more);
        let middle = (0..more).rev().map(Label::Dots);
        operands.push(before.into_iter().chain(middle).chain(behind.unwrap_or_default()).collect());
    }
    let result = match result {
        Some(result) => given_result(result, &operands, dots)?,
        None => implied_result(&operands, dots),
    };
    Ok(Expression { operands, result })
}

const NO_ELLIPSIS: &str = "{} has more dimensions than subscripts given in einstein sum, but no '...' ellipsis \
                           provided to broadcast the extra dimensions.";

/// The letters before an ellipsis, and those behind it if there is one.
fn letters_of(part: &str, place: &str) -> Checked<(Vec<Label>, Option<Vec<Label>>)> {
    let labels = |text: &str| -> Checked<Vec<Label>> {
        let mut labels = Vec::with_capacity(text.len());
        for letter in text.chars() {
            match u8::try_from(letter) {
                Ok(byte) if byte.is_ascii_alphabetic() => labels.push(Label::Letter(byte)),
                _ if letter == '.' => {
                    let text =
                        "einstein sum subscripts string contains a '.' that is not part of an ellipsis";
                    return refusal(format!("{text} ('...') in {place}"));
                }
                _ => {
                    let text = "in einstein sum subscripts string, subscripts must be letters";
                    return refusal(format!("invalid subscript '{letter}' {text}"));
                }
            }
        }
        Ok(labels)
    };
    match part.split_once("...") {
        Some((before, behind)) => Ok((labels(before)?, Some(labels(behind)?))),
        None => Ok((labels(part)?, None)),
    }
}

/// The labels of a result that is given.
fn given_result(result: &str, operands: &[Vec<Label>], dots: usize) -> Checked<Vec<Label>> {
    let (before, behind) = letters_of(result, "the output")?;
    if behind.is_none() && dots != 0 {
        return refusal(NO_ELLIPSIS.replace("{}", "output"));
    }
    let letters: Vec<Label> = before.iter().chain(behind.iter().flatten()).copied().collect();
    for (at, label) in letters.iter().enumerate() {
        let Label::Letter(letter) = label else { continue };
        let letter = char::from(*letter);
        if letters[..at].contains(label) {
            let text = format!("includes output subscript '{letter}' multiple times");
            return refusal(format!("einstein sum subscripts string {text}"));
        }
        if !operands.iter().any(|operand| operand.contains(label)) {
            let text = format!("included output subscript '{letter}' which never appeared in an input");
            return refusal(format!("einstein sum subscripts string {text}"));
        }
    }
    let middle = (0..dots).rev().map(Label::Dots);
    Ok(before.into_iter().chain(middle).chain(behind.unwrap_or_default()).collect())
}

/// The axes of ellipses, and the letters that occur once, in the order of the alphabet.
fn implied_result(operands: &[Vec<Label>], dots: usize) -> Vec<Label> {
    let mut counts: BTreeMap<Label, usize> = BTreeMap::new();
    for label in operands.iter().flatten() {
        *counts.entry(*label).or_default() += 1;
    }
    let once = counts.into_iter().filter(|(label, count)| matches!(label, Label::Letter(_)) && *count == 1);
    (0..dots).rev().map(Label::Dots).chain(once.map(|(label, _)| label)).collect()
}

/// The extent of each label: those of 1 are broadcast to the others. [`UNKNOWN`] if none is known.
fn extents_of(expression: &Expression, operands: &[&Tensor]) -> Checked<BTreeMap<Label, usize>> {
    let mut extents: BTreeMap<Label, usize> = BTreeMap::new();
    for (at, (labels, operand)) in expression.operands.iter().zip(operands).enumerate() {
        let shape = operand.shape().map_err(|error| error.cause().clone())?;
        for (axis, (&label, &extent)) in labels.iter().zip(shape).enumerate() {
            let twin = labels[..axis].iter().position(|other| *other == label);
            if let Some(twin) = twin
                && !tharsis_graph::shape::agree(shape[twin], extent)
            {
                let Label::Letter(letter) = label else { continue };
                let (letter, first) = (char::from(letter), shape[twin]);
                let text = format!("collapsing index '{letter}' don't match ({first} != {extent})");
                return refusal(format!("dimensions in operand {at} for {text}"));
            }
            let known = extents.entry(label).or_insert(extent);
            match (*known, extent) {
                (a, b) if a == b || b == 1 => {}
                (1 | UNKNOWN, b) => *known = b,
                (_, UNKNOWN) => {}
                _ => {
                    let shapes: Vec<String> = operands
                        .iter()
                        .filter_map(|operand| operand.shape().ok())
                        .map(tharsis_graph::error::shape_text)
                        .collect();
                    let text = "operands could not be broadcast together with remapped shapes";
                    return refusal(format!("{text} {}", shapes.join(" ")));
                }
            }
        }
    }
    Ok(extents)
}

impl Term {
    /// With the diagonal of axes of one label in their place.
    #[track_caller]
    fn without_repeats(mut self) -> Term {
        loop {
            let labels = &self.labels;
            let twins = (0..labels.len()).find_map(|first| {
                let second = (first + 1..labels.len()).find(|&second| labels[second] == labels[first])?;
                Some((first, second))
            });
            let Some((first, second)) = twins else { return self };
            self.x = self.x.moveaxes(&[first as i64, second as i64], &[-2, -1]).diagonal(0);
            let label = self.labels.remove(second);
            self.labels.remove(first);
            self.labels.push(label);
        }
    }

    /// Without axes of extent 1 that other operands have more of.
    #[track_caller]
    fn without_broadcasts(mut self, extents: &BTreeMap<Label, usize>) -> Term {
        let shape = self.x.shape().map(<[usize]>::to_vec).unwrap_or_default();
        let is_broadcast = |axis: &usize| shape.get(*axis) == Some(&1) && extents[&self.labels[*axis]] != 1;
        let axes: Vec<usize> = (0..self.labels.len()).filter(is_broadcast).collect();
        if !axes.is_empty() {
            self.x = self.x.squeeze(Some(&axes.iter().map(|&axis| axis as i64).collect::<Vec<_>>()));
            let kept = self.labels.iter().enumerate().filter(|(axis, _)| !axes.contains(axis));
            self.labels = kept.map(|(_, &label)| label).collect();
        }
        self
    }

    /// Summed over labels; the dtype stays.
    #[track_caller]
    fn summed(&self, over: impl Fn(&Label) -> bool) -> Term {
        let places = self.labels.iter().enumerate().filter(|(_, label)| over(label));
        let axes: Vec<i64> = places.map(|(axis, _)| axis as i64).collect();
        if axes.is_empty() {
            return self.clone();
        }
        let labels = self.labels.iter().filter(|label| !over(label)).copied().collect();
        let x = match self.x.dtype() {
            // The sum of truth values is "or".
            Ok(DType::Bool) => self.x.any(axes),
            Ok(dtype) => cast(&self.x.sum(axes), dtype),
            Err(_) => self.x.clone(),
        };
        Term { x, labels }
    }

    /// With these axes, in this order; those that it has not have extent 1.
    #[track_caller]
    fn aligned(&self, to: &[Label]) -> Tensor {
        let own: Vec<Label> = to.iter().filter(|label| self.labels.contains(label)).copied().collect();
        let missing = (0..to.len()).filter(|&axis| !self.labels.contains(&to[axis])).map(|axis| axis as i64);
        self.in_order(&own).expand_all_dims(&missing.collect::<Vec<_>>())
    }

    #[track_caller]
    fn in_order(&self, order: &[Label]) -> Tensor {
        let place = |label: &Label| self.labels.iter().position(|own| own == label).unwrap_or(0) as i64;
        if self.labels == order {
            self.x.clone()
        } else {
            self.x.transpose(&order.iter().map(place).collect::<Vec<_>>())
        }
    }

    /// The result, whose axes are repeated where no operand had all of them.
    #[track_caller]
    fn arranged(&self, result: &[Label], extents: &BTreeMap<Label, usize>) -> Tensor {
        let made = self.aligned(result);
        let shape: Vec<usize> = result.iter().map(|label| extents[label]).collect();
        if carry!(made.shape()) == shape { made } else { made.broadcast_to(&shape) }
    }
}

/// Sums each term over the labels that neither another term nor the result has.
#[track_caller]
fn sum_what_stands_alone(terms: &mut [Term], result: &[Label]) {
    for at in 0..terms.len() {
        let is_elsewhere = |label: &Label| {
            let others = terms.iter().enumerate().filter(|(other, _)| *other != at);
            result.contains(label) || others.into_iter().any(|(_, other)| other.labels.contains(label))
        };
        let summed = terms[at].summed(|label| !is_elsewhere(label));
        terms[at] = summed;
    }
}

/// The pair whose contraction adds the least to what must be kept, and of such pairs the one with the least
/// products.
fn cheapest_pair(terms: &[Term], result: &[Label], extents: &BTreeMap<Label, usize>) -> [usize; 2] {
    let size = |labels: &[Label]| labels.iter().map(|label| extents[label] as f64).product::<f64>();
    let mut best = ([0, 1], (f64::INFINITY, f64::INFINITY));
    for second in 1..terms.len() {
        for first in 0..second {
            let (a, b) = (&terms[first].labels, &terms[second].labels);
            let all: Vec<Label> =
                a.iter().chain(b.iter().filter(|label| !a.contains(label))).copied().collect();
            let others = || terms.iter().enumerate().filter(move |(at, _)| *at != first && *at != second);
            let is_kept = |label: &&Label| {
                result.contains(label) || others().any(|(_, other)| other.labels.contains(label))
            };
            let kept: Vec<Label> = all.iter().filter(is_kept).copied().collect();
            let cost = (size(&kept) - size(a) - size(b), size(&all));
            if cost < best.1 {
                best = ([first, second], cost);
            }
        }
    }
    best.0
}

/// The product of two terms, summed over the labels that are not kept.
#[track_caller]
fn contracted(left: &Term, right: &Term, keep: &[Label]) -> Term {
    let shared = |label: &&Label| right.labels.contains(label);
    let common: Vec<Label> = left.labels.iter().filter(shared).copied().collect();
    let (batch, depth): (Vec<Label>, Vec<Label>) = common.iter().partition(|label| keep.contains(label));
    let free = |term: &Term| -> Vec<Label> {
        term.labels.iter().filter(|label| !common.contains(label)).copied().collect()
    };
    let (rows, columns) = (free(left), free(right));
    let labels = [&batch[..], &rows, &columns].concat();
    if depth.is_empty() || rows.is_empty() || columns.is_empty() {
        // Element by element, with the sum in the same pass: nothing would be used twice by a product.
        let all = [&labels[..], &depth].concat();
        let (a, b) = (left.aligned(&all), right.aligned(&all));
        if depth.is_empty() {
            return Term { x: a.multiply(b), labels };
        }
        let summed = Term { x: products_to_sum(&a, &b), labels: all }.summed(|label| depth.contains(label));
        let x = match (a.dtype(), b.dtype()) {
            (Ok(a), Ok(b)) => cast(&summed.x, promote(a, b)),
            _ => summed.x,
        };
        return Term { x, labels };
    }
    let extents = |term: &Term, of: &[Label]| -> Vec<i64> {
        let shape = term.x.shape().map(<[usize]>::to_vec).unwrap_or_default();
        let extent = |label: &Label| term.labels.iter().position(|own| own == label);
        of.iter()
            .map(|label| extent(label).and_then(|axis| shape.get(axis)).map_or(1, |&n| n as i64))
            .collect()
    };
    let (stack, summed) = (extents(left, &batch), extents(left, &depth));
    let (high, wide) = (extents(left, &rows), extents(right, &columns));
    let joined = |x: Tensor, groups: [&[i64]; 2]| {
        let ends = groups.map(|group| group.iter().product::<i64>());
        if groups.iter().all(|group| group.len() == 1) { x } else { x.reshape(&[&stack[..], &ends].concat()) }
    };
    let a = joined(left.in_order(&[&batch[..], &rows, &depth].concat()), [&high, &summed]);
    let b = joined(right.in_order(&[&batch[..], &depth, &columns].concat()), [&summed, &wide]);
    let product = a.matmul(&b);
    let x = if high.len() == 1 && wide.len() == 1 {
        product
    } else {
        product.reshape(&[&stack[..], &high, &wide].concat())
    };
    Term { x, labels }
}

/// NumPy's `linalg.multi_dot`: the product of several matrices in the order that takes the fewest
/// multiplications; (m, k) x (k, ..) x .. x (.., n) to (m, n), the common dtype. The first and the last may
/// be vectors, whose axis the result does not have.
///
/// ```
/// use tharsis_numeric::{einsum::multi_dot, ones};
/// let product = multi_dot(&[&ones(&[2, 9]), &ones(&[9, 9]), &ones(&[9])]);
/// assert_eq!(product.to_vec::<f64>()?, [81.0, 81.0]);
/// # Ok::<(), tharsis_numeric::Error>(())
/// ```
///
/// # Errors
/// `ValueError` for fewer than two, and if shapes do not fit; `LinAlgError` for others than matrices.
#[track_caller]
pub fn multi_dot(matrices: &[&Tensor]) -> Tensor {
    let [first, middle @ .., last] = matrices else {
        return Tensor::bad_value("Expecting at least two arrays.", matrices);
    };
    if middle.is_empty() {
        return first.dot(last);
    }
    let mut chain = Vec::with_capacity(matrices.len());
    for (at, matrix) in matrices.iter().enumerate() {
        let rank = carry!(matrix.ndim());
        let is_end = at == 0 || at + 1 == matrices.len();
        chain.push(match rank {
            2 => (*matrix).clone(),
            1 if at == 0 => matrix.expand_dims(0),
            1 if is_end => matrix.expand_dims(1),
            _ => {
                let text = format!("{rank}-dimensional array given. Array must be two-dimensional");
                return Tensor::refused(GraphError::from(KernelError::Singular(text)), matrices);
            }
        });
    }
    if !all_known(matrices) {
        // The order depends on the sizes; without them the products are made from the left.
        let mut made = chain[0].clone();
        chain[1..].iter().for_each(|next| made = made.matmul(next));
        return ends_dropped(&made, first, last);
    }
    let cuts = carry!(best_cuts(&chain), *first, *last);
    ends_dropped(&product_of(&chain, &cuts, 0, chain.len() - 1), first, last)
}

#[track_caller]
fn ends_dropped(product: &Tensor, first: &Tensor, last: &Tensor) -> Tensor {
    let vector = |x: &Tensor| x.ndim().is_ok_and(|rank| rank == 1);
    let axes: Vec<i64> = [(vector(first), 0), (vector(last), 1)]
        .into_iter()
        .filter_map(|(is_vector, axis)| is_vector.then_some(axis))
        .collect();
    if axes.is_empty() { product.clone() } else { product.squeeze(Some(&axes)) }
}

/// For each part of a chain, where it is cut in two.
#[track_caller]
fn best_cuts(chain: &[Tensor]) -> Result<Vec<Vec<usize>>> {
    let mut extents = Vec::with_capacity(chain.len() + 1);
    for matrix in chain {
        let shape = matrix.shape()?;
        match extents.last() {
            Some(&before) if before != shape[0] => {
                let text = format!("shapes are not aligned: {before} columns before {} rows", shape[0]);
                return Err(GraphError::Value(text)).blame();
            }
            Some(_) => {}
            None => extents.push(shape[0]),
        }
        extents.push(shape[1]);
    }
    let count = chain.len();
    let mut costs = vec![vec![0.0; count]; count];
    let mut cuts = vec![vec![0; count]; count];
    for length in 1..count {
        for first in 0..count - length {
            let last = first + length;
            let ends = extents[first] as f64 * extents[last + 1] as f64;
            let cost = |cut: usize| costs[first][cut] + costs[cut + 1][last] + ends * extents[cut + 1] as f64;
            let (mut cheapest, mut at) = (f64::INFINITY, first);
            for cut in first..last {
                if cost(cut) < cheapest {
                    (cheapest, at) = (cost(cut), cut);
                }
            }
            costs[first][last] = cheapest;
            cuts[first][last] = at;
        }
    }
    Ok(cuts)
}

#[track_caller]
fn product_of(chain: &[Tensor], cuts: &[Vec<usize>], first: usize, last: usize) -> Tensor {
    if first == last {
        return chain[first].clone();
    }
    let cut = cuts[first][last];
    product_of(chain, cuts, first, cut).matmul(&product_of(chain, cuts, cut + 1, last))
}
