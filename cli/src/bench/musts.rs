//! Targets of benches as the table writes them, and whether a measurement meets them.

use super::Measurement;

/// The conditions of a target that a measurement does not meet. They are divided by commas: `<= 30` is about
/// the figure, `ratio <= 3` about its ratio to the floor, `growth <= 2` about another figure of the run; one
/// without a sign, such as `small 0.7`, has that of the one before it. What the run has no figure for is not
/// judged, nor what has no name and another unit, such as `<= 500 B/chunk`.
pub fn missed<'a>(must: &'a str, measured: &Measurement) -> Vec<&'a str> {
    let mut is_most = true;
    let mut missed = Vec::new();
    for condition in must.split(", ") {
        let (name, number) = match (condition.split_once("<="), condition.split_once(">=")) {
            (Some(parts), _) => {
                is_most = true;
                parts
            }
            (_, Some(parts)) => {
                is_most = false;
                parts
            }
            // A name, then a number.
            _ => condition.split_once(' ').unwrap_or_default(),
        };
        let figure = match name.trim() {
            "" if number.is_empty() || number.contains(char::is_alphabetic) => None,
            "" => Some(measured.value),
            "ratio" => Some(measured.ratio),
            other => measured.detail.get(other).copied(),
        };
        let bound: String =
            number.chars().filter(|letter| letter.is_ascii_digit() || *letter == '.').collect();
        if let (Some(figure), Ok(bound)) = (figure, bound.parse::<f64>()) {
            let (least, most) = if is_most { (figure, bound) } else { (bound, figure) };
            if most < least {
                missed.push(condition);
            }
        }
    }
    missed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missed_is_named() {
        let measured = Measurement::new("b", 31.0, "us", 10.0).with("growth", 1.5).with("small", 0.65);
        for (must, wanted) in [
            ("<= 30, ratio <= 3", vec!["<= 30", "ratio <= 3"]),
            ("<= 40, ratio <= 3.2", vec![]),
            (">= 1 500 000", vec![">= 1 500 000"]),
            ("ratio >= 0.85, small 0.7", vec!["small 0.7"]),
            ("<= 31, growth <= 1", vec!["growth <= 1"]),
            ("<= 1.3 of the best, <= 30 B/chunk", vec![]),
            (">= 31, growth <= 1, growth <= 2", vec!["growth <= 1"]),
            ("<= 31, --store 0.6, other <= 10 %", vec![]),
            ("", vec![]),
        ] {
            assert_eq!(missed(must, &measured), wanted, "{must}");
        }
    }
}
