//! SQL over frames.
//!
//! | concern | module |
//! |---|---|
//! | statements of a session | `session`, `watched` |
//! | the states that statements are planned in | `states` |
//! | clauses that are refused or written in another way | `understood`, `forms` |
//! | subqueries in orders, windows, joins and sets of groups | `asked`, `grouped` |
//! | orders by keys whose bounds nobody knows | `sort_keys` |
//! | subqueries that depend on the row around them | `dependent`, `laterals`, `combinations`, `combined_joins`, `plain`, `reads`, `same_rows` |
//! | rows around subqueries that are made once | `materialized` |
//! | `CROSS APPLY` and `OUTER APPLY` | `applies` |
//! | lateral queries that the library does not mark as such | `lateral_sides` |
//! | floats of files and of results | `floats` |
//! | rows of frames, whose plans stay as they are | `frame_rows` |
//! | names of conditions over subqueries, and of casts | `distinct_names`, `name_texts` |
//! | names of values | `labels`, `value_names`, `base_columns`, `plain_names` |
//! | columns of one name | `namesakes`, `by_name` |
//! | several `*` in one list of columns | `several_stars` |
//! | `INTERSECT ALL` and `EXCEPT ALL` | `counted_sets` |
//! | `IS DISTINCT FROM` before `AND` and `OR` | `distinct_from` |
//! | columns that a projection computes for an operator | `below` |
//! | columns and expressions of plans | `plans` |
//! | times as texts, and lengths of time beside numbers | `times`, `interval_operators` |
//! | statements that have no times or no decimals | `timeless` |
//! | days and readings of a clock beside moments | `clocks`, `moment_types`, `sides_with_moments` |
//! | lists where texts are wanted | `lists` |
//! | joins: where they stand, those of other databases, and those without a condition | `joins` |
//! | settings | `settings` |
//! | texts, and decimals beside floats, in `VALUES` | `value_rows`, `value_numbers` |
//! | names of columns in other letters | `letters`, `column_names` |
//! | keys that are no columns | `unknown_keys` |
//! | columns that are named behind a `*` | `stars` |
//! | fields of columns behind the names of tables | `fields` |
//! | names of rows that are compared with a value | `compared_names` |
//! | the bound on subqueries within each other | `levels` |
//! | the bound on operators within each other | `depth` |
//! | tables that statements make and change, and their keys | `session_table`, `change`, `keys` |
//! | plans as texts | `explain` |
//! | `SUMMARIZE`, `DESCRIBE`, `SHOW TABLES` | `summary`, `with_clauses`, `described` |
//! | types as SQL names them, those of moments, of unions, and of recursive queries | `type_names`, `zone_types`, `union_types`, `recursive_types` |
//! | parameters without a type in unions | `untyped_sides` |
//! | types and names of the columns of FROM, and of the sides of unions | `typed_relations`, `union_names` |
//! | `ORDER BY ALL`, `FETCH FIRST`, `TOP` | `order_all`, `limits` |
//! | `read_csv(..)` and others in FROM | `file_tables`, `file_lists`, `file_options` |
//! | files that statements write, and the options of `COPY` | `files`, `copies` |
//! | tables that a session has not | `missing_tables` |
//! | the order of rows | `order` |
//! | results that have no room | `overflow` |
//! | truth values of rows that move | `moving_rows` |
//! | decimals that are rounded, those of files, and those beside floats | `digits`, `file_decimals`, `float_decimals`, `union_literals` |
//! | rows as texts | `row_texts` |
//! | mistakes, with their places in the text | `mistakes`, `placed`, `marks`, `words` |
//! | reasons of the library in other words, near names | `reasons`, `near` |
//! | words of other databases, and what stands for them | `meant` |
//! | parts of statements that errors do not show | `secrets` |
//! | the dialect of runners of tests | `text` |

mod applies;
mod asked;
mod base_columns;
mod below;
mod by_name;
mod change;
mod clocks;
mod column_names;
mod combinations;
mod combined_joins;
mod compared_names;
mod copies;
mod counted_sets;
mod dependent;
mod depth;
mod described;
mod digits;
mod distinct_from;
mod distinct_names;
mod explain;
mod fields;
mod file_decimals;
mod file_lists;
mod file_options;
mod file_tables;
mod files;
mod float_decimals;
mod floats;
mod forms;
mod frame_rows;
mod grouped;
mod interval_operators;
mod joins;
mod keys;
mod labels;
mod lateral_sides;
mod laterals;
mod letters;
mod levels;
mod limits;
mod lists;
mod marks;
mod materialized;
mod meant;
mod missing_tables;
mod mistakes;
mod moment_types;
mod moving_rows;
mod name_texts;
mod namesakes;
mod near;
mod order;
mod order_all;
mod overflow;
mod placed;
mod plain;
mod plain_names;
mod plans;
mod reads;
mod reasons;
mod recursive_types;
mod row_texts;
mod same_rows;
mod secrets;
mod session;
mod session_table;
mod settings;
mod several_stars;
mod sides_with_moments;
#[cfg(test)]
mod small_tables;
mod sort_keys;
mod stars;
mod states;
mod summary;
mod text;
mod timeless;
mod times;
mod type_names;
mod typed_relations;
mod understood;
mod union_literals;
mod union_names;
mod union_types;
mod unknown_keys;
mod untyped_sides;
mod value_names;
mod value_numbers;
mod value_rows;
mod watched;
mod with_clauses;
mod words;
mod zone_types;

use self::letters::Letters;
use self::namesakes::Doubles;
pub use self::session::{SqlAnswer, SqlSession};
pub use text::{sql_line, sql_stream};

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
    let of_library = copies::in_words_of_library(text, state)?;
    state.sql_to_statement(&of_library, &dialect).map_err(|error| mistakes::of_syntax(error, text, state))
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
    let plan = loop {
        let session = noting.as_ref().unwrap_or(&zoned);
        let statement = prepared(session, text, &letters, &doubles)?;
        let error = match stars::plan_of(session, statement).await {
            Ok(plan) => break plan,
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
    let plan = materialized::throughout(with_definition(plan, text), union_types::of_all_sides)?;
    let plan = if is_view { plan } else { materialized::throughout(plan, floats::as_of_frames)? };
    let plan = typed(asked::as_columns(plan)?).map_err(|error| mistakes::of_run(error, text, state))?;
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
        let plan = float_decimals::as_one_type(clocks::of_moments(plan)?)?;
        let plan = union_types::of_all_sides(plan)?;
        let plan = lists::as_lists(times::as_meant(plan)?)?;
        overflow::with_checks(digits::with_digits(plan)?)
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
