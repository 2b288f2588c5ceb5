//! Operations that can be built only when the sizes of their inputs are known.
//!
//! The size of a selection by a mask is known only after a run (see [`tharsis_graph::phases`]). Most
//! operations accept such a tensor. Some need the sizes to be built: the last element, a reversed axis,
//! another shape. For these, a [`late`] node is a placeholder in the graph until a phase has found the sizes.
//! It is then replaced by the graph that the operation builds on tensors of known shape.

use crate::tensor::Tensor;
use std::fmt;
use std::sync::Arc;
use tharsis_graph::Error as GraphError;
use tharsis_graph::lower::{ExprId, Lowering};
use tharsis_graph::node::{Meta, NodeRef, Operator};
use tharsis_graph::shape::is_known;

type Build = dyn Fn(&[Tensor]) -> Tensor + Send + Sync;

/// An operation that awaits sizes.
struct Late {
    name: &'static str,
    /// All other arguments as text, for equality with operations of the same name.
    arguments: String,
    meta: Meta,
    build: Arc<Build>,
}

impl fmt::Debug for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Late {{ {}({}), {:?} }}", self.name, self.arguments, self.meta)
    }
}

/// `build` applied to `inputs` as soon as all their sizes are known. `meta` is the shape of the result as far
/// as it is known now, and its dtype. `arguments` are all other arguments of the operation: two calls with
/// equal names, arguments and inputs are computed once.
#[track_caller]
pub(crate) fn late(
    name: &'static str,
    arguments: impl fmt::Debug,
    meta: Meta,
    inputs: &[&Tensor],
    build: impl Fn(&[Tensor]) -> Tensor + Send + Sync + 'static,
) -> Tensor {
    let late = Late { name, arguments: format!("{arguments:?}"), meta, build: Arc::new(build) };
    Tensor::lazily(late, inputs)
}

impl Operator for Late {
    fn name(&self) -> &'static str {
        self.name
    }

    fn infer(&self, _: &[&Meta]) -> std::result::Result<Meta, GraphError> {
        Ok(self.meta.clone())
    }

    fn rebuilt(&self, inputs: &[NodeRef]) -> Option<std::result::Result<NodeRef, GraphError>> {
        if !inputs.iter().all(|input| is_known(&input.meta().shape)) {
            return None;
        }
        let inputs: Vec<Tensor> = inputs.iter().map(|input| Tensor::from_node(input.clone())).collect();
        let built = (self.build)(&inputs);
        Some(built.node().cloned().map_err(|error| error.cause().clone()))
    }

    fn lower(&self, _: &mut Lowering<'_>, _: &Meta, _: &[ExprId]) -> std::result::Result<ExprId, GraphError> {
        Err(GraphError::Internal(format!("{} was planned before its sizes were known", self.name)))
    }
}
