//! Texts row by row, with the results of pandas 3.1.

use crate::executors::{each_executor, three_parts};
use arrow::datatypes::DataType;
use tharsis_dataframe::{Aggregate, DataFrame, Native, Series, Sort, dtype_named};

fn sample() -> Series {
    Series::from_values("t", vec![Some("Ab c"), None, Some("a1"), Some("x-y-z"), Some("  p ")])
}

/// The values on each executor, `None` where they are missing.
#[track_caller]
fn assert_values<T: Native + PartialEq + std::fmt::Debug>(series: &Series, expected: &[Option<T>]) {
    let frame = series.rename("v").to_frame();
    for found in each_executor(|executor| frame.collect_on(executor)?.column::<T>("v")) {
        assert_eq!(found, expected);
    }
}

#[track_caller]
fn assert_texts(series: &Series, expected: &[Option<&str>]) {
    let expected: Vec<_> = expected.iter().map(|text| text.map(str::to_owned)).collect();
    assert_values(series, &expected);
}

#[test]
fn letters_change_their_case() {
    let t = sample().str();
    assert_texts(&t.lower(), &[Some("ab c"), None, Some("a1"), Some("x-y-z"), Some("  p ")]);
    assert_texts(&t.upper(), &[Some("AB C"), None, Some("A1"), Some("X-Y-Z"), Some("  P ")]);
    assert_texts(&t.title(), &[Some("Ab C"), None, Some("A1"), Some("X-Y-Z"), Some("  P ")]);
    assert_texts(&t.capitalize(), &[Some("Ab c"), None, Some("A1"), Some("X-y-z"), Some("  p ")]);
    assert_texts(&t.swapcase(), &[Some("aB C"), None, Some("A1"), Some("X-Y-Z"), Some("  P ")]);
}

#[test]
fn questions_are_answered_with_false_for_missing_texts() {
    let t = sample().str();
    assert_values(&t.contains("a"), &[false, false, true, false, false].map(Some));
    assert_values(&t.contains(r"[A-Z]|\d"), &[true, false, true, false, false].map(Some));
    assert_values(&t.contains_text("-"), &[false, false, false, true, false].map(Some));
    assert_values(&t.startswith("A"), &[true, false, false, false, false].map(Some));
    assert_values(&t.endswith("z"), &[false, false, false, true, false].map(Some));
    assert_values(&t.match_("[a-z]"), &[false, false, true, true, false].map(Some));
    assert_values(&t.fullmatch("[a-z]."), &[false, false, true, false, false].map(Some));
    assert_values(&t.islower(), &[false, false, true, true, true].map(Some));
    assert_values(&t.isalnum(), &[false, false, true, false, false].map(Some));
    assert_values(&t.istitle(), &[false; 5].map(Some));
    let kinds = Series::from_values("k", vec!["12", "٣", "²", "½", "x", " ", ""]).str();
    let yes = |places: &[usize]| (0..7).map(|at| Some(places.contains(&at))).collect::<Vec<_>>();
    assert_values(&kinds.isdecimal(), &yes(&[0, 1]));
    assert_values(&kinds.isdigit(), &yes(&[0, 1, 2]));
    assert_values(&kinds.isnumeric(), &yes(&[0, 1, 2, 3]));
    assert_values(&kinds.isalpha(), &yes(&[4]));
    assert_values(&kinds.isspace(), &yes(&[5]));
    assert_values(&kinds.isupper(), &yes(&[]));
}

#[test]
fn parts_of_texts_are_found_and_cut() {
    let t = sample().str();
    assert_values(&t.len(), &[Some(4), None, Some(2), Some(5), Some(4)]);
    assert_values(&t.find("c"), &[Some(3), None, Some(-1), Some(-1), Some(-1)]);
    assert_values(&t.rfind("-"), &[Some(-1), None, Some(-1), Some(3), Some(-1)]);
    assert_values(&t.count("-"), &[Some(0), None, Some(0), Some(2), Some(0)]);
    assert_texts(&t.get(1), &[Some("b"), None, Some("1"), Some("-"), Some(" ")]);
    assert_texts(&t.get(-3), &[Some("b"), None, None, Some("y"), Some(" ")]);
    assert_texts(&t.slice(1, -1), &[Some("b "), None, Some(""), Some("-y-"), Some(" p")]);
    assert_texts(&t.slice(-2, None), &[Some(" c"), None, Some("a1"), Some("-z"), Some("p ")]);
    assert_texts(&t.strip(None), &[Some("Ab c"), None, Some("a1"), Some("x-y-z"), Some("p")]);
    assert_texts(&t.lstrip(Some("xa ")), &[Some("Ab c"), None, Some("1"), Some("-y-z"), Some("p ")]);
    assert_texts(&t.rstrip(Some("z ")), &[Some("Ab c"), None, Some("a1"), Some("x-y-"), Some("  p")]);
    assert_texts(&t.removeprefix("x-"), &[Some("Ab c"), None, Some("a1"), Some("y-z"), Some("  p ")]);
    assert_texts(&t.removesuffix("1"), &[Some("Ab c"), None, Some("a"), Some("x-y-z"), Some("  p ")]);
    let umlauts = Series::from_values("u", vec!["äöü", "日本語"]).str();
    assert_texts(&umlauts.slice(1, 2), &[Some("ö"), Some("本")]);
    assert_values(&umlauts.find("ü"), &[Some(2), Some(-1)]);
}

#[test]
fn texts_are_filled_and_repeated() {
    let t = sample().str();
    assert_texts(
        &t.center(7, '*'),
        &[Some("**Ab c*"), None, Some("***a1**"), Some("*x-y-z*"), Some("**  p *")],
    );
    assert_texts(&t.rjust(5, '.'), &[Some(".Ab c"), None, Some("...a1"), Some("x-y-z"), Some(".  p ")]);
    assert_texts(&t.ljust(5, '.'), &[Some("Ab c."), None, Some("a1..."), Some("x-y-z"), Some("  p .")]);
    assert_texts(&t.zfill(5), &[Some("0Ab c"), None, Some("000a1"), Some("x-y-z"), Some("0  p ")]);
    assert_texts(&t.repeat(2), &[Some("Ab cAb c"), None, Some("a1a1"), Some("x-y-zx-y-z"), Some("  p   p ")]);
    let signed = Series::from_values("n", vec!["-7", "+7", "7"]).str();
    assert_texts(&signed.zfill(4), &[Some("-007"), Some("+007"), Some("0007")]);
}

#[test]
fn texts_are_split_into_lists_and_columns() {
    let t = sample().str();
    let parts = t.split(Some("-"));
    assert_texts(&parts.str().get(-1), &[Some("Ab c"), None, Some("a1"), Some("z"), Some("  p ")]);
    assert_texts(&parts.str().get(1), &[None, None, None, Some("y"), None]);
    assert_values(&parts.str().len(), &[Some(1), None, Some(1), Some(3), Some(1)]);
    assert_texts(&parts.str().join("+"), &[Some("Ab c"), None, Some("a1"), Some("x+y+z"), Some("  p ")]);
    let last = t.rsplit(Some("-"), 1);
    assert_texts(&last.str().get(0), &[Some("Ab c"), None, Some("a1"), Some("x-y"), Some("  p ")]);
    assert_texts(&t.split(None).str().get(0), &[Some("Ab"), None, Some("a1"), Some("x-y-z"), Some("p")]);
    let blanks = Series::from_values("b", vec!["  a  b c ", " "]).str();
    assert_texts(&blanks.split(None).str().join("|"), &[Some("a|b|c"), Some("")]);
    assert_texts(&blanks.split_n(None, 1).str().join("|"), &[Some("a|b c "), Some("")]);
    assert_texts(&blanks.rsplit(None, 1).str().join("|"), &[Some("  a  b|c"), Some("")]);
    let wide = t.split_expand(Some("-"), 2);
    assert_eq!(wide.columns().unwrap(), ["0", "1"]);
    assert_texts(&wide.col("0"), &[Some("Ab c"), None, Some("a1"), Some("x"), Some("  p ")]);
    assert_texts(&wide.col("1"), &[None, None, None, Some("y-z"), None]);
}

#[test]
fn patterns_replace_and_extract() {
    let t = sample().str();
    assert_texts(&t.replace("-", "$1."), &[Some("Ab c"), None, Some("a1"), Some("x$1.y$1.z"), Some("  p ")]);
    let swapped = t.replace_regex(r"(\w)-(?P<n>\w)", r"\g<n>$\1");
    assert_texts(&swapped, &[Some("Ab c"), None, Some("a1"), Some("y$x-z"), Some("  p ")]);
    let found = t.extract(r"(\w)(\d)?");
    assert_texts(&found.col("0"), &[Some("A"), None, Some("a"), Some("x"), Some("p")]);
    assert_texts(&found.col("1"), &[None, None, Some("1"), None, None]);
    let named = t.extract(r"(?P<first>[a-z])(?:-)(?P<rest>[(\w-]+)");
    assert_eq!(named.columns().unwrap(), ["first", "rest"]);
    assert_texts(&named.col("rest"), &[None, None, None, Some("y-z"), None]);
}

#[test]
fn texts_are_put_together() {
    let t = sample();
    let doubled = [Some("Ab c+Ab c"), None, Some("a1+a1"), Some("x-y-z+x-y-z"), Some("  p +  p ")];
    assert_texts(&t.str().cat(&t, "+"), &doubled);
    assert_eq!(t.str().cat_all(",").unwrap(), "Ab c,a1,x-y-z,  p ");
}

#[test]
fn mistakes_are_type_and_value_errors() {
    let numbers = Series::from_values("n", vec![1, 2]);
    assert_eq!(numbers.str().lower().to_frame().check().unwrap_err().class(), "TypeError");
    assert_eq!(sample().str().contains("(").to_frame().check().unwrap_err().class(), "ValueError");
    assert_eq!(sample().str().extract("a").check().unwrap_err().class(), "ValueError");
    assert_eq!(sample().str().join(",").to_frame().check().unwrap_err().class(), "TypeError");
    assert_eq!(sample().str().split(None).str().lower().dtype().unwrap_err().class(), "TypeError");
    assert_eq!(sample().str().split(Some("")).dtype().unwrap_err().class(), "ValueError");
}

#[test]
fn texts_of_several_parts_stay_in_order() {
    let texts = three_parts().col("n").astype(DataType::Utf8).str().zfill(2);
    let padded = ["00", "01", "02", "03", "04", "05", "06", "07", "08", "09"].map(Some);
    assert_texts(&texts, &padded);
    assert_values(
        &texts.str().contains("[3-5]").astype(DataType::Int64),
        &[0, 0, 0, 1, 1, 1, 0, 0, 0, 0].map(Some),
    );
}

#[test]
fn texts_of_few_kinds_are_categories() {
    let category = dtype_named("category").unwrap();
    let k = three_parts().col("k").map([(0, "zero"), (1, "one")]).astype(category);
    assert_eq!(k.cat().categories().unwrap(), ["one", "zero"]);
    assert_values(&k.cat().codes(), &[1, 0, -1, 1, 0, -1, 1, 0, -1, 1].map(Some));
    let upper = k.str().upper().to_frame().head(3).col("k");
    assert_texts(&upper, &[Some("ZERO"), Some("ONE"), None]);
    let frame = three_parts().assign("kind", &k);
    let sums = frame.groupby(["kind"]).agg([("n", Aggregate::Sum)]);
    assert_values(&sums.col("n"), &[Some(12), Some(18)]);
    let zeros = frame.filter(&frame.col("kind").eq("zero"));
    assert_values(&zeros.col("n"), &[0, 3, 6, 9].map(Some));
    assert_eq!(sample().cat().codes().dtype().unwrap_err().class(), "TypeError");
}

/// Files keep texts in another layout.
#[test]
fn texts_of_files_are_texts_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet").to_string_lossy().into_owned();
    sample().to_frame().to_parquet(&path).unwrap();
    let t = tharsis_dataframe::read_parquet(&path).col("t");
    assert_values(&t.str().find("c"), &[Some(3), None, Some(-1), Some(-1), Some(-1)]);
    assert_texts(&t.str().split(Some("-")).str().get(1), &[None, None, None, Some("y"), None]);
    assert_texts(
        &t.str().cat(&t.str().upper(), "").str().slice(4, 6),
        &[Some("AB"), None, Some(""), Some("zX"), Some("  ")],
    );
    assert_texts(&t.str().extract("([a-z])").col("0"), &[Some("b"), None, Some("a"), Some("x"), Some("p")]);
}

/// Addresses of mail by their domains.
#[test]
fn a_program_cleans_and_groups_texts() {
    let raw =
        vec![Some(" Ann@Example.org "), Some("bob@example.ORG"), None, Some("eve@test.net"), Some("bad")];
    let people = DataFrame::from_columns([("mail", raw.into()), ("age", vec![30, 40, 50, 60, 70].into())]);
    let clean = people.col("mail").str().strip(None).str().lower();
    let people = people.assign("mail", &clean);
    let people = people.filter(&people.col("mail").str().fullmatch(r"[^@]+@[^@]+\.\w+"));
    let parts = people.col("mail").str().split(Some("@"));
    let people = people.assign("domain", parts.str().get(1));
    let ages = people.groupby(["domain"]).agg([("age", Aggregate::Mean)]).sort_index(Sort::descending());
    assert_values(&ages.col("age"), &[Some(60.0), Some(35.0)]);
    assert_texts(&people.col("domain").str().slice(0, 4), &[Some("exam"), Some("exam"), Some("test")]);
}
