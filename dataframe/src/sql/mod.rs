//! SQL over frames.
//!
//! | concern | module |
//! |---|---|
//! | statements of a session | `session`, `watched` |
//! | the states that statements are planned in | `states` |
//! | columns that a projection computes for an operator | `below` |
//! | columns and expressions of plans | `plans` |
//! | settings | `settings` |
//! | the bound on operators within each other | `depth` |
//! | mistakes, with their places in the text | `words` |
//! | the dialect of runners of tests | `text` |
//! | names in statements, and those of columns | `names` |
//! | queries within queries | `subqueries` |
//! | values as SQL has them: types, times, numbers and texts | `values` |
//! | clauses and statements that the library has not, or has in another way | `clauses` |
//! | tables, files and what statements do to them | `tables` |
//! | mistakes in statements, told in words of SQL | `faults` |

mod below;
mod clauses;
mod depth;
mod faults;
mod names;
mod plans;
mod session;
mod settings;
#[cfg(test)]
mod small_tables;
mod states;
mod subqueries;
mod tables;
mod text;
mod values;
mod watched;
mod words;

use self::clauses::{described, explain, forms, order, order_all, read_words, summary, understood};
use self::faults::mistakes;
use self::names::letters::Letters;
use self::names::namesakes::Doubles;
use self::names::{by_name, letters, namesakes, plain_names, several_stars, stars};
pub use self::session::{SqlAnswer, SqlSession};
use self::subqueries::{asked, levels, materialized};
use self::tables::{copies, frame_rows};
pub use self::text::{sql_line, sql_stream};
use self::values::{
    clocks, digit_marks, digits, float_decimals, floats, interval_lengths, lists, overflow, recursive_types,
    table_types, times, union_types, zone_types,
};

use crate::engine::{Settings, block_on, on_deep_stack, session};
use crate::error::{Error, Result};
use crate::execute::{default_executor, execute, plan_stages};
use crate::frame::{DataFrame, Frame};
use crate::planning::statement_name;
use datafusion::common::TableReference;
use datafusion::execution::SessionState;
use datafusion::logical_expr::sqlparser::dialect::dialect_from_str;
use datafusion::logical_expr::{self, CreateView, DdlStatement, LogicalPlan};
use datafusion::prelude::SessionContext;
use datafusion::sql::parser::Statement;
use std::borrow::Cow;
use std::sync::Arc;

/// The result of an SQL query over named frames.
///
/// Names without quotes in the query are read as lower case, as in PostgreSQL; a table `Sales` is found with
/// quotes and without, and so is a column `Sold` if no other name differs in letters alone. The order of the
/// query's rows is that of the frame's, also for the steps after it.
///
/// ```
/// use tharsis_dataframe::{DataFrame, sql};
/// let sales = DataFrame::from_columns([("city", vec!["Oslo", "Rome"].into()), ("sold", vec![3, 5].into())]);
/// let best = sql("select city from sales where sold = (select max(sold) from sales)", &[("sales", &sales)]);
/// assert_eq!(best.col("city").values::<String>()?, [Some("Rome".to_owned())]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
#[track_caller]
pub fn sql(query: &str, tables: &[(&str, &DataFrame)]) -> DataFrame {
    DataFrame::new(on_deep_stack(|| plan(query, tables).and_then(read)).and_then(Read::frame))
}

impl SqlSession {
    /// The result of a query over the tables of the session as they are now. Unlike a query over frames
    /// alone, it reads files that it names: `from read_csv('sales.csv')`.
    ///
    /// ```
    /// use tharsis_dataframe::{DataFrame, SqlSession};
    /// let mut session = SqlSession::default();
    /// session.register("sales", &DataFrame::from_columns([("sold", vec![3, 5].into())]))?;
    /// let most = session.frame("select max(sold) as most from sales");
    /// assert_eq!(most.col("most").values::<i64>()?, [Some(5)]);
    /// # Ok::<(), tharsis_dataframe::Error>(())
    /// ```
    #[track_caller]
    pub fn frame(&self, query: &str) -> DataFrame {
        let state = self.context.state();
        let read = on_deep_stack(|| block_on(logical(&state, query)).and_then(read));
        DataFrame::new(read.and_then(Read::frame))
    }
}

/// A query, whose plan is asked for, or its rows.
enum Read {
    Plan { plan: LogicalPlan, is_run: bool },
    Rows(Frame),
}

fn read(plan: LogicalPlan) -> Result<Read> {
    if let Some(statement) = statement_name(&plan) {
        return Err(Error::NotImplemented(format!(
            "{statement}: one query is answered here, over tables that are only read; a SqlSession, and `tharsis eval --sql`, \
             have statements"
        )));
    }
    match &plan {
        LogicalPlan::Explain(asked) => {
            return Ok(Read::Plan { plan: asked.plan.as_ref().clone(), is_run: false });
        }
        LogicalPlan::Analyze(asked) => {
            return Ok(Read::Plan { plan: asked.input.as_ref().clone(), is_run: true });
        }
        _ => {}
    }
    namesakes::check_different(plan.schema().fields())?;
    let Some((plan, order)) = order::ordered(&plan)? else {
        return Frame::of_foreign_rows(plan).map(Read::Rows);
    };
    let mut frame = Frame::of_foreign_rows(plan)?;
    frame.columns.retain(|column| order.iter().all(|key| key.column != *column));
    Ok(Read::Rows(Frame { order, ..frame }))
}

impl Read {
    fn frame(self) -> Result<Frame> {
        let (plan, is_run) = match self {
            Read::Rows(frame) => return Ok(frame),
            Read::Plan { plan, is_run } => (plan, is_run),
        };
        let executor = default_executor();
        let stages = plan_stages(&plan, &*executor)?;
        let metrics = if is_run { Some(execute(&plan, &*executor)?.1) } else { None };
        let shown = explain::plans(&plan, &stages, metrics.as_ref(), &session(Settings::default()))?;
        let shown = DataFrame::from_batches(shown.schema(), vec![shown]);
        shown.frame().map(|frame| Frame::clone(frame))
    }
}

fn plan(query: &str, tables: &[(&str, &DataFrame)]) -> Result<LogicalPlan> {
    let session = SessionContext::new_with_state(states::of_query());
    for (name, table) in tables {
        let view = Arc::new(frame_rows::table(table.frame()?.visible()?));
        // A name without quotes in the query is one of lower case.
        let lower = name.to_lowercase();
        if tables.iter().all(|(other, _)| *other != lower) {
            session.register_table(TableReference::bare(lower), Arc::clone(&view) as _)?;
        }
        session.register_table(TableReference::bare(*name), view)?;
    }
    block_on(logical(&session.state(), query))
}

/// A statement as it is written. It takes a large stack.
fn parsed(state: &SessionState, text: &str) -> Result<Statement> {
    let dialect = state.config().options().sql_parser.dialect;
    if let Some(words) = dialect_from_str(dialect) {
        depth::check_text(text, &*words)?;
    }
    let plain = digit_marks::without_marks(text, state);
    let of_library = copies::in_words_of_library(&plain, state)?;
    read_words::statement(&of_library, state).map_err(|error| mistakes::of_syntax(error, text, state))
}

/// A statement of clauses that are planned.
fn prepared(state: &SessionState, text: &str, letters: &Letters, doubles: &Doubles) -> Result<Statement> {
    let mut statement = described::as_query(parsed(state, text)?, state)?;
    letters.write(&mut statement);
    copies::write_format(&mut statement);
    settings::write_zone(&mut statement).map_err(|error| mistakes::of_clause(error, text, state))?;
    let is_scalar = |name: &str| state.scalar_functions().contains_key(name);
    let understood = understood::understand(&mut statement, &is_scalar, doubles);
    understood.map_err(|error| mistakes::of_clause(error, text, state))?;
    // No operators are nested too deep any more.
    if let Some((error, span)) = forms::refused(&mut statement) {
        return Err(mistakes::at(error, span, text, state));
    }
    forms::write_relations(&mut statement)?;
    Ok(statement)
}

/// The plan of a statement, all of whose clauses are in it. It takes a large stack.
async fn logical(state: &SessionState, text: &str) -> Result<LogicalPlan> {
    let (mut whole, mut as_written) = (Cow::Borrowed(text), text.len());
    while let Some(summary) = summary::asked(&whole, state) {
        let rows = several_stars::planned(state, &summary.query).await;
        let rows = rows.map_err(|error| mistakes::in_begin(error, text, as_written))?;
        as_written = as_written.min(summary.before.len());
        whole = Cow::Owned(summary::statement(&rows, &summary)?);
    }
    match whole {
        Cow::Borrowed(text) => several_stars::planned(state, text).await,
        Cow::Owned(whole) => {
            let plan = several_stars::planned(state, &whole).await;
            let plan = plan.map_err(|error| mistakes::in_begin(error, text, as_written))?;
            Ok(with_definition(plan, text))
        }
    }
}

async fn planned(state: &SessionState, text: &str) -> Result<LogicalPlan> {
    let (mut letters, mut doubles) = (Letters::default(), Doubles::default());
    let zoned = zone_types::in_zone_of(state);
    let mut noting: Option<SessionState> = None;
    let (plan, is_described) = loop {
        let session = noting.as_ref().unwrap_or(&zoned);
        let (statement, is_described) = described::query_of(prepared(session, text, &letters, &doubles)?);
        let error = match stars::plan_of(session, statement).await {
            Ok(plan) => break (plan, is_described),
            Err(error) => error,
        };
        if doubles.add(&error) {
            continue;
        }
        if noting.is_none() && mistakes::wants_notes(&error) {
            noting = Some(mistakes::noting(&zoned));
            continue;
        }
        let is_known = match (mistakes::noted(&error), letters::meant(&error)) {
            (Some(place), Some(name)) => letters.add(place, name),
            _ => false,
        };
        if !is_known && !letters.ask(&error, text, session, &doubles).await {
            let span = mistakes::span_of(&error, text, state);
            return Err(mistakes::of_plan(error, span, text, state));
        }
    };
    by_name::check_by_name(&plan)?;
    recursive_types::check_parts(&plan)?;
    let plan = described::without_tags(described::in_sql(plan)?)?;
    let plan = plain_names::with_plain_names(order_all::by_columns(plan)?)?;
    levels::check_levels(&plan)?;
    // The plan of a view comes here again where it is read.
    let is_view = matches!(&plan, LogicalPlan::Ddl(DdlStatement::CreateView(_)));
    let plan = table_types::with_casts(with_definition(plan, text))?;
    let plan = materialized::throughout(plan, union_types::of_all_sides)?;
    let plan = if is_view { plan } else { materialized::throughout(plan, floats::as_of_frames)? };
    let plan = typed(asked::as_columns(plan)?).map_err(|error| mistakes::of_run(error, text, state))?;
    let plan = if is_described { described::of_columns(plan.schema().fields())? } else { plan };
    if is_kept(&plan) { materialized::throughout(plan, order::with_orders) } else { with_frames(plan) }
}

/// Whether a plan is kept, and comes here again when it is read or executed.
fn is_kept(plan: &LogicalPlan) -> bool {
    match plan {
        LogicalPlan::Ddl(statement) => matches!(statement, DdlStatement::CreateView(_)),
        LogicalPlan::Statement(statement) => matches!(statement, logical_expr::Statement::Prepare(_)),
        _ => false,
    }
}

/// The plan with the plans of frames for their rows, and with the orders of subqueries.
fn with_frames(plan: LogicalPlan) -> Result<LogicalPlan> {
    let plan = materialized::throughout(plan, frame_rows::put_in)?;
    asked::check_materialized(&plan)?;
    materialized::throughout(plan, order::with_orders)
}

/// The plan of a view with the text of the user: the library would tell that of the statement whose columns
/// have got names.
fn with_definition(plan: LogicalPlan, text: &str) -> LogicalPlan {
    match plan {
        LogicalPlan::Ddl(DdlStatement::CreateView(view)) => {
            let definition = Some(text.trim().trim_end_matches(';').trim_end().to_owned());
            LogicalPlan::Ddl(DdlStatement::CreateView(CreateView { definition, ..view }))
        }
        plan => plan,
    }
}

/// The plan whose numbers have the types and the errors of SQL; its parameters have types.
fn typed(plan: LogicalPlan) -> Result<LogicalPlan> {
    materialized::throughout(plan, |plan| {
        // Subqueries that read rows around them have unions with the types of their first sides again.
        let plan = union_types::of_all_sides(clocks::of_moments(plan)?)?;
        let plan = union_types::of_all_sides(float_decimals::as_one_type(plan)?)?;
        let plan = lists::as_lists(times::as_meant(plan)?)?;
        interval_lengths::by_lengths(overflow::with_checks(digits::with_digits(plan)?)?)
    })
}

impl Frame {
    /// A plan of the columns alone. SQL knows no order of rows.
    fn visible(&self) -> Result<LogicalPlan> {
        let columns = self.columns.iter().map(|column| (column.clone(), crate::frame::named(column)));
        let frame = Frame { index: Vec::new(), order: Vec::new(), ..self.clone() };
        Ok(frame.project(columns.collect())?.plan)
    }
}
