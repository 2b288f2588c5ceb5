//! Element-wise expressions over index spaces, and views of them.

use super::Lowering;
use crate::plan::{AxisMap, TensorId};
use crate::tiling::AxisTiling;
use std::collections::HashMap;
use tharsis_kernels::layout::c_strides;
use tharsis_kernels::program::{IndexForm, IndexMap};
use tharsis_kernels::{BinaryOp, DType, Fold, Scalar, UnaryOp};

/// The index of an expression in its lowering.
pub type ExprId = usize;

/// An element-wise expression: a value for each index of `shape`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub struct Expr {
    pub shape: Vec<usize>,
    pub dtype: DType,
    pub kind: ExprKind,
}

/// Kind of an expression. Arguments have the shape of the expression itself, except for `RowFold`.
#[derive(Clone, Debug)]
#[allow(missing_docs)]
pub enum ExprKind {
    Const(Scalar),
    /// A function of the index; one stride per axis.
    Index {
        form: IndexForm,
        map: IndexMap,
    },
    /// Part of a stored tensor; one map per axis of the tensor.
    Load {
        tensor: TensorId,
        axes: Vec<AxisMap>,
    },
    Cast(ExprId),
    /// A cast that rounds the result of a reduction: floating-point warnings of it are those of the
    /// reduction.
    Narrow(ExprId),
    Unary(UnaryOp, ExprId),
    Binary(BinaryOp, ExprId, ExprId),
    Where(ExprId, ExprId, ExprId),
    /// The argument's trailing axes folded; its leading axes are the shape.
    RowFold(Fold, ExprId),
    /// The argument, with the preferred cut of each axis; `None` for axes without a preference.
    Tiled(ExprId, Vec<Option<AxisTiling>>),
}

/// An affine view: coordinate `a` of the source is `axes[a].start + axes[a].step * index[axes[a].axis]`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[allow(missing_docs)]
pub struct View {
    pub shape: Vec<usize>,
    pub axes: Vec<AxisMap>,
}

impl View {
    /// Repeats `from` to the shape `to`, which it must broadcast to.
    pub fn broadcast(from: &[usize], to: &[usize]) -> View {
        assert!(from.len() <= to.len(), "{from:?} cannot be spread to {to:?}");
        let skipped = to.len() - from.len();
        let map = |(axis, &extent): (usize, &usize)| match (extent, to[axis + skipped]) {
            (1, wide) if wide != 1 => AxisMap { start: 0, step: 0, axis: None },
            _ => AxisMap::identity(axis + skipped),
        };
        View { shape: to.to_vec(), axes: from.iter().enumerate().map(map).collect() }
    }

    /// Axis `i` of the view is axis `order[i]` of the source.
    pub fn permute(from: &[usize], order: &[usize]) -> View {
        assert_eq!(order.len(), from.len(), "an order of other axes than those of {from:?}");
        let mut axes = vec![AxisMap::identity(0); from.len()];
        order.iter().enumerate().for_each(|(to, &axis)| axes[axis] = AxisMap::identity(to));
        View { shape: order.iter().map(|&axis| from[axis]).collect(), axes }
    }

    /// Drops `axes`, all of extent 1.
    pub fn squeeze(from: &[usize], dropped: &[usize]) -> View {
        let mut shape = Vec::new();
        let mut axes = Vec::new();
        for (axis, &extent) in from.iter().enumerate() {
            if dropped.contains(&axis) {
                assert_eq!(extent, 1, "axis {axis} of {from:?} is dropped and has elements");
                axes.push(AxisMap { start: 0, step: 0, axis: None });
            } else {
                axes.push(AxisMap::identity(shape.len()));
                shape.push(extent);
            }
        }
        View { shape, axes }
    }

    /// Puts axes of extent 1 at the positions `inserted`, counted in the result and ascending.
    pub fn insert(from: &[usize], inserted: &[usize]) -> View {
        let mut shape = Vec::new();
        let mut axes = Vec::new();
        let mut left = from.iter();
        for axis in 0..from.len() + inserted.len() {
            if inserted.contains(&axis) {
                shape.push(1);
            } else if let Some(&extent) = left.next() {
                axes.push(AxisMap::identity(axis));
                shape.push(extent);
            }
        }
        View { shape, axes }
    }

    fn is_identity(&self, from: &[usize]) -> bool {
        self.shape == from && self.axes.iter().enumerate().all(|(axis, map)| *map == AxisMap::identity(axis))
    }

    /// This view of a source that has `trailing` more axes behind its own; these stay as they are.
    fn extended(&self, trailing: &[usize]) -> View {
        let rank = self.shape.len();
        let mut wide = self.clone();
        wide.axes.extend((0..trailing.len()).map(|axis| AxisMap::identity(rank + axis)));
        wide.shape.extend_from_slice(trailing);
        wide
    }

    fn compose(&self, map: &AxisMap) -> AxisMap {
        let Some(axis) = map.axis else { return *map };
        let outer = self.axes[axis];
        let start = map.start as i64 + map.step * outer.start as i64;
        assert!(0 <= start, "a view begins before its source");
        AxisMap { start: start as usize, step: map.step * outer.step, axis: outer.axis }
    }

    fn of_form(&self, form: &IndexForm) -> IndexForm {
        assert_eq!(self.axes.len(), form.strides.len(), "a view of another rank than what it looks at");
        let mut strides = vec![0; self.shape.len()];
        let mut offset = form.offset;
        for (map, &stride) in self.axes.iter().zip(&form.strides) {
            offset += stride * map.start as i64;
            if let Some(axis) = map.axis {
                strides[axis] += stride * map.step;
            }
        }
        IndexForm { offset, strides }
    }

    fn of_preferences(&self, preferences: &[Option<AxisTiling>]) -> Vec<Option<AxisTiling>> {
        let mut out = vec![None; self.shape.len()];
        for (map, preference) in self.axes.iter().zip(preferences) {
            if let (Some(axis), Some(tiling)) = (map.axis, preference)
                && map.step == 1
                && map.start == 0
                && tiling.len() == self.shape[axis]
            {
                out[axis] = Some(tiling.clone());
            }
        }
        out
    }
}

impl Lowering<'_> {
    /// The expression of this number.
    pub fn expr(&self, id: ExprId) -> &Expr {
        &self.exprs[id]
    }

    /// Adds an expression, or returns the equal one that exists.
    pub fn add(&mut self, shape: &[usize], dtype: DType, kind: ExprKind) -> ExprId {
        let expr = Expr { shape: shape.to_vec(), dtype, kind };
        let key = format!("{expr:?}");
        if let Some(&known) = self.known.get(&key) {
            return known;
        }
        self.exprs.push(expr);
        let id = self.exprs.len() - 1;
        // Ids ascend in the order of evaluation.
        assert!(self.args(id).iter().all(|arg| *arg < id), "an expression is entered before its arguments");
        self.known.insert(key, id);
        id
    }

    /// A whole stored tensor.
    pub fn load(&mut self, tensor: TensorId) -> ExprId {
        let spec = &self.plan.tensors[tensor];
        let (shape, dtype) = (spec.tiling.shape(), spec.dtype);
        let axes = (0..shape.len()).map(AxisMap::identity).collect();
        self.add(&shape, dtype, ExprKind::Load { tensor, axes })
    }

    /// A function of the position in C order.
    pub fn index(&mut self, shape: &[usize], map: IndexMap) -> ExprId {
        let form = IndexForm { offset: 0, strides: c_strides(shape) };
        self.add(shape, map.dtype(), ExprKind::Index { form, map })
    }

    /// `arg` in another dtype.
    pub fn cast(&mut self, arg: ExprId, dtype: DType) -> ExprId {
        let Expr { shape, dtype: from, kind } = self.exprs[arg].clone();
        match kind {
            _ if from == dtype => arg,
            // A constant is rounded here, to every dtype on the way, instead of cast at run time.
            ExprKind::Const(scalar) => self.add(&shape, dtype, ExprKind::Const(round_scalar(scalar, dtype))),
            _ => self.add(&shape, dtype, ExprKind::Cast(arg)),
        }
    }

    /// The result of a reduction, rounded to its dtype.
    pub fn narrow(&mut self, arg: ExprId, dtype: DType) -> ExprId {
        let Expr { shape, dtype: from, kind } = &self.exprs[arg];
        if *from == dtype || matches!(kind, ExprKind::Const(_)) {
            return self.cast(arg, dtype);
        }
        let shape = shape.clone();
        self.add(&shape, dtype, ExprKind::Narrow(arg))
    }

    /// `arg` seen through `view`.
    pub fn view(&mut self, arg: ExprId, view: &View) -> ExprId {
        assert_eq!(view.axes.len(), self.exprs[arg].shape.len(), "a view of another rank than its source");
        if view.is_identity(&self.exprs[arg].shape) {
            return arg;
        }
        // A row fold extends the view for its argument, so one expression may be needed under several views.
        let mut done: HashMap<(ExprId, View), ExprId> = HashMap::new();
        let mut stack = vec![(arg, view.clone())];
        while let Some((id, view)) = stack.pop() {
            if done.contains_key(&(id, view.clone())) {
                continue;
            }
            let wanted = self.viewed_args(id, &view);
            let missing: Vec<_> = wanted.iter().filter(|key| !done.contains_key(*key)).cloned().collect();
            if missing.is_empty() {
                let args: Vec<ExprId> = wanted.iter().map(|key| done[key]).collect();
                let new = self.rebuild(id, &view, &args);
                done.insert((id, view), new);
            } else {
                stack.push((id, view));
                stack.extend(missing);
            }
        }
        done[&(arg, view.clone())]
    }

    fn viewed_args(&self, id: ExprId, view: &View) -> Vec<(ExprId, View)> {
        let same = |arg: &ExprId| (*arg, view.clone());
        match &self.exprs[id].kind {
            ExprKind::Const(_) | ExprKind::Index { .. } | ExprKind::Load { .. } => Vec::new(),
            ExprKind::Cast(a) | ExprKind::Narrow(a) | ExprKind::Unary(_, a) | ExprKind::Tiled(a, _) => {
                vec![same(a)]
            }
            ExprKind::Binary(_, a, b) => vec![same(a), same(b)],
            ExprKind::Where(a, b, c) => vec![same(a), same(b), same(c)],
            ExprKind::RowFold(_, a) => {
                let rank = self.exprs[id].shape.len();
                vec![(*a, view.extended(&self.exprs[*a].shape[rank..]))]
            }
        }
    }

    fn rebuild(&mut self, id: ExprId, view: &View, args: &[ExprId]) -> ExprId {
        let Expr { dtype, kind, .. } = self.exprs[id].clone();
        let kind = match kind {
            ExprKind::Const(scalar) => ExprKind::Const(scalar),
            ExprKind::Index { form, map } => ExprKind::Index { form: view.of_form(&form), map },
            ExprKind::Load { tensor, axes } => {
                ExprKind::Load { tensor, axes: axes.iter().map(|map| view.compose(map)).collect() }
            }
            ExprKind::Cast(_) => ExprKind::Cast(args[0]),
            ExprKind::Narrow(_) => ExprKind::Narrow(args[0]),
            ExprKind::Unary(op, _) => ExprKind::Unary(op, args[0]),
            ExprKind::Binary(op, ..) => ExprKind::Binary(op, args[0], args[1]),
            ExprKind::Where(..) => ExprKind::Where(args[0], args[1], args[2]),
            ExprKind::RowFold(fold, _) => ExprKind::RowFold(fold, args[0]),
            ExprKind::Tiled(_, preferences) => {
                let preferences = view.of_preferences(&preferences);
                if preferences.iter().all(Option::is_none) {
                    return args[0];
                }
                ExprKind::Tiled(args[0], preferences)
            }
        };
        self.add(&view.shape, dtype, kind)
    }

    /// All expressions that `roots` depend on, arguments before their users.
    pub fn reachable(&self, roots: &[ExprId]) -> Vec<ExprId> {
        let mut seen = std::collections::BTreeSet::new();
        let mut stack = roots.to_vec();
        while let Some(id) = stack.pop() {
            if seen.insert(id) {
                stack.extend(self.args(id));
            }
        }
        // An expression is added after its arguments, so ids ascend in the order of evaluation.
        seen.into_iter().collect()
    }

    pub(super) fn args(&self, id: ExprId) -> Vec<ExprId> {
        match &self.exprs[id].kind {
            ExprKind::Const(_) | ExprKind::Index { .. } | ExprKind::Load { .. } => Vec::new(),
            ExprKind::Cast(a)
            | ExprKind::Narrow(a)
            | ExprKind::Unary(_, a)
            | ExprKind::RowFold(_, a)
            | ExprKind::Tiled(a, _) => vec![*a],
            ExprKind::Binary(_, a, b) => vec![*a, *b],
            ExprKind::Where(a, b, c) => vec![*a, *b, *c],
        }
    }

    /// Estimated cost of one element, in the unit of `Step::cost`.
    pub(super) fn cost(&self, id: ExprId) -> f64 {
        let own = |&id: &ExprId| match &self.exprs[id].kind {
            ExprKind::Const(_) | ExprKind::Tiled(..) => 0.0,
            ExprKind::Index { .. } | ExprKind::Load { .. } => 2.0,
            ExprKind::Unary(op, _) => op.cost(),
            ExprKind::Binary(op, ..) => op.cost(),
            ExprKind::Cast(_) | ExprKind::Narrow(_) | ExprKind::Where(..) | ExprKind::RowFold(..) => 1.5,
        };
        let rank = self.exprs[id].shape.len();
        let width = |id: &ExprId| self.exprs[*id].shape.iter().skip(rank).product::<usize>() as f64;
        self.reachable(&[id]).iter().map(|id| own(id) * width(id)).sum()
    }
}

/// The number rounded to `dtype`.
pub(crate) fn round_scalar(scalar: Scalar, dtype: DType) -> Scalar {
    use tharsis_kernels::Element;
    tharsis_kernels::with_element!(dtype, T => T::from_scalar(scalar).to_scalar())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lower::Limits;
    use crate::plan::TensorSpec;
    use crate::tiling::Tiling;

    /// The coordinates of the source that a view shows at an index.
    fn shown(view: &View, index: &[usize]) -> Vec<i64> {
        let coordinate =
            |map: &AxisMap| map.start as i64 + map.axis.map_or(0, |a| map.step * index[a] as i64);
        view.axes.iter().map(coordinate).collect()
    }

    fn indices(shape: &[usize]) -> Vec<Vec<usize>> {
        let count: usize = shape.iter().product();
        let strides = c_strides(shape);
        let index = |flat: usize| {
            shape.iter().zip(&strides).map(|(extent, stride)| flat / *stride as usize % extent).collect()
        };
        (0..count).map(index).collect()
    }

    /// Views of (5, 7): a transpose, a reversed slice, a row that is repeated, and the diagonal.
    fn views() -> Vec<View> {
        let map = |start, step, axis| AxisMap { start, step, axis: Some(axis) };
        vec![
            View::permute(&[5, 7], &[1, 0]),
            View { shape: vec![2, 3], axes: vec![map(4, -2, 0), map(1, 2, 1)] },
            View { shape: vec![3, 7], axes: vec![AxisMap { start: 2, step: 0, axis: None }, map(0, 1, 1)] },
            View { shape: vec![5], axes: vec![map(0, 1, 0), map(0, 1, 0)] },
        ]
    }

    #[test]
    fn a_view_of_a_view_shows_what_they_show_one_after_the_other() {
        for inner in views() {
            let last = inner.shape.len() - 1;
            let mut outer = View { shape: inner.shape.clone(), axes: vec![] };
            outer.axes = (0..=last).map(AxisMap::identity).collect();
            // Every other element of the last axis, from the end.
            outer.shape[last] = inner.shape[last].div_ceil(2);
            outer.axes[last] = AxisMap { start: inner.shape[last] - 1, step: -2, axis: Some(last) };
            let axes = inner.axes.iter().map(|map| outer.compose(map)).collect();
            let composed = View { shape: outer.shape.clone(), axes };
            for index in indices(&outer.shape) {
                let between: Vec<usize> = shown(&outer, &index).iter().map(|&at| at as usize).collect();
                assert_eq!(shown(&composed, &index), shown(&inner, &between), "{inner:?} at {index:?}");
            }
        }
    }

    #[test]
    fn a_function_of_the_position_is_the_same_function_behind_a_view() {
        let form = IndexForm { offset: 3, strides: c_strides(&[5, 7]) };
        let number = |form: &IndexForm, at: &[i64]| {
            form.offset + form.strides.iter().zip(at).map(|(stride, at)| stride * at).sum::<i64>()
        };
        for view in views() {
            let behind = view.of_form(&form);
            for index in indices(&view.shape) {
                let at: Vec<i64> = index.iter().map(|&at| at as i64).collect();
                assert_eq!(number(&behind, &at), number(&form, &shown(&view, &index)), "{view:?}");
            }
        }
    }

    #[test]
    fn chunks_asked_for_are_seen_through_views_that_leave_the_axis_whole() {
        let cut = |len| Some(AxisTiling::Even { len, chunk: 2 });
        let seen = |view: &View| view.of_preferences(&[cut(5), cut(7)]);
        let [transposed, sliced, repeated, _] = views().try_into().unwrap();
        assert_eq!(seen(&transposed), [cut(7), cut(5)]);
        assert_eq!(seen(&sliced), [None, None]);
        assert_eq!(seen(&repeated), [None, cut(7)]);
        let head = View { shape: vec![4, 7], axes: (0..2).map(AxisMap::identity).collect() };
        assert_eq!(seen(&head), [None, cut(7)]);
    }

    #[test]
    fn views_casts_and_steps_that_change_nothing_are_no_expression_of_their_own() {
        let limits = Limits::new(1, 1 << 20);
        let mut lowering = Lowering::new(&limits);
        let tensor = lowering.add_tensor(TensorSpec { dtype: DType::F64, tiling: Tiling::whole(&[5, 7]) });
        let x = lowering.load(tensor);
        assert_eq!(lowering.load(tensor), x);
        let turn = |lowering: &mut Lowering<'_>, x| {
            let shape = lowering.expr(x).shape.clone();
            lowering.view(x, &View::permute(&shape, &[1, 0]))
        };
        let turned = turn(&mut lowering, x);
        assert_ne!(turned, x);
        assert_eq!(turn(&mut lowering, turned), x);
        assert_eq!(lowering.cast(x, DType::F64), x);
        let sum = lowering.add(&[5, 7], DType::F64, ExprKind::Binary(BinaryOp::Add, x, x));
        assert_eq!(lowering.add(&[5, 7], DType::F64, ExprKind::Binary(BinaryOp::Add, x, x)), sum);
        let inserted = View::insert(&[5, 7], &[0, 2]);
        assert_eq!(inserted.shape, [1, 5, 1, 7]);
        let wide = lowering.view(x, &inserted);
        assert_eq!(lowering.view(wide, &View::squeeze(&[1, 5, 1, 7], &[0, 2])), x);
    }

    #[test]
    fn a_number_is_rounded_to_each_dtype_on_its_way() {
        let limits = Limits::new(1, 1 << 20);
        let mut lowering = Lowering::new(&limits);
        let pi = lowering.add(&[2], DType::F64, ExprKind::Const(Scalar::Float(3.7)));
        let whole = lowering.cast(pi, DType::I64);
        let back = lowering.cast(whole, DType::F64);
        assert!(
            matches!(lowering.expr(back).kind, ExprKind::Const(Scalar::Float(3.0))),
            "{:?}",
            lowering.exprs
        );
        assert_eq!(round_scalar(Scalar::Float(0.1), DType::F32), Scalar::Float(f64::from(0.1_f32)));
        assert_eq!(round_scalar(Scalar::Int(258), DType::U8), Scalar::Unsigned(2));
    }

    #[test]
    fn an_expression_used_twice_costs_once() {
        let limits = Limits::new(1, 1 << 20);
        let mut lowering = Lowering::new(&limits);
        let x = lowering.index(&[4, 3], IndexMap::Position);
        let deep = lowering.add(&[4, 3], DType::I64, ExprKind::Unary(UnaryOp::Negative, x));
        let twice = lowering.add(&[4, 3], DType::I64, ExprKind::Binary(BinaryOp::Add, deep, deep));
        assert_eq!(lowering.cost(twice), 2.0 + UnaryOp::Negative.cost() + BinaryOp::Add.cost());
        // An element of a fold of rows costs what all elements of its row do.
        let rows = lowering.add(&[4], DType::I64, ExprKind::RowFold(Fold::Sum, deep));
        assert_eq!(lowering.cost(rows), 1.5 + 3.0 * lowering.cost(deep));
    }
}
