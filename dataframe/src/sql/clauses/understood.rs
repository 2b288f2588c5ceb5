//! Refuses what the library reads and then leaves out.
//!
//! Its parser knows the clauses of many dialects; its planner takes those that it needs and drops the others
//! without a word: `FOR UPDATE`, `PREWHERE`, `WITH ROLLUP`. So every field of a query is named here, without
//! `..`: it is planned, or it is refused. A new version of the parser with one more field does not compile
//! until somebody has decided about it.
//!
//! Some forms that are planned wrongly are written here in another way, or refused too.

use super::counted_sets::mark_counted;
use super::forms::write_forms;
use super::limits::write_limits;
use super::samples::check_read_once;
use crate::error::{Error, Result};
use crate::sql::depth::flatten;
use crate::sql::names::distinct_names::name_apart;
use crate::sql::names::namesakes::Doubles;
use datafusion::logical_expr::sqlparser::ast::{
    BinaryOperator, ColumnDef, ColumnOption, ColumnOptionDef, Cte, DuplicateTreatment, Expr,
    ExprWithAliasAndOrderBy, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, GroupByExpr, Join, NamedWindowDefinition, NamedWindowExpr,
    NullTreatment, NullsDistinctOption, OrderBy, OrderByExpr, OrderByKind, PipeOperator, Query, Select,
    SelectFlavor, SelectItem, SetExpr, SetOperator, SetQuantifier, Statement as SqlStatement, TableAlias,
    TableConstraint, TableFactor, TableFunctionArgs, TableWithJoins, UnaryOperator, UniqueConstraint, Value,
    ValueWithSpan, Visit, VisitMut, VisitorMut, WildcardAdditionalOptions, WindowSpec, WindowType,
    visit_expressions,
};
use datafusion::sql::parser::{CopyToSource, CreateExternalTable, Statement};
use std::ops::ControlFlow;

/// Checks a statement, and writes some of its forms in another way. `is_scalar` says of a name whether it is
/// a function of one row.
pub(in crate::sql) fn understand(
    statement: &mut Statement,
    is_scalar: &dyn Fn(&str) -> bool,
    doubles: &Doubles,
) -> Result<()> {
    let mut reader = Reader { is_scalar };
    let read = match statement {
        Statement::Statement(statement) => {
            if let SqlStatement::CreateTable(table) = &**statement {
                read_columns(&table.columns)?;
                table.constraints.iter().try_for_each(read_constraint)?;
                let mut options = table.columns.iter().flat_map(|column| &column.options);
                let has_rule = options.any(|option| matches!(option.option, ColumnOption::NotNull));
                // The columns of such a table are those of the query, which may have missing values.
                refuse(has_rule && table.query.is_some(), "NOT NULL of a table AS a query")?;
            }
            write_forms(&mut **statement, doubles)?;
            statement.visit(&mut reader)
        }
        Statement::CopyTo(copy) => match &mut copy.source {
            CopyToSource::Query(query) => {
                write_forms(&mut **query, doubles)?;
                query.visit(&mut reader)
            }
            CopyToSource::Relation(_) => ControlFlow::Continue(()),
        },
        Statement::Explain(explain) => return understand(&mut explain.statement, is_scalar, doubles),
        Statement::CreateExternalTable(table) => {
            flatten(&mut table.columns)?;
            return read_external(table);
        }
        Statement::Reset(_) => ControlFlow::Continue(()),
    };
    read.break_value().map_or(Ok(()), Err)
}

struct Reader<'a> {
    is_scalar: &'a dyn Fn(&str) -> bool,
}

impl VisitorMut for Reader<'_> {
    type Break = Error;

    fn pre_visit_query(&mut self, query: &mut Query) -> ControlFlow<Error> {
        flow(write_limits(query))?;
        flow(read_query(query))?;
        flow(check_read_once(query))?;
        flow(read_set(&mut query.body))?;
        name_apart(query);
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, select: &mut Select) -> ControlFlow<Error> {
        flow(read_select(select))
    }

    fn pre_visit_table_factor(&mut self, factor: &mut TableFactor) -> ControlFlow<Error> {
        flow(read_factor(factor))
    }

    fn pre_visit_expr(&mut self, expr: &mut Expr) -> ControlFlow<Error> {
        flow(match expr {
            Expr::Function(function) => self.read_function(function),
            Expr::Like { pattern, escape_char, .. } | Expr::ILike { pattern, escape_char, .. } => {
                escape_by_backslash(pattern, escape_char);
                Ok(())
            }
            _ => Ok(()),
        })
    }
}

fn flow(read: Result<()>) -> ControlFlow<Error> {
    match read {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => ControlFlow::Break(error),
    }
}

/// Refuses a clause that is there.
fn refuse(is_there: bool, clause: &str) -> Result<()> {
    if is_there { Err(Error::NotImplemented(format!("{clause} is not supported"))) } else { Ok(()) }
}

/// Files may have any rows: nobody checks their keys, and planning would rely on them.
fn read_external(table: &CreateExternalTable) -> Result<()> {
    read_columns(&table.columns)?;
    let mut options = table.columns.iter().flat_map(|column| &column.options);
    let is_key = |option: &ColumnOptionDef| {
        matches!(option.option, ColumnOption::PrimaryKey(_) | ColumnOption::Unique(_))
    };
    let has_keys = !table.constraints.is_empty() || options.any(is_key);
    refuse(has_keys, "PRIMARY KEY or UNIQUE of files, which nobody checks,")
}

/// A column without what is said about it would have other values, or fewer errors.
fn read_columns(columns: &[ColumnDef]) -> Result<()> {
    for ColumnDef { name, data_type: _, options } in columns {
        for ColumnOptionDef { name: _, option } in options {
            match option {
                // The library refuses checks and foreign keys.
                ColumnOption::Check(_)
                | ColumnOption::Comment(_)
                | ColumnOption::Default(_)
                | ColumnOption::ForeignKey(_)
                | ColumnOption::NotNull
                | ColumnOption::Null
                | ColumnOption::PrimaryKey(_) => {}
                ColumnOption::Unique(key) => read_unique(key)?,
                ColumnOption::Alias(_)
                | ColumnOption::CharacterSet(_)
                | ColumnOption::Collation(_)
                | ColumnOption::DialectSpecific(_)
                | ColumnOption::Ephemeral(_)
                | ColumnOption::Generated { .. }
                | ColumnOption::Identity(_)
                | ColumnOption::Invisible
                | ColumnOption::Materialized(_)
                | ColumnOption::OnConflict(_)
                | ColumnOption::OnUpdate(_)
                | ColumnOption::Options(_)
                | ColumnOption::Policy(_)
                | ColumnOption::Srid(_)
                | ColumnOption::Tags(_) => refuse(true, &format!("{option} of the column {name}"))?,
            }
        }
    }
    Ok(())
}

fn read_constraint(constraint: &TableConstraint) -> Result<()> {
    match constraint {
        TableConstraint::Unique(key) => read_unique(key),
        // Primary keys have no missing values; the library refuses all others.
        _ => Ok(()),
    }
}

fn read_unique(key: &UniqueConstraint) -> Result<()> {
    let is_strict = matches!(key.nulls_distinct, NullsDistinctOption::NotDistinct);
    refuse(is_strict, "UNIQUE NULLS NOT DISTINCT")
}

fn read_query(query: &Query) -> Result<()> {
    let Query {
        with,
        body: _,
        order_by,
        limit_clause: _,
        // It is written as a limit.
        fetch: _,
        locks,
        for_clause,
        settings,
        format_clause,
        pipe_operators,
    } = query;
    refuse(!locks.is_empty(), "FOR UPDATE or FOR SHARE")?;
    refuse(for_clause.is_some(), "FOR XML or FOR JSON")?;
    refuse(settings.is_some(), "SETTINGS of a query")?;
    refuse(format_clause.is_some(), "FORMAT of a query")?;
    for table in with.iter().flat_map(|with| &with.cte_tables) {
        let Cte { alias, query: _, from, materialized: _, closing_paren_token: _ } = table;
        refuse(from.is_some(), "FROM behind a query of WITH")?;
        read_alias(Some(alias))?;
    }
    refuse_named_windows(order_by, "ORDER BY")?;
    if let Some(OrderBy { kind, interpolate }) = order_by {
        refuse(interpolate.is_some(), "ORDER BY .. INTERPOLATE")?;
        match kind {
            OrderByKind::Expressions(keys) => read_keys(keys)?,
            OrderByKind::All(_) => {}
        }
    }
    for operator in pipe_operators {
        match operator {
            PipeOperator::Intersect { set_quantifier, .. } | PipeOperator::Except { set_quantifier, .. } => {
                let keeps_all = matches!(set_quantifier, SetQuantifier::All | SetQuantifier::AllByName);
                refuse(keeps_all, "|> INTERSECT ALL or EXCEPT ALL")?;
            }
            PipeOperator::OrderBy { exprs } => read_keys(exprs)?,
            PipeOperator::Join(join) => read_join(join)?,
            PipeOperator::Aggregate { full_table_exprs, group_by_expr } => {
                let is_ordered = |made: &ExprWithAliasAndOrderBy| {
                    made.order_by.asc.is_some() || made.order_by.nulls_first.is_some()
                };
                let is_ordered = full_table_exprs.iter().chain(group_by_expr).any(is_ordered);
                refuse(is_ordered, "an order within AGGREGATE (write ORDER BY behind it)")?;
            }
            _ => {}
        }
    }
    Ok(())
}

/// Queries within a set are visited by themselves; the operators between them are not.
fn read_set(body: &mut SetExpr) -> Result<()> {
    let SetExpr::SetOperation { left, op, set_quantifier, right } = body else { return Ok(()) };
    read_operator(*op, *set_quantifier, left)?;
    read_set(left)?;
    read_set(right)
}

/// The library takes them for semi and anti joins, which count no equal rows: the left side says that these
/// are to be counted.
fn read_operator(operator: SetOperator, quantifier: SetQuantifier, left: &mut SetExpr) -> Result<()> {
    let is_union = matches!(operator, SetOperator::Union);
    let is_by_name = matches!(quantifier, SetQuantifier::AllByName);
    refuse(is_by_name && !is_union, &format!("{operator} ALL BY NAME"))?;
    if matches!(quantifier, SetQuantifier::All) && !is_union {
        mark_counted(left)?;
    }
    Ok(())
}

fn read_keys(keys: &[OrderByExpr]) -> Result<()> {
    keys.iter().try_for_each(|OrderByExpr { expr: _, options: _, with_fill }| {
        refuse(with_fill.is_some(), "ORDER BY .. WITH FILL")
    })
}

fn read_select(select: &mut Select) -> Result<()> {
    let Select {
        select_token: _,
        // Comments.
        optimizer_hints: _,
        distinct: _,
        select_modifiers,
        top: _,
        top_before_distinct: _,
        projection,
        exclude,
        into: _,
        from,
        lateral_views: _,
        prewhere,
        selection: _,
        connect_by,
        group_by,
        cluster_by: _,
        distribute_by: _,
        sort_by: _,
        having: _,
        named_window,
        qualify,
        window_before_qualify: _,
        value_table_mode,
        flavor,
    } = select;
    refuse(select_modifiers.is_some(), "a word of MySQL behind SELECT")?;
    refuse(exclude.is_some(), "EXCLUDE behind the columns of SELECT")?;
    refuse(prewhere.is_some(), "PREWHERE (write WHERE)")?;
    refuse(!connect_by.is_empty(), "CONNECT BY")?;
    refuse(value_table_mode.is_some(), "SELECT AS VALUE or SELECT AS STRUCT")?;
    match group_by {
        GroupByExpr::All(modifiers) | GroupByExpr::Expressions(_, modifiers) => {
            let text = "WITH ROLLUP, CUBE or TOTALS behind GROUP BY (write GROUP BY ROLLUP(..) or CUBE(..))";
            refuse(!modifiers.is_empty(), text)?;
        }
    }
    for NamedWindowDefinition(_, window) in named_window.iter() {
        match window {
            NamedWindowExpr::WindowSpec(window) => read_window(window)?,
            // The library takes it for one that is not defined.
            NamedWindowExpr::NamedWindow(_) => {}
        }
    }
    refuse_named_windows(qualify, "QUALIFY")?;
    from.iter().try_for_each(read_joins)?;
    if *flavor == SelectFlavor::FromFirstNoSelect {
        *flavor = SelectFlavor::Standard;
        *projection = vec![SelectItem::Wildcard(WildcardAdditionalOptions::default())];
    }
    Ok(())
}

fn read_window(window: &WindowSpec) -> Result<()> {
    let WindowSpec { window_name, partition_by: _, order_by, window_frame: _ } = window;
    refuse(window_name.is_some(), "a window that is made of another one (write all of it)")?;
    read_keys(order_by)
}

/// The library puts the definitions of windows in the place of their names among the columns of a query only.
/// Elsewhere it takes `sum(x) OVER w` for `sum(x)`.
fn refuse_named_windows(part: &impl Visit, clause: &str) -> Result<()> {
    let found = visit_expressions(part, |expr| match expr {
        Expr::Function(Function { over: Some(WindowType::NamedWindow(_)), .. }) => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    });
    refuse(found.is_break(), &format!("the name of a window in {clause} (write all of it)"))
}

fn read_joins(tables: &TableWithJoins) -> Result<()> {
    let TableWithJoins { relation: _, joins } = tables;
    joins.iter().try_for_each(read_join)
}

fn read_join(join: &Join) -> Result<()> {
    // The library refuses operators that it does not have.
    let Join { relation: _, global, join_operator: _ } = join;
    refuse(*global, "GLOBAL JOIN")
}

fn read_factor(factor: &TableFactor) -> Result<()> {
    match factor {
        TableFactor::Table {
            name: _,
            alias,
            args,
            with_hints,
            version,
            with_ordinality,
            partitions,
            json_path,
            // It is planned.
            sample: _,
            index_hints,
        } => {
            if let Some(TableFunctionArgs { args: _, settings }) = args {
                refuse(settings.is_some(), "SETTINGS of a table function")?;
            }
            refuse(!with_hints.is_empty(), "WITH (..) behind a table")?;
            refuse(version.is_some(), "a version of a table")?;
            refuse(*with_ordinality, "WITH ORDINALITY")?;
            refuse(!partitions.is_empty(), "PARTITION behind a table")?;
            refuse(json_path.is_some(), "a path behind a table")?;
            refuse(!index_hints.is_empty(), "an index for a table")?;
            read_alias(alias.as_ref())
        }
        TableFactor::Derived { lateral: _, subquery: _, alias, sample: _ } => read_alias(alias.as_ref()),
        TableFactor::Function { lateral: _, name: _, args: _, with_ordinality, alias } => {
            refuse(*with_ordinality, "WITH ORDINALITY")?;
            read_alias(alias.as_ref())
        }
        TableFactor::NestedJoin { table_with_joins, alias } => {
            read_joins(table_with_joins)?;
            read_alias(alias.as_ref())
        }
        TableFactor::Pivot { alias, .. }
        | TableFactor::UNNEST { alias, .. }
        | TableFactor::Unpivot { alias, .. } => read_alias(alias.as_ref()),
        // The library refuses all others.
        _ => Ok(()),
    }
}

fn read_alias(alias: Option<&TableAlias>) -> Result<()> {
    let Some(TableAlias { explicit: _, name: _, columns, at }) = alias else { return Ok(()) };
    refuse(at.is_some(), "AT behind the name of a table")?;
    refuse(
        columns.iter().any(|column| column.data_type.is_some()),
        "a type behind the name of a column of a table",
    )
}

/// Aggregates whose value does not depend on the order of rows. The library takes the keys of an order for
/// more arguments of COUNT.
const WITHOUT_ORDER: [&str; 9] =
    ["approx_distinct", "bit_and", "bit_or", "bit_xor", "bool_and", "bool_or", "count", "max", "min"];

impl Reader<'_> {
    fn read_function(&self, function: &mut Function) -> Result<()> {
        let name = function.name.to_string().to_lowercase();
        let Function {
            name: _,
            uses_odbc_syntax: _,
            parameters,
            args,
            filter,
            null_treatment,
            over,
            within_group,
        } = function;
        refuse(
            *parameters != FunctionArguments::None,
            &format!("{name} with parameters before its arguments"),
        )?;
        refuse(matches!(args, FunctionArguments::Subquery(_)), &format!("{name} of a query"))?;
        read_keys(within_group)?;
        if let Some(WindowType::WindowSpec(window)) = over {
            read_window(window)?;
        }
        let mut nulls = *null_treatment;
        let mut has_clauses = filter.is_some() || over.is_some() || !within_group.is_empty();
        if let FunctionArguments::List(FunctionArgumentList { duplicate_treatment, args, clauses }) = args {
            has_clauses |= *duplicate_treatment == Some(DuplicateTreatment::Distinct) || !clauses.is_empty();
            for clause in clauses.iter() {
                match clause {
                    FunctionArgumentClause::OrderBy(keys) => read_keys(keys)?,
                    FunctionArgumentClause::IgnoreOrRespectNulls(treatment) => nulls = Some(*treatment),
                    // The library refuses the others.
                    _ => {}
                }
            }
            if WITHOUT_ORDER.contains(&name.as_str()) {
                clauses.retain(|clause| !matches!(clause, FunctionArgumentClause::OrderBy(_)));
            }
            if name == "to_char" || name == "date_format" {
                read_time_format(&name, args)?;
            }
        }
        has_clauses |= nulls.is_some();
        let text =
            format!("DISTINCT, FILTER, ORDER BY, OVER or NULLS of {name}, which is a function of one row,");
        refuse(has_clauses && (self.is_scalar)(&name), &text)?;
        let looks_ahead = name == "lead" || (name == "lag" && !is_whole(args));
        let text = format!("IGNORE NULLS of {name}, whose values would be missing or of other rows,");
        refuse(nulls == Some(NullTreatment::IgnoreNulls) && looks_ahead, &text)
    }
}

/// Whether the second argument is a number of rows, if there is one.
fn is_whole(args: &FunctionArguments) -> bool {
    let FunctionArguments::List(list) = args else { return true };
    match list.args.get(1) {
        None => true,
        Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(expr))) => is_number(expr),
        Some(_) => false,
    }
}

fn is_number(expr: &Expr) -> bool {
    match expr {
        Expr::Value(ValueWithSpan { value: Value::Number(..), .. }) => true,
        Expr::UnaryOp { op: UnaryOperator::Plus, expr } | Expr::Nested(expr) => is_number(expr),
        Expr::BinaryOp { left, op: BinaryOperator::Plus | BinaryOperator::Multiply, right } => {
            is_number(left) && is_number(right)
        }
        _ => false,
    }
}

/// Refuses a format of PostgreSQL, which would be the text of every row.
fn read_time_format(name: &str, args: &[FunctionArg]) -> Result<()> {
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(Expr::Value(format)))) = args.get(1) else {
        return Ok(());
    };
    match &format.value {
        Value::SingleQuotedString(text) if !text.is_empty() && !text.contains('%') => {
            Err(Error::Value(format!("{name}: the format {text:?} has no part of a time; write '%Y-%m-%d'")))
        }
        _ => Ok(()),
    }
}

/// Escapes by a backslash, the only character that the library knows for it, in a pattern that is a literal.
fn escape_by_backslash(pattern: &mut Expr, escape: &mut Option<ValueWithSpan>) {
    let Expr::Value(ValueWithSpan { value: Value::SingleQuotedString(text), .. }) = pattern else { return };
    let Some(ValueWithSpan { value: Value::SingleQuotedString(by), .. }) = escape else { return };
    let mut characters = by.chars();
    let (Some(by), None) = (characters.next(), characters.next()) else { return };
    if by == '\\' {
        return;
    }
    let mut escaped = String::with_capacity(text.len());
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        let literal = if character == by { characters.next() } else { None };
        match literal {
            Some(literal) => escaped.extend(['\\', literal]),
            None if character == '\\' => escaped.push_str("\\\\"),
            None => escaped.push(character),
        }
    }
    *text = escaped;
    *escape = None;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sql::SqlSession;

    fn session() -> SqlSession {
        let mut session = SqlSession::default();
        session
            .run("create table t as values (1, 'one', 10), (2, 'two', 20), (2, '2%', null)")
            .expect("a table");
        session
    }

    #[track_caller]
    fn rows(query: &str) -> Vec<Vec<String>> {
        session().run(query).unwrap_or_else(|error| panic!("{query}: {error}"))
    }

    #[test]
    fn clauses_that_would_be_left_out_are_refused() {
        for query in [
            "select column1, count(*) from t group by column1 with rollup",
            "select column1, count(*) from t group by column1 with cube",
            "select column1, count(*) from t group by column1 with totals",
            "select count(*) from t prewhere column1 = 1",
            "select * from t where column1 in (select column1 from t prewhere column1 = 1)",
            "select * from t pivot (sum(column3) for column1 in (1)) p (a int)",
            "select * from t for update",
            "select * from t order by column1 with fill",
            "select abs(column1) over () from t",
            "select abs(distinct column1) from t",
            "select upper(column2) filter (where column1 = 1) from t",
            "select lead(column3) ignore nulls over (order by column1) from t",
            "select lag(column3, -1) ignore nulls over (order by column1) from t",
            "select sum(column1) over (w order by column3) from t window w as (partition by column2)",
            "select sum(column1) over v from t window w as (partition by column2), v as (w order by column1)",
            "select sum(column1) over (nothing) from t",
            "select column1 from t group by 1 window w as (order by 1) order by sum(column1) over w",
            "select column1 from t window w as (order by column1) qualify sum(column1) over w > 1",
            "create table g (a int, b int generated always as (a * 2) stored)",
            "create table g (a int, b int collate nowhere)",
            "create table g (a int not null) as select null",
            "create table g (a int unique nulls not distinct)",
            "create table g (a int, unique nulls not distinct (a))",
            "create external table g (a int primary key) stored as csv location 'nowhere/'",
            "create external table g (a int, unique (a)) stored as csv location 'nowhere/'",
        ] {
            let error = session().run(query).err().unwrap_or_else(|| panic!("{query} has rows"));
            let class = error.class();
            // Some are no syntax of the dialect.
            assert!(class == "NotImplemented" || matches!(error.root(), Error::Sql(_)), "{query}: {error}");
        }
        let error = session().run("select to_char(now(), 'YYYY-MM')").unwrap_err();
        assert!(error.to_string().contains("%Y"), "{error}");
    }

    #[test]
    fn what_is_planned_is_let_through() {
        assert_eq!(rows("from t").len(), 3);
        assert_eq!(rows("from t select column1 limit 1").len(), 1);
        assert_eq!(rows("select count(column1 order by column3) from t"), [["3"]]);
        assert_eq!(rows("select column2 from t where column2 like '%^%' escape '^'"), [["2%"]]);
        assert_eq!(rows("select column2 from t where column2 not like '%!%' escape '!' limit 1"), [["one"]]);
        assert_eq!(rows("select 'a\\b' like 'a\\b' escape '!'"), [["true"]]);
        assert_eq!(
            rows("select lag(column3) ignore nulls over (order by column1) from t limit 1"),
            [["NULL"]]
        );
        assert_eq!(rows("select sum(distinct column1) filter (where column1 > 0) from t"), [["3"]]);
        assert_eq!(rows("select to_char(to_timestamp(0), '%Y')"), [["1970"]]);
        assert_eq!(
            rows("select column1, count(*) from t group by rollup(column1) order by 1 nulls last"),
            [["1", "1"], ["2", "2"], ["NULL", "3"]]
        );
        assert_eq!(rows("select column1 from t intersect select 2"), [["2"]]);
        assert_eq!(rows("select sum(column1) over w from t window w as () limit 1"), [["5"]]);
    }

    #[test]
    fn the_order_of_a_subquery_is_that_of_its_rows() {
        let query = "select * from (select column1, column3 from t order by column3 desc nulls last) limit 2";
        assert_eq!(rows(query), [["2", "20"], ["1", "10"]]);
        let below = "(select column1, column2 from t order by column3 desc nulls last) s";
        let query = format!("select array_to_string(array_agg(column1), ' ') from {below}");
        assert_eq!(rows(&query), [["2 1 2"]]);
        let query = format!("select string_agg(column2, ',') from {below}");
        assert_eq!(rows(&query), [["two,one,2%"]]);
        let query = format!("select column1, string_agg(column2, ',') from {below} group by 1 order by 1");
        assert_eq!(rows(&query), [["1", "one"], ["2", "two,2%"]]);
        let own = format!("select string_agg(column2, ',' order by column2) from {below}");
        assert_eq!(rows(&own), [["2%,one,two"]]);
    }
}
