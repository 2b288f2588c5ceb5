//! Joins on a key that most rows share.

use crate::executors::{SentExecutor, by_default};
use std::sync::Arc;
use tharsis_dataframe::{
    Computation, DataFrame, Executor, Explanation, JoinKind, LocalExecutor, Merge, StageLine, sql,
};

/// So many that their bytes are worth several calls, and that no side is sent to all tasks of the other.
const ROWS: i64 = 1_000_000;
const KEYS: i64 = 250_000;

/// Four of five rows have the key 0.
fn key(row: i64) -> i64 {
    if row % 5 == 0 { row % KEYS } else { 0 }
}

/// The rows in eight parts, with their number and the key.
fn many() -> DataFrame {
    let part = |part: i64| {
        let rows = part * ROWS / 8..(part + 1) * ROWS / 8;
        let keys: Vec<i64> = rows.clone().map(key).collect();
        DataFrame::from_columns([("key", keys.into()), ("row", rows.collect::<Vec<_>>().into())])
    };
    DataFrame::concat(&(0..8).map(part).collect::<Vec<_>>(), true)
}

/// A row for each key but every seventh.
fn names() -> DataFrame {
    let keys = || (0..KEYS).filter(|key| key % 7 != 3);
    let (name, twice) = (keys().map(|key| format!("key {key}")), keys().map(|key| 2 * key));
    DataFrame::from_columns([
        ("key", keys().collect::<Vec<_>>().into()),
        ("name", name.collect::<Vec<_>>().into()),
        ("twice", twice.collect::<Vec<_>>().into()),
    ])
}

#[test]
fn a_task_without_rows_is_not_run() {
    // Three keys of eight partitions, at most, have rows.
    let few = many().assign("key", many().col("key").clip(0, 2));
    let joined = few.merge(&names(), Merge::on(["key"]));
    let executor = LocalExecutor::sized(8, 2 << 30);
    let sums = joined.groupby(["name"]).agg_as([("rows", "row", tharsis_dataframe::Aggregate::Count)]);
    let computed = Computation::of(&sums).on(&executor).run().unwrap();
    let join = join_of(&computed.explanation);
    assert!(join.operators.iter().any(|line| line.contains("Partitioned")), "{}", computed.explanation);
    assert!(!sums.collect_on(&executor).unwrap().is_empty());
    let plain = sums.collect_on(&SentExecutor { attempts: 1 }).unwrap().to_string();
    assert_eq!(computed.frame.collect_on(&executor).unwrap().to_string(), plain);
    assert!(
        computed
            .metrics
            .stages
            .iter()
            .zip(&computed.explanation.stages)
            .any(|(run, plan)| run.tasks < plan.tasks)
    );
}

fn join_of(explanation: &Explanation) -> &StageLine {
    let is_join = |stage: &&StageLine| stage.operators.iter().any(|line| line.contains("HashJoinExec"));
    explanation.stages.iter().find(is_join).expect("a join")
}

#[test]
fn no_task_of_a_join_has_most_rows_and_rows_keep_their_order() {
    let joined = many().merge(&names(), Merge::on(["key"]).how(JoinKind::Left));
    let executor = LocalExecutor::sized(4, 2 << 30);
    let computed = Computation::of(&joined).on(&executor).run().unwrap();
    let join = join_of(&computed.explanation);
    let run = join.run.as_ref().unwrap();
    // Without calls that share a task, one would have made 85 of a hundred bytes.
    assert!(run.largest_bytes * 3 < run.bytes, "{}", computed.explanation);
    assert!(join.tasks < run.tasks, "{}", computed.explanation);
    let table = computed.frame.collect_on(&executor).unwrap();
    assert!(table.column::<i64>("row").unwrap().into_iter().flatten().eq(0..ROWS));
    let expected = (0..ROWS).map(key).map(|key| (key % 7 != 3).then_some(2 * key));
    assert!(table.column::<i64>("twice").unwrap().into_iter().eq(expected));
}

#[test]
fn each_kind_of_join_gives_the_rows_of_one_that_is_not_parted() {
    let tables: [(&str, &DataFrame); 2] = [("many", &many()), ("names", &names())];
    for (from, is_parted) in [
        ("many join names on many.key = names.key", true),
        ("many left join names on many.key = names.key", true),
        ("names left join many on many.key = names.key", false),
        ("many full join names on many.key = names.key", false),
        ("(select *, 0 as twice from many where key in (select key from names where twice > -1))", true),
        ("(select *, 0 as twice from many where key not in (select key from names where twice > -1))", false),
        ("(select *, 0 as row from names where key in (select key from many where row > -1))", false),
    ] {
        let query = format!("select count(*), sum(row), sum(twice), count(twice) from {from}");
        let sums = sql(&query, &tables);
        let local: Arc<dyn Executor> = Arc::new(LocalExecutor::sized(4, 2 << 30));
        let computed = Computation::of(&sums).on(&*local).run().unwrap();
        let plain = by_default(Arc::new(SentExecutor { attempts: 1 }), || sums.collect().unwrap());
        assert_eq!(computed.frame.collect_on(&*local).unwrap().to_string(), plain.to_string(), "{from}");
        let join = join_of(&computed.explanation);
        assert_eq!(join.tasks < join.run.as_ref().unwrap().tasks, is_parted, "{}", computed.explanation);
    }
}
