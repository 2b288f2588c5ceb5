//! Names that were probably mistyped. A name that is no more than alike would mislead.

/// Letters from which two mistakes are likely.
const LONG: usize = 5;

/// The known name that is nearest to another one: with the same first letter, and one letter that differs,
/// is missing, is too much or is swapped; two, if the name is longer.
pub(in crate::sql) fn near<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let most = if name.chars().count() < LONG { 1 } else { 2 };
    let distance = |known: &'a str| (strsim::osa_distance(name, known), known);
    let found = known.into_iter().filter(|known| known.chars().next() == name.chars().next()).map(distance);
    let (distance, nearest) = found.min()?;
    (distance <= most && 0 < distance).then_some(nearest)
}

/// The nearest name as the end of a message; nothing if no name is near.
pub(in crate::sql) fn near_text<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    near(name, known).map(|near| format!("; did you mean {near:?}?")).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::near;

    #[test]
    fn only_near_names_are_meant() {
        let known = ["cot", "count", "range", "upper", "sum"];
        assert_eq!(near("coutn", known), Some("count"));
        assert_eq!(near("uper", known), Some("upper"));
        assert_eq!(near("smu", known), Some("sum"));
        for far in ["age", "iff", "", "sum", "cuont_all", "xount"] {
            assert_eq!(near(far, known), None, "{far}");
        }
    }
}
