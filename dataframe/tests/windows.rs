//! Windows over the order of rows: shifts, running sums, ranks, rolling windows. Expected values are those
//! of pandas.

mod executors;

use executors::{each_executor, three_parts};

#[test]
fn rows_are_not_numbered_for_a_step_that_reads_no_numbers() {
    let frame = three_parts();
    let grouped = frame.filter(&frame.col("n").gt(2)).groupby(["k"]).sum();
    let stages = grouped.explain().unwrap();
    assert!(!stages.contains("RowNumberExec"), "{stages}");
    let plain = frame.groupby(["k"]).sum().explain().unwrap();
    assert_eq!(stages.matches("stage ").count(), plain.matches("stage ").count(), "{stages}\n{plain}");
    for sums in each_executor(|executor| grouped.collect_on(executor)?.column::<i64>("n")) {
        assert_eq!(sums, [Some(18), Some(11), Some(13)]);
    }
    // Labels that come out are numbered still.
    let kept = frame.filter(&frame.col("n").gt(2));
    assert!(kept.explain().unwrap().contains("RowNumberExec"));
    let twice = kept.filter(&kept.col("k").eq(0)).reset_index(true);
    for found in each_executor(|executor| twice.collect_on(executor)?.column::<i64>("n")) {
        assert_eq!(found, [Some(3), Some(6), Some(9)]);
    }
}
