//! The logical node of functions of the program.

use super::apply::Apply;
use super::unit::Spec;
use crate::registered::Call;
use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::{DFSchema, DFSchemaRef, Result, internal_err};
use datafusion::logical_expr::{Expr, Extension, LogicalPlan, UserDefinedLogicalNodeCore};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// Calls functions of the program with the rows of its inputs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Applied {
    inputs: Vec<LogicalPlan>,
    spec: Arc<Spec>,
    /// The functions, each on the result of the one before.
    calls: Arc<[Call]>,
    /// All columns that come out.
    made: SchemaRef,
    schema: DFSchemaRef,
}

impl Applied {
    /// A plan that calls functions.
    pub(crate) fn plan(
        inputs: Vec<LogicalPlan>,
        spec: Spec,
        calls: Vec<Call>,
        made: Schema,
    ) -> Result<LogicalPlan> {
        let fields = made.fields().clone();
        let schema = Arc::new(DFSchema::from_unqualified_fields(fields, HashMap::new())?);
        let node =
            Applied { inputs, spec: Arc::new(spec), calls: calls.into(), made: Arc::new(made), schema };
        Ok(LogicalPlan::Extension(Extension { node: Arc::new(node) }))
    }

    /// The work of its operator.
    pub(crate) fn apply(&self) -> Apply {
        Apply { spec: Arc::clone(&self.spec), calls: Arc::clone(&self.calls), schema: Arc::clone(&self.made) }
    }
}

impl Hash for Applied {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inputs.hash(state);
        self.spec.hash(state);
        self.calls.hash(state);
    }
}

impl PartialOrd for Applied {
    fn partial_cmp(&self, other: &Applied) -> Option<Ordering> {
        (self == other).then_some(Ordering::Equal)
    }
}

impl UserDefinedLogicalNodeCore for Applied {
    fn name(&self) -> &str {
        "Applied"
    }

    fn inputs(&self) -> Vec<&LogicalPlan> {
        self.inputs.iter().collect()
    }

    fn schema(&self) -> &DFSchemaRef {
        &self.schema
    }

    fn expressions(&self) -> Vec<Expr> {
        Vec::new()
    }

    /// Functions get all rows and columns that they were given.
    fn prevent_predicate_push_down_columns(&self) -> HashSet<String> {
        self.schema.fields().iter().map(|field| field.name().clone()).collect()
    }

    fn fmt_for_explain(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Applied: {}", self.apply())
    }

    fn with_exprs_and_inputs(&self, _: Vec<Expr>, inputs: Vec<LogicalPlan>) -> Result<Applied> {
        let same = inputs.len() == self.inputs.len()
            && inputs
                .iter()
                .zip(&self.inputs)
                .all(|(new, old)| new.schema().fields().len() == old.schema().fields().len());
        if same {
            Ok(Applied { inputs, ..self.clone() })
        } else {
            internal_err!("a function of the program with other inputs")
        }
    }

    fn necessary_children_exprs(&self, _: &[usize]) -> Option<Vec<Vec<usize>>> {
        Some(self.inputs.iter().map(|input| (0..input.schema().fields().len()).collect()).collect())
    }
}
