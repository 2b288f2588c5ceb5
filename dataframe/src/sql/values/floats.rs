//! Floats of statements, as those of frames: there is one zero, and what is not a number is missing.
//!
//! Files may have other ones, and the library makes some: `-1 * 0.0`, `0.0 / 0.0`. It answers
//! `count(x)` and `max(x)` by statistics of files in which such values count, and finds `x IN (..)` by their
//! bits. So columns of files, elements of lists, and results of operators and functions, are made so where
//! they come from; what compares, groups and counts them sees no others.

use super::file_decimals;
use crate::error::Result;
use crate::functions::arithmetic::{is_present, present};
use datafusion::common::tree_node::{Transformed, TreeNode, TreeNodeRecursion};
use datafusion::common::{Column, DFSchema, Result as EngineResult, ScalarValue};
use datafusion::datasource::listing::ListingTable;
use datafusion::datasource::source_as_provider;
use datafusion::logical_expr::expr_rewriter::NamePreserver;
use datafusion::logical_expr::utils::merge_schema;
use datafusion::logical_expr::{
    BinaryExpr, Expr, ExprSchemable, LogicalPlan, Operator, Projection, TableScan,
};
use std::sync::Arc;

/// Functions of the library that give one of their arguments, or a float that is one of frames.
const KEPT: [&str; 8] = ["abs", "coalesce", "floor", "greatest", "ifnull", "least", "nullif", "nvl"];

/// Beginning of the names of functions of this crate, which give such floats.
const OURS: &str = "tharsis_";

/// The plan whose floats are those of frames.
pub(in crate::sql) fn as_of_frames(plan: LogicalPlan) -> Result<LogicalPlan> {
    let mut has_others = false;
    plan.apply_with_subqueries(|node| {
        has_others |= match node {
            LogicalPlan::TableScan(scan) => is_of_files(scan),
            node => matches!(node, LogicalPlan::Unnest(_)),
        };
        Ok(if has_others { TreeNodeRecursion::Stop } else { TreeNodeRecursion::Continue })
    })?;
    let changed = plan.transform_up_with_subqueries(|node| match node {
        LogicalPlan::TableScan(ref scan) if is_of_files(scan) => {
            Ok(Transformed::yes(read(file_decimals::rounded(node)?)?))
        }
        // Files and lists have any floats within lists.
        LogicalPlan::Unnest(_) => Ok(Transformed::yes(read(node.recompute_schema()?)?)),
        // Columns that have values in all rows may lack some.
        node if has_others => with_floats(node.recompute_schema()?),
        node => with_floats(node),
    })?;
    Ok(changed.data)
}

/// Whether a table is of files that statements read; frames see to their own ones.
fn is_of_files(scan: &TableScan) -> bool {
    source_as_provider(&scan.source).is_ok_and(|table| table.downcast_ref::<ListingTable>().is_some())
}

/// The rows of files, or elements of lists, with floats of frames.
fn read(rows: LogicalPlan) -> EngineResult<LogicalPlan> {
    let columns = rows.schema().iter().map(|(table, field)| {
        let column = Expr::Column(Column::new(table.cloned(), field.name()));
        if field.data_type().is_floating() {
            present(column).alias_qualified(table.cloned(), field.name())
        } else {
            column
        }
    });
    let columns: Vec<Expr> = columns.collect();
    if columns.iter().all(|column| matches!(column, Expr::Column(_))) {
        return Ok(rows);
    }
    Ok(LogicalPlan::Projection(Projection::try_new(columns, Arc::new(rows))?))
}

fn with_floats(node: LogicalPlan) -> EngineResult<Transformed<LogicalPlan>> {
    let schema = merge_schema(&node.inputs());
    let names = NamePreserver::new(&node);
    let changed = node.map_expressions(|expr| {
        // The names of its parts are those of columns, and they cannot be preserved; GROUPING() names them.
        let is_set = |part: &Expr| match part {
            Expr::AggregateFunction(call) => call.func.name() == "grouping",
            part => matches!(part, Expr::GroupingSet(_)),
        };
        if expr.exists(|part| Ok(is_set(part)))? {
            return Ok(Transformed::no(expr));
        }
        let name = names.save(&expr);
        let changed = expr.transform_up(|part| Ok(as_of_frame(part, &schema)))?;
        Ok(if changed.transformed { changed.update_data(|expr| name.restore(expr)) } else { changed })
    })?;
    if changed.transformed { changed.map_data(LogicalPlan::recompute_schema) } else { Ok(changed) }
}

/// An expression over rows, whose floats are those of frames. It may have another name.
pub(in crate::sql) fn value(expr: Expr, schema: &DFSchema) -> EngineResult<Expr> {
    Ok(expr.transform_up(|part| Ok(as_of_frame(part, schema)))?.data)
}

/// The expression, or one whose float is one of frames.
fn as_of_frame(part: Expr, schema: &DFSchema) -> Transformed<Expr> {
    let part = match literal(part) {
        Ok(changed) => return Transformed::yes(changed),
        Err(part) => part,
    };
    let part = match part {
        // Frames have looked at it already.
        Expr::ScalarFunction(mut call) if is_present(&call.func) && call.args.iter().all(is_looked_at) => {
            let looked_at = call.args.pop();
            return Transformed::yes(looked_at.unwrap_or(Expr::ScalarFunction(call)));
        }
        part => part,
    };
    let makes = match &part {
        Expr::BinaryExpr(binary) => is_arithmetic(binary),
        Expr::Negative(_) => true,
        // A text may be of any float, and a small number is none of a narrow type.
        Expr::Cast(_) | Expr::TryCast(_) => true,
        Expr::ScalarFunction(call) => {
            let name = call.func.name();
            !KEPT.contains(&name) && !name.starts_with(OURS)
        }
        _ => false,
    };
    // A column of a query around this one, or a parameter, has no type here.
    if !makes || !part.get_type(schema).is_ok_and(|dtype| dtype.is_floating()) || is_exact(&part, schema) {
        return Transformed::no(part);
    }
    Transformed::yes(present(without_inner(part)))
}

fn is_arithmetic(binary: &BinaryExpr) -> bool {
    use Operator::{Divide, Minus, Modulo, Multiply, Plus};
    matches!(binary.op, Plus | Minus | Multiply | Divide | Modulo)
}

/// Whether a cast gives such floats of such values: of integers, decimals, and floats that are narrower.
fn is_exact(part: &Expr, schema: &DFSchema) -> bool {
    let (Expr::Cast(_) | Expr::TryCast(_)) = part else { return false };
    let mut is_exact = false;
    let to = part.get_type(schema).ok();
    // The closure does not fail.
    let _whole = part.apply_children(|value| {
        let of = value.get_type(schema).ok();
        is_exact = of.zip(to.as_ref()).is_some_and(|(of, to)| {
            let is_wider = of.is_floating() && of.primitive_width() <= to.primitive_width();
            of.is_integer() || of.is_decimal() || of.is_null() || is_wider
        });
        Ok(TreeNodeRecursion::Continue)
    });
    is_exact
}

/// A chain of operators is looked at once, at its end: what is not a number stays so on the way. A divisor is
/// looked at by itself: it says the sign of what it divides.
fn without_inner(part: Expr) -> Expr {
    let bare = |operand: Box<Expr>| match *operand {
        Expr::ScalarFunction(mut call) if is_present(&call.func) && call.args.iter().all(is_operator) => {
            call.args.pop().map_or_else(|| Box::new(Expr::ScalarFunction(call)), Box::new)
        }
        other => Box::new(other),
    };
    match part {
        Expr::BinaryExpr(BinaryExpr { left, op, right }) => {
            let is_divisor = matches!(op, Operator::Divide | Operator::Modulo);
            let right = if is_divisor { right } else { bare(right) };
            Expr::BinaryExpr(BinaryExpr { left: bare(left), op, right })
        }
        other => other,
    }
}

fn is_looked_at(expr: &Expr) -> bool {
    matches!(expr, Expr::ScalarFunction(call) if is_present(&call.func))
}

fn is_operator(expr: &Expr) -> bool {
    matches!(expr, Expr::BinaryExpr(_) | Expr::Negative(_))
}

/// The literal of another float; the expression itself if it is none.
fn literal(part: Expr) -> std::result::Result<Expr, Expr> {
    let Expr::Literal(value, metadata) = part else { return Err(part) };
    let changed = match value {
        ScalarValue::Float64(Some(value)) if value.is_nan() => ScalarValue::Float64(None),
        ScalarValue::Float32(Some(value)) if value.is_nan() => ScalarValue::Float32(None),
        ScalarValue::Float64(Some(value)) if value == 0.0 && value.is_sign_negative() => {
            ScalarValue::Float64(Some(0.0))
        }
        ScalarValue::Float32(Some(value)) if value == 0.0 && value.is_sign_negative() => {
            ScalarValue::Float32(Some(0.0))
        }
        value => return Err(Expr::Literal(value, metadata)),
    };
    Ok(Expr::Literal(changed, metadata))
}

#[cfg(test)]
mod tests {
    use crate::sql::SqlSession;
    use arrow::array::{Float32Array, Float64Array, Int64Array, ListArray, RecordBatch};
    use arrow::datatypes::Float64Type;
    use datafusion::parquet::arrow::ArrowWriter;
    use std::sync::Arc;

    /// A session with a table of a file, in which floats are zeros of both signs and no numbers.
    fn session(folder: &std::path::Path) -> SqlSession {
        let (nan, small) = (f64::NAN, f32::NAN);
        let batch = RecordBatch::try_from_iter([
            ("k", Arc::new(Int64Array::from(vec![1, 2, 3, 4, 5])) as _),
            ("x", Arc::new(Float64Array::from(vec![0.0, -0.0, nan, -nan, 1.5])) as _),
            ("y", Arc::new(Float32Array::from(vec![small, -0.0, 0.0, 2.5, -1.0])) as _),
            ("z", Arc::new(Float64Array::from(vec![Some(nan), None, Some(nan), None, None])) as _),
        ])
        .expect("a batch");
        session_of(folder, &batch)
    }

    /// A session with a table of a file of these rows.
    fn session_of(folder: &std::path::Path, batch: &RecordBatch) -> SqlSession {
        let path = folder.join("floats.parquet");
        let file = std::fs::File::create(&path).expect("a file");
        let mut writer = ArrowWriter::try_new(file, batch.schema(), None).expect("a writer");
        writer.write(batch).expect("rows");
        writer.close().expect("a footer");
        let mut session = SqlSession::default();
        let made = format!("create external table f stored as parquet location '{}'", path.display());
        session.run(&made).expect("a table");
        session
    }

    #[test]
    fn statistics_of_files_count_no_missing_floats() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut session = session(folder.path());
        for (query, expected) in [
            ("select count(*), count(k), count(x), count(y), count(z) from f", "5 5 3 4 0"),
            ("select count(x) from f", "3"),
            ("select min(x), max(x), min(y), max(y), max(z) from f", "0 1.5 -1 2.5 NULL"),
            ("select count(distinct x) from f", "2"),
            ("select sum(x), avg(x) from f where x is not null", "1.5 0.5"),
            ("select count(*) from f where x is null", "2"),
            ("select count(*) from f where x = 0 and x < 1.5", "2"),
            ("select count(*) from f where not x > 1", "2"),
            ("select count(*) from f a join f b on a.x = b.x", "5"),
            ("select count(*) from f where x in (0.0, 2.5, 3.5, 4.5, 5.5)", "2"),
            ("select count(*) from (select x from f intersect select y from f) s", "2"),
            ("select count(*) from f where y in (select x from f)", "2"),
        ] {
            let rows = session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
            assert_eq!(rows.concat().join(" "), expected, "{query}");
        }
        // A view reads what the table has.
        session.run("create view v as select k, x from f").expect("a view");
        assert_eq!(session.run("select count(x) from v").expect("a row"), [["3"]]);
    }

    #[test]
    fn elements_of_lists_are_floats_of_frames() {
        let folder = tempfile::tempdir().expect("a folder");
        let floats = [Some(0.0), Some(-0.0), Some(f64::NAN), None];
        let lists = ListArray::from_iter_primitive::<Float64Type, _, _>([
            Some(floats.to_vec()),
            None,
            Some(vec![Some(1.5), Some(f64::NAN)]),
        ]);
        let batch = RecordBatch::try_from_iter([("l", Arc::new(lists) as _)]).expect("a batch");
        let mut session = session_of(folder.path(), &batch);
        for (query, expected) in [
            ("select count(v), count(*), count(distinct v) from (select unnest(l) v from f) s", "3 6 2"),
            (
                "select v, count(*) from (select unnest(l) v from f) s group by v order by v",
                "0 2 1.5 1 NULL 3",
            ),
            ("select max(v), min(v) from (select unnest(l) v from f) s", "1.5 0"),
            ("select count(*) from (select unnest(l) v from f) s where v in (0.0, 5.5, 6.5, 7.5, 8.5)", "2"),
            ("select unnest([1.5, -0.0, cast('NaN' as double)])", "1.5 0 NULL"),
            ("select l[2] is null, l[3] is null from f where l[1] = 0", "false true"),
        ] {
            let rows = session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
            assert_eq!(rows.concat().join(" "), expected, "{query}");
        }
        let frame = crate::read_parquet(&folder.path().join("floats.parquet").to_string_lossy());
        let exploded = frame.explode("l");
        let expected = [Some(0.0), Some(0.0), None, None, None, Some(1.5), None];
        assert_eq!(exploded.col("l").values::<f64>().expect("floats"), expected);
        assert_eq!(exploded.nunique().col("0").values::<i64>().expect("numbers"), [Some(2)]);
    }

    #[test]
    fn results_of_operators_are_floats_of_frames() {
        let mut session = SqlSession::default();
        session.run("create table t as values (1, 0.0), (2, -0.0), (3, 1.5)").expect("a table");
        for (query, expected) in [
            ("select count(distinct column2), count(distinct -column2) from t", "2 2"),
            ("select count(*) from t where column2 * -1 in (0.0, 5.5, 6.5, 7.5, 8.5)", "2"),
            ("select count(0.0 / column2), count(column2 % column2) from t", "1 1"),
            ("select max(r) from (select rank() over (order by -column2) r from t) s", "2"),
            ("select max(n) from (select count(*) over (partition by column2 * -1) n from t) s", "2"),
            (
                "select 1.0 / (0.0 * -1) > 0, cast('-0' as double), cast('NaN' as double) is null",
                "true 0 true",
            ),
            ("select round(-0.2), ceil(-0.5), cast(-1e-300 as real)", "0 0 0"),
            ("select count(*) from t a join t b on a.column2 * -1 = b.column2", "4"),
        ] {
            let rows = session.run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
            assert_eq!(rows.concat().join(" "), expected, "{query}");
        }
    }

    #[test]
    fn values_of_parameters_are_floats_of_frames() {
        let mut session = SqlSession::default();
        for statement in [
            "create table t (x double) as values (0.0), (1.5)",
            "prepare equal(double) as select count(*) from t where x = $1",
            "prepare shown(double) as select $1 v, $1 is null n",
            "prepare small(real) as select $1 v",
            "prepare made(double) as select 1.0 / (x * $1) > 0 p from t where x > 1",
        ] {
            session.run(statement).expect("a statement");
        }
        for (statement, expected) in [
            ("execute equal('-0')", "1"),
            ("execute shown('NaN')", "NULL true"),
            ("execute shown('-0')", "0 false"),
            ("execute small(-1e-60)", "0"),
            ("execute made('-0')", "true"),
        ] {
            let rows = session.run(statement).unwrap_or_else(|error| panic!("{statement}: {error}"));
            assert_eq!(rows.concat().join(" "), expected, "{statement}");
        }
    }
}
