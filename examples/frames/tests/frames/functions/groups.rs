//! Functions of groups, and reductions made of functions.

use crate::place::in_parts;
use std::collections::BTreeMap;
use tharsis::frame::{Column, DataFrame, Error, Reduction, Sort, Table, function};

pub const TESTS: [(&str, fn()); 4] = [
    ("a_function_gets_each_group_once", a_function_gets_each_group_once),
    ("groups_are_transformed_in_place", groups_are_transformed_in_place),
    ("a_frame_is_reduced_in_three_steps", a_frame_is_reduced_in_three_steps),
    ("groups_are_reduced_in_three_steps", groups_are_reduced_in_three_steps),
];

const PARTS: i64 = 4;
const PART_ROWS: i64 = 2_500;
const ROWS: i64 = PARTS * PART_ROWS;

fn city(n: i64) -> Option<&'static str> {
    [Some("Oslo"), Some("Rome"), None, Some("Bern"), Some("Oslo")][(n % 5) as usize]
}

fn sales() -> DataFrame {
    in_parts((0..PARTS).map(|part| {
        let n: Vec<i64> = (part * PART_ROWS..(part + 1) * PART_ROWS).rev().collect();
        let cities: Vec<Option<&str>> = n.iter().map(|n| city(*n)).collect();
        let sold: Vec<Option<f64>> =
            n.iter().map(|n| (n % 11 != 0).then_some(1.0 + (n % 97) as f64)).collect();
        DataFrame::from_columns([("n", n.into()), ("city", cities.into()), ("sold", sold.into())])
    }))
}

/// Rows of the sales by city, in their order.
fn by_city() -> BTreeMap<&'static str, Vec<(i64, Option<f64>)>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for part in 0..PARTS {
        for n in (part * PART_ROWS..(part + 1) * PART_ROWS).rev() {
            let sold = (n % 11 != 0).then_some(1.0 + (n % 97) as f64);
            if let Some(city) = city(n) {
                found.entry(city).or_default().push((n, sold));
            }
        }
    }
    found
}

/// The first rows of a group, with their number in it.
#[function]
fn first_rows(rows: Table, count: usize) -> Result<Table, Error> {
    let n = rows.column::<i64>("n")?;
    let taken = count.min(n.len());
    let place: Vec<i64> = (0..taken as i64).collect();
    Table::from_columns([("n", n[..taken].to_vec().into()), ("place", place.into())])
}

#[function]
fn spread(rows: Table) -> Result<Option<f64>, Error> {
    let sold: Vec<f64> = rows.column::<f64>("sold")?.into_iter().flatten().collect();
    let largest = sold.iter().copied().reduce(f64::max);
    Ok(largest.zip(sold.iter().copied().reduce(f64::min)).map(|(largest, least)| largest - least))
}

fn a_function_gets_each_group_once() {
    let sales = sales();
    let plain = by_city();
    let first = sales.groupby(["city"]).apply(first_rows::with(3)).collect().unwrap();
    let expected: Vec<Option<i64>> =
        plain.values().flat_map(|rows| rows[..3].iter().map(|(n, _)| Some(*n))).collect();
    assert_eq!(first.column::<i64>("n").unwrap(), expected);
    assert_eq!(first.column::<i64>("place").unwrap()[..4], [Some(0), Some(1), Some(2), Some(0)]);
    assert_eq!(first.index_names(), [Some("city".to_owned())]);
    // A value for each group, by the first row of each, with the rows that have no key.
    let spreads = sales.groupby(["city"]).sort(false).dropna(false).as_index(false).apply(spread::with());
    let spreads = spreads.collect().unwrap();
    assert_eq!(spreads.column::<f64>("0").unwrap(), [Some(96.0); 4]);
    let texts = [city(PART_ROWS - 1), city(PART_ROWS - 2), city(PART_ROWS - 3), city(PART_ROWS - 4)];
    let found = spreads.column::<String>("city").unwrap();
    assert_eq!(found.iter().map(Option::as_deref).collect::<Vec<_>>(), texts);
    // After a sort, the rows of a group come in its order.
    let sorted = sales.sort_values(["n"], Sort::ascending());
    let smallest = sorted.groupby(["city"]).select(["n"]).apply(first_rows::with(1)).collect().unwrap();
    assert_eq!(smallest.column::<i64>("n").unwrap(), [Some(3), Some(0), Some(1)]);
}

#[function]
fn less_mean(column: Column) -> Result<Column, Error> {
    let values = column.values::<f64>()?;
    let there: Vec<f64> = values.iter().copied().flatten().collect();
    let mean = there.iter().sum::<f64>() / there.len() as f64;
    Ok(values.into_iter().map(|value| value.map(|value| value - mean)).collect::<Vec<_>>().into())
}

#[function]
fn how_many(column: Column) -> Column {
    vec![column.len() as i64].into()
}

fn groups_are_transformed_in_place() {
    let sales = sales();
    let groups = sales.groupby(["city"]);
    let centred = sales
        .assign("centred", groups.clone().select(["sold"]).transform(less_mean::with()).col("sold"))
        .assign("size", groups.select(["n"]).transform(how_many::with()).col("n"));
    let table = centred.collect().unwrap();
    let plain = by_city();
    let mean = |city: &str| {
        let sold: Vec<f64> = plain[city].iter().filter_map(|(_, sold)| *sold).collect();
        sold.iter().sum::<f64>() / sold.len() as f64
    };
    let (n, found) = (table.column::<i64>("n").unwrap(), table.column::<f64>("centred").unwrap());
    let size = table.column::<i64>("size").unwrap();
    assert_eq!((n.len() as i64, n[0]), (ROWS, Some(PART_ROWS - 1)));
    for ((n, found), size) in n.into_iter().flatten().zip(found).zip(size) {
        let sold = (n % 11 != 0).then_some(1.0 + (n % 97) as f64);
        let expected = city(n).and_then(|city| sold.map(|sold| sold - mean(city)));
        let close = |(a, b): (f64, f64)| (a - b).abs() < 1e-9;
        assert!(found.is_some() == expected.is_some() && found.zip(expected).is_none_or(close), "{n}");
        assert_eq!(size, city(n).map(|city| plain[city].len() as i64), "{n}");
    }
}

/// The sum of logarithms, and their number.
#[function]
fn logarithms(rows: Table) -> Result<Table, Error> {
    let sold: Vec<f64> = rows.column::<f64>("sold")?.into_iter().flatten().collect();
    let sum: f64 = sold.iter().map(|sold| sold.ln()).sum();
    Table::from_columns([("sum", vec![sum].into()), ("count", vec![sold.len() as i64].into())])
}

#[function]
fn added(states: Table) -> Result<Table, Error> {
    let sum: f64 = states.column::<f64>("sum")?.into_iter().flatten().sum();
    let count: i64 = states.column::<i64>("count")?.into_iter().flatten().sum();
    Table::from_columns([("sum", vec![sum].into()), ("count", vec![count].into())])
}

#[function]
fn power(states: Table) -> Result<Table, Error> {
    let (sum, count) = (states.column::<f64>("sum")?, states.column::<i64>("count")?);
    let mean = |(sum, count): (Option<f64>, Option<i64>)| {
        sum.zip(count).filter(|(_, count)| 0 < *count).map(|(sum, count)| (sum / count as f64).exp())
    };
    Table::from_columns([("mean", sum.into_iter().zip(count).map(mean).collect::<Vec<_>>().into())])
}

fn geometric_mean() -> Reduction {
    Reduction::new(added::with()).pre(logarithms::with()).post(power::with())
}

fn plain_mean(sold: impl Iterator<Item = f64>) -> f64 {
    let logarithms: Vec<f64> = sold.map(f64::ln).collect();
    (logarithms.iter().sum::<f64>() / logarithms.len() as f64).exp()
}

fn close(found: Option<f64>, expected: f64) {
    assert!(found.is_some_and(|found| (found - expected).abs() < 1e-9 * expected), "{found:?}, {expected}");
}

fn a_frame_is_reduced_in_three_steps() {
    let sales = sales();
    let expected = plain_mean((0..ROWS).filter(|n| n % 11 != 0).map(|n| 1.0 + (n % 97) as f64));
    close(sales.reduce(&geometric_mean()).collect().unwrap().column("mean").unwrap()[0], expected);
    close(sales.col("sold").reduce(&geometric_mean()).unwrap().as_f64(), expected);
    // Without rows there is a result too.
    let none = sales.filter(&sales.col("n").lt(0)).reduce(&geometric_mean()).collect().unwrap();
    assert_eq!(none.column::<f64>("mean").unwrap(), [None]);
    // Without `pre` and `post`, rows are states.
    let states = sales.rename([("sold", "sum"), ("n", "count")]).select(["sum", "count"]);
    let total = states.reduce(&Reduction::new(added::with())).col("count").values::<i64>().unwrap();
    assert_eq!(total, [Some(ROWS * (ROWS - 1) / 2)]);
}

fn groups_are_reduced_in_three_steps() {
    let sales = sales();
    let means = sales.groupby(["city"]).reduce(&geometric_mean()).collect().unwrap();
    assert_eq!(means.index_names(), [Some("city".to_owned())]);
    let found = means.column::<f64>("mean").unwrap();
    let plain = by_city();
    assert_eq!(found.len(), plain.len());
    for (found, rows) in found.into_iter().zip(plain.values()) {
        close(found, plain_mean(rows.iter().filter_map(|(_, sold)| *sold)));
    }
    // By two keys, in the order of their first rows.
    let even = sales.assign("even", (&sales.col("n") % 2).eq(0));
    let means = even.groupby(["even", "city"]).sort(false).as_index(false).reduce(&geometric_mean());
    let means = means.collect().unwrap();
    assert_eq!((means.len(), means.columns().len()), (6, 3));
    let first = plain_mean(
        by_city()["Oslo"].iter().filter(|(n, _)| n % 2 == (PART_ROWS - 1) % 2).filter_map(|(_, sold)| *sold),
    );
    assert_eq!(means.column::<String>("city").unwrap()[0].as_deref(), city(PART_ROWS - 1));
    close(means.column("mean").unwrap()[0], first);
}
