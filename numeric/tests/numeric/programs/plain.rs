//! The plain evaluator: whole arrays as vectors in C order, one loop per operation, no chunks, no fusion, no
//! views.

/// Kinds of numbers of an array: of bool, int64 and float64 each.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Bool,
    Int,
    Float,
}

/// An array. Numbers of all kinds are float64 here: programs keep them small, so that whole numbers are
/// exact.
#[derive(Clone, Debug, PartialEq)]
pub struct Plain {
    pub kind: Kind,
    pub shape: Vec<usize>,
    pub data: Vec<f64>,
}

pub fn size(shape: &[usize]) -> usize {
    shape.iter().product()
}

/// Every index of a shape, in C order.
pub fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
    let mut all = vec![Vec::new()];
    for &extent in shape {
        all =
            all.iter().flat_map(|head| (0..extent).map(move |i| [head.as_slice(), &[i]].concat())).collect();
    }
    all
}

/// The shape that two shapes broadcast to.
pub fn broadcast(a: &[usize], b: &[usize]) -> Option<Vec<usize>> {
    let rank = a.len().max(b.len());
    let extent = |shape: &[usize], axis: usize| match (axis + shape.len()).checked_sub(rank) {
        Some(own) => shape[own],
        None => 1,
    };
    (0..rank)
        .map(|axis| match (extent(a, axis), extent(b, axis)) {
            (x, y) if x == y => Some(x),
            (1, y) => Some(y),
            (x, 1) => Some(x),
            _ => None,
        })
        .collect()
}

impl Plain {
    pub fn at(&self, index: &[usize]) -> f64 {
        let place = index.iter().zip(&self.shape).fold(0, |place, (i, extent)| place * extent + i);
        self.data[place]
    }

    /// The element that a broadcast array has at an index.
    fn at_broadcast(&self, index: &[usize]) -> f64 {
        let own = &index[index.len() - self.shape.len()..];
        let own: Vec<usize> =
            own.iter().zip(&self.shape).map(|(&i, &e)| if e == 1 { 0 } else { i }).collect();
        self.at(&own)
    }

    /// An array of a shape, each element made from its index.
    pub fn make(kind: Kind, shape: Vec<usize>, element: impl FnMut(&Vec<usize>) -> f64) -> Plain {
        let data = indices(&shape).iter().map(element).collect();
        Plain { kind, shape, data }
    }

    pub fn map(&self, kind: Kind, f: impl Fn(f64) -> f64) -> Plain {
        Plain { kind, shape: self.shape.clone(), data: self.data.iter().map(|x| f(*x)).collect() }
    }

    pub fn zip(&self, other: &Plain, kind: Kind, f: impl Fn(f64, f64) -> f64) -> Plain {
        let shape = broadcast(&self.shape, &other.shape).expect("the shapes fit");
        Plain::make(kind, shape, |i| f(self.at_broadcast(i), other.at_broadcast(i)))
    }

    pub fn broadcast_to(&self, shape: &[usize]) -> Plain {
        Plain::make(self.kind, shape.to_vec(), |i| self.at_broadcast(i))
    }

    /// Makes one element of all elements along `axes`, given in C order.
    pub fn reduce(&self, kind: Kind, axes: &[usize], keepdims: bool, f: impl Fn(&[f64]) -> f64) -> Plain {
        let kept: Vec<usize> = (0..self.shape.len()).filter(|axis| !axes.contains(axis)).collect();
        let inner_shape: Vec<usize> = axes.iter().map(|&axis| self.shape[axis]).collect();
        let outer_shape: Vec<usize> = kept.iter().map(|&axis| self.shape[axis]).collect();
        let inner = indices(&inner_shape);
        let mut index = vec![0; self.shape.len()];
        let mut row = Vec::new();
        let reduced = Plain::make(kind, outer_shape, |outer| {
            kept.iter().zip(outer).for_each(|(&axis, &i)| index[axis] = i);
            row.clear();
            for inner in &inner {
                axes.iter().zip(inner).for_each(|(&axis, &i)| index[axis] = i);
                row.push(self.at(&index));
            }
            f(&row)
        });
        let extent = |axis: usize| if axes.contains(&axis) { 1 } else { self.shape[axis] };
        if keepdims {
            Plain { shape: (0..self.shape.len()).map(extent).collect(), ..reduced }
        } else {
            reduced
        }
    }

    pub fn cumsum(&self, axis: usize) -> Plain {
        let kind = self.kind.max(Kind::Int);
        Plain::make(kind, self.shape.clone(), |i| {
            let mut index = i.clone();
            (0..=i[axis])
                .map(|n| {
                    index[axis] = n;
                    self.at(&index)
                })
                .sum()
        })
    }

    /// The positions along an axis of the elements of each line in order, equal ones as they stand.
    pub fn argsort(&self, axis: usize) -> Plain {
        let extent = self.shape[axis];
        Plain::make(Kind::Int, self.shape.clone(), |i| {
            let at = |n: usize| {
                let mut index = i.clone();
                index[axis] = n;
                self.at(&index)
            };
            let mut order: Vec<usize> = (0..extent).collect();
            order.sort_by(|&a, &b| at(a).partial_cmp(&at(b)).expect("no NaN"));
            order[i[axis]] as f64
        })
    }

    pub fn sort(&self, axis: usize) -> Plain {
        let order = self.argsort(axis);
        Plain::make(self.kind, self.shape.clone(), |i| {
            let mut index = i.clone();
            index[axis] = order.at(i) as usize;
            self.at(&index)
        })
    }

    /// Each element moved along an axis, from the end on to the front.
    pub fn roll(&self, axis: usize, shift: i64) -> Plain {
        let extent = self.shape[axis] as i64;
        Plain::make(self.kind, self.shape.clone(), |i| {
            let mut index = i.clone();
            index[axis] = (i[axis] as i64 - shift).rem_euclid(extent) as usize;
            self.at(&index)
        })
    }

    pub fn transpose(&self, order: &[usize]) -> Plain {
        let shape = order.iter().map(|&axis| self.shape[axis]).collect();
        Plain::make(self.kind, shape, |i| {
            let mut index = vec![0; i.len()];
            order.iter().zip(i).for_each(|(&axis, &at)| index[axis] = at);
            self.at(&index)
        })
    }

    /// Every `step`-th element from `start` on along one axis, `count` of them.
    pub fn take(&self, axis: usize, start: usize, step: i64, count: usize) -> Plain {
        let mut shape = self.shape.clone();
        shape[axis] = count;
        Plain::make(self.kind, shape, |i| {
            let mut index = i.clone();
            index[axis] = (start as i64 + i[axis] as i64 * step) as usize;
            self.at(&index)
        })
    }

    pub fn reshape(&self, shape: Vec<usize>) -> Plain {
        Plain { shape, ..self.clone() }
    }

    pub fn concatenate(&self, other: &Plain, axis: usize) -> Plain {
        let mut shape = self.shape.clone();
        shape[axis] += other.shape[axis];
        Plain::make(self.kind.max(other.kind), shape, |i| {
            let mut index = i.clone();
            if i[axis] < self.shape[axis] {
                return self.at(&index);
            }
            index[axis] -= self.shape[axis];
            other.at(&index)
        })
    }

    pub fn matmul(&self, other: &Plain) -> Plain {
        let inner = self.shape[1];
        Plain::make(self.kind.max(other.kind), vec![self.shape[0], other.shape[1]], |i| {
            (0..inner).map(|k| self.at(&[i[0], k]) * other.at(&[k, i[1]])).sum()
        })
    }

    /// The entries along the first axis for which a mask is true.
    pub fn filter(&self, mask: &Plain) -> Plain {
        let chosen: Vec<usize> = (0..mask.data.len()).filter(|&i| mask.data[i] != 0.0).collect();
        let mut shape = self.shape.clone();
        shape[0] = chosen.len();
        Plain::make(self.kind, shape, |i| {
            let mut index = i.clone();
            index[0] = chosen[i[0]];
            self.at(&index)
        })
    }
}
