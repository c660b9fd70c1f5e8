//! JSON numbers as source text, compared and converted by exact decimal value.

use std::fmt;

/// Longest text held without heap allocation, chosen so that a number is no larger than a string.
const SHORT_BYTES_MAX: usize = 22;

/// Maximum number of exponent digits for arithmetic in machine integers.
const MACHINE_EXPONENT_DIGITS_MAX: usize = 18;

/// JSON number: its source text (RFC 8259 §6), compared by exact decimal value.
///
/// `1 == 1.0 == 1e0 == 10e-1` and `-0 == 0`, with exponents of any size: nothing is rounded to a double or expanded.
#[derive(Clone)]
pub struct Number(NumberText);

#[derive(Clone)]
enum NumberText {
    Short { len: u8, bytes: [u8; SHORT_BYTES_MAX] },
    Long(Box<str>),
}

impl Number {
    /// Number written as `text`; `None` if `text` is not exactly one RFC 8259 number.
    pub fn from_text(text: &str) -> Option<Number> {
        (scan(text.as_bytes()) == Ok(text.len())).then(|| Number::from_scanned(text))
    }

    /// Shortest spelling of `value`; `None` for NaN and infinities, which JSON cannot write.
    pub fn from_f64(value: f64) -> Option<Number> {
        value.is_finite().then(|| Number::from_scanned(&format!("{value:?}")))
    }

    /// Number of a text that [`scan`] has accepted.
    pub(super) fn from_scanned(text: &str) -> Number {
        let mut bytes = [0; SHORT_BYTES_MAX];
        match bytes.get_mut(..text.len()) {
            Some(head) => {
                head.copy_from_slice(text.as_bytes());
                Number(NumberText::Short { len: text.len() as u8, bytes })
            }
            None => Number(NumberText::Long(text.into())),
        }
    }

    /// Source text.
    pub fn text(&self) -> &str {
        match &self.0 {
            // The bytes come from one `str`: the default is never used.
            NumberText::Short { len, bytes } => {
                std::str::from_utf8(&bytes[..usize::from(*len)]).unwrap_or_default()
            }
            NumberText::Long(text) => text,
        }
    }

    /// Exact value if it is an integer of `u64` (as `1.0`, `10e-1` and `-0` are).
    pub fn as_u64(&self) -> Option<u64> {
        self.text().parse().ok().or_else(|| self.decimal().integer()?.try_into().ok())
    }

    /// Exact value if it is an integer of `i64`.
    pub fn as_i64(&self) -> Option<i64> {
        self.text().parse().ok().or_else(|| self.decimal().integer()?.try_into().ok())
    }

    /// Nearest double; `None` beyond the range of doubles.
    pub fn as_f64(&self) -> Option<f64> {
        self.text().parse().ok().filter(|value: &f64| value.is_finite())
    }

    /// True if the value has no fractional part, whatever its size and spelling.
    pub fn is_integral(&self) -> bool {
        let decimal = self.decimal();
        decimal.is_zero() || !decimal.exponent().negative
    }

    /// True for an integer within ±(2^53−1), which every peer keeps exactly (readings §0).
    pub fn is_safe(&self) -> bool {
        self.as_i64().is_some_and(|value| value.unsigned_abs() < 1 << 53)
    }

    /// True beyond the range of doubles.
    pub fn is_beyond_double(&self) -> bool {
        self.as_f64().is_none()
    }

    /// True for an integer that is not [safe](Self::is_safe) or a number beyond the range of doubles: peers with
    /// doubles change it.
    pub fn is_big(&self) -> bool {
        match self.as_i64() {
            Some(_) => !self.is_safe(),
            None => self.is_integral() || self.is_beyond_double(),
        }
    }

    fn decimal(&self) -> Decimal<'_> {
        Decimal::of(self.text())
    }
}

impl PartialEq for Number {
    fn eq(&self, other: &Number) -> bool {
        if self.text() == other.text() {
            return true;
        }
        let (left, right) = (self.decimal(), other.decimal());
        if left.is_zero() || right.is_zero() {
            return left.is_zero() && right.is_zero();
        }
        left.negative == right.negative
            && left.len() == right.len()
            && left.digits().eq(right.digits())
            && match (left.small_exponent(), right.small_exponent()) {
                (Some(left), Some(right)) => left == right,
                _ => left.exponent() == right.exponent(),
            }
    }
}

impl Eq for Number {}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

impl fmt::Debug for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.text())
    }
}

macro_rules! from_integers {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Number {
            fn from(value: $integer) -> Number {
                Number::from_scanned(&value.to_string())
            }
        }
    )*};
}

from_integers!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize);

/// Length of the number at the start of `bytes` (RFC 8259 §6), or the offset of the wrong byte.
pub(super) fn scan(bytes: &[u8]) -> Result<usize, usize> {
    let digits = |from: usize| match bytes[from..].iter().take_while(|byte| byte.is_ascii_digit()).count() {
        0 => Err(from),
        count => Ok(from + count),
    };
    let start = usize::from(bytes.first() == Some(&b'-'));
    let mut end = digits(start)?;
    if bytes[start] == b'0' && end > start + 1 {
        return Err(start + 1);
    }
    if bytes.get(end) == Some(&b'.') {
        end = digits(end + 1)?;
    }
    if let Some(b'e' | b'E') = bytes.get(end) {
        let sign = usize::from(matches!(bytes.get(end + 1), Some(b'+' | b'-')));
        end = digits(end + 1 + sign)?;
    }
    Ok(end)
}

/// Value of a number as `±digits · 10^(written exponent + shift)`, without leading and trailing zeros in the digits.
pub(super) struct Decimal<'a> {
    pub(super) negative: bool,
    integer: &'a str,
    fraction: &'a str,
    /// Difference between the written exponent, which refers to the decimal point, and that of the last significant
    /// digit.
    shift: i64,
    exponent_negative: bool,
    /// Digits of the written exponent without leading zeros; empty for 0.
    exponent: &'a str,
}

/// Normalized integer of any size: magnitude without leading zeros; zero is `0` and not negative.
#[derive(PartialEq)]
struct BigInteger {
    negative: bool,
    magnitude: Vec<u8>,
}

impl<'a> Decimal<'a> {
    /// Parses `text`, which must be a number by [`scan`].
    fn of(text: &'a str) -> Self {
        let (negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (mantissa, exponent) = text.split_once(['e', 'E']).unwrap_or((text, ""));
        let (integer, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
        let exponent_negative = exponent.starts_with('-');
        let exponent = exponent.trim_start_matches(['+', '-']).trim_start_matches('0');

        let fraction = fraction.trim_end_matches('0');
        let mut shift = -(fraction.len() as i64);
        let mut integer = integer.trim_start_matches('0');
        if fraction.is_empty() {
            let significant = integer.trim_end_matches('0');
            shift = (integer.len() - significant.len()) as i64;
            integer = significant;
        }
        let fraction = if integer.is_empty() { fraction.trim_start_matches('0') } else { fraction };
        Decimal { negative, integer, fraction, shift, exponent_negative, exponent }
    }

    fn is_zero(&self) -> bool {
        self.len() == 0
    }

    fn len(&self) -> usize {
        self.integer.len() + self.fraction.len()
    }

    fn digits(&self) -> impl Iterator<Item = u8> {
        self.integer.bytes().chain(self.fraction.bytes())
    }

    /// Exponent of the last significant digit; `None` if the written one is too long for a machine integer.
    fn small_exponent(&self) -> Option<i64> {
        if self.exponent.len() > MACHINE_EXPONENT_DIGITS_MAX {
            return None;
        }
        let written: i64 = if self.exponent.is_empty() { 0 } else { self.exponent.parse().ok()? };
        (if self.exponent_negative { -written } else { written }).checked_add(self.shift)
    }

    /// Exponent of the last significant digit, of any size.
    fn exponent(&self) -> BigInteger {
        if let Some(exponent) = self.small_exponent() {
            let magnitude = exponent.unsigned_abs().to_string().into_bytes();
            return BigInteger { negative: exponent < 0, magnitude };
        }
        // The written exponent exceeds the length of any text, so the shift cannot change its sign.
        let mut magnitude = self.exponent.as_bytes().to_vec();
        let mut carry = if self.exponent_negative { -self.shift } else { self.shift };
        for digit in magnitude.iter_mut().rev() {
            let sum = i64::from(*digit - b'0') + carry;
            *digit = b'0' + sum.rem_euclid(10) as u8;
            carry = sum.div_euclid(10);
        }
        while carry > 0 {
            magnitude.insert(0, b'0' + (carry % 10) as u8);
            carry /= 10;
        }
        let zeros = magnitude.iter().take_while(|digit| **digit == b'0').count();
        magnitude.drain(..zeros);
        BigInteger { negative: self.exponent_negative, magnitude }
    }

    /// Value if it is an integer of at most 20 digits, enough for every 64-bit integer.
    fn integer(&self) -> Option<i128> {
        if self.is_zero() {
            return Some(0);
        }
        let exponent = u32::try_from(self.small_exponent()?).ok()?;
        if self.len() as u64 + u64::from(exponent) > 20 {
            return None;
        }
        let digits = self.digits().fold(0, |value, digit| value * 10 + i128::from(digit - b'0'));
        let magnitude = digits * 10_i128.pow(exponent);
        Some(if self.negative { -magnitude } else { magnitude })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn number(text: &str) -> Number {
        Number::from_text(text).unwrap_or_else(|| panic!("{text} is a number"))
    }

    #[test]
    fn equal_values_are_equal_however_spelled() {
        let huge = "9".repeat(40);
        let groups: &[&[&str]] = &[
            &["1", "1.0", "1e0", "10e-1", "0.1e1", "1E+0", "1e-0", "100e-2", "0.001e3", "1.000e00"],
            &["0", "-0", "0.0", "-0.0e5", "0e999999999999999999999999", "0E-7"],
            &["-12.5", "-125e-1", "-1.25E1", "-0.125e+2", "-12.50"],
            &["1e999999999", "10e999999998", "0.1e1000000000", "1.0e+0999999999"],
            &["1e-999999999", "0.1e-999999998", "10e-1000000000"],
            &["1e1000000000000000000000", "10e999999999999999999999", "0.01e1000000000000000000002"],
            &["1e-1000000000000000000000", "0.1e-999999999999999999999", "10e-1000000000000000000001"],
            &["1e1000000000000000000", "10e999999999999999999", "100e999999999999999998"],
            &["9007199254740993", "9007199254740993.0", "900719925474099.3e1"],
            &["123456789012345678901234567890", "1.23456789012345678901234567890e29"],
            &["1200", "12e2", "1.2e3", "0.0012e6"],
            &["0.0012", "12e-4", "1.2e-3"],
        ];
        for (at, group) in groups.iter().enumerate() {
            for left in *group {
                for (other, others) in groups.iter().enumerate() {
                    for right in *others {
                        assert_eq!(number(left) == number(right), at == other, "{left} and {right}");
                    }
                }
            }
        }
        assert_eq!(number(&format!("1e{huge}")), number(&format!("0.1e1{}", "0".repeat(40))));
        assert_ne!(number(&format!("1e{huge}")), number(&format!("1e-{huge}")));
    }

    #[test]
    fn different_values_are_different() {
        for (left, right) in [
            ("1", "-1"),
            ("1", "10"),
            ("1", "1.0000000000000000000000000000000000001"),
            ("9007199254740993", "9007199254740992"),
            ("1e999999999", "1e999999998"),
            ("1e99999999999999999999", "1e99999999999999999998"),
            ("12", "21"),
            ("0", "1e-99999999999999999999"),
        ] {
            assert_ne!(number(left), number(right));
        }
    }

    #[test]
    fn integers_convert_exactly_or_not_at_all() {
        let table: &[(&str, Option<u64>, Option<i64>)] = &[
            ("0", Some(0), Some(0)),
            ("-0", Some(0), Some(0)),
            ("1.0", Some(1), Some(1)),
            ("10e-1", Some(1), Some(1)),
            ("1.5e1", Some(15), Some(15)),
            ("-2e2", None, Some(-200)),
            ("1.5", None, None),
            ("1e-1", None, None),
            ("9223372036854775807", Some(i64::MAX as u64), Some(i64::MAX)),
            ("9223372036854775808", Some(1 << 63), None),
            ("-9223372036854775808.0", None, Some(i64::MIN)),
            ("-9223372036854775809", None, None),
            ("18446744073709551615", Some(u64::MAX), None),
            ("18446744073709551615e0", Some(u64::MAX), None),
            ("18446744073709551616", None, None),
            ("1e19", Some(10_000_000_000_000_000_000), None),
            ("1e20", None, None),
            ("99999999999999999999.0", None, None),
            ("1e999999999", None, None),
            ("1e99999999999999999999999", None, None),
            ("0e99999999999999999999999", Some(0), Some(0)),
            ("9007199254740993", Some(9_007_199_254_740_993), Some(9_007_199_254_740_993)),
        ];
        for (text, unsigned, signed) in table {
            assert_eq!((number(text).as_u64(), number(text).as_i64()), (*unsigned, *signed), "{text}");
        }
    }

    #[test]
    fn doubles_are_finite_or_none() {
        assert_eq!(number("1e-1").as_f64(), Some(0.1));
        assert_eq!(number("1e308").as_f64(), Some(1e308));
        assert_eq!(number("1e309").as_f64(), None);
        assert_eq!(number("1e-9999999999999999999999").as_f64(), Some(0.0));
        assert_eq!(Number::from_f64(f64::NAN), None);
        assert_eq!(Number::from_f64(f64::INFINITY), None);
        for value in [0.0, -0.0, 1.0, 1e16, 1e-7, f64::MAX, f64::MIN_POSITIVE, 5e-324] {
            let written = Number::from_f64(value).expect("finite");
            assert_eq!(scan(written.text().as_bytes()), Ok(written.text().len()), "{written}");
            assert_eq!(written.as_f64(), Some(value));
        }
    }

    #[test]
    fn integrality_does_not_depend_on_spelling_or_size() {
        for text in ["0", "0.0", "1.0", "15e-1", "1e999999999999999999999", "2.50e1"] {
            let integral = !text.starts_with("15");
            assert_eq!(number(text).is_integral(), integral, "{text}");
        }
        assert!(!number("1e-999999999999999999999").is_integral());
    }

    #[test]
    fn text_is_kept_at_every_length() {
        for len in 1..40 {
            let text = "7".repeat(len);
            assert_eq!(number(&text).text(), text);
        }
        assert_eq!(number("-1.50E+007").to_string(), "-1.50E+007");
        assert_eq!(Number::from(i64::MIN).text(), "-9223372036854775808");
    }

    #[test]
    fn only_whole_numbers_of_the_grammar_are_numbers() {
        for text in [
            "", "-", "+1", "01", "-01", "00", "1.", ".5", "1.e1", "1e", "1e+", "1e+-1", "0x1", "1 ", " 1",
            "1a",
        ] {
            assert!(Number::from_text(text).is_none(), "{text:?}");
        }
        for text in ["NaN", "Infinity", "-Infinity", "1_000", "1,0", "1e1.5", "1.5.5", "--1", "１"] {
            assert!(Number::from_text(text).is_none(), "{text:?}");
        }
    }
}
