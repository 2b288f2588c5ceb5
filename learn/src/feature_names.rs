//! Names of the features that transformers make, in the words of scikit-learn.

/// The name of a class in small letters with the number of each feature: of maps whose features are new.
pub(crate) fn numbered(class: &str, count: usize) -> Vec<String> {
    let class = class.to_lowercase();
    (0..count).map(|at| format!("{class}{at}")).collect()
}

/// The same names, of a map of so many features to as many.
pub(crate) fn same(names: &[String], columns: usize) -> Option<Vec<String>> {
    (names.len() == columns).then(|| names.to_vec())
}

/// The names at these places of so many features.
pub(crate) fn at(names: &[String], places: &[usize], columns: usize) -> Option<Vec<String>> {
    if names.len() != columns {
        return None;
    }
    places.iter().map(|&place| names.get(place).cloned()).collect()
}

/// A number as Python writes it.
pub(crate) fn python(number: f64) -> String {
    if number.is_nan() {
        return "nan".to_owned();
    }
    let text = format!("{number:?}");
    let Some((digits, power)) = text.split_once('e') else { return text };
    let (sign, power) = match power.strip_prefix('-') {
        Some(power) => ('-', power),
        None => ('+', power),
    };
    format!("{digits}e{sign}{power:0>2}")
}

#[cfg(test)]
mod tests {
    use super::python;

    #[test]
    fn numbers_are_written_as_in_python() {
        let texts = [1.0, -0.5, 1e16, 1.5e-5, 1e-300, 123_456.0, f64::NAN].map(python);
        assert_eq!(texts, ["1.0", "-0.5", "1e+16", "1.5e-05", "1e-300", "123456.0", "nan"]);
    }
}
