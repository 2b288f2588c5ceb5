//! Whole numbers beyond 64 bits, like Python's.

use std::fmt;

/// A whole number that no integer dtype holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LargeInteger {
    negative: bool,
    /// Decimal digits without leading zeros.
    digits: String,
}

impl LargeInteger {
    /// Parses a decimal text; `None` if it is no whole number or has more than 10 000 digits.
    ///
    /// ```
    /// use tharsis_numeric::LargeInteger;
    /// let text = "-18446744073709551616";
    /// assert_eq!(LargeInteger::parse(text).expect("a number").to_string(), text);
    /// ```
    pub fn parse(text: &str) -> Option<LargeInteger> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, text.strip_prefix('+').unwrap_or(text)),
        };
        let valid =
            !digits.is_empty() && digits.len() <= DIGITS_MAX && digits.bytes().all(|b| b.is_ascii_digit());
        let digits = digits.trim_start_matches('0').to_owned();
        valid.then_some(LargeInteger { negative, digits })
    }

    /// Whether it is below zero.
    ///
    /// ```
    /// use tharsis_numeric::LargeInteger;
    /// assert!(LargeInteger::parse("-18446744073709551616").expect("a number").is_negative());
    /// ```
    pub fn is_negative(&self) -> bool {
        self.negative
    }

    /// The nearest float; `None` if that is infinite.
    ///
    /// ```
    /// use tharsis_numeric::LargeInteger;
    /// assert_eq!(LargeInteger::parse("18446744073709551616").and_then(|n| n.to_f64()), Some(2f64.powi(64)));
    /// ```
    pub fn to_f64(&self) -> Option<f64> {
        self.to_string().parse().ok().filter(|nearest: &f64| nearest.is_finite())
    }

    /// The absolute value as digits in base 2^64, the lowest first.
    ///
    /// ```
    /// use tharsis_numeric::LargeInteger;
    /// assert_eq!(LargeInteger::parse("18446744073709551617").expect("a number").words(), [1, 1]);
    /// ```
    pub fn words(&self) -> Vec<u64> {
        let mut words: Vec<u64> = Vec::new();
        for digit in self.digits.bytes() {
            let mut carry = u128::from(digit - b'0');
            for word in &mut words {
                let sum = u128::from(*word) * 10 + carry;
                (*word, carry) = (sum as u64, sum >> 64);
            }
            if carry != 0 {
                words.push(carry as u64);
            }
        }
        words
    }
}

impl fmt::Display for LargeInteger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = if self.digits.is_empty() { "0" } else { &self.digits };
        write!(f, "{}{digits}", if self.negative { "-" } else { "" })
    }
}

/// Splitting a number into words takes time with the square of its digits.
const DIGITS_MAX: usize = 10_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_the_number() {
        assert_eq!(LargeInteger::parse("18446744073709551616").unwrap().words(), [0, 1]);
        assert_eq!(LargeInteger::parse("-36893488147419103235").unwrap().words(), [3, 2]);
        assert_eq!(LargeInteger::parse("18446744073709551616").unwrap().to_f64(), Some(2f64.powi(64)));
        assert_eq!(LargeInteger::parse(&format!("1{}", "0".repeat(400))).unwrap().to_f64(), None);
        for bad in ["", "-", "1.5", "0x10", "1_000"] {
            assert_eq!(LargeInteger::parse(bad), None, "{bad}");
        }
    }
}
