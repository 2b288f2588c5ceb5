//! A session: tables, views and settings that live from one statement to the next.

use super::clauses::explain;
use super::faults::mistakes::in_begin;
use super::names::namesakes;
use super::settings;
use super::states;
use super::tables::change::{self, Change};
use super::tables::files;
use super::tables::frame_rows;
use super::tables::keys;
use super::tables::session_table::SessionTable;
use super::values::parameters::Parameters;
use super::values::{floats, interval_lengths, row_texts, table_types, union_types};
use crate::engine::{block_on, block_on_deep, on_deep_stack, unless_cancelled};
use crate::error::{Error, Result};
use crate::execute::{Executor, default_executor, plan_stages_in};
use crate::frame::DataFrame;
use crate::progress::Progress;
use crate::scanned::{Scanned, ScannedTable};
use crate::stage::{JoinedParts, KeptPart, Resident, ResidentTable, Stages};
use crate::table::Table;
use crate::write::Staged;
use arrow::array::RecordBatch;
use datafusion::catalog::TableProvider;
use datafusion::common::{Constraints, TableReference};
use datafusion::logical_expr::dml::CopyTo;
use datafusion::logical_expr::{
    CreateMemoryTable, DdlStatement, DmlStatement, LogicalPlan, LogicalPlanBuilder, Statement,
};
use datafusion::prelude::SessionContext;
use std::collections::HashMap;
use std::sync::Arc;

/// Rows of a part of a table at least, unless there are fewer.
const PART_ROWS_MIN: usize = 1 << 16;

/// Tables, views and settings that statements of SQL make, read and drop, from one line to the next.
///
/// Queries are cut into tasks as those of [`sql`](crate::sql()), and tables are kept where the tasks left
/// them.
///
/// | statement | meaning |
/// |---|---|
/// | `CREATE TABLE t (..)`, `CREATE TABLE t AS ..` | a table in memory, or in the store of a cluster |
/// | `CREATE EXTERNAL TABLE t STORED AS CSV LOCATION '..'` | files; also `PARQUET`, `JSON`, `AVRO`, `ARROW` |
/// | `CREATE VIEW v AS ..`, `DROP TABLE`, `DROP VIEW` | as in PostgreSQL |
/// | `INSERT INTO`, `UPDATE`, `DELETE`, `TRUNCATE` | rows of a table in memory; `INSERT` also adds local files |
/// | `COPY .. TO '..' (..)` | local files of the rows of a table or a query, with options as PostgreSQL has them |
/// | `SET`, `RESET`, `SHOW` | settings of the library; those about exchanges within one process are kept and have no effect |
/// | `EXPLAIN`, `EXPLAIN ANALYZE` | the stages of a plan; of a query, which is run, with times |
/// | `SHOW TABLES`, `DESCRIBE ..`, `SUMMARIZE ..` | tables; columns of one or of a query; with what their values are like |
/// | `PREPARE`, `EXECUTE`, `DEALLOCATE` | as in the library |
///
/// ```
/// use tharsis_dataframe::SqlSession;
/// let mut session = SqlSession::default();
/// session.run("create table t as values (1, 'one'), (2, 'two')")?;
/// session.run("insert into t values (3, 'three')")?;
/// session.run("delete from t where column1 = 1")?;
/// assert_eq!(session.run("select count(*) from t")?, [["2"]]);
/// # Ok::<(), tharsis_dataframe::Error>(())
/// ```
pub struct SqlSession {
    pub(super) context: SessionContext,
    executor: Option<Arc<dyn Executor>>,
    /// Counts for whoever watches.
    pub(super) progress: Option<Progress>,
    part_rows_min: usize,
    /// Frames that were registered with capital letters, by their names in lower case.
    lower_names: HashMap<String, Registered>,
    prepared: Parameters,
}

/// The name of a frame, and what the catalog has under it.
struct Registered {
    name: String,
    view: Arc<dyn TableProvider>,
}

/// The outcome of a statement.
#[derive(Clone, Debug, PartialEq)]
pub enum SqlAnswer {
    /// The rows of a query.
    Rows(Table),
    /// Number of rows that a statement has added, changed, removed or written.
    Changed(usize),
    /// A statement without rows has ended.
    Done,
}

impl Default for SqlSession {
    /// A session whose statements run on the default executor.
    fn default() -> SqlSession {
        SqlSession::new(default_executor().limits().threads, None)
    }
}

impl SqlSession {
    /// A session whose statements run on this executor.
    #[must_use]
    pub fn on(executor: Arc<dyn Executor>) -> SqlSession {
        SqlSession::new(executor.limits().threads, Some(executor))
    }

    fn new(partitions: usize, executor: Option<Arc<dyn Executor>>) -> SqlSession {
        let context = SessionContext::new_with_state(states::of_session(partitions));
        // A list of planners takes another one always.
        let _known = super::tables::file_tables::known_to(&context);
        let (lower_names, prepared) = (HashMap::new(), Parameters::default());
        SqlSession { context, executor, progress: None, part_rows_min: PART_ROWS_MIN, lower_names, prepared }
    }

    /// Cuts new tables into parts of at least this many rows, up to a part for each partition, so that tasks
    /// can share the work on them.
    #[must_use]
    pub fn part_rows_min(self, rows: usize) -> SqlSession {
        SqlSession { part_rows_min: rows.max(1), ..self }
    }

    /// Gives a frame a name that statements can use. `Sales` is found with quotes and without, if there is no
    /// table `sales`.
    ///
    /// # Errors
    /// The error that the frame carries, or one of the catalog.
    pub fn register(&mut self, name: &str, frame: &DataFrame) -> Result<()> {
        let view: Arc<dyn TableProvider> = Arc::new(frame_rows::table(frame.frame()?.visible()?));
        self.forget_lower_names()?;
        if self.lower_names.remove(name).is_some() {
            self.context.deregister_table(TableReference::bare(name))?;
        }
        self.context.register_table(TableReference::bare(name), Arc::clone(&view))?;
        // A name without quotes in a statement is one of lower case.
        let lower = name.to_lowercase();
        if !self.context.table_exist(TableReference::bare(lower.as_str()))? {
            self.context.register_table(TableReference::bare(lower.as_str()), Arc::clone(&view))?;
            self.lower_names.insert(lower, Registered { name: name.to_owned(), view });
        }
        Ok(())
    }

    /// Forgets names in lower case of frames that statements have dropped, and those under which statements
    /// have made tables of their own since.
    pub(super) fn forget_lower_names(&mut self) -> Result<()> {
        for (lower, frame) in std::mem::take(&mut self.lower_names) {
            if !self.has(&lower, &frame.view)? {
                continue;
            }
            if self.has(&frame.name, &frame.view)? {
                self.lower_names.insert(lower, frame);
            } else {
                self.context.deregister_table(TableReference::bare(lower))?;
            }
        }
        Ok(())
    }

    /// Whether a name stands for this frame.
    fn has(&self, name: &str, view: &Arc<dyn TableProvider>) -> Result<bool> {
        if !self.context.table_exist(TableReference::bare(name))? {
            return Ok(false);
        }
        let found = block_on(async { Ok(self.context.table_provider(TableReference::bare(name)).await?) })?;
        Ok(Arc::ptr_eq(&found, view))
    }

    /// Runs one statement; gives the rows of a query as texts, and no rows for other statements.
    ///
    /// # Errors
    /// As [`SqlSession::execute`].
    pub fn run(&mut self, statement: &str) -> Result<Vec<Vec<String>>> {
        match self.execute(statement)? {
            SqlAnswer::Rows(table) => row_texts::texts(&table),
            SqlAnswer::Changed(_) | SqlAnswer::Done => Ok(Vec::new()),
        }
    }

    /// Runs one statement.
    ///
    /// # Errors
    /// `ValueError` for what is no SQL and for unknown names, `NotImplemented` for statements that are not
    /// supported, and errors of the run.
    pub fn execute(&mut self, statement: &str) -> Result<SqlAnswer> {
        let Some(valued) = self.with_pivot_values(statement)? else { return self.executed(statement) };
        self.executed(&valued.text).map_err(|error| in_begin(error, statement, valued.begin))
    }

    fn executed(&mut self, statement: &str) -> Result<SqlAnswer> {
        self.begin_progress();
        let state = self.context.state();
        let plan = block_on_deep(unless_cancelled(super::logical(&state, statement)))?;
        let may_drop = matches!(plan, LogicalPlan::Ddl(_));
        let noted = self.prepared.checked(&plan)?;
        let answer =
            self.answer(plan).map_err(|error| super::faults::mistakes::of_run(error, statement, &state))?;
        self.prepared.note(noted);
        if may_drop {
            self.forget_lower_names()?;
        }
        Ok(answer)
    }

    fn answer(&self, plan: LogicalPlan) -> Result<SqlAnswer> {
        match plan {
            LogicalPlan::Ddl(DdlStatement::CreateMemoryTable(table)) => self.create_table(table),
            LogicalPlan::Ddl(
                statement @ (DdlStatement::CreateIndex(_) | DdlStatement::CreateFunction(_)),
            ) => Err(Error::NotImplemented(format!("the statement {} is not supported", statement.name()))),
            LogicalPlan::Ddl(_) => self.by_library(plan).map(|_| SqlAnswer::Done),
            LogicalPlan::Dml(statement) => self.change(statement),
            LogicalPlan::Copy(copy) => self.copy(copy),
            LogicalPlan::Statement(statement) => self.state(statement),
            LogicalPlan::Explain(asked) => {
                let stages = self.stages(explain::query_of(&asked.plan)?)?;
                rows_of(explain::plans(&asked.plan, &stages, None, &self.context.state())?)
            }
            LogicalPlan::Analyze(asked) => {
                explain::check_query(&asked.input)?;
                let stages = self.stages(&asked.input)?;
                let (_, metrics) = self.measured(&asked.input)?;
                rows_of(explain::plans(&asked.input, &stages, Some(&metrics), &self.context.state())?)
            }
            query => {
                let rows = self.query(&query)?;
                let (schema, batches) = namesakes::shown(&rows.schema, rows.fetch()?)?;
                Ok(SqlAnswer::Rows(Table::new(&schema, &batches, Vec::new())?))
            }
        }
    }

    pub(super) fn executor(&self) -> Arc<dyn Executor> {
        self.executor.clone().unwrap_or_else(default_executor)
    }

    fn stages(&self, plan: &LogicalPlan) -> Result<Stages> {
        plan_stages_in(&self.context.state(), plan, &*self.executor())
    }

    /// The rows of a query, where its tasks left them.
    pub(super) fn query(&self, plan: &LogicalPlan) -> Result<Resident> {
        Ok(self.measured(plan)?.0)
    }

    /// Runs a statement that needs no tasks, or none but those that have run; gives its rows.
    fn by_library(&self, plan: LogicalPlan) -> Result<Table> {
        block_on_deep(async {
            let frame = self.context.execute_logical_plan(plan).await?;
            let schema = Arc::new(frame.schema().as_arrow().clone());
            Table::new(&schema, &frame.collect().await?, Vec::new())
        })
    }

    fn state(&self, statement: Statement) -> Result<SqlAnswer> {
        settings::check(&statement)?;
        match statement {
            Statement::Execute(_) => {
                let plan = LogicalPlan::Statement(statement);
                let typed = block_on_deep(async {
                    let frame = self.context.execute_logical_plan(plan).await?;
                    // Its parameters have values and types now.
                    let plan = table_types::with_casts(frame.into_unoptimized_plan())?;
                    let plan = floats::as_of_frames(union_types::of_all_sides(plan)?)?;
                    super::with_frames(super::typed(plan)?)
                });
                self.answer(typed?)
            }
            Statement::SetVariable(_)
            | Statement::ResetVariable(_)
            | Statement::Prepare(_)
            | Statement::Deallocate(_) => {
                self.by_library(LogicalPlan::Statement(statement)).map(|_| SqlAnswer::Done)
            }
            other => Err(Error::NotImplemented(format!("the statement {} is not supported", other.name()))),
        }
    }

    fn create_table(&self, asked: CreateMemoryTable) -> Result<SqlAnswer> {
        if asked.temporary {
            return Err(Error::NotImplemented("temporary tables are not supported".to_owned()));
        }
        let exists = self.context.table_exist(asked.name.clone())?;
        match (exists, asked.if_not_exists, asked.or_replace) {
            (true, true, true) => {
                return Err(Error::Sql("'IF NOT EXISTS' cannot coexist with 'REPLACE'".to_owned()));
            }
            (true, true, false) => return Ok(SqlAnswer::Done),
            (true, false, false) => {
                return Err(Error::Sql(format!("Table '{}' already exists", asked.name)));
            }
            _ => {}
        }
        namesakes::check_different(asked.input.schema().fields())?;
        let rows = self.query(&asked.input)?;
        let schema = change::with_types_of(asked.input.schema().as_arrow(), &rows.schema);
        let rows = Resident { schema, parts: self.cut(rows.parts)? };
        self.check_keys(&asked.constraints, &rows)?;
        let table = SessionTable::new(rows, asked.constraints, asked.column_defaults);
        if exists {
            self.context.deregister_table(asked.name.clone())?;
        }
        self.context.register_table(asked.name, Arc::new(Scanned(table)))?;
        Ok(SqlAnswer::Done)
    }

    fn change(&self, statement: DmlStatement) -> Result<SqlAnswer> {
        let provider =
            block_on(async { Ok(self.context.table_provider(statement.table_name.clone()).await?) })?;
        let Some(table) = Scanned::<SessionTable>::table_of(&*provider) else {
            return self.change_elsewhere(statement, &*provider);
        };
        let changed = match on_deep_stack(|| Change::of(statement))? {
            Change::Add(plan) => {
                let added = self.query(&plan)?.parts;
                let count = added.iter().map(|part| part.rows()).sum();
                self.add(table, added)?;
                count
            }
            Change::Replace(plan) => {
                let parts = self.query(&plan)?.parts;
                let count = parts.iter().map(|part| part.rows()).sum();
                self.put(table, parts)?;
                count
            }
            Change::Keep(rows) => {
                let before = table.rows().rows();
                self.put(table, self.query(&rows)?.parts)?;
                before.saturating_sub(table.rows().rows())
            }
            Change::Update { rows, changed } => {
                let count = change::count(&self.query(&changed)?)?;
                self.put(table, self.query(&rows)?.parts)?;
                count
            }
            Change::Empty => {
                let count = table.rows().rows();
                table.put(Vec::new())?;
                count
            }
        };
        Ok(SqlAnswer::Changed(changed))
    }

    /// Adds rows to a table, which must fit its declaration. It looks at the new rows alone: n statements
    /// would look at n^2 rows.
    fn add(&self, table: &SessionTable, added: Vec<Arc<dyn KeptPart>>) -> Result<()> {
        let rows = table.rows();
        added.iter().try_for_each(|part| change::check_missing(&rows.schema, part))?;
        let keys = table.new_keys(&added)?;
        let parts = change::appended(&rows.parts, added, self.partitions(), self.part_rows_min)?;
        if let (None, Some(constraints)) = (&keys, table.constraints()) {
            let schema = Arc::clone(&rows.schema);
            self.check_keys(constraints, &Resident { schema, parts: parts.clone() })?;
        }
        table.put_added(parts, keys);
        Ok(())
    }

    /// Sets the rows of a table, which must fit its declaration.
    fn put(&self, table: &SessionTable, parts: Vec<Arc<dyn KeptPart>>) -> Result<()> {
        let parts = self.cut(parts)?;
        if let Some(constraints) = table.constraints() {
            let schema = Arc::clone(&table.rows().schema);
            self.check_keys(constraints, &Resident { schema, parts: parts.clone() })?;
        }
        table.put(parts)
    }

    /// Refuses rows whose keys are not unique. Planning relies on what constraints say: it leaves out a
    /// `DISTINCT` of a key.
    fn check_keys(&self, constraints: &Constraints, rows: &Resident) -> Result<()> {
        for constraint in constraints.iter() {
            let source = ResidentTable::new(rows.clone()).source();
            let forbidden = change::forbidden(LogicalPlanBuilder::scan("rows", source, None)?, constraint)?;
            let forbidden = interval_lengths::by_lengths(forbidden)?;
            if 0 < self.query(&forbidden)?.rows() {
                return Err(keys::broken(&keys::labels(constraint, &rows.schema), ""));
            }
        }
        Ok(())
    }

    /// Adds rows to a table that is not of this session, such as a folder of files: tasks make them, and the
    /// library writes them. All are added, or none.
    fn change_elsewhere(&self, mut statement: DmlStatement, table: &dyn TableProvider) -> Result<SqlAnswer> {
        let mut staged = None;
        if change::adds(&statement) {
            if let Some((place, target)) = files::of_insert(table)? {
                statement.target = target;
                staged = Some(place);
            }
            let rows = self.query(&statement.input)?;
            files::check_folders(table, &rows)?;
            statement.input = Arc::new(resident_plan(rows)?);
        }
        self.written(LogicalPlan::Dml(statement), staged)
    }

    fn copy(&self, copy: CopyTo) -> Result<SqlAnswer> {
        let state = self.context.state();
        let keeps_columns = state.config().options().execution.keep_partition_by_columns;
        let mut copy = files::as_frames_write(copy, keeps_columns)?;
        namesakes::check_different(copy.input.schema().fields())?;
        let staged = files::of_copy(&mut copy)?;
        let input = Arc::new(resident_plan(self.query(&copy.input)?)?);
        let output_url = staged.url();
        self.written(LogicalPlan::Copy(CopyTo { input, output_url, ..copy }), Some(staged))
    }

    /// Runs a statement that writes files, which are visible then; gives the number of their rows.
    fn written(&self, plan: LogicalPlan, staged: Option<Staged>) -> Result<SqlAnswer> {
        let written = self.by_library(plan)?;
        staged.map_or(Ok(()), Staged::finish)?;
        change::changed_rows(&written).map(SqlAnswer::Changed)
    }

    /// Parts of a table, so many that each partition has some, and no more than needed.
    fn cut(&self, parts: Vec<Arc<dyn KeptPart>>) -> Result<Vec<Arc<dyn KeptPart>>> {
        change::cut(parts, self.partitions(), self.part_rows_min)
    }

    fn partitions(&self) -> usize {
        self.context.state().config().target_partitions()
    }
}

impl std::fmt::Debug for SqlSession {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SqlSession({})", self.context.session_id())
    }
}

/// A plan of rows that are made, in their order.
fn resident_plan(rows: Resident) -> Result<LogicalPlan> {
    let Resident { schema, parts } = rows;
    let rows = Resident { schema, parts: vec![Arc::new(JoinedParts(parts))] };
    Ok(LogicalPlanBuilder::scan("rows", ResidentTable::new(rows).source(), None)?.build()?)
}

fn rows_of(batch: RecordBatch) -> Result<SqlAnswer> {
    Ok(SqlAnswer::Rows(Table::new(&batch.schema(), &[batch], Vec::new())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn session() -> SqlSession {
        let mut session = SqlSession::on(Arc::new(crate::execute::LocalExecutor::sized(3, 1 << 30)));
        for statement in [
            "create table e as values (1), (7), (null)",
            "create table u as values (1), (null)",
            "create table known as values (1), (3)",
            "create table none as select * from u where false",
        ] {
            session.run(statement).unwrap();
        }
        session.part_rows_min(1)
    }

    #[track_caller]
    fn assert_rows(query: &str, expected: &[&[&str]]) {
        let mut rows = session().run(query).unwrap_or_else(|error| panic!("{query}: {error}"));
        rows.sort();
        assert_eq!(rows, expected, "{query}");
    }

    #[test]
    fn not_in_knows_missing_values() {
        let all: &[&[&str]] = &[&["1"], &["7"], &["NULL"]];
        for (condition, expected) in [
            ("9 not in (select column1 from u)", &all[..0]),
            ("9 not in (select column1 from u) or column1 = 7", &all[1..2]),
            ("column1 not in (select column1 from u) or column1 = 1", &all[..1]),
            ("not (column1 in (select column1 from u) or column1 = 1)", &all[..0]),
            ("not (column1 in (select column1 from known) or column1 = 9)", &all[1..2]),
            ("column1 + 0 not in (select column1 from known)", &all[1..2]),
            ("cast(null as bigint) not in (select column1 from known)", &all[..0]),
            ("nullif(column1, column1) not in (select column1 from known)", &all[..0]),
            ("nullif(column1, column1) not in (select column1 from none)", all),
            ("9 not in (select column1 from known)", all),
            ("column1 in (select column1 from u) or column1 = 7", &all[..2]),
        ] {
            assert_rows(&format!("select column1 from e where {condition}"), expected);
        }
    }

    #[test]
    fn not_in_knows_missing_values_wherever_it_stands() {
        let all: &[&[&str]] = &[&["1"], &["7"], &["NULL"]];
        let others: &[&[&str]] = &[&["1"], &["NULL"]];
        for (condition, expected) in [
            ("(9 in (select column1 from u)) is null", all),
            ("(column1 in (select column1 from u)) is null", &all[1..]),
            ("(column1 in (select column1 from e)) is null", &all[2..]),
            ("(column1 not in (select column1 from known)) is not true", others),
            ("(column1 in (select column1 from u)) is not false", all),
            ("coalesce(column1 not in (select column1 from u), true)", &all[1..]),
            ("case when column1 in (select column1 from u) then false else column1 > 0 end", &all[1..2]),
            // Rows that depend on the value.
            ("column1 not in (select u.column1 from u where u.column1 < e.column1)", all),
            ("column1 not in (select k.column1 from known k where k.column1 > e.column1)", all),
            ("7 not in (select nullif(k.column1, 1) from known k where k.column1 = e.column1)", &all[1..]),
            ("column1 not in (select u.column1 from u where e.column1 > 1)", others),
        ] {
            assert_rows(&format!("select column1 from e where {condition}"), expected);
        }
    }

    #[test]
    fn conditions_on_subqueries_are_values() {
        for (value, expected) in [
            ("column1 in (select column1 from u)", ["true", "NULL", "NULL"]),
            ("column1 not in (select column1 from u)", ["false", "NULL", "NULL"]),
            ("column1 in (select column1 from known)", ["true", "false", "NULL"]),
            ("column1 in (select column1 from none)", ["false", "false", "false"]),
            ("9 in (select column1 from known)", ["false", "false", "false"]),
            ("column1 + 2 in (select column1 from known where column1 > 1)", ["true", "false", "NULL"]),
            ("exists (select 1 from u)", ["true", "true", "true"]),
            ("exists (select 1 from none)", ["false", "false", "false"]),
            ("not exists (select 1 from known k where k.column1 = e.column1)", ["false", "true", "true"]),
            ("case when column1 in (select column1 from known) then 'a' else 'b' end", ["a", "b", "b"]),
            (
                "column1 in (select k.column1 from known k where k.column1 = e.column1)",
                ["true", "false", "false"],
            ),
        ] {
            let [one, seven, missing] = expected;
            assert_rows(
                &format!("select column1, {value} from e"),
                &[&["1", one], &["7", seven], &["NULL", missing]],
            );
        }
        let one_in = "case when column1 in (select column1 from known) then 1 else 0 end";
        assert_rows(&format!("select sum({one_in}), count(*) from e"), &[&["1", "3"]]);
        let exists = "exists (select 1 from known k where k.column1 = e.column1)";
        assert_rows(
            &format!("select {exists}, count(*) from e group by 1"),
            &[&["false", "2"], &["true", "1"]],
        );
    }

    #[test]
    fn keys_of_exchanges_read_values_of_subqueries() {
        let joined = "e full join e z on e.column1 = z.column1 + 6";
        let greatest = "(select max(column1) from e)";
        assert_rows(
            &format!(
                "select e.column1, row_number() over (partition by {greatest} order by e.column1) from {joined}"
            ),
            &[&["1", "1"], &["7", "2"], &["NULL", "3"], &["NULL", "4"], &["NULL", "5"]],
        );
    }

    #[test]
    fn a_row_of_which_nothing_is_known_is_not_deleted() {
        let mut session = session();
        let deleted = session.execute("delete from e where column1 not in (select column1 from u)");
        assert_eq!(deleted.unwrap(), SqlAnswer::Changed(0));
        let deleted = session.execute("delete from e where column1 not in (select column1 from known)");
        assert_eq!(deleted.unwrap(), SqlAnswer::Changed(1));
        let mut left = session.run("select column1 from e").unwrap();
        left.sort();
        assert_eq!(left, [["1"], ["NULL"]]);
    }

    #[test]
    fn a_prepared_update_keeps_columns_that_it_does_not_read() {
        let mut session = session();
        session.run("create table w (a int, b int, c int) as values (1, 2, 3), (4, 5, 6)").unwrap();
        session.run("prepare change(int) as update w set a = $1 where b = 2").unwrap();
        assert_eq!(session.execute("execute change(9)").unwrap(), SqlAnswer::Changed(1));
        assert_eq!(session.run("select * from w order by b").unwrap(), [["9", "2", "3"], ["4", "5", "6"]]);
        session.run("prepare remove(int) as delete from w where b = $1").unwrap();
        assert_eq!(session.execute("execute remove(2)").unwrap(), SqlAnswer::Changed(1));
        assert_eq!(session.run("select * from w").unwrap(), [["4", "5", "6"]]);
    }

    #[test]
    fn conditions_stay_above_aggregates_of_all_rows() {
        let counted = "(select count(*) n, false f from e) x";
        assert_rows(&format!("select n from {counted} where f"), &[]);
        assert_rows(&format!("select n from {counted} where (select max(column1) from e) > 100"), &[]);
        let joined = format!("select e.column1, x.n from e left join {counted} on (0 = 2)");
        assert_rows(&joined, &[&["1", "NULL"], &["7", "NULL"], &["NULL", "NULL"]]);
        let query = "select column1, count(*) over () n from e group by column1 order by column1 limit 1";
        assert_rows(query, &[&["1", "3"]]);
    }
}
