//! Recursive queries as bytes. Such a query is one task: each round reads the rows of the one before.

use arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::common::{Result, internal_datafusion_err, not_impl_err};
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::recursive_query::RecursiveQueryExec;
use datafusion::physical_plan::work_table::WorkTableExec;
use datafusion_proto::protobuf;
use prost::Message;
use std::sync::Arc;

/// A recursive query without its two terms.
#[derive(Clone, PartialEq, Message)]
pub(super) struct RecursiveNode {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(bool, tag = "2")]
    is_distinct: bool,
    #[prost(message, optional, tag = "3")]
    schema: Option<protobuf::Schema>,
}

/// The rows of the round before, of those columns that the recursive term reads.
#[derive(Clone, PartialEq, Message)]
pub(super) struct WorkTableNode {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(message, optional, tag = "2")]
    schema: Option<protobuf::Schema>,
}

impl RecursiveNode {
    pub(super) fn of(query: &RecursiveQueryExec) -> Result<RecursiveNode> {
        Ok(RecursiveNode {
            name: query.name().to_owned(),
            is_distinct: query.is_distinct(),
            schema: Some(ExecutionPlan::schema(query).as_ref().try_into()?),
        })
    }

    /// The query of decoded terms.
    pub(super) fn decoded(
        &self,
        start: &Arc<dyn ExecutionPlan>,
        step: &Arc<dyn ExecutionPlan>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = decoded_schema(self.schema.as_ref())?;
        let step = Arc::clone(step).transform_up(|node| match node.downcast_ref::<WorkTableExec>() {
            Some(table) if table.name() == self.name => {
                let columns = columns_of(&schema, &table.schema())?;
                let table = WorkTableExec::new(self.name.clone(), Arc::clone(&schema), Some(columns))?;
                Ok(Transformed::yes(Arc::new(table) as Arc<dyn ExecutionPlan>))
            }
            _ => Ok(Transformed::no(node)),
        })?;
        let (name, start) = (self.name.clone(), Arc::clone(start));
        Ok(Arc::new(RecursiveQueryExec::try_new(name, schema, start, step.data, self.is_distinct)?))
    }
}

impl WorkTableNode {
    pub(super) fn of(table: &WorkTableExec) -> Result<WorkTableNode> {
        let schema = Some(table.schema().as_ref().try_into()?);
        Ok(WorkTableNode { name: table.name().to_owned(), schema })
    }

    /// The table, which its query replaces when it is decoded: it knows the columns that are left out.
    pub(super) fn decoded(&self) -> Result<Arc<dyn ExecutionPlan>> {
        let schema = decoded_schema(self.schema.as_ref())?;
        Ok(Arc::new(WorkTableExec::new(self.name.clone(), schema, None)?))
    }
}

fn decoded_schema(schema: Option<&protobuf::Schema>) -> Result<SchemaRef> {
    let schema = schema.ok_or_else(|| internal_datafusion_err!("a recursive query without a schema"))?;
    Ok(Arc::new(schema.try_into()?))
}

/// The places of columns in all columns, by their names.
fn columns_of(all: &Schema, some: &Schema) -> Result<Vec<usize>> {
    let place = |name: &str| {
        let mut places = all.fields().iter().enumerate().filter(|(_, field)| field.name() == name);
        match (places.next(), places.next()) {
            (Some((place, _)), None) => Ok(place),
            _ => not_impl_err!("a recursive query whose columns have equal names cannot be sent"),
        }
    };
    some.fields().iter().map(|field| place(field.name())).collect()
}
